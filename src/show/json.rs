//! JSON lines: one per entry, problem and warning, and the summary that ends every run. Fields
//! are only ever added; `schema` counts changes that are more than that.

use super::itemize;
use hakobu_sys::process::Usage;
use hakobu_transfer::error::{Cause, Class, Operation, Problem};
use hakobu_transfer::event::Item;
use hakobu_transfer::policy::Change;
use hakobu_transfer::run::Outcome;
use hakobu_transfer::unit::Kind;
use serde::Serialize;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A path that may not be text: as UTF-8 with U+FFFD for what is none, and then its bytes in hex.
pub struct JsonPath {
    /// For people and for nearly all programs.
    pub text: String,
    /// Only where `text` is not the whole truth.
    pub bytes: Option<String>,
}

impl JsonPath {
    /// Of a path.
    pub fn new(path: &Path) -> JsonPath {
        let raw = path.as_os_str().as_bytes();
        let bytes = std::str::from_utf8(raw)
            .is_err()
            .then(|| raw.iter().map(|byte| format!("{byte:02x}")).collect());
        JsonPath { text: String::from_utf8_lossy(raw).into_owned(), bytes }
    }

    fn pair(path: Option<&Path>) -> (Option<String>, Option<String>) {
        match path.map(JsonPath::new) {
            Some(path) => (Some(path.text), path.bytes),
            None => (None, None),
        }
    }
}

/// Appends one JSON line.
pub fn push_line(line: &impl Serialize, out: &mut Vec<u8>) {
    // Writing into a vector cannot fail, and no map here has keys that are not text.
    if serde_json::to_writer(&mut *out, line).is_ok() {
        out.push(b'\n');
    }
}

#[derive(Serialize)]
struct ItemLine<'a> {
    event: &'static str,
    change: &'static str,
    kind: &'static str,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_bytes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_bytes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link_bytes: Option<String>,
    bytes: u64,
    bytes_moved: u64,
    mode: String,
    mtime_s: i64,
    start_s: f64,
    took_s: f64,
    itemize: &'a str,
}

/// Appends the line of one entry.
pub fn push_item(item: &Item<'_>, out: &mut Vec<u8>) {
    let path = JsonPath::new(item.path);
    let (source, source_bytes) = JsonPath::pair(item.source.as_deref());
    let (target, target_bytes) = JsonPath::pair(item.target.as_deref());
    let (link, link_bytes) = JsonPath::pair(item.link.as_deref());
    let letters = itemize::letters(&item.change, item.kind);
    let line = ItemLine {
        event: "item",
        change: change_word(&item.change),
        kind: kind_word(item.kind),
        path: path.text,
        path_bytes: path.bytes,
        source,
        source_bytes,
        target,
        target_bytes,
        link,
        link_bytes,
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

/// The word for a type of entry.
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

#[derive(Serialize)]
struct ProblemLine<'a> {
    event: &'static str,
    class: &'static str,
    operation: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_bytes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_bytes: Option<String>,
    cause: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    errno: Option<i32>,
    message: &'a str,
}

/// Appends the line of a problem; `message` is its sentence.
pub fn push_problem(problem: &Problem, message: &str, out: &mut Vec<u8>) {
    let (source, source_bytes) = JsonPath::pair(problem.source.as_deref());
    let (target, target_bytes) = JsonPath::pair(problem.target.as_deref());
    let line = ProblemLine {
        event: "problem",
        class: class_word(problem.class),
        operation: operation_word(problem.operation),
        source,
        source_bytes,
        target,
        target_bytes,
        cause: problem.cause.to_string(),
        errno: match &problem.cause {
            Cause::System(error) => error.raw_os_error(),
            Cause::Reason(_) => None,
        },
        message,
    };
    push_line(&line, out);
}

fn class_word(class: Class) -> &'static str {
    match class {
        Class::Vanished => "vanished",
        Class::Partial => "partial",
        Class::Fatal => "fatal",
        Class::Unprivileged => "unprivileged",
        Class::Notice => "notice",
    }
}

fn operation_word(operation: Operation) -> &'static str {
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
    }
}

/// Appends a line that is only a sentence: `warning`, `error`.
pub fn push_message(event: &'static str, message: &str, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Line<'a> {
        event: &'static str,
        message: &'a str,
    }
    push_line(&Line { event, message }, out);
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
}

impl Summary {
    /// Of a run that ended with `exit_code`.
    pub fn new(command: &'static str, outcome: &Outcome, used: &Usage, exit_code: u8) -> Summary {
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
            // Nothing is retried between local volumes.
            retries: 0,
            jobs: outcome.jobs,
            real_s: outcome.took.as_secs_f64(),
            user_s: used.user.as_secs_f64(),
            sys_s: used.sys.as_secs_f64(),
            max_rss_bytes: used.rss_bytes_max,
            exit_code,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::itemize::tests::item;
    use super::*;
    use hakobu_transfer::unit::Totals;
    use std::ffi::OsStr;
    use std::path::PathBuf;
    use std::time::Duration;

    #[test]
    fn summary_has_all_its_fields() {
        let outcome = Outcome {
            totals: Totals { files: 1, bytes: 2, failed: 3, ..Totals::default() },
            took: Duration::from_millis(1500),
            jobs: 2,
            stopped: false,
            fatal: None,
        };
        let mut out = Vec::new();
        push_line(&Summary::new("sync", &outcome, &Usage::default(), 23), &mut out);
        assert_eq!(
            String::from_utf8_lossy(&out),
            "{\"event\":\"summary\",\"schema\":1,\"command\":\"sync\",\"files\":1,\"bytes\":2,\
             \"skipped\":0,\"deleted\":0,\"failed\":3,\"vanished\":0,\"retries\":0,\"jobs\":2,\
             \"real_s\":1.5,\"user_s\":0.0,\"sys_s\":0.0,\"max_rss_bytes\":0,\"exit_code\":23}\n"
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
        let path = JsonPath::new(Path::new(OsStr::from_bytes(b"a\xff")));
        assert_eq!((path.text.as_str(), path.bytes.as_deref()), ("a\u{fffd}", Some("61ff")));
        assert_eq!(JsonPath::new(Path::new("ä")).bytes, None);
    }

    #[test]
    fn a_problem() {
        let problem = Problem {
            operation: Operation::Read,
            source: Some(PathBuf::from("/a")),
            target: None,
            cause: Cause::System(std::io::Error::from_raw_os_error(13)),
            class: Class::Partial,
        };
        let mut out = Vec::new();
        push_problem(&problem, "cannot read '/a': Permission denied", &mut out);
        assert_eq!(
            String::from_utf8_lossy(&out),
            "{\"event\":\"problem\",\"class\":\"partial\",\"operation\":\"read\",\"source\":\"/a\",\
             \"cause\":\"Permission denied\",\"errno\":13,\
             \"message\":\"cannot read '/a': Permission denied\"}\n"
        );
    }
}
