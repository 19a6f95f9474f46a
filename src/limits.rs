//! Options for concurrency, rates, memory and priority, and for the report about them: shared by several commands.

use crate::cli::{Blocks, Group, Opt, OptArg, Row, flag, parts, put, titled, value};
use crate::textfile::{self, TextfileArgs};
use hakobu_core::event::Remarks;
use hakobu_core::language::Language;
use hakobu_core::limit::{self, Limits};
use hakobu_core::number;
use hakobu_core::timetable::{Schedule, Timetable};
use hakobu_core::unit::Jobs;
use hakobu_sys::process::{self, IoClass};
use hakobu_transfer::location::{Location, Sources};
use hakobu_transfer::policy::Policy;
use hakobu_transfer::run::{Layout, Objects, Spec};
use jiff::Zoned;
use std::ffi::OsStr;

/// Upper bound of a plausible rate of operations per second.
const OPERATIONS_MAX: u64 = 1_000_000_000;

/// The values of these options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitArgs {
    /// `-j`, `--jobs-per-file`, `--bwlimit`, `--memory`; without a limit of operations.
    pub base: Limits,
    /// `--iops-limit`.
    iops_max: Option<u64>,
    /// `--rps-limit`.
    rps_max: Option<u64>,
    /// `--no-memory`.
    forgets: bool,
    /// `--explain`.
    pub explain: bool,
    /// `--lang`.
    pub language: Language,
    /// `--prove`.
    pub prove: bool,
    /// `--nice`, `--ionice`.
    pub priority: Priority,
    /// `--textfile`, `--textfile-name`.
    pub textfile: TextfileArgs,
}

/// `-j`, for commands that list it in their own table.
pub const JOBS: Row = value(
    "jobs",
    Some('j'),
    "N",
    "workers: a number, +N or -N (relative to the CPUs), N% of them, 0 (many), auto (default)",
);

/// Sets the number of jobs.
///
/// # Errors
/// It is not a number of jobs.
pub fn set_jobs<S: AsMut<LimitArgs>>(state: &mut S, arg: &OptArg) -> Result<(), String> {
    put(&mut state.as_mut().base.jobs, parse_jobs(&arg.value, process::cpus())?)
}

/// Those of commands that transfer.
pub static TRANSFER: Blocks<LimitArgs> =
    Blocks(&[&BWLIMIT, &STEER, &REPORT, &textfile::OPTIONS, &RPS, &MEMORY, &PRIORITY]);

/// Rate of content.
pub static BWLIMIT: Group<LimitArgs> = titled("Limits").with(&[value(
    "bwlimit",
    None,
    "RATE",
    "total bytes per second; a plain number is KiB; or by time of day: '08:00,512K 18:00,off'",
)
.off(&["no-bwlimit"])
.reads(set_bwlimit)]);

/// Reads `--bwlimit`: a rate, or rates by time of day.
fn set_bwlimit(args: &mut LimitArgs, arg: &OptArg) -> Result<(), String> {
    let base = &mut args.base;
    (base.bytes_per_s_max, base.schedule) = match arg.value.to_str() {
        _ if !arg.on => (None, None),
        Some(text) if Timetable::is_one(text) => {
            let table = Timetable::parse(text, minute_of_week).map_err(|why| arg.refuse(&why))?;
            let schedule = Schedule::new(table);
            (Some(schedule.per_s_now()), Some(schedule))
        }
        _ => (number::parse_rate(&arg.value).map_err(|why| arg.refuse(why))?, None),
    };
    Ok(())
}

/// Returns the minutes since Sunday, 00:00, of the wall clock here ($TZ, /etc/localtime).
fn minute_of_week() -> u16 {
    minute_of(&Zoned::now())
}

/// Returns the minutes since Sunday, 00:00, of a wall clock. Where clocks are put forward, the slots of the missing hour
/// begin at its end; where they are put back, the repeated hour has the same rates twice.
fn minute_of(time: &Zoned) -> u16 {
    let number = |value: i8| u16::try_from(value).unwrap_or(0);
    let days = number(time.weekday().to_sunday_zero_offset());
    days * (24 * 60) + number(time.hour()) * 60 + number(time.minute())
}

/// Rate of requests.
pub static RPS: Group<LimitArgs> = titled("Limits").with(&[value(
    "rps-limit",
    None,
    "N",
    "total requests per second, with s3://",
)
.reads(|args, arg| put(&mut args.rps_max, Some(operations(arg)?)))]);

