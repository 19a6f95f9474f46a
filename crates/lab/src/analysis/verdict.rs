//! The answer of a campaign in a few plain sentences: what is best, how many are enough, what limits,
//! what would help.

use super::limits::level_words;
use super::proofs::{Found, Says};
use super::rivals::{Best, Lead, lead};
use super::say::{capital, is_many, listed, of_x, percent, rate, times};
use super::view::View;
use super::{Analysis, Model, Ratio, Sweep};
use std::collections::BTreeMap;

/// Groups that have a sentence each; more are counted.
const GROUPS_MAX: usize = 2;
/// Sweeps that a sentence speaks of.
const SWEEPS_MAX: usize = 3;

/// One to four sentences.
pub(super) fn verdict(view: &View<'_>, analysis: &Analysis, found: &[Found]) -> Vec<String> {
    let mut said = best(view, analysis);
    if said.is_empty() {
        return vec!["No run counts, so nothing can be said.".to_owned()];
    }
    let sweeps = chosen(view, analysis);
    said.extend(knees(view, &sweeps));
    said.extend(limits(view, analysis, &sweeps));
    said.extend(helps(found).or_else(|| predicts(view, &sweeps)));
    said.truncate(4);
    said
}

/// Who is ahead.
fn best(view: &View<'_>, analysis: &Analysis) -> Vec<String> {
    let groups = view.groups();
    let leads =
        groups.iter().filter_map(|group| Some((*group, lead(view, &analysis.cells, group)?)));
    let leads: Vec<(&str, Lead<'_>)> = leads.collect();
    if leads.len() <= GROUPS_MAX {
        let sentences = leads.iter().map(|(group, lead)| match leads.len() > 1 {
            true => format!("{group}: {}", of_lead(view, lead)),
            false => of_lead(view, lead),
        });
        let sentences: Vec<String> = sentences.collect();
        let all = sentences.join("; ");
        let all = if leads.len() > 1 { capital(&all) } else { all };
        return (!all.is_empty()).then(|| format!("{all}.")).into_iter().collect();
    }
    let mut firsts: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, lead) in &leads {
        *firsts.entry(lead.first.cell.series.as_str()).or_default() += 1;
    }
    if firsts.len() <= 1 && view.cells.iter().all(|cell| firsts.contains_key(cell.series.as_str()))
    {
        return groups_of_one(view, &leads);
    }
    let mut firsts: Vec<(&str, usize)> = firsts.into_iter().collect();
    firsts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let words: Vec<String> =
        firsts.iter().map(|(series, count)| format!("{series} in {count}")).collect();
    let mut sentence = match firsts.as_slice() {
        [(series, count)] => format!("{series} is the fastest in all {count} groups{}", by(&leads)),
        _ => format!("Of {} groups the fastest is {}", leads.len(), listed(&words, "and")),
    };
    let tied = leads.iter().filter(|(_, lead)| !lead.tied.is_empty()).count();
    if tied > 0 {
        sentence.push_str(&format!("; in {tied} of them others are not told from it"));
    }
    vec![format!("{sentence}.")]
}

/// How many times as fast as the next, over groups where that is claimed.
fn by(leads: &[(&str, Lead<'_>)]) -> String {
    let ratios = || leads.iter().filter_map(|(_, lead)| Some(lead.next.as_ref()?.1.ratio.mid));
    match (ratios().reduce(f64::min), ratios().reduce(f64::max)) {
        (Some(least), Some(most)) => {
            format!(", {} to {} times as fast as the next", times(least), times(most))
        }
        _ => String::new(),
    }
}

/// Where there is only one tool: what it reaches where.
fn groups_of_one(view: &View<'_>, leads: &[(&str, Lead<'_>)]) -> Vec<String> {
    let words: Vec<String> = leads
        .iter()
        .map(|(group, lead)| format!("{group}: {}", reached(view, &lead.first)))
        .collect();
    vec![format!("The best of each group: {}.", words.join("; "))]
}

