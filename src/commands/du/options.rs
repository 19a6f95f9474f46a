//! The options of `hakobu du`: the names and meanings of du(1), and hakobu's own.

use crate::filters::{self, ArgumentFilters, Filters};
use crate::limits::{self, LimitArgs};
use crate::number::{ceiled, ceiled_si};
use crate::objects::{self, ObjectArgs};
use crate::options::{JSON, Opt, Table, flag, parts, put, value};
use hakobu_transfer::location::S3Url;
use hakobu_transfer::policy::filter::Filter;
use hakobu_tree::usage::{Follow, UsageOptions};
use std::ffi::OsString;
use std::sync::Arc;

/// The command line of `du`.
pub static TABLE: Table<Plan> = Table {
    command: "du",
    about: "Report the disk usage of trees, in parallel; a file with several names counts once",
    usage: "hakobu du [OPTIONS] [PATH]...",
    after: "Numbers are KiB unless -h, --si, -b, -k, -m or -B is given; the last of these counts. Lines are \
            sorted by name, directories after their contents.\n\
            Exit codes: 0 done, 1 something could not be counted, 2 usage.",
    options: &[
        &OPTIONS,
        &objects::ONE,
        &objects::ALL_VERSIONS,
        &objects::STAT,
        &filters::COUNTED,
        &limits::IOPS,
        &limits::PRIORITY,
    ],
    unbuilt: &[UNBUILT, objects::UNBUILT],
    abbreviates: true,
};

/// Format of sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Multiples of 1024 bytes, rounded up.
    #[default]
    Kib,
    /// Multiples of 1024 KiB, rounded up.
    Mib,
    /// Bytes.
    Byte,
    /// `1.5M`, in powers of 1024.
    Human,
    /// `1.5M`, in powers of 1000.
    Si,
    /// Multiples of this many bytes, rounded up, with this suffix.
    Block(u64, &'static str),
}

impl Unit {
    /// Formats a size.
    pub fn size(self, bytes: u64) -> String {
        match self {
            Unit::Kib => bytes.div_ceil(1 << 10).to_string(),
            Unit::Mib => bytes.div_ceil(1 << 20).to_string(),
            Unit::Byte => bytes.to_string(),
            Unit::Human => ceiled(bytes),
            Unit::Si => ceiled_si(bytes),
            Unit::Block(size, suffix) => format!("{}{suffix}", bytes.div_ceil(size.max(1))),
        }
    }

    /// Formats a number of entries.
    pub fn count(self, entries: u64) -> String {
        match self {
            Unit::Human | Unit::Si => self.size(entries),
            _ => entries.to_string(),
        }
    }

    /// Returns the unit of `--block-size`: a size such as 4096, 1M or MB (M and MB alone are printed with the numbers),
    /// human-readable, or si.
    fn of_block(text: &str) -> Option<Unit> {
        match text {
            "human-readable" => return Some(Unit::Human),
            "si" => return Some(Unit::Si),
            _ => {}
        }
        let size = size_of(text).filter(|size| *size > 0)?;
        let suffix = match text.starts_with(|first: char| first.is_ascii_digit()) {
            true => "",
            false => SUFFIXES.iter().find(|(name, _)| *name == text).map_or("", |(_, shown)| shown),
        };
        Some(Unit::Block(size, suffix))
    }
}

/// Units of sizes that are given alone, and how coreutils shows them.
const SUFFIXES: [(&str, &str); 19] = [
    ("k", "K"),
    ("K", "K"),
    ("M", "M"),
    ("G", "G"),
    ("T", "T"),
    ("P", "P"),
    ("E", "E"),
    ("KiB", "KiB"),
    ("MiB", "MiB"),
    ("GiB", "GiB"),
    ("TiB", "TiB"),
    ("PiB", "PiB"),
    ("EiB", "EiB"),
    ("kB", "kB"),
    ("KB", "kB"),
    ("MB", "MB"),
    ("GB", "GB"),
    ("TB", "TB"),
    ("PB", "PB"),
];

