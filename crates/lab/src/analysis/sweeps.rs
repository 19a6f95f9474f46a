//! Sweeps: groups cells by tool and parameters, and computes knee, limits and fit over the swept number. The knee is the
//! fewest jobs (or requests) that perform as well as more.

use crate::analysis::fit::{CurveFit, fit};
use crate::analysis::limits::{LimitingResource, SweepStretch};
use crate::analysis::quantity::quantity;
use crate::analysis::statistics::PAIRS_MIN;
use crate::analysis::view::ResultsView;
use crate::analysis::{CellSummary, Interval, Sweep, limits};
use crate::results::Cell;
use hakobu_core::unit::Machine;
use hakobu_explain::verdict::{
    About, BusiestCpu, Ceiling, Direction, DiskFacts, Experiment, Facts, NetworkFacts, Point,
};
use std::collections::BTreeMap;

/// Cells of a sweep.
pub(super) struct SweepRow<'a> {
    pub group: &'a str,
    pub series: String,
    /// In ascending order of the swept number.
    pub cells: Vec<&'a Cell>,
}

/// Parameters other than the swept one.
pub(super) fn others(cell: &Cell, x_name: &str) -> BTreeMap<String, String> {
    let mut parameters = cell.parameters.clone();
    let is_x = |value: &String| cell.x.is_some() && value.parse::<f64>().ok() == cell.x;
    // The swept parameter by its name, else the one that has its value.
    let named = parameters.get(x_name).is_some_and(is_x).then(|| x_name.to_owned());
    let same = || parameters.iter().find(|(_, value)| is_x(value)).map(|(name, _)| name.clone());
    if let Some(name) = named.or_else(same) {
        parameters.remove(&name);
    }
    parameters
}

/// Groups cells by group, series and parameters that are not swept, without controls. Rows with fewer than
/// two distinct x are dropped.
pub(super) fn rows<'a>(view: &ResultsView<'a>) -> Vec<SweepRow<'a>> {
    type Key<'a> = (&'a str, &'a str, BTreeMap<String, String>);
    let mut found: Vec<(Key<'a>, Vec<&'a Cell>)> = Vec::new();
    for cell in view.settings().filter(|cell| cell.x.is_some_and(f64::is_finite)) {
        let key: Key<'a> = (cell.group.as_str(), cell.series.as_str(), others(cell, view.x_name()));
        match found.iter_mut().find(|(of, _)| *of == key) {
            Some((_, cells)) => cells.push(cell),
            None => found.push((key, vec![cell])),
        }
    }
    // Append parameters to names where the series alone is ambiguous.
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
        SweepRow { group: key.0, series: named(&key), cells }
    });
    let differ = |row: &SweepRow<'_>| {
        let ends = row.cells.first().zip(row.cells.last());
        ends.is_some_and(|(first, last)| x_of(first) < x_of(last))
    };
    rows.filter(differ).collect()
}

/// Swept number of a cell.
fn x_of(cell: &Cell) -> f64 {
    cell.x.unwrap_or(0.0)
}

/// Limiting resource of a cell: from its runs' own verdicts if they agree, else from the machine's counters.
pub(super) fn limiting(
    view: &ResultsView<'_>,
    row: Option<&SweepRow<'_>>,
    cell: &Cell,
    cells: &[CellSummary],
    experiments: Vec<Experiment>,
) -> LimitingResource {
    let runs = view.runs(cell.id);
    let Some(of) = cells.iter().find(|of| of.cell == cell.id).filter(|_| !runs.is_empty()) else {
        return LimitingResource::default();
    };
    let curve = row.map(|row| curve(view, row, cell, cells)).unwrap_or_default();
    let own_verdict = limits::own_verdict(&runs);
    limits::judge(&Facts { curve, own_verdict, experiments, ..facts(view, cell, of) })
}

/// Rates of a cell and its neighbours in the sweep, by swept number.
fn curve(
    view: &ResultsView<'_>,
    row: &SweepRow<'_>,
    cell: &Cell,
    cells: &[CellSummary],
) -> Vec<Point> {
    let Some(at) = row.cells.iter().position(|of| of.id == cell.id) else { return Vec::new() };
    let near = row.cells.iter().enumerate().filter(|(other, _)| other.abs_diff(at) <= 1);
    let point = |of: &Cell| {
        let value = cells.iter().find(|summary| summary.cell == of.id)?.value?.mid;
        Some(Point { jobs: of.x?, rate: view.rate(of, value) })
    };
    near.filter_map(|(_, of)| point(of)).filter(|_| view.is_parallel()).collect()
}

