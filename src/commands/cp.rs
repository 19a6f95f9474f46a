//! `hakobu cp`: cp's command line on hakobu's engine.

mod spec;

use super::{Session, joined, nothing, refuse};
use crate::exit;
use crate::objects::is_s3;
use crate::options::{Given, Refused, cp::TABLE};
use crate::show::Wanted;
use hakobu_transfer::error::{Cause, Class, Operation, Problem};
use hakobu_transfer::event::{Event, Listener};
use hakobu_transfer::policy::Symlinks;
use hakobu_transfer::run::Spec;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let typed = TABLE.parse(&arguments);
    match typed.and_then(|typed| spec::of(&typed).map_err(Refused::Usage)) {
        Ok((spec, wanted)) => copy(spec, wanted).into(),
        Err(refused) => refuse(refused, exit::USAGE),
    }
}

/// Describes a copy with a store on a side: its options and what they mean.
///
/// # Errors
/// What is wrong with the command line.
pub fn described(arguments: &[OsString]) -> Result<(Vec<Given>, Spec, Wanted), Refused> {
    let typed = TABLE.parse(arguments)?;
    let (spec, wanted) = spec::of(&typed).map_err(Refused::Usage)?;
    Ok((typed.options, spec, wanted))
}

/// Copies. Without `-r` what is no file is left out first, and that is a failure, unlike in rsync.
fn copy(mut spec: Spec, wanted: Wanted) -> u8 {
    let session = match Session::start(wanted, exit::of_copy) {
        Ok(session) => session,
        Err(code) => return code,
    };
    let mut before = nothing();
    if !spec.policy.recurse {
        let follow = spec.policy.symlinks == Symlinks::Follow || spec.policy.follow_args;
        spec.sources.retain(|source| match needs_recursion(source, follow) {
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

/// Why a source cannot be copied without `-r`. One that cannot be looked at, or not from here, is
/// left to the engine.
fn needs_recursion(source: &Path, follow: bool) -> Option<&'static str> {
    if is_s3(source) {
        return None;
    }
    let meta = if follow { source.metadata() } else { source.symlink_metadata() }.ok()?;
    let kind = meta.file_type();
    if kind.is_dir() {
        Some("it is a directory, and -r is not given")
    } else if kind.is_file() || kind.is_symlink() {
        None
    } else {
        Some("it is no regular file, and -r is not given")
    }
}
