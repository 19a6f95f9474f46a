//! The verdict on a run: one sentence at its end, all evidence for `--explain`, and the values of the summary in
//! JSON.

use crate::number;
use hakobu_core::language::Language;
use hakobu_explain::tune::TuningStep;
pub use hakobu_explain::verdict::sentence;
use hakobu_explain::verdict::{
    Conclusion, Evidence, Experiment, Facts, Resource, Verdict, advice_words, judge, measure,
    resource_words, signal_words, statement_words,
};
use hakobu_transfer::run::Findings;
use serde::Serialize;
use std::fmt::Write;

/// Returns the verdict of a run; for a short one, that it was too short, and where its time went.
pub fn of(findings: &Findings) -> Verdict {
    let unjudged = || {
        let phases = findings.phases;
        let mut verdict = judge(&Facts { phases, ..Facts::default() });
        // Nothing else was measured.
        let is_phase = |of: &Evidence| {
            of.signal.starts_with("phase_") || of.signal == "idle_units_share" && of.value > 0.0
        };
        verdict.signals.retain(|signal| is_phase(&signal.evidence));
        verdict
    };
    findings.verdict.clone().unwrap_or_else(unjudged)
}

/// Returns the full verdict as lines: the sentence, each signal with its threshold and conclusion, the history of the
/// number of jobs, the experiments.
pub fn full(verdict: &Verdict, path: &[TuningStep], language: Language) -> String {
    let mut out = format!("{}\n", sentence(verdict, language));
    let rows: Vec<[String; 4]> = verdict
        .signals
        .iter()
        .filter(|signal| signal.evidence.signal != "experiment_elasticity")
        .map(|signal| {
            let of = &signal.evidence;
            let says = statement_words(signal.says, language).to_owned();
            [signal_words(of, language), measure(of, of.value), measure(of, of.limit), says]
        })
        .collect();
    if !rows.is_empty() {
        let head = language.pick(
            ["signal", "value", "threshold", "meaning"],
            ["指標", "値", "上限・しきい値", "意味"],
        );
        out.push('\n');
        push_table(&[vec![head.map(str::to_owned)], rows].concat(), &mut out);
    }
    if !verdict.experiments.is_empty() {
        out.push_str(language.pick(
            "\nexperiments (effect on throughput relative to the change, with 95% confidence interval)\n",
            "\n実験（変化に対するスループットの変化、95% 信頼区間）\n",
        ));
        for made in &verdict.experiments {
            out.push_str(&experiment(made, language));
        }
    }
    let tried = tried(path, language);
    if !tried.is_empty() {
        let _ =
            writeln!(out, "\n{}", language.pick("jobs: {}", "並列数: {}").replace("{}", &tried));
    }
    out
}

fn experiment(made: &Experiment, language: Language) -> String {
    let (mean, low, high) = made.elasticity;
    let percent = |share: f64| format!("{:.0}", share * 100.0);
    let (mean, low, high) = (percent(mean), percent(low), percent(high));
    let is_fewer_jobs = made.resource == Resource::Latency && made.factor < 1.0;
    let says = match made.says {
        // Fewer jobs prove nothing about more.
        Conclusion::Bottleneck if is_fewer_jobs => language.pick(
            "fewer jobs are slower; more were not tried",
            "並列数を減らすと遅くなる（増やした効果は未確認）",
        ),
        Conclusion::Bottleneck => language.pick("it is the bottleneck", "ボトルネックである"),
        Conclusion::NoEffect => language.pick("not the bottleneck", "ボトルネックではない"),
        Conclusion::Unclear => language.pick("inconclusive", "判断できない"),
    };
    let what = match made.resource {
        Resource::Latency => language.pick("jobs", "並列数"),
        other => resource_words(other, language),
    };
    let factor = made.factor;
    match language {
        Language::English => {
            let pairs = number::things(made.pairs as u64, "pair");
            format!("  {what} × {factor:.2}: {mean}% ({low}% to {high}%), {pairs}: {says}\n")
        }
        Language::Japanese => {
            let pairs = made.pairs;
            format!("  {what} × {factor:.2}: {mean}%（{low}%〜{high}%、{pairs} 組）: {says}\n")
        }
    }
}

/// Returns the numbers of jobs in the order in which they were set, and the best of them.
fn tried(path: &[TuningStep], language: Language) -> String {
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
        let (entries, jobs) = (number::grouped(entries), step.jobs);
        match language {
            Language::English => format!(" (best: {bytes}/s, {entries} entries/s with {jobs})"),
            Language::Japanese => {
                format!("（最良: {jobs} 並列で {bytes}/s、毎秒 {entries} エントリー）")
            }
        }
    });
    if shown.is_empty() { String::new() } else { format!("{}{best}", shown.join(" → ")) }
}

