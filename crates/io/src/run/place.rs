//! Place of a clone on the machine: its CPUs (`cpus_allowed`, `numa_cpu_nodes`) and where its memory comes from
//! (`numa_mem_policy`).

use crate::Job;
use crate::engine::Failure;
use hakobu_sys::memory::{self, MemoryPolicy};
use hakobu_sys::process::{IoClass, set_io_priority};
use hakobu_sys::{errno, proc};
use std::io::{Error, ErrorKind};

/// Binds the calling thread.
///
/// # Errors
/// A CPU or a node that is not there, or is not the job's to have.
pub(super) fn bind(job: &Job, clone: u32) -> Result<(), Failure> {
    let mut of_nodes = Vec::new();
    for node in &job.nodes.cpus {
        let cpus = memory::cpus_of_node(*node).map_err(|error| no_node(*node, &error))?;
        of_nodes.extend(cpus);
    }
    // Both together: the CPUs of these nodes that are allowed.
    let is_allowed = |cpu: &u32| job.cpus.is_empty() || job.cpus.contains(cpu);
    let cpus: Vec<u32> = match of_nodes.is_empty() {
        true => job.cpus.clone(),
        false => of_nodes.into_iter().filter(is_allowed).collect(),
    };
    let own = cpus.get(clone as usize % cpus.len().max(1));
    let cpus = match own {
        Some(own) if job.cpus_split => std::slice::from_ref(own),
        _ => cpus.as_slice(),
    };
    if !cpus.is_empty() {
        proc::set_affinity(0, cpus).map_err(|error| {
            Failure::of(&error, format!("cannot be bound to CPUs {cpus:?}: {error}"))
        })?;
    }
    priority(job)?;
    memory(job)
}

/// Sets the I/O priority (`prioclass`, `prio`).
fn priority(job: &Job) -> Result<(), Failure> {
    let Some(own) = job.priorities.own else { return Ok(()) };
    let class = match own.class {
        1 => IoClass::Realtime,
        2 => IoClass::BestEffort,
        3 => IoClass::Idle,
        _ => IoClass::None,
    };
    set_io_priority(class, own.level).map_err(|error| {
        let needs = "(realtime needs CAP_SYS_NICE or CAP_SYS_ADMIN)";
        let asked = format!("prioclass={}, prio={}", own.class, own.level);
        Failure::of(&error, format!("{asked}: {error} {needs}"))
    })
}

/// Sets where memory comes from.
fn memory(job: &Job) -> Result<(), Failure> {
    let policy = job.nodes.policy;
    if policy == MemoryPolicy::Default {
        return Ok(());
    }
    let list = &job.nodes.memory;
    for node in list {
        memory::cpus_of_node(*node).map_err(|error| no_node(*node, &error))?;
    }
    memory::set_policy(policy, list).map_err(|error| {
        let what = "numa_mem_policy: memory of nodes";
        Failure::of(&error, format!("{what} {list:?} cannot be had: {error}"))
    })
}

fn no_node(node: u32, error: &Error) -> Failure {
    let why = match error.kind() {
        ErrorKind::NotFound => "this machine has none".to_owned(),
        _ => error.to_string(),
    };
    Failure { errno: errno::EINVAL, sentence: format!("node {node} of CPUs and memory: {why}") }
}
