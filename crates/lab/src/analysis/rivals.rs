//! Comparisons between tools (best cell of each in its group), and the controls.

use super::ratio::{SpeedRatio, paired, unpaired};
use super::view::ResultsView;
use super::{CellSummary, Comparison, PAIRS_MIN, SpeedClaim};
use crate::results::Cell;

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
    let by_blocks = paired(&view.blocks(a), &view.blocks(b), more, seed);
    match by_blocks {
        Some(ratio) if ratio.pairs >= PAIRS_MIN => Some(ratio),
        // Unpaired: drift between blocks then widens the interval.
        _ => unpaired(&view.values(a), &view.values(b), more, seed),
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
    super::median(&halves)
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
