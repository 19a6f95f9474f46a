//! What follows from each result, and whether it is the same.

use super::{Part, of};
use crate::analysis::compared::Change;
use crate::analysis::limits::level_words;
use crate::analysis::rivals::lead;
use crate::analysis::say::{listed, of_x};
use std::collections::BTreeSet;

/// The best tool of each group, the knee of each sweep, and what limits there.
pub(super) fn changes(parts: &[Part<'_>], one_group: bool) -> Vec<Change> {
    let mut changes = Vec::new();
    for group in groups(parts, one_group) {
        changes.push(best_tool(parts, &group, one_group));
    }
    for (group, series) in sweeps(parts, one_group) {
        changes.push(knee(parts, &group, &series, one_group));
        changes.push(limit(parts, &group, &series, one_group));
    }
    // What no result says anything about is no conclusion.
    changes.retain(|change| change.said.iter().any(Option::is_some));
    changes
}

/// Groups in the order in which they appear; one without a name where names do not matter.
fn groups(parts: &[Part<'_>], one_group: bool) -> Vec<String> {
    let mut groups: Vec<String> = Vec::new();
    for group in parts.iter().flat_map(|part| part.view.groups()) {
        let group = if one_group { String::new() } else { group.to_owned() };
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

fn sweeps(parts: &[Part<'_>], one_group: bool) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for sweep in parts.iter().flat_map(|part| &part.analysis.sweeps) {
        let group = if one_group { String::new() } else { sweep.group.clone() };
        let key = (group, sweep.series.clone());
        if !found.contains(&key) {
            found.push(key);
        }
    }
    found
}

fn best_tool(parts: &[Part<'_>], group: &str, one_group: bool) -> Change {
    let leads = parts.iter().map(|part| {
        let group = if one_group { *part.view.groups().first()? } else { group };
        let lead = lead(&part.view, &part.analysis.cells, group)?;
        let mut names = vec![lead.first.cell.series.clone()];
        names.extend(lead.tied.iter().map(|best| best.cell.series.clone()));
        Some(names)
    });
    let leads: Vec<Option<Vec<String>>> = leads.collect();
    // Two that may both be right do not contradict each other.
    let known: Vec<&Vec<String>> = leads.iter().flatten().collect();
    let common = known
        .iter()
        .copied()
        .cloned()
        .reduce(|a, b| a.into_iter().filter(|name| b.contains(name)).collect());
    let differs = known.len() > 1 && common.is_none_or(|names| names.is_empty());
    let said = leads.into_iter().map(|names| Some(listed(&names?, "or"))).collect();
    change(parts, "best tool", &of(group, "", one_group), said, differs)
}

fn knee(parts: &[Part<'_>], group: &str, series: &str, one_group: bool) -> Change {
    let said = parts.iter().map(|part| {
        let mut sweeps = part.analysis.sweeps.iter();
        let sweep = sweeps.find(|of| of.series == series && (one_group || of.group == group))?;
        let knee = sweep.knee?;
        let at = of_x(knee.x, part.view.x_name());
        Some(if knee.at_edge { format!("{at} or more") } else { at })
    });
    let said: Vec<Option<String>> = said.collect();
    let differs = differ(&said);
    change(parts, "knee", &of(group, series, one_group), said, differs)
}

fn limit(parts: &[Part<'_>], group: &str, series: &str, one_group: bool) -> Change {
    let at_knee = parts.iter().map(|part| {
        let mut sweeps = part.analysis.sweeps.iter();
        let sweep = sweeps.find(|of| of.series == series && (one_group || of.group == group))?;
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
    let words = at_knee.into_iter().map(|of| {
        let (resource, level) = of?;
        Some(format!("{} ({})", resource.words(), level_words(level)))
    });
    change(parts, "limit", &of(group, series, one_group), words.collect(), differs)
}

/// What is known differs.
fn differ(said: &[Option<String>]) -> bool {
    said.iter().flatten().collect::<BTreeSet<_>>().len() > 1
}

fn change(
    parts: &[Part<'_>],
    what: &str,
    of: &str,
    said: Vec<Option<String>>,
    differs: bool,
) -> Change {
    let of_what = if of.is_empty() { String::new() } else { format!(" of {of}") };
    let each: Vec<String> = parts
        .iter()
        .zip(&said)
        .filter_map(|(part, said)| Some(format!("{} on {}", said.as_ref()?, part.name)))
        .collect();
    let is = if differs { "changes" } else { "is the same" };
    let sentence = format!("The {what}{of_what} {is}: {}.", listed(&each, "and"));
    Change { what: what.to_owned(), of: of.to_owned(), said, differs, sentence }
}
