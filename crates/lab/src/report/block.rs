//! Format-independent blocks of a report, and the sections of a campaign that all formats share.

use super::facts::Facts;
use super::number::percent;
use super::table::Table;
use super::words::{Words, with};
use super::{machines, record, tables};

/// A block of a report.
pub(super) enum Block {
    /// Heading of a section.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// Sentences of equal rank.
    List(Vec<String>),
    /// Table.
    Table(Table),
}

/// Counter-experiments, if there are any.
pub(super) fn proofs(facts: &Facts<'_>, words: &Words) -> Option<[Block; 2]> {
    let found = tables::proofs(facts, words);
    let means = || Block::Text(words.elasticity_means.to_owned());
    (!found.is_empty()).then(|| [Block::Table(found), means()])
}

/// A/A controls and the noise that they show.
pub(super) fn controls(facts: &Facts<'_>, words: &Words) -> Vec<Block> {
    let found = tables::controls(facts, words);
    let mut said = vec![match found.is_empty() {
        true => Block::Text(words.no_controls.to_owned()),
        false => Block::Table(found),
    }];
    let noise = facts.analysis.noise;
    said.extend(noise.map(|noise| Block::Text(with(words.noise, &[&percent(noise)]))));
    said
}

/// The end of the campaign, and reasons to distrust its results.
pub(super) fn caveats(facts: &Facts<'_>, words: &Words) -> [Block; 2] {
    [Block::Text(record::ending(facts, words)), distrust(&facts.analysis.caveats, words)]
}

/// Reasons to distrust results.
pub(super) fn distrust(caveats: &[String], words: &Words) -> Block {
    match caveats.is_empty() {
        true => Block::Text(words.no_caveats.to_owned()),
        false => Block::List(caveats.to_vec()),
    }
}

/// The machine, the programs and the data.
pub(super) fn machine(facts: &Facts<'_>, words: &Words) -> [Block; 3] {
    let machine = machines::fingerprints(&[*facts], words);
    [machine, record::programs(facts, words), record::data(facts, words)].map(Block::Table)
}
