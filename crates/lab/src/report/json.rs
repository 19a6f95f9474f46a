//! JSON of analyses: the facts, and the sentences about them in English under their own keys.

use crate::analysis::limits::{LimitingResource, SweepStretch};
use crate::analysis::proofs::Proof;
use crate::analysis::ranking::BaselineGain;
use crate::analysis::{Analysis, CellSummary, Sweep};
use crate::report::sentences::Sentences;
use crate::report::words::{Language, words_in};
use crate::report::{ReportPart, json_document};
use crate::results::{CampaignEnd, CounterExperiment, ResultsHeader};
use serde::Serialize;

#[derive(Serialize)]
struct JsonReport<'a> {
    results: Vec<JsonResult<'a>>,
}

#[derive(Serialize)]
struct JsonResult<'a> {
    header: &'a ResultsHeader,
    runs: usize,
    analysis: JsonAnalysis<'a>,
    experiments: &'a [CounterExperiment],
    end: Option<&'a CampaignEnd>,
}

#[derive(Serialize)]
struct JsonAnalysis<'a> {
    verdict: Vec<String>,
    cells: Vec<JsonCell<'a>>,
    sweeps: Vec<JsonSweep<'a>>,
    #[serde(flatten)]
    analysis: &'a Analysis,
    gains: Vec<JsonGain<'a>>,
    proofs: Vec<JsonProof<'a>>,
    caveats: Vec<String>,
}

#[derive(Serialize)]
struct JsonCell<'a> {
    #[serde(flatten)]
    of: &'a CellSummary,
    limiting: JsonLimiting<'a>,
}

#[derive(Serialize)]
struct JsonLimiting<'a> {
    #[serde(flatten)]
    of: &'a LimitingResource,
    evidence: Vec<String>,
}

#[derive(Serialize)]
struct JsonSweep<'a> {
    #[serde(flatten)]
    of: &'a Sweep,
    stretches: Vec<JsonStretch<'a>>,
}

#[derive(Serialize)]
struct JsonStretch<'a> {
    from_x: f64,
    to_x: f64,
    limiting: JsonLimiting<'a>,
    place: String,
    sentence: String,
}

#[derive(Serialize)]
struct JsonGain<'a> {
    #[serde(flatten)]
    of: &'a BaselineGain,
    words: String,
}

#[derive(Serialize)]
struct JsonProof<'a> {
    #[serde(flatten)]
    of: &'a Proof,
    sentence: String,
}

/// Formats the file.
pub(super) fn results_json(parts: &[ReportPart]) -> Result<String, String> {
    let words = words_in(Language::English);
    let each = parts.iter().map(|part| JsonResult {
        header: &part.results.header,
        runs: part.results.runs.len(),
        analysis: analysis(&part.analysis, part.facts().say(words)),
        experiments: &part.results.experiments,
        end: part.results.end.as_ref(),
    });
    json_document(&JsonReport { results: each.collect() })
}

fn analysis<'a>(of: &'a Analysis, say: Sentences<'_>) -> JsonAnalysis<'a> {
    let limiting = |of: &'a LimitingResource| JsonLimiting { of, evidence: say.evidence(of) };
    let stretch = |of: &'a SweepStretch| JsonStretch {
        from_x: of.from_x,
        to_x: of.to_x,
        limiting: limiting(&of.limiting),
        place: say.range(of.range),
        sentence: say.stretch(of),
    };
    let sweep =
        |of: &'a Sweep| JsonSweep { of, stretches: of.stretches.iter().map(stretch).collect() };
    JsonAnalysis {
        verdict: say.verdict(&of.verdict),
        cells: of
            .cells
            .iter()
            .map(|of| JsonCell { of, limiting: limiting(&of.limiting) })
            .collect(),
        sweeps: of.sweeps.iter().map(sweep).collect(),
        analysis: of,
        gains: of.gains.iter().map(|of| JsonGain { of, words: say.gain(of) }).collect(),
        proofs: of.proofs.iter().map(|of| JsonProof { of, sentence: say.proof(of) }).collect(),
        caveats: say.caveats(&of.caveats),
    }
}
