//! The content of a shard: one record an entry, in frames of zstd. Frames are written as they fill, so that a plan takes
//! little memory however many shards are open, and each is read without those before it.

use crate::folder::{RunError, RunFolder};
use crate::plan::{Shard, ShardFile};
use hakobu_core::unit::{Kind, Time};
use hakobu_core::varint;
use std::io::{BufRead, BufReader};

/// The longest part of a name that a record adds: a store's key has at most 1,024 bytes, a path at most 4,096.
const NAME_BYTES_MAX: usize = 1 << 16;
/// Level of compression: records hold little that repeats.
const LEVEL: i32 = 1;
/// Bytes that are unpacked at a time.
const BUFFER_BYTES: usize = 64 << 10;

/// One entry of a shard, as the plan saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardEntry {
    /// Its type.
    pub kind: Kind,
    /// Bytes of content.
    pub size: u64,
    /// Last change of the content.
    pub mtime: Time,
    /// Number of its root in the plan.
    pub root: u32,
    /// Its name below the root.
    pub name: Vec<u8>,
}

/// The bits of a record's first byte that are the number of its type.
const KIND_BITS: u8 = 7;
/// The record has the time of the one before it.
const SAME_TIME: u8 = 8;
/// The record has the root of the one before it.
const SAME_ROOT: u8 = 16;

/// The records of a frame that is being filled. A record holds what differs from the one before it: entries of a shard
/// lie together, so that names share their beginnings.
#[derive(Default)]
pub struct ShardFrame {
    raw: Vec<u8>,
    last: Option<(Time, u32)>,
    name: Vec<u8>,
    next_name: Vec<u8>,
}

impl ShardFrame {
    /// Adds an entry; its name is `folder` followed by `name`.
    pub fn push(&mut self, (kind, size, mtime): (Kind, u64, Time), root: u32, name: [&[u8]; 2]) {
        self.next_name.clear();
        name.iter().for_each(|part| self.next_name.extend_from_slice(part));
        let mut first =
            Kind::KNOWN.iter().position(|known| *known == kind).unwrap_or_default() as u8;
        let common = match self.last {
            Some((last, last_root)) => {
                first |= if last == mtime { SAME_TIME } else { 0 };
                first |= if last_root == root { SAME_ROOT } else { 0 };
                self.name.iter().zip(&self.next_name).take_while(|(a, b)| a == b).count()
            }
            None => 0,
        };
        let raw = &mut self.raw;
        raw.push(first);
        varint::push(size, raw);
        if first & SAME_TIME == 0 {
            varint::push_signed(mtime.s, raw);
            varint::push(u64::from(mtime.ns), raw);
        }
        if first & SAME_ROOT == 0 {
            varint::push(u64::from(root), raw);
        }
        let rest = self.next_name.get(common..).unwrap_or_default();
        varint::push(common as u64, raw);
        varint::push(rest.len() as u64, raw);
        raw.extend_from_slice(rest);
        self.last = Some((mtime, root));
        std::mem::swap(&mut self.name, &mut self.next_name);
    }

    /// Returns the number of bytes before compression.
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// Compresses the entries and appends them to `out`; the next frame begins.
    pub fn pack(&mut self, out: &mut Vec<u8>) -> Result<(), RunError> {
        let packed = zstd::bulk::compress(&self.raw, LEVEL)
            .map_err(|error| RunError::permanent(format!("cannot compress a shard: {error}")))?;
        out.extend_from_slice(&packed);
        self.raw.clear();
        self.last = None;
        Ok(())
    }
}

/// Reads records.
struct Records<R> {
    from: R,
    last: Option<(Time, u32)>,
    name: Vec<u8>,
}

impl<R: BufRead> Records<R> {
    fn byte(&mut self) -> Result<u8, String> {
        let mut byte = [0];
        self.from.read_exact(&mut byte).map_err(|error| error.to_string())?;
        let [byte] = byte;
        Ok(byte)
    }

    fn number(&mut self) -> Result<u64, String> {
        varint::read(|| self.byte(), "a number is too large".into())
    }

    fn small(&mut self) -> Result<u32, String> {
        u32::try_from(self.number()?).map_err(|_| "a number is too large".to_owned())
    }

