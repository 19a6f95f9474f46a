//! The format of a manifest, written and read in one pass, and entered at any key.
//!
//! ```text
//! magic (8 bytes) | header frame | record frames … | index frame | index offset (8 bytes) | magic (8 bytes)
//! ```
//!
//! A frame is the length of its packed content, the length of the unpacked one (4 bytes each, little-endian), the
//! CRC-64/NVME of the packed content (8 bytes), and that content (zstd). A record holds what differs from the one before
//! it in its frame; the first byte of each frame's content says what it is.

use super::{FileMetadata, Modified, Place, Record};
use hakobu_core::percent::hex;
use hakobu_core::unit::{Kind, Time};
use hakobu_core::varint;
use hakobu_s3::ops::Etag;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// The number at the end is that of the version: files of another one are not read.
const MAGIC: &[u8; 8] = b"hkbknwn1";
/// Bytes of a frame's lengths and checksum.
const HEAD_BYTES: usize = 16;
/// Bytes behind the index.
const TRAILER_BYTES: i64 = 16;
/// Bytes of records after which a frame ends.
const FRAME_BYTES: usize = 64 << 10;
/// Maximum bytes of an unpacked frame. The index of a manifest of the largest size has less than 4 MiB.
const FRAME_BYTES_MAX: u32 = 64 << 20;
/// Maximum bytes of a key or an ETag: a key has at most 1,024 bytes.
const TEXT_BYTES_MAX: u64 = 1 << 14;
/// Level of compression: ETags and times hold little that repeats.
const LEVEL: i32 = 1;

/// The first byte of a frame's content.
const HEADER: u8 = b'h';
const RECORDS: u8 = b'r';
const INDEX: u8 = b'i';

// The bits of a record's first byte.
/// The ETag is an MD5, in 16 bytes.
const MD5: u8 = 1;
/// LastModified is known exactly.
const EXACT: u8 = 2;
const HAS_MTIME: u8 = 4;
const HAS_MODE: u8 = 8;
const HAS_UID: u8 = 16;
const HAS_GID: u8 = 32;
/// Position of the type: none, file, directory, symlink.
const KIND_SHIFT: u8 = 6;
const KINDS: [Kind; 3] = [Kind::File, Kind::Dir, Kind::Symlink];

/// Where the index says a frame of records lies.
struct Frame {
    offset: u64,
    first: Box<[u8]>,
}

/// Writes a manifest; records come in the order of their keys.
pub struct ManifestWriter<W> {
    to: W,
    written_bytes: u64,
    raw: Vec<u8>,
    last: Box<[u8]>,
    /// Base of the times in a frame.
    base: Base,
    frames: Vec<Frame>,
    records: u64,
}

/// What a record is described by as a difference.
#[derive(Clone, Copy, Default)]
struct Base {
    modified_s: i64,
    mtime_s: i64,
    day: i64,
}

impl<W: Write> ManifestWriter<W> {
    /// Begins a manifest about a place.
    ///
    /// # Errors
    /// Those of writing.
    pub fn new(to: W, place: &Place) -> io::Result<ManifestWriter<W>> {
        let mut writer = ManifestWriter {
            to,
            written_bytes: 0,
            raw: Vec::with_capacity(FRAME_BYTES + 1024),
            last: Box::default(),
            base: Base::default(),
            frames: Vec::new(),
            records: 0,
        };
        writer.put(MAGIC)?;
        let mut raw = vec![HEADER];
        for part in [place.endpoint.as_bytes(), place.bucket.as_bytes(), &place.prefix] {
            push_text(part, &mut raw);
        }
        writer.frame(&raw)?;
        Ok(writer)
    }

