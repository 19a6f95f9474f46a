//! The target side of a directory being opened: found or created, compared and reported.

use super::attributes::Want;
use super::engine::{LocalEngine, Pass, Worker};
use super::entry::{CLASH, IS_SOURCE, LOOKS_MAX};
use super::guard::{Overlap, path_below};
use super::report::Report;
use super::source::{FarDir, OpenSource, SourceDir, SourceHandle};
use crate::failure::{Failure, c_string};
use crate::policy::filter::SidedRules;
use crate::policy::same_time;
use crate::publish::{TempNames, unlink_any};
use hakobu_core::error::{ENTRY_STAYS, Operation};
use hakobu_core::event::{Change, Skip};
use hakobu_core::meter::Phase;
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, errno, meta, paths};
use hakobu_tree::handle::DirectoryHandle;
use hakobu_tree::names::push_name;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Number of names after which an existing directory is left unread: the walk reads it once more.
const GLANCED_MAX: usize = 256;

/// Result of opening the target side of a directory.
pub(super) enum OpenResult {
    Dir(OwnedFd, TargetDir),
    /// Not created (dry run) or not yet (`--prune-empty-dirs`).
    Later,
    /// An option excludes the directory and everything below it.
    LeftOut,
}

impl LocalEngine<'_> {
    /// Opens or creates the directory at the target.
    pub(super) fn open_target(
        &self,
        worker: &mut Worker<'_>,
        node: &Node,
        parent: &Arc<Node>,
        dir_fd: BorrowedFd<'_>,
    ) -> Result<OpenResult, Failure> {
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
                other => return other.map(|(fd, info)| OpenResult::Dir(fd, info)),
            }
        }
        for _ in 1..LOOKS_MAX {
            match self.look_and_open(worker, node, parent, dir_fd, makes) {
                // Another program created the name after it was examined, or removed the directory after it was opened. So
                // does this run with `-K`, where a symlink leads to an extraneous directory.
                Err(Failure { error, .. })
                    if (errno::is(&error, errno::EEXIST) || errno::is_gone(&error))
                        && !self.is_over() => {}
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
        let opened = match paths::open_beneath((*top).as_fd(), &path, paths::OpenPurpose::Directory)
        {
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
            // What another machine has it only tells later. rsync follows such a symlink in any case.
            let Some(SourceHandle::Here(handle)) = top.sides.get(side).map(|side| &side.handle)
            else {
                continue;
            };
            let fd = handle.fd().map_err(look())?;
            if meta::of((*fd).as_fd(), &whole, false).is_ok() {
                return Ok(true);
            }
        }
        let provided = |base: &Base| base.provided.iter().any(|name| **name == **first);
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
    ) -> Result<OpenResult, Failure> {
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
                    Err(_) if self.context.pass == Pass::Delete => return Ok(OpenResult::LeftOut),
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
            _ if self.context.pass == Pass::Delete => return Ok(OpenResult::LeftOut),
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
            Some(_) if !node.owns_attributes && !node.is_outside => {
                return Err(Failure::code(Operation::MakeDir, errno::ENOTDIR));
            }
            None if self.context.policy.existing => {
                if !node.is_outside {
                    worker.count_left_out();
                    self.reports.skipped(&|| node.path(), Kind::Dir, Skip::NotExisting);
                }
                return Ok(OpenResult::LeftOut);
            }
            Some(there) if makes => {
                if self.context.guard.is_source(there.identity()) {
                    return Err(Failure::reason(Operation::MakeDir, IS_SOURCE));
                }
                self.clear_name(parent, dir_fd, name, &there)?;
            }
            _ => {}
        }
        if !makes {
            self.report_missing_dir(worker, node);
            return Ok(OpenResult::Later);
        }
        self.make_dir(worker, node, parent, dir_fd).map(|(fd, info)| OpenResult::Dir(fd, info))
    }

    /// Removes a non-directory at the place of a directory, unless this run still has to read it or has made it.
    fn clear_name(
        &self,
        parent: &Node,
        dir_fd: BorrowedFd<'_>,
        name: &CStr,
        there: &Meta,
    ) -> Result<(), Failure> {
        if let Some(reason) = self.context.guard.refusal(parent.overlap, true) {
            return Err(Failure::reason(Operation::MakeDir, reason));
        }
        if let Some(info) = parent.target_dir().filter(|info| info.caseless) {
            let fds = parent.fds().map_err(Failure::of(Operation::List))?;
            if self.is_taken((parent, &fds), (dir_fd, &info), name, there)? {
                return Err(Failure::reason(Operation::Overwrite, CLASH));
            }
        }
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
    ) -> OpenResult {
        let reports = self.context.pass == Pass::Transfer && !node.is_outside;
        if reports && !self.context.policy.prune_empty_dirs {
            let change = self.dir_change(worker, node, &info, Some(above));
            self.report_dir(node, change);
        }
        OpenResult::Dir(fd, info)
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
        let is_silent = self.context.pass == Pass::Delete || node.is_outside;
        if self.context.is_real() || is_silent || not_yet {
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
                        Ok(there) => {
                            self.clear_name(parent, dir_fd, name, &there)?;
                            self.make_dir(worker, node, parent, dir_fd)
                        }
                        Err(_) => self.make_dir(worker, node, parent, dir_fd),
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

    /// Returns the wanted attributes of a directory; see [`LocalEngine::want`].
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

// One directory of a transfer: both sides of it, and its unfinished work.
//
// A node lives as long as something below it is unfinished. Its directories are handles of the tree crate: beyond
// the budget of descriptors they are closed, and reopened when needed.

/// Open descriptors of a node's directories, held while a unit uses them.
pub struct DirFds {
    /// The source directories; the first that has a name provides it (several if sources are merged: `sync a/ b/
    /// DST`).
    pub sources: Vec<OpenSource>,
    target: Option<Arc<OwnedFd>>,
    /// The same directory in each `--link-dest` (`--copy-dest`, `--compare-dest`) tree that has it.
    pub bases: Vec<Arc<OwnedFd>>,
}

impl DirFds {
    /// Returns source directory `side`.
    pub fn source(&self, side: usize) -> io::Result<SourceDir<'_>> {
        let dir = self.sources.get(side).map(OpenSource::dir);
        dir.ok_or_else(|| io::Error::from_raw_os_error(errno::EBADF))
    }

    /// Returns the target directory, if there is one.
    pub fn target(&self) -> Option<BorrowedFd<'_>> {
        self.target.as_ref().map(|fd| (**fd).as_fd())
    }
}

