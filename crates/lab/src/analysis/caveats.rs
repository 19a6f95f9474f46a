//! Caveats: reasons to distrust the results of a campaign.

use crate::analysis::statistics::{PAIRS_MIN, SpeedClaim};
use crate::analysis::verdict::NamedSetting;
use crate::analysis::view::ResultsView;
use crate::analysis::{Analysis, CellSummary, statistics};
use crate::results::Cell;

/// Shorter runs consist mostly of process start-up.
pub(crate) const SHORT_S: f64 = 0.1;
/// If the first run writes less, the next run is not checked for idleness.
const WRITTEN_BYTES_MIN: u64 = 1 << 20;
/// A second run that writes less than this fraction of the first found its work done.
const IDLE_FACTOR: u64 = 10;
/// Largest share of one CPU that the lab itself may use.
const OVERHEAD_MAX: f64 = 0.01;

/// A reason for distrust.
#[derive(Clone, Debug, PartialEq)]
pub enum Caveat {
    /// Runs failed and do not count.
    Failed {
        /// Number of runs.
        runs: usize,
        /// Their settings.
        settings: Vec<NamedSetting>,
        /// Problem of the first one, as recorded.
        why: String,
    },
    /// Settings of which no run succeeded, and the problem of the first one.
    WithoutRuns(Vec<NamedSetting>, String),
    /// Commands that found their work done from the second run on, by the bytes that they wrote.
    WorkDone {
        /// Their settings.
        settings: Vec<NamedSetting>,
        /// Bytes written by the first run of the first setting.
        before: u64,
        /// The same of the second run.
        after: u64,
    },
    /// The campaign was stopped.
    Stopped,
    /// The time budget ran out.
    OutOfTime,
    /// The campaign has not ended.
    Unfinished,
    /// Settings with a single run.
    OneRun(Vec<NamedSetting>),
    /// Settings with too few runs for a claim.
    FewRuns(Vec<NamedSetting>),
    /// A control differs from what it repeats by this factor.
    ControlDiffers(Vec<NamedSetting>, f64),
    /// Outliers, which are not removed.
    Outliers(usize, Vec<NamedSetting>),
    /// The hypervisor took this share of the CPU time.
    Stolen(f64),
    /// Other processes used this many CPUs.
    Busy(f64),
    /// Settings with both cold and warm runs.
    MixedCaches(Vec<NamedSetting>),
    /// Settings with runs shorter than [`SHORT_S`].
    Short(Vec<NamedSetting>),
    /// The lab's sampling used this share of one CPU.
    Overhead(f64),
    /// The data has this scale.
    Scale(f64),
    /// Something that the campaign left out, as recorded.
    LeftOut(String),
}

/// Caveats, most serious first.
pub(super) fn caveats(view: &ResultsView<'_>, analysis: &Analysis) -> Vec<Caveat> {
    let named = |wrap: fn(Vec<NamedSetting>) -> Caveat, has: &dyn Fn(&CellSummary) -> bool| {
        let ids = analysis.cells.iter().filter(|of| has(of)).map(|of| of.cell);
        Some(names(view, ids)).filter(|names| !names.is_empty()).map(wrap)
    };
    let few = |most: usize| move |of: &CellSummary| of.runs > 0 && of.runs < most;
    let found = [
        failed_runs(view, analysis),
        without_runs(view, analysis),
        work_done(view),
        not_whole(view),
        named(Caveat::OneRun, &few(2)).or_else(|| named(Caveat::FewRuns, &few(PAIRS_MIN))),
        control_differs(view, analysis),
        outliers(view, analysis),
        stolen(analysis),
        busy(view, analysis),
        mixed_caches(view),
        named(Caveat::Short, &|of| of.wall_s.is_some_and(|wall| wall.mid < SHORT_S)),
        overhead(view),
        scale(view),
    ];
    let left_out = view.results.header.left_out.iter().cloned().map(Caveat::LeftOut);
    found.into_iter().flatten().chain(left_out).collect()
}

/// Names of cells; a control has the name of what it repeats.
fn names(view: &ResultsView<'_>, ids: impl IntoIterator<Item = u32>) -> Vec<NamedSetting> {
    let cells = ids.into_iter().filter_map(|id| view.cell(id));
    crate::distinct(cells.map(NamedSetting::of))
}

/// Problem of the first of some cells.
fn problem(of: &[&CellSummary]) -> String {
    let why = of.iter().find_map(|of| of.problems.first());
    why.map_or(String::new(), |why| why.trim_end_matches('.').to_owned())
}

fn failed_runs(view: &ResultsView<'_>, analysis: &Analysis) -> Option<Caveat> {
    let has = |of: &&CellSummary| of.failed > 0 && of.runs > 0;
    let of: Vec<&CellSummary> = analysis.cells.iter().filter(has).collect();
    (!of.is_empty()).then(|| Caveat::Failed {
        runs: of.iter().map(|of| of.failed).sum(),
        settings: names(view, of.iter().map(|of| of.cell)),
        why: problem(&of),
    })
}

