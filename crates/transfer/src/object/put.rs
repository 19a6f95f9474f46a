//! Uploads. A small file is one read, one checksum and one request; a larger one is sent in parts.

use super::copy::condition;
use super::entry::{CHANGED_WHILE_READ, Failed, KnownSum, MoveResult, MoveTarget, Moving, Step};
use super::parts::{Checkpoint, Cut, joined, unusable};
use super::queue::{Large, Permits};
use super::runtime::{Core, ObjectEngine, PooledBuffer, blocking};
use super::{Entry, Root, Side, metadata, parts as checkpoint};
use crate::journal::{self, ObjectRecord, PartsLocation, RecordCheck, Source};
use crate::policy::{Policy, Symlinks};
use bytes::Bytes;
use hakobu_core::error::Operation;
use hakobu_core::meter::{Activity, Phase};
use hakobu_core::unit::{Kind, Meta};
use hakobu_s3::ops::{self, Headers, Part, put_object};
use hakobu_s3::{Algorithm, Checksum, ErrorKind, Hasher};
use hakobu_sys::file::{self, CachedRead, Through, read_cached};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, disk, errno, meta};
use http::HeaderValue;
use http::header::{CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH};
use parking_lot::Mutex;
use std::cell::Cell;
use std::ffi::CString;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of reads of a file that changes while it is read.
const READS_MAX: usize = 3;

/// Uploads a small file, or begins with a large one.
pub(super) async fn begin(core: &Core<'_>, moving: &Arc<Moving>) -> Result<Step, Failed> {
    let Root::Local { dir, .. } = &moving.pair.source else {
        return Err(Failed::Reason(Operation::Read, Side::Source, "it is not a local file"));
    };
    let meta = &moving.entry.meta;
    match meta.kind {
        Kind::Dir => put(core, moving, Bytes::new(), None, meta).await.map(Step::Done),
        Kind::Symlink if core.engine.policy().symlinks == Symlinks::Keep => {
            link(core, moving, dir.as_fd()).await.map(Step::Done)
        }
        _ => file(core, moving, dir.as_fd()).await,
    }
}

/// Uploads a symlink as s3fs stores it: its text is the content, its type is in the metadata.
async fn link(core: &Core<'_>, moving: &Moving, dir: BorrowedFd<'_>) -> Result<MoveResult, Failed> {
    let (text, meta) = open_link(dir, &moving.entry.name).map_err(failed)?;
    if meta.kind != Kind::Symlink {
        return Err(Failed::Reason(Operation::Read, Side::Source, "it is no longer a symlink"));
    }
    let body = Bytes::from(text.into_bytes());
    put(core, moving, body, None, &meta).await
}

async fn file(core: &Core<'_>, moving: &Arc<Moving>, dir: BorrowedFd<'_>) -> Result<Step, Failed> {
    let through = through(core.engine.policy(), &moving.entry);
    let opened = match waits(moving.entry.meta.dev) {
        true => elsewhere(moving, through).await,
        false => open_file(dir, &moving.entry.name, through),
    };
    let (file, mut now) = opened.map_err(failed)?;
    let source = PartSource::new(file, now.dev);
    for _ in 0..READS_MAX {
        if now.kind != Kind::File {
            let why = "it is no longer a regular file";
            return Err(Failed::Reason(Operation::Read, Side::Source, why));
        }
        if let Some(cut) = PartLimits::of(core.engine).cut(now.size) {
            return begin_parts(core, moving, source, &now, cut).await;
        }
        match whole(core, moving, &source, &now).await? {
            Ok(done) => return Ok(Step::Done(done)),
            Err(changed) => now = changed,
        }
    }
    Err(Failed::Reason(Operation::Read, Side::Source, CHANGED_WHILE_READ))
}

/// Uploads with one read and one request; the inner error is the file's new state if it changed.
async fn whole(
    core: &Core<'_>,
    moving: &Moving,
    source: &PartSource,
    now: &Meta,
) -> Result<Result<MoveResult, Meta>, Failed> {
    // The room is held until the server has the object.
    let _room = core.room(now.size).await;
    let wanted = UploadRange {
        offset: 0,
        len: now.size as usize,
        // Files of /proc have size 0: an extra byte shows that they are not empty.
        is_whole: true,
        algorithm: core.upload_checksum(),
    };
    let filled = fill(&core.doing, source, wanted).await.map_err(read_failed)?;
    let after = filled.after.map_or_else(|| meta::of_fd(source), Ok).map_err(read_failed)?;
    if filled.body.len() as u64 != now.size || !unchanged(now, &after) {
        return Ok(Err(after));
    }
    put(core, moving, filled.body, filled.checksum, now).await.map(Ok)
}

/// Sends one request. Computes `checksum` if the caller has none. The key of a directory ends with a slash.
async fn put(
    core: &Core<'_>,
    moving: &Moving,
    body: Bytes,
    checksum: Option<Checksum>,
    meta: &Meta,
) -> Result<MoveResult, Failed> {
    let MoveTarget { client, bucket, mut key } = MoveTarget::of(core, moving)?;
    if meta.kind == Kind::Dir && !key.ends_with(b"/") {
        key.push(b'/');
    }
    let bytes = body.len() as u64;
    let checksum =
        checksum.or_else(|| core.upload_checksum().map(|which| Checksum::of(which, &body)));
    let headers = headers(core, moving, meta, &body);
    let begun = Instant::now();
    match put_object(client, bucket, &key, body, checksum.as_ref(), &headers).await {
        Ok(put) => {
            if meta.kind != Kind::Dir {
                core.wrote(moving, &headers, bytes, begun, &put);
            }
            let kind = (meta.kind != Kind::File).then_some(meta.kind);
            let bytes = if kind.is_none() { bytes } else { 0 };
            let sum = checksum.as_ref().and_then(KnownSum::of);
            Ok(MoveResult { bytes, kind, sum, ..MoveResult::default() })
        }
        Err(error) => refused(core, error),
    }
}

