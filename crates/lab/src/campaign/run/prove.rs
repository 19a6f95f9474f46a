//! Counter-experiments: one resource is changed at the most important cells. Runs with and without the change
//! alternate, so that both runs of a pair see the same conditions.

use crate::analysis::{Analysis, analyse};
use crate::campaign::run::{CampaignError, CampaignEvent, CampaignSession, SessionOptions, order};
use crate::campaign::{CampaignPlan, PlannedCell, RunAction, RunCheck, ServerPlan, run};
use crate::results::read::{ReadError, read};
use crate::results::{Cell, CounterExperiment, Results, ResultsLine, Run};
use std::collections::BTreeSet;
use std::path::Path;

/// Pairs of runs per experiment.
const PAIRS: u32 = 5;
/// First block number of experiments, beyond those of the campaign.
const BLOCKS_FROM: u32 = 1 << 24;

/// A change of one resource.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ExperimentPlan {
    /// Cell, resource, factor and description, without ratios.
    experiment: CounterExperiment,
    /// The changed cell.
    planned: PlannedCell,
    /// Servers to use meanwhile, if they change.
    servers: Option<Vec<ServerPlan>>,
}

/// Experiments that remain to be made.
pub(super) fn remaining_experiments(
    plan: &CampaignPlan,
    how: &SessionOptions,
    folder: &Path,
) -> Result<Vec<ExperimentPlan>, ReadError> {
    let results = read(folder)?;
    let mut found = Vec::new();
    for cell in cells(&results, &analyse(&results)) {
        let Some(planned) = plan.cells.iter().find(|planned| planned.cell.id == cell) else {
            continue;
        };
        found.extend(changes(plan, planned, how));
    }
    found.retain(|change| {
        let (cell, changed) = (change.experiment.cell, &change.experiment.changed);
        !results.experiments.iter().any(|made| made.cell == cell && made.changed == *changed)
    });
    Ok(found)
}

/// Most important cells: in the first group, the knee of each swept tool and the only cell of the others.
/// Other groups are experiments themselves.
fn cells(results: &Results, analysis: &Analysis) -> Vec<u32> {
    let cells = &results.header.cells;
    let Some(group) = cells.first().map(|cell| &cell.group) else { return Vec::new() };
    let worked = |id: u32| results.runs.iter().any(|run| run.cell == id && run.ok && !run.warmup);
    let mut swept = BTreeSet::new();
    let mut found = Vec::new();
    for sweep in analysis.sweeps.iter().filter(|sweep| sweep.group == *group) {
        let Some(knee) = &sweep.knee else { continue };
        swept.extend(sweep.cells.iter().copied());
        let at_knee = |cell: &&Cell| sweep.cells.contains(&cell.id) && cell.x == Some(knee.x);
        found.extend(cells.iter().find(at_knee).map(|cell| cell.id));
    }
    let alone = cells.iter().filter(|cell| {
        cell.group == *group && cell.control_of.is_none() && !swept.contains(&cell.id)
    });
    found.extend(alone.map(|cell| cell.id));
    found.retain(|id| worked(*id));
    found
}

