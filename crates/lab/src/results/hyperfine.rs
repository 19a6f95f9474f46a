//! Exports results in hyperfine's formats (hyperfine(1), "Export"): JSON, CSV, and tables in Markdown, AsciiDoc and Emacs
//! Org mode.

use crate::analysis::statistics::median;
use crate::escape;
use crate::results::{Cell, Results, Run};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Exports results in a format of hyperfine.
pub fn export(
    results: &Results,
    form: ExportFormat,
    look: &ExportOptions,
) -> Result<String, String> {
    match form {
        ExportFormat::Json => hyperfine_json(results),
        ExportFormat::Csv => Ok(hyperfine_csv(results)),
        ExportFormat::Markdown | ExportFormat::Asciidoc | ExportFormat::Orgmode => {
            Ok(table(results, form, look))
        }
    }
}

/// Exports hyperfine's JSON.
pub fn hyperfine_json(results: &Results) -> Result<String, String> {
    #[derive(Serialize)]
    struct HyperfineDocument {
        results: Vec<HyperfineBenchmark>,
    }
    let document = HyperfineDocument { results: benchmarks(results) };
    let text = serde_json::to_string_pretty(&document).map_err(|error| error.to_string())?;
    Ok(text + "\n")
}

/// Exports hyperfine's CSV: a line per command.
pub fn hyperfine_csv(results: &Results) -> String {
    let found = benchmarks(results);
    let parameters: BTreeSet<&String> =
        found.iter().flat_map(|one| one.parameters.keys()).collect();
    let names = parameters.iter().map(|name| escape::csv_field(&format!("parameter_{name}")));
    let head = ["command", "mean", "stddev", "median", "user", "system", "min", "max"];
    let mut lines = vec![head.map(str::to_owned).into_iter().chain(names).collect::<Vec<_>>()];
    for one in &found {
        let stddev = one.stddev.map_or(String::new(), |number| number.to_string());
        let [mean, median, user, system, min, max] =
            [one.mean, one.median, one.user, one.system, one.min, one.max].map(|of| of.to_string());
        let mut line =
            vec![escape::csv_field(&one.command), mean, stddev, median, user, system, min, max];
        let value = |name: &&String| one.parameters.get(*name).map_or("", String::as_str);
        line.extend(parameters.iter().map(|name| escape::csv_field(value(name))));
        lines.push(line);
    }
    lines.into_iter().map(|line| line.join(",") + "\n").collect()
}

// Cells in hyperfine's form: one benchmark per command, with its mean.

/// A command as exported by hyperfine, in seconds and bytes. Field names are hyperfine's.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct HyperfineBenchmark {
    pub(super) command: String,
    pub(super) mean: f64,
    /// Null for a single run.
    pub(super) stddev: Option<f64>,
    pub(super) median: f64,
    pub(super) user: f64,
    pub(super) system: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) times: Vec<f64>,
    pub(super) memory_usage_byte: Vec<u64>,
    pub(super) exit_codes: Vec<Option<i32>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) parameters: BTreeMap<String, String>,
}

/// Benchmarks of all cells that have successful runs, without warm-ups and A/A controls.
pub(super) fn benchmarks(results: &Results) -> Vec<HyperfineBenchmark> {
    let cells = results.header.cells.iter().filter(|cell| cell.control_of.is_none());
    let of = |cell: &Cell| {
        let id = cell.id;
        let runs = results.runs.iter().filter(|run| run.cell == id && run.ok && !run.warmup);
        let found = benchmark(cell, &runs.collect::<Vec<_>>())?;
        Some(HyperfineBenchmark { command: name(results, cell), ..found })
    };
    cells.filter_map(of).collect()
}

/// hyperfine's name of a command: the given name, with parameters inserted. A series is such a name only if
/// commands were given on the command line.
fn name(results: &Results, cell: &Cell) -> String {
    if !results.header.text.is_empty() || cell.series.is_empty() {
        return cell.command.clone();
    }
    cell.parameters.iter().fold(cell.series.clone(), |name, (parameter, value)| {
        name.replace(&format!("{{{parameter}}}"), value)
    })
}

