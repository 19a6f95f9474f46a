//! `hakobu cluster status`: one screen, live where it is a terminal.

use super::collect::{RunProblem, problems, shown_shards};
use super::{RunArguments, STATUS, VERSION, parse_run, report_error};
use crate::commands::tool::end_with;
use crate::exit;
use crate::number::{Digits, things};
use crate::show::output;
use crate::textfile::Gauges;
use hakobu_cluster::folder::{self, RunError, RunFolder};
use hakobu_cluster::heartbeat::{self, Heartbeat, SeenWorker, WorkerState};
use hakobu_cluster::plan::{COLLECTED, ClusterPlan, Phase, REPORT, shown_number};
use hakobu_cluster::ranges::{PlanWatch, PlannedTotals};
use hakobu_cluster::results::{RunResults, RunVerdict, ShardSums, WorkerShare};
use hakobu_core::error::quoted;
use hakobu_core::language::Language;
use hakobu_core::number::grouped;
use hakobu_transfer::journal;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

/// Time between two looks.
const REFRESH: Duration = Duration::from_secs(2);

/// Runs the subcommand.
pub fn run(arguments: &[OsString]) -> Result<u8, u8> {
    let RunArguments { args, run, .. } = parse_run(&STATUS, arguments, exit::USAGE)?;
    let failed = |why: RunError| {
        report_error(why);
        exit::FAILURE
    };
    let opened = folder::open(&run, &args.settings(), false);
    let folder = opened.map_err(failed)?;
    let plan = ClusterPlan::read(&*folder, VERSION).map_err(failed)?;
    let live = std::io::stdout().is_terminal() && !args.json && !args.once;
    let mut watch = Watch::new(plan);
    loop {
        let now = watch.look(&*folder).map_err(failed)?;
        if let Some(path) = &args.textfile {
            write_textfile(path, &now).map_err(|message| end_with(exit::FAILURE, &message))?;
        }
        if args.json {
            output::line(&now);
            return Ok(exit::OK);
        }
        let text = screen(&now, args.language);
        match live {
            // Home, and clear what is below.
            true => output::text(&format!("\x1b[H\x1b[J{text}")),
            false => output::text(&text),
        }
        if !live || now.is_over() {
            return Ok(exit::OK);
        }
        std::thread::sleep(REFRESH);
    }
}

/// A run that is looked at now and then.
struct Watch {
    plan: ClusterPlan,
    planned: PlanWatch,
    results: RunResults,
    verified: Option<(Phase, RunResults)>,
}

/// A run at one moment.
#[derive(Serialize)]
struct ClusterState {
    event: &'static str,
    schema: u32,
    run: String,
    collected: bool,
    /// Exit code of the collect that ended.
    exit_code: Option<u64>,
    /// Shards that are known; all of them when every range was listed.
    shards: u64,
    ranges: u32,
    ranges_listed: u32,
    planned_entries: u64,
    planned_bytes: u64,
    done: ShardSums,
    /// Names that are still to be transferred by collect, as workers could not.
    failed_now: u64,
    /// Entries done, those of shards in hand included.
    entries_now: u64,
    /// Bytes of the plan that are done, those of shards in hand included.
    bytes_now: u64,
    /// Part of the plan that is done, by bytes, or by names where it has no bytes.
    progress: f64,
    /// Bytes a second of all workers that are alive, of late.
    bytes_per_s: f64,
    /// Seconds until the plan is done at this rate; none where ranges are still to be listed.
    left_s: Option<f64>,
    workers_lost: u64,
    workers: Vec<SeenWorker>,
    /// The process that collects, or did.
    collectors: Vec<SeenWorker>,
    /// Verdict on each worker that has one.
    verdicts: BTreeMap<String, RunVerdict>,
    /// Verdict on all of them.
    verdict: Option<RunVerdict>,
    /// The verification, where one was begun.
    verified: Option<ShardSums>,
    problems: Vec<RunProblem>,
    damaged: Vec<(String, String)>,
}

impl Watch {
    fn new(plan: ClusterPlan) -> Watch {
        let results = RunResults::of(&Phase::Transfer);
        Watch { plan, planned: PlanWatch::new(), results, verified: None }
    }