    /// Adds a record.
    ///
    /// # Errors
    /// Those of writing; `InvalidInput` for a key that does not come after the last one.
    pub fn push(&mut self, record: &Record) -> io::Result<()> {
        if self.records > 0 && record.key <= self.last {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if self.raw.is_empty() {
            self.frames.push(Frame { offset: self.written_bytes, first: record.key.clone() });
            self.raw.push(RECORDS);
            (self.last, self.base) = Default::default();
        }
        encode(record, &self.last, &mut self.base, &mut self.raw);
        self.last.clone_from(&record.key);
        self.records += 1;
        if self.raw.len() >= FRAME_BYTES { self.end_frame() } else { Ok(()) }
    }

    /// Returns the number of bytes so far, without the records of the frame that is being filled.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Ends the manifest, and returns what it was written to and the number of records.
    ///
    /// # Errors
    /// Those of writing.
    pub fn finish(mut self) -> io::Result<(W, u64)> {
        self.end_frame()?;
        let offset = self.written_bytes;
        let mut raw = vec![INDEX];
        varint::push(self.records, &mut raw);
        for Frame { offset, first } in &self.frames {
            varint::push(*offset, &mut raw);
            push_text(first, &mut raw);
        }
        self.frame(&raw)?;
        self.put(&offset.to_le_bytes())?;
        self.put(MAGIC)?;
        self.to.flush()?;
        Ok((self.to, self.records))
    }

    fn end_frame(&mut self) -> io::Result<()> {
        if self.raw.is_empty() {
            return Ok(());
        }
        let raw = std::mem::take(&mut self.raw);
        let ended = self.frame(&raw);
        self.raw = raw;
        self.raw.clear();
        ended
    }

    fn frame(&mut self, raw: &[u8]) -> io::Result<()> {
        let packed = zstd::bulk::compress(raw, LEVEL)?;
        let len = |bytes: &[u8]| {
            u32::try_from(bytes.len()).ok().filter(|len| *len <= FRAME_BYTES_MAX).ok_or_else(full)
        };
        let (packed_len, raw_len) = (len(&packed)?, len(raw)?);
        self.put(&packed_len.to_le_bytes())?;
        self.put(&raw_len.to_le_bytes())?;
        self.put(&crc64(&packed).to_le_bytes())?;
        self.put(&packed)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(bytes)?;
        self.written_bytes += bytes.len() as u64;
        Ok(())
    }
}

/// Reads a manifest: record by record in the order of keys, or at a key. Everything is checked against its checksum
/// before it is used; the first damage ends it.
pub struct Known<R> {
    from: R,
    frames: Vec<Frame>,
    /// Number of the next frame.
    next_frame: usize,
    records: u64,
    /// The current frame, and the position in it.
    raw: Vec<u8>,
    at: usize,
    base: Base,
    /// The last record that was read, if it was not taken.
    head: Option<Record>,
    /// Key of the last record that was read.
    last: Box<[u8]>,
    /// The last key that was looked for: everything up to it was passed.
    floor: Option<Vec<u8>>,
}

impl<R: Read + Seek> Known<R> {
    /// Opens a manifest about a place.
    ///
    /// # Errors
    /// `InvalidData`: it is damaged, cut off, of another version, or about another place. Those of reading.
    pub fn open(from: R, place: &Place) -> io::Result<Known<R>> {
        match Known::open_any(from)? {
            (known, of) if of == *place => Ok(known),
            _ => Err(damaged()),
        }
    }

