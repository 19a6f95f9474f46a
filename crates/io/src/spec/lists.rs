//! Lists of values that a sweep goes through: `1,2,4..128`, `read,randread`, `4k..1m`.

use super::units::{self, UnitBase};

/// Values of one list, at most.
const VALUES_MAX: usize = 1000;

/// Returns whether a value of the command line is a list.
pub fn is_list(text: &str) -> bool {
    text.contains(',') || text.contains("..")
}

/// The values of a list, each once, in its order. Commas separate them, or semicolons where there
/// are some, so that values may have commas of their own. `A,B..Z` goes on as A and B begin: where
/// one is a whole multiple of the other (twice at least) by that factor, else by their difference;
/// after one value by 1. It ends with the last value that is not beyond Z.
pub fn values(text: &str) -> Result<Vec<String>, String> {
    let separator = if text.contains(';') { ';' } else { ',' };
    let mut all: Vec<String> = Vec::new();
    for part in text.split(separator).map(str::trim) {
        match part.split_once("..") {
            None => all.push(part.to_owned()),
            Some((last, end)) => {
                all.push(last.trim().to_owned());
                let more = continued(&all, end.trim())?;
                all.extend(more);
            }
        }
        if all.iter().any(String::is_empty) {
            return Err("has an empty value".to_owned());
        }
        if all.len() > VALUES_MAX {
            return Err(format!("has more than {VALUES_MAX} values"));
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    match all.iter().find(|value| !seen.insert(value.as_str())) {
        Some(twice) => Err(format!("has {twice} twice")),
        None => Ok(all),
    }
}

/// The values after those that are there, up to `end`.
fn continued(before: &[String], end: &str) -> Result<Vec<String>, String> {
    let number = |text: &str| {
        let number = units::size(text, UnitBase::Binary).map(i128::from);
        number.map_err(|why| format!("cannot be continued: {text} {why}"))
    };
    let last = before.last().map_or(Ok(0), |text| number(text))?;
    let goal = number(end)?;
    let first = before.len().checked_sub(2).and_then(|at| before.get(at));
    let step = match first {
        None => Step::Add(if goal < last { -1 } else { 1 }),
        Some(text) => Step::between(number(text)?, last),
    };
    let rises = step.after(last) > last;
    if step.after(last) == last || (goal != last && rises != (goal > last)) {
        return Err(format!("cannot be continued to {end}"));
    }
    let units = before.iter().any(|text| !text.bytes().all(|byte| byte.is_ascii_digit()));
    let mut more = Vec::new();
    let mut next = step.after(last);
    while if rises { next <= goal } else { next >= goal } {
        more.push(if units { with_unit(next) } else { next.to_string() });
        if more.len() > VALUES_MAX {
            return Err(format!("has more than {VALUES_MAX} values"));
        }
        let after = step.after(next);
        if after == next {
            break;
        }
        next = after;
    }
    Ok(more)
}

/// Continuation of a list.
#[derive(Clone, Copy)]
enum Step {
    Add(i128),
    Times(i128),
    Over(i128),
}

impl Step {
    /// From one value to the next.
    fn between(first: i128, second: i128) -> Step {
        if first > 0 && second > first && second % first == 0 {
            Step::Times(second / first)
        } else if second > 0 && first > second && first % second == 0 {
            Step::Over(first / second)
        } else {
            Step::Add(second - first)
        }
    }

    fn after(self, value: i128) -> i128 {
        match self {
            Step::Add(by) => value + by,
            Step::Times(by) => value * by,
            // The list ends at the first value that does not divide evenly.
            Step::Over(by) if value % by != 0 => value,
            Step::Over(by) => value / by,
        }
    }
}

/// A number with the largest unit that it is a whole multiple of.
fn with_unit(number: i128) -> String {
    let units = [(40, "t"), (30, "g"), (20, "m"), (10, "k")];
    let fits = units.iter().find(|(bits, _)| number > 0 && number % (1 << bits) == 0);
    match fits {
        Some((bits, unit)) => format!("{}{unit}", number >> bits),
        None => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        for (text, expected) in [
            ("1", "1"),
            ("1,2,4..128", "1 2 4 8 16 32 64 128"),
            ("1,2..128", "1 2 4 8 16 32 64 128"),
            ("1,2,4..100", "1 2 4 8 16 32 64"),
            ("1..4", "1 2 3 4"),
            ("4..1", "4 3 2 1"),
            ("10,20,30..60", "10 20 30 40 50 60"),
            ("2,5..14", "2 5 8 11 14"),
            ("1,3..81", "1 3 9 27 81"),
            ("128,64..1", "128 64 32 16 8 4 2 1"),
            ("9,3..0", "9 3 1"),
            ("0,4..12", "0 4 8 12"),
            ("1,2..4,100", "1 2 4 100"),
            ("1, 2 ..4 , 10", "1 2 4 10"),
            ("4..4", "4"),
            ("4k..5", ""),
            ("4k,8k..64k", "4k 8k 16k 32k 64k"),
            ("512,1k..4k", "512 1k 2k 4k"),
            ("256k,512k..2m", "256k 512k 1m 2m"),
            ("read,randread", "read randread"),
            ("zipf:1.1,random", "zipf:1.1 random"),
            ("4k,8k;64k", "4k,8k 64k"),
            ("1,1", ""),
            ("1,", ""),
            ("", ""),
            (",1", ""),
            ("1,,2", ""),
            ("..4", ""),
            ("4..", ""),
            ("5,5..10", ""),
            ("1,2..0", ""),
            ("2,1..8", ""),
            ("a,b..z", ""),
            ("1..1000000", ""),
            ("1..2..3", ""),
        ] {
            let found = values(text).map(|values| values.join(" ")).unwrap_or_default();
            assert_eq!(found, expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_list_or_none(text in "[0-9kmg,.;a-z%: -]{0,24}") {
            if let Ok(values) = values(&text) {
                proptest::prop_assert!(!values.is_empty() && values.len() <= VALUES_MAX);
                proptest::prop_assert!(values.iter().all(|value| !value.is_empty()));
            }
        }

        #[test]
        fn a_list_written_out_is_itself(numbers in proptest::collection::btree_set(0u32..9999, 1..9)) {
            let texts: Vec<String> = numbers.iter().map(u32::to_string).collect();
            proptest::prop_assert_eq!(values(&texts.join(",")), Ok(texts));
        }

        #[test]
        fn doubling_and_counting(first in 1u64..64, times in 2u64..5, n in 0u32..6, by in 1u64..50) {
            let (second, end) = (first * times, first * times.pow(n + 1));
            let found = values(&format!("{first},{second}..{end}"));
            let expected: Vec<String> = (0..=n + 1).map(|p| (first * times.pow(p)).to_string()).collect();
            proptest::prop_assert_eq!(found, Ok(expected));
            let first = first * 2 + by;
            let end = first + by * u64::from(n + 1);
            let found = values(&format!("{first},{}..{end}", first + by));
            let expected: Vec<String> = (0..=n + 1).map(|k| (first + by * u64::from(k)).to_string()).collect();
            proptest::prop_assert_eq!(found, Ok(expected));
        }
    }
}
