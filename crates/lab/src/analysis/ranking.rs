//! Compares the settings of one campaign: the best cell of each tool in its group, the controls, and every setting with a
//! baseline.

use crate::analysis::statistics::{
    PAIRS_MIN, SpeedClaim, SpeedRatio, paired_ratio, unpaired_ratio,
};
use crate::analysis::verdict::{FINDINGS_MAX, Finding, NamedSetting, too_noisy};
use crate::analysis::view::ResultsView;
use crate::analysis::{Analysis, CellSummary, Comparison, statistics};
use crate::results::{Cell, Results};
use std::collections::{BTreeMap, BTreeSet};

/// Best cell of a tool in its group.
#[derive(Clone, Copy)]
pub(super) struct BestCell<'a> {
    pub cell: &'a Cell,
    pub value: f64,
}

/// Best cell (by median) of each series of a group, in the order of description, without controls and cells
/// that have no run that counts.
pub(super) fn bests<'a>(
    view: &ResultsView<'a>,
    cells: &[CellSummary],
    group: &str,
) -> Vec<BestCell<'a>> {
    let mut bests: Vec<BestCell<'a>> = Vec::new();
    for cell in view.settings().filter(|cell| cell.group == group) {
        let value = cells.iter().find(|of| of.cell == cell.id).and_then(|of| of.value);
        let Some(value) = value.map(|value| value.mid) else { continue };
        let new = BestCell { cell, value };
        match bests.iter_mut().find(|best| best.cell.series == cell.series) {
            Some(best) if view.is_better(value, best.value) => *best = new,
            Some(_) => {}
            None => bests.push(new),
        }
    }
    bests
}

/// Baseline of a group: the best cell of the named tool, else of the first tool that is not this program, else
/// of the first.
pub(super) fn reference<'a>(bests: &[BestCell<'a>], named: Option<&str>) -> Option<BestCell<'a>> {
    let by = |is: &dyn Fn(&Cell) -> bool| bests.iter().find(|best| is(best.cell)).copied();
    named
        .and_then(|name| by(&|cell| cell.series == name))
        .or_else(|| by(&|cell| !cell.own))
        .or_else(|| bests.first().copied())
}

/// Speed of one cell relative to another: paired by block if enough blocks have both.
pub(super) fn ratio(view: &ResultsView<'_>, a: u32, b: u32) -> Option<SpeedRatio> {
    let (more, seed) = (view.more_is_better(), view.seed(a, b.wrapping_add(3)));
    let by_blocks = paired_ratio(&view.blocks(a), &view.blocks(b), more, seed);
    match by_blocks {
        Some(ratio) if ratio.pairs >= PAIRS_MIN => Some(ratio),
        // Unpaired: drift between blocks then widens the interval.
        _ => unpaired_ratio(&view.values(a), &view.values(b), more, seed),
    }
}

/// In each group: the best cell of each tool against the baseline, and every other setting against it.
pub(super) fn comparisons(
    view: &ResultsView<'_>,
    cells: &[CellSummary],
    baseline: Option<&str>,
) -> (Vec<Comparison>, Vec<Comparison>) {
    let (mut found, mut rest) = (Vec::new(), Vec::new());
    for group in view.groups() {
        let bests = bests(view, cells, group);
        let Some(reference) = reference(&bests, baseline) else { continue };
        let is_best = |cell: &Cell| bests.iter().any(|best| best.cell.id == cell.id);
        let others = view.settings().filter(|cell| cell.group == group);
        for cell in others.filter(|cell| cell.id != reference.cell.id) {
            let to = if is_best(cell) { &mut found } else { &mut rest };
            to.extend(comparison(view, cell, reference.cell));
        }
    }
    (found, rest)
}

fn comparison(view: &ResultsView<'_>, a: &Cell, b: &Cell) -> Option<Comparison> {
    let ratio = ratio(view, a.id, b.id)?;
    Some(Comparison { group: a.group.clone(), a: a.id, b: b.id, ratio })
}

/// Each control against the cell that it repeats.
pub(super) fn controls(view: &ResultsView<'_>) -> Vec<Comparison> {
    let controls = view.cells.iter().filter_map(|cell| {
        let of = view.cell(cell.control_of?)?;
        comparison(view, cell, of)
    });
    controls.collect()
}

/// Median relative half width of the controls' intervals. `None` without a control that has an interval.
pub(super) fn noise(controls: &[Comparison]) -> Option<f64> {
    let wide = controls.iter().filter(|of| of.ratio.pairs >= PAIRS_MIN);
    let halves: Vec<f64> = wide
        .map(|of| (of.ratio.ratio.high / of.ratio.ratio.low).sqrt() - 1.0)
        .filter(|half| half.is_finite())
        .collect();
    statistics::median(&halves)
}

/// Leading tool of a group.
pub(super) struct LeadingTool<'a> {
    pub first: BestCell<'a>,
    /// Tools that the runs cannot distinguish from it.
    pub tied: Vec<BestCell<'a>>,
    /// Best of the others, and the leader's speed relative to it.
    pub next: Option<(BestCell<'a>, SpeedRatio)>,
    /// True if there are too few runs for any claim.
    pub unsure: bool,
}