/// Facts about a cell's runs from the machine's counters.
fn facts(view: &ResultsView<'_>, cell: &Cell, of: &CellSummary) -> Facts {
    let machine = &view.results.header.machine;
    let cpus = cpus(cell, machine);
    let load = |name: &str| of.load.get(name).copied();
    let share = |name: &str| load(name).map(|percent| percent / 100.0);
    let used = view.median_of(cell.id, |run| {
        let used = (run.user_s + run.sys_s) / run.wall_s;
        if used.is_finite() { used } else { 0.0 }
    });
    // The load of all CPUs is meaningless if runs may use only some of them.
    let all = cpus >= machine.cpus_online as f64 - 0.05;
    let gone = |share: f64| cpus * (share + load("steal_percent").unwrap_or(0.0) / 100.0);
    let limit = |name: &str, counts: bool| quantity(cell.conditions.get(name)?, counts);
    let bandwidth = limit("bandwidth", false);
    let (iops, bytes_per_s) = (load("disk_iops"), load("disk_bytes_per_s"));
    let ceiling = |operations, limit: Option<f64>, reached: Option<f64>| {
        Some(Ceiling {
            operations,
            direction: Direction::Both,
            limit: limit?,
            reached: reached?,
            from: "",
        })
    };
    let ceilings =
        [ceiling(true, limit("iops", true), iops), ceiling(false, bandwidth, bytes_per_s)];
    let disk = DiskFacts {
        busy: share("disk_busy_percent").unwrap_or(0.0),
        read_iops: iops.unwrap_or(0.0),
        read_bytes_per_s: bytes_per_s.unwrap_or(0.0),
        ceilings: ceilings.into_iter().flatten().collect(),
        ..DiskFacts::default()
    };
    // A server on the same machine is reached through the loopback interface.
    let links = [load("net_bytes_per_s"), load("loopback_bytes_per_s")];
    let network = links.into_iter().flatten().reduce(f64::max).map(|bytes_per_s| NetworkFacts {
        bytes_per_s,
        link_bytes_per_s: bandwidth,
        ..NetworkFacts::default()
    });
    Facts {
        about: About::Cell,
        cpus,
        cpu_used: used.unwrap_or(0.0),
        machine_used: share("cpu_percent").filter(|_| all).map(gone),
        machine_cpus: Some(machine.cpus_online as f64),
        busiest_cpu: share("busiest_cpu_percent").map(|used| BusiestCpu { number: None, used }),
        iowait: share("iowait_percent").map(|share| share * machine.cpus_online as f64),
        disks: iops.map(|_| disk).into_iter().collect(),
        network,
        jobs: cell.x.filter(|_| view.is_parallel()).unwrap_or(0.0),
        ..Facts::default()
    }
}

/// CPUs that runs of a cell may use; 0 if unknown.
pub(super) fn cpus(cell: &Cell, machine: &Machine) -> f64 {
    let all = if machine.cpus > 0.0 { machine.cpus } else { machine.cpus_online as f64 };
    let set = cell.conditions.get("cpus").and_then(|text| quantity(text, true));
    set.filter(|set| *set > 0.0).map_or(all, |set| if all > 0.0 { set.min(all) } else { set })
}

/// Evaluates a sweep.
pub(super) fn sweep(view: &ResultsView<'_>, row: &SweepRow<'_>, cells: &[CellSummary]) -> Sweep {
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
    let limiting: Vec<(f64, &LimitingResource)> =
        row.cells.iter().filter_map(|cell| Some((cell.x?, &of(cell)?.limiting))).collect();
    let few_runs = row.cells.iter().filter_map(|cell| of(cell)).any(|of| of.runs < PAIRS_MIN);
    let knee = knee(&points, view.more_is_better()).map(|knee| Knee { few_runs, ..knee });
    let stretches: Vec<SweepStretch> = match view.is_parallel() {
        true => limits::stretches(&limiting),
        false => Vec::new(),
    };
    Sweep {
        group: row.group.to_owned(),
        series: row.series.clone(),
        cells: row.cells.iter().map(|cell| cell.id).collect(),
        knee,
        fit: fit.map(|fit| CurveFit { work, ..fit }),
        rate_unit: first.map_or(String::new(), |cell| view.rate_unit(cell)),
        stretches,
    }
}

/// Results within this share of the best count as equal.
const WITHIN: f64 = 0.03;

/// Position of the knee of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Knee {
    /// Fewest x within 3 % of the best.
    pub x: f64,
    /// x of the best result.
    pub best_x: f64,
    /// Metric at the knee.
    pub value: f64,
    /// Speed at the knee as a share of the best, 0 to 1.
    pub share: f64,
    /// True if only the end of the sweep is within 3 % of the best, so that a larger x may be better.
    pub at_edge: bool,
    /// True if a point of the sweep has too few runs for a conclusion.
    pub few_runs: bool,
}

/// Finds the fewest x within 3 % of the best. Takes x and the measured value (> 0), in any order. `None` with
/// fewer than two distinct x.
///
/// Medians are compared. A point whose interval reaches into the 3 % counts as well, but only within a
/// further 3 %: otherwise few noisy runs would move the knee to one job.
pub fn knee(points: &[(f64, Interval)], more_is_better: bool) -> Option<Knee> {
    // Convert to rates, so that more is better.
    let rate = |value: f64| if more_is_better { value } else { 1.0 / value };
    let usable = |(x, of): &&(f64, Interval)| {
        let bounds = [of.low, of.mid, of.high];
        x.is_finite() && of.mid >= f64::MIN_POSITIVE && bounds.iter().all(|bound| bound.is_finite())
    };
    let mut points: Vec<(f64, Interval)> = points.iter().filter(usable).copied().collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let last = points.last()?.0;
    if points.first()?.0 >= last {
        return None;
    }
    let better =
        |a: &&(f64, Interval), b: &&(f64, Interval)| rate(a.1.mid).total_cmp(&rate(b.1.mid));
    // The smallest x among equals.
    let (best_x, best) = *points.iter().rev().max_by(better)?;
    let share = |value: f64| rate(value) / rate(best.mid);
    let is_within = |of: &Interval| {
        // End of the interval at which it is fastest.
        let fastest = if more_is_better { of.high } else { of.low };
        let mid = share(of.mid);
        let lent = mid >= 1.0 - 2.0 * WITHIN && (fastest <= 0.0 || share(fastest) >= 1.0 - WITHIN);
        mid >= 1.0 - WITHIN || lent
    };
    let (x, at) = *points.iter().find(|(_, of)| is_within(of))?;
    Some(Knee {
        x,
        best_x,
        value: at.mid,
        share: share(at.mid),
        at_edge: x >= last,
        few_runs: false,
    })
}
