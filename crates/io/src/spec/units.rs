//! Values as fio writes them (fio(1), "parameter types"): sizes, times, whole numbers, lists of them.
//! Each function takes the text of a value, and the error goes on after `OPTION=VALUE: `.

use super::super::job::Amount;
use super::arithmetic;

/// Bytes of `k` (`kb_base`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Base {
    /// `k` is 1024 and `kib` is 1000: fio's default.
    #[default]
    Binary,
    /// `k` is 1000 and `kib` is 1024, as the standards have it.
    Decimal,
}

/// The unit of a time without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bare {
    /// Seconds.
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
fn multiple(unit: &str, base: Base) -> Option<u64> {
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
    let binary = (base == Base::Binary) != swapped;
    Some(if binary { 1024u64.pow(power) } else { 1000u64.pow(power) })
}

/// A number of bytes, or of anything: `4096`, `4k`, `0x1000`, `1mib`.
///
/// # Errors
/// It is none, has another unit, or is larger than the largest file.
pub fn size(text: &str, base: Base) -> Result<u64, String> {
    if arithmetic::is_one(text) {
        let bytes = arithmetic::value(text, &|term| size(term, base))?;
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
///
/// # Errors
/// As [`size`], and more than 100 %.
pub fn amount(text: &str, base: Base) -> Result<Amount, String> {
    match text.trim().strip_suffix('%') {
        None => Ok(Amount::Bytes(size(text, base)?)),
        Some(number) => Ok(Amount::Percent(percent(number)?)),
    }
}

/// A whole number from 0 to 100.
///
/// # Errors
/// It is none.
pub fn percent(text: &str) -> Result<u8, String> {
    let number = text.trim().parse::<u8>().ok().filter(|percent| *percent <= 100);
    number.ok_or_else(|| "is not a whole number from 0 to 100".to_owned())
}

/// A whole number from `least` to 2^32 - 1. As in fio, `1k` is one.
///
/// # Errors
/// It is none.
pub fn count(text: &str, base: Base, least: u32) -> Result<u32, String> {
    let number = size(text, base)?;
    let number = u32::try_from(number).map_err(|_| "is too large".to_owned())?;
    if number < least {
        return Err(format!("must be at least {least}"));
    }
    Ok(number)
}

/// A time in microseconds: `30`, `500ms`, `2h`.
///
/// # Errors
/// It is none, or too long.
pub fn time_us(text: &str, bare: Bare) -> Result<u64, String> {
    let (number, unit) = number(text)?;
    let found = TIMES_US.iter().find(|(name, _)| *name == unit).map(|(_, us)| *us);
    let us = match (unit.as_str(), bare) {
        ("", Bare::Seconds) => Some(1_000_000),
        ("", Bare::Micros) => Some(1),
        _ => found,
    };
    let us = us.ok_or_else(|| format!("'{unit}' is not a unit of time (us, ms, s, m, h, d)"))?;
    // More than a century: longer than any run, and sums of it cannot overflow.
    let known = number.checked_mul(us).filter(|us| *us <= 1 << 53);
    known.ok_or_else(|| "is too long".to_owned())
}

/// `1` or `0`.
///
/// # Errors
/// It is neither.
pub fn truth(text: &str) -> Result<bool, String> {
    match text.trim() {
        "1" => Ok(true),
        "0" => Ok(false),
        _ => Err("must be 1 or 0".to_owned()),
    }
}

/// The meaning of a word among those that an option knows.
///
/// # Errors
/// It is none of them.
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
///
/// # Errors
/// They do: the sentence.
pub fn refuse(excluded: bool, why: &str) -> Result<(), String> {
    if excluded { Err(why.to_owned()) } else { Ok(()) }
}

/// Zero means none.
pub fn unless_zero<T: Default + PartialEq>(value: T) -> Option<T> {
    (value != T::default()).then_some(value)
}

/// Values for reads, writes and trims: one is for all, and one after which a comma stands is for its
/// own side alone; sides without a value get `None`. What trims would get is read and goes nowhere.
///
/// # Errors
/// Those of `each`, or more than three values.
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
///
/// # Errors
/// Those of [`sides`].
pub fn rates(
    text: &str,
    each: impl Fn(&str) -> Result<u64, String>,
) -> Result<[Option<u64>; 2], String> {
    Ok(sides(text, each)?.map(|rate| rate.and_then(unless_zero)))
}

/// CPUs such as `0-3,5`, in order, each once.
///
/// # Errors
/// Not a valid list.
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
///
/// # Errors
/// Not a valid list, has more than 20, or one outside of (0, 100].
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
///
/// # Errors
/// One is empty.
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

#[cfg(test)]
mod tests;
