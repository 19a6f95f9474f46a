//! Costs on each machine, and the best machine for each need.

use super::part::{ComparisonPart, are_kinds};
use crate::analysis::Lang;
use crate::analysis::compared::{BestResult, MachineCost};
use crate::analysis::prices::{Prices, RatedIops, per_1m_iops, per_amount, per_million_ios};
use crate::analysis::ratio::{SpeedClaim, WORTH, unpaired};
use crate::analysis::rivals::bests;
use crate::analysis::say::{number, times};
use crate::distinct;
use crate::results::Cell;
use std::collections::BTreeSet;

/// Costs of the best cell of each tool, and of the ratings of the machines.
pub(super) fn costs(
    parts: &[ComparisonPart<'_>],
    prices: &Prices,
    one_group: bool,
) -> Vec<MachineCost> {
    let mut found = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let Some(per_hour) = prices.per_hour.get(&at).copied() else { continue };
        if let Some(rated) = prices.rated.get(&at) {
            found.extend(of_rated(&part.name, rated, per_hour, part.view.lang));
        }
        for group in part.view.groups() {
            for best in bests(&part.view, &part.analysis.cells, group) {
                let cell = best.cell;
                let cost = MachineCost {
                    name: part.name.clone(),
                    group: if one_group { String::new() } else { group.to_owned() },
                    of: cell.series.clone(),
                    per_hour,
                    ..MachineCost::default()
                };
                let iops = part
                    .view
                    .median_of(cell.id, |run| run.metrics.get("iops").copied().unwrap_or(0.0));
                let wall_s = part.view.median_of(cell.id, |run| run.wall_s).unwrap_or(0.0);
                // If the metric is a rate, the duration of runs is a setting and gives no cost.
                let timed = Some(cell).filter(|_| !part.view.more_is_better());
                let (bytes, files) = timed.map_or((None, None), |cell| part.view.moved(cell));
                let cost = match iops.filter(|iops| *iops > 0.0) {
                    Some(iops) => of_iops(cost, per_hour, iops),
                    None => cost,
                };
                found.push(MachineCost {
                    per_gb: bytes.and_then(|bytes| per_amount(per_hour, wall_s, bytes, 1e9)),
                    per_million_files: files
                        .and_then(|files| per_amount(per_hour, wall_s, files, 1e6)),
                    ..cost
                });
            }
        }
    }
    let lang = parts.first().map_or(Lang::En, |part| part.view.lang);
    for machine in &prices.others {
        let (name, per_hour) = (&machine.name, machine.per_hour);
        found.extend(machine.rated.iter().flat_map(|rated| of_rated(name, rated, per_hour, lang)));
        found.extend(machine.bytes_per_s.map(|bytes_per_s| MachineCost {
            name: name.clone(),
            of: lang.pick("rated throughput", "公称スループット").to_owned(),
            rated: true,
            per_hour,
            per_gb: per_amount(per_hour, 1.0, bytes_per_s, 1e9),
            ..MachineCost::default()
        }));
    }
    found
}

/// Costs of a rating: one for all operations, or one each for reads and writes.
fn of_rated(name: &str, rated: &RatedIops, per_hour: f64, lang: Lang) -> Vec<MachineCost> {
    let each = match rated.writes {
        None => vec![(rated.reads, lang.pick("rated", "公称値"))],
        Some(writes) => vec![
            (rated.reads, lang.pick("rated for reads", "公称値（読み込み）")),
            (writes, lang.pick("rated for writes", "公称値（書き込み）")),
        ],
    };
    let cost = |(iops, of): (f64, &str)| {
        let (name, of) = (name.to_owned(), of.to_owned());
        of_iops(MachineCost { name, of, rated: true, ..MachineCost::default() }, per_hour, iops)
    };
    each.into_iter().map(cost).collect()
}

fn of_iops(cost: MachineCost, per_hour: f64, iops: f64) -> MachineCost {
    MachineCost {
        per_hour,
        iops: Some(iops),
        per_1m_iops: per_1m_iops(per_hour, iops),
        per_million_ios: per_million_ios(per_hour, iops),
        ..cost
    }
}

