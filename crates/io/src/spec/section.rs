//! Source text before it has a meaning: sections, and in each the options with their places.

use super::draft::Draft;
use super::known::{Does, Known, Takes};
use super::table::OPTIONS;
use super::{lists, theirs};
use std::fmt;

/// Place of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the command line.
    CommandLine,
    /// In a line (from 1) of a job file.
    File(String, usize),
}

/// One option as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Option<String>,
    /// Its place.
    pub place: Place,
    /// Its value is a list of which each cell of a sweep takes one.
    pub swept: bool,
    /// Variables that have no value, and counted as empty.
    pub unset: Vec<String>,
}

/// A section of a job file, or what follows a `--name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The job's name; `None` for options that hold for all jobs after them.
    pub job: Option<String>,
    /// The first job of a second or later job file: it waits for all before it.
    pub waits: bool,
    /// Its options, in order.
    pub settings: Vec<Setting>,
}

impl Section {
    /// One without options.
    pub fn of(job: Option<String>) -> Section {
        Section { job, waits: false, settings: Vec::new() }
    }
}

/// Names of the options of the run.
const OF_THE_RUN: &[&str] = &[
    "output",
    "output-format",
    "status-interval",
    "eta",
    "section",
    "showcmd",
    "parse-only",
    "readonly",
    "strict",
    "warnings-fatal",
    "allow-overwrite",
    "keep",
    "repeat",
    "precondition",
    "sweep",
];

/// Meaning of a name.
pub enum Found {
    /// An option of jobs.
    Known(&'static Known),
    /// An option of the command line.
    Own,
    /// Not ours: fio's, with the reason why, or unknown, with what may have been meant.
    Refused(String),
}

/// All options of jobs.
pub fn options() -> impl Iterator<Item = &'static Known> {
    OPTIONS.iter().copied().flatten()
}

/// Returns whether this is the name of an option of jobs or of the command line.
pub fn is_option(name: &str) -> bool {
    matches!(find(name), Found::Known(_) | Found::Own)
}

/// Looks up a name.
pub fn find(name: &str) -> Found {
    if let Some(known) = options().find(|known| known.is(name)) {
        return Found::Known(known);
    }
    if OF_THE_RUN.contains(&name) {
        return Found::Own;
    }
    if let Some((_, why)) = theirs::OPTIONS.iter().find(|(theirs, _)| *theirs == name) {
        let sentence = "an option of fio's that is not supported here";
        return Found::Refused(if why.is_empty() {
            sentence.to_owned()
        } else {
            format!("{sentence}: {why}")
        });
    }
    if let Some((_, why)) = theirs::REMOVED.iter().find(|(removed, _)| *removed == name) {
        return Found::Refused(format!("is not built in: {why}"));
    }
    let names =
        options().flat_map(|known| [known.name].into_iter().chain(known.aliases.iter().copied()));
    let near = names.map(|known| (strsim::damerau_levenshtein(name, known), known));
    Found::Refused(match near.min().filter(|(far, known)| *far <= 2 && *far < known.len()) {
        Some((_, near)) => format!("no such option; did you mean {near}?"),
        None => "no such option".to_owned(),
    })
}

impl fmt::Display for Setting {
    /// As an error begins: `--bs=4q`, `job.fio:3: bs=4q`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::CommandLine => write!(f, "--")?,
            Place::File(name, line) => write!(f, "{name}:{line}: ")?,
        }
        write!(f, "{}", self.name)?;
        let value = self.value.as_deref();
        value.map_or(Ok(()), |value| write!(f, "={value}"))
    }
}

impl Setting {
    /// One of the command line.
    pub fn typed(name: &str, value: Option<&str>) -> Setting {
        let (name, value) = (name.to_owned(), value.map(str::to_owned));
        Setting { name, value, place: Place::CommandLine, swept: false, unset: Vec::new() }
    }

    /// The message for an invalid one.
    pub fn wrong(&self, why: &str) -> String {
        match self.unset.as_slice() {
            [] => format!("{self}: {why}"),
            unset => format!("{self}: {why} (not set in the environment: {})", unset.join(", ")),
        }
    }

    /// The option that this is.
    ///
    /// # Errors
    /// It is none of a job's.
    pub fn option(&self) -> Result<&'static Known, String> {
        match find(&self.name) {
            Found::Known(known) => Ok(known),
            Found::Own => Err(self.wrong("is an option of the command line, not of a job")),
            Found::Refused(why) => Err(self.wrong(&why)),
        }
    }

    /// Lets it have its effect.
    ///
    /// # Errors
    /// It is unknown, or its value is none of the option's.
    pub fn apply(&self, draft: &mut Draft) -> Result<(), String> {
        let known = self.option()?;
        let value = match (self.value.as_deref(), known.takes) {
            (Some(value), _) => value.trim(),
            (None, Takes::Text) => "",
            (None, Takes::Mark) => "1",
            (None, Takes::Value) => return Err(self.wrong("needs a value")),
        };
        match known.does {
            Does::Set(set) => {
                set(draft, value).map_err(|why| self.wrong(&self.of_list(known, why)))?
            }
            Does::Noted(why) => {
                let note = format!("{} has no effect here: {why}", known.name);
                if !draft.notes.contains(&note) {
                    draft.notes.push(note);
                }
            }
            Does::Stays(values) if values.contains(&value) => {}
            Does::Stays(values) => {
                let can = values.join(" or ");
                let why = format!("of fio's values only {can} is supported here");
                return Err(self.wrong(&why));
            }
        }
        if !draft.given.contains(&known.name) {
            draft.given.push(known.name);
        }
        Ok(())
    }

    /// Reason that a value was refused; where it is a list in a job file, that lists of values to try stand on
    /// the command line.
    fn of_list(&self, known: &Known, why: String) -> String {
        let is_in_file = matches!(self.place, Place::File(..));
        let value = self.value.as_deref();
        let value = value.filter(|value| is_in_file && lists::is_list(value));
        match value {
            Some(value) if known.sweeps && !why.contains("fio's") => {
                let name = known.name;
                format!(
                    "{why}; a list of values to measure goes on the command line: \
                     --sweep={name}={value} (in job files only bs, bsrange, bssplit, rate, rate_iops, \
                     cpus_allowed and percentile_list have commas)"
                )
            }
            _ => why,
        }
    }

    /// The pair for the record: fio's first name, and the value; of an option without one `1`, or
    /// nothing where it would be a text.
    pub fn pair(&self) -> (String, String) {
        let (name, alone) = match find(&self.name) {
            Found::Known(known) if known.takes == Takes::Text => (known.name, ""),
            Found::Known(known) => (known.name, "1"),
            _ => (self.name.as_str(), "1"),
        };
        let value = self.value.as_deref().map_or(alone, str::trim);
        (name.to_owned(), value.to_owned())
    }
}
