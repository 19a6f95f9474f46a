//! What the command line of `bench` asks for.

use crate::options::{Given, Typed};
use hakobu_lab::campaign::Repeat;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// What is measured.
#[derive(Debug, PartialEq)]
pub enum What {
    /// These commands.
    Commands(Vec<String>),
    /// The campaign in this file.
    Campaign(PathBuf),
}

/// A parameter and its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    pub name: String,
    pub values: Vec<String>,
}

/// All of it.
#[derive(Debug)]
pub struct Asked {
    pub what: What,
    pub warmup: Option<u32>,
    pub runs: Option<u32>,
    pub min_runs: Option<u32>,
    pub max_runs: Option<u32>,
    pub budget: Option<Duration>,
    pub seed: Option<u64>,
    pub only: Option<String>,
    pub timeout: Option<Duration>,
    pub prove: bool,
    pub dry_run: bool,
    pub quiet: bool,
    pub no_color: bool,
    pub parameters: Vec<Parameter>,
    pub names: Vec<String>,
    pub setup: Option<String>,
    pub prepare: Vec<String>,
    pub conclude: Vec<String>,
    pub cleanup: Option<String>,
    /// The words of the shell; none: without one.
    pub shell: Vec<String>,
    pub ignore_failure: bool,
    pub input: Option<PathBuf>,
    pub cpus: Option<usize>,
    pub control: bool,
    pub scale: Option<f64>,
    pub places: BTreeMap<String, String>,
    pub work: Option<PathBuf>,
    pub cache: Option<PathBuf>,
    pub output: Option<PathBuf>,
    pub machine: Option<String>,
    pub export_json: Option<PathBuf>,
    pub export_csv: Option<PathBuf>,
    pub export_markdown: Option<PathBuf>,
}

/// Options that only commands have, and only campaigns.
const OF_COMMANDS: [&str; 14] = [
    "parameter-list",
    "parameter-scan",
    "parameter-step-size",
    "command-name",
    "setup",
    "prepare",
    "conclude",
    "cleanup",
    "shell",
    "no-shell",
    "ignore-failure",
    "input",
    "cpus",
    "no-control",
];
const OF_CAMPAIGNS: [&str; 4] = ["scale", "place", "work", "cache"];

/// Reads a command line.
pub fn asked(typed: &Typed) -> Result<Asked, String> {
    let what = what(typed)?;
    let mut asked = Asked::of(what);
    let mut step = None;
    let mut scans = Vec::new();
    for given in &typed.options {
        let path = || Some(PathBuf::from(&given.value));
        match (&asked.what, given.name) {
            (What::Campaign(_), name) if OF_COMMANDS.contains(&name) => {
                return Err(format!("--{name} goes with commands, not with a campaign"));
            }
            (What::Commands(_), name) if OF_CAMPAIGNS.contains(&name) => {
                return Err(format!("--{name} goes with a campaign, not with commands"));
            }
            _ => {}
        }
        match given.name {
            "warmup" => asked.warmup = Some(given.number()?),
            "runs" => asked.runs = Some(given.positive()?),
            "min-runs" => asked.min_runs = Some(given.positive()?),
            "max-runs" => asked.max_runs = Some(given.positive()?),
            "budget" => asked.budget = Some(given.duration("h", "90s, 10m or 1.5h")?),
            "seed" => asked.seed = Some(given.number()?),
            "only" => asked.only = Some(given.text()?.to_owned()),
            "timeout" => asked.timeout = Some(given.duration("h", "90s, 10m or 1.5h")?),
            "prove" => asked.prove = true,
            "dry-run" => asked.dry_run = true,
            "quiet" => asked.quiet = true,
            "no-color" => asked.no_color = true,
            "parameter-list" => asked.parameters.push(list(given)?),
            "parameter-scan" => scans.push(given),
            "parameter-step-size" => step = Some(given),
            "command-name" => asked.names.push(given.text()?.to_owned()),
            "setup" => asked.setup = Some(given.text()?.to_owned()),
            "prepare" => asked.prepare.push(given.text()?.to_owned()),
            "conclude" => asked.conclude.push(given.text()?.to_owned()),
            "cleanup" => asked.cleanup = Some(given.text()?.to_owned()),
            "shell" => asked.shell = shell(given)?,
            "no-shell" => asked.shell.clear(),
            "ignore-failure" => asked.ignore_failure = true,
            "input" => asked.input = path(),
            "cpus" => asked.cpus = Some(given.positive::<u32>()? as usize),
            "no-control" => asked.control = false,
            "scale" => asked.scale = Some(given.number()?),
            "place" => {
                let (name, place) =
                    given.text()?.split_once('=').ok_or_else(|| given.wrong("is not NAME=PATH"))?;
                asked.places.insert(name.to_owned(), place.to_owned());
            }
            "work" => asked.work = path(),
            "cache" => asked.cache = path(),
            "output" => asked.output = path(),
            "machine" => asked.machine = Some(given.text()?.to_owned()),
            "export-json" => asked.export_json = path(),
            "export-csv" => asked.export_csv = path(),
            "export-markdown" => asked.export_markdown = path(),
            other => return Err(format!("--{other} is not known to bench")),
        }
    }
    if let (Some(step), true) = (step, scans.is_empty()) {
        return Err(step.wrong("there is no --parameter-scan that it could belong to"));
    }
    for given in scans {
        asked.parameters.push(scan(given, step)?);
    }
    let mut names: Vec<&str> = asked.parameters.iter().map(|one| one.name.as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("the parameter '{}' is given twice", pair[0]));
    }
    if asked.runs.is_some() && (asked.min_runs.is_some() || asked.max_runs.is_some()) {
        return Err(
            "--runs says how many there are: it does not go with --min-runs or --max-runs".into()
        );
    }
    Ok(asked)
}

