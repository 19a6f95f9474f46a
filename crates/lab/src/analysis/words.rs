//! Formats numbers and names in sentences, and parses numbers with units in conditions and options.

use crate::analysis::Lang;
use hakobu_core::number;
use hakobu_explain::verdict::{Level, Resource};

/// Three significant digits without trailing zeros, thousands grouped: `1.97`, `0.0123`, `206,250`.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return "–".to_owned();
    }
    if size >= 1e15 || size > 0.0 && size < 1e-4 {
        return format!("{value:.2e}");
    }
    if size >= 999.5 {
        return grouped(value);
    }
    let digits = match size {
        99.95.. => 0,
        9.995.. => 1,
        0.9995.. => 2,
        0.0995.. => 3,
        _ => 4,
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

fn grouped(value: f64) -> String {
    let text = number::grouped_digits(&format!("{:.0}", value.abs()));
    if value < 0.0 { format!("-{text}") } else { text }
}

/// Formats a share of 1: `98 %`, `0.7 %`.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if !percent.is_finite() {
        return "–".to_owned();
    }
    let digits =
        if percent.abs() < 9.95 && (percent - percent.round()).abs() >= 0.05 { 1 } else { 0 };
    format!("{percent:.digits$} %")
}

/// Formats a ratio with a resolution of one percent: `1.04`, `3.12`, `17.3`.
pub(super) fn times(ratio: f64) -> String {
    match ratio {
        _ if !ratio.is_finite() => "–".to_owned(),
        99.95.. => format!("{ratio:.0}"),
        9.995.. => format!("{ratio:.1}"),
        _ => format!("{ratio:.2}"),
    }
}

/// `2.34 s`, `234 ms`, `12.3 min`.
pub(super) fn seconds(value: f64) -> String {
    match value.abs() {
        600.0.. => format!("{} min", number(value / 60.0)),
        0.9995.. => format!("{} s", number(value)),
        0.000_999_5.. => format!("{} ms", number(value * 1e3)),
        0.0 => "0 s".to_owned(),
        _ => format!("{} µs", number(value * 1e6)),
    }
}

/// Formats a value with the unit in the metric's name: `wall_s`, `iops`, `clat_p99_ns`.
pub(super) fn measured(metric: &str, value: f64) -> String {
    if metric.is_empty() || metric.ends_with("_s") && !metric.ends_with("_per_s") {
        seconds(value)
    } else if metric.ends_with("_ns") {
        seconds(value / 1e9)
    } else if metric.ends_with("bytes_per_s") {
        rate(value, "bytes/s")
    } else if metric == "iops" {
        format!("{} IOPS", number(value))
    } else {
        format!("{} {metric}", number(value))
    }
}

/// Formats a rate with its unit; bytes get a 1000-based prefix.
pub(super) fn rate(value: f64, unit: &str) -> String {
    if unit != "bytes/s" {
        return format!("{} {unit}", number(value));
    }
    let (factor, unit) = match value.abs() {
        999.5e6.. => (1e9, "GB/s"),
        999.5e3.. => (1e6, "MB/s"),
        _ => (1e3, "kB/s"),
    };
    format!("{} {unit}", number(value / factor))
}

/// Names of swept numbers: plural, singular, Japanese counter.
const COUNTED: [(&str, &str, &str); 9] = [
    ("jobs", "job", "ジョブ"),
    ("requests", "request", "リクエスト"),
    ("threads", "thread", "スレッド"),
    ("workers", "worker", "ワーカー"),
    ("processes", "process", "プロセス"),
    ("transfers", "transfer", "転送"),
    ("connections", "connection", "接続"),
    ("streams", "stream", "ストリーム"),
    ("CPUs", "CPU", "CPU"),
];

fn counted_noun(name: &str) -> Option<&'static (&'static str, &'static str, &'static str)> {
    COUNTED.iter().find(|(many, ..)| *many == name)
}

/// Formats a swept number: `1 job`, `8 jobs`, `8 ジョブ`, `numjobs 8`.
pub(super) fn of_x(x: f64, name: &str, lang: Lang) -> String {
    match (counted_noun(name), lang) {
        (Some((_, _, counter)), Lang::Ja) => format!("{} {counter}", number(x)),
        (Some((_, one, _)), Lang::En) if x == 1.0 => format!("1 {one}"),
        (Some((many, ..)), Lang::En) => format!("{} {many}", number(x)),
        (None, _) => format!("{name} {}", number(x)),
    }
}

/// True if a swept number takes the plural in English.
pub(super) fn is_many(x: f64, name: &str) -> bool {
    x != 1.0 && counted_noun(name).is_some()
}

/// Formats a range: `4 to 8 jobs`, `4〜8 ジョブ`, `numjobs 4 to 8`.
pub(super) fn of_range(from: f64, to: f64, name: &str, lang: Lang) -> String {
    let range = span(&number(from), &number(to), lang);
    match counted_noun(name) {
        Some((many, _, counter)) => format!("{range} {}", lang.pick(*many, *counter)),
        None => format!("{name} {range}"),
    }
}

