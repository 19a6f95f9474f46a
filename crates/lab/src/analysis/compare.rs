//! Compares the results of several machines or settings.

mod conclusions;
mod costs;
mod part;

use super::bootstrap::mean;
use super::compared::{ComparedCell, ComparedRow, ResultsComparison};
use super::prices::Prices;
use super::ratio::unpaired;
use super::sweeps::others;
use super::view::ResultsView;
use super::{Lang, analyse_in};
use crate::results::{Cell, Results};
use part::ComparisonPart;
use std::collections::{BTreeMap, BTreeSet};

/// Compares two or more results cell by cell. Cells match if group, series and parameters are equal; if each
/// result has only one group, its name is ignored. Sentences are in `lang`.
pub fn compare(results: &[Results], prices: &Prices, lang: Lang) -> ResultsComparison {
    let names = match prices.names.len() == results.len() {
        true => prices.names.clone(),
        false => names(results, &[]),
    };
    let parts: Vec<ComparisonPart<'_>> = results
        .iter()
        .zip(&names)
        .map(|(of, name)| {
            let (view, analysis) = (ResultsView::new(of, lang), analyse_in(of, lang));
            let first =
                results.first().map(|first| (&first.header.metric, first.header.more_is_better));
            let fits = first == Some((&of.header.metric, of.header.more_is_better));
            ComparisonPart { view, analysis, name: name.clone(), fits }
        })
        .collect();
    let Some(first) = results.first() else { return ResultsComparison::default() };
    let one_group = parts.iter().all(|part| part.view.groups().len() <= 1);
    let costs = costs::costs(&parts, prices, one_group);
    ResultsComparison {
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

/// Names of the results: given by the user (`given`, in the order of results), else the machine, else the
/// campaign. Duplicates get a number.
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

/// True if two cells of different results match.
fn is_same(a: (&ResultsView<'_>, &Cell), b: (&ResultsView<'_>, &Cell), one_group: bool) -> bool {
    let ((view_a, a), (view_b, b)) = (a, b);
    (one_group || a.group == b.group)
        && a.series == b.series
        && a.x == b.x
        && others(a, view_a.x_name()) == others(b, view_b.x_name())
}

fn rows(parts: &[ComparisonPart<'_>], one_group: bool) -> Vec<ComparedRow> {
    // Each cell once, in the order of the first result that has it.
    let mut seen: Vec<(&ResultsView<'_>, &Cell)> = Vec::new();
    for part in parts.iter().filter(|part| part.fits) {
        for cell in part.view.settings() {
            if !seen.iter().any(|of| is_same(*of, (&part.view, cell), one_group)) {
                seen.push((&part.view, cell));
            }
        }
    }
    let rows = seen.iter().map(|(view, cell)| {
        let cells = parts.iter().map(|part| {
            let mut all = part.view.settings().filter(|_| part.fits);
            all.find(|of| is_same((*view, *cell), (&part.view, *of), one_group))
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
        ComparedRow {
            group: if one_group { String::new() } else { cell.group.clone() },
            series: cell.series.clone(),
            x: cell.x,
            parameters: others(cell, view.x_name()),
            sides: sides.collect(),
        }
    });
    // Rows of one line are adjacent, ordered by the swept number.
    let mut lines: Vec<(String, String, BTreeMap<String, String>)> = Vec::new();
    let placed = rows.map(|row| {
        let line = (row.group.clone(), row.series.clone(), row.parameters.clone());
        let place = lines.iter().position(|known| *known == line).unwrap_or_else(|| {
            lines.push(line);
            lines.len() - 1
        });
        (place, row)
    });
    let mut placed: Vec<(usize, ComparedRow)> = placed.collect();
    let x = |row: &ComparedRow| row.x.unwrap_or(0.0);
    placed.sort_by(|(a, left), (b, right)| a.cmp(b).then(x(left).total_cmp(&x(right))));
    placed.into_iter().map(|(_, row)| row).collect()
}

fn side(
    part: &ComparisonPart<'_>,
    cell: &Cell,
    base: &[f64],
    compared: bool,
) -> Option<ComparedCell> {
    let values = part.view.values(cell.id);
    let of = part.analysis.cells.iter().find(|of| of.cell == cell.id)?;
    let seed = part.view.seed(cell.id, 5);
    let ratio = unpaired(&values, base, part.view.more_is_better(), seed);
    Some(ComparedCell {
        cell: cell.id,
        runs: values.len(),
        value: of.value?,
        mean: mean(&values)?,
        ratio: ratio.filter(|_| compared),
    })
}

fn caveats(parts: &[ComparisonPart<'_>]) -> Vec<String> {
    let mut said = Vec::new();
    for part in parts.iter().filter(|part| !part.fits) {
        let (metric, name) = (part.view.metric(), &part.name);
        said.push(match part.view.lang {
            Lang::En => format!("{name}: measures {metric}, not what the first does."),
            Lang::Ja => format!("{name}: 指標が {metric} で、最初の結果と異なります。"),
        });
    }
    let facts = |part: &ComparisonPart<'_>| {
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
