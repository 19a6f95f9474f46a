//! Imports results of other programs: the JSON of hyperfine and of fio. Missing facts (order, load, checks)
//! stay empty.

use crate::campaign::run::extract::fio_jobs;
use crate::results::{CampaignEnd, Cell, Results, ResultsHeader, Run, SCHEMA};
use hakobu_core::unit::Machine;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Parses the JSON of hyperfine (`--export-json`) or fio (`--output-format=json`). Several files of one kind
/// form one campaign, in which settings may be repeated. Each file comes with its name for errors.
///
/// # Errors
/// A message with the file name: unknown format, missing fields, or mixed kinds.
pub fn import(name: &str, start: &str, files: &[(String, String)]) -> Result<Results, String> {
    let mut results = Results {
        header: ResultsHeader {
            schema: SCHEMA,
            name: name.to_owned(),
            title: name.to_owned(),
            start: start.to_owned(),
            scale: 1.0,
            machine: Machine { name: "imported".into(), ..Machine::default() },
            ..ResultsHeader::default()
        },
        ..Results::default()
    };
    for (file, text) in files {
        let value: Value =
            serde_json::from_str(text).map_err(|why| format!("{file} is not JSON: {why}"))?;
        let program = if value.get("results").is_some() {
            hyperfine(file, value, &mut results)?;
            "hyperfine"
        } else if value.get("jobs").is_some() {
            fio(file, &value, &mut results)?;
            "fio"
        } else {
            return Err(format!("{file} is neither of hyperfine nor of fio"));
        };
        let known = &mut results.header.program;
        if !known.is_empty() && known != program {
            return Err(format!("{file} is of {program}, and what came before it of {known}"));
        }
        program.clone_into(known);
    }
    if results.runs.is_empty() {
        return Err("the imported files contain no runs".into());
    }
    let took_s = results.runs.iter().map(|run| run.wall_s).sum();
    results.end = Some(CampaignEnd { reason: "done".into(), took_s, overhead: 0.0 });
    Ok(results)
}

/// Cell equal to `wanted` except for its id; added if there is none.
fn cell(results: &mut Results, mut wanted: Cell) -> u32 {
    let cells = &mut results.header.cells;
    for known in cells.iter() {
        wanted.id = known.id;
        if *known == wanted {
            return known.id;
        }
    }
    wanted.id = u32::try_from(cells.len()).unwrap_or(u32::MAX);
    let id = wanted.id;
    cells.push(wanted);
    id
}

/// Adds a run after those of its cell.
fn push(results: &mut Results, run: Run) {
    let before = results.runs.iter().filter(|known| known.cell == run.cell).count();
    let block = u32::try_from(before).unwrap_or(u32::MAX);
    results.runs.push(Run { block, ..run });
}

fn hyperfine(file: &str, value: Value, results: &mut Results) -> Result<(), String> {
    #[derive(Deserialize)]
    struct ImportedDocument {
        results: Vec<ImportedBenchmark>,
    }
    #[derive(Deserialize)]
    struct ImportedBenchmark {
        command: String,
        #[serde(default)]
        user: f64,
        #[serde(default)]
        system: f64,
        times: Option<Vec<f64>>,
        #[serde(default)]
        memory_usage_byte: Vec<u64>,
        #[serde(default)]
        exit_codes: Vec<Option<i32>>,
        #[serde(default)]
        parameters: BTreeMap<String, String>,
    }
    let document: ImportedDocument = serde_json::from_value(value)
        .map_err(|why| format!("{file} is not of hyperfine: {why}"))?;
    results.header.metric = "wall_s".into();
    for one in document.results {
        let Some(times) = one.times.filter(|times| !times.is_empty()) else {
            return Err(format!("{file}: '{}' has no times", one.command));
        };
        let swept = one.parameters.iter().find_map(|(name, value)| {
            Some((name.clone(), value.parse::<f64>().ok().filter(|x| x.is_finite())?))
        });
        let mut series = one.command.clone();
        if let Some((name, _)) = &swept {
            // The same command over a parameter is one line of a chart.
            let value = one.parameters.get(name).map_or("", String::as_str);
            series = hole(&series, value, name);
            results.header.x_name.get_or_insert_with(|| name.clone());
        }
        let id = cell(
            results,
            Cell {
                group: "commands".into(),
                series,
                x: swept.map(|(_, x)| x),
                parameters: one.parameters,
                command: one.command,
                ..Cell::default()
            },
        );
        for (at, wall_s) in times.into_iter().enumerate() {
            let exit_code = one.exit_codes.get(at).copied().unwrap_or(Some(0));
            let problem = match exit_code {
                Some(0) => None,
                Some(code) => Some(format!("ended with exit code {code}")),
                None => Some("was killed by a signal".to_owned()),
            };
            push(
                results,
                Run {
                    cell: id,
                    ok: problem.is_none(),
                    problem,
                    exit_code,
                    wall_s,
                    // hyperfine exports only the means of these.
                    user_s: one.user,
                    sys_s: one.system,
                    rss_bytes_max: one.memory_usage_byte.get(at).copied().unwrap_or(0),
                    ..Run::default()
                },
            );
        }
    }
    Ok(())
}

