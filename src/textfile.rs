//! Gauges for the textfile collector of Prometheus' node exporter: of a transfer (`--textfile`) and of a cluster run.
//! A file is replaced as a whole, so that the exporter never reads half of it. The format is version 0.0.4 of
//! Prometheus' exposition formats.

use crate::cli::{Group, Opt, put, titled, value};
use crate::files::Target;
use crate::limits::LimitArgs;
use crate::show::output;
use crate::{exit, find};
use hakobu_core::unit::Totals;
use hakobu_transfer::run::Spec;
use std::ffi::OsString;
use std::fmt::Write;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A text of gauges.
#[derive(Debug, Default)]
pub struct Gauges {
    text: String,
    labels: String,
}

impl Gauges {
    /// Begins a text whose gauges all have these labels.
    pub fn new(labels: &[(&str, &str)]) -> Gauges {
        let pairs = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
        Gauges { text: String::new(), labels: pairs.collect::<Vec<_>>().join(",") }
    }

    /// Adds a gauge.
    pub fn add(&mut self, name: &str, help: &str, value: f64) {
        self.add_with(name, help, &[], value);
    }

    /// Adds a gauge with further labels.
    pub fn add_with(&mut self, name: &str, help: &str, labels: &[(&str, &str)], value: f64) {
        let mut all = self.labels.clone();
        for (label, value) in labels {
            let comma = if all.is_empty() { "" } else { "," };
            let _ = write!(all, "{comma}{label}=\"{}\"", escaped(value));
        }
        let _ = write!(
            self.text,
            "# HELP {name} {}\n# TYPE {name} gauge\n{name}{{{all}}} {value}\n",
            help.replace('\\', "\\\\").replace('\n', "\\n")
        );
    }

    /// Replaces a file by this text.
    ///
    /// # Errors
    /// A sentence with the path and the cause.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        Target::open(path)?.deliver(&self.text)
    }
}

/// Returns a label's value as it stands between quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

// The gauges of a transfer.

/// Where the gauges of a transfer go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextfileArgs {
    /// `--textfile`.
    pub path: Option<PathBuf>,
    /// `--textfile-name`.
    pub name: Option<String>,
}

/// The options.
pub static OPTIONS: Group<LimitArgs> = titled("Output").with(GAUGES);

const GAUGES: &[Opt<LimitArgs>] = &[
    value(
        "textfile",
        None,
        "FILE",
        "at the end, write gauges for Prometheus' node exporter to FILE",
    )
    .reads(|args, arg| put(&mut args.textfile.path, Some(arg.path()))),
    value(
        "textfile-name",
        None,
        "NAME",
        "label 'name' of these gauges (default: the name of FILE without its suffix)",
    )
    .reads(|args, arg| put(&mut args.textfile.name, Some(arg.text()?.to_owned()))),
];

/// Longest text of a label, in characters.
const LABEL_MAX: usize = 256;
/// Bytes of an earlier file that are looked at.
const EARLIER_MAX: u64 = 1 << 20;
/// The gauge that a failed run keeps from the file of an earlier one.
const LAST_SUCCESS: &str = "hakobu_transfer_last_success_time_seconds";
/// Gauges of this process were written, or nothing asks for them.
static SETTLED: AtomicBool = AtomicBool::new(false);

/// The end of a transfer.
#[derive(Clone, Copy, Debug)]
pub struct TransferEnd {
    /// The exit code.
    pub code: u8,
    /// A signal or a time limit ended it.
    pub stopped: bool,
    /// Wall time.
    pub took: Duration,
    /// What was done.
    pub totals: Totals,
}

impl TextfileArgs {
    /// Checks before the work that the file can be written.
    ///
    /// # Errors
    /// A sentence with the path and the cause.
    pub fn check(&self) -> Result<(), String> {
        let Some(path) = self.path.as_deref() else { return Ok(()) };
        // It is told once that it cannot be written.
        Target::open(path).map(drop).inspect_err(|_| SETTLED.store(true, Ordering::Relaxed))
    }

    /// Leaves the gauges of an earlier run as they are, however the command ends.
    pub fn forget(self) {
        SETTLED.fetch_or(self.path.is_some(), Ordering::Relaxed);
    }

