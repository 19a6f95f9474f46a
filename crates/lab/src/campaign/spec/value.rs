//! Parses sizes, durations and names.

use std::time::Duration;

/// Parses a size in bytes like all options ([`hakobu_core::number`]); a space may precede the unit.
pub fn size(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, unit) = text.split_at(digits);
    hakobu_core::number::parse_size(format!("{number}{}", unit.trim_start()).as_ref(), 1).ok()
}

/// Parses a duration: a number with `us`, `ms`, `s`, `m` or `h`. `None` if invalid.
pub fn duration(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, unit) = text.split_at(digits);
    let scale = match unit.trim_start() {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let seconds = number.parse::<f64>().ok()? * scale;
    (seconds < 1e9).then(|| Duration::from_secs_f64(seconds))
}

/// Formats a duration: `50 ms`.
pub fn duration_text(duration: Duration) -> String {
    let microseconds = duration.as_micros();
    match microseconds {
        _ if microseconds.is_multiple_of(1_000_000) => {
            format!("{} s", microseconds / 1_000_000)
        }
        _ if microseconds.is_multiple_of(1000) => format!("{} ms", microseconds / 1000),
        _ => format!("{microseconds} us"),
    }
}

/// Formats a size in the largest unit that needs no fraction: `500 KB`, `4 GiB`.
pub fn size_text(bytes: u64) -> String {
    const UNITS: &[(u64, &str)] = &[
        (1 << 40, "TiB"),
        (1_000_000_000_000, "TB"),
        (1 << 30, "GiB"),
        (1_000_000_000, "GB"),
        (1 << 20, "MiB"),
        (1_000_000, "MB"),
        (1 << 10, "KiB"),
        (1000, "KB"),
    ];
    let unit = UNITS.iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit));
    unit.map_or_else(|| format!("{bytes} bytes"), |(unit, name)| format!("{} {name}", bytes / unit))
}

/// True if a text can name a campaign, data set or place: it becomes part of paths.
pub fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    !text.is_empty() && text.len() <= 64 && text.chars().all(plain) && !text.starts_with('-')
}

/// True if a text can be a placeholder.
pub fn is_placeholder(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|c| c.is_ascii_lowercase() || c == '_')
        && letters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Most similar known word.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.into_iter().map(|name| (strsim::osa_distance(word, name), name));
    near.filter(|(far, name)| *far <= 2 && *far < name.len()).min().map(|(_, name)| name)
}

/// `; did you mean 'NAME'?`, or the list of known words.
pub fn hint<'a>(word: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(word, known.clone()) {
        Some(name) => format!("; did you mean '{name}'?"),
        None => {
            let known: Vec<&str> = known.into_iter().collect();
            match known.is_empty() {
                true => String::new(),
                false => format!("; there are: {}", known.join(", ")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0", Some(0)),
            ("15", Some(15)),
            ("15B", Some(15)),
            ("500KB", Some(500_000)),
            ("500 KB", Some(500_000)),
            ("4k", Some(4096)),
            ("4KiB", Some(4096)),
            ("1.5m", Some(1_572_864)),
            ("4GiB", Some(4 << 30)),
            ("2T", Some(2 << 40)),
            ("", None),
            ("k", None),
            ("4x", None),
            ("4kb2", None),
            ("-4", None),
            ("1..5k", None),
            ("99999999999999999999", None),
            ("9999999999T", None),
        ] {
            assert_eq!(size(text), bytes, "{text:?}");
        }
        for (bytes, text) in [
            (0, "0 bytes"),
            (15, "15 bytes"),
            (500_000, "500 KB"),
            (4096, "4 KiB"),
            (10 << 20, "10 MiB"),
            (4 << 30, "4 GiB"),
            (1_500_000_000, "1500 MB"),
        ] {
            assert_eq!(size_text(bytes), text);
        }
    }

    #[test]
    fn durations() {
        for (text, us) in [
            ("50ms", Some(50_000)),
            ("1.5 s", Some(1_500_000)),
            ("2m", Some(120_000_000)),
            ("1h", Some(3_600_000_000)),
            ("7us", Some(7)),
            ("5", None),
            ("ms", None),
            ("-1s", None),
            ("99999999999h", None),
        ] {
            assert_eq!(duration(text), us.map(Duration::from_micros), "{text:?}");
        }
        assert_eq!(duration_text(Duration::from_millis(50)), "50 ms");
        assert_eq!(duration_text(Duration::from_secs(60)), "60 s");
        assert_eq!(duration_text(Duration::from_micros(1500)), "1500 us");
    }

    #[test]
    fn words() {
        assert_eq!(nearest("jbos", ["jobs", "name"]), Some("jobs"));
        assert_eq!(nearest("nothing", ["jobs", "name"]), None);
        assert_eq!(hint("colour", ["a", "b"]), "; there are: a, b");
        assert!(is_name("a-rsync_2") && !is_name("") && !is_name("-a") && !is_name("a/b"));
        assert!(!is_name("..") && !is_name("Ä") && !is_name("a b"));
        assert!(is_placeholder("queue_size") && !is_placeholder("2") && !is_placeholder("A"));
    }
}
