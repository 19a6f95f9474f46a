//! How local copies create, name and give up their files by the rules of [`crate::publish`]: also in the directory of
//! `--temp-dir`, with backups, all at the end (`--delay-updates`), and with the parts of interrupted files
//! (`--partial`, `--partial-dir`).

use super::backup::Backups;
use super::engine::Context;
use super::engine::Station;
use super::guard;
use super::target_dir::Node;
use crate::failure::{Failure, Stop, c_string};
use crate::publish::{
    DirName, Direct, Draft, DraftName, Drafts, TempEntry, TempNames, UNFINISHED, is_node,
};
use hakobu_core::error::Operation;
use hakobu_core::meter::Phase;
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, errno, file, meta, stdio};
use parking_lot::Mutex;
use std::ffi::{CStr, CString};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of tries to link to a name that other runs replace meanwhile: several runs with one target need
/// that many until their pauses, which grow to 200 ms, differ enough. Ends early if the run is asked to stop.
const LINKS_MAX: u32 = 12;

/// A target file being copied.
pub(super) struct LocalDraft<'a> {
    pub(super) draft: Draft<BorrowedFd<'a>>,
    /// Its final place.
    target: DirName<'a>,
    /// The mode it was created with.
    pub(super) mode: u32,
    /// It was created in `--temp-dir`.
    pub(super) foreign: bool,
}

impl LocalDraft<'_> {
    /// Returns whether it is an existing file or device.
    pub(super) fn is_in_place(&self) -> bool {
        matches!(self.draft.name, DraftName::InPlace)
    }
}

/// A finished file that waits for its name.
pub(super) struct Delayed {
    /// Its directory, which it holds until then.
    pub(super) node: Arc<Node>,
    /// Its name.
    pub(super) name: CString,
    temp: CString,
    /// The temporary name is in `--temp-dir`.
    foreign: bool,
    existing: Option<Meta>,
}

/// Creates target files and links their names. One instance serves all workers.
pub(super) struct Publisher<'a> {
    context: Context<'a>,
    /// Directory of `--temp-dir`, with its device.
    temp_dir: Option<(OwnedFd, u64)>,
    pub(super) drafts: Drafts,
    /// Backups of replaced or removed entries.
    pub(super) backups: Backups<'a>,
    /// Finished files that keep temporary names until all are finished.
    delayed: Mutex<Vec<Delayed>>,
}

