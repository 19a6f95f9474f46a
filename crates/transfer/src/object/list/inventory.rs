//! A listing from an S3 Inventory: rows of CSV files that a manifest names, in no order, compared
//! with their checksums, sorted here. It is as old as the inventory is, so it is for plans: what
//! moves looks at each object again.

use super::{Item, Listing, Pattern, Trouble, send_all};
use crate::location::{Location, S3Url};
use crate::object::Entry;
use crate::policy::NameRange;
use csv::{ByteRecord, ReaderBuilder};
use flate2::bufread::MultiGzDecoder;
use hakobu_core::error::{Cause, Fatal, quoted};
use hakobu_core::percent;
use hakobu_core::unit::{Kind, Meta, Time};
use hakobu_s3::ops::{Etag, GetOptions, get_object};
use hakobu_s3::{Algorithm, Error, Hasher, S3Session, Settings, with_session};
use serde::Deserialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of entries that are sorted in memory.
const SORTED_BYTES: usize = 48 << 20;

/// The entries of an inventory below a prefix, sorted by their names.
#[derive(Debug)]
pub struct Inventory {
    sorted: Sorted,
    /// Rows by what became of them.
    pub counts: InventoryCounts,
}

impl Inventory {
    /// Reads an inventory: `manifest` names its `manifest.json`, `settings` are of its store, and
    /// `end` is the prefix of source or target whose objects are meant. Rows of older versions and
    /// delete markers, and keys outside of the prefix, are left out.
    ///
    /// # Errors
    /// Code 1: it is no inventory of this bucket, or its files are not CSV. Code 11: it cannot be
    /// read, or a file is not what its checksum says. Nothing of it is used then.
    pub fn read(manifest: &Location, settings: &Settings, end: &S3Url) -> Result<Inventory, Fatal> {
        let shown = quoted(manifest.as_typed());
        let refused = |why: String| Fatal::new(1, format!("cannot use inventory {shown}: {why}"));
        let failed = |why: String| Fatal::new(11, format!("cannot read inventory {shown}: {why}"));
        let whole = end.key.is_empty() || end.key.ends_with(b"/");
        if !whole || Pattern::parse(&end.key).is_some() {
            let why = "it needs a prefix with a slash at its end and without wildcards";
            return Err(refused(why.into()));
        }
        let files = InventoryLocation::open(manifest, settings).map_err(failed)?;
        let content = files.manifest().map_err(failed)?;
        let Manifest { bucket, columns, files: named } = parse(&content).map_err(refused)?;
        if bucket != end.bucket {
            let other = &end.bucket;
            return Err(refused(format!("it is one of bucket '{bucket}', not of '{other}'")));
        }
        let wanted = InventoryColumns { bucket: &bucket, prefix: &end.key, columns: &columns };
        let mut sorter = Sorter::new(SORTED_BYTES);
        let mut counts = InventoryCounts::default();
        for file in &named {
            let in_file = |why: String| failed(format!("{}: {why}", quoted(&file.key)));
            let content = files.data(file).map_err(in_file)?;
            read(content, &wanted, &mut counts, &mut sorter).map_err(in_file)?;
        }
        Ok(Inventory { sorted: sorter.finish(), counts })
    }
}

/// Lists a range of an inventory. Two rows for one key are found as two entries of one name in any listing.
pub fn inventory(of: &Arc<Inventory>, range: NameRange) -> Listing {
    let (sender, listing) = Listing::channel(false, false);
    let of = Arc::clone(of);
    Listing::start(sender, "list-inventory", move |sender| {
        // An error is passed on wherever it is.
        let before = |entry: &Entry| *entry.name < *range.from;
        let inside = |entry: &Entry| range.contains(&entry.name);
        let entries = of.sorted.entries().skip_while(|read| read.as_ref().is_ok_and(before));
        let inside = entries.take_while(|read| read.as_ref().map_or(true, inside));
        let entries = inside.map(|read| -> Item {
            read.map_err(|error| Trouble::Failed(super::failed(message(&error))))
        });
        send_all(&sender, entries);
    });
    listing
}

// The files of an inventory, of this machine or in a store. A data file is compared with its size
// and checksum before anything of it is used.

/// The largest manifest: one of a million files takes less.
const MANIFEST_BYTES_MAX: u64 = 256 << 20;

