//! Values as fio writes them (fio(1), "parameter types"): sizes, times, whole numbers, lists of them.
//! Each function takes the text of a value, and the error goes on after `OPTION=VALUE: `.

use crate::job::Amount;

/// Bytes of `k` (`kb_base`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnitBase {
    /// `k` is 1024 and `kib` is 1000: fio's default.
    #[default]
    Binary,
    /// `k` is 1000 and `kib` is 1024, as the standards have it.
    Decimal,
}

/// The unit of a time without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BareTime {
    Seconds,
    /// Microseconds.
    Micros,
}

/// Units of time in small letters, with their microseconds.
const TIMES_US: [(&str, u64); 9] = [
    ("us", 1),
    ("usec", 1),
    ("ms", 1000),
    ("msec", 1000),
    ("s", 1_000_000),
    ("sec", 1_000_000),
    ("m", 60_000_000),
    ("h", 3_600_000_000),
    ("d", 86_400_000_000),
];

/// The longest list of percentiles.
const PERCENTILES_MAX: usize = 20;

/// CPUs are numbered below this.
const CPUS_MAX: u32 = 1 << 16;

/// Splits `12K` into its number and its unit in small letters; `0x1f` has none.
fn number(text: &str) -> Result<(u64, String), String> {
    let text = text.trim();
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (radix, digits) = hex.map_or((10, text), |digits| (16, digits));
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let (digits, unit) = digits.split_at(end);
    if digits.is_empty() {
        return Err("is not a number".to_owned());
    }
    if radix == 16 && !unit.is_empty() {
        return Err("is hexadecimal with a unit, which fio would leave out".to_owned());
    }
    let number = u64::from_str_radix(digits, radix).map_err(|_| "is too large".to_owned())?;
    Ok((number, unit.to_ascii_lowercase()))
}

/// Bytes in one `unit` (in small letters).
fn multiple(unit: &str, base: UnitBase) -> Option<u64> {
    let mut letters = unit.chars();
    let power = match letters.next() {
        None => return Some(1),
        Some('b') => return letters.as_str().is_empty().then_some(1),
        Some(letter) => 1 + "kmgtp".find(letter)? as u32,
    };
    let swapped = match letters.as_str() {
        // fio(1) has `ki` as `kib`; its reader takes it as `k`.
        "" | "b" | "i" => false,
        "ib" => true,
        _ => return None,
    };
    let binary = (base == UnitBase::Binary) != swapped;
    Some(if binary { 1024u64.pow(power) } else { 1000u64.pow(power) })
}

/// A number of bytes, or of anything: `4096`, `4k`, `0x1000`, `1mib`.
pub fn size(text: &str, base: UnitBase) -> Result<u64, String> {
    if is_expression(text) {
        let bytes = evaluate(text, &|term| size(term, base))?;
        return if bytes <= i64::MAX as u64 { Ok(bytes) } else { Err("is too large".to_owned()) };
    }
    let (number, unit) = number(text)?;
    if unit == "z" {
        return Err("zones are fio's and not supported here".to_owned());
    }
    let multiple = multiple(&unit, base)
        .ok_or_else(|| format!("'{unit}' is not a unit (k, m, g, t, p, also with b or ib)"))?;
    let bytes = number.checked_mul(multiple).filter(|bytes| *bytes <= i64::MAX as u64);
    bytes.ok_or_else(|| "is too large".to_owned())
}

/// A size, or percent of existing files.
pub fn amount(text: &str, base: UnitBase) -> Result<Amount, String> {
    match text.trim().strip_suffix('%') {
        None => Ok(Amount::Bytes(size(text, base)?)),
        Some(number) => Ok(Amount::Percent(percent(number)?)),
    }
}

/// A whole number from 0 to 100.
pub fn percent(text: &str) -> Result<u8, String> {
    let number = text.trim().parse::<u8>().ok().filter(|percent| *percent <= 100);
    number.ok_or_else(|| "is not a whole number from 0 to 100".to_owned())
}

/// A whole number from `least` to 2^32 - 1. As in fio, `1k` is one.
pub fn count(text: &str, base: UnitBase, least: u32) -> Result<u32, String> {
    let number = size(text, base)?;
    let number = u32::try_from(number).map_err(|_| "is too large".to_owned())?;
    if number < least {
        return Err(format!("must be at least {least}"));
    }
    Ok(number)
}