    /// Reads the next record; `None` at the end.
    fn next(&mut self) -> Result<Option<ShardEntry>, String> {
        if self.from.fill_buf().map_err(|error| error.to_string())?.is_empty() {
            return Ok(None);
        }
        let first = self.byte()?;
        let kind = Kind::KNOWN.get(usize::from(first & KIND_BITS)).copied();
        let kind = kind.filter(|_| first < 2 * SAME_ROOT).ok_or("a record has no type")?;
        let size = self.number()?;
        let known = self.last;
        let last = || known.ok_or("a record refers to a missing one");
        let mtime = match first & SAME_TIME {
            0 => Time { s: varint::signed(self.number()?), ns: self.small()? },
            _ => last()?.0,
        };
        let root = match first & SAME_ROOT {
            0 => self.small()?,
            _ => last()?.1,
        };
        let (common, rest) = (self.small()? as usize, self.small()? as usize);
        if common > self.name.len() || rest > NAME_BYTES_MAX {
            return Err("a name is too long".into());
        }
        self.name.truncate(common);
        self.name.resize(common + rest, 0);
        let end = self.name.get_mut(common..).unwrap_or_default();
        self.from.read_exact(end).map_err(|error| error.to_string())?;
        if self.name.is_empty() || self.name.contains(&0) {
            return Err("a name is empty or holds a zero byte".into());
        }
        self.last = Some((mtime, root));
        Ok(Some(ShardEntry { kind, size, mtime, root, name: self.name.clone() }))
    }
}

/// The checksum of a piece as its plan has it.
pub fn crc64(content: &[u8]) -> String {
    let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, content);
    format!("{sum:016x}")
}

/// A shard that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShardError {
    /// The folder cannot be read.
    Folder(RunError),
    /// Its content is not what was planned; a sentence.
    Damaged(String),
}

/// Reads the entries of a shard and compares its files with their checksums.
pub fn read(folder: &dyn RunFolder, shard: &Shard) -> Result<Vec<ShardEntry>, ShardError> {
    let mut entries = Vec::new();
    for file in &shard.pieces {
        append(folder, file, shard.entries, &mut entries)?;
    }
    match entries.len() as u64 == shard.entries {
        true => Ok(entries),
        false => Err(ShardError::Damaged("its number of entries differs from the plan".into())),
    }
}

/// Reads the entries of one file and compares it with its checksum.
pub fn read_file(folder: &dyn RunFolder, file: &ShardFile) -> Result<Vec<ShardEntry>, ShardError> {
    let mut entries = Vec::new();
    append(folder, file, u64::MAX, &mut entries)?;
    Ok(entries)
}

fn append(
    folder: &dyn RunFolder,
    ShardFile { name, crc64: expected }: &ShardFile,
    most: u64,
    entries: &mut Vec<ShardEntry>,
) -> Result<(), ShardError> {
    let damaged = |why: &str| ShardError::Damaged(format!("shards/{name} {why}"));
    let read = folder.read(&format!("shards/{name}")).map_err(ShardError::Folder)?;
    let content = read.ok_or_else(|| damaged("is missing"))?;
    if crc64(&content) != *expected {
        return Err(damaged("is damaged: its checksum differs from the plan's"));
    }
    decode(&content, most, entries).map_err(|why| damaged(&format!("cannot be read: {why}")))
}

/// Appends entries; of more than `most` none is kept.
fn decode(content: &[u8], most: u64, entries: &mut Vec<ShardEntry>) -> Result<(), String> {
    let decoder = zstd::stream::read::Decoder::with_buffer(content).map_err(|e| e.to_string())?;
    let from = BufReader::with_capacity(BUFFER_BYTES, decoder);
    let mut records = Records { from, last: None, name: Vec::new() };
    while let Some(entry) = records.next()? {
        if entries.len() as u64 >= most {
            return Err("it has more entries than the plan".into());
        }
        entries.push(entry);
    }
    Ok(())
}

