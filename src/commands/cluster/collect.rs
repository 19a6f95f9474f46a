//! `hakobu cluster collect`: the last word, an ordinary sync over both ends, and the report.

use super::super::session::Session;
use super::ending::{self, Form, Problem};
use super::opened::{AGAIN, Invocation, Opened, open, parse, unusable};
use super::prove;
use crate::commands::line::told;
use crate::exit;
use crate::number::{Digits, things};
use crate::show::output;
use hakobu_cluster::phase::{self, Phase};
use hakobu_cluster::plan::{COLLECTED, REPORT};
use hakobu_cluster::status::{Results, Share, Sums, outlook, owners};
use hakobu_cluster::verdict::Summed;
use hakobu_cluster::{Folder, Plan, Trouble, beat, comparing};
use hakobu_transfer::journal::Owner;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::time::Duration;

/// Options of collect.
#[derive(Clone, Copy)]
pub struct How {
    /// Time without a sign of life after which a worker counts as gone.
    pub stale: Duration,
    /// Workers that are at work are waited for.
    pub waits: bool,
    /// JSON lines.
    pub json: bool,
    /// Contents are compared afterwards.
    pub verifies: bool,
}

/// Runs the subcommand.
pub fn run(arguments: &[OsString]) -> Result<u8, u8> {
    let Invocation { args, run, .. } = parse("collect", arguments, exit::SYNC_USAGE)?;
    let how = How { stale: args.stale(), waits: args.wait, json: args.json, verifies: args.verify };
    finish(open(&run, &args.settings()).map_err(unusable)?, how)
}

/// Collects a run, and verifies it where that is asked for. A verification that was begun goes on
/// without collecting once more. The error is an exit code, with its message already told.
pub fn finish(opened: Opened, how: How) -> Result<u8, u8> {
    if !how.verifies {
        return collect(&opened, how);
    }
    comparing::refuse_unfit(&opened.spec)
        .map_err(|fatal| told(exit::SYNC_USAGE, &fatal.message))?;
    let code = match phase::current(&*opened.folder).map_err(unusable)? {
        Some(_) => exit::OK,
        None => collect(&opened, how)?,
    };
    match prove::is_collected(code) {
        true => prove::finish(opened, how.stale, how.json),
        false => Ok(code),
    }
}

/// Waits for workers that are gone to be so for sure, marks the run as collected, and runs the
/// ordinary sync.
fn collect(opened: &Opened, how: How) -> Result<u8, u8> {
    let Opened { folder, plan, spec, wanted } = opened;
    let (folder, mut wanted) = (&**folder, wanted.clone());
    let mut results = Results::default();
    wait_for_workers(folder, &mut results, how.stale, how.waits)?;
    let marked = folder
        .replace(COLLECTED, b"{}\n")
        .and_then(|()| phase::forget(folder))
        .and_then(|()| owners(folder));
    // Their unfinished files are removed, on whichever machine they ran.
    let me = Owner::me();
    Owner::give_up(marked.map_err(unusable)?.into_iter().filter(|owner| *owner != me).collect());
    let updated = results.update(folder, plan, &Phase::Transfer);
    if let Err(trouble) = &updated {
        output::message(&trouble.message);
    }
    wanted.resume = "collect again to continue";
    wanted.json |= how.json;
    let form = Form::of(&wanted, how.json);
    let session = Session::start(wanted, exit::of_sync)?;
    let outcome = session.run(spec);
    let code = session.end(outcome);
    let report = Report::of(&results, plan, code);
    let content = serde_json::to_vec_pretty(&report)
        .map_err(|error| Trouble::lasting(format!("cannot write the report: {error}")));
    let written = content.and_then(|content| folder.replace(REPORT, &content));
    Ok(match form.end(&report, code, written, || report.tell(plan)) {
        exit::OK if updated.is_err() => exit::SYNC_IO,
        code => code,
    })
}

/// Waits until no worker can publish anything any more. A worker that gave no sign of life for
/// `stale`, as this process saw, has lost the right to.
fn wait_for_workers(
    folder: &dyn Folder,
    results: &mut Results,
    stale: Duration,
    waits: bool,
) -> Result<(), u8> {
    let mut first = BTreeMap::new();
    loop {
        let alive = results.alive(folder, stale).map_err(unusable)?;
        if alive.is_empty() {
            return Ok(());
        }
        for (beat, _) in &alive {
            let before = *first.entry(beat.worker.clone()).or_insert(beat.counter);
            if before != beat.counter && !waits {
                let (worker, host) = (&beat.worker, &beat.host);
                output::message(&format!("worker {worker} on {host} is still at work"));
                return Err(told(
                    AGAIN,
                    "hint: collect when all workers have ended, or with --wait",
                ));
            }
        }
        std::thread::sleep(beat::interval(stale));
    }
}

/// Report on a whole run.
#[derive(Serialize)]
struct Report {
    event: &'static str,
    schema: u32,
    run: String,
    shards: usize,
    planned_entries: u64,
    planned_bytes: u64,
    done: Sums,
    workers: BTreeMap<String, Share>,
    problems: Vec<Problem>,
    damaged: Vec<(u32, String)>,
    verdict: Option<Summed>,
    outlook: Option<String>,
    exit_code: u8,
}

impl Report {
    fn of(results: &Results, plan: &Plan, exit_code: u8) -> Report {
        Report {
            event: "cluster",
            schema: 1,
            run: plan.id.clone(),
            shards: plan.shards.len(),
            planned_entries: plan.entries,
            planned_bytes: plan.bytes,
            done: results.sums,
            workers: results.shares(),
            problems: ending::problems(results),
            damaged: results.damaged.clone(),
            verdict: results.verdict(),
            outlook: outlook(results, plan.shards.len() as u64),
            exit_code,
        }
    }

    /// Tells what the workers did, for a reader.
    fn tell(&self, plan: &Plan) {
        let digits = Digits::default();
        let Sums { shards, files, bytes, redone, changed, .. } = self.done;
        output::message(&format!(
            "{} did {shards} of {}: {}, {} bytes",
            things(self.workers.len() as u64, "worker"),
            things(plan.shards.len() as u64, "shard"),
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
        ending::tell_problems("workers", &self.problems);
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
            output::message("what limited the workers is not determined");
        } else {
            let share = whole.share * 100.0;
            output::message(&format!(
                "the workers were limited by {} for {share:.0} % of their time; the longest: {}",
                whole.named, whole.sentence
            ));
        }
        let mut hosts: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let judged = |share: &&Share| share.verdict.as_ref().is_some_and(Summed::is_known);
        for share in self.workers.values().filter(judged) {
            let named = share.verdict.as_ref().map_or("", |verdict| verdict.named);
            hosts.entry(named).or_default().insert(&share.host);
        }
        if hosts.len() > 1 || (hosts.len() == 1 && !whole.is_known()) {
            for (named, hosts) in hosts {
                let hosts: Vec<&str> = hosts.into_iter().collect();
                output::message(&format!("limited by {named}: {}", hosts.join(", ")));
            }
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