pub enum InventoryLocation {
    /// On this machine.
    Local(PathBuf),
    /// In a bucket, by the key of its manifest.
    Store { store: Arc<S3Session>, bucket: String, key: Vec<u8> },
}

fn said(error: io::Error) -> String {
    Cause::System(error).to_string()
}

impl InventoryLocation {
    /// # Errors
    /// A sentence: the store cannot be opened.
    pub fn open(manifest: &Location, settings: &Settings) -> Result<InventoryLocation, String> {
        match manifest {
            Location::Local(path) => Ok(InventoryLocation::Local(path.clone())),
            Location::S3(url) => {
                let store = S3Session::open(settings).map_err(|error| error.to_string())?;
                let (bucket, key) = (url.bucket.clone(), url.key.clone());
                Ok(InventoryLocation::Store { store, bucket, key })
            }
            Location::Null => Err("null: is not a file".to_owned()),
        }
    }

    /// The manifest's content.
    pub fn manifest(&self) -> Result<Vec<u8>, String> {
        let file = match self {
            InventoryLocation::Local(path) => File::open(path).map_err(said)?,
            InventoryLocation::Store { store, bucket, key } => fetched(store, bucket, key)?,
        };
        let mut content = Vec::new();
        file.take(MANIFEST_BYTES_MAX + 1).read_to_end(&mut content).map_err(said)?;
        match content.len() as u64 > MANIFEST_BYTES_MAX {
            true => Err("its manifest is too large".to_owned()),
            false => Ok(content),
        }
    }

    /// A data file, checked, at its beginning.
    ///
    /// # Errors
    /// A sentence: it is not there, cannot be read, or is another file than the manifest names.
    pub fn data(&self, named: &DataFile) -> Result<File, String> {
        let mut file = match self {
            InventoryLocation::Local(manifest) => {
                let places = beside(manifest, &named.key);
                let found = places.iter().find_map(|path| File::open(path).ok());
                found.ok_or("it is neither beside its manifest nor in a directory data there")?
            }
            InventoryLocation::Store { store, bucket, .. } => {
                fetched(store, bucket, named.key.as_bytes())?
            }
        };
        let mut hasher = Hasher::new(Algorithm::Md5);
        let mut buffer = vec![0; 256 << 10];
        let mut size = 0;
        loop {
            match file.read(&mut buffer).map_err(said)? {
                0 => break,
                some => {
                    hasher.update(buffer.get(..some).unwrap_or_default());
                    size += some as u64;
                }
            }
        }
        if size != named.size {
            return Err(format!("it has {size} bytes, and its manifest says {}", named.size));
        }
        if hasher.finish().value != named.md5 {
            return Err("its MD5 checksum is not that of its manifest".to_owned());
        }
        file.seek(SeekFrom::Start(0)).map_err(said)?;
        Ok(file)
    }
}

/// An object in a file without a name, at its beginning.
fn fetched(store: &Arc<S3Session>, bucket: &str, key: &[u8]) -> Result<File, String> {
    let mut file = tempfile::tempfile().map_err(|error| {
        format!("cannot make a file in {}: {}", std::env::temp_dir().display(), said(error))
    })?;
    let mut unwritten = None;
    let got = with_session(store, async |client| {
        let mut tries = 1;
        loop {
            let read = async {
                let mut download = get_object(&client, bucket, key, &GetOptions::default()).await?;
                while let Some(bytes) = download.chunk().await? {
                    if let Err(error) = file.write_all(&bytes) {
                        unwritten = Some(error);
                        break;
                    }
                }
                Ok::<(), Error>(())
            };
            match read.await {
                Err(error) if error.is_transient() && client.may_retry(tries, &error).await => {
                    tries += 1;
                    let anew = file.seek(SeekFrom::Start(0)).and_then(|_| file.set_len(0));
                    if let Err(error) = anew {
                        unwritten = Some(error);
                        return Ok(());
                    }
                }
                read => return read,
            }
        }
    });
    got.map_err(|error| error.to_string())?;
    if let Some(error) = unwritten {
        return Err(format!(
            "cannot keep it in {}: {}",
            std::env::temp_dir().display(),
            said(error)
        ));
    }
    file.seek(SeekFrom::Start(0)).map_err(said)?;
    Ok(file)
}

