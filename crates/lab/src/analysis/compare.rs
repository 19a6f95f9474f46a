//! Compares the results of several machines or settings, cell by cell and conclusion by conclusion.

use crate::analysis::caveats::Caveat;
use crate::analysis::prices::Prices;
use crate::analysis::ranking::lead;
use crate::analysis::statistics::{SpeedRatio, mean, unpaired_ratio};
use crate::analysis::sweeps::others;
use crate::analysis::verdict::too_noisy;
use crate::analysis::view::ResultsView;
use crate::analysis::{Analysis, Interval, Sweep, analyse, prices};
use crate::distinct;
use crate::results::{Cell, Results};
use hakobu_explain::verdict::{Level, Resource};
use std::collections::{BTreeMap, BTreeSet};

/// Comparison of two or more results, cell by cell.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct ResultsComparison {
    /// Names of the results: given by the user, else those of their machines.
    pub names: Vec<String>,
    /// Metric of the first result; results with another metric have no sides.
    pub metric: String,
    /// True if higher values of the metric are better.
    pub more_is_better: bool,
    /// Name of the swept number.
    pub x_name: Option<String>,
    /// Cells of any of the results.
    pub rows: Vec<ComparedRow>,
    /// Conclusions of each result, and whether they agree.
    #[serde(skip)]
    pub changes: Vec<ConclusionChange>,
    /// Costs, where a price is known.
    #[serde(skip)]
    pub costs: Vec<MachineCost>,
    /// Best result for each need.
    #[serde(skip)]
    pub best: Vec<BestResult>,
    /// Caveats.
    #[serde(skip)]
    pub caveats: Vec<ComparisonCaveat>,
}

/// One cell across all results.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct ComparedRow {
    /// Group; empty if each result has only one.
    pub group: String,
    /// Tool.
    pub series: String,
    /// Value of the swept number.
    pub x: Option<f64>,
    /// Other parameters.
    pub parameters: BTreeMap<String, String>,
    /// One per result; `None` if it has no such cell, or no run of it that counts.
    pub sides: Vec<Option<ComparedCell>>,
}

/// A cell of one result.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct ComparedCell {
    /// Id of the cell in that result.
    pub cell: u32,
    /// Number of runs that count.
    pub runs: usize,
    /// Median of the metric with interval.
    pub value: Interval,
    /// Mean of the metric, for comparison with published studies.
    pub mean: f64,
    /// Speed relative to the first result, from resampling both: runs of two machines share no blocks. `None`
    /// for the first result.
    pub ratio: Option<SpeedRatio>,
}

/// Kind of a conclusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConclusionKind {
    /// The best tool of a group.
    BestTool,
    /// The knee of a sweep.
    Knee,
    /// The bottleneck at the knee.
    Bottleneck,
    /// The number with which the rating of the machine is reached.
    Rating,
}

/// A conclusion of one result.
#[derive(Clone, Debug, PartialEq)]
pub enum Conclusion {
    /// Any of these tools.
    Tools(Vec<String>),
    /// The knee; true if it is at the end of the sweep.
    Knee(f64, bool),
    /// The bottleneck.
    Bottleneck(Resource, Level),
    /// The rating is reached with this number.
    Reached(f64),
    /// The rating is not reached.
    NotReached,
}

/// One conclusion, as drawn from each result.
#[derive(Clone, Debug, PartialEq)]
pub struct ConclusionChange {
    /// What it is about.
    pub kind: ConclusionKind,
    /// Group or sweep that it refers to; empty if there is only one.
    pub of: String,
    /// Conclusion of each result; `None` if it has none.
    pub said: Vec<Option<Conclusion>>,
    /// True if the known conclusions differ.
    pub differs: bool,
}

/// Source of a cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CostBasis {
    /// Measured.
    #[default]
    Measured,
    /// Rated operations per second.
    Rated,
    /// Rated reads per second.
    RatedReads,
    /// Rated writes per second.
    RatedWrites,
    /// Rated bytes per second.
    RatedThroughput,
}

/// Cost of some work on a machine, in the currency of its price.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct MachineCost {
    /// Name of the result.
    pub name: String,
    /// Group; empty if each result has only one, and for ratings.
    pub group: String,
    /// Tool; empty for a rating.
    #[serde(skip)]
    pub series: String,
    /// Where it comes from.
    #[serde(skip)]
    pub basis: CostBasis,
    /// Price per hour.
    pub per_hour: f64,
    /// Operations per second, if counted.
    pub iops: Option<f64>,
    /// Price per hour ÷ operations per second × 10⁶.
    pub per_1m_iops: Option<f64>,
    /// Price per million operations.
    pub per_million_ios: Option<f64>,
    /// Price per 10⁹ bytes moved.
    pub per_gb: Option<f64>,
    /// Price per million files moved.
    pub per_million_files: Option<f64>,
}

