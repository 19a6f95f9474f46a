//! Whole campaigns with a simulated clock and machine.

use crate::campaign::data::{DataError, DataRecipe};
use crate::campaign::own_folder::FolderError;
use crate::campaign::run::job::CommandError;
use crate::campaign::run::order::{first_block, runs_max};
use crate::campaign::run::{
    Bench, CampaignError, CampaignOutcome, CheckResult, CommandEnding, Measurement, PrepareError,
    SessionOptions, ended_well, iteration, order, run,
};
use crate::campaign::throttle::DiskThrottle;
use crate::campaign::{
    CampaignPlan, DiskLimits, ExitCodes, Launch, PlannedCell, RepeatRules, RunAction, RunCheck,
    ServerPlan,
};
use crate::results::read::{RUNS_FILE, read};
use crate::results::store::{ResultsStore, StoreError};
use crate::results::{Cell, CheckedFiles, Results, ResultsHeader, Run, SCHEMA};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A simulated machine, on which time passes only while commands run.
#[derive(Default)]
struct FakeBench {
    now_s: f64,
    log: Vec<String>,
    /// Number of ended runs of each command.
    ended: BTreeMap<String, u32>,
    /// Stops while the command with this index is measured, from 0.
    stop_at: Option<usize>,
    measured: usize,
    stopped: bool,
    /// Substrings that make a command, an action or a check fail.
    fails: Vec<&'static str>,
}

impl FakeBench {
    fn fails(&self, what: &str) -> Result<(), CommandError> {
        let (command, ending) = (what.to_owned(), CommandEnding::Exited(9));
        match self.fails.iter().any(|word| what.contains(word)) {
            true => Err(CommandError::Failed { command, ending, said: String::new() }),
            false => Ok(()),
        }
    }
}

impl Bench for FakeBench {
    fn now_s(&self) -> f64 {
        self.now_s
    }

    fn is_stopped(&self) -> bool {
        self.stopped
    }

    fn make(&mut self, recipe: &DataRecipe, folder: &Path) -> Result<(), DataError> {
        self.log.push(format!("make {} {}", recipe.name, folder.display()));
        Ok(())
    }

    fn claim(&mut self, own: &Path) -> Result<(), FolderError> {
        self.log.push(format!("claim {}", own.display()));
        Ok(())
    }

    fn serve(&mut self, server: &ServerPlan) -> Result<(), CommandError> {
        self.log.push(format!("serve {}", server.label));
        self.fails(&server.label)
    }

    fn end_servers(&mut self) {
        self.log.push("end servers".into());
    }

    fn shell(&mut self, command: &str, at_any_rate: bool) -> Result<(), CommandError> {
        self.log.push(command.to_owned());
        assert!(at_any_rate || !self.stopped, "{command}");
        self.fails(command)
    }

    fn prepare(&mut self, action: &RunAction) -> Result<(), PrepareError> {
        self.log.push(format!("{action:?}"));
        Ok(self.fails(&format!("{action:?}"))?)
    }

    fn cached(&mut self, _: &Path) -> Option<f64> {
        self.log.push("cached".into());
        Some(0.25)
    }

    fn measure(&mut self, launch: &Launch) -> Result<Measurement, CommandError> {
        let name = launch.argv.join(" ");
        self.log.push(format!("run {name}"));
        self.fails(&name)?;
        if self.stop_at == Some(self.measured) {
            self.stopped = true;
            self.stop_at = None;
            let costs = Run { wall_s: 0.1, ..Run::default() };
            return Ok(Measurement {
                ending: CommandEnding::Killed(15),
                costs,
                ..Measurement::default()
            });
        }
        self.measured += 1;
        let count = self.ended.entry(name.clone()).or_default();
        *count += 1;
        // Noisy commands vary widely, others hardly.
        let noise = f64::from(*count * 37 % 11) / if name.contains("noisy") { 5.0 } else { 1e4 };
        let wall_s = name.len() as f64 + noise;
        self.now_s += wall_s;
        let ending =
            if name.contains("bad") { CommandEnding::Exited(1) } else { CommandEnding::Exited(0) };
        Ok(Measurement {
            ending,
            costs: Run { wall_s, ..Run::default() },
            lab_cpu_s: wall_s / 200.0,
            curves: (vec![wall_s], BTreeMap::from([("user".to_owned(), vec![50.0])])),
            ..Measurement::default()
        })
    }

