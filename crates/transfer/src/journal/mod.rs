//! Records of work that is expensive to repeat: unfinished uploads and downloads in parts. One small file each in a
//! state folder, written when the work begins, kept up to date, and removed after the last part; never trusted
//! without a check against both ends.
//!
//! A record is JSON with a schema version, named by a hash of source and target. Only the user can read it. A run
//! locks its record, so that two runs never continue the same upload.

mod job_hints;
mod ledger;

pub use crate::journal::job_hints::{Damaged, JobHints, Key};
pub use crate::journal::ledger::{Ledger, LedgerScope, LedgerTarget};
use hakobu_core::percent::hex;
use hakobu_core::unit::{Meta, Time};
use hakobu_sys::dir::paths_in;
use hakobu_sys::{file, host, process};
use ring::digest::{Context, SHA256};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Locks of one record that are taken and found to be removed, at most: each is that of another process which has
/// just finished.
const LOOKS_MAX: u32 = 3;
/// Maximum size of a record, in bytes: 10,000 parts take about 1.5 MB, so a larger file is not ours.
const RECORD_BYTES_MAX: u64 = 16 << 20;

/// The journal of one user on this machine.
#[derive(Clone, Debug)]
pub struct Journal {
    /// `None`: this user has no location for it.
    folder: Option<PathBuf>,
}

/// The right to work on one record, exclusive until this is dropped.
#[derive(Debug)]
pub struct Claim {
    folder: PathBuf,
    identity: ObjectIdentity,
    /// Locked as long as it is open.
    _lock: File,
}

impl Journal {
    /// Returns the journal in `$XDG_STATE_HOME/hakobu` (else `~/.local/state/hakobu`; XDG Base Directory
    /// Specification); nothing is created until it is used.
    pub fn of_user() -> Journal {
        let absolute = |name: &str| {
            let path = PathBuf::from(std::env::var_os(name)?);
            path.is_absolute().then_some(path)
        };
        let state = absolute("XDG_STATE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
        Journal { folder: state.map(|state| state.join("hakobu")) }
    }

    /// Returns the folder; `None` if this user has none.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Returns a journal in a given folder, for tests.
    pub fn at(folder: PathBuf) -> Journal {
        Journal { folder: Some(folder) }
    }

    /// Claims the record of one object, whether it exists or not. Returns `None` if another process works on it.
    ///
    /// # Errors
    /// The folder or the lock cannot be made; NotFound if the user has no home.
    pub fn claim(&self, identity: &ObjectIdentity) -> io::Result<Option<Claim>> {
        let folder = self.folder.as_ref().ok_or_else(no_home)?;
        make_private(folder)?;
        let path = folder.join(identity.file_name("lock"));
        for _ in 0..LOOKS_MAX {
            let lock = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(&path)?;
            match lock.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // The former holder may have removed it between our two calls.
            if is_at(&lock, &path)? {
                let identity = identity.clone();
                return Ok(Some(Claim { folder: folder.clone(), identity, _lock: lock }));
            }
        }
        // Others take it in turn.
        Ok(None)
    }

    /// Returns all readable records, in no order; others are skipped.
    ///
    /// # Errors
    /// The folder cannot be read; a missing one is empty.
    pub fn list(&self) -> io::Result<Vec<(ObjectIdentity, ObjectRecord)>> {
        let is_record = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
        Ok(self.paths()?.into_iter().filter(is_record).filter_map(|path| read(&path)).collect())
    }

    /// Returns the paths of all files; none if there is no folder.
    fn paths(&self) -> io::Result<Vec<PathBuf>> {
        let Some(folder) = &self.folder else { return Ok(Vec::new()) };
        Ok(unless_gone(paths_in(folder, usize::MAX))?.unwrap_or_default())
    }

    /// Removes the records for which `is_over` returns true, and locks without a record. Records in use by another
    /// process stay.
    ///
    /// # Errors
    /// The folder cannot be read, or something in it neither locked nor removed; a missing folder is empty.
    pub fn tidy(
        &self,
        mut is_over: impl FnMut(&ObjectIdentity, &ObjectRecord) -> bool,
    ) -> io::Result<()> {
        for (identity, _) in self.list()? {
            let Some(claim) = self.claim(&identity)? else { continue };
            // Read under the lock: it may be another record by now.
            if claim.load().is_some_and(|record| is_over(&identity, &record)) {
                claim.remove()?;
            }
        }
        for path in self.paths()? {
            if is_lock(&path) && !path.with_extension("json").exists() {
                remove_free(&path)?;
            }
        }
        Ok(())
    }
}

impl Claim {
    /// Reads the record of an earlier run. Returns `None` if there is none, or if it is damaged or of another schema.
    pub fn load(&self) -> Option<ObjectRecord> {
        let (identity, record) = read(&self.folder.join(self.identity.file_name("json")))?;
        (identity == self.identity).then_some(record)
    }

