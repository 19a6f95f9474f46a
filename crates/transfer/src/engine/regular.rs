//! Regular files: how a new one appears under its name and how an existing one is replaced.
//!
//! A program killed at any moment leaves no file under its final name that a later run would take
//! for finished, and never damages the file that was there before. New files get their final name
//! at once only where that is safe (`Engine::may_be_direct`); otherwise they have no name until
//! they are complete (`O_TMPFILE`), or a temporary one. Replacing always goes by way of a
//! temporary name in the same directory and rename(2).

use super::attributes::{Have, Want};
use super::data::{Onto, Stop};
use super::entry::{Done, Entry};
use super::node::{Failure, TargetDir};
use super::{Engine, State, TargetMode, appear};
use crate::error::Operation;
use crate::event::Change;
use crate::meter::Phase;
use crate::unit::{Kind, Meta};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, errno, file, meta};
use std::ffi::{CStr, CString};
use std::io;

/// Tries for a source that changes while it is read.
const TRIES: usize = 3;

/// How a target file is created, and what it should end up with.
pub(super) struct Shape {
    want: Want,
    /// What the kernel makes of a new file.
    own: Have,
    /// The mode to create it with.
    pub(super) mode: u32,
    /// Its mode comes from the directory's default ACL.
    inherits: bool,
}

/// A target file under construction.
pub(super) struct Draft<'a> {
    fd: OwnedFd,
    /// The directory of `name`: the target's, or `--temp-dir`.
    dir: BorrowedFd<'a>,
    name: DraftName,
    /// The mode it was created with.
    mode: u32,
    /// It was made in `--temp-dir`.
    foreign: bool,
}

pub(super) enum DraftName {
    /// The final one, created by us just now.
    Final,
    /// None yet.
    Unnamed,
    /// A temporary one.
    Temporary(CString),
    /// The final one of a file that existed before (`--inplace`, devices of cp).
    InPlace,
}

impl Draft<'_> {
    /// Whether it has its final name already, so that nothing is left to publish.
    pub(super) fn is_public(&self) -> bool {
        matches!(self.name, DraftName::Final | DraftName::InPlace)
    }
}