/// A time in microseconds: `30`, `500ms`, `2h`.
pub fn time_us(text: &str, bare: BareTime) -> Result<u64, String> {
    let (number, unit) = number(text)?;
    let found = TIMES_US.iter().find(|(name, _)| *name == unit).map(|(_, us)| *us);
    let us = match (unit.as_str(), bare) {
        ("", BareTime::Seconds) => Some(1_000_000),
        ("", BareTime::Micros) => Some(1),
        _ => found,
    };
    let us = us.ok_or_else(|| format!("'{unit}' is not a unit of time (us, ms, s, m, h, d)"))?;
    // More than a century: longer than any run, and sums of it cannot overflow.
    let known = number.checked_mul(us).filter(|us| *us <= 1 << 53);
    known.ok_or_else(|| "is too long".to_owned())
}

/// `1` or `0`.
pub fn truth(text: &str) -> Result<bool, String> {
    match text.trim() {
        "1" => Ok(true),
        "0" => Ok(false),
        _ => Err("must be 1 or 0".to_owned()),
    }
}

/// The meaning of a word among those that an option knows.
pub fn one_of<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T, String> {
    if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(*meaning);
    }
    let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    Err(match words.as_slice() {
        [one, other] => format!("is neither {one} nor {other}"),
        _ => format!("is none of {}", words.join(", ")),
    })
}

/// Refuses options if they exclude each other.
pub fn refuse(excluded: bool, why: &str) -> Result<(), String> {
    if excluded { Err(why.to_owned()) } else { Ok(()) }
}

/// Zero means none.
pub fn unless_zero<T: Default + PartialEq>(value: T) -> Option<T> {
    (value != T::default()).then_some(value)
}

/// Values for reads, writes and trims: one is for all, and one after which a comma stands is for its
/// own side alone; sides without a value get `None`. What trims would get is read and goes nowhere.
pub fn sides<T: Copy>(
    text: &str,
    each: impl Fn(&str) -> Result<T, String>,
) -> Result<[Option<T>; 2], String> {
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err("has more than three values (reads, writes, trims)".to_owned());
    }
    let value = |at: usize| match parts.get(at).map(|part| part.trim()) {
        None | Some("") => Ok(None),
        Some(part) => each(part).map(Some),
    };
    let (read, write, trim) = (value(0)?, value(1)?, value(2)?);
    if read.or(write).or(trim).is_none() {
        return Err("has no value".to_owned());
    }
    Ok(if parts.len() == 1 { [read, read] } else { [read, write] })
}

/// Rates for reads and for writes, of which 0 is none.
pub fn rates(
    text: &str,
    each: impl Fn(&str) -> Result<u64, String>,
) -> Result<[Option<u64>; 2], String> {
    Ok(sides(text, each)?.map(|rate| rate.and_then(unless_zero)))
}

