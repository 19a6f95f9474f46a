//! Reports of a run: results and failures of entries.

use super::engine::LocalEngine;
use super::entry::DirEntry;
use super::source::{SourceDir, SourceFile};
use crate::failure::Failure;
use crate::policy::Digest;
use crate::policy::filter::Deciding;
use hakobu_core::buffer::AlignedBytes;
use hakobu_core::control::Control;
use hakobu_core::error::{Cause, ErrorClass, Fatal, Operation, Problem, quoted};
use hakobu_core::event::{Change, Event, Item, Listener, Planned, Remark, Remarks, Skip};
use hakobu_core::unit::{Kind, Meta, Totals};
use hakobu_sys::{AsFd, BorrowedFd, errno, file};
use md5::Digest as _;
use parking_lot::Mutex;
use std::ffi::{CStr, OsStr};
use std::fmt::Write as _;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use xxhash_rust::xxh3::Xxh3;

/// The event of an entry.
#[derive(Default)]
pub(super) struct Report {
    pub(super) change: Change,
    pub(super) bytes_moved: u64,
    pub(super) link: Option<PathBuf>,
    pub(super) begun: Option<BeginTime>,
    /// Checksum of the content, if it is requested.
    pub(super) digest: Option<String>,
}

/// Converts the text of a symlink to a path.
pub(super) fn link_path(text: &CStr) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(text.to_bytes()))
}

/// Time when work on an entry began, if events of entries are requested.
#[derive(Clone, Copy)]
pub(super) struct BeginTime {
    instant: Instant,
    unix_s: f64,
}

/// Source and target of an entry, starting as the user typed them.
pub(super) type PathPair = (Option<PathBuf>, Option<PathBuf>);

/// Sends the events of a run, and keeps the error that stopped it.
pub(super) struct Reports<'a> {
    listener: &'a dyn Listener,
    control: &'a Control,
    items: bool,
    /// Events of unchanged entries are requested.
    pub(super) items_unchanged: bool,
    /// Events of entries are requested for a plan.
    pub(super) plans: bool,
    /// Other messages about entries.
    pub(super) remarks: Remarks,
    fatal: Mutex<Option<Fatal>>,
}

impl<'a> Reports<'a> {
    /// `items`: whether events of entries are requested, and whether also of unchanged ones; `plans`: for a plan;
    /// `remarks`: other messages about entries.
    pub(super) fn new(
        listener: &'a dyn Listener,
        control: &'a Control,
        items: (bool, bool),
        plans: bool,
        remarks: Remarks,
    ) -> Reports<'a> {
        let (items, items_unchanged) = items;
        let fatal = Mutex::default();
        Reports { listener, control, items, items_unchanged, plans, remarks, fatal }
    }

    /// Takes the error that stopped the run.
    pub(super) fn take_fatal(&self) -> Option<Fatal> {
        self.fatal.lock().take()
    }

    /// Returns whether events of entries are requested.
    pub(super) fn wants_items(&self) -> bool {
        self.items || self.plans
    }

    /// Counts and reports a failure of one entry. An error after which nothing can succeed ends the run.
    pub(super) fn fail(&self, totals: &mut Totals, failure: Failure, (source, target): PathPair) {
        let Failure { operation, error } = failure;
        let writes = matches!(
            operation,
            Operation::Create
                | Operation::MakeDir
                | Operation::Write
                | Operation::Rename
                | Operation::Link
                | Operation::Sync
        );
        let class = match error.raw_os_error() {
            Some(errno::ENOENT) if matches!(operation, Operation::Read | Operation::Stat) => {
                ErrorClass::Vanished
            }
            // A part of the target may be mounted read-only: as in rsync, the others go on.
            Some(errno::ENOSPC | errno::EDQUOT) if writes => ErrorClass::Fatal,
            _ => ErrorClass::Partial,
        };
        match class {
            ErrorClass::Vanished => totals.vanished += 1,
            _ => totals.failed += 1,
        }
        if class == ErrorClass::Fatal {
            let name = target.as_deref().or(source.as_deref()).map(quoted);
            let cause = Cause::System(std::io::Error::from_raw_os_error(
                error.raw_os_error().unwrap_or(errno::ENOSPC),
            ));
            let verb = operation.words();
            let message = format!("cannot {verb} {}: {cause}", name.unwrap_or_default());
            self.fatal.lock().get_or_insert_with(|| Fatal::new(11, message));
            self.control.stop();
        }
        self.problem(operation, (source, target), Failure::cause(error), class);
    }

    /// Reports a problem that is counted elsewhere.
    pub(super) fn problem(
        &self,
        operation: Operation,
        (source, target): PathPair,
        cause: Cause,
        class: ErrorClass,
    ) {
        self.listener.event(Event::Problem(&Problem { operation, source, target, cause, class }));
    }

    /// As `problem`, for a problem that no system call reported.
    pub(super) fn notice(
        &self,
        operation: Operation,
        paths: PathPair,
        reason: &'static str,
        class: ErrorClass,
    ) {
        self.problem(operation, paths, Cause::Reason(reason), class);
    }

    /// Reports that the old entry at a path in the transfer is kept at the path that `backup` makes of it.
    pub(super) fn backed_up(
        &self,
        path: &dyn Fn() -> Vec<u8>,
        backup: impl FnOnce(&[u8]) -> PathBuf,
    ) {
        if self.remarks.backups {
            let path = path();
            let backup = backup(&path);
            let path = Path::new(OsStr::from_bytes(&path));
            self.listener.event(Event::Remark(&Remark::BackedUp { path, backup }));
        }
    }

    /// Reports that an option excludes the entry at a path in the transfer.
    pub(super) fn skipped(&self, path: &dyn Fn() -> Vec<u8>, kind: Kind, why: Skip) {
        if self.remarks.skips {
            let path = path();
            let path = Path::new(OsStr::from_bytes(&path));
            self.listener.event(Event::Remark(&Remark::Skipped { path, kind, why }));
        }
    }

    /// Reports that a filter rule decides about the entry at a path in the transfer: with `at_target` whether it may be
    /// deleted, else whether it is transferred.
    pub(super) fn ruled(&self, path: &[u8], is_dir: bool, at_target: bool, rule: Deciding<'_>) {
        let Deciding { include, pattern, list } = rule;
        let path = Path::new(OsStr::from_bytes(path));
        let remark = Remark::Filtered { path, is_dir, at_target, include, pattern, list };
        self.listener.event(Event::Remark(&remark));
    }

    pub(super) fn warn(&self, message: String) {
        self.listener.event(Event::Warning(message));
    }

    /// Records that work on an entry begins.
    pub(super) fn begin(&self) -> Option<BeginTime> {
        self.items.then(|| BeginTime {
            instant: Instant::now(),
            unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |t| t.as_secs_f64()),
        })
    }

    /// Reports an entry for a plan.
    pub(super) fn planned(&self, planned: &Planned<'_>) {
        self.listener.event(Event::Planned(planned));
    }

    /// Reports what happened to an entry. `path`: its path in the transfer.
    pub(super) fn item(&self, path: &[u8], meta: &Meta, paths: PathPair, report: Report) {
        if !self.wants_items() {
            return;
        }
        let Report { change, bytes_moved, link, begun, digest } = report;
        let (source, target) = paths;
        self.listener.event(Event::Item(&Item {
            change,
            kind: meta.kind,
            path: Path::new(OsStr::from_bytes(path)),
            source,
            target,
            version: None,
            link,
            bytes: meta.size,
            bytes_moved,
            start_s: begun.map_or(0.0, |begun| begun.unix_s),
            took: begun.map(|begun| begun.instant.elapsed()).unwrap_or_default(),
            mode: meta.mode,
            mtime_s: meta.mtime.s,
            meta,
            digest,
            checksum: None,
        }));
    }
}

