//! Order of runs: every cell once in each block, shuffled by the seed; and whether cells have enough runs.
//! Pure and deterministic, so that a resumed campaign does the same as an uninterrupted one.

use crate::analysis::statistics::interval;
use crate::campaign::CampaignPlan;
use crate::campaign::random::splitmix;
use crate::results::Run;

/// Failures after which a cell that never succeeded is given up.
const FAILURES_MAX: usize = 3;
/// Fewest values for which an interval is trusted.
const VALUES_MIN: usize = 3;

/// Random numbers of SplitMix64: the order of runs must not change with a library.
#[derive(Clone, Debug)]
pub(super) struct SplitMix64(u64);

impl SplitMix64 {
    /// Generator for a seed and a stream number.
    pub fn new(seed: u64, stream: u64) -> SplitMix64 {
        let mut random = SplitMix64(seed);
        let first = random.draw();
        SplitMix64(first ^ stream.wrapping_mul(0xD1B5_4A32_D192_ED03))
    }

    /// Next 64 bits.
    pub fn draw(&mut self) -> u64 {
        splitmix(&mut self.0)
    }

    /// Uniform number below `end`, which must not be 0.
    pub fn below(&mut self, end: usize) -> usize {
        // The bias is negligible, because `end` is far below 2^64.
        ((u128::from(self.draw()) * end as u128) >> 64) as usize
    }

    /// Shuffles a slice (Fisher and Yates).
    pub fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            things.swap(last, self.below(last + 1));
        }
    }
}

/// Order of a block: positions of cells in the plan.
pub(super) fn order(seed: u64, block: u32, cells: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..cells).collect();
    SplitMix64::new(seed, u64::from(block)).shuffle(&mut order);
    order
}

/// Seed of random choices in one run.
pub(super) fn seed_of(seed: u64, run: &Run) -> u64 {
    SplitMix64::new(seed ^ (u64::from(run.cell) << 32), u64::from(run.block)).draw()
}

/// Ids of cells in the order of the first block.
pub fn first_block(plan: &CampaignPlan) -> Vec<u32> {
    cells_of_block(plan, 0, &[]).into_iter().map(|at| plan.cells[at].cell.id).collect()
}

/// Most runs that there can be, including warm-ups.
pub fn runs_max(plan: &CampaignPlan) -> usize {
    (plan.repeat.warmup as usize).saturating_add(plan.repeat.max as usize) * plan.cells.len()
}

/// True if no run is left to be done.
pub(super) fn is_whole(plan: &CampaignPlan, runs: &[Run]) -> bool {
    for block in 0.. {
        let cells_of_block = cells_of_block(plan, block, runs);
        let is_there = |at: &usize| {
            let id = plan.cells[*at].cell.id;
            runs.iter().any(|run| run.cell == id && run.block == block)
        };
        if cells_of_block.is_empty() {
            break;
        }
        if !cells_of_block.iter().all(is_there) {
            return false;
        }
    }
    true
}

/// Metric of a run. `None` if it failed or did not report it.
pub(super) fn value(plan: &CampaignPlan, run: &Run) -> Option<f64> {
    if !run.ok || run.warmup {
        return None;
    }
    match plan.header.metric.as_str() {
        "" => Some(run.wall_s),
        metric => run.measured(metric),
    }
}

/// Runs of a cell before a block.
struct CellProgress {
    /// Runs without warm-ups, including failed ones.
    measured: usize,
    /// True if it failed too often to be tried again.
    given_up: bool,
    values: Vec<f64>,
}

fn cell_progress(plan: &CampaignPlan, at: usize, block: u32, runs: &[Run]) -> CellProgress {
    let Some(planned) = plan.cells.get(at) else {
        return CellProgress { measured: 0, given_up: true, values: Vec::new() };
    };
    let id = planned.cell.id;
    let own = || runs.iter().filter(|run| run.cell == id && run.block < block);
    let failed = own().filter(|run| !run.ok).count();
    CellProgress {
        measured: own().filter(|run| !run.warmup).count(),
        given_up: failed >= FAILURES_MAX && own().all(|run| !run.ok),
        values: own().filter_map(|run| value(plan, run)).collect(),
    }
}

/// True if half the interval of the median is below this share of it.
fn is_tight(values: &[f64], share: f64) -> bool {
    if values.len() < VALUES_MIN {
        return false;
    }
    interval(values, 0)
        .is_some_and(|found| found.mid > 0.0 && (found.high - found.low) / 2.0 < share * found.mid)
}

/// True if a cell, regardless of its control, needs another run.
fn needs(plan: &CampaignPlan, at: usize, block: u32, runs: &[Run]) -> bool {
    let repeat = &plan.repeat;
    let known = cell_progress(plan, at, block, runs);
    if known.given_up {
        return false;
    }
    if block < repeat.warmup {
        return true;
    }
    let measured = known.measured;
    measured < repeat.min.min(repeat.max) as usize
        || measured < repeat.max as usize && !is_tight(&known.values, repeat.tight)
}

