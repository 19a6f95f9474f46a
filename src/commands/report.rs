//! `hakobu report`: results of campaigns as a page, an article or a table.

mod png;

use super::tool::carry_out;
use crate::exit;
use crate::files::{Target, is_stdout, or_stdout};
use crate::options::{Opt, OptArg, Table, Typed, parts, put, value};
use crate::show::progress::{Progress, ProgressForm};
use hakobu_core::meter::Meter;
use hakobu_lab::analysis::Baseline;
use hakobu_lab::report::{Format, Lang, Part, render};
use hakobu_lab::results::read::{bytes_of, read_counted};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    carry_out(TABLE.parse(&arguments), plan, |plan| report(&plan).map(|()| exit::OK))
}

/// The command line of `report`.
pub static TABLE: Table<Plan> = Table {
    command: "report",
    about: "Make a page, an article or a table from the results of campaigns",
    usage: "hakobu report [OPTIONS] RESULT...",
    after: "RESULT is a folder of results, as written by bench (results.jsonl, \
            samples.jsonl). Several are shown side by side: the same campaign on other machines \
            or with other settings.\n\
            html is a single file that loads nothing and is complete without scripts; md is for \
            an article or an issue; csv has the raw runs, json the analysis, svg and png the \
            pictures (png needs rsvg-convert, resvg, inkscape or chromium). CSV and JSON are the \
            same in every language. hakobu help report-guide describes them.\n\
            Exit codes: 0 done, 1 a result could not be read or the report could not be written, \
            2 usage.",
    options: &[&OPTIONS],
    unbuilt: &[],
    abbreviates: false,
};

/// The parsed command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Plan {
    results: Vec<PathBuf>,
    /// `None`: standard output.
    output: Option<PathBuf>,
    /// `None`: Markdown.
    format: Option<Format>,
    lang: Lang,
    baseline: Option<Baseline>,
}

parts!(Plan {});

const OPTIONS: &[Opt<Plan>] = &[
    value("output", Some('o'), "FILE", "write to FILE, not to standard output (also: -)")
        .reads(|it, arg| put(&mut it.output, Some(arg.path()))),
    value(
        "format",
        None,
        "FORMAT",
        "html, md, csv, json, svg or png (default: as the name of FILE ends; md without FILE)",
    )
    .reads(|it, arg| {
        let known = arg.value.to_str().and_then(Format::of_name);
        let format = known.ok_or_else(|| arg.wrong("give html, md, csv, json, svg or png"))?;
        put(&mut it.format, Some(format))
    }),
    value("lang", None, "LANG", "language of the text: en (default) or ja").reads(|it, arg| {
        let known = arg.value.to_str().and_then(Lang::of_code);
        put(&mut it.lang, known.ok_or_else(|| arg.wrong("give en or ja"))?)
    }),
    value("baseline", None, "NAME=VALUE", "compare every setting with this one: jobs=10")
        .reads(|it, arg| put(&mut it.baseline, Some(baseline(arg)?))),
];

/// Parses `--baseline`.
pub(super) fn baseline(arg: &OptArg) -> Result<Baseline, String> {
    Baseline::parse(arg.text()?).map_err(|why| arg.wrong(&why))
}

fn plan(typed: Typed) -> Result<Plan, String> {
    let mut plan = TABLE.read(&typed, Plan::default())?;
    if typed.paths.is_empty() {
        return Err("give a folder of results".into());
    }
    if let (None, Some(path)) = (plan.format, &plan.output)
        && !is_stdout(path)
    {
        plan.format = Some(by_name(path)?);
    }
    plan.results = typed.paths.into_iter().map(PathBuf::from).collect();
    Ok(plan)
}

/// Returns the format for the extension of a file.
pub(super) fn by_name(path: &Path) -> Result<Format, String> {
    let end = path.extension().and_then(|end| end.to_str()).map(str::to_lowercase);
    end.as_deref().and_then(Format::of_name).ok_or_else(|| {
        format!(
            "--output={}: its name does not end in .html, .md, .csv, .json, .svg or .png: give --format",
            path.display()
        )
    })
}

/// Reads, analyses and writes. The error is a sentence.
fn report(plan: &Plan) -> Result<(), String> {
    // Open the output before reading, to fail early.
    let target = Target::open(&or_stdout(plan.output.clone()))?;
    let format = plan.format.unwrap_or(Format::Markdown);
    let meter = Arc::new(Meter::new(1));
    let lane = meter.lane(0);
    lane.found(plan.results.len() as u64);
    lane.ahead(plan.results.iter().map(|path| bytes_of(path)).sum());
    meter.all_found();
    let progress = Progress::start(ProgressForm::of(None, false, false), |_| {});
    progress.begins(&meter);
    let parts = plan.results.iter().map(|path| -> Result<Part, String> {
        let lang = format.lang(plan.lang);
        let mut part = Part::new(read_counted(path, &|bytes| lane.bytes(bytes))?, lang);
        lane.done(1);
        if let Some(baseline) = &plan.baseline {
            part.analysis.compare_with(&part.results, baseline, lang)?;
        }
        Ok(part)
    });
    let parts: Vec<Part> = parts.collect::<Result<_, String>>()?;
    progress.finish();
    let text = render(&parts, format, plan.lang)?;
    match format {
        Format::Png => target.deliver(png::of_svg(&text)?),
        _ => target.deliver(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Plan, String> {
        plan(TABLE.parse_line(line)?)
    }

    #[test]
    fn usage() {
        for (line, said) in [
            ("", "give a folder of results"),
            ("-o a.html", "give a folder of results"),
            ("--format=pdf a", "--format=pdf: give html, md, csv, json, svg or png"),
            ("--lang=de a", "--lang=de: give en or ja"),
            ("-o report a", "--output=report: its name does not end in .html"),
            ("-o a.pdf a", "--output=a.pdf: its name does not end in .html"),
        ] {
            let message = read(line).err().unwrap_or_default();
            assert!(message.contains(said), "{line}: {message}");
        }
    }

    #[test]
    fn formats() {
        for (line, format, output) in [
            ("a", Format::Markdown, "-"),
            ("a b -o c.html", Format::Html, "c.html"),
            ("a -o c.CSV", Format::Csv, "c.CSV"),
            ("a -o c.txt --format json", Format::Json, "c.txt"),
            ("a -o - --format svg", Format::Svg, "-"),
            ("a -o c.png", Format::Png, "c.png"),
            ("a -o -", Format::Markdown, "-"),
        ] {
            let plan = read(line).unwrap();
            let found = plan.format.unwrap_or(Format::Markdown);
            assert_eq!((found, or_stdout(plan.output)), (format, output.into()), "{line}");
        }
        assert_eq!(read("a --lang ja").unwrap().lang, Lang::Ja);
    }
}
