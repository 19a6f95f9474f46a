//! Entries sorted by their names in bounded memory: what fills it goes to a file without a name, and
//! such runs are merged when they are read.

use crate::object::Entry;
use hakobu_core::error::Cause;
use hakobu_core::unit::{Kind, Meta, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;

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
fn read(run: &mut impl BufRead) -> io::Result<Option<Entry>> {
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
                    Some(reading) => read(reading),
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
