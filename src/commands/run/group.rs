//! Lines that can be merged: the same command with the same options, on the same sides.

use crate::cli::{OptArg, Refused};
use crate::commands::run::{RunOptions, RunState};
use crate::commands::{cp, mv, rm};
use crate::exit;
use crate::objects::Concerned;
use crate::show::escape::Escape;
use crate::show::{Show, ShowOptions, output, problems};
use hakobu_core::error::ErrorClass;
use hakobu_core::event::{Event, Listener};
use hakobu_core::unit::Jobs;
use hakobu_transfer::location::s3_path;
use hakobu_transfer::run::{
    Keys, Outcome, Removal, RemovalTarget, Spec, Together, remove_objects, transfer_each,
};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// A line that runs as a process.
pub struct OtherLine {
    /// Line number, from 1.
    pub number: usize,
    /// Its command.
    pub command: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

#[derive(PartialEq, Eq)]
struct Key {
    command: OsString,
    options: Vec<OptArg>,
    concerned: Concerned,
}

enum GroupWork {
    Transfers(Vec<Spec>),
    Removal(Box<Removal>),
}

/// Lines that are merged.
pub struct LineGroup {
    key: Key,
    wanted: ShowOptions,
    work: GroupWork,
    /// The line of each transfer, or of each removal.
    numbers: Vec<usize>,
}

/// All lines read, grouped.
#[derive(Default)]
pub struct LineGroups {
    groups: Vec<LineGroup>,
    /// Lines that belong to no group.
    pub others: Vec<OtherLine>,
    /// Folders to be removed at the end, with the numbers of their lines.
    pub folders: Vec<(usize, OsString)>,
}

impl LineGroups {
    /// Takes the groups, removals last.
    pub fn take(self) -> Vec<LineGroup> {
        let mut groups = self.groups;
        groups.sort_by_key(|group| matches!(group.work, GroupWork::Removal(_)));
        groups
    }

    /// Adds a line that removes an empty folder.
    pub fn remove_folder(&mut self, number: usize, folder: OsString) {
        self.folders.push((number, folder));
    }

    /// Adds a line.
    ///
    /// # Errors
    /// The mistake in it.
    pub fn add(
        &mut self,
        number: usize,
        command: &OsStr,
        arguments: Vec<OsString>,
        stored: bool,
    ) -> Result<(), String> {
        let name = command.to_string_lossy();
        let described = if stored { parse_line(&name, &arguments)? } else { None };
        let command = command.to_owned();
        let Some((options, concerned, wanted, work)) = described else {
            self.others.push(OtherLine { number, command, arguments });
            return Ok(());
        };
        let added = match &work {
            GroupWork::Transfers(specs) => specs.len(),
            GroupWork::Removal(removal) => removal.targets.len(),
        };
        let numbers = vec![number; added];
        let key = Key { command, options, concerned };
        match self.groups.iter_mut().find(|group| group.key == key) {
            Some(group) => {
                group.numbers.extend(numbers);
                match (&mut group.work, work) {
                    (GroupWork::Transfers(specs), GroupWork::Transfers(more)) => specs.extend(more),
                    (GroupWork::Removal(all), GroupWork::Removal(more)) => {
                        all.targets.extend(more.targets)
                    }
                    // A command does either.
                    _ => {}
                }
            }
            None => self.groups.push(LineGroup { key, wanted, work, numbers }),
        }
        Ok(())
    }
}

/// Options, sides in S3, output and work of a line that can be merged.
type ObjectLine = (Vec<OptArg>, Concerned, ShowOptions, GroupWork);

/// Describes a line with a store on a side; `None` if it runs as a process.
fn parse_line(command: &str, arguments: &[OsString]) -> Result<Option<ObjectLine>, String> {
    let (options, spec, wanted) = match command {
        "rm" => {
            let (options, plan) = rm::parse_objects(arguments).map_err(message_of)?;
            of_the_process(&options)?;
            return Ok(plan.together().map(|(mut removal, wanted)| {
                // A missing key counts as removed, as in s5cmd; a wildcard must match.
                let is_key = |target: &RemovalTarget| matches!(target.keys, Keys::One(_));
                removal.must_exist &= !removal.targets.iter().all(is_key);
                let concerned = Concerned { source: false, target: true };
                (options, concerned, wanted, GroupWork::Removal(Box::new(removal)))
            }));
        }
        "cp" => match cp::parse_work(arguments).map_err(message_of)? {
            cp::CpWork::Copy(options, spec, wanted) => (options, *spec, *wanted),
            cp::CpWork::Stream(cp::Dash::Out(_)) => return Ok(None),
            cp::CpWork::Stream(cp::Dash::In(_)) => {
                return Err("'-': a line of a file has no standard input".to_owned());
            }
        },
        "mv" => mv::parse_objects(arguments).map_err(message_of)?,
        _ => return Ok(None),
    };
    of_the_process(&options)?;
    let concerned = Concerned::of(&spec.sources, &spec.target);
    Ok(Some((options, concerned, wanted, GroupWork::Transfers(vec![spec]))))
}

/// Rejects options that apply to the whole process.
fn of_the_process(options: &[OptArg]) -> Result<(), String> {
    match options.iter().find(|arg| matches!(arg.name, "nice" | "ionice")) {
        Some(arg) => Err(format!("--{0} is for all lines: give it to hakobu run", arg.name)),
        None => Ok(()),
    }
}

fn message_of(refused: Refused) -> String {
    match refused {
        Refused::Help(_) => "--help is none of a line's options".into(),
        Refused::Usage(message) | Refused::Failed { message, .. } => message,
    }
}

impl LineGroup {
    /// Returns the transfers of the group.
    pub fn specs(&self) -> &[Spec] {
        match &self.work {
            GroupWork::Transfers(specs) => specs,
            GroupWork::Removal(_) => &[],
        }
    }

