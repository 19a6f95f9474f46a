//! Target files being written. A new file gets its final name at once only if that is safe (`publish/direct.rs`);
//! otherwise it has no name until it is complete (`O_TMPFILE`), or a temporary one. Replacing uses a temporary name
//! in the same directory and rename(2).

use super::backup::Backups;
use super::direct::Direct;
use super::names::{
    DirName, UNFINISHED, disown, is_node, lacks_unnamed, lease_ended, rename_into_place,
};
use super::temp::TempNames;
use crate::engine::context::Context;
use crate::engine::failure::{Failure, Stop};
use crate::engine::guard;
use crate::engine::node::Node;
use crate::engine::pace::Station;
use hakobu_core::error::Operation;
use hakobu_core::meter::Phase;
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, close, dir, errno, file, meta, waiting};
use parking_lot::Mutex;
use std::ffi::{CStr, CString};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Maximum number of tries to link to a name that other runs replace meanwhile: several runs with one target need
/// that many until their pauses, which grow to 200 ms, differ enough. Ends early if the run is asked to stop.
const LINKS_MAX: u32 = 12;

/// A target file being written.
pub(in crate::engine) struct Draft<'a> {
    pub(in crate::engine) fd: OwnedFd,
    /// The directory of `name`: the target's, or `--temp-dir`.
    pub(super) dir: BorrowedFd<'a>,
    pub(super) name: DraftName,
    /// Its final place.
    pub(super) target: DirName<'a>,
    /// The mode it was created with.
    pub(in crate::engine) mode: u32,
    /// It was created in `--temp-dir`.
    pub(in crate::engine) foreign: bool,
}

pub(super) enum DraftName {
    /// The final name, just created by us.
    Final,
    /// No name yet.
    Unnamed,
    /// A temporary name.
    Temporary(CString),
    /// The final name of an existing file (`--inplace`, devices of cp).
    InPlace,
}

impl Draft<'_> {
    /// Returns whether it has its final name already, so that publishing only closes it.
    pub(in crate::engine) fn is_public(&self) -> bool {
        matches!(self.name, DraftName::Final | DraftName::InPlace)
    }

    /// Returns whether it is an existing file or device.
    pub(in crate::engine) fn is_in_place(&self) -> bool {
        matches!(self.name, DraftName::InPlace)
    }
}

/// A finished file that waits for its name.
pub(in crate::engine) struct Delayed {
    /// Its directory, which it holds until then.
    pub(in crate::engine) node: Arc<Node>,
    /// Its name.
    pub(in crate::engine) name: CString,
    pub(super) temp: CString,
    /// The temporary name is in `--temp-dir`.
    pub(super) foreign: bool,
    pub(super) existing: Option<Meta>,
}

/// Creates target files and links their names. One instance serves all workers.
pub(in crate::engine) struct Publisher<'a> {
    pub(super) context: Context<'a>,
    /// Directory of `--temp-dir`, with its device.
    pub(super) temp_dir: Option<(OwnedFd, u64)>,
    /// Temporary names of incomplete files.
    pub(in crate::engine) temp_names: TempNames,
    /// The rule for files that get their final name at once.
    pub(in crate::engine) direct: Direct,
    /// Backups of replaced or removed entries.
    pub(in crate::engine) backups: Backups<'a>,
    /// Finished files that keep temporary names until all are finished.
    pub(super) delayed: Mutex<Vec<Delayed>>,
    /// `O_TMPFILE` works at the target, as far as is known.
    unnamed_works: AtomicBool,
}

