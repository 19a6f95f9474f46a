//! Analysis against numbers that are known: published ones, and machines whose truth was made up.

mod compare;
mod fits;
mod knees;
mod languages;
mod limits;
mod odd;
mod proofs;
mod stats;
mod studies;
mod whole;
mod words;

use crate::results::{Cell, DataSet, End, Header, Machine, Results, Run, SCHEMA};

/// An empty campaign on a machine with two CPUs.
fn campaign() -> Results {
    let machine =
        Machine { name: "two".to_owned(), cpus: 2.0, cpus_online: 2, ..Machine::default() };
    let data = DataSet { name: "data".into(), files: 2000, bytes: 8_192_000, ..DataSet::default() };
    let header = Header {
        schema: SCHEMA,
        name: "test".to_owned(),
        seed: 7,
        scale: 1.0,
        x_name: Some("jobs".to_owned()),
        metric: "wall_s".to_owned(),
        machine,
        data: vec![data],
        ..Header::default()
    };
    let end = End { reason: "done".to_owned(), took_s: 60.0, overhead: 0.001 };
    Results { header, end: Some(end), ..Results::default() }
}

/// Adds a cell and gives its number.
fn cell(to: &mut Results, group: &str, series: &str, x: Option<f64>) -> u32 {
    let id = to.header.cells.len() as u32;
    let mut cell = Cell {
        id,
        group: group.to_owned(),
        series: series.to_owned(),
        x,
        data: "data".to_owned(),
        own: series == "hakobu",
        ..Cell::default()
    };
    let name = to.header.x_name.clone().unwrap_or_default();
    cell.parameters.extend(x.map(|x| (name, x.to_string())));
    to.header.cells.push(cell);
    id
}

/// Adds a run in its own block: real, user, sys.
fn run(to: &mut Results, cell: u32, (wall_s, user_s, sys_s): (f64, f64, f64)) {
    let block = to.runs.iter().filter(|run| run.cell == cell).count() as u32;
    to.runs.push(Run { cell, block, ok: true, wall_s, user_s, sys_s, ..Run::default() });
}

/// Adds a run with a metric of its own.
fn run_with(to: &mut Results, cell: u32, metric: &str, value: f64) {
    run(to, cell, (10.0, 1.0, 1.0));
    if let Some(last) = to.runs.last_mut() {
        last.metrics.insert(metric.to_owned(), value);
    }
}

/// Nearly normal, with a deviation of 1: the sum of twelve.
fn normal(random: &mut fastrand::Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

fn near(a: f64, b: f64, relative: f64) -> bool {
    (a - b).abs() <= relative * b.abs()
}