/// Changes that are possible at a cell.
fn changes(
    plan: &CampaignPlan,
    planned: &PlannedCell,
    how: &SessionOptions,
) -> Vec<ExperimentPlan> {
    let change = |changed: &str, about: String, factor: f64, planned: PlannedCell| ExperimentPlan {
        experiment: CounterExperiment {
            cell: planned.cell.id,
            changed: changed.to_owned(),
            about,
            factor,
            ratios: Vec::new(),
        },
        planned,
        servers: None,
    };
    let mut found = Vec::new();
    let cpus = planned.launch.cpus.map_or(how.cpus, |cpus| cpus.min(how.cpus));
    if cpus > 1 {
        let half = cpus / 2;
        let mut other = planned.clone();
        other.launch.cpus = Some(half);
        let factor = half as f64 / cpus as f64;
        found.push(change("cpus", format!("cpus {cpus} → {half}"), factor, other));
    }
    for (resource, limit) in disk_limits(planned) {
        let half = limit / 2;
        let Some(disk) = &planned.disk else { continue };
        let begin = match resource {
            "iops" => disk.throttle.begin(Some(half), None),
            _ => disk.throttle.begin(None, Some(half)),
        };
        let mut other = planned.clone();
        // After the cell's own limits, so that these override them and are removed together.
        other.prepare.extend(begin.into_iter().map(RunAction::Shell));
        let unit = if resource == "iops" { "" } else { " bytes/s" };
        let about = format!("{resource} {limit} → {half}{unit}");
        found.push(change(resource, about, half as f64 / limit as f64, other));
    }
    if let (Some(here), Some(there)) = (&planned.endpoint, &plan.other_endpoint)
        && here != there
        && planned.names_endpoint()
    {
        let about = format!("endpoint {here} → {there}");
        found.push(change("endpoint", about, 1.0, planned.at(there)));
    }
    let used = |server: &ServerPlan| {
        let texts = planned.launch.argv.iter().chain(planned.launch.env.values());
        let mut texts = texts.chain(std::iter::once(&planned.cell.command));
        !server.listen.is_empty() && texts.any(|text| text.contains(&server.listen))
    };
    for (at, server) in plan.servers.iter().enumerate().filter(|(_, server)| used(server)) {
        let with = |other: ServerPlan| {
            let mut servers = plan.servers.clone();
            servers[at] = other;
            Some(servers)
        };
        if let Some(rate) = server.bandwidth_bytes_per_s.filter(|rate| *rate > 1) {
            let half = ServerPlan { bandwidth_bytes_per_s: Some(rate / 2), ..server.clone() };
            let about = format!("bandwidth {rate} → {} bytes/s", rate / 2);
            let change = change("bandwidth", about, 0.5, planned.clone());
            found.push(ExperimentPlan { servers: with(half), ..change });
        }
        if !server.latency.is_zero() {
            let twice = ServerPlan { latency: server.latency * 2, ..server.clone() };
            let ms = |server: &ServerPlan| server.latency.as_secs_f64() * 1e3;
            let about = format!("latency {} → {} ms", ms(server), ms(&twice));
            let change = change("latency", about, 2.0, planned.clone());
            found.push(ExperimentPlan { servers: with(twice), ..change });
        }
    }
    if let Some(other) = without_target(planned) {
        found.push(change("sink", "the target → null: (nothing is written)".into(), 1.0, other));
    }
    found
}

/// Disk limits of a cell that can be halved.
fn disk_limits(planned: &PlannedCell) -> Vec<(&'static str, u64)> {
    let Some(disk) = &planned.disk else { return Vec::new() };
    let both = [("iops", disk.iops), ("bandwidth", disk.bandwidth_bytes_per_s)];
    let both = both.into_iter().filter_map(|(name, limit)| Some((name, limit?)));
    both.filter(|(_, limit)| *limit > 1).collect()
}

/// Folder that a cell writes to.
fn target(planned: &PlannedCell) -> Option<&Path> {
    match &planned.check {
        RunCheck::Tree { target, .. } | RunCheck::Count { target, .. } => Some(target),
        RunCheck::Exit => None,
    }
}

/// hakobu's own cell with `null:` as its target; `None` if the target is not a separate word of the command.
fn without_target(planned: &PlannedCell) -> Option<PlannedCell> {
    let target = target(planned).filter(|_| planned.cell.own)?.to_str()?;
    let mut other = planned.clone();
    let is_target = |word: &String| {
        !target.is_empty() && word.trim_end_matches('/') == target.trim_end_matches('/')
    };
    let word = other.launch.argv.iter_mut().rev().find(|word| is_target(word))?;
    "null:".clone_into(word);
    // Nothing is written.
    other.check = RunCheck::Exit;
    Some(other)
}

