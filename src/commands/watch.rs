//! `hakobu watch`: runs a command and records what it does to the machine, watches a running
//! process, or shows the machine.

pub(super) mod files;
mod live;
mod record;
mod summary;
mod view;

use super::refuse;
use crate::exit;
use crate::options::watch::TABLE;
use crate::options::{Given, Refused, Typed};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Seconds between samples that may be asked for. Below, the kernel's own counters are coarser.
const INTERVAL_S: std::ops::RangeInclusive<f64> = 0.01..=3600.0;
/// Between samples of a command.
const OF_COMMAND: Duration = Duration::from_millis(100);
/// Between pictures of the machine.
const OF_VIEW: Duration = Duration::from_secs(1);

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let typed = TABLE.parse(&arguments);
    match typed.and_then(|typed| plan(&arguments, typed).map_err(Refused::Usage)) {
        Ok(plan) => record::run(&plan).into(),
        Err(refused) => refuse(refused, exit::USAGE),
    }
}

/// What is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Subject {
    /// A command that is started: its name and arguments, at least the name.
    Command(Vec<OsString>),
    /// A process that runs.
    Pid(u32),
    /// The machine.
    Machine,
}

/// What the command line asks for.
#[derive(Debug)]
struct Plan {
    subject: Subject,
    interval: Duration,
    /// End after so many intervals.
    count: Option<u64>,
    live: bool,
    output: Option<PathBuf>,
    csv: Option<PathBuf>,
    json: Option<PathBuf>,
    svg: Option<PathBuf>,
}

fn plan(arguments: &[OsString], typed: Typed) -> Result<Plan, String> {
    // Without the two dashes an option of the command would be taken for one of ours.
    let after =
        arguments.iter().position(|word| word == "--").map_or(0, |at| arguments.len() - at - 1);
    if typed.paths.len() > after {
        let name = typed.paths.first().map(|name| name.to_string_lossy()).unwrap_or_default();
        return Err(format!("put -- before the command: hakobu watch [OPTIONS] -- {name} ..."));
    }
    let is_command = !typed.paths.is_empty();
    if !is_command && arguments.last().is_some_and(|word| word == "--") {
        return Err("give a command after --".into());
    }
    let subject = if is_command { Subject::Command(typed.paths) } else { Subject::Machine };
    let mut plan = Plan {
        subject,
        interval: OF_COMMAND,
        count: None,
        live: true,
        output: None,
        csv: None,
        json: None,
        svg: None,
    };
    let mut interval = None;
    for given in &typed.options {
        let path = || Some(PathBuf::from(&given.value));
        match given.name {
            "interval" => interval = Some(seconds(given)?),
            "count" => plan.count = Some(positive(given)?),
            "pid" if is_command => return Err("--pid does not go with a command".into()),
            "pid" => {
                let pid = u32::try_from(positive(given)?);
                plan.subject = Subject::Pid(pid.map_err(|_| wrong(given, "is no process"))?);
            }
            "no-live" => plan.live = false,
            "output" => plan.output = path(),
            "csv" => plan.csv = path(),
            "json" => plan.json = path(),
            "svg" => plan.svg = path(),
            other => return Err(format!("--{other} is not known to watch")),
        }
    }
    if is_command && plan.count.is_some() {
        return Err("--count does not go with a command: it is watched until it ends".into());
    }
    let usual = if plan.subject == Subject::Machine { OF_VIEW } else { OF_COMMAND };
    plan.interval = interval.unwrap_or(usual);
    Ok(plan)
}

fn seconds(given: &Given) -> Result<Duration, String> {
    let seconds: Option<f64> = given.value.to_str().and_then(|text| text.parse().ok());
    let seconds = seconds.filter(|seconds| INTERVAL_S.contains(seconds));
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| wrong(given, "give seconds between 0.01 and 3600"))
}

fn positive(given: &Given) -> Result<u64, String> {
    let number: Option<u64> = given.value.to_str().and_then(|text| text.parse().ok());
    number.filter(|n| *n > 0).ok_or_else(|| wrong(given, "is no number from 1 on"))
}

fn wrong(given: &Given, why: &str) -> String {
    format!("--{}={}: {why}", given.name, given.value.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Plan, String> {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let typed = TABLE.parse(&arguments).map_err(|refused| format!("{refused:?}"))?;
        plan(&arguments, typed)
    }

    #[test]
    fn usage() {
        for (line, said) in [
            ("ls", "put -- before the command: hakobu watch [OPTIONS] -- ls"),
            ("ls -- a", "put -- before the command"),
            ("--", "give a command after --"),
            ("-i 0 -- ls", "--interval=0: give seconds between 0.01 and 3600"),
            ("-i nan -- ls", "--interval=nan: give seconds"),
            ("-i -1", "--interval=-1: give seconds"),
            ("-c 0", "--count=0: is no number from 1 on"),
            ("-c 3 -- ls", "--count does not go with a command"),
            ("-p 1 -- ls", "--pid does not go with a command"),
            ("-p 99999999999", "--pid=99999999999: is no process"),
            ("-p x", "--pid=x: is no number"),
        ] {
            let message = read(line).err().unwrap_or_default();
            assert!(message.contains(said), "{line}: {message}");
        }
    }

    #[test]
    fn what_is_watched() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect();
        let plan = read("--csv a -i 0.5 -- ls -l -- --svg").unwrap();
        assert_eq!(plan.subject, Subject::Command(words("ls -l -- --svg")));
        assert_eq!((plan.interval, plan.svg), (Duration::from_millis(500), None));
        assert_eq!(read("-- ls").unwrap().interval, OF_COMMAND);
        assert_eq!(read("").unwrap().interval, OF_VIEW);
        let plan = read("-p 7 -c 2 --no-live").unwrap();
        assert_eq!((plan.subject, plan.count, plan.live), (Subject::Pid(7), Some(2), false));
    }
}
