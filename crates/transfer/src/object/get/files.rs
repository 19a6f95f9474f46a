//! State of creating files, shared by all cores.

use crate::journal::Ledger;
use crate::object::{CaseConflict, Folded, ObjectOptions};
use crate::policy::Policy;
use crate::publish::{Direct, Drafts};
use hakobu_core::control::Control;
use hakobu_core::unit::Kind;
use hakobu_sys::dir::Reader;
use hakobu_sys::{AsFd, BorrowedFd, dir};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Maximum number of folders that are known to be without files of dead runs.
const CLEARED_MAX: usize = 100_000;

/// State of creating files, shared by all cores and their helper threads.
pub(in crate::object) struct Files {
    pub(super) policy: Policy,
    /// Existing files are never replaced.
    pub(super) if_none_match: bool,
    pub drafts: Drafts,
    /// What is known of targets that hold different names for one.
    pub folded: Arc<Folded>,
    pub(super) case_conflict: CaseConflict,
    /// Targets are not listed, so that their folders are looked through for files of dead runs when they are opened.
    pub clears: AtomicBool,
    /// Those that were looked through.
    cleared: Mutex<HashSet<(u64, u64)>>,
}

impl Files {
    /// Returns the initial state of a run.
    pub fn new(
        policy: &Policy,
        options: &ObjectOptions,
        control: &Control,
        ledger: &Arc<Ledger>,
        folded: &Arc<Folded>,
    ) -> Files {
        Files {
            policy: policy.clone(),
            if_none_match: options.if_none_match,
            // Times are always kept: files get the object's.
            drafts: Drafts::new(Direct::new(policy, !options.if_none_match, ledger), control),
            folded: Arc::clone(folded),
            case_conflict: options.case_conflict,
            clears: AtomicBool::new(false),
            cleared: Mutex::default(),
        }
    }

    /// Removes the temporary files of dead runs from a folder, the first time that it is seen.
    pub(super) fn clear(&self, folder: BorrowedFd<'_>, identity: (u64, u64)) {
        let mut cleared = self.cleared.lock();
        if cleared.len() >= CLEARED_MAX {
            // To look again costs little.
            cleared.clear();
        }
        let is_first = cleared.insert(identity);
        drop(cleared);
        if !is_first {
            return;
        }
        // A folder that cannot be read keeps them.
        let Ok(own) = dir::open(folder, c".", false) else { return };
        let _ = Reader::default().for_each(own.as_fd(), |name, kind, _| {
            if kind != Kind::Dir && self.drafts.temp_names.is_abandoned(name) {
                // One that cannot be removed is left to the next run.
                drop(dir::unlink(folder, name));
            }
        });
    }

    /// Returns whether a file that appeared meanwhile must not be replaced.
    pub(super) fn never_replaces(&self) -> bool {
        self.policy.ignore_existing || self.if_none_match
    }
}