// Opens files to upload, below the root and without following symlinks unless requested.

/// Returns which symlinks are allowed in the path of an entry.
pub(super) fn through(policy: &Policy, entry: &Entry) -> Through {
    // A named argument that was followed when it was examined.
    let argument =
        policy.follow_args && entry.meta.kind == Kind::File && !entry.name.contains(&b'/');
    let follows = policy.symlinks == Symlinks::Follow || policy.copy_dirlinks;
    match follows || argument {
        false => Through::Nothing,
        true if policy.safe_links && !argument => Through::Inside,
        true => Through::Anything,
    }
}

/// Opens a file and returns its current metadata.
pub(super) fn open_file(
    dir: BorrowedFd<'_>,
    name: &[u8],
    through: Through,
) -> io::Result<(OwnedFd, Meta)> {
    let file = file::open_source(dir, name, through)?;
    let now = meta::of_fd(&file)?;
    Ok((file, now))
}

/// As `file`, on a helper thread: for slow devices, which would block the core's other connections
/// ([`waits`]).
pub(super) async fn elsewhere(
    moving: &Arc<Moving>,
    through: Through,
) -> io::Result<(OwnedFd, Meta)> {
    let moving = Arc::clone(moving);
    let work = move || match &moving.pair.source {
        Root::Local { dir, .. } => open_file(dir.as_fd(), &moving.entry.name, through),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    };
    blocking(work).await
}

/// Returns the text of a symlink and its current metadata.
pub(super) fn open_link(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<(CString, Meta)> {
    let link = file::open_source_name(dir, name)?;
    let now = meta::of_fd(&link)?;
    if now.kind != Kind::Symlink {
        return Ok((CString::default(), now));
    }
    Ok((file::link_text(link.as_fd())?, now))
}

/// Returns the failure of a listed entry that could not be opened.
pub(super) fn failed(error: io::Error) -> Failed {
    if errno::is(&error, errno::ENOENT) {
        return Failed::Vanished(Operation::Read);
    }
    Failed::File(Operation::Read, Side::Source, error)
}

// Shared by whole and multipart uploads: the headers and conditions of a request that creates an object, and the
// failures of both ends.

/// Handles the failure of a request that would have created the object.
pub(super) fn refused(core: &Core<'_>, error: hakobu_s3::Error) -> Result<MoveResult, Failed> {
    let setup = &core.engine.setup;
    let refused = error.kind == ErrorKind::Precondition;
    let existed = refused && setup.options.if_none_match && setup.policy.ignore_existing;
    if existed || refused && setup.control.is_leased() {
        return Ok(MoveResult::LEFT_OUT);
    }
    Err(Failed::at_target(Operation::Write)(error))
}

/// Returns all headers of the object for an entry. `start` is the beginning of its content.
pub(super) fn headers(core: &Core<'_>, moving: &Moving, meta: &Meta, start: &[u8]) -> Headers {
    let options = core.engine.setup.options;
    let mut headers = Vec::with_capacity(options.headers.len() + 6);
    headers.extend(options.headers.iter().cloned());
    if guesses(core, meta) {
        let guess = of_name(&moving.entry.name).or_else(|| of_content(start));
        headers.extend(guess.map(|value| (CONTENT_TYPE, value)));
    }
    metadata::write(meta, core.engine.policy(), options, &mut headers);
    headers.extend(condition(core, moving));
    headers
}

fn guesses(core: &Core<'_>, meta: &Meta) -> bool {
    let options = core.engine.setup.options;
    let typed = || options.headers.iter().any(|(name, _)| name == CONTENT_TYPE);
    options.guess_content_type && meta.kind == Kind::File && !typed()
}

/// Returns whether the content decides on a header of the object.
pub(super) fn needs_content(core: &Core<'_>, moving: &Moving, meta: &Meta) -> bool {
    guesses(core, meta) && of_name(&moving.entry.name).is_none()
}

/// Returns whether a file was not written to between two checks.
pub(super) fn unchanged(before: &Meta, after: &Meta) -> bool {
    (before.size, before.mtime, before.ctime) == (after.size, after.mtime, after.ctime)
}

pub(super) fn read_failed(error: std::io::Error) -> Failed {
    Failed::File(Operation::Read, Side::Source, error)
}

impl Core<'_> {
    /// Returns the algorithm of the checksum to compute for uploads.
    pub(in crate::object) fn upload_checksum(&self) -> Option<hakobu_s3::Algorithm> {
        self.target.as_ref()?.session().upload_checksum()
    }
}

// The media type of an object: by the extension of its name, else by how its content begins (WHATWG, MIME Sniffing
// Standard, sections 6 and 7).

/// Number of bytes at the start of a file that decide.
pub const LOOK_BYTES: usize = 512;

/// Type of an object without a better one.
const BINARY: &str = "application/octet-stream";

/// Beginnings of files. `?` in a mask is any byte.
const STARTS: &[(&[u8], &str)] = &[
    (b"%PDF-", "application/pdf"),
    (b"%!PS-Adobe-", "application/postscript"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"\0\0\x01\0", "image/x-icon"),
    (b"\0\0\x02\0", "image/x-icon"),
    (b"OggS\0", "application/ogg"),
    (b"MThd\0\0\0\x06", "audio/midi"),
    (b"ID3", "audio/mpeg"),
    (b"\x1a\x45\xdf\xa3", "video/webm"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"PK\x03\x04", "application/zip"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"\0asm", "application/wasm"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"OTTO", "font/otf"),
    (b"ttcf", "font/collection"),
    (b"\0\x01\0\0", "font/ttf"),
    // Texts with a byte order mark.
    (b"\xfe\xff", "text/plain; charset=utf-16be"),
    (b"\xff\xfe", "text/plain; charset=utf-16le"),
    (b"\xef\xbb\xbf", "text/plain; charset=utf-8"),
];