// Checksums of files for display (rsync's `%C`). The source is read a second time: the kernel may have copied its content
// without showing it to us.

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 128 << 10;

impl LocalEngine<'_> {
    /// Returns the checksum of an entry, if it is requested and rsync shows one: of transferred files, with
    /// `--checksum` of all.
    pub(super) fn digest_of(
        &self,
        entry: &DirEntry<'_>,
        source: &Meta,
        change: &Change,
    ) -> Option<String> {
        let digest = self.digest?;
        if source.kind != Kind::File || !(change.transferred || self.context.policy.checksum) {
            return None;
        }
        let (dir, name) = entry.source().ok()?;
        if let SourceDir::Far(dir) = dir {
            return self.digest_of_far(entry, dir.get(name).ok()?.hash, digest);
        }
        let opened = self.context.open_source((dir, name), entry.follow);
        // A device without a size may have no end.
        let limit = if self.context.policy.copy_devices { source.size } else { u64::MAX };
        let read = opened.and_then(|file| match file {
            SourceFile::Here(fd) => of(fd.as_fd(), digest, limit),
            SourceFile::Far(_) => Err(io::Error::from_raw_os_error(errno::EREMOTE)),
        });
        if read.is_err() {
            let reason = "its checksum cannot be shown: it cannot be read again";
            let paths = (Some(entry.source_path()), None);
            self.reports.notice(Operation::Read, paths, reason, ErrorClass::Notice);
        }
        read.ok()
    }

    /// Returns the checksum of a file of the other end: that which it has told, or that of the target.
    fn digest_of_far(
        &self,
        entry: &DirEntry<'_>,
        hash: Option<u128>,
        digest: Digest,
    ) -> Option<String> {
        if let (Some(hash), Digest::Xxh128) = (hash, digest) {
            return Some(format!("{hash:032x}"));
        }
        let (dir, name) = entry.place().filter(|_| self.context.is_real())?;
        let fd = file::open_read(dir, name, false).ok()?;
        of(fd.as_fd(), digest, u64::MAX).ok()
    }
}

/// Returns the checksum of an open file, of at most `limit` bytes, in hexadecimal, with its most significant byte first.
fn of(fd: BorrowedFd<'_>, digest: Digest, limit: u64) -> io::Result<String> {
    let mut buffer = AlignedBytes::zeroed(BUFFER_BYTES);
    let mut each = |take: &mut dyn FnMut(&[u8])| -> io::Result<()> {
        let mut left = limit;
        loop {
            let space = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            match file::read(fd, &mut buffer[..space])? {
                0 => return Ok(()),
                got => {
                    left -= got as u64;
                    take(buffer.get(..got).unwrap_or_default());
                }
            }
        }
    };
    match digest {
        Digest::Xxh128 => {
            let mut hash = Xxh3::new();
            each(&mut |bytes| hash.update(bytes))?;
            Ok(format!("{:032x}", hash.digest128()))
        }
        Digest::Md5 => {
            let mut hash = md5::Md5::new();
            each(&mut |bytes| hash.update(bytes))?;
            Ok(hash.finalize().iter().fold(String::new(), |mut out, byte| {
                let _ = write!(out, "{byte:02x}");
                out
            }))
        }
    }
}
