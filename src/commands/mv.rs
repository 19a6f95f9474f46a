//! `hakobu mv`: renames if possible, else copies, checks and removes.

mod objects;
mod options;

use super::operands::{Operands, operands, without_slashes};
use super::session::{Session, merge_outcomes, run_transfer};
use super::tool::{carry_out, end_with};
use crate::exit;
use crate::objects::Concerned;
use crate::options::{OptArg, Refused, Typed};
use crate::show::{Line, Wanted, ask};
use hakobu_core::error::{Cause, ErrorClass, Operation, Problem, quoted};
use hakobu_core::event::{Event, Listener};
use hakobu_sys::meta::identity;
use hakobu_transfer::location::{Location, Sources};
use hakobu_transfer::plan::mv::{Done, Existing, Moves, name_in, rename_or_copy};
use hakobu_transfer::policy::Policy;
use hakobu_transfer::run::{Layout, Outcome, Spec};
use options::Reading;
pub(super) use options::TABLE;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    carry_out(
        TABLE.parse(&arguments),
        |typed| work_of(&typed),
        |work| {
            Ok(match work {
                Work::Local(reading, places) => go(*reading, &places),
                Work::Objects(spec, wanted) => run_transfer(&spec, *wanted, exit::of_copy),
            })
        },
    )
}

/// Kind of work.
enum Work {
    /// Renames if possible.
    Local(Box<Reading>, Operands),
    /// One transfer that removes its sources.
    Objects(Box<Spec>, Box<Wanted>),
}

/// Describes a move with a store on a side: its options and its spec.
///
/// # Errors
/// An invalid command line.
pub fn described(arguments: &[OsString]) -> Result<(Vec<OptArg>, Spec, Wanted), Refused> {
    let typed = TABLE.parse(arguments)?;
    match work_of(&typed).map_err(Refused::Usage)? {
        Work::Objects(spec, wanted) => Ok((typed.options, *spec, *wanted)),
        Work::Local(..) => Err(Refused::Usage("neither side is in s3://".into())),
    }
}

fn work_of(typed: &Typed) -> Result<Work, String> {
    let (mut reading, places) = reading_of(typed)?;
    let concerned = Concerned::of(&places.sources, &places.target);
    reading.within = reading.limits.of_run(concerned.any())?;
    if concerned.any() {
        let target = places.target.local();
        let mut paths = places.sources.paths().iter().map(PathBuf::as_path).chain(target);
        if paths.any(|path| path.as_os_str() == "-") {
            let message = "'-' stands for standard input or output with cp only; a file of that \
                           name is ./-";
            return Err(message.to_owned());
        }
        TABLE.check_places(typed, true, concerned.target)?;
        let spec = objects::spec(&mut reading, &places, concerned)?;
        return Ok(Work::Objects(Box::new(spec), Box::new(reading.wanted)));
    }
    TABLE.check_places(typed, false, false)?;
    Ok(Work::Local(Box::new(reading), places))
}

fn reading_of(typed: &Typed) -> Result<(Reading, Operands), String> {
    let mut reading = TABLE.read(typed, Reading::default())?;
    let stripped;
    let paths = match reading.strips {
        false => &typed.paths,
        true => {
            stripped = without_slashes(&typed.paths, reading.target_dir.is_some());
            &stripped
        }
    };
    let places =
        operands(paths, Vec::new(), reading.target_dir.as_deref(), reading.no_target_dir, false)?;
    reading.finish()?;
    Ok((reading, places))
}

impl Reading {
    fn finish(&mut self) -> Result<(), String> {
        if !self.decided && std::io::stdin().is_terminal() {
            self.options.existing = Existing::AskIfReadOnly(ask("mv", "replace read-only"));
        }
        let keeps = matches!(self.options.existing, Existing::Keep);
        self.options.backup = std::mem::take(&mut self.backups).backup(keeps)?;
        let wanted = &mut self.wanted;
        wanted.links = std::mem::take(&mut self.links).links()?;
        (wanted.command, wanted.done) = ("mv", "moved");
        wanted.stat = self.objects.stat;
        (wanted.explain, wanted.priority) = (self.limits.explain, self.limits.priority);
        wanted.resume = "each file is whole, either where it was or where it goes; what is left \
                         to move can be moved with hakobu sync -aHAX --remove-source-files";
        wanted.line = match (self.verbose, wanted.json) {
            (false, _) => Line::None,
            (true, false) => Line::Arrow("copied"),
            (true, true) => Line::Json,
        };
        (wanted.problems, wanted.totals) = (self.verbose, wanted.progress == Some(true));
        Ok(())
    }

