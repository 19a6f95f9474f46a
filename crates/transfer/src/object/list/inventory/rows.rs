//! Rows of an inventory's files: CSV in gzip, without a head; keys are URL-encoded.

use super::manifest::Columns;
use super::sorted::{self, Sorter};
use crate::object::Entry;
use csv::{ByteRecord, ReaderBuilder};
use flate2::bufread::MultiGzDecoder;
use hakobu_core::percent;
use hakobu_core::unit::{Kind, Meta, Time};
use std::fs::File;
use std::io::{BufReader, Read};

/// The longest key (Amazon S3 User Guide, "Creating object key names").
const KEY_BYTES_MAX: usize = 1024;

/// Rows by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Objects below the prefix.
    pub kept: u64,
    /// Keys outside of the prefix.
    pub outside: u64,
    /// Older versions and delete markers.
    pub old: u64,
}

/// Rows that are looked for.
pub struct Wanted<'a> {
    /// The bucket that all rows have to be of.
    pub bucket: &'a str,
    /// The prefix that is taken off keys.
    pub prefix: &'a [u8],
    /// The columns.
    pub columns: &'a Columns,
}

/// Reads a data file and hands its objects to `sorter`.
///
/// # Errors
/// A sentence, with the row.
pub fn read(
    file: File,
    wanted: &Wanted<'_>,
    counts: &mut Counts,
    sorter: &mut Sorter,
) -> Result<(), String> {
    let unpacked = MultiGzDecoder::new(BufReader::new(file));
    rows(unpacked, wanted, counts, |entry| sorter.push(entry).map_err(|e| sorted::message(&e)))
}

fn rows(
    content: impl Read,
    wanted: &Wanted<'_>,
    counts: &mut Counts,
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

impl Wanted<'_> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Columns {
        let (latest, marker) = (Some(2), Some(3));
        let (count, bucket, key, size, modified) = (6, 0, 1, 4, 5);
        Columns { count, bucket, key, size, modified, etag: None, latest, marker }
    }

    fn read(content: &str) -> Result<(Vec<Entry>, Counts), String> {
        let columns = columns();
        let wanted = Wanted { bucket: "b", prefix: b"p/", columns: &columns };
        let (mut kept, mut counts) = (Vec::new(), Counts::default());
        rows(content.as_bytes(), &wanted, &mut counts, |entry| {
            kept.push(entry);
            Ok(())
        })?;
        Ok((kept, counts))
    }

    proptest::proptest! {
        /// Whatever rows hold: entries are below the prefix, or there is a sentence.
        #[test]
        fn anything_can_be_read(
            fields in proptest::collection::vec("(b|p/[a-z%+]{0,9}|true|false|[0-9]{1,22}|2024-02-03T04:05:06Z|\\PC{0,5})", 0..40),
            raw: Vec<u8>,
        ) {
            for content in [fields.chunks(6).map(|row| row.join(",")).collect::<Vec<_>>().join("\n").into_bytes(), raw] {
                let columns = columns();
                let wanted = Wanted { bucket: "b", prefix: b"p/", columns: &columns };
                let mut counts = Counts::default();
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
        assert_eq!(counts, Counts { kept: 2, outside: 1, old: 2 });
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
}