/// Forms inside a container: its name, the name of the form at byte 8, and the type.
const FORMS: &[(&[u8], &[u8], &str)] = &[
    (b"RIFF", b"WEBPVP", "image/webp"),
    (b"RIFF", b"WAVE", "audio/wave"),
    (b"RIFF", b"AVI ", "video/avi"),
    (b"FORM", b"AIFF", "audio/aiff"),
];

/// Elements with which an HTML document begins, in upper case.
const ELEMENTS: &[&[u8]] = &[
    b"!DOCTYPE HTML",
    b"HTML",
    b"HEAD",
    b"SCRIPT",
    b"IFRAME",
    b"H1",
    b"DIV",
    b"FONT",
    b"TABLE",
    b"A",
    b"STYLE",
    b"TITLE",
    b"B",
    b"BODY",
    b"BR",
    b"P",
];

/// Returns the media type for the extension of a name.
pub fn of_name(name: &[u8]) -> Option<HeaderValue> {
    let base = name.rsplit(|&byte| byte == b'/').next()?;
    let dot = base.iter().rposition(|&byte| byte == b'.')?;
    let ending = std::str::from_utf8(base.get(dot + 1..)?).ok()?;
    // A name whose only dot is its first character is a hidden file without an extension.
    let guess = (dot > 0).then(|| mime_guess::from_ext(ending).first_raw()).flatten()?;
    Some(HeaderValue::from_static(guess))
}

/// Returns the media type of an object whose content was not looked at.
pub fn of_name_alone(name: &[u8]) -> HeaderValue {
    of_name(name).unwrap_or(HeaderValue::from_static(BINARY))
}

/// Returns the media type for the first bytes of a content; `None` if there are none.
pub fn of_content(start: &[u8]) -> Option<HeaderValue> {
    let start = &start[..start.len().min(LOOK_BYTES)];
    (!start.is_empty()).then(|| HeaderValue::from_static(sniffed(start)))
}

fn sniffed(start: &[u8]) -> &'static str {
    let text = start.trim_ascii_start();
    if let Some(element) = text.strip_prefix(b"<") {
        if element.starts_with(b"!--") || ELEMENTS.iter().any(|name| begins_with(element, name)) {
            return encoded(start, "text/html", "text/html; charset=utf-8");
        }
        if element.starts_with(b"?xml") {
            return encoded(start, "text/xml", "text/xml; charset=utf-8");
        }
    }
    if let Some((_, kind)) = STARTS.iter().find(|(bytes, _)| start.starts_with(bytes)) {
        return kind;
    }
    let in_form = |bytes: &[u8]| start.get(8..).is_some_and(|rest| rest.starts_with(bytes));
    let form = FORMS.iter().find(|(name, form, _)| start.starts_with(name) && in_form(form));
    match form {
        Some((_, _, kind)) => kind,
        None if start.get(4..).is_some_and(|rest| rest.starts_with(b"ftyp")) => "video/mp4",
        None if start.iter().any(|byte| is_binary(*byte)) => BINARY,
        None => encoded(start, "text/plain", "text/plain; charset=utf-8"),
    }
}

/// Returns the type of a text in UTF-8, or that of another one. A character may be cut off at the end.
fn encoded(start: &[u8], other: &'static str, utf8: &'static str) -> &'static str {
    match std::str::from_utf8(start) {
        Err(error) if error.error_len().is_some() => other,
        _ => utf8,
    }
}

/// Returns whether a tag has this name, which a space or `>` ends.
fn begins_with(element: &[u8], name: &[u8]) -> bool {
    let Some((found, rest)) = element.split_at_checked(name.len()) else { return false };
    found.eq_ignore_ascii_case(name) && matches!(rest.first(), Some(b' ' | b'>'))
}

/// Returns whether a byte is in no text: a control character other than those for space and escape.
fn is_binary(byte: u8) -> bool {
    matches!(byte, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f)
}

// Reads a range of a file into a body and hashes it, without blocking the core on a device: a helper thread reads
// data that is not in the page cache.

/// Bytes that are read and then hashed while they are in the CPU cache.
const BLOCK_BYTES: usize = 256 << 10;
/// Bytes after which the core yields to its other connections.
const TURN_BYTES: usize = 1 << 20;

/// Minimum bytes whose hashing is recorded as a phase.
const COMPUTED_BYTES_MIN: usize = 64 << 10;

/// The bytes to read.
#[derive(Clone, Copy, Debug)]
pub(super) struct UploadRange {
    /// Offset of the first byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: usize,
    /// Whether to detect bytes after the range (small files only, where that is free); a helper thread
    /// then looks at the file again.
    pub is_whole: bool,
    /// The algorithm of the checksum to compute.
    pub algorithm: Option<Algorithm>,
}

/// The bytes read: fewer than wanted if the file ended, more if it continued.
pub(super) struct Filled {
    pub body: Bytes,
    pub checksum: Option<Checksum>,
    /// Metadata of a whole file after reading it, if a helper thread read it.
    pub after: Option<Meta>,
}

/// A body being read.
struct Progress {
    buffer: PooledBuffer,
    filled: usize,
    hasher: Option<Hasher>,
    after: Option<Meta>,
}

/// A file being uploaded.
#[derive(Clone)]
pub(super) struct PartSource {
    file: Arc<OwnedFd>,
    dev: u64,
}

impl PartSource {
    pub fn new(file: OwnedFd, dev: u64) -> PartSource {
        PartSource { file: Arc::new(file), dev }
    }
}

impl AsFd for PartSource {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for PartSource {
    /// Has a helper thread close the file where that may wait: a network file system asks its server.
    fn drop(&mut self) {
        if Arc::strong_count(&self.file) == 1
            && waits(self.dev)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let last = Arc::clone(&self.file);
            runtime.spawn_blocking(move || drop(last));
        }
    }
}

/// Method of reading files of a device.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Reads cached bytes directly, the rest on a helper thread.
    Cached,
    /// Directly: it is memory.
    Memory,
    /// On a helper thread: the duration is unknown.
    Elsewhere,
}

