//! Verification of a run that was collected: what its shards hold is compared at both ends, by
//! workers, and by collect itself where none takes part.

use super::ending::{self, Form, Problem};
use super::opened::{Opened, unusable};
use super::worker::{Job, one};
use crate::commands::line::told;
use crate::exit;
use crate::number::{Digits, things};
use crate::show::output;
use hakobu_cluster::phase::{self, Phase};
use hakobu_cluster::plan::REPORT;
use hakobu_cluster::status::{Results, Share, Sums};
use hakobu_cluster::{Folder, Trouble};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// Exit codes of a collect whose result can be verified: everything was looked at.
const COLLECTED: [u8; 4] =
    [exit::OK, exit::SYNC_PARTIAL, exit::SYNC_VANISHED, exit::SYNC_MAX_DELETE];

/// Whether a run that was collected with this code can be verified.
pub fn is_collected(code: u8) -> bool {
    COLLECTED.contains(&code)
}

/// The verification of a run, begun where there is none, and the exit code that the run was
/// collected with.
///
/// # Errors
/// The run was not collected, or not to its end; the folder's.
pub fn verification(folder: &dyn Folder) -> Result<(Phase, u8), Trouble> {
    let later = |why: &str| Trouble::passing(format!("cannot verify {}: {why}", folder.shown()));
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
    let phase = phase::verify(folder)?;
    phase.map(|phase| (phase, code)).ok_or_else(|| later("it is collected once more"))
}

/// The result of a verification.
#[derive(Serialize)]
struct Proof {
    event: &'static str,
    schema: u32,
    run: String,
    shards: usize,
    verified: Sums,
    workers: BTreeMap<String, Share>,
    problems: Vec<Problem>,
    damaged: Vec<(u32, String)>,
    exit_code: u8,
}

/// Verifies the shards that no worker has verified, waits for those in progress, and reports all results. Returns the
/// exit code, of an early end as an error.
pub fn finish(opened: Opened, stale: Duration, json: bool) -> Result<u8, u8> {
    let folder = std::sync::Arc::clone(&opened.folder);
    let folder = &*folder;
    let (phase, collected) = verification(folder).map_err(unusable)?;
    let plan = opened.plan.clone();
    let form = Form::of(&opened.wanted, json);
    let at_once = exit::SYNC_INTERRUPTED;
    let job = Job { phase: phase.clone(), stale, workers: 1, command: "cluster collect", at_once };
    let end = one(opened, job).map_err(|message| told(exit::SYNC_IO, &message))?;
    if let Some(why) = end.why {
        return Err(match why.starts_with("interrupted") {
            true => told(at_once, "interrupted: collect --verify again to continue"),
            false => told(end.code, &why),
        });
    }
    let mut results = Results::default();
    let updated = results.update(folder, &plan, &phase);
    updated.map_err(unusable)?;
    let sums = results.sums;
    let whole = sums.shards as usize == plan.shards.len()
        && sums.differences + sums.failed == 0
        && results.damaged.is_empty();
    let exit_code = match (collected, whole) {
        (exit::OK, false) => exit::SYNC_PARTIAL,
        (code, _) => code,
    };
    let proof = Proof {
        event: "cluster-verify",
        schema: 1,
        run: plan.id.clone(),
        shards: plan.shards.len(),
        verified: sums,
        workers: results.shares(),
        problems: ending::problems(&results),
        damaged: results.damaged,
        exit_code,
    };
    Ok(form.end(&proof, exit_code, record(folder, &proof), || proof.tell()))
}

/// Adds the result to the report of the run.
fn record(folder: &dyn Folder, proof: &Proof) -> Result<(), Trouble> {
    let failed = |error| Trouble::lasting(format!("cannot write the report: {error}"));
    let content = folder.read(REPORT)?.unwrap_or_default();
    let mut report: Value = serde_json::from_slice(&content).map_err(failed)?;
    let proof = serde_json::to_value(proof).map_err(failed)?;
    if let Some(report) = report.as_object_mut() {
        report.insert("verify".to_owned(), proof);
    }
    let content = serde_json::to_vec_pretty(&report).map_err(failed)?;
    folder.replace(REPORT, &content)
}

impl Proof {
    fn tell(&self) {
        let Sums { shards, files, bytes, differences, failed, .. } = self.verified;
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
            things(self.shards as u64, "shard"),
            things(files, "name"),
            Digits::default().size(bytes)
        ));
        ending::tell_problems("verify", &self.problems);
        for (number, why) in &self.damaged {
            output::message(&format!("shard {number} was not verified: {why}"));
        }
    }
}
