//! One entry: look at both sides, decide, act, tell.

use super::attributes::{Have, Want};
use super::data::Stop;
use super::links::{Leader, Member, Role};
use super::node::{Failure, Fds, Node, TargetDir, c_string};
use super::pool::Queue;
use super::special::{Special, is_unsafe_link};
use super::walk::{Enter, Unit};
use super::{Engine, State, TargetMode};
use crate::error::{Class, Operation};
use crate::event::{Event, Item};
use crate::policy::{Action, Change, Content, Reason, Symlinks, decide};
use crate::unit::{Kind, Meta};
use hakobu_sys::{BorrowedFd, OwnedFd, dir, errno, file, meta};
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// One name of a directory, on both sides.
pub struct Entry<'a> {
    /// Its directory.
    pub node: &'a Arc<Node>,
    /// The directory's descriptors.
    pub fds: &'a Fds,
    /// Which of the node's sources.
    pub side: usize,
    /// Its name in the source.
    pub name: &'a CStr,
    /// Its name at the target.
    pub target_name: &'a CStr,
    /// A symlink in the source is looked through.
    pub follow: bool,
    /// The target directory, where there is one.
    pub target: Option<(BorrowedFd<'a>, TargetDir)>,
}

impl Entry<'_> {
    /// The source directory.
    pub fn source_dir(&self) -> Result<BorrowedFd<'_>, Failure> {
        self.fds.source(self.side).map_err(Failure::of(Operation::Read))
    }

    /// The source as the user would spell it.
    pub fn source_path(&self) -> PathBuf {
        self.node.source_path(self.side, self.name)
    }

    /// The target as the user would spell it.
    pub fn target_path(&self) -> PathBuf {
        self.node.target_path(self.target_name)
    }

    fn member(&self) -> Member {
        let renamed = self.name != self.target_name;
        Member {
            node: Arc::clone(self.node),
            side: self.side,
            name: self.name.to_owned(),
            target_name: renamed.then(|| self.target_name.into()),
        }
    }
}

/// What became of an entry.
#[derive(Default)]
pub struct Done {
    /// Content bytes moved.
    pub bytes: u64,
    /// The target is complete and the source unchanged: it may be removed.
    pub checked: bool,
    /// An attribute that could not be set.
    pub attributes: Option<Failure>,
    /// Owner or group asked for by name and not ours to set.
    pub unprivileged: bool,
}

impl Done {
    /// Content that went nowhere: `null:`, dry runs.
    pub fn content(bytes: u64) -> Done {
        Done { bytes, ..Done::default() }
    }
}

/// What is told of an entry.
struct Told {
    change: Change,
    bytes_moved: u64,
    link: Option<PathBuf>,
    begun: Option<Begun>,
}

/// When work on an entry began, where somebody wants to know.
#[derive(Clone, Copy)]
pub(super) struct Begun {
    instant: Instant,
    unix_s: f64,
}

