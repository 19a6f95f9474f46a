//! `--joblog`: one line per file in the columns of GNU parallel's job log, so that tools for it can read it.

use super::escape::push_quoted;
use hakobu_core::error::{ErrorClass, Problem};
use hakobu_core::event::Item;
use hakobu_core::unit::Kind;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The header line.
pub const HEADER: &[u8] =
    b"Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";

/// Returns whether an entry has a line: every created or updated one, except directories.
pub fn has_line(item: &Item<'_>) -> bool {
    item.kind != Kind::Dir && !item.change.deleted && item.change.any()
}

/// Appends the line of an entry, number `seq`. `Send` is bytes of content moved.
pub fn push_item(command: &str, seq: u64, item: &Item<'_>, out: &mut Vec<u8>) {
    let paths = [item.source.as_deref(), item.target.as_deref()];
    let took = item.took.as_secs_f64();
    push(command, seq, item.start_s, took, item.bytes_moved, 0, paths, out);
}

/// Returns whether a problem has a line: if it means that a file has not arrived.
pub fn has_problem_line(problem: &Problem) -> bool {
    matches!(problem.class, ErrorClass::Partial | ErrorClass::Vanished | ErrorClass::Fatal)
}

/// Appends the line of a file that failed at `now_s`.
pub fn push_problem(command: &str, seq: u64, now_s: f64, problem: &Problem, out: &mut Vec<u8>) {
    let code = match problem.class {
        ErrorClass::Vanished => crate::exit::SYNC_VANISHED,
        ErrorClass::Fatal => crate::exit::SYNC_IO,
        _ => crate::exit::SYNC_PARTIAL,
    };
    let paths = [problem.source.as_deref(), problem.target.as_deref()];
    push(command, seq, now_s, 0.0, 0, code, paths, out);
}

#[expect(clippy::too_many_arguments, reason = "the columns of one line")]
fn push(
    command: &str,
    seq: u64,
    start_s: f64,
    took_s: f64,
    sent: u64,
    exit: u8,
    paths: [Option<&Path>; 2],
    out: &mut Vec<u8>,
) {
    let columns = format!("{seq}\t:\t{start_s:.3}\t{took_s:10.3}\t{sent}\t0\t{exit}\t0\t{command}");
    out.extend_from_slice(columns.as_bytes());
    for path in paths.into_iter().flatten() {
        out.push(b' ');
        push_quoted(path.as_os_str().as_bytes(), out);
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::super::itemize::tests::item;
    use super::*;
    use hakobu_core::event::Change;

    #[test]
    fn nine_columns() {
        let change = Change { created: true, transferred: true, ..Change::default() };
        let item = item(change, Kind::File, "a\tb", None);
        let mut out = Vec::new();
        assert!(has_line(&item));
        push_item("hakobu sync", 7, &item, &mut out);
        let line = String::from_utf8_lossy(&out);
        assert_eq!(
            line,
            "7\t:\t1790000000.250\t     0.005\t1234\t0\t0\t0\thakobu sync \
             '/s/a'$'\\t''b' '/t/a'$'\\t''b'\n"
        );
        let columns = |line: &str| line.split('\t').count();
        assert_eq!(columns(&line), columns(&String::from_utf8_lossy(HEADER)));
    }
}
