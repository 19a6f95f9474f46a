//! hakobu: copies and synchronises files between volumes and S3, measures, and explains.
//!
//! The program: parses the command line, passes a description of the work to the library `hakobu_transfer`, displays
//! its events and ends with an exit code. Every command is one file or folder in `commands`.

#![allow(clippy::print_stderr, clippy::print_stdout, reason = "the program is who prints")]
#![cfg_attr(
    not(all(feature = "lab", feature = "io", feature = "serve")),
    allow(dead_code, unused_imports, reason = "options and output have parts for them")
)]

mod backups;
mod cli;
mod commands;
mod environment;
mod exit;
mod files;
mod filters;
mod input;
mod limits;
mod names;
mod number;
mod objects;
mod owner;
mod show;
mod stopped;

use show::output;
use std::ffi::OsString;
use std::process::ExitCode;

/// The allocator of static programs: musl's maps and unmaps memory for each large block.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    hakobu_sys::process::see_children();
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let (command, code) = run(arguments);
    // The one place where every command is asked whether all that it printed arrived.
    match output::lost() {
        None => code,
        Some(error) => {
            let cause = hakobu_core::error::Cause::System(error);
            output::message(&format!("cannot write standard output: {cause}"));
            if code == ExitCode::SUCCESS { exit::of_lost_output(&command).into() } else { code }
        }
    }
}

/// Runs a command line; returns the command's name and the exit code.
fn run(arguments: Vec<OsString>) -> (String, ExitCode) {
    let parsed = commands::global::parse(arguments);
    let name = match &parsed {
        Ok(Some(line)) => line.command.to_string_lossy().into_owned(),
        _ => String::new(),
    };
    let code = match parsed {
        Ok(None) => {
            output::message(&format!("give a command\n\n{}", commands::overview()));
            exit::USAGE.into()
        }
        Ok(Some(line)) => match (&*line.command.to_string_lossy(), line.arguments.first()) {
            ("--version" | "-V" | "version", _) => {
                output::text(&format!("hakobu {}\n", env!("CARGO_PKG_VERSION")));
                exit::OK.into()
            }
            ("--help" | "-h" | "help", None) => {
                output::text(&commands::overview());
                exit::OK.into()
            }
            ("--help" | "-h" | "help", Some(topic)) => commands::help(topic),
            _ => commands::run(line),
        },
        Err(message) => {
            output::message(&message);
            exit::USAGE.into()
        }
    };
    (name, code)
}