    /// Runs the group, whose first transfer has this number in `together`; failures are reported with their lines.
    pub fn run(mut self, plan: &RunOptions, running: &RunState, together: (&Together, usize)) {
        let (quiet, problems) = (true, false);
        let targets = Vec::new();
        let wanted = ShowOptions { quiet, problems, targets, ..self.wanted.clone() };
        let show = match Show::new(wanted, Arc::clone(&running.control)) {
            Ok(show) => show,
            Err(message) => {
                output::message(&message);
                running.failed.store(true, std::sync::atomic::Ordering::Relaxed);
                return;
            }
        };
        let index = Index::of(&self);
        let listener = Numbered { show: &show, index, running, escape: Escape::of_locale() };
        let outcome = match &mut self.work {
            GroupWork::Transfers(specs) => {
                for spec in specs.iter_mut() {
                    spec.objects.options.exit_on_error |= plan.exit_on_error;
                    if plan.limits.base.jobs != Jobs::Auto {
                        spec.limits.jobs = plan.limits.base.jobs;
                    }
                }
                let refused = |at: usize, fatal: &hakobu_core::error::Fatal| {
                    running.fail(self.numbers.get(at).copied().unwrap_or(0), &fatal.message);
                };
                transfer_each(specs, together, &running.control, &listener, &refused)
            }
            GroupWork::Removal(removal) => {
                if plan.limits.base.jobs != Jobs::Auto {
                    removal.jobs = plan.limits.base.jobs;
                }
                remove_objects(removal, None, &running.control, &listener)
            }
        };
        let outcome = outcome.unwrap_or_else(|fatal| {
            // All lines failed for one reason.
            let number = self.numbers.first().copied().unwrap_or(0);
            running.fail(number, &fatal.message);
            Outcome::default()
        });
        let code = exit::of_copy(&outcome);
        if !show.finish(&outcome, code) || code != exit::OK {
            running.failed.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }
}

/// Maps names to lines.
struct Index {
    /// Exact names.
    exact: HashMap<Vec<u8>, usize>,
    /// Prefixes of names that a line does not contain literally, the longest first.
    beginnings: Vec<(Vec<u8>, usize)>,
}

impl Index {
    fn of(group: &LineGroup) -> Index {
        let mut index = Index { exact: HashMap::new(), beginnings: Vec::new() };
        match &group.work {
            GroupWork::Transfers(specs) => {
                for (spec, number) in specs.iter().zip(&group.numbers) {
                    for source in spec.sources.locations() {
                        index.add(source.as_typed().as_os_str().as_bytes(), *number);
                    }
                }
            }
            GroupWork::Removal(removal) => {
                for (target, number) in removal.targets.iter().zip(&group.numbers) {
                    let key = match &target.keys {
                        Keys::One(key) | Keys::Tree(key) | Keys::Below(key) => key,
                        Keys::Matching(pattern) => pattern.literal(),
                    };
                    index.add(s3_path(&target.bucket, &[key]).as_os_str().as_bytes(), *number);
                }
            }
        }
        index.beginnings.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        index
    }

