//! What is said, word for word, in both languages: from the same numbers.

use super::whole::two_tools;
use super::{campaign, cell, run};
use crate::analysis::*;
use crate::results::{Experiment, Results};

/// Two tools on a quiet machine, with an experiment and a failed run.
fn whole() -> Results {
    let mut results = two_tools(0.0, 3, 7);
    results.experiments.push(Experiment {
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

/// Four groups: hakobu first in three, cp in one, and what is level.
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
                // As good as equal, and the order is always the same.
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
    // Two of them have a sentence each.
    let mut two = groups();
    two.header.cells.truncate(6);
    assert_eq!(analyse(&two).verdict[0], EN_TWO);
    assert_eq!(analyse_in(&two, Lang::Ja).verdict[0], JA_TWO);
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
    // As many sentences, each of them another one.
    assert_eq!((en.verdict.len(), en.caveats.len()), (ja.verdict.len(), ja.caveats.len()));
    let is_japanese = |text: &String| text.chars().any(|c| matches!(c, '\u{3040}'..='\u{9fff}'));
    assert!(ja.verdict.iter().chain(&ja.caveats).all(is_japanese));
    assert!(!en.verdict.iter().chain(&en.caveats).any(is_japanese));
}

const EN_SWEEP: &str = "\
hakobu is the fastest (1.81 s with 8 jobs), 3.00 times as fast as rsync.
For hakobu 8 jobs are best; for rsync 8 jobs are best.
What limits hakobu: up to 4 jobs latency (consistent with that), from 8 jobs on the CPU (at the limit); \
rsync: up to 4 jobs latency (consistent with that), from 8 jobs on the CPU (at the limit).
Tried out: hakobu with 8 jobs: with half the CPUs 0.50 times the speed (elasticity 1.00): the CPU limits.
1 run failed and does not count (hakobu with 1 job): 12 files are missing.
Left out: cpz: not installed
";
const JA_SWEEP: &str = "\
最も速いのは hakobu（8 ジョブで 1.81 s）で、rsync の 3.00 倍の速さです。
hakobu は 8 ジョブが最良です。rsync は 8 ジョブが最良です。
制限要因は、hakobu: 4 ジョブまではレイテンシー（矛盾なし）、8 ジョブからは CPU（上限に到達）。\
rsync: 4 ジョブまではレイテンシー（矛盾なし）、8 ジョブからは CPU（上限に到達）。
実験の結果: hakobu（8 ジョブ）: CPU 数を半分にすると速さは 0.50 倍（弾力性 1.00）。CPU が制限しています。
失敗した 1 回は数に入れていません（hakobu（1 ジョブ））: 12 files are missing。
省いたもの: cpz: not installed
";
const EN_GROUPS: &str = "\
hakobu is the fastest in 3 of 4 groups, rsync in 1. Level with hakobu, as far as the runs tell: rsync in \
small and links; cp in links. Level with rsync, as far as the runs tell: cp in large.
hakobu: what limits is not determined (0.2 of 2 CPUs used).
";
const JA_GROUPS: &str = "\
4 グループのうち、hakobu は 3 グループで最速、rsync は 1 グループで最速です。hakobu と互角（測定では差が\
見えない）: rsync（small と links）、cp（links）。rsync と互角（測定では差が見えない）: cp（large）。
hakobu: 制限要因は判定できません（2 CPU 中 0.2 を使用）。
";
const EN_TWO: &str = "\
Small: hakobu and rsync are level, as far as the runs tell (1 s), 2.00 times as fast as cp; deep: hakobu \
is the fastest (1 s), 2.00 times as fast as rsync.";
const JA_TWO: &str = "\
small: hakobu と rsync は互角です（1 s、cp の 2.00 倍の速さ、測定では差が見えません）。deep: 最も速いのは \
hakobu（1 s）で、rsync の 2.00 倍の速さです。";
