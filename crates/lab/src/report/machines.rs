//! Comparison of results: the best setting of each tool on each machine.

use super::facts::ReportFacts;
use super::number::{bytes, digits, ratio};
use super::table::{NONE, ReportTable, or_none};
use super::words::{ReportWords, with};
use crate::analysis::unpaired;
use crate::distinct;
use crate::results::{Cell, Machine};

/// Seed of intervals, fixed for reproducible output.
const SEED: u64 = 5;

/// Distinct names of the results.
pub(super) fn names(all: &[ReportFacts<'_>]) -> Vec<String> {
    let plain = |facts: &ReportFacts<'_>| {
        let header = facts.header();
        let machine = &header.machine.name;
        if machine.is_empty() { header.name.clone() } else { machine.clone() }
    };
    let names: Vec<String> = all.iter().map(plain).collect();
    let each = names.iter().enumerate().map(|(i, name)| {
        let is_alone = names.iter().filter(|other| *other == name).count() == 1;
        if is_alone { name.clone() } else { format!("{name} #{}", i + 1) }
    });
    each.collect()
}

/// Best settings side by side, with speeds relative to the first result.
pub(super) fn side_by_side(all: &[ReportFacts<'_>], words: &ReportWords) -> ReportTable {
    let names = names(all);
    let first = names.first().map_or(NONE, String::as_str);
    let mut heads = vec![words.tool.to_owned()];
    heads.extend(names.iter().map(|name| format!("#{name}")));
    let others = names.iter().skip(1);
    heads.extend(others.map(|name| format!("#{}", with(words.times_as_fast, &[name]))));
    let mut table = ReportTable::new(with(words.machines_caption, &[first]), &heads);
    for (group, series) in rows(all) {
        let best: Vec<Option<&Cell>> = all.iter().map(|facts| best(facts, group, series)).collect();
        let label = if group.is_empty() { series.to_owned() } else { format!("{group}: {series}") };
        let mut row = vec![label];
        for (facts, cell) in all.iter().zip(&best) {
            let text = cell.and_then(|cell| {
                let value = facts.unit().interval(facts.value(cell.id)?);
                let setting = facts.setting(cell);
                Some(if setting.is_empty() { value } else { format!("{value} ({setting})") })
            });
            row.push(or_none(text));
        }
        for (facts, cell) in all.iter().zip(&best).skip(1) {
            row.push(or_none(against_first(all, &best, facts, *cell)));
        }
        let is_own = best.iter().flatten().any(|cell| cell.own);
        table.push_as(row, is_own);
    }
    table
}

/// Speed relative to the same tool on the first machine.
fn against_first(
    all: &[ReportFacts<'_>],
    best: &[Option<&Cell>],
    facts: &ReportFacts<'_>,
    cell: Option<&Cell>,
) -> Option<String> {
    let (first, first_cell) = (all.first()?, (*best.first()?)?);
    if facts.metric() != first.metric() {
        return None;
    }
    let (a, b) = (values(facts, cell?.id), values(first, first_cell.id));
    let found = unpaired(&a, &b, facts.header().more_is_better, SEED)?;
    Some(ratio(&found.ratio))
}

/// Metric of each run that counts.
fn values(facts: &ReportFacts<'_>, cell: u32) -> Vec<f64> {
    facts.counted(cell).filter_map(|run| facts.measured(run)).collect()
}

fn best<'a>(facts: &ReportFacts<'a>, group: &str, series: &str) -> Option<&'a Cell> {
    let lines = facts.lines(group);
    facts.best(&lines.iter().find(|line| line.series == series)?.cells)
}

/// Groups and tools of all results in order of appearance.
fn rows<'a>(all: &[ReportFacts<'a>]) -> Vec<(&'a str, &'a str)> {
    let cells = all.iter().flat_map(|facts| &facts.header().cells);
    let cells = cells.filter(|cell| cell.control_of.is_none());
    distinct(cells.map(|cell| (cell.group.as_str(), cell.series.as_str())))
}

/// Table of the machines' properties.
pub(super) fn fingerprints(all: &[ReportFacts<'_>], words: &ReportWords) -> ReportTable {
    let machines: Vec<&Machine> = all.iter().map(|facts| &facts.header().machine).collect();
    described(&names(all), &machines, words)
}

/// Table of properties of machines with these names.
pub(super) fn described(
    names: &[String],
    machines: &[&Machine],
    words: &ReportWords,
) -> ReportTable {
    let mut heads = vec![words.property];
    heads.extend(names.iter().map(String::as_str));
    let mut table = ReportTable::new(words.machine_caption, &heads);
    let mut row = |name: &str, text: &dyn Fn(&Machine) -> String| {
        let texts: Vec<String> = machines.iter().map(|machine| text(machine)).collect();
        if texts.iter().any(|text| !text.is_empty()) {
            table.push([name.to_owned()].into_iter().chain(texts).collect());
        }
    };
    row(words.cpu, &|machine| machine.cpu_model.clone().unwrap_or_default());
    // Imported results contain no facts about the machine.
    let known = |is_known: bool, text: String| if is_known { text } else { String::new() };
    row(words.cpus, &|machine| {
        let text = format!("{} / {}", digits(machine.cpus), machine.cpus_online);
        known(machine.cpus_online > 0, text)
    });
    row(words.ram, &|machine| known(machine.memory_bytes > 0, bytes(machine.memory_bytes as f64)));
    row(words.kernel, &|machine| format!("{} {}", machine.kernel, machine.arch).trim().to_owned());
    row(words.instance, &|machine| machine.instance_type.clone().unwrap_or_default());
    let mut volumes: Vec<&String> = machines.iter().flat_map(|of| of.volumes.keys()).collect();
    volumes.sort();
    volumes.dedup();
    for volume in volumes {
        let name = with(words.volume, &[volume]);
        row(&name, &|machine| machine.volumes.get(volume).cloned().unwrap_or_default());
    }
    row(words.machine_limit, &|machine| machine.limits.join("; "));
    table
}
