//! The verdict on a run: one sentence at its end, all evidence for `--explain`, and the values of the summary in
//! JSON.

use crate::number;
use hakobu_explain::tune::TuningStep;
pub use hakobu_explain::verdict::sentence;
use hakobu_explain::verdict::{Conclusion, Evidence, Experiment, Facts, Verdict, judge, measure};
use hakobu_transfer::run::Findings;
use serde::Serialize;
use std::fmt::Write;

/// Returns the verdict of a run; for a short one, that it was too short.
pub fn of(findings: &Findings) -> Verdict {
    let unjudged = || Verdict { signals: Vec::new(), ..judge(&Facts::default()) };
    findings.verdict.clone().unwrap_or_else(unjudged)
}

/// Returns the full verdict as lines: the sentence, each signal with its threshold and conclusion, the history of the
/// number of jobs, the experiments.
pub fn full(verdict: &Verdict, path: &[TuningStep]) -> String {
    let mut out = format!("{}\n", sentence(verdict));
    let rows: Vec<[String; 4]> = verdict
        .signals
        .iter()
        .filter(|signal| signal.evidence.signal != "experiment_elasticity")
        .map(|signal| {
            let of = &signal.evidence;
            let name = match of.of.as_str() {
                "" => of.signal.to_string(),
                device => format!("{} {device}", of.signal),
            };
            [name, measure(of, of.value), measure(of, of.limit), signal.says.to_owned()]
        })
        .collect();
    if !rows.is_empty() {
        let head = ["signal", "value", "limit", "says"].map(str::to_owned);
        out.push('\n');
        push_table(&[vec![head], rows].concat(), &mut out);
    }
    if !verdict.experiments.is_empty() {
        out.push_str("\nexperiments (effect on the rate, relative to the change; 95 % interval)\n");
        for made in &verdict.experiments {
            out.push_str(&experiment(made));
        }
    }
    let tried = tried(path);
    if !tried.is_empty() {
        let _ = writeln!(out, "\njobs {tried}");
    }
    out
}

fn experiment(made: &Experiment) -> String {
    let (mean, low, high) = made.elasticity;
    let says = match made.says {
        Conclusion::Bottleneck => "binds",
        Conclusion::NoEffect => "does not bind",
        Conclusion::Unclear => "not clear",
    };
    format!(
        "  {} × {:.2}: {:.0} % ({:.0} to {:.0} %), {}: {says}\n",
        made.resource.name(),
        made.factor,
        mean * 100.0,
        low * 100.0,
        high * 100.0,
        number::things(made.pairs as u64, "pair"),
    )
}

/// Returns the numbers of jobs in the order in which they were set, and the best of them.
fn tried(path: &[TuningStep]) -> String {
    let mut steps: Vec<usize> = path.iter().map(|step| step.jobs).collect();
    steps.dedup();
    let shown: Vec<String> = match steps.len() {
        0..=16 => steps.iter().map(usize::to_string).collect(),
        // The beginning shows the search, the end the final number.
        _ => {
            let (first, last) = (&steps[..10], &steps[steps.len() - 5..]);
            let first = first.iter().map(usize::to_string);
            first.chain(["…".to_owned()]).chain(last.iter().map(usize::to_string)).collect()
        }
    };
    let measured = path.iter().filter_map(|step| Some((step, step.rate?)));
    let best = measured.max_by(|a, b| a.1.total_cmp(&b.1));
    let best = best.map_or(String::new(), |(step, _)| {
        // The units of the summary: a credit for entries, by which numbers of jobs are compared, is no byte.
        let bytes = number::bytes(step.bytes_per_s.unwrap_or(0.0).max(0.0) as u64);
        let entries = step.entries_per_s.unwrap_or(0.0).max(0.0).round() as u64;
        format!(" (best: {bytes}/s, {} entries/s with {})", number::grouped(entries), step.jobs)
    });
    if shown.is_empty() { String::new() } else { format!("{}{best}", shown.join(" → ")) }
}

/// Appends columns of minimal width: numbers right-aligned, words left-aligned.
fn push_table(rows: &[[String; 4]], out: &mut String) {
    let wide = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let (a, b, c) = (wide(0).unwrap_or(0), wide(1).unwrap_or(0), wide(2).unwrap_or(0));
    for [name, value, limit, says] in rows {
        let _ = writeln!(out, "  {name:a$}  {value:>b$}  {limit:>c$}  {says}");
    }
}

/// `verdict` of the summary.
#[derive(Debug, Serialize)]
pub struct Value {
    resource: &'static str,
    level: &'static str,
    evidence: Vec<Signal>,
    advice: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    experiments: Vec<Tried>,
}

#[derive(Debug, Serialize)]
struct Signal {
    signal: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    of: String,
    value: f64,
    limit: f64,
}

#[derive(Debug, Serialize)]
struct Tried {
    resource: &'static str,
    factor: f64,
    elasticity: f64,
    low: f64,
    high: f64,
    pairs: usize,
}

/// A point of `jobs_path` of the summary.
#[derive(Debug, Serialize)]
pub struct Jobs {
    t_s: f64,
    jobs: usize,
    rate: Option<f64>,
    entries_per_s: Option<f64>,
}