/// Places on this machine of what a manifest names: its last component beside the manifest, in a
/// folder `data` there, and in the `data` of the inventory.
fn beside(manifest: &Path, key: &str) -> Vec<PathBuf> {
    let folder = manifest.parent().map(PathBuf::from).unwrap_or_default();
    let name = key.rsplit('/').next().unwrap_or_default();
    if matches!(name, "" | "." | "..") {
        return Vec::new();
    }
    [folder.join(name), folder.join("data").join(name), folder.join("../data").join(name)].into()
}

// `manifest.json` of an S3 Inventory (Amazon S3 User Guide, "Locating your inventory list").

/// A manifest that can be used.
#[derive(Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The bucket that was listed.
    pub bucket: String,
    /// The columns of its files.
    pub columns: Columns,
    pub files: Vec<DataFile>,
}

/// A file of an inventory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFile {
    /// Its key in the bucket of the inventory.
    pub key: String,
    /// Its bytes.
    pub size: u64,
    /// MD5 over them.
    pub md5: [u8; 16],
}

/// Positions of the columns that count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    pub count: usize,
    /// `Bucket`.
    pub bucket: usize,
    /// `Key`.
    pub key: usize,
    /// `Size`.
    pub size: usize,
    /// `LastModifiedDate`.
    pub modified: usize,
    /// `ETag`.
    pub etag: Option<usize>,
    /// `IsLatest`.
    pub latest: Option<usize>,
    /// `IsDeleteMarker`.
    pub marker: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    source_bucket: String,
    file_format: String,
    file_schema: String,
    files: Vec<WrittenFile>,
}

#[derive(Deserialize)]
struct WrittenFile {
    key: String,
    size: u64,
    #[serde(rename = "MD5checksum")]
    md5: String,
}

/// Reads a manifest.
///
/// # Errors
/// A sentence: why it cannot be used.
pub fn parse(content: &[u8]) -> Result<Manifest, String> {
    let written: Written = serde_json::from_slice(content)
        .map_err(|error| format!("it is not a manifest of an S3 Inventory: {error}"))?;
    let Written { source_bucket, file_format, file_schema, files } = written;
    if !file_format.eq_ignore_ascii_case("CSV") {
        return Err(format!(
            "reading {file_format} files is not supported\nhint: configure the inventory for CSV"
        ));
    }
    let columns = columns(&file_schema)?;
    let files = files.into_iter().map(|WrittenFile { key, size, md5 }| {
        let md5 = Etag::from(md5.to_ascii_lowercase())
            .md5()
            .ok_or_else(|| format!("'{key}' has no MD5 checksum"))?;
        Ok(DataFile { key, size, md5 })
    });
    let files: Result<Vec<DataFile>, String> = files.collect();
    Ok(Manifest { bucket: source_bucket, columns, files: files? })
}

fn columns(schema: &str) -> Result<Columns, String> {
    let names: Vec<&str> = schema.split(',').map(str::trim).collect();
    let at = |wanted: &str| names.iter().position(|name| *name == wanted);
    let needed = |wanted: &str| {
        let missing =
            || format!("it has no column {wanted}\nhint: add it to the inventory's configuration");
        at(wanted).ok_or_else(missing)
    };
    let columns = Columns {
        count: names.len(),
        bucket: needed("Bucket")?,
        key: needed("Key")?,
        size: needed("Size")?,
        modified: needed("LastModifiedDate")?,
        etag: at("ETag"),
        latest: at("IsLatest"),
        marker: at("IsDeleteMarker"),
    };
    // Rows of one key could not be told apart.
    if at("VersionId").is_some() {
        needed("IsLatest")?;
        needed("IsDeleteMarker")?;
    }
    Ok(columns)
}

// Rows of an inventory's files: CSV in gzip, without a head; keys are URL-encoded.

/// The longest key (Amazon S3 User Guide, "Creating object key names").
const KEY_BYTES_MAX: usize = 1024;

/// Rows by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InventoryCounts {
    /// Objects below the prefix.
    pub kept: u64,
    /// Keys outside of the prefix.
    pub outside: u64,
    /// Older versions and delete markers.
    pub old: u64,
}

/// Rows that are looked for.
pub struct InventoryColumns<'a> {
    /// The bucket that all rows have to be of.
    pub bucket: &'a str,
    /// The prefix that is taken off keys.
    pub prefix: &'a [u8],
    pub columns: &'a Columns,
}

