//! `hakobu cluster work`: one worker.

use super::opened::{AGAIN, Invocation, NEVER, open, parse, unusable};
use super::prove;
use super::worker::{End, Job, one};
use crate::exit;
use crate::show::output;
use hakobu_cluster::phase::Phase;
use hakobu_cluster::{Trouble, comparing};
use std::ffi::OsString;

/// Runs the subcommand.
pub fn run(arguments: &[OsString]) -> u8 {
    let Invocation { args, run, .. } = match parse("work", arguments, NEVER) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let opened = match open(&run, &args.settings()) {
        Ok(opened) => opened,
        Err(why) => return unusable(why),
    };
    let phase = match args.verify {
        false => Ok(Phase::Transfer),
        true => match comparing::refuse_unfit(&opened.spec) {
            Ok(()) => prove::verification(&*opened.folder).map(|(phase, _)| phase),
            Err(fatal) => Err(Trouble::lasting(fatal.message)),
        },
    };
    let phase = match phase {
        Ok(phase) => phase,
        Err(why) => return unusable(why),
    };
    let job = Job {
        phase,
        stale: args.stale,
        workers: args.workers.unwrap_or(1),
        command: "cluster work",
        at_once: AGAIN,
    };
    let End { code, why, complete } = match one(opened, job) {
        Ok(end) => end,
        Err(message) => {
            output::message(&message);
            return NEVER;
        }
    };
    if let Some(why) = why {
        output::message(&why);
    }
    if complete || code != exit::OK { code } else { AGAIN }
}