/// Appends columns of minimal width: numbers right-aligned, words left-aligned.
fn push_table(rows: &[[String; 4]], out: &mut String) {
    let wide = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| columns(cell)).max().unwrap_or(0)
    };
    let (a, b, c) = (wide(0), wide(1), wide(2));
    let pad = |text: &str, width: usize| " ".repeat(width.saturating_sub(columns(text)));
    for [name, value, limit, says] in rows {
        let (after, before) = (pad(name, a), pad(value, b));
        let (between, limit_before) = ("  ", pad(limit, c));
        let _ = writeln!(
            out,
            "  {name}{after}{between}{before}{value}{between}{limit_before}{limit}{between}{says}"
        );
    }
}

/// Columns of a text on a terminal: Japanese characters take two.
fn columns(text: &str) -> usize {
    text.chars().map(|c| if c >= '\u{2e80}' { 2 } else { 1 }).sum()
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
        advice: advice_words(verdict, Language::English),
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
            sentence(&judge(&full_cpus()), Language::English),
            "Bottleneck: CPU (1.98 of 2 in use; runnable threads waited 41% of the time). \
             More cores would help."
        );
        assert_eq!(
            sentence(&judge(&Facts::default()), Language::English),
            "Bottleneck: unknown. There was too little work to judge."
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
        let text = full(&judge(&facts), &path, Language::English);
        let sentence =
            "Bottleneck: CPU, proven by experiment (half the CPUs gave 52% of the throughput";
        assert!(text.starts_with(sentence), "{text}");
        for line in [
            "  signal                                 value  threshold  meaning\n",
            "  CPUs used                               1.98          2  uses all of its CPUs\n",
            "  runnable time spent waiting for a CPU    41%        10%  threads wait for CPUs\n",
            "  busy workers writing                    100%        50%  most of the time\n",
            "  CPU × 0.50: 93% (85% to 102%), 6 pairs: it is the bottleneck\n",
            "\njobs: 4 → 8 → 4 (best: 1.00 MB/s, 10 entries/s with 8)\n",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        // Names of signals are for programs.
        assert!(!text.contains('_'), "{text}");
        let long: Vec<TuningStep> = (1..40).map(|jobs| step(jobs as u64, jobs, None)).collect();
        assert!(full(&judge(&facts), &long, Language::English).contains("→ 10 → … → 35 →"));
        let text = full(&judge(&facts), &path, Language::Japanese);
        assert!(text.starts_with("ボトルネック（実験で確認）: CPU（"), "{text}");
        assert!(
            text.contains(
                "  使用 CPU 数                    1.98               2  使用可能な CPU をすべて使用\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_short_run_says_where_its_time_went() {
        let mut findings = Findings::default();
        findings.phases[4] = 3.0;
        findings.phases[5] = 1.0;
        let verdict = of(&findings);
        assert_eq!(
            sentence(&verdict, Language::English),
            "Bottleneck: unknown. There was too little work to judge. Workers spent 75% of their \
             time creating files and 25% writing."
        );
        let text = full(&verdict, &[], Language::English);
        assert!(text.contains("  busy workers creating files    75%"), "{text}");
        assert!(!text.contains("CPUs used"), "{text}");
        assert!(!of(&Findings::default()).signals.iter().any(|of| of.evidence.value > 0.0));
    }

    #[test]
    fn json() {
        let value = serde_json::to_value(value(&judge(&full_cpus()))).unwrap();
        assert_eq!(value["resource"], "cpu");
        assert_eq!(value["level"], "at-limit");
        assert_eq!(value["evidence"][0]["signal"], "cpu_used_cpus");
        assert_eq!(value["evidence"][0]["value"], 1.98);
        assert_eq!(value["evidence"][0]["limit"], 2.0);
        assert_eq!(value["advice"], "More cores would help.");
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
        assert_eq!(of("retransmits_share", 0.004), "0.4%");
        assert_eq!(of("disk_write_iops", 2999.6), "3,000");
        assert_eq!(of("disk_write_bytes_per_s", 1.25e8), "125.00 MB/s");
        assert_eq!(of("dirty_bytes", 3e8), "300.00 MB");
        assert_eq!(of("rtt_ms", 0.08), "0.08 ms");
        assert_eq!(of("jobs_elasticity", -0.04), "-3%");
        assert_eq!(of("jobs_elasticity", 1.0), "100%");
        assert_eq!(of("rtt_ms", f64::NAN), "?");
    }
}