/// Reads a data file and hands its objects to `sorter`.
///
/// # Errors
/// A sentence, with the row.
pub fn read(
    file: File,
    wanted: &InventoryColumns<'_>,
    counts: &mut InventoryCounts,
    sorter: &mut Sorter,
) -> Result<(), String> {
    let unpacked = MultiGzDecoder::new(BufReader::new(file));
    rows(unpacked, wanted, counts, |entry| sorter.push(entry).map_err(|e| message(&e)))
}

fn rows(
    content: impl Read,
    wanted: &InventoryColumns<'_>,
    counts: &mut InventoryCounts,
    mut keep: impl FnMut(Entry) -> Result<(), String>,
) -> Result<(), String> {
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(content);
    let mut record = ByteRecord::new();
    let mut number = 0_u64;
    loop {
        number += 1;
        let in_row = |why: String| format!("row {number}: {why}");
        match reader.read_byte_record(&mut record) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) => return Err(in_row(error.to_string())),
        }
        match wanted.row(&record).map_err(in_row)? {
            Row::Kept(entry) => {
                counts.kept += 1;
                keep(entry)?;
            }
            Row::Outside => counts.outside += 1,
            Row::Old => counts.old += 1,
        }
    }
}

enum Row {
    Kept(Entry),
    Outside,
    Old,
}

impl InventoryColumns<'_> {
    fn row(&self, record: &ByteRecord) -> Result<Row, String> {
        let Columns { count, bucket, key, size, modified, etag, latest, marker } = *self.columns;
        if record.len() != count {
            let found = record.len();
            return Err(format!("it has {found} columns, and the manifest names {count}"));
        }
        let field = |at: usize| record.get(at).unwrap_or_default();
        let text = |at: usize| String::from_utf8_lossy(field(at)).into_owned();
        let flag = |at: Option<usize>, other: bool| match at.map(field) {
            None => Ok(other),
            Some(b"true") => Ok(true),
            Some(b"false") => Ok(false),
            Some(_) => Err(format!("'{}' is neither true nor false", text(at.unwrap_or(0)))),
        };
        if field(bucket) != self.bucket.as_bytes() {
            return Err(format!("it is of bucket '{}'", text(bucket)));
        }
        if !flag(latest, true)? || flag(marker, false)? {
            return Ok(Row::Old);
        }
        let decoded = percent::decode(field(key), true);
        if decoded.is_empty() || decoded.len() > KEY_BYTES_MAX {
            return Err(format!("a key has {} bytes", decoded.len()));
        }
        let Some(name) = decoded.strip_prefix(self.prefix) else { return Ok(Row::Outside) };
        let bytes: Option<u64> = text(size)
            .bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| text(size).parse().ok())
            .flatten();
        let bytes = bytes.ok_or_else(|| format!("'{}' is not a size", text(size)))?;
        let time: Result<jiff::Timestamp, _> = text(modified).parse();
        let time = time.map_err(|_| format!("'{}' is not a time", text(modified)))?;
        let ns = u32::try_from(time.subsec_nanosecond()).unwrap_or(0);
        let mtime = Time { s: time.as_second(), ns };
        let is_marker = bytes == 0 && decoded.ends_with(b"/");
        let kind = if is_marker { Kind::Dir } else { Kind::File };
        let etag = etag.map(|at| text(at).trim_matches('"').into()).unwrap_or_default();
        Ok(Row::Kept(Entry { name: name.into(), meta: Meta::bare(kind, bytes, mtime), etag }))
    }
}

// Entries sorted by their names in bounded memory: what fills it goes to a file without a name, and
// such runs are merged when they are read.

/// Bytes of a run that are read at a time.
const READ_BYTES: usize = 64 << 10;
/// Bytes of an entry beside its name and an ETag that does not fit inside it.
const ENTRY_BYTES: usize = size_of::<Entry>();

/// A failure in words: files lie in the folder for temporary ones.
pub fn message(error: &io::Error) -> String {
    let error = error
        .raw_os_error()
        .map_or(io::ErrorKind::InvalidData.into(), io::Error::from_raw_os_error);
    format!("cannot sort it in {}: {}", std::env::temp_dir().display(), Cause::System(error))
}

/// Takes entries in any order.
pub struct Sorter {
    bytes_max: usize,
    bytes: usize,
    entries: Vec<Entry>,
    runs: Vec<File>,
}

/// All entries, sorted.
#[derive(Debug)]
pub struct Sorted {
    runs: Vec<File>,
    rest: Vec<Entry>,
}

