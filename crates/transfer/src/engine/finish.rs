//! Leaving a directory: the last unit below it gives it its attributes, and so on upwards.

use super::attributes::{self, Have};
use super::node::{Failure, Node, TargetDir};
use super::sweep::Pass;
use super::{Engine, State, TargetMode};
use crate::error::Operation;
use crate::meter::Phase;
use crate::policy::Delete;
use hakobu_sys::{dir, errno, meta};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Engine<'_> {
    /// One unit below `node` is finished; the last one finishes the node, and so on upwards.
    pub(super) fn release(&self, state: &mut State, node: &Arc<Node>) {
        let mut node = Arc::clone(node);
        while node.pending.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.finish(state, &node);
            match &node.parent {
                Some(parent) => node = Arc::clone(parent),
                None => return,
            }
        }
    }

    /// Gives a directory its attributes, now that nothing in it will change any more.
    pub(super) fn finish(&self, state: &mut State, node: &Arc<Node>) {
        self.turn(&state.station, Phase::Settle);
        if let Err(failure) = self.try_finish(state, node) {
            let (source, target) = (node.source_path(0, c""), node.target_path(c""));
            node.kept_sources.fetch_add(1, Ordering::Relaxed);
            self.fail(state, failure, Some(source), Some(target));
        }
        if self.policy.remove_source_dirs && self.mode == TargetMode::Real {
            self.remove_source_dir(state, node);
        }
        node.close();
    }

    pub(super) fn try_finish(&self, state: &mut State, node: &Arc<Node>) -> Result<(), Failure> {
        let Some(info) = node.target_dir().filter(|_| self.mode == TargetMode::Real) else {
            return Ok(());
        };
        let existing = (!info.created).then_some(&info.meta);
        let touched = node.touched.load(Ordering::Relaxed);
        let pruned = self.policy.prune_empty_dirs && !node.needed.load(Ordering::Relaxed);
        let not_now =
            self.pass == Pass::Delete && (self.policy.delete == Delete::Before || !touched);
        if !node.owns_attributes || pruned || not_now {
            return self.close_again(node, &info);
        }
        let mut want = self.want_dir(node, existing);
        if info.created && !self.policy.preserve.mode {
            // What the parent directory hands down stays: its default ACL and setgid.
            want.mode |= info.meta.mode & 0o2000;
            if info.default_acl {
                want.mode = info.meta.mode & !0o700 | want.mode & 0o700;
            }
        }
        let times = self.policy.preserve.times && !self.policy.preserve.omit_dir_times;
        let mut have = Have::from(&info.meta);
        if self.was_opened(&info) {
            have.mode |= 0o700;
        }
        let differs = have.mode != want.mode
            || want.uid.is_some_and(|uid| uid != have.uid)
            || want.gid.is_some_and(|gid| gid != have.gid)
            || want.times.is_some_and(|(_, mtime)| {
                !crate::policy::same_time(mtime, info.meta.mtime, self.policy.modify_window_s)
            });
        let changes = info.created || differs || (touched && (times || self.policy.fsync));
        if !changes && !self.wants_xattrs() {
            return Ok(());
        }
        let fds = node.fds().map_err(Failure::of(Operation::SetTimes))?;
        let (Some(to), from) = (fds.target(), fds.source(0)) else { return Ok(()) };
        let from = from.map_err(Failure::of(Operation::Read))?;
        if !changes {
            let (from, to) = (attributes::Handle::Fd(from), attributes::Handle::Fd(to));
            self.copy_xattrs(state, &from, &to, false, false)?;
            return Ok(());
        }
        let fresh = info.created && !info.default_acl;
        self.settle(state, Some(from), to, &want, have, fresh)?;
        if self.policy.fsync {
            self.step(&state.station, Phase::Settle, 1);
            dir::sync(to).map_err(Failure::of(Operation::Sync))?;
        }
        if self.count_unprivileged(&node.source, &want, state) {
            let error = std::io::Error::from_raw_os_error(errno::EPERM);
            return Err(Failure { operation: Operation::SetOwner, error });
        }
        Ok(())
    }

    /// Whether `open_existing` opened an existing directory for us.
    fn was_opened(&self, info: &TargetDir) -> bool {
        !info.created && self.opens_up(&info.meta) && !info.follow
    }

    /// Gives a directory that was opened for us its mode back.
    fn close_again(&self, node: &Arc<Node>, info: &TargetDir) -> Result<(), Failure> {
        if !self.was_opened(info) {
            return Ok(());
        }
        let fds = node.fds().map_err(Failure::of(Operation::SetMode))?;
        let Some(to) = fds.target() else { return Ok(()) };
        meta::set_mode_fd(to, info.meta.mode).map_err(Failure::of(Operation::SetMode))
    }

    /// `mv` across file systems: a source directory goes when everything in it has gone.
    pub(super) fn remove_source_dir(&self, state: &mut State, node: &Arc<Node>) {
        let Some(parent) = &node.parent else { return };
        let kept = node.kept_sources.load(Ordering::Relaxed) > 0 || self.is_over();
        let removed = || {
            let fds = parent.fds()?;
            let Some(side) = node.sides.first() else { return Ok(()) };
            dir::rmdir(fds.source(side.parent_side)?, &side.name)
        };
        let result = match kept {
            true => Ok(()),
            false => {
                self.step(&state.station, Phase::Remove, 1);
                removed()
            }
        };
        if let Err(error) = &result {
            let failure = Failure {
                operation: Operation::Remove,
                error: std::io::Error::from_raw_os_error(
                    error.raw_os_error().unwrap_or(errno::EIO),
                ),
            };
            self.fail(state, failure, Some(node.source_path(0, c"")), None);
        }
        if kept || result.is_err() {
            parent.kept_sources.fetch_add(1, Ordering::Relaxed);
        }
    }
}
