//! What to keep in mind about a campaign's answer.

use super::say::{Join, listed, percent, seconds, things, times};
use super::view::View;
use super::{Analysis, Claim, Lang, PAIRS_MIN};

/// Cells that a sentence names before it counts.
const NAMED_MAX: usize = 3;
/// Runs from which on intervals come from the values alone and are not wider than need be.
const RUNS_GOOD: usize = 5;
/// Shorter runs are mostly the start of a process.
const SHORT_S: f64 = 0.1;
/// Of the measured time the lab may take this share.
const OVERHEAD_MAX: f64 = 0.01;

/// Sentences, the gravest first.
pub(super) fn caveats(view: &View<'_>, analysis: &Analysis) -> Vec<String> {
    let said = [
        failed(view, analysis),
        without_runs(view, analysis),
        not_whole(view),
        few(view, analysis),
        controls(view, analysis),
        moved(view, analysis),
        stolen(view, analysis),
        busy(view, analysis),
        caches(view),
        short(view, analysis),
        overhead(view),
        scale(view),
    ];
    let mut said: Vec<String> = said.into_iter().flatten().collect();
    let left_out = view.lang.pick("Left out: ", "省いたもの: ");
    said.extend(view.results.header.left_out.iter().map(|what| format!("{left_out}{what}")));
    said
}

/// The names of some cells, and how many more there are.
fn names(view: &View<'_>, ids: &[u32]) -> String {
    let cells = ids.iter().filter_map(|id| view.cell(*id));
    let mut words: Vec<String> = cells.take(NAMED_MAX).map(|cell| view.name(cell)).collect();
    let more = ids.len() - words.len();
    if more > 0 {
        words.push(view.lang.pick("{} more", "ほか {}").replace("{}", &more.to_string()));
    }
    listed(&words, Join::And, view.lang)
}

fn failed(view: &View<'_>, analysis: &Analysis) -> Option<String> {
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
        Lang::Ja => format!("失敗した {count} 回は数に入れていません（{names}）{why}。"),
    })
}

fn without_runs(view: &View<'_>, analysis: &Analysis) -> Option<String> {
    let without = analysis.cells.iter().filter(|of| of.runs == 0).map(|of| of.cell);
    let ids: Vec<u32> = without.collect();
    (!ids.is_empty()).then(|| one(view, "No run that counts: {}.", "有効な測定なし: {}。", &ids))
}

/// A sentence about some cells.
fn one(view: &View<'_>, en: &str, ja: &str, ids: &[u32]) -> String {
    view.lang.pick(en, ja).replace("{}", &names(view, ids))
}

fn not_whole(view: &View<'_>) -> Option<String> {
    let (en, ja) = match view.results.end.as_ref().map(|end| end.reason.as_str()) {
        Some("stopped") => {
            ("The campaign was stopped before its end.", "キャンペーンは途中で止められました。")
        }
        Some("budget") => (
            "The campaign's time was over before all runs were made.",
            "すべての測定が終わる前に時間切れになりました。",
        ),
        Some(_) => return None,
        None => (
            "The campaign has no end yet: more runs may follow.",
            "キャンペーンはまだ終わっておらず、測定が続く可能性があります。",
        ),
    };
    Some(view.lang.pick(en, ja).to_owned())
}

fn few(view: &View<'_>, analysis: &Analysis) -> Option<String> {
    let few = |most: usize| -> Vec<u32> {
        let of = analysis.cells.iter().filter(|of| of.runs > 0 && of.runs < most);
        of.map(|of| of.cell).collect()
    };
    let (fewer, single) = (few(PAIRS_MIN), few(2));
    if !single.is_empty() {
        return Some(one(
            view,
            "One run only ({}): its scatter is unknown, and nothing is claimed.",
            "測定が 1 回だけ（{}）: ばらつきが分からず、何も断定しません。",
            &single,
        ));
    }
    if !fewer.is_empty() {
        let of = names(view, &fewer);
        return Some(match view.lang {
            Lang::En => {
                format!("Fewer than {PAIRS_MIN} runs ({of}): nothing is claimed of these.")
            }
            Lang::Ja => format!("{PAIRS_MIN} 回未満の測定（{of}）: 何も断定しません。"),
        });
    }
    let count = few(RUNS_GOOD).len();
    (count > 0).then(|| match view.lang {
        Lang::En => format!(
            "{} with fewer than {RUNS_GOOD} runs: intervals are wide, small differences do not show.",
            things(count, "cell")
        ),
        Lang::Ja => format!(
            "{count} 個のセルは測定が {RUNS_GOOD} 回未満です。区間が広く、小さな差は見えません。"
        ),
    })
}

fn controls(view: &View<'_>, analysis: &Analysis) -> Option<String> {
    let differs = |claim: Claim| matches!(claim, Claim::Faster | Claim::Slower);
    let differ: Vec<_> = analysis.controls.iter().filter(|of| differs(of.ratio.claim)).collect();
    if let Some(first) = differ.first() {
        let ids: Vec<u32> = differ.iter().map(|of| of.a).collect();
        let (names, by) = (names(view, &ids), times(first.ratio.ratio.mid));
        return Some(match view.lang {
            Lang::En => format!(
                "A control differs from what it repeats ({names}: {by} times as fast): differences \
                 of that size may be chance."
            ),
            Lang::Ja => format!(
                "対照が元と異なります（{names}: {by} 倍の速さ）。その程度の差は偶然かもしれません。"
            ),
        });
    }
    let noise = percent(analysis.noise.filter(|noise| *noise > 0.1)?);
    Some(match view.lang {
        Lang::En => {
            format!("A loud machine: the same tool against itself differs by up to {noise}.")
        }
        Lang::Ja => {
            format!("ノイズの多いマシンです。同じツール同士でも最大 {noise} の差があります。")
        }
    })
}

