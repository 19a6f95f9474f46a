//! Backups of replaced or removed entries: beside the entry, or at the same path below another folder
//! (`--backup-dir`), on any file system.

use super::guard::{FileId, Guard, GuardedSources, path_below};
use super::report::Reports;
use crate::failure::{Failure, c_string};
use crate::policy::{Policy, is_unsafe_link};
use crate::publish::{self, DirName, TempEntry, TempNames};
use hakobu_core::error::Operation;
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, errno, file, meta, xattr};
use parking_lot::Mutex;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes copied at once if a backup goes to another file system.
const BUFFER_BYTES: usize = 256 << 10;

/// Most names that are tried for a backup.
const NAMES_MAX: usize = 8;

/// Length at which a name is not made longer.
const NAME_BYTES_MAX: usize = 250;

/// Returns the path of a folder below the target, if it is in it; it need not exist.
fn path_inside(path: &Path, target: &OwnedFd) -> Option<Vec<u8>> {
    let mut rest: Vec<&[u8]> = Vec::new();
    for here in path.ancestors() {
        let typed = if here.as_os_str().is_empty() { Path::new(".") } else { here };
        let opened = c_string(typed.as_os_str().as_bytes())
            .and_then(|typed| dir::open(dir::cwd(), &typed, true));
        if let Ok(fd) = opened {
            let names = path_below(target.as_fd(), fd.as_fd()).ok()??;
            let mut parts: Vec<&[u8]> = names.iter().map(|name| name.to_bytes()).collect();
            parts.extend(rest.iter().rev());
            return Some(parts.join(&b'/'));
        }
        rest.push(here.file_name()?.as_bytes());
    }
    None
}

/// The folder of `--backup-dir` and the target that it belongs to.
pub(super) struct BackupDir {
    path: PathBuf,
    /// Created with the first backup.
    top: Mutex<Option<OwnedFd>>,
    /// The top of the target: folders below the backup folder get modes and owners from there.
    target: Option<OwnedFd>,
    /// Its path below the target, if it is in it.
    inside: Option<Vec<u8>>,
    umask: u32,
}

impl BackupDir {
    pub(super) fn new(path: PathBuf, target: Option<OwnedFd>, umask: u32) -> BackupDir {
        let inside = target.as_ref().and_then(|target| path_inside(&path, target));
        BackupDir { path, top: Mutex::default(), target, inside, umask }
    }

    /// Returns whether a directory is the backup folder.
    fn is(&self, place: DirName<'_>) -> bool {
        let path = c_string(self.path.as_os_str().as_bytes());
        let own = path.and_then(|path| meta::of(dir::cwd(), &path, true));
        let there = meta::of(place.0, place.1, false);
        own.ok().zip(there.ok()).is_some_and(|(own, there)| own.identity() == there.identity())
    }

    fn top(&self, policy: &Policy) -> io::Result<OwnedFd> {
        let mut top = self.top.lock();
        if let Some(fd) = &*top {
            return fd.as_fd().try_clone_to_owned();
        }
        policy.links.make_dir(&self.path, 0o777 & !self.umask, true)?;
        let path = c_string(self.path.as_os_str().as_bytes())?;
        let fd = policy.links.open_dir(dir::cwd(), &path)?;
        let own = fd.as_fd().try_clone_to_owned()?;
        *top = Some(fd);
        Ok(own)
    }

    /// Returns the backup folder of an entry with this path in the transfer; creates missing ones.
    fn folder(&self, policy: &Policy, path: &[u8]) -> io::Result<OwnedFd> {
        let above = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        let path = path.get(..above).unwrap_or_default();
        let mut here = self.top(policy)?;
        let mut beside =
            self.target.as_ref().map(|fd| fd.as_fd().try_clone_to_owned()).transpose()?;
        for part in path.split(|byte| *byte == b'/').filter(|part| !part.is_empty()) {
            let part = c_string(part)?;
            beside = beside.and_then(|fd| dir::open(fd.as_fd(), &part, true).ok());
            here = match dir::open(here.as_fd(), &part, false) {
                Ok(fd) => fd,
                Err(error) if errno::is(&error, errno::ENOENT) => {
                    self.make(here.as_fd(), &part, beside.as_ref())?
                }
                Err(error) => return Err(error),
            };
        }
        Ok(here)
    }

