//! `hakobu du`: du(1)'s command line on the parallel meter; of `s3://` in `s3`.

mod s3;

use super::remote;
use super::tool::{self, carry_out};
use crate::cli::{Group, JSON, Table, Typed, flag, parts, put, titled, value};
use crate::filters::{self, ArgumentFilters, Filters};
use crate::limits::{self, LimitArgs};
use crate::number::{ceiled, ceiled_si};
use crate::objects::{self, ObjectArgs, are_s3};
use crate::show::escape::Escape;
use crate::show::json::{self, Paths};
use crate::show::output::Output;
use crate::show::progress::{Progress, ProgressForm};
use crate::show::screen;
use crate::{exit, names};
use hakobu_core::error::{Cause, Operation, quoted};
use hakobu_core::language::Language;
use hakobu_core::unit::Kind;
use hakobu_sys::paths::Links;
use hakobu_transfer::location::S3Url;
use hakobu_transfer::policy::filter::Filter;
use hakobu_transfer::run::steered;
use hakobu_tree::usage::{Excludes, Follow, UsageMeter, UsageOptions, UsageResult};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// The command line of `du`.
pub static TABLE: Table<DuOptions> = Table {
    command: "du",
    about: "Report disk usage of directories and prefixes, as du does, in parallel",
    description: "Prints a line for each directory, after its contents, sorted by name; a file \
            with several names counts once. Numbers are KiB unless an option names another \
            unit.",
    usage: "hakobu du [OPTIONS] [PATH]...",
    examples: &[
        ("hakobu du -sh src", "Sum up a tree."),
        ("hakobu du -h -d 1 s3://data", "Sum up the prefixes of a bucket."),
        ("hakobu du -ah --threshold=1K src", "List files and directories of at least 1 KiB."),
    ],
    common: &[],
    after: "Of -h, --si, -b, -k, -m and -B the last one counts.\n\
            Exit codes: 0 done, 1 something could not be counted, 2 usage.",
    options: &[
        &COUNTED,
        &SHOWN,
        &UNITS,
        &WORK,
        &OUTPUT,
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
pub struct DuOptions {
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
    /// What the run may take, from `limits`.
    pub(super) run_limits: hakobu_core::limit::Limits,
    pub(super) objects: ObjectArgs,
    pub(super) filters: Filters,
    /// The filter for objects.
    pub(super) filter: Option<Arc<Filter>>,
    /// Arguments that are local.
    pub(super) paths: Vec<OsString>,
    /// Arguments in S3, as typed and parsed; none of both kinds at once.
    pub(super) places: Vec<(OsString, S3Url)>,
}

parts!(DuOptions { objects: ObjectArgs, limits: LimitArgs, filters: Filters });

static COUNTED: Group<DuOptions> = titled("What is counted").with(&[
    flag("count-links", Some('l'), "count a file once for each of its names")
        .local("")
        .sets(|it, on| it.options.count_links = on),
    flag("one-file-system", Some('x'), "skip other file systems")
        .local("")
        .sets(|it, on| it.options.one_file_system = on),
    flag("inodes", None, "count entries instead of sizes")
        .local("--objects counts objects")
        .sets(|it, on| it.options.inodes = on),
    flag("separate-dirs", Some('S'), "do not add the sizes of subdirectories")
        .local("")
        .sets(|it, on| it.options.separate = on),
    flag("dereference", Some('L'), "follow all symlinks")
        .local("")
        .sets(|it, _| it.options.follow = Follow::All),
    flag("dereference-args", Some('D'), "follow symlinks that are arguments")
        .local("")
        .sets(|it, _| it.options.follow = Follow::Arguments),
    flag("H", Some('H'), "same as -D (s5cmd's -H is -h)")
        .short_only()
        .local("s5cmd's -H is -h here")
        .sets(|it, _| it.options.follow = Follow::Arguments),
    flag("no-dereference", Some('P'), "follow no symlinks (the default)")
        .local("")
        .sets(|it, _| it.options.follow = Follow::Never),
    value(
        "files0-from",
        None,
        "FILE",
        "count the names in FILE ('-': standard input), which end with NUL",
    )
    .local("")
    .reads(|it, arg| put(&mut it.list, Some(arg.value.clone()))),
    flag("objects", None, "with s3://: the number of objects in a second column")
        .stored()
        .sets(|it, on| it.counts = on),
    flag("group", None, "with s3://: a line for each storage class of an argument")
        .stored()
        .sets(|it, on| it.group = on),
]);

static SHOWN: Group<DuOptions> = titled("What is shown").with(&[
    flag("summarize", Some('s'), "print only a total for each argument")
        .sets(|it, _| (it.summarize, it.levels) = (true, Some(0))),
    flag("all", Some('a'), "print files, not only directories")
        .sets(|it, on| it.options.files = on),
    value("max-depth", Some('d'), "N", "print directories N or fewer levels below the argument")
        .reads(|it, arg| {
            it.options.depth_max = Some(arg.parsed().ok_or_else(|| arg.refuse("give a number"))?);
            put(&mut it.levels, it.options.depth_max)
        }),
    flag("total", Some('c'), "print a grand total at the end").sets(|it, on| it.total = on),
    value(
        "threshold",
        Some('t'),
        "SIZE",
        "print only entries of at least SIZE; with -SIZE, of at most that",
    )
    .local("")
    .reads(|it, arg| {
        let threshold = arg.value.to_str().and_then(Threshold::of);
        put(&mut it.threshold, Some(threshold.ok_or_else(|| arg.refuse("not a size"))?))
    }),
]);

static UNITS: Group<DuOptions> = titled("Units").with(&[
    flag("human-readable", Some('h'), "print sizes such as 1.5M (powers of 1024)")
        .alias(&["humanize"])
        .sets(|it, _| it.unit = Unit::Human),
    flag("si", None, "print sizes such as 1.5M (powers of 1000)").sets(|it, _| it.unit = Unit::Si),
    // Objects have no size besides that of their contents.
    flag("apparent-size", None, "sizes of contents instead of disk usage")
        .sets(|it, on| it.options.apparent = on),
    flag("bytes", Some('b'), "sizes of contents in bytes")
        .sets(|it, _| (it.options.apparent, it.unit) = (true, Unit::Byte)),
    flag("k", Some('k'), "sizes in KiB").short_only().sets(|it, _| it.unit = Unit::Kib),
    flag("m", Some('m'), "sizes in MiB").short_only().sets(|it, _| it.unit = Unit::Mib),
    value("block-size", Some('B'), "SIZE", "print sizes in units of SIZE: 4096, 1M, MB, KiB")
        .reads(|it, arg| {
            let unit = arg.value.to_str().and_then(Unit::of_block);
            put(&mut it.unit, unit.ok_or_else(|| arg.refuse("not a size"))?)
        }),
]);

static WORK: Group<DuOptions> =
    titled("Work").with(&[limits::JOBS.local("").reads(limits::set_jobs)]);

static OUTPUT: Group<DuOptions> = titled("Output").with(&[
    flag("null", Some('0'), "end each line with NUL instead of a newline")
        .sets(|it, on| it.nul = on),
    JSON.sets(|it, on| it.json = on),
]);

const UNBUILT: &[(&str, &str)] = &[("--time --time-style", "ls -lR shows times")];

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    carry_out(TABLE.parse(&arguments), plan, |plan| match plan.places.is_empty() {
        true => measure(&plan),
        false => s3::measure(&plan),
    })
}

fn plan(typed: Typed) -> Result<DuOptions, String> {
    if are_s3(&typed.paths)? {
        return s3::plan(&typed);
    }
    let mut plan = TABLE.read(&typed, DuOptions::default())?;
    TABLE.check_places(&typed, false, false)?;
    if let Some(message) = remote::elsewhere(&typed.paths, "hakobu du") {
        return Err(message);
    }
    plan.run_limits = plan.limits.of_run(false)?;
    let options = &mut plan.options;
    if plan.summarize && options.files {
        let message = "-s and -a contradict each other: one line in all, or one for each file";
        return Err(message.into());
    }
    if plan.summarize {
        if let Some(depth) = options.depth_max.filter(|depth| *depth > 0) {
            return Err(format!("-s and --max-depth={depth} contradict each other"));
        }
        options.depth_max = Some(0);
    }
    plan.paths = typed.paths;
    if let Some(list) = &plan.list {
        if !plan.paths.is_empty() {
            return Err("--files0-from and arguments cannot be used together".into());
        }
        let names = names::read_list(list, &Links::Trusted, true, names::split_plain)?;
        plan.paths = names.into_iter().map(OsString::from_vec).collect();
    } else if plan.paths.is_empty() {
        plan.paths.push(".".into());
    }
    if let Some(note) = plan.filters.note(true)? {
        return Err(note.trim_start_matches("note: ").to_owned());
    }
    if let Some(filter) = plan.filters.of_names()? {
        plan.left_out = ArgumentFilters::new(&filter, &plan.paths)?;
    }
    Ok(plan)
}

/// Counts the arguments of a plan; returns the exit code.
fn measure(plan: &DuOptions) -> Result<u8, String> {
    plan.limits.priority.apply()?;
    let escape = Escape::of_locale();
    let out = Arc::new(Output::stdout());
    let failed = |path: &[u8], operation: Operation, cause: &Cause| {
        let json = plan.json.then_some(&*out);
        tool::fail_at(json, escape, operation, path, cause);
    };
    let mut tops = Vec::with_capacity(plan.paths.len());
    for path in &plan.paths {
        let top = CString::new(path.as_bytes());
        tops.push(top.map_err(|_| format!("{} cannot be a path", quoted(path)))?);
    }
    let paths: Vec<&Path> = plan.paths.iter().map(Path::new).collect();
    let rows = Arc::clone(&out);
    let progress =
        Progress::start(ProgressForm::of(None, plan.json, false), Language::English, move |row| {
            rows.write(row)
        });
    let lines = DuLines::new(plan, &out);
    let excludes = |top: &[u8], below: &[u8], kind: Kind| plan.left_out.excludes(top, below, kind);
    let excludes = (!plan.left_out.is_empty()).then_some(&excludes as Excludes<'_>);
    let shows = |size| plan.threshold.is_none_or(|threshold| threshold.shows(size));
    let ((sum, failures), _) = steered(&paths, plan.run_limits, |controls, capacity| {
        progress.begins(&controls.meter);
        let meter = UsageMeter::new(
            plan.options,
            &tops,
            controls,
            capacity.open_dirs_max,
            excludes,
            &failed,
        );
        let mut sum = Sum::default();
        for top in &tops {
            let measured = meter.measure(top, &mut |path, bytes| {
                if shows(bytes) {
                    lines.write(Some(path), None, Sum { bytes, objects: 0 });
                }
            });
            if let UsageResult::Bytes(bytes) = measured {
                sum.bytes += bytes;
            }
        }
        (sum, meter.failures())
    });
    progress.finish();
    if plan.total {
        lines.write(None, None, sum);
    }
    Ok(tool::close(&out, if failures > 0 { exit::FAILURE } else { exit::OK }))
}

/// Bytes, and of what is in S3 objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub bytes: u64,
    pub objects: u64,
}

impl Sum {
    pub fn add(&mut self, other: Sum) {
        self.bytes += other.bytes;
        self.objects += other.objects;
    }
}

/// Sums by storage class; `None` if they are not grouped, and for delete markers, which have none.
#[derive(Debug, Default)]
pub struct Sums(BTreeMap<Option<String>, Sum>);

impl Sums {
    /// Adds a sum to a class.
    pub fn add(&mut self, class: Option<&str>, sum: Sum) {
        match self.0.iter_mut().find(|(known, _)| known.as_deref() == class) {
            Some((_, of)) => of.add(sum),
            None => drop(self.0.insert(class.map(str::to_owned), sum)),
        }
    }

    /// Adds other sums class by class.
    pub fn add_all(&mut self, others: &Sums) {
        for (class, sum) in &others.0 {
            self.add(class.as_deref(), *sum);
        }
    }

    /// Writes a line for each class; one of 0 bytes if there is none.
    pub fn write(&self, lines: &DuLines<'_>, name: Option<&[u8]>) {
        for (class, sum) in &self.0 {
            lines.write(name, class.as_deref(), *sum);
        }
        if self.0.is_empty() {
            lines.write(name, None, Sum::default());
        }
    }
}

/// The lines on standard output.
pub struct DuLines<'a> {
    /// The plan.
    pub plan: &'a DuOptions,
    out: &'a Output,
    escape: Option<Escape>,
}