/// Returns an entry whose name, as a path, leaves its root.
pub fn outside(entries: &[ShardEntry]) -> Option<&ShardEntry> {
    let leaves = |name: &[u8]| {
        name.first() == Some(&b'/') || name.split(|byte| *byte == b'/').any(|part| part == b"..")
    };
    entries.iter().find(|entry| leaves(&entry.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pushed(frame: &mut ShardFrame, entry: &ShardEntry) {
        // Wherever a name is divided, the record is the same.
        let (folder, name) = entry.name.split_at(entry.name.len() / 2);
        frame.push((entry.kind, entry.size, entry.mtime), entry.root, [folder, name]);
    }

    fn packed(raw: &[u8]) -> Vec<u8> {
        zstd::bulk::compress(raw, LEVEL).unwrap()
    }

    proptest::proptest! {
        /// Entries are read back as they were written, with any bytes in their names.
        #[test]
        fn entries_survive(
            names in proptest::collection::vec(proptest::collection::vec(1..=255_u8, 1..40), 1..40),
            numbers in proptest::collection::vec((0..2_u64, proptest::num::i64::ANY, 0..3_u32), 40),
            size: u64, ns in 0..1_000_000_000_u32, kind in 0..Kind::KNOWN.len(),
        ) {
            let of = |(name, (same, s, root)): (Vec<u8>, &(u64, i64, u32))| {
                let mtime = if *same == 0 { Time { s: *s, ns } } else { Time { s: -1, ns: 7 } };
                // Names of a folder share its beginning.
                let name = if *root == 0 { name } else { [b"folder/", &*name].concat() };
                ShardEntry { kind: Kind::KNOWN[kind], size: size >> (s & 63), mtime, root: *root, name }
            };
            let entries: Vec<ShardEntry> = names.into_iter().zip(&numbers).map(of).collect();
            let (mut content, mut frame) = (Vec::new(), ShardFrame::default());
            for some in entries.chunks(7) {
                some.iter().for_each(|entry| pushed(&mut frame, entry));
                frame.pack(&mut content).unwrap();
            }
            let mut read = Vec::new();
            decode(&content, u64::MAX, &mut read).unwrap();
            proptest::prop_assert_eq!(read, entries);
        }

        /// Bytes that are not a shard give an error and never panic.
        #[test]
        fn anything_can_be_read(content: Vec<u8>) {
            drop(decode(&content, u64::MAX, &mut Vec::new()));
            drop(decode(&packed(&content), u64::MAX, &mut Vec::new()));
        }
    }

    /// Frames of other shards may come before one: small rests are joined.
    #[test]
    fn a_frame_needs_none_before_it() {
        let mtime = Time { s: 5, ns: 6 };
        let entry = |name: &[u8]| ShardEntry {
            kind: Kind::File,
            size: 300,
            mtime,
            root: 1,
            name: name.to_vec(),
        };
        let (mut first, mut frame) = (Vec::new(), ShardFrame::default());
        pushed(&mut frame, &entry(b"a/b"));
        assert!(frame.len() > 3);
        frame.pack(&mut first).unwrap();
        let mut second = Vec::new();
        pushed(&mut frame, &entry(b"a/c"));
        frame.pack(&mut second).unwrap();
        for content in [&second, &[&*second, &first].concat()] {
            let mut read = Vec::new();
            decode(content, u64::MAX, &mut read).unwrap();
            assert_eq!(read.first(), Some(&entry(b"a/c")));
        }
    }

    #[test]
    fn names_that_leave_their_root_are_found() {
        let entry = |name: &str| ShardEntry {
            kind: Kind::File,
            size: 0,
            mtime: Time { s: 0, ns: 0 },
            root: 0,
            name: name.as_bytes().to_vec(),
        };
        for name in ["a", "a/b", "a/..b", "..a/b", "a/b..", "a/", "a//b", "./a", "...", "a/.../b"] {
            assert_eq!(outside(&[entry(name)]), None, "{name}");
        }
        for name in ["/a", "..", "../a", "a/..", "a/../b", "a//../../b", "/"] {
            assert!(outside(&[entry("a"), entry(name)]).is_some(), "{name}");
        }
    }

    #[test]
    fn records_that_are_none_are_refused() {
        let fine = [0, 1, 4, 3, 0, 0, 1, b'a'];
        assert!(decode(&packed(&fine), 1, &mut Vec::new()).is_ok());
        assert!(decode(&packed(&fine), 0, &mut Vec::new()).is_err());
        for (at, byte) in [(0, 7), (0, 8), (0, 16), (0, 32), (5, 1), (6, 2), (6, 0), (7, 0)] {
            let mut bad = fine;
            bad[at] = byte;
            assert!(decode(&packed(&bad), u64::MAX, &mut Vec::new()).is_err(), "{bad:?}");
        }
        let endless = [&[0][..], &[0xff; 10], &[0, 0, 0, 1, b'a']].concat();
        assert!(decode(&packed(&endless), u64::MAX, &mut Vec::new()).is_err());
    }
}
