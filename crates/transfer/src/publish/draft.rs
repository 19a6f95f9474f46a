//! A target file from its creation to its final name.

use super::direct::{Direct, UNFINISHED};
use super::temp_name::TempNames;
use hakobu_core::control::Control;
use hakobu_core::unit::{Kind, Time};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, disk, errno, file, meta};
use std::ffi::{CStr, CString};
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// A directory and a name in it.
pub(crate) type DirName<'a> = (BorrowedFd<'a>, &'a CStr);

/// What all workers of a run share to create target files.
pub(crate) struct Drafts {
    /// Names of incomplete files.
    pub temp_names: TempNames,
    /// The rule for files that get their final name at once.
    pub direct: Direct,
    control: Control,
    /// `O_TMPFILE` works at the target, as far as is known.
    unnamed_works: AtomicBool,
}

/// A file being written, in a directory `D`. Who stops writing it has to call [`Draft::discard`].
pub(crate) struct Draft<D, F = OwnedFd> {
    /// The file.
    pub fd: F,
    /// The directory of its name, or where it gets one.
    pub dir: D,
    /// Its name now.
    pub name: DraftName,
}

/// The name of a file being written.
pub(crate) enum DraftName {
    /// The final name, just created by us.
    Final,
    /// No name yet.
    Unnamed,
    /// A temporary name.
    Temporary(CString),
    /// The final name of an existing file (`--inplace`, devices of cp).
    InPlace,
}

/// A complete entry under a temporary name; removed when dropped.
pub(crate) struct TempEntry<D: AsFd> {
    dir: D,
    /// `None` once it has its final name.
    name: Option<CString>,
}

/// What decides whether a new file may get its final name at once: its file system, its source's size in bytes and time.
pub(crate) type Early = (u64, u64, Time);

impl Drafts {
    /// Returns the state at the start of a run.
    pub fn new(direct: Direct, control: &Control) -> Drafts {
        let (temp_names, unnamed_works) = (TempNames::new(), AtomicBool::new(true));
        Drafts { temp_names, direct, control: control.clone(), unnamed_works }
    }

    /// Creates a file that was absent when it was looked for: under its final name if `early` allows it, else without a
    /// name if the file system has that, else under a temporary name.
    ///
    /// # Errors
    /// EEXIST if an entry appeared under the final name. The lease of this worker has ended.
    pub fn create<D: AsFd>(
        &self,
        dir: D,
        name: &CStr,
        early: Option<Early>,
        mode: u32,
    ) -> io::Result<Draft<D>> {
        if let Some((dev, size, mtime)) = early
            && self.direct.allows(size, mtime, (dir.as_fd(), dev), &self.temp_names)
        {
            return self.create_named(dir, name, mode);
        }
        if self.unnamed_works.load(Relaxed) {
            match file::create_unnamed(dir.as_fd(), mode) {
                Ok(fd) => return Ok(Draft { fd, dir, name: DraftName::Unnamed }),
                Err(error) if lacks_unnamed(&error) => self.unnamed_works.store(false, Relaxed),
                Err(error) => return Err(error),
            }
        }
        Draft::temporary(dir, self.temp_names.make(), mode)
    }

    /// Creates a file under its final name.
    pub fn create_named<D: AsFd>(&self, dir: D, name: &CStr, mode: u32) -> io::Result<Draft<D>> {
        self.check_lease()?;
        let fd = file::create_new(dir.as_fd(), name, mode)?;
        Ok(Draft { fd, dir, name: DraftName::Final })
    }

    /// Fails if the lease of this worker has ended: others do its work, and no file may get its name.
    pub fn check_lease(&self) -> io::Result<()> {
        if self.control.may_publish() { Ok(()) } else { Err(lease_ended()) }
    }
}

impl<D: AsFd> Draft<D> {
    /// Creates a file under a name that is not the final one.
    ///
    /// # Errors
    /// EEXIST if the name is in use.
    pub fn temporary(dir: D, name: CString, mode: u32) -> io::Result<Draft<D>> {
        let fd = file::create_new(dir.as_fd(), &name, mode)?;
        Ok(Draft { fd, dir, name: DraftName::Temporary(name) })
    }
}

