//! Format-independent blocks of a report, and the sections of a campaign that all formats share.

use super::facts::ReportFacts;
use super::number::percent;
use super::table::ReportTable;
use super::words::{ReportWords, with};
use super::{machines, record, tables};

/// A block of a report.
pub(super) enum ReportBlock {
    /// Heading of a section.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// Sentences of equal rank.
    List(Vec<String>),
    /// Table.
    Table(ReportTable),
}

/// Counter-experiments, if there are any.
pub(super) fn proofs(facts: &ReportFacts<'_>, words: &ReportWords) -> Option<[ReportBlock; 2]> {
    let found = tables::proofs(facts, words);
    let means = || ReportBlock::Text(words.elasticity_means.to_owned());
    (!found.is_empty()).then(|| [ReportBlock::Table(found), means()])
}

/// A/A controls and the noise that they show.
pub(super) fn controls(facts: &ReportFacts<'_>, words: &ReportWords) -> Vec<ReportBlock> {
    let found = tables::controls(facts, words);
    let mut said = vec![match found.is_empty() {
        true => ReportBlock::Text(words.no_controls.to_owned()),
        false => ReportBlock::Table(found),
    }];
    let noise = facts.analysis.noise;
    said.extend(noise.map(|noise| ReportBlock::Text(with(words.noise, &[&percent(noise)]))));
    said
}

/// The end of the campaign, and reasons to distrust its results.
pub(super) fn caveats(facts: &ReportFacts<'_>, words: &ReportWords) -> [ReportBlock; 2] {
    [ReportBlock::Text(record::ending(facts, words)), distrust(&facts.analysis.caveats, words)]
}

/// Reasons to distrust results.
pub(super) fn distrust(caveats: &[String], words: &ReportWords) -> ReportBlock {
    match caveats.is_empty() {
        true => ReportBlock::Text(words.no_caveats.to_owned()),
        false => ReportBlock::List(caveats.to_vec()),
    }
}

/// The machine, the programs and the data.
pub(super) fn machine(facts: &ReportFacts<'_>, words: &ReportWords) -> [ReportBlock; 3] {
    let machine = machines::fingerprints(&[*facts], words);
    [machine, record::programs(facts, words), record::data(facts, words)].map(ReportBlock::Table)
}