impl<'a> DuLines<'a> {
    /// Makes the lines of a plan.
    pub fn new(plan: &'a DuOptions, out: &'a Output) -> DuLines<'a> {
        let escape = (out.is_terminal() && !plan.nul).then(Escape::of_locale);
        DuLines { plan, out, escape }
    }

    /// Writes the line of a name, or without one that of the total.
    pub fn write(&self, name: Option<&[u8]>, class: Option<&str>, sum: Sum) {
        let line = self.line(name, class, sum);
        screen::beside(|| self.out.write(&line));
    }

    /// Returns the line.
    pub(super) fn line(
        &self,
        name: Option<&[u8]>,
        storage_class: Option<&str>,
        sum: Sum,
    ) -> Vec<u8> {
        #[derive(Serialize)]
        struct Line<'a> {
            event: &'static str,
            #[serde(flatten)]
            paths: Paths<'a>,
            #[serde(skip_serializing_if = "Option::is_none")]
            storage_class: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            bytes: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            inodes: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            objects: Option<u64>,
        }
        let (plan, Sum { bytes, objects }) = (self.plan, sum);
        if plan.json {
            let event = if name.is_some() { "usage" } else { "total" };
            let paths = Paths(&[("path", name.map(tool::path))]);
            let objects = (!plan.places.is_empty()).then_some(objects);
            let counts = plan.options.inodes;
            let (inodes, bytes) = (counts.then_some(bytes), (!counts).then_some(bytes));
            return json::line(&Line { event, paths, storage_class, bytes, inodes, objects });
        }
        let number = match plan.options.inodes {
            true => plan.unit.count(bytes),
            false => plan.unit.size(bytes),
        };
        let mut text = number.into_bytes();
        text.push(b'\t');
        if plan.counts {
            text.extend_from_slice(format!("{objects}\t").as_bytes());
        }
        let mut push = |part: &[u8]| match self.escape {
            Some(escape) => escape.push(part, &mut text),
            None => text.extend_from_slice(part),
        };
        push(name.unwrap_or(b"total"));
        if let Some(class) = storage_class {
            push(format!(" [{class}]").as_bytes());
        }
        text.push(if plan.nul { 0 } else { b'\n' });
        text
    }
}

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

    fn planned(line: &str) -> Result<DuOptions, String> {
        plan(TABLE.parse_line(line)?)
    }

    #[test]
    fn lines_look_like_those_of_coreutils() {
        let (out, sum) = (Output::stdout(), Sum { bytes: 1500, objects: 0 });
        for (options, text) in [
            ("", "2\tname\n"),
            ("-b", "1500\tname\n"),
            ("-h", "1.5K\tname\n"),
            ("-hk", "2\tname\n"),
            ("-bm", "1\tname\n"),
            ("-b0", "1500\tname\0"),
            ("--json", "{\"event\":\"usage\",\"path\":\"name\",\"bytes\":1500}\n"),
        ] {
            let plan = planned(options).unwrap();
            let found = DuLines::new(&plan, &out).line(Some(b"name"), None, sum);
            assert_eq!(String::from_utf8_lossy(&found), text, "{options}");
        }
    }

    #[test]
    fn contradictions_are_named() {
        for (options, start) in [
            ("-sa", "-s and -a"),
            ("-s -d 1", "-s and --max-depth=1"),
            ("-d x", "invalid --max-depth 'x'"),
            ("-j x", "invalid -j 'x'"),
            ("--time", "--time is not supported"),
            ("-B 0", "invalid --block-size '0'"),
            ("-t -0", "invalid --threshold '-0'"),
            ("--files0-from=/dev/null t", "--files0-from and arguments"),
            ("--include=*.o t", "--include '*.o' changes nothing"),
        ] {
            assert!(planned(options).unwrap_err().starts_with(start), "{options}");
        }
        assert_eq!(planned("-s -d 0").unwrap().options.depth_max, Some(0));
        assert_eq!(planned("").unwrap().paths, ["."]);
    }

    #[test]
    fn lines() {
        let out = Output::stdout();
        let sum = Sum { bytes: 1500, objects: 2 };
        let text = |options: &str, class: Option<&str>| {
            let plan = planned(options).unwrap();
            String::from_utf8_lossy(&DuLines::new(&plan, &out).line(Some(b"x"), class, sum))
                .into_owned()
        };
        for (options, expected) in [
            ("s3://abc", "2\tx\n"),
            ("-h s3://abc", "1.5K\tx\n"),
            ("-b --objects s3://abc", "1500\t2\tx\n"),
            ("-b0 s3://abc", "1500\tx\0"),
            (
                "--json s3://abc",
                "{\"event\":\"usage\",\"path\":\"x\",\"bytes\":1500,\"objects\":2}\n",
            ),
        ] {
            assert_eq!(text(options, None), expected, "{options}");
        }
        assert_eq!(text("-b --group s3://abc", Some("GLACIER")), "1500\tx [GLACIER]\n");
        let json = text("--json --group s3://abc", Some("GLACIER"));
        assert!(json.contains("\"storage_class\":\"GLACIER\",\"bytes\":1500"), "{json}");
    }

    #[test]
    fn classes_are_summed() {
        let one = Sum { bytes: 5, objects: 1 };
        let (mut sums, mut all) = (Sums::default(), Sums::default());
        for class in [Some("GLACIER"), None, Some("STANDARD"), Some("GLACIER")] {
            sums.add(class, one);
        }
        all.add_all(&sums);
        all.add_all(&sums);
        let found: Vec<_> =
            all.0.iter().map(|(class, sum)| (class.as_deref(), sum.bytes)).collect();
        assert_eq!(found, [(None, 10), (Some("GLACIER"), 20), (Some("STANDARD"), 10)]);
    }
}
