//! Results of several machines or settings side by side.

mod conclusions;
mod costs;

use super::bootstrap::mean;
use super::compared::{Compared, Row, Side};
use super::prices::Prices;
use super::ratio::unpaired;
use super::sweeps::others;
use super::view::View;
use super::{Analysis, Lang, analyse_in};
use crate::results::{Cell, Results};
use std::collections::{BTreeMap, BTreeSet};

/// One of the results.
struct Part<'a> {
    view: View<'a>,
    analysis: Analysis,
    name: String,
    /// It has the metric of the first.
    fits: bool,
}

/// Two or more results, cell by cell: cells are the same where group, series and parameters are. Where
/// each result has only one group, its name does not matter. Sentences come in `lang`.
pub fn compare(results: &[Results], prices: &Prices, lang: Lang) -> Compared {
    let names = match prices.names.len() == results.len() {
        true => prices.names.clone(),
        false => names(results, &[]),
    };
    let parts: Vec<Part<'_>> = results
        .iter()
        .zip(&names)
        .map(|(of, name)| {
            let (view, analysis) = (View::new(of, lang), analyse_in(of, lang));
            let first =
                results.first().map(|first| (&first.header.metric, first.header.more_is_better));
            let fits = first == Some((&of.header.metric, of.header.more_is_better));
            Part { view, analysis, name: name.clone(), fits }
        })
        .collect();
    let Some(first) = results.first() else { return Compared::default() };
    let one_group = parts.iter().all(|part| part.view.groups().len() <= 1);
    let costs = costs::costs(&parts, prices, one_group);
    Compared {
        metric: parts.first().map_or(String::new(), |part| part.view.metric().to_owned()),
        more_is_better: first.header.more_is_better,
        x_name: first.header.x_name.clone(),
        rows: rows(&parts, one_group),
        changes: conclusions::changes(&parts, prices, one_group),
        best: costs::best(&parts, &costs, one_group),
        costs,
        caveats: caveats(&parts),
        names,
    }
}

/// What results are called: as the user does (`given`, in their order), else by machine, else by
/// campaign; a number is added where that is not enough.
pub fn names(results: &[Results], given: &[Option<String>]) -> Vec<String> {
    let differ = |names: &[String]| {
        let unique: BTreeSet<&String> = names.iter().collect();
        unique.len() == names.len() && names.iter().all(|name| !name.is_empty())
    };
    let called = |by: &dyn Fn(usize, &Results) -> String| -> Vec<String> {
        let each = results
            .iter()
            .enumerate()
            .map(|(at, of)| given.get(at).cloned().flatten().unwrap_or_else(|| by(at, of)));
        each.collect()
    };
    let machines = called(&|_, of| of.header.machine.name.clone());
    let campaigns = called(&|_, of| of.header.name.clone());
    if differ(&machines) {
        machines
    } else if differ(&campaigns) {
        campaigns
    } else {
        called(&|at, of| format!("{} #{}", of.header.machine.name, at + 1).trim_start().to_owned())
    }
}

/// Whether two cells of different results are the same.
fn is_same(a: (&View<'_>, &Cell), b: (&View<'_>, &Cell), one_group: bool) -> bool {
    let ((view_a, a), (view_b, b)) = (a, b);
    (one_group || a.group == b.group)
        && a.series == b.series
        && a.x == b.x
        && others(a, view_a.x_name()) == others(b, view_b.x_name())
}