thread_local! {
    /// The device that this core last read from, and how.
    static LEARNT: Cell<(u64, Manner)> = const { Cell::new((u64::MAX, Manner::Cached)) };
}

/// Returns whether a call for a file of this device may be slow, as far as this core knows.
pub(super) fn waits(dev: u64) -> bool {
    LEARNT.get() == (dev, Manner::Elsewhere)
}

/// Maximum size, in bytes, of a file that gets one extra byte of room: a read that leaves it empty has reached the
/// end.
const MORE_BYTES_MAX: usize = 32 << 10;

/// Reads and hashes. `doing` records which of the two this core does.
pub(super) async fn fill(
    doing: &Activity,
    source: &PartSource,
    wanted: UploadRange,
) -> io::Result<Filled> {
    let _phase = doing.during(Phase::Read);
    let more = usize::from(wanted.is_whole && wanted.len < MORE_BYTES_MAX);
    let mut progress = Progress {
        buffer: PooledBuffer::new(wanted.len + more),
        filled: 0,
        hasher: wanted.algorithm.map(Hasher::new),
        after: None,
    };
    let mut turn = TURN_BYTES;
    loop {
        match progress.read_block(doing, source, wanted.offset)? {
            CachedRead::Got(0) => break,
            CachedRead::Got(_) if progress.filled >= wanted.len => break,
            CachedRead::Got(_) => {}
            CachedRead::WouldWait | CachedRead::Unknown => {
                progress = progress.elsewhere(source, wanted).await?;
                break;
            }
        }
        if progress.filled >= turn {
            turn += TURN_BYTES;
            tokio::task::yield_now().await;
        }
    }
    Ok(progress.done())
}

/// Reads the beginning of a file, which decides on the media type.
pub(super) async fn start(doing: &Activity, source: &PartSource) -> io::Result<Bytes> {
    let len = LOOK_BYTES;
    let wanted = UploadRange { offset: 0, len, is_whole: false, algorithm: None };
    Ok(fill(doing, source, wanted).await?.body)
}

impl Progress {
    /// Performs one read and hashes it.
    fn read_block(
        &mut self,
        doing: &Activity,
        source: &PartSource,
        offset: u64,
    ) -> io::Result<CachedRead> {
        let (file, dev) = (source.as_fd(), source.dev);
        let (learnt, manner) = LEARNT.get();
        let manner = if learnt == dev { manner } else { Manner::Cached };
        let end = self.buffer.len().min(self.filled + BLOCK_BYTES);
        let space = &mut self.buffer[self.filled..end];
        let at = offset + self.filled as u64;
        let found = match manner {
            Manner::Cached => read_cached(file, space, at)?,
            Manner::Memory => CachedRead::Got(file::read_at(file, space, at)?),
            Manner::Elsewhere => CachedRead::Unknown,
        };
        if manner == Manner::Cached && found == CachedRead::Unknown {
            let memory = disk::is_memory(file);
            LEARNT.set((dev, if memory { Manner::Memory } else { Manner::Elsewhere }));
            if memory {
                return self.read_block(doing, source, offset);
            }
        }
        if let CachedRead::Got(got) = found {
            let long = got >= COMPUTED_BYTES_MIN && self.hasher.is_some();
            let _phase = long.then(|| doing.during(Phase::Compute));
            self.take(got);
        }
        Ok(found)
    }

    /// Reads the rest on a helper thread.
    async fn elsewhere(mut self, source: &PartSource, wanted: UploadRange) -> io::Result<Progress> {
        let source = source.clone();
        let work = move || {
            loop {
                let end = self.buffer.len().min(self.filled + BLOCK_BYTES);
                let space = &mut self.buffer[self.filled..end];
                let at = wanted.offset + self.filled as u64;
                match file::read_at(source.as_fd(), space, at)? {
                    0 => break,
                    got => self.take(got),
                }
            }
            if wanted.is_whole {
                self.after = Some(meta::of_fd(&source)?);
            }
            Ok(self)
        };
        blocking(work).await
    }

    fn take(&mut self, got: usize) {
        let new = &self.buffer[self.filled..self.filled + got];
        if let Some(hasher) = &mut self.hasher {
            hasher.update(new);
        }
        self.filled += got;
    }

    fn done(mut self) -> Filled {
        self.buffer.truncate(self.filled);
        let checksum = self.hasher.map(Hasher::finish);
        Filled { body: self.buffer.freeze(), checksum, after: self.after }
    }
}

// Whether an upload is sent in parts, and their size; pure.

/// Minimum bytes of every part except the last (Amazon S3 User Guide, "Amazon S3 multipart upload limits").
pub(in crate::object) const PART_BYTES_MIN: u64 = 5 << 20;

const MIB: u64 = 1 << 20;
/// Default bytes of a part.
const PART_BYTES: u64 = 8 * MIB;
/// Minimum size, in bytes, of an object with larger parts, which save requests.
const LARGE_BYTES_MIN: u64 = 1024 * MIB;
const LARGE_PART_BYTES: u64 = 16 * MIB;
/// Maximum size, in bytes, of an object that is sent in one request: this saves three requests, and several cores
/// have other objects to send meanwhile.
const WHOLE_BYTES_MAX: u64 = 32 * MIB;

/// Limits that determine the parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartLimits {
    /// Bytes in flight of all objects.
    pub budget_bytes: u64,
    /// `--part-size`.
    pub part_bytes: Option<u64>,
    /// `--bwlimit` is set: bodies are slow, and a broken one is sent again, so shorter parts are better.
    pub limited: bool,
}

impl PartLimits {
    /// Returns the limits of this run.
    pub fn of(engine: &ObjectEngine<'_>) -> PartLimits {
        PartLimits {
            budget_bytes: engine.budget.bytes_max(),
            part_bytes: engine.setup.options.part_bytes,
            limited: engine.setup.controls.bytes.is_some(),
        }
    }

