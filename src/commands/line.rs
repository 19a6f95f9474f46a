//! From a parsed command line to its execution and exit code.

use crate::exit;
use crate::options::{Refused, Typed};
use crate::show::output;
use std::process::ExitCode;

/// Carries out a command line: makes its plan and runs it.
pub fn carry_out<P>(
    typed: Result<Typed, Refused>,
    plan: impl FnOnce(Typed) -> Result<P, String>,
    work: impl FnOnce(P) -> u8,
) -> ExitCode {
    let planned = typed.and_then(|typed| {
        let note = typed.note();
        let plan = plan(typed).map_err(Refused::Usage)?;
        note.iter().for_each(|note| output::message(note));
        Ok(plan)
    });
    match planned {
        Ok(plan) => work(plan).into(),
        Err(refused) => refuse(refused, exit::USAGE),
    }
}

/// Prints the reason that a command does not start, and returns its exit code.
pub fn refuse(refused: Refused, usage_code: u8) -> ExitCode {
    match refused {
        Refused::Help(text) => {
            output::text(&text);
            exit::OK.into()
        }
        Refused::Usage(message) => {
            output::message(&message);
            usage_code.into()
        }
        Refused::Failed { code, message } => {
            output::message(&message);
            code.into()
        }
    }
}