    /// Writes the record atomically: a reader sees the old or the new one.
    pub fn save(&self, record: &ObjectRecord) -> io::Result<()> {
        let text = encode(&self.identity, record).map_err(io::Error::other)?;
        // Only the lock holder writes, so a fixed name suffices.
        let temporary = self.folder.join(self.identity.file_name("new"));
        file::replace(&temporary, &self.folder.join(self.identity.file_name("json")), &text)
    }

    /// Removes the record of finished or abandoned work, and releases the claim.
    ///
    /// # Errors
    /// The error of unlinking; a missing record is not an error.
    pub fn remove(self) -> io::Result<()> {
        let gone = |end: &str| {
            unless_gone(fs::remove_file(self.folder.join(self.identity.file_name(end)))).map(drop)
        };
        gone("json")?;
        // A run killed while writing a record leaves its temporary file.
        gone("new")?;
        // Last, while it is still locked: a process that opens it now sees that it is gone.
        gone("lock")
    }
}

fn no_home() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "neither XDG_STATE_HOME nor HOME says where to")
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    let there = unless_gone(fs::symlink_metadata(path))?;
    Ok(there.is_some_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())))
}

/// Returns the result of a call on a file that may be missing, `None` if it is.
fn unless_gone<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// Returns whether a file has the name of a record's lock: the folder also holds locks of other kinds.
fn is_lock(path: &Path) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let is_hash = stem.len() == 32 && stem.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash && path.extension().is_some_and(|end| end == "lock")
}

/// Removes a lock without a holder, and its record's temporary file.
fn remove_free(path: &Path) -> io::Result<()> {
    let opened = unless_gone(OpenOptions::new().write(true).open(path))?;
    let Some(lock) = opened else { return Ok(()) };
    // A record that appeared meanwhile belongs to a run that holds or held the lock.
    let is_free = lock.try_lock().is_ok() && is_at(&lock, path)?;
    if is_free && !path.with_extension("json").exists() {
        unless_gone(fs::remove_file(path.with_extension("new")))?;
        unless_gone(fs::remove_file(path))?;
    }
    Ok(())
}

fn read(path: &Path) -> Option<(ObjectIdentity, ObjectRecord)> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(RECORD_BYTES_MAX).read_to_end(&mut text).ok()?;
    decode(&text)
}

// The process that made something which outlives it: a temporary name, or the record of a run.

/// See [`Owner::give_up`].
static GIVEN_UP: OnceLock<Vec<Owner>> = OnceLock::new();

/// Identity of a process for other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Hash of host and pid namespace.
    pub host: u32,
    /// Hash of the boot ID of the kernel.
    pub boot: u32,
    /// Process ID.
    pub pid: u32,
    /// Start of the process, in clock ticks since the boot.
    pub start: u64,
}

/// State of the process of an [`Owner`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It runs; includes this process.
    Alive,
    /// It ended during the current boot.
    Dead,
    /// The machine was rebooted since.
    Rebooted,
    /// It belongs to another host or pid namespace, so its state is unknown.
    Elsewhere,
}

impl Owner {
    /// Returns this process; computed once.
    pub fn me() -> Owner {
        static ME: OnceLock<Owner> = OnceLock::new();
        *ME.get_or_init(|| {
            let (host, boot, pid) = (host::host_id(), host::boot_id(), std::process::id());
            Owner { host, boot, pid, start: process::start_ticks(pid).unwrap_or(0) }
        })
    }