/// Fastest result, and cheapest one by each known unit.
pub(super) fn best(
    parts: &[ComparisonPart<'_>],
    costs: &[MachineCost],
    one_group: bool,
) -> Vec<BestResult> {
    let mut found = fastest(parts, one_group);
    type Way = ((&'static str, &'static str), fn(&MachineCost) -> Option<f64>);
    let ways: [Way; 3] = [
        (("cheapest for 1M IOPS", "1M IOPS あたり最安"), |cost| cost.per_1m_iops),
        (("cheapest per GB", "1 GB あたり最安"), |cost| cost.per_gb),
        (("cheapest per million files", "100 万ファイルあたり最安"), |cost| {
            cost.per_million_files
        }),
    ];
    let Some(first) = parts.first() else { return found };
    for ((en, ja), price) in ways {
        found.extend(cheapest(first.view.lang.pick(en, ja), parts, costs, price));
    }
    found
}

/// Kinds of work to distinguish: groups, and the lines in a group if these are kinds of work.
fn kinds(parts: &[ComparisonPart<'_>], one_group: bool) -> Vec<(String, String)> {
    let kind = |part: &ComparisonPart<'_>, cell: &Cell| {
        let group = if one_group { String::new() } else { cell.group.clone() };
        let is_kind = are_kinds(part, &cell.group);
        (group, if is_kind { cell.series.clone() } else { String::new() })
    };
    let fitting = parts.iter().filter(|part| part.fits);
    distinct(fitting.flat_map(|part| part.view.settings().map(|cell| kind(part, cell))))
}

/// A need with the kind of work that it refers to.
fn need_of(need: &str, (group, series): (&str, &str), lang: Lang) -> String {
    let of: Vec<&str> = [group, series].into_iter().filter(|text| !text.is_empty()).collect();
    match (of.is_empty(), lang) {
        (true, _) => need.to_owned(),
        (false, Lang::En) => format!("{need} ({})", of.join(", ")),
        (false, Lang::Ja) => format!("{need}（{}）", of.join("、")),
    }
}

/// Fastest result for each kind of work, by its best cell.
fn fastest(parts: &[ComparisonPart<'_>], one_group: bool) -> Vec<BestResult> {
    let kinds = kinds(parts, one_group);
    let alone = kinds.len() == 1;
    let found = kinds.iter().filter_map(|(group, series)| {
        let mut candidates: Vec<(&ComparisonPart<'_>, f64, u32)> = Vec::new();
        for part in parts.iter().filter(|part| part.fits) {
            let own = part.view.groups().first().copied().filter(|_| one_group);
            let all = bests(&part.view, &part.analysis.cells, own.unwrap_or(group));
            let all = all.into_iter().filter(|of| series.is_empty() || of.cell.series == *series);
            let best =
                all.reduce(
                    |best, one| {
                        if part.view.is_better(one.value, best.value) { one } else { best }
                    },
                );
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
        let lang = first.view.lang;
        let kind = if alone { ("", "") } else { (group.as_str(), series.as_str()) };
        let (value, other) = (first.view.measured(*value), next.view.measured(*other));
        let (by, next) = (times(ratio.ratio.mid), &next.name);
        let why = match lang {
            Lang::En => format!("{value} against {other} on {next}, {by} times as fast"),
            Lang::Ja => format!("{value}（{next} は {other}）、{by} 倍の速さ"),
        };
        Some(BestResult {
            need: need_of(lang.pick("fastest", "最速"), kind, lang),
            name: first.name.clone(),
            why,
            clear: ratio.claim == SpeedClaim::Faster,
        })
    });
    found.collect()
}

/// Cheapest result by its lowest price with any tool; ratings are not compared with measured values.
fn cheapest(
    need: &str,
    parts: &[ComparisonPart<'_>],
    costs: &[MachineCost],
    price: fn(&MachineCost) -> Option<f64>,
) -> Vec<BestResult> {
    let Some(first) = parts.first() else { return Vec::new() };
    let lang = first.view.lang;
    let has_kinds =
        |part: &ComparisonPart<'_>| part.view.groups().iter().any(|of| are_kinds(part, of));
    let by_series = parts.iter().any(has_kinds);
    let kind = |cost: &MachineCost| {
        let series = if cost.rated || by_series { cost.of.clone() } else { String::new() };
        (cost.rated, cost.group.clone(), series)
    };
    let kinds: BTreeSet<(bool, String, String)> = costs.iter().map(kind).collect();
    let alone = kinds.iter().filter(|(rated, ..)| !rated).count() == 1;
    let found = kinds.into_iter().filter_map(|(rated, group, series)| {
        let mut lowest: Vec<(&str, f64, &MachineCost)> = Vec::new();
        for cost in costs.iter().filter(|of| kind(of) == (rated, group.clone(), series.clone())) {
            let Some(price) = price(cost) else { continue };
            match lowest.iter_mut().find(|(name, ..)| *name == cost.name) {
                Some(known) if price < known.1 => *known = (&cost.name, price, cost),
                Some(_) => {}
                None => lowest.push((&cost.name, price, cost)),
            }
        }
        lowest.sort_by(|a, b| a.1.total_cmp(&b.1));
        let [(first, least, cost), (next, other, _), ..] = lowest.as_slice() else { return None };
        let by = times(other / least);
        let with = match (rated || by_series, lang) {
            (true, _) => String::new(),
            (false, Lang::En) => format!(", with {}", cost.of),
            (false, Lang::Ja) => format!("、{} を使用", cost.of),
        };
        let (low, high) = (number(*least), number(*other));
        let why = match lang {
            Lang::En => {
                format!("{low} against {high} on {next}{with}: {by} times as much for the money")
            }
            Lang::Ja => format!("{low}（{next} は {high}）{with}、同じ金額で {by} 倍"),
        };
        let need = match (rated, lang) {
            (true, Lang::En) => format!("{need}, as {series}"),
            (true, Lang::Ja) => format!("{need}、{series}"),
            (false, _) if alone => need.to_owned(),
            (false, _) => need_of(need, (&group, &series), lang),
        };
        Some(BestResult { need, name: (*first).to_owned(), why, clear: other / least > WORTH })
    });
    found.collect()
}
