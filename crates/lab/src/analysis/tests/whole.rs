//! Whole campaigns on simulated machines.

use crate::analysis::fit::FitModel;
use crate::analysis::ranking::Baseline;
use crate::analysis::statistics::SpeedClaim;
use crate::analysis::tests::{campaign, cell, near, normal, run};
use crate::analysis::verdict::Finding;
use crate::analysis::{analyse, tests};
use crate::report;
use crate::report::Language;
use crate::results::{CounterExperiment, LoadCurves, Results};
use hakobu_explain::verdict::Resource;

/// hakobu and rsync over jobs on two CPUs, with a control; rsync takes three times the CPU.
fn two_tools(noise: f64, seed: u64, blocks: u32) -> Results {
    let mut results = campaign();
    results.header.seed = seed;
    let mut random = fastrand::Rng::with_seed(seed);
    // Total CPU seconds of each tool.
    let tools = [("hakobu", 4.0), ("rsync", 12.0)];
    let mut cells = Vec::new();
    for (tool, cpu_s) in tools {
        for jobs in [1.0, 2.0, 4.0, 8.0, 16.0] {
            let id = cell(&mut results, "", tool, Some(jobs));
            // A job waits for three quarters of its time, until both CPUs are full.
            cells.push((id, cpu_s, (4.0 * cpu_s / jobs).max(cpu_s / 2.0)));
        }
    }
    let control = cell(&mut results, "", "hakobu", Some(8.0));
    results.header.cells[control as usize].control_of = Some(3);
    cells.push((control, 4.0, 2.0));
    for block in 0..blocks {
        let weather = (0.1 * normal(&mut random)).exp();
        for (id, cpu_s, wall_s) in &cells {
            let wall_s = wall_s * weather * (noise * normal(&mut random)).exp();
            run(&mut results, *id, (wall_s, 0.8 * cpu_s, 0.2 * cpu_s));
            let last = results.runs.last_mut().unwrap();
            assert_eq!(last.block, block);
            let used = 100.0 * (cpu_s / wall_s / 2.0).min(1.0);
            last.load = [("cpu_percent".to_owned(), used)].into();
            last.rss_bytes_max = 1 << 20;
        }
    }
    results
}

#[test]
fn a_noisy_machine_has_no_verdict() {
    let (mut equal, mut apart) = (0, 0);
    for seed in 0..8 {
        let results = two_tools(if seed < 4 { 0.6 } else { 2.0 }, seed, 7);
        let mut found = analyse(&results);
        let noise = found.noise.unwrap();
        assert!(noise > 0.2, "{noise}");
        found.compare_with(&results, &Baseline::parse("jobs=1").unwrap()).unwrap();
        let gains = found.gains.iter().map(|gain| gain.ratio);
        for gain in gains.filter(|of| !of.exceeds(noise)) {
            assert_eq!(gain.claim, SpeedClaim::Unclear, "{gain:?}");
        }
        let verdict = report::said(&results, &found, Language::English).verdict;
        let leads = |said: &String| said.contains(" as fast as ") || said.contains(" than with ");
        let expected = match verdict.iter().any(leads) {
            true => "This machine is noisy: differences below ",
            false => "This machine is very noisy: differences below ",
        };
        assert!(verdict[0].starts_with(expected), "{verdict:?}");
        // No number of jobs, no bottleneck, no model; and no lead that is smaller than the noise.
        for word in ["enough", "ottleneck", "Model of", "No effect"] {
            assert!(!verdict.iter().any(|said| said.contains(word)), "{verdict:?}");
        }
        let [.., Finding::Leads(leads)] = found.verdict.as_slice() else { panic!("{verdict:?}") };
        let [lead] = leads.as_slice() else { panic!("{leads:?}") };
        match &lead.next {
            Some((_, ratio)) => assert!(ratio.low > 1.0 + noise, "{lead:?}"),
            None => assert_eq!(lead.tied.len(), 1, "{lead:?}"),
        }
        equal += usize::from(lead.next.is_none());
        apart += usize::from(lead.next.is_some());
    }
    assert!(equal > 0 && apart > 0, "{equal} {apart}");
}