    fn add(&mut self, name: &[u8], number: usize) {
        self.exact.entry(name.to_vec()).or_insert(number);
        let wild = name.iter().position(|byte| matches!(byte, b'*' | b'?'));
        self.beginnings.push((name[..wild.unwrap_or(name.len())].to_vec(), number));
    }

    fn find(&self, name: &Path) -> Option<usize> {
        let name = name.as_os_str().as_bytes();
        let begins = || self.beginnings.iter().find(|(beginning, _)| name.starts_with(beginning));
        self.exact.get(name).copied().or_else(|| begins().map(|(_, number)| *number))
    }
}

/// Displays events, and failures with their line.
struct Numbered<'a> {
    show: &'a Show,
    index: Index,
    running: &'a RunState,
    escape: Escape,
}

impl Listener for Numbered<'_> {
    fn shows_totals(&self) -> bool {
        self.show.shows_totals()
    }

    fn event(&self, event: Event<'_>) {
        let Event::Problem(problem) = event else { return self.show.event(event) };
        let names = [problem.source.as_deref(), problem.target.as_deref()];
        let number = names.into_iter().flatten().find_map(|name| self.index.find(name));
        let sentence = problems::sentence(problem, self.escape);
        match (problem.class, number) {
            (ErrorClass::Notice, Some(number)) => {
                output::message(&format!("line {number}: {sentence}"));
            }
            (_, Some(number)) => {
                self.running.fail_text(number, &sentence);
                self.show.print_problem(problem, &sentence);
            }
            (_, None) => self.show.event(event),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(groups: &mut LineGroups, number: usize, line: &str) -> Result<(), String> {
        let mut words = line.split(' ').map(OsString::from);
        let command = words.next().unwrap();
        groups.add(number, &command, words.collect(), line.contains("s3://"))
    }

    #[test]
    fn similar_lines_are_grouped() {
        let mut groups = LineGroups::default();
        for (number, line) in [
            "cp a s3://abc/a",
            "rm s3://abc/x",
            "cp b s3://abc/b",
            "cp --acl=private c s3://abc/c",
            "cp s3://abc/d .",
            "rm s3://abc/y s3://abc/z",
            "ls s3://abc",
            "cp a b",
        ]
        .iter()
        .enumerate()
        {
            added(&mut groups, number + 1, line).unwrap();
        }
        let others: Vec<usize> = groups.others.iter().map(|other| other.number).collect();
        assert_eq!(others, [7, 8]);
        let numbers: Vec<Vec<usize>> =
            groups.take().into_iter().map(|group| group.numbers).collect();
        assert_eq!(numbers, [vec![1, 3], vec![4], vec![5], vec![2, 6, 6]]);
        assert!(added(&mut LineGroups::default(), 1, "cp --nonsense s3://abc/a b").is_err());
    }

    #[test]
    fn failures_find_their_lines() {
        let mut groups = LineGroups::default();
        added(&mut groups, 4, "cp s3://abc/a/* .").unwrap();
        added(&mut groups, 5, "cp s3://abc/a/b .").unwrap();
        added(&mut groups, 6, "cp s3://abc/a/b?c .").unwrap();
        let group = groups.take().remove(0);
        let index = Index::of(&group);
        for (name, line) in
            [("s3://abc/a/b", Some(5)), ("s3://abc/a/x/y", Some(4)), ("s3://other/a", None)]
        {
            assert_eq!(index.find(Path::new(name)), line, "{name}");
        }
    }
}