    /// Parses a text made by [`Owner::text`].
    pub fn parse(text: &str) -> Option<Owner> {
        let mut fields = text.split('-').map(|field| u64::from_str_radix(field, 16).ok());
        let mut next = || fields.next().flatten();
        let (host, boot, pid, start) = (next()?, next()?, next()?, next()?);
        let small = |value: u64| u32::try_from(value).ok();
        Some(Owner { host: small(host)?, boot: small(boot)?, pid: small(pid)?, start })
    }

    /// Parses the end of a file name: the four numbers and another one of `width` digits, all in lower-case hexadecimal
    /// digits of fixed widths.
    pub fn of_name(text: &[u8], width: usize) -> Option<Owner> {
        let mut fields = text.split(|byte| *byte == b'-');
        let mut values = [0; 5];
        for (value, width) in values.iter_mut().zip([8, 8, 8, 12, width]) {
            *value = digits(fields.next().filter(|field| field.len() == width)?)?;
        }
        let [host, boot, pid, start, _] = values;
        // Eight digits each: the widths were checked.
        let owner = Owner { host: host as u32, boot: boot as u32, pid: pid as u32, start };
        fields.next().is_none().then_some(owner)
    }

    /// Returns the process as text, for records that other machines read.
    pub fn text(&self) -> String {
        let Owner { host, boot, pid, start } = self;
        format!("{host:08x}-{boot:08x}-{pid:x}-{start:x}")
    }

    /// Registers processes that have abandoned their writes, on any machine: for the rest of this process they count
    /// as dead. Only the first call has an effect.
    pub fn give_up(owners: Vec<Owner>) {
        drop(GIVEN_UP.set(owners));
    }

    /// Determines whether another process runs.
    pub fn judge(&self, other: &Owner) -> Life {
        if GIVEN_UP.get().is_some_and(|owners| owners.contains(other)) {
            return Life::Dead;
        }
        if other.host != self.host {
            return Life::Elsewhere;
        }
        if other.boot != self.boot {
            return Life::Rebooted;
        }
        if other == self {
            return Life::Alive;
        }
        let runs = process::is_alive(other.pid)
            && process::start_ticks(other.pid).is_none_or(|start| start == other.start);
        if runs { Life::Alive } else { Life::Dead }
    }
}

/// Parses a fixed number of lower-case hexadecimal digits.
pub fn digits(text: &[u8]) -> Option<u64> {
    let lower = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let text = std::str::from_utf8(text).ok().filter(|_| text.iter().all(lower))?;
    u64::from_str_radix(text, 16).ok()
}

// The format of a record: plain values, readable without the S3 client and the engines.

/// Incremented when a field changes its meaning: records of another schema are not read.
const SCHEMA: u32 = 1;

/// Source and target of an object; they name a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ObjectIdentity {
    source: String,
    target: String,
    endpoint: String,
}

/// The state of one unfinished object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectRecord {
    /// Its identity when the work began; on any difference the work starts over.
    pub source: Source,
    /// Location of the finished parts.
    pub place: PartsLocation,
    /// Bytes of every part except the last.
    pub part_bytes: u64,
    /// The algorithm of the parts' checksums as S3 spells it (`CRC64NVME`); empty for none.
    pub algorithm: String,
    /// Finished parts, in no order.
    pub parts: Vec<FinishedPart>,
}

/// The source of an unfinished object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A local file.
    File {
        dev: u64,
        ino: u64,
        /// Bytes.
        size: u64,
        /// Last change of the content: seconds, nanoseconds.
        mtime: (i64, u32),
        /// Last change of the inode: seconds, nanoseconds.
        ctime: (i64, u32),
    },
    Object {
        /// Bytes.
        size: u64,
        /// ETag without quotes.
        etag: String,
        /// Its version, if one was specified.
        version: Option<String>,
    },
}

