//! `hakobu cp`: cp's command line on hakobu's engine.

mod dash;
mod options;
mod spec;

use super::line::{carry_out, refuse};
use super::session::{Session, joined, nothing};
use super::{cat, pipe};
use crate::exit;
use crate::options::{OptArg, Refused};
use crate::show::Wanted;
use hakobu_core::error::{Cause, Class, Operation, Problem};
use hakobu_core::event::{Event, Listener};
use hakobu_transfer::location::Sources;
use hakobu_transfer::policy::Symlinks;
use hakobu_transfer::run::Spec;
pub(super) use options::{NO_FOLLOW, QUIET, SIZE_ONLY, TABLE};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

pub use dash::Dash;

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    match streamed(&arguments) {
        Ok(Some(Dash::Out(typed))) => return cat::begin(Ok(typed)),
        Ok(Some(Dash::In(typed))) => return pipe::begin(Ok(typed)),
        Ok(None) => {}
        Err(refused) => return refuse(refused, exit::USAGE),
    }
    let of = |typed| spec::of(&typed);
    carry_out(TABLE.parse(&arguments), of, |(spec, wanted)| copy(spec, wanted))
}

/// Returns the standard stream that a command line pairs with an object, if there is one.
///
/// # Errors
/// An invalid command line.
pub fn streamed(arguments: &[OsString]) -> Result<Option<Dash>, Refused> {
    dash::of(&TABLE.parse(arguments)?).map_err(Refused::Usage)
}

/// Describes a copy with a store on a side: its options and its spec.
///
/// # Errors
/// An invalid command line.
pub fn described(arguments: &[OsString]) -> Result<(Vec<OptArg>, Spec, Wanted), Refused> {
    let typed = TABLE.parse(arguments)?;
    let (spec, wanted) = spec::of(&typed).map_err(Refused::Usage)?;
    Ok((typed.options, spec, wanted))
}

/// Copies. Without `-r` non-files are rejected first, which is a failure, unlike in rsync.
fn copy(mut spec: Spec, wanted: Wanted) -> u8 {
    let session = match Session::start(wanted, exit::of_copy) {
        Ok(session) => session,
        Err(code) => return code,
    };
    let mut before = nothing();
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
                    class: Class::Partial,
                }));
                before.totals.failed += 1;
                false
            }
        });
    }
    let outcome = if spec.sources.is_empty() { before } else { joined(before, session.run(&spec)) };
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