fn rows(parts: &[Part<'_>], one_group: bool) -> Vec<Row> {
    // Each cell once, in the order of the first result that has it.
    let mut seen: Vec<(&View<'_>, &Cell)> = Vec::new();
    for part in parts.iter().filter(|part| part.fits) {
        let cells = part.view.cells.iter().copied();
        for cell in cells.filter(|cell| cell.control_of.is_none()) {
            if !seen.iter().any(|of| is_same(*of, (&part.view, cell), one_group)) {
                seen.push((&part.view, cell));
            }
        }
    }
    let rows = seen.iter().map(|(view, cell)| {
        let cells = parts.iter().map(|part| {
            let mut all = part.view.cells.iter().copied().filter(|_| part.fits);
            all.find(|of| {
                of.control_of.is_none() && is_same((*view, *cell), (&part.view, *of), one_group)
            })
        });
        let cells: Vec<Option<&Cell>> = cells.collect();
        let base: Vec<f64> = parts
            .first()
            .zip(cells.first().copied().flatten())
            .map(|(part, cell)| part.view.values(cell.id))
            .unwrap_or_default();
        let sides = parts
            .iter()
            .zip(&cells)
            .enumerate()
            .map(|(at, (part, cell))| side(part, (*cell)?, &base, at > 0));
        Row {
            group: if one_group { String::new() } else { cell.group.clone() },
            series: cell.series.clone(),
            x: cell.x,
            parameters: others(cell, view.x_name()),
            sides: sides.collect(),
        }
    });
    // Lines stay together, each in the order of the swept number.
    let mut lines: Vec<(String, String, BTreeMap<String, String>)> = Vec::new();
    let placed = rows.map(|row| {
        let line = (row.group.clone(), row.series.clone(), row.parameters.clone());
        let place = lines.iter().position(|known| *known == line).unwrap_or_else(|| {
            lines.push(line);
            lines.len() - 1
        });
        (place, row)
    });
    let mut placed: Vec<(usize, Row)> = placed.collect();
    let x = |row: &Row| row.x.unwrap_or(0.0);
    placed.sort_by(|(a, left), (b, right)| a.cmp(b).then(x(left).total_cmp(&x(right))));
    placed.into_iter().map(|(_, row)| row).collect()
}

/// How a cell reads and writes, as fio says it, or by its name; `None` where nothing is said.
fn pattern(cell: &Cell) -> Option<String> {
    let said = cell.parameters.get("rw").or(cell.parameters.get("readwrite"));
    let pattern = said.unwrap_or(&cell.series).to_ascii_lowercase();
    let is_one = said.is_some() || pattern.contains("read") || pattern.contains("write");
    is_one.then_some(pattern)
}

/// Whether lines of a group are kinds of work (reads, writes) rather than ways to do the same.
fn are_kinds(part: &Part<'_>, group: &str) -> bool {
    let cells = part.view.cells.iter().filter(|cell| cell.group == group);
    let patterns: BTreeSet<Option<String>> =
        cells.filter(|cell| cell.control_of.is_none()).map(|cell| pattern(cell)).collect();
    part.view.more_is_better() && patterns.len() > 1
}

fn side(part: &Part<'_>, cell: &Cell, base: &[f64], compared: bool) -> Option<Side> {
    let values = part.view.values(cell.id);
    let of = part.analysis.cells.iter().find(|of| of.cell == cell.id)?;
    let seed = part.view.seed(cell.id, 5);
    let ratio = unpaired(&values, base, part.view.more_is_better(), seed);
    Some(Side {
        cell: cell.id,
        runs: values.len(),
        value: of.value?,
        mean: mean(&values)?,
        ratio: ratio.filter(|_| compared),
    })
}

fn caveats(parts: &[Part<'_>]) -> Vec<String> {
    let mut said = Vec::new();
    for part in parts.iter().filter(|part| !part.fits) {
        let (metric, name) = (part.view.metric(), &part.name);
        said.push(match part.view.lang {
            Lang::En => format!("{name}: measures {metric}, not what the first does."),
            Lang::Ja => format!("{name}: 測っているのは {metric} で、最初のものと異なります。"),
        });
    }
    let facts = |part: &Part<'_>| {
        let data = &part.view.results.header.data;
        data.iter().map(|of| (of.name.clone(), of.files, of.bytes)).collect::<Vec<_>>()
    };
    if let Some((first, rest)) = parts.split_first() {
        for part in rest.iter().filter(|part| facts(part) != facts(first)) {
            let (name, first) = (&part.name, &first.name);
            said.push(match part.view.lang {
                Lang::En => format!("{name}: other data than {first}."),
                Lang::Ja => format!("{name}: データが {first} と異なります。"),
            });
        }
    }
    for part in parts {
        said.extend(part.analysis.caveats.iter().map(|of| format!("{}: {of}", part.name)));
    }
    said
}

/// In front of what is said of a cell or sweep: `small, rsync`.
fn of(group: &str, series: &str, one_group: bool) -> String {
    match (one_group || group.is_empty(), series.is_empty()) {
        (true, _) => series.to_owned(),
        (false, true) => group.to_owned(),
        (false, false) => format!("{group}, {series}"),
    }
}