/// One source directory of a node.
pub struct DirSide {
    /// Index of the parent's source that contains it.
    pub parent_side: usize,
    pub name: Box<CStr>,
    /// The directory itself.
    pub handle: SourceHandle,
    /// The names in it that are transferred; `None` means all.
    pub selection: Option<Arc<Selection>>,
    /// The device that `-x` stays on.
    pub volume: u64,
}

/// The names of a source directory that arguments select, where another argument fills the same target directory.
#[derive(Clone, Default)]
pub struct Selection {
    names: HashMap<CString, Selected>,
}

#[derive(Clone)]
pub struct Selected {
    /// It may be a symlink that is followed.
    pub follow: bool,
    /// The names in it that are transferred; `None` means all.
    pub below: Option<Arc<Selection>>,
}

impl Selection {
    /// Adds the path of an argument.
    pub fn add(&mut self, path: &[CString], follow: bool) {
        let Some((name, below)) = path.split_first() else { return };
        if below.is_empty() {
            self.names.insert(name.clone(), Selected { follow, below: None });
            return;
        }
        // Symlinks above an argument are followed.
        let implied = || Selected { follow: true, below: Some(Arc::default()) };
        let selected = self.names.entry(name.clone()).or_insert_with(implied);
        if let Some(selection) = &mut selected.below {
            Arc::make_mut(selection).add(below, follow);
        }
    }
}