/// Outliers are flagged, not dropped.
fn moved(view: &View<'_>, analysis: &Analysis) -> Option<String> {
    let of: Vec<_> = analysis.cells.iter().filter(|of| !of.outliers.is_empty()).collect();
    let count: usize = of.iter().map(|of| of.outliers.len()).sum();
    let ids: Vec<u32> = of.iter().map(|of| of.cell).collect();
    let names = names(view, &ids);
    (count > 0).then(|| match view.lang {
        Lang::En => {
            let runs = things(count, "run");
            format!("{runs} far from the others of their cell ({names}); they count.")
        }
        Lang::Ja => {
            format!("同じセルの他の測定から離れたものが {count} 回（{names}）。除いていません。")
        }
    })
}

fn stolen(view: &View<'_>, analysis: &Analysis) -> Option<String> {
    let most = loads(analysis, "steal_percent").reduce(f64::max)?;
    let share = percent(most / 100.0);
    (most >= 5.0).then(|| match view.lang {
        Lang::En => format!("A hypervisor took up to {share} of the CPUs away."),
        Lang::Ja => format!("ハイパーバイザーに CPU を最大 {share} 奪われました (steal)。"),
    })
}

/// Others use CPUs: what all processes use, less what the runs do. What a run makes others do (a server
/// on this machine) looks the same.
fn busy(view: &View<'_>, analysis: &Analysis) -> Option<String> {
    let machine = &view.results.header.machine;
    let cpus = machine.cpus_online as f64;
    let others = analysis.cells.iter().filter_map(|of| {
        let wall_s = of.wall_s?.mid;
        let all = of.load.get("cpu_percent")? / 100.0 * cpus;
        Some(all - (of.user_s + of.sys_s) / wall_s)
    });
    let others: Vec<f64> = others.filter(|cpus| cpus.is_finite()).collect();
    let middle = super::median(&others).filter(|used| *used >= 0.25 * cpus.max(1.0))?;
    let middle = times(middle);
    Some(match view.lang {
        Lang::En => format!(
            "Beside the runs others used {middle} CPUs (servers on this machine, the kernel, or \
             something that should not run now)."
        ),
        Lang::Ja => format!(
            "測定のほかに {middle} CPU が使われていました（このマシンのサーバー、カーネル、または今動いている\
             べきでないもの）。"
        ),
    })
}

fn loads<'a>(analysis: &'a Analysis, name: &'a str) -> impl Iterator<Item = f64> + 'a {
    analysis.cells.iter().filter_map(move |of| of.load.get(name).copied())
}

/// Cold and warm runs in one cell are two things.
fn caches(view: &View<'_>) -> Option<String> {
    let mixed = view.cells.iter().filter(|cell| {
        let runs = view.runs(cell.id);
        let shares = || runs.iter().filter_map(|run| run.cached);
        shares().any(|share| share >= 0.9) && shares().any(|share| share <= 0.1)
    });
    let ids: Vec<u32> = mixed.map(|cell| cell.id).collect();
    let (en, ja) = (
        "Cold and warm runs are mixed in one cell: {}.",
        "キャッシュなしとありの測定が一つのセルに混ざっています: {}。",
    );
    (!ids.is_empty()).then(|| one(view, en, ja, &ids))
}

fn short(view: &View<'_>, analysis: &Analysis) -> Option<String> {
    let is_short = |wall_s: f64| wall_s < SHORT_S;
    let of = analysis.cells.iter().filter(|of| of.wall_s.is_some_and(|wall| is_short(wall.mid)));
    let ids: Vec<u32> = of.map(|of| of.cell).collect();
    let (of, least) = (names(view, &ids), seconds(SHORT_S));
    (!ids.is_empty()).then(|| match view.lang {
        Lang::En => format!("Runs shorter than {least} ({of}): mostly the start of a process."),
        Lang::Ja => format!("{least} より短い測定（{of}）: ほとんどがプロセスの起動時間です。"),
    })
}

fn overhead(view: &View<'_>) -> Option<String> {
    let share = view.results.end.as_ref()?.overhead;
    let (en, ja) = ("Measuring itself took {} of the time.", "測定自体が時間の {} を使いました。");
    (share > OVERHEAD_MAX).then(|| view.lang.pick(en, ja).replace("{}", &percent(share)))
}

fn scale(view: &View<'_>) -> Option<String> {
    let scale = view.results.header.scale;
    let (en, ja) =
        ("Data at {} times the size that is described.", "データは記述された規模の {} 倍です。");
    (scale > 0.0 && (scale - 1.0).abs() > 1e-9)
        .then(|| view.lang.pick(en, ja).replace("{}", &times(scale)))
}
