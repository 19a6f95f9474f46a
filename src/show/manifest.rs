//! `--manifest FILE`: a JSON line for each entry of a transfer, with its result, and a last one with the totals, without
//! which the file is not complete. The schema is in docs/manifest.md; fields are only ever added.

use super::json::{Paths, kind_word, operation_word, push_line};
use hakobu_core::error::{Cause, ErrorClass, Problem};
use hakobu_core::event::{Change, Item};
use parking_lot::Mutex;
use serde::Serialize;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;

/// Incremented when a field changes its meaning.
const SCHEMA: u32 = 1;

/// Number of lines of each result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Counts {
    copied: u64,
    updated: u64,
    unchanged: u64,
    skipped: u64,
    deleted: u64,
    renamed: u64,
    failed: u64,
}

/// Makes the lines of a manifest.
#[derive(Default)]
pub struct Manifest {
    state: Mutex<State>,
    keys: RandomState,
}

#[derive(Default)]
struct State {
    counts: Counts,
    /// Hashes of the paths that failed: events of success that follow are none. Grows with the failures only.
    failed: HashSet<u64>,
}

/// The end of a run.
pub struct End {
    pub command: &'static str,
    pub dry_run: bool,
    pub stopped: bool,
    /// Bytes of content moved.
    pub bytes: u64,
    pub exit_code: u8,
}

#[derive(Serialize)]
struct Line<'a> {
    result: &'static str,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(flatten)]
    paths: Paths<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mtime_s: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mtime_ns: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checksum: Option<Sum<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    errno: Option<i32>,
}

#[derive(Serialize)]
struct Sum<'a> {
    algorithm: &'a str,
    value: &'a str,
}

impl<'a> Line<'a> {
    fn of(result: &'static str, paths: Paths<'a>) -> Line<'a> {
        Line {
            result,
            kind: None,
            paths,
            version_id: None,
            size: None,
            mtime_s: None,
            mtime_ns: None,
            checksum: None,
            operation: None,
            cause: None,
            errno: None,
        }
    }
}

impl Manifest {
    /// Appends the line of an entry. `digest`: the algorithm of [`Item::digest`].
    pub fn push_item(&self, item: &Item<'_>, digest: Option<&'static str>, out: &mut Vec<u8>) {
        let path = item.source.as_deref().or(item.target.as_deref()).unwrap_or(item.path);
        let result = result_of(&item.change);
        {
            let mut state = self.state.lock();
            if !item.change.deleted && state.failed.contains(&self.keys.hash_one(path)) {
                return;
            }
            *state.counts.of(result) += 1;
        }
        let paths = [
            ("path", Some(item.path)),
            ("source", item.source.as_deref()),
            ("target", item.target.as_deref()),
            ("link", item.link.as_deref()),
        ];
        let shown = item.digest.as_deref().zip(digest);
        let shown = shown.map(|(value, algorithm)| Sum { algorithm, value });
        let stored = item.checksum.as_ref();
        let stored = stored.map(|(algorithm, value)| Sum { algorithm, value });
        push_line(
            &Line {
                kind: Some(kind_word(item.kind)),
                version_id: item.version,
                size: (!item.change.deleted).then_some(item.bytes),
                mtime_s: Some(item.meta.mtime.s),
                mtime_ns: Some(item.meta.mtime.ns),
                checksum: stored.or(shown),
                ..Line::of(result, Paths(&paths))
            },
            out,
        );
    }

    /// Appends the line of a renamed entry.
    pub fn push_rename(&self, from: &Path, to: &Path, out: &mut Vec<u8>) {
        self.state.lock().counts.renamed += 1;
        let paths = [("source", Some(from)), ("target", Some(to))];
        push_line(&Line::of("renamed", Paths(&paths)), out);
    }

    /// Appends the line of a failure, unless the entry has one already.
    pub fn push_problem(&self, problem: &Problem, out: &mut Vec<u8>) {
        let path = problem.source.as_deref().or(problem.target.as_deref());
        let (Some(path), false) = (path, problem.class == ErrorClass::Notice) else { return };
        {
            let mut state = self.state.lock();
            if !state.failed.insert(self.keys.hash_one(path)) {
                return;
            }
            state.counts.failed += 1;
        }
        let paths = [("source", problem.source.as_deref()), ("target", problem.target.as_deref())];
        let errno = match &problem.cause {
            Cause::System(error) => error.raw_os_error(),
            Cause::Reason(_) | Cause::Said(_) => None,
        };
        push_line(
            &Line {
                operation: Some(operation_word(problem.operation)),
                cause: Some(problem.cause.to_string()),
                errno,
                ..Line::of("failed", Paths(&paths))
            },
            out,
        );
    }

