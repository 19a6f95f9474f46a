//! What machines cost: the options that say so, and prices of what they do.

use super::quantity::quantity;
use std::collections::BTreeMap;

/// What each machine costs and is rated at, by its place among the results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices {
    /// What the user calls the results, in their order; where there are none, their machines' names
    /// count.
    pub names: Vec<String>,
    /// For an hour, in whatever currency the user wrote.
    pub per_hour: BTreeMap<usize, f64>,
    /// Operations a second that the machine (or volume) is sold with.
    pub rated: BTreeMap<usize, Rated>,
}

/// Operations a second that something is sold with.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rated {
    /// Reads; of all kinds where there is no other number.
    pub reads: f64,
    /// Writes, where they have a number of their own.
    pub writes: Option<f64>,
}

impl Rated {
    /// What holds for a pattern; `None` for one that is neither, where that matters.
    pub(super) fn of(&self, writes: Option<bool>) -> Option<f64> {
        match (writes, self.writes) {
            (_, None) | (Some(false), _) => Some(self.reads),
            (Some(true), some) => some,
            (None, Some(_)) => None,
        }
    }
}

/// `A=0.366/h`: what a machine is called, and what it costs for an hour. Units: `/s`, `/min`, `/h`,
/// `/day`, `/month` (730 hours); a sign of a currency in front is allowed.
///
/// # Errors
/// A sentence that names the option and what is wrong with it.
pub fn parse_price(text: &str) -> Result<(String, f64), String> {
    let (name, price) = named("--price", text, "A=0.366/h")?;
    let Some((amount, unit)) = price.split_once('/') else {
        return Err(format!("--price {text}: for how long? Write {name}={price}/h"));
    };
    let hours = match unit.trim() {
        "h" | "hour" | "hr" => 1.0,
        "s" => 1.0 / 3600.0,
        "min" => 1.0 / 60.0,
        "d" | "day" => 24.0,
        "month" | "mo" => 730.0,
        other => {
            let units = "h, s, min, day or month";
            return Err(format!("--price {text}: '{other}' is no time; write {units}"));
        }
    };
    let amount = amount.trim().trim_start_matches(['$', '€', '£', '¥']);
    match quantity(amount, true).filter(|amount| *amount > 0.0) {
        Some(amount) => Ok((name, amount / hours)),
        None => Err(format!("--price {text}: '{amount}' is no price above 0")),
    }
}

/// `A=206250`, `A=206250/18750`: what a machine is called, and the operations a second that it is sold
/// with, or those of reads and of writes (k and M are 1000-based).
///
/// # Errors
/// A sentence that names the option and what is wrong with it.
pub fn parse_rated(text: &str) -> Result<(String, Rated), String> {
    let (name, iops) = named("--rated", text, "A=206250 or A=206250/18750 (reads/writes)")?;
    let number = |iops: &str| match quantity(iops, true).filter(|iops| *iops > 0.0) {
        Some(iops) => Ok(iops),
        None => Err(format!("--rated {text}: '{iops}' is no number of operations a second")),
    };
    let rated = match iops.split_once('/') {
        Some((reads, writes)) => Rated { reads: number(reads)?, writes: Some(number(writes)?) },
        None => Rated { reads: number(&iops)?, writes: None },
    };
    Ok((name, rated))
}

fn named(option: &str, text: &str, example: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(format!("{option} {text}: write it as {example}")),
    }
}

impl Prices {
    /// Prices of results. `names` are what the user calls them, in their order; an option may name
    /// one by that, or by a letter: A is the first.
    ///
    /// # Errors
    /// A sentence, where an option names no result, or one twice.
    pub fn new(
        names: &[String],
        per_hour: &[(String, f64)],
        rated: &[(String, Rated)],
    ) -> Result<Prices, String> {
        let (per_hour, rated) =
            (placed("--price", names, per_hour)?, placed("--rated", names, rated)?);
        Ok(Prices { names: names.to_vec(), per_hour, rated })
    }
}

/// What an option says, by the place of the result that it names.
fn placed<T: Copy>(
    option: &str,
    names: &[String],
    given: &[(String, T)],
) -> Result<BTreeMap<usize, T>, String> {
    let mut found = BTreeMap::new();
    for (name, value) in given {
        let Some(at) = place(names, name) else {
            let known = names.join(", ");
            return Err(format!("{option} {name}=…: no result is called {name} ({known})"));
        };
        if found.insert(at, *value).is_some() {
            return Err(format!("{option} {name}=…: given twice"));
        }
    }
    Ok(found)
}

/// The place of a result: by its name, else by a letter.
fn place(names: &[String], name: &str) -> Option<usize> {
    let by_name = names.iter().position(|of| of == name);
    let by_letter = || {
        let (letter, rest) = name.as_bytes().split_first()?;
        let at = usize::from(letter.to_ascii_uppercase().checked_sub(b'A')?);
        (rest.is_empty() && at < names.len()).then_some(at)
    };
    by_name.or_else(by_letter)
}

/// Price for an hour ÷ operations a second × 10⁶: what a machine of a million of them would cost for
/// an hour, as tables of instance types have it.
pub(super) fn per_1m_iops(per_hour: f64, iops: f64) -> Option<f64> {
    positive(per_hour / iops * 1e6)
}

/// What a million operations cost at that rate.
pub(super) fn per_million_ios(per_hour: f64, iops: f64) -> Option<f64> {
    positive(per_hour / 3600.0 / iops * 1e6)
}

/// What `amount` costs in units of `unit`, where that takes so many seconds.
pub(super) fn per_amount(per_hour: f64, took_s: f64, amount: f64, unit: f64) -> Option<f64> {
    positive(per_hour / 3600.0 * took_s / (amount / unit))
}

fn positive(value: f64) -> Option<f64> {
    (value.is_finite() && value > 0.0).then_some(value)
}