/// Returns the verdict for JSON.
pub fn value(verdict: &Verdict) -> Value {
    let signal = |of: &Evidence| Signal {
        signal: of.signal.to_string(),
        of: of.of.clone(),
        value: of.value,
        limit: of.limit,
    };
    let tried = |made: &Experiment| Tried {
        resource: made.resource.name(),
        factor: made.factor,
        elasticity: made.elasticity.0,
        low: made.elasticity.1,
        high: made.elasticity.2,
        pairs: made.pairs,
    };
    Value {
        resource: verdict.resource.name(),
        level: verdict.level.name(),
        evidence: verdict.evidence.iter().map(signal).collect(),
        advice: verdict.advice.clone(),
        experiments: verdict.experiments.iter().map(tried).collect(),
    }
}

/// Returns the history of the number of jobs for JSON: seconds since the start, units, content bytes and entries per
/// second (`null` if no window counted).
pub fn jobs_path(path: &[TuningStep]) -> Vec<Jobs> {
    let point = |step: &TuningStep| Jobs {
        t_s: step.at.as_secs_f64(),
        jobs: step.jobs,
        rate: step.bytes_per_s,
        entries_per_s: step.entries_per_s,
    };
    path.iter().map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_explain::verdict::Resource;
    use std::time::Duration;

    fn full_cpus() -> Facts {
        let mut facts = Facts {
            span_s: 10.0,
            cpus: 2.0,
            cpu_used: 1.98,
            machine_used: Some(2.0),
            run_delay: Some(0.41),
            ..Facts::default()
        };
        facts.phases[5] = 4.0;
        facts
    }

    fn step(at_s: u64, jobs: usize, rate: Option<f64>) -> TuningStep {
        // Half of the goodput is content, half a credit for entries.
        let bytes_per_s = rate.map(|rate| rate / 2.0);
        let entries_per_s = rate.map(|_| 10.0);
        TuningStep { at: Duration::from_secs(at_s), jobs, rate, bytes_per_s, entries_per_s }
    }

    #[test]
    fn one_sentence() {
        assert_eq!(
            sentence(&judge(&full_cpus())),
            "Limited by the CPU (at the limit of: 1.98 of 2 CPUs used, 2 of 2 used by all \
             processes, 41 % of runnable time waiting). Twice the cores would help."
        );
        assert_eq!(
            sentence(&judge(&Facts::default())),
            "The limit is not determined. There was too little work to tell what would make it \
             faster."
        );
    }

    #[test]
    fn everything() {
        let mut facts = full_cpus();
        facts.experiments = vec![Experiment {
            resource: Resource::Cpu,
            factor: 0.5,
            elasticity: (0.93, 0.85, 1.02),
            pairs: 6,
            says: Conclusion::Bottleneck,
        }];
        let path = [step(0, 4, Some(1e6)), step(1, 8, Some(2e6)), step(2, 4, None)];
        let text = full(&judge(&facts), &path);
        assert!(text.starts_with("Limited by the CPU (proven: 93 % of the change of cpu showed"));
        for line in [
            "  signal             value  limit  says\n",
            "  cpu_used_cpus       1.98      2  it uses all CPUs that it may\n",
            "  run_delay_share     41 %   10 %  its threads wait for CPUs\n",
            "  phase_write_share  100 %   50 %  most of the time\n",
            "  cpu × 0.50: 93 % (85 to 102 %), 6 pairs: binds\n",
            "\njobs 4 → 8 → 4 (best: 1.00 MB/s, 10 entries/s with 8)\n",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        let long: Vec<TuningStep> = (1..40).map(|jobs| step(jobs as u64, jobs, None)).collect();
        assert!(full(&judge(&facts), &long).contains("→ 10 → … → 35 →"));
    }

    #[test]
    fn json() {
        let value = serde_json::to_value(value(&judge(&full_cpus()))).unwrap();
        assert_eq!(value["resource"], "cpu");
        assert_eq!(value["level"], "at-limit");
        assert_eq!(value["evidence"][0]["signal"], "cpu_used_cpus");
        assert_eq!(value["evidence"][0]["value"], 1.98);
        assert_eq!(value["evidence"][0]["limit"], 2.0);
        assert_eq!(value["advice"], "Twice the cores would help.");
        assert!(value.get("experiments").is_none());
        let path = serde_json::to_string(&jobs_path(&[step(3, 8, Some(5.5)), step(4, 12, None)]));
        assert_eq!(
            path.unwrap(),
            r#"[{"t_s":3.0,"jobs":8,"rate":2.75,"entries_per_s":10.0},{"t_s":4.0,"jobs":12,"rate":null,"entries_per_s":null}]"#
        );
    }

    #[test]
    fn numbers_have_units() {
        let of = |signal, value| {
            let signal = std::borrow::Cow::Borrowed(signal);
            measure(&Evidence { signal, of: String::new(), value, limit: 1.0 }, value)
        };
        assert_eq!(of("retransmits_share", 0.004), "0.4 %");
        assert_eq!(of("disk_write_iops", 2999.6), "3,000");
        assert_eq!(of("disk_write_bytes_per_s", 1.25e8), "125.00 MB/s");
        assert_eq!(of("dirty_bytes", 3e8), "300.00 MB");
        assert_eq!(of("rtt_ms", 0.08), "0.08 ms");
        assert_eq!(of("jobs_elasticity", -0.04), "-4 %");
        assert_eq!(of("rtt_ms", f64::NAN), "?");
    }
}
