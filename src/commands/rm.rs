//! `hakobu rm`: coreutils' command line on the parallel remover.

mod asking;
mod objects;
mod options;
mod parallel;
mod report;
mod tops;

use super::tool::carry_out;
use crate::exit;
use crate::filters::{ArgumentFilters, Filters};
use crate::objects::are_s3;
use crate::options::{OptArg, Refused, Typed};
use crate::show::{Show, Wanted, confirmed};
use hakobu_core::unit::Totals;
use hakobu_transfer::run::Outcome;
pub(super) use options::TABLE;
use options::{Ask, Plan};
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    carry_out(
        TABLE.parse(&arguments),
        |typed| what(&typed),
        |what| match what {
            What::Local(plan) => remove(&plan),
            What::Objects(plan) => Ok(objects::remove(*plan)),
        },
    )
}

/// Kind of locations.
enum What {
    Local(Box<Plan>),
    Objects(Box<objects::Plan>),
}

/// Describes a removal of objects: its options and its plan.
///
/// # Errors
/// An invalid command line.
pub fn described(arguments: &[OsString]) -> Result<(Vec<OptArg>, objects::Plan), Refused> {
    let typed = TABLE.parse(arguments)?;
    let plan = objects::plan(&typed).map_err(Refused::Usage)?;
    Ok((typed.options, plan))
}

fn what(typed: &Typed) -> Result<What, String> {
    if !are_s3(&typed.paths)? {
        return plan(typed).map(|plan| What::Local(Box::new(plan)));
    }
    let planned = objects::plan(typed)?;
    Ok(What::Objects(Box::new(planned)))
}

/// Refuses rules of which one changes nothing: more would be removed than was meant.
fn refuse_idle(filters: &Filters) -> Result<(), String> {
    match filters.note(true)? {
        Some(note) => Err(note.trim_start_matches("note: ").to_owned()),
        None => Ok(()),
    }
}

fn plan(typed: &Typed) -> Result<Plan, String> {
    let mut plan = TABLE.read(typed, Plan::new(false))?;
    TABLE.check_places(typed, false, false)?;
    plan.within = plan.limits.of_run(false)?;
    plan.paths.clone_from(&typed.paths);
    if plan.paths.is_empty() && !plan.force {
        return Err("nothing to remove: give at least one path".into());
    }
    if plan.keep_dirs && plan.empty_dirs && !plan.recursive {
        return Err("-d and --keep-dirs contradict each other".into());
    }
    if plan.dry_run {
        plan.ask = Ask::Never;
    }
    refuse_idle(&plan.filters)?;
    if let Some(filter) = plan.filters.of_names()? {
        plan.kept = ArgumentFilters::new(&filter, &plan.paths)?;
    }
    Ok(plan)
}

/// Removes the arguments of a plan; returns the exit code.
fn remove(plan: &Plan) -> Result<u8, String> {
    let started = Instant::now();
    plan.limits.priority.apply()?;
    let (json, problems, dry_run) = (plan.json, plan.tells(), plan.dry_run);
    // With a line or a question for each entry no bar is needed.
    let progress = (plan.tells() || plan.ask == Ask::Always).then_some(false);
    let wanted = Wanted {
        command: "rm",
        json,
        problems,
        progress,
        dry_run,
        quiet: true,
        ..Wanted::default()
    };
    let show = Show::new(wanted, Arc::default())?;
    if plan.ask == Ask::Once && (plan.recursive || plan.paths.len() > 3) {
        let count = plan.paths.len();
        let things = if count == 1 { "argument" } else { "arguments" };
        let how = if plan.recursive { " recursively" } else { "" };
        if !confirmed(&format!("hakobu rm: remove {count} {things}{how}? ")) {
            return Ok(exit::OK);
        }
    }
    let mut totals = Totals::default();
    let tops = tops::check(plan, &show, &mut totals);
    let jobs = match plan.ask {
        Ask::Always => {
            asking::remove(plan, &tops, &show, &mut totals);
            1
        }
        _ => parallel::remove(plan, &tops, &show, &mut totals),
    };
    let code = if totals.failed > 0 { exit::FAILURE } else { exit::OK };
    let outcome = Outcome { totals, took: started.elapsed(), jobs, ..Outcome::default() };
    let complete = show.finish(&outcome, code);
    Ok(if complete { code } else { exit::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Refused;

    fn planned(line: &str) -> Result<Plan, String> {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        TABLE.parse(&arguments).and_then(|typed| plan(&typed).map_err(Refused::Usage)).map_err(
            |reason| match reason {
                Refused::Help(_) => "help".into(),
                Refused::Usage(message) | Refused::Failed { message, .. } => message,
            },
        )
    }

    #[test]
    fn the_last_one_says_when_to_ask() {
        for (line, ask, force) in [
            ("a", Ask::Protected, false),
            ("-f a", Ask::Never, true),
            ("-i -f a", Ask::Never, true),
            ("-fi a", Ask::Always, false),
            ("-fI a", Ask::Once, false),
            ("--interactive a", Ask::Always, false),
            ("-i --interactive=never a", Ask::Never, false),
            ("-f --interactive=once a", Ask::Once, false),
        ] {
            let plan = planned(line).unwrap();
            assert_eq!((plan.ask, plan.force), (ask, force), "{line}");
        }
    }

    #[test]
    fn invalid_values_are_refused() {
        for (line, start) in [
            ("", "nothing to remove"),
            ("-r", "nothing to remove"),
            ("--interactive=perhaps a", "--interactive=perhaps"),
            ("--preserve-root=some a", "--preserve-root=some"),
            ("-j x a", "-j 'x'"),
            ("--nosuch a", "unexpected argument"),
            ("-d --keep-dirs a", "-d and --keep-dirs"),
            ("-r --include=*.txt a", "--include '*.txt' changes nothing"),
            ("-r --filter=nosuch a", ""),
            ("-r --filter=:_.rules a", "per-directory filter files"),
        ] {
            assert!(planned(line).unwrap_err().starts_with(start), "{line}");
        }
        assert!(planned("-f").is_ok());
        assert!(planned("-r --include=*.txt --exclude=* a").is_ok());
        assert!(planned("-rd --keep-dirs --filter-style=aws --exclude=x a").is_ok());
    }

    #[test]
    fn the_root_is_safe_unless_told_otherwise() {
        let roots = |line| planned(line).map(|plan| (plan.preserve_root, plan.preserve_mounts));
        assert_eq!(roots("-r a"), Ok((true, false)));
        assert_eq!(roots("-r --no-preserve-root a"), Ok((false, false)));
        assert_eq!(roots("-r --no-preserve-root --preserve-root a"), Ok((true, false)));
        assert_eq!(roots("-r --preserve-root=all a"), Ok((true, true)));
    }
}
