//! JSON lines: one per entry, problem and warning, and the summary that ends every run. Fields are only ever added;
//! `schema` counts incompatible changes.

use super::{lines as itemize, verdict};
use hakobu_core::error::{Cause, ErrorClass, Operation, Problem};
use hakobu_core::event::{Change, Item};
use hakobu_core::unit::Kind;
use hakobu_sys::proc::ResourceUsage;
use hakobu_transfer::run::{Findings, Outcome};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Named paths of a line, for `#[serde(flatten)]`. In a path that is not UTF-8 invalid bytes become U+FFFD, and the
/// bytes follow in hex under `NAME_bytes`; a missing path is omitted.
pub struct Paths<'a>(pub &'a [(&'static str, Option<&'a Path>)]);

impl Serialize for Paths<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, path) in self.0 {
            let Some(raw) = path.map(|path| path.as_os_str().as_bytes()) else { continue };
            map.serialize_entry(name, &String::from_utf8_lossy(raw))?;
            if std::str::from_utf8(raw).is_err() {
                let hex = hakobu_core::percent::hex(raw);
                map.serialize_entry(&format!("{name}_bytes"), &hex)?;
            }
        }
        map.end()
    }
}

/// Appends one JSON line.
pub fn push_line(line: &impl Serialize, out: &mut Vec<u8>) {
    // Writing into a vector cannot fail, and every map key here is text.
    if serde_json::to_writer(&mut *out, line).is_ok() {
        out.push(b'\n');
    }
}

/// Returns one JSON line.
pub fn line(of: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    push_line(of, &mut out);
    out
}

/// Appends the line of one entry.
pub fn push_item(item: &Item<'_>, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Line<'a> {
        event: &'static str,
        change: &'static str,
        kind: &'static str,
        #[serde(flatten)]
        paths: Paths<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        version_id: Option<&'a str>,
        bytes: u64,
        bytes_moved: u64,
        mode: String,
        mtime_s: i64,
        start_s: f64,
        took_s: f64,
        itemize: &'a str,
    }
    let letters = itemize::letters(&item.change, item.kind);
    let line = Line {
        event: "item",
        change: change_word(&item.change),
        kind: kind_word(item.kind),
        paths: Paths(&[
            ("path", Some(item.path)),
            ("source", item.source.as_deref()),
            ("target", item.target.as_deref()),
            ("link", item.link.as_deref()),
        ]),
        version_id: item.version,
        bytes: item.bytes,
        bytes_moved: item.bytes_moved,
        mode: format!("{:04o}", item.mode),
        mtime_s: item.mtime_s,
        start_s: item.start_s,
        took_s: item.took.as_secs_f64(),
        itemize: std::str::from_utf8(&letters).unwrap_or_default().trim_end(),
    };
    push_line(&line, out);
}

fn change_word(change: &Change) -> &'static str {
    match change {
        Change { deleted: true, .. } => "delete",
        Change { hard_link: true, .. } => "link",
        Change { created: true, .. } => "create",
        Change { transferred: true, .. } => "update",
        change if change.any() => "metadata",
        _ => "unchanged",
    }
}

/// Returns the name of a type of entry.
pub fn kind_word(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "file",
        Kind::Dir => "dir",
        Kind::Symlink => "symlink",
        Kind::Fifo => "fifo",
        Kind::Socket => "socket",
        Kind::CharDevice => "char_device",
        Kind::BlockDevice => "block_device",
        Kind::Unknown => "unknown",
    }
}

/// Returns the line of a problem; `message` is its sentence.
pub fn problem(problem: &Problem, message: &str) -> Vec<u8> {
    #[derive(Serialize)]
    struct Line<'a> {
        event: &'static str,
        class: &'static str,
        operation: &'static str,
        #[serde(flatten)]
        paths: Paths<'a>,
        cause: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        errno: Option<i32>,
        message: &'a str,
    }
    line(&Line {
        event: "problem",
        class: class_word(problem.class),
        operation: operation_word(problem.operation),
        paths: Paths(&[
            ("source", problem.source.as_deref()),
            ("target", problem.target.as_deref()),
        ]),
        cause: problem.cause.to_string(),
        errno: match &problem.cause {
            Cause::System(error) => error.raw_os_error(),
            Cause::Reason(_) | Cause::Said(_) => None,
        },
        message,
    })
}