impl<D: AsFd, F: AsFd> Draft<D, F> {
    /// Returns whether it has its final name already, so that naming it only closes it.
    pub fn is_public(&self) -> bool {
        matches!(self.name, DraftName::Final | DraftName::InPlace)
    }

    /// Gives a file without a name its final one.
    ///
    /// # Errors
    /// EEXIST if an entry appeared there; the file has no name then.
    pub fn link(&mut self, (dir, name): DirName<'_>) -> io::Result<()> {
        if let DraftName::Unnamed = self.name {
            file::publish(self.fd.as_fd(), dir, name)?;
            self.name = DraftName::Final;
        }
        Ok(())
    }

    /// Gives a file without a name a temporary one in its directory.
    ///
    /// # Errors
    /// The file has no name then.
    pub fn link_temporary(&mut self, temp_names: &TempNames) -> io::Result<()> {
        if let DraftName::Unnamed = self.name {
            let temp = temp_names.make();
            file::publish(self.fd.as_fd(), self.dir.as_fd(), &temp)?;
            self.name = DraftName::Temporary(temp);
        }
        Ok(())
    }

    /// Closes a complete file by `close`. Returns its temporary name, if it still has to get the final one, which is
    /// `target`.
    ///
    /// # Errors
    /// Those of writes that only close(2) reports; the file has lost its name, or is marked as unfinished.
    pub fn close(
        self,
        drafts: &Drafts,
        target: DirName<'_>,
        close: impl FnOnce(F) -> io::Result<()>,
    ) -> io::Result<Option<TempEntry<D>>> {
        let Draft { fd, dir, name } = self;
        let closed = close(fd);
        match name {
            DraftName::Temporary(name) => {
                let entry = TempEntry { dir, name: Some(name) };
                closed.map(|()| Some(entry))
            }
            DraftName::InPlace => {
                if closed.is_err()
                    && meta::of(target.0, target.1, false).is_ok_and(|it| it.kind == Kind::File)
                {
                    drop(meta::set_times(target.0, target.1, None, UNFINISHED));
                }
                closed.map(|()| None)
            }
            DraftName::Final | DraftName::Unnamed => {
                if closed.is_err() && !disown(target.0, target.1) {
                    drafts.direct.ledger.keep();
                }
                closed.map(|()| None)
            }
        }
    }

    /// Takes the name of an incomplete file away; what cannot be removed is left to the next run, which does not take
    /// it for finished. Returns whether a temporary name was removed. An existing file that was written into stays.
    pub fn discard(&self, drafts: &Drafts, target: DirName<'_>) -> bool {
        match &self.name {
            DraftName::Final => {
                // Another program may have put its own file there meanwhile.
                let own = meta::of_fd(self.fd.as_fd()).map(|own| own.identity()).ok();
                let there = meta::of(target.0, target.1, false).map(|there| there.identity()).ok();
                if own.is_some() && own == there && !disown(target.0, target.1) {
                    drafts.direct.ledger.keep();
                }
                false
            }
            DraftName::Temporary(name) => {
                drop(dir::unlink(self.dir.as_fd(), name));
                true
            }
            DraftName::Unnamed | DraftName::InPlace => false,
        }
    }
}

impl<D: AsFd> TempEntry<D> {
    /// Takes over an entry that has a temporary name in `dir`.
    pub fn new(dir: D, name: CString) -> TempEntry<D> {
        TempEntry { dir, name: Some(name) }
    }

    /// Returns its place now.
    pub fn place(&self) -> DirName<'_> {
        (self.dir.as_fd(), self.name.as_deref().unwrap_or_default())
    }

    /// Keeps it under its temporary name, which is returned.
    pub fn into_name(mut self) -> CString {
        self.name.take().unwrap_or_default()
    }

    /// Renames it to its final name. `fresh`: nothing had that name when it was looked for.
    ///
    /// # Errors
    /// As [`rename_into_place`]; it keeps its temporary name until it is dropped.
    pub fn rename(&mut self, (dir, name): DirName<'_>, fresh: bool) -> io::Result<()> {
        let (from, temp) = self.place();
        rename_into_place(from, temp, dir, name, fresh)?;
        self.name = None;
        Ok(())
    }
}