/// Finds the leading tool; `None` if no tool has a value. Differences of less than `noise` do not count.
pub(super) fn lead<'a>(
    view: &ResultsView<'a>,
    cells: &[CellSummary],
    group: &str,
    noise: f64,
) -> Option<LeadingTool<'a>> {
    let mut bests = bests(view, cells, group);
    bests.sort_by(|a, b| match view.more_is_better() {
        true => b.value.total_cmp(&a.value),
        false => a.value.total_cmp(&b.value),
    });
    let (first, rest) = bests.split_first()?;
    let mut lead = LeadingTool { first: *first, tied: Vec::new(), next: None, unsure: false };
    for best in rest {
        let Some(ratio) = ratio(view, first.cell.id, best.cell.id) else { continue };
        match ratio.claim {
            SpeedClaim::Faster if !ratio.exceeds(noise) => lead.tied.push(*best),
            SpeedClaim::Faster if lead.next.is_none() => lead.next = Some((*best, ratio)),
            SpeedClaim::Faster => {}
            _ => {
                lead.unsure |= ratio.pairs < PAIRS_MIN;
                lead.tied.push(*best);
            }
        }
    }
    Some(lead)
}

// Compares every setting with a baseline, for example `jobs=10`.

/// Baseline of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Baseline {
    /// The best setting of this tool.
    Tool(String),
    /// The setting that has this value of a parameter (or of the swept number), all else equal.
    Value {
        /// Name of the parameter.
        name: String,
        /// Value as written.
        value: String,
    },
}

/// A setting compared with its baseline.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct BaselineGain {
    /// Cell of the setting.
    pub cell: u32,
    /// Cell of the baseline, equal in all other parameters.
    pub base: u32,
    /// Speed relative to the baseline.
    pub ratio: SpeedRatio,
}

impl Baseline {
    /// Parses `NAME=VALUE`, for example `jobs=10`, or the name of a tool.
    pub fn parse(text: &str) -> Result<Baseline, String> {
        match text.split_once('=') {
            _ if text.trim().is_empty() => Err("is empty".to_owned()),
            None => Ok(Baseline::Tool(text.trim().to_owned())),
            Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
                let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
                Ok(Baseline::Value { name, value })
            }
            Some(_) => Err("is neither a tool nor NAME=VALUE, such as jobs=10".to_owned()),
        }
    }

    /// Formats it as typed.
    pub fn text(&self) -> String {
        match self {
            Baseline::Tool(name) => name.clone(),
            Baseline::Value { name, value } => format!("{name}={value}"),
        }
    }
}

/// Value of a parameter of a cell, or of the swept number.
fn value_of(cell: &Cell, name: &str, x_name: Option<&str>) -> Option<String> {
    let x = cell.x.filter(|_| x_name == Some(name)).map(|x| x.to_string());
    cell.parameters.get(name).cloned().or(x)
}

fn is_equal(a: &str, b: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    a == b || number(a).is_some_and(|one| number(b) == Some(one))
}

impl Analysis {
    /// Compares with another baseline. With a value, every setting is compared with the one that has it and is
    /// otherwise equal, and the largest gain is added to the verdict.
    ///
    /// # Errors
    /// No setting is this baseline; the message lists what there is.
    pub fn compare_with(&mut self, results: &Results, baseline: &Baseline) -> Result<(), String> {
        let view = ResultsView::new(results);
        match baseline {
            Baseline::Tool(tool) => {
                let known: BTreeSet<&str> =
                    view.settings().map(|cell| cell.series.as_str()).collect();
                if !known.contains(tool.as_str()) {
                    let known: Vec<&str> = known.into_iter().collect();
                    return Err(format!(
                        "--baseline={tool}: no such tool; there are {}",
                        known.join(", ")
                    ));
                }
                (self.comparisons, self.relative) = comparisons(&view, &self.cells, Some(tool));
                Ok(())
            }
            Baseline::Value { name, value } => self.gains(&view, baseline, (name, value)),
        }
    }

    fn gains(
        &mut self,
        view: &ResultsView<'_>,
        baseline: &Baseline,
        (name, value): (&str, &str),
    ) -> Result<(), String> {
        let x_name = view.results.header.x_name.as_deref();
        let mut bases: BTreeMap<_, u32> = BTreeMap::new();
        for cell in view.settings() {
            if value_of(cell, name, x_name).is_some_and(|of| is_equal(&of, value)) {
                bases.insert(key(cell, name), cell.id);
            }
        }
        if bases.is_empty() {
            let known = view.settings().filter_map(|cell| value_of(cell, name, x_name));
            let known: Vec<String> = known.collect::<BTreeSet<_>>().into_iter().collect();
            let known = match known.is_empty() {
                true => format!("nothing has a parameter {name}"),
                false => format!("{name} is one of {}", known.join(", ")),
            };
            return Err(format!("--baseline={}: no setting has it; {known}", baseline.text()));
        }
        let noise = too_noisy(self.noise);
        let gain = |cell: &Cell| {
            let base = *bases.get(&key(cell, name)).filter(|base| **base != cell.id)?;
            let mut ratio = ratio(view, cell.id, base)?;
            if noise.is_some_and(|noise| !ratio.exceeds(noise)) {
                ratio.claim = SpeedClaim::Unclear;
            }
            Some(BaselineGain { cell: cell.id, base, ratio })
        };
        self.gains = view.settings().filter_map(gain).collect();
        let best = self.gains.iter().max_by(|a, b| a.ratio.ratio.mid.total_cmp(&b.ratio.ratio.mid));
        let best = best.filter(|gain| noise.is_none() || gain.ratio.claim != SpeedClaim::Unclear);
        if let Some((gain, cell)) = best.and_then(|gain| Some((gain, view.cell(gain.cell)?))) {
            let found = Finding::Gain(NamedSetting::of(cell), gain.clone(), baseline.text());
            self.verdict.insert(1.min(self.verdict.len()), found);
            self.verdict.truncate(FINDINGS_MAX);
        }
        Ok(())
    }
}

/// Key that a cell shares with its baseline.
fn key(cell: &Cell, name: &str) -> (String, String, BTreeMap<String, String>) {
    let mut rest = cell.parameters.clone();
    rest.remove(name);
    (cell.group.clone(), cell.series.clone(), rest)
}