    /// Opens a manifest about any place, which is returned with it.
    ///
    /// # Errors
    /// As [`Known::open`].
    pub fn open_any(mut from: R) -> io::Result<(Known<R>, Place)> {
        let mut magic = [0; 8];
        from.seek(SeekFrom::Start(0))?;
        from.read_exact(&mut magic)?;
        let header = frame(&mut from, HEADER)?;
        let mut fields = Bytes::new(&header);
        let mut text = || Ok::<_, io::Error>(String::from_utf8_lossy(fields.text()?).into_owned());
        let (endpoint, bucket) = (text()?, text()?);
        let place = Place { endpoint, bucket, prefix: fields.text()?.to_vec() };
        let mut trailer = [0; TRAILER_BYTES as usize];
        from.seek(SeekFrom::End(-TRAILER_BYTES))?;
        from.read_exact(&mut trailer)?;
        let (offset, end) = trailer.split_at(8);
        let offset = u64::from_le_bytes(offset.try_into().map_err(|_| damaged())?);
        if magic != *MAGIC || end != MAGIC || !fields.is_at_end() {
            return Err(damaged());
        }
        from.seek(SeekFrom::Start(offset))?;
        let index = frame(&mut from, INDEX)?;
        let mut fields = Bytes::new(&index);
        let records = fields.number()?;
        let mut frames = Vec::new();
        while !fields.is_at_end() {
            let offset = fields.number()?;
            frames.push(Frame { offset, first: fields.text()?.into() });
        }
        let known = Known {
            from,
            frames,
            next_frame: 0,
            records,
            raw: Vec::new(),
            at: 0,
            base: Base::default(),
            head: None,
            last: Box::default(),
            floor: None,
        };
        Ok((known, place))
    }

    /// Returns the number of records.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Returns the next record; `None` at the end.
    ///
    /// # Errors
    /// As [`Known::open`]; what was returned before is right.
    #[expect(
        clippy::should_implement_trait,
        reason = "it fails, and its caller decides what that means"
    )]
    pub fn next(&mut self) -> io::Result<Option<Record>> {
        match self.head.take() {
            Some(record) => Ok(Some(record)),
            None => self.read(),
        }
    }

    /// Continues with the first record whose key is not before `from`. Reads one frame at most, and those behind it only
    /// if they are wanted.
    ///
    /// # Errors
    /// As [`Known::next`].
    pub fn seek(&mut self, from: &[u8]) -> io::Result<()> {
        let after = self.frames.partition_point(|frame| *frame.first <= *from);
        self.next_frame = after.saturating_sub(1);
        self.raw.clear();
        (self.at, self.head) = (0, None);
        while let Some(record) = self.read()? {
            if *record.key >= *from {
                self.head = Some(record);
                break;
            }
        }
        Ok(())
    }

    /// Returns the record of a key. Keys in order are found while reading on, others are sought. `missed` receives the
    /// records between two keys that come in order; without it, frames that lie between them are not read.
    ///
    /// # Errors
    /// As [`Known::next`].
    pub fn find(
        &mut self,
        key: &[u8],
        mut missed: Option<&mut dyn FnMut(Record)>,
    ) -> io::Result<Option<Record>> {
        let is_back = self.floor.as_ref().is_some_and(|floor| *key <= **floor);
        let next = self.frames.get(self.next_frame);
        let is_far = missed.is_none() && next.is_some_and(|frame| *frame.first <= *key);
        if is_back || is_far {
            self.seek(key)?;
        }
        let floor = self.floor.get_or_insert_default();
        floor.clear();
        floor.extend_from_slice(key);
        loop {
            match self.next()? {
                None => return Ok(None),
                Some(record) if *record.key < *key => {
                    if let Some(missed) = missed.as_mut().filter(|_| !is_back) {
                        missed(record);
                    }
                }
                Some(record) if *record.key == *key => return Ok(Some(record)),
                Some(record) => {
                    self.head = Some(record);
                    return Ok(None);
                }
            }
        }
    }

    fn read(&mut self) -> io::Result<Option<Record>> {
        if self.at >= self.raw.len() {
            let Some(next) = self.frames.get(self.next_frame) else { return Ok(None) };
            self.from.seek(SeekFrom::Start(next.offset))?;
            self.raw = frame(&mut self.from, RECORDS)?;
            (self.at, self.base) = (1, Base::default());
            self.next_frame += 1;
            let record = self.decode(&[])?;
            let first = self.frames.get(self.next_frame - 1).map(|frame| &frame.first);
            if first != Some(&record.key) {
                return Err(damaged());
            }
            return Ok(Some(record));
        }
        let before = std::mem::take(&mut self.last);
        let record = self.decode(&before)?;
        if record.key <= before {
            return Err(damaged());
        }
        Ok(Some(record))
    }

    /// Decodes a record; `before` is the key of the one before it in its frame.
    fn decode(&mut self, before: &[u8]) -> io::Result<Record> {
        let mut fields = Bytes { all: &self.raw, at: self.at };
        let record = decode(&mut fields, before, &mut self.base)?;
        self.at = fields.at;
        self.last.clone_from(&record.key);
        Ok(record)
    }
}

