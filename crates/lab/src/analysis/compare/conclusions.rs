//! Compares the conclusions of the results.

use super::part::{ComparisonPart, are_kinds, of, pattern};
use crate::analysis::compared::ConclusionChange;
use crate::analysis::prices::Prices;
use crate::analysis::rivals::lead;
use crate::analysis::say::{Conjunction, beside, level, listed, resource};
use crate::analysis::{Lang, Sweep};
use crate::distinct;
use crate::results::Cell;
use std::collections::BTreeSet;

/// Share of a rating from which on it counts as reached.
const REACHED: f64 = 0.97;

/// Compares the best tool of each group, the knee and limit of each sweep, and the jobs with which it reaches
/// the rating of the machine.
pub(super) fn changes(
    parts: &[ComparisonPart<'_>],
    prices: &Prices,
    one_group: bool,
) -> Vec<ConclusionChange> {
    let mut changes = Vec::new();
    for group in groups(parts, one_group) {
        changes.push(best_tool(parts, &group, one_group));
    }
    for (group, series) in sweeps(parts, one_group) {
        changes.push(knee(parts, &group, &series, one_group));
        changes.push(limit(parts, &group, &series, one_group));
        changes.push(rated(parts, prices, &group, &series, one_group));
    }
    // Drop conclusions that no result has.
    changes.retain(|change| change.said.iter().any(Option::is_some));
    changes
}

/// Groups in order of appearance; a single unnamed one if names are ignored.
fn groups(parts: &[ComparisonPart<'_>], one_group: bool) -> Vec<String> {
    let all = parts.iter().flat_map(|part| part.view.groups());
    distinct(all.map(|group| if one_group { String::new() } else { group.to_owned() }))
}

fn sweeps(parts: &[ComparisonPart<'_>], one_group: bool) -> Vec<(String, String)> {
    let all = parts.iter().flat_map(|part| &part.analysis.sweeps);
    distinct(all.map(|sweep| {
        let group = if one_group { String::new() } else { sweep.group.clone() };
        (group, sweep.series.clone())
    }))
}

fn best_tool(parts: &[ComparisonPart<'_>], group: &str, one_group: bool) -> ConclusionChange {
    let leads = parts.iter().map(|part| {
        let group = if one_group { *part.view.groups().first()? } else { group };
        if are_kinds(part, group) {
            return None;
        }
        let lead = lead(&part.view, &part.analysis.cells, group)?;
        let mut names = vec![lead.first.cell.series.clone()];
        names.extend(lead.tied.iter().map(|best| best.cell.series.clone()));
        Some(names)
    });
    let leads: Vec<Option<Vec<String>>> = leads.collect();
    // Results with overlapping candidates do not contradict each other.
    let known: Vec<&Vec<String>> = leads.iter().flatten().collect();
    let common = known
        .iter()
        .copied()
        .cloned()
        .reduce(|a, b| a.into_iter().filter(|name| b.contains(name)).collect());
    let differs = known.len() > 1 && common.is_none_or(|names| names.is_empty());
    let said = leads
        .into_iter()
        .map(|names| Some(listed(&names?, Conjunction::Or, lang_of(parts))))
        .collect();
    change(parts, ("best tool", "最良のツール"), &of(group, "", one_group), said, differs)
}

/// Language of the results.
fn lang_of(parts: &[ComparisonPart<'_>]) -> Lang {
    parts.first().map_or(Lang::En, |part| part.view.lang)
}

/// Sweep of a tool in one result.
fn sweep<'a>(
    part: &'a ComparisonPart<'_>,
    group: &str,
    series: &str,
    one_group: bool,
) -> Option<&'a Sweep> {
    let mut sweeps = part.analysis.sweeps.iter();
    sweeps.find(|of| of.series == series && (one_group || of.group == group))
}

fn knee(
    parts: &[ComparisonPart<'_>],
    group: &str,
    series: &str,
    one_group: bool,
) -> ConclusionChange {
    let said = parts.iter().map(|part| {
        let knee = sweep(part, group, series, one_group)?.knee?;
        let at = part.view.of_x(knee.x);
        Some(match (knee.at_edge, part.view.lang) {
            (true, Lang::En) => format!("{at} or more"),
            (true, Lang::Ja) => beside(&at, "以上"),
            (false, _) => at,
        })
    });
    let said: Vec<Option<String>> = said.collect();
    let differs = differ(&said);
    change(parts, ("knee", "頭打ちの点 (knee)"), &of(group, series, one_group), said, differs)
}

fn limit(
    parts: &[ComparisonPart<'_>],
    group: &str,
    series: &str,
    one_group: bool,
) -> ConclusionChange {
    let at_knee = parts.iter().map(|part| {
        let sweep = sweep(part, group, series, one_group)?;
        let x = sweep.knee?.x;
        let mut cells = sweep.cells.iter().filter_map(|id| part.view.cell(*id));
        let cell = cells.find(|cell| cell.x == Some(x))?;
        let of = part.analysis.cells.iter().find(|of| of.cell == cell.id)?;
        of.limiting.is_determined().then_some((of.limiting.resource, of.limiting.level))
    });
    let at_knee: Vec<_> = at_knee.collect();
    let resources: Vec<Option<String>> =
        at_knee.iter().map(|of| of.map(|(resource, _)| resource.name().to_owned())).collect();
    let differs = differ(&resources);
    let lang = lang_of(parts);
    let words = at_knee.into_iter().map(|of| {
        let (what, sure) = of?;
        let (what, sure) = (resource(what, lang), level(sure, lang));
        Some(lang.pick(format!("{what} ({sure})"), format!("{what}（{sure}）")))
    });
    change(parts, ("limit", "制限要因"), &of(group, series, one_group), words.collect(), differs)
}

/// Fewest jobs that reach the rated operations per second of the machine.
fn rated(
    parts: &[ComparisonPart<'_>],
    prices: &Prices,
    group: &str,
    series: &str,
    one_group: bool,
) -> ConclusionChange {
    let said = parts.iter().enumerate().map(|(at, part)| {
        let rated = prices.rated.get(&at).filter(|_| part.view.metric() == "iops")?;
        let sweep = sweep(part, group, series, one_group)?;
        let cells: Vec<&Cell> = sweep.cells.iter().filter_map(|id| part.view.cell(*id)).collect();
        let iops = rated.of(writes(cells.first()?))?;
        let value = |cell: &Cell| {
            part.analysis.cells.iter().find(|of| of.cell == cell.id)?.value.map(|of| of.mid)
        };
        let reached = cells.iter().find(|cell| value(cell).is_some_and(|v| v >= REACHED * iops));
        Some(match (reached.and_then(|cell| cell.x), part.view.lang) {
            (Some(x), Lang::En) => format!("reached with {}", part.view.of_x(x)),
            (Some(x), Lang::Ja) => beside(&part.view.of_x(x), "で到達"),
            (None, lang) => lang.pick("not reached", "未到達").to_owned(),
        })
    });
    let said: Vec<Option<String>> = said.collect();
    let differs = differ(&said);
    change(parts, ("rated limit", "公称値"), &of(group, series, one_group), said, differs)
}

/// True if a cell only writes, false if it only reads; `None` if it does both or that is unknown.
fn writes(cell: &Cell) -> Option<bool> {
    let pattern = pattern(cell)?;
    match (pattern.contains("read"), pattern.contains("write")) {
        (true, false) => Some(false),
        (false, true) => Some(true),
        _ => None,
    }
}

/// True if known values differ.
fn differ(said: &[Option<String>]) -> bool {
    said.iter().flatten().collect::<BTreeSet<_>>().len() > 1
}

fn change(
    parts: &[ComparisonPart<'_>],
    (en, ja): (&str, &str),
    of: &str,
    said: Vec<Option<String>>,
    differs: bool,
) -> ConclusionChange {
    let lang = lang_of(parts);
    let what = lang.pick(en, ja);
    let each: Vec<String> = parts
        .iter()
        .zip(&said)
        .filter_map(|(part, said)| {
            let (said, name) = (said.as_ref()?, &part.name);
            Some(lang.pick(format!("{said} on {name}"), format!("{name} では {said}")))
        })
        .collect();
    let each = match said.first() {
        // All results agree word for word.
        Some(Some(first)) if said.iter().all(|of| of.as_ref() == Some(first)) => first.clone(),
        _ => lang.pick(listed(&each, Conjunction::And, lang), each.join("、")),
    };
    let sentence = match lang {
        Lang::En => {
            let of = if of.is_empty() { String::new() } else { format!(" of {of}") };
            let is = if differs { "changes" } else { "is the same" };
            format!("The {what}{of} {is}: {each}.")
        }
        Lang::Ja => {
            let of = if of.is_empty() { String::new() } else { format!("{of} の") };
            let is = if differs { "変わります" } else { "同じです" };
            format!("{of}{}{is}: {each}。", beside(what, "は"))
        }
    };
    ConclusionChange { what: what.to_owned(), of: of.to_owned(), said, differs, sentence }
}