fn sort(entries: &mut [Entry]) {
    entries.sort_by(|a, b| a.name.cmp(&b.name));
}

impl Sorter {
    /// A sorter that holds about so many bytes.
    pub fn new(bytes_max: usize) -> Sorter {
        Sorter { bytes_max, bytes: 0, entries: Vec::new(), runs: Vec::new() }
    }

    /// Takes an entry.
    ///
    /// # Errors
    /// The system's: a file cannot be made or written.
    pub fn push(&mut self, entry: Entry) -> io::Result<()> {
        self.bytes += ENTRY_BYTES + entry.name.len() + entry.etag.len();
        self.entries.push(entry);
        if self.bytes < self.bytes_max {
            return Ok(());
        }
        sort(&mut self.entries);
        let mut out = BufWriter::with_capacity(READ_BYTES, tempfile::tempfile()?);
        for entry in self.entries.drain(..) {
            write(&entry, &mut out)?;
        }
        self.runs.push(out.into_inner().map_err(io::IntoInnerError::into_error)?);
        self.bytes = 0;
        Ok(())
    }

    /// Everything that was taken.
    pub fn finish(mut self) -> Sorted {
        sort(&mut self.entries);
        Sorted { runs: self.runs, rest: self.entries }
    }
}

fn write(entry: &Entry, out: &mut impl Write) -> io::Result<()> {
    let Entry { name, meta, etag } = entry;
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).map_err(io::Error::other);
    out.write_all(&length(name)?.to_le_bytes())?;
    out.write_all(&length(etag.as_bytes())?.to_le_bytes())?;
    out.write_all(&[u8::from(meta.kind == Kind::Dir)])?;
    out.write_all(&meta.size.to_le_bytes())?;
    out.write_all(&meta.mtime.s.to_le_bytes())?;
    out.write_all(&meta.mtime.ns.to_le_bytes())?;
    out.write_all(name)?;
    out.write_all(etag.as_bytes())
}

/// A run while it is read: a file without its own position, so that others can read it, too.
struct At<'a> {
    file: &'a File,
    at: u64,
}

impl Read for At<'_> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let got = self.file.read_at(space, self.at)?;
        self.at += got as u64;
        Ok(got)
    }
}

/// The next entry of a run; `None` at the end.
fn read_entry(run: &mut impl BufRead) -> io::Result<Option<Entry>> {
    if run.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let mut part = |count: usize| {
        let mut bytes = vec![0; count];
        run.read_exact(&mut bytes).map(|()| bytes)
    };
    let (name, etag) = (number(&part(4)?) as usize, number(&part(4)?) as usize);
    let kind = if part(1)? == [0] { Kind::File } else { Kind::Dir };
    let size = number(&part(8)?);
    let mtime = Time { s: number(&part(8)?) as i64, ns: number(&part(4)?) as u32 };
    let (name, etag) = (part(name)?, String::from_utf8(part(etag)?).map_err(io::Error::other)?);
    let meta = Meta::bare(kind, size, mtime);
    Ok(Some(Entry { name: name.into(), meta, etag: etag.into() }))
}

/// A number of up to eight bytes, the lowest first.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