/// Appends a record; `before` is the key of the one before it in its frame.
fn encode(record: &Record, before: &[u8], base: &mut Base, raw: &mut Vec<u8>) {
    let FileMetadata { mtime, mode, kind, uid, gid } = record.facts;
    let md5 = record.etag.md5();
    let kind = KINDS.iter().position(|known| Some(*known) == kind).map_or(0, |at| at as u8 + 1);
    let mut first = kind << KIND_SHIFT;
    for (bit, is_set) in [
        (MD5, md5.is_some()),
        (EXACT, matches!(record.modified, Modified::At(_))),
        (HAS_MTIME, mtime.is_some()),
        (HAS_MODE, mode.is_some()),
        (HAS_UID, uid.is_some()),
        (HAS_GID, gid.is_some()),
    ] {
        first |= if is_set { bit } else { 0 };
    }
    raw.push(first);
    let common = before.iter().zip(&record.key).take_while(|(a, b)| a == b).count();
    varint::push(common as u64, raw);
    push_text(record.key.get(common..).unwrap_or_default(), raw);
    match md5 {
        Some(md5) => raw.extend_from_slice(&md5),
        None => push_text(record.etag.as_bytes(), raw),
    }
    varint::push(record.size, raw);
    match record.modified {
        Modified::At(time) => {
            push_difference(time.s, &mut base.modified_s, raw);
            varint::push(u64::from(time.ns), raw);
        }
        Modified::Within(from_s, until_s) => {
            push_difference(until_s, &mut base.modified_s, raw);
            varint::push(until_s.wrapping_sub(from_s) as u64, raw);
        }
    }
    push_difference(i64::from(record.learnt_day), &mut base.day, raw);
    if let Some(mtime) = mtime {
        push_difference(mtime.s, &mut base.mtime_s, raw);
        varint::push(u64::from(mtime.ns), raw);
    }
    for number in [mode, uid, gid].into_iter().flatten() {
        varint::push(u64::from(number), raw);
    }
}

fn decode(fields: &mut Bytes<'_>, before: &[u8], base: &mut Base) -> io::Result<Record> {
    let first = fields.byte()?;
    let has = |bit| first & bit != 0;
    let common = usize::try_from(fields.number()?).map_err(|_| damaged())?;
    let common = before.get(..common).ok_or_else(damaged)?;
    let key = [common, fields.text()?].concat().into();
    let etag: Etag = match has(MD5) {
        true => hex(fields.take(16)?).as_str().into(),
        false => std::str::from_utf8(fields.text()?).map_err(|_| damaged())?.into(),
    };
    let size = fields.number()?;
    let modified_s = fields.difference(&mut base.modified_s)?;
    let modified = match has(EXACT) {
        true => Modified::At(Time { s: modified_s, ns: fields.ns()? }),
        false => Modified::Within(modified_s.wrapping_sub(fields.number()? as i64), modified_s),
    };
    let learnt_day = fields.difference(&mut base.day)?;
    let learnt_day = u32::try_from(learnt_day).map_err(|_| damaged())?;
    let mtime = match has(HAS_MTIME) {
        true => Some(Time { s: fields.difference(&mut base.mtime_s)?, ns: fields.ns()? }),
        false => None,
    };
    let mut some = |bit| has(bit).then(|| fields.small()).transpose();
    let (mode, uid, gid) = (some(HAS_MODE)?, some(HAS_UID)?, some(HAS_GID)?);
    let kind = usize::from(first >> KIND_SHIFT).checked_sub(1);
    let kind = kind.and_then(|at| KINDS.get(at)).copied();
    let facts = FileMetadata { mtime, mode, kind, uid, gid };
    Ok(Record { key, etag, size, modified, learnt_day, facts })
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is damaged, or none of this place")
}

