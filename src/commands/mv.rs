//! `hakobu mv`: renames where that is possible, else copies, checks and removes.

mod objects;

use super::{Places, Session, joined, nothing, places, refuse, run_transfer};
use crate::effort::Effort;
use crate::exit;
use crate::objects::{Asked, Concerned};
use crate::options::{Given, Refused, Typed, mv::TABLE};
use crate::show::{Line, Wanted, ask, output};
use hakobu_transfer::error::{Cause, Class, Operation, Problem, quoted};
use hakobu_transfer::event::{Event, Listener};
use hakobu_transfer::plan::mv::{Done, Existing, Options, name_in, rename_or_copy};
use hakobu_transfer::policy::Policy;
use hakobu_transfer::run::{Layout, Outcome, Spec};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let typed = TABLE.parse(&arguments);
    match typed.and_then(|typed| work_of(&typed).map_err(Refused::Usage)) {
        Ok(Work::Local(reading, places)) => go(*reading, &places).into(),
        Ok(Work::Objects(spec, wanted)) => run_transfer(&spec, *wanted, exit::of_copy).into(),
        Err(refused) => refuse(refused, exit::USAGE),
    }
}

/// What is to be done.
enum Work {
    /// Renames, where that is possible.
    Local(Box<Reading>, Places),
    /// One transfer that removes its sources.
    Objects(Box<Spec>, Box<Wanted>),
}

/// Describes a move with a store on a side: its options and what they mean.
///
/// # Errors
/// What is wrong with the command line.
pub fn described(arguments: &[OsString]) -> Result<(Vec<Given>, Spec, Wanted), Refused> {
    let typed = TABLE.parse(arguments)?;
    match work_of(&typed).map_err(Refused::Usage)? {
        Work::Objects(spec, wanted) => Ok((typed.options, *spec, *wanted)),
        Work::Local(..) => Err(Refused::Usage("neither side is in s3://".into())),
    }
}

fn work_of(typed: &Typed) -> Result<Work, String> {
    let (mut reading, places) = reading_of(typed)?;
    let concerned = Concerned::of(&places.sources, &places.target)?;
    reading.operations_per_s_max = reading.effort.operations_per_s_max(concerned.any())?;
    if concerned.any() {
        let spec = objects::spec(&mut reading, &places, concerned, &typed.options)?;
        return Ok(Work::Objects(Box::new(spec), Box::new(reading.wanted)));
    }
    reading.objects.only_with_objects(false)?;
    if reading.dry_run {
        return Err("--dry-run is for s3:// locations, and none is given".into());
    }
    Ok(Work::Local(Box::new(reading), places))
}

/// What the options have said.
#[derive(Default)]
struct Reading {
    options: Options,
    wanted: Wanted,
    backup: bool,
    suffix: Option<Vec<u8>>,
    /// One of `-n`, `-f`, `-i` was given.
    decided: bool,
    no_target_dir: bool,
    target_dir: Option<OsString>,
    effort: Effort,
    operations_per_s_max: Option<u64>,
    verbose: bool,
    dry_run: bool,
    objects: Asked,
}

fn reading_of(typed: &Typed) -> Result<(Reading, Places), String> {
    let mut reading = Reading::default();
    for given in &typed.options {
        reading.take(given)?;
    }
    let paths = typed.paths.iter().map(PathBuf::from).collect();
    let places =
        places(paths, Vec::new(), reading.target_dir.as_deref(), reading.no_target_dir, false)?;
    reading.finish()?;
    Ok((reading, places))
}