/// Location of the finished parts of an unfinished object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartsLocation {
    /// In the multipart upload with this ID.
    Upload(String),
    /// Not known yet: an upload was requested and the answer is unknown. The store may have an upload without parts
    /// whose ID is not recorded.
    Asked,
    /// In a file beside the target, with this name, device and inode.
    File {
        /// Its name, encoded as in [`ObjectIdentity`].
        name: String,
        dev: u64,
        ino: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinishedPart {
    /// Starts at 1; the part begins at offset (number - 1) × `part_bytes`.
    pub number: u32,
    pub bytes: u64,
    /// ETag of an uploaded part, without quotes; else empty.
    pub etag: String,
    /// Checksum as S3 writes it (base64); empty if none was computed.
    pub checksum: String,
}

/// A record as stored on disk.
#[derive(Serialize, Deserialize)]
struct Stored {
    schema: u32,
    identity: ObjectIdentity,
    record: ObjectRecord,
}

/// Result of [`ObjectRecord::check`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordCheck {
    /// The source is unchanged and the parts are consistent.
    Good,
    /// The source has changed.
    SourceChanged,
    /// The record is inconsistent.
    Broken,
}

impl ObjectIdentity {
    /// Makes an identity from an absolute local path or an `s3://` URL on each side, and their endpoints (one, or
    /// both joined by a space).
    pub fn new(source: &[u8], target: &[u8], endpoint: &str) -> ObjectIdentity {
        ObjectIdentity { source: text(source), target: text(target), endpoint: endpoint.to_owned() }
    }

    /// Returns the source as text: `%` and bytes that are not UTF-8 are percent-encoded.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the target in the same form.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Returns the endpoints of both sides.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    pub(super) fn file_name(&self, end: &str) -> String {
        let fields = [&self.source, &self.target, &self.endpoint];
        hashed_name(fields.into_iter().map(String::as_bytes), end)
    }
}

/// Returns the name `HASH.END` of a file about these fields, by 128 bits of a SHA-256 over them and their lengths.
pub fn hashed_name<'a>(fields: impl IntoIterator<Item = &'a [u8]>, end: &str) -> String {
    let mut hash = Context::new(&SHA256);
    for field in fields {
        hash.update(&(field.len() as u64).to_be_bytes());
        hash.update(field);
    }
    let hash = hash.finish();
    format!("{}.{end}", hex(hash.as_ref().get(..16).unwrap_or_default()))
}

/// Creates a folder that only its user may read, with those above it.
///
/// # Errors
/// Those of mkdir(2).
pub fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

