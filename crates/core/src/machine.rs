//! The machine that something was measured on, as reports and results name it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Properties of the machine that affect measurements. Contains nothing that identifies it or its users.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Name among others: the user's, else the instance type, else the CPU.
    pub name: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Architecture.
    pub arch: String,
    /// Model name of the CPUs.
    pub cpu_model: Option<String>,
    /// CPUs that this process may use; a quota makes it a fraction.
    pub cpus: f64,
    /// CPUs that are on.
    pub cpus_online: usize,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// The cloud's instance type, where there is one.
    pub instance_type: Option<String>,
    /// Location of data: its label, kind and options of the file system, model, scheduler
    /// and kind of the disk.
    pub volumes: BTreeMap<String, String>,
    /// Limits that control groups set, one sentence each.
    pub limits: Vec<String>,
}
