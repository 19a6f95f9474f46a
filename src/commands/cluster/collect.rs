//! `hakobu cluster collect`: the last word, an ordinary sync over both ends; then, where that is asked for, the
//! verification by workers, and by collect itself where none takes part; and the report of the run.

use super::{
    AGAIN, COLLECT, OpenRun, RunArguments, WorkerJob, attendance, open_run, parse_run,
    report_error, run_worker,
};
use crate::commands::session::{Ended, Session, outcome_of_fatal};
use crate::commands::tool::end_with;
use crate::exit;
use crate::number::{Digits, things};
use crate::show::{ShowOptions, output};
use hakobu_cluster::collect::{CollectSetup, finish_ranges, last_transfer, with_beats};
use hakobu_cluster::folder::{RunError, RunFolder};
use hakobu_cluster::heartbeat::Heartbeat;
use hakobu_cluster::plan::{COLLECTED, ClusterPlan, Phase, REPORT, ShardNumber, shown_number};
use hakobu_cluster::ranges::{PlanWatch, PlannedTotals};
use hakobu_cluster::results::{
    RunResults, RunVerdict, ShardSums, WorkerShare, outlook, worker_owners,
};
use hakobu_cluster::{heartbeat, verify};
use hakobu_transfer::journal::{self, Owner};
use hakobu_transfer::run::transfer;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

/// Hosts that are named while collect waits for workers.
const HOSTS_SHOWN: usize = 8;

/// Options of collect.
#[derive(Clone, Copy)]
pub struct CollectOptions {
    /// Time without a sign of life after which a worker counts as gone.
    pub stale: Duration,
    /// Workers that are at work are waited for.
    pub waits: bool,
    /// JSON lines.
    pub json: bool,
    /// Contents are compared afterwards.
    pub verifies: bool,
    /// Everything is transferred here, although no worker could open the run.
    pub alone: bool,
}

/// Runs the subcommand.
pub fn run(arguments: &[OsString]) -> Result<u8, u8> {
    let RunArguments { args, run, .. } = parse_run(&COLLECT, arguments, exit::SYNC_USAGE)?;
    let how = CollectOptions {
        stale: args.stale(),
        waits: args.wait,
        json: args.json,
        verifies: args.verify,
        alone: args.alone,
    };
    finish(open_run(&run, &args.settings()).map_err(report_error)?, how)
}

/// Collects a run, and verifies it where that is asked for. A verification that was begun goes on
/// without collecting once more. The error is an exit code, with its message already told.
pub fn finish(opened: OpenRun, how: CollectOptions) -> Result<u8, u8> {
    if !how.verifies {
        let (code, ended) = collect(&opened, how)?;
        return Ok(ended.settle(code));
    }
    verify::refuse_unfit(&opened.spec)
        .map_err(|fatal| end_with(exit::SYNC_USAGE, &fatal.message))?;
    let (code, ended) = match Phase::current_verification(&*opened.folder).map_err(report_error)? {
        Some(_) => (exit::OK, None),
        None => collect(&opened, how).map(|(code, ended)| (code, Some(ended)))?,
    };
    let code = match is_collected(code) {
        true => finish_verification(opened, how.stale, how.json),
        false => Ok(code),
    };
    // The gauges are about both.
    let Some(ended) = ended else { return code };
    match code {
        Ok(code) => Ok(ended.settle(code)),
        Err(code) => Err(ended.settle(code)),
    }
}

