//! JSON of the analysis, for scripts.

use super::Part;
use crate::analysis::Analysis;
use crate::results::{End, Experiment, Header};
use serde::Serialize;

/// Version of the schema, increased by changes other than new fields.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    results: Vec<One<'a>>,
}

#[derive(Serialize)]
struct One<'a> {
    header: &'a Header,
    runs: usize,
    analysis: &'a Analysis,
    experiments: &'a [Experiment],
    end: Option<&'a End>,
}

/// Formats the file with a newline. Numbers that are not finite are `null`.
///
/// # Errors
/// A message: serialisation failed.
pub(super) fn text(parts: &[Part]) -> Result<String, String> {
    let document = Document { schema: SCHEMA, results: parts.iter().map(one).collect() };
    let text = serde_json::to_string_pretty(&document);
    text.map(|text| text + "\n").map_err(|why| format!("cannot write JSON: {why}"))
}

fn one(part: &Part) -> One<'_> {
    let results = &part.results;
    One {
        header: &results.header,
        runs: results.runs.len(),
        analysis: &part.analysis,
        experiments: &results.experiments,
        end: results.end.as_ref(),
    }
}