    /// Divides an object of `size` bytes; returns `None` if it is sent in one request.
    pub fn cut(&self, size: u64) -> Option<Cut> {
        let share = (self.budget_bytes / 8).max(PART_BYTES_MIN);
        let (whole_max, usual) = match (self.limited, size >= LARGE_BYTES_MIN) {
            (true, _) => (PART_BYTES, PART_BYTES_MIN),
            (false, false) => (WHOLE_BYTES_MAX, PART_BYTES),
            (false, true) => (WHOLE_BYTES_MAX, LARGE_PART_BYTES),
        };
        if size <= self.part_bytes.unwrap_or(whole_max.min(share.max(PART_BYTES))) {
            return None;
        }
        Some(Cut::new(size, self.part_bytes.unwrap_or(usual.min(share))))
    }

    /// Returns how many parts fit into memory at once: half of it, so that other objects have room.
    pub fn fit(&self, cut: &Cut) -> u64 {
        self.budget_bytes / 2 / cut.part_bytes
    }
}

// Upload of a large file in parts: any core takes the next part, and the worker that finishes the last one completes
// the upload, after checking that the file is unchanged.

/// Error for an object whose ten-thousandth part is larger than `--memory`.
pub(in crate::object) const TOO_LARGE: &str = "one of its 10,000 parts does not fit into the memory that may be used: give more with --memory";
/// Maximum number of aborts of an upload, and the first pause between them.
const ABORTS_MAX: u32 = 5;
const ABORT_PAUSE: Duration = Duration::from_millis(50);

/// A large object being uploaded.
pub struct LargeUpload {
    moving: Arc<Moving>,
    source: PartSource,
    /// The file's metadata when the upload began.
    meta: Meta,
    upload: String,
    /// When it was created, unless an earlier run did that.
    begun: Option<Instant>,
    cut: Cut,
    algorithm: Option<Algorithm>,
    permits: Permits,
    state: Mutex<State>,
}

struct State {
    /// Finished parts, in no order.
    parts: Vec<Part>,
    /// A part was dropped while it was sent: the server may still be receiving it.
    cut_off: bool,
    /// With `--resume`: the state for a later run.
    checkpoint: Option<Checkpoint>,
}

fn too_large() -> Failed {
    Failed::Reason(Operation::Write, Side::Target, TOO_LARGE)
}

fn streams_max(engine: &ObjectEngine<'_>, cut: &Cut) -> usize {
    engine.streams(PartLimits::of(engine).fit(cut))
}

/// Begins an upload, or continues an old one.
pub(super) async fn begin_parts(
    core: &Core<'_>,
    moving: &Arc<Moving>,
    source: PartSource,
    now: &Meta,
    cut: Cut,
) -> Result<Step, Failed> {
    let target = MoveTarget::of(core, moving)?;
    if cut.part_bytes > core.engine.budget.bytes_max() {
        return Err(too_large());
    }
    let algorithm = core.upload_checksum();
    let begun_at = Instant::now();
    let create = async || {
        let start = match needs_content(core, moving, now) {
            true => start(&core.doing, &source).await.map_err(read_failed)?,
            false => Bytes::new(),
        };
        let mut headers = headers(core, moving, now, &start);
        // A condition belongs to the request that creates the object.
        headers.retain(|(name, _)| name != IF_NONE_MATCH && name != IF_MATCH);
        let MoveTarget { client, bucket, key } = &target;
        let created = ops::create_upload(client, bucket, key, algorithm, &headers).await;
        let made = created.map_err(Failed::at_target(Operation::Write))?;
        let ops::CreatedUpload { id: upload, algorithm } = made;
        Ok(UploadState { upload, algorithm, cut, parts: Vec::new(), checkpoint: None })
    };
    let begun = if core.engine.setup.options.resume {
        let what = UploadSource { moving, target: &target, now, algorithm };
        begin_resumable(core, &what, cut, create).await?
    } else {
        create().await?
    };
    let UploadState { upload, algorithm, cut, parts, checkpoint } = begun;
    let done: std::collections::HashSet<u32> = parts.iter().map(|part| part.number).collect();
    // Some servers date the object by the creation of its upload.
    let begun = parts.is_empty().then_some(begun_at);
    // Parts of an earlier run are not transferred again.
    core.doing.lane().settle(parts.iter().map(|part| part.size).sum(), 0);
    let waiting = cut.numbers().filter(|number| !done.contains(number)).collect();
    let (permits, streams) = Permits::new(waiting, streams_max(core.engine, &cut));
    let state = Mutex::new(State { parts, cut_off: false, checkpoint });
    let (moving, meta) = (Arc::clone(moving), *now);
    let large = LargeUpload { moving, source, meta, upload, begun, cut, algorithm, permits, state };
    Ok(Step::Parts(Arc::new(large), streams))
}

impl Large for LargeUpload {
    fn permits(&self) -> &Permits {
        &self.permits
    }

    fn streams_max(&self, engine: &ObjectEngine<'_>) -> usize {
        streams_max(engine, &self.cut)
    }

    async fn move_part(&self, core: &Core<'_>, number: u32) -> Result<(), Failed> {
        let Some(sent) = core.engine.unless_stopped(self.send(core, number)).await else {
            self.state.lock().cut_off = true;
            return Err(Failed::Stopped);
        };
        let mut state = self.state.lock();
        state.parts.push(sent?);
        let State { parts, checkpoint, .. } = &mut *state;
        if let Some(checkpoint) = checkpoint {
            checkpoint.progress(|| part_records(parts));
        }
        Ok(())
    }

    async fn end(self: Arc<Self>, core: &Core<'_>) {
        let ended = self.settle(core).await;
        core.finish(&self.moving, ended).await;
        core.engine.queue.finished();
    }
}