/// CPUs such as `0-3,5`, in order, each once.
pub fn cpus(text: &str) -> Result<Vec<u32>, String> {
    let cpu = |text: &str| {
        let number = text.trim().parse::<u32>().ok().filter(|number| *number < CPUS_MAX);
        number.ok_or_else(|| format!("'{text}' is not a CPU (a list is such as 0-3,5)"))
    };
    let mut all = Vec::new();
    for part in text.split(',') {
        match part.split_once('-') {
            None => all.push(cpu(part)?),
            Some((first, last)) => {
                let (first, last) = (cpu(first)?, cpu(last)?);
                if first > last {
                    return Err(format!("{part} begins behind its end"));
                }
                all.extend(first..=last);
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// Percentiles such as `50:99:99.9`, in order.
pub fn percentiles(text: &str) -> Result<Vec<f64>, String> {
    let mut all = Vec::new();
    for part in text.split(':') {
        let number = part.trim().parse::<f64>().ok();
        let number = number.filter(|percent| *percent > 0.0 && *percent <= 100.0);
        all.push(
            number.ok_or_else(|| format!("'{part}' is not a percentile above 0 and up to 100"))?,
        );
    }
    if all.len() > PERCENTILES_MAX {
        return Err(format!("has more than {PERCENTILES_MAX} percentiles"));
    }
    all.sort_by(f64::total_cmp);
    Ok(all)
}

/// Names with `:` between them, in which `\:` is a colon.
pub fn names(text: &str) -> Result<Vec<String>, String> {
    let (mut all, mut name) = (Vec::new(), String::new());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.next_if_eq(&':').is_some() => name.push(':'),
            ':' => all.push(std::mem::take(&mut name)),
            other => name.push(other),
        }
    }
    all.push(name);
    if all.iter().any(String::is_empty) {
        return Err("has an empty name".to_owned());
    }
    Ok(all)
}

/// Terms and brackets inside of each other, at most.
const DEPTH_MAX: u32 = 32;

fn is_expression(text: &str) -> bool {
    text.contains(['(', ')', '*', '+', '/', '^'])
}

/// The unread rest of an expression, and the parser of single numbers.
struct ExpressionReader<'a> {
    rest: &'a str,
    term: &'a dyn Fn(&str) -> Result<u64, String>,
    depth: u32,
}

/// Value of an expression such as `5*1024*$pagesize` or `(4k+8k)/2`, in whole numbers: `+` and `-`, then `*`, `/` and `%`, then `^`, as usual, and brackets. `term` reads a number with its
/// unit.
///
/// # Errors
/// Not a valid expression, or its value is below 0 or too large.
fn evaluate(text: &str, term: &dyn Fn(&str) -> Result<u64, String>) -> Result<u64, String> {
    let mut reader = ExpressionReader { rest: text.trim(), term, depth: 0 };
    let value = reader.sum()?;
    match reader.rest {
        "" => u64::try_from(value).map_err(|_| "is below 0 or too large".to_owned()),
        rest => Err(format!("cannot be computed from '{rest}' on")),
    }
}

fn large() -> String {
    "is too large".to_owned()
}

impl ExpressionReader<'_> {
    /// Takes one of these signs, if it comes next.
    fn sign(&mut self, signs: &[char]) -> Option<char> {
        let next = self.rest.chars().next().filter(|sign| signs.contains(sign))?;
        self.rest = self.rest[next.len_utf8()..].trim_start();
        Some(next)
    }

    fn sum(&mut self) -> Result<i128, String> {
        let mut value = self.product()?;
        while let Some(sign) = self.sign(&['+', '-']) {
            let next = self.product()?;
            let done = if sign == '+' { value.checked_add(next) } else { value.checked_sub(next) };
            value = done.ok_or_else(large)?;
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<i128, String> {
        let mut value = self.power()?;
        while let Some(sign) = self.sign(&['*', '/', '%']) {
            let next = self.power()?;
            if next == 0 && sign != '*' {
                return Err("is divided by 0".to_owned());
            }
            let done = match sign {
                '*' => value.checked_mul(next),
                '/' => value.checked_div(next),
                _ => value.checked_rem(next),
            };
            value = done.ok_or_else(large)?;
        }
        Ok(value)
    }

    fn power(&mut self) -> Result<i128, String> {
        let base = self.number()?;
        if self.sign(&['^']).is_none() {
            return Ok(base);
        }
        let exponent = self.power()?;
        let exponent = u32::try_from(exponent).map_err(|_| large())?;
        base.checked_pow(exponent).ok_or_else(large)
    }

    fn number(&mut self) -> Result<i128, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("has too many brackets".to_owned());
        }
        let found = match self.sign(&['(', '-']) {
            Some('-') => self.number().map(|value| -value),
            Some(_) => self.sum().and_then(|value| match self.sign(&[')']) {
                Some(_) => Ok(value),
                None => Err("has a bracket that is not closed".to_owned()),
            }),
            None => {
                let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric());
                let (text, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
                self.rest = rest.trim_start();
                (self.term)(text).map(i128::from)
            }
        };
        self.depth -= 1;
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, binary, decimal) in [
            ("0", Some(0), Some(0)),
            ("4096", Some(4096), Some(4096)),
            ("4096b", Some(4096), Some(4096)),
            ("4096B", Some(4096), Some(4096)),
            ("4k", Some(4096), Some(4000)),
            ("4K", Some(4096), Some(4000)),
            ("4kb", Some(4096), Some(4000)),
            ("4kB", Some(4096), Some(4000)),
            ("4ki", Some(4096), Some(4000)),
            ("4kib", Some(4000), Some(4096)),
            ("1KiB", Some(1000), Some(1024)),
            ("1m", Some(1 << 20), Some(1_000_000)),
            ("1mi", Some(1 << 20), Some(1_000_000)),
            ("1mib", Some(1_000_000), Some(1 << 20)),
            ("2g", Some(2 << 30), Some(2_000_000_000)),
            ("3t", Some(3 << 40), Some(3_000_000_000_000)),
            ("1p", Some(1 << 50), Some(1_000_000_000_000_000)),
            ("0x10", Some(16), Some(16)),
            ("0X1f", Some(31), Some(31)),
            ("0x1fk", None, None),
            (" 7 ", Some(7), Some(7)),
            ("9223372036854775807", Some(i64::MAX as u64), Some(i64::MAX as u64)),
            ("9223372036854775808", None, None),
            ("99999999999999999999", None, None),
            ("8192p", None, Some(8_192_000_000_000_000_000)),
            ("16384p", None, None),
            ("", None, None),
            ("k", None, None),
            ("-1", None, None),
            ("+1", None, None),
            ("1.5g", None, None),
            ("4x", None, None),
            ("4kk", None, None),
            ("4bk", None, None),
            ("4z", None, None),
            ("4 k", None, None),
            ("(4k)", Some(4096), Some(4000)),
            ("2*1024", Some(2048), Some(2048)),
            ("0x", None, None),
            ("20%", None, None),
            ("é", None, None),
        ] {
            assert_eq!(size(text, UnitBase::Binary).ok(), binary, "{text:?}");
            assert_eq!(size(text, UnitBase::Decimal).ok(), decimal, "{text:?} with kb_base=1000");
        }
        assert!(size("3z", UnitBase::Binary).is_err_and(|why| why.contains("zones")));
    }

    #[test]
    fn amounts_and_counts() {
        for (text, expected) in [
            ("1m", Some(Amount::Bytes(1 << 20))),
            ("20%", Some(Amount::Percent(20))),
            ("100%", Some(Amount::Percent(100))),
            ("0%", Some(Amount::Percent(0))),
            ("101%", None),
            ("1.5%", None),
            ("%", None),
        ] {
            assert_eq!(amount(text, UnitBase::Binary).ok(), expected, "{text}");
        }
        for (text, least, expected) in [
            ("1", 1, Some(1)),
            ("1k", 1, Some(1024)),
            ("0", 1, None),
            ("0", 0, Some(0)),
            ("4294967295", 0, Some(u32::MAX)),
            ("4294967296", 0, None),
            ("-1", 0, None),
            ("two", 0, None),
        ] {
            assert_eq!(count(text, UnitBase::Binary, least).ok(), expected, "{text}");
        }
    }

    #[test]
    fn times() {
        for (text, of_seconds, of_micros) in [
            ("30", Some(30_000_000), Some(30)),
            ("0", Some(0), Some(0)),
            ("30s", Some(30_000_000), Some(30_000_000)),
            ("30sec", Some(30_000_000), Some(30_000_000)),
            ("500ms", Some(500_000), Some(500_000)),
            ("500msec", Some(500_000), Some(500_000)),
            ("7us", Some(7), Some(7)),
            ("7usec", Some(7), Some(7)),
            ("2m", Some(120_000_000), Some(120_000_000)),
            ("2M", Some(120_000_000), Some(120_000_000)),
            ("1h", Some(3_600_000_000), Some(3_600_000_000)),
            ("1d", Some(86_400_000_000), Some(86_400_000_000)),
            ("0x10", Some(16_000_000), Some(16)),
            ("99999999999999d", None, None),
            ("1w", None, None),
            ("1.5s", None, None),
            ("s", None, None),
            ("", None, None),
            ("(1)", None, None),
        ] {
            assert_eq!(time_us(text, BareTime::Seconds).ok(), of_seconds, "{text:?}");
            assert_eq!(time_us(text, BareTime::Micros).ok(), of_micros, "{text:?} of microseconds");
        }
    }

    #[test]
    fn values_for_sides() {
        for (text, expected) in [
            ("4k", Some([Some(4096), Some(4096)])),
            ("4k,8k", Some([Some(4096), Some(8192)])),
            ("4k,8k,16k", Some([Some(4096), Some(8192)])),
            ("4k,8k,", Some([Some(4096), Some(8192)])),
            ("4k,", Some([Some(4096), None])),
            (",8k", Some([None, Some(8192)])),
            (",8k,", Some([None, Some(8192)])),
            (",,8k", Some([None, None])),
            ("", None),
            (",", None),
            (",,", None),
            ("1,2,3,4", None),
            ("4k,x", None),
            ("4k,8k,x", None),
        ] {
            let found = sides(text, |one| size(one, UnitBase::Binary));
            assert_eq!(found.ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn lists_of_cpus_percentiles_and_names() {
        for (text, expected) in [
            ("0", Some(vec![0])),
            ("0-3,5", Some(vec![0, 1, 2, 3, 5])),
            ("5,0-1,1", Some(vec![0, 1, 5])),
            ("2-2", Some(vec![2])),
            ("3-1", None),
            ("1-", None),
            ("-1", None),
            ("all", None),
            ("", None),
            ("70000", None),
        ] {
            assert_eq!(cpus(text).ok(), expected, "{text:?}");
        }
        for (text, expected) in [
            ("99", Some(vec![99.0])),
            ("99.9:50:100", Some(vec![50.0, 99.9, 100.0])),
            ("0", None),
            ("100.1", None),
            ("50,99", None),
            ("nan", None),
            ("", None),
            ("1:", None),
        ] {
            assert_eq!(percentiles(text).ok(), expected, "{text:?}");
        }
        assert!(percentiles(&["1"; 21].join(":")).is_err());
        for (text, expected) in [
            ("a", Some(vec!["a"])),
            ("/a:/b", Some(vec!["/a", "/b"])),
            (r"/dev/foo@3\:c:b", Some(vec!["/dev/foo@3:c", "b"])),
            (r"a\b", Some(vec![r"a\b"])),
            (r"a\", Some(vec![r"a\"])),
            ("a::b", None),
            ("a:", None),
            ("", None),
        ] {
            let found = names(text).ok();
            let found = found.as_ref().map(|names| names.iter().map(String::as_str).collect());
            assert_eq!(found, expected, "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_value_or_none(text in "\\PC{0,12}|[0-9a-fx.,:%()kmgtpibszud-]{0,12}") {
            for base in [UnitBase::Binary, UnitBase::Decimal] {
                if let Ok(bytes) = size(&text, base) {
                    proptest::prop_assert!(bytes <= i64::MAX as u64);
                }
                let _ = (amount(&text, base), count(&text, base, 1));
            }
            for bare in [BareTime::Seconds, BareTime::Micros] {
                if let Ok(us) = time_us(&text, bare) {
                    proptest::prop_assert!(us <= 1 << 53);
                }
            }
            let _ = (percent(&text), truth(&text), percentiles(&text));
            if let Ok(cpus) = cpus(&text) {
                proptest::prop_assert!(cpus.is_sorted());
            }
            if let Ok(names) = names(&text) {
                let escaped: Vec<String> = names.iter().map(|name| name.replace(':', "\\:")).collect();
                proptest::prop_assert_eq!(escaped.join(":"), text);
            }
        }

        #[test]
        fn sizes_scale(n in 0u64..1 << 20) {
            for (unit, bytes) in [("k", 1u64 << 10), ("m", 1 << 20), ("g", 1 << 30), ("kib", 1000), ("", 1)] {
                proptest::prop_assert_eq!(size(&format!("{n}{unit}"), UnitBase::Binary), Ok(n * bytes));
            }
            proptest::prop_assert_eq!(size(&format!("{n:#x}"), UnitBase::Binary), Ok(n));
        }
    }

    #[test]
    fn expressions_have_values() {
        for (text, expected) in [
            ("5*1024*1024*8/8", Some(5 << 20)),
            ("8*1024*4096", Some(8 << 22)),
            ("(4k+8k)/2", Some(6 << 10)),
            ("2+3*4", Some(14)),
            ("2^3^2", Some(512)),
            ("(2+3)*4", Some(20)),
            (" 7 / 2 ", Some(3)),
            ("10-3-2+0", Some(5)),
            ("-(2)+3", Some(1)),
            ("1-2*1", None),
            ("1/0", None),
            ("2*", None),
            ("(2", None),
            ("2)", None),
            ("2**3", None),
            ("9^99", None),
            ("(((((((((((((((((((((((((((((((((((1)))))))))))))))))))))))))))))))))))", None),
        ] {
            assert_eq!(size(text, UnitBase::Binary).ok(), expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_a_value_or_none(text in "[-+*/^()0-9km ä]{0,40}") {
            let _ = size(&text, UnitBase::Binary);
        }

        #[test]
        fn sums_and_products(a in 0u64..1 << 20, b in 0u64..1 << 20, c in 1u64..1 << 20) {
            proptest::prop_assert_eq!(size(&format!("{a}+{b}*{c}"), UnitBase::Binary), Ok(a + b * c));
            proptest::prop_assert_eq!(size(&format!("({a}+{b})/{c}"), UnitBase::Binary), Ok((a + b) / c));
        }
    }
}
