//! Executes one run of a cell: prepare, time, check, clean up.

use super::bench::{Bench, CommandEnding, Measurement};
use super::extract::extract;
use super::order::seed_of;
use crate::campaign::{Launch, PlannedCell};
use crate::results::{LoadCurves, Run};

/// Most characters of output quoted in a sentence.
const QUOTED_MAX: usize = 200;

/// A completed run.
#[derive(Debug, Default)]
pub(super) struct CompletedRun {
    pub(super) run: Run,
    pub(super) curves: Option<LoadCurves>,
    /// Its output, if metrics were extracted from it.
    pub(super) output: Option<String>,
    /// CPU time of the lab meanwhile, seconds.
    pub(super) lab_cpu_s: f64,
}

/// Number of a run of its command, as hyperfine(1) tells it to commands: those that count from 0, or `warmup-0`.
/// `first`: block of the first one.
pub(super) fn iteration(run: &Run, first: u32) -> String {
    match run.warmup {
        true => format!("warmup-{}", run.block),
        false => run.block.saturating_sub(first).to_string(),
    }
}

/// Executes a run; `run` identifies it, and `iteration` is its number for commands. `None` if a stop interrupted it.
pub(super) fn once(
    planned: &PlannedCell,
    run: Run,
    seed: u64,
    iteration: String,
    bench: &mut dyn Bench,
) -> Option<CompletedRun> {
    bench.begins(Some(iteration));
    let done = prepared(planned, run, seed, bench);
    bench.begins(None);
    done
}

fn prepared(
    planned: &PlannedCell,
    mut run: Run,
    seed: u64,
    bench: &mut dyn Bench,
) -> Option<CompletedRun> {
    let problem = prepare(planned, &mut run, bench);
    if bench.is_stopped() {
        conclude(planned, bench);
        return None;
    }
    let (mut curves, mut output, mut lab_cpu_s) = (None, None, 0.0);
    let problem = match problem {
        Some(problem) => Some(problem),
        None => match bench.measure(&planned.launch) {
            Err(why) => Some(why),
            Ok(measured) => {
                lab_cpu_s = measured.lab_cpu_s;
                let (t_s, values) = measured.curves.clone();
                if !t_s.is_empty() {
                    curves = Some(LoadCurves { cell: run.cell, block: run.block, t_s, values });
                }
                let Run { cell, block, place, warmup, at_s, cached, .. } = run;
                let exit_code = match measured.ending {
                    CommandEnding::Exited(code) => Some(code),
                    CommandEnding::Killed(_)
                    | CommandEnding::TimedOut
                    | CommandEnding::Stopped(_) => None,
                };
                let costs = measured.costs.clone();
                run = Run { cell, block, place, warmup, at_s, cached, exit_code, ..costs };
                ended_well(&planned.launch, &measured)
                    .or_else(|| extracted(planned, &mut run, &mut output, &measured))
            }
        },
    };
    let problem = problem.or_else(|| {
        let result = bench.check(&planned.check, seed_of(seed, &run));
        run.checked = result.checked;
        result.problem
    });
    let concluded = conclude(planned, bench);
    run.problem = problem.or(concluded);
    run.ok = run.problem.is_none();
    (!bench.is_stopped()).then_some(CompletedRun { run, curves, output, lab_cpu_s })
}

fn prepare(planned: &PlannedCell, run: &mut Run, bench: &mut dyn Bench) -> Option<String> {
    for action in &planned.prepare {
        if bench.is_stopped() {
            return None;
        }
        if let Err(why) = bench.prepare(action) {
            return Some(format!("could not be prepared: {why}"));
        }
    }
    run.cached = planned.source.as_deref().and_then(|source| bench.cached(source));
    None
}

/// Runs the commands that follow a run, also after a failure.
fn conclude(planned: &PlannedCell, bench: &mut dyn Bench) -> Option<String> {
    let mut problem = None;
    for command in &planned.conclude {
        if let Err(why) = bench.shell(command, true) {
            problem.get_or_insert(format!("what follows the run failed: {why}"));
        }
    }
    problem
}

/// Describes how a command failed, if it did.
fn ended_well(launch: &Launch, measured: &Measurement) -> Option<String> {
    let how = match measured.ending {
        CommandEnding::Exited(code) if launch.accepts.accepts(code) => return None,
        CommandEnding::Exited(code) => format!("ended with exit code {code}"),
        CommandEnding::Killed(signal) => format!("was killed by signal {signal}"),
        CommandEnding::Stopped(signal) => {
            format!("was stopped by signal {signal} and not continued, so it was killed")
        }
        CommandEnding::TimedOut => {
            let limit_s = launch.timeout.unwrap_or_default().as_secs_f64();
            format!("took longer than {limit_s} s and was killed")
        }
    };
    let said = last_line(&measured.stderr).or_else(|| last_line(&measured.stdout));
    Some(match said {
        Some(said) => format!("{how}; it said: {said}"),
        None => how,
    })
}

fn extracted(
    planned: &PlannedCell,
    run: &mut Run,
    output: &mut Option<String>,
    measured: &Measurement,
) -> Option<String> {
    match extract(planned.extract, &measured.stdout) {
        Ok(found) => {
            run.metrics = found.metrics;
            if let Some(items_s) = run.metrics.get("items_s").copied()
                && run.wall_s > 0.0
            {
                run.metrics.insert("concurrency".to_owned(), items_s / run.wall_s);
            }
            run.verdict = found.verdict;
            *output = found.document;
            None
        }
        Err(why) => Some(why),
    }
}

/// Last non-empty line, shortened.
fn last_line(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    let clean = line.chars().map(|c| if c.is_control() { ' ' } else { c });
    Some(clean.take(QUOTED_MAX).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::ExitCodes;
    use std::time::Duration;

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
}
