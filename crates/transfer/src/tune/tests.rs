//! The tuner on its bench.

use super::sim::{Score, World, best_fixed, score};
use super::*;

struct Cell {
    name: &'static str,
    world: World,
    seed: usize,
    streams: usize,
}

fn cells() -> Vec<Cell> {
    let cell = |name, world, seed| Cell { name, world, seed, streams: 0 };
    vec![
        cell("linear to 2, 20 us", World::linear(20e-6, 2.0), 2),
        cell("linear to 2, 20 us, from 16", World::linear(20e-6, 2.0), 16),
        cell("linear to 4, 200 us, from 2", World::linear(200e-6, 4.0), 2),
        cell("linear to 8, 1 ms, from 2", World::linear(1e-3, 8.0), 2),
        cell("linear to 22, 5 ms, from 32", World::linear(5e-3, 22.0), 32),
        cell("linear to 32, 1 ms, from 4", World::linear(1e-3, 32.0), 4),
        cell("linear to 16, 5 ms, from 32", World::linear(5e-3, 16.0), 32),
        cell("linear to 100, 50 ms, from 32", World::linear(50e-3, 100.0), 32),
        cell("linear to 256, 50 ms, from 32", World::linear(50e-3, 256.0), 32),
        cell("linear to 200, 200 ms, from 32", World::linear(0.2, 200.0), 32),
        cell("linear to 256, 1 s, from 32", World::linear(1.0, 256.0), 32),
        cell("USL peak 3, 50 us, from 2", World::usl(50e-6, 0.1, 3.0), 2),
        cell("USL peak 12, 1 ms, from 4", World::usl(1e-3, 0.05, 12.0), 4),
        cell("USL peak 60, 20 ms, from 32", World::usl(20e-3, 0.01, 60.0), 32),
        cell("rotating, 8 ms, from 1", World::rotating(8e-3), 1),
        cell("rotating, 8 ms, from 4", World::rotating(8e-3), 4),
        cell("best 8 then 32, 2 ms, from 4", World::moving(2e-3, 8.0, 32.0), 4),
        cell("best 32 then 8, 2 ms, from 4", World::moving(2e-3, 32.0, 8.0), 4),
        cell("ten times larger at 0.3 s", World::drifting(2e-3, 16.0, 0.3), 4),
        cell("ten times larger at 3 s", World::drifting(2e-3, 16.0, 3.0), 4),
        cell("collapsing above 64, 20 ms", World::collapsing(20e-3, 48.0, 64.0), 32),
        cell("503 above 40, 20 ms, costs 30 %", World::throttled(20e-3, 2000.0, 0.3), 32),
        cell("503 above 40, 20 ms, costs 0", World::throttled(20e-3, 2000.0, 0.0), 32),
        cell("503 above 10, 50 ms, costs 30 %", World::throttled(50e-3, 200.0, 0.3), 32),
        Cell {
            name: "one object, 48 parts, 50 ms",
            world: World::one_object(50e-3, 48.0),
            seed: 32,
            streams: 8,
        },
    ]
}

const RUNS: u64 = 50;

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn every_curve_is_found() {
    let pick = |scores: &[Score], field: fn(&Score) -> f64| {
        let mut values: Vec<f64> = scores.iter().map(field).collect();
        let median = median(&mut values);
        (median, values)
    };
    println!("{:34} {:>5} late med/worst/share  jobs med/max/share  2s med  10s med", "", "noise");
    for cell in cells() {
        let bounds = Bounds { jobs_max: 256, streams_max: if cell.streams > 0 { 256 } else { 0 } };
        let best = best_fixed(&cell.world, 256);
        let start = (Setting { jobs: cell.seed, streams: cell.streams }, false);
        for noise in [0.0, 0.05, 0.15, 0.30] {
            let runs: Vec<Score> = (0..RUNS)
                .map(|seed| score(&cell.world, noise, seed, start, bounds, best).0)
                .collect();
            let (late, lates) = pick(&runs, |score| score.late);
            let (jobs, all_jobs) = pick(&runs, |score| score.jobs);
            let (two, _) = pick(&runs, |score| score.two);
            let (ten, _) = pick(&runs, |score| score.ten);
            let wanted = if noise > 0.2 { 0.9 } else { 0.95 };
            let share = |values: &[f64], good: &dyn Fn(f64) -> bool| {
                values.iter().filter(|value| good(**value)).count() * 100 / values.len()
            };
            println!(
                "{:34} {:4.0} % {:.3} {:.3} {:3} %   {:.2} {:5.2} {:3} %   {:.3}  {:.3} {}",
                cell.name,
                noise * 100.0,
                late,
                lates[0],
                share(&lates, &|value| value >= wanted),
                jobs,
                all_jobs[all_jobs.len() - 1],
                share(&all_jobs, &|value| value <= 1.5),
                two,
                ten,
                if late < wanted || jobs > 1.5 && noise < 0.2 || two < 0.65 || ten < 0.9 {
                    "<<<"
                } else {
                    ""
                }
            );
        }
    }
}