/// A target directory that was opened.
#[derive(Clone, Copy)]
pub struct TargetDir {
    /// Created by us or found empty: nothing in it needs to be examined.
    pub fresh: bool,
    /// Read to its end when it was opened: there are no leftovers of killed runs.
    pub swept: bool,
    /// Created in this run.
    pub created: bool,
    /// Device, inode, and current mode and owner.
    pub meta: Meta,
    /// The permission bits that the default ACL leaves to new entries, which inherit an ACL; `None` without one.
    pub default_bits: Option<u32>,
    /// Reached through a symlink (`-K`).
    pub follow: bool,
    /// Names that differ in case are one name in it.
    pub caseless: bool,
}

impl TargetDir {
    /// Returns the group that the kernel gives a new entry of this directory.
    pub fn default_gid(&self, egid: u32) -> u32 {
        if self.meta.mode & 0o2000 != 0 { self.meta.gid } else { egid }
    }
}

/// Source and target of a node without a parent.
pub struct Base {
    /// Source folders starting as the user typed them, one for each side, without a slash at the end.
    pub sources: Vec<PathBuf>,
    /// The target folder, starting as the user typed it.
    pub target: PathBuf,
    /// Its path in the transfer (what rsync prints before the name), without slashes at the ends.
    pub path: Vec<u8>,
    /// Names at the target that other arguments provide: not extraneous.
    pub provided: Vec<Box<CStr>>,
    /// The node that sets the attributes of the same target directory; this one holds it.
    pub owner: Option<Arc<Node>>,
}

/// Returns a number, not 0, that no other node of this process has.
pub fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// One directory of a transfer.
pub struct Node {
    /// See [`next_id`].
    pub id: u64,
    /// The directory that contains it; `None` for the base of a source argument.
    pub parent: Option<Arc<Node>>,
    pub target_name: Box<CStr>,
    /// Its source directories.
    pub sides: Vec<DirSide>,
    /// Metadata of the first source directory when it was opened.
    pub source: Meta,
    /// Paths of a node without a parent.
    pub base: Option<Box<Base>>,
    /// Filter rules in force inside.
    pub rules: Option<SidedRules>,
    /// Whether attributes are set on the target directory at the end.
    pub owns_attributes: bool,
    /// It only leads to names in the range of the run: another one reports it and sets its attributes.
    pub is_outside: bool,
    /// The target directory, once it exists.
    pub target: Mutex<Option<(TargetDir, Arc<DirectoryHandle>)>>,
    /// The same directory in each `--link-dest` (`--copy-dest`, `--compare-dest`) tree that has it.
    pub bases: Vec<Arc<DirectoryHandle>>,
    /// Held by the worker that creates names in the target directory.
    pub creating: Mutex<()>,
    /// Unfinished units below; the last one finishes the node.
    pub pending: AtomicUsize,
    /// The content of the directory is transferred, not only single names in it.
    pub listed: AtomicBool,
    /// Something is transferred into it: `--prune-empty-dirs` skips the others.
    pub needed: AtomicBool,
    /// The target directory is to be pruned when no work below it remains.
    pub prunes_last: AtomicBool,
    /// Listing the source failed: nothing may be deleted here.
    pub list_failed: AtomicBool,
    /// A source directory that belongs here could not be opened: nothing may be deleted here or anywhere below.
    pub incomplete: bool,
    /// We changed something in the target directory: its times must be restored.
    pub touched: AtomicBool,
    /// Number of source entries below that `mv` had to keep.
    pub kept_sources: AtomicU64,
    /// Whether the target directory is part of a source.
    pub overlap: Overlap,
    /// The names that a target directory that ignores case had when it was opened.
    pub names: HashSet<Box<CStr>>,
}

impl Node {
    /// Makes a node without a name, a parent and a target directory, with one unit below it.
    pub fn new(
        sides: Vec<DirSide>,
        source: Meta,
        rules: Option<SidedRules>,
        incomplete: bool,
    ) -> Node {
        Node {
            id: next_id(),
            parent: None,
            target_name: c"".into(),
            sides,
            source,
            base: None,
            rules,
            owns_attributes: false,
            is_outside: false,
            target: Mutex::default(),
            bases: Vec::new(),
            creating: Mutex::default(),
            pending: AtomicUsize::new(1),
            listed: AtomicBool::new(false),
            list_failed: AtomicBool::new(incomplete),
            incomplete,
            needed: AtomicBool::new(false),
            prunes_last: AtomicBool::new(false),
            touched: AtomicBool::new(false),
            kept_sources: AtomicU64::new(0),
            overlap: Overlap::No,
            names: HashSet::new(),
        }
    }

