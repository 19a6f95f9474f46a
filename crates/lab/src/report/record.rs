//! Facts from the record: programs, data, commands, origin.

use super::facts::ReportFacts;
use super::number::{bytes, digits, percent};
use super::table::{NONE, ReportTable};
use super::tables::grouped_label;
use super::words::{ReportWords, with};
use std::collections::BTreeMap;

/// Date and program of the measurement.
pub(super) fn origin(facts: &ReportFacts<'_>, words: &ReportWords) -> String {
    let header = facts.header();
    let (seed, scale) = (header.seed.to_string(), digits(header.scale));
    with(words.made, &[&header.start, &header.program, &seed, &scale])
}

/// Describes the end of the campaign, if it has ended.
pub(super) fn ending(facts: &ReportFacts<'_>, words: &ReportWords) -> String {
    match &facts.results.end {
        None => words.not_whole.to_owned(),
        Some(end) => {
            let (took, overhead) = (digits(end.took_s), percent(end.overhead));
            with(words.ended, &[&end.reason, &took, &overhead])
        }
    }
}

/// Table of programs.
pub(super) fn programs(facts: &ReportFacts<'_>, words: &ReportWords) -> ReportTable {
    let heads = [words.tool, words.version, words.path, "SHA-256"];
    let mut table = ReportTable::new(words.programs_caption, &heads);
    for tool in &facts.header().tools {
        let row = [&tool.name, &tool.version, &tool.path, &tool.sha256];
        table.push(row.map(String::clone).to_vec());
    }
    table.without_empty_columns()
}

/// Table of data sets.
pub(super) fn data(facts: &ReportFacts<'_>, words: &ReportWords) -> ReportTable {
    let (files, size) = (format!("#{}", words.files), format!("#{}", words.bytes));
    let heads: [&str; 4] = [words.name, &files, &size, words.about];
    let mut table = ReportTable::new(words.data_caption, &heads);
    for data in &facts.header().data {
        table.push(vec![
            data.name.clone(),
            digits(data.files as f64),
            bytes(data.bytes as f64),
            data.about.clone(),
        ]);
    }
    table.without_empty_columns()
}

/// Exact command and conditions of each cell.
pub(super) fn commands(facts: &ReportFacts<'_>, words: &ReportWords) -> ReportTable {
    let heads = [words.setting, words.command, words.data, words.conditions];
    let mut table = ReportTable::new(words.commands_caption, &heads);
    for cell in &facts.header().cells {
        let conditions = pairs(&cell.conditions);
        table.push(vec![
            grouped_label(facts, cell),
            cell.command.clone(),
            cell.data.clone(),
            if conditions.is_empty() { NONE.to_owned() } else { conditions },
        ]);
    }
    table.without_empty_columns()
}

/// Formats pairs: `cpus=2, iops=3000`.
pub(super) fn pairs(of: &BTreeMap<String, String>) -> String {
    let each = of.iter().map(|(name, value)| format!("{name}={value}"));
    each.collect::<Vec<_>>().join(", ")
}
