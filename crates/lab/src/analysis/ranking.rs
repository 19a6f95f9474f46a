//! Compares the settings of one campaign: the best cell of each tool in its group, the controls, and every setting with a
//! baseline.

use crate::analysis::statistics::{
    PAIRS_MIN, SpeedClaim, SpeedRatio, paired_ratio, unpaired_ratio,
};
use crate::analysis::view::ResultsView;
use crate::analysis::words::percent;
use crate::analysis::{Analysis, CellSummary, Comparison, Lang, SENTENCES_MAX, statistics, words};
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

/// Reference of comparisons: hakobu's best cell, else that of the first tool.
pub(super) fn reference<'a>(
    view: &ResultsView<'_>,
    bests: &[BestCell<'a>],
) -> Option<BestCell<'a>> {
    let own = bests.iter().filter(|best| best.cell.own);
    let better = |a: &BestCell<'a>, b: &BestCell<'a>| view.is_better(a.value, b.value);
    let best = own.copied().reduce(|best, one| if better(&one, &best) { one } else { best });
    best.or_else(|| bests.first().copied())
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

/// Best cell of each tool against the reference, in each group.
pub(super) fn comparisons(view: &ResultsView<'_>, cells: &[CellSummary]) -> Vec<Comparison> {
    let mut found = Vec::new();
    for group in view.groups() {
        let bests = bests(view, cells, group);
        let Some(reference) = reference(view, &bests) else { continue };
        for best in bests.iter().filter(|best| best.cell.id != reference.cell.id) {
            found.extend(comparison(view, best.cell, reference.cell));
        }
    }
    found
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

/// Finds the leading tool; `None` if no tool has a value.
pub(super) fn lead<'a>(
    view: &ResultsView<'a>,
    cells: &[CellSummary],
    group: &str,
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

/// Baseline of a comparison: a parameter (or the swept number) and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Baseline {
    /// Name of the parameter.
    pub name: String,
    /// Value as written.
    pub value: String,
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
    /// `36 % shorter`.
    pub words: String,
}

impl Baseline {
    /// Parses `NAME=VALUE`, for example `jobs=10`.
    pub fn parse(text: &str) -> Result<Baseline, String> {
        match text.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
                Ok(Baseline { name: name.trim().to_owned(), value: value.trim().to_owned() })
            }
            _ => Err("is not NAME=VALUE, such as jobs=10".to_owned()),
        }
    }

    /// Formats it as `NAME=VALUE`.
    pub fn text(&self) -> String {
        format!("{}={}", self.name, self.value)
    }

    /// Value of this parameter in a cell.
    fn of(&self, cell: &Cell, x_name: Option<&str>) -> Option<String> {
        let x = cell.x.filter(|_| x_name == Some(self.name.as_str())).map(|x| x.to_string());
        cell.parameters.get(&self.name).cloned().or(x)
    }

    fn is(&self, value: &str) -> bool {
        let number = |text: &str| text.parse::<f64>().ok();
        value == self.value || number(value).is_some_and(|one| number(&self.value) == Some(one))
    }
}

impl Analysis {
    /// Compares every setting with the one that has this value and is otherwise equal; adds the largest gain
    /// to the verdict.
    ///
    /// # Errors
    /// No setting has this value; the message lists existing ones.
    pub fn compare_with(
        &mut self,
        results: &Results,
        baseline: &Baseline,
        lang: Lang,
    ) -> Result<(), String> {
        let view = ResultsView::new(results, lang);
        let x_name = results.header.x_name.as_deref();
        let cells = || view.settings();
        let mut bases: BTreeMap<_, u32> = BTreeMap::new();
        for cell in cells() {
            if baseline.of(cell, x_name).is_some_and(|value| baseline.is(&value)) {
                bases.insert(key(cell, baseline), cell.id);
            }
        }
        if bases.is_empty() {
            let known: BTreeSet<String> =
                cells().filter_map(|cell| baseline.of(cell, x_name)).collect();
            let known: Vec<String> = known.into_iter().collect();
            let known = match known.is_empty() {
                true => format!("nothing has a parameter {}", baseline.name),
                false => format!("{} is one of {}", baseline.name, known.join(", ")),
            };
            return Err(format!("--baseline={}: no setting has it; {known}", baseline.text()));
        }
        self.gains = cells()
            .filter_map(|cell| {
                let base = *bases.get(&key(cell, baseline)).filter(|base| **base != cell.id)?;
                let ratio = ratio(&view, cell.id, base)?;
                let words = words(&ratio, view.more_is_better(), lang);
                Some(BaselineGain { cell: cell.id, base, ratio, words })
            })
            .collect();
        let best = self.gains.iter().max_by(|a, b| a.ratio.ratio.mid.total_cmp(&b.ratio.ratio.mid));
        if let Some((gain, cell)) = best.and_then(|gain| Some((gain, view.cell(gain.cell)?))) {
            let (name, base) = (view.name(cell), baseline.text());
            let said = match lang {
                Lang::En => format!("{name}: {} than with {base}.", gain.words),
                Lang::Ja => format!("{name}: {base} より {}。", gain.words),
            };
            self.verdict.insert(1.min(self.verdict.len()), said);
            self.verdict.truncate(SENTENCES_MAX);
        }
        Ok(())
    }
}

/// Key that a cell shares with its baseline.
fn key(cell: &Cell, baseline: &Baseline) -> (String, String, BTreeMap<String, String>) {
    let mut rest = cell.parameters.clone();
    rest.remove(&baseline.name);
    (cell.group.clone(), cell.series.clone(), rest)
}

/// Change of the metric: `36 % shorter`, `2 to 3 times as long`; for rates `40 % more`.
fn words(ratio: &SpeedRatio, more_is_better: bool, lang: Lang) -> String {
    let of = ratio.ratio;
    // For times the metric changes inversely to speed.
    let change = |ratio: f64| if more_is_better { ratio - 1.0 } else { 1.0 / ratio - 1.0 };
    let mid = change(of.mid);
    let ends = [change(of.low), change(of.high)].map(f64::abs);
    let is_point = of.is_point() || (change(of.low) < 0.0) != (change(of.high) < 0.0);
    let span = if is_point {
        String::new()
    } else {
        let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        let span = words::span(&percent(low), &percent(high), lang);
        lang.pick(format!(" ({span})"), format!("（{span}）"))
    };
    let way = match (more_is_better, mid < 0.0) {
        (true, true) => lang.pick("less", "少ない"),
        (true, false) => lang.pick("more", "多い"),
        (false, true) => lang.pick("shorter", "短い"),
        (false, false) => lang.pick("longer", "長い"),
    };
    let noise = match ratio.claim {
        SpeedClaim::Faster | SpeedClaim::Slower => "",
        SpeedClaim::Same | SpeedClaim::Unclear => lang.pick(", within noise", "、誤差の範囲"),
    };
    format!("{} {way}{span}{noise}", percent(mid.abs()))
}