fn of_lead(view: &View<'_>, lead: &Lead<'_>) -> String {
    let first = &lead.first;
    let (name, reached) = (&first.cell.series, reached(view, first));
    let next = lead.next.as_ref().map(|(best, ratio)| {
        let by = within(ratio);
        format!("{} times as fast as {}{by}", times(ratio.ratio.mid), best.cell.series)
    });
    let tied: Vec<String> = lead.tied.iter().map(|best| best.cell.series.clone()).collect();
    match (tied.is_empty(), next) {
        (true, None) => format!("{name} at its best: {reached}"),
        (true, Some(next)) => format!("{name} is the fastest ({reached}), {next}"),
        (false, _) if lead.unsure => {
            let than = listed(&tied, "and");
            format!("{name} is ahead of {than} ({reached}), by too few runs to claim it")
        }
        (false, next) => {
            let all: Vec<String> = [name.clone()].into_iter().chain(tied).collect();
            let next = next.map(|next| format!(", {next}")).unwrap_or_default();
            format!("{} are not told apart ({reached}){next}", listed(&all, "and"))
        }
    }
}

/// ` (2.9 to 3.4)`.
fn within(ratio: &Ratio) -> String {
    match ratio.ratio.is_point() {
        true => String::new(),
        false => format!(" ({} to {})", times(ratio.ratio.low), times(ratio.ratio.high)),
    }
}

/// `2.34 s with 8 jobs`.
fn reached(view: &View<'_>, best: &Best<'_>) -> String {
    let value = view.measured(best.value);
    match best.cell.x {
        Some(x) => format!("{value} with {}", of_x(x, view.x_name())),
        None => value,
    }
}

/// The sweeps to speak of: of the first group with any, hakobu's own first.
fn chosen<'a>(view: &View<'_>, analysis: &'a Analysis) -> Vec<&'a Sweep> {
    let with_knee = |sweep: &&Sweep| sweep.knee.is_some();
    let Some(group) = analysis.sweeps.iter().find(with_knee).map(|sweep| &sweep.group) else {
        return Vec::new();
    };
    let is_own = |sweep: &Sweep| {
        sweep.cells.first().and_then(|id| view.cell(*id)).is_some_and(|cell| cell.own)
    };
    let of_group = analysis.sweeps.iter().filter(|sweep| sweep.group == *group);
    let mut sweeps: Vec<&Sweep> = of_group.filter(|sweep| sweep.knee.is_some()).collect();
    sweeps.sort_by_key(|sweep| !is_own(sweep));
    sweeps.truncate(SWEEPS_MAX);
    sweeps
}

/// How many are enough.
fn knees(view: &View<'_>, sweeps: &[&Sweep]) -> Option<String> {
    let words = sweeps.iter().filter_map(|sweep| {
        let knee = sweep.knee?;
        let (at, series) = (of_x(knee.x, view.x_name()), &sweep.series);
        let are = if is_many(knee.x, view.x_name()) { "are" } else { "is" };
        Some(match (knee.at_edge, knee.x < knee.best_x) {
            (true, _) => {
                format!("for {series} {at} {are} best, where the sweep ends: more may be better")
            }
            (false, true) => {
                let best = of_x(knee.best_x, view.x_name());
                let share = percent(knee.share.min(1.0));
                format!("for {series} {at} {are} enough ({share} of the best, with {best})")
            }
            (false, false) => format!("for {series} {at} {are} best"),
        })
    });
    let words: Vec<String> = words.collect();
    let said = format!("{}{}.", place(view, sweeps), words.join("; "));
    (!words.is_empty()).then(|| capital(&said))
}

/// Which group sweeps are of, where there are several.
fn place(view: &View<'_>, sweeps: &[&Sweep]) -> String {
    let group = sweeps.first().map_or("", |sweep| sweep.group.as_str());
    match view.groups().len() {
        0 | 1 => String::new(),
        _ => format!("{group}: "),
    }
}