fn full() -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, "a frame is too large")
}

fn crc64(content: &[u8]) -> u64 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, content)
}

/// Reads a frame of this kind.
fn frame(from: &mut impl Read, kind: u8) -> io::Result<Vec<u8>> {
    let mut head = [0; HEAD_BYTES];
    from.read_exact(&mut head)?;
    let [a, b, c, d, e, f, g, h, sum @ ..] = head;
    let (packed_len, raw_len) =
        (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
    if packed_len > FRAME_BYTES_MAX || raw_len > FRAME_BYTES_MAX {
        return Err(damaged());
    }
    // What is not there is not reserved.
    let mut packed = Vec::new();
    from.by_ref().take(u64::from(packed_len)).read_to_end(&mut packed)?;
    if packed.len() != packed_len as usize || crc64(&packed) != u64::from_le_bytes(sum) {
        return Err(damaged());
    }
    let raw = zstd::bulk::decompress(&packed, raw_len as usize).map_err(|_| damaged())?;
    match raw.len() == raw_len as usize && raw.first() == Some(&kind) {
        true => Ok(raw),
        false => Err(damaged()),
    }
}

/// Appends the difference to a base, which becomes the number.
fn push_difference(number: i64, base: &mut i64, out: &mut Vec<u8>) {
    varint::push_signed(number.wrapping_sub(*base), out);
    *base = number;
}

fn push_text(text: &[u8], out: &mut Vec<u8>) {
    varint::push(text.len() as u64, out);
    out.extend_from_slice(text);
}

/// The content of a frame, and the position in it. The first byte is its kind.
struct Bytes<'a> {
    all: &'a [u8],
    at: usize,
}

impl<'a> Bytes<'a> {
    fn new(all: &'a [u8]) -> Bytes<'a> {
        Bytes { all, at: 1 }
    }

    fn is_at_end(&self) -> bool {
        self.at >= self.all.len()
    }

    fn take(&mut self, len: usize) -> io::Result<&'a [u8]> {
        let end = self.at.checked_add(len).ok_or_else(damaged)?;
        let taken = self.all.get(self.at..end).ok_or_else(damaged)?;
        self.at = end;
        Ok(taken)
    }

    fn byte(&mut self) -> io::Result<u8> {
        self.take(1)?.first().copied().ok_or_else(damaged)
    }

    fn number(&mut self) -> io::Result<u64> {
        varint::read(|| self.byte(), damaged())
    }

    fn small(&mut self) -> io::Result<u32> {
        u32::try_from(self.number()?).map_err(|_| damaged())
    }

    fn ns(&mut self) -> io::Result<u32> {
        let ns = self.small()?;
        if ns < 1_000_000_000 { Ok(ns) } else { Err(damaged()) }
    }

    fn difference(&mut self, base: &mut i64) -> io::Result<i64> {
        *base = base.wrapping_add(varint::signed(self.number()?));
        Ok(*base)
    }

