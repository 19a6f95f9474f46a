//! Tables in hyperfine's export formats (hyperfine(1), "Export"): Markdown, AsciiDoc, Emacs Org mode.

use super::Results;
use super::benchmark::{HyperfineBenchmark, benchmarks};
use std::fmt::Write as _;

/// Export formats of hyperfine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// Statistics and single times.
    Json,
    /// Statistics, a line per command.
    Csv,
    /// Markdown table.
    Markdown,
    /// AsciiDoc table.
    Asciidoc,
    /// Org mode table.
    Orgmode,
}

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// µs.
    Microseconds,
    /// ms.
    Milliseconds,
    /// s.
    Seconds,
}

impl TimeUnit {
    /// Unit by hyperfine's name.
    pub fn of_name(name: &str) -> Option<TimeUnit> {
        match name {
            "microsecond" => Some(TimeUnit::Microseconds),
            "millisecond" => Some(TimeUnit::Milliseconds),
            "second" => Some(TimeUnit::Seconds),
            _ => None,
        }
    }

    /// Symbol of the unit.
    pub fn sign(self) -> &'static str {
        match self {
            TimeUnit::Microseconds => "µs",
            TimeUnit::Milliseconds => "ms",
            TimeUnit::Seconds => "s",
        }
    }

    /// Converts seconds to this unit.
    pub fn of_seconds(self, seconds: f64) -> f64 {
        match self {
            TimeUnit::Microseconds => seconds * 1e6,
            TimeUnit::Milliseconds => seconds * 1e3,
            TimeUnit::Seconds => seconds,
        }
    }

    /// Number of decimals.
    fn digits(self) -> usize {
        if self == TimeUnit::Seconds { 3 } else { 1 }
    }
}

/// Options of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportOptions {
    /// Unit of times; `None` for milliseconds if the fastest takes less than a second, else seconds.
    pub time: Option<TimeUnit>,
    /// True to sort by time, fastest first; else in the order of description.
    pub is_sorted: bool,
    /// True to compare with the first command; else with the fastest.
    pub to_first: bool,
}

const HEADS: [&str; 5] = ["Command", "Mean", "Min", "Max", "Relative"];

/// Formats a table; `form` must be one of the table formats.
pub(super) fn table(results: &Results, form: ExportFormat, look: &ExportOptions) -> String {
    let mut found = benchmarks(results);
    let fastest = found.iter().min_by(|a, b| a.mean.total_cmp(&b.mean)).cloned();
    let reference = if look.to_first { found.first().cloned() } else { fastest.clone() };
    let time = look.time.unwrap_or(match &fastest {
        Some(one) if one.mean < 1.0 => TimeUnit::Milliseconds,
        _ => TimeUnit::Seconds,
    });
    if look.is_sorted {
        found.sort_by(|a, b| a.mean.total_cmp(&b.mean));
    }
    let head = HEADS.map(|head| match head {
        "Command" | "Relative" => head.to_owned(),
        _ => format!("{head} [{}]", time.sign()),
    });
    let rows = found.iter().map(|one| row(one, reference.as_ref(), time));
    let rows: Vec<[String; 5]> = rows.collect();
    match form {
        ExportFormat::Asciidoc => asciidoc(&head, &rows),
        ExportFormat::Orgmode => orgmode(&head, &rows),
        ExportFormat::Markdown | ExportFormat::Json | ExportFormat::Csv => markdown(&head, &rows),
    }
}

fn row(
    one: &HyperfineBenchmark,
    reference: Option<&HyperfineBenchmark>,
    time: TimeUnit,
) -> [String; 5] {
    let digits = time.digits();
    let number = |seconds: f64| format!("{:.digits$}", time.of_seconds(seconds));
    let spread = one.stddev.map_or(String::new(), |stddev| format!(" ± {}", number(stddev)));
    [
        one.command.replace('|', "\\|").replace('\n', " "),
        format!("{}{spread}", number(one.mean)),
        number(one.min),
        number(one.max),
        reference.map_or(String::new(), |reference| relative(one, reference)),
    ]
}

