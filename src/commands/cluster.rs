//! `hakobu cluster`: one transfer on many machines that an existing engine schedules.

mod collect;
mod ending;
mod kubernetes;
mod opened;
pub(super) mod options;
mod order;
mod plan;
mod prove;
mod slurm;
mod status;
mod submit;
pub(super) mod whole;
mod work;
mod worker;

use super::line::told;
use crate::exit;
use crate::show::output;
pub(super) use options::TABLE;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let (verb, rest) =
        arguments.split_first().map_or((None, &[][..]), |(v, rest)| (v.to_str(), rest));
    // An error is the exit code of an early end, whose message was printed.
    let subcommand: fn(&[OsString]) -> Result<u8, u8> = match verb.unwrap_or_default() {
        "plan" => plan::run,
        "work" => work::run,
        "status" => status::run,
        "collect" => collect::run,
        "submit" => submit::run,
        "--help" | "-h" => help,
        _ => {
            let message = "give plan, work, status, collect or submit (hakobu cluster --help)";
            return told(exit::USAGE, message).into();
        }
    };
    let asks_help = rest.iter().any(|word| word == "--help");
    let done = if asks_help { help(rest) } else { subcommand(rest) };
    done.unwrap_or_else(|code| code).into()
}

fn help(_: &[OsString]) -> Result<u8, u8> {
    output::text(&TABLE.help());
    Ok(exit::OK)
}