impl Reading {
    fn take(&mut self, given: &Given) -> Result<(), String> {
        if self.objects.take(given)? || self.effort.take(given)? {
            return Ok(());
        }
        let wrong = |why: &str| format!("--{}={} {why}", given.name, given.value.display());
        let mut decide = |existing| (self.options.existing, self.decided) = (existing, true);
        match given.name {
            "no-clobber" => decide(Existing::Keep),
            "force" => decide(Existing::Replace),
            "interactive" => decide(Existing::Ask(ask("mv", "overwrite"))),
            "update" => match given.value.to_str() {
                Some("" | "older") => self.options.update = true,
                _ => return Err(wrong("is not built")),
            },
            "b" => self.backup = true,
            "suffix" => {
                (self.backup, self.suffix) = (true, Some(given.value.as_bytes().to_vec()));
            }
            "target-directory" => self.target_dir = Some(given.value.clone()),
            "no-target-directory" => self.no_target_dir = true,
            "joblog" => self.wanted.joblog = Some(given.value.clone()),
            // Directories are moved with all that is in them anyway.
            "recursive" => {}
            "dry-run" => self.dry_run = true,
            "verbose" => self.verbose = true,
            "progress" => self.wanted.progress = true,
            "json" => self.wanted.json = true,
            name => return Err(format!("--{name} is not built")),
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), String> {
        if !self.decided && std::io::stdin().is_terminal() {
            self.options.existing = Existing::AskIfReadOnly(ask("mv", "replace read-only"));
        }
        if self.backup {
            if matches!(self.options.existing, Existing::Keep) {
                return Err("-b and -n cannot be used together".into());
            }
            let suffix = self.suffix.take().unwrap_or_else(|| b"~".to_vec());
            if suffix.is_empty() || suffix.contains(&b'/') {
                return Err("a suffix is not empty and has no slash".into());
            }
            self.options.backup = Some(suffix);
        }
        let wanted = &mut self.wanted;
        (wanted.command, wanted.done) = ("mv", "moved");
        wanted.stat = self.objects.stat;
        (wanted.explain, wanted.priority) = (self.effort.explain, self.effort.priority);
        wanted.resume = "each file is whole, either where it was or where it goes; what is left \
                         to move can be moved with hakobu sync -aHAX --remove-source-files";
        wanted.line = match (self.verbose, wanted.json) {
            (false, _) => Line::None,
            (true, false) => Line::Arrow("copied"),
            (true, true) => Line::Json,
        };
        (wanted.problems, wanted.totals) = (self.verbose, wanted.progress);
        Ok(())
    }

    fn spec(&self, from: &Path, to: &Path, policy: Policy) -> Spec {
        Spec {
            sources: vec![from.to_owned()],
            target: to.to_owned(),
            layout: Layout::Cp { no_target_dir: true, target_is_dir: false, parents: false },
            files_from: None,
            policy,
            jobs: self.effort.jobs,
            bytes_per_s_max: self.effort.bytes_per_s_max,
            operations_per_s_max: self.operations_per_s_max,
            memory_bytes_max: self.effort.memory_bytes_max,
            remember: self.effort.remember,
            prove: self.effort.prove,
            items: self.wanted.items(),
            items_unchanged: false,
            mkpath: false,
            check_space: true,
            objects: Default::default(),
        }
    }
}

fn go(reading: Reading, places: &Places) -> u8 {
    let into_dir = !reading.no_target_dir && places.target.is_dir();
    if places.is_dir && !into_dir {
        output::message(&format!("{} is not a directory", quoted(&places.target)));
        return exit::FAILURE;
    }
    let session = match Session::start(reading.wanted.clone(), exit::of_copy) {
        Ok(session) => session,
        Err(code) => return code,
    };
    let mut outcome = nothing();
    for from in &places.sources {
        let to = if into_dir { name_in(from, &places.target) } else { places.target.clone() };
        outcome = joined(outcome, move_one(&reading, &session, from, &to));
        if outcome.stopped || outcome.fatal.is_some() {
            break;
        }
    }
    session.end(outcome)
}

fn move_one(reading: &Reading, session: &Session, from: &Path, to: &Path) -> Outcome {
    let mut outcome = nothing();
    match rename_or_copy(from, to, &reading.options) {
        Ok(Done::Renamed { backup }) => {
            session.show.renamed(from, to, backup.as_deref());
            outcome.totals.files = 1;
        }
        Ok(Done::Left) => outcome.totals.skipped = 1,
        Ok(Done::OtherVolume(policy)) => {
            outcome = session.run(&reading.spec(from, to, *policy));
            // Whatever the engine says, a move whose source is still there did not happen.
            if outcome.totals.failed == 0
                && outcome.totals.vanished == 0
                && !outcome.stopped
                && outcome.fatal.is_none()
                && from.symlink_metadata().is_ok()
            {
                let cause = Cause::Reason("it was copied, but the source is still there");
                fail(session, from, to, cause, &mut outcome);
            }
        }
        Err(problem) => {
            session.show.event(Event::Problem(&problem));
            outcome.totals.failed = 1;
        }
    }
    outcome
}

fn fail(session: &Session, from: &Path, to: &Path, cause: Cause, outcome: &mut Outcome) {
    session.show.event(Event::Problem(&Problem {
        operation: Operation::Move,
        source: Some(from.to_owned()),
        target: Some(to.to_owned()),
        cause,
        class: Class::Partial,
    }));
    outcome.totals.failed += 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Reading, String> {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let typed = TABLE.parse(&arguments).map_err(|refused| format!("{refused:?}"))?;
        reading_of(&typed).map(|(reading, _)| reading)
    }

    #[test]
    fn the_last_of_three_counts() {
        for (line, expected) in [
            ("-n a b", "keep"),
            ("-n -f a b", "replace"),
            ("-f -i a b", "ask"),
            ("-nfi -n a b", "keep"),
        ] {
            let existing = match read(line).map(|reading| reading.options.existing) {
                Ok(Existing::Keep) => "keep",
                Ok(Existing::Replace) => "replace",
                Ok(Existing::Ask(_)) => "ask",
                Ok(Existing::AskIfReadOnly(_)) => "ask if read-only",
                Err(_) => "error",
            };
            assert_eq!(existing, expected, "{line}");
        }
    }

    #[test]
    fn backups() {
        let suffix = |line| read(line).map(|reading| reading.options.backup).unwrap_or_default();
        assert_eq!(suffix("-b a b"), Some(b"~".to_vec()));
        assert_eq!(suffix("-S .old a b"), Some(b".old".to_vec()));
        assert_eq!(suffix("a b"), None);
        assert_eq!(read("-bn a b").err().as_deref(), Some("-b and -n cannot be used together"));
        assert!(read("-b --suffix=a/b a b").is_err());
    }
}
