//! Reads a results folder. An incomplete last line is ignored; other malformed lines are errors with file and
//! line.

use crate::results::{LoadCurves, Results, ResultsHeader, ResultsLine, SCHEMA};
use hakobu_core::error::{PathError, quoted};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// File of runs.
pub const RUNS_FILE: &str = "results.jsonl";
/// File of load curves.
pub const CURVES_FILE: &str = "samples.jsonl";

/// Why results cannot be read.
#[derive(Debug)]
pub enum ReadError {
    /// A call failed.
    Path(PathError),
    /// The folder has no file of runs.
    NoResults(PathBuf),
    /// The file of runs is empty.
    Empty(PathBuf),
    /// A line is malformed.
    Line { file: PathBuf, number: usize, cause: LineError },
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Path(error) => error.fmt(out),
            ReadError::NoResults(folder) => {
                let folder = quoted(folder);
                write!(out, "{folder} holds no results: there is no {RUNS_FILE} in it")
            }
            ReadError::Empty(file) => write!(out, "{} is empty", quoted(file)),
            ReadError::Line { file, number, cause } => {
                write!(out, "{}, line {number}: {cause}", quoted(file))
            }
        }
    }
}

error_type!(ReadError: Path(PathError); Line);

/// What is wrong with a line.
#[derive(Debug)]
pub enum LineError {
    /// It is not JSON of its kind.
    Json(serde_json::Error),
    /// The first one is not a header.
    NotHeader { cause: serde_json::Error },
    /// A newer program wrote this schema.
    Newer(u64),
    /// It does not fit the lines before it: the reason.
    Misplaced(String),
}

impl fmt::Display for LineError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineError::Json(why) => out.write_str(&parser_message(why)),
            LineError::NotHeader { cause } => {
                let why = parser_message(cause);
                write!(out, "this is not the header of a campaign's results: {why}")
            }
            LineError::Newer(schema) => write!(
                out,
                "these results are of schema {schema}, and this program knows schemas up to \
                 {SCHEMA}: use the version of hakobu that made them, or a newer one"
            ),
            LineError::Misplaced(why) => out.write_str(why),
        }
    }
}

error_type!(LineError: Json(serde_json::Error); NotHeader);

fn misplaced(why: impl Into<String>) -> LineError {
    LineError::Misplaced(why.into())
}

/// Reads the results in `path`: a folder, or its file of runs.
///
/// # Errors
/// Unreadable, not a results file, written by a newer program, or a reference to an unknown cell.
pub fn read(path: &Path) -> Result<Results, ReadError> {
    read_counted(path, &|_| {})
}

/// Total bytes of the files that [`read`] reads; missing files count 0.
pub fn bytes_of(path: &Path) -> u64 {
    let files = [RUNS_FILE, CURVES_FILE].map(|file| folder_of(path).join(file).metadata());
    files.iter().flatten().map(|meta| meta.len()).sum()
}

fn folder_of(path: &Path) -> &Path {
    if path.is_file() { path.parent().unwrap_or(path) } else { path }
}

/// Like [`read`], and passes the bytes of each parsed line to `counted`.
pub fn read_counted(path: &Path, counted: &dyn Fn(u64)) -> Result<Results, ReadError> {
    let folder = folder_of(path);
    let runs = folder.join(RUNS_FILE);
    let text = std::fs::read(&runs).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound if folder.is_dir() => ReadError::NoResults(folder.to_owned()),
        _ => PathError::of("read", &runs)(error).into(),
    })?;
    let curves = folder.join(CURVES_FILE);
    let samples = match std::fs::read(&curves) {
        Ok(samples) => samples,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(PathError::of("read", &curves)(error).into()),
    };
    parse((&runs, &text), (&curves, &samples), counted)
}

