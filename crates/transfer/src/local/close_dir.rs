//! Closing a directory: the last unit below it sets its attributes, and so on upwards.

use super::attributes::Have;
use super::context::Pass;
use super::fake::Place;
use super::node::{Node, TargetDir};
use super::state::Engine;
use super::worker::Worker;
use crate::failure::Failure;
use crate::policy::Delete;
use hakobu_core::error::Operation;
use hakobu_core::meter::Phase;
use hakobu_sys::{dir, errno, file, meta};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Engine<'_> {
    /// Records the end of one unit below `node`; the last one finishes the node, and so on upwards.
    pub(super) fn release(&self, worker: &mut Worker<'_>, node: &Arc<Node>) {
        let mut node = Arc::clone(node);
        while node.pending.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.close_dir(worker, &node);
            let owner = || {
                let owner = node.base.as_ref()?.owner.as_ref()?;
                if node.touched.load(Ordering::Relaxed) {
                    owner.touch();
                }
                Some(owner)
            };
            match node.parent.as_ref().or_else(owner) {
                Some(above) => node = Arc::clone(above),
                None => return,
            }
        }
    }

    /// Sets the attributes of a directory, now that nothing in it will change any more.
    fn close_dir(&self, worker: &mut Worker<'_>, node: &Arc<Node>) {
        if node.prunes_last.swap(false, Ordering::Relaxed) {
            self.pruning.prune(worker, node);
        }
        if let Some(info) = node.target_dir().filter(|info| info.caseless) {
            self.context.guard.forget(info.meta.identity());
        }
        worker.at.turn(Phase::Settle);
        if let Err(failure) = self.try_close_dir(worker, node) {
            let (source, target) = (node.source_path(0, c""), node.target_path(c""));
            node.keep_source();
            self.fail(worker, failure, (Some(source), Some(target)));
        }
        if self.context.policy.remove_source_dirs && self.context.is_real() {
            self.remove_source_dir(worker, node);
        }
        node.close();
    }

    fn try_close_dir(&self, worker: &mut Worker<'_>, node: &Arc<Node>) -> Result<(), Failure> {
        let sets = self.context.is_real() && !self.context.policy.leave_dirs;
        let Some(info) = node.target_dir().filter(|_| sets) else {
            return Ok(());
        };
        let existing = (!info.created).then_some(&info.meta);
        let touched = node.touched.load(Ordering::Relaxed);
        let pruned = self.context.policy.prune_empty_dirs && !node.needed.load(Ordering::Relaxed);
        let not_now = self.context.pass == Pass::Delete
            && (self.context.policy.delete == Delete::Before || !touched);
        if !node.owns_attributes || pruned || not_now {
            return self.close_again(node, &info);
        }
        let mut want = self.want_dir(worker, node, existing);
        if info.created && !self.context.policy.preserve.mode {
            // Keep what it inherits from its parent: default ACL and setgid.
            want.mode |= info.meta.mode & 0o2000;
            if node.parent.is_none() {
                // Created with all bits that umask or default ACL allow.
                let bits = worker.attributes.bits(&node.source) & 0o777;
                want.mode = want.mode & 0o7000 | bits & (info.meta.mode | 0o700);
            } else if info.default_bits.is_some() {
                want.mode = info.meta.mode & !0o700 | want.mode & 0o700;
            }
        }
        let times =
            self.context.policy.preserve.times && !self.context.policy.preserve.omit_dir_times;
        let mut have = Have::from(&info.meta);
        if self.was_opened(&info) {
            have.mode |= 0o700;
        }
        let differs = have.mode != want.mode
            || want.uid.is_some_and(|uid| uid != have.uid)
            || want.gid.is_some_and(|gid| gid != have.gid)
            || want.times.is_some() && !self.same_dir_time(node, &info, None);
        let changes = info.created || differs || (touched && (times || self.context.policy.fsync));
        if !changes && !worker.attributes.wants_xattrs() {
            return Ok(());
        }
        let fds = node.fds().map_err(Failure::of(Operation::SetTimes))?;
        let (Some(to), from) = (fds.target(), fds.source(0)) else { return Ok(()) };
        let from = from.map_err(Failure::of(Operation::Read))?;
        let above = node.parent.as_ref().and_then(|parent| parent.rules.as_ref());
        worker.attributes.within(above);
        if !changes {
            let (from, to) = (Place::Open(from), Place::Open(to));
            return worker.attributes.xattrs.copy(from, to, false).map(drop);
        }
        let fresh = info.created && info.default_bits.is_none();
        worker.attributes.settle(&worker.at, Some(from), to, &want, have, fresh)?;
        if self.context.policy.fsync {
            worker.at.step(Phase::Settle, 1);
            file::sync(to).map_err(Failure::of(Operation::Sync))?;
        }
        if worker.attributes.count_unprivileged(&node.source, &want) {
            return Err(Failure::code(Operation::SetOwner, errno::EPERM));
        }
        Ok(())
    }

    /// Returns whether `open_existing` added permissions to an existing directory.
    fn was_opened(&self, info: &TargetDir) -> bool {
        !info.created && self.opens_up(&info.meta) && !info.follow
    }

    /// Restores the mode of a directory that was opened for us.
    fn close_again(&self, node: &Arc<Node>, info: &TargetDir) -> Result<(), Failure> {
        if !self.was_opened(info) {
            return Ok(());
        }
        let fds = node.fds().map_err(Failure::of(Operation::SetMode))?;
        let Some(to) = fds.target() else { return Ok(()) };
        meta::set_mode_fd(to, info.meta.mode).map_err(Failure::of(Operation::SetMode))
    }

    /// Removes a source directory of `mv` across file systems once it is empty.
    fn remove_source_dir(&self, worker: &mut Worker<'_>, node: &Arc<Node>) {
        let Some(parent) = &node.parent else { return };
        if node.kept_sources.load(Ordering::Relaxed) > 0 || self.is_over() {
            return parent.keep_source();
        }
        let removed = || {
            let fds = parent.fds()?;
            let Some(side) = node.sides.first() else { return Ok(()) };
            dir::rmdir(fds.source(side.parent_side)?, &side.name)
        };
        worker.at.step(Phase::Remove, 1);
        if let Err(error) = removed() {
            let failure = Failure { operation: Operation::Remove, error };
            self.fail(worker, failure, (Some(node.source_path(0, c"")), None));
            parent.keep_source();
        }
    }
}