impl LargeUpload {
    /// Reads, hashes and uploads one part.
    async fn send(&self, core: &Core<'_>, number: u32) -> Result<Part, Failed> {
        let MoveTarget { client, bucket, key } = MoveTarget::of(core, &self.moving)?;
        let bytes = self.cut.bytes(number);
        let _room = core.room(bytes).await;
        let wanted = UploadRange {
            offset: self.cut.range(number).start,
            len: usize::try_from(bytes).map_err(|_| too_large())?,
            is_whole: false,
            algorithm: self.algorithm,
        };
        let filled = fill(&core.doing, &self.source, wanted).await.map_err(read_failed)?;
        if filled.body.len() as u64 != bytes {
            return Err(Failed::Reason(Operation::Read, Side::Source, CHANGED_WHILE_READ));
        }
        let (upload, checksum) = (&self.upload, filled.checksum.as_ref());
        let sent = ops::upload_part(client, bucket, &key, upload, number, filled.body, checksum);
        let part = sent.await.map_err(Failed::at_target(Operation::Write))?;
        Ok(Part { number, size: bytes, etag: part.etag, checksum: filled.checksum })
    }

    /// Completes the upload or gives it up; with `--resume` a later run continues it.
    async fn settle(&self, core: &Core<'_>) -> Result<MoveResult, Failed> {
        let target = MoveTarget::of(core, &self.moving)?;
        let (mut parts, cut_off, checkpoint) = {
            let mut state = self.state.lock();
            (std::mem::take(&mut state.parts), state.cut_off, state.checkpoint.take())
        };
        parts.sort_unstable_by_key(|part| part.number);
        let changed = match meta::of_fd(&self.source) {
            Ok(after) => !unchanged(&self.meta, &after),
            Err(_) => true,
        };
        let result = match self.permits.failure() {
            Some(failed) => Err(failed),
            None if changed => {
                Err(Failed::Reason(Operation::Read, Side::Source, CHANGED_WHILE_READ))
            }
            None => self.complete(core, &target, &parts).await,
        };
        let worth_keeping = result.as_ref().is_err_and(checkpoint::is_worth_keeping);
        match checkpoint {
            Some(mut checkpoint) if worth_keeping && !changed => {
                checkpoint.save(part_records(&parts));
            }
            checkpoint => {
                if result.as_ref().map_or(true, |done| done.skipped) {
                    self.give_up(core, &target, cut_off).await;
                }
                if let Some(checkpoint) = checkpoint {
                    checkpoint.forget();
                }
            }
        }
        result
    }

    /// Aborts the upload. The entry failed already, and the first failure is the one reported; `mpu ls` shows an
    /// upload that cannot be aborted. Parts that the server is still receiving may survive an abort (API reference,
    /// AbortMultipartUpload): then it is checked and repeated.
    async fn give_up(&self, core: &Core<'_>, target: &MoveTarget<'_>, cut_off: bool) {
        let MoveTarget { client, bucket, key } = target;
        for number in 0..ABORTS_MAX {
            if cut_off {
                core.doing.turn(Phase::Pause);
                tokio::time::sleep(ABORT_PAUSE * (1 << number)).await;
            }
            let aborted = ops::abort_upload(client, bucket, key, &self.upload).await;
            if aborted.is_ok() && !cut_off {
                return;
            }
            let listed = ops::list_parts(client, bucket, key, &self.upload).await;
            if listed.is_err_and(|error| error.kind == ErrorKind::NotFound) {
                return;
            }
        }
    }

    async fn complete(
        &self,
        core: &Core<'_>,
        target: &MoveTarget<'_>,
        parts: &[Part],
    ) -> Result<MoveResult, Failed> {
        let MoveTarget { client, bucket, key } = target;
        let whole = whole_checksum(parts);
        let headers: Headers = condition(core, &self.moving).into_iter().collect();
        let (upload, size, whole) = (&self.upload, self.cut.size, whole.as_ref());
        let completed =
            ops::complete_upload(client, bucket, key, upload, parts, size, whole, &headers);
        match core.completing(completed).await {
            Ok(put) => {
                if let Some(begun) = self.begun {
                    let sent = self::headers(core, &self.moving, &self.meta, &[]);
                    core.wrote(&self.moving, &sent, size, begun, &put);
                }
                let sum = whole.or(put.checksum.as_ref()).and_then(KnownSum::of);
                Ok(MoveResult { bytes: size, sum, ..MoveResult::default() })
            }
            Err(error) => refused(core, error),
        }
    }
}

/// Returns the full object's checksum from those of its parts, in order; `None` if the upload has a composite one (all
/// algorithms but CRC-64/NVME).
pub(super) fn whole_checksum(parts: &[Part]) -> Option<Checksum> {
    let whole = joined(parts.iter().map(|part| (part.checksum.as_ref(), part.size)))?;
    (whole.algorithm == Algorithm::Crc64Nvme).then_some(whole)
}

// Uploads that continue in a later run (`--resume`): their records, and the check of an old one's parts. A part
// counts as present only if the file is unchanged and the server lists it with the size, ETag and checksum of the
// record.

/// The file to upload.
pub(super) struct UploadSource<'a> {
    pub moving: &'a Moving,
    pub target: &'a MoveTarget<'a>,
    pub now: &'a Meta,
    pub algorithm: Option<Algorithm>,
}

/// An upload begun by this or an earlier run.
pub(super) struct UploadState {
    pub upload: String,
    /// The checksum algorithm of its parts: the requested one, or none if the server does not support it.
    pub algorithm: Option<Algorithm>,
    pub cut: Cut,
    pub parts: Vec<Part>,
    pub checkpoint: Option<Checkpoint>,
}