impl<'a> Publisher<'a> {
    pub(super) fn new(
        context: Context<'a>,
        temp_dir: Option<(OwnedFd, u64)>,
        backups: Backups<'a>,
        direct: Direct,
    ) -> Publisher<'a> {
        let drafts = Drafts::new(direct, context.control);
        Publisher { context, temp_dir, drafts, backups, delayed: Mutex::default() }
    }

    /// Returns the names for temporary files, if any may be created.
    pub(super) fn probes(&self) -> Option<&TempNames> {
        self.context.is_real().then_some(&self.drafts.temp_names)
    }

    /// Opens a file for the content of `source`, on the file system `dev`: a new one, or the existing one
    /// (`existing`) if that is written into.
    ///
    /// # Errors
    /// EEXIST if an entry appeared under the final name.
    pub(super) fn open<'d>(
        &'d self,
        target: DirName<'d>,
        dev: u64,
        source: &Meta,
        existing: Option<&Meta>,
        mode: u32,
    ) -> Result<LocalDraft<'d>, Failure> {
        let policy = self.context.policy;
        let (dir, name) = target;
        let create = Failure::of(Operation::Create);
        let here = |draft| LocalDraft { draft, target, mode, foreign: false };
        let Some(there) = existing else {
            let draft = match (&self.temp_dir, policy.inplace) {
                (_, true) => self.drafts.create_named(dir, name, mode),
                (None, false) => {
                    let early = Some((dev, source.size, source.mtime));
                    self.drafts.create(dir, name, early, mode)
                }
                (Some(_), false) => return self.open_temporary(target, dev, mode).map_err(create),
            };
            return draft.map(here).map_err(create);
        };
        let writable_node = policy.writes_through() && is_node(there.kind);
        let device = writable_node || policy.write_devices && there.kind.is_device();
        let into = policy.inplace && there.kind == Kind::File;
        if device || into || policy.appends(source, there) {
            let stop = || self.context.is_over();
            let fd = match there.kind {
                Kind::Fifo => stdio::open_fifo(dir, name, &stop),
                _ => file::open_write(dir, name),
            };
            return Ok(here(Draft { fd: fd.map_err(create)?, dir, name: DraftName::InPlace }));
        }
        self.open_temporary(target, dev, mode).map_err(create)
    }

    /// A temporary directory on another volume could not be renamed from: the target's own directory does the same
    /// there.
    fn open_temporary<'d>(
        &'d self,
        target: DirName<'d>,
        dev: u64,
        mode: u32,
    ) -> io::Result<LocalDraft<'d>> {
        let (dir, mode, foreign) = match &self.temp_dir {
            Some((fd, own)) if *own == dev => (fd.as_fd(), 0o600, true),
            _ => (target.0, mode, false),
        };
        let draft = Draft::temporary(dir, self.drafts.temp_names.make(), mode)?;
        Ok(LocalDraft { draft, target, mode, foreign })
    }

    /// Closes a finished file and gives it its name, as far as it has none yet; with `delays` at the end of the run.
    ///
    /// # Errors
    /// With nothing left under the final name that a later run would take for finished.
    pub(super) fn publish(
        &self,
        local: LocalDraft<'_>,
        existing: Option<&Meta>,
        node: &Arc<Node>,
        delays: bool,
    ) -> Result<(), Stop> {
        let delays = delays && !local.is_in_place();
        let LocalDraft { mut draft, target, foreign, .. } = local;
        let write = Failure::of(Operation::Write);
        if delays {
            let linked = draft.link_temporary(&self.drafts.temp_names);
            linked.map_err(Failure::of(Operation::Create))?;
            let entry = draft.close(&self.drafts, target, file::close).map_err(write)?;
            if let Some(entry) = entry {
                node.hold();
                let (node, name) = (Arc::clone(node), target.1.to_owned());
                let (temp, existing) = (entry.into_name(), existing.copied());
                self.delayed.lock().push(Delayed { node, name, temp, foreign, existing });
            }
            return Ok(());
        }
        if let Err(ended) = self.check_lease() {
            // If the final name is in use, it is another worker's by now.
            if let DraftName::Temporary(_) = &draft.name {
                draft.discard(&self.drafts, target);
            }
            return Err(ended.into());
        }
        draft.link(target).map_err(Failure::of(Operation::Create))?;
        let entry = draft.close(&self.drafts, target, file::close).map_err(write)?;
        if let Some(mut entry) = entry {
            self.rename(&mut entry, target, existing, node)?;
        }
        self.forget_partial(target);
        Ok(())
    }

    /// Renames a finished temporary entry to its final name, after the backup of an existing one.
    pub(super) fn rename(
        &self,
        entry: &mut TempEntry<BorrowedFd<'_>>,
        target: DirName<'_>,
        existing: Option<&Meta>,
        node: &Node,
    ) -> Result<(), Failure> {
        self.check_lease()?;
        let taken = existing.zip(node.target_dir()).filter(|(_, info)| info.caseless);
        let _alone = taken.map(|(_, info)| self.context.guard.replacing(info.meta.identity()));
        if let Some((existing, info)) = taken {
            self.claim_replacement(entry.place(), target, existing, info.meta.identity())?;
        }
        if existing.is_some() {
            self.back_up(target, node)?;
        }
        entry.rename(target, existing.is_none()).map_err(Failure::of(Operation::Rename))
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
    fn check_lease(&self) -> Result<(), Failure> {
        self.drafts.check_lease().map_err(Failure::of(Operation::Rename))
    }

    /// Keeps the current entry of a name under its backup name as well, if backups are requested.
    pub(super) fn back_up(&self, place: DirName<'_>, node: &Node) -> Result<(), Failure> {
        let info = node.target_dir().filter(|info| info.caseless);
        let caseless = info.map(|info| (self.context.guard, info.meta.identity()));
        self.backups.keep(place, &|| node.path_of(place.1), &self.drafts.temp_names, caseless)
    }

    /// Takes all files that wait for their names.
    pub(super) fn take_delayed(&self) -> Vec<Delayed> {
        std::mem::take(&mut self.delayed.lock())
    }

    /// Gives a finished file its name, or with `gives_up` removes it.
    ///
    /// # Errors
    /// It could not be named, and is gone.
    pub(super) fn name_delayed(&self, delayed: &Delayed, gives_up: bool) -> Result<(), Failure> {
        let node = &delayed.node;
        let lost = || Failure::of(Operation::Rename);
        let fds = node.fds().map_err(lost())?;
        let gone = || lost()(io::Error::from_raw_os_error(errno::ENOENT));
        let target = fds.target().ok_or_else(gone)?;
        let temp_dir: Option<BorrowedFd<'_>> = self.temp_dir.as_ref().map(|(fd, _)| fd.as_fd());
        let dir = temp_dir.filter(|_| delayed.foreign).unwrap_or(target);
        let mut entry = TempEntry::new(dir, delayed.temp.clone());
        if gives_up {
            return Ok(());
        }
        let place = (target, &*delayed.name);
        self.rename(&mut entry, place, delayed.existing.as_ref(), node)?;
        self.forget_partial(place);
        Ok(())
    }

    /// Removes a temporary name of a dead process; returns whether it was one. A name that cannot be removed is left
    /// to the next run.
    pub(super) fn remove_leftover(&self, dir: BorrowedFd<'_>, name: &CStr) -> bool {
        self.context.is_real()
            && self.drafts.temp_names.is_abandoned(name)
            && dir::unlink(dir, name).is_ok()
    }

    /// Removes leftovers from the directory of `--temp-dir`.
    pub(super) fn clear_temp_dir(&self) {
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
    pub(super) fn give_up(&self, local: LocalDraft<'_>, stop: &Stop, node: &Node) -> bool {
        let policy = self.context.policy;
        let may_keep = policy.partial && matches!(stop, Stop::Asked | Stop::Failed(_));
        if may_keep
            && meta::of_fd(&local.draft.fd).is_ok_and(|meta| meta.size > 0)
            && meta::set_times_fd(&local.draft.fd, None, UNFINISHED).is_ok()
        {
            if local.draft.is_public() {
                return false;
            }
            if self.keep_partial(&local, node).is_ok() {
                // A new folder has changed the directory.
                return policy.partial_dir.is_some();
            }
        }
        // Content that was not written or flushed must not have the final times.
        if local.is_in_place()
            && let Stop::Failed(failure) = stop
            && matches!(failure.operation, Operation::Write | Operation::Sync)
            && meta::of_fd(&local.draft.fd).is_ok_and(|there| there.kind == Kind::File)
        {
            drop(meta::set_times_fd(&local.draft.fd, None, UNFINISHED));
        }
        // The first error is reported; the next run removes what remains.
        local.draft.discard(&self.drafts, local.target)
    }

    /// Gives an incomplete file its final name, after the backup of what has it, or that name in the folder of
    /// `--partial-dir`.
    fn keep_partial(&self, local: &LocalDraft<'_>, node: &Node) -> io::Result<()> {
        let (draft, (target, name)) = (&local.draft, local.target);
        let Some(path) = &self.context.policy.partial_dir else {
            let DraftName::Temporary(temp) = &draft.name else {
                return file::publish(draft.fd.as_fd(), target, name);
            };
            let there =
                !meta::of(target, name, false).is_err_and(|error| errno::is(&error, errno::ENOENT));
            if there && self.back_up(local.target, node).is_err() {
                return Err(io::Error::from_raw_os_error(errno::EEXIST));
            }
            return dir::rename(draft.dir, temp, target, name);
        };
        let folder = match self.open_partial(target, path) {
            Err(error) if errno::is(&error, errno::ENOENT) => {
                if path.is_absolute() {
                    self.context.policy.links.make_dir(path, 0o700, true)?;
                } else {
                    dir::create(target, &c_string(path.as_os_str().as_bytes())?, 0o700)?;
                }
                self.open_partial(target, path)?
            }
            other => other?,
        };
        match &draft.name {
            DraftName::Temporary(temp) => dir::rename(draft.dir, temp, folder.as_fd(), name),
            _ => {
                drop(dir::unlink(folder.as_fd(), name));
                file::publish(draft.fd.as_fd(), folder.as_fd(), name)
            }
        }
    }

    fn open_partial(&self, target: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
        let name = c_string(path.as_os_str().as_bytes())?;
        match path.is_absolute() {
            true => self.context.policy.links.open_dir(dir::cwd(), &name),
            false => dir::open(target, &name, false),
        }
    }

    /// Removes the kept part of a file that is complete now. A failure is harmless.
    fn forget_partial(&self, (target, name): DirName<'_>) {
        let Some(path) = &self.context.policy.partial_dir else { return };
        let Ok(folder) = self.open_partial(target, path) else { return };
        if dir::unlink(folder.as_fd(), name).is_ok()
            && !path.is_absolute()
            && let Ok(own) = c_string(path.as_os_str().as_bytes())
        {
            drop(dir::rmdir(target, &own));
        }
    }

    /// Creates a hard link to `from`, with `follow` to what a symlink there leads to, replacing an existing entry
    /// (`target`), which gets a backup if its directory is given.
    pub(super) fn link(
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
        let again = |error: &io::Error, left: u32| {
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
            let temp = self.drafts.temp_names.make();
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