/// Parses the text of both files, given with their names for errors. Passes the bytes of each parsed line to
/// `counted`.
pub fn parse(
    runs: (&Path, &[u8]),
    curves: (&Path, &[u8]),
    counted: &dyn Fn(u64),
) -> Result<Results, ReadError> {
    let mut results = Results::default();
    let mut has_header = false;
    for (number, line) in lines(runs.1) {
        counted(line.bytes);
        let wrong = |cause| ReadError::Line { file: runs.0.to_owned(), number, cause };
        if !has_header {
            results.header = header(line.text).map_err(wrong)?;
            has_header = true;
            continue;
        }
        match parse_line::<ResultsLine>(&line, b"{\"line\":").map_err(wrong)? {
            None | Some(ResultsLine::Resumed { .. }) => {}
            Some(ResultsLine::Header(_)) => return Err(wrong(misplaced("a second header"))),
            Some(ResultsLine::Run(run)) => {
                check_cell(&results.header, run.cell).map_err(wrong)?;
                results.runs.push(*run);
                // The campaign was resumed after an end.
                results.end = None;
            }
            Some(ResultsLine::Experiment(experiment)) => {
                check_cell(&results.header, experiment.cell).map_err(wrong)?;
                results.experiments.push(experiment);
            }
            Some(ResultsLine::End(end)) => results.end = Some(end),
        }
    }
    if !has_header {
        return Err(ReadError::Empty(runs.0.to_owned()));
    }
    for (number, line) in lines(curves.1) {
        counted(line.bytes);
        let wrong = |cause| ReadError::Line { file: curves.0.to_owned(), number, cause };
        if let Some(curve) = parse_line::<LoadCurves>(&line, b"{\"cell\":").map_err(wrong)? {
            check_cell(&results.header, curve.cell).map_err(wrong)?;
            results.curves.push(curve);
        }
    }
    Ok(results)
}

/// One line of a file.
struct LineText<'a> {
    text: &'a [u8],
    /// Length including the newline.
    bytes: u64,
    /// True if it ends with a newline. Only the last line may lack it and be incomplete.
    is_whole: bool,
}

/// Non-empty lines with their numbers from 1.
fn lines(text: &[u8]) -> impl Iterator<Item = (usize, LineText<'_>)> {
    let all = text.split_inclusive(|byte| *byte == b'\n').enumerate();
    let each = all.map(|(i, line)| {
        let is_whole = line.ends_with(b"\n");
        (i + 1, LineText { text: line.trim_ascii(), bytes: line.len() as u64, is_whole })
    });
    each.filter(|(_, line)| !line.text.is_empty())
}

/// Parses a line. `None` for an incomplete last line. After an interruption a complete line may follow an
/// incomplete one directly; it begins with `start`.
fn parse_line<T: DeserializeOwned>(
    line: &LineText<'_>,
    start: &[u8],
) -> Result<Option<T>, LineError> {
    let why = match serde_json::from_slice(line.text) {
        Ok(value) => return Ok(Some(value)),
        Err(why) => why,
    };
    let starts = line.text.windows(start.len()).enumerate().skip(1);
    let behind = starts.rev().find(|(_, window)| *window == start).map(|(at, _)| at);
    let behind = behind.and_then(|at| serde_json::from_slice(&line.text[at..]).ok());
    match behind {
        Some(value) => Ok(Some(value)),
        None if !line.is_whole && why.is_eof() => Ok(None),
        None => Err(LineError::Json(why)),
    }
}

/// Message of the parser with the column only, because it sees a single line.
fn parser_message(why: &serde_json::Error) -> String {
    let text = why.to_string();
    let what = text.split(" at line ").next().unwrap_or_default();
    if why.column() > 0 { format!("{what} (column {})", why.column()) } else { what.to_owned() }
}

/// Parses the header. The schema is checked first: newer ones may differ in everything else.
fn header(line: &[u8]) -> Result<ResultsHeader, LineError> {
    #[derive(Deserialize)]
    struct First {
        line: String,
        schema: u64,
    }
    let first: First =
        serde_json::from_slice(line).map_err(|cause| LineError::NotHeader { cause })?;
    if first.schema > u64::from(SCHEMA) {
        return Err(LineError::Newer(first.schema));
    }
    let no_header = || misplaced("the first line has to be the header");
    if first.line != "header" {
        return Err(no_header());
    }
    let ResultsLine::Header(header) = serde_json::from_slice(line)? else {
        return Err(no_header());
    };
    for (place, cell) in header.cells.iter().enumerate() {
        if usize::try_from(cell.id) != Ok(place) {
            return Err(misplaced(format!("cell {} is at place {place}", cell.id)));
        }
        if let Some(other) = cell.control_of {
            check_cell(&header, other)?;
        }
    }
    Ok(*header)
}

