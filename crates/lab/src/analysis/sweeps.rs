//! Tools over the swept number: which cells belong together, what more of it brings, where the knee
//! is, and the curve through all of it.

use super::limits::{self, Limiting, Signals, Stretch};
use super::quantity::quantity;
use super::view::View;
use super::{CellSummary, Sweep, fit, knee};
use crate::results::{Cell, Machine};
use std::collections::BTreeMap;

/// The cells of a sweep, before anything is said of them.
pub(super) struct Row<'a> {
    pub group: &'a str,
    pub series: String,
    /// In the order of the swept number.
    pub cells: Vec<&'a Cell>,
}

/// Parameters besides the swept one.
pub(super) fn others(cell: &Cell, x_name: &str) -> BTreeMap<String, String> {
    let mut parameters = cell.parameters.clone();
    let is_x = |value: &String| cell.x.is_some() && value.parse::<f64>().ok() == cell.x;
    // By its name; where it has another one there, it is the one that has its value.
    let named = parameters.get(x_name).is_some_and(is_x).then(|| x_name.to_owned());
    let same = || parameters.iter().find(|(_, value)| is_x(value)).map(|(name, _)| name.clone());
    if let Some(name) = named.or_else(same) {
        parameters.remove(&name);
    }
    parameters
}

/// Cells by group, series and the parameters that are not swept; controls are no part of it. What has
/// fewer than two different x is no sweep.
pub(super) fn rows<'a>(view: &View<'a>) -> Vec<Row<'a>> {
    type Key<'a> = (&'a str, &'a str, BTreeMap<String, String>);
    let mut found: Vec<(Key<'a>, Vec<&'a Cell>)> = Vec::new();
    let swept = view.cells.iter().copied().filter(|cell| cell.control_of.is_none());
    for cell in swept.filter(|cell| cell.x.is_some_and(f64::is_finite)) {
        let key: Key<'a> = (cell.group.as_str(), cell.series.as_str(), others(cell, view.x_name()));
        match found.iter_mut().find(|(of, _)| *of == key) {
            Some((_, cells)) => cells.push(cell),
            None => found.push((key, vec![cell])),
        }
    }
    // The parameters are named where the series alone does not tell two lines apart.
    let keys: Vec<Key<'a>> = found.iter().map(|(key, _)| key.clone()).collect();
    let named = |(group, series, parameters): &Key<'a>| {
        let same = keys.iter().filter(|(g, s, _)| g == group && s == series).count();
        let words = parameters.iter().filter(|(name, value)| {
            keys.iter().any(|(g, s, of)| g == group && s == series && of.get(*name) != Some(*value))
        });
        let words: Vec<String> = words.map(|(name, value)| format!("{name} {value}")).collect();
        match same {
            0 | 1 => (*series).to_owned(),
            _ => format!("{series}, {}", words.join(", ")),
        }
    };
    let rows = found.into_iter().map(|(key, mut cells)| {
        cells.sort_by(|a, b| x_of(a).total_cmp(&x_of(b)));
        Row { group: key.0, series: named(&key), cells }
    });
    let differ = |row: &Row<'_>| {
        let ends = row.cells.first().zip(row.cells.last());
        ends.is_some_and(|(first, last)| x_of(first) < x_of(last))
    };
    rows.filter(differ).collect()
}

/// The swept number.
pub(super) fn x_of(cell: &Cell) -> f64 {
    cell.x.unwrap_or(0.0)
}

