//! From a parsed command line to its execution and exit code.

use crate::exit;
use crate::options::{Refused, Typed};
use crate::show::output;
use std::process::ExitCode;

/// Carries out a command line: makes its plan and runs it. An error of `plan` is one of usage, an error of `work` a
/// failure; both are messages.
pub fn carry_out<P>(
    typed: Result<Typed, Refused>,
    plan: impl FnOnce(Typed) -> Result<P, String>,
    work: impl FnOnce(P) -> Result<u8, String>,
) -> ExitCode {
    let planned = typed.and_then(|typed| {
        let note = typed.note();
        let plan = plan(typed).map_err(Refused::Usage)?;
        note.iter().for_each(|note| output::message(note));
        Ok(plan)
    });
    match planned {
        Ok(plan) => work(plan).unwrap_or_else(|message| told(exit::FAILURE, &message)),
        Err(refused) => refuse(refused, exit::USAGE),
    }
    .into()
}

/// Prints the reason that a command does not start, and returns its exit code.
pub fn refuse(refused: Refused, usage_code: u8) -> u8 {
    match refused {
        Refused::Help(text) => {
            output::text(&text);
            exit::OK
        }
        Refused::Usage(message) => told(usage_code, &message),
        Refused::Failed { code, message } => told(code, &message),
    }
}

/// Prints the message that a command ends with; returns its exit code.
pub fn told(code: u8, message: &str) -> u8 {
    output::message(message);
    code
}
