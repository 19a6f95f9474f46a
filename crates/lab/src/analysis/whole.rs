//! Everything that a campaign says, put together.

use super::proofs::{self, Found};
use super::view::View;
use super::{Analysis, Lang, caveats, cells, rivals, sweeps, verdict};
use crate::results::Results;

/// What results say, in English. The same results always say the same.
pub fn analyse(results: &Results) -> Analysis {
    analyse_in(results, Lang::En)
}

/// The same with its sentences in a language. Numbers and names do not depend on it.
pub fn analyse_in(results: &Results, lang: Lang) -> Analysis {
    let view = View::new(results, lang);
    let mut summaries: Vec<_> = view.cells.iter().map(|cell| cells::summary(&view, cell)).collect();
    let rows = sweeps::rows(&view);
    let gains = sweeps::gains(&view, &rows, &summaries);
    let mut found = proofs::made(&view);
    found.extend(proofs::between_groups(&view, &rows, &summaries));
    for (cell, of) in view.cells.iter().zip(&mut summaries) {
        let gain = gains.get(&cell.id).copied().unwrap_or_default();
        let mut limiting = sweeps::limiting(&view, cell, of, gain);
        proofs::weigh(&mut limiting, cell.id, &found, lang);
        of.limiting = limiting;
    }
    proofs::settle(&mut found, &summaries, lang);
    let sweeps: Vec<_> = rows.iter().map(|row| sweeps::sweep(&view, row, &summaries)).collect();
    let controls = rivals::controls(&view);
    let mut analysis = Analysis {
        verdict: Vec::new(),
        comparisons: rivals::comparisons(&view, &summaries),
        noise: rivals::noise(&controls),
        cells: summaries,
        sweeps,
        controls,
        proofs: found.iter().map(|Found { proof, .. }| proof.clone()).collect(),
        caveats: Vec::new(),
    };
    analysis.caveats = caveats::caveats(&view, &analysis);
    analysis.verdict = verdict::verdict(&view, &analysis, &found);
    analysis
}