/// Continues the upload of an earlier run if it fits; otherwise begins one with `create`.
pub(super) async fn begin_resumable(
    core: &Core<'_>,
    what: &UploadSource<'_>,
    cut: Cut,
    create: impl AsyncFnOnce() -> Result<UploadState, Failed>,
) -> Result<UploadState, Failed> {
    let MoveTarget { client, bucket, key } = what.target;
    let busy = "another run is uploading it";
    let (_, claim) = checkpoint::claim(core, client, what.moving, busy)?;
    if let Some(record) = claim.load() {
        match &record.place {
            PartsLocation::Upload(upload) => {
                if let Some((cut, parts)) = trusted(core, what, &record, upload).await? {
                    let (upload, algorithm) = (upload.clone(), Algorithm::parse(&record.algorithm));
                    let checkpoint = Some(Checkpoint::new(claim, record));
                    return Ok(UploadState { upload, algorithm, cut, parts, checkpoint });
                }
                // It is obsolete. If it cannot be removed, `mpu ls` still shows it.
                let _ = ops::abort_upload(client, bucket, key, upload).await;
            }
            PartsLocation::Asked => abort_unknown(what.target).await,
            PartsLocation::File { .. } => {}
        }
    }
    // Before the request: a run that is killed before it has stored the ID leaves an upload that the next one has to
    // search for.
    let mut record = ObjectRecord {
        source: Source::of_file(what.now),
        place: PartsLocation::Asked,
        part_bytes: cut.part_bytes,
        algorithm: String::new(),
        parts: Vec::new(),
    };
    claim.save(&record).map_err(unusable)?;
    let begun = match create().await {
        Ok(begun) => begun,
        Err(failed) => {
            let refused = matches!(&failed, Failed::Request(_, _, error) if error.status != 0);
            if refused {
                let _ = claim.remove();
            }
            return Err(failed);
        }
    };
    record.place = PartsLocation::Upload(begun.upload.clone());
    record.part_bytes = begun.cut.part_bytes;
    record.algorithm = begun.algorithm.map_or("", Algorithm::name).to_owned();
    if let Err(error) = claim.save(&record) {
        let _ = ops::abort_upload(client, bucket, key, &begun.upload).await;
        return Err(unusable(error));
    }
    Ok(UploadState { checkpoint: Some(Checkpoint::new(claim, record)), ..begun })
}

/// Aborts an upload that was requested and whose ID never arrived: of exactly this key, and without parts, because
/// sending one requires the ID.
async fn abort_unknown(target: &MoveTarget<'_>) {
    let MoveTarget { client, bucket, key } = target;
    // `mpu ls` still shows uploads that cannot be listed or aborted here.
    let Ok(uploads) = ops::list_uploads(client, bucket, key).await else { return };
    for upload in uploads.iter().filter(|upload| upload.key == *key) {
        let parts = ops::list_parts(client, bucket, key, &upload.id).await;
        if parts.is_ok_and(|parts| parts.is_empty()) {
            let _ = ops::abort_upload(client, bucket, key, &upload.id).await;
        }
    }
}

/// Returns the cut and the verified parts of an old upload; `None` if it is unusable.
async fn trusted(
    core: &Core<'_>,
    what: &UploadSource<'_>,
    record: &ObjectRecord,
    upload: &str,
) -> Result<Option<(Cut, Vec<Part>)>, Failed> {
    let asked = core.engine.setup.options.part_bytes;
    let cut = Cut::new(what.now.size, record.part_bytes);
    let fits = record.check(&Source::of_file(what.now)) == RecordCheck::Good
        // A server that does not support the algorithm stores none.
        && ["", what.algorithm.map_or("", Algorithm::name)].contains(&&*record.algorithm)
        && asked.is_none_or(|bytes| bytes == record.part_bytes)
        && cut.part_bytes == record.part_bytes
        // A part larger than the budget cannot be sent.
        && cut.part_bytes <= core.engine.budget.bytes_max();
    if !fits {
        return Ok(None);
    }
    let MoveTarget { client, bucket, key } = what.target;
    match ops::list_parts(client, bucket, key, upload).await {
        Ok(listed) => {
            Ok(Some((cut, agreeing(record, &listed, Algorithm::parse(&record.algorithm)))))
        }
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failed::at_target(Operation::List)(error)),
    }
}

/// Returns the parts of the record that the server lists with the same values.
fn agreeing(record: &ObjectRecord, listed: &[Part], algorithm: Option<Algorithm>) -> Vec<Part> {
    let mut parts = Vec::new();
    for kept in &record.parts {
        let Some(there) = listed.iter().find(|part| part.number == kept.number) else { continue };
        let checksum = match algorithm {
            // A part without a stored checksum cannot be verified.
            Some(which) => match Checksum::decode(which, &kept.checksum) {
                Some(checksum) => Some(checksum),
                None => continue,
            },
            None => None,
        };
        // Not every server lists checksums; otherwise the ETag decides, which it returned after checking ours.
        let same = there.checksum.is_none() || there.checksum == checksum;
        if same && there.size == kept.bytes && !kept.etag.is_empty() && there.etag == kept.etag {
            parts.push(Part { checksum, ..there.clone() });
        }
    }
    parts
}

pub(super) fn part_records(finished: &[Part]) -> Vec<journal::FinishedPart> {
    finished.iter().map(remembered).collect()
}

