//! Exact sentences in both languages, from the same numbers.

use super::whole::two_tools;
use super::{campaign, cell, run};
use crate::analysis::*;
use crate::results::{CounterExperiment, Results};

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

fn said(of: &Results, lang: Lang) -> String {
    let found = analyse_in(of, lang);
    [found.verdict, found.caveats].concat().join("\n") + "\n"
}

#[test]
fn a_sweep_in_english() {
    assert_eq!(said(&whole(), Lang::En), EN_SWEEP);
}

#[test]
fn a_sweep_in_japanese() {
    assert_eq!(said(&whole(), Lang::Ja), JA_SWEEP);
}

#[test]
fn what_is_level_with_what_is_named() {
    assert_eq!(said(&groups(), Lang::En), EN_GROUPS);
    assert_eq!(said(&groups(), Lang::Ja), JA_GROUPS);
    // With two groups each has its own sentence.
    let mut two = groups();
    two.header.cells.truncate(6);
    assert_eq!(analyse(&two).verdict[0], EN_TWO);
    assert_eq!(analyse_in(&two, Lang::Ja).verdict[0], JA_TWO);
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
        "hakobu was fastest in 3 of 4 groups, rsync in 1. Within noise of hakobu: rsync in 2 of 4 groups; cp in \
         1 of 4 groups. Within noise of rsync: cp in large.",
        "4 グループ中 3 グループで hakobu、1 グループで rsync が最速です。hakobu との差は次のツールで誤差の範囲です: \
         rsync（2 グループ）、cp（1 グループ）。rsync との差は次のツールで誤差の範囲です: cp（large）。",
    ];
    assert_eq!(analyse(&named).verdict[0], said[0]);
    assert_eq!(analyse_in(&named, Lang::Ja).verdict[0], said[1]);
    // Groups with too few runs are one sentence.
    let mut few = groups();
    few.runs.retain(|run| run.block < 2 || !(3..6).contains(&run.cell));
    let said = analyse(&few).verdict[0].clone();
    assert!(said.ends_with("In 1 of 4 groups there are too few runs to be sure."), "{said}");
    few.runs.retain(|run| run.block < 2);
    let said =
        "hakobu was fastest in 3 of 4 groups, rsync in 1. There are too few runs to be sure.";
    assert_eq!(analyse(&few).verdict[0], said);
}

#[test]
fn numbers_and_names_do_not_depend_on_the_language() {
    let (en, ja) = (analyse(&whole()), analyse_in(&whole(), Lang::Ja));
    assert_eq!(
        (&en.comparisons, &en.controls, en.noise),
        (&ja.comparisons, &ja.controls, ja.noise)
    );
    let plain = |of: &Analysis| -> Vec<_> {
        let sweeps = of.sweeps.iter().map(|sweep| (sweep.knee, sweep.fit));
        sweeps.collect()
    };
    assert_eq!(plain(&en), plain(&ja));
    for (en, ja) in en.cells.iter().zip(&ja.cells) {
        assert_eq!((en.value, en.limiting.resource), (ja.value, ja.limiting.resource));
        assert_eq!(
            (en.limiting.level, en.limiting.evidence.len()),
            (ja.limiting.level, ja.limiting.evidence.len())
        );
    }
    // Same number of sentences, each one different.
    assert_eq!((en.verdict.len(), en.caveats.len()), (ja.verdict.len(), ja.caveats.len()));
    let is_japanese = |text: &String| text.chars().any(|c| matches!(c, '\u{3040}'..='\u{9fff}'));
    assert!(ja.verdict.iter().chain(&ja.caveats).all(is_japanese));
    assert!(!en.verdict.iter().chain(&en.caveats).any(is_japanese));
}

const EN_SWEEP: &str = "\
hakobu was fastest (1.81 s with 8 jobs), 3.00 × as fast as rsync.
8 jobs are best for hakobu; 8 jobs are best for rsync.
The CPU limits hakobu: half the CPUs gave 0.50 ×.
1 run failed and does not count (hakobu with 1 job): 12 files are missing.
Left out: cpz: not installed
";
const JA_SWEEP: &str = "\
最も速いのは hakobu（8 ジョブで 1.81 s）で、rsync の 3.00 倍の速さです。
hakobu は 8 ジョブが最良です。rsync は 8 ジョブが最良です。
hakobu の制限要因は CPU です。CPU 数を半分にすると 0.50 倍。
失敗した 1 回は除外しました（hakobu（1 ジョブ））: 12 files are missing。
省略: cpz: not installed
";
const EN_GROUPS: &str = "\
hakobu was fastest in 3 of 4 groups, rsync in 1. Within noise of hakobu: rsync in small and links; cp in \
links. Within noise of rsync: cp in large.
The limit of hakobu is not determined: 0.2 of 2 CPUs used.
";
const JA_GROUPS: &str = "\
4 グループ中 3 グループで hakobu、1 グループで rsync が最速です。hakobu との差は次のツールで誤差の範囲です: \
rsync（small と links）、cp（links）。rsync との差は次のツールで誤差の範囲です: cp（large）。
hakobu の制限要因は判定できません（2 CPU 中 0.2 を使用）。
";
const EN_TWO: &str = "\
Small: hakobu and rsync were equally fast within noise (1 s), 2.00 × as fast as cp; deep: hakobu was \
fastest (1 s), 2.00 × as fast as rsync.";
const JA_TWO: &str = "\
small: hakobu と rsync の差は誤差の範囲です（1 s、cp の 2.00 倍の速さ）。deep: 最も速いのは \
hakobu（1 s）で、rsync の 2.00 倍の速さです。";
