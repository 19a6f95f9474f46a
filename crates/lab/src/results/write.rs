//! Exports results as hyperfine's JSON and CSV (hyperfine(1), "Export").

use super::Results;
use super::benchmark::{HyperfineBenchmark, benchmarks};
use super::markup::{self, ExportFormat, ExportOptions};
use crate::csv;
use serde::Serialize;
use std::collections::BTreeSet;

/// Exports results in a format of hyperfine.
///
/// # Errors
/// As [`hyperfine_json`].
pub fn hyperfine(
    results: &Results,
    form: ExportFormat,
    look: &ExportOptions,
) -> Result<String, String> {
    match form {
        ExportFormat::Json => hyperfine_json(results),
        ExportFormat::Csv => Ok(hyperfine_csv(results)),
        ExportFormat::Markdown | ExportFormat::Asciidoc | ExportFormat::Orgmode => {
            Ok(markup::table(results, form, look))
        }
    }
}

/// Exports hyperfine's JSON.
///
/// # Errors
/// None in practice: all keys are text.
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
    let names = parameters.iter().map(|name| csv::field(&format!("parameter_{name}")));
    let head = ["command", "mean", "stddev", "median", "user", "system", "min", "max"];
    let mut lines = vec![head.map(str::to_owned).into_iter().chain(names).collect::<Vec<_>>()];
    for one in &found {
        let stddev = one.stddev.map_or(String::new(), |number| number.to_string());
        let [mean, median, user, system, min, max] =
            [one.mean, one.median, one.user, one.system, one.min, one.max].map(|of| of.to_string());
        let mut line = vec![csv::field(&one.command), mean, stddev, median, user, system, min, max];
        let value = |name: &&String| one.parameters.get(*name).map_or("", String::as_str);
        line.extend(parameters.iter().map(|name| csv::field(value(name))));
        lines.push(line);
    }
    lines.into_iter().map(|line| line.join(",") + "\n").collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::results::{Cell, ResultsHeader, Run};
    use std::collections::BTreeMap;

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
}