fn without_runs(view: &ResultsView<'_>, analysis: &Analysis) -> Option<Caveat> {
    let of: Vec<&CellSummary> = analysis.cells.iter().filter(|of| of.runs == 0).collect();
    let settings = names(view, of.iter().map(|of| of.cell));
    (!settings.is_empty()).then(|| Caveat::WithoutRuns(settings, problem(&of)))
}

fn work_done(view: &ResultsView<'_>) -> Option<Caveat> {
    let done = |cell: &&Cell| {
        let is_same = |other: u32| {
            other == cell.id || view.cell(other).and_then(|other| other.control_of) == Some(cell.id)
        };
        let runs = view.results.runs.iter().filter(|run| run.ok && is_same(run.cell));
        let mut runs: Vec<_> = runs.collect();
        runs.sort_by_key(|run| (run.block, run.place));
        let [first, second, ..] = runs[..] else { return None };
        let (before, after) = match (first.written_bytes, second.written_bytes) {
            (Some(before), Some(after)) => (before, after),
            _ => (first.write_bytes, second.write_bytes),
        };
        let is_idle = before >= WRITTEN_BYTES_MIN && after < before / IDLE_FACTOR;
        is_idle.then_some((cell.id, before, after))
    };
    let found: Vec<(u32, u64, u64)> = view.settings().filter_map(|cell| done(&cell)).collect();
    let (_, before, after) = *found.first()?;
    let settings = names(view, found.iter().map(|(id, ..)| *id));
    Some(Caveat::WorkDone { settings, before, after })
}

fn not_whole(view: &ResultsView<'_>) -> Option<Caveat> {
    match view.results.end.as_ref().map(|end| end.reason.as_str()) {
        Some("stopped") => Some(Caveat::Stopped),
        Some("budget") => Some(Caveat::OutOfTime),
        Some(_) => None,
        None => Some(Caveat::Unfinished),
    }
}

fn control_differs(view: &ResultsView<'_>, analysis: &Analysis) -> Option<Caveat> {
    let differs = |claim: SpeedClaim| matches!(claim, SpeedClaim::Faster | SpeedClaim::Slower);
    let differ: Vec<_> = analysis.controls.iter().filter(|of| differs(of.ratio.claim)).collect();
    let by = differ.first()?.ratio.ratio.mid;
    Some(Caveat::ControlDiffers(names(view, differ.iter().map(|of| of.a)), by))
}

fn outliers(view: &ResultsView<'_>, analysis: &Analysis) -> Option<Caveat> {
    let of: Vec<_> = analysis.cells.iter().filter(|of| !of.outliers.is_empty()).collect();
    let count: usize = of.iter().map(|of| of.outliers.len()).sum();
    (count > 0).then(|| Caveat::Outliers(count, names(view, of.iter().map(|of| of.cell))))
}

fn stolen(analysis: &Analysis) -> Option<Caveat> {
    let shares = analysis.cells.iter().filter_map(|of| of.load.get("steal_percent").copied());
    let most = shares.reduce(f64::max)?;
    (most >= 5.0).then_some(Caveat::Stolen(most / 100.0))
}

/// CPUs that other processes used: total use minus that of the runs. Work that a run causes in another process
/// (a server on this machine) counts as well.
fn busy(view: &ResultsView<'_>, analysis: &Analysis) -> Option<Caveat> {
    let cpus = view.results.header.machine.cpus_online as f64;
    let others = analysis.cells.iter().filter_map(|of| {
        let wall_s = of.wall_s?.mid;
        let all = of.load.get("cpu_percent")? / 100.0 * cpus;
        Some(all - (of.user_s + of.sys_s) / wall_s)
    });
    let others: Vec<f64> = others.filter(|cpus| cpus.is_finite()).collect();
    let middle = statistics::median(&others).filter(|used| *used >= 0.25 * cpus.max(1.0))?;
    Some(Caveat::Busy(middle))
}

fn mixed_caches(view: &ResultsView<'_>) -> Option<Caveat> {
    let mixed = view.cells.iter().filter(|cell| {
        let runs = view.runs(cell.id);
        let shares = || runs.iter().filter_map(|run| run.cached);
        shares().any(|share| share >= 0.9) && shares().any(|share| share <= 0.1)
    });
    let found = names(view, mixed.map(|cell| cell.id));
    (!found.is_empty()).then_some(Caveat::MixedCaches(found))
}

fn overhead(view: &ResultsView<'_>) -> Option<Caveat> {
    let share = view.results.end.as_ref()?.overhead;
    (share > OVERHEAD_MAX).then_some(Caveat::Overhead(share))
}

fn scale(view: &ResultsView<'_>) -> Option<Caveat> {
    let scale = view.results.header.scale;
    (scale > 0.0 && (scale - 1.0).abs() > 1e-9).then_some(Caveat::Scale(scale))
}