/// What a result can be best for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuyerNeed {
    /// Speed.
    Fastest,
    /// Price of operations per second.
    PerMillionIops,
    /// Price of bytes.
    PerGigabyte,
    /// Price of files.
    PerMillionFiles,
}

/// Best result for one need.
#[derive(Clone, Debug, PartialEq)]
pub struct BestResult {
    /// The need.
    pub need: BuyerNeed,
    /// Group and line that it refers to; empty where there is only one.
    pub kind: (String, String),
    /// Whether it is about ratings.
    pub basis: CostBasis,
    /// Name of the result, and of the runner-up.
    pub name: String,
    /// The runner-up.
    pub next: String,
    /// Their numbers: the metric, or the price.
    pub values: (f64, f64),
    /// Tool with which the price is reached; empty where it is not a choice.
    pub series: String,
    /// How many times as good.
    pub factor: f64,
    /// True if the difference to the runner-up is significant; for prices, if it is more than 2 %.
    pub clear: bool,
}

/// A reason to distrust a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum ComparisonCaveat {
    /// No setting was measured in two results.
    NothingShared,
    /// A result, by its place, in which differences below this say nothing.
    Noisy(usize, f64),
    /// A result measures another metric than the first one.
    Metric(String, String),
    /// A result has other data than the first one.
    Data(String, String),
    /// A caveat of results, by their places.
    Of(Vec<usize>, Caveat),
}

/// Compares two or more results cell by cell. Cells match if group, series and parameters are equal; if each
/// result has only one group, its name is ignored.
pub fn compare(results: &[Results], prices: &Prices) -> ResultsComparison {
    let names = match prices.names.len() == results.len() {
        true => prices.names.clone(),
        false => names(results, &[], &[]),
    };
    let parts: Vec<ComparisonPart<'_>> = results
        .iter()
        .zip(&names)
        .map(|(of, name)| {
            let (view, analysis) = (ResultsView::new(of), analyse(of));
            let first =
                results.first().map(|first| (&first.header.metric, first.header.more_is_better));
            let fits = first == Some((&of.header.metric, of.header.more_is_better));
            ComparisonPart { view, analysis, name: name.clone(), fits }
        })
        .collect();
    let Some(first) = results.first() else { return ResultsComparison::default() };
    let one_group = parts.iter().all(|part| part.view.groups().len() <= 1);
    let costs = prices::costs(&parts, prices, one_group);
    let rows = rows(&parts, one_group);
    // Results without a common setting did other work: neither is better.
    let is_alike = rows.iter().any(|row| row.sides.iter().flatten().count() > 1);
    let mut caveats = caveats(&parts);
    if !is_alike {
        caveats.insert(0, ComparisonCaveat::NothingShared);
    }
    ResultsComparison {
        metric: parts.first().map_or(String::new(), |part| part.view.metric().to_owned()),
        more_is_better: first.header.more_is_better,
        x_name: first.header.x_name.clone(),
        rows,
        changes: if is_alike { changes(&parts, prices, one_group) } else { Vec::new() },
        best: if is_alike { prices::best(&parts, &costs, one_group) } else { Vec::new() },
        costs,
        caveats,
        names,
    }
}

/// Names of the results: given by the user (`given`, in the order of results), else the machine, else the folder
/// (`folders`), else the campaign. Duplicates get a number.
pub fn names(results: &[Results], given: &[Option<String>], folders: &[String]) -> Vec<String> {
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
    let folders = called(&|at, _| folders.get(at).cloned().unwrap_or_default());
    let campaigns = called(&|_, of| of.header.name.clone());
    if differ(&machines) {
        machines
    } else if differ(&folders) {
        folders
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
    let ratio = unpaired_ratio(&values, base, part.view.more_is_better(), seed);
    Some(ComparedCell {
        cell: cell.id,
        runs: values.len(),
        value: of.value?,
        mean: mean(&values)?,
        ratio: ratio.filter(|_| compared),
    })
}

fn caveats(parts: &[ComparisonPart<'_>]) -> Vec<ComparisonCaveat> {
    let noise = |(at, part): (usize, &ComparisonPart<'_>)| {
        Some(ComparisonCaveat::Noisy(at, too_noisy(part.analysis.noise)?))
    };
    let mut found: Vec<_> = parts.iter().enumerate().filter_map(noise).collect();
    for part in parts.iter().filter(|part| !part.fits) {
        found.push(ComparisonCaveat::Metric(part.name.clone(), part.view.metric().to_owned()));
    }
    let facts = |part: &ComparisonPart<'_>| {
        let data = &part.view.results.header.data;
        data.iter().map(|of| (of.name.clone(), of.files, of.bytes)).collect::<Vec<_>>()
    };
    if let Some((first, rest)) = parts.split_first() {
        for part in rest.iter().filter(|part| facts(part) != facts(first)) {
            found.push(ComparisonCaveat::Data(part.name.clone(), first.name.clone()));
        }
    }
    for (at, part) in parts.iter().enumerate() {
        for caveat in &part.analysis.caveats {
            let known = found.iter_mut().find_map(|of| match of {
                ComparisonCaveat::Of(places, known) if known == caveat => Some(places),
                _ => None,
            });
            match known {
                Some(places) => places.push(at),
                None => found.push(ComparisonCaveat::Of(vec![at], caveat.clone())),
            }
        }
    }
    found
}

/// One of the compared results.
pub(super) struct ComparisonPart<'a> {
    pub view: ResultsView<'a>,
    pub analysis: Analysis,
    pub name: String,
    /// True if its metric is that of the first result.
    pub fits: bool,
}

