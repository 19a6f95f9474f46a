//! Prices of machines: parsing of options, and unit costs.

mod table;

use super::quantity::quantity;
use std::collections::BTreeMap;
pub use table::{PricedMachine, parse_machines};

/// Price and rating of each machine, by index of the result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices {
    /// Names of the results given by the user, in order; empty to use the names of machines.
    pub names: Vec<String>,
    /// Price per hour, in the user's currency.
    pub per_hour: BTreeMap<usize, f64>,
    /// Rated operations per second of the machine or volume.
    pub rated: BTreeMap<usize, RatedIops>,
    /// Machines that were not measured, with price and rating.
    pub others: Vec<PricedMachine>,
}

/// Rated operations per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RatedIops {
    /// Reads; all operations if there is no other number.
    pub reads: f64,
    /// Writes, if rated separately.
    pub writes: Option<f64>,
}

impl RatedIops {
    /// Rating for a pattern; `None` for a mixed one if reads and writes are rated separately.
    pub(super) fn of(&self, writes: Option<bool>) -> Option<f64> {
        match (writes, self.writes) {
            (_, None) | (Some(false), _) => Some(self.reads),
            (Some(true), some) => some,
            (None, Some(_)) => None,
        }
    }
}

/// Parses `A=0.366/h`: machine and price per hour. Units: `/s`, `/min`, `/h`, `/day`, `/month` (730 hours); a
/// currency sign may precede the number.
///
/// # Errors
/// A message with the option and the problem.
pub fn parse_price(text: &str) -> Result<(String, f64), String> {
    let (name, price) = named("--price", text, "A=0.366/h")?;
    let Some((amount, unit)) = price.split_once('/') else {
        return Err(format!("--price {text}: for how long? Write {name}={price}/h"));
    };
    let per_hour = hourly(amount, unit).map_err(|why| format!("--price {text}: {why}"))?;
    Ok((name, per_hour))
}

/// Converts an amount per unit of time to one per hour.
fn hourly(amount: &str, unit: &str) -> Result<f64, String> {
    let hours = match unit.trim() {
        "h" | "hour" | "hr" => 1.0,
        "s" => 1.0 / 3600.0,
        "min" => 1.0 / 60.0,
        "d" | "day" => 24.0,
        "month" | "mo" => 730.0,
        other => return Err(format!("'{other}' is not a time; write h, s, min, day or month")),
    };
    let amount = amount.trim().trim_start_matches(['$', '€', '£', '¥']);
    match quantity(amount, true).and_then(positive) {
        Some(amount) => Ok(amount / hours),
        None => Err(format!("'{amount}' is not a price above 0")),
    }
}

/// Parses `A=206250` or `A=206250/18750`: machine and rated operations per second, or those of reads and of
/// writes (k and M are 1000-based).
///
/// # Errors
/// A message with the option and the problem.
pub fn parse_rated(text: &str) -> Result<(String, RatedIops), String> {
    let (name, iops) = named("--rated", text, "A=206250 or A=206250/18750 (reads/writes)")?;
    let number = |iops: &str| match quantity(iops, true).filter(|iops| *iops > 0.0) {
        Some(iops) => Ok(iops),
        None => Err(format!("--rated {text}: '{iops}' is not a number of operations a second")),
    };
    let rated = match iops.split_once('/') {
        Some((reads, writes)) => RatedIops { reads: number(reads)?, writes: Some(number(writes)?) },
        None => RatedIops { reads: number(&iops)?, writes: None },
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
    /// Builds the table of prices. `names` are the user's names of the results in order; an option names a
    /// result by one of these or by a letter, A being the first.
    ///
    /// # Errors
    /// A message, if an option names no result, or one twice.
    pub fn new(
        names: &[String],
        per_hour: &[(String, f64)],
        rated: &[(String, RatedIops)],
    ) -> Result<Prices, String> {
        let (per_hour, rated) =
            (placed("--price", names, per_hour)?, placed("--rated", names, rated)?);
        Ok(Prices { names: names.to_vec(), per_hour, rated, others: Vec::new() })
    }

    /// Adds a table of machines. A row with the name of a result applies to that result; options take
    /// precedence.
    pub fn with_machines(mut self, machines: Vec<PricedMachine>) -> Prices {
        for machine in machines {
            match self.names.iter().position(|name| *name == machine.name) {
                None => self.others.push(machine),
                Some(at) => {
                    self.per_hour.entry(at).or_insert(machine.per_hour);
                    if let Some(rated) = machine.rated {
                        self.rated.entry(at).or_insert(rated);
                    }
                }
            }
        }
        self
    }
}

/// Assigns the values of an option to result indices.
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

/// Index of a result: by its name, else by a letter.
fn place(names: &[String], name: &str) -> Option<usize> {
    let by_name = names.iter().position(|of| of == name);
    let by_letter = || {
        let (letter, rest) = name.as_bytes().split_first()?;
        let at = usize::from(letter.to_ascii_uppercase().checked_sub(b'A')?);
        (rest.is_empty() && at < names.len()).then_some(at)
    };
    by_name.or_else(by_letter)
}

/// Price per hour ÷ operations per second × 10⁶, as in published tables of instance types.
pub(super) fn per_1m_iops(per_hour: f64, iops: f64) -> Option<f64> {
    positive(per_hour / iops * 1e6)
}

/// Price of a million operations at that rate.
pub(super) fn per_million_ios(per_hour: f64, iops: f64) -> Option<f64> {
    positive(per_hour / 3600.0 / iops * 1e6)
}

/// Price per `unit` of work, if `amount` took `took_s` seconds.
pub(super) fn per_amount(per_hour: f64, took_s: f64, amount: f64, unit: f64) -> Option<f64> {
    positive(per_hour / 3600.0 * took_s / (amount / unit))
}

fn positive(value: f64) -> Option<f64> {
    (value.is_finite() && value > 0.0).then_some(value)
}