/// Rate of file operations.
pub static IOPS: Group<LimitArgs> = titled("Limits").with(&[IOPS_LIMIT]);

const IOPS_LIMIT: Opt<LimitArgs> =
    value("iops-limit", None, "N", "total file operations per second, between local paths")
        .reads(|args, arg| put(&mut args.iops_max, Some(operations(arg)?)));

/// Rate of file operations, and job hints.
pub static STEER: Group<LimitArgs> = titled("Limits").with(&[
    IOPS_LIMIT,
    value("jobs-per-file", None, "N", "workers per file, between local paths: N, auto")
        .local("-j is for all files together; --concurrency is for the parts of one")
        .reads(|args, arg| put(&mut args.base.jobs_per_file, parse_jobs_per_file(&arg.value)?)),
    flag(
        "no-memory",
        None,
        "neither use nor store learned job counts (-j auto) and facts about objects",
    )
    .sets(|args, on| args.forgets = on),
]);

/// Reports about the run.
pub static REPORT: Group<LimitArgs> = titled("Output").with(&[
    flag("explain", None, "report the bottleneck, with all evidence")
        .sets(|args, on| args.explain = on),
    LANG.reads(|args, arg| put(&mut args.language, parse_language(arg)?)),
    flag("prove", None, "prove the bottleneck by experiments during the run")
        .sets(|args, on| args.prove = on),
]);

/// `--lang`, for commands that report a bottleneck.
pub const LANG: Row =
    value("lang", None, "LANG", "language of the bottleneck: en (default, or $HAKOBU_LANG) or ja")
        .words(LANGUAGES);

/// Values of `--lang`.
pub const LANGUAGES: &[&str] = &["en", "ja"];

/// Parses the value of `--lang`.
///
/// # Errors
/// It is not the code of a known language.
pub fn parse_language(arg: &OptArg) -> Result<Language, String> {
    let known = arg.value.to_str().and_then(Language::of_code);
    known.ok_or_else(|| arg.refuse("give en or ja"))
}

/// Memory budget.
pub static MEMORY: Group<LimitArgs> = titled("Limits").with(&[value(
    "memory",
    None,
    "SIZE",
    "maximum size of all buffers and data in flight",
)
.reads(|args, arg| put(&mut args.base.memory_bytes_max, Some(arg.size()?)))]);

/// CPU and I/O priority.
pub static PRIORITY: Group<LimitArgs> = titled("Limits").with(&[
    value("nice", None, "N", "CPU priority: -20 (first) to 19 (last)").reads(|args, arg| {
        let nice = parse_nice(&arg.value).map_err(|why| arg.refuse(why))?;
        put(&mut args.priority.nice, Some(nice))
    }),
    value(
        "ionice",
        None,
        "CLASS[:LEVEL]",
        "I/O priority: none, realtime, best-effort or idle (0-3); level 0 (first) to 7",
    )
    .words(&["none", "realtime", "best-effort", "idle"])
    .reads(|args, arg| {
        let class = parse_ionice(&arg.value).map_err(|why| arg.refuse(why))?;
        put(&mut args.priority.ionice, Some(class))
    }),
]);

parts!(LimitArgs {});

impl LimitArgs {
    /// Checks that `--memory` has room for one request to a store, a part of `part_bytes` if given.
    ///
    /// # Errors
    /// The minimum that it needs.
    pub fn check_memory(&self, part_bytes: Option<u64>) -> Result<(), String> {
        limit::check_memory(self.base.memory_bytes_max, true, part_bytes)
            .map_err(|fatal| fatal.message)
    }

    /// Returns the limits of a run. Operations are requests if a side is in S3 (`with_store`), else calls on files.
    ///
    /// # Errors
    /// The given limit of operations is of the other kind.
    pub fn of_run(&self, with_store: bool) -> Result<Limits, String> {
        if self.prove && self.base.schedule.is_some() {
            return Err("--prove compares rates of one run, and --bwlimit by time of day changes \
                        them; give one rate"
                .to_owned());
        }
        let operations_per_s_max = match (self.iops_max, self.rps_max, with_store) {
            (Some(_), _, true) => Err("--iops-limit is for transfers between paths; \
                                       --rps-limit limits requests to s3://"),
            (_, Some(_), false) => Err("--rps-limit is for s3:// locations, and none is given; \
                                        --iops-limit limits operations on files"),
            (iops, rps, _) => Ok(iops.or(rps)),
        }?;
        Ok(Limits { operations_per_s_max, ..self.base })
    }