impl ComparisonPart<'_> {
    /// Differences up to this do not count.
    pub(super) fn noise(&self) -> f64 {
        too_noisy(self.analysis.noise).unwrap_or(0.0)
    }
}

/// Read/write pattern of a cell as fio names it, from its parameters or name; `None` if unknown.
pub(super) fn pattern(cell: &Cell) -> Option<String> {
    let said = cell.parameters.get("rw").or(cell.parameters.get("readwrite"));
    let pattern = said.unwrap_or(&cell.series).to_ascii_lowercase();
    let is_one = said.is_some() || pattern.contains("read") || pattern.contains("write");
    is_one.then_some(pattern)
}

/// True if the lines of a group are kinds of work (reads, writes) rather than ways to do the same work.
pub(super) fn are_kinds(part: &ComparisonPart<'_>, group: &str) -> bool {
    let cells = part.view.settings().filter(|cell| cell.group == group);
    let patterns: BTreeSet<Option<String>> = cells.map(pattern).collect();
    part.view.more_is_better() && patterns.len() > 1
}

/// Prefix of a sentence about a cell or sweep: `small, rsync`.
pub(super) fn of(group: &str, series: &str, one_group: bool) -> String {
    match (one_group || group.is_empty(), series.is_empty()) {
        (true, _) => series.to_owned(),
        (false, true) => group.to_owned(),
        (false, false) => format!("{group}, {series}"),
    }
}

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
        changes.push(rated_limit(parts, prices, &group, &series, one_group));
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
        let lead = lead(&part.view, &part.analysis.cells, group, part.noise())?;
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
    let common = common.unwrap_or_default();
    let differs = known.len() > 1 && common.is_empty();
    // Of those that agree, what they agree on.
    let tools = |names: Vec<String>| match differs || known.len() < 2 {
        true => Conclusion::Tools(names),
        false => Conclusion::Tools(common.clone()),
    };
    let said = leads.iter().cloned().map(|names| names.map(tools)).collect();
    ConclusionChange { kind: ConclusionKind::BestTool, of: of(group, "", one_group), said, differs }
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
        Some(Conclusion::Knee(knee.x, knee.at_edge))
    });
    change(ConclusionKind::Knee, of(group, series, one_group), said.collect())
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
        let limiting = of.limiting.is_determined().then_some(&of.limiting)?;
        Some(Conclusion::Bottleneck(limiting.resource, limiting.level))
    });
    let said: Vec<Option<Conclusion>> = at_knee.collect();
    // A resource that is named with another confidence is no difference.
    let resources: BTreeSet<&str> = said
        .iter()
        .flatten()
        .filter_map(|of| match of {
            Conclusion::Bottleneck(resource, _) => Some(resource.name()),
            _ => None,
        })
        .collect();
    let differs = resources.len() > 1;
    let of = of(group, series, one_group);
    ConclusionChange { kind: ConclusionKind::Bottleneck, of, said, differs }
}

/// Fewest jobs that reach the rated operations per second of the machine.
fn rated_limit(
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
        Some(reached.and_then(|cell| cell.x).map_or(Conclusion::NotReached, Conclusion::Reached))
    });
    change(ConclusionKind::Rating, of(group, series, one_group), said.collect())
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

fn change(kind: ConclusionKind, of: String, said: Vec<Option<Conclusion>>) -> ConclusionChange {
    let mut known = said.iter().flatten();
    let first = known.next();
    let differs = known.any(|of| Some(of) != first);
    ConclusionChange { kind, of, said, differs }
}
