//! What to keep in mind about a campaign's answer.

use super::say::{listed, percent, seconds, things, times};
use super::view::View;
use super::{Analysis, Claim, PAIRS_MIN};

/// Cells that a sentence names before it counts.
const NAMED_MAX: usize = 3;
/// Runs from which on intervals come from the values alone and are not wider than need be.
const RUNS_GOOD: usize = 5;
/// Shorter runs are mostly the start of a process.
const SHORT_S: f64 = 0.1;
/// Of the measured time the lab may take this share.
const OVERHEAD_MAX: f64 = 0.01;

/// Sentences, the gravest first.
pub(super) fn caveats(view: &View<'_>, analysis: &Analysis) -> Vec<String> {
    let said = [
        failed(view, analysis),
        without_runs(view, analysis),
        not_whole(view),
        few(view, analysis),
        controls(view, analysis),
        moved(view, analysis),
        stolen(analysis),
        busy(view, analysis),
        caches(view),
        short(view, analysis),
        overhead(view),
        scale(view),
    ];
    let mut said: Vec<String> = said.into_iter().flatten().collect();
    said.extend(view.results.header.left_out.iter().map(|what| format!("Left out: {what}")));
    said
}

/// The names of some cells, and how many more there are.
fn names(view: &View<'_>, ids: &[u32]) -> String {
    let cells = ids.iter().filter_map(|id| view.cell(*id));
    let mut words: Vec<String> = cells.take(NAMED_MAX).map(|cell| view.name(cell)).collect();
    if ids.len() > words.len() {
        words.push(format!("{} more", ids.len() - words.len()));
    }
    listed(&words, "and")
}

fn failed(view: &View<'_>, analysis: &Analysis) -> Option<String> {
    let of: Vec<_> = analysis.cells.iter().filter(|of| of.failed > 0).collect();
    let count: usize = of.iter().map(|of| of.failed).sum();
    let first = of.first()?;
    let ids: Vec<u32> = of.iter().map(|of| of.cell).collect();
    let why = first.problems.first().map(|why| format!(": {why}")).unwrap_or_default();
    let why = why.trim_end_matches('.');
    Some(format!("{} failed and do not count ({}){why}.", things(count, "run"), names(view, &ids)))
}

fn without_runs(view: &View<'_>, analysis: &Analysis) -> Option<String> {
    let without = analysis.cells.iter().filter(|of| of.runs == 0).map(|of| of.cell);
    let ids: Vec<u32> = without.collect();
    (!ids.is_empty()).then(|| format!("No run that counts: {}.", names(view, &ids)))
}

fn not_whole(view: &View<'_>) -> Option<String> {
    match view.results.end.as_ref().map(|end| end.reason.as_str()) {
        Some("stopped") => Some("The campaign was stopped before its end.".to_owned()),
        Some("budget") => {
            Some("The campaign's time was over before all runs were made.".to_owned())
        }
        Some(_) => None,
        None => Some("The campaign has no end yet: more runs may follow.".to_owned()),
    }
}

fn few(view: &View<'_>, analysis: &Analysis) -> Option<String> {
    let few = |most: usize| -> Vec<u32> {
        let of = analysis.cells.iter().filter(|of| of.runs > 0 && of.runs < most);
        of.map(|of| of.cell).collect()
    };
    let (fewer, single) = (few(PAIRS_MIN), few(2));
    if !single.is_empty() {
        let of = names(view, &single);
        return Some(format!(
            "One run only ({of}): its scatter is unknown, and nothing is claimed."
        ));
    }
    if !fewer.is_empty() {
        let of = names(view, &fewer);
        return Some(format!("Fewer than {PAIRS_MIN} runs ({of}): nothing is claimed of these."));
    }
    let some = few(RUNS_GOOD);
    let count = some.len();
    (count > 0).then(|| {
        let cells = things(count, "cell");
        format!("{cells} with fewer than {RUNS_GOOD} runs: intervals are wide, small differences do not show.")
    })
}