/// Returns a size in bytes as coreutils read it: K and KiB are 1024, KB is 1000; a unit alone is one of it.
fn size_of(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = if number.is_empty() { 1 } else { number.parse().ok()? };
    let mut letters = unit.chars();
    let power = match letters.next() {
        None if digits == 0 => return None,
        None => return Some(number),
        Some('b') if letters.as_str().is_empty() => return number.checked_mul(512),
        Some(letter) => 1 + "KMGTPE".find(letter.to_ascii_uppercase())?,
    };
    let base: u64 = match letters.as_str() {
        "" | "iB" => 1024,
        "B" => 1000,
        _ => return None,
    };
    base.checked_pow(power as u32)?.checked_mul(number)
}

/// Lines that `--threshold` leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// Those below it.
    AtLeast(u64),
    /// Those above it.
    AtMost(u64),
}

impl Threshold {
    fn of(text: &str) -> Option<Threshold> {
        match text.strip_prefix('-') {
            Some(size) => size_of(size).filter(|size| *size > 0).map(Threshold::AtMost),
            None => size_of(text).map(Threshold::AtLeast),
        }
    }

    /// Returns whether a line of this size is printed.
    pub fn shows(self, size: u64) -> bool {
        match self {
            Threshold::AtLeast(min) => size >= min,
            Threshold::AtMost(max) => size <= max,
        }
    }
}

/// The parsed command line.
#[derive(Debug, Default)]
pub struct Plan {
    pub(super) options: UsageOptions,
    pub(super) summarize: bool,
    /// `-s`, which is 0, or `--max-depth`, whichever comes last.
    pub(super) levels: Option<usize>,
    pub(super) unit: Unit,
    pub(super) threshold: Option<Threshold>,
    /// `--files0-from`.
    pub(super) list: Option<OsString>,
    /// Rules for local arguments: entries that they exclude are not counted.
    pub(super) left_out: ArgumentFilters,
    pub(super) total: bool,
    /// `--objects`.
    pub(super) counts: bool,
    /// `--group`.
    pub(super) group: bool,
    /// `-0`.
    pub(super) nul: bool,
    pub(super) json: bool,
    pub(super) limits: LimitArgs,
    pub(super) within: hakobu_core::limit::Limits,
    pub(super) objects: ObjectArgs,
    pub(super) filters: Filters,
    /// The filter for objects.
    pub(super) filter: Option<Arc<Filter>>,
    /// Arguments that are local.
    pub(super) paths: Vec<OsString>,
    /// Arguments in S3, as typed and parsed; none of both kinds at once.
    pub(super) places: Vec<(OsString, S3Url)>,
}

parts!(Plan { objects: ObjectArgs, limits: LimitArgs, filters: Filters });

