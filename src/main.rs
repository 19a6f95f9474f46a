//! hakobu: moves files between volumes at the machine's limit.
//!
//! This is the program: it reads the command line, hands a description of the work to the library
//! `hakobu_transfer`, shows what happens and ends with an exit code. Every command is one file in
//! `commands`.

mod commands;
mod effort;
mod exit;
mod instance;
mod jobs;
mod names;
mod number;
mod objects;
mod options;
mod owner;
mod places;
#[allow(dead_code, reason = "for the options of commands")]
mod priority;
mod show;
mod signals;
mod size;

use show::output;
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let Some(first) = arguments.next() else {
        output::message(&format!("give a command\n\n{}", commands::overview()));
        return exit::USAGE.into();
    };
    let rest: Vec<OsString> = arguments.collect();
    let name = first.to_string_lossy();
    match &*name {
        "--version" | "-V" => output::text(&format!("hakobu {}\n", env!("CARGO_PKG_VERSION"))),
        "--help" | "-h" | "help" => match rest.first() {
            None => output::text(&commands::overview()),
            Some(topic) => return commands::help(topic),
        },
        _ => match commands::find(&name) {
            Some(command) => return (command.run)(rest),
            None => return commands::unknown(&name),
        },
    }
    exit::OK.into()
}