#[test]
fn a_campaign_says_what_its_machine_is() {
    let results = two_tools(0.01, 3, 7);
    let found = analyse(&results);
    let words = report::said(&results, &found, Language::English);
    assert_eq!(found.cells.len(), 11);
    assert_eq!(found.sweeps.len(), 2);
    for (sweep, words) in found.sweeps.iter().zip(&words.stretches) {
        let knee = sweep.knee.unwrap();
        assert_eq!((knee.x, knee.at_edge), (8.0, false), "{knee:?}");
        let fit = sweep.fit.unwrap();
        assert_eq!((fit.model, sweep.rate_unit.as_str()), (FitModel::Cap, "files/s"));
        let least = if sweep.series == "hakobu" { 2.0 } else { 6.0 };
        assert!(near(fit.value(32.0), least, 0.1), "{fit:?}");
        assert_eq!(words[0], "latency up to 4 jobs (likely)");
        assert!(words[1].starts_with("CPU from 8 jobs up ("), "{words:?}");
    }
    let [rival] = found.comparisons.as_slice() else { panic!("{:?}", found.comparisons) };
    assert_eq!(rival.ratio.claim, SpeedClaim::Faster);
    assert!(near(rival.ratio.ratio.mid, 3.0, 0.05), "{rival:?}");
    let [control] = found.controls.as_slice() else { panic!("{:?}", found.controls) };
    assert!(matches!(control.ratio.claim, SpeedClaim::Same | SpeedClaim::Unclear), "{control:?}");
    assert!(found.noise.is_some_and(|noise| noise > 0.0 && noise < 0.05), "{:?}", found.noise);
    // 10 CPU seconds for 2,000 files.
    let of = &found.cells[0];
    assert!(near(of.cpu_s_per_1000_files.unwrap(), 2.0, 1e-9), "{of:?}");
    assert!(near(of.cpu_s_per_gb.unwrap(), 4.0 / 0.008_192, 1e-9));
    assert_eq!((of.runs, of.failed, of.rss_bytes), (7, 0, 1_048_576.0));
    let verdict = words.verdict.join(" ");
    assert!(verdict.starts_with("hakobu was fastest ("), "{verdict}");
    for part in ["× (2.9", " as fast as rsync.", "8 jobs are ", "; bottleneck beyond that: CPU ("]
    {
        assert!(verdict.contains(part), "{part}: {verdict}");
    }
    assert!((1..=4).contains(&found.verdict.len()));
    assert!(found.caveats.is_empty(), "{:?}", found.caveats);
    // Equal results give an equal analysis.
    assert_eq!(analyse(&two_tools(0.01, 3, 7)), found);
    let text = serde_json::to_string(&found).unwrap();
    assert!(text.contains(r#""claim":"faster""#), "{text}");
}

#[test]
fn controls_of_campaigns_claim_nothing() {
    let claims = (0..60).filter(|seed| {
        let found = analyse(&two_tools(0.03, 100 + seed, 5));
        matches!(found.controls[0].ratio.claim, SpeedClaim::Faster | SpeedClaim::Slower)
    });
    assert!(claims.count() <= 3, "5 % of 60");
}

#[test]
fn failed_runs_and_warm_ups_do_not_count() {
    let mut results = campaign();
    let id = cell(&mut results, "", "cp", None);
    for wall_s in [1.0, 1.1, 0.9, 1.0, 0.01, 77.0] {
        run(&mut results, id, (wall_s, 0.1, 0.1));
    }
    results.runs[4].ok = false;
    results.runs[4].problem = Some("12 files are missing.".to_owned());
    results.runs[5].warmup = true;
    let never = cell(&mut results, "", "broken", None);
    run(&mut results, never, (1.0, 0.1, 0.1));
    results.runs[6].ok = false;
    let found = analyse(&results);
    let of = &found.cells[0];
    assert_eq!((of.runs, of.failed, of.value.unwrap().mid), (4, 1, 1.0));
    assert_eq!(of.problems, ["12 files are missing."]);
    assert_eq!((found.cells[1].runs, found.cells[1].value), (0, None));
    let words = report::said(&results, &found, Language::English);
    let caveats = words.caveats.join(" ");
    let failed = "Runs that failed and do not count: 1 (cp): 12 files are missing.";
    assert!(caveats.contains(failed), "{caveats}");
    assert!(caveats.contains("No run of broken succeeded: it did not end well."), "{caveats}");
    assert_eq!(words.verdict[0], "cp: 1 s (median of 4).");
}

#[test]
fn outliers_are_flagged_and_counted() {
    let mut results = campaign();
    let id = cell(&mut results, "", "cp", None);
    for wall_s in [1.0, 1.01, 0.99, 1.02, 5.0, 0.98, 1.0] {
        run(&mut results, id, (wall_s, 0.1, 0.1));
    }
    let found = analyse(&results);
    assert_eq!((found.cells[0].outliers.clone(), found.cells[0].runs), (vec![4], 7));
    assert!(near(found.cells[0].mean.unwrap(), 11.0 / 7.0, 1e-9));
    assert_eq!(
        report::said(&results, &found, Language::English).caveats[0],
        "Outliers, not removed: 1 (cp)."
    );
    // Equal values have no outliers, nor have three values.
    results.runs.iter_mut().for_each(|run| run.wall_s = 1.0);
    assert!(analyse(&results).cells[0].outliers.is_empty());
}

#[test]
fn rates_instead_of_times() {
    let mut results = campaign();
    (results.header.metric, results.header.more_is_better) = ("iops".to_owned(), true);
    let fio = cell(&mut results, "", "fio", None);
    let own = cell(&mut results, "", "hakobu", None);
    for block in 0..5 {
        for (id, rate) in [(fio, 1000.0), (own, 1500.0)] {
            tests::run_with(&mut results, id, "iops", rate + f64::from(block));
        }
    }
    run(&mut results, fio, (1.0, 0.1, 0.1));
    let found = analyse(&results);
    // The baseline is not hakobu; a run without the metric does not count.
    assert_eq!((found.comparisons[0].a, found.comparisons[0].b), (own, fio));
    assert_eq!(found.comparisons[0].ratio.claim, SpeedClaim::Faster);
    assert_eq!(found.cells[0].problems, ["it has no iops"]);
    let verdict = report::said(&results, &found, Language::English).verdict;
    assert!(verdict[0].contains("(1,502 IOPS), 1.50× "), "{verdict:?}");
    assert!(verdict[0].ends_with(" as fast as fio."), "{verdict:?}");
}

#[test]
fn machines_that_disturb_are_told() {
    let mut results = two_tools(0.01, 1, 5);
    for run in &mut results.runs {
        run.load.insert("steal_percent".to_owned(), 12.0);
        run.load.insert("cpu_percent".to_owned(), 99.0);
        run.cached = Some(if run.block == 0 { 0.0 } else { 1.0 });
    }
    results.header.left_out = vec!["fpsync: apt install fpart".to_owned()];
    results.header.scale = 0.1;
    if let Some(end) = &mut results.end {
        (end.reason, end.overhead) = ("budget".to_owned(), 0.05);
    }
    let caveats = report::said(&results, &analyse(&results), Language::English).caveats.join("\n");
    for part in [
        "time budget ran out",
        "hypervisor took up to 12%",
        "Other processes used",
        "Cold and warm runs are mixed",
        "own sampling used 5% of one CPU",
        "10% of the described size",
        "Left out: fpsync: apt install fpart",
    ] {
        assert!(caveats.contains(part), "{part}: {caveats}");
    }
}

#[test]
fn curves_tell_from_when_runs_are_steady() {
    let mut results = campaign();
    let id = cell(&mut results, "", "cp", None);
    for block in 0..3 {
        run(&mut results, id, (6.0, 0.1, 0.1));
        let t_s: Vec<f64> = (1..=60).map(|n| f64::from(n) / 10.0).collect();
        let rates = t_s.iter().map(|t| if *t <= 1.0 { 9e8 } else { 1e8 }).collect();
        let values = [("write".to_owned(), rates), ("net".to_owned(), vec![0.0; 60])].into();
        results.curves.push(LoadCurves { cell: id, block, t_s, values });
    }
    let found = analyse(&results).cells[0].steady_s;
    assert!(found.is_some_and(|from_s| (0.9..=1.2).contains(&from_s)), "{found:?}");
    results.curves.clear();
    assert_eq!(analyse(&results).cells[0].steady_s, None);
}

#[test]
fn nothing_was_measured() {
    let found = analyse(&Results::default());
    let verdict = report::said(&Results::default(), &found, Language::English).verdict;
    assert_eq!(verdict, ["No run succeeded, so there is no result."]);
    assert!(found.cells.is_empty() && found.noise.is_none());
    let mut results = campaign();
    cell(&mut results, "", "cp", Some(1.0));
    let found = analyse(&results);
    assert_eq!(found.cells[0].limiting.resource, Resource::None);
}

#[test]
fn many_groups_are_counted() {
    let mut results = campaign();
    let mut random = fastrand::Rng::with_seed(9);
    for (group, times) in [("a", 2.0), ("b", 3.0), ("c", 0.5)] {
        for (tool, wall_s) in [("hakobu", 1.0), ("cp", times)] {
            let id = cell(&mut results, group, tool, None);
            for _ in 0..5 {
                run(&mut results, id, (wall_s * (0.01 * normal(&mut random)).exp(), 0.1, 0.1));
            }
        }
    }
    let found = analyse(&results);
    let first = |results: &Results| {
        report::said(results, &analyse(results), Language::English).verdict.remove(0)
    };
    assert_eq!(first(&results), "hakobu was fastest in 2 of 3 groups, cp in 1.");
    assert_eq!(found.comparisons.len(), 3);
    for run in results.runs.iter_mut().filter(|run| run.cell == 5) {
        run.wall_s *= 8.0;
    }
    let verdict = first(&results);
    assert!(verdict.starts_with("hakobu was fastest in all 3 groups, "), "{verdict}");
    assert!(verdict.ends_with("× as fast as the next."), "{verdict}");
    // Two groups have a sentence each.
    results.header.cells.truncate(4);
    let verdict = first(&results);
    assert!(verdict.starts_with("a: hakobu was fastest ("), "{verdict}");
    assert!(verdict.contains(" b: hakobu was fastest ("), "{verdict}");
}

#[test]
fn a_tool_that_finds_its_jobs_by_itself_is_told_first() {
    let mut results = two_tools(0.01, 3, 7);
    let id = cell(&mut results, "", "hakobu auto", None);
    let verdict = serde_json::json!({"resource": "cpu", "level": "at-limit"});
    for _ in 0..7 {
        run(&mut results, id, (1.0, 1.9, 0.1));
        results.runs.last_mut().unwrap().verdict = Some(verdict.clone());
    }
    let said = report::said(&results, &analyse(&results), Language::English).verdict;
    assert!(said[1].starts_with("Bottleneck of hakobu auto: CPU (at its limit: "), "{said:?}");
    assert!(said[2].starts_with("hakobu: 8 jobs are "), "{said:?}");
}

// Exact sentences in both languages, from the same numbers.

/// Two tools on an idle machine, with an experiment and a failed run.
fn whole() -> Results {
    let mut results = two_tools(0.0, 3, 7);
    results.experiments.push(CounterExperiment {
        cell: 3,
        changed: "cpus".to_owned(),
        about: "cpus 2 → 1".to_owned(),
        factor: 0.5,
        ratios: vec![0.5; 5],
    });
    results.runs[0].ok = false;
    results.runs[0].problem = Some("12 files are missing.".to_owned());
    results.header.left_out = vec!["cpz: not installed".to_owned()];
    results
}

/// Four groups: hakobu leads in three, cp in one; some tools are within noise.
fn groups() -> Results {
    let mut results = campaign();
    for (group, times) in [
        ("small", [1.0, 1.0, 2.0]),
        ("deep", [1.0, 2.0, 2.0]),
        ("links", [1.0, 1.0, 1.0]),
        ("large", [2.0, 1.0, 1.0]),
    ] {
        for (tool, wall_s) in ["hakobu", "rsync", "cp"].into_iter().zip(times) {
            let id = cell(&mut results, group, tool, None);
            for block in 0..5 {
                // Nearly equal, in a deterministic order.
                let more = if tool == "hakobu" { 0.0 } else { 1e-3 };
                let wall_s = wall_s * (1.0 + more + 1e-3 * f64::from(block % 2));
                run(&mut results, id, (wall_s, 0.1, 0.1));
            }
        }
    }
    results
}

/// The first sentence of the verdict.
fn first(of: &Results, lang: Language) -> String {
    report::said(of, &analyse(of), lang).verdict.remove(0)
}

fn said(of: &Results, lang: Language) -> String {
    let found = report::said(of, &analyse(of), lang);
    [found.verdict, found.caveats].concat().join("\n") + "\n"
}

#[test]
fn a_sweep_in_english() {
    assert_eq!(said(&whole(), Language::English), EN_SWEEP);
}

#[test]
fn a_sweep_in_japanese() {
    assert_eq!(said(&whole(), Language::Japanese), JA_SWEEP);
}

#[test]
fn what_is_level_with_what_is_named() {
    assert_eq!(said(&groups(), Language::English), EN_GROUPS);
    assert_eq!(said(&groups(), Language::Japanese), JA_GROUPS);
    // With two groups each has its own sentence.
    let mut two = groups();
    two.header.cells.truncate(6);
    assert_eq!(first(&two, Language::English), EN_TWO);
    assert_eq!(first(&two, Language::Japanese), JA_TWO);
}

#[test]
fn the_verdict_on_many_groups_stays_short() {
    // Groups whose names are lists are counted.
    let mut named = groups();
    for cell in &mut named.header.cells {
        match cell.group.as_str() {
            "small" => cell.group = "3000 IOPS, 125 MB/s".to_owned(),
            "links" => cell.group = "6000 IOPS, 250 MB/s".to_owned(),
            _ => {}
        }
    }
    let said = [
        "hakobu was fastest in 3 of 4 groups, rsync in 1. In 3 of 4 groups the lead is within noise: rsync, cp.",
        "4 グループ中 3 グループで hakobu、1 グループで rsync が最速です。4 グループ中 3 グループでは 1 位との差が誤差の範囲です: rsync、cp。",
    ];
    assert_eq!(first(&named, Language::English), said[0]);
    assert_eq!(first(&named, Language::Japanese), said[1]);
    // Groups with too few runs are one sentence.
    let mut few = groups();
    few.runs.retain(|run| run.block < 2 || !(3..6).contains(&run.cell));
    let said = first(&few, Language::English);
    assert!(said.ends_with("In 1 of 4 groups there are too few runs to be sure."), "{said}");
    few.runs.retain(|run| run.block < 2);
    let said =
        "hakobu was fastest in 3 of 4 groups, rsync in 1. There are too few runs to be sure.";
    assert_eq!(first(&few, Language::English), said);
}

#[test]
fn both_languages_say_as_much() {
    let results = whole();
    let found = analyse(&results);
    let [en, ja] =
        [Language::English, Language::Japanese].map(|lang| report::said(&results, &found, lang));
    // Same number of sentences, each one different.
    assert_eq!((en.verdict.len(), en.caveats.len()), (ja.verdict.len(), ja.caveats.len()));
    let is_japanese = |text: &String| text.chars().any(|c| matches!(c, '\u{3040}'..='\u{9fff}'));
    assert!(ja.verdict.iter().chain(&ja.caveats).all(is_japanese));
    assert!(!en.verdict.iter().chain(&en.caveats).any(is_japanese));
}

const EN_SWEEP: &str = "\
hakobu was fastest (1.81 s with 8 jobs), 3.00× as fast as rsync.
hakobu: 8 jobs are fastest (1.81 s); beyond that the CPU is the bottleneck: half the CPUs ran 0.50× as \
fast. rsync: 8 jobs are fastest (5.44 s); bottleneck beyond that: CPU (at its limit).
Runs that failed and do not count: 1 (hakobu with 1 job): 12 files are missing.
Left out: cpz: not installed
";
const JA_SWEEP: &str = "\
最も速いのは hakobu（8 並列で 1.81 s）で、rsync の 3.00 倍の速さです。
hakobu: 8 並列が最速です（1.81 s）。それ以上は CPU がボトルネックです（CPU 数を半分にすると 0.50 倍の速さ）。\
rsync: 8 並列が最速です（5.44 s）。それ以上のボトルネック: CPU（上限に到達）。
失敗して除外した測定: 1 回（hakobu（1 並列））: 12 files are missing。
省略: cpz: not installed
";
const EN_GROUPS: &str = "\
hakobu was fastest in 3 of 4 groups, rsync in 1. In 3 of 4 groups the lead is within noise: small (rsync), \
links (rsync, cp), large (cp).
";
const JA_GROUPS: &str = "\
4 グループ中 3 グループで hakobu、1 グループで rsync が最速です。4 グループ中 3 グループでは 1 位との差が誤差の範囲です: \
small（rsync）、links（rsync、cp）、large（cp）。
";
const EN_TWO: &str = "\
small: No significant difference between hakobu (1 s) and rsync (1.00 s); hakobu was 2.00× as fast as cp. \
deep: hakobu was fastest (1 s), 2.00× as fast as rsync.";
const JA_TWO: &str = "\
small: hakobu（1 s）と rsync（1.00 s）に有意差はありません。hakobu は cp の 2.00 倍の速さです。\
deep: 最も速いのは hakobu（1 s）で、rsync の 2.00 倍の速さです。";