fn what(typed: &Typed) -> Result<What, String> {
    if let [one] = &typed.paths[..]
        && PathBuf::from(one).extension().is_some_and(|end| end == "toml")
    {
        return Ok(What::Campaign(one.into()));
    }
    let mut commands = Vec::new();
    for path in &typed.paths {
        let command = path.to_str().ok_or_else(|| format!("'{}' is no text", path.display()))?;
        if command.trim().is_empty() {
            return Err("a command is empty".into());
        }
        if command.ends_with(".toml") && !command.contains(' ') {
            return Err(format!("give one campaign: '{command}' stands beside others"));
        }
        commands.push(command.to_owned());
    }
    if commands.is_empty() {
        return Err("give commands, or a campaign (a file that ends in .toml)".into());
    }
    Ok(What::Commands(commands))
}

impl Asked {
    fn of(what: What) -> Asked {
        Asked {
            what,
            warmup: None,
            runs: None,
            min_runs: None,
            max_runs: None,
            budget: None,
            seed: None,
            only: None,
            timeout: None,
            prove: false,
            dry_run: false,
            quiet: false,
            no_color: false,
            parameters: Vec::new(),
            names: Vec::new(),
            setup: None,
            prepare: Vec::new(),
            conclude: Vec::new(),
            cleanup: None,
            shell: vec!["sh".into()],
            ignore_failure: false,
            input: None,
            cpus: None,
            control: true,
            scale: None,
            places: BTreeMap::new(),
            work: None,
            cache: None,
            output: None,
            machine: None,
            export_json: None,
            export_csv: None,
            export_markdown: None,
        }
    }

    /// Puts what was asked for in place of how often a plan would repeat.
    pub fn apply(&self, repeat: &mut Repeat) -> Result<(), String> {
        repeat.warmup = self.warmup.unwrap_or(repeat.warmup);
        repeat.seed = self.seed.unwrap_or(repeat.seed);
        repeat.budget = self.budget.or(repeat.budget);
        if let Some(runs) = self.runs {
            (repeat.min, repeat.max) = (runs, runs);
        }
        match (self.min_runs, self.max_runs) {
            (Some(min), Some(max)) if min > max => {
                return Err(format!("--min-runs={min} is more than --max-runs={max}"));
            }
            (min, max) => {
                repeat.min = min.unwrap_or(repeat.min).min(max.unwrap_or(u32::MAX));
                repeat.max = max.unwrap_or(repeat.max).max(repeat.min);
            }
        }
        Ok(())
    }
}

fn list(given: &Given) -> Result<Parameter, String> {
    let (name, values) = given.text()?.split_once('=').unwrap_or_default();
    let values: Vec<String> = values.split(',').map(str::to_owned).collect();
    Ok(Parameter { name: named(given, name)?, values })
}

