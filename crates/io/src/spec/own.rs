//! The command line: options of the run as a whole, and between them those of jobs, which come into
//! sections: what follows a `--name` is that job's, what comes before the first is for all of them.

use super::super::layout::Safety;
use super::file::is_global;
use super::section::{Found, Section, Setting, find};
use super::units::{self, Bare};
use super::{Axis, Eta, Format, lists};
use std::path::PathBuf;
use std::time::Duration;

/// Runs of each cell, at most.
const REPEAT_MAX: u32 = 10_000;

defaulted! {
    /// Options of the run as a whole.
    #[derive(Clone, Debug, PartialEq)]
    pub struct RunOptions {
        /// File of the report; `None` is standard output.
        pub output: Option<PathBuf>,
        /// Its format.
        pub format: Format,
        /// A report after each such time.
        pub status_interval: Option<Duration>,
        /// Condition for showing progress.
        pub eta: Eta,
        /// Only jobs with these names.
        pub only: Vec<String>,
        /// The command line is printed, and nothing done.
        pub show_cmd: bool,
        /// Only parse the command line and the job files (`--parse-only`).
        pub parse_only: bool,
        /// A job that writes is an error.
        pub read_only: bool,
        /// A warning is an error.
        pub strict: bool,
        /// Permission to write, and handling of the files.
        pub safety: Safety,
        /// Runs of each cell.
        pub repeat: u32 = 1,
        /// All is written once before.
        pub precondition: bool,
        /// Options of `--sweep`.
        pub sweep: Vec<Axis>,
    }
}

/// Takes a command line apart. The lists in it are looked at later.
///
/// # Errors
/// An option is wrong.
pub fn read(arguments: &[(String, Option<String>)]) -> Result<(RunOptions, Vec<Section>), String> {
    let mut own = RunOptions::default();
    let mut sections = vec![Section::of(None)];
    for (name, value) in arguments {
        let setting = Setting::typed(name, value.as_deref());
        match find(name) {
            Found::Own => own.set(&setting)?,
            Found::Refused(why) => return Err(setting.wrong(&why)),
            Found::Known(known) if known.name == "name" => match value.as_deref() {
                None | Some("") => return Err(setting.wrong("needs a value")),
                Some(job) => {
                    sections.push(Section::of((!is_global(job)).then(|| job.to_owned())));
                }
            },
            Found::Known(known) => {
                let list = value.as_deref().is_some_and(lists::is_list);
                if let Some(section) = sections.last_mut() {
                    section.settings.push(Setting { swept: known.sweeps && list, ..setting });
                }
            }
        }
    }
    Ok((own, sections))
}

impl RunOptions {
    fn set(&mut self, setting: &Setting) -> Result<(), String> {
        let wrong = |why: String| setting.wrong(&why);
        let value = setting.value.as_deref();
        let needed =
            || value.filter(|v| !v.is_empty()).ok_or_else(|| setting.wrong("needs a value"));
        let mark = || value.map_or(Ok(true), units::truth).map_err(wrong);
        match setting.name.as_str() {
            "output" => self.output = Some(needed()?.into()),
            "output-format" => self.format = format(needed()?).map_err(wrong)?,
            "status-interval" => {
                let us = units::time_us(needed()?, Bare::Seconds).map_err(wrong)?;
                self.status_interval = Some(Duration::from_micros(us)).filter(|us| !us.is_zero());
            }
            "eta" => {
                let times = [("auto", Eta::Auto), ("always", Eta::Always), ("never", Eta::Never)];
                self.eta = units::one_of(needed()?, &times).map_err(wrong)?;
            }
            "section" => self.only.push(needed()?.to_owned()),
            "showcmd" => self.show_cmd = mark()?,
            "parse-only" => self.parse_only = mark()?,
            "readonly" => self.read_only = mark()?,
            "strict" | "warnings-fatal" => self.strict = mark()?,
            "allow-overwrite" => self.safety.allow_overwrite = mark()?,
            "keep" => self.safety.keep = mark()?,
            "precondition" => self.precondition = mark()?,
            "repeat" => {
                let times = units::count(needed()?, units::Base::Binary, 1).map_err(wrong)?;
                if times > REPEAT_MAX {
                    return Err(setting.wrong(&format!("is more than {REPEAT_MAX}")));
                }
                self.repeat = times;
            }
            "sweep" => self.sweep.push(axis(needed()?).map_err(wrong)?),
            _ => return Err(setting.wrong("no such option")),
        }
        Ok(())
    }
}

/// `normal`, `json`, `json+`.
fn format(text: &str) -> Result<Format, String> {
    match text {
        "normal" => Ok(Format::Normal),
        "json" => Ok(Format::Json),
        "json+" => Ok(Format::JsonPlus),
        "terse" => Err("is fio's and not supported here (normal, json and json+ are)".to_owned()),
        _ if text.contains(',') => {
            Err("several formats at once are fio's and not supported here".to_owned())
        }
        _ => Err("is none of normal, json, json+".to_owned()),
    }
}

/// `OPTION=VALUE,VALUE`.
fn axis(text: &str) -> Result<Axis, String> {
    let (option, values) = text.split_once('=').ok_or("is not OPTION=VALUE,VALUE,...")?;
    let Found::Known(known) = find(option.trim()) else {
        return Err(format!("{option} is not an option of jobs"));
    };
    Ok(Axis { option: known.name.to_owned(), values: lists::values(values)? })
}