impl<'a> Publisher<'a> {
    pub(in crate::engine) fn new(
        context: Context<'a>,
        temp_dir: Option<(OwnedFd, u64)>,
        backups: Backups<'a>,
        direct: Direct,
    ) -> Publisher<'a> {
        let (temp_names, unnamed_works) = (TempNames::new(), AtomicBool::new(true));
        let delayed = Mutex::default();
        Publisher { context, temp_dir, temp_names, direct, backups, delayed, unnamed_works }
    }

    /// Returns the names for temporary files, if any may be created.
    pub(in crate::engine) fn probes(&self) -> Option<&TempNames> {
        self.context.is_real().then_some(&self.temp_names)
    }

    /// Opens a file for the content of `source`, on the file system `dev`: a new one, or the existing one
    /// (`existing`) if that is written into.
    ///
    /// # Errors
    /// EEXIST if an entry appeared under the final name.
    pub(in crate::engine) fn open<'d>(
        &'d self,
        target: DirName<'d>,
        dev: u64,
        source: &Meta,
        existing: Option<&Meta>,
        mode: u32,
    ) -> Result<Draft<'d>, Failure> {
        let policy = self.context.policy;
        let create = Failure::of(Operation::Create);
        let (dir, name) = target;
        let draft = |fd, name| Draft { fd, dir, name, target, mode, foreign: false };
        if let Some(there) = existing {
            let writable_node = policy.writes_through() && is_node(there.kind);
            let device = writable_node || policy.write_devices && there.kind.is_device();
            let into = policy.inplace && there.kind == Kind::File;
            if device || into || policy.appends(source, there) {
                let stop = || self.context.is_over();
                let fd = match there.kind {
                    Kind::Fifo => waiting::open_fifo(dir, name, &stop),
                    _ => file::open_write(dir, name),
                };
                let fd = fd.map_err(create)?;
                return Ok(draft(fd, DraftName::InPlace));
            }
            return self.open_temporary(target, dev, mode);
        }
        let place = (dir, dev);
        if policy.inplace || self.direct.allows(source.size, source.mtime, place, &self.temp_names)
        {
            self.check_lease()?;
            let fd = file::create_new(dir, name, mode).map_err(create)?;
            return Ok(draft(fd, DraftName::Final));
        }
        if self.temp_dir.is_none() && self.unnamed_works.load(Relaxed) {
            match file::create_unnamed(dir, mode) {
                Ok(fd) => return Ok(draft(fd, DraftName::Unnamed)),
                Err(error) if lacks_unnamed(&error) => self.unnamed_works.store(false, Relaxed),
                Err(error) => return Err(create(error)),
            }
        }
        self.open_temporary(target, dev, mode)
    }

    fn open_temporary<'d>(
        &'d self,
        target: DirName<'d>,
        dev: u64,
        mode: u32,
    ) -> Result<Draft<'d>, Failure> {
        // A temporary directory on another volume could not be renamed from: the target's own
        // directory does the same there.
        let (dir, mode, foreign) = match &self.temp_dir {
            Some((fd, own)) if *own == dev => (fd.as_fd(), 0o600, true),
            _ => (target.0, mode, false),
        };
        let name = self.temp_names.make();
        let fd = file::create_new(dir, &name, mode).map_err(Failure::of(Operation::Create))?;
        Ok(Draft { fd, dir, name: DraftName::Temporary(name), target, mode, foreign })
    }

    /// Closes a finished file and gives it its name, as far as it has none yet.
    ///
    /// # Errors
    /// With nothing left under the final name that a later run would take for finished.
    pub(in crate::engine) fn publish(
        &self,
        draft: Draft<'_>,
        existing: Option<&Meta>,
        node: &Arc<Node>,
        delays: bool,
    ) -> Result<(), Stop> {
        if delays && !draft.is_in_place() {
            return Ok(self.delay(draft, existing, node)?);
        }
        let Draft { fd, dir, name, target, .. } = draft;
        if let Err(ended) = self.check_lease() {
            // If the final name is in use, it is another worker's by now.
            if let DraftName::Temporary(name) = &name {
                drop(dir::unlink(dir, name));
            }
            return Err(ended.into());
        }
        if let DraftName::Unnamed = &name {
            let published = file::publish(fd.as_fd(), target.0, target.1);
            published.map_err(Failure::of(Operation::Create))?;
        }
        let closed = close::close(fd).map_err(Failure::of(Operation::Write));
        match name {
            DraftName::Final | DraftName::Unnamed => {
                if closed.is_err() && !disown(target.0, target.1) {
                    self.direct.ledger.keep();
                }
                closed
            }
            DraftName::InPlace => {
                if closed.is_err() && existing.is_some_and(|there| there.kind == Kind::File) {
                    drop(meta::set_times(target.0, target.1, None, UNFINISHED));
                }
                closed
            }
            DraftName::Temporary(name) => {
                let moved = closed.and_then(|()| self.rename((dir, &name), target, existing, node));
                if moved.is_err() {
                    drop(dir::unlink(dir, &name));
                }
                moved
            }
        }?;
        self.forget_partial(target);
        Ok(())
    }

    /// Renames a finished temporary entry to its final name, after the backup of an existing one.
    pub(in crate::engine) fn rename(
        &self,
        temp: DirName<'_>,
        (dir, name): DirName<'_>,
        existing: Option<&Meta>,
        node: &Node,
    ) -> Result<(), Failure> {
        self.check_lease()?;
        let taken = existing.zip(node.target_dir()).filter(|(_, info)| info.caseless);
        let _alone = taken.map(|(_, info)| self.context.guard.replacing(info.meta.identity()));
        if let Some((existing, info)) = taken {
            self.claim_replacement(temp, (dir, name), existing, info.meta.identity())?;
        }
        if existing.is_some() {
            self.back_up((dir, name), node)?;
        }
        rename_into_place(temp.0, temp.1, dir, name, existing.is_none())
            .map_err(Failure::of(Operation::Rename))
    }

    /// In a directory that ignores case, checks that the entry to be replaced is still the one that was decided about, and
    /// claims the new one for the name.
    ///
    /// # Errors
    /// EEXIST if another name has replaced it meanwhile.
    fn claim_replacement(
        &self,
        temp: DirName<'_>,
        (dir, name): DirName<'_>,
        existing: &Meta,
        directory: (u64, u64),
    ) -> Result<(), Failure> {
        let made = meta::of(temp.0, temp.1, false).map_err(Failure::of(Operation::Rename))?;
        let is_other =
            meta::of(dir, name, false).is_ok_and(|now| now.identity() != existing.identity());
        match is_other {
            true => Err(Failure::code(Operation::Rename, errno::EEXIST)),
            false => {
                self.context.guard.claim(directory, made.identity(), name);
                Ok(())
            }
        }
    }

    /// Fails if the lease of this run has ended: no file may get its name then.
    pub(super) fn check_lease(&self) -> Result<(), Failure> {
        match self.context.control.may_publish() {
            true => Ok(()),
            false => Err(Failure { operation: Operation::Rename, error: lease_ended() }),
        }
    }

    /// Keeps the current entry of a name under its backup name as well, if backups are requested.
    pub(in crate::engine) fn back_up(
        &self,
        place: DirName<'_>,
        node: &Node,
    ) -> Result<(), Failure> {
        self.backups.keep(place, &|| node.path_of(place.1), &self.temp_names)
    }

    /// Removes a temporary name of a dead process; returns whether it was one. A name that cannot be removed is left
    /// to the next run.
    pub(in crate::engine) fn remove_leftover(&self, dir: BorrowedFd<'_>, name: &CStr) -> bool {
        self.context.is_real()
            && self.temp_names.is_abandoned(name)
            && dir::unlink(dir, name).is_ok()
    }

    /// Removes leftovers from the directory of `--temp-dir`.
    pub(in crate::engine) fn clear_temp_dir(&self) {
        let Some((fd, _)) = &self.temp_dir else { return };
        // A directory that cannot be listed has nothing to remove.
        drop(dir::Reader::default().for_each(fd.as_fd(), |name, _, _| {
            if TempNames::is_temp(name) {
                self.remove_leftover(fd.as_fd(), name);
            }
        }));
    }

    /// Removes the remains of a failed or stopped copy, or keeps them with `--partial`. Returns whether a name was
    /// removed from the directory.
    pub(in crate::engine) fn give_up(&self, draft: Draft<'_>, stop: &Stop, node: &Node) -> bool {
        let (target_dir, name) = draft.target;
        let keep = self.context.policy.partial && matches!(stop, Stop::Asked | Stop::Failed(_));
        if keep
            && meta::of_fd(&draft.fd).is_ok_and(|meta| meta.size > 0)
            && meta::set_times_fd(&draft.fd, None, UNFINISHED).is_ok()
        {
            let kept = match &draft.name {
                DraftName::Final | DraftName::InPlace => return false,
                _ if self.context.policy.partial_dir.is_some() => self.keep_partial(&draft),
                DraftName::Unnamed => file::publish(draft.fd.as_fd(), target_dir, name),
                DraftName::Temporary(temp) => {
                    // A replaced entry is kept if requested.
                    let there = !meta::of(target_dir, name, false)
                        .is_err_and(|error| errno::is(&error, errno::ENOENT));
                    if there && self.back_up(draft.target, node).is_err() {
                        Err(io::Error::from_raw_os_error(errno::EEXIST))
                    } else {
                        dir::rename(draft.dir, temp, target_dir, name)
                    }
                }
            };
            if kept.is_ok() {
                // A new folder has changed the directory.
                return self.context.policy.partial_dir.is_some();
            }
        }
        // The first error is reported; the next run removes what remains.
        match &draft.name {
            DraftName::Final => {
                // Another program may have put its own file there meanwhile.
                let ours = |there: &Meta| {
                    meta::of_fd(&draft.fd).is_ok_and(|own| own.identity() == there.identity())
                };
                if meta::of(target_dir, name, false).is_ok_and(|there| ours(&there))
                    && !disown(target_dir, name)
                {
                    self.direct.ledger.keep();
                }
            }
            DraftName::Temporary(name) => {
                drop(dir::unlink(draft.dir, name));
                return true;
            }
            // Content that was not written or flushed must not have the final times.
            DraftName::InPlace
                if matches!(stop, Stop::Failed(failure)
                    if matches!(failure.operation, Operation::Write | Operation::Sync)) =>
            {
                if meta::of_fd(&draft.fd).is_ok_and(|there| there.kind == Kind::File) {
                    drop(meta::set_times_fd(&draft.fd, None, UNFINISHED));
                }
            }
            DraftName::Unnamed | DraftName::InPlace => {}
        }
        false
    }

    /// Creates a hard link to `from`, with `follow` to what a symlink there leads to, replacing an existing entry
    /// (`target`), which gets a backup if its directory is given.
    pub(in crate::engine) fn link(
        &self,
        at: &Station<'_>,
        (from, follow): (DirName<'_>, bool),
        (target_dir, name): DirName<'_>,
        target: Option<&Meta>,
        node: Option<&Node>,
    ) -> Result<(), Failure> {
        let existing = target.filter(|target| target.kind != Kind::Dir);
        at.step(Phase::Create, if existing.is_none() { 1 } else { 2 });
        // Another run with the same target may replace the first name meanwhile: then linking finds an inode without
        // names (ENOENT), or links to a replaced one.
        let again = |error: &std::io::Error, left: u32| {
            errno::is(error, errno::EEXIST) || left > 0 && errno::is(error, errno::ENOENT)
        };
        let link = |name: &CStr| match follow {
            true => dir::link_to_referent(from.0, from.1, target_dir, name),
            false => dir::link(from.0, from.1, target_dir, name),
        };
        if existing.is_none() {
            match link(name) {
                // A name of the other case is not another run's: it is looked at again, and not replaced.
                Err(error)
                    if errno::is(&error, errno::EEXIST)
                        && guard::may_be_another((target_dir, name)) =>
                {
                    return Err(Failure { operation: Operation::Link, error });
                }
                Err(error) if again(&error, LINKS_MAX) => {}
                other => return other.map_err(Failure::of(Operation::Link)),
            }
        }
        let mut backs_up = existing.is_some();
        let identity = |dir, name, follow| {
            meta::of(dir, name, follow).map(|m| m.identity()).map_err(Failure::of(Operation::Link))
        };
        for left in (0..LINKS_MAX).rev() {
            if self.context.is_over() {
                break;
            }
            let temp = self.temp_names.make();
            match link(&temp) {
                Err(error) if again(&error, left) => continue,
                other => other.map_err(Failure::of(Operation::Link))?,
            }
            if backs_up
                && let Some(node) = node
                && let Err(failure) = self.back_up((target_dir, name), node)
            {
                drop(dir::unlink(target_dir, &temp));
                return Err(failure);
            }
            backs_up = false;
            let renamed = dir::rename(target_dir, &temp, target_dir, name);
            // rename(2) between two names of one file does nothing and keeps both.
            drop(dir::unlink(target_dir, &temp));
            renamed.map_err(Failure::of(Operation::Rename))?;
            if identity(from.0, from.1, follow)? == identity(target_dir, name, false)? {
                return Ok(());
            }
            // Random, because two runs that link to each other's names at the same pace would never finish.
            let random = RandomState::new().build_hasher().finish();
            std::thread::sleep(Duration::from_micros(random % (50 << (LINKS_MAX - left))));
        }
        Err(Failure::reason(Operation::Link, "another program keeps replacing the file"))
    }
}