/// Joins two pieces of a Japanese sentence, with a space between Latin and Japanese characters, none at
/// brackets.
pub(super) fn beside(before: &str, after: &str) -> String {
    let is_mark = |c: char| matches!(c, '、' | '。' | '（' | '）');
    let gap = match (before.chars().next_back(), after.chars().next()) {
        (Some(a), Some(b)) => (a.is_ascii() || b.is_ascii()) && !is_mark(a) && !is_mark(b),
        _ => false,
    };
    format!("{before}{}{after}", if gap { " " } else { "" })
}

/// `2.9 to 3.4`, `2.9〜3.4`.
pub(super) fn span(low: &str, high: &str, lang: Lang) -> String {
    format!("{low}{}{high}", lang.pick(" to ", "〜"))
}

/// Number with noun in English: `1 run`, `3 runs`.
pub(super) fn things(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// Conjunction before the last item of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conjunction {
    /// All of them.
    And,
    /// One of them.
    Or,
}

/// `a`, `a and b`, `a, b and c`; `a と b`, `a、b、c`.
pub(super) fn enumeration(words: &[String], join: Conjunction, lang: Lang) -> String {
    let (between, last) = match (lang, join) {
        (Lang::En, Conjunction::And) => (", ", " and "),
        (Lang::En, Conjunction::Or) => (", ", " or "),
        (Lang::Ja, Conjunction::And) if words.len() == 2 => ("、", " と "),
        (Lang::Ja, Conjunction::And) => ("、", "、"),
        (Lang::Ja, Conjunction::Or) => ("、", " または "),
    };
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., end] => format!("{}{last}{end}", first.join(between)),
    }
}

/// Joins sentences, given without full stops, to a paragraph.
pub(super) fn sentences(parts: &[String], lang: Lang) -> String {
    match lang {
        Lang::En => format!("{}.", parts.join("; ")),
        Lang::Ja => format!("{}。", parts.join("。")),
    }
}

/// Capitalises the first letter.
pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// Words for the confidence of a verdict.
pub(crate) fn level(of: Level, lang: Lang) -> &'static str {
    match of {
        Level::NotDetermined => lang.pick("not determined", "判定できない"),
        Level::Consistent => lang.pick("consistent", "矛盾なし"),
        Level::AtLimit => lang.pick("at the limit", "上限に到達"),
        Level::Proven => lang.pick("proven", "実験で確認"),
    }
}

/// Words for a limiting resource.
pub(crate) fn resource(of: Resource, lang: Lang) -> &'static str {
    if lang == Lang::En {
        return hakobu_explain::verdict::resource_words(
            of,
            hakobu_core::language::Language::English,
        );
    }
    match of {
        Resource::Cpu => "CPU",
        Resource::Thread => "一つのスレッド",
        Resource::DiskIops => "ディスクの操作数 (IOPS)",
        Resource::DiskBandwidth => "ディスクの帯域",
        Resource::Network => "ネットワーク",
        Resource::Server => "サーバー",
        Resource::Lock => "カーネル内のロック",
        Resource::Latency => "レイテンシー",
        Resource::Peer => "通信相手の待ち",
        Resource::Source => "コピー元",
        Resource::Target => "コピー先",
        Resource::UserLimit => "設定された制限",
        Resource::Own => "hakobu 自身",
        Resource::None => "特定できないもの",
    }
}

/// Parses `3000`, `125 MB/s`, `20 ms`, `16k` to bytes, seconds or a bare number. K, M, G and T are
/// 1024-based, KB … and MB … 1000-based, as in all options of the program; with `counts` (`iops`), `k` and
/// `m` are 1000-based. `None` if it is not a number.
pub(super) fn quantity(text: &str, counts: bool) -> Option<f64> {
    let text = text.trim();
    let text = text.strip_suffix("/s").unwrap_or(text).trim_end();
    let is_digit = |c: char| c.is_ascii_digit() || matches!(c, '.' | '_');
    let end = text.find(|c: char| !is_digit(c)).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let number: f64 = number.replace('_', "").parse().ok()?;
    let factor = match (unit.trim(), counts) {
        ("", _) | ("B" | "bytes" | "s", false) => 1.0,
        ("ms", false) => 1e-3,
        ("us" | "µs", false) => 1e-6,
        ("k" | "K", true) | ("kB" | "KB", false) => 1e3,
        ("m" | "M", true) | ("MB", false) => 1e6,
        ("GB", false) => 1e9,
        ("TB", false) => 1e12,
        ("k" | "K" | "KiB", false) => 1024.0,
        ("M" | "MiB", false) => 1024.0 * 1024.0,
        ("G" | "GiB", false) => 1024.0 * 1024.0 * 1024.0,
        ("T" | "TiB", false) => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let value = number * factor;
    value.is_finite().then_some(value)
}