/// Waits for workers that are gone to be so for sure, marks the run as collected, and runs the
/// ordinary sync.
fn collect(opened: &OpenRun, how: CollectOptions) -> Result<(u8, Ended), u8> {
    let OpenRun { folder, plan, spec, wanted, .. } = opened;
    let (folder, mut wanted) = (&**folder, wanted.clone());
    let mut results = RunResults::of(&Phase::Transfer);
    wait_for_workers(folder, &mut results, how.stale, how.waits)?;
    attendance::check(folder, plan.units() > 0, how.alone, wanted.quiet)?;
    let marked = folder
        .replace(COLLECTED, b"{}\n")
        .and_then(|()| Phase::forget_report(folder))
        .and_then(|()| worker_owners(folder));
    // Their unfinished files are removed, on whichever machine they ran.
    let me = Owner::me();
    Owner::give_up(
        marked.map_err(report_error)?.into_iter().filter(|owner| *owner != me).collect(),
    );
    let updated = results.update(folder);
    if let Err(error) = &updated {
        output::message(&error.message);
    }
    wanted.resume = "collect again to continue";
    wanted.json |= how.json;
    let form = ReportForm::of(&wanted, how.json);
    let planned = PlanWatch::new().update(folder, plan).map_err(report_error)?;
    let session = Session::start(wanted, exit::of_sync)?;
    session.begins(spec);
    let sums = &results.sums;
    let is_done = updated.is_ok()
        && planned.is_whole()
        // A name that could not be examined was not planned.
        && planned.problems == 0
        && sums.shards == planned.shards
        && sums.failed + sums.vanished + sums.changed == 0
        && results.damaged.is_empty();
    let setup = CollectSetup {
        is_done,
        folder,
        plan,
        spec,
        control: &session.control,
        listener: &session.show,
        previous: opened.previous.as_ref(),
        stale: how.stale,
    };
    // Of ranges that no worker has begun with, nothing is known: an ordinary sync lists both ends at once.
    let by_ranges = plan.ranges() > 0 && (planned.ranges_listed > 0 || planned.shards > 0);
    let collected = with_beats(&setup, |listener| match by_ranges {
        true => finish_ranges(&CollectSetup { listener, ..setup.clone() }),
        false => {
            let spec = last_transfer(spec, is_done);
            transfer(&spec, &session.control, listener).map(|done| (done, BTreeMap::new()))
        }
    });
    let (outcome, found) = collected.unwrap_or_else(|fatal| {
        (outcome_of_fatal(fatal, session.start.elapsed()), BTreeMap::new())
    });
    let ended = session.report(outcome);
    let code = ended.code;
    for (what, (count, first)) in found {
        results.add_problem(&what, count, first);
    }
    // Between paths there is nothing to know of objects.
    if by_ranges && !plan.local && is_collected(code) {
        super::plan::remember_run(spec, &opened.run);
    }
    let report = Report::of(&results, (plan, planned), code);
    let content = serde_json::to_vec_pretty(&report)
        .map_err(|error| RunError::permanent(format!("cannot write the report: {error}")));
    let written = content.and_then(|content| folder.replace(REPORT, &content));
    let code = match form.end(&report, code, written, || report.tell()) {
        exit::OK if updated.is_err() => exit::SYNC_IO,
        code => code,
    };
    Ok((code, ended))
}

/// Waits until no worker can publish anything any more. A worker that gave no sign of life for
/// `stale`, as this process saw, has lost the right to.
fn wait_for_workers(
    folder: &dyn RunFolder,
    results: &mut RunResults,
    stale: Duration,
    waits: bool,
) -> Result<(), u8> {
    let mut first = BTreeMap::new();
    let mut told = None;
    loop {
        let alive = results.alive(folder, stale).map_err(report_error)?;
        if alive.is_empty() {
            return Ok(());
        }
        if waits && told != Some(alive.len()) {
            told = Some(alive.len());
            let hosts: BTreeSet<&str> = alive.iter().map(|(beat, _)| beat.host.as_str()).collect();
            let hosts = hosts.into_iter().take(HOSTS_SHOWN).collect::<Vec<_>>().join(", ");
            output::message(&format!(
                "waiting for {} ({hosts})",
                things(alive.len() as u64, "worker")
            ));
        }
        for (beat, _) in &alive {
            let before = *first.entry(beat.worker.clone()).or_insert(beat.counter);
            if before != beat.counter && !waits {
                let Heartbeat { worker, host, pid, .. } = beat;
                let what = if beat.collects { "another collect" } else { "worker" };
                output::message(&format!("{what} {worker} on {host} (pid {pid}) is still at work"));
                return Err(end_with(
                    AGAIN,
                    "hint: collect when all workers have ended, or with --wait",
                ));
            }
        }
        std::thread::sleep(heartbeat::interval(stale));
    }
}

