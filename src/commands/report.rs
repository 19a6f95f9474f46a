//! `hakobu report`: what campaigns found, as a page, an article or a table.

use super::refuse;
use super::watch::files::Target;
use crate::exit;
use crate::options::report::TABLE;
use crate::options::{Refused, Typed};
use crate::show::output::{self, Output};
use hakobu_lab::report::{Format, Lang, Part, render};
use hakobu_lab::results::read::read;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let typed = TABLE.parse(&arguments);
    match typed.and_then(|typed| plan(typed).map_err(Refused::Usage)) {
        Ok(plan) => match report(&plan) {
            Ok(()) => exit::OK.into(),
            Err(message) => {
                output::message(&message);
                exit::FAILURE.into()
            }
        },
        Err(refused) => refuse(refused, exit::USAGE),
    }
}

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    results: Vec<PathBuf>,
    /// `None`: standard output.
    output: Option<PathBuf>,
    format: Format,
    lang: Lang,
}

fn plan(typed: Typed) -> Result<Plan, String> {
    let (mut output, mut format, mut lang) = (None, None, Lang::default());
    for given in &typed.options {
        match given.name {
            "output" => output = Some(PathBuf::from(&given.value)),
            "format" => {
                let known = given.value.to_str().and_then(Format::of_name);
                let why = "give html, md, csv, json or svg";
                format = Some(known.ok_or_else(|| given.wrong(why))?);
            }
            "lang" => {
                let known = given.value.to_str().and_then(Lang::of_code);
                lang = known.ok_or_else(|| given.wrong("give en or ja"))?;
            }
            other => return Err(format!("--{other} is not known to report")),
        }
    }
    if typed.paths.is_empty() {
        return Err("give a folder of results".into());
    }
    let output = output.filter(|path| path.as_os_str() != "-");
    let format = match (format, &output) {
        (Some(format), _) => format,
        (None, Some(path)) => by_name(path)?,
        (None, None) => Format::Markdown,
    };
    let results = typed.paths.into_iter().map(PathBuf::from).collect();
    Ok(Plan { results, output, format, lang })
}

/// The format that the name of a file says.
pub(super) fn by_name(path: &Path) -> Result<Format, String> {
    let end = path.extension().and_then(|end| end.to_str()).map(str::to_lowercase);
    end.as_deref().and_then(Format::of_name).ok_or_else(|| {
        format!(
            "--output={}: its name does not end in .html, .md, .csv, .json or .svg: give --format",
            path.display()
        )
    })
}

/// Reads, analyses, writes. The error is a sentence.
fn report(plan: &Plan) -> Result<(), String> {
    // What cannot be written is known before anything is read.
    let target = plan.output.as_deref().map(Target::open).transpose()?;
    let parts = plan.results.iter().map(|path| -> Result<Part, String> {
        Ok(Part::new(read(path)?, plan.format.lang(plan.lang)))
    });
    let parts: Vec<Part> = parts.collect::<Result<_, String>>()?;
    put(target, &render(&parts, plan.format, plan.lang)?)
}

/// Writes a text to its file, or to standard output where there is none.
pub(super) fn put(target: Option<Target>, text: &str) -> Result<(), String> {
    match target {
        Some(mut target) => {
            target.write(text);
            target.finish()
        }
        None => {
            let output = Output::stdout();
            output.write(text.as_bytes());
            match output.finish() {
                Some(error) => Err(format!("cannot write to standard output: {error}")),
                None => Ok(()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Plan, String> {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        plan(TABLE.parse(&arguments).map_err(|refused| format!("{refused:?}"))?)
    }

    #[test]
    fn usage() {
        for (line, said) in [
            ("", "give a folder of results"),
            ("-o a.html", "give a folder of results"),
            ("--format=pdf a", "--format=pdf: give html, md, csv, json or svg"),
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
            ("a", Format::Markdown, None),
            ("a b -o c.html", Format::Html, Some("c.html")),
            ("a -o c.CSV", Format::Csv, Some("c.CSV")),
            ("a -o c.txt --format json", Format::Json, Some("c.txt")),
            ("a -o - --format svg", Format::Svg, None),
            ("a -o -", Format::Markdown, None),
        ] {
            let plan = read(line).unwrap();
            assert_eq!((plan.format, plan.output), (format, output.map(PathBuf::from)), "{line}");
        }
        assert_eq!(read("a --lang ja").unwrap().lang, Lang::Ja);
    }
}