    fn spec(&self, from: &Path, to: &Path, policy: Policy) -> Spec {
        let sources = Sources::Paths(vec![from.to_owned()]);
        let layout = Layout::Cp { no_target_dir: true, target_is_dir: false, parents: false };
        Spec {
            items: self.wanted.items(),
            check_space: true,
            carried: Some(Arc::clone(&self.carried)),
            ..self.limits.spec(
                self.within,
                (sources, Location::Local(to.to_owned())),
                layout,
                policy,
            )
        }
    }
}

fn go(reading: Reading, places: &Operands) -> u8 {
    let target = places.target.as_typed();
    let into_dir = !reading.no_target_dir && target.is_dir();
    if places.is_dir && !into_dir {
        return end_with(exit::FAILURE, &format!("{} is not a directory", quoted(&target)));
    }
    let session = match Session::start(reading.wanted.clone(), exit::of_copy) {
        Ok(session) => session,
        Err(code) => return code,
    };
    let mut outcome = Outcome::default();
    let mut moves = Moves::new(places.sources.paths(), &target);
    for from in places.sources.paths() {
        let to = if into_dir { name_in(from, &target) } else { target.clone() };
        outcome = merge_outcomes(outcome, move_one(&reading, &session, from, &to, &mut moves));
        // A signal was the answer to a question.
        outcome.stopped |= outcome.totals.skipped > 0 && session.control.is_stopped();
        if outcome.stopped || outcome.fatal.is_some() {
            break;
        }
    }
    session.end(outcome)
}

/// Moves one entry.
fn move_one(
    reading: &Reading,
    session: &Session,
    from: &Path,
    to: &Path,
    moves: &mut Moves,
) -> Outcome {
    let mut outcome = Outcome::default();
    match rename_or_copy(from, to, &reading.options, moves) {
        Ok(Done::Renamed { identity, backup, warning }) => {
            moves.add(identity);
            if let Some(text) = warning {
                session.show.event(Event::Warning(text));
            }
            session.show.renamed(from, to, backup.as_deref());
            outcome.totals.files = 1;
        }
        Ok(Done::Left) => outcome.totals.skipped = 1,
        Ok(Done::OtherVolume(policy)) => {
            outcome = session.run(&reading.spec(from, to, *policy));
            if outcome.totals.failed == 0
                && let Ok(there) = identity(to)
            {
                moves.add(there);
            }
            // A move whose source still exists did not happen, whatever the engine reports.
            if outcome.totals.failed == 0
                && outcome.totals.vanished == 0
                && !outcome.stopped
                && outcome.fatal.is_none()
                && from.symlink_metadata().is_ok()
            {
                session.show.event(Event::Problem(&Problem {
                    operation: Operation::Move,
                    source: Some(from.to_owned()),
                    target: Some(to.to_owned()),
                    cause: Cause::Reason("it was copied, but the source is still there"),
                    class: ErrorClass::Partial,
                }));
                outcome.totals.failed += 1;
            }
        }
        Err(problem) => {
            session.show.event(Event::Problem(&problem));
            outcome.totals.failed = 1;
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Reading, String> {
        let typed = TABLE.parse_line(line)?;
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
        let suffix = |line| {
            let backup = read(line).map(|reading| reading.options.backup).unwrap_or_default();
            backup.map(|backup| backup.suffix)
        };
        assert_eq!(suffix("--backup=simple a b"), Some(b"~".to_vec()));
        assert_eq!(suffix("-S .old a b"), Some(b".old".to_vec()));
        assert_eq!(suffix("a b"), None);
        assert_eq!(suffix("-b --backup=none a b"), None);
        assert_eq!(read("-bn a b").err().as_deref(), Some("-b and -n cannot be used together"));
        assert!(read("-b --suffix=a/b a b").is_err());
    }
    #[test]
    fn file_options_are_refused_with_objects() {
        let refused = |line: &str| work_of(&TABLE.parse_line(line).unwrap()).err();
        assert_eq!(refused("-f a s3://abc/b"), None);
        let message = refused("-b a s3://abc/b");
        assert_eq!(message.as_deref(), Some("-b is not supported for s3://"));
        let message = refused("--dry-run a b");
        let expected = "--dry-run is for s3:// locations, and none is given";
        assert_eq!(message.as_deref(), Some(expected));
    }
}