/// Replaces a value in a command by `{name}`, if it is a separate word.
fn hole(command: &str, value: &str, name: &str) -> String {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '.' || c == '_');
    let mut out = String::new();
    let mut rest = command;
    while let Some(at) = rest.find(value).filter(|_| !value.is_empty()) {
        let (before, after) = (&rest[..at], &rest[at + value.len()..]);
        out.push_str(before);
        if is_part(out.chars().last()) || is_part(after.chars().next()) {
            out.push_str(value);
        } else {
            out.push_str(&format!("{{{name}}}"));
        }
        rest = after;
    }
    out + rest
}

fn fio(file: &str, value: &Value, results: &mut Results) -> Result<(), String> {
    results.header.metric = "iops".into();
    results.header.more_is_better = true;
    let mut options: BTreeMap<String, String> = BTreeMap::new();
    let add = |options: &mut BTreeMap<String, String>, from: Option<&Value>| {
        for (name, value) in from.and_then(Value::as_object).into_iter().flatten() {
            // Paths are private.
            if !["filename", "directory"].contains(&name.as_str()) {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                options.insert(name.clone(), text);
            }
        }
    };
    add(&mut options, value.get("global options"));
    let jobs = value.get("jobs").and_then(Value::as_array);
    let jobs = jobs.filter(|jobs| !jobs.is_empty()).ok_or(format!("{file} has no jobs of fio"))?;
    for job in jobs {
        let name = job.get("jobname").and_then(Value::as_str).unwrap_or("job");
        let mut parameters = options.clone();
        add(&mut parameters, job.get("job options"));
        let x = parameters.get("numjobs").and_then(|text| text.parse().ok());
        if x.is_some() {
            results.header.x_name = Some("numjobs".into());
        }
        let way = parameters.get("rw").or(parameters.get("readwrite")).cloned();
        let command = parameters.iter().filter(|(name, _)| *name != "name");
        let command = command.map(|(name, value)| format!(" --{name}={value}")).collect::<String>();
        let id = cell(
            results,
            Cell {
                group: parameters
                    .get("bs")
                    .map_or_else(|| "fio".to_owned(), |bs| format!("bs={bs}")),
                series: way.unwrap_or_else(|| name.to_owned()),
                x,
                command: format!("fio --name={name}{command}"),
                parameters,
                ..Cell::default()
            },
        );
        let (metrics, problem) = match fio_jobs(std::slice::from_ref(job)) {
            Ok(metrics) => (metrics, None),
            Err(why) => (BTreeMap::new(), Some(why.into())),
        };
        let number = |name: &str| job.get(name).and_then(Value::as_f64).unwrap_or(0.0);
        let wall_s = number("job_runtime") / 1e3;
        push(
            results,
            Run {
                cell: id,
                ok: problem.is_none(),
                problem,
                exit_code: Some(0),
                wall_s,
                user_s: number("usr_cpu") / 100.0 * wall_s,
                sys_s: number("sys_cpu") / 100.0 * wall_s,
                metrics,
                ..Run::default()
            },
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::hyperfine::hyperfine_json;

    fn read(files: &[(&str, &str)]) -> Result<Results, String> {
        let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        import("old", "2026-01-01T00:00:00Z", &files.iter().map(own).collect::<Vec<_>>())
    }

    const HYPERFINE: &str = r#"{"results":[
        {"command":"tar -j4 a4","mean":1.5,"stddev":0.1,"median":1.5,"user":0.5,"system":0.25,
         "min":1.0,"max":2.0,"times":[1.0,2.0],"exit_codes":[0,0],"parameters":{"jobs":"4"}},
        {"command":"tar -j 8","mean":1.0,"median":1.0,"user":0.5,"system":0.25,"min":1.0,"max":1.0,
         "times":[1.0,1.0],"memory_usage_byte":[7,8],"exit_codes":[0,2],"parameters":{"jobs":"8"}}]}"#;

    #[test]
    fn hyperfine_comes_and_goes() {
        let results = read(&[("a.json", HYPERFINE)]).unwrap();
        let header = &results.header;
        assert_eq!((header.program.as_str(), header.metric.as_str()), ("hyperfine", "wall_s"));
        assert_eq!(header.x_name.as_deref(), Some("jobs"));
        let cells: Vec<_> = header.cells.iter().map(|cell| (cell.id, cell.x)).collect();
        assert_eq!(cells, [(0, Some(4.0)), (1, Some(8.0))]);
        assert_eq!(header.cells[1].series, "tar -j {jobs}");
        let runs: Vec<_> = results.runs.iter().map(|run| (run.block, run.wall_s, run.ok)).collect();
        assert_eq!(runs, [(0, 1.0, true), (1, 2.0, true), (0, 1.0, true), (1, 1.0, false)]);
        assert_eq!((results.runs[3].rss_bytes_max, results.runs[0].user_s), (8, 0.5));
        let again: Value = serde_json::from_str(&hyperfine_json(&results).unwrap()).unwrap();
        assert_eq!(again["results"][0]["times"], serde_json::json!([1.0, 2.0]));
        assert_eq!(again["results"][0]["command"], "tar -j4 a4");
    }

    #[test]
    fn fio_over_jobs() {
        let file = |jobs: u32, iops: f64| {
            format!(
                r#"{{"fio version":"fio-3.36","global options":{{"bs":"4k","directory":"/home/x"}},
                "jobs":[{{"jobname":"j","error":0,"job options":{{"rw":"randread","numjobs":"{jobs}"}},
                "job_runtime":2000,"usr_cpu":10.0,"sys_cpu":20.0,
                "read":{{"iops":{iops},"bw_bytes":4096,"total_ios":1}},"write":{{"iops":0}}}}]}}"#
            )
        };
        let (a, b, c) = (file(1, 10.0), file(2, 20.0), file(1, 12.0));
        let results = read(&[("a", &a), ("b", &b), ("c", &c)]).unwrap();
        let header = &results.header;
        assert!(header.more_is_better && header.metric == "iops");
        assert_eq!((header.cells.len(), header.x_name.as_deref()), (2, Some("numjobs")));
        assert_eq!((header.cells[0].series.as_str(), header.cells[1].x), ("randread", Some(2.0)));
        assert!(!header.cells[0].command.contains("/home"), "{}", header.cells[0].command);
        let runs: Vec<_> = results
            .runs
            .iter()
            .map(|run| (run.cell, run.block, run.metrics["iops"], run.wall_s, run.sys_s))
            .collect();
        assert_eq!(runs[0], (0, 0, 10.0, 2.0, 0.4));
        assert_eq!(runs[2], (0, 1, 12.0, 2.0, 0.4));
    }

    #[test]
    fn other_files_are_refused() {
        let fio = r#"{"jobs":[{"jobname":"j","read":{"iops":1}}]}"#;
        for (files, said) in [
            (vec![("a", "x")], "a is not JSON"),
            (vec![("a", "{}")], "a is neither of hyperfine nor of fio"),
            (vec![("a", r#"{"results":[{}]}"#)], "a is not of hyperfine"),
            (vec![("a", r#"{"results":[{"command":"c"}]}"#)], "a: 'c' has no times"),
            (vec![("a", r#"{"jobs":[]}"#)], "a has no jobs of fio"),
            (vec![("a", r#"{"results":[]}"#)], "contain no runs"),
            (
                vec![("a", HYPERFINE), ("b", fio)],
                "b is of fio, and what came before it of hyperfine",
            ),
        ] {
            let why = read(&files).unwrap_err();
            assert!(why.contains(said), "{why}");
        }
    }
}
