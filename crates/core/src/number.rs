//! Numbers as people read and write them: grouped digits, bytes in a sentence; sizes and rates as rsync reads them (a
//! number, perhaps with a fraction, a unit, and `+1` or `-1` at the very end; rsync(1), `--max-size`).

use std::ffi::OsStr;

/// The digits of a whole number with a comma between each three: `1234567` as `1,234,567`.
pub fn grouped_digits(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A whole number with a comma between each three digits.
pub fn grouped(n: u64) -> String {
    grouped_digits(&n.to_string())
}

/// A number of things for a sentence: `1 file`, `2,000 files`.
pub fn things(n: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(n), if n == 1 { "" } else { "s" })
}

/// Bytes for a sentence: `3 bytes`, `2.42 MB`.
pub fn bytes(bytes: u64) -> String {
    if bytes < 1000 {
        return format!("{bytes} byte{}", if bytes == 1 { "" } else { "s" });
    }
    let (mut rest, mut unit) = (bytes as f64, ' ');
    for letter in ['K', 'M', 'G', 'T', 'P'] {
        if rest < 1000.0 {
            break;
        }
        (rest, unit) = (rest / 1000.0, letter);
    }
    format!("{rest:.2} {unit}B")
}

/// Bytes of one KiB, the unit of a plain number in `--bwlimit`.
const KIB: u64 = 1024;
/// The largest size there is: that of a file offset.
const SIZE_MAX: u128 = i64::MAX as u128;

/// Reads a size in bytes; a plain number counts `unit` bytes.
///
/// K, M, G, T, P and KiB … are multiples of 1024, KB … of 1000, B is one byte; the letters may be
/// small. A fraction of a byte is dropped.
///
/// # Errors
/// The reason, to stand after the option and the text.
pub fn parse_size(text: &OsStr, unit: u64) -> Result<u64, &'static str> {
    const INVALID: &str = "not a size (examples: 500, 1.5m, 2GiB, 1MB-1)";
    let text = text.to_str().ok_or(INVALID)?;
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = text.split_at(digits);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count()),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(INVALID);
    }
    let (rest, offset) = match rest {
        _ if rest.ends_with("+1") => (&rest[..rest.len() - 2], 1),
        _ if rest.ends_with("-1") => (&rest[..rest.len() - 2], -1),
        _ => (rest, 0),
    };
    let unit = multiple(&rest.to_ascii_lowercase(), unit).ok_or(INVALID)?;
    const LARGE: &str = "too large";
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| LARGE)? };
    // Digits beyond the eighteenth are below any byte of the largest unit.
    let fraction = fraction.get(..fraction.len().min(18)).unwrap_or("");
    let scale = 10u128.pow(fraction.len() as u32);
    let part = fraction.parse::<u128>().unwrap_or(0) * u128::from(unit) / scale;
    let bytes = whole.checked_mul(u128::from(unit)).ok_or(LARGE)?.saturating_add(part);
    let bytes = match offset {
        1 => bytes.saturating_add(1),
        -1 => bytes.checked_sub(1).ok_or("less than zero")?,
        _ => bytes,
    };
    if bytes > SIZE_MAX { Err(LARGE) } else { Ok(bytes as u64) }
}

/// Bytes in one of the unit that `suffix` (in small letters) names.
fn multiple(suffix: &str, plain: u64) -> Option<u64> {
    let mut letters = suffix.chars();
    let power = match letters.next() {
        None => return Some(plain),
        Some('b') => return letters.as_str().is_empty().then_some(1),
        Some('k') => 1,
        Some('m') => 2,
        Some('g') => 3,
        Some('t') => 4,
        Some('p') => 5,
        Some(_) => return None,
    };
    match letters.as_str() {
        "" | "ib" => Some(KIB.pow(power)),
        "b" => Some(1000u64.pow(power)),
        _ => None,
    }
}

/// Reads a rate in bytes a second, rounded to KiB as rsync does it; `None` means no limit.
///
/// # Errors
/// The reason, to stand after the option and the text.
pub fn parse_rate(text: &OsStr) -> Result<Option<u64>, &'static str> {
    match parse_size(text, KIB)? {
        0 => Ok(None),
        1..512 => Err("too small (at least 512 bytes, or 0 for no limit)"),
        bytes => Ok(Some(bytes.saturating_add(KIB / 2) / KIB * KIB)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_three() {
        for (digits, text) in
            [("", ""), ("0", "0"), ("999", "999"), ("1000", "1,000"), ("1234567", "1,234,567")]
        {
            assert_eq!(grouped_digits(digits), text);
        }
    }

    #[test]
    fn as_rsync() {
        for (text, bytes) in [
            ("0", Some(0)),
            ("1", Some(1)),
            ("1b", Some(1)),
            ("1.5", Some(1)),
            ("1.9", Some(1)),
            ("1.5m", Some(1_572_864)),
            (".5m", Some(524_288)),
            ("1.m", Some(1_048_576)),
            ("1.5k", Some(1536)),
            ("1K", Some(1024)),
            ("1KB", Some(1000)),
            ("1kib", Some(1024)),
            ("1.5mb-1", Some(1_499_999)),
            ("2g+1", Some(2_147_483_649)),
            ("1MB-1", Some(999_999)),
            ("1P", Some(1 << 50)),
            ("8192P-1", Some(i64::MAX as u64)),
            ("8192P", None),
            ("16384P", None),
            ("1.23456789012345678901234567890k", Some(1264)),
            ("0-1", None),
            ("k", None),
            (".", None),
            ("", None),
            ("+1", None),
            ("-1", None),
            ("x", None),
            ("1z", None),
            ("1mi", None),
            ("1bb", None),
            ("1mb+2", None),
            ("10000000000000000000", None),
            ("2c", None),
            ("0x10", None),
            ("1e3", None),
            ("1 m", None),
        ] {
            assert_eq!(parse_size(OsStr::new(text), 1).ok(), bytes, "{text:?}");
        }
    }

    #[test]
    fn rates() {
        for (text, rate) in [
            ("0", Some(None)),
            ("1", Some(Some(1024))),
            ("0.5", Some(Some(1024))),
            ("1.7", Some(Some(2048))),
            ("512b", Some(Some(1024))),
            ("700b", Some(Some(1024))),
            ("511b", None),
            ("1b", None),
            ("1MB", Some(Some(1_000_448))),
            ("1.5m", Some(Some(1_572_864))),
            ("+1", None),
            ("x", None),
        ] {
            assert_eq!(parse_rate(OsStr::new(text)).ok(), rate, "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken_or_refused(text: String, unit in 1u64..1 << 50) {
            if let Ok(bytes) = parse_size(OsStr::new(&text), unit) {
                proptest::prop_assert!(u128::from(bytes) <= SIZE_MAX);
            }
        }

        #[test]
        fn whole_numbers_are_exact(n in 0u64..1 << 40) {
            proptest::prop_assert_eq!(parse_size(OsStr::new(&n.to_string()), 1), Ok(n));
            proptest::prop_assert_eq!(parse_size(OsStr::new(&format!("{n}k")), 1), Ok(n * 1024));
            proptest::prop_assert_eq!(parse_size(OsStr::new(&format!("{n}KB+1")), 1), Ok(n * 1000 + 1));
        }
    }
}
