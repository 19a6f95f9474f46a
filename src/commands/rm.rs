//! `hakobu rm`: coreutils' command line on the parallel remover.

mod asking;
mod objects;
mod parallel;
mod tops;

use super::{refuse, tool};
use crate::effort::{Effort, Priority};
use crate::exit;
use crate::objects::{Asked, is_s3};
use crate::options::rm::TABLE;
use crate::options::{Given, Refused, Typed};
use crate::show::{Show, Wanted, confirmed};
use hakobu_transfer::error::{Cause, Class, Operation, Problem};
use hakobu_transfer::event::{Event, Listener};
use hakobu_transfer::run::Outcome;
use hakobu_transfer::unit::{Jobs, Kind, Totals};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

/// When to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    Never,
    /// Only before what is write-protected, and only where somebody can answer.
    Protected,
    Once,
    Always,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Plan {
    recursive: bool,
    empty_dirs: bool,
    /// What does not exist is no error.
    force: bool,
    ask: Ask,
    one_file_system: bool,
    preserve_root: bool,
    /// Nor tops that are mounted.
    preserve_mounts: bool,
    jobs: Jobs,
    verbose: bool,
    json: bool,
    priority: Priority,
    paths: Vec<OsString>,
}

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    match TABLE.parse(&arguments).and_then(|typed| what(&typed)) {
        Ok(What::Local(plan)) => remove(&plan).into(),
        Ok(What::Objects(plan)) => objects::remove(*plan).into(),
        Err(refused) => refuse(refused, exit::USAGE),
    }
}

/// What is removed.
enum What {
    Local(Plan),
    Objects(Box<objects::Plan>),
}

/// Describes a removal of objects: its options and what they mean.
///
/// # Errors
/// What is wrong with the command line.
pub fn described(arguments: &[OsString]) -> Result<(Vec<Given>, objects::Plan), Refused> {
    let typed = TABLE.parse(arguments)?;
    let plan = objects::plan(&typed).map_err(Refused::Usage)?;
    Ok((typed.options, plan))
}

fn what(typed: &Typed) -> Result<What, Refused> {
    let stored = typed.paths.iter().filter(|path| is_s3(path)).count();
    if stored == 0 {
        return plan(typed).map(What::Local);
    }
    if stored < typed.paths.len() {
        return Err(Refused::Usage("paths are either all local or all in s3://".into()));
    }
    let planned = objects::plan(typed).map_err(Refused::Usage)?;
    Ok(What::Objects(Box::new(planned)))
}

fn plan(typed: &Typed) -> Result<Plan, Refused> {
    let mut plan = Plan {
        recursive: false,
        empty_dirs: false,
        force: false,
        ask: Ask::Protected,
        one_file_system: false,
        preserve_root: true,
        preserve_mounts: false,
        jobs: Jobs::Auto,
        verbose: false,
        json: false,
        priority: Priority::default(),
        paths: typed.paths.clone(),
    };
    let (mut asked, mut effort) = (Asked::default(), Effort::default());
    for given in &typed.options {
        let taken = asked.take(given).and_then(|taken| Ok(taken || effort.take(given)?));
        if taken.map_err(Refused::Usage)? {
            continue;
        }
        match given.name {
            "dry-run" => {
                let message = "--dry-run is for s3:// locations, and none is given";
                return Err(Refused::Usage(message.into()));
            }
            "recursive" | "R" => plan.recursive = true,
            "dir" => plan.empty_dirs = true,
            "force" => (plan.force, plan.ask) = (true, Ask::Never),
            "i" => (plan.force, plan.ask) = (false, Ask::Always),
            "I" => (plan.force, plan.ask) = (false, Ask::Once),
            "interactive" => {
                plan.ask = match given.value.to_str() {
                    Some("" | "always" | "yes") => Ask::Always,
                    Some("once") => Ask::Once,
                    Some("never" | "no" | "none") => Ask::Never,
                    _ => {
                        let value = given.value.display();
                        return Err(Refused::Usage(format!(
                            "--interactive={value}: give never, once or always"
                        )));
                    }
                };
                plan.force = false;
            }
            "one-file-system" => plan.one_file_system = true,
            "preserve-root" => {
                plan.preserve_root = true;
                plan.preserve_mounts = match given.value.to_str() {
                    Some("") => false,
                    Some("all") => true,
                    _ => {
                        let value = given.value.display();
                        return Err(Refused::Usage(format!(
                            "--preserve-root={value}: 'all' is the only value"
                        )));
                    }
                };
            }
            "no-preserve-root" => (plan.preserve_root, plan.preserve_mounts) = (false, false),
            "verbose" => plan.verbose = true,
            "json" => plan.json = true,
            other => return Err(Refused::Usage(format!("--{other} is not known to rm"))),
        }
    }
    asked.only_with_objects(false).map_err(Refused::Usage)?;
    effort.operations_per_s_max(false).map_err(Refused::Usage)?;
    (plan.jobs, plan.priority) = (effort.jobs, effort.priority);
    if plan.paths.is_empty() && !plan.force {
        return Err(Refused::Usage("nothing to remove: give at least one path".into()));
    }
    Ok(plan)
}

