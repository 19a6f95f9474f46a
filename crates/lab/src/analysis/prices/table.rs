//! Reads a CSV table (RFC 4180) of machines with prices and ratings, for machines that were not measured.

use super::{RatedIops, hourly, positive};
use crate::analysis::quantity::quantity;

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
