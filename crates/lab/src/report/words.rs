//! Texts of reports in both languages, side by side. Terms of the field are not translated. The analysis has
//! its own texts.

pub use crate::analysis::Lang;

impl Lang {
    pub(super) fn words(self) -> &'static ReportWords {
        self.pick(&EN, &JA)
    }
}

macro_rules! words {
    ($($name:ident: $en:literal, $ja:literal;)*) => {
        /// Texts of one language. `{}` stands for the arguments, in order.
        pub(super) struct ReportWords {
            /// The language.
            pub(super) lang: Lang,
            $(pub(super) $name: &'static str,)*
        }
        const EN: ReportWords = ReportWords { lang: Lang::En, $($name: $en,)* };
        const JA: ReportWords = ReportWords { lang: Lang::Ja, $($name: $ja,)* };
        /// All texts, for tests.
        #[cfg(test)]
        pub(super) const ALL: &[(&str, &str, &str)] = &[$((stringify!($name), $en, $ja),)*];
    };
}

words! {
    report: "Report", "レポート";
    verdict: "Verdict", "結論";
    caveats: "Caveats", "注意点";
    no_caveats: "None.", "特になし。";
    not_whole: "The campaign is incomplete; the runs so far are shown.", "このキャンペーンは未完了です。これまでの測定だけを示します。";
    ended: "Ended: {} after {} s; the measurement itself took {} of that time.", "終了: {}（{} 秒）。測定自体の負荷はその {}。";
    machines: "Machines side by side", "マシンの比較";
    machines_caption: "Best setting of each tool on each machine, median with 95 % interval; how many times as fast as {}", "各マシンでのツールごとの最良の設定。中央値と 95 % 区間、および {} に対する速さの倍率";
    times_as_fast: "{}: times as fast", "{}: 速さの倍率";
    sweep: "The sweep", "スイープ";
    comparison: "Side by side", "比較";
    sweep_text: "{} over {}: {}. Bars are 95 % intervals of the median; a ring marks the knee, a thin line is the fit.", "{} を {} に対して示した図: {}。縦棒は中央値の 95 % 区間、丸印は頭打ちの点 (knee)、細線は当てはめ。";
    settings_text: "{} of each setting: {}. Bars are 95 % intervals of the median.", "各設定の {}: {}。縦棒は中央値の 95 % 区間。";
    from_to: "{} from {} to {}", "{} は {} から {}";
    logarithmic: "{} (logarithmic)", "{}（対数）";
    sweep_caption: "{}: {} by {}, median with 95 % interval", "{}: {}（{} ごと）、中央値と 95 % 区間";
    any_value: "any", "指定なし";
    knee: "knee", "頭打ちの点 (knee)";
    fit: "fit", "当てはめ";
    lines_caption: "{}: knee, fit and limits", "{}: 頭打ちの点、当てはめ、制限要因";
    more_at_edge: "not reached up to {}", "{} までは頭打ちにならず";
    at_share: "{} ({} of the best)", "{}（最良の {}）";
    limits: "limited by", "制限要因";
    published: "Published figures beside this machine's", "公表値とこのマシンの測定値";
    published_caption: "As published, and here", "公表値とここでの測定値";
    published_title: "As published", "公表値";
    here: "here", "このマシン";
    as_published: "published", "公表";
    study_machine: "machine of the study", "公表時のマシン";
    tools: "The tools", "ツール";
    tools_caption: "{}: the best setting of each tool", "{}: 各ツールの最良の設定";
    compared_with: "× as fast as {}", "{} に対する速さの倍率";
    tool: "tool", "ツール";
    setting: "setting", "設定";
    median: "{}, median [95 %]", "{}、中央値 [95 % 区間]";
    mean: "mean", "平均";
    real_time: "real time", "実時間";
    user_time: "user time", "user 時間";
    sys_time: "system time", "system 時間";
    bandwidth: "bandwidth", "帯域幅";
    deviation: "std. dev.", "標準偏差";
    least: "min", "最小";
    most: "max", "最大";
    gain: "against {}", "{} との比較";
    real: "real, s", "実時間 (real), 秒";
    user: "user, s", "user 時間, 秒";
    sys: "sys, s", "sys 時間, 秒";
    concurrency: "effective concurrency", "実効並列度";
    cpu_gb: "CPU s per GB", "1 GB あたりの CPU 秒";
    cpu_files: "CPU s per 1,000 files", "1,000 ファイルあたりの CPU 秒";
    memory: "memory, peak", "最大メモリ";
    runs: "runs", "測定回数";
    failed: "failed", "失敗";
    outliers: "outliers (blocks)", "外れ値 (ブロック)";
    cells_caption: "Every setting", "測定したすべての設定";
    all_settings: "All settings", "すべての設定";
    controls: "A/A controls", "対照 (A/A): 同じもの同士の比較";
    controls_caption: "The same setting measured twice; any difference is noise", "同じ設定を 2 系列で測定したもの。差はすべて誤差";
    noise: "Noise: differences below {} are not significant here.", "ノイズ: {} 未満の差は有意ではありません。";
    no_controls: "No A/A control was run, so the noise is unknown.", "対照 (A/A) を測定していないため、ノイズの大きさは不明です。";
    ratio: "ratio [95 %]", "比 [95 % 区間]";
    claim: "claim", "判定";
    pairs: "pairs", "組";
    faster: "faster", "速い";
    slower: "slower", "遅い";
    same: "within 2 %", "差は 2 % 以内";
    unclear: "within noise", "誤差の範囲";
    proofs: "Counter-experiments", "反証実験";
    proofs_caption: "One condition changed, everything else unchanged", "条件を 1 つだけ変えた実験";
    no_proofs: "None.", "行っていません。";
    changed: "changed", "変えたもの";
    elasticity: "elasticity [95 %]", "弾力性 [95 % 区間]";
    follows: "conclusion", "結論";
    elasticity_means: "Elasticity: 1 where speed is proportional to the resource, 0 where it does not depend on it.", "弾力性: 速さが資源に完全に従えば 1、まったく従わなければ 0。";
    load: "Load", "負荷";
    load_title: "All runs, one after the other", "すべての測定（実行順）";
    load_label: "seconds of measured time; pauses between runs are cut out", "測定時間（秒）。測定の間の休止は省略";
    load_text: "CPU, disk and network during {} runs. On average, user {} %, system {} %, iowait {} % of all CPUs; disk {} MB/s; network {} MB/s.", "{} 回の測定中の CPU、ディスク、ネットワーク。平均は全 CPU の user {} %、system {} %、iowait {} %、ディスク {} MB/s、ネットワーク {} MB/s。";
    load_some: "The first {} of {} runs.", "{2} 回のうち最初の {1} 回。";
    load_run: "{}: the run nearest to the median, {}", "{}: 中央値に最も近い測定、{}";
    load_more: "Curves of the other settings are in the record (samples.jsonl).", "他の設定の曲線は記録 (samples.jsonl) にあります。";
    no_load: "No load curves were recorded.", "負荷曲線は記録されていません。";
    run_seconds: "seconds since the run began", "測定開始からの秒数";
    cpu_panel: "CPU, all together", "CPU 全体";
    disk_panel: "Disk throughput", "ディスクのスループット";
    operations_panel: "Disk operations", "ディスクの操作数";
    network_panel: "Network", "ネットワーク";
    runs_panel: "Runs", "測定";
    cursor: "Hover over the chart, or focus it and use the arrow keys, to read values.", "図にポインターを合わせるか、フォーカスして矢印キーを押すと、数値が表示されます。";
    raw_runs: "Raw runs", "すべての測定値";
    raw_caption: "Every run in order of execution, including warm-ups and failures", "実行順のすべての測定（ウォームアップと失敗を含む）";
    raw_some: "The first {} of {} runs; all of them: --format csv", "{2} 回のうち最初の {1} 回。全部は --format csv";
    number: "no.", "番号";
    block: "block", "ブロック";
    start_at: "at, s", "開始, 秒";
    outcome: "outcome", "結果";
    ok: "ok", "正常";
    warmup: "warm-up", "ウォームアップ";
    read: "read", "読み込み";
    written: "written", "書き込み";
    switches: "switches", "コンテキストスイッチ";
    cached: "cached before", "事前のキャッシュ率";
    checked: "checked", "検査";
    checked_text: "{} files, {} compared", "{} ファイル、うち {} を比較";
    commands: "Commands", "コマンド";
    commands_caption: "The exact command of each setting", "各設定の正確なコマンド";
    command: "command", "コマンド";
    conditions: "conditions", "条件";
    machine: "Machine", "マシン";
    machine_caption: "The machine of the measurements", "測定に使ったマシン";
    property: "property", "項目";
    cpu: "CPU", "CPU の型番";
    cpus: "CPUs usable / online", "使用できる CPU / オンライン";
    ram: "memory", "メモリ";
    kernel: "kernel", "カーネル";
    instance: "instance type", "インスタンスタイプ";
    volume: "volume {}", "ボリューム {}";
    machine_limit: "limit", "制限";
    programs_caption: "The programs, with the hash of each file", "使ったプログラムとファイルのハッシュ";
    version: "version", "バージョン";
    path: "path", "パス";
    data: "Data", "データ";
    data_caption: "Data sets", "データセット";
    name: "name", "名前";
    files: "files", "ファイル数";
    bytes: "bytes", "バイト数";
    about: "about", "説明";
    campaign: "The campaign as it was written", "キャンペーンの記述 (TOML)";
    made: "Measurements began {}, with {}, seed {}, scale {}.", "測定開始 {}、{} を使用、シード {}、規模 {}。";
    contents: "Contents", "目次";
    usl: "USL: α {}, β {}", "USL: α {}、β {}";
    cap: "proportional, capped at {}", "比例して増加し、{} で頭打ち";
    at_twice: "{}; predicts {} at {}", "{}。予測は {}（{}）";
    whole_group: "all settings", "全設定";
    compared: "{} side by side", "{} の比較";
    needs: "Best choice by need", "用途別の選び方";
    need: "{}: {} ({})", "{}: {}（{}）";
    need_unsure: "{}: {}, within noise of the next ({})", "{}: {}。ただし 2 位との差は誤差の範囲です（{}）";
    changed_conclusions: "Conclusions that change", "変わる結論";
    same_conclusions: "Conclusions that stay the same", "変わらない結論";
    study_caption: "{}: medians of {}, {}; in brackets: how fast, where {} is 100 %", "{}: {} の中央値、{}。括弧内は {} を 100 % とした速さ";
    rows_caption: "Every setting: median with 95 % interval, mean, and how many times as fast as {}", "すべての設定: 中央値と 95 % 区間、平均、{} に対する速さの倍率";
    side_median: "{}: median [95 %]", "{}: 中央値 [95 % 区間]";
    side_mean: "{}: mean", "{}: 平均";
    side_ratio: "{} ÷ {} [95 %]", "{} ÷ {} [95 % 区間]";
    side_claim: "{}: claim", "{}: 判定";
    costs: "What it costs", "費用";
    costs_caption: "The best setting of each tool, in the currency of --price; 1M IOPS: price per hour ÷ IOPS × 1,000,000", "各ツールの最良の設定、通貨は --price のもの。1M IOPS は 1 時間の価格 ÷ IOPS × 1,000,000";
    result: "result", "結果の名前";
    price_hour: "per hour", "1 時間あたり";
    per_1m_iops: "per 1M IOPS", "1M IOPS あたり";
    per_million_ios: "per million IOs", "100 万 I/O あたり";
    per_gb: "per GB", "1 GB あたり";
    per_million_files: "per million files", "100 万ファイルあたり";
}

impl ReportWords {
    /// Word for a group, which may be unnamed.
    pub(super) fn group<'a>(&'a self, group: &'a str) -> &'a str {
        if group.is_empty() { self.whole_group } else { group }
    }

    /// Word for a metric; one of a campaign keeps its name.
    pub(super) fn metric<'a>(&'a self, metric: &'a str) -> &'a str {
        match metric {
            "wall_s" => self.real_time,
            "user_s" => self.user_time,
            "sys_s" => self.sys_time,
            "bw_bytes_per_s" => self.bandwidth,
            "iops" => "IOPS",
            _ => metric,
        }
    }
}

/// Inserts arguments into a pattern: `{}` takes the next one, `{1}` the first. Arguments are inserted
/// verbatim.
pub(super) fn with(pattern: &str, parts: &[&str]) -> String {
    let (mut out, mut rest, mut next) = (String::new(), pattern, 0);
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let (inside, behind) = after.split_once('}').unwrap_or((after, ""));
        let place = inside.parse::<usize>().map_or(next, |place| place.saturating_sub(1));
        next += usize::from(inside.is_empty());
        out.push_str(parts.get(place).unwrap_or(&""));
        rest = behind;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_languages_say_everything() {
        for (name, en, ja) in ALL {
            assert!(!en.is_empty() && !ja.is_empty(), "{name}");
            assert!(ja.chars().any(|c| c > '\u{2e7f}'), "{name} is not Japanese: {ja}");
            assert!(en.chars().all(|c| c < '\u{2e7f}'), "{name} is not English: {en}");
            // Both take the same arguments.
            assert_eq!(en.matches('{').count(), ja.matches('{').count(), "{name}");
        }
        assert_eq!(Lang::of_code("ja"), Some(Lang::Ja));
        assert_eq!(Lang::of_code("de"), None);
    }

    #[test]
    fn metrics_have_names() {
        assert_eq!((EN.metric("wall_s"), JA.metric("wall_s")), ("real time", "実時間"));
        assert_eq!((EN.metric("iops"), EN.metric("lat_mean_ns")), ("IOPS", "lat_mean_ns"));
    }

    #[test]
    fn parts_are_put_in() {
        assert_eq!(with("a {} b {}.", &["{x}", "2"]), "a {x} b 2.");
        assert_eq!(with("{2} of {1}", &["a", "b"]), "b of a");
        assert_eq!(with("{} and {}", &["a"]), "a and ");
    }
}