    /// Returns a transfer within `limits`; all else that these options do not say is off or the default.
    pub fn spec(
        &self,
        limits: Limits,
        (sources, target): (Sources, Location),
        layout: Layout,
        policy: Policy,
    ) -> Spec {
        Spec {
            sources,
            target,
            layout,
            files_from: None,
            chosen: None,
            range: None,
            policy,
            limits,
            remember: !self.forgets,
            jobs_before: None,
            prove: self.prove,
            items: false,
            items_unchanged: false,
            plans: false,
            ordered: false,
            remarks: Remarks::default(),
            digest: None,
            mkpath: false,
            carried: None,
            check_space: false,
            log_file: None,
            remote: None,
            packing: None,
            objects: Objects::default(),
        }
    }
}

/// Parses a number of operations per second.
fn operations(arg: &OptArg) -> Result<u64, String> {
    arg.parsed()
        .filter(|number| (1..=OPERATIONS_MAX).contains(number))
        .ok_or_else(|| arg.refuse("not a whole number from 1 to 1000000000"))
}

/// Number of jobs for `-j 0` (as many as possible); more threads would only wait for each other.
const MANY: usize = 256;
/// Upper bound of plausible values.
const JOBS_MAX: usize = 4096;

/// Parses the value of `-j` on a machine with `cpus` CPUs: `N` jobs, `+N` or `-N` relative to the CPUs (at least
/// one), `N%` of them, `0` for as many as possible, `auto`.
///
/// # Errors
/// A sentence for the user.
pub fn parse_jobs(text: &OsStr, cpus: usize) -> Result<Jobs, String> {
    let wrong = || {
        format!(
            "invalid -j '{}': not a number of jobs (examples: 8, +2, 50%, 0, auto; at most {JOBS_MAX})",
            text.to_string_lossy()
        )
    };
    let text = text.to_str().ok_or_else(wrong)?;
    if text == "auto" {
        return Ok(Jobs::Auto);
    }
    let number = |digits: &str| {
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        if plain { digits.parse::<usize>().ok() } else { None }.ok_or_else(wrong)
    };
    let jobs = if let Some(more) = text.strip_prefix('+') {
        cpus.saturating_add(number(more)?)
    } else if let Some(less) = text.strip_prefix('-') {
        cpus.saturating_sub(number(less)?)
    } else if let Some(percent) = text.strip_suffix('%') {
        cpus.saturating_mul(number(percent)?) / 100
    } else {
        match number(text)? {
            0 => MANY,
            jobs => jobs,
        }
    };
    if jobs > JOBS_MAX { Err(wrong()) } else { Ok(Jobs::Fixed(jobs.max(1))) }
}

/// Parses the value of `--jobs-per-file`: the number of workers for the content of one file.
///
/// # Errors
/// A sentence for the user.
pub fn parse_jobs_per_file(text: &OsStr) -> Result<Jobs, String> {
    let number = text.to_str().and_then(|text| text.parse::<usize>().ok());
    match number {
        _ if text == "auto" => Ok(Jobs::Auto),
        Some(jobs) if (1..=JOBS_MAX).contains(&jobs) => Ok(Jobs::Fixed(jobs)),
        _ => Err(format!(
            "invalid --jobs-per-file '{}': not a number of jobs from 1 to {JOBS_MAX}, or auto",
            text.to_string_lossy()
        )),
    }
}

/// Default level of a class with levels: ionice(1).
const LEVEL: u8 = 4;

/// An I/O priority: a class and a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoNice {
    /// The class.
    pub class: IoClass,
    /// 0 (first) to 7 (last); 0 in classes without levels.
    pub level: u8,
}

/// Parses the value of `--nice`.
///
/// # Errors
/// The reason, to be placed after the option and the text.
pub fn parse_nice(text: &OsStr) -> Result<i32, &'static str> {
    const WRONG: &str = "not a whole number from -20 (first) to 19 (last)";
    let value: i32 = text.to_str().and_then(|text| text.parse().ok()).ok_or(WRONG)?;
    if (-20..=19).contains(&value) { Ok(value) } else { Err(WRONG) }
}