/// What limits, along the sweep; without one, at the best cell.
fn limits(view: &View<'_>, analysis: &Analysis, sweeps: &[&Sweep]) -> Option<String> {
    if sweeps.is_empty() {
        let group = *view.groups().first()?;
        let first = lead(view, &analysis.cells, group)?.first.cell;
        let of = analysis.cells.iter().find(|of| of.cell == first.id)?;
        let sentence = of.limiting.sentence();
        return Some(format!("{}: {}", view.name(first), uncapital(&sentence)));
    }
    // Who is ahead may have found its number of jobs by itself, and is no line of a sweep then.
    let group = sweeps.first().map_or("", |sweep| sweep.group.as_str());
    let ahead = lead(view, &analysis.cells, group).map(|lead| lead.first.cell);
    let alone = ahead.filter(|cell| !sweeps.iter().any(|sweep| sweep.cells.contains(&cell.id)));
    let alone = alone.and_then(|cell| {
        let of = analysis.cells.iter().find(|of| of.cell == cell.id)?;
        let (what, level) = (of.limiting.resource.words(), level_words(of.limiting.level));
        let words = format!("{}: {what} ({level})", view.name(cell));
        of.limiting.is_determined().then_some(words)
    });
    let words = sweeps.iter().take(2).map(|sweep| {
        let parts = sweep.stretches.iter().map(|stretch| {
            let level = level_words(stretch.limiting.level);
            match stretch.limiting.is_determined() {
                true => format!("{} ({level})", stretch.sentence),
                false => stretch.sentence.clone(),
            }
        });
        let parts: Vec<String> = parts.collect();
        format!("{}: {}", sweep.series, parts.join(", "))
    });
    let swept = sweeps.iter().any(|sweep| !sweep.stretches.is_empty());
    let words: Vec<String> = alone.into_iter().chain(words.filter(|_| swept)).collect();
    let said = format!("{}what limits {}.", place(view, sweeps), words.join("; "));
    (!words.is_empty()).then(|| capital(&said))
}

fn uncapital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_lowercase().chain(chars).collect())
}

/// What experiments showed: what changes something first.
fn helps(found: &[Found]) -> Option<String> {
    let mut clear: Vec<&Found> =
        found.iter().filter(|of| matches!(of.says, Says::Binds | Says::Loose)).collect();
    clear.sort_by_key(|of| of.says == Says::Loose);
    let mut told: Vec<(&str, Says)> = Vec::new();
    let mut words = Vec::new();
    for of in clear {
        let key = (of.proof.changed.as_str(), of.says);
        if told.contains(&key) {
            continue;
        }
        told.push(key);
        words.push(of.proof.sentence.trim_end_matches('.').to_owned());
    }
    words.truncate(SWEEPS_MAX);
    (!words.is_empty()).then(|| format!("Tried out: {}.", words.join("; ")))
}

/// What the curve of the first sweep says of twice as many.
fn predicts(view: &View<'_>, sweeps: &[&Sweep]) -> Option<String> {
    let sweep = sweeps.iter().find(|sweep| sweep.fit.is_some())?;
    let fit = sweep.fit.as_ref()?;
    let twice = of_x(fit.twice_x, view.x_name());
    let value = |value: f64| rate(value, &sweep.rate_unit);
    let measured = value(fit.rate(fit.twice_x / 2.0));
    let then = fit.at_twice;
    let (low, high) = (value(then.low), value(then.high));
    let peak = fit.peak_x.filter(|peak| peak.mid <= fit.twice_x);
    let peak = peak.map(|peak| of_x(peak.mid.round(), view.x_name()));
    let shape = match (fit.model, peak) {
        (Model::Cap, Some(peak)) => format!("; it is flat from {peak} on"),
        (Model::Usl, Some(peak)) => format!("; its peak is at {peak}"),
        (_, None) => String::new(),
    };
    Some(format!(
        "The curve through {} predicts {} with {twice} ({low} to {high}), against {measured} at the \
         end of the sweep{shape}.",
        sweep.series,
        value(then.mid),
    ))
}