    fn look(&mut self, folder: &dyn RunFolder) -> Result<ClusterState, RunError> {
        let Watch { plan, planned, results, verified } = self;
        let PlannedTotals { ranges, ranges_listed, shards, entries, bytes, .. } =
            planned.update(folder, plan)?;
        results.update(folder)?;
        let verifying = Phase::current_verification(folder)?;
        if verified.as_ref().map(|(phase, _)| phase) != verifying.as_ref() {
            *verified = verifying.map(|phase| (phase.clone(), RunResults::of(&phase)));
        }
        if let Some((_, proven)) = verified {
            proven.update(folder)?;
        }
        let (collectors, workers): (Vec<_>, Vec<_>) =
            heartbeat::see_all(folder)?.into_iter().partition(|seen| seen.beat.collects);
        let shares = results.shares();
        let report = folder.read(REPORT)?;
        let report = report.and_then(|report| serde_json::from_slice::<Value>(&report).ok());
        let exit_code = report.and_then(|report| report.get("exit_code")?.as_u64());
        // What workers have in hand is not in results yet.
        let in_hand = |of: fn(&Heartbeat) -> u64, done: fn(&WorkerShare) -> u64| -> u64 {
            let alive = workers.iter().filter(|worker| worker.is_alive());
            let ahead = alive.map(|SeenWorker { beat, .. }| {
                of(beat).saturating_sub(shares.get(&beat.worker).map_or(0, done))
            });
            ahead.sum()
        };
        let is_verified = verified.is_some();
        let (bytes_ahead, entries_ahead) = match is_verified {
            true => (0, 0),
            false => (
                in_hand(|beat| beat.bytes, |share| share.sums.bytes),
                in_hand(|beat| beat.entries, |share| share.sums.entries),
            ),
        };
        let failed_now =
            if exit_code == Some(u64::from(exit::OK)) { 0 } else { results.sums.failed };
        let bytes_now = (results.sums.planned_bytes + bytes_ahead).min(bytes);
        let entries_now = (results.sums.entries - results.sums.failed.min(results.sums.entries)
            + entries_ahead)
            .min(entries);
        let part = |done: u64, all: u64| done as f64 / all as f64;
        let listed = if ranges == 0 { 1.0 } else { part(ranges_listed.into(), ranges.into()) };
        let progress = listed
            * match (bytes, entries) {
                (0, 0) => 1.0,
                (0, all) => part(entries_now, all),
                (all, _) => part(bytes_now, all),
            };
        let alive = workers.iter().chain(&collectors).filter(|worker| worker.is_alive());
        let bytes_per_s: f64 = alive.map(|worker| worker.beat.bytes_per_s).sum();
        let left = bytes.saturating_sub(bytes_now) as f64;
        let is_known = ranges_listed == ranges && bytes_per_s > 0.0 && !is_verified;
        let verdicts = shares
            .iter()
            .filter_map(|(worker, share)| Some((worker.clone(), share.verdict.clone()?)));
        Ok(ClusterState {
            event: "cluster-status",
            schema: 2,
            run: plan.id.clone(),
            collected: folder.read(COLLECTED)?.is_some(),
            exit_code,
            shards,
            ranges,
            ranges_listed,
            planned_entries: entries,
            planned_bytes: bytes,
            done: results.sums,
            failed_now,
            entries_now,
            bytes_now,
            progress,
            bytes_per_s,
            left_s: is_known.then(|| left / bytes_per_s),
            workers_lost: workers.iter().filter(|worker| worker.lost).count() as u64,
            verdicts: verdicts.collect(),
            workers,
            collectors,
            verdict: results.verdict(),
            verified: verified.as_ref().map(|(_, proven)| proven.sums),
            problems: {
                let proven = verified.as_ref().map(|(_, proven)| problems(proven));
                [problems(results), proven.unwrap_or_default()].concat()
            },
            damaged: {
                let proven = verified.as_ref().map(|(_, proven)| shown_shards(&proven.damaged));
                [shown_shards(&results.damaged), proven.unwrap_or_default()].concat()
            },
        })
    }
}

impl ClusterState {
    fn is_over(&self) -> bool {
        match &self.verified {
            Some(verified) => verified.shards >= self.shards,
            None => {
                self.collected
                    || (self.ranges_listed == self.ranges && self.done.shards >= self.shards)
            }
        }
    }
}

/// What a worker does, in a few words.
fn doing(worker: &SeenWorker) -> String {
    let SeenWorker { beat, silent_s, lost } = worker;
    let Heartbeat { pid, .. } = beat;
    if *lost {
        let job = beat.job.as_ref().map(|job| format!(", {job}")).unwrap_or_default();
        return format!("lost: silent for {silent_s:.0} s (pid {pid}{job})");
    }
    match (beat.state, beat.shard, beat.range) {
        (WorkerState::Ended, ..) => {
            let why = beat.message.as_deref().map(|why| format!(": {why}"));
            format!("ended{}", why.unwrap_or_default())
        }
        (WorkerState::Waiting, ..) => "waits for others".to_owned(),
        _ if beat.collects => "collects".to_owned(),
        (_, Some(shard), _) if beat.verifies => format!("verifies shard {}", shown_number(shard)),
        (_, Some(shard), _) => format!("shard {}", shown_number(shard)),
        (_, None, Some(range)) if beat.looks => format!("looks at range {range} again"),
        (_, None, Some(range)) => format!("lists range {range}"),
        (_, None, None) => "between shards".to_owned(),
    }
}

