//! Prices of machines: parsing of options and tables, unit costs, and the best machine for each need.

use crate::analysis::compare::{
    BestResult, BuyerNeed, ComparisonPart, CostBasis, MachineCost, are_kinds,
};
use crate::analysis::quantity::quantity;
use crate::analysis::ranking::bests;
use crate::analysis::statistics::{SpeedClaim, WORTH, unpaired_ratio};
use crate::distinct;
use crate::results::Cell;
use std::collections::{BTreeMap, BTreeSet};

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
pub fn parse_price(text: &str) -> Result<(String, f64), String> {
    let (name, price) = split_option("--price", text, "A=0.366/h")?;
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
pub fn parse_rated(text: &str) -> Result<(String, RatedIops), String> {
    let (name, iops) = split_option("--rated", text, "A=206250 or A=206250/18750 (reads/writes)")?;
    let number = |iops: &str| match quantity(iops, true).filter(|iops| *iops > 0.0) {
        Some(iops) => Ok(iops),
        None => Err(format!("--rated {text}: '{iops}' is not a number of operations per second")),
    };
    let rated = match iops.split_once('/') {
        Some((reads, writes)) => RatedIops { reads: number(reads)?, writes: Some(number(writes)?) },
        None => RatedIops { reads: number(&iops)?, writes: None },
    };
    Ok((name, rated))
}

fn split_option(option: &str, text: &str, example: &str) -> Result<(String, String), String> {
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
            (by_result("--price", names, per_hour)?, by_result("--rated", names, rated)?);
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
fn by_result<T: Copy>(
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
fn per_amount(per_hour: f64, took_s: f64, amount: f64, unit: f64) -> Option<f64> {
    positive(per_hour / 3600.0 * took_s / (amount / unit))
}

fn positive(value: f64) -> Option<f64> {
    (value.is_finite() && value > 0.0).then_some(value)
}

// Reads a CSV table (RFC 4180) of machines with prices and ratings, for machines that were not measured.

/// One row of the table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PricedMachine {
    /// Name of the machine.
    pub name: String,
    /// Price per hour.
    pub per_hour: f64,
    /// Rated operations per second.
    pub rated: Option<RatedIops>,
    /// Rated bytes per second.
    pub bytes_per_s: Option<f64>,
}

/// Known columns; the first two are required.
const COLUMNS: [&str; 6] = ["name", "price", "iops", "read_iops", "write_iops", "mb_per_s"];

/// Parses a table: a line of column names, then one machine per line. Requires `name`, `price` (as in
/// `--price`; per hour if there is no unit) and at least one of `iops`, `read_iops` with `write_iops`,
/// `mb_per_s`. Empty lines and lines that begin with `#` are ignored.
///
/// # Errors
/// A message with the line and the problem.
pub fn parse_machines(text: &str) -> Result<Vec<PricedMachine>, String> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let (at, head) = lines.next().ok_or("the table is empty")?;
    let head = fields(head).map_err(|why| format!("line {at}: {why}"))?;
    if let Some(other) = head.iter().find(|name| !COLUMNS.contains(&name.as_str())) {
        let known = COLUMNS.join(", ");
        return Err(format!("line {at}: '{other}' is not a column; there are {known}"));
    }
    if let Some(missing) = COLUMNS[..2].iter().find(|name| !head.iter().any(|of| of == *name)) {
        return Err(format!("line {at}: the column '{missing}' is missing"));
    }
    let mut machines: Vec<PricedMachine> = Vec::new();
    for (at, line) in lines {
        let machine = fields(line).and_then(|fields| machine(&head, &fields));
        let machine = machine.map_err(|why| format!("line {at}: {why}"))?;
        if machines.iter().any(|known| known.name == machine.name) {
            return Err(format!("line {at}: {} is there twice", machine.name));
        }
        machines.push(machine);
    }
    if machines.is_empty() { Err("the table has no machine".to_owned()) } else { Ok(machines) }
}

fn machine(head: &[String], fields: &[String]) -> Result<PricedMachine, String> {
    if fields.len() != head.len() {
        return Err(format!("{} fields for {} columns", fields.len(), head.len()));
    }
    let field = |name: &str| {
        let at = head.iter().position(|of| of == name)?;
        fields.get(at).map(String::as_str).filter(|text| !text.is_empty())
    };
    let number = |name: &str| {
        let read = |text: &str| {
            let number = quantity(text, true).and_then(positive);
            number.ok_or_else(|| format!("{name} '{text}' is not a number above 0"))
        };
        field(name).map(read).transpose()
    };
    let (iops, reads) = (number("iops")?, number("read_iops")?);
    let writes = number("write_iops")?;
    let rated = match (iops, reads, writes) {
        (None, None, None) => None,
        (Some(reads), None, None) => Some(RatedIops { reads, writes: None }),
        (None, Some(reads), Some(writes)) => Some(RatedIops { reads, writes: Some(writes) }),
        _ => return Err("give iops, or read_iops and write_iops".to_owned()),
    };
    let bytes_per_s = number("mb_per_s")?.map(|mb_per_s| mb_per_s * 1e6);
    if rated.is_none() && bytes_per_s.is_none() {
        return Err("nothing is rated: give iops, read_iops and write_iops, or mb_per_s".to_owned());
    }
    let price = field("price").ok_or("the price is missing")?;
    let (amount, unit) = price.split_once('/').unwrap_or((price, "h"));
    Ok(PricedMachine {
        name: field("name").ok_or("the name is missing")?.to_owned(),
        per_hour: hourly(amount, unit).map_err(|why| format!("price '{price}': {why}"))?,
        rated,
        bytes_per_s,
    })
}

/// Fields of a line; quoted fields may contain commas and doubled quotes.
fn fields(line: &str) -> Result<Vec<String>, String> {
    let (mut fields, mut quoted, mut chars) = (vec![String::new()], false, line.chars().peekable());
    while let Some(c) = chars.next() {
        let Some(last) = fields.last_mut() else { continue };
        match c {
            '"' if quoted && chars.next_if_eq(&'"').is_some() => last.push('"'),
            '"' if quoted => quoted = false,
            '"' if last.trim().is_empty() => {
                last.clear();
                quoted = true;
            }
            ',' if !quoted => fields.push(String::new()),
            _ => last.push(c),
        }
    }
    if quoted {
        return Err("a quote is not closed".to_owned());
    }
    Ok(fields.into_iter().map(|field| field.trim().to_owned()).collect())
}

// Costs on each machine, and the best machine for each need.

/// Costs of the best cell of each tool, and of the ratings of the machines.
pub(super) fn costs(
    parts: &[ComparisonPart<'_>],
    prices: &Prices,
    one_group: bool,
) -> Vec<MachineCost> {
    let mut found = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let Some(per_hour) = prices.per_hour.get(&at).copied() else { continue };
        if let Some(rated) = prices.rated.get(&at) {
            found.extend(rated_costs(&part.name, rated, per_hour));
        }
        for group in part.view.groups() {
            for best in bests(&part.view, &part.analysis.cells, group) {
                let cell = best.cell;
                let cost = MachineCost {
                    name: part.name.clone(),
                    group: if one_group { String::new() } else { group.to_owned() },
                    series: cell.series.clone(),
                    per_hour,
                    ..MachineCost::default()
                };
                let iops = part
                    .view
                    .median_of(cell.id, |run| run.metrics.get("iops").copied().unwrap_or(0.0));
                let wall_s = part.view.median_of(cell.id, |run| run.wall_s).unwrap_or(0.0);
                // If the metric is a rate, the duration of runs is a setting and gives no cost.
                let timed = Some(cell).filter(|_| !part.view.more_is_better());
                let (bytes, files) = timed.map_or((None, None), |cell| part.view.moved(cell));
                let cost = match iops.filter(|iops| *iops > 0.0) {
                    Some(iops) => of_iops(cost, per_hour, iops),
                    None => cost,
                };
                found.push(MachineCost {
                    per_gb: bytes.and_then(|bytes| per_amount(per_hour, wall_s, bytes, 1e9)),
                    per_million_files: files
                        .and_then(|files| per_amount(per_hour, wall_s, files, 1e6)),
                    ..cost
                });
            }
        }
    }
    for machine in &prices.others {
        let (name, per_hour) = (&machine.name, machine.per_hour);
        found.extend(machine.rated.iter().flat_map(|rated| rated_costs(name, rated, per_hour)));
        found.extend(machine.bytes_per_s.map(|bytes_per_s| MachineCost {
            name: name.clone(),
            basis: CostBasis::RatedThroughput,
            per_hour,
            per_gb: per_amount(per_hour, 1.0, bytes_per_s, 1e9),
            ..MachineCost::default()
        }));
    }
    found
}

/// Costs of a rating: one for all operations, or one each for reads and writes.
fn rated_costs(name: &str, rated: &RatedIops, per_hour: f64) -> Vec<MachineCost> {
    let each = match rated.writes {
        None => vec![(rated.reads, CostBasis::Rated)],
        Some(writes) => {
            vec![(rated.reads, CostBasis::RatedReads), (writes, CostBasis::RatedWrites)]
        }
    };
    let cost = |(iops, basis)| {
        of_iops(
            MachineCost { name: name.to_owned(), basis, ..MachineCost::default() },
            per_hour,
            iops,
        )
    };
    each.into_iter().map(cost).collect()
}

fn of_iops(cost: MachineCost, per_hour: f64, iops: f64) -> MachineCost {
    MachineCost {
        per_hour,
        iops: Some(iops),
        per_1m_iops: per_1m_iops(per_hour, iops),
        per_million_ios: per_million_ios(per_hour, iops),
        ..cost
    }
}

/// Fastest result, and cheapest one by each known unit.
pub(super) fn best(
    parts: &[ComparisonPart<'_>],
    costs: &[MachineCost],
    one_group: bool,
) -> Vec<BestResult> {
    let mut found = fastest(parts, one_group);
    type Price = fn(&MachineCost) -> Option<f64>;
    let ways: [(BuyerNeed, Price); 3] = [
        (BuyerNeed::PerMillionIops, |cost| cost.per_1m_iops),
        (BuyerNeed::PerGigabyte, |cost| cost.per_gb),
        (BuyerNeed::PerMillionFiles, |cost| cost.per_million_files),
    ];
    for (need, price) in ways {
        found.extend(cheapest(need, parts, costs, price));
    }
    found
}

/// Kinds of work to distinguish: groups, and the lines in a group if these are kinds of work.
fn kinds(parts: &[ComparisonPart<'_>], one_group: bool) -> Vec<(String, String)> {
    let kind = |part: &ComparisonPart<'_>, cell: &Cell| {
        let group = if one_group { String::new() } else { cell.group.clone() };
        let is_kind = are_kinds(part, &cell.group);
        (group, if is_kind { cell.series.clone() } else { String::new() })
    };
    let fitting = parts.iter().filter(|part| part.fits);
    distinct(fitting.flat_map(|part| part.view.settings().map(|cell| kind(part, cell))))
}

/// Fastest result for each kind of work, by its best cell.
fn fastest(parts: &[ComparisonPart<'_>], one_group: bool) -> Vec<BestResult> {
    let kinds = kinds(parts, one_group);
    let alone = kinds.len() == 1;
    let found = kinds.iter().filter_map(|(group, series)| {
        let mut candidates: Vec<(&ComparisonPart<'_>, f64, u32)> = Vec::new();
        for part in parts.iter().filter(|part| part.fits) {
            let own = part.view.groups().first().copied().filter(|_| one_group);
            let all = bests(&part.view, &part.analysis.cells, own.unwrap_or(group));
            let all = all.into_iter().filter(|of| series.is_empty() || of.cell.series == *series);
            let best =
                all.reduce(
                    |best, one| {
                        if part.view.is_better(one.value, best.value) { one } else { best }
                    },
                );
            candidates.extend(best.map(|best| (part, best.value, best.cell.id)));
        }
        candidates.sort_by(|a, b| match a.0.view.more_is_better() {
            true => b.1.total_cmp(&a.1),
            false => a.1.total_cmp(&b.1),
        });
        let [(first, value, cell), (next, other, other_cell), ..] = candidates.as_slice() else {
            return None;
        };
        let ratio = unpaired_ratio(
            &first.view.values(*cell),
            &next.view.values(*other_cell),
            first.view.more_is_better(),
            first.view.seed(*cell, 6),
        )?;
        let kind = if alone { Default::default() } else { (group.clone(), series.clone()) };
        let noise = first.noise().max(next.noise());
        Some(BestResult {
            need: BuyerNeed::Fastest,
            kind,
            basis: CostBasis::Measured,
            name: first.name.clone(),
            next: next.name.clone(),
            values: (*value, *other),
            series: String::new(),
            factor: ratio.ratio.mid,
            clear: ratio.claim == SpeedClaim::Faster && ratio.exceeds(noise),
        })
    });
    found.collect()
}

/// Cheapest result by its lowest price with any tool; ratings are not compared with measured values.
fn cheapest(
    need: BuyerNeed,
    parts: &[ComparisonPart<'_>],
    costs: &[MachineCost],
    price: fn(&MachineCost) -> Option<f64>,
) -> Vec<BestResult> {
    let has_kinds =
        |part: &ComparisonPart<'_>| part.view.groups().iter().any(|of| are_kinds(part, of));
    let by_series = parts.iter().any(has_kinds);
    let kind = |cost: &MachineCost| {
        let series = if by_series { cost.series.clone() } else { String::new() };
        (cost.basis, cost.group.clone(), series)
    };
    let kinds: BTreeSet<(CostBasis, String, String)> = costs.iter().map(kind).collect();
    let alone = kinds.iter().filter(|(basis, ..)| *basis == CostBasis::Measured).count() == 1;
    let found = kinds.into_iter().filter_map(|(basis, group, series)| {
        let mut lowest: Vec<(&str, f64, &MachineCost)> = Vec::new();
        for cost in costs.iter().filter(|of| kind(of) == (basis, group.clone(), series.clone())) {
            let Some(price) = price(cost) else { continue };
            match lowest.iter_mut().find(|(name, ..)| *name == cost.name) {
                Some(known) if price < known.1 => *known = (&cost.name, price, cost),
                Some(_) => {}
                None => lowest.push((&cost.name, price, cost)),
            }
        }
        lowest.sort_by(|a, b| a.1.total_cmp(&b.1));
        let [(first, least, cost), (next, other, _), ..] = lowest.as_slice() else { return None };
        let is_measured = basis == CostBasis::Measured;
        Some(BestResult {
            need,
            kind: if is_measured && !alone { (group, series) } else { Default::default() },
            basis,
            name: (*first).to_owned(),
            next: (*next).to_owned(),
            values: (*least, *other),
            series: if is_measured && !by_series { cost.series.clone() } else { String::new() },
            factor: other / least,
            clear: other / least > WORTH,
        })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_of_a_table() {
        let text = "# of a study\nname,price,read_iops,write_iops,mb_per_s\n\n\
                    \"i3.large, \"\"NVMe\"\"\",0.183/h,103125,35000,\ngp3,$73/month,,,125\n";
        let found = parse_machines(text).unwrap();
        let rated = Some(RatedIops { reads: 103_125.0, writes: Some(35_000.0) });
        let first = PricedMachine {
            name: "i3.large, \"NVMe\"".into(),
            per_hour: 0.183,
            rated,
            bytes_per_s: None,
        };
        assert_eq!(found[0], first);
        assert_eq!((found[1].per_hour, found[1].bytes_per_s), (0.1, Some(125e6)));
        let plain = parse_machines("name,price,iops\na,0.5,3k\n").unwrap();
        assert_eq!(plain[0].rated, Some(RatedIops { reads: 3000.0, writes: None }));
    }

    #[test]
    fn what_is_no_table() {
        for (text, said) in [
            ("", "the table is empty"),
            ("name,price,iops\n", "the table has no machine"),
            ("name,cost\n", "line 1: 'cost' is not a column"),
            ("name,iops\n", "line 1: the column 'price' is missing"),
            ("name,price,iops\na,1\n", "line 2: 2 fields for 3 columns"),
            ("name,price,iops\na,1,x\n", "line 2: iops 'x' is not a number above 0"),
            ("name,price,iops\na,1,\n", "line 2: nothing is rated"),
            ("name,price,read_iops\na,1,7\n", "line 2: give iops, or read_iops and write_iops"),
            ("name,price,iops\na,1/week,7\n", "line 2: price '1/week': 'week' is not a time"),
            ("name,price,iops\n,1,7\n", "line 2: the name is missing"),
            ("name,price,iops\na,1,7\na,2,8\n", "line 3: a is there twice"),
            ("name,price,iops\n\"a,1,7\n", "line 2: a quote is not closed"),
        ] {
            let why = parse_machines(text).unwrap_err();
            assert!(why.contains(said), "{text}: {why}");
        }
    }
}
