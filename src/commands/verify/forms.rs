//! Differences and counts as text and as JSON lines.

use crate::commands::tool;
use crate::number::{bytes, grouped, things};
use crate::show::escape::Escape;
use crate::show::json::{self, Paths, kind_word};
use hakobu_core::unit::{Kind, Meta, Time};
use hakobu_sys::proc::ResourceUsage;
use hakobu_transfer::verify::{Aspect, Difference, Finding, VerifyCounts, VerifyOutcome};
use serde::Serialize;
use std::collections::BTreeMap;

/// Returns the text line of a difference.
pub fn text(difference: &Difference<'_>, escape: Escape) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    let meta = difference.source.or(difference.target);
    let words: &[u8] = match difference.finding {
        Finding::Missing => b"only in SRC: ",
        Finding::Extra => b"only in DST: ",
        Finding::Differs(_) => b"differs: ",
    };
    out.extend_from_slice(words);
    escape.push(if difference.path.is_empty() { b"." } else { difference.path }, &mut out);
    if meta.is_some_and(|meta| meta.kind == Kind::Dir) && !difference.path.is_empty() {
        out.push(b'/');
    }
    if let (Finding::Differs(set), Some(a), Some(b)) =
        (difference.finding, difference.source, difference.target)
    {
        let details: Vec<String> =
            set.iter().map(|aspect| detail(aspect, a, b, difference.offset)).collect();
        out.extend_from_slice(format!(" ({})", details.join(", ")).as_bytes());
    }
    out.push(b'\n');
    out
}

fn detail(aspect: Aspect, a: &Meta, b: &Meta, offset: Option<u64>) -> String {
    let word = aspect.word();
    match aspect {
        Aspect::Type => format!("{word} {} / {}", kind_word(a.kind), kind_word(b.kind)),
        Aspect::Size => format!("{word} {} / {}", a.size, b.size),
        Aspect::Content => match offset {
            Some(offset) => format!("{word} from byte {offset}"),
            None => word.to_owned(),
        },
        Aspect::Mode => format!("{word} {:04o} / {:04o}", a.mode, b.mode),
        Aspect::Owner => format!("{word} {} / {}", a.uid, b.uid),
        Aspect::Group => format!("{word} {} / {}", a.gid, b.gid),
        Aspect::Time => format!("{word} {} / {}", time_text(a.mtime), time_text(b.mtime)),
        Aspect::Device => format!("{word} {} / {}", device_text(a.rdev), device_text(b.rdev)),
        Aspect::Link | Aspect::HardLinks | Aspect::Acl | Aspect::Xattrs | Aspect::Holes => {
            word.to_owned()
        }
    }
}

/// Returns a time in UTC, to the nanosecond; seconds since 1970 outside of the calendar's range.
fn time_text(time: Time) -> String {
    match jiff::Timestamp::new(time.s, time.ns.try_into().unwrap_or(0)) {
        Ok(stamp) => stamp.to_string(),
        Err(_) => format!("@{}.{:09}", time.s, time.ns),
    }
}

fn device_text(rdev: u64) -> String {
    let (major, minor) = hakobu_sys::meta::device_numbers(rdev);
    format!("{major}:{minor}")
}

#[derive(Serialize)]
struct Side {
    kind: &'static str,
    bytes: u64,
    mode: String,
    uid: u32,
    gid: u32,
    mtime_s: i64,
    mtime_ns: u32,
    nlink: u64,
}

impl Side {
    fn new(meta: &Meta) -> Side {
        Side {
            kind: kind_word(meta.kind),
            bytes: meta.size,
            mode: format!("{:04o}", meta.mode),
            uid: meta.uid,
            gid: meta.gid,
            mtime_s: meta.mtime.s,
            mtime_ns: meta.mtime.ns,
            nlink: meta.nlink,
        }
    }
}

/// Returns the JSON line of a difference.
pub fn json(difference: &Difference<'_>) -> Vec<u8> {
    #[derive(Serialize)]
    struct Line<'a> {
        event: &'static str,
        finding: &'static str,
        #[serde(flatten)]
        paths: Paths<'a>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        aspects: Vec<&'static str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        source: Option<Side>,
        #[serde(skip_serializing_if = "Option::is_none")]
        target: Option<Side>,
        #[serde(skip_serializing_if = "Option::is_none")]
        offset: Option<u64>,
    }
    let (finding, aspects) = match difference.finding {
        Finding::Missing => ("missing", Vec::new()),
        Finding::Extra => ("extra", Vec::new()),
        Finding::Differs(set) => ("differs", set.iter().map(Aspect::word).collect()),
    };
    json::line(&Line {
        event: "difference",
        finding,
        paths: Paths(&[("path", Some(tool::path(difference.path)))]),
        aspects,
        source: difference.source.map(Side::new),
        target: difference.target.map(Side::new),
        offset: difference.offset,
    })
}

