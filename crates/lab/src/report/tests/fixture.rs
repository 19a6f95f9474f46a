//! Generated campaigns: plausible, large and hostile ones. Deterministic.

use crate::analysis::analyse;
use crate::report::ReportPart;
use crate::results::{
    CampaignEnd, Cell, CheckedFiles, CounterExperiment, DataSet, LoadCurves, PublishedFigure,
    Results, ResultsHeader, Run, SCHEMA, ToolFingerprint,
};
use hakobu_core::unit::Machine;
use std::collections::BTreeMap;

pub(super) const TOOLS: [&str; 5] = ["hakobu", "rsync", "cp", "fpsync", "xcp"];
pub(super) const JOBS: [f64; 5] = [1.0, 4.0, 8.0, 16.0, 32.0];
const LISTS: [&str; 11] = [
    "own_user",
    "own_system",
    "user",
    "system",
    "iowait",
    "steal",
    "busiest",
    "read",
    "write",
    "iops",
    "net",
];

/// Deterministic random numbers (a linear congruential generator; Knuth, TAOCP 3.3.4).
struct Chance(u64);

impl Chance {
    /// Next number in [0, 1).
    fn next(&mut self) -> f64 {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Parameters of a generated campaign.
pub(super) struct FixtureRecipe {
    pub(super) runs: u32,
    /// Samples of each run.
    pub(super) samples: usize,
    /// Seconds between samples; `None` to spread the samples over the run.
    pub(super) interval_s: Option<f64>,
    /// Factor by which all runs are slower.
    pub(super) slower: f64,
}

pub(super) const PLAUSIBLE: FixtureRecipe =
    FixtureRecipe { runs: 5, samples: 30, interval_s: None, slower: 1.0 };
/// 500 runs of ten seconds, sampled ten times per second.
pub(super) const LARGE: FixtureRecipe =
    FixtureRecipe { runs: 20, samples: 100, interval_s: Some(0.1), slower: 1.0 };

/// Run time of a tool: inversely proportional to jobs until the CPUs are full.
fn seconds(tool: usize, jobs: f64) -> f64 {
    let (one, least) = [(4.0, 0.9), (112.0, 17.1), (60.0, 50.0), (100.0, 20.0), (9.0, 2.0)][tool];
    let rate: f64 = 1.0 / one * jobs;
    1.0 / rate.min(1.0 / least)
}

/// Generates results.
pub(super) fn results(recipe: &FixtureRecipe) -> Results {
    let mut chance = Chance(7);
    let mut cells = Vec::new();
    for (tool, name) in TOOLS.iter().enumerate() {
        for jobs in JOBS {
            cells.push(cell(cells.len(), name, jobs, tool == 0));
        }
    }
    let again = Cell { id: 25, control_of: Some(7), ..cells[7].clone() };
    cells.push(again);
    let (mut runs, mut curves, mut at_s) = (Vec::new(), Vec::new(), 0.0);
    for block in 0..recipe.runs {
        for cell in &cells {
            let tool = TOOLS.iter().position(|tool| *tool == cell.series).unwrap();
            let usual = seconds(tool, cell.x.unwrap()) * recipe.slower;
            let wall_s = usual * (0.97 + 0.06 * chance.next());
            runs.push(run(cell.id, block, at_s, wall_s));
            curves.push(curve(recipe, cell.id, block, wall_s, &mut chance));
            at_s += wall_s + 0.5;
        }
    }
    let experiments = vec![CounterExperiment {
        cell: 8,
        changed: "cpus".into(),
        about: "1 CPU instead of 2".into(),
        factor: 0.5,
        ratios: vec![0.52, 0.51, 0.5, 0.53, 0.52],
    }];
    let end = Some(CampaignEnd { reason: "done".into(), took_s: at_s, overhead: 0.004 });
    Results { header: header(cells), runs, experiments, curves, end }
}

fn cell(id: usize, series: &str, jobs: f64, own: bool) -> Cell {
    let text = |text: &str| text.to_owned();
    Cell {
        id: id as u32,
        group: text("small files"),
        series: text(series),
        x: Some(jobs),
        parameters: BTreeMap::from([(text("jobs"), jobs.to_string())]),
        conditions: BTreeMap::from([(text("iops"), text("3000"))]),
        command: format!("{series} -j {jobs} src/ dst/"),
        data: text("small-2000"),
        control_of: None,
        own,
    }
}

fn header(cells: Vec<Cell>) -> ResultsHeader {
    let tool = |name: &&str| ToolFingerprint {
        name: (*name).to_owned(),
        version: format!("{name} 3.2"),
        path: format!("/usr/bin/{name}"),
        sha256: "5b".repeat(32),
    };
    let figures = [(1.0, 114.78), (4.0, 27.636), (8.0, 18.453), (16.0, 17.16), (32.0, 17.122)];
    let published = figures.map(|(x, value)| PublishedFigure {
        machine: "m5.large".into(),
        series: "rsync".into(),
        group: None,
        x: Some(x),
        value,
    });
    ResultsHeader {
        schema: SCHEMA,
        name: "rsync-parallel".into(),
        title: "rsync under GNU parallel, between two volumes".into(),
        question: "How many jobs are enough, and what limits then?".into(),
        program: "hakobu 0.1.0".into(),
        start: "2026-01-02T03:04:05Z".into(),
        seed: 42,
        scale: 0.5,
        x_name: Some("jobs".into()),
        metric: "wall_s".into(),
        more_is_better: false,
        machine: Machine {
            name: "m5.large".into(),
            kernel: "6.12.1".into(),
            arch: "x86_64".into(),
            cpu_model: Some("Some CPU at 3 GHz".into()),
            cpus: 2.0,
            cpus_online: 2,
            memory_bytes: 8_000_000_000,
            instance_type: None,
            volumes: BTreeMap::from([("dst".into(), "ext4 on an SSD, mq-deadline".into())]),
            limits: vec!["2 CPUs".into()],
        },
        tools: TOOLS.iter().map(tool).collect(),
        data: vec![DataSet {
            name: "small-2000".into(),
            files: 2000,
            bytes: 8_000_000,
            about: "2,000 files of 4 KiB".into(),
        }],
        cells,
        left_out: vec!["cpz: not installed (cargo install cpz)".into()],
        published: published.to_vec(),
        text: "name = \"rsync-parallel\"\n[[tool]]\nname = \"rsync\" # a < b & c\n".into(),
        ..ResultsHeader::default()
    }
}

fn run(cell: u32, block: u32, at_s: f64, wall_s: f64) -> Run {
    let cpu = 0.8 * wall_s;
    Run {
        cell,
        block,
        place: cell,
        at_s,
        ok: true,
        exit_code: Some(0),
        wall_s,
        user_s: cpu * 0.6,
        sys_s: cpu * 0.4,
        rss_bytes_max: 12_000_000,
        write_bytes: 8_000_000,
        voluntary_switches: 900,
        involuntary_switches: 40,
        started: 33,
        cached: Some(1.0),
        checked: Some(CheckedFiles { files: 2000, bytes: 8_000_000, compared: 50 }),
        load: BTreeMap::from([("cpu_percent".into(), 88.0)]),
        ..Run::default()
    }
}

fn curve(
    recipe: &FixtureRecipe,
    cell: u32,
    block: u32,
    wall_s: f64,
    chance: &mut Chance,
) -> LoadCurves {
    let interval_s = recipe.interval_s.unwrap_or(wall_s / recipe.samples as f64);
    let t_s = (1..=recipe.samples).map(|i| i as f64 * interval_s).collect();
    let mut values = BTreeMap::new();
    for name in LISTS {
        let scale = match name {
            "steal" => 0.0,
            "read" | "write" | "net" => 2e8,
            "iops" => 3000.0,
            "busiest" => 100.0,
            _ => 30.0,
        };
        let list = (0..recipe.samples).map(|_| scale * (0.5 + 0.5 * chance.next())).collect();
        values.insert(name.to_owned(), list);
    }
    LoadCurves { cell, block, t_s, values }
}

/// Results with their analysis.
pub(super) fn part(results: Results) -> ReportPart {
    let analysis = analyse(&results);
    ReportPart { results, analysis }
}

/// The campaign of most tests.
pub(super) fn plausible() -> ReportPart {
    part(results(&PLAUSIBLE))
}

/// The same on a machine that is half as fast.
pub(super) fn slower() -> ReportPart {
    let mut results = results(&FixtureRecipe { slower: 2.0, ..PLAUSIBLE });
    results.header.machine.name = "m5.small".into();
    part(results)
}

/// Hostile text.
pub(super) const ODD: &str = "<b>&amp;\"'|`\u{1b}[31m\u{0}</script>--><svg onload=x>\u{202e}";

/// A campaign with hostile text in every foreign field.
pub(super) fn odd() -> ReportPart {
    let mut results = results(&PLAUSIBLE);
    let odd = || ODD.to_owned();
    let header = &mut results.header;
    (header.title, header.question, header.text) = (odd(), odd(), odd());
    header.x_name = Some(odd());
    header.machine.name = odd();
    header.machine.cpu_model = Some(odd());
    header.machine.volumes = BTreeMap::from([(odd(), odd())]);
    header.left_out = vec![odd()];
    for tool in &mut header.tools {
        (tool.name, tool.version, tool.path) = (odd(), odd(), odd());
    }
    for data in &mut header.data {
        (data.name, data.about) = (odd(), odd());
    }
    for cell in &mut header.cells {
        cell.series = format!("{}{ODD}", cell.series);
        cell.group = odd();
        cell.command = odd();
        cell.parameters.insert(odd(), cell.id.to_string());
    }
    for figure in &mut header.published {
        (figure.machine, figure.series) = (odd(), format!("rsync{ODD}"));
    }
    for run in results.runs.iter_mut().step_by(7) {
        (run.ok, run.problem) = (false, Some(odd()));
        run.metrics.insert(odd(), 1.0);
    }
    for experiment in &mut results.experiments {
        (experiment.changed, experiment.about) = (odd(), odd());
    }
    part(results)
}