fn markdown(head: &[String; 5], rows: &[[String; 5]]) -> String {
    let mut out = format!("| {} |\n|:---|---:|---:|---:|---:|\n", head.join(" | "));
    for [command, numbers @ ..] in rows {
        let _ = writeln!(out, "| `{command}` | {} |", numbers.join(" | "));
    }
    out
}

fn asciidoc(head: &[String; 5], rows: &[[String; 5]]) -> String {
    let mut out = String::from("[cols=\"<,>,>,>,>\"]\n|===\n");
    for name in head {
        let _ = writeln!(out, "| {name}");
    }
    for [command, numbers @ ..] in rows {
        let _ = write!(out, "\n| `{command}`\n");
        for number in numbers {
            let _ = writeln!(out, "| {number}");
        }
    }
    out + "|===\n"
}

fn orgmode(head: &[String; 5], rows: &[[String; 5]]) -> String {
    let mut out = format!("| {} |\n|--+--+--+--+--|\n", head.join(" | "));
    for [command, numbers @ ..] in rows {
        let _ = writeln!(out, "| ={command}= | {} |", numbers.join(" | "));
    }
    out
}

/// Time relative to the reference, with its error by propagation of both deviations.
fn relative(one: &HyperfineBenchmark, reference: &HyperfineBenchmark) -> String {
    let ratio = one.mean / reference.mean;
    let share = |of: &HyperfineBenchmark| of.stddev.map(|stddev| stddev / of.mean);
    match share(one).zip(share(reference)) {
        Some((a, b)) if one != reference => {
            format!("{ratio:.2} ± {:.2}", ratio * a.hypot(b))
        }
        _ => format!("{ratio:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(form: ExportFormat, look: ExportOptions) -> String {
        table(&results(), form, &look)
    }

    #[test]
    fn forms() {
        let look = ExportOptions::default();
        assert_eq!(
            shown(ExportFormat::Markdown, look),
            "| Command | Mean [s] | Min [s] | Max [s] | Relative |\n\
             |:---|---:|---:|---:|---:|\n\
             | `a 1` | 2.500 ± 1.291 | 1.000 | 4.000 | 1.00 |\n\
             | `b, \"x\" \\| y` | 5.000 | 5.000 | 5.000 | 2.00 |\n"
        );
        assert_eq!(
            shown(ExportFormat::Asciidoc, look),
            "[cols=\"<,>,>,>,>\"]\n|===\n| Command\n| Mean [s]\n| Min [s]\n| Max [s]\n| Relative\n\
             \n| `a 1`\n| 2.500 ± 1.291\n| 1.000\n| 4.000\n| 1.00\n\
             \n| `b, \"x\" \\| y`\n| 5.000\n| 5.000\n| 5.000\n| 2.00\n|===\n"
        );
        assert_eq!(
            shown(ExportFormat::Orgmode, look),
            "| Command | Mean [s] | Min [s] | Max [s] | Relative |\n|--+--+--+--+--|\n\
             | =a 1= | 2.500 ± 1.291 | 1.000 | 4.000 | 1.00 |\n\
             | =b, \"x\" \\| y= | 5.000 | 5.000 | 5.000 | 2.00 |\n"
        );
    }

    #[test]
    fn looks() {
        let time = Some(TimeUnit::Milliseconds);
        let text =
            shown(ExportFormat::Markdown, ExportOptions { time, ..ExportOptions::default() });
        assert!(text.contains("Mean [ms]") && text.contains("| 2500.0 ± 1291.0 |"), "{text}");
        // The slower one is the reference; sorted by time, it comes last.
        let mut turned = results();
        turned.runs.iter_mut().filter(|run| run.cell == 0).for_each(|run| run.wall_s *= 10.0);
        let look = ExportOptions { time: None, is_sorted: true, to_first: true };
        let text = table(&turned, ExportFormat::Orgmode, &look);
        let rows: Vec<&str> = text.lines().skip(2).collect();
        assert!(rows[0].starts_with("| =b") && rows[0].ends_with("| 0.20 |"), "{text}");
        assert!(rows[1].starts_with("| =a 1=") && rows[1].ends_with("| 1.00 |"), "{text}");
        assert_eq!(TimeUnit::of_name("hour"), None);
    }
}
