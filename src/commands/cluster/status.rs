//! `hakobu cluster status`: one screen, live where it is a terminal.

use super::collect::{RunProblem, problems};
use super::{RunArguments, VERSION, parse_run, report_error};
use crate::commands::tool::end_with;
use crate::exit;
use crate::files::Target;
use crate::number::{Digits, things};
use crate::show::output;
use hakobu_cluster::folder::{self, RunError, RunFolder};
use hakobu_cluster::heartbeat::{self, Heartbeat, WorkerState};
use hakobu_cluster::plan::{COLLECTED, ClusterPlan, Phase};
use hakobu_cluster::results::{RunResults, RunVerdict, ShardSums};
use hakobu_core::error::quoted;
use hakobu_core::language::Language;
use hakobu_core::number::grouped;
use hakobu_transfer::journal;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time between two looks.
const REFRESH: Duration = Duration::from_secs(2);
/// Minimum time over which a rate is shown.
const RATE_MIN_S: f64 = 0.5;

/// Runs the subcommand.
pub fn run(arguments: &[OsString]) -> Result<u8, u8> {
    let RunArguments { args, run, .. } = parse_run("status", arguments, exit::USAGE)?;
    let failed = |why: RunError| {
        report_error(why);
        exit::FAILURE
    };
    let opened = folder::open(&run, &args.settings(), false);
    let folder = opened.map_err(failed)?;
    let plan = ClusterPlan::read(&*folder, VERSION).map_err(failed)?;
    let live = std::io::stdout().is_terminal() && !args.json && !args.once;
    let (mut results, mut proven) = (RunResults::default(), RunResults::default());
    let started = Instant::now();
    let mut first = None;
    loop {
        let now = look(&*folder, &plan, &mut results, &mut proven).map_err(failed)?;
        let from = *first.get_or_insert(now.bytes_now);
        let took_s = started.elapsed().as_secs_f64();
        let rate = (now.bytes_now.saturating_sub(from)) as f64 / took_s.max(RATE_MIN_S);
        if let Some(path) = &args.textfile {
            write_textfile(path, &now).map_err(|message| end_with(exit::FAILURE, &message))?;
        }
        if args.json {
            output::line(&now);
            return Ok(exit::OK);
        }
        let text = screen(&now, rate, live, args.language);
        match live {
            // Home, and clear what is below.
            true => output::text(&format!("\x1b[H\x1b[J{text}")),
            false => output::text(&text),
        }
        let over = match &now.verified {
            Some(verified) => verified.shards as usize >= now.shards,
            None => now.collected || now.done.shards as usize >= now.shards,
        };
        if !live || over {
            return Ok(exit::OK);
        }
        std::thread::sleep(REFRESH);
    }
}

/// A run at one moment.
#[derive(Serialize)]
struct ClusterState {
    event: &'static str,
    schema: u32,
    run: String,
    collected: bool,
    shards: usize,
    planned_entries: u64,
    planned_bytes: u64,
    done: ShardSums,
    /// Bytes moved, those of shards in hand included.
    bytes_now: u64,
    workers: Vec<Heartbeat>,
    /// Verdict on each worker that has one.
    verdicts: BTreeMap<String, RunVerdict>,
    /// Verdict on all of them.
    verdict: Option<RunVerdict>,
    /// The verification, where one was begun.
    verified: Option<ShardSums>,
    problems: Vec<RunProblem>,
    damaged: Vec<(u32, String)>,
}

fn look(
    folder: &dyn RunFolder,
    plan: &ClusterPlan,
    results: &mut RunResults,
    proven: &mut RunResults,
) -> Result<ClusterState, RunError> {
    results.update(folder, plan, &Phase::Transfer)?;
    let verifying = Phase::current_verification(folder)?;
    if let Some(phase) = &verifying {
        proven.update(folder, plan, phase)?;
    }
    let workers = heartbeat::read_all(folder)?;
    let shares = results.shares().into_iter();
    Ok(ClusterState {
        event: "cluster-status",
        schema: 1,
        run: plan.id.clone(),
        collected: folder.read(COLLECTED)?.is_some(),
        shards: plan.shards.len(),
        planned_entries: plan.entries,
        planned_bytes: plan.bytes,
        done: results.sums,
        bytes_now: workers.iter().map(|beat| beat.bytes).sum(),
        workers,
        verdicts: shares.filter_map(|(worker, share)| Some((worker, share.verdict?))).collect(),
        verdict: results.verdict(),
        verified: verifying.map(|_| proven.sums),
        problems: [problems(results), problems(proven)].concat(),
        damaged: results.damaged.iter().chain(&proven.damaged).cloned().collect(),
    })
}