/// Removes what the plan names; the exit code.
fn remove(plan: &Plan) -> u8 {
    let started = Instant::now();
    if let Err(message) = plan.priority.apply() {
        crate::show::output::message(&message);
        return exit::FAILURE;
    }
    let wanted = Wanted { command: "rm", json: plan.json, quiet: true, ..Wanted::default() };
    let show = match Show::new(wanted, Arc::default()) {
        Ok(show) => show,
        Err(message) => {
            crate::show::output::message(&message);
            return exit::FAILURE;
        }
    };
    if plan.ask == Ask::Once && (plan.recursive || plan.paths.len() > 3) {
        let count = plan.paths.len();
        let things = if count == 1 { "argument" } else { "arguments" };
        let how = if plan.recursive { " recursively" } else { "" };
        if !confirmed(&format!("hakobu rm: remove {count} {things}{how}? ")) {
            return exit::OK;
        }
    }
    let mut totals = Totals::default();
    let tops = tops::check(plan, &show, &mut totals);
    let limit = tool::open_files_max();
    let jobs = tool::workers(plan.jobs);
    match plan.ask {
        Ask::Always => asking::remove(plan, &tops, &show, &mut totals),
        _ => parallel::remove(plan, &tops, &show, (jobs, limit), &mut totals),
    }
    let code = if totals.failed > 0 { exit::FAILURE } else { exit::OK };
    let outcome = Outcome { totals, took: started.elapsed(), jobs, ..Outcome::default() };
    let complete = show.finish(&outcome, code);
    if complete { code } else { exit::FAILURE }
}

/// Tells that an entry is gone.
fn tell(plan: &Plan, show: &Show, path: &[u8], kind: Kind) {
    if !plan.verbose {
        return;
    }
    let mut out = Vec::with_capacity(64);
    if plan.json {
        tool::push_event("removed", path, kind, &mut out);
    } else {
        out.extend_from_slice(if kind == Kind::Dir { b"removed directory " } else { b"removed " });
        crate::show::escape::push_quoted(path, &mut out);
        out.push(b'\n');
    }
    show.print(&out);
}

/// Tells that an entry could not be removed.
fn fail(show: &Show, path: &[u8], operation: Operation, cause: Cause) {
    let target = Some(PathBuf::from(OsString::from_vec(path.to_vec())));
    let problem = Problem { operation, source: None, target, cause, class: Class::Partial };
    show.event(Event::Problem(&problem));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(line: &str) -> Result<Plan, String> {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        TABLE.parse(&arguments).and_then(|typed| plan(&typed)).map_err(|reason| match reason {
            Refused::Help(_) => "help".into(),
            Refused::Usage(message) | Refused::Failed { message, .. } => message,
        })
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
    fn what_makes_no_sense_is_refused() {
        for (line, start) in [
            ("", "nothing to remove"),
            ("-r", "nothing to remove"),
            ("--interactive=perhaps a", "--interactive=perhaps"),
            ("--preserve-root=some a", "--preserve-root=some"),
            ("-j x a", "-j 'x'"),
            ("--nosuch a", "unexpected argument"),
        ] {
            assert!(planned(line).unwrap_err().starts_with(start), "{line}");
        }
        assert!(planned("-f").is_ok());
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