    fn check(&mut self, check: &RunCheck, seed: u64) -> CheckResult {
        if *check == RunCheck::Exit {
            return CheckResult::default();
        }
        self.log.push(format!("check {seed}"));
        let checked = Some(CheckedFiles { files: 3, ..CheckedFiles::default() });
        CheckResult { checked, problem: self.fails("check").err().map(String::from) }
    }
}

/// A temporary folder, removed when dropped.
struct TestFolder(PathBuf);

impl TestFolder {
    fn new() -> TestFolder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("hakobu-campaign-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&dir);
        TestFolder(dir)
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn plan(commands: &[&str], repeat: RepeatRules) -> CampaignPlan {
    let cells = commands.iter().enumerate().map(|(at, command)| PlannedCell {
        cell: Cell { id: at as u32, command: (*command).into(), ..Cell::default() },
        launch: Launch { argv: vec![(*command).into()], ..Launch::default() },
        ..PlannedCell::default()
    });
    CampaignPlan {
        header: ResultsHeader {
            name: "made-up".into(),
            metric: "wall_s".into(),
            ..ResultsHeader::default()
        },
        cells: cells.collect(),
        repeat,
        ..CampaignPlan::default()
    }
}

fn repeat(warmup: u32, min: u32, max: u32) -> RepeatRules {
    RepeatRules { warmup, min, max, tight: 0.02, budget: None, seed: 11 }
}

fn header(plan: &CampaignPlan) -> ResultsHeader {
    ResultsHeader {
        schema: SCHEMA,
        seed: plan.repeat.seed,
        cells: plan.cells.iter().map(|planned| planned.cell.clone()).collect(),
        ..plan.header.clone()
    }
}

/// Runs or resumes a campaign.
fn go(
    plan: &CampaignPlan,
    fake: &mut FakeBench,
    dir: &TestFolder,
) -> Result<CampaignOutcome, CampaignError> {
    // Another test's child holds a copy of the lock between fork(2) and execve(2).
    let mut tries = 0;
    let mut store = loop {
        match ResultsStore::open(&dir.0, &header(plan), "later") {
            Err(StoreError::Locked(_)) if tries < 100 => tries += 1,
            other => break other.unwrap(),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    run(plan, &SessionOptions::default(), &mut store, fake, &mut |_| {})
}

fn whole(plan: &CampaignPlan, fake: &mut FakeBench) -> (CampaignOutcome, Results) {
    let dir = TestFolder::new();
    let outcome = go(plan, fake, &dir).unwrap();
    (outcome, read(&dir.0).unwrap())
}

/// Cells in the order of their runs.
fn cells(results: &Results) -> Vec<u32> {
    results.runs.iter().map(|run| run.cell).collect()
}

/// Runs without start times, in which a pause leaves a rounding error.
fn untimed(results: &Results) -> Vec<Run> {
    results.runs.iter().map(|run| Run { at_s: 0.0, ..run.clone() }).collect()
}

#[test]
fn blocks_interleave_in_an_order_of_the_seed() {
    let plan = plan(&["a", "bb", "ccc"], repeat(1, 4, 4));
    let (outcome, results) = whole(&plan, &mut FakeBench::default());
    assert_eq!((outcome.runs, outcome.failed, outcome.end.reason.as_str()), (15, 0, "done"));
    assert_eq!(results.runs.len(), 15);
    for (block, runs) in results.runs.chunks(3).enumerate() {
        let mut cells: Vec<u32> = runs.iter().map(|run| run.cell).collect();
        let order: Vec<u32> =
            order::order(11, block as u32, 3).iter().map(|at| *at as u32).collect();
        assert_eq!(cells, order);
        cells.sort_unstable();
        assert_eq!(cells, [0, 1, 2]);
        for (place, run) in runs.iter().enumerate() {
            assert_eq!((run.block, run.place), (block as u32, place as u32));
            assert_eq!(run.warmup, block == 0);
        }
    }
    assert_eq!(cells(&results), cells(&whole(&plan, &mut FakeBench::default()).1));
    let mut other = plan.clone();
    other.repeat.seed = 12;
    assert_ne!(cells(&results), cells(&whole(&other, &mut FakeBench::default()).1));
    // Each run has curves; the overhead is the lab's CPU time ÷ the measured time.
    assert_eq!(results.curves.len(), 15);
    assert!((results.end.as_ref().unwrap().overhead - 0.005).abs() < 1e-9);
    assert!(results.runs.windows(2).all(|pair| pair[0].at_s < pair[1].at_s));
    assert_eq!(runs_max(&plan), 15);
    assert_eq!(first_block(&plan), cells(&results)[..3]);
}

#[test]
fn enough_is_enough() {
    let quiet = plan(&["a", "bb"], repeat(0, 3, 50));
    let (outcome, results) = whole(&quiet, &mut FakeBench::default());
    assert_eq!(outcome.end.reason, "tight");
    assert!((6..20).contains(&results.runs.len()), "{}", results.runs.len());
    let noisy = plan(&["a", "noisy"], repeat(0, 3, 12));
    let (outcome, results) = whole(&noisy, &mut FakeBench::default());
    assert_eq!(cells(&results).iter().filter(|cell| **cell == 1).count(), 12);
    assert!(cells(&results).iter().filter(|cell| **cell == 0).count() < 12);
    assert_eq!(outcome.end.reason, "tight");
    // No run begins after the budget; a run in progress is finished.
    let mut dear = noisy.clone();
    dear.repeat.budget = Some(Duration::from_secs(20));
    let (outcome, results) = whole(&dear, &mut FakeBench::default());
    assert_eq!(outcome.end.reason, "budget");
    let last = results.runs.last().unwrap();
    assert!(last.at_s < 20.0 && last.at_s + last.wall_s >= 20.0, "{last:?}");
    assert!(outcome.end.took_s >= 20.0);
}

#[test]
fn a_stopped_campaign_goes_on_as_if_nothing_had_been() {
    let mut plan = plan(&["a", "bb", "noisy", "bb"], repeat(1, 3, 9));
    plan.cells[3].cell.control_of = Some(1);
    plan.cells[3].launch.argv = vec!["bb again".into()];
    let (_, wanted) = whole(&plan, &mut FakeBench::default());
    for stop_at in 0..wanted.runs.len() {
        let dir = TestFolder::new();
        let mut fake = FakeBench { stop_at: Some(stop_at), ..FakeBench::default() };
        let outcome = go(&plan, &mut fake, &dir).unwrap();
        assert!(outcome.is_stopped());
        assert_eq!(outcome.runs, stop_at);
        // Later, after a killed process left an incomplete line.
        fake.stopped = false;
        fake.now_s += 1000.0;
        let path = dir.0.join(RUNS_FILE);
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{\"line\":\"run\",\"cell\":0,");
        std::fs::write(&path, text).unwrap();
        let outcome = go(&plan, &mut fake, &dir).unwrap();
        let results = read(&dir.0).unwrap();
        assert_eq!(untimed(&results), untimed(&wanted), "stopped at {stop_at}");
        assert_eq!(results.curves, wanted.curves);
        assert_eq!(outcome.end.reason, wanted.end.as_ref().unwrap().reason);
        assert!((outcome.end.took_s - wanted.end.as_ref().unwrap().took_s).abs() < 1e-6);
        // A complete campaign does nothing more.
        let before = fake.log.len();
        assert_eq!(go(&plan, &mut fake, &dir).unwrap().runs, wanted.runs.len());
        assert_eq!(fake.log.len(), before);
    }
}

#[test]
fn everything_in_its_order() {
    let mut plan = plan(&["a"], repeat(0, 1, 1));
    plan.setup = vec!["setup".into()];
    plan.teardown = vec!["teardown".into()];
    plan.servers = vec![ServerPlan { label: "s3".into(), ..ServerPlan::default() }];
    let cell = &mut plan.cells[0];
    cell.prepare = vec![
        RunAction::Empty { own: "/t".into(), below: "c".into() },
        RunAction::Sync,
        RunAction::Shell("reset".into()),
    ];
    cell.source = Some("/s".into());
    cell.conclude = vec!["conclude".into()];
    cell.check = RunCheck::Count { target: "/t".into(), files: 3, bytes: None };
    let mut fake = FakeBench::default();
    let (_, results) = whole(&plan, &mut fake);
    let seed = fake.log[7].clone();
    assert!(seed.starts_with("check "), "{seed}");
    assert_eq!(
        fake.log,
        [
            "serve s3",
            "setup",
            "Empty { own: \"/t\", below: \"c\" }",
            "Sync",
            "Shell(\"reset\")",
            "cached",
            "run a",
            seed.as_str(),
            "conclude",
            "teardown",
            "end servers"
        ]
        .map(str::to_owned)
    );
    let run = &results.runs[0];
    assert_eq!((run.cached, run.checked.as_ref().unwrap().files), (Some(0.25), 3));
}

#[test]
fn what_fails_is_said_and_the_rest_goes_on() {
    for (fails, problem, launched) in [
        ("Sync", "could not be prepared: 'Sync' ended with exit code 9", false),
        ("check", "'check' ended with exit code 9", true),
        ("conclude", "what follows the run failed: 'conclude' ended with exit code 9", true),
        ("good", "'good' ended with exit code 9", true),
    ] {
        let mut plan = plan(&["good", "other"], repeat(0, 2, 2));
        plan.cells[0].prepare = vec![RunAction::Sync];
        plan.cells[0].check = RunCheck::Count { target: "/t".into(), files: 3, bytes: None };
        plan.cells[0].conclude = vec!["conclude".into()];
        let mut fake = FakeBench { fails: vec![fails], ..FakeBench::default() };
        let (outcome, results) = whole(&plan, &mut fake);
        assert_eq!((outcome.runs, outcome.failed), (4, 2), "{fails}");
        for run in &results.runs {
            assert_eq!(run.ok, run.cell == 1);
            let wanted = (run.cell == 0).then(|| problem.to_owned());
            assert_eq!(run.problem, wanted, "{fails}");
        }
        assert_eq!(fake.log.contains(&"run good".to_owned()), launched);
        assert!(fake.log.contains(&"conclude".to_owned()), "{:?}", fake.log);
    }
    // A command that always fails is given up.
    let plan = plan(&["bad", "a"], repeat(0, 10, 10));
    let (outcome, results) = whole(&plan, &mut FakeBench::default());
    assert_eq!((outcome.failed, results.runs.len()), (3, 13));
}

#[test]
fn a_setup_that_fails_ends_it_and_is_cleared_away() {
    for (fails, said) in [
        ("setup", "setup: 'setup' ended with exit code 9"),
        ("s3", "server 's3': 's3' ended with exit code 9"),
    ] {
        let mut plan = plan(&["a"], repeat(0, 1, 1));
        plan.setup = vec!["setup".into()];
        plan.teardown = vec!["teardown".into()];
        plan.servers = vec![ServerPlan { label: "s3".into(), ..ServerPlan::default() }];
        let mut fake = FakeBench { fails: vec![fails], ..FakeBench::default() };
        assert_eq!(go(&plan, &mut fake, &TestFolder::new()).unwrap_err().to_string(), said);
        let end: Vec<&str> = fake.log.iter().rev().take(2).map(String::as_str).collect();
        assert_eq!(end, ["end servers", "teardown"]);
    }
}

// Counter-experiments on the simulated machine.

#[test]
fn experiments_are_made_in_pairs_and_once() {
    let mut plan = plan(&["a"], repeat(0, 3, 3));
    let server = ServerPlan {
        label: "s3".into(),
        listen: "127.0.0.1:4000".into(),
        latency: Duration::from_millis(1),
        ..ServerPlan::default()
    };
    plan.servers = vec![server];
    plan.cells[0].launch.env.insert("URL".into(), "http://127.0.0.1:4000".into());
    let dir = TestFolder::new();
    let mut fake = FakeBench::default();
    let how = SessionOptions { prove: true, cpus: 4 };
    let go = |fake: &mut FakeBench| {
        let mut store = ResultsStore::open(&dir.0, &header(&plan), "later").unwrap();
        run(&plan, &how, &mut store, fake, &mut |_| {}).unwrap()
    };
    // Stopped in the second pair of the first experiment, which stays incomplete.
    fake.stop_at = Some(6);
    assert!(go(&mut fake).is_stopped());
    assert!(read(&dir.0).unwrap().experiments.is_empty());
    fake.stopped = false;
    fake.log.clear();
    assert_eq!(go(&mut fake).end.reason, "done");
    let experiments = read(&dir.0).unwrap().experiments;
    let found: Vec<_> = experiments
        .iter()
        .map(|made| (made.changed.as_str(), made.factor, made.ratios.len()))
        .collect();
    assert_eq!(found, [("cpus", 0.5, 5), ("latency", 2.0, 5)]);
    assert!(
        experiments.iter().flat_map(|made| &made.ratios).all(|ratio| (ratio - 1.0).abs() < 0.01)
    );
    // Two runs per pair; the server is replaced for each changed run, and restored after it.
    assert_eq!(fake.log.iter().filter(|line| line.starts_with("run ")).count(), 20);
    assert_eq!(fake.log.iter().filter(|line| *line == "serve s3").count(), 1 + 2 * 5);
    let before = fake.log.len();
    go(&mut fake);
    assert_eq!(fake.log.len(), before);
    assert_eq!(read(&dir.0).unwrap().runs.len(), 3);
}

#[test]
fn experiments_with_disks_and_endpoints_leave_the_cell_as_it_was() {
    let mut plan = plan(&["up http://a"], repeat(0, 3, 3));
    plan.other_endpoint = Some("http://longer.example".into());
    let cell = &mut plan.cells[0];
    cell.endpoint = Some("http://a".into());
    let throttle = DiskThrottle::of_group("8:0", "/g");
    let (iops, bandwidth_bytes_per_s) = (None, Some(1000));
    cell.prepare =
        throttle.begin(iops, bandwidth_bytes_per_s).into_iter().map(RunAction::Shell).collect();
    cell.conclude = throttle.end();
    cell.disk = Some(DiskLimits { throttle, iops, bandwidth_bytes_per_s });
    let dir = TestFolder::new();
    let mut fake = FakeBench::default();
    let how = SessionOptions { prove: true, cpus: 1 };
    let mut store = ResultsStore::open(&dir.0, &header(&plan), "later").unwrap();
    run(&plan, &how, &mut store, &mut fake, &mut |_| {}).unwrap();
    let experiments = read(&dir.0).unwrap().experiments;
    let found: Vec<_> = experiments
        .iter()
        .map(|made| (made.changed.as_str(), made.factor, made.ratios.len()))
        .collect();
    assert_eq!(found, [("bandwidth", 0.5, 5), ("endpoint", 1.0, 5)]);
    // The longer command takes longer; speed is the inverse.
    let slower = "up http://a".len() as f64 / "up http://longer.example".len() as f64;
    assert!(experiments[1].ratios.iter().all(|ratio| (ratio - slower).abs() < 0.01));
    let count = |text: &str| fake.log.iter().filter(|line| line.contains(text)).count();
    // Three runs, then pairs: the cell's own limit before each, half of it before five.
    assert_eq!(count("8:0 1000'"), 2 * (3 + 10 + 10));
    assert_eq!(count("8:0 500'"), 2 * 5);
    assert_eq!(count("run up http://longer"), 5);
    // Limits are removed after each run.
    assert_eq!(count("8:0 0'"), 4 * (3 + 10 + 10));
}

#[test]
fn runs_that_count_are_counted_from_zero() {
    let number = |block, warmup| iteration(&Run { block, warmup, ..Run::default() }, 2);
    assert_eq!([number(0, true), number(1, true)], ["warmup-0", "warmup-1"]);
    assert_eq!([number(2, false), number(3, false)], ["0", "1"]);
}

#[test]
fn ends_are_sentences() {
    let launch = Launch { timeout: Some(Duration::from_millis(1500)), ..Launch::default() };
    let ended = |ending, stderr: &str| {
        let stderr = stderr.as_bytes().to_vec();
        ended_well(&launch, &Measurement { ending, stderr, ..Measurement::default() })
    };
    assert_eq!(ended(CommandEnding::Exited(0), "warning"), None);
    let said = ended(CommandEnding::Exited(3), "first\n  no \x1b such file\n\n").unwrap();
    assert_eq!(said, "ended with exit code 3; it said: no   such file");
    assert_eq!(ended(CommandEnding::Killed(9), "").unwrap(), "was killed by signal 9");
    let said = "was stopped by signal 19 and not continued, so it was killed";
    assert_eq!(ended(CommandEnding::Stopped(19), "").unwrap(), said);
    assert_eq!(
        ended(CommandEnding::TimedOut, "").unwrap(),
        "took longer than 1.5 s and was killed"
    );
    for (accepts, code, is_well) in [
        (ExitCodes::Any, 7, true),
        (ExitCodes::Codes(vec![3, 7]), 7, true),
        (ExitCodes::Codes(vec![3, 7]), 0, true),
        (ExitCodes::Codes(vec![3]), 7, false),
    ] {
        let launch = Launch { accepts, ..Launch::default() };
        let measured =
            Measurement { ending: CommandEnding::Exited(code), ..Measurement::default() };
        assert_eq!(ended_well(&launch, &measured).is_none(), is_well, "{launch:?}");
    }
}
