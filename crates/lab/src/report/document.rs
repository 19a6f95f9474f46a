//! Format-independent blocks and tables of a report, and the sections of a campaign that all formats share.

use crate::report::facts::ReportFacts;
use crate::report::number::percent;
use crate::report::tables;
use crate::report::words::{ReportWords, with};

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
    [ReportBlock::Text(tables::ending(facts, words)), distrust(&facts.analysis.caveats, words)]
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
    let machine = tables::fingerprints(&[*facts], words);
    [machine, tables::programs(facts, words), tables::data(facts, words)].map(ReportBlock::Table)
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ReportTable {
    /// Caption.
    pub(super) caption: String,
    /// Names of columns. The first column names the rows.
    pub(super) head: Vec<String>,
    /// Rows, each as long as `head`.
    pub(super) rows: Vec<Vec<String>>,
    /// True for columns of numbers, which are right-aligned.
    pub(super) numbers: Vec<bool>,
    /// True for emphasised rows: hakobu's own.
    pub(super) strong: Vec<bool>,
}

impl ReportTable {
    /// Creates an empty table. A leading `#` in a column name marks numbers and is not shown.
    pub(super) fn new(caption: impl Into<String>, head: &[impl AsRef<str>]) -> ReportTable {
        let head = || head.iter().map(AsRef::as_ref);
        ReportTable {
            caption: caption.into(),
            head: head().map(|name| name.strip_prefix('#').unwrap_or(name).to_owned()).collect(),
            numbers: head().map(|name| name.starts_with('#')).collect(),
            ..ReportTable::default()
        }
    }

    /// Adds a row.
    pub(super) fn push(&mut self, row: Vec<String>) {
        self.push_as(row, false);
    }

    /// Adds a row, emphasised if `strong`.
    pub(super) fn push_as(&mut self, mut row: Vec<String>, strong: bool) {
        row.resize(self.head.len(), String::new());
        self.rows.push(row);
        self.strong.push(strong);
    }

    /// Removes columns that are empty in all rows, except the first column.
    pub(super) fn without_empty_columns(mut self) -> ReportTable {
        let keep: Vec<bool> = (0..self.head.len())
            .map(|at| at == 0 || self.rows.iter().any(|row| !row[at].is_empty() && row[at] != NONE))
            .collect();
        for row in self.rows.iter_mut().chain([&mut self.head]) {
            let mut keep = keep.iter();
            row.retain(|_| keep.next().is_none_or(|keep| *keep));
        }
        let numbers = self.numbers.iter().zip(&keep).filter(|(_, keep)| **keep);
        self.numbers = numbers.map(|(number, _)| *number).collect();
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// Placeholder for a missing value.
pub(super) const NONE: &str = "–";

/// The text, or the placeholder.
pub(super) fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| NONE.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_say_nothing_go() {
        let mut table = ReportTable::new("c", &["a", "#b", "#c"]);
        table.push(vec!["x".into(), NONE.into(), "1".into()]);
        table.push_as(vec!["y".into()], true);
        let table = table.without_empty_columns();
        assert_eq!(
            (table.head, table.numbers),
            (vec!["a".into(), "c".to_owned()], vec![false, true])
        );
        assert_eq!(table.rows, [["x", "1"], ["y", ""]]);
        assert_eq!(table.strong, [false, true]);
    }
}