    fn make(
        &self,
        above: BorrowedFd<'_>,
        name: &CStr,
        beside: Option<&OwnedFd>,
    ) -> io::Result<OwnedFd> {
        let like = beside.map(meta::of_fd).transpose()?;
        match dir::create(above, name, 0o700) {
            Err(error) if !errno::is(&error, errno::EEXIST) => return Err(error),
            // Another worker created it first, and sets its mode.
            Err(_) => return dir::open(above, name, false),
            Ok(()) => {}
        }
        let fd = dir::open(above, name, false)?;
        let mode = like.map_or(0o777 & !self.umask, |like| like.mode);
        if let Some(like) = like
            && hakobu_sys::process::euid() == 0
        {
            meta::set_owner_fd(fd.as_fd(), Some(like.uid), Some(like.gid))?;
        }
        meta::set_mode_fd(fd.as_fd(), mode)?;
        Ok(fd)
    }
}

/// Keeps backups of replaced or removed entries.
pub(super) struct Backups<'a> {
    policy: &'a Policy,
    dir: Option<BackupDir>,
    sources: Arc<GuardedSources>,
    reports: Arc<Reports<'a>>,
}

impl<'a> Backups<'a> {
    pub(super) fn new(
        policy: &'a Policy,
        dir: Option<BackupDir>,
        sources: Arc<GuardedSources>,
        reports: Arc<Reports<'a>>,
    ) -> Backups<'a> {
        Backups { policy, dir, sources, reports }
    }

    pub(super) fn sources(&self) -> &GuardedSources {
        &self.sources
    }

    /// Returns the name of a backup beside its file. The name of another entry that the source has is passed over, and
    /// so is the backup of that one: a backup never replaces what the run has placed.
    fn beside(&self, name: &CStr, path: &[u8]) -> io::Result<CString> {
        let suffix = &self.policy.suffix;
        let above = path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
        let above = path.get(..above).unwrap_or_default();
        let is_free = |name: &[u8]| !self.sources.provide(&[above, name].concat());
        let mut backup = [name.to_bytes(), suffix].concat();
        let mut free = is_free(&backup);
        for round in 0.. {
            if free || suffix.is_empty() || round > NAMES_MAX {
                break;
            }
            backup.extend(suffix);
            // The name without the last suffix is another entry's: this one is for its backup.
            while !is_free(&backup) && backup.len() < NAME_BYTES_MAX {
                backup.extend(suffix);
            }
            backup.extend(suffix);
            free = is_free(&backup);
        }
        c_string(&backup)
    }

    /// Reports that the entry at a path in the transfer has its backup.
    pub(super) fn report(&self, path: &dyn Fn() -> Vec<u8>) {
        let policy = self.policy;
        self.reports.backed_up(path, |path| {
            let dir = policy.backup_dir.as_deref().unwrap_or(Path::new(""));
            let mut backup: OsString = dir.join(OsStr::from_bytes(path)).into();
            backup.push(OsStr::from_bytes(&policy.suffix));
            backup.into()
        });
    }

    /// Returns whether backups are beside their files.
    pub(super) fn are_beside(&self) -> bool {
        self.policy.backup && self.dir.is_none()
    }

    /// Returns whether a directory of the target contains the backups: it is never extraneous.
    pub(super) fn is_folder(&self, place: DirName<'_>) -> bool {
        self.policy.backup && self.dir.as_ref().is_some_and(|dir| dir.is(place))
    }

    /// Keeps the current entry of a name, which is about to be replaced, under its backup name as well. Symlinks that
    /// `--safe-links` would not copy are not kept. `caseless`: the directory, if it ignores case: no name of this run may
    /// be taken for that of a backup there. `named` gets the name of a backup beside, before anything has it.
    ///
    /// # Errors
    /// The name has no backup, and must not be replaced.
    pub(super) fn keep(
        &self,
        place: DirName<'_>,
        path: &dyn Fn() -> Vec<u8>,
        temp_names: &TempNames,
        caseless: Option<(&Guard, FileId)>,
        named: &dyn Fn(&CStr),
    ) -> Result<(), Failure> {
        if !self.policy.backup || self.is_unsafe(place, path) {
            return Ok(());
        }
        if self.dir.is_none() {
            let backup = self.beside(place.1, &path()).map_err(Failure::of(Operation::Rename))?;
            if let Some((guard, directory)) = caseless {
                let ours =
                    |there: Meta| guard.is_claimed(directory, there.identity()) && there.nlink < 2;
                if meta::of(place.0, &backup, false).is_ok_and(ours) {
                    let reason = "its backup would have the name of another entry of this run";
                    return Err(Failure::reason(Operation::Rename, reason));
                }
            }
            named(&backup);
            publish::back_up_as(self.policy, place.0, place.1, &backup)?;
            if let Some((guard, directory)) = caseless
                && let Ok(there) = meta::of(place.0, &backup, false)
            {
                guard.claim(directory, there.identity(), &backup);
            }
        } else if let (Some(folder), name) = self.place(place.1, &path())? {
            self.keep_elsewhere(place, (folder.as_fd(), &name), temp_names)
                .map_err(Failure::of(Operation::Rename))?;
        }
        self.report(path);
        Ok(())
    }

    /// Returns the folder of a file's backup (`None` for its own) and the name there, which is free or a file now.
    ///
    /// # Errors
    /// The folder cannot be created, or the name is occupied.
    pub(super) fn place(
        &self,
        name: &CStr,
        path: &[u8],
    ) -> Result<(Option<OwnedFd>, CString), Failure> {
        let made = || Failure::of(Operation::Rename);
        let Some(dir) = &self.dir else {
            return Ok((None, self.beside(name, path).map_err(made())?));
        };
        let backup = publish::backup_name(self.policy, name).map_err(made())?;
        if let Some(inside) = &dir.inside {
            let path = [inside, &b"/"[..], path, &self.policy.suffix].concat();
            if self.sources.provide(&path) {
                let reason = "its backup would have the name of another entry of the source";
                return Err(Failure::reason(Operation::Rename, reason));
            }
        }
        let folder = dir.folder(self.policy, path).map_err(Failure::of(Operation::MakeDir))?;
        match self.sources.hold((folder.as_fd(), &backup)) {
            Ok(true) => {
                let reason = "its backup would replace a file of a source";
                return Err(Failure::reason(Operation::Rename, reason));
            }
            Err(error) if !errno::is(&error, errno::ENOENT) => return Err(made()(error)),
            _ => {}
        }
        // An empty directory is removed, as for a file; a full one holds older backups.
        if publish::unlink_any(folder.as_fd(), &backup).is_err() {
            dir::rmdir(folder.as_fd(), &backup).map_err(made())?;
        }
        Ok((Some(folder), backup))
    }

    /// Keeps an entry in the backup folder: by a hard link, or as a copy if links are impossible.
    fn keep_elsewhere(
        &self,
        place: DirName<'_>,
        (folder, name): DirName<'_>,
        temp_names: &TempNames,
    ) -> io::Result<()> {
        match dir::link(place.0, place.1, folder, name) {
            Err(error) if publish::cannot_link(&error) => {}
            other => return other,
        }
        let mut copy = TempEntry::new(folder, temp_names.make());
        self.copy(place, copy.place())?;
        copy.rename((folder, name), false)
    }

    /// Copies a non-directory, with its mode, owner and times, and the extended attributes that the run keeps.
    fn copy(&self, from: DirName<'_>, to: DirName<'_>) -> io::Result<()> {
        let old = meta::of(from.0, from.1, false)?;
        let root = hakobu_sys::process::euid() == 0;
        let (uid, gid) = (root.then_some(old.uid), root.then_some(old.gid));
        match old.kind {
            Kind::Symlink => dir::symlink(&dir::read_link(from.0, from.1)?, to.0, to.1)?,
            Kind::File => {
                let source = file::open_read(from.0, from.1, false)?;
                let target = file::create_new(to.0, to.1, 0o600)?;
                let mut buffer = vec![0; BUFFER_BYTES];
                loop {
                    let got = file::read(source.as_fd(), &mut buffer)?;
                    if got == 0 {
                        break;
                    }
                    file::write_all(target.as_fd(), buffer.get(..got).unwrap_or_default())?;
                }
                let names = xattr::list(source.as_fd(), &mut buffer)?.to_vec();
                let names = names.split_inclusive(|byte| *byte == 0);
                let rules = self.policy.xattr_rules();
                for name in names.filter_map(|name| CStr::from_bytes_with_nul(name).ok()) {
                    if self.policy.copies_xattr(name.to_bytes(), root, &rules) {
                        let value = xattr::get(source.as_fd(), name, &mut buffer)?;
                        xattr::set(target.as_fd(), name, value)?;
                    }
                }
                file::close(target)?;
            }
            kind => dir::make_node(to.0, to.1, kind, 0o600, old.rdev)?,
        }
        meta::set_owner(to.0, to.1, uid, gid)?;
        if old.kind != Kind::Symlink {
            meta::set_mode(to.0, to.1, old.mode)?;
        }
        let dev = meta::of(to.0, to.1, false)?.dev;
        meta::stamp(dev, to.0, to.1, None, old.mtime)
    }

    /// Returns whether a name is a symlink that `--safe-links` skips.
    pub(super) fn is_unsafe(&self, place: DirName<'_>, path: &dyn Fn() -> Vec<u8>) -> bool {
        self.policy.safe_links
            && dir::read_link(place.0, place.1)
                .is_ok_and(|text| is_unsafe_link(text.to_bytes(), &path()))
    }
}
