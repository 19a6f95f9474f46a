//! `hakobu compare`: compares results of several machines or settings, with their costs.

use super::bench::terminal_size;
use super::report::by_name;
use super::results::find;
use super::tool::{carry_out, end_with};
use crate::cli::{Opt, Table, Takes, Typed, flag, parts, push, put, value};
use crate::exit;
use crate::files::{Target, is_stdout, or_stdout};
use hakobu_core::error::quoted;
use hakobu_lab::analysis::compare::{compare, names};
use hakobu_lab::analysis::prices::{Prices, RatedIops, parse_machines, parse_price, parse_rated};
use hakobu_lab::report::comparison::render_comparison;
use hakobu_lab::report::{Language, ReportFormat, terminal};
use hakobu_lab::results::Results;
use hakobu_lab::results::read::read;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    carry_out(TABLE.parse(&arguments), plan, |plan| plan.run())
}

/// The command line of `compare`.
pub static TABLE: Table<CompareOptions> = Table {
    command: "compare",
    about: "Compare results of several machines or settings, optionally with prices",
    description: "RESULT is a directory of results, or its name as results ls shows it; NAME is \
            its label (default: its machine). The first result is the reference. Settings \
            correspond if group, tool and parameters are the same.",
    usage: "hakobu compare [OPTIONS] [NAME=]RESULT [NAME=]RESULT...",
    examples: &[
        ("hakobu compare small large", "Compare two machines."),
        (
            "hakobu compare small/ large/ --price A=0.096/h --price B=0.384/h",
            "Compare two machines, with prices.",
        ),
    ],
    common: &[],
    after: "The report has the best choice for each need, the conclusions that change, \
            medians with intervals, means, ratios with intervals, and costs.\n\
            --price and --rated identify a result by its label or by a letter: A is the \
            first.\n\
            Without -o the output is a table for the terminal. csv has a line for each \
            setting of each result, json everything; both are the same in every language. \
            hakobu help compare-guide describes them.\n\
            Exit codes: 0 done, 1 a result could not be read or the output could not be \
            written, 2 usage.",
    options: &[&OPTIONS],
    unbuilt: &[],
    abbreviates: false,
};

const OPTIONS: &[Opt<CompareOptions>] = &[
    value("price", None, "NAME=PRICE/h", "price of one: A=0.366/h (also /s, /min, /day, /month)")
        .takes(Takes::Values("NAME=PRICE/h"))
        .reads(|plan, arg| push(&mut plan.per_hour, parse_price(arg.text()?)?)),
    value(
        "rated",
        None,
        "NAME=IOPS",
        "rated IOPS of one: A=206250, or for reads and writes: A=206250/18750",
    )
    .takes(Takes::Values("NAME=IOPS"))
    .reads(|plan, arg| push(&mut plan.rated, parse_rated(arg.text()?)?)),
    value(
        "machines",
        None,
        "FILE",
        "CSV of machines that were not measured: name,price,iops (or read_iops,write_iops),mb_per_s",
    )
    .reads(|plan, arg| put(&mut plan.machines, Some(arg.path()))),
    value(
        "output",
        Some('o'),
        "FILE",
        "write to FILE (its name ends in .html, .md, .csv or .json)",
    )
    .reads(|plan, arg| put(&mut plan.output, Some(arg.path()))),
    value(
        "format",
        None,
        "FORMAT",
        "html, md, csv or json, independent of the name of FILE; without FILE to standard output",
    )
    .words(&["html", "md", "csv", "json"])
    .reads(|plan, arg| {
        let format = format(arg.text()?).map_err(|why| arg.refuse(why))?;
        put(&mut plan.format, Some(format))
    }),
    value("lang", None, "LANG", "language of the text: en (default, or $HAKOBU_LANG) or ja").words(crate::limits::LANGUAGES).reads(|plan, arg| {
        let known = Language::of_code(arg.text()?);
        put(&mut plan.lang, known.ok_or_else(|| arg.refuse("give en or ja"))?)
    }),
    flag("no-color", None, "without colours").sets(|plan, on| plan.no_color = on),
];

/// The parsed command line.
#[derive(Debug, Default, PartialEq)]
pub struct CompareOptions {
    /// Name and location of each result.
    results: Vec<(Option<String>, OsString)>,
    per_hour: Vec<(String, f64)>,
    rated: Vec<(String, RatedIops)>,
    /// A table of machines that were not measured, with prices and ratings.
    machines: Option<PathBuf>,
    /// `None`: standard output.
    output: Option<PathBuf>,
    /// `None`: for a terminal.
    format: Option<ReportFormat>,
    lang: Language,
    no_color: bool,
}

parts!(CompareOptions {});