fn benchmark(cell: &Cell, runs: &[&Run]) -> Option<HyperfineBenchmark> {
    let times: Vec<f64> = runs.iter().map(|run| run.wall_s).collect();
    let median = median(&times)?;
    let count = times.len();
    let mean_of =
        |take: fn(&Run) -> f64| runs.iter().map(|run| take(run)).sum::<f64>() / count as f64;
    let mean = mean_of(|run| run.wall_s);
    let squares: f64 = times.iter().map(|time| (time - mean).powi(2)).sum();
    Some(HyperfineBenchmark {
        command: String::new(),
        mean,
        stddev: (count > 1).then(|| (squares / (count - 1) as f64).sqrt()),
        median,
        user: mean_of(|run| run.user_s),
        system: mean_of(|run| run.sys_s),
        min: times.iter().copied().fold(f64::INFINITY, f64::min),
        max: times.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        times,
        memory_usage_byte: runs.iter().map(|run| run.rss_bytes_max).collect(),
        exit_codes: runs.iter().map(|run| run.exit_code).collect(),
        parameters: cell.parameters.clone(),
    })
}

// Tables in hyperfine's export formats (hyperfine(1), "Export"): Markdown, AsciiDoc, Emacs Org mode.

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
    use crate::results::ResultsHeader;

    pub(in crate::results) fn results() -> Results {
        let parameters = |jobs: &str| BTreeMap::from([("jobs".to_owned(), jobs.to_owned())]);
        let cell = |id, command: &str, jobs: &str| Cell {
            id,
            command: command.into(),
            parameters: parameters(jobs),
            ..Cell::default()
        };
        let control = Cell { control_of: Some(0), ..cell(2, "a 1", "1") };
        let cells = vec![cell(0, "a 1", "1"), cell(1, "b, \"x\" | y", "2"), control];
        let run = |cell, block, wall_s, ok| Run {
            cell,
            block,
            wall_s,
            ok,
            user_s: 0.25,
            exit_code: Some(0),
            rss_bytes_max: 1000,
            metrics: BTreeMap::from([("files".to_owned(), 3.0)]),
            ..Run::default()
        };
        Results {
            header: ResultsHeader { cells, ..ResultsHeader::default() },
            runs: vec![
                Run { warmup: true, ..run(0, 0, 9.0, true) },
                run(0, 1, 1.0, true),
                run(0, 2, 3.0, true),
                run(0, 3, 2.0, true),
                run(0, 4, 4.0, true),
                Run { problem: Some("lost, one".into()), ..run(1, 1, 0.1, false) },
                run(1, 2, 5.0, true),
                run(2, 2, 7.0, true),
            ],
            ..Results::default()
        }
    }

    #[test]
    fn json_is_hyperfines() {
        let text = hyperfine_json(&results()).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let found = value["results"].as_array().unwrap();
        assert_eq!(found.len(), 2);
        let keys: Vec<&str> = found[0].as_object().unwrap().keys().map(String::as_str).collect();
        let mut wanted = vec![
            "command",
            "mean",
            "stddev",
            "median",
            "user",
            "system",
            "min",
            "max",
            "times",
            "memory_usage_byte",
            "exit_codes",
            "parameters",
        ];
        wanted.sort_unstable();
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, wanted);
        let one = &found[0];
        assert_eq!((one["mean"].as_f64(), one["median"].as_f64()), (Some(2.5), Some(2.5)));
        assert!((one["stddev"].as_f64().unwrap() - 1.290_994).abs() < 1e-6);
        assert_eq!(one["times"], serde_json::json!([1.0, 3.0, 2.0, 4.0]));
        assert_eq!(one["parameters"]["jobs"], "1");
        // A single run has no deviation; a failed run does not count.
        assert!(found[1]["stddev"].is_null());
        assert_eq!(found[1]["times"], serde_json::json!([5.0]));
    }

    #[test]
    fn names_are_those_that_were_given() {
        let mut results = results();
        results.header.cells[0].series = "copy {jobs}".into();
        let text = hyperfine_json(&results).unwrap();
        assert!(text.contains("\"command\": \"copy 1\""), "{text}");
        results.header.text = "[campaign]".into();
        let text = hyperfine_json(&results).unwrap();
        assert!(text.contains("\"command\": \"a 1\""), "{text}");
    }

    #[test]
    fn tables() {
        assert_eq!(
            hyperfine_csv(&results()),
            "command,mean,stddev,median,user,system,min,max,parameter_jobs\n\
             a 1,2.5,1.2909944487358056,2.5,0.25,0,1,4,1\n\
             \"b, \"\"x\"\" | y\",5,,5,0.25,0,5,5,2\n"
        );
    }

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
