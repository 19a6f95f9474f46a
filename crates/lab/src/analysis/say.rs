//! Numbers in sentences.

/// Three digits that count, no zeros behind, thousands apart: `1.97`, `0.0123`, `206,250`.
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
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

/// A share of 1: `98 %`, `0.7 %`.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if !percent.is_finite() {
        return "–".to_owned();
    }
    let digits =
        if percent.abs() < 9.95 && (percent - percent.round()).abs() >= 0.05 { 1 } else { 0 };
    format!("{percent:.digits$} %")
}

/// A ratio, so that differences of one percent can be seen: `1.04`, `3.12`, `17.3`.
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

/// A value of a metric, with the unit that its name ends in: `wall_s`, `iops`, `clat_p99_ns`.
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

/// A rate with its unit; bytes with a prefix (1000-based).
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

/// What is counted in words, and one of it.
const COUNTED: [(&str, &str); 9] = [
    ("jobs", "job"),
    ("requests", "request"),
    ("threads", "thread"),
    ("workers", "worker"),
    ("processes", "process"),
    ("transfers", "transfer"),
    ("connections", "connection"),
    ("streams", "stream"),
    ("CPUs", "CPU"),
];

/// A swept number: `1 job`, `8 jobs`, `numjobs 8`.
pub(super) fn of_x(x: f64, name: &str) -> String {
    match COUNTED.iter().find(|(many, _)| *many == name) {
        Some((_, one)) if x == 1.0 => format!("1 {one}"),
        Some((many, _)) => format!("{} {many}", number(x)),
        None => format!("{name} {}", number(x)),
    }
}

/// Whether a swept number is a plural in a sentence.
pub(super) fn is_many(x: f64, name: &str) -> bool {
    x != 1.0 && COUNTED.iter().any(|(many, _)| *many == name)
}

/// Two of them: `4 to 8 jobs`, `numjobs 4 to 8`.
pub(super) fn of_range(from: f64, to: f64, name: &str) -> String {
    match COUNTED.iter().any(|(many, _)| *many == name) {
        true => format!("{} to {} {name}", number(from), number(to)),
        false => format!("{name} {} to {}", number(from), number(to)),
    }
}

/// `1 run`, `3 runs`.
pub(super) fn things(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn listed(words: &[String], last: &str) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

/// With a capital letter in front.
pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}
