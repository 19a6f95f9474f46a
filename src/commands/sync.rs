//! `hakobu sync`: rsync's command line on hakobu's engine.

mod accepted;
mod info;
mod options;
pub(super) mod read;
mod reading;
mod spec;
mod values;
mod written;

use super::cluster;
use super::session::run_transfer;
use super::tool::refuse;
use crate::exit;
use crate::show::output;
pub(super) use options::TABLE;
use read::read;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    // As in rsync, -h only means help if it is alone.
    if arguments.len() == 1 && arguments[0] == "-h" {
        output::text(&TABLE.help());
        return exit::OK.into();
    }
    let code = match read(&arguments) {
        Ok((spec, wanted, args)) if args.is_alone() => run_transfer(&spec, wanted, exit::of_sync),
        Ok((spec, wanted, args)) => cluster::submit::sync_cluster(&arguments, spec, wanted, &args),
        Err(refused) => refuse(refused, exit::SYNC_USAGE),
    };
    code.into()
}
