//! State of creating files, shared by all cores.

use crate::engine::publish::{Direct, TempNames};
use crate::journal::Ledger;
use crate::object::ObjectOptions;
use crate::policy::Policy;
use hakobu_core::control::Control;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// State of creating files, shared by all cores and their helper threads.
pub(in crate::object) struct Files {
    pub(super) policy: Policy,
    pub(super) control: Control,
    /// Existing files are never replaced.
    pub(super) if_none_match: bool,
    /// Temporary names.
    pub temp: TempNames,
    /// Decides which files are created under their final name.
    pub(super) direct: Direct,
    /// `O_TMPFILE` works at the target, as far as is known.
    pub(super) unnamed_works: AtomicBool,
}

impl Files {
    /// Returns the initial state of a run.
    pub fn new(
        policy: &Policy,
        options: &ObjectOptions,
        control: &Control,
        ledger: &Arc<Ledger>,
    ) -> Files {
        Files {
            policy: policy.clone(),
            control: control.clone(),
            if_none_match: options.if_none_match,
            temp: TempNames::new(),
            // Times are always kept: files get the object's.
            direct: Direct::new(policy, !options.if_none_match, ledger),
            unnamed_works: AtomicBool::new(true),
        }
    }

    /// Returns whether a file that appeared meanwhile must not be replaced.
    pub(super) fn never_replaces(&self) -> bool {
        self.policy.ignore_existing || self.if_none_match
    }
}