/// Report on a whole run.
#[derive(Serialize)]
struct Report {
    event: &'static str,
    schema: u32,
    run: String,
    shards: u64,
    ranges: u32,
    planned_entries: u64,
    planned_bytes: u64,
    done: ShardSums,
    workers: BTreeMap<String, WorkerShare>,
    problems: Vec<RunProblem>,
    damaged: Vec<(String, String)>,
    verdict: Option<RunVerdict>,
    outlook: Option<String>,
    exit_code: u8,
}

impl Report {
    fn of(
        results: &RunResults,
        (plan, planned): (&ClusterPlan, PlannedTotals),
        exit_code: u8,
    ) -> Report {
        Report {
            event: "cluster",
            schema: 1,
            run: plan.id.clone(),
            shards: planned.shards,
            ranges: planned.ranges,
            planned_entries: planned.entries,
            planned_bytes: planned.bytes,
            done: results.sums,
            workers: results.shares(),
            problems: problems(results),
            damaged: shown_shards(&results.damaged),
            verdict: results.verdict(),
            outlook: outlook(results, planned.shards),
            exit_code,
        }
    }

    /// Tells what the workers did, for a reader.
    fn tell(&self) {
        let digits = Digits::default();
        let ShardSums { shards, files, bytes, redone, changed, .. } = self.done;
        output::message(&format!(
            "{} did {shards} of {}: {}, {} bytes",
            things(self.workers.len() as u64, "worker"),
            things(self.shards, "shard"),
            things(files, "file"),
            digits.size(bytes)
        ));
        if redone > 0 {
            output::message(&format!(
                "{} redone, as their workers were gone",
                things(redone, "shard")
            ));
        }
        if changed > 0 {
            let changed = things(changed, "name");
            output::message(&format!("{changed} left to collect, changed since the plan was made"));
        }
        for (number, why) in &self.damaged {
            output::message(&format!("shard {number} was left to collect: {why}"));
        }
        tell_problems("workers", &self.problems);
        let slowest = self.workers.values().map(|share| share.to_s).fold(0.0, f64::max);
        let median = median(self.workers.values().map(|share| share.to_s).collect());
        if self.workers.len() > 2 && slowest > 1.5 * median && slowest > median + 1.0 {
            let late = self.workers.values().filter(|share| share.to_s > 1.5 * median);
            let hosts: Vec<&str> = late.map(|share| share.host.as_str()).collect();
            output::message(&format!(
                "stragglers: {} worked for up to {slowest:.0} s, half of the workers for {median:.0} s or less",
                hosts.join(", ")
            ));
        }
        self.tell_verdicts();
        if let Some(outlook) = &self.outlook {
            output::message(outlook);
        }
    }
}

impl Report {
    /// Verdicts: on all workers, then by machine where they differ.
    fn tell_verdicts(&self) {
        let Some(whole) = &self.verdict else { return };
        if !whole.is_known() {
            output::message("bottleneck of the workers: unknown");
        } else {
            let share = whole.share * 100.0;
            output::message(&format!(
                "bottleneck of the workers: {} for {share:.0}% of their time; in the longest shard: {}",
                whole.named, whole.sentence
            ));
        }
        let mut hosts: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let judged =
            |share: &&WorkerShare| share.verdict.as_ref().is_some_and(RunVerdict::is_known);
        for share in self.workers.values().filter(judged) {
            let named = share.verdict.as_ref().map_or("", |verdict| verdict.named);
            hosts.entry(named).or_default().insert(&share.host);
        }
        if hosts.len() > 1 || (hosts.len() == 1 && !whole.is_known()) {
            for (named, hosts) in hosts {
                let hosts: Vec<&str> = hosts.into_iter().collect();
                output::message(&format!("bottleneck {named}: {}", hosts.join(", ")));
            }
        }
    }
}