impl Source {
    pub fn of_file(meta: &Meta) -> Source {
        let pair = |time: Time| (time.s, time.ns);
        Source::File {
            dev: meta.dev,
            ino: meta.ino,
            size: meta.size,
            mtime: pair(meta.mtime),
            ctime: pair(meta.ctime),
        }
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> u64 {
        match self {
            Source::File { size, .. } | Source::Object { size, .. } => *size,
        }
    }
}

impl ObjectRecord {
    /// Checks that this record is about the current `source` and consistent: parts lie inside the source, none twice,
    /// each with the length that its number implies.
    pub fn check(&self, source: &Source) -> RecordCheck {
        if self.source != *source {
            return RecordCheck::SourceChanged;
        }
        let size = source.size();
        let mut numbers = std::collections::HashSet::new();
        let possible = |part: &FinishedPart| {
            let start = u64::from(part.number.checked_sub(1)?).checked_mul(self.part_bytes)?;
            let wanted = size.checked_sub(start)?.min(self.part_bytes);
            (wanted > 0 && wanted == part.bytes).then_some(())
        };
        let good = self.part_bytes > 0
            && self
                .parts
                .iter()
                .all(|part| numbers.insert(part.number) && possible(part).is_some());
        if good { RecordCheck::Good } else { RecordCheck::Broken }
    }
}

/// Encodes bytes reversibly as text: `%` and bytes that are not UTF-8 become `%XX`.
pub fn text(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(&chunk.valid().replace('%', "%25"));
        for byte in chunk.invalid() {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Decodes a text made by [`text`].
pub fn bytes(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(code) if *byte == b'%' => {
                out.push(code);
                rest = &after[2..];
            }
            _ => {
                out.push(*byte);
                rest = after;
            }
        }
    }
    out
}

pub(super) fn encode(
    identity: &ObjectIdentity,
    record: &ObjectRecord,
) -> serde_json::Result<Vec<u8>> {
    let stored = Stored { schema: SCHEMA, identity: identity.clone(), record: record.clone() };
    serde_json::to_vec(&stored)
}

pub(super) fn decode(text: &[u8]) -> Option<(ObjectIdentity, ObjectRecord)> {
    let stored: Stored = of_schema(text, SCHEMA).ok()??;
    Some((stored.identity, stored.record))
}

/// Decodes a JSON file that says its schema; `None` if it is of another one.
pub(super) fn of_schema<T: DeserializeOwned>(
    text: &[u8],
    schema: u32,
) -> serde_json::Result<Option<T>> {
    /// Only the version: the rest may have another form.
    #[derive(Deserialize)]
    struct Versioned {
        schema: u32,
    }
    let versioned: Versioned = serde_json::from_slice(text)?;
    if versioned.schema != schema {
        return Ok(None);
    }
    serde_json::from_slice(text).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let name = format!("hakobu-journal-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&path);
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn record() -> ObjectRecord {
        ObjectRecord {
            source: Source::File { dev: 1, ino: 2, size: 25, mtime: (-3, 4), ctime: (5, 6) },
            place: PartsLocation::Upload("id+/=\"".into()),
            part_bytes: 10,
            algorithm: "CRC64NVME".into(),
            parts: vec![
                FinishedPart {
                    number: 3,
                    bytes: 5,
                    etag: "e".into(),
                    checksum: "AAAAAAAAAAA=".into(),
                },
                FinishedPart { number: 1, bytes: 10, etag: "f".into(), checksum: String::new() },
            ],
        }
    }

    #[test]
    fn a_record_comes_back_and_is_private() {
        let folder = Folder::new("round");
        let journal = Journal::at(folder.0.join("a/b"));
        let identity = ObjectIdentity::new(b"/a\xff%", b"s3://b/k", "http://h");
        assert_eq!(identity.source(), "/a%FF%25");
        assert_eq!(bytes(identity.source()), b"/a\xff%");
        assert_eq!(bytes("%4%zz%\u{e9}"), "%4%zz%\u{e9}".as_bytes());
        let claim = journal.claim(&identity).unwrap().unwrap();
        assert_eq!(claim.load(), None);
        claim.save(&record()).unwrap();
        assert_eq!(claim.load(), Some(record()));
        assert_eq!(journal.list().unwrap(), [(identity.clone(), record())]);
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        assert_eq!(mode(&folder.0.join("a/b")), 0o700);
        for name in fs::read_dir(folder.0.join("a/b")).unwrap() {
            assert_eq!(mode(&name.unwrap().path()), 0o600);
        }
        claim.remove().unwrap();
        assert_eq!(fs::read_dir(folder.0.join("a/b")).unwrap().count(), 0);
    }

    #[test]
    fn ended_work_is_tidied_away() {
        let folder = Folder::new("tidy");
        let journal = Journal::at(folder.0.clone());
        let named = |name: &str| ObjectIdentity::new(name.as_bytes(), b"s3://b/k", "");
        let put = |name: &str| {
            let claim = journal.claim(&named(name)).unwrap().unwrap();
            claim.save(&record()).unwrap();
            claim
        };
        drop((put("/over"), put("/goes-on")));
        let (held, lock) = (put("/held"), journal.claim(&named("/only-a-lock")).unwrap());
        drop(lock);
        fs::write(folder.0.join(named("/only-a-lock").file_name("new")), "{").unwrap();
        fs::write(folder.0.join("seeds.lock"), "").unwrap();
        journal.tidy(|identity, _| identity.source() != "/goes-on").unwrap();
        let mut left: Vec<_> =
            fs::read_dir(&folder.0).unwrap().map(|name| name.unwrap().file_name()).collect();
        let mut expected: Vec<std::ffi::OsString> = vec!["seeds.lock".into()];
        for name in ["/goes-on", "/held"] {
            expected.extend(["json", "lock"].map(|end| named(name).file_name(end).into()));
        }
        left.sort();
        expected.sort();
        assert_eq!(left, expected);
        drop(held);
        Journal::at(folder.0.join("missing")).tidy(|_, _| true).unwrap();
    }

    #[test]
    fn one_object_has_one_claim() {
        let folder = Folder::new("claim");
        let journal = Journal::at(folder.0.clone());
        let one = ObjectIdentity::new(b"/a", b"s3://b/k", "");
        let other = ObjectIdentity::new(b"/as", b"3://b/k", "");
        let claim = journal.claim(&one).unwrap().unwrap();
        assert!(journal.claim(&one).unwrap().is_none());
        assert!(journal.claim(&other).unwrap().is_some());
        drop(claim);
        let claim = journal.claim(&one).unwrap().unwrap();
        claim.remove().unwrap();
        assert!(journal.claim(&one).unwrap().is_some());
    }

    #[test]
    fn broken_records_are_no_records() {
        let folder = Folder::new("broken");
        let journal = Journal::at(folder.0.clone());
        let identity = ObjectIdentity::new(b"/a", b"s3://b/k", "");
        let claim = journal.claim(&identity).unwrap().unwrap();
        claim.save(&record()).unwrap();
        let path = folder.0.join(identity.file_name("json"));
        let whole = fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            fs::write(&path, whole.get(..cut).unwrap()).unwrap();
            assert_eq!(claim.load(), None, "cut at {cut}");
        }
        let newer =
            String::from_utf8(whole.clone()).unwrap().replace("\"schema\":1", "\"schema\":2");
        fs::write(&path, newer).unwrap();
        assert_eq!(claim.load(), None);
        // A record of something else under this name: a collision, or a copied file.
        let other = ObjectIdentity::new(b"/b", b"s3://b/k", "");
        fs::write(&path, encode(&other, &record()).unwrap()).unwrap();
        assert_eq!(claim.load(), None);
        fs::write(&path, whole).unwrap();
        assert_eq!(claim.load(), Some(record()));
    }

    #[test]
    fn a_record_is_checked_against_its_source() {
        let good = record();
        assert_eq!(good.check(&good.source), RecordCheck::Good);
        let Source::File { dev, ino, size, mtime, ctime } = good.source else { panic!() };
        for changed in [
            Source::File { dev: dev + 1, ino, size, mtime, ctime },
            Source::File { dev, ino: ino + 1, size, mtime, ctime },
            Source::File { dev, ino, size: size + 1, mtime, ctime },
            Source::File { dev, ino, size, mtime: (mtime.0, mtime.1 + 1), ctime },
            Source::File { dev, ino, size, mtime, ctime: (ctime.0 + 1, ctime.1) },
            Source::Object { size, etag: String::new(), version: None },
        ] {
            assert_eq!(record().check(&changed), RecordCheck::SourceChanged);
        }
        let breaks: [fn(&mut ObjectRecord); 6] = [
            |record| record.part_bytes = 0,
            |record| record.parts[0].number = 0,
            |record| record.parts[0].number = 4,
            |record| record.parts[0].number = 1,
            |record| record.parts[1].bytes = 9,
            |record| record.parts[0].number = u32::MAX,
        ];
        for (number, change) in breaks.iter().enumerate() {
            let mut broken = record();
            change(&mut broken);
            let source = broken.source.clone();
            assert_eq!(broken.check(&source), RecordCheck::Broken, "{number}");
        }
    }

    #[test]
    fn a_process_is_told_from_others() {
        let me = Owner::me();
        assert_eq!(me.judge(&me), Life::Alive);
        for (other, life) in [
            (Owner { host: me.host ^ 1, ..me }, Life::Elsewhere),
            (Owner { boot: me.boot ^ 1, ..me }, Life::Rebooted),
            (Owner { start: me.start + 1, ..me }, Life::Dead),
            (Owner { pid: 0x0fff_fff0, ..me }, Life::Dead),
        ] {
            assert_eq!(me.judge(&other), life, "{other:?}");
        }
        let parent = std::os::unix::process::parent_id();
        let start = process::start_ticks(parent).expect("the parent runs");
        assert_eq!(me.judge(&Owner { pid: parent, start, ..me }), Life::Alive);
    }

    #[test]
    fn a_process_has_a_text() {
        let me = Owner::me();
        assert_eq!(Owner::parse(&me.text()), Some(me));
        for other in ["", "1-2-3", "100000000-2-3-4", "x-2-3-4"] {
            assert_eq!(Owner::parse(other), None, "{other}");
        }
    }

    #[test]
    fn digits_are_of_one_form() {
        assert_eq!(digits(b"00ff"), Some(255));
        for other in [&b"00FF"[..], b"+0ff", b"0x1f", b"", b"00f ", b"\xff\xff"] {
            assert_eq!(digits(other), None, "{other:?}");
        }
    }
}