/// All numbers from the least to the most.
fn scan(given: &Given, step: Option<&Given>) -> Result<Parameter, String> {
    let read = |given: &Given, text: &str| {
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        number.ok_or_else(|| given.wrong(&format!("'{text}' is no number")))
    };
    let words: Vec<&str> = given.text()?.splitn(3, '=').collect();
    let [name, min, max] = words[..] else { return Err(given.wrong("needs VAR MIN MAX")) };
    let digits = |text: &str| text.split_once('.').map_or(0, |(_, digits)| digits.len());
    let mut most_digits = digits(min).max(digits(max));
    let (min, max) = (read(given, min)?, read(given, max)?);
    let mut by = 1.0;
    if let Some(step) = step {
        by = read(step, step.text()?)?;
        most_digits = most_digits.max(digits(step.text()?));
    }
    if by <= 0.0 || min > max || (max - min) / by > 10_000.0 {
        return Err(given.wrong("is no range with a step that leads from MIN to MAX"));
    }
    // With some slack for steps that binary numbers do not have.
    let count = ((max - min) / by + 1e-9).floor() as u32;
    let values = (0..=count).map(|n| format!("{:.most_digits$}", min + f64::from(n) * by));
    Ok(Parameter { name: named(given, name)?, values: values.collect() })
}

fn named(given: &Given, name: &str) -> Result<String, String> {
    let is_name =
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    is_name.then(|| name.to_owned()).ok_or_else(|| given.wrong("VAR is no name"))
}

fn shell(given: &Given) -> Result<Vec<String>, String> {
    match given.text()? {
        "none" => Ok(Vec::new()),
        "default" => Ok(vec!["sh".into()]),
        words => {
            let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
            if words.is_empty() { Err(given.wrong("is no shell")) } else { Ok(words) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::bench::TABLE;
    use std::ffi::OsString;

    fn read(line: &[&str]) -> Result<Asked, String> {
        let arguments: Vec<OsString> = line.iter().map(OsString::from).collect();
        asked(&TABLE.parse(&arguments).map_err(|refused| format!("{refused:?}"))?)
    }

    #[test]
    fn usage() {
        for (line, said) in [
            ("", "give commands, or a campaign"),
            ("a.toml|b", "give one campaign: 'a.toml' stands beside others"),
            ("a| ", "a command is empty"),
            ("a.toml|-n|x", "--command-name goes with commands"),
            ("a|--scale=2", "--scale goes with a campaign"),
            ("a|-r|0", "--runs=0: must be at least 1"),
            ("a|-r|3|-m|2", "does not go with --min-runs"),
            ("a|-w|x", "--warmup=x: is no number"),
            ("a|--budget=7", "--budget=7: is not a duration"),
            ("a|-L|x y|1", "VAR is no name"),
            ("a|-L|x|1|-P|x|1|2", "the parameter 'x' is given twice"),
            ("a|-P|x|3|2", "is no range"),
            ("a|-P|x|1|2|-D|0", "is no range"),
            ("a|-D|2", "there is no --parameter-scan"),
            ("a.toml|--place|x", "--place=x: is not NAME=PATH"),
        ] {
            let words: Vec<&str> = line.split('|').filter(|word| !word.is_empty()).collect();
            let message = read(&words).err().unwrap_or_default();
            assert!(message.contains(said), "{line}: {message}");
        }
    }

    #[test]
    fn parameters() {
        let values = |line: &[&str]| -> Vec<String> {
            read(line).unwrap().parameters.into_iter().flat_map(|one| one.values).collect()
        };
        assert_eq!(values(&["-L", "jobs", "1,4,16", "a"]), ["1", "4", "16"]);
        assert_eq!(values(&["-P", "n", "-1", "2", "a"]), ["-1", "0", "1", "2"]);
        let steps = values(&["-P", "n", "0", "0.3", "-D", "0.1", "a"]);
        assert_eq!(steps, ["0.0", "0.1", "0.2", "0.3"]);
    }

    #[test]
    fn how_often() {
        let apply = |line: &[&str]| {
            let mut repeat = super::super::REPEAT;
            read(line)?.apply(&mut repeat)?;
            Ok::<_, String>((repeat.warmup, repeat.min, repeat.max))
        };
        assert_eq!(apply(&["a"]), Ok((0, 5, 20)));
        assert_eq!(apply(&["a", "-w", "2", "--repeat", "3"]), Ok((2, 3, 3)));
        assert_eq!(apply(&["a", "-m", "30"]), Ok((0, 30, 30)));
        assert_eq!(apply(&["a", "-M", "2"]), Ok((0, 2, 2)));
        assert_eq!(apply(&["a", "-m", "3", "-M", "9"]), Ok((0, 3, 9)));
        assert!(apply(&["a", "-m", "4", "-M", "2"]).unwrap_err().contains("more than --max-runs"));
    }
}