    /// Appends the last line.
    pub fn push_end(&self, end: &End, out: &mut Vec<u8>) {
        #[derive(Serialize)]
        struct Totals {
            result: &'static str,
            schema: u32,
            command: &'static str,
            #[serde(flatten)]
            counts: Counts,
            bytes: u64,
            dry_run: bool,
            stopped: bool,
            exit_code: u8,
        }
        let counts = self.state.lock().counts;
        let End { command, dry_run, stopped, bytes, exit_code } = *end;
        let result = "totals";
        let schema = SCHEMA;
        push_line(
            &Totals { result, schema, command, counts, bytes, dry_run, stopped, exit_code },
            out,
        );
    }
}

impl Counts {
    fn of(&mut self, result: &str) -> &mut u64 {
        match result {
            "deleted" => &mut self.deleted,
            "skipped" => &mut self.skipped,
            "copied" => &mut self.copied,
            "updated" => &mut self.updated,
            _ => &mut self.unchanged,
        }
    }
}

fn result_of(change: &Change) -> &'static str {
    match change {
        Change { deleted: true, .. } => "deleted",
        Change { left_out: true, .. } => "skipped",
        Change { created: true, .. } | Change { transferred: true, .. } => "copied",
        Change { hard_link: true, beside: false, .. } => "copied",
        change if change.any() => "updated",
        _ => "unchanged",
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines::tests::item;
    use super::*;
    use hakobu_core::error::Operation;
    use hakobu_core::unit::Kind;
    use std::path::PathBuf;

    fn text(push: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        push(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn results_of_changes() {
        let none = Change::default();
        for (change, result) in [
            (none, "unchanged"),
            (Change { beside: true, hard_link: true, ..none }, "unchanged"),
            (Change { left_out: true, ..none }, "skipped"),
            (Change { created: true, ..none }, "copied"),
            (Change { transferred: true, size: true, ..none }, "copied"),
            (Change { hard_link: true, ..none }, "copied"),
            (Change { mode: true, ..none }, "updated"),
            (Change { deleted: true, ..none }, "deleted"),
        ] {
            assert_eq!(result_of(&change), result, "{change:?}");
        }
    }

    #[test]
    fn lines_and_totals() {
        let manifest = Manifest::default();
        let change = Change { created: true, transferred: true, ..Change::default() };
        let mut entry = item(change, Kind::File, "a", None);
        entry.checksum = Some(("CRC64NVME", "AA==".to_owned()));
        assert_eq!(
            text(|out| manifest.push_item(&entry, None, out)),
            "{\"result\":\"copied\",\"type\":\"file\",\"path\":\"a\",\"source\":\"/s/a\",\
             \"target\":\"/t/a\",\"size\":1234,\"mtime_s\":1790000000,\"mtime_ns\":0,\
             \"checksum\":{\"algorithm\":\"CRC64NVME\",\"value\":\"AA==\"}}\n"
        );
        let problem = Problem {
            operation: Operation::Read,
            source: Some(PathBuf::from("/s/b")),
            target: None,
            cause: Cause::Reason("no"),
            class: ErrorClass::Partial,
        };
        assert_eq!(
            text(|out| manifest.push_problem(&problem, out)),
            "{\"result\":\"failed\",\"source\":\"/s/b\",\"operation\":\"read\",\"cause\":\"no\"}\n"
        );
        // Once, and no success after it.
        assert_eq!(text(|out| manifest.push_problem(&problem, out)), "");
        let late = item(change, Kind::File, "b", None);
        assert_eq!(text(|out| manifest.push_item(&late, None, out)), "");
        let end = End { command: "sync", dry_run: false, stopped: false, bytes: 5, exit_code: 23 };
        assert_eq!(
            text(|out| manifest.push_end(&end, out)),
            "{\"result\":\"totals\",\"schema\":1,\"command\":\"sync\",\"copied\":1,\"updated\":0,\
             \"unchanged\":0,\"skipped\":0,\"deleted\":0,\"renamed\":0,\"failed\":1,\"bytes\":5,\
             \"dry_run\":false,\"stopped\":false,\"exit_code\":23}\n"
        );
    }
}