fn remembered(part: &Part) -> journal::FinishedPart {
    journal::FinishedPart {
        number: part.number,
        bytes: part.size,
        etag: part.etag.clone(),
        checksum: part.checksum.as_ref().map(Checksum::encode).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_come_from_endings() {
        for (name, wanted) in [
            ("a/b.html", Some("text/html")),
            ("B.JPG", Some("image/jpeg")),
            ("x.tar.gz", Some("application/gzip")),
            ("a.json/b", None),
            (".png", None),
            ("no.such-ending", None),
            ("dot.", None),
            ("", None),
        ] {
            let found = of_name(name.as_bytes());
            assert_eq!(found.as_ref().map(|value| value.to_str().unwrap()), wanted, "{name}");
        }
        assert_eq!(of_name(b"\xff.\xff"), None);
        assert_eq!(of_name_alone(b"a.html"), "text/html");
        assert_eq!(of_name_alone(b"a"), "application/octet-stream");
    }

    #[test]
    fn content_types_come_from_content() {
        for (content, wanted) in [
            (&b"\n \t<html lang=\"en\">"[..], "text/html; charset=utf-8"),
            (b"<!doctype HTML>", "text/html; charset=utf-8"),
            (b"<!-- x", "text/html; charset=utf-8"),
            (b"<bx>", "text/plain; charset=utf-8"),
            (b"<b", "text/plain; charset=utf-8"),
            (b" <?xml version", "text/xml; charset=utf-8"),
            (b"%PDF-1.7\n\0", "application/pdf"),
            (b"\x89PNG\r\n\x1a\n\0\0", "image/png"),
            (b"RIFF\x24\0\0\0WAVEfmt ", "audio/wave"),
            (b"RIFF\x24\0\0\0WEBPVP8 ", "image/webp"),
            (b"\0\0\0\x20ftypisom", "video/mp4"),
            (b"\x1f\x8b\x08\0", "application/gzip"),
            (b"\xff\xfea\0", "text/plain; charset=utf-16le"),
            (b"#!/bin/sh\necho \x1b[1m\n", "text/plain; charset=utf-8"),
            ("caf\u{e9}".as_bytes(), "text/plain; charset=utf-8"),
            (b"caf\xe9 noir", "text/plain"),
            (b"<p>caf\xc3", "text/html; charset=utf-8"),
            (b"\x7fELF\x02\x01\x01\0", "application/octet-stream"),
            (b"abc\0", "application/octet-stream"),
        ] {
            assert_eq!(of_content(content).unwrap(), wanted, "{content:?}");
        }
        assert_eq!(of_content(b""), None);
        // Later bytes do not count.
        let long = [&[b'a'; LOOK_BYTES][..], b"\0"].concat();
        assert_eq!(of_content(&long).unwrap(), "text/plain; charset=utf-8");
    }
    use crate::object::parts::PARTS_MAX;
    use proptest::prelude::*;

    const GIB: u64 = 1024 * MIB;

    fn limits(budget_bytes: u64) -> PartLimits {
        PartLimits { budget_bytes, part_bytes: None, limited: false }
    }

    #[test]
    fn sizes_that_matter() {
        let usual = limits(256 * MIB);
        for size in [0, 4096, 500_000, 10_000_000, 32 * MIB] {
            assert_eq!(usual.cut(size), None, "{size}");
        }
        let cut = |size, limits: &PartLimits| {
            let cut = limits.cut(size).unwrap();
            (cut.part_bytes, cut.count, limits.fit(&cut))
        };
        assert_eq!(cut(32 * MIB + 1, &usual), (8 * MIB, 5, 16));
        assert_eq!(cut(2 * GIB, &usual), (16 * MIB, 128, 8));
        assert_eq!(cut(5 * 1024 * GIB, &usual).0, 525 * MIB);
        // Little memory: parts as small as S3 allows, and objects that fit one are sent whole.
        assert_eq!(limits(16 * MIB).cut(8 * MIB), None);
        assert_eq!(cut(9 * MIB, &limits(16 * MIB)), (5 * MIB, 2, 1));
        let asked = PartLimits { part_bytes: Some(6 * MIB), ..usual };
        assert_eq!(asked.cut(6 * MIB), None);
        assert_eq!(cut(GIB, &asked), (6 * MIB, 171, 21));
        let slow = PartLimits { limited: true, ..usual };
        assert_eq!((slow.cut(8 * MIB), cut(9 * MIB, &slow).0), (None, 5 * MIB));
    }

    proptest! {
        #[test]
        fn parts_cover_the_object_and_keep_the_limits(
            size in 1_u64..50_000 * GIB, budget_bytes in MIB..16 * GIB,
            part_bytes in proptest::option::of(PART_BYTES_MIN..GIB), limited: bool,
        ) {
            if let Some(cut) = (PartLimits { budget_bytes, part_bytes, limited }).cut(size) {
                prop_assert!(u64::from(cut.count) <= PARTS_MAX);
                prop_assert!(cut.part_bytes >= PART_BYTES_MIN);
                let mut end = 0;
                for number in 1..=cut.count {
                    let range = cut.range(number);
                    prop_assert_eq!(range.start, end);
                    let bytes = range.end - range.start;
                    prop_assert!(bytes == cut.part_bytes || number == cut.count);
                    prop_assert!(bytes > 0);
                    end = range.end;
                }
                prop_assert_eq!(end, size);
            }
        }
    }

    #[test]
    fn only_parts_that_agree_are_trusted() {
        let sum = |n: u8| Checksum { algorithm: Algorithm::Crc64Nvme, value: vec![n; 8], parts: 0 };
        let part = |number: u32, etag: &str, checksum: Option<Checksum>| Part {
            number,
            size: 10,
            etag: etag.into(),
            checksum,
        };
        let good = part(1, "a", Some(sum(1)));
        let record = |part: &Part| ObjectRecord {
            source: Source::Object { size: 100, etag: String::new(), version: None },
            place: PartsLocation::Upload("u".into()),
            part_bytes: 10,
            algorithm: "CRC64NVME".into(),
            parts: vec![remembered(part)],
        };
        let trust = |there: Part| {
            agreeing(&record(&good), &[part(2, "x", None), there], Some(Algorithm::Crc64Nvme))
        };
        assert_eq!(trust(good.clone()), std::slice::from_ref(&good));
        assert_eq!(trust(part(1, "a", None)), std::slice::from_ref(&good));
        assert_eq!(trust(part(1, "b", Some(sum(1)))), []);
        assert_eq!(trust(part(1, "a", Some(sum(2)))), []);
        assert_eq!(trust(part(3, "a", Some(sum(1)))), []);
        assert_eq!(trust(Part { size: 9, ..good.clone() }), []);
        let bare = record(&part(1, "a", None));
        assert_eq!(agreeing(&bare, std::slice::from_ref(&good), Some(Algorithm::Crc64Nvme)), []);
        assert_eq!(agreeing(&bare, &[part(1, "a", None)], None).len(), 1);
    }
}