fn screen(now: &ClusterState, rate: f64, live: bool, language: Language) -> String {
    let digits = Digits::default();
    let ShardSums { shards, entries, planned_bytes, failed, .. } = now.done;
    let share = match (now.planned_bytes, now.shards) {
        (0, 0) => 100.0,
        (0, all) => shards as f64 / all as f64 * 100.0,
        (all, _) => planned_bytes as f64 / all as f64 * 100.0,
    };
    let mut out = format!(
        "{} of {}, {} of {}, {} of {} bytes ({share:.0}%)\n",
        grouped(shards),
        things(now.shards as u64, "shard"),
        grouped(entries),
        things(now.planned_entries, "name"),
        digits.size(planned_bytes),
        digits.size(now.planned_bytes),
    );
    if now.collected {
        out.push_str("the run was collected\n");
    }
    if let Some(ShardSums { shards, files, bytes, differences, .. }) = now.verified {
        out.push_str(&format!(
            "verified {shards} of {}, {}, {} bytes: {differences} differ\n",
            things(now.shards as u64, "shard"),
            things(files, "name"),
            digits.size(bytes)
        ));
    }
    if live && rate > 0.0 {
        let left_s = now.planned_bytes.saturating_sub(planned_bytes) as f64 / rate;
        let rate = digits.size(rate as u64);
        out.push_str(&format!("{rate}/s, about {left_s:.0} s left\n"));
    }
    for beat in &now.workers {
        let doing = match (beat.state, beat.shard) {
            (WorkerState::Working, Some(shard)) if beat.verifies => {
                format!("verifies shard {shard}")
            }
            (WorkerState::Working, Some(shard)) => format!("shard {shard}"),
            (WorkerState::Working, None) => "between shards".to_owned(),
            (WorkerState::Waiting, _) => "waits for others".to_owned(),
            (WorkerState::Ended, _) => {
                let why = beat.message.as_deref().map(|why| format!(": {why}"));
                format!("ended{}", why.unwrap_or_default())
            }
        };
        let verdict = now.verdicts.get(&beat.worker).filter(|verdict| verdict.is_known());
        let words = language.pick("limited by", "ボトルネック:");
        let limited = verdict.map(|verdict| format!("; {words} {}", verdict.words(language)));
        let limited = limited.unwrap_or_default();
        let up = beat.up_s.max(RATE_MIN_S);
        out.push_str(&format!(
            "{:<20} {:>7}  {:>10} {:>9}/s  {doing}{limited}\n",
            beat.host,
            things(beat.shards, "shard"),
            digits.size(beat.bytes),
            digits.size((beat.bytes as f64 / up) as u64),
        ));
    }
    if failed > 0 {
        out.push_str(&format!("{} could not be transferred\n", things(failed, "name")));
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
    let ShardSums { shards, entries, bytes, failed, redone, .. } = now.done;
    let verified = now.verified.unwrap_or_default();
    let working = now.workers.iter().filter(|beat| beat.state != WorkerState::Ended).count() as u64;
    let metrics = [
        ("shards", "Shards of the plan.", now.shards as u64),
        ("shards_done", "Shards that are done.", shards),
        ("shards_redone", "Shards that were done at the second attempt.", redone),
        ("entries", "Entries of the plan.", now.planned_entries),
        ("entries_done", "Entries that are done.", entries),
        ("entries_failed", "Entries that could not be transferred.", failed),
        ("bytes", "Bytes of the plan.", now.planned_bytes),
        ("bytes_done", "Bytes moved by shards that are done.", bytes),
        ("workers", "Workers that have not ended.", working),
        ("shards_verified", "Shards that were verified.", verified.shards),
        ("entries_differ", "Entries that differ at both ends.", verified.differences),
    ];
    let mut text = String::new();
    for (name, help, value) in metrics {
        let name = format!("hakobu_cluster_{name}");
        text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} gauge\n"));
        text.push_str(&format!("{name}{{run=\"{}\"}} {value}\n", now.run));
    }
    Target::open(Path::new(path))?.deliver(text)
}