/// Relative gain of rate per relative gain of x, from the point before and to the next, by cell.
pub(super) fn gains(
    view: &View<'_>,
    rows: &[Row<'_>],
    cells: &[CellSummary],
) -> BTreeMap<u32, (Option<f64>, Option<f64>)> {
    let rate = |cell: &Cell| {
        let value = cells.iter().find(|of| of.cell == cell.id)?.value?.mid;
        Some(view.rate(cell, value))
    };
    let gain = |a: &Cell, b: &Cell| {
        let (x_a, x_b) = (a.x.filter(|x| *x > 0.0)?, b.x.filter(|x| *x > 0.0)?);
        let gain = (rate(b)? / rate(a)?).ln() / (x_b / x_a).ln();
        gain.is_finite().then_some(gain)
    };
    let mut gains: BTreeMap<u32, (Option<f64>, Option<f64>)> = BTreeMap::new();
    for row in rows.iter().filter(|_| view.is_parallel()) {
        for pair in row.cells.windows(2) {
            if let [a, b] = pair {
                let gain = gain(a, b);
                gains.entry(a.id).or_default().1 = gain;
                gains.entry(b.id).or_default().0 = gain;
            }
        }
    }
    gains
}

/// What limited a cell: by its runs' own verdicts where they agree, else by the rules.
pub(super) fn limiting(
    view: &View<'_>,
    cell: &Cell,
    of: &CellSummary,
    gains: (Option<f64>, Option<f64>),
) -> Limiting {
    let runs = view.runs(cell.id);
    if runs.is_empty() {
        return Limiting::default();
    }
    if let Some(own) = limits::own_verdict(&runs, view.lang) {
        return own;
    }
    limits::judge(&signals(view, cell, of, gains))
}

fn signals(
    view: &View<'_>,
    cell: &Cell,
    of: &CellSummary,
    (before, after): (Option<f64>, Option<f64>),
) -> Signals {
    let machine = &view.results.header.machine;
    let cpus = cpus(cell, machine);
    let load = |name: &str| of.load.get(name).copied();
    let share = |name: &str| load(name).map(|percent| percent / 100.0);
    let used = view.median_of(cell.id, |run| {
        let used = (run.user_s + run.sys_s) / run.wall_s;
        if used.is_finite() { used } else { 0.0 }
    });
    // What all CPUs do says little of those that the runs may use, where these are only some.
    let all = cpus >= machine.cpus_online as f64 - 0.05;
    let gone = |share: f64| share + load("steal_percent").unwrap_or(0.0) / 100.0;
    let limit = |name: &str, counts: bool| quantity(cell.conditions.get(name)?, counts);
    Signals {
        lang: view.lang,
        cpus,
        used: used.unwrap_or(0.0),
        jobs: cell.x.filter(|_| view.is_parallel()),
        machine: share("cpu_percent").filter(|_| all).map(gone),
        busiest: share("busiest_cpu_percent"),
        iowait: share("iowait_percent"),
        disk_busy: share("disk_busy_percent"),
        disk_iops: load("disk_iops"),
        disk_bytes_per_s: load("disk_bytes_per_s"),
        // A server on the same machine is behind the loopback interface.
        net_bytes_per_s: [load("net_bytes_per_s"), load("loopback_bytes_per_s")]
            .into_iter()
            .flatten()
            .reduce(f64::max),
        iops_limit: limit("iops", true),
        bandwidth_limit: limit("bandwidth", false),
        before,
        after,
    }
}

/// CPUs that runs of a cell may use; 0 where nobody knows.
pub(super) fn cpus(cell: &Cell, machine: &Machine) -> f64 {
    let all = if machine.cpus > 0.0 { machine.cpus } else { machine.cpus_online as f64 };
    let set = cell.conditions.get("cpus").and_then(|text| quantity(text, true));
    set.filter(|set| *set > 0.0).map_or(all, |set| if all > 0.0 { set.min(all) } else { set })
}

/// A sweep with what is to be said of it.
pub(super) fn sweep(view: &View<'_>, row: &Row<'_>, cells: &[CellSummary]) -> Sweep {
    let of = |cell: &Cell| cells.iter().find(|of| of.cell == cell.id);
    let points: Vec<_> =
        row.cells.iter().filter_map(|cell| Some((cell.x?, of(cell)?.value?))).collect();
    let runs: Vec<(f64, f64)> = row
        .cells
        .iter()
        .flat_map(|cell| {
            let values = view.values(cell.id);
            values.into_iter().map(move |value| (x_of(cell), view.rate(cell, value)))
        })
        .collect();
    let first = row.cells.first();
    let seed = view.seed(first.map_or(0, |cell| cell.id), 2);
    let fit = fit(&runs, seed).filter(|_| view.is_parallel());
    let work = first.and_then(|cell| view.work_for(cell));
    let limiting: Vec<(f64, &Limiting)> =
        row.cells.iter().filter_map(|cell| Some((cell.x?, &of(cell)?.limiting))).collect();
    let stretches: Vec<Stretch> = match view.is_parallel() {
        true => limits::stretches(&limiting, view.x_name(), view.lang),
        false => Vec::new(),
    };
    Sweep {
        group: row.group.to_owned(),
        series: row.series.clone(),
        cells: row.cells.iter().map(|cell| cell.id).collect(),
        knee: knee(&points, view.more_is_better()),
        fit: fit.map(|fit| super::Fit { work, ..fit }),
        rate_unit: first.map_or(String::new(), |cell| view.rate_unit(cell)),
        stretches,
    }
}