/// Returns the line of a failure of a command that transfers nothing; `message` is its sentence.
pub fn failure(operation: &str, path: &Path, cause: &str, message: &str) -> Vec<u8> {
    #[derive(Serialize)]
    struct Line<'a> {
        event: &'static str,
        class: &'static str,
        operation: String,
        #[serde(flatten)]
        paths: Paths<'a>,
        cause: &'a str,
        message: &'a str,
    }
    let paths = Paths(&[("source", Some(path))]);
    let class = class_word(ErrorClass::Partial);
    let operation = operation.replace(' ', "_");
    line(&Line { event: "problem", class, operation, paths, cause, message })
}

fn class_word(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Vanished => "vanished",
        ErrorClass::Partial => "partial",
        ErrorClass::Fatal => "fatal",
        ErrorClass::Notice => "notice",
    }
}

/// Returns the word of an operation in JSON lines.
pub fn operation_word(operation: Operation) -> &'static str {
    match operation {
        Operation::Read => "read",
        Operation::List => "list",
        Operation::Stat => "stat",
        Operation::Create => "create",
        Operation::MakeDir => "make_dir",
        Operation::Write => "write",
        Operation::Rename => "rename",
        Operation::Link => "link",
        Operation::SetMode => "set_mode",
        Operation::SetOwner => "set_owner",
        Operation::SetTimes => "set_times",
        Operation::SetXattr => "set_xattr",
        Operation::SetAcl => "set_acl",
        Operation::Remove => "remove",
        Operation::Sync => "sync",
        Operation::Compare => "compare",
        Operation::Filter => "filter",
        Operation::Move => "move",
        Operation::Overwrite => "overwrite",
    }
}

/// Appends the line of a renamed entry.
pub fn push_rename(from: &Path, to: &Path, backup: Option<&Path>, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Line<'a> {
        event: &'static str,
        change: &'static str,
        #[serde(flatten)]
        paths: Paths<'a>,
    }
    let paths = Paths(&[("source", Some(from)), ("target", Some(to)), ("backup", backup)]);
    push_line(&Line { event: "item", change: "rename", paths }, out);
}

/// Returns a line with a sentence only: `warning`, `error`.
pub fn message(event: &'static str, message: &str) -> Vec<u8> {
    #[derive(Serialize)]
    struct Line<'a> {
        event: &'static str,
        message: &'a str,
    }
    line(&Line { event, message })
}

/// The last line of a run.
#[derive(Serialize)]
pub struct Summary {
    event: &'static str,
    schema: u32,
    command: &'static str,
    files: u64,
    bytes: u64,
    skipped: u64,
    deleted: u64,
    failed: u64,
    vanished: u64,
    retries: u64,
    jobs: usize,
    real_s: f64,
    user_s: f64,
    sys_s: f64,
    max_rss_bytes: u64,
    exit_code: u8,
    requests: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    matched_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    received_bytes: Option<u64>,
    #[serde(flatten)]
    steered: Option<Steered>,
}

/// Values of a run with a controller.
#[derive(Serialize)]
struct Steered {
    verdict: verdict::Value,
    jobs_path: Vec<verdict::Jobs>,
}

impl Steered {
    /// Returns `None` if there was no controller: nothing was moved, or in another way.
    fn of(findings: &Findings) -> Option<Steered> {
        (!findings.path.is_empty()).then(|| Steered {
            verdict: verdict::value(&verdict::of(findings)),
            jobs_path: verdict::jobs_path(&findings.path),
        })
    }
}