impl Sorted {
    /// All entries in the order of their names; ends after a failure. May be called again.
    pub fn entries(&self) -> impl Iterator<Item = io::Result<Entry>> + '_ {
        let run = |file| BufReader::with_capacity(READ_BYTES, At { file, at: 0 });
        let mut runs: Vec<_> = self.runs.iter().map(run).collect();
        let mut rest = self.rest.iter().cloned();
        // The name of the next entry of each run, and the entries without their names.
        let mut heads: BinaryHeap<Reverse<(Box<[u8]>, usize)>> = BinaryHeap::new();
        let mut nameless: Vec<Option<Entry>> = vec![None; runs.len() + 1];
        let (mut waiting, mut over): (Vec<usize>, bool) = ((0..=runs.len()).collect(), false);
        std::iter::from_fn(move || {
            if over {
                return None;
            }
            for run in waiting.drain(..) {
                let next = match runs.get_mut(run) {
                    Some(reading) => read_entry(reading),
                    None => Ok(rest.next()),
                };
                match next {
                    Ok(Some(mut entry)) => {
                        heads.push(Reverse((std::mem::take(&mut entry.name), run)));
                        nameless[run] = Some(entry);
                    }
                    Ok(None) => {}
                    Err(error) => {
                        over = true;
                        return Some(Err(error));
                    }
                }
            }
            let Reverse((name, run)) = heads.pop()?;
            waiting.push(run);
            Some(Ok(Entry { name, ..nameless[run].take()? }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: &str, schema: &str, md5: &str) -> String {
        format!(
            r#"{{"sourceBucket":"b","destinationBucket":"arn:aws:s3:::d","version":"2016-11-30",
            "fileFormat":"{format}","fileSchema":"{schema}",
            "files":[{{"key":"d/x.csv.gz","size":7,"MD5checksum":"{md5}"}}]}}"#
        )
    }

    const MD5: &str = "000102030405060708090a0b0c0d0e0f";

    proptest::proptest! {
        /// Bytes that are no manifest are a sentence, and nothing worse.
        #[test]
        fn anything_can_be_read(content: Vec<u8>, schema in "[A-Za-z, ]{0,60}", md5 in "\\PC{0,40}") {
            drop(parse(&content));
            drop(parse(written("CSV", &schema, &md5.replace(['"', '\\'], "")).as_bytes()));
        }
    }

    #[test]
    fn columns_are_found_by_their_names() {
        let schema = "Bucket, Key, VersionId, IsLatest, IsDeleteMarker, Size, LastModifiedDate";
        let found = parse(written("CSV", schema, MD5).as_bytes()).unwrap();
        let Columns { count, key, size, latest, marker, etag, .. } = found.columns;
        assert_eq!((count, key, size, latest, marker, etag), (7, 1, 5, Some(3), Some(4), None));
        assert_eq!((found.files[0].size, found.files[0].md5[15]), (7, 15));
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let plain = "Bucket, Key, Size, LastModifiedDate";
        for (text, why) in [
            (written("ORC", plain, MD5), "reading ORC files is not supported"),
            (written("Parquet", plain, MD5), "reading Parquet files is not supported"),
            (written("CSV", "Bucket, Key, Size", MD5), "no column LastModifiedDate"),
            (written("CSV", "Bucket, Key, LastModifiedDate", MD5), "no column Size"),
            (
                written("CSV", "Bucket, Key, VersionId, Size, LastModifiedDate", MD5),
                "no column IsLatest",
            ),
            (written("CSV", plain, "00"), "has no MD5 checksum"),
            (written("CSV", plain, &"+1".repeat(16)), "has no MD5 checksum"),
            ("{}".to_owned(), "not a manifest of an S3 Inventory"),
        ] {
            let refused = parse(text.as_bytes()).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }

    fn columns() -> Columns {
        let (latest, marker) = (Some(2), Some(3));
        let (count, bucket, key, size, modified) = (6, 0, 1, 4, 5);
        Columns { count, bucket, key, size, modified, etag: None, latest, marker }
    }

    fn read(content: &str) -> Result<(Vec<Entry>, InventoryCounts), String> {
        let columns = columns();
        let wanted = InventoryColumns { bucket: "b", prefix: b"p/", columns: &columns };
        let (mut kept, mut counts) = (Vec::new(), InventoryCounts::default());
        rows(content.as_bytes(), &wanted, &mut counts, |entry| {
            kept.push(entry);
            Ok(())
        })?;
        Ok((kept, counts))
    }

    proptest::proptest! {
        /// Whatever rows hold: entries are below the prefix, or there is a sentence.
        #[test]
        fn any_rows_can_be_read(
            fields in proptest::collection::vec("(b|p/[a-z%+]{0,9}|true|false|[0-9]{1,22}|2024-02-03T04:05:06Z|\\PC{0,5})", 0..40),
            raw: Vec<u8>,
        ) {
            for content in [fields.chunks(6).map(|row| row.join(",")).collect::<Vec<_>>().join("\n").into_bytes(), raw] {
                let columns = columns();
                let wanted = InventoryColumns { bucket: "b", prefix: b"p/", columns: &columns };
                let mut counts = InventoryCounts::default();
                let mut kept = 0;
                let read = rows(content.as_slice(), &wanted, &mut counts, |entry| {
                    kept += 1;
                    assert!(entry.name.len() < KEY_BYTES_MAX);
                    Ok(())
                });
                proptest::prop_assert_eq!(counts.kept, kept);
                drop(read);
            }
        }
    }

    #[test]
    fn rows_become_entries() {
        let content = "\"b\",\"p/a%2Cb+c%2B%C3%A4\",\"true\",\"false\",\"7\",\"2024-02-03T04:05:06.789Z\"\n\
             \"b\",\"p/a\",\"false\",\"false\",\"7\",\"2024-02-03T04:05:06.000Z\"\n\
             \"b\",\"p/gone\",\"true\",\"true\",\"\",\"2024-02-03T04:05:06.000Z\"\n\
             \"b\",\"q/a\",\"true\",\"false\",\"7\",\"2024-02-03T04:05:06.000Z\"\n\
             \"b\",\"p/d/\",\"true\",\"false\",\"0\",\"2024-02-03T04:05:06.000Z\"\n";
        let (kept, counts) = read(content).unwrap();
        assert_eq!(counts, InventoryCounts { kept: 2, outside: 1, old: 2 });
        assert_eq!(&*kept[0].name, "a,b c+\u{e4}".as_bytes());
        assert_eq!(kept[0].meta.mtime, Time { s: 1_706_933_106, ns: 789_000_000 });
        assert_eq!((&*kept[1].name, kept[1].meta.kind), (&b"d/"[..], Kind::Dir));
    }

    #[test]
    fn rows_that_are_none_are_refused() {
        for (row, why) in [
            (
                "\"c\",\"p/a\",\"true\",\"false\",\"7\",\"2024-02-03T04:05:06.000Z\"",
                "of bucket 'c'",
            ),
            ("\"b\",\"p/a\",\"true\",\"false\",\"7\"", "it has 5 columns"),
            ("\"b\",\"p/a\",\"yes\",\"false\",\"7\",\"2024-02-03T04:05:06.000Z\"", "neither true"),
            (
                "\"b\",\"p/a\",\"true\",\"false\",\"-7\",\"2024-02-03T04:05:06.000Z\"",
                "is not a size",
            ),
            ("\"b\",\"p/a\",\"true\",\"false\",\"\",\"2024-02-03T04:05:06.000Z\"", "is not a size"),
            ("\"b\",\"p/a\",\"true\",\"false\",\"7\",\"yesterday\"", "is not a time"),
            (
                "\"b\",\"\",\"true\",\"false\",\"7\",\"2024-02-03T04:05:06.000Z\"",
                "a key has 0 bytes",
            ),
        ] {
            let refused = read(row).err().unwrap_or_default();
            assert!(refused.starts_with("row 1: ") && refused.contains(why), "{row}: {refused}");
        }
    }

    proptest::proptest! {
        /// Entries come back in order and unchanged with any memory limit.
        #[test]
        fn entries_come_back_sorted(
            names in proptest::collection::vec(proptest::collection::vec(0..=255_u8, 0..300), 0..60),
            size: u64, s: i64, ns in 0..1_000_000_000_u32, bytes_max in 1..8_000_usize,
        ) {
            let entry = |(at, name): (usize, &Vec<u8>)| Entry {
                name: name.as_slice().into(),
                meta: Meta::bare(if at % 3 == 0 { Kind::Dir } else { Kind::File }, size, Time { s, ns }),
                etag: "e".repeat(at % 5).into(),
            };
            let mut expected: Vec<Entry> = names.iter().enumerate().map(entry).collect();
            let mut sorter = Sorter::new(bytes_max);
            expected.iter().for_each(|entry| sorter.push(entry.clone()).unwrap());
            let sorted = sorter.finish();
            sort(&mut expected);
            let text = |entry: &Entry| {
                (entry.name.clone(), entry.meta.size, entry.meta.mtime, entry.meta.kind, entry.etag.clone())
            };
            for _ in 0..2 {
                let found: Vec<Entry> = sorted.entries().map(Result::unwrap).collect();
                let (found, expected): (Vec<_>, Vec<_>) =
                    (found.iter().map(text).collect(), expected.iter().map(text).collect());
                proptest::prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn a_run_that_was_cut_off_is_an_error() {
        let mut sorter = Sorter::new(1);
        let meta = Meta::bare(Kind::File, 1, Time::default());
        sorter.push(Entry { name: (*b"abc").into(), meta, etag: "".into() }).unwrap();
        let sorted = sorter.finish();
        sorted.runs[0].set_len(30).unwrap();
        let read: Vec<_> = sorted.entries().collect();
        assert!(read.len() == 1 && read[0].is_err());
    }
}