fn check_cell(header: &ResultsHeader, cell: u32) -> Result<(), LineError> {
    let cells = header.cells.len();
    let is_known = usize::try_from(cell).is_ok_and(|cell| cell < cells);
    is_known
        .then_some(())
        .ok_or_else(|| misplaced(format!("cell {cell} is not among the {cells} of the header")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{CampaignEnd, Cell, CounterExperiment, Run};

    fn header_line() -> String {
        let cells = (0..2).map(|id| Cell { id, series: "cp".into(), ..Cell::default() }).collect();
        let header =
            ResultsHeader { schema: SCHEMA, name: "n".into(), cells, ..ResultsHeader::default() };
        line(&ResultsLine::Header(Box::new(header)))
    }

    fn line(line: &ResultsLine) -> String {
        serde_json::to_string(line).unwrap() + "\n"
    }

    fn run_line(cell: u32, block: u32) -> String {
        line(&ResultsLine::Run(Box::new(Run { cell, block, wall_s: 1.5, ..Run::default() })))
    }

    fn curve_line(cell: u32) -> String {
        let curve = LoadCurves { cell, t_s: vec![0.1, 0.2], ..LoadCurves::default() };
        serde_json::to_string(&curve).unwrap() + "\n"
    }

    fn parsed(runs: &str, curves: &str) -> Result<Results, ReadError> {
        let (a, b) = (Path::new("a/results.jsonl"), Path::new("a/samples.jsonl"));
        parse((a, runs.as_bytes()), (b, curves.as_bytes()), &|_| {})
    }

    #[test]
    fn everything_is_read() {
        let end = CampaignEnd { reason: "done".into(), took_s: 9.0, overhead: 0.01 };
        let experiment = CounterExperiment { cell: 1, factor: 0.5, ..CounterExperiment::default() };
        let text = [
            header_line(),
            run_line(0, 0),
            line(&ResultsLine::Resumed { at: "2026-01-01T00:00:00Z".into() }),
            run_line(1, 0),
            line(&ResultsLine::Experiment(experiment.clone())),
            line(&ResultsLine::End(end.clone())),
        ];
        let results = parsed(&text.concat(), &curve_line(1)).unwrap();
        assert_eq!(results.runs.iter().map(|run| run.cell).collect::<Vec<_>>(), [0, 1]);
        assert_eq!((results.experiments, results.end), (vec![experiment], Some(end)));
        assert_eq!(results.curves[0].t_s, [0.1, 0.2]);
        assert_eq!(results.header.cells.len(), 2);
    }

    #[test]
    fn what_a_stop_left_half_written_is_passed_over() {
        let (run, curve) = (run_line(1, 7), curve_line(0));
        for cut in [1, 9, run.len() - 2] {
            let text = header_line() + &run_line(0, 0) + &run[..cut];
            let samples = curve.clone() + &curve[..cut.min(curve.len() - 2)];
            let results = parsed(&text, &samples).unwrap();
            assert_eq!((results.runs.len(), results.curves.len()), (1, 1), "{cut}");
            // The campaign was resumed directly after the incomplete line.
            let results = parsed(&(text + &run_line(1, 8)), &(samples + &curve_line(1))).unwrap();
            assert_eq!((results.runs[1].block, results.curves[1].cell), (8, 1), "{cut}");
        }
        // A complete line without a newline is accepted.
        let results = parsed(&(header_line() + run.trim_end()), "").unwrap();
        assert_eq!(results.runs.len(), 1);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let newer = header_line().replacen("\"schema\":1", "\"schema\":2,\"new\":[]", 1);
        let good = header_line() + &run_line(0, 0);
        for (runs, curves, said) in [
            (String::new(), "", "results.jsonl' is empty"),
            ("{}\n".into(), "", "line 1: this is not the header"),
            (run_line(0, 0), "", "line 1: this is not the header"),
            (
                newer,
                "",
                "line 1: these results are of schema 2, and this program knows schemas up to 1",
            ),
            (good.clone() + "{\"line\":\"run\"}\n" + &run_line(0, 1), "", "line 3: missing field"),
            (good.clone() + "\n{\"line\":\"x\"}\n", "", "line 4: unknown variant"),
            (good.clone() + &header_line(), "", "line 3: a second header"),
            (good.clone() + &run_line(2, 0), "", "line 3: cell 2 is not among the 2 of the header"),
            (good.clone() + "}", "", "line 3: expected value"),
            (good.clone(), "{\"cell\":0}\n", "samples.jsonl', line 1: missing field"),
            (good.clone(), curve_line(9).as_str(), "line 1: cell 9 is not among"),
        ] {
            let message = parsed(&runs, curves).err().map(String::from).unwrap_or_default();
            assert!(message.contains(said), "{said}: {message}");
        }
    }
}
