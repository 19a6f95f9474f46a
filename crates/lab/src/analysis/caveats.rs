//! Caveats: reasons to distrust the results of a campaign.

use crate::analysis::statistics::{PAIRS_MIN, SpeedClaim};
use crate::analysis::view::ResultsView;
use crate::analysis::words::{Conjunction, enumeration, percent, rate, seconds, things, times};
use crate::analysis::{Analysis, CellSummary, Lang, statistics};

/// Most cells that a sentence names; further ones are counted.
const NAMED_MAX: usize = 3;
/// Runs from which intervals need no widening.
const RUNS_GOOD: usize = 5;
/// Shorter runs consist mostly of process start-up.
const SHORT_S: f64 = 0.1;
/// If the first run writes less, the next run is not checked for idleness.
const WRITTEN_BYTES_MIN: u64 = 1 << 20;
/// A second run that writes less than this fraction of the first found its work done.
const IDLE_FACTOR: u64 = 10;
/// Largest share of the measured time that the lab itself may use.
const OVERHEAD_MAX: f64 = 0.01;

/// Caveats as sentences, most serious first.
pub(super) fn caveats(view: &ResultsView<'_>, analysis: &Analysis) -> Vec<String> {
    let said = [
        failed_runs(view, analysis),
        without_runs(view, analysis),
        idle(view),
        not_whole(view),
        few(view, analysis),
        controls(view, analysis),
        outliers(view, analysis),
        stolen(view, analysis),
        busy(view, analysis),
        caches(view),
        short(view, analysis),
        overhead(view),
        scale(view),
    ];
    let mut said: Vec<String> = said.into_iter().flatten().collect();
    let left_out = view.lang.pick("Left out: ", "省略: ");
    said.extend(view.results.header.left_out.iter().map(|what| format!("{left_out}{what}")));
    said
}

/// Names of some cells, and the number of further ones.
fn names(view: &ResultsView<'_>, ids: &[u32]) -> String {
    let cells = ids.iter().filter_map(|id| view.cell(*id));
    let mut words: Vec<String> = cells.take(NAMED_MAX).map(|cell| view.name(cell)).collect();
    let more = ids.len() - words.len();
    if more > 0 {
        words.push(view.lang.pick("{} more", "ほか {}").replace("{}", &more.to_string()));
    }
    enumeration(&words, Conjunction::And, view.lang)
}

fn failed_runs(view: &ResultsView<'_>, analysis: &Analysis) -> Option<String> {
    let of: Vec<_> = analysis.cells.iter().filter(|of| of.failed > 0).collect();
    let count: usize = of.iter().map(|of| of.failed).sum();
    let first = of.first()?;
    let ids: Vec<u32> = of.iter().map(|of| of.cell).collect();
    let why = first.problems.first().map(|why| format!(": {why}")).unwrap_or_default();
    let (why, names) = (why.trim_end_matches('.'), names(view, &ids));
    Some(match view.lang {
        Lang::En => {
            let (runs, does) = (things(count, "run"), if count == 1 { "does" } else { "do" });
            format!("{runs} failed and {does} not count ({names}){why}.")
        }
        Lang::Ja => format!("失敗した {count} 回は除外しました（{names}）{why}。"),
    })
}

fn without_runs(view: &ResultsView<'_>, analysis: &Analysis) -> Option<String> {
    let ids = ids(analysis, |of| of.runs == 0);
    sentence_about(view, "No successful run: {}.", "成功した測定なし: {}。", &ids)
}

/// Commands that find their work done from the second run on, detected by the bytes that they write.
fn idle(view: &ResultsView<'_>) -> Option<String> {
    let found = view.settings().filter_map(|cell| {
        let is_same = |other: u32| {
            other == cell.id || view.cell(other).and_then(|other| other.control_of) == Some(cell.id)
        };
        let runs = view.results.runs.iter().filter(|run| run.ok && is_same(run.cell));
        let mut runs: Vec<_> = runs.collect();
        runs.sort_by_key(|run| (run.block, run.place));
        let [first, second, ..] = runs[..] else { return None };
        let (before, after) = match (first.written_bytes, second.written_bytes) {
            (Some(before), Some(after)) => (before, after),
            _ => (first.write_bytes, second.write_bytes),
        };
        let is_idle = before >= WRITTEN_BYTES_MIN && after < before / IDLE_FACTOR;
        is_idle.then_some((cell.id, before, after))
    });
    let found: Vec<(u32, u64, u64)> = found.collect();
    let (_, before, after) = *found.first()?;
    let ids: Vec<u32> = found.iter().map(|(id, ..)| *id).collect();
    let (names, before, after) = (names(view, &ids), amount(before), amount(after));
    Some(match view.lang {
        Lang::En => format!(
            "The second run wrote far less than the first ({names}: {after} after {before}): the work was \
             already done. Use --prepare to reset what each run needs."
        ),
        Lang::Ja => format!(
            "2 回目の書き込み量は 1 回目よりはるかに少なくなっています（{names}: {before} の後に {after}）。\
             処理済みのデータが残っているためです。--prepare で測定ごとに元に戻してください。"
        ),
    })
}