impl<D: AsFd> Drop for TempEntry<D> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // The first error is reported; the next run removes what remains.
            drop(dir::unlink(self.dir.as_fd(), name));
        }
    }
}

/// Returns the failure of a worker that was suspended for longer than its lease.
pub(crate) fn lease_ended() -> io::Error {
    io::Error::other("this worker stood still for too long; others do its work")
}

/// Returns whether cp writes into such an entry instead of replacing it: devices, FIFOs and sockets.
pub(crate) fn is_node(kind: Kind) -> bool {
    !matches!(kind, Kind::File | Kind::Symlink | Kind::Dir)
}

/// Returns whether the error means that the file system has no `O_TMPFILE`: NFS, FUSE and old overlays return
/// different ones.
pub(crate) fn lacks_unnamed(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(errno::EOPNOTSUPP | errno::EISDIR | errno::EINVAL | errno::ENOENT)
    )
}

/// Renames a finished temporary entry to its final name. If nothing existed when we checked (`fresh`), a later entry
/// must not be replaced: EEXIST, if the file system supports that.
pub(crate) fn rename_into_place(
    from: BorrowedFd<'_>,
    temp: &CStr,
    to: BorrowedFd<'_>,
    name: &CStr,
    fresh: bool,
) -> io::Result<()> {
    if fresh {
        match dir::rename_new(from, temp, to, name) {
            Err(error) if errno::is(&error, errno::EINVAL) => {}
            other => return other,
        }
        // FUSE and some network file systems cannot rename without replacing, but link.
        match dir::link(from, temp, to, name) {
            Ok(()) => {
                // A second name that stays is removed by the next run.
                drop(dir::unlink(from, temp));
                return Ok(());
            }
            Err(error) if errno::is(&error, errno::EEXIST) => return Err(error),
            // Without links the name is taken by an empty file first, which no later run takes for finished.
            Err(_) => {
                drop(file::create_new(to, name, 0o600)?);
                drop(meta::set_times(to, name, None, UNFINISHED));
            }
        }
    }
    dir::rename(from, temp, to, name)
}

/// Returns whether the error of link(2) means that a hard link is impossible: another file system, one without them,
/// too many links, or another user's file (`fs.protected_hardlinks`).
pub(crate) fn cannot_link(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(errno::EXDEV | errno::EMLINK | errno::EPERM | errno::EOPNOTSUPP)
    )
}

/// Removes a non-directory, if there is one.
pub(crate) fn unlink_any(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    match dir::unlink(dir, name) {
        Err(error) if errno::is(&error, errno::ENOENT) => Ok(()),
        other => other,
    }
}

/// Removes a file of ours from its final name, so that no later run takes it for finished; returns `false` if it
/// cannot be removed and gets the time of unfinished files instead.
fn disown(dir: BorrowedFd<'_>, name: &CStr) -> bool {
    let is_gone = unlink_any(dir, name).is_ok();
    if !is_gone {
        drop(meta::set_times(dir, name, None, UNFINISHED));
    }
    is_gone
}

/// Reserves blocks for `size` bytes before they are written.
///
/// # Errors
/// ENOSPC, EDQUOT and EFBIG, which writing would return later. Others mean that the file system does not support it.
pub(crate) fn reserve(to: BorrowedFd<'_>, size: u64) -> io::Result<()> {
    match file::reserve(to, size) {
        Err(error)
            if matches!(
                error.raw_os_error(),
                Some(errno::ENOSPC | errno::EDQUOT | errno::EFBIG)
            ) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// Reserves blocks for a large file, as [`reserve`] does, before its first byte moves. Not in memory: that would
/// allocate everything first, which takes a tenth of the time of writing it, and gains nothing.
pub(crate) fn reserve_ahead(to: BorrowedFd<'_>, size: u64) -> io::Result<()> {
    if disk::is_memory(to) { Ok(()) } else { reserve(to, size) }
}