    /// Writes the gauges of a transfer, if they are asked for.
    ///
    /// # Errors
    /// A sentence with the path and the cause.
    pub fn write(
        &self,
        command: &str,
        ends: Option<&TransferEnds>,
        end: TransferEnd,
    ) -> Result<(), String> {
        let Some(path) = &self.path else { return Ok(()) };
        SETTLED.store(true, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let earlier = last_success(path);
        self.gauges(command, ends, end, now, earlier).write(path)
    }

    /// Returns the name that tells this transfer from others.
    fn label(&self) -> String {
        let stem = self.path.as_deref().and_then(Path::file_stem).unwrap_or_default();
        let derived = || stem.to_string_lossy().into_owned();
        self.name.clone().unwrap_or_else(derived).chars().take(LABEL_MAX).collect()
    }

    fn gauges(
        &self,
        command: &str,
        ends: Option<&TransferEnds>,
        end: TransferEnd,
        now: Duration,
        earlier: Option<f64>,
    ) -> Gauges {
        let TransferEnd { code, stopped, took, totals } = end;
        let name = self.label();
        let mut gauges = Gauges::new(&[("name", &name), ("command", command)]);
        // What vanished while it ran needs no action.
        let success =
            matches!(code, exit::OK) || (command == "sync" && code == exit::SYNC_VANISHED);
        let took_s = took.as_secs_f64();
        let (now_s, rate) = (now.as_secs_f64(), totals.bytes as f64 / took_s.max(1e-3));
        let start_s = now.saturating_sub(took).as_secs_f64();
        let last = if success { Some(now_s) } else { earlier };
        let of = |name: &str| format!("hakobu_transfer_{name}");
        let flag = |on: bool| f64::from(u8::from(on));
        for (name, help, value) in [
            ("start_time_seconds", "Begin of the last run, Unix time.", start_s),
            ("end_time_seconds", "End of the last run, Unix time.", now_s),
            ("duration_seconds", "Duration of the last run.", took_s),
            ("exit_code", "Exit code of the last run.", f64::from(code)),
            (
                "success",
                "Whether the last run succeeded (exit code 0, or 24 of sync).",
                flag(success),
            ),
            ("interrupted", "Whether a signal or a time limit ended the last run.", flag(stopped)),
            ("files", "Files transferred by the last run.", totals.files as f64),
            ("bytes", "Bytes transferred by the last run.", totals.bytes as f64),
            ("unchanged", "Entries that were up to date.", totals.unchanged() as f64),
            ("deleted", "Entries removed from the target.", totals.deleted as f64),
            ("failed", "Entries that could not be transferred.", totals.failed as f64),
            ("vanished", "Sources that vanished during the last run.", totals.vanished as f64),
            ("bytes_per_second", "Mean rate of the last run.", rate),
        ] {
            gauges.add(&of(name), help, value);
        }
        if let Some(last) = last {
            gauges.add(LAST_SUCCESS, "End of the last run that succeeded, Unix time.", last);
        }
        if let Some(TransferEnds { source, target }) = ends {
            let labels = [("source", source.as_str()), ("target", target.as_str())];
            gauges.add_with(&of("info"), "Source and target of the last run.", &labels, 1.0);
        }
        gauges
    }
}

/// Source and target of a transfer, as typed: paths and s3:// locations, which hold no secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferEnds {
    source: String,
    target: String,
}

impl TransferEnds {
    /// Returns those of a transfer.
    pub fn of(spec: &Spec) -> TransferEnds {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let cut = |text: String| text.chars().take(LABEL_MAX).collect();
        let sources = spec.sources.locations().map(|source| text(source.as_typed()));
        let source = cut(sources.collect::<Vec<_>>().join(" "));
        TransferEnds { source, target: cut(text(spec.target.as_typed())) }
    }
}

/// Reads the time of the last success from the file of an earlier run. What cannot be read says nothing.
fn last_success(path: &Path) -> Option<f64> {
    let mut text = String::new();
    let regular = std::fs::metadata(path).ok()?.is_file();
    let file = regular.then(|| std::fs::File::open(path))?.ok()?;
    file.take(EARLIER_MAX).read_to_string(&mut text).ok()?;
    let line = text.lines().find(|line| {
        line.strip_prefix(LAST_SUCCESS).is_some_and(|rest| rest.starts_with(['{', ' ']))
    })?;
    line.rsplit(' ').next()?.parse().ok().filter(|value: &f64| value.is_finite())
}

/// Writes the gauges of a command line that ended with a failure before a transfer began: an invalid option, a source
/// that does not exist. `code` is the exit code of the command.
pub fn settle(code: u8) {
    if code == exit::OK || SETTLED.swap(true, Ordering::Relaxed) {
        return;
    }
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let Some((command, args)) = named(&words) else { return };
    let end = TransferEnd { code, stopped: false, took: Duration::ZERO, totals: Totals::default() };
    if let Err(message) = args.write(command, None, end) {
        output::message(&message);
    }
}