/// Parses the value of `--ionice`: `CLASS` or `CLASS:LEVEL`, with a class by name (case-insensitive) or number.
///
/// # Errors
/// The reason, to be placed after the option and the text.
pub fn parse_ionice(text: &OsStr) -> Result<IoNice, &'static str> {
    const CLASS: &str =
        "none of none, realtime, best-effort, idle, 0-3 (with a level: best-effort:7)";
    const WITHOUT: &str = "only realtime and best-effort have levels";
    let text = text.to_str().ok_or(CLASS)?;
    let (class, level) = match text.split_once(':') {
        Some((class, level)) => (class, Some(level)),
        None => (text, None),
    };
    let class = match &*class.to_ascii_lowercase() {
        "none" | "0" => IoClass::None,
        "realtime" | "1" => IoClass::Realtime,
        "best-effort" | "2" => IoClass::BestEffort,
        "idle" | "3" => IoClass::Idle,
        _ => return Err(CLASS),
    };
    let has_levels = matches!(class, IoClass::Realtime | IoClass::BestEffort);
    let level = match level {
        Some(_) if !has_levels => return Err(WITHOUT),
        Some(level) => match level.as_bytes() {
            [digit @ b'0'..=b'7'] => digit - b'0',
            _ => return Err("levels are 0 (first) to 7 (last)"),
        },
        None if has_levels => LEVEL,
        None => 0,
    };
    Ok(IoNice { class, level })
}

/// CPU and I/O priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Priority {
    /// `--nice`.
    pub nice: Option<i32>,
    /// `--ionice`.
    pub ionice: Option<IoNice>,
}