/// Returns the JSON line that ends a comparison.
pub fn summary(outcome: &VerifyOutcome, used: &ResourceUsage, exit_code: u8) -> Vec<u8> {
    #[derive(Serialize)]
    struct Summary {
        event: &'static str,
        schema: u32,
        command: &'static str,
        files: u64,
        dirs: u64,
        others: u64,
        bytes: u64,
        differences: u64,
        by_kind: BTreeMap<&'static str, u64>,
        failed: u64,
        jobs: usize,
        real_s: f64,
        user_s: f64,
        sys_s: f64,
        max_rss_bytes: u64,
        exit_code: u8,
    }
    let counts = &outcome.counts;
    json::line(&Summary {
        event: "summary",
        schema: 1,
        command: "verify",
        files: counts.files,
        dirs: counts.dirs,
        others: counts.others,
        bytes: counts.bytes,
        differences: counts.differences,
        by_kind: kinds(counts).into_iter().collect(),
        failed: counts.failed,
        jobs: outcome.jobs,
        real_s: outcome.took.as_secs_f64(),
        user_s: used.user.as_secs_f64(),
        sys_s: used.sys.as_secs_f64(),
        max_rss_bytes: used.rss_bytes_max,
        exit_code,
    })
}

/// Returns all kinds of differences found, with their counts.
fn kinds(counts: &VerifyCounts) -> Vec<(&'static str, u64)> {
    let whole = [("missing", counts.missing), ("extra", counts.extra)];
    let parts = Aspect::ALL.iter().map(|aspect| (aspect.word(), counts.of(*aspect)));
    whole.into_iter().chain(parts).filter(|(_, count)| *count > 0).collect()
}

/// Returns the counts as a table.
pub fn stats(counts: &VerifyCounts) -> String {
    let mut out = format!(
        "\nFiles compared: {}\nDirectories compared: {}\nOther entries compared: {}\n\
         Bytes compared: {}\nDifferences: {}\n",
        grouped(counts.files),
        grouped(counts.dirs),
        grouped(counts.others),
        grouped(counts.bytes),
        grouped(counts.differences),
    );
    for (kind, count) in kinds(counts) {
        out.push_str(&format!("  {kind}: {}\n", grouped(count)));
    }
    out.push_str(&format!("Could not be compared: {}\n", grouped(counts.failed)));
    out
}

/// Returns the amount compared and the resources used, as one line.
pub fn sentence(outcome: &VerifyOutcome, used: &ResourceUsage) -> String {
    let counts = &outcome.counts;
    let seconds = outcome.took.as_secs_f64();
    let verdict = match (counts.differences, counts.failed) {
        (0, 0) => "the same".to_owned(),
        (0, failed) => format!("no difference found, {} could not be compared", grouped(failed)),
        (found, 0) => format!("{} differ", grouped(found)),
        (found, failed) => {
            format!("{} differ, {} could not be compared", grouped(found), grouped(failed))
        }
    };
    format!(
        "{}, {} and {} compared: {verdict}; {seconds:.2} s (user {:.2}, sys {:.2})",
        things(counts.files, "file"),
        match counts.dirs {
            1 => "1 directory".to_owned(),
            dirs => format!("{} directories", grouped(dirs)),
        },
        bytes(counts.bytes),
        used.user.as_secs_f64(),
        used.sys.as_secs_f64(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_transfer::verify::Aspects;

    fn meta() -> Meta {
        let time = Time { s: 1_000_000_000, ns: 5 };
        Meta { mode: 0o644, uid: 1, gid: 2, dev: 1, ino: 1, ..Meta::bare(Kind::File, 3, time) }
    }

    fn text(difference: &Difference<'_>) -> String {
        String::from_utf8_lossy(&super::text(difference, Escape::Utf8)).into_owned()
    }

    #[test]
    fn lines_say_what_differs_and_how() {
        let a = meta();
        let b = Meta { mode: 0o4600, uid: 7, mtime: Time { s: 1, ns: 0 }, ..a };
        let set = Aspects::NONE
            .with(Aspect::Content)
            .with(Aspect::Mode)
            .with(Aspect::Owner)
            .with(Aspect::Time)
            .with(Aspect::Acl);
        let differs = Difference {
            path: b"d/a\nb",
            finding: Finding::Differs(set),
            source: Some(&a),
            target: Some(&b),
            offset: Some(2),
        };
        assert_eq!(
            text(&differs),
            "differs: d/a\\#012b (content from byte 2, mode 0644 / 4600, owner 1 / 7, \
             mtime 2001-09-09T01:46:40.000000005Z / 1970-01-01T00:00:01Z, acl)\n"
        );
        let dir = Meta { kind: Kind::Dir, ..a };
        let missing = Difference {
            path: b"d",
            finding: Finding::Missing,
            source: Some(&dir),
            target: None,
            offset: None,
        };
        assert_eq!(text(&missing), "only in SRC: d/\n");
        let kinds = Difference {
            path: b"",
            finding: Finding::Differs(Aspects::NONE.with(Aspect::Type)),
            source: Some(&dir),
            target: Some(&a),
            offset: None,
        };
        assert_eq!(text(&kinds), "differs: . (type dir / file)\n");
    }
}
