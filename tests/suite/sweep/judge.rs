//! Runs the faults of a command and judges each run.

use crate::common::case::Run;
use crate::common::{have, is_set, skip};
use crate::sweep::calls::Calls;
use crate::sweep::fault::{Fault, behind, run, strace};
use crate::sweep::table::{EXCUSED, LEFT_ALONE, May, ROWS};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

/// A command at its places, and what must hold of it.
pub trait Scenario {
    /// The command line for people.
    fn line(&self) -> &str;
    /// The program with its words and its environment.
    fn command(&self) -> Command;
    /// Whether a fault has to be judged as all others.
    fn concerns(&self, _: &Fault) -> bool {
        true
    }
    /// A file that no part of the scenario uses.
    fn log(&self) -> PathBuf;
    /// Puts everything in its first state.
    fn prepare(&self);
    /// Missing or wrong entries after a run that ended with 0.
    fn not_whole(&self) -> Vec<String>;
    /// Damage by a failed run: missing sources, incomplete files that look complete.
    fn harm(&self) -> Vec<String>;
    /// Runs the command again without faults; what is still wrong.
    fn not_healed(&self) -> Vec<String>;
    /// Leftovers of both runs: records, unfinished uploads.
    fn left_over(&self) -> Vec<String>;

    /// One run that meets a fault; what is wrong about it. `None` where the run came to its end
    /// before the fault.
    fn try_out(&self, fault: &Fault, may: May) -> Option<Result<(), String>> {
        self.prepare();
        let run = run(behind(fault.strace(&self.log()), &self.command()));
        let was_met = std::fs::read(self.log()).unwrap();
        let was_met = String::from_utf8_lossy(&was_met).contains("(INJECTED)");
        let wrong = self.judge(&run, fault, may);
        let wrong = wrong.or_else(|| problem("afterwards", self.not_healed()));
        let mut left = self.left_over();
        // A process that died cleans up as little as one that was killed.
        left.retain(|left| !fault.excuses(left) && !has_died(&run));
        let wrong = wrong.or_else(|| problem("left over", left));
        let said = |wrong| {
            format!("{}: {fault}: code {}: {wrong}; said: {}", self.line(), run.code, run.err())
        };
        match wrong {
            Some(wrong) => Some(Err(said(wrong))),
            None => was_met.then_some(Ok(())),
        }
    }

    fn judge(&self, run: &Run, fault: &Fault, may: May) -> Option<String> {
        let excused = EXCUSED.iter().any(|(_, text)| run.err().contains(text));
        match run.code {
            0 => return problem("0, but", self.not_whole()),
            124 | 137 => return Some("it hangs".to_owned()),
            _ if has_died(run) && may == May::End && !excused => return Some("it dies".to_owned()),
            _ if run.stderr.is_empty() && !fault.mutes() => return Some("no word".to_owned()),
            _ => {}
        }
        problem("harm", self.harm())
    }

    /// Returns the moments at which each call is made and can fail.
    fn moments(&self) -> BTreeMap<String, Vec<u64>> {
        let log = self.log();
        let traced = |command: Command| {
            let run = run(behind(strace(&log), &command));
            assert_eq!(run.code, 0, "{run}");
            String::from_utf8_lossy(&std::fs::read(&log).unwrap()).into_owned()
        };
        // Calls before the program's own ones belong to the loader and the language runtime.
        let own = self.command();
        let mut version = Command::new(own.get_program());
        version.arg("--version");
        for (name, value) in own.get_envs().filter_map(|(name, value)| Some((name, value?))) {
            version.env(name, value);
        }
        let start = Calls::read(&traced(version), Some(" write(1,"));
        self.prepare();
        let calls = Calls::read(&traced(own), None);
        let moments = calls.moments(&start).into_iter();
        moments.map(|(call, when)| (call, when.into_iter().collect())).collect()
    }
}

/// Whether a run ended by a panic or a signal.
fn has_died(run: &Run) -> bool {
    run.code >= 124 || run.err().contains("panicked at")
}

/// A text for the first of several findings.
fn problem(what: &str, found: Vec<String>) -> Option<String> {
    (!found.is_empty()).then(|| format!("{what}: {}", found.join("; ")))
}

/// All faults that a run may meet. A call that no table knows is one too many; one that this strace
/// cannot name is left out.
fn faults(moments: &BTreeMap<String, Vec<u64>>) -> Vec<(Vec<Fault>, May)> {
    let is_listed = |call: &str| LEFT_ALONE.iter().any(|(_, calls)| calls.contains(&call));
    let left_alone = |call: &str| is_listed(call) || call.starts_with("syscall_0x");
    let mut all = Vec::new();
    for (call, when) in moments.iter().filter(|(call, _)| !left_alone(call)) {
        let row = ROWS.iter().find(|(name, ..)| name == call);
        let (_, errors, may) = row.unwrap_or_else(|| panic!("no table of errors has {call}"));
        let each = errors
            .iter()
            .flat_map(|error| when.iter().map(move |number| Fault::once(call, error, *number)));
        all.push((each.collect(), *may));
    }
    all
}

/// Some of a call's faults: the same each time, others for each `salt`.
fn selected(faults: Vec<Fault>, wanted: usize, salt: usize) -> Vec<Fault> {
    let count = faults.len();
    let picked = |number: usize| (salt * 7 + number * count / wanted) % count;
    let mut at: Vec<usize> = (0..wanted.min(count)).map(picked).collect();
    at.sort_unstable();
    at.dedup();
    at.into_iter().map(|at| faults[at].clone()).collect()
}

/// Sweeps over one command: all its faults, or of each call as many as `wanted`, where `salt` tells
/// the selection from those of other commands.
pub fn sweep(scenario: &dyn Scenario, wanted: usize, salt: usize) {
    if !can_inject() {
        return;
    }
    let full = std::env::var("HAKOBU_SWEEP").is_ok_and(|how| how == "full");
    let (mut tried, mut missed, mut wrong) = (0, Vec::new(), Vec::new());
    for (faults, may) in faults(&scenario.moments()) {
        let faults = if full { faults } else { selected(faults, wanted, salt) };
        for fault in faults.into_iter().filter(|fault| scenario.concerns(fault)) {
            match scenario.try_out(&fault, may) {
                None => missed.push(fault.to_string()),
                Some(judged) => {
                    tried += 1;
                    wrong.extend(judged.err());
                }
            }
        }
    }
    let line = scenario.line();
    let counts = format!("{tried} faults ({} more not met), {} wrong", missed.len(), wrong.len());
    report("fault sweep", line, &counts);
    assert!(tried > 20 && missed.len() < tried / 4, "{line}: only {tried}; not met: {missed:?}");
    assert!(wrong.is_empty(), "{line}: {counts}:\n{}", wrong.join("\n"));
}

/// Says how much was tried, past the capture of test output: the number is part of the result.
pub fn report(what: &str, line: &str, counts: &str) {
    let _ = std::io::stderr().write_all(format!("{what}: {counts}: {line}\n").as_bytes());
}

/// Whether faults can be injected here; says so if not.
pub fn can_inject() -> bool {
    if is_set("LD_PRELOAD") {
        skip("fault sweep: LD_PRELOAD makes calls of its own");
        return false;
    }
    have("strace", "fault sweep")
}
