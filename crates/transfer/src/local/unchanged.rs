//! The short test for most entries of a repeated run: regular files whose targets agree in all that the options may
//! ask for. `decide` and `attributes` come to the same result in many more steps.

use super::context::Context;
use super::report::Reports;
use crate::policy::Policy;
use hakobu_core::unit::{Kind, Meta};

/// See the module. Evaluates the options once for a run.
pub(super) struct Unchanged {
    /// Files that agree in type, size, modification time, mode, owner and group need nothing.
    suffices: bool,
    /// ... except those with several names.
    only_single: bool,
    /// ... except those of other users or groups, which are counted because this user may not set them.
    only_own: Option<(u32, u32)>,
}

impl Unchanged {
    pub(super) fn new(context: &Context<'_>, reports: &Reports<'_>) -> Unchanged {
        let owner = (context.euid, context.egid);
        Unchanged {
            suffices: suffices(context.policy) && !reports.items_unchanged,
            only_single: context.policy.hard_links,
            only_own: (!context.is_root()).then_some(owner),
        }
    }

    /// Returns whether nothing has to be done to a file, with its metadata on both sides. The two must not be the same
    /// file.
    pub(super) fn holds(&self, source: &Meta, target: &Meta) -> bool {
        self.suffices
            && source.kind == Kind::File
            && target.kind == Kind::File
            && source.size == target.size
            && source.mtime == target.mtime
            && source.mode == target.mode
            && (source.uid, source.gid) == (target.uid, target.gid)
            && (source.nlink == 1 || !self.only_single)
            && self.only_own.is_none_or(|own| own == (source.uid, source.gid))
    }
}

/// Returns whether the options neither compare more than type, size, modification time, mode, owner and group, nor
/// want any of these to be different from the source's, nor have a consequence for a file that is up to date.
fn suffices(policy: &Policy) -> bool {
    let preserve = policy.preserve;
    let compares_more = policy.checksum || preserve.acls || preserve.xattrs || preserve.file_atimes;
    let wants_other =
        policy.ignore_times || policy.chmod.is_some() || policy.maps_ids() || policy.cp_targets;
    let skips_otherwise = policy.update
        || policy.ignore_existing
        || policy.max_size.or(policy.min_size).is_some()
        || policy.ask.is_some();
    let has_consequence = policy.remove_source_files
        || policy.remove_source_dirs
        || !policy.basis_dirs.is_empty()
        || policy.fake.source
        || policy.fake.target;
    !(compares_more || wants_other || skips_otherwise || has_consequence)
}

#[cfg(test)]
mod tests;