impl Engine<'_> {
    pub(super) fn begin(&self) -> Option<Begun> {
        self.items.then(|| Begun {
            instant: Instant::now(),
            unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |t| t.as_secs_f64()),
        })
    }

    /// Handles one name that is not known to be a directory (those are entered as units).
    /// `fresh`: nothing can be at the target under that name.
    pub(super) fn entry(
        &self,
        state: &mut State,
        entry: &mut Entry<'_>,
        kind: Kind,
        fresh: bool,
        queue: Option<&Queue<'_, Unit>>,
    ) {
        match self.try_entry(state, entry, kind, fresh, queue) {
            Ok(()) => {}
            // Somebody made the name in the meantime: look at what is there now.
            Err(Stop::Failed(failure)) if fresh && errno::is(&failure.error, errno::EEXIST) => {
                if let Err(stop) = self.try_entry(state, entry, Kind::Unknown, false, queue) {
                    self.stopped(state, entry, stop);
                }
            }
            Err(stop) => self.stopped(state, entry, stop),
        }
    }

    fn stopped(&self, state: &mut State, entry: &Entry<'_>, stop: Stop) {
        match stop {
            Stop::Asked => {}
            Stop::Failed(failure) => {
                self.fail(state, failure, Some(entry.source_path()), Some(entry.target_path()));
            }
            Stop::Changed => {
                state.totals.failed += 1;
                let reason = "it shrinks while it is being read; copy it again when it is at rest";
                let (source, target) = (Some(entry.source_path()), Some(entry.target_path()));
                self.notice(Operation::Read, source, target, reason, Class::Partial);
            }
        }
    }

    fn try_entry(
        &self,
        state: &mut State,
        entry: &mut Entry<'_>,
        kind: Kind,
        fresh: bool,
        queue: Option<&Queue<'_, Unit>>,
    ) -> Result<(), Stop> {
        let policy = self.policy;
        let begun = self.begin();
        let mut opened = None;
        let source_dir = entry.source_dir()?;
        // A regular file that is certainly copied is opened first and looked at through its
        // descriptor: one call less, and no moment between the look and the copy.
        let opens = kind == Kind::File && fresh && self.mode != TargetMode::Told;
        let mut source = if opens {
            let fd = file::open_read(source_dir, entry.name, false)
                .map_err(Failure::of(Operation::Read))?;
            let source = meta::of_fd(&fd).map_err(Failure::of(Operation::Stat))?;
            opened = (source.kind == Kind::File).then_some(fd);
            source
        } else {
            let follow = entry.follow || policy.symlinks == Symlinks::Follow;
            meta::of(source_dir, entry.name, follow)
                .map_err(|error| self.no_referent(entry, error))?
        };
        if source.kind == Kind::Symlink && policy.copy_dirlinks {
            match meta::of(source_dir, entry.name, true) {
                Ok(named) if named.kind == Kind::Dir => source = named,
                _ => {}
            }
        }
        if !opens && source.kind != Kind::Symlink {
            entry.follow |= policy.symlinks == Symlinks::Follow || policy.copy_dirlinks;
        }
        if source.kind == Kind::Dir {
            if let Some(queue) = queue {
                self.push_dir(state, entry, queue);
            }
            return Ok(());
        }
        self.see(state, &source);
        let target = match entry.target {
            Some((dir, _)) if !fresh => match meta::of(dir, entry.target_name, false) {
                Ok(target) => Some(target),
                Err(error) if errno::is(&error, errno::ENOENT) => None,
                Err(error) => return Err(Failure { operation: Operation::Stat, error }.into()),
            },
            _ => None,
        };
        if let Some(target) = &target
            && target.identity() == source.identity()
        {
            return self.same_file(state, entry);
        }
        let mut action = decide(&source, target.as_ref(), policy);
        if let (Some(_), Some(ask)) = (&target, &policy.ask)
            && !matches!(action, Action::Skip(_))
            && !ask(&entry.target_path())
        {
            state.totals.skipped += 1;
            return Ok(());
        }
        if let Action::Skip(reason) = action {
            self.skipped(state, entry, &source, reason);
            return Ok(());
        }
        let mut compared = false;
        if action == Action::Compare && source.kind == Kind::File {
            compared = !self.same_content(state, entry, source.size)?;
            action = if compared { Action::Update } else { Action::Metadata };
        }
        let grouped = policy.hard_links
            && (source.nlink > 1
                || policy.remove_source_files && self.links.knows(source.identity()));
        if !grouped {
            return self.act(
                state,
                entry,
                opened,
                &source,
                target.as_ref(),
                action,
                compared,
                begun,
            );
        }
        match self.links.join(source.identity(), source.nlink, || {
            entry.node.hold();
            entry.member()
        }) {
            Role::Waits => Ok(()),
            Role::Follows(leader) => {
                self.follow(state, entry, &source, target.as_ref(), &leader, begun)
            }
            Role::First => {
                let result = self.act(
                    state,
                    entry,
                    opened,
                    &source,
                    target.as_ref(),
                    action,
                    compared,
                    begun,
                );
                let leader = result.is_ok().then(|| Leader {
                    node: Arc::clone(entry.node),
                    name: entry.target_name.into(),
                });
                self.release_waiting(state, source.identity(), leader, queue);
                result
            }
        }
    }

    /// A symlink that is followed and leads nowhere is no vanished file.
    fn no_referent(&self, entry: &Entry<'_>, error: std::io::Error) -> Failure {
        let is_link = |fd| meta::of(fd, entry.name, false).is_ok();
        if errno::is(&error, errno::ENOENT) && entry.source_dir().is_ok_and(is_link) {
            let error = std::io::Error::other("symlink has no referent");
            return Failure { operation: Operation::Read, error };
        }
        Failure { operation: Operation::Stat, error }
    }

    fn same_file(&self, state: &mut State, entry: &Entry<'_>) -> Result<(), Stop> {
        if self.policy.cp_targets || self.policy.remove_source_files {
            state.totals.failed += 1;
            let (source, target) = (Some(entry.source_path()), Some(entry.target_path()));
            let reason = "source and target are the same file";
            self.notice(Operation::Create, source, target, reason, Class::Partial);
        } else {
            state.totals.skipped += 1;
        }
        Ok(())
    }

    fn see(&self, state: &mut State, source: &Meta) {
        let totals = &mut state.totals;
        match source.kind {
            Kind::File => {
                totals.seen_files += 1;
                totals.seen_bytes += source.size;
            }
            Kind::Symlink => totals.seen_links += 1,
            _ => totals.seen_nodes += 1,
        }
    }

    fn skipped(&self, state: &mut State, entry: &Entry<'_>, source: &Meta, reason: Reason) {
        state.totals.skipped += 1;
        let reason = match reason {
            Reason::Symlink => "it is a symlink (-l keeps it, -L copies what it names)",
            Reason::NonRegular => "it is not a regular file (-D keeps devices and FIFOs)",
            _ => return,
        };
        let _ = source;
        self.notice(Operation::Read, Some(entry.source_path()), None, reason, Class::Notice);
    }

    /// Carries out an action on one entry that is not a directory.
    #[expect(clippy::too_many_arguments, reason = "the whole of one decision")]
    fn act(
        &self,
        state: &mut State,
        entry: &Entry<'_>,
        opened: Option<OwnedFd>,
        source: &Meta,
        target: Option<&Meta>,
        action: Action,
        compared: bool,
        begun: Option<Begun>,
    ) -> Result<(), Stop> {
        let mut target = target;
        let text = match source.kind {
            Kind::Symlink => {
                let text = dir::read_link(entry.source_dir()?, entry.name)
                    .map_err(Failure::of(Operation::Read))?;
                if self.policy.safe_links {
                    let mut path = Vec::new();
                    entry.node.push_path(&mut path);
                    path.push(b'/');
                    path.extend_from_slice(entry.target_name.to_bytes());
                    if is_unsafe_link(text.to_bytes(), &path) {
                        state.totals.skipped += 1;
                        let reason = "it is a symlink that leads out of the tree (--safe-links)";
                        let source = Some(entry.source_path());
                        self.notice(Operation::Read, source, None, reason, Class::Notice);
                        return Ok(());
                    }
                }
                Some(text)
            }
            _ => None,
        };
        let action = match (&text, action, entry.target) {
            (Some(text), Action::Compare, Some((dir, _))) => {
                let there = dir::read_link(dir, entry.target_name);
                if there.is_ok_and(|there| there == *text) {
                    Action::Metadata
                } else {
                    Action::Update
                }
            }
            _ => action,
        };
        if action == Action::Metadata
            && let (Some(target), Some(_)) = (target, entry.target)
        {
            return self.keep_content(state, entry, source, target, text, begun);
        }
        if !self.policy.link_dest.is_empty()
            && self.link_from_dest(state, entry, source, target, text.as_deref(), begun)?
        {
            return Ok(());
        }
        if let Some(there) = target
            && there.kind == Kind::Dir
        {
            self.make_way(state, entry)?;
            target = None;
        }
        let mut change = match (target, source.kind) {
            (Some(there), Kind::File) if there.kind == Kind::File => {
                self.content_change(source, there, compared)
            }
            (Some(there), _) if there.kind == source.kind => {
                Change { checksum: true, ..self.time_change(source, there) }
            }
            _ => Change {
                created: true,
                transferred: source.kind == Kind::File,
                ..Change::default()
            },
        };
        if let Some(there) = target
            && !change.created
            && self.items
        {
            let want = self.want(source, target, entry.target.as_ref().map(|(_, info)| info));
            change.mode = there.kind != Kind::Symlink && want.mode != there.mode;
            change.owner = want.uid.is_some_and(|uid| uid != there.uid);
            change.group = want.gid.is_some_and(|gid| gid != there.gid);
        }
        let link = text.as_ref().map(|text| PathBuf::from(OsStr::from_bytes(text.to_bytes())));
        let done = match (&text, source.kind) {
            _ if self.mode == TargetMode::Told => Done::content(source.size),
            (Some(text), _) => {
                self.make_special(state, entry, source, target, &Special::Symlink(text))?
            }
            (None, Kind::File) => match self.policy.content {
                Content::Copy => self.copy_file(state, entry, opened, source, target)?,
                Content::HardLink => self.link_source(entry, target)?,
                Content::Symlink => self.symlink_source(state, entry, source, target)?,
            },
            _ => self.make_special(state, entry, source, target, &Special::Node)?,
        };
        self.touched(entry);
        let totals = &mut state.totals;
        if source.kind == Kind::File {
            totals.files += 1;
            totals.files_created += u64::from(change.created);
            totals.bytes += done.bytes;
        } else {
            totals.links_created += 1;
        }
        let told = Told { change, bytes_moved: done.bytes, link, begun };
        self.tell(entry, source, told);
        self.finish_entry(state, entry, source, done);
        Ok(())
    }

    /// The content at the target is right: only attributes may have to change.
    fn keep_content(
        &self,
        state: &mut State,
        entry: &Entry<'_>,
        source: &Meta,
        target: &Meta,
        text: Option<std::ffi::CString>,
        begun: Option<Begun>,
    ) -> Result<(), Stop> {
        let Some((target_dir, info)) = entry.target else { return Ok(()) };
        let want = self.want(source, Some(target), Some(&info));
        let from = (entry.source_dir()?, entry.name);
        let to = (target_dir, entry.target_name);
        let change = self.attribute_changes(state, from, to, target, &want)?;
        let mut done = Done { checked: true, ..Done::default() };
        if change.any() {
            if self.mode == TargetMode::Real {
                let have = Have::from(target);
                let settled = self.settle_named(state, from, to, source.kind, &want, have, &change);
                done.attributes = settled.err();
                done.checked = done.attributes.is_none();
            }
            state.totals.metadata += 1;
        } else {
            state.totals.skipped += 1;
            state.totals.bytes_skipped += if source.kind == Kind::File { source.size } else { 0 };
        }
        done.unprivileged = self.count_unprivileged(source, &want, state);
        if change.any() || self.items_unchanged {
            let link = text.map(|text| PathBuf::from(OsStr::from_bytes(text.to_bytes())));
            self.tell(entry, source, Told { change, bytes_moved: 0, link, begun });
        }
        self.finish_entry(state, entry, source, done);
        Ok(())
    }

    /// Reports attributes that could not be set, and removes the source where that is asked and
    /// its target is proven.
    fn finish_entry(&self, state: &mut State, entry: &Entry<'_>, source: &Meta, done: Done) {
        if let Some(failure) = done.attributes {
            self.fail(state, failure, Some(entry.source_path()), Some(entry.target_path()));
        } else if done.unprivileged {
            state.totals.failed += 1;
            let reason = "only the superuser may give files away; leave out -o and -g, or use sudo";
            let (source, target) = (Some(entry.source_path()), Some(entry.target_path()));
            self.notice(Operation::SetOwner, source, target, reason, Class::Partial);
        }
        if self.policy.remove_source_files && self.mode == TargetMode::Real {
            self.remove_source(state, entry, source, done.checked);
        }
    }

    fn remove_source(&self, state: &mut State, entry: &Entry<'_>, source: &Meta, checked: bool) {
        use std::sync::atomic::Ordering::Relaxed;
        if !checked {
            entry.node.kept_sources.fetch_add(1, Relaxed);
            return;
        }
        let removed = (|| {
            let dir_fd = entry.source_dir()?;
            let now = meta::of(dir_fd, entry.name, false).map_err(Failure::of(Operation::Stat))?;
            if now.identity() != source.identity() && !entry.follow {
                let error = std::io::Error::other("it was replaced after it was copied");
                return Err(Failure { operation: Operation::Remove, error });
            }
            dir::unlink(dir_fd, entry.name).map_err(Failure::of(Operation::Remove))
        })();
        match removed {
            Ok(()) => state.totals.removed_sources += 1,
            Err(failure) => {
                entry.node.kept_sources.fetch_add(1, Relaxed);
                self.fail(state, failure, Some(entry.source_path()), None);
            }
        }
    }

    /// A directory is where a file shall be: it goes only if it is empty, or if `--force` or
    /// `--delete` allows it.
    fn make_way(&self, state: &mut State, entry: &Entry<'_>) -> Result<(), Stop> {
        if self.mode != TargetMode::Real {
            return Ok(());
        }
        let Some((target_dir, _)) = entry.target else { return Ok(()) };
        let force = self.policy.force || self.policy.delete != crate::policy::Delete::No;
        match dir::rmdir(target_dir, entry.target_name) {
            Ok(()) => return Ok(()),
            Err(error) if !force => {
                return Err(Failure { operation: Operation::Remove, error }.into());
            }
            Err(_) => {}
        }
        self.remove_extraneous(state, entry.node, entry.fds, entry.target_name, Kind::Dir);
        match meta::of(target_dir, entry.target_name, false) {
            Err(error) if errno::is(&error, errno::ENOENT) => Ok(()),
            Err(error) => Err(Failure { operation: Operation::Stat, error }.into()),
            Ok(_) => {
                let error = std::io::Error::from_raw_os_error(errno::ENOTEMPTY);
                Err(Failure { operation: Operation::Remove, error }.into())
            }
        }
    }

    /// Links the entry to the first name of its group.
    fn follow(
        &self,
        state: &mut State,
        entry: &Entry<'_>,
        source: &Meta,
        target: Option<&Meta>,
        leader: &Leader,
        begun: Option<Begun>,
    ) -> Result<(), Stop> {
        let link = Failure::of(Operation::Link);
        if self.mode == TargetMode::Real {
            let Some((target_dir, _)) = entry.target else { return Ok(()) };
            let fds = leader.node.fds().map_err(link)?;
            let Some(from) = fds.target() else { return Ok(()) };
            let first =
                meta::of(from, &leader.name, false).map_err(Failure::of(Operation::Link))?;
            if target.is_some_and(|target| target.identity() == first.identity()) {
                state.totals.skipped += 1;
                self.finish_entry(state, entry, source, Done { checked: true, ..Done::default() });
                return Ok(());
            }
            if target.is_some_and(|target| target.kind == Kind::Dir) {
                self.make_way(state, entry)?;
            }
            self.link_over(entry, target, (from, &leader.name), target_dir)?;
            self.touched(entry);
        } else if let (Some(target), Ok(fds)) = (target, leader.node.fds())
            && let Some(from) = fds.target()
            && meta::of(from, &leader.name, false).is_ok_and(|m| m.identity() == target.identity())
        {
            state.totals.skipped += 1;
            return Ok(());
        }
        state.totals.links_created += 1;
        if self.items {
            let mut change = Change { created: target.is_none(), ..Change::default() };
            if let Some(there) = target {
                let want = self.want(source, target, entry.target.as_ref().map(|(_, info)| info));
                change = Change {
                    size: source.kind == Kind::File && source.size != there.size,
                    mode: want.mode != there.mode,
                    owner: want.uid.is_some_and(|uid| uid != there.uid),
                    group: want.gid.is_some_and(|gid| gid != there.gid),
                    ..self.time_change(source, there)
                };
            }
            change.hard_link = true;
            let mut path = Vec::new();
            leader.node.push_path(&mut path);
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(leader.name.to_bytes());
            let link = Some(PathBuf::from(OsStr::from_bytes(&path)));
            self.tell(entry, source, Told { change, bytes_moved: 0, link, begun });
        }
        self.finish_entry(state, entry, source, Done { checked: true, ..Done::default() });
        Ok(())
    }

    /// Makes the entry's target a hard link to `from`, over what is there.
    fn link_over(
        &self,
        entry: &Entry<'_>,
        target: Option<&Meta>,
        from: (BorrowedFd<'_>, &CStr),
        target_dir: BorrowedFd<'_>,
    ) -> Result<(), Failure> {
        let existing = target.filter(|target| target.kind != Kind::Dir);
        if existing.is_none() {
            match dir::link(from.0, from.1, target_dir, entry.target_name) {
                Err(error) if errno::is(&error, errno::EEXIST) => {}
                other => return other.map_err(Failure::of(Operation::Link)),
            }
        }
        let temp = self.temp_names.make();
        dir::link(from.0, from.1, target_dir, &temp).map_err(Failure::of(Operation::Link))?;
        if self.policy.backup && existing.is_some() {
            self.back_up(target_dir, entry.target_name)?;
        }
        let renamed = dir::rename(target_dir, &temp, target_dir, entry.target_name);
        // rename(2) between two names of one file does nothing and leaves both.
        drop(dir::unlink(target_dir, &temp));
        renamed.map_err(Failure::of(Operation::Rename))
    }

    /// Hands out the names that waited for the first of their group.
    fn release_waiting(
        &self,
        state: &mut State,
        id: (u64, u64),
        leader: Option<Leader>,
        queue: Option<&Queue<'_, Unit>>,
    ) {
        for member in self.links.finished(id, leader.clone()) {
            let node = Arc::clone(&member.node);
            match node.fds() {
                Ok(fds) => {
                    let mut entry = Entry {
                        node: &node,
                        fds: &fds,
                        side: member.side,
                        name: &member.name,
                        target_name: member.at_target(),
                        follow: false,
                        target: fds.target().zip(node.target_dir()),
                    };
                    match &leader {
                        Some(leader) => self.follow_late(state, &entry, leader),
                        None => self.entry(state, &mut entry, Kind::Unknown, false, queue),
                    }
                }
                Err(error) => {
                    let source = node.source_path(member.side, &member.name);
                    let target = node.target_path(member.at_target());
                    let failure = Failure { operation: Operation::Link, error };
                    self.fail(state, failure, Some(source), Some(target));
                }
            }
            self.release(state, &node);
        }
    }

    fn follow_late(&self, state: &mut State, entry: &Entry<'_>, leader: &Leader) {
        let result = (|| {
            let source = meta::of(entry.source_dir()?, entry.name, false)
                .map_err(Failure::of(Operation::Stat))?;
            let target = match entry.target {
                Some((dir, _)) => meta::of(dir, entry.target_name, false).ok(),
                None => None,
            };
            self.follow(state, entry, &source, target.as_ref(), leader, self.begin())
        })();
        if let Err(stop) = result {
            self.stopped(state, entry, stop);
        }
    }

    /// Hard-links an unchanged entry from a `--link-dest` tree. Returns whether it did.
    fn link_from_dest(
        &self,
        state: &mut State,
        entry: &Entry<'_>,
        source: &Meta,
        target: Option<&Meta>,
        text: Option<&CStr>,
        begun: Option<Begun>,
    ) -> Result<bool, Stop> {
        let Some((target_dir, info)) = entry.target else { return Ok(false) };
        if target.is_some_and(|target| target.kind == Kind::Dir) {
            return Ok(false);
        }
        for basis in entry.fds.link_dest.iter().flatten() {
            use hakobu_sys::AsFd;
            let basis = basis.as_fd();
            let Ok(there) = meta::of(basis, entry.target_name, false) else { continue };
            let same = match decide(source, Some(&there), self.policy) {
                Action::Metadata => true,
                Action::Compare => text.is_some_and(|text| {
                    dir::read_link(basis, entry.target_name).is_ok_and(|other| *other == *text)
                }),
                _ => false,
            };
            if !same {
                continue;
            }
            let want = self.want(source, Some(&there), Some(&info));
            let from = (entry.source_dir()?, entry.name);
            let to = (basis, entry.target_name);
            if self.attribute_changes(state, from, to, &there, &want)?.any() {
                continue;
            }
            if self.mode == TargetMode::Real {
                match self.link_over(entry, target, (basis, entry.target_name), target_dir) {
                    Ok(()) => {}
                    // Another volume, or as many links as the file system allows: copy it.
                    Err(failure)
                        if matches!(
                            failure.error.raw_os_error(),
                            Some(errno::EXDEV | errno::EMLINK)
                        ) =>
                    {
                        return Ok(false);
                    }
                    Err(failure) => return Err(failure.into()),
                }
            }
            self.touched(entry);
            state.totals.links_created += 1;
            if self.items_unchanged {
                let change = Change { hard_link: true, ..Change::default() };
                self.tell(entry, source, Told { change, bytes_moved: 0, link: None, begun });
            }
            self.finish_entry(state, entry, source, Done { checked: true, ..Done::default() });
            return Ok(true);
        }
        Ok(false)
    }

    /// `cp -l`.
    fn link_source(&self, entry: &Entry<'_>, target: Option<&Meta>) -> Result<Done, Failure> {
        if let Some((target_dir, _)) = entry.target {
            let from = (entry.source_dir()?, entry.name);
            self.link_over(entry, target, from, target_dir)?;
        }
        Ok(Done { checked: true, ..Done::default() })
    }

    /// `cp -s`: the text is the source's absolute path.
    fn symlink_source(
        &self,
        state: &mut State,
        entry: &Entry<'_>,
        source: &Meta,
        target: Option<&Meta>,
    ) -> Result<Done, Failure> {
        let path =
            std::path::absolute(entry.source_path()).map_err(Failure::of(Operation::Create))?;
        let text = c_string(path.as_os_str().as_bytes()).map_err(Failure::of(Operation::Create))?;
        self.make_special(state, entry, source, target, &Special::Symlink(&text))
    }

    /// The target directory was changed: its times have to be put back.
    pub(super) fn touched(&self, entry: &Entry<'_>) {
        entry.node.touch();
    }

    fn push_dir(&self, state: &mut State, entry: &Entry<'_>, queue: &Queue<'_, Unit>) {
        if !self.policy.recurse && !self.policy.dirs {
            state.totals.skipped += 1;
            let reason = "it is a directory (-r copies it)";
            let class = if self.policy.cp_targets { Class::Partial } else { Class::Notice };
            if class == Class::Partial {
                state.totals.failed += 1;
            }
            self.notice(Operation::Read, Some(entry.source_path()), None, reason, class);
            return;
        }
        self.push_enter(queue, Enter::of(entry));
    }

    fn tell(&self, entry: &Entry<'_>, source: &Meta, told: Told) {
        if !self.items {
            return;
        }
        let mut path = Vec::new();
        entry.node.push_path(&mut path);
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(entry.name.to_bytes());
        self.tell_path(&path, source, Some(entry.source_path()), Some(entry.target_path()), told);
    }

    fn tell_path(
        &self,
        path: &[u8],
        meta: &Meta,
        source: Option<PathBuf>,
        target: Option<PathBuf>,
        told: Told,
    ) {
        let Told { change, bytes_moved, link, begun } = told;
        self.listener.event(Event::Item(&Item {
            change,
            kind: meta.kind,
            path: Path::new(OsStr::from_bytes(path)),
            source,
            target,
            link,
            bytes: meta.size,
            bytes_moved,
            start_s: begun.map_or(0.0, |begun| begun.unix_s),
            took: begun.map(|begun| begun.instant.elapsed()).unwrap_or_default(),
            mode: meta.mode,
            mtime_s: meta.mtime.s,
        }));
    }

    /// Tells what happened to a directory, or to something that was removed.
    pub(super) fn tell_other(
        &self,
        path: &[u8],
        meta: &Meta,
        source: Option<PathBuf>,
        target: Option<PathBuf>,
        change: Change,
    ) {
        if self.items {
            let told = Told { change, bytes_moved: 0, link: None, begun: self.begin() };
            self.tell_path(path, meta, source, target, told);
        }
    }

    /// The attributes that a directory should have; see [`Engine::want`].
    pub(super) fn want_dir(&self, node: &Node, existing: Option<&Meta>) -> Want {
        let parent_dir = node.parent.as_ref().and_then(|parent| parent.target_dir());
        self.want(&node.source, existing, parent_dir.as_ref())
    }
}