    /// Returns open descriptors; reopens closed ones.
    ///
    /// # Errors
    /// Those of opening; ESTALE if a directory is no longer the same.
    pub fn fds(&self) -> io::Result<DirFds> {
        let sources =
            self.sides.iter().map(|side| side.handle.open()).collect::<io::Result<_>>()?;
        let target = self.target_handle().map(|handle| handle.fd()).transpose()?;
        // A basis that cannot be reopened provides nothing.
        let bases = self.bases.iter().filter_map(|handle| handle.fd().ok()).collect();
        Ok(DirFds { sources, target, bases })
    }

    /// Returns an open descriptor of the target directory, if there is one; reopens a closed one.
    ///
    /// # Errors
    /// Those of opening; ESTALE if it is no longer the same.
    pub fn target_fd(&self) -> io::Result<Option<Arc<OwnedFd>>> {
        self.target_handle().map(|handle| handle.fd()).transpose()
    }

    /// Closes the descriptors; units that use them keep them open until they end. A closed parent that is finished
    /// next is reopened from here: one step up instead of many down from the top.
    pub fn close(&self) {
        let Some(parent) = &self.parent else { return };
        let is_last = parent.pending.load(Ordering::Relaxed) == 1;
        for side in &self.sides {
            let Ok(handle) = side.handle.here() else { continue };
            let above = parent.sides.get(side.parent_side).filter(|_| is_last);
            handle.close_below(above.and_then(|above| above.handle.here().ok()));
        }
        if let Some(handle) = self.target_handle() {
            handle.close_below(parent.target_handle().filter(|_| is_last).as_ref());
        }
        self.bases.iter().for_each(|handle| handle.close_below(None));
    }

