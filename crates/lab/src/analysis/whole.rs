//! Entry point of the analysis.

use super::proofs::{self, ProofFinding};
use super::view::ResultsView;
use super::{Analysis, Lang, caveats, cells, rivals, sweeps, verdict};
use crate::results::Results;

/// Analyses results, with sentences in English. Deterministic.
pub fn analyse(results: &Results) -> Analysis {
    analyse_in(results, Lang::En)
}

/// Analyses results, with sentences in `lang`. Numbers and names do not depend on it.
pub fn analyse_in(results: &Results, lang: Lang) -> Analysis {
    let view = ResultsView::new(results, lang);
    let mut summaries: Vec<_> = view.cells.iter().map(|cell| cells::summary(&view, cell)).collect();
    let rows = sweeps::rows(&view);
    let mut found = proofs::made(&view);
    found.extend(proofs::between_groups(&view, &rows, &summaries));
    let limiting = view.cells.iter().map(|cell| {
        let row = rows.iter().find(|row| row.cells.iter().any(|of| of.id == cell.id));
        sweeps::limiting(&view, row, cell, &summaries, proofs::experiments(cell.id, &found))
    });
    let limiting: Vec<_> = limiting.collect();
    for (of, limiting) in summaries.iter_mut().zip(limiting) {
        of.limiting = limiting;
    }
    proofs::settle(&mut found, &summaries, lang);
    let sweeps: Vec<_> = rows.iter().map(|row| sweeps::sweep(&view, row, &summaries)).collect();
    let controls = rivals::controls(&view);
    let mut analysis = Analysis {
        verdict: Vec::new(),
        comparisons: rivals::comparisons(&view, &summaries),
        noise: rivals::noise(&controls),
        gains: Vec::new(),
        cells: summaries,
        sweeps,
        controls,
        proofs: found.iter().map(|ProofFinding { proof, .. }| proof.clone()).collect(),
        caveats: Vec::new(),
    };
    analysis.caveats = caveats::caveats(&view, &analysis);
    analysis.verdict = verdict::verdict(&view, &analysis, &found);
    analysis
}
