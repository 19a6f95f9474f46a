//! `hakobu compare`: results of several machines or settings held against each other, with what they
//! cost.

use super::bench::show;
use super::refuse;
use super::report::{by_name, put};
use super::results::find;
use super::watch::files::Target;
use crate::exit;
use crate::options::compare::TABLE;
use crate::options::{Refused, Typed};
use crate::show::output;
use hakobu_lab::analysis::{Prices, Rated, compare, names, parse_price, parse_rated};
use hakobu_lab::report::{Format, Lang, render_compared, terminal};
use hakobu_lab::results::Results;
use hakobu_lab::results::read::read;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let typed = TABLE.parse(&arguments);
    let failed = match typed.and_then(|typed| plan(typed).map_err(Refused::Usage)) {
        Ok(plan) => match plan.run() {
            Ok(()) => return exit::OK.into(),
            Err(failed) => failed,
        },
        Err(refused) => return refuse(refused, exit::USAGE),
    };
    match failed {
        Failed::Usage(message) => refuse(Refused::Usage(message), exit::USAGE),
        Failed::Work(message) => {
            output::message(&message);
            exit::FAILURE.into()
        }
    }
}

/// Why nothing came out.
enum Failed {
    /// Options do not fit to the results.
    Usage(String),
    /// Something cannot be read or written.
    Work(String),
}

impl From<String> for Failed {
    fn from(message: String) -> Failed {
        Failed::Work(message)
    }
}

/// What the command line asks for.
#[derive(Debug, Default, PartialEq)]
struct Plan {
    /// What each is to be called, and where it is.
    results: Vec<(Option<String>, OsString)>,
    per_hour: Vec<(String, f64)>,
    rated: Vec<(String, Rated)>,
    /// `None`: standard output.
    output: Option<PathBuf>,
    /// `None`: for a terminal.
    format: Option<Format>,
    lang: Lang,
    no_color: bool,
}

fn plan(typed: Typed) -> Result<Plan, String> {
    let mut plan = Plan::default();
    for given in &typed.options {
        match given.name {
            "price" => plan.per_hour.push(parse_price(given.text()?)?),
            "rated" => plan.rated.push(parse_rated(given.text()?)?),
            "output" => plan.output = Some(PathBuf::from(&given.value)),
            "format" => plan.format = Some(format(given.text()?).map_err(|why| given.wrong(why))?),
            "lang" => {
                let known = Lang::of_code(given.text()?);
                plan.lang = known.ok_or_else(|| given.wrong("give en or ja"))?;
            }
            "no-color" => plan.no_color = true,
            other => return Err(format!("--{other} is not known to compare")),
        }
    }
    if typed.paths.len() < 2 {
        return Err("give at least two results to compare".into());
    }
    plan.output = plan.output.filter(|path| path.as_os_str() != "-");
    if let (None, Some(path)) = (plan.format, &plan.output) {
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

fn format(name: &str) -> Result<Format, &'static str> {
    Format::of_name(name).ok_or(FORMS).and_then(has_form)
}

/// There is no picture of a comparison.
fn has_form(format: Format) -> Result<Format, &'static str> {
    if format == Format::Svg { Err(FORMS) } else { Ok(format) }
}

/// `NAME=RESULT`, or only a result. What is there under the whole text is no name.
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

/// A name is no path.
fn is_name(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains('/')
}

impl Plan {
    /// Reads, compares, writes.
    fn run(&self) -> Result<(), Failed> {
        // What cannot be written is known before anything is read.
        let target = self.output.as_deref().map(Target::open).transpose()?;
        let results = self.results.iter().map(|(_, path)| read(&find(Some(path))?));
        let results: Vec<Results> = results.collect::<Result<_, String>>()?;
        let given: Vec<Option<String>> =
            self.results.iter().map(|(name, _)| name.clone()).collect();
        let names = names(&results, &given);
        let prices = Prices::new(&names, &self.per_hour, &self.rated).map_err(Failed::Usage)?;
        let text = match self.format {
            Some(format) => {
                let found = compare(&results, &prices, format.lang(self.lang));
                render_compared(&found, &results, format, self.lang)?
            }
            None => {
                let (columns, color) = show::screen(self.no_color);
                let found = compare(&results, &prices, self.lang);
                terminal::compared(&found, &results, columns, color, self.lang)
            }
        };
        Ok(put(target, &text)?)
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
            ("", "give at least two results"),
            ("a", "give at least two results"),
            ("x=a x=b", "two results are called x"),
            ("a b --format svg", "--format=svg: give html, md, csv or json"),
            ("a b -o c.svg", "--output=c.svg: give html, md, csv or json"),
            ("a b -o c", "its name does not end in"),
            ("a b --price A=1", "for how long?"),
            ("a b --rated A", "write it as A=206250"),
            ("a b --lang de", "--lang=de: give en or ja"),
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
        let rated = Rated { reads: 5.0, writes: Some(3.0) };
        assert_eq!(
            (plan.rated, plan.format),
            (vec![("B".to_owned(), rated)], Some(Format::Markdown))
        );
        assert_eq!(read("a b").unwrap().format, None);
    }
}
