//! Entering a directory: it is opened on both sides, made at the target where it is missing, and
//! becomes a node.

use super::attributes::Want;
use super::node::{Failure, Fds, Node, Side, TargetDir, open_link_dest};
use super::pool::lock;
use super::sweep::{Pass, read_merge_file};
use super::walk::Enter;
use super::{Engine, State, TargetMode};
use crate::error::{Class, Operation};
use crate::event::Change;
use crate::meter::Phase;
use crate::unit::{Kind, Meta};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, errno, meta};
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The target's side of a directory that is entered.
pub(super) enum Opened {
    Dir(OwnedFd, TargetDir),
    /// Not made (dry run) or not yet (`--prune-empty-dirs`).
    Later,
    /// An option leaves the directory out with everything below it.
    LeftOut,
}

/// The source's side of a directory that is entered.
pub(super) struct Sides {
    sides: Vec<Side>,
    sources: Vec<OwnedFd>,
    source: Meta,
    /// See [`Node::incomplete`].
    incomplete: bool,
}

pub(super) fn filter_failure(error: crate::policy::filter::FilterError) -> Failure {
    let error = std::io::Error::other(error.to_string());
    Failure { operation: Operation::Filter, error }
}

/// Whether opening a directory failed because there is none of that name.
fn is_no_directory(error: &std::io::Error) -> bool {
    [errno::ENOENT, errno::ENOTDIR, errno::ELOOP].iter().any(|code| errno::is(error, *code))
}

