//! Parses numbers with units in conditions and options.

/// Parses `3000`, `125 MB/s`, `20 ms`, `16k` to bytes, seconds or a bare number. K, M, G and T are
/// 1024-based, KB … and MB … 1000-based, as in all options of the program; with `counts` (`iops`), `k` and
/// `m` are 1000-based. `None` if it is not a number.
pub(crate) fn quantity(text: &str, counts: bool) -> Option<f64> {
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