    fn text(&mut self) -> io::Result<&'a [u8]> {
        let len = self.number()?;
        match len <= TEXT_BYTES_MAX {
            true => self.take(len as usize),
            false => Err(damaged()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    fn place() -> Place {
        Place { endpoint: "http://h:1".into(), bucket: "b".into(), prefix: b"p/".to_vec() }
    }

    fn record(number: u32) -> Record {
        Record {
            key: format!("folder-{}/name-{number:06}", number / 100).into_bytes().into(),
            etag: Etag::new(&format!("{number:032x}")),
            size: u64::from(number) * 1000,
            modified: Modified::At(Time { s: 1_700_000_000, ns: number * 1000 }),
            learnt_day: 20_000,
            facts: FileMetadata {
                mtime: Some(Time { s: 1_600_000_000, ns: number }),
                mode: Some(0o644),
                kind: Some(Kind::File),
                uid: Some(1000),
                gid: None,
            },
        }
    }

    fn written(records: &[Record]) -> Vec<u8> {
        let mut writer = ManifestWriter::new(Vec::new(), &place()).unwrap();
        for record in records {
            writer.push(record).unwrap();
        }
        writer.finish().unwrap().0
    }

    fn sorted(count: u32) -> Vec<Record> {
        let mut all: Vec<Record> = (0..count).map(record).collect();
        all.sort_by(|a, b| a.key.cmp(&b.key));
        all
    }

    fn read(content: &[u8]) -> io::Result<Vec<Record>> {
        let mut known = Known::open(Cursor::new(content), &place())?;
        let mut all = Vec::new();
        while let Some(record) = known.next()? {
            all.push(record);
        }
        assert!(all.len() as u64 <= known.records(), "more than it says");
        Ok(all)
    }

    #[test]
    fn records_are_read_back_and_found_from_any_key() {
        let all = sorted(10_000);
        let content = written(&all);
        assert!(content.len() < 40 * all.len(), "{} bytes", content.len());
        assert_eq!(read(&content).unwrap(), all);
        let mut known = Known::open(Cursor::new(&content), &place()).unwrap();
        assert!(known.frames.len() > 3);
        for at in [0, 1, 5000, 4999, 9999, 17, 16, 15] {
            known.seek(&all[at].key).unwrap();
            assert_eq!(known.next().unwrap().as_ref(), Some(&all[at]), "{at}");
            known.seek(&[&*all[at].key, b"!"].concat()).unwrap();
            assert_eq!(known.next().unwrap().as_ref(), all.get(at + 1), "{at}");
        }
        known.seek(&all[100].key).unwrap();
        let mut some = Vec::new();
        while some.len() < 6900 {
            some.extend(known.next().unwrap());
        }
        assert_eq!(some, all[100..7000]);
        assert_eq!(known.next().unwrap().as_ref(), Some(&all[7000]));
    }

    #[test]
    fn keys_in_any_order_are_found() {
        let all = sorted(5000);
        let content = written(&all);
        let mut known = Known::open(Cursor::new(&content), &place()).unwrap();
        let mut missed = 0;
        for at in [0, 2, 3, 3000, 2999, 2999, 3000, 4999, 1, 0] {
            let found = known.find(&all[at].key, Some(&mut |_| missed += 1)).unwrap();
            assert_eq!(found.as_ref(), Some(&all[at]), "{at}");
            let none = known.find(&[&*all[at].key, b"!"].concat(), None).unwrap();
            assert_eq!(none, None);
        }
        assert!(missed > 0);
        assert_eq!(known.find(b"", None).unwrap(), None);
        assert_eq!(known.find(b"zzz", None).unwrap(), None);
        assert_eq!(known.find(&all[7].key, None).unwrap().as_ref(), Some(&all[7]));
    }

    #[test]
    fn what_lies_between_keys_in_order_is_missed_once() {
        let all = sorted(3000);
        let content = written(&all);
        let mut known = Known::open(Cursor::new(&content), &place()).unwrap();
        let mut missed = Vec::new();
        for record in all.iter().step_by(3) {
            let mut miss = |gone: Record| missed.push(gone.key);
            assert!(known.find(&record.key, Some(&mut miss)).unwrap().is_some());
            // A key that is new to it.
            let new = [&*record.key, b"!"].concat();
            assert!(known.find(&new, Some(&mut miss)).unwrap().is_none());
        }
        while let Some(gone) = known.next().unwrap() {
            missed.push(gone.key);
        }
        let wanted: Vec<_> = all
            .iter()
            .enumerate()
            .filter(|(at, _)| at % 3 > 0)
            .map(|(_, r)| r.key.clone())
            .collect();
        assert_eq!(missed, wanted);
    }

    /// One byte that differs, anywhere: never an entry that was not written.
    #[test]
    fn a_damaged_byte_is_noticed() {
        let all = sorted(40);
        let content = written(&all);
        for at in 0..content.len() {
            for bit in [1, 0x80] {
                let mut bad = content.clone();
                bad[at] ^= bit;
                assert!(read(&bad).is_err(), "byte {at}");
            }
        }
        for len in 0..content.len() {
            assert!(read(&content[..len]).is_err(), "{len} bytes");
        }
        assert!(read(&[&content[..], b"x"].concat()).is_err());
    }

    #[test]
    fn the_part_before_a_damage_is_right() {
        let all = sorted(10_000);
        let mut content = written(&all);
        let middle = content.len() / 2;
        content[middle] ^= 1;
        let mut known = Known::open(Cursor::new(&content), &place()).unwrap();
        let mut count = 0;
        let ended = loop {
            match known.next() {
                Ok(Some(record)) => assert_eq!(record, all[count]),
                other => break other,
            }
            count += 1;
        };
        assert!(ended.is_err() && count > 1000, "{count}");
    }

    #[test]
    fn one_of_another_place_is_none() {
        let content = written(&sorted(3));
        let others = [
            Place { endpoint: "http://h:2".into(), ..place() },
            Place { bucket: "c".into(), ..place() },
            Place { prefix: Vec::new(), ..place() },
        ];
        for other in others {
            assert!(Known::open(Cursor::new(&content), &other).is_err(), "{other:?}");
        }
    }

    #[test]
    fn records_out_of_order_are_refused() {
        let mut writer = ManifestWriter::new(Vec::new(), &place()).unwrap();
        writer.push(&record(2)).unwrap();
        assert!(writer.push(&record(2)).is_err());
        assert!(writer.push(&record(1)).is_err());
        writer.push(&record(3)).unwrap();
    }

    #[test]
    fn an_empty_one_is_one() {
        assert_eq!(read(&written(&[])).unwrap(), []);
    }

    proptest! {
        #[test]
        fn any_records_survive(
            keys in proptest::collection::btree_set(proptest::collection::vec(any::<u8>(), 0..20), 0..40),
            times in proptest::collection::vec((any::<i64>(), 0..1_000_000_000_u32, any::<bool>(), 0..1000_i64), 40),
            etag in "[ -~]{0,40}", size: u64, day: u32,
            mode: Option<u32>, uid: Option<u32>, gid: Option<u32>, kind in 0..4_usize,
        ) {
            let records: Vec<Record> = keys.into_iter().zip(&times).map(|(key, (s, ns, exact, width))| {
                let time = Time { s: *s, ns: *ns };
                let modified = match exact {
                    true => Modified::At(time),
                    false => Modified::Within(s.saturating_sub(*width), *s),
                };
                let facts = FileMetadata {
                    mtime: (s % 3 != 0).then_some(time),
                    kind: KINDS.get(kind).copied(), mode, uid, gid,
                };
                let etag = Etag::from(&*etag);
                Record { key: key.into(), etag, size, modified, learnt_day: day, facts }
            }).collect();
            prop_assert_eq!(read(&written(&records)).unwrap(), records);
        }

        #[test]
        fn anything_can_be_read(content: Vec<u8>, at: usize) {
            drop(read(&content));
            let mut whole = written(&sorted(5));
            let at = at % whole.len();
            whole.splice(at..at, content);
            drop(read(&whole));
        }
    }
}