fn controls(view: &View<'_>, analysis: &Analysis) -> Option<String> {
    let differs = |claim: Claim| matches!(claim, Claim::Faster | Claim::Slower);
    let differ: Vec<_> = analysis.controls.iter().filter(|of| differs(of.ratio.claim)).collect();
    if let Some(first) = differ.first() {
        let ids: Vec<u32> = differ.iter().map(|of| of.a).collect();
        return Some(format!(
            "A control differs from what it repeats ({}: {} times as fast): differences of that size \
             may be chance.",
            names(view, &ids),
            times(first.ratio.ratio.mid),
        ));
    }
    let noise = analysis.noise.filter(|noise| *noise > 0.1)?;
    Some(format!(
        "A loud machine: the same tool against itself differs by up to {}.",
        percent(noise)
    ))
}

/// Outliers are flagged, not dropped.
fn moved(view: &View<'_>, analysis: &Analysis) -> Option<String> {
    let of: Vec<_> = analysis.cells.iter().filter(|of| !of.outliers.is_empty()).collect();
    let count: usize = of.iter().map(|of| of.outliers.len()).sum();
    let ids: Vec<u32> = of.iter().map(|of| of.cell).collect();
    (count > 0).then(|| {
        let runs = things(count, "run");
        format!("{runs} far from the others of their cell ({}); they count.", names(view, &ids))
    })
}

fn stolen(analysis: &Analysis) -> Option<String> {
    let most = loads(analysis, "steal_percent").reduce(f64::max)?;
    let share = percent(most / 100.0);
    (most >= 5.0).then(|| format!("A hypervisor took up to {share} of the CPUs away."))
}

/// Others use CPUs: what all processes use, less what the runs do. What a run makes others do (a server
/// on this machine) looks the same.
fn busy(view: &View<'_>, analysis: &Analysis) -> Option<String> {
    let machine = &view.results.header.machine;
    let cpus = machine.cpus_online as f64;
    let others = analysis.cells.iter().filter_map(|of| {
        let wall_s = of.wall_s?.mid;
        let all = of.load.get("cpu_percent")? / 100.0 * cpus;
        Some(all - (of.user_s + of.sys_s) / wall_s)
    });
    let others: Vec<f64> = others.filter(|cpus| cpus.is_finite()).collect();
    let middle = super::median(&others).filter(|used| *used >= 0.25 * cpus.max(1.0))?;
    Some(format!(
        "Beside the runs others used {} CPUs (servers on this machine, the kernel, or something that \
         should not run now).",
        times(middle)
    ))
}

fn loads<'a>(analysis: &'a Analysis, name: &'a str) -> impl Iterator<Item = f64> + 'a {
    analysis.cells.iter().filter_map(move |of| of.load.get(name).copied())
}

/// Cold and warm runs in one cell are two things.
fn caches(view: &View<'_>) -> Option<String> {
    let mixed = view.cells.iter().filter(|cell| {
        let runs = view.runs(cell.id);
        let shares = || runs.iter().filter_map(|run| run.cached);
        shares().any(|share| share >= 0.9) && shares().any(|share| share <= 0.1)
    });
    let ids: Vec<u32> = mixed.map(|cell| cell.id).collect();
    (!ids.is_empty())
        .then(|| format!("Cold and warm runs are mixed in one cell: {}.", names(view, &ids)))
}

fn short(view: &View<'_>, analysis: &Analysis) -> Option<String> {
    let is_short = |wall_s: f64| wall_s < SHORT_S;
    let of = analysis.cells.iter().filter(|of| of.wall_s.is_some_and(|wall| is_short(wall.mid)));
    let ids: Vec<u32> = of.map(|of| of.cell).collect();
    (!ids.is_empty()).then(|| {
        let (of, least) = (names(view, &ids), seconds(SHORT_S));
        format!("Runs shorter than {least} ({of}): mostly the start of a process.")
    })
}

fn overhead(view: &View<'_>) -> Option<String> {
    let share = view.results.end.as_ref()?.overhead;
    (share > OVERHEAD_MAX).then(|| format!("Measuring itself took {} of the time.", percent(share)))
}

fn scale(view: &View<'_>) -> Option<String> {
    let scale = view.results.header.scale;
    (scale > 0.0 && (scale - 1.0).abs() > 1e-9)
        .then(|| format!("Data at {} times the size that is described.", times(scale)))
}
