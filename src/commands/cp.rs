//! `hakobu cp`: cp's command line on hakobu's engine.

mod dash;
mod options;
mod spec;

use super::session::{Session, merge_outcomes};
use super::tool::{carry_out, end_with};
use super::{cat, pipe};
use crate::exit;
use crate::options::{OptArg, Refused};
use crate::show::Wanted;
use hakobu_core::error::{Cause, ErrorClass, Operation, Problem};
use hakobu_core::event::{Event, Listener};
use hakobu_transfer::location::Sources;
use hakobu_transfer::policy::Symlinks;
use hakobu_transfer::run::{Outcome, Spec};
pub(super) use options::{
    NO_FOLLOW, PROGRESS, QUIET, SIZE_ONLY, STRIP, TABLE, UPDATE, Update, attributes, update_of,
};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

pub use dash::Dash;

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let typed = TABLE.parse(&arguments);
    match typed.as_ref().map_or(Ok(None), dash::of) {
        Ok(Some(Dash::Out(typed))) => cat::begin(Ok(typed)),
        Ok(Some(Dash::In(typed))) => pipe::begin(Ok(typed)),
        Ok(None) => {
            carry_out(typed, |typed| spec::of(&typed), |(spec, wanted)| Ok(copy(spec, wanted)))
        }
        Err(message) => end_with(exit::USAGE, &message).into(),
    }
}

/// Meaning of a command line of `cp` with a store on a side.
pub enum Described {
    /// One object and a standard stream.
    Stream(Dash),
    /// A copy: its options and its spec.
    Copy(Vec<OptArg>, Box<Spec>, Wanted),
}

/// Describes a copy with a store on a side.
///
/// # Errors
/// An invalid command line.
pub fn described(arguments: &[OsString]) -> Result<Described, Refused> {
    let typed = TABLE.parse(arguments)?;
    if let Some(stream) = dash::of(&typed).map_err(Refused::Usage)? {
        return Ok(Described::Stream(stream));
    }
    let (spec, wanted) = spec::of(&typed).map_err(Refused::Usage)?;
    Ok(Described::Copy(typed.options, Box::new(spec), wanted))
}

/// Copies. Without `-r` non-files are rejected first, which is a failure, unlike in rsync.
fn copy(mut spec: Spec, wanted: Wanted) -> u8 {
    let session = match Session::start(wanted, exit::of_copy) {
        Ok(session) => session,
        Err(code) => return code,
    };
    let mut before = Outcome::default();
    if let (false, Sources::Paths(paths)) = (spec.policy.recurse, &mut spec.sources) {
        let follow = spec.policy.symlinks == Symlinks::Follow || spec.policy.follow_args;
        paths.retain(|source| match needs_recursion(source, follow) {
            None => true,
            Some(reason) => {
                session.show.event(Event::Problem(&Problem {
                    operation: Operation::Read,
                    source: Some(source.clone()),
                    target: None,
                    cause: Cause::Reason(reason),
                    class: ErrorClass::Partial,
                }));
                before.totals.failed += 1;
                false
            }
        });
    }
    let outcome =
        if spec.sources.is_empty() { before } else { merge_outcomes(before, session.run(&spec)) };
    session.end(outcome)
}

/// Returns the reason that a source cannot be copied without `-r`. Errors are left to the engine.
fn needs_recursion(source: &Path, follow: bool) -> Option<&'static str> {
    let meta = if follow { source.metadata() } else { source.symlink_metadata() }.ok()?;
    let kind = meta.file_type();
    if kind.is_dir() {
        Some("it is a directory, and -r is not given")
    } else if kind.is_file() || kind.is_symlink() {
        None
    } else {
        Some("it is not a regular file, and -r is not given")
    }
}