impl Engine<'_> {
    /// Copies a regular file to a name where nothing is (`existing` is `None`), or over what is
    /// there. `opened` is the source where the caller has it open already.
    ///
    /// # Errors
    /// [`Stop`], with nothing half-written under the final name. EEXIST of `Create` means that
    /// something appeared there in the meantime.
    pub(super) fn copy_file(
        &self,
        state: &mut State,
        entry: &Entry<'_>,
        opened: Option<OwnedFd>,
        source: &Meta,
        existing: Option<&Meta>,
    ) -> Result<Done, Stop> {
        let mut opened = opened;
        let mut source = *source;
        for _ in 0..TRIES {
            let from = match opened.take() {
                Some(fd) => fd,
                None => {
                    self.step(&state.station, Phase::Look, 1);
                    let fd = file::open_read(entry.source_dir()?, entry.name, entry.follow)
                        .map_err(Failure::of(Operation::Read))?;
                    source = meta::of_fd(&fd).map_err(Failure::of(Operation::Stat))?;
                    if source.kind != Kind::File {
                        return Err(Stop::Changed);
                    }
                    fd
                }
            };
            match self.copy_once(state, entry, &from, &source, existing) {
                Err(Stop::Changed) => {}
                other => return other,
            }
        }
        Err(Stop::Changed)
    }

    fn copy_once(
        &self,
        state: &mut State,
        entry: &Entry<'_>,
        from: &OwnedFd,
        source: &Meta,
        existing: Option<&Meta>,
    ) -> Result<Done, Stop> {
        if self.mode == TargetMode::Null {
            let bytes =
                self.copy_content(state, from.as_fd(), from.as_fd(), source, 0, Onto::New)?;
            return Ok(Done::content(bytes));
        }
        let Some((target_dir, dir_info)) = entry.target else {
            return Ok(Done::content(source.size));
        };
        if self.policy.inplace
            && self.policy.backup
            && existing.is_some_and(|target| target.kind == Kind::File)
        {
            self.back_up_copy(state, target_dir, entry.target_name)?;
        }
        let shape = self.shape(&dir_info, source, existing);
        self.step(&state.station, Phase::Create, 1);
        let draft = self.open_draft(entry, target_dir, &dir_info, source, existing, shape.mode)?;
        match self.fill(state, entry, from, source, existing, &draft, &shape) {
            Ok(done) => {
                if !draft.is_public() {
                    self.step(&state.station, Phase::Create, 1);
                }
                self.publish(entry, target_dir, draft, existing)?;
                Ok(done)
            }
            Err(stop) => {
                self.give_up(entry, target_dir, draft, &stop);
                Err(stop)
            }
        }
    }

    /// How the target of `source` is created. What the kernel gives a new file on its own needs
    /// no further call: where owner and group come out right, it gets its final mode at once.
    pub(super) fn shape(
        &self,
        dir_info: &TargetDir,
        source: &Meta,
        existing: Option<&Meta>,
    ) -> Shape {
        let want = self.want(source, existing, Some(dir_info));
        let own = Have { mode: want.mode, uid: self.euid, gid: dir_info.default_gid(self.egid) };
        let same_owner =
            want.uid.is_none_or(|uid| uid == own.uid) && want.gid.is_none_or(|gid| gid == own.gid);
        // An ACL's mask stands in the group's bits: until the ACL is there they would let in the
        // owning group.
        let simple = same_owner
            && want.mode & 0o6000 == 0
            && !dir_info.default_acl
            && !self.policy.preserve.acls;
        let inherits = dir_info.default_acl && !self.policy.preserve.mode;
        let mode = if simple || inherits { want.mode } else { 0o600 };
        Shape { want, own, mode, inherits }
    }

    /// Gives a draft its content and its attributes. On failure the caller gives it up.
    #[expect(clippy::too_many_arguments, reason = "a file on both sides and how it shall be")]
    pub(super) fn fill(
        &self,
        state: &mut State,
        entry: &Entry<'_>,
        from: &OwnedFd,
        source: &Meta,
        existing: Option<&Meta>,
        draft: &Draft<'_>,
        shape: &Shape,
    ) -> Result<Done, Stop> {
        let Some((_, dir_info)) = entry.target else { return Ok(Done::default()) };
        let overwrite = matches!(draft.name, DraftName::InPlace);
        let device = overwrite && existing.is_some_and(|target| target.kind != Kind::File);
        let to = draft.fd.as_fd();
        let to_dev = dir_info.identity.0;
        let onto = match (overwrite, device) {
            (_, true) => Onto::Stream,
            (true, false) => Onto::Existing,
            (false, false) => Onto::New,
        };
        let bytes = self.copy_content(state, from.as_fd(), to, source, to_dev, onto)?;
        if overwrite && !device {
            file::set_len(to, bytes).map_err(Failure::of(Operation::Write))?;
        }
        let have = match existing {
            Some(target) if overwrite => Have::from(target),
            // With a default ACL the kernel has put the mode together already.
            _ if shape.inherits => shape.own,
            _ => Have { mode: draft.mode, ..shape.own },
        };
        let mut want = shape.want;
        let mut fresh = !dir_info.default_acl && !overwrite;
        let mut have = have;
        if draft.foreign {
            // The rules of another directory made it.
            have = Have::from(&meta::of_fd(to).map_err(Failure::of(Operation::Stat))?);
            fresh = false;
            if shape.inherits {
                want.mode &= !self.umask;
            }
        }
        // Attributes that cannot be set are reported; the content is right and stays.
        let attributes = match device {
            true => Ok(()),
            false => self.settle(state, Some(from.as_fd()), to, &want, have, fresh),
        };
        let unprivileged = self.count_unprivileged(source, &shape.want, state);
        let checked = self.check(from, source, to, bytes, &attributes, unprivileged);
        if self.policy.fsync && !device {
            self.step(&state.station, Phase::Settle, 1);
            file::sync(to).map_err(Failure::of(Operation::Sync))?;
        }
        Ok(Done { bytes, checked, attributes: attributes.err(), unprivileged })
    }

    /// Whether the source may be removed: its target has all bytes and attributes, and the source
    /// is still what was copied. Looked at only when sources are removed.
    fn check(
        &self,
        from: &OwnedFd,
        source: &Meta,
        to: BorrowedFd<'_>,
        bytes: u64,
        attributes: &Result<(), Failure>,
        unprivileged: bool,
    ) -> bool {
        if !self.policy.remove_source_files || attributes.is_err() || unprivileged {
            return false;
        }
        let (Ok(now), Ok(target)) = (meta::of_fd(from), meta::of_fd(to)) else { return false };
        let same =
            |a: &Meta, b: &Meta| a.size == b.size && a.mtime == b.mtime && a.ctime == b.ctime;
        same(&now, source) && target.size == bytes && bytes == source.size
    }

    pub(super) fn open_draft<'a>(
        &'a self,
        entry: &Entry<'a>,
        target_dir: BorrowedFd<'a>,
        dir_info: &TargetDir,
        source: &Meta,
        existing: Option<&Meta>,
        mode: u32,
    ) -> Result<Draft<'a>, Failure> {
        let create = Failure::of(Operation::Create);
        let draft = |fd, name| Draft { fd, dir: target_dir, name, mode, foreign: false };
        if let Some(target) = existing {
            let writable_node = self.policy.cp_targets
                && !matches!(target.kind, Kind::File | Kind::Symlink | Kind::Dir);
            if writable_node || (self.policy.inplace && target.kind == Kind::File) {
                let fd = file::open_write(target_dir, entry.target_name, writable_node)
                    .map_err(create)?;
                return Ok(draft(fd, DraftName::InPlace));
            }
            return self.open_temporary(target_dir, dir_info, mode);
        }
        if self.policy.inplace || self.may_be_direct(source) {
            let fd = file::create_new(target_dir, entry.target_name, mode).map_err(create)?;
            return Ok(draft(fd, DraftName::Final));
        }
        use std::sync::atomic::Ordering::Relaxed;
        if self.temp_dir.is_none() && self.unnamed_works.load(Relaxed) {
            match file::create_unnamed(target_dir, mode) {
                Ok(fd) => return Ok(draft(fd, DraftName::Unnamed)),
                Err(error) if appear::lacks_unnamed(&error) => {
                    self.unnamed_works.store(false, Relaxed);
                }
                Err(error) => return Err(Failure { operation: Operation::Create, error }),
            }
        }
        self.open_temporary(target_dir, dir_info, mode)
    }

    fn open_temporary<'a>(
        &'a self,
        target_dir: BorrowedFd<'a>,
        dir_info: &TargetDir,
        mode: u32,
    ) -> Result<Draft<'a>, Failure> {
        // A temporary directory on another volume could not be renamed from: the target's own
        // directory does the same there.
        let (dir, mode, foreign) = match &self.temp_dir {
            Some((fd, dev)) if *dev == dir_info.identity.0 => (fd.as_fd(), 0o600, true),
            _ => (target_dir, mode, false),
        };
        let name = self.temp_names.make();
        let fd = file::create_new(dir, &name, mode).map_err(Failure::of(Operation::Create))?;
        Ok(Draft { fd, dir, name: DraftName::Temporary(name), mode, foreign })
    }

    /// Gives the finished file its name.
    pub(super) fn publish(
        &self,
        entry: &Entry<'_>,
        target_dir: BorrowedFd<'_>,
        draft: Draft<'_>,
        existing: Option<&Meta>,
    ) -> Result<(), Stop> {
        match &draft.name {
            DraftName::Final | DraftName::InPlace => Ok(()),
            DraftName::Unnamed => {
                let published = file::publish(draft.fd.as_fd(), target_dir, entry.target_name);
                Ok(published.map_err(Failure::of(Operation::Create))?)
            }
            DraftName::Temporary(name) => {
                let moved = self.put_in_place(draft.dir, name, target_dir, entry, existing);
                if moved.is_err() {
                    drop(dir::unlink(draft.dir, name));
                }
                Ok(moved?)
            }
        }
    }

    /// Renames a finished temporary entry to its final name, after the backup of what is there.
    pub(super) fn put_in_place(
        &self,
        temp_dir: BorrowedFd<'_>,
        temp: &CStr,
        target_dir: BorrowedFd<'_>,
        entry: &Entry<'_>,
        existing: Option<&Meta>,
    ) -> Result<(), Failure> {
        let name = entry.target_name;
        if self.policy.backup && existing.is_some() {
            self.back_up(target_dir, name)?;
        }
        appear::rename_into_place(temp_dir, temp, target_dir, name, existing.is_none())
            .map_err(Failure::of(Operation::Rename))
    }

    /// See [`appear::back_up`].
    pub(super) fn back_up(&self, dir_fd: BorrowedFd<'_>, name: &CStr) -> Result<(), Failure> {
        appear::back_up(self.policy, dir_fd, name)
    }

    /// Keeps a copy of a file that is about to be written into under its backup name.
    fn back_up_copy(
        &self,
        state: &mut State,
        dir_fd: BorrowedFd<'_>,
        name: &CStr,
    ) -> Result<(), Stop> {
        let backup = self.backup_name(name).map_err(Failure::of(Operation::Rename))?;
        self.step(&state.station, Phase::Create, 2);
        let from = file::open_read(dir_fd, name, false).map_err(Failure::of(Operation::Compare))?;
        let old = meta::of_fd(&from).map_err(Failure::of(Operation::Compare))?;
        let temp = self.temp_names.make();
        let to = file::create_new(dir_fd, &temp, 0o600).map_err(Failure::of(Operation::Create))?;
        let copied = (|| {
            let (from, to) = (from.as_fd(), to.as_fd());
            self.copy_content(state, from, to, &old, old.dev, Onto::New)?;
            let root = self.euid == 0;
            let (uid, gid) = (root.then_some(old.uid), root.then_some(old.gid));
            let want = Want { mode: old.mode, uid, gid, times: Some((None, old.mtime)) };
            let have = Have::from(&meta::of_fd(to).map_err(Failure::of(Operation::Stat))?);
            self.settle(state, Some(from), to, &want, have, false)?;
            self.step(&state.station, Phase::Create, 1);
            let renamed = dir::rename(dir_fd, &temp, dir_fd, &backup);
            renamed.map_err(Failure::of(Operation::Rename))?;
            Ok(())
        })();
        if copied.is_err() {
            drop(dir::unlink(dir_fd, &temp));
        }
        copied
    }

    /// See [`appear::backup_name`].
    pub(super) fn backup_name(&self, name: &CStr) -> io::Result<CString> {
        appear::backup_name(self.policy, name)
    }

    /// Removes what a failed or stopped copy left, or keeps it where `--partial` asks for that.
    pub(super) fn give_up(
        &self,
        entry: &Entry<'_>,
        target_dir: BorrowedFd<'_>,
        draft: Draft<'_>,
        stop: &Stop,
    ) {
        let keep = self.policy.partial && matches!(stop, Stop::Asked | Stop::Failed(_));
        if keep && meta::of_fd(&draft.fd).is_ok_and(|meta| meta.size > 0) {
            // 1970 makes it older than any source: no later run takes it for newer or finished.
            drop(meta::set_times_fd(&draft.fd, None, crate::unit::Time { s: 0, ns: 0 }));
            let name = entry.target_name;
            let kept = match &draft.name {
                DraftName::Final | DraftName::InPlace => return,
                DraftName::Unnamed => file::publish(draft.fd.as_fd(), target_dir, name),
                DraftName::Temporary(temp) => {
                    // What is replaced is kept where that is asked for.
                    let there = meta::of(target_dir, name, false).is_ok();
                    if self.policy.backup && there && self.back_up(target_dir, name).is_err() {
                        Err(io::Error::from_raw_os_error(errno::EEXIST))
                    } else {
                        dir::rename(draft.dir, temp, target_dir, name)
                    }
                }
            };
            if kept.is_ok() {
                return;
            }
        }
        // The error that is reported is the one that led here; the next run clears up what
        // cannot be removed now.
        match &draft.name {
            DraftName::Final => drop(dir::unlink(target_dir, entry.target_name)),
            DraftName::Temporary(name) => drop(dir::unlink(draft.dir, name)),
            DraftName::Unnamed | DraftName::InPlace => {}
        }
    }

    /// Compares the contents of two files of equal size.
    pub(super) fn same_content(
        &self,
        state: &mut State,
        entry: &Entry<'_>,
        size: u64,
    ) -> Result<bool, Stop> {
        let Some((target_dir, _)) = entry.target else { return Ok(false) };
        let read = || Failure::of(Operation::Read);
        self.step(&state.station, Phase::Look, 2);
        let a = file::open_read(entry.source_dir()?, entry.name, entry.follow).map_err(read())?;
        let b = file::open_read(target_dir, entry.target_name, false)
            .map_err(Failure::of(Operation::Compare))?;
        let half = state.buffer.len() / 2;
        let (left, right) = state.buffer.split_at_mut(half);
        let mut offset = 0;
        while offset < size {
            if self.is_over() {
                return Err(Stop::Asked);
            }
            self.step(&state.station, Phase::Read, 2);
            let got = file::read_full_at(a.as_fd(), left, offset).map_err(read())?;
            let there = file::read_full_at(b.as_fd(), right, offset)
                .map_err(Failure::of(Operation::Compare))?;
            if left.get(..got) != right.get(..there) {
                return Ok(false);
            }
            if got == 0 {
                break;
            }
            offset += got as u64;
        }
        Ok(true)
    }

    /// What an update of an existing file changes, for the itemized line.
    pub(super) fn content_change(&self, source: &Meta, target: &Meta, compared: bool) -> Change {
        Change {
            transferred: true,
            checksum: compared || self.policy.checksum,
            size: source.size != target.size,
            ..self.time_change(source, target)
        }
    }

    /// What making an entry anew does to its time.
    pub(super) fn time_change(&self, source: &Meta, target: &Meta) -> Change {
        let times = self.policy.preserve.times;
        let window_s = self.policy.modify_window_s;
        let same = crate::policy::same_time(source.mtime, target.mtime, window_s);
        Change { time: times && !same, time_now: !times, ..Change::default() }
    }
}