/// Returns what a command line that may be invalid says of the gauges, and its command; `None` for one that has none or
/// changes nothing.
fn named(words: &[OsString]) -> Option<(&'static str, TextfileArgs)> {
    let options = words.iter().take_while(|word| *word != "--");
    let words: Vec<&OsString> = options.collect();
    let command = words.iter().find_map(|word| find(word.to_str()?)).map(|command| command.name)?;
    // The other commands have another -n.
    let idle: &[&str] =
        if command == "sync" { &["--dry-run", "-n"] } else { &["--dry-run", "--dryrun"] };
    let is_idle = |word: &&OsString| idle.iter().any(|idle| **word == *idle);
    if !["sync", "cp", "mv"].contains(&command) || words.iter().any(is_idle) {
        return None;
    }
    let value_of = |name: &str| {
        let at = words.iter().rposition(|word| {
            word.as_bytes()
                .strip_prefix(name.as_bytes())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"="))
        })?;
        match words[at].as_bytes().get(name.len() + 1..) {
            Some(value) => Some(std::ffi::OsStr::from_bytes(value).to_owned()),
            None => words.get(at + 1).map(|word| (*word).clone()),
        }
    };
    let path = value_of("--textfile").map(PathBuf::from);
    let name = value_of("--textfile-name").and_then(|name| name.into_string().ok());
    Some((command, TextfileArgs { path, name }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(code: u8) -> TransferEnd {
        let totals = Totals { files: 3, bytes: 3000, deleted: 2, skipped: 5, ..Totals::default() };
        TransferEnd { code, stopped: false, took: Duration::from_secs(2), totals }
    }

    fn text(args: &TextfileArgs, code: u8, earlier: Option<f64>) -> String {
        let ends = TransferEnds { source: "a \"b\"\\c\nd".into(), target: "s3://b/k".into() };
        args.gauges("sync", Some(&ends), end(code), Duration::from_secs(1000), earlier).text
    }

    #[test]
    fn gauges_of_a_run() {
        let args = TextfileArgs { path: Some("/x/nightly.prom".into()), name: None };
        let text = text(&args, 0, Some(7.0));
        for line in [
            "hakobu_transfer_start_time_seconds{name=\"nightly\",command=\"sync\"} 998\n",
            "hakobu_transfer_end_time_seconds{name=\"nightly\",command=\"sync\"} 1000\n",
            "hakobu_transfer_success{name=\"nightly\",command=\"sync\"} 1\n",
            "hakobu_transfer_bytes_per_second{name=\"nightly\",command=\"sync\"} 1500\n",
            "hakobu_transfer_last_success_time_seconds{name=\"nightly\",command=\"sync\"} 1000\n",
            "source=\"a \\\"b\\\"\\\\c\\nd\",target=\"s3://b/k\"} 1\n",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }

    #[test]
    fn a_failure_keeps_the_last_success() {
        let args = TextfileArgs { path: Some("n.prom".into()), name: Some("it".into()) };
        for (code, success, last) in [
            (0, "1", Some("1000")),
            (24, "1", Some("1000")),
            (23, "0", Some("7.5")),
            (20, "0", Some("7.5")),
        ] {
            let text = text(&args, code, Some(7.5));
            let gauge = |name: &str| {
                let line = text.lines().find(|line| line.starts_with(&format!("{name}{{")));
                line.and_then(|line| line.rsplit(' ').next())
            };
            assert_eq!(gauge("hakobu_transfer_success"), Some(success), "{code}");
            assert_eq!(gauge(LAST_SUCCESS), last, "{code}");
        }
        assert!(!text(&args, 23, None).contains(LAST_SUCCESS));
    }

    #[test]
    fn earlier_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.prom");
        assert_eq!(last_success(&path), None);
        for (text, found) in [
            ("", None),
            ("hakobu_transfer_last_success_time_seconds{name=\"a b\"} 12.5\n", Some(12.5)),
            (
                "# HELP hakobu_transfer_last_success_time_seconds 9\nhakobu_transfer_last_success_time_seconds 8\n",
                Some(8.0),
            ),
            ("hakobu_transfer_last_success_time_seconds{} NaN\n", None),
            ("hakobu_transfer_last_success_time_seconds_other 5\n", None),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(last_success(&path), found, "{text}");
        }
        assert_eq!(last_success(dir.path()), None);
    }

    #[test]
    fn invalid_command_lines_say_where() {
        let of = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let (_, TextfileArgs { path, name }) = named(&words).unwrap_or_default();
            (path.map(|path| path.display().to_string()), name)
        };
        let some =
            |path: &str, name: Option<&str>| (Some(path.to_owned()), name.map(str::to_owned));
        assert_eq!(of("sync --frob --textfile a.prom x y"), some("a.prom", None));
        assert_eq!(of("sync --textfile=a --textfile=b --textfile-name n"), some("b", Some("n")));
        assert_eq!(of("sync -- --textfile=a"), (None, None));
        assert_eq!(of("sync --textfile"), (None, None));
        assert_eq!(of("sync -n --textfile=a"), (None, None));
        assert_eq!(of("run --textfile=a"), (None, None));
    }
}
