//! Results for other programs: hyperfine's JSON, CSV and Markdown (hyperfine(1), "Export").

use super::{Cell, Results, Run};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// A command as hyperfine exports it; seconds and bytes. The names are hyperfine's.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Benchmark {
    command: String,
    mean: f64,
    /// Null with one run.
    stddev: Option<f64>,
    median: f64,
    user: f64,
    system: f64,
    min: f64,
    max: f64,
    times: Vec<f64>,
    memory_usage_byte: Vec<u64>,
    exit_codes: Vec<Option<i32>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<String, String>,
}

/// The runs of each cell, as hyperfine would have them: without warm-ups, A/A controls, and those
/// that failed. Cells without a run are left out.
fn benchmarks(results: &Results) -> Vec<Benchmark> {
    let cells = results.header.cells.iter().filter(|cell| cell.control_of.is_none());
    let of = |cell: &Cell| {
        let id = cell.id;
        let runs = results.runs.iter().filter(|run| run.cell == id && run.ok && !run.warmup);
        let found = benchmark(cell, &runs.collect::<Vec<_>>())?;
        Some(Benchmark { command: name(results, cell), ..found })
    };
    cells.filter_map(of).collect()
}

/// What hyperfine calls a command: its name where one was given, with parameters in it. Only where
/// commands were given on the command line a series is one of these.
fn name(results: &Results, cell: &Cell) -> String {
    if !results.header.text.is_empty() || cell.series.is_empty() {
        return cell.command.clone();
    }
    cell.parameters.iter().fold(cell.series.clone(), |name, (parameter, value)| {
        name.replace(&format!("{{{parameter}}}"), value)
    })
}

fn benchmark(cell: &Cell, runs: &[&Run]) -> Option<Benchmark> {
    let times: Vec<f64> = runs.iter().map(|run| run.wall_s).collect();
    let mut sorted = times.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let (min, max) = (*sorted.first()?, *sorted.last()?);
    let count = times.len();
    let mean_of =
        |take: fn(&Run) -> f64| runs.iter().map(|run| take(run)).sum::<f64>() / count as f64;
    let mean = mean_of(|run| run.wall_s);
    let squares: f64 = times.iter().map(|time| (time - mean).powi(2)).sum();
    let middle = count / 2;
    let median = match count % 2 {
        0 => sorted[middle - 1].midpoint(sorted[middle]),
        _ => sorted[middle],
    };
    Some(Benchmark {
        command: String::new(),
        mean,
        stddev: (count > 1).then(|| (squares / (count - 1) as f64).sqrt()),
        median,
        user: mean_of(|run| run.user_s),
        system: mean_of(|run| run.sys_s),
        min,
        max,
        times,
        memory_usage_byte: runs.iter().map(|run| run.rss_bytes_max).collect(),
        exit_codes: runs.iter().map(|run| run.exit_code).collect(),
        parameters: cell.parameters.clone(),
    })
}

/// hyperfine's JSON.
///
/// # Errors
/// None is known: no key here is anything but text.
pub fn hyperfine_json(results: &Results) -> Result<String, String> {
    #[derive(Serialize)]
    struct Document {
        results: Vec<Benchmark>,
    }
    let document = Document { results: benchmarks(results) };
    let text = serde_json::to_string_pretty(&document).map_err(|error| error.to_string())?;
    Ok(text + "\n")
}

/// hyperfine's CSV: a line for each command.
pub fn hyperfine_csv(results: &Results) -> String {
    let found = benchmarks(results);
    let parameters: BTreeSet<&String> =
        found.iter().flat_map(|one| one.parameters.keys()).collect();
    let mut out = String::from("command,mean,stddev,median,user,system,min,max");
    for name in &parameters {
        let _ = write!(out, ",{}", cell(&format!("parameter_{name}")));
    }
    out.push('\n');
    for one in &found {
        let stddev = one.stddev.map_or(String::new(), |number| number.to_string());
        let _ = write!(
            out,
            "{},{},{stddev},{},{},{},{},{}",
            cell(&one.command),
            one.mean,
            one.median,
            one.user,
            one.system,
            one.min,
            one.max
        );
        for name in &parameters {
            let value = one.parameters.get(*name).map_or("", String::as_str);
            let _ = write!(out, ",{}", cell(value));
        }
        out.push('\n');
    }
    out
}

/// hyperfine's table in Markdown: relative to the fastest.
pub fn hyperfine_markdown(results: &Results) -> String {
    let found = benchmarks(results);
    let fastest = found.iter().min_by(|a, b| a.mean.total_cmp(&b.mean));
    let (unit, scale, digits) = match fastest {
        Some(one) if one.mean < 1.0 => ("ms", 1e3, 1),
        _ => ("s", 1.0, 3),
    };
    let mut out = format!(
        "| Command | Mean [{unit}] | Min [{unit}] | Max [{unit}] | Relative |\n\
         |:---|---:|---:|---:|---:|\n"
    );
    for one in &found {
        let number = |seconds: f64| format!("{:.digits$}", seconds * scale);
        let spread = one.stddev.map_or(String::new(), |stddev| format!(" ± {}", number(stddev)));
        let relative = fastest.map_or(String::new(), |best| relative(one, best));
        let command = one.command.replace('|', "\\|").replace('\n', " ");
        let _ = writeln!(
            out,
            "| `{command}` | {}{spread} | {} | {} | {relative} |",
            number(one.mean),
            number(one.min),
            number(one.max)
        );
    }
    out
}

/// How many times as long it takes as the best, with the error that follows from both deviations
/// (Gauss).
fn relative(one: &Benchmark, best: &Benchmark) -> String {
    let ratio = one.mean / best.mean;
    let share = |of: &Benchmark| of.stddev.map(|stddev| stddev / of.mean);
    match share(one).zip(share(best)) {
        Some((a, b)) if !std::ptr::eq(one, best) => {
            format!("{ratio:.2} ± {:.2}", ratio * a.hypot(b))
        }
        _ => format!("{ratio:.2}"),
    }
}

/// A field of CSV (RFC 4180).
fn cell(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Header;

    fn results() -> Results {
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
            header: Header { cells, ..Header::default() },
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
        // One run has no deviation; the one that failed does not count.
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
        assert_eq!(
            hyperfine_markdown(&results()),
            "| Command | Mean [s] | Min [s] | Max [s] | Relative |\n\
             |:---|---:|---:|---:|---:|\n\
             | `a 1` | 2.500 ± 1.291 | 1.000 | 4.000 | 1.00 |\n\
             | `b, \"x\" \\| y` | 5.000 | 5.000 | 5.000 | 2.00 |\n"
        );
    }
}
