//! The content of a shard: one JSON line an entry, in frames of zstd. Frames are written as they
//! fill, so that a plan takes little memory however many shards are open.

use crate::folder::{Folder, Trouble};
use crate::plan::{Piece, Shard};
use hakobu_core::unit::{Kind, Meta, Time};
use hakobu_transfer::journal;
use std::io::{BufRead, BufReader, Read};

/// The longest line: a path of the longest length, every byte of it escaped.
const LINE_BYTES_MAX: u64 = 1 << 16;
/// Level of compression: names compress well at the fastest.
const LEVEL: i32 = 1;

/// One entry of a shard, as the plan saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
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

impl Entry {
    /// Whether an entry still is what the plan saw.
    pub fn is_still(&self, meta: &Meta) -> bool {
        let same = (self.size, self.mtime) == (meta.size, meta.mtime);
        self.kind == meta.kind && (self.kind == Kind::Dir || same)
    }
}

/// Letters of the types.
const KINDS: [(Kind, &str); 7] = [
    (Kind::File, "f"),
    (Kind::Dir, "d"),
    (Kind::Symlink, "l"),
    (Kind::Fifo, "p"),
    (Kind::Socket, "s"),
    (Kind::BlockDevice, "b"),
    (Kind::CharDevice, "c"),
];

/// Appends the line of an entry.
pub fn push_line(entry: &Entry, out: &mut Vec<u8>) {
    let letter = KINDS.iter().find(|(kind, _)| *kind == entry.kind).map_or("f", |(_, text)| text);
    let Time { s, ns } = entry.mtime;
    let name = journal::text(&entry.name);
    let line = (letter, entry.size, s, ns, entry.root, name);
    // Writing numbers and text into memory cannot fail.
    if serde_json::to_writer(&mut *out, &line).is_ok() {
        out.push(b'\n');
    }
}

fn parse(line: &[u8]) -> Result<Entry, String> {
    type Line = (String, u64, i64, u32, u32, String);
    let parsed: Line = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let (letter, size, s, ns, root, name) = parsed;
    let kind = KINDS.iter().find(|(_, text)| *text == letter).map(|(kind, _)| *kind);
    let kind = kind.ok_or_else(|| format!("{letter:?} is no type"))?;
    let name = journal::bytes(&name);
    if name.is_empty() || name.contains(&0) {
        return Err("a name is empty or holds a zero byte".into());
    }
    Ok(Entry { kind, size, mtime: Time { s, ns }, root, name })
}

/// Compresses a frame.
///
/// # Errors
/// The library's.
pub fn frame(raw: &[u8]) -> Result<Vec<u8>, Trouble> {
    zstd::bulk::compress(raw, LEVEL)
        .map_err(|error| Trouble::lasting(format!("cannot compress a shard: {error}")))
}

/// The checksum of a piece as its plan has it.
pub fn crc64(content: &[u8]) -> String {
    let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, content);
    format!("{sum:016x}")
}

/// A shard that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The folder cannot be read.
    Folder(Trouble),
    /// Its content is not what was planned; a sentence.
    Damaged(String),
}

/// Reads the entries of a shard and compares its files with their checksums.
///
/// # Errors
/// See [`Broken`].
pub fn read(folder: &dyn Folder, shard: &Shard) -> Result<Vec<Entry>, Broken> {
    let mut entries = Vec::new();
    for Piece { name, crc64: expected } in &shard.pieces {
        let damaged = |why: &str| Broken::Damaged(format!("shards/{name} {why}"));
        let read = folder.read(&format!("shards/{name}")).map_err(Broken::Folder)?;
        let content = read.ok_or_else(|| damaged("is missing"))?;
        if crc64(&content) != *expected {
            return Err(damaged("is damaged: its checksum differs from the plan's"));
        }
        decode(&content, &mut entries).map_err(|why| damaged(&format!("cannot be read: {why}")))?;
    }
    match entries.len() as u64 == shard.entries {
        true => Ok(entries),
        false => Err(Broken::Damaged("it has another number of entries than was planned".into())),
    }
}

fn decode(content: &[u8], entries: &mut Vec<Entry>) -> Result<(), String> {
    let decoder = zstd::stream::read::Decoder::with_buffer(content).map_err(|e| e.to_string())?;
    let mut lines = BufReader::new(decoder);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = lines.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        match read.map_err(|error| error.to_string())? {
            0 => return Ok(()),
            _ if line.last() != Some(&b'\n') => return Err("a line does not end".into()),
            _ => entries.push(parse(&line)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// Entries come back as they were written, whatever bytes their names have.
        #[test]
        fn entries_survive(
            names in proptest::collection::vec(proptest::collection::vec(1..=255_u8, 1..40), 1..40),
            size: u64, s: i64, ns in 0..1_000_000_000_u32, kind in 0..KINDS.len(),
        ) {
            let of = |name: Vec<u8>| {
                let (kind, mtime) = (KINDS[kind].0, Time { s, ns });
                Entry { kind, size, mtime, root: 3, name }
            };
            let entries: Vec<Entry> = names.into_iter().map(of).collect();
            let mut content = Vec::new();
            for some in entries.chunks(7) {
                let mut raw = Vec::new();
                some.iter().for_each(|entry| push_line(entry, &mut raw));
                content.extend(frame(&raw).unwrap());
            }
            let mut read = Vec::new();
            decode(&content, &mut read).unwrap();
            proptest::prop_assert_eq!(read, entries);
        }

        /// Bytes that are no shard are an error, and nothing worse.
        #[test]
        fn anything_can_be_read(content: Vec<u8>) {
            drop(decode(&content, &mut Vec::new()));
        }
    }

    #[test]
    fn lines_that_are_none_are_refused() {
        for line in [
            "[\"f\",1,2,3,0,\"a\"",
            "[\"x\",1,2,3,0,\"a\"]\n",
            "[\"f\",-1,2,3,0,\"a\"]\n",
            "[\"f\",1,2,3,0,\"\"]\n",
            "[\"f\",1,2,3,0,\"a%00\"]\n",
        ] {
            let content = frame(line.as_bytes()).unwrap();
            assert!(decode(&content, &mut Vec::new()).is_err(), "{line}");
        }
    }
}