fn plan(typed: Typed) -> Result<CompareOptions, String> {
    let mut plan = TABLE.read(&typed, CompareOptions::default())?;
    if typed.paths.len() < 2 {
        return Err("missing results: at least two to compare".into());
    }
    if let (None, Some(path)) = (plan.format, &plan.output)
        && !is_stdout(path)
    {
        let named = by_name(path)?;
        plan.format =
            Some(has_form(named).map_err(|why| format!("--output={}: {why}", path.display()))?);
    }
    plan.results = typed.paths.into_iter().map(named).collect();
    for (at, (name, _)) in plan.results.iter().enumerate() {
        if name.is_some() && plan.results[..at].iter().any(|(other, _)| other == name) {
            let name = name.as_deref().unwrap_or_default();
            return Err(format!("two results are called {name}"));
        }
    }
    Ok(plan)
}

const FORMS: &str = "give html, md, csv or json";

fn format(name: &str) -> Result<ReportFormat, &'static str> {
    ReportFormat::of_name(name).ok_or(FORMS).and_then(has_form)
}

/// Rejects picture formats, which a comparison does not have.
fn has_form(format: ReportFormat) -> Result<ReportFormat, &'static str> {
    if matches!(format, ReportFormat::Svg | ReportFormat::Png) { Err(FORMS) } else { Ok(format) }
}

/// Splits `NAME=RESULT`; a result alone has no name. An existing file of the whole text has no name either.
fn named(typed: OsString) -> (Option<String>, OsString) {
    let bytes = typed.as_bytes();
    let split = bytes.iter().position(|byte| *byte == b'=').filter(|_| !Path::new(&typed).exists());
    let parts = split.and_then(|at| {
        let (name, rest) = bytes.split_at(at);
        let name = std::str::from_utf8(name).ok().filter(|name| is_name(name))?;
        Some((name.to_owned(), OsStr::from_bytes(rest.get(1..)?).to_owned()))
    });
    match parts {
        Some((name, path)) if !path.is_empty() => (Some(name), path),
        _ => (None, typed),
    }
}

/// Returns whether a text is a name, not a path.
fn is_name(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains('/')
}

impl CompareOptions {
    /// Reads, compares and writes; returns the exit code.
    fn run(&self) -> Result<u8, String> {
        // Open the output before reading, to fail early.
        let target = Target::open(&or_stdout(self.output.clone()))?;
        let results = self.results.iter().map(|(_, path)| Ok(read(&find(Some(path))?)?));
        let results: Vec<Results> = results.collect::<Result<_, String>>()?;
        let titles: Vec<Option<String>> =
            self.results.iter().map(|(name, _)| name.clone()).collect();
        let folder = |(_, path): &(Option<String>, OsString)| {
            let name = Path::new(path).file_name().unwrap_or(path);
            name.to_string_lossy().into_owned()
        };
        let folders: Vec<String> = self.results.iter().map(folder).collect();
        let names = names(&results, &titles, &folders);
        let mut prices = match Prices::new(&names, &self.per_hour, &self.rated) {
            Ok(prices) => prices,
            Err(message) => return Ok(end_with(exit::USAGE, &message)),
        };
        if let Some(path) = &self.machines {
            let text = crate::names::read_text(path)?;
            let machines = parse_machines(&text);
            let machines = machines.map_err(|why| format!("{}: {why}", quoted(path)))?;
            prices = prices.with_machines(machines);
        }
        let text = match self.format {
            Some(format) => {
                let found = compare(&results, &prices);
                render_comparison(&found, &results, format, self.lang)?
            }
            None => {
                let (columns, color) = terminal_size(self.no_color);
                let found = compare(&results, &prices);
                terminal::comparison(&found, &results, columns, color, self.lang)
            }
        };
        target.deliver(&text).map(|()| exit::OK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<CompareOptions, String> {
        plan(TABLE.parse_line(line)?)
    }

    #[test]
    fn usage() {
        for (line, said) in [
            ("", "missing results"),
            ("a", "missing results"),
            ("x=a x=b", "two results are called x"),
            ("a b --format svg", "invalid --format 'svg': give html, md, csv or json"),
            ("a b -o c.svg", "--output=c.svg: give html, md, csv or json"),
            ("a b -o c", "its name does not end in"),
            ("a b --price A=1", "for how long?"),
            ("a b --rated A", "write it as A=206250"),
            ("a b --lang de", "invalid --lang 'de': give en or ja"),
        ] {
            let message = read(line).err().unwrap_or_default();
            assert!(message.contains(said), "{line}: {message}");
        }
    }

    #[test]
    fn names_and_places() {
        let plan = read("i2=x/a ./b=c =d e= --price i2=1/h --rated B=5/3 -o o.md").unwrap();
        let results: [(Option<String>, OsString); 4] = [
            (Some("i2".to_owned()), "x/a".into()),
            (None, "./b=c".into()),
            (None, "=d".into()),
            (None, "e=".into()),
        ];
        assert_eq!(plan.results, results);
        assert_eq!(plan.per_hour, [("i2".to_owned(), 1.0)]);
        let rated = RatedIops { reads: 5.0, writes: Some(3.0) };
        assert_eq!(
            (plan.rated, plan.format),
            (vec![("B".to_owned(), rated)], Some(ReportFormat::Markdown))
        );
        assert_eq!(read("a b").unwrap().format, None);
    }
}
