//! JSON of the analysis, for scripts.

use super::part::ReportPart;
use crate::analysis::Analysis;
use crate::results::{CampaignEnd, CounterExperiment, ResultsHeader};
use serde::Serialize;

/// Version of the schema, increased by changes other than new fields.
const SCHEMA: u32 = 1;

/// Formats a document of this schema with a newline. Numbers that are not finite are `null`.
///
/// # Errors
/// A message: serialisation failed.
pub(super) fn json_document(content: &impl Serialize) -> Result<String, String> {
    #[derive(Serialize)]
    struct VersionedDocument<'a, T> {
        schema: u32,
        #[serde(flatten)]
        content: &'a T,
    }
    let text = serde_json::to_string_pretty(&VersionedDocument { schema: SCHEMA, content });
    text.map(|text| text + "\n").map_err(|why| format!("cannot write JSON: {why}"))
}

#[derive(Serialize)]
struct JsonReport<'a> {
    results: Vec<JsonResult<'a>>,
}

#[derive(Serialize)]
struct JsonResult<'a> {
    header: &'a ResultsHeader,
    runs: usize,
    analysis: &'a Analysis,
    experiments: &'a [CounterExperiment],
    end: Option<&'a CampaignEnd>,
}

/// Formats the file.
///
/// # Errors
/// As [`json_document`].
pub(super) fn results_json(parts: &[ReportPart]) -> Result<String, String> {
    let each = parts.iter().map(|part| JsonResult {
        header: &part.results.header,
        runs: part.results.runs.len(),
        analysis: &part.analysis,
        experiments: &part.results.experiments,
        end: part.results.end.as_ref(),
    });
    json_document(&JsonReport { results: each.collect() })
}