impl Engine<'_> {
    /// Opens a directory on both sides. On failure, or where it is left out, the hold that its
    /// unit had on the parent ends here; otherwise it passes to the node.
    pub(super) fn enter(&self, state: &mut State, enter: Enter) -> Option<Arc<Node>> {
        let parent = Arc::clone(&enter.parent);
        let target_name = enter.target_name.as_deref().unwrap_or(&enter.name);
        match self.try_enter(state, &enter) {
            Ok(Some(node)) => return Some(node),
            Ok(None) => {}
            Err(failure) => {
                let source = parent.source_path(enter.side, &enter.name);
                let target = parent.target_path(target_name);
                parent.kept_sources.fetch_add(1, Ordering::Relaxed);
                self.fail(state, failure, Some(source), Some(target));
            }
        }
        self.release(state, &parent);
        None
    }

    pub(super) fn try_enter(
        &self,
        state: &mut State,
        enter: &Enter,
    ) -> Result<Option<Arc<Node>>, Failure> {
        let Enter { parent, side, name, follow, .. } = enter;
        let target_name = enter.target_name.as_deref().unwrap_or(name);
        let parent_fds = parent.fds().map_err(Failure::of(Operation::List))?;
        let Sides { sides, sources, source, incomplete } =
            self.open_sides(state, parent, &parent_fds, enter)?;
        let left_out = |reason| {
            let source = Some(parent.source_path(*side, name));
            let target = Some(parent.target_path(target_name));
            self.notice(Operation::MakeDir, source, target, reason, Class::Partial);
            parent.kept_sources.fetch_add(1, Ordering::Relaxed);
            Ok(None)
        };
        if *follow && parent.is_inside(source.identity()) {
            state.totals.failed += 1;
            return left_out("it leads back to a directory above");
        }
        if lock(&self.target_roots).contains(&source.identity()) && !self.is_pass_through(parent) {
            state.totals.failed += 1;
            return left_out("the target lies inside the source; it is not copied into itself");
        }
        let mut path = std::mem::take(&mut state.path);
        path.clear();
        parent.push_path(&mut path);
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(target_name.to_bytes());
        let rules = match (&self.policy.filter, &parent.rules) {
            (Some(filter), Some(rules)) => {
                let first = sources.first().map(AsFd::as_fd);
                let rules = filter.enter(rules, &path, &mut |name| match first {
                    Some(fd) => read_merge_file(fd, name),
                    None => Ok(None),
                });
                Some(rules.map_err(filter_failure)?)
            }
            _ => None,
        };
        state.path = path;
        state.totals.seen_dirs += 1;
        let mut node = Node {
            parent: Some(Arc::clone(parent)),
            target_name: target_name.into(),
            sides,
            source,
            base: None,
            rules,
            owns_attributes: true,
            target: Mutex::new(None),
            fds: Mutex::new(None),
            creating: Mutex::default(),
            pending: AtomicUsize::new(1),
            listed: AtomicBool::new(false),
            list_failed: AtomicBool::new(incomplete),
            incomplete,
            needed: AtomicBool::new(false),
            touched: AtomicBool::new(false),
            kept_sources: AtomicU64::new(0),
        };
        let target = match parent_fds.target() {
            Some(dir_fd) => match self.open_target(state, &node, parent, dir_fd)? {
                Opened::Dir(fd, info) => {
                    node.target = Mutex::new(Some(info));
                    Some(fd)
                }
                Opened::Later => None,
                Opened::LeftOut => return Ok(None),
            },
            None if self.pass == Pass::Delete => return Ok(None),
            None => {
                self.tell_missing_dir(state, &node);
                None
            }
        };
        let fds = Fds::new(sources, target, open_link_dest(&parent_fds, target_name), &self.budget);
        node.fds = Mutex::new(Some(Arc::new(fds)));
        Ok(Some(Arc::new(node)))
    }

    /// A base that only lends names (`sync a DST`) is not a source that is copied whole.
    pub(super) fn is_pass_through(&self, parent: &Node) -> bool {
        parent.parent.is_none() && !parent.owns_attributes && self.policy.remove_source_files
    }

    /// Opens the directory in the source it was found in, and in later ones that have it, too.
    fn open_sides(
        &self,
        state: &mut State,
        parent: &Node,
        parent_fds: &Fds,
        enter: &Enter,
    ) -> Result<Sides, Failure> {
        let Enter { side: first, name, follow, .. } = enter;
        let open = |side: usize, follow: bool| -> std::io::Result<(OwnedFd, Side, Meta)> {
            let fd = dir::open(parent_fds.source(side)?, name, follow)?;
            let meta = meta::of_fd(&fd)?;
            let side = Side {
                parent_side: side,
                name: name.clone(),
                identity: meta.identity(),
                follow,
                lent: parent.lent_below(side, name),
                volume: parent.volume_below(side, meta.dev),
            };
            Ok((fd, side, meta))
        };
        self.step(&state.station, Phase::Look, 1);
        let (fd, side, source) = open(*first, *follow).map_err(Failure::of(Operation::Read))?;
        let mut all =
            Sides { sides: vec![side], sources: vec![fd], source, incomplete: parent.incomplete };
        let follows = *follow
            || self.policy.copy_dirlinks
            || self.policy.symlinks == crate::policy::Symlinks::Follow;
        for later in first + 1..parent.sides.len() {
            if !parent.lends(later, name) {
                continue;
            }
            self.step(&state.station, Phase::Look, 1);
            match open(later, follows || parent.lends_followed(later, name)) {
                Ok((fd, side, meta)) => {
                    let crosses = self.policy.one_file_system && side.volume != meta.dev;
                    if crosses || (side.follow && parent.is_inside(side.identity)) {
                        all.incomplete = true;
                        continue;
                    }
                    all.sides.push(side);
                    all.sources.push(fd);
                }
                Err(error) if is_no_directory(&error) => {}
                // Not knowing what it has is not knowing that it has nothing.
                Err(error) => {
                    all.incomplete = true;
                    parent.kept_sources.fetch_add(1, Ordering::Relaxed);
                    let failure = Failure { operation: Operation::List, error };
                    self.fail(state, failure, Some(parent.source_path(later, name)), None);
                }
            }
        }
        Ok(all)
    }

    /// Opens or makes the directory at the target.
    pub(super) fn open_target(
        &self,
        state: &mut State,
        node: &Node,
        parent: &Arc<Node>,
        dir_fd: BorrowedFd<'_>,
    ) -> Result<Opened, Failure> {
        let name = &node.target_name;
        let parent_info = parent.target_dir();
        let stat = || Failure::of(Operation::Stat);
        let fresh_parent = parent_info.is_some_and(|info| info.fresh);
        let makes = self.mode == TargetMode::Real
            && self.pass == Pass::Transfer
            && !self.policy.prune_empty_dirs;
        if fresh_parent && makes && !self.policy.existing {
            match self.make_dir(state, node, parent, dir_fd) {
                Err(failure) if errno::is(&failure.error, errno::EEXIST) => {}
                other => return other.map(|(fd, info)| Opened::Dir(fd, info)),
            }
        }
        let mut follow = false;
        self.step(&state.station, Phase::Look, 1);
        let existing = match meta::of(dir_fd, name, false) {
            Ok(there) if there.kind == Kind::Symlink && self.policy.keep_dirlinks => {
                match meta::of(dir_fd, name, true) {
                    Ok(named) if named.kind == Kind::Dir => {
                        follow = true;
                        Some(named)
                    }
                    _ => Some(there),
                }
            }
            Ok(there) => Some(there),
            Err(error) if errno::is(&error, errno::ENOENT) => None,
            Err(error) => return Err(stat()(error)),
        };
        match existing {
            Some(there) if there.kind == Kind::Dir => {
                let (fd, info) = self.open_existing(state, dir_fd, name, &there, follow)?;
                if self.pass == Pass::Transfer && !self.policy.prune_empty_dirs {
                    let change = self.dir_change(state, node, &info);
                    self.tell_dir(node, change);
                }
                return Ok(Opened::Dir(fd, info));
            }
            _ if self.pass == Pass::Delete => return Ok(Opened::LeftOut),
            Some(_) if self.policy.ignore_existing => {
                let error = std::io::Error::other("--ignore-existing keeps what is in its way");
                return Err(Failure { operation: Operation::MakeDir, error });
            }
            Some(_) if self.policy.cp_targets => {
                let error = std::io::Error::other("cannot overwrite non-directory with directory");
                return Err(Failure { operation: Operation::MakeDir, error });
            }
            None if self.policy.existing => {
                state.totals.skipped += 1;
                return Ok(Opened::LeftOut);
            }
            Some(_) if makes => self.clear_name(parent, dir_fd, name)?,
            _ => {}
        }
        if !makes {
            self.tell_missing_dir(state, node);
            return Ok(Opened::Later);
        }
        self.make_dir(state, node, parent, dir_fd).map(|(fd, info)| Opened::Dir(fd, info))
    }

    /// Takes away what is not a directory where a directory shall be.
    pub(super) fn clear_name(
        &self,
        parent: &Node,
        dir_fd: BorrowedFd<'_>,
        name: &CStr,
    ) -> Result<(), Failure> {
        if self.policy.backup {
            self.back_up(dir_fd, name)?;
        }
        match dir::unlink(dir_fd, name) {
            Err(error) if !errno::is(&error, errno::ENOENT) => {
                Err(Failure { operation: Operation::Remove, error })
            }
            _ => {
                parent.touch();
                Ok(())
            }
        }
    }

    /// Whether a directory has to be opened for us while we work in it.
    pub(super) fn opens_up(&self, there: &Meta) -> bool {
        there.mode & 0o700 != 0o700 && self.euid != 0 && there.uid == self.euid
    }

    pub(super) fn open_existing(
        &self,
        state: &mut State,
        dir_fd: BorrowedFd<'_>,
        name: &CStr,
        there: &Meta,
        follow: bool,
    ) -> Result<(OwnedFd, TargetDir), Failure> {
        let mut there = *there;
        // As an ordinary user we need our own directories open for writing until we are done.
        if self.opens_up(&there) && self.mode == TargetMode::Real && !follow {
            self.step(&state.station, Phase::Settle, 1);
            meta::set_mode(dir_fd, name, there.mode | 0o700)
                .map_err(Failure::of(Operation::SetMode))?;
        }
        self.step(&state.station, Phase::Look, 1);
        let fd = dir::open(dir_fd, name, follow).map_err(Failure::of(Operation::List))?;
        let opened = meta::of_fd(&fd).map_err(Failure::of(Operation::Stat))?;
        there.dev = opened.dev;
        there.ino = opened.ino;
        let fresh = self.is_empty(state, &fd)?;
        let default_acl = self.has_default_acl(state, &fd)?;
        let identity = opened.identity();
        Ok((fd, TargetDir { identity, fresh, created: false, meta: there, default_acl, follow }))
    }

    pub(super) fn is_empty(&self, state: &mut State, fd: &OwnedFd) -> Result<bool, Failure> {
        let mut any = false;
        self.step(&state.station, Phase::List, 1);
        state
            .reader
            .next_batch(fd.as_fd(), |_, _, _| any = true)
            .map_err(Failure::of(Operation::List))?;
        Ok(!any)
    }

    /// Makes a directory that is not there, open to us alone as far as its owner will differ.
    pub(super) fn make_dir(
        &self,
        state: &mut State,
        node: &Node,
        parent: &Node,
        dir_fd: BorrowedFd<'_>,
    ) -> Result<(OwnedFd, TargetDir), Failure> {
        let name = &node.target_name;
        let parent_info = parent.target_dir();
        let want = self.want(&node.source, None, parent_info.as_ref());
        let gid = parent_info.map_or(self.egid, |info| info.default_gid(self.egid));
        let ours = want.uid.is_none_or(|uid| uid == self.euid) && want.gid.is_none_or(|g| g == gid);
        // An ACL's mask stands in the group's bits: until the ACL is there they would let in the
        // owning group.
        let closed = !ours || self.policy.preserve.acls;
        let mode = if closed { 0o700 } else { want.mode & 0o1777 | 0o700 };
        self.step(&state.station, Phase::Create, 2);
        dir::create(dir_fd, name, mode).map_err(Failure::of(Operation::MakeDir))?;
        parent.touch();
        let fd = dir::open(dir_fd, name, false).map_err(Failure::of(Operation::MakeDir))?;
        let meta = meta::of_fd(&fd).map_err(Failure::of(Operation::Stat))?;
        let default_acl = parent_info.is_some_and(|info| info.default_acl);
        state.totals.dirs_created += 1;
        let change = Change { created: true, ..Change::default() };
        self.tell_dir(node, change);
        let identity = meta.identity();
        Ok((
            fd,
            TargetDir { identity, fresh: true, created: true, meta, default_acl, follow: false },
        ))
    }

    /// A directory that a dry run does not make, or `--prune-empty-dirs` not yet.
    pub(super) fn tell_missing_dir(&self, state: &mut State, node: &Node) {
        let told = self.policy.prune_empty_dirs && !node.needed.load(Ordering::Relaxed);
        if self.mode == TargetMode::Real || self.pass == Pass::Delete || told {
            return;
        }
        state.totals.dirs_created += 1;
        let change = Change { created: true, ..Change::default() };
        self.tell_dir(node, change);
    }

    /// Makes the target directory of a node, and those above it, now that something goes in.
    pub(super) fn materialize(&self, state: &mut State, node: &Arc<Node>) -> Result<(), Failure> {
        let mut needed = Vec::new();
        let mut above = node;
        let _making = lock(&self.making);
        while !above.needed.swap(true, Ordering::Relaxed) {
            needed.push(above);
            match &above.parent {
                Some(parent) => above = parent,
                None => break,
            }
        }
        while let Some(node) = needed.pop() {
            if let Some(info) = node.target_dir() {
                let change = self.dir_change(state, node, &info);
                self.tell_dir(node, change);
                continue;
            }
            if self.mode != TargetMode::Real {
                self.tell_missing_dir(state, node);
                continue;
            }
            let Some(parent) = &node.parent else { continue };
            let fds = parent.fds().map_err(Failure::of(Operation::MakeDir))?;
            let Some(dir_fd) = fds.target() else { return Ok(()) };
            let made = match self.make_dir(state, node, parent, dir_fd) {
                Err(failure) if errno::is(&failure.error, errno::EEXIST) => {
                    self.clear_name(parent, dir_fd, &node.target_name)?;
                    self.make_dir(state, node, parent, dir_fd)
                }
                other => other,
            };
            *lock(&node.target) = Some(made?.1);
            node.close();
        }
        Ok(())
    }

    /// How the attributes of an existing directory differ from what they should be.
    pub(super) fn dir_change(&self, state: &mut State, node: &Node, info: &TargetDir) -> Change {
        if info.created {
            return Change { created: true, ..Change::default() };
        }
        let want = self.want_dir(node, Some(&info.meta));
        let same =
            |mtime| crate::policy::same_time(mtime, info.meta.mtime, self.policy.modify_window_s);
        let change = Change {
            time: want.times.is_some_and(|(_, mtime)| !same(mtime)),
            mode: want.mode != info.meta.mode,
            owner: want.uid.is_some_and(|uid| uid != info.meta.uid),
            group: want.gid.is_some_and(|gid| gid != info.meta.gid),
            ..Change::default()
        };
        if change.any() {
            state.totals.metadata += 1;
        } else {
            state.totals.skipped += 1;
        }
        change
    }

    pub(super) fn tell_dir(&self, node: &Node, change: Change) {
        if self.pass == Pass::Delete || !(change.any() || self.items_unchanged) {
            return;
        }
        let mut path = Vec::new();
        node.push_path(&mut path);
        if path.is_empty() {
            path.push(b'.');
        }
        let source = Some(node.source_path(0, c""));
        self.tell_other(&path, &node.source, source, Some(node.target_path(c"")), change);
    }

    /// The attributes that a directory should have; see [`Engine::want`].
    pub(super) fn want_dir(&self, node: &Node, existing: Option<&Meta>) -> Want {
        let parent_dir = node.parent.as_ref().and_then(|parent| parent.target_dir());
        self.want(&node.source, existing, parent_dir.as_ref())
    }
}
