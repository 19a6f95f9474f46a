//! What things cost on each machine, and which one is best for what.

use super::Part;
use crate::analysis::compared::{Best, Cost};
use crate::analysis::prices::{Prices, per_1m_iops, per_amount, per_million_ios};
use crate::analysis::ratio::{Claim, WORTH, unpaired};
use crate::analysis::rivals::bests;
use crate::analysis::say::{number, times};
use std::collections::BTreeSet;

/// What a machine is sold with, rather than what was measured.
const RATED: &str = "rated";

/// Costs of the best cell of each tool, and of what machines are rated at.
pub(super) fn costs(parts: &[Part<'_>], prices: &Prices, one_group: bool) -> Vec<Cost> {
    let mut found = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let Some(per_hour) = prices.per_hour.get(&at).copied() else { continue };
        if let Some(iops) = prices.rated_iops.get(&at).copied() {
            let cost = Cost { name: part.name.clone(), of: RATED.to_owned(), ..Cost::default() };
            found.push(of_iops(cost, per_hour, iops));
        }
        for group in part.view.groups() {
            for best in bests(&part.view, &part.analysis.cells, group) {
                let cell = best.cell;
                let cost = Cost {
                    name: part.name.clone(),
                    group: if one_group { String::new() } else { group.to_owned() },
                    of: cell.series.clone(),
                    per_hour,
                    ..Cost::default()
                };
                let iops = part
                    .view
                    .median_of(cell.id, |run| run.metrics.get("iops").copied().unwrap_or(0.0));
                let wall_s = part.view.median_of(cell.id, |run| run.wall_s).unwrap_or(0.0);
                // Where a rate is what counts, runs last as long as they are told to.
                let timed = Some(cell).filter(|_| !part.view.more_is_better());
                let (bytes, files) = timed.map_or((None, None), |cell| part.view.moved(cell));
                let cost = match iops.filter(|iops| *iops > 0.0) {
                    Some(iops) => of_iops(cost, per_hour, iops),
                    None => cost,
                };
                found.push(Cost {
                    per_gb: bytes.and_then(|bytes| per_amount(per_hour, wall_s, bytes, 1e9)),
                    per_million_files: files
                        .and_then(|files| per_amount(per_hour, wall_s, files, 1e6)),
                    ..cost
                });
            }
        }
    }
    found
}

fn of_iops(cost: Cost, per_hour: f64, iops: f64) -> Cost {
    Cost {
        per_hour,
        iops: Some(iops),
        per_1m_iops: per_1m_iops(per_hour, iops),
        per_million_ios: per_million_ios(per_hour, iops),
        ..cost
    }
}

/// Which one is fastest, and which is cheapest in each of the ways that are known.
pub(super) fn best(parts: &[Part<'_>], costs: &[Cost], one_group: bool) -> Vec<Best> {
    let mut found = fastest(parts, one_group);
    type Way = (&'static str, fn(&Cost) -> Option<f64>);
    let ways: [Way; 3] = [
        ("cheapest for 1M IOPS", |cost| cost.per_1m_iops),
        ("cheapest per GB", |cost| cost.per_gb),
        ("cheapest per million files", |cost| cost.per_million_files),
    ];
    for (need, price) in ways {
        found.extend(cheapest(parts, costs, need, price));
    }
    found
}

/// By the best cell of each result, in each group.
fn fastest(parts: &[Part<'_>], one_group: bool) -> Vec<Best> {
    let mut groups: Vec<&str> = Vec::new();
    for group in parts.iter().flat_map(|part| part.view.groups()) {
        if (groups.is_empty() || !one_group) && !groups.contains(&group) {
            groups.push(group);
        }
    }
    let found = groups.iter().filter_map(|group| {
        let mut candidates: Vec<(&Part<'_>, f64, u32)> = Vec::new();
        for part in parts.iter().filter(|part| part.fits) {
            let own = part.view.groups().first().copied().filter(|_| one_group);
            let all = bests(&part.view, &part.analysis.cells, own.unwrap_or(*group));
            let best = all.into_iter().reduce(|best, one| {
                if part.view.is_better(one.value, best.value) { one } else { best }
            });
            candidates.extend(best.map(|best| (part, best.value, best.cell.id)));
        }
        candidates.sort_by(|a, b| match a.0.view.more_is_better() {
            true => b.1.total_cmp(&a.1),
            false => a.1.total_cmp(&b.1),
        });
        let [(first, value, cell), (next, other, other_cell), ..] = candidates.as_slice() else {
            return None;
        };
        let ratio = unpaired(
            &first.view.values(*cell),
            &next.view.values(*other_cell),
            first.view.more_is_better(),
            first.view.seed(*cell, 6),
        )?;
        let need = match one_group || group.is_empty() {
            true => "fastest".to_owned(),
            false => format!("fastest ({group})"),
        };
        let why = format!(
            "{} against {} on {}, {} times as fast",
            first.view.measured(*value),
            next.view.measured(*other),
            next.name,
            times(ratio.ratio.mid),
        );
        let clear = ratio.claim == Claim::Faster;
        Some(Best { need, name: first.name.clone(), why, clear })
    });
    found.collect()
}

/// The lowest price of each result, whatever tool reaches it; what is rated is not held against what
/// was measured.
fn cheapest(
    parts: &[Part<'_>],
    costs: &[Cost],
    need: &str,
    price: fn(&Cost) -> Option<f64>,
) -> Vec<Best> {
    let kind = |cost: &Cost| (cost.of == RATED, cost.group.clone());
    let kinds: BTreeSet<(bool, String)> = costs.iter().map(kind).collect();
    let found = kinds.into_iter().filter_map(|(rated, group)| {
        let mut lowest: Vec<(&Part<'_>, f64, &Cost)> = parts
            .iter()
            .filter_map(|part| {
                let of_part = costs.iter().filter(|cost| cost.name == part.name);
                let priced = of_part
                    .filter(|cost| kind(cost) == (rated, group.clone()))
                    .filter_map(|cost| Some((part, price(cost)?, cost)));
                priced.min_by(|a, b| a.1.total_cmp(&b.1))
            })
            .collect();
        lowest.sort_by(|a, b| a.1.total_cmp(&b.1));
        let [(first, least, cost), (next, other, _), ..] = lowest.as_slice() else { return None };
        let by = if rated { "as rated".to_owned() } else { format!("with {}", cost.of) };
        let why = format!("{} against {} on {}, {by}", number(*least), number(*other), next.name);
        let need = match (rated, group.is_empty()) {
            (true, _) => format!("{need}, as rated"),
            (false, true) => need.to_owned(),
            (false, false) => format!("{need} ({group})"),
        };
        Some(Best { need, name: first.name.clone(), why, clear: other / least > WORTH })
    });
    found.collect()
}