impl Priority {
    /// Sets both, where they are given. They apply to the calling thread and to threads that it starts later, so this is
    /// called before any is started.
    ///
    /// # Errors
    /// A sentence that names the option.
    pub fn apply(self) -> Result<(), String> {
        if let Some(value) = self.nice {
            process::set_nice(value)
                .map_err(|error| format!("cannot set --nice={value}: {error}"))?;
        }
        if let Some(IoNice { class, level }) = self.ionice {
            process::set_io_priority(class, level)
                .map_err(|error| format!("cannot set --ionice (class {class:?}): {error}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(options: &[(&'static str, &str)]) -> Result<LimitArgs, String> {
        let mut limits = LimitArgs::default();
        let all = [&[JOBS.reads(set_jobs)], BWLIMIT.1, STEER.1, RPS.1, MEMORY.1];
        for (name, value) in options {
            let arg = OptArg { name, on: true, count: 1, value: value.into() };
            let option = all.iter().copied().flatten().find(|option| option.row.name == *name);
            option.expect("an option").set(&mut limits, &arg)?;
        }
        Ok(limits)
    }

    #[test]
    fn limits() {
        let limits = read(&[("bwlimit", "2m"), ("iops-limit", "1"), ("memory", "64M")]).unwrap();
        assert_eq!((limits.base.bytes_per_s_max, limits.iops_max), (Some(2 << 20), Some(1)));
        assert_eq!(limits.base.memory_bytes_max, Some(64 << 20));
        for (name, value) in [
            ("iops-limit", "0"),
            ("iops-limit", "-1"),
            ("iops-limit", "1.5"),
            ("rps-limit", "1k"),
            ("rps-limit", ""),
            ("rps-limit", "1000000001"),
            ("rps-limit", "99999999999999999999"),
            ("memory", "much"),
            ("bwlimit", "1b"),
            ("jobs", "x"),
            ("jobs-per-file", "0"),
            ("jobs-per-file", "50%"),
        ] {
            let message = read(&[(name, value)]).unwrap_err();
            assert!(message.contains(value), "{message}");
        }
    }

    /// The wall clock of a zone whose clocks are put forward on 2026-03-29 and back on 2026-10-25.
    fn zoned(utc: &str) -> Zoned {
        let zone = jiff::tz::TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        utc.parse::<jiff::Timestamp>().unwrap().to_zoned(zone)
    }

    #[test]
    fn rates_by_the_wall_clock() {
        let table = Timetable::parse("01:30,1M 02:30,2M 03:30,3M", minute_of_week).unwrap();
        let mib = |utc: &str| table.per_s_at(minute_of(&zoned(utc))) >> 20;
        // From 01:59:59 to 03:00:00: what would begin at 02:30 begins then.
        assert_eq!(mib("2026-03-29T00:29:59Z"), 3);
        assert_eq!(mib("2026-03-29T00:59:59Z"), 1);
        assert_eq!(mib("2026-03-29T01:00:00Z"), 2);
        assert_eq!(mib("2026-03-29T01:30:00Z"), 3);
        // 02:00 to 03:00 comes twice.
        assert_eq!(mib("2026-10-25T00:29:59Z"), 1);
        assert_eq!(mib("2026-10-25T00:30:00Z"), 2);
        assert_eq!(mib("2026-10-25T01:00:00Z"), 1);
        assert_eq!(mib("2026-10-25T01:30:00Z"), 2);
        assert_eq!(mib("2026-10-25T02:30:00Z"), 3);
        // A Sunday ends and a Monday begins.
        let week = Timetable::parse("Sun-23:59,1M Mon-00:00,2M", minute_of_week).unwrap();
        let mib = |utc: &str| week.per_s_at(minute_of(&zoned(utc))) >> 20;
        assert_eq!((mib("2026-07-05T21:58:59Z"), mib("2026-07-05T21:59:00Z")), (2, 1));
        assert_eq!((mib("2026-07-05T21:59:59Z"), mib("2026-07-05T22:00:00Z")), (1, 2));
    }

    proptest::proptest! {
        /// At every instant the rate is that of the last slot on the face of the clock.
        #[test]
        fn rates_at_any_instant(second in 1_700_000_000i64..1_900_000_000, hour in 0u16..24) {
            let text = format!("{hour:02}:00,1M {:02}:30,2M", (hour + 11) % 24);
            let table = Timetable::parse(&text, minute_of_week).unwrap();
            let utc = jiff::Timestamp::from_second(second).unwrap();
            let time = utc.to_zoned(zoned("2026-01-01T00:00:00Z").time_zone().clone());
            let today = u16::try_from(time.hour()).unwrap() * 60 + u16::try_from(time.minute()).unwrap();
            let since = |minute: u16| (24 * 60 + today - minute) % (24 * 60);
            let first = since(hour * 60) < since(((hour + 11) % 24) * 60 + 30);
            proptest::prop_assert_eq!(table.per_s_at(minute_of(&time)), if first { 1 << 20 } else { 2 << 20 });
        }
    }

    #[test]
    fn a_rate_or_a_timetable() {
        let limits = read(&[("bwlimit", "00:00,1M")]).unwrap();
        assert_eq!(limits.base.bytes_per_s_max, Some(1 << 20));
        assert_eq!(limits.base.divided(4).bytes_per_s_max, Some(1 << 18));
        assert!(limits.of_run(false).is_ok());
        let proves = LimitArgs { prove: true, ..limits };
        assert!(proves.of_run(false).unwrap_err().contains("time of day"));
        // The last one counts, of either form.
        let one = read(&[("bwlimit", "00:00,1M"), ("bwlimit", "2M")]).unwrap();
        assert_eq!((one.base.bytes_per_s_max, one.base.schedule), (Some(2 << 20), None));
        for (value, why) in [("08:00,1M:2M", "UPLOAD:DOWNLOAD"), ("8,1M", "no time of day")] {
            let message = read(&[("bwlimit", value)]).unwrap_err();
            assert!(message.contains(why) && message.contains("--bwlimit"), "{message}");
        }
    }

    #[test]
    fn each_limit_of_operations_has_its_place() {
        let (iops, rps) =
            (read(&[("iops-limit", "5")]).unwrap(), read(&[("rps-limit", "7")]).unwrap());
        let operations = |args: &LimitArgs, with_store| {
            args.of_run(with_store).map(|limits| limits.operations_per_s_max)
        };
        assert_eq!(operations(&iops, false), Ok(Some(5)));
        assert_eq!(operations(&rps, true), Ok(Some(7)));
        assert_eq!(operations(&LimitArgs::default(), true), Ok(None));
        assert!(operations(&iops, true).unwrap_err().contains("--rps-limit"));
        assert!(operations(&rps, false).unwrap_err().contains("--iops-limit"));
    }
    #[test]
    fn jobs_of_one_file() {
        let parse = |text: &str| parse_jobs_per_file(OsStr::new(text));
        assert_eq!(parse("auto"), Ok(Jobs::Auto));
        assert_eq!(parse("1"), Ok(Jobs::Fixed(1)));
        assert_eq!(parse("32"), Ok(Jobs::Fixed(32)));
        for text in ["0", "-1", "1.5", "x", "", "50%", "4097"] {
            assert!(parse(text).unwrap_err().contains("from 1 to 4096"), "{text}");
        }
    }

    #[test]
    fn table() {
        for (text, jobs) in [
            ("auto", Some(Jobs::Auto)),
            ("1", Some(Jobs::Fixed(1))),
            ("32", Some(Jobs::Fixed(32))),
            ("0", Some(Jobs::Fixed(MANY))),
            ("+0", Some(Jobs::Fixed(8))),
            ("+3", Some(Jobs::Fixed(11))),
            ("-3", Some(Jobs::Fixed(5))),
            ("-8", Some(Jobs::Fixed(1))),
            ("-100", Some(Jobs::Fixed(1))),
            ("100%", Some(Jobs::Fixed(8))),
            ("50%", Some(Jobs::Fixed(4))),
            ("1%", Some(Jobs::Fixed(1))),
            ("400%", Some(Jobs::Fixed(32))),
            ("4097", None),
            ("99999999999999999999", None),
            ("", None),
            ("+", None),
            ("%", None),
            ("1.5", None),
            ("--2", None),
            ("Auto", None),
            (" 4", None),
        ] {
            assert_eq!(parse_jobs(OsStr::new(text), 8).ok(), jobs, "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn always_between_one_and_the_limit(text: String, cpus in 1usize..2000) {
            if let Ok(Jobs::Fixed(jobs)) = parse_jobs(OsStr::new(&text), cpus) {
                proptest::prop_assert!((1..=JOBS_MAX).contains(&jobs));
            }
        }

        #[test]
        fn relative_to_the_cpus(n in 0usize..500, cpus in 1usize..500) {
            let jobs = |text: String| parse_jobs(OsStr::new(&text), cpus);
            proptest::prop_assert_eq!(jobs(format!("+{n}")), Ok(Jobs::Fixed(cpus + n)));
            proptest::prop_assert_eq!(
                jobs(format!("-{n}")),
                Ok(Jobs::Fixed(cpus.saturating_sub(n).max(1)))
            );
            proptest::prop_assert_eq!(
                jobs(format!("{}00%", n / 100)),
                Ok(Jobs::Fixed((cpus * (n / 100)).max(1)))
            );
        }
    }

    #[test]
    fn nice() {
        for (text, value) in [
            ("-20", Some(-20)),
            ("0", Some(0)),
            ("10", Some(10)),
            ("+10", Some(10)),
            ("19", Some(19)),
            ("20", None),
            ("-21", None),
            ("1.5", None),
            ("", None),
            ("ten", None),
            ("99999999999", None),
        ] {
            assert_eq!(parse_nice(OsStr::new(text)).ok(), value, "{text:?}");
        }
    }

    #[test]
    fn ionice() {
        use IoClass::*;
        for (text, value) in [
            ("none", Some((None, 0))),
            ("0", Some((None, 0))),
            ("realtime", Some((Realtime, 4))),
            ("1:0", Some((Realtime, 0))),
            ("best-effort", Some((BestEffort, 4))),
            ("Best-Effort:7", Some((BestEffort, 7))),
            ("2:3", Some((BestEffort, 3))),
            ("idle", Some((Idle, 0))),
            ("3", Some((Idle, 0))),
            ("idle:3", Option::None),
            ("none:0", Option::None),
            ("2:8", Option::None),
            ("2:-1", Option::None),
            ("2:77", Option::None),
            ("2:", Option::None),
            ("4", Option::None),
            (":3", Option::None),
            ("", Option::None),
            ("best", Option::None),
        ] {
            let value = value.map(|(class, level)| IoNice { class, level });
            assert_eq!(parse_ionice(OsStr::new(text)).ok(), value, "{text:?}");
        }
    }

    #[test]
    fn defaults_change_nothing() {
        assert_eq!(Priority::default().apply(), Ok(()));
    }

    #[test]
    fn priorities_are_applied() {
        // Priorities are per thread: other tests keep theirs.
        let ionice = parse_ionice(OsStr::new("idle")).ok();
        let last = Priority { nice: Some(19), ionice };
        let applied = std::thread::spawn(move || last.apply());
        assert_eq!(applied.join().unwrap(), Ok(()));
    }
}