impl CampaignSession<'_> {
    /// Makes an experiment and records it; false if a stop came first.
    pub(super) fn experiment(&mut self, change: ExperimentPlan) -> Result<bool, CampaignError> {
        let ExperimentPlan { mut experiment, planned, servers } = change;
        let plan = self.plan;
        let Some(unchanged) = plan.cells.iter().find(|own| own.cell.id == experiment.cell) else {
            return Ok(true);
        };
        (self.report)(CampaignEvent::Experiment {
            cell: &unchanged.cell,
            about: &experiment.about,
        });
        let speed = |run: &Run| {
            let value = order::value(plan, run).filter(|value| *value > 0.0)?;
            Some(if plan.header.more_is_better { value } else { 1.0 / value })
        };
        for pair in 0..PAIRS {
            // Alternate which run is first, so that drift cancels.
            let mut speeds = [None, None];
            for which in if pair % 2 == 0 { [0, 1] } else { [1, 0] } {
                if self.bench.is_stopped() {
                    return Ok(false);
                }
                let other_servers = servers.as_deref().filter(|_| which == 1);
                if let Some(servers) = other_servers {
                    self.exchange(servers)?;
                }
                let planned = if which == 1 { &planned } else { unchanged };
                let block = BLOCKS_FROM + pair;
                let run = Run { cell: experiment.cell, block, ..Run::default() };
                let number = run::iteration(&run, BLOCKS_FROM);
                let made = run::run_once(planned, run, plan.repeat.seed, number, self.bench);
                if other_servers.is_some() {
                    self.exchange(&plan.servers)?;
                }
                let Some(done) = made else { return Ok(false) };
                speeds[which] = speed(&done.run);
            }
            if let [Some(unchanged), Some(changed)] = speeds {
                experiment.ratios.push(changed / unchanged);
            }
        }
        self.store.append(&ResultsLine::Experiment(experiment))?;
        Ok(true)
    }

    /// Replaces the running servers.
    fn exchange(&mut self, servers: &[ServerPlan]) -> Result<(), CampaignError> {
        self.bench.end_servers();
        self.serve(servers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::throttle::DiskThrottle;
    use crate::campaign::{DiskLimits, Launch};
    use std::time::Duration;

    fn described(
        plan: &CampaignPlan,
        planned: &PlannedCell,
        cpus: usize,
    ) -> Vec<(String, f64, String)> {
        let how = SessionOptions { prove: true, cpus };
        let found = changes(plan, planned, &how).into_iter().map(|change| change.experiment);
        found.map(|made| (made.changed, made.factor, made.about)).collect()
    }

    #[test]
    fn what_can_be_changed_is() {
        let mut planned = PlannedCell {
            cell: Cell {
                own: true,
                command: "hakobu sync s/ 127.0.0.1:4000".into(),
                ..Cell::default()
            },
            launch: Launch {
                argv: ["hakobu", "sync", "/s/", "/t/"].map(str::to_owned).to_vec(),
                ..Launch::default()
            },
            check: RunCheck::Tree { source: "/s".into(), target: "/t".into(), compare: 1 },
            ..PlannedCell::default()
        };
        let server = ServerPlan {
            label: "s3".into(),
            listen: "127.0.0.1:4000".into(),
            bandwidth_bytes_per_s: Some(1000),
            latency: Duration::from_millis(5),
            ..ServerPlan::default()
        };
        let other = ServerPlan { listen: "127.0.0.1:5000".into(), ..server.clone() };
        let plan = CampaignPlan { servers: vec![server, other], ..CampaignPlan::default() };
        let text =
            |changed: &str, factor, about: &str| (changed.to_owned(), factor, about.to_owned());
        assert_eq!(
            described(&plan, &planned, 3),
            [
                text("cpus", 1.0 / 3.0, "cpus 3 → 1"),
                text("bandwidth", 0.5, "bandwidth 1000 → 500 bytes/s"),
                text("latency", 2.0, "latency 5 → 10 ms"),
                text("sink", 1.0, "the target → null: (nothing is written)"),
            ]
        );
        let sink = without_target(&planned).unwrap();
        assert_eq!(sink.launch.argv.last().unwrap(), "null:");
        assert_eq!(sink.check, RunCheck::Exit);
        planned.cell.own = false;
        planned.launch.cpus = Some(1);
        planned.cell.command = "cp".into();
        assert_eq!(described(&plan, &planned, 3), []);
    }

    #[test]
    fn limits_of_a_disk_are_halved_one_at_a_time() {
        let throttle = DiskThrottle::of_group("8:0", "/g");
        let disk = |iops, bandwidth_bytes_per_s| {
            Some(DiskLimits { throttle: throttle.clone(), iops, bandwidth_bytes_per_s })
        };
        let mut planned =
            PlannedCell { disk: disk(Some(3001), Some(1_000_000)), ..PlannedCell::default() };
        planned.prepare = vec![RunAction::Shell("limits of the cell".into())];
        let how = SessionOptions { prove: true, cpus: 1 };
        let found = changes(&CampaignPlan::default(), &planned, &how);
        let about: Vec<&str> = found.iter().map(|of| of.experiment.about.as_str()).collect();
        assert_eq!(about, ["iops 3001 → 1500", "bandwidth 1000000 → 500000 bytes/s"]);
        assert_eq!(found[1].experiment.factor, 0.5);
        let shell = |file: &str, rate| {
            RunAction::Shell(format!("echo '8:0 {rate}' > /g/blkio.throttle.{file}_device"))
        };
        assert_eq!(
            found[0].planned.prepare[1..],
            ["read_iops", "write_iops"].map(|of| shell(of, 1500))
        );
        // The cell's own limits stay: its commands come first.
        assert_eq!(found[1].planned.prepare[0], planned.prepare[0]);
        assert_eq!(
            found[1].planned.prepare[1..],
            ["read_bps", "write_bps"].map(|of| shell(of, 500_000))
        );
        for nothing in [None, disk(None, None), disk(Some(1), Some(1))] {
            planned.disk = nothing;
            assert!(changes(&CampaignPlan::default(), &planned, &how).is_empty());
        }
    }

    #[test]
    fn another_endpoint_takes_the_place_of_the_first_everywhere() {
        let (here, there) = ("https://a.example", "http://b.example:9000");
        let mut planned = PlannedCell { endpoint: Some(here.into()), ..PlannedCell::default() };
        planned.launch.argv = vec!["up".into(), format!("--endpoint-url={here}")];
        planned.prepare = vec![RunAction::Sync, RunAction::Shell(format!("rm {here}"))];
        planned.conclude = vec![format!("verify {here}")];
        let plan = CampaignPlan { other_endpoint: Some(there.into()), ..CampaignPlan::default() };
        let how = SessionOptions { prove: true, cpus: 1 };
        let found = changes(&plan, &planned, &how);
        let [change] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(change.experiment.changed, "endpoint");
        assert_eq!(change.experiment.about, format!("endpoint {here} → {there}"));
        let other = &change.planned;
        assert_eq!(other.launch.argv[1], format!("--endpoint-url={there}"));
        assert_eq!(other.prepare[1], RunAction::Shell(format!("rm {there}")));
        assert_eq!(other.conclude, [format!("verify {there}")]);
        // Not if commands do not name the endpoint, and not to the same endpoint.
        let same = CampaignPlan { other_endpoint: Some(here.into()), ..CampaignPlan::default() };
        assert!(changes(&same, &planned, &how).is_empty());
        planned.launch.argv.truncate(1);
        assert!(changes(&plan, &planned, &how).is_empty());
    }
}