impl Summary {
    /// Makes the summary of a run that ended with `exit_code`.
    pub fn new(
        command: &'static str,
        outcome: &Outcome,
        used: &ResourceUsage,
        exit_code: u8,
    ) -> Summary {
        let totals = &outcome.totals;
        Summary {
            event: "summary",
            schema: 1,
            command,
            files: totals.files,
            bytes: totals.bytes,
            skipped: totals.skipped,
            deleted: totals.deleted,
            failed: totals.failed,
            vanished: totals.vanished,
            retries: outcome.requests.retries,
            jobs: outcome.jobs,
            real_s: outcome.took.as_secs_f64(),
            user_s: used.user.as_secs_f64(),
            sys_s: used.sys.as_secs_f64(),
            max_rss_bytes: used.rss_bytes_max,
            exit_code,
            requests: outcome.requests.succeeded,
            matched_bytes: outcome.traffic.map(|_| totals.bytes_matched),
            sent_bytes: outcome.traffic.map(|traffic| traffic.sent),
            received_bytes: outcome.traffic.map(|traffic| traffic.received),
            steered: Steered::of(&outcome.findings),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines::tests::item;
    use super::*;
    use hakobu_core::unit::Totals;
    use hakobu_transfer::run::RequestCounts;
    use std::ffi::OsStr;
    use std::path::PathBuf;
    use std::time::Duration;

    #[test]
    fn summary_has_all_its_fields() {
        let outcome = Outcome {
            totals: Totals { files: 1, bytes: 2, failed: 3, ..Totals::default() },
            took: Duration::from_millis(1500),
            jobs: 2,
            requests: RequestCounts { succeeded: 9, retries: 4, ..RequestCounts::default() },
            ..Outcome::default()
        };
        let out = line(&Summary::new("sync", &outcome, &ResourceUsage::default(), 23));
        assert_eq!(
            String::from_utf8_lossy(&out),
            "{\"event\":\"summary\",\"schema\":1,\"command\":\"sync\",\"files\":1,\"bytes\":2,\
             \"skipped\":0,\"deleted\":0,\"failed\":3,\"vanished\":0,\"retries\":4,\"jobs\":2,\
             \"real_s\":1.5,\"user_s\":0.0,\"sys_s\":0.0,\"max_rss_bytes\":0,\"exit_code\":23,\"requests\":9}\n"
        );
    }

    #[test]
    fn an_item() {
        let change = Change { created: true, transferred: true, ..Change::default() };
        let mut out = Vec::new();
        push_item(&item(change, Kind::File, "a\n", None), &mut out);
        assert_eq!(
            String::from_utf8_lossy(&out),
            "{\"event\":\"item\",\"change\":\"create\",\"kind\":\"file\",\"path\":\"a\\n\",\
             \"source\":\"/s/a\\n\",\"target\":\"/t/a\\n\",\"bytes\":1234,\"bytes_moved\":1234,\
             \"mode\":\"0644\",\"mtime_s\":1790000000,\"start_s\":1790000000.25,\"took_s\":0.005,\
             \"itemize\":\">f+++++++++\"}\n"
        );
    }

    #[test]
    fn names_that_are_no_text_keep_their_bytes() {
        let odd = Path::new(OsStr::from_bytes(b"a\xff"));
        let mut out = Vec::new();
        push_rename(odd, Path::new("ä"), None, &mut out);
        assert_eq!(
            String::from_utf8_lossy(&out),
            "{\"event\":\"item\",\"change\":\"rename\",\"source\":\"a\u{fffd}\",\
             \"source_bytes\":\"61ff\",\"target\":\"ä\"}\n"
        );
    }

    #[test]
    fn a_problem() {
        let problem = Problem {
            operation: Operation::Read,
            source: Some(PathBuf::from("/a")),
            target: None,
            cause: Cause::System(std::io::Error::from_raw_os_error(13)),
            class: ErrorClass::Partial,
        };
        let out = super::problem(&problem, "cannot read '/a': Permission denied");
        assert_eq!(
            String::from_utf8_lossy(&out),
            "{\"event\":\"problem\",\"class\":\"partial\",\"operation\":\"read\",\"source\":\"/a\",\
             \"cause\":\"Permission denied\",\"errno\":13,\
             \"message\":\"cannot read '/a': Permission denied\"}\n"
        );
    }
}