fn screen(now: &ClusterState, language: Language) -> String {
    let digits = Digits::default();
    let mut out = String::new();
    if now.ranges > 0 && now.ranges_listed < now.ranges {
        let (listed, all) = (now.ranges_listed, things(now.ranges.into(), "range"));
        out.push_str(&format!("{listed} of {all} listed; so far "));
    }
    out.push_str(&format!(
        "{} of {}, {} of {}, {} of {} bytes ({:.0}%)\n",
        grouped(now.done.shards),
        things(now.shards, "shard"),
        grouped(now.entries_now),
        things(now.planned_entries, "name"),
        digits.size(now.bytes_now),
        digits.size(now.planned_bytes),
        now.progress * 100.0,
    ));
    if now.collected {
        let code = now.exit_code.map(|code| format!(" (exit code {code})")).unwrap_or_default();
        out.push_str(&format!("the run was collected{code}\n"));
    }
    if let Some(ShardSums { shards, files, bytes, differences, .. }) = now.verified {
        out.push_str(&format!(
            "verified {shards} of {}, {}, {} bytes: {differences} differ\n",
            things(now.shards, "shard"),
            things(files, "name"),
            digits.size(bytes)
        ));
    }
    if now.bytes_per_s > 0.0 {
        let rate = digits.size(now.bytes_per_s as u64);
        let left = now.left_s.map(|left_s| format!(", about {left_s:.0} s left"));
        out.push_str(&format!("{rate}/s{}\n", left.unwrap_or_default()));
    }
    for worker in now.workers.iter().chain(&now.collectors) {
        let beat = &worker.beat;
        let verdict = now.verdicts.get(&beat.worker).filter(|verdict| verdict.is_known());
        let words = language.pick("limited by", "ボトルネック:");
        let limited = verdict.map(|verdict| format!("; {words} {}", verdict.words(language)));
        let limited = limited.filter(|_| !worker.lost).unwrap_or_default();
        let rate = if worker.is_alive() { beat.bytes_per_s as u64 } else { 0 };
        out.push_str(&format!(
            "{:<20} {:>7}  {:>10} {:>9}/s  {}{limited}\n",
            beat.host,
            things(beat.shards, "shard"),
            digits.size(beat.bytes),
            digits.size(rate),
            doing(worker),
        ));
    }
    if now.failed_now > 0 {
        out.push_str(&format!("{} could not be transferred\n", things(now.failed_now, "name")));
    }
    for (what, count, first) in &now.problems {
        let first = String::from_utf8_lossy(&journal::bytes(first)).into_owned();
        out.push_str(&format!("{what}: {} ({})\n", things(*count, "name"), quoted(first)));
    }
    for (number, why) in &now.damaged {
        out.push_str(&format!("shard {number} cannot be used: {why}\n"));
    }
    out
}

/// Writes metrics in Prometheus' text format: beside its place, then renamed, as the exporter asks.
fn write_textfile(path: &OsStr, now: &ClusterState) -> Result<(), String> {
    let ShardSums { shards, bytes, redone, .. } = now.done;
    let verified = now.verified.unwrap_or_default();
    let alive = now.workers.iter().filter(|worker| worker.is_alive()).count() as u64;
    let metrics = [
        ("ranges", "Ranges of names of the plan.", now.ranges.into()),
        ("ranges_listed", "Ranges that were listed.", now.ranges_listed.into()),
        ("shards", "Shards of the plan, as far as ranges were listed.", now.shards),
        ("shards_done", "Shards that are done.", shards),
        ("shards_redone", "Shards that were done at the second attempt.", redone),
        ("entries", "Entries of the plan, as far as ranges were listed.", now.planned_entries),
        ("entries_done", "Entries that are done.", now.entries_now),
        ("entries_failed", "Entries that could not be transferred.", now.failed_now),
        ("bytes", "Bytes of the plan, as far as ranges were listed.", now.planned_bytes),
        ("bytes_done", "Bytes moved by shards that are done.", bytes),
        ("bytes_now", "Bytes of the plan that are done, with shards in hand.", now.bytes_now),
        ("bytes_per_second", "Rate of all workers, of late.", now.bytes_per_s as u64),
        ("workers", "Workers that are alive.", alive),
        ("workers_lost", "Workers that gave no sign of life for too long.", now.workers_lost),
        ("shards_verified", "Shards that were verified.", verified.shards),
        ("entries_differ", "Entries that differ at both ends.", verified.differences),
    ];
    let mut gauges = Gauges::new(&[("run", &now.run)]);
    for (name, help, value) in metrics {
        gauges.add(&format!("hakobu_cluster_{name}"), help, value as f64);
    }
    gauges.write(Path::new(path))
}
