//! `hakobu watch`: runs a command and records its use of the machine, watches a running process, or shows the
//! machine.

mod live;
mod options;
mod record;
mod summary;
mod view;

use super::tool::carry_out;
use crate::options::Typed;
pub(super) use options::TABLE;
use options::{Plan, Subject};
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

/// Sampling interval of a command.
const OF_COMMAND: Duration = Duration::from_millis(100);
/// Refresh interval of the machine view.
const OF_VIEW: Duration = Duration::from_secs(1);

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let plan = |typed| plan(&arguments, typed);
    carry_out(TABLE.parse(&arguments), plan, |plan| record::run(&plan))
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
    let subject = if is_command { Subject::Command(typed.paths.clone()) } else { Subject::Machine };
    let plan = Plan { subject, live: true, ..Plan::default() };
    let mut plan = TABLE.read(&typed, plan)?;
    if plan.quiet {
        plan.live = false;
    }
    if is_command && plan.count.is_some() {
        return Err("--count does not go with a command: it is watched until it ends".into());
    }
    let usual = if plan.subject == Subject::Machine { OF_VIEW } else { OF_COMMAND };
    plan.interval = plan.every.unwrap_or(usual);
    Ok(plan)
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
            ("-c 0", "--count=0: is not a number of at least 1"),
            ("-c 3 -- ls", "--count does not go with a command"),
            ("-p 1 -- ls", "--pid does not go with a command"),
            ("-p 99999999999", "--pid=99999999999: is not a process"),
            ("-p x", "--pid=x: is not a number"),
        ] {
            let message = read(line).err().unwrap_or_default();
            assert!(message.contains(said), "{line}: {message}");
        }
    }

    #[test]
    fn watched_subjects() {
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
