//! `hakobu cluster work`: one worker.

use super::opened::{AGAIN, Invocation, NEVER, open, parse, unusable};
use super::prove;
use super::worker::{End, Job, one};
use crate::commands::line::told;
use crate::exit;
use crate::show::output;
use hakobu_cluster::comparing;
use hakobu_cluster::phase::Phase;
use std::ffi::OsString;

/// Runs the subcommand.
pub fn run(arguments: &[OsString]) -> Result<u8, u8> {
    let Invocation { args, run, .. } = parse("work", arguments, NEVER)?;
    let opened = open(&run, &args.settings()).map_err(unusable)?;
    let phase = match args.verify {
        false => Phase::Transfer,
        true => {
            comparing::refuse_unfit(&opened.spec).map_err(|fatal| told(NEVER, &fatal.message))?;
            prove::verification(&*opened.folder).map_err(unusable)?.0
        }
    };
    let job = Job {
        phase,
        stale: args.stale(),
        workers: args.workers.unwrap_or(1),
        command: "cluster work",
        at_once: AGAIN,
    };
    let done = one(opened, job).map_err(|message| told(NEVER, &message));
    let End { code, why, complete } = done?;
    if let Some(why) = why {
        output::message(&why);
    }
    Ok(if complete || code != exit::OK { code } else { AGAIN })
}