/// Formats a number of bytes.
fn amount(bytes: u64) -> String {
    rate(bytes as f64, "bytes/s").trim_end_matches("/s").to_owned()
}

/// Formats a sentence about some cells, if there are any.
fn sentence_about(view: &ResultsView<'_>, en: &str, ja: &str, ids: &[u32]) -> Option<String> {
    (!ids.is_empty()).then(|| view.lang.pick(en, ja).replace("{}", &names(view, ids)))
}

/// Cells whose summary has a property.
fn ids(analysis: &Analysis, has: impl Fn(&CellSummary) -> bool) -> Vec<u32> {
    analysis.cells.iter().filter(|of| has(of)).map(|of| of.cell).collect()
}

fn not_whole(view: &ResultsView<'_>) -> Option<String> {
    let (en, ja) = match view.results.end.as_ref().map(|end| end.reason.as_str()) {
        Some("stopped") => {
            ("The campaign was stopped before its end.", "キャンペーンは途中で中断されました。")
        }
        Some("budget") => (
            "The time budget ran out before all runs were made.",
            "すべての測定が終わる前に制限時間になりました。",
        ),
        Some(_) => return None,
        None => (
            "The campaign has not ended yet; more runs may follow.",
            "キャンペーンはまだ終わっていません。測定が増える可能性があります。",
        ),
    };
    Some(view.lang.pick(en, ja).to_owned())
}

fn few(view: &ResultsView<'_>, analysis: &Analysis) -> Option<String> {
    let few = |most: usize| ids(analysis, |of| of.runs > 0 && of.runs < most);
    let (en, ja) = (
        "Only one run ({}): the spread is unknown, so no difference is claimed.",
        "測定が 1 回だけです（{}）。ばらつきが不明なため、差は判定しません。",
    );
    if let Some(single) = sentence_about(view, en, ja, &few(2)) {
        return Some(single);
    }
    let (en, ja) = (
        format!("Fewer than {PAIRS_MIN} runs ({{}}): no difference is claimed."),
        format!("測定が {PAIRS_MIN} 回未満です（{{}}）。差は判定しません。"),
    );
    if let Some(fewer) = sentence_about(view, &en, &ja, &few(PAIRS_MIN)) {
        return Some(fewer);
    }
    let count = few(RUNS_GOOD).len();
    (count > 0).then(|| match view.lang {
        Lang::En => format!(
            "{} with fewer than {RUNS_GOOD} runs: intervals are wide and hide small differences.",
            things(count, "cell")
        ),
        Lang::Ja => format!(
            "{count} 個のセルは測定が {RUNS_GOOD} 回未満です。区間が広く、小さな差は検出できません。"
        ),
    })
}

fn controls(view: &ResultsView<'_>, analysis: &Analysis) -> Option<String> {
    let differs = |claim: SpeedClaim| matches!(claim, SpeedClaim::Faster | SpeedClaim::Slower);
    let differ: Vec<_> = analysis.controls.iter().filter(|of| differs(of.ratio.claim)).collect();
    if let Some(first) = differ.first() {
        let ids: Vec<u32> = differ.iter().map(|of| of.a).collect();
        let (names, by) = (names(view, &ids), times(first.ratio.ratio.mid));
        return Some(match view.lang {
            Lang::En => format!(
                "The control differs from the cell it repeats ({names}: {by} ×): differences of this \
                 size may be noise."
            ),
            Lang::Ja => format!(
                "対照 (A/A) に差があります（{names}: {by} 倍）。この程度の差は誤差の可能性があります。"
            ),
        });
    }
    let noise = percent(analysis.noise.filter(|noise| *noise > 0.1)?);
    Some(match view.lang {
        Lang::En => {
            format!("Noisy machine: a tool differs from itself by up to {noise}.")
        }
        Lang::Ja => {
            format!("ノイズの多いマシンです。同じツールでも最大 {noise} の差が出ます。")
        }
    })
}

