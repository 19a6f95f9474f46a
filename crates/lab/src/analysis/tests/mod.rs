//! Tests of the analysis with published numbers and simulated machines.

mod compare;
mod limits;
mod odd;
mod statistics;
mod studies;
mod whole;

use crate::results::{CampaignEnd, Cell, DataSet, Results, ResultsHeader, Run, SCHEMA};
use hakobu_core::unit::Machine;
use hakobu_explain::verdict::{
    About, BusiestCpu, Ceiling, Direction, DiskFacts, Facts, NetworkFacts, Point,
};

/// An empty campaign on a machine with two CPUs.
fn campaign() -> Results {
    let machine =
        Machine { name: "two".to_owned(), cpus: 2.0, cpus_online: 2, ..Machine::default() };
    let data = DataSet { name: "data".into(), files: 2000, bytes: 8_192_000, ..DataSet::default() };
    let header = ResultsHeader {
        schema: SCHEMA,
        name: "test".to_owned(),
        seed: 7,
        scale: 1.0,
        x_name: Some("jobs".to_owned()),
        metric: "wall_s".to_owned(),
        machine,
        data: vec![data],
        ..ResultsHeader::default()
    };
    let end = CampaignEnd { reason: "done".to_owned(), took_s: 60.0, overhead: 0.001 };
    Results { header, end: Some(end), ..Results::default() }
}

/// Adds a cell and returns its id.
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

/// Adds a run with another metric.
fn run_with(to: &mut Results, cell: u32, metric: &str, value: f64) {
    run(to, cell, (10.0, 1.0, 1.0));
    if let Some(last) = to.runs.last_mut() {
        last.metrics.insert(metric.to_owned(), value);
    }
}

/// Approximately normal with a deviation of 1: the sum of twelve uniform numbers.
fn normal(random: &mut fastrand::Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

fn near(a: f64, b: f64, relative: f64) -> bool {
    (a - b).abs() <= relative * b.abs()
}

/// Load values of a cell. Shares are 0 to 1.
#[derive(Clone, Copy, Debug, Default)]
struct Signals {
    cpus: f64,
    used: f64,
    jobs: Option<f64>,
    machine: Option<f64>,
    busiest: Option<f64>,
    iowait: Option<f64>,
    disk_busy: Option<f64>,
    disk_iops: Option<f64>,
    disk_bytes_per_s: Option<f64>,
    net_bytes_per_s: Option<f64>,
    iops_limit: Option<f64>,
    bandwidth_limit: Option<f64>,
    /// Gain of rate per gain of jobs, from half as many jobs to this number.
    before: Option<f64>,
    /// The same from this number to twice as many.
    after: Option<f64>,
}

impl Signals {
    fn facts(&self) -> Facts {
        let ceiling = |operations, limit: Option<f64>, reached: Option<f64>| {
            Some(Ceiling {
                operations,
                direction: Direction::Both,
                limit: limit?,
                reached: reached?,
                from: "",
            })
        };
        let ceilings = [
            ceiling(true, self.iops_limit, self.disk_iops),
            ceiling(false, self.bandwidth_limit, self.disk_bytes_per_s),
        ];
        let disk = DiskFacts {
            busy: self.disk_busy.unwrap_or(0.0),
            read_iops: self.disk_iops.unwrap_or(0.0),
            read_bytes_per_s: self.disk_bytes_per_s.unwrap_or(0.0),
            ceilings: ceilings.into_iter().flatten().collect(),
            ..DiskFacts::default()
        };
        let jobs = self.jobs.unwrap_or(1.0);
        let step = |gain: Option<f64>, jobs: f64, sign: f64| {
            gain.map(|gain| Point { jobs, rate: (sign * gain).exp2() })
        };
        let now = Some(Point { jobs, rate: 1.0 });
        let curve = [step(self.before, jobs / 2.0, -1.0), now, step(self.after, 2.0 * jobs, 1.0)];
        Facts {
            about: About::Cell,
            cpus: self.cpus,
            cpu_used: self.used,
            machine_used: self.machine.map(|share| share * self.cpus),
            machine_cpus: Some(self.cpus),
            busiest_cpu: self.busiest.map(|used| BusiestCpu { number: None, used }),
            iowait: self.iowait.map(|share| share * self.cpus),
            disks: self.disk_iops.map(|_| disk).into_iter().collect(),
            network: self.net_bytes_per_s.map(|bytes_per_s| NetworkFacts {
                bytes_per_s,
                link_bytes_per_s: self.bandwidth_limit,
                ..NetworkFacts::default()
            }),
            jobs: self.jobs.unwrap_or(0.0),
            curve: curve.into_iter().flatten().collect(),
            ..Facts::default()
        }
    }
}
