//! `hakobu cluster`: one transfer on many machines that an existing engine schedules.

mod collect;
mod ending;
mod engine;
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

use crate::show::output;
pub(super) use options::TABLE;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the command.
pub fn run(mut arguments: Vec<OsString>) -> ExitCode {
    let verb = arguments.first().and_then(|verb| verb.to_str()).unwrap_or_default().to_owned();
    if !arguments.is_empty() {
        arguments.remove(0);
    }
    let asks_help = arguments.iter().any(|word| word == "--help");
    match verb.as_str() {
        "plan" | "work" | "status" | "collect" | "submit" if asks_help => {
            output::text(&TABLE.help());
            crate::exit::OK.into()
        }
        "plan" => plan::run(&arguments).into(),
        "work" => work::run(&arguments).into(),
        "status" => status::run(&arguments).into(),
        "collect" => collect::run(&arguments).into(),
        "submit" => submit::run(&arguments).into(),
        "--help" | "-h" => {
            output::text(&TABLE.help());
            crate::exit::OK.into()
        }
        _ => {
            output::message("give plan, work, status, collect or submit (hakobu cluster --help)");
            crate::exit::USAGE.into()
        }
    }
}