const OPTIONS: &[Opt<Plan>] = &[
    flag("summarize", Some('s'), "only one line for each argument")
        .sets(|it, _| (it.summarize, it.levels) = (true, Some(0))),
    flag("all", Some('a'), "a line for every file, too").sets(|it, on| it.options.files = on),
    value("max-depth", Some('d'), "N", "print only N levels").reads(|it, arg| {
        it.options.depth_max = Some(arg.parsed().ok_or_else(|| arg.wrong("give a number"))?);
        put(&mut it.levels, it.options.depth_max)
    }),
    flag("total", Some('c'), "a line with the sum of all arguments at the end")
        .sets(|it, on| it.total = on),
    flag("human-readable", Some('h'), "sizes such as 1.5M (powers of 1024)")
        .alias(&["humanize"])
        .sets(|it, _| it.unit = Unit::Human),
    // Objects have no size besides that of their contents.
    flag("apparent-size", None, "sizes of contents instead of disk usage")
        .sets(|it, on| it.options.apparent = on),
    flag("bytes", Some('b'), "sizes of contents in bytes")
        .sets(|it, _| (it.options.apparent, it.unit) = (true, Unit::Byte)),
    flag("k", Some('k'), "sizes in KiB").short_only().sets(|it, _| it.unit = Unit::Kib),
    flag("m", Some('m'), "sizes in MiB").short_only().sets(|it, _| it.unit = Unit::Mib),
    flag("count-links", Some('l'), "count a file once for each of its names")
        .local("")
        .sets(|it, on| it.options.count_links = on),
    flag("one-file-system", Some('x'), "skip other file systems")
        .local("")
        .sets(|it, on| it.options.one_file_system = on),
    flag("inodes", None, "numbers of entries instead of sizes")
        .local("--objects counts objects")
        .sets(|it, on| it.options.inodes = on),
    flag("separate-dirs", Some('S'), "directories without their subdirectories")
        .local("")
        .sets(|it, on| it.options.separate = on),
    flag("dereference", Some('L'), "follow all symlinks")
        .local("")
        .sets(|it, _| it.options.follow = Follow::All),
    flag("dereference-args", Some('D'), "follow symlinks that are arguments (-H is the same)")
        .local("")
        .sets(|it, _| it.options.follow = Follow::Arguments),
    flag("H", Some('H'), "the same as -D")
        .short_only()
        .local("")
        .sets(|it, _| it.options.follow = Follow::Arguments),
    flag("no-dereference", Some('P'), "follow no symlinks (the default)")
        .local("")
        .sets(|it, _| it.options.follow = Follow::Never),
    value("block-size", Some('B'), "SIZE", "numbers in units of SIZE: 4096, 1M, MB, KiB").reads(
        |it, arg| {
            let unit = arg.value.to_str().and_then(Unit::of_block);
            put(&mut it.unit, unit.ok_or_else(|| arg.refuse("is not a size"))?)
        },
    ),
    flag("si", None, "sizes such as 1.5M (powers of 1000)").sets(|it, _| it.unit = Unit::Si),
    value(
        "threshold",
        Some('t'),
        "SIZE",
        "only lines of at least SIZE; with -SIZE of at most that",
    )
    .local("")
    .reads(|it, arg| {
        let threshold = arg.value.to_str().and_then(Threshold::of);
        put(&mut it.threshold, Some(threshold.ok_or_else(|| arg.refuse("is not a size"))?))
    }),
    value(
        "files0-from",
        None,
        "FILE",
        "count the names in FILE ('-': standard input), which end with NUL",
    )
    .local("")
    .reads(|it, arg| put(&mut it.list, Some(arg.value.clone()))),
    flag("null", Some('0'), "end each line with NUL instead of a newline")
        .sets(|it, on| it.nul = on),
    limits::JOBS.local("").reads(limits::set_jobs),
    flag("objects", None, "with s3://: the number of objects in a second column")
        .stored()
        .sets(|it, on| it.counts = on),
    flag("group", None, "with s3://: a line for each storage class of an argument")
        .stored()
        .sets(|it, on| it.group = on),
    JSON.sets(|it, on| it.json = on),
];

const UNBUILT: &[(&str, &str)] = &[("--time --time-style", "ls -lR shows times")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_coreutils() {
        for (text, size) in [
            ("0", Some(0)),
            ("10K", Some(10 << 10)),
            ("M", Some(1 << 20)),
            ("2MB", Some(2_000_000)),
            ("1GiB", Some(1 << 30)),
            ("3b", Some(1536)),
            ("", None),
            ("x", None),
            ("1KiBB", None),
            ("99999999999E", None),
        ] {
            assert_eq!(size_of(text), size, "{text}");
        }
        let shown = |text: &str| Unit::of_block(text).map(|unit| unit.size(3_000_000));
        assert_eq!(shown("M").as_deref(), Some("3M"));
        assert_eq!(shown("1M").as_deref(), Some("3"));
        assert_eq!(shown("KB").as_deref(), Some("3000kB"));
        assert_eq!(shown("si").as_deref(), Some("3.0M"));
        assert_eq!(shown("0"), None);
        assert_eq!(Threshold::of("-0"), None);
        assert!(Threshold::of("-1K").is_some_and(|t| t.shows(1024) && !t.shows(1025)));
        assert!(Threshold::of("1K").is_some_and(|t| t.shows(1024) && !t.shows(1023)));
    }
}