/// Cells that run in a block, in order, given the runs of earlier blocks. A cell and its control stay
/// together, because their runs are compared in pairs.
pub(super) fn cells_of_block(plan: &CampaignPlan, block: u32, runs: &[Run]) -> Vec<usize> {
    let needed: Vec<bool> = (0..plan.cells.len()).map(|at| needs(plan, at, block, runs)).collect();
    let is_given_up = |at: usize| cell_progress(plan, at, block, runs).given_up;
    let joins = |at: usize| {
        let cell = &plan.cells[at].cell;
        let pair = plan.cells.iter().enumerate().filter(|(_, other)| {
            other.cell.control_of == Some(cell.id) || cell.control_of == Some(other.cell.id)
        });
        let most = plan.repeat.warmup + plan.repeat.max;
        needed[at]
            || !is_given_up(at) && block < most && pair.into_iter().any(|(other, _)| needed[other])
    };
    let mut order = order(plan.repeat.seed, block, plan.cells.len());
    order.retain(|at| joins(*at));
    order
}

/// Reason for the end: `tight` if some cell stopped before its maximum without being given up, else `done`.
pub(super) fn reason(plan: &CampaignPlan, runs: &[Run]) -> &'static str {
    let is_short = |at: usize| {
        let known = cell_progress(plan, at, u32::MAX, runs);
        !known.given_up && known.measured < plan.repeat.max as usize
    };
    if (0..plan.cells.len()).any(is_short) { "tight" } else { "done" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::{PlannedCell, RepeatRules};
    use crate::results::Cell;

    fn plan(cells: u32, warmup: u32, min: u32, max: u32) -> CampaignPlan {
        let repeat = RepeatRules { warmup, min, max, tight: 0.05, budget: None, seed: 7 };
        let cell =
            |id| PlannedCell { cell: Cell { id, ..Cell::default() }, ..PlannedCell::default() };
        CampaignPlan { cells: (0..cells).map(cell).collect(), repeat, ..CampaignPlan::default() }
    }

    fn run(cell: u32, block: u32, wall_s: f64, ok: bool) -> Run {
        Run { cell, block, wall_s, ok, ..Run::default() }
    }

    #[test]
    fn orders_are_of_the_seed_and_fair() {
        assert_eq!(order(7, 3, 9), order(7, 3, 9));
        assert_ne!(order(7, 3, 9), order(7, 4, 9));
        assert_ne!(order(7, 3, 9), order(8, 3, 9));
        // A seed must always give these numbers.
        let mut random = SplitMix64(0);
        assert_eq!([random.draw(), random.draw()], [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4]);
        // Each cell is equally often at each position.
        let mut places = [[0u32; 4]; 4];
        for block in 0..4000 {
            for (place, cell) in order(1, block, 4).into_iter().enumerate() {
                places[cell][place] += 1;
            }
        }
        for count in places.into_iter().flatten() {
            assert!((900..1100).contains(&count), "{places:?}");
        }
    }

    #[test]
    fn cells_run_until_they_are_tight() {
        let plan = plan(2, 1, 3, 6);
        let mut runs = Vec::new();
        for block in 0..4 {
            assert_eq!(cells_of_block(&plan, block, &runs).len(), 2, "{block}");
            for (cell, wall_s) in [(0, 1.0 + f64::from(block) / 1000.0), (1, f64::from(block + 1))]
            {
                runs.push(Run { warmup: block == 0, ..run(cell, block, wall_s, true) });
            }
        }
        // Cell 0 has three equal values; cell 1 continues to the maximum.
        for block in 4..7 {
            assert_eq!(cells_of_block(&plan, block, &runs), [1], "{block}");
            runs.push(run(1, block, f64::from(block * 3), true));
        }
        assert!(cells_of_block(&plan, 7, &runs).is_empty());
        assert_eq!(reason(&plan, &runs), "tight");
        // Later runs do not change an earlier block.
        assert_eq!(cells_of_block(&plan, 2, &runs).len(), 2);
    }

    #[test]
    fn controls_stay_with_what_they_repeat() {
        let mut plan = plan(3, 0, 3, 5);
        plan.cells[2].cell.control_of = Some(0);
        let mut runs = Vec::new();
        for block in 0..3 {
            runs.push(run(0, block, 1.0, true));
            runs.push(run(1, block, 1.0, true));
            runs.push(run(2, block, f64::from(block + 1), true));
        }
        let mut took = cells_of_block(&plan, 3, &runs);
        took.sort_unstable();
        assert_eq!(took, [0, 2]);
    }

    #[test]
    fn what_only_fails_is_given_up() {
        let plan = plan(2, 1, 10, 10);
        let mut runs = Vec::new();
        for block in 0..10 {
            let took = cells_of_block(&plan, block, &runs);
            assert_eq!(took.contains(&0), block < 3, "{block}");
            assert!(took.contains(&1));
            for at in took {
                // Cell 1 fails often, but not always.
                runs.push(run(at as u32, block, 1.0, at == 1 && block % 4 == 1));
            }
        }
        runs.push(run(1, 10, 1.0, false));
        runs[0].warmup = true;
        assert_eq!(reason(&plan, &runs), "done");
    }
}
