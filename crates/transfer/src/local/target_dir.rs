//! The target side of a directory being opened: found or created, compared and reported.

use super::attributes::Want;
use super::context::Pass;
use super::decide::{CLASH, IS_SOURCE, LOOKS_MAX};
use super::node::{Node, TargetDir};
use super::report::Report;
use super::sources::path_below;
use super::state::Engine;
use super::worker::Worker;
use crate::failure::{Failure, c_string};
use crate::policy::same_time;
use crate::publish::TempNames;
use crate::publish::unlink_any;
use hakobu_core::error::{ENTRY_STAYS, Operation};
use hakobu_core::event::{Change, Skip};
use hakobu_core::meter::Phase;
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, beneath, dir, errno, meta};
use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Number of names after which an existing directory is left unread: the walk reads it once more.
const GLANCED_MAX: usize = 256;

/// Result of opening the target side of a directory.
pub(super) enum Opened {
    Dir(OwnedFd, TargetDir),
    /// Not created (dry run) or not yet (`--prune-empty-dirs`).
    Later,
    /// An option excludes the directory and everything below it.
    LeftOut,
}

impl Engine<'_> {
    /// Opens or creates the directory at the target.
    pub(super) fn open_target(
        &self,
        worker: &mut Worker<'_>,
        node: &Node,
        parent: &Arc<Node>,
        dir_fd: BorrowedFd<'_>,
    ) -> Result<Opened, Failure> {
        let makes = self.context.is_real()
            && self.context.pass == Pass::Transfer
            && !self.context.policy.prune_empty_dirs;
        let fresh_parent = parent.target_dir().is_some_and(|info| info.fresh);
        if fresh_parent && makes && !self.context.policy.existing {
            match self.make_dir(worker, node, parent, dir_fd) {
                Err(failure) if errno::is(&failure.error, errno::EEXIST) => {
                    if self.may_be_ours((dir_fd, &node.target_name))? {
                        return Err(Failure::reason(Operation::Overwrite, CLASH));
                    }
                }
                other => return other.map(|(fd, info)| Opened::Dir(fd, info)),
            }
        }
        for _ in 1..LOOKS_MAX {
            match self.look_and_open(worker, node, parent, dir_fd, makes) {
                // Another program created the name after it was examined.
                Err(failure) if errno::is(&failure.error, errno::EEXIST) && !self.is_over() => {}
                other => return other,
            }
        }
        self.look_and_open(worker, node, parent, dir_fd, makes)
    }

    /// Returns the directory that a symlink of the target stands for: with `-K`, and on the path of
    /// `-R --no-implied-dirs`, where only symlinks of root and of the running user are followed. `None` if it is a
    /// symlink like others.
    ///
    /// # Errors
    /// With `-K`, a symlink that leads out of the target, or to a directory that another entry of the source goes to.
    fn open_dirlink(
        &self,
        node: &Node,
        link: &Meta,
        dir_fd: BorrowedFd<'_>,
    ) -> Result<Option<(OwnedFd, Meta)>, Failure> {
        let policy = self.context.policy;
        let is_implied = policy.no_implied_dirs && !node.owns_attributes;
        let is_trusted = link.uid == 0 || link.uid == self.context.euid;
        let name = &node.target_name;
        if !(policy.keep_dirlinks || is_implied && is_trusted) {
            return Ok(None);
        }
        let stat = || Failure::of(Operation::Stat);
        match self.context.target_of((dir_fd, name), true) {
            Ok(named) if named.kind == Kind::Dir => {}
            _ => return Ok(None),
        }
        let top = node.top();
        let top = top.target_handle().map(|handle| handle.fd()).transpose().map_err(stat())?;
        let Some(top) = top else { return Ok(None) };
        let path = c_string(&node.path_below_top()).map_err(stat())?;
        let opened = match beneath::open((*top).as_fd(), &path, beneath::For::Directory) {
            Ok(fd) => fd,
            Err(_) if !policy.keep_dirlinks => return Ok(None),
            Err(error) if errno::is(&error, errno::EXDEV) || errno::is(&error, errno::ELOOP) => {
                let reason = "it is a symlink that leads out of the target";
                return Err(Failure::reason(Operation::MakeDir, reason));
            }
            Err(error) => return Err(Failure { operation: Operation::List, error }),
        };
        let there = self.context.target_of_fd(&opened).map_err(stat())?;
        if policy.keep_dirlinks && self.is_another_entry(node, (*top).as_fd(), &opened)? {
            let reason = "it is a symlink to a directory that another entry of the source goes to";
            return Err(Failure::reason(Operation::MakeDir, reason));
        }
        Ok(Some((opened, there)))
    }

    /// Returns whether the source has an entry for the path that a directory of the target has there.
    fn is_another_entry(
        &self,
        node: &Node,
        top: BorrowedFd<'_>,
        opened: &OwnedFd,
    ) -> Result<bool, Failure> {
        let look = || Failure::of(Operation::List);
        let Some(path) = path_below(top, opened.as_fd()).map_err(look())? else { return Ok(false) };
        let Some(first) = path.first() else { return Ok(true) };
        let top = node.top();
        let names: Vec<&[u8]> = path.iter().map(|name| name.to_bytes()).collect();
        let whole = c_string(&names.join(&b'/')).map_err(look())?;
        for side in (0..top.sides.len()).filter(|side| top.selects(*side, first)) {
            let fd = top.sides.get(side).map(|side| side.handle.fd());
            let Some(fd) = fd.transpose().map_err(look())? else { continue };
            if meta::of((*fd).as_fd(), &whole, false).is_ok() {
                return Ok(true);
            }
        }
        let provided =
            |base: &super::node::Base| base.provided.iter().any(|name| **name == **first);
        Ok(top.base.as_deref().is_some_and(provided))
    }

    /// Examines the target name; opens a directory, or with `makes` creates one.
    fn look_and_open(
        &self,
        worker: &mut Worker<'_>,
        node: &Node,
        parent: &Arc<Node>,
        dir_fd: BorrowedFd<'_>,
        makes: bool,
    ) -> Result<Opened, Failure> {
        let name = &node.target_name;
        let stat = || Failure::of(Operation::Stat);
        worker.at.step(Phase::Look, 1);
        // Most names are directories, which are opened in any case: examined first, each would take one call more.
        let looked = match dir::open(dir_fd, name, false) {
            Ok(fd) => {
                let there = self.context.target_of_fd(&fd).map_err(stat())?;
                if self.opens_up(&there) && self.context.is_real() {
                    worker.at.step(Phase::Settle, 1);
                    meta::set_mode_fd(&fd, there.mode | 0o700)
                        .map_err(Failure::of(Operation::SetMode))?;
                }
                let opened = self.enter_existing(worker, fd, there, false)?;
                return Ok(self.found_dir(worker, node, opened, dir_fd));
            }
            Err(error) if errno::is(&error, errno::ENOENT) => Err(error),
            Err(_) => self.context.target_of((dir_fd, name), false),
        };
        let existing = match looked {
            Ok(there) if there.kind == Kind::Symlink => {
                match self.open_dirlink(node, &there, dir_fd) {
                    Ok(Some((fd, there))) => {
                        let opened = self.enter_existing(worker, fd, there, true)?;
                        return Ok(self.found_dir(worker, node, opened, dir_fd));
                    }
                    Ok(None) => Some(there),
                    // The transfer reports it.
                    Err(_) if self.context.pass == Pass::Delete => return Ok(Opened::LeftOut),
                    Err(failure) => return Err(failure),
                }
            }
            Ok(there) => Some(there),
            Err(error) if errno::is(&error, errno::ENOENT) => None,
            Err(error) => return Err(stat()(error)),
        };
        match existing {
            Some(there) if there.kind == Kind::Dir => {
                let opened = self.open_existing(worker, dir_fd, name, &there)?;
                return Ok(self.found_dir(worker, node, opened, dir_fd));
            }
            _ if self.context.pass == Pass::Delete => return Ok(Opened::LeftOut),
            Some(_) if self.context.policy.ignore_existing => {
                return Err(Failure::reason(
                    Operation::MakeDir,
                    match self.context.policy.cp_targets || self.context.policy.remove_source_dirs {
                        true => "an existing entry, which is kept, is in its way",
                        false => "--ignore-existing keeps the entry that is in its way",
                    },
                ));
            }
            Some(_) if self.context.policy.cp_targets => {
                return Err(Failure::reason(Operation::MakeDir, ENTRY_STAYS));
            }
            Some(_) if !node.owns_attributes => {
                return Err(Failure::code(Operation::MakeDir, errno::ENOTDIR));
            }
            None if self.context.policy.existing => {
                worker.totals.skipped += 1;
                self.reports.skipped(&|| node.path(), Kind::Dir, Skip::NotExisting);
                return Ok(Opened::LeftOut);
            }
            Some(there) if makes => {
                if self.context.guard.is_source(there.identity()) {
                    return Err(Failure::reason(Operation::MakeDir, IS_SOURCE));
                }
                self.clear_name(parent, dir_fd, name)?;
            }
            _ => {}
        }
        if !makes {
            self.report_missing_dir(worker, node);
            return Ok(Opened::Later);
        }
        self.make_dir(worker, node, parent, dir_fd).map(|(fd, info)| Opened::Dir(fd, info))
    }

    /// Removes a non-directory at the place of a directory.
    fn clear_name(
        &self,
        parent: &Node,
        dir_fd: BorrowedFd<'_>,
        name: &CStr,
    ) -> Result<(), Failure> {
        self.publisher.back_up((dir_fd, name), parent)?;
        unlink_any(dir_fd, name).map_err(Failure::of(Operation::Remove))?;
        parent.touch();
        Ok(())
    }

    /// Returns whether a directory needs more permissions while we work in it.
    pub(super) fn opens_up(&self, there: &Meta) -> bool {
        // A mode of --fake-super is not that of the directory itself.
        let is_real = !self.context.policy.fake.target;
        is_real
            && there.mode & 0o700 != 0o700
            && self.context.euid != 0
            && there.uid == self.context.euid
    }

    fn open_existing(
        &self,
        worker: &mut Worker<'_>,
        dir_fd: BorrowedFd<'_>,
        name: &CStr,
        there: &Meta,
    ) -> Result<(OwnedFd, TargetDir), Failure> {
        let mut there = *there;
        // An ordinary user needs write permission on its own directories until we are done.
        if self.opens_up(&there) && self.context.is_real() {
            worker.at.step(Phase::Settle, 1);
            meta::set_mode(dir_fd, name, there.mode | 0o700)
                .map_err(Failure::of(Operation::SetMode))?;
        }
        worker.at.step(Phase::Look, 1);
        let fd = dir::open(dir_fd, name, false).map_err(Failure::of(Operation::List))?;
        let opened = meta::of_fd(&fd).map_err(Failure::of(Operation::Stat))?;
        there.dev = opened.dev;
        there.ino = opened.ino;
        self.enter_existing(worker, fd, there, false)
    }

    /// Looks into an existing directory that is open; `there` is its metadata before any change of ours.
    fn enter_existing(
        &self,
        worker: &mut Worker<'_>,
        fd: OwnedFd,
        there: Meta,
        follow: bool,
    ) -> Result<(OwnedFd, TargetDir), Failure> {
        let (fresh, swept) = self.glance(worker, &fd)?;
        let default_bits = worker.attributes.xattrs.default_bits(fd.as_fd())?;
        let meta = there;
        let caseless = self.context.guard.ignores_case(fd.as_fd(), meta.dev);
        let created = false;
        Ok((fd, TargetDir { fresh, swept, created, meta, default_bits, follow, caseless }))
    }

    /// Compares and reports an existing directory that was opened in `above`.
    fn found_dir(
        &self,
        worker: &mut Worker<'_>,
        node: &Node,
        (fd, info): (OwnedFd, TargetDir),
        above: BorrowedFd<'_>,
    ) -> Opened {
        if self.context.pass == Pass::Transfer && !self.context.policy.prune_empty_dirs {
            let change = self.dir_change(worker, node, &info, Some(above));
            self.report_dir(node, change);
        }
        Opened::Dir(fd, info)
    }

    /// Returns whether a directory is empty, and whether it certainly has no leftovers of killed runs. A large one is
    /// not read to its end.
    pub(super) fn glance(
        &self,
        worker: &mut Worker<'_>,
        fd: &OwnedFd,
    ) -> Result<(bool, bool), Failure> {
        let (mut names, mut leftovers) = (0, false);
        loop {
            if self.is_over() {
                // Nothing is concluded from a listing without its end.
                return Ok((false, false));
            }
            worker.at.step(Phase::List, 1);
            let each = |name: &CStr, kind, _| {
                names += 1;
                // We create no directories under such names.
                leftovers |= kind != Kind::Dir && TempNames::is_temp(name);
            };
            let read = worker.reader.next_batch(fd.as_fd(), each);
            let more = read.map_err(Failure::of(Operation::List))?;
            if !more || names > GLANCED_MAX {
                return Ok((names == 0, !more && !leftovers));
            }
        }
    }

    /// Creates a missing directory, accessible only to us if its owner will differ.
    fn make_dir(
        &self,
        worker: &mut Worker<'_>,
        node: &Node,
        parent: &Node,
        dir_fd: BorrowedFd<'_>,
    ) -> Result<(OwnedFd, TargetDir), Failure> {
        let name = &node.target_name;
        let parent_info = parent.target_dir();
        let want = worker.attributes.want(&node.source, None, parent_info.as_ref());
        let gid = parent_info.map_or(self.context.egid, |info| info.default_gid(self.context.egid));
        let ours = want.uid.is_none_or(|uid| uid == self.context.euid)
            && want.gid.is_none_or(|g| g == gid);
        // The group bits hold an ACL's mask: until the ACL is set they would admit the owning group.
        let closed = !ours || self.context.policy.preserve.acls;
        let mode = if closed { 0o700 } else { want.mode & 0o1777 | 0o700 };
        worker.at.step(Phase::Create, 2);
        dir::create(dir_fd, name, mode).map_err(Failure::of(Operation::MakeDir))?;
        parent.touch();
        let fd = dir::open(dir_fd, name, false).map_err(Failure::of(Operation::MakeDir))?;
        let mut meta = meta::of_fd(&fd).map_err(Failure::of(Operation::Stat))?;
        if self.context.policy.preserve.mode && meta.mode & !want.mode & 0o2000 != 0 {
            // What is made in it must not get its group, as nothing that comes later would.
            meta.mode &= !0o2000;
            meta::set_mode_fd(&fd, meta.mode).map_err(Failure::of(Operation::SetMode))?;
        }
        let mut default_bits = parent_info.and_then(|info| info.default_bits);
        if default_bits.is_some() && worker.attributes.disinherit(fd.as_fd())? {
            default_bits = None;
        }
        worker.totals.dirs_created += 1;
        let change = self.made_change(worker, node);
        self.report_dir(node, change);
        let (fresh, swept, created, follow) = (true, true, true, false);
        // It inherits the flag.
        let caseless = parent_info.is_some_and(|info| info.caseless);
        Ok((fd, TargetDir { fresh, swept, created, meta, default_bits, follow, caseless }))
    }

    /// Reports a directory that a dry run does not create, or `--prune-empty-dirs` not yet.
    pub(super) fn report_missing_dir(&self, worker: &mut Worker<'_>, node: &Node) {
        let not_yet = self.context.policy.prune_empty_dirs && !node.needed.load(Ordering::Relaxed);
        if self.context.is_real() || self.context.pass == Pass::Delete || not_yet {
            return;
        }
        worker.totals.dirs_created += 1;
        let change = self.made_change(worker, node);
        self.report_dir(node, change);
    }

    /// Creates the target directory of a node and those above it, now that something goes in.
    pub(super) fn materialize(
        &self,
        worker: &mut Worker<'_>,
        node: &Arc<Node>,
    ) -> Result<(), Failure> {
        let mut needed = Vec::new();
        let mut above = node;
        let _making = self.making.lock();
        while !above.needed.swap(true, Ordering::Relaxed) {
            needed.push(above);
            match &above.parent {
                Some(parent) => above = parent,
                None => break,
            }
        }
        while let Some(node) = needed.pop() {
            if let Some(info) = node.target_dir() {
                let change = self.dir_change(worker, node, &info, None);
                self.report_dir(node, change);
                continue;
            }
            if !self.context.is_real() {
                self.report_missing_dir(worker, node);
                continue;
            }
            let Some(parent) = &node.parent else { continue };
            let fds = parent.fds().map_err(Failure::of(Operation::MakeDir))?;
            let Some(dir_fd) = fds.target() else { return Ok(()) };
            let made = match self.make_dir(worker, node, parent, dir_fd) {
                Err(failure) if errno::is(&failure.error, errno::EEXIST) => {
                    let name = &node.target_name;
                    match self.context.target_of((dir_fd, name), false) {
                        Ok(there) if there.kind == Kind::Dir => {
                            self.open_existing(worker, dir_fd, name, &there)
                        }
                        _ => {
                            self.clear_name(parent, dir_fd, name)?;
                            self.make_dir(worker, node, parent, dir_fd)
                        }
                    }
                }
                other => other,
            };
            let (fd, info) = made?;
            if let Some(above) = parent.target_handle() {
                let handle = above.join(&node.target_name, fd, info.meta.identity(), info.follow);
                *node.target.lock() = Some((info, handle));
            }
        }
        Ok(())
    }

    /// Returns how the attributes of an existing directory differ from the wanted ones. `above` is a directory where
    /// the granularity of its file system may be probed.
    pub(super) fn dir_change(
        &self,
        worker: &mut Worker<'_>,
        node: &Node,
        info: &TargetDir,
        above: Option<BorrowedFd<'_>>,
    ) -> Change {
        if info.created {
            return self.made_change(worker, node);
        }
        let want = self.want_dir(worker, node, Some(&info.meta));
        let change = Change {
            time: want.times.is_some() && !self.same_dir_time(node, info, above),
            ..want.change_of(&info.meta)
        };
        if change.any() {
            worker.totals.metadata += 1;
        } else {
            worker.totals.skipped += 1;
        }
        change
    }

    /// Returns what the line of a new directory shows: how it differs from that of a tree beside the target, if there
    /// is one.
    fn made_change(&self, worker: &Worker<'_>, node: &Node) -> Change {
        let Some(there) = self.dir_beside(node).filter(|there| there.kind == Kind::Dir) else {
            return Change { created: true, ..Change::default() };
        };
        let want = self.want_dir(worker, node, Some(&there));
        let policy = self.context.policy;
        let ends = ((&node.source, None), (&there, None));
        let (grain, _) = self.grains.of(policy, ends.0, ends.1, None);
        let same = same_time(node.source.mtime, there.mtime, policy.modify_window_s, grain);
        Change { time: want.times.is_some() && !same, beside: true, ..want.change_of(&there) }
    }

    /// Returns the same directory of the first tree beside the target that has the name.
    fn dir_beside(&self, node: &Node) -> Option<Meta> {
        if self.context.policy.basis_dirs.is_empty() {
            return None;
        }
        let above = node.parent.as_deref();
        let fds = above.unwrap_or(node).fds().ok()?;
        fds.bases.iter().find_map(|basis| match above {
            Some(_) => self.context.target_of(((**basis).as_fd(), &node.target_name), false).ok(),
            None => self.context.target_of_fd(basis).ok(),
        })
    }

    pub(super) fn report_dir(&self, node: &Node, change: Change) {
        let is_ours = node.owns_attributes && self.context.pass != Pass::Delete;
        if !is_ours || !(change.any() || self.reports.items_unchanged) {
            return;
        }
        let mut path = node.path();
        if path.is_empty() {
            path.push(b'.');
        }
        let paths = (Some(node.source_path(0, c"")), Some(node.target_path(c"")));
        let report = Report { change, begun: self.reports.begin(), ..Report::default() };
        self.reports.item(&path, &node.source, paths, report);
    }

    /// Returns the wanted attributes of a directory; see [`Engine::want`].
    pub(super) fn want_dir(
        &self,
        worker: &Worker<'_>,
        node: &Node,
        existing: Option<&Meta>,
    ) -> Want {
        let parent_dir = node.parent.as_ref().and_then(|parent| parent.target_dir());
        worker.attributes.want(&node.source, existing, parent_dir.as_ref())
    }

    /// Returns whether a target directory has the wanted time. `above` is its parent; for the top, the top itself.
    pub(super) fn same_dir_time(
        &self,
        node: &Node,
        info: &TargetDir,
        above: Option<BorrowedFd<'_>>,
    ) -> bool {
        let (source, target) = (&node.source, &info.meta);
        let ends = ((source, None), (target, above));
        let (grain, named) =
            self.grains.of(self.context.policy, ends.0, ends.1, self.publisher.probes());
        if named {
            node.parent.as_deref().unwrap_or(node).touch();
        }
        same_time(source.mtime, target.mtime, self.context.policy.modify_window_s, grain)
    }
}