/// Shards with their numbers for a reader.
pub fn shown_shards(damaged: &[(ShardNumber, String)]) -> Vec<(String, String)> {
    damaged.iter().map(|(number, why)| (shown_number(*number), why.clone())).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Exit codes of a collect whose result can be verified: everything was looked at.
const VERIFIABLE: [u8; 4] =
    [exit::OK, exit::SYNC_PARTIAL, exit::SYNC_VANISHED, exit::SYNC_MAX_DELETE];

/// Whether a run that was collected with this code can be verified.
pub fn is_collected(code: u8) -> bool {
    VERIFIABLE.contains(&code)
}

/// The verification of a run, begun where there is none, and the exit code that the run was
/// collected with.
///
/// # Errors
/// The run was not collected, or not to its end; the folder's.
pub fn verification(folder: &dyn RunFolder) -> Result<(Phase, u8), RunError> {
    let later = |why: &str| RunError::transient(format!("cannot verify {}: {why}", folder.shown()));
    let Some(report) = folder.read(REPORT)? else {
        return Err(later("the run was not collected yet"));
    };
    let report: Value = serde_json::from_slice(&report).unwrap_or_default();
    let code =
        report.get("exit_code").and_then(Value::as_u64).and_then(|code| code.try_into().ok());
    let code = code.ok_or_else(|| later("its report is damaged; collect again"))?;
    if !is_collected(code) {
        return Err(later(&format!("collect ended with exit code {code}; collect again")));
    }
    let phase = Phase::begin_verification(folder)?;
    phase.map(|phase| (phase, code)).ok_or_else(|| later("it is collected once more"))
}

/// The result of a verification.
#[derive(Serialize)]
struct VerifyReport {
    event: &'static str,
    schema: u32,
    run: String,
    shards: u64,
    verified: ShardSums,
    workers: BTreeMap<String, WorkerShare>,
    problems: Vec<RunProblem>,
    damaged: Vec<(String, String)>,
    exit_code: u8,
}

/// Verifies the shards that no worker has verified, waits for those in progress, and reports all results. Returns the
/// exit code, of an early end as an error.
fn finish_verification(opened: OpenRun, stale: Duration, json: bool) -> Result<u8, u8> {
    let folder = Arc::clone(&opened.folder);
    let folder = &*folder;
    let (phase, collected) = verification(folder).map_err(report_error)?;
    let plan = opened.plan.clone();
    let form = ReportForm::of(&opened.wanted, json);
    let at_once = exit::SYNC_INTERRUPTED;
    let job = WorkerJob {
        phase: phase.clone(),
        stale,
        workers: 1,
        command: "cluster collect",
        at_once,
        last_word: true,
    };
    let end = run_worker(opened, job).map_err(|message| end_with(exit::SYNC_IO, &message))?;
    if let Some(error) = end.error {
        return Err(match error.is_interrupted {
            true => end_with(at_once, "interrupted: collect --verify again to continue"),
            false => end_with(end.code, &error.message),
        });
    }
    let mut results = RunResults::of(&phase);
    let updated = results.update(folder);
    updated.map_err(report_error)?;
    let planned = PlanWatch::new().update(folder, &plan).map_err(report_error)?;
    let sums = results.sums;
    let whole = planned.is_whole()
        && sums.shards == planned.shards
        && sums.differences + sums.failed == 0
        && results.damaged.is_empty();
    let exit_code = match (collected, whole) {
        (exit::OK, false) => exit::SYNC_PARTIAL,
        (code, _) => code,
    };
    let proof = VerifyReport {
        event: "cluster-verify",
        schema: 1,
        run: plan.id.clone(),
        shards: planned.shards,
        verified: sums,
        workers: results.shares(),
        problems: problems(&results),
        damaged: shown_shards(&results.damaged),
        exit_code,
    };
    Ok(form.end(&proof, exit_code, record(folder, &proof), || proof.tell()))
}

/// Adds the result to the report of the run.
fn record(folder: &dyn RunFolder, proof: &VerifyReport) -> Result<(), RunError> {
    let failed = |error| RunError::permanent(format!("cannot write the report: {error}"));
    let content = folder.read(REPORT)?.unwrap_or_default();
    let mut report: Value = serde_json::from_slice(&content).map_err(failed)?;
    let proof = serde_json::to_value(proof).map_err(failed)?;
    if let Some(report) = report.as_object_mut() {
        report.insert("verify".to_owned(), proof);
    }
    let content = serde_json::to_vec_pretty(&report).map_err(failed)?;
    folder.replace(REPORT, &content)
}

impl VerifyReport {
    fn tell(&self) {
        let ShardSums { shards, files, bytes, differences, failed, .. } = self.verified;
        let verdict = match (differences, failed) {
            (0, 0) if self.damaged.is_empty() => "the same".to_owned(),
            (0, 0) => "no difference found".to_owned(),
            (1, 0) => "1 name differs".to_owned(),
            (found, 0) => format!("{} differ", things(found, "name")),
            (found, failed) => {
                let (found, failed) = (things(found, "name"), things(failed, "name"));
                format!("difference of {found}, {failed} could not be compared")
            }
        };
        output::message(&format!(
            "{} verified {shards} of {}: {}, {} bytes: {verdict}",
            things(self.workers.len() as u64, "worker"),
            things(self.shards, "shard"),
            things(files, "name"),
            Digits::default().size(bytes)
        ));
        tell_problems("verify", &self.problems);
        for (number, why) in &self.damaged {
            output::message(&format!("shard {number} was not verified: {why}"));
        }
    }
}

/// A problem of workers: a sentence without names, how many names have it, and the first one's path.
pub type RunProblem = (String, u64, String);

/// Problems of all results, in the order of their sentences.
pub fn problems(results: &RunResults) -> Vec<RunProblem> {
    let problems = results.problems.iter();
    problems.map(|(what, (count, first))| (what.clone(), *count, first.clone())).collect()
}

/// Tells of problems, each on a line of its own after `who`.
pub fn tell_problems(who: &str, problems: &[RunProblem]) {
    for (what, count, first) in problems {
        let path = String::from_utf8_lossy(&journal::bytes(first)).into_owned();
        output::message(&format!("{who}: {what}: {} ('{path}')", things(*count, "name")));
    }
}

/// Form of a report.
#[derive(Clone, Copy)]
pub struct ReportForm {
    json: bool,
    quiet: bool,
}

impl ReportForm {
    /// Returns the form that the transfer's options ask for; `json` asks for JSON in any case.
    pub fn of(wanted: &ShowOptions, json: bool) -> ReportForm {
        ReportForm { json: json || wanted.json, quiet: wanted.quiet }
    }

    /// Shows a report: `tell` does that for a reader. `written`: whether the run folder has it. Returns the exit code, which
    /// is not 0 where the folder lacks the report.
    pub fn end(
        self,
        report: &impl Serialize,
        code: u8,
        written: Result<(), RunError>,
        tell: impl FnOnce(),
    ) -> u8 {
        if let Err(error) = &written {
            output::message(&error.message);
        }
        if self.json {
            output::line(report);
        } else if !self.quiet {
            tell();
        }
        match (code, written) {
            (exit::OK, Err(_)) => exit::SYNC_IO,
            (code, _) => code,
        }
    }
}