    /// Calls `each` with this node and those that it is in, but for the one without a parent, which is returned.
    fn climb<'n>(&'n self, mut each: impl FnMut(&'n Node)) -> &'n Node {
        let mut node = self;
        while let Some(parent) = &node.parent {
            each(node);
            node = parent;
        }
        node
    }

    /// Appends the path in the transfer, without a slash at the end; nothing for the top.
    pub fn push_path(&self, path: &mut Vec<u8>) {
        let mut chain = Vec::new();
        let top = self.climb(|node| chain.push(node.target_name.to_bytes()));
        if let Some(base) = &top.base {
            path.extend_from_slice(&base.path);
        }
        chain.iter().rev().for_each(|name| push_name(path, name));
    }

    /// Returns the path in the transfer, as [`Node::push_path`] does.
    pub fn path(&self) -> Vec<u8> {
        let mut path = Vec::new();
        self.push_path(&mut path);
        path
    }

    /// Returns the source path of `name` in side `side`, starting as the user typed it.
    pub fn source_path(&self, side: usize, name: &CStr) -> PathBuf {
        let mut chain = vec![name.to_bytes()];
        let (mut node, mut side) = (self, side);
        while let Some(parent) = &node.parent {
            let Some(step) = node.sides.get(side).or(node.sides.first()) else { break };
            chain.push(step.name.to_bytes());
            side = step.parent_side;
            node = parent;
        }
        let base = node.base.as_ref().and_then(|base| base.sources.get(side).cloned());
        join(base.unwrap_or_default(), &chain)
    }

    /// Returns the target path of `name`, starting as the user typed it.
    pub fn target_path(&self, name: &CStr) -> PathBuf {
        let mut chain = vec![name.to_bytes()];
        let top = self.climb(|node| chain.push(node.target_name.to_bytes()));
        join(top.base.as_ref().map(|base| base.target.clone()).unwrap_or_default(), &chain)
    }

    /// Returns the path from the target folder of the node without a parent.
    pub fn path_below_top(&self) -> Vec<u8> {
        let (mut chain, mut path) = (Vec::new(), Vec::new());
        self.climb(|node| chain.push(node.target_name.to_bytes()));
        chain.iter().rev().for_each(|name| push_name(&mut path, name));
        path
    }

    /// Returns the node without a parent that this one descends from.
    pub fn top(&self) -> &Node {
        self.climb(|_| {})
    }

    /// Returns the device of the target directory, if there is one.
    pub fn target_dev(&self) -> Option<u64> {
        self.target_dir().map(|info| info.meta.dev)
    }

    /// Returns the target directory, if it is known.
    pub fn target_dir(&self) -> Option<TargetDir> {
        self.target.lock().as_ref().map(|(info, _)| *info)
    }

    pub fn target_handle(&self) -> Option<Arc<DirectoryHandle>> {
        self.target.lock().as_ref().map(|(_, handle)| Arc::clone(handle))
    }

    /// Records that the run itself puts a name into the target: it is not extraneous, although the other end has none.
    pub fn provides(&self, name: &CStr) {
        if let Some(far) = self.far() {
            far.saw(name);
        }
    }

    /// Returns its source, if that is a directory of the other end.
    pub fn far(&self) -> Option<&FarDir> {
        match &self.sides.first()?.handle {
            SourceHandle::Far(dir) => Some(dir),
            SourceHandle::Here(_) => None,
        }
    }

    fn selection(&self, side: usize) -> Option<&Selection> {
        self.sides.get(side)?.selection.as_deref()
    }

    /// Returns whether `name` is transferred from side `side`.
    pub fn selects(&self, side: usize, name: &CStr) -> bool {
        self.selection(side).is_none_or(|selection| selection.names.contains_key(name))
    }

    /// Returns whether `name` in side `side` may be a symlink that an argument follows.
    pub fn selects_followed(&self, side: usize, name: &CStr) -> bool {
        let selected = self.selection(side).and_then(|selection| selection.names.get(name));
        selected.is_some_and(|selected| selected.follow)
    }

    /// Returns the part of the directory `name` in side `side` that is transferred; `None` means everything.
    pub fn selection_below(&self, side: usize, name: &CStr) -> Option<Arc<Selection>> {
        match self.selection(side)?.names.get(name) {
            Some(selected) => selected.below.clone(),
            None => Some(Arc::default()),
        }
    }

    /// Returns the device that `-x` stays on in the directory `name` of side `side`: an argument's own.
    pub fn volume_below(&self, side: usize, own: u64) -> u64 {
        let above = self.sides.get(side).filter(|side| side.selection.is_none());
        above.filter(|_| self.listed.load(Ordering::Relaxed)).map_or(own, |side| side.volume)
    }

    /// Returns the path in the transfer of a name in it.
    pub fn path_of(&self, name: &CStr) -> Vec<u8> {
        let mut path = self.path();
        push_name(&mut path, name.to_bytes());
        path
    }

    /// Adds one unfinished unit below this directory.
    pub fn hold(&self) {
        self.pending.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that an entry of the source is kept.
    pub fn keep_source(&self) {
        self.kept_sources.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that an entry of the target directory was changed.
    pub fn touch(&self) {
        if !self.touched.load(Ordering::Relaxed) {
            self.touched.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether a directory is the target of this node or of one above: copied below here, it would never end.
    pub(super) fn is_made_in(&self, identity: (u64, u64)) -> bool {
        std::iter::successors(Some(self), |node| node.parent.as_deref())
            .any(|node| node.target_dir().is_some_and(|info| info.meta.identity() == identity))
    }

    /// Returns whether this node or one above it has the source identity `identity`: following a symlink to it would
    /// loop.
    pub fn is_inside(&self, identity: (u64, u64)) -> bool {
        let is_here =
            |node: &Node| node.sides.iter().any(|side| side.handle.identity() == identity);
        std::iter::successors(Some(self), |node| node.parent.as_deref()).any(is_here)
    }
}

fn join(base: PathBuf, chain: &[&[u8]]) -> PathBuf {
    let mut bytes = base.into_os_string().into_vec();
    let names = chain.iter().rev().filter(|name| !name.is_empty());
    names.for_each(|name| push_name(&mut bytes, name));
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}
