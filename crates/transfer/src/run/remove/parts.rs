//! Parts of both kinds of removal: scopes, ends, problems.

use crate::location::s3_path;
use crate::object::list::Scope;
use crate::object::{Engine, Pair, Root};
use hakobu_core::error::{Cause, Class, Fatal, Operation, Problem};
use hakobu_core::unit::Totals;
use std::sync::Arc;

/// Returns the scope of everything below a prefix.
pub(super) fn below(prefix: Vec<u8>) -> Scope {
    Scope { prefix, narrowed: Vec::new(), pattern: None }
}

pub(super) fn pair(bucket: &str, prefix: &[u8]) -> Arc<Pair> {
    let target = Root::Store { bucket: bucket.to_owned(), prefix: prefix.to_vec() };
    Arc::new(Pair { source: Root::Null, target, lead: Default::default() })
}

/// Reports a failed request; a setting or credential that cannot work stops the run.
pub(super) fn failed(
    engine: &Engine<'_>,
    bucket: &str,
    key: &[u8],
    operation: Operation,
    error: &hakobu_s3::Error,
) {
    if error.kind == hakobu_s3::Kind::Stopped {
        return;
    }
    if error.stops_run() {
        return engine.stop_for(Fatal::new(1, error.to_string()));
    }
    problem(engine, bucket, key, operation, Cause::Said(error.to_string()));
}

/// Reports and counts an object that cannot be removed.
pub(super) fn problem(
    engine: &Engine<'_>,
    bucket: &str,
    key: &[u8],
    operation: Operation,
    cause: Cause,
) {
    let target = Some(s3_path(bucket, &[key]));
    engine.problem(&Problem { operation, source: None, target, cause, class: Class::Partial });
    engine.add(&Totals { failed: 1, ..Totals::default() });
}

/// Reports that rules left out everything in an argument.
pub(super) fn left_out(engine: &Engine<'_>, bucket: &str, key: &[u8], why: String) {
    engine.problem(&Problem {
        operation: Operation::Filter,
        source: Some(s3_path(bucket, &[key])),
        target: None,
        cause: Cause::Said(why),
        class: Class::Notice,
    });
}