/// Cells with outliers; these are reported, not dropped.
fn outliers(view: &ResultsView<'_>, analysis: &Analysis) -> Option<String> {
    let of: Vec<_> = analysis.cells.iter().filter(|of| !of.outliers.is_empty()).collect();
    let count: usize = of.iter().map(|of| of.outliers.len()).sum();
    let ids: Vec<u32> = of.iter().map(|of| of.cell).collect();
    let names = names(view, &ids);
    (count > 0).then(|| match view.lang {
        Lang::En => {
            let runs = things(count, "outlier");
            format!("{runs} ({names}); they are not removed.")
        }
        Lang::Ja => {
            format!("外れ値 {count} 個（{names}）。除外していません。")
        }
    })
}

fn stolen(view: &ResultsView<'_>, analysis: &Analysis) -> Option<String> {
    let most = loads(analysis, "steal_percent").reduce(f64::max)?;
    let share = percent(most / 100.0);
    (most >= 5.0).then(|| match view.lang {
        Lang::En => format!("The hypervisor took up to {share} of the CPU time (steal)."),
        Lang::Ja => format!("ハイパーバイザーが CPU 時間の最大 {share} を使用しました (steal)。"),
    })
}

/// Cells during which other processes used CPUs: total use minus that of the runs. Work that a run causes in
/// another process (a server on this machine) counts as well.
fn busy(view: &ResultsView<'_>, analysis: &Analysis) -> Option<String> {
    let machine = &view.results.header.machine;
    let cpus = machine.cpus_online as f64;
    let others = analysis.cells.iter().filter_map(|of| {
        let wall_s = of.wall_s?.mid;
        let all = of.load.get("cpu_percent")? / 100.0 * cpus;
        Some(all - (of.user_s + of.sys_s) / wall_s)
    });
    let others: Vec<f64> = others.filter(|cpus| cpus.is_finite()).collect();
    let middle = statistics::median(&others).filter(|used| *used >= 0.25 * cpus.max(1.0))?;
    let middle = times(middle);
    Some(match view.lang {
        Lang::En => format!(
            "Other processes used {middle} CPUs during the runs (servers on this machine, the kernel \
             or unrelated work)."
        ),
        Lang::Ja => format!(
            "測定中にほかのプロセスが {middle} CPU を使用しました（このマシンのサーバー、カーネル、無関係な処理\
             など）。"
        ),
    })
}

fn loads<'a>(analysis: &'a Analysis, name: &'a str) -> impl Iterator<Item = f64> + 'a {
    analysis.cells.iter().filter_map(move |of| of.load.get(name).copied())
}

/// Cells with both cold and warm runs.
fn caches(view: &ResultsView<'_>) -> Option<String> {
    let mixed = view.cells.iter().filter(|cell| {
        let runs = view.runs(cell.id);
        let shares = || runs.iter().filter_map(|run| run.cached);
        shares().any(|share| share >= 0.9) && shares().any(|share| share <= 0.1)
    });
    let ids: Vec<u32> = mixed.map(|cell| cell.id).collect();
    let (en, ja) = (
        "Cold and warm runs are mixed in one setting: {}.",
        "キャッシュなしとありの測定が 1 つの設定に混在しています: {}。",
    );
    sentence_about(view, en, ja, &ids)
}

fn short(view: &ResultsView<'_>, analysis: &Analysis) -> Option<String> {
    let ids = ids(analysis, |of| of.wall_s.is_some_and(|wall| wall.mid < SHORT_S));
    let least = seconds(SHORT_S);
    let (en, ja) = (
        format!("Runs shorter than {least} ({{}}) mostly measure process start."),
        format!("{least} より短い測定（{{}}）は、ほとんどがプロセスの起動時間です。"),
    );
    sentence_about(view, &en, &ja, &ids)
}

fn overhead(view: &ResultsView<'_>) -> Option<String> {
    let share = view.results.end.as_ref()?.overhead;
    let (en, ja) =
        ("The measurement itself took {} of the time.", "測定自体が時間の {} を占めました。");
    (share > OVERHEAD_MAX).then(|| view.lang.pick(en, ja).replace("{}", &percent(share)))
}

fn scale(view: &ResultsView<'_>) -> Option<String> {
    let scale = view.results.header.scale;
    let (en, ja) = ("The data has {} × the described size.", "データは定義の {} 倍の規模です。");
    (scale > 0.0 && (scale - 1.0).abs() > 1e-9)
        .then(|| view.lang.pick(en, ja).replace("{}", &times(scale)))
}
