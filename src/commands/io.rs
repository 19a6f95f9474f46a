//! `hakobu io`: fio's jobs, and sweeps of them.

mod args;
mod engines;
mod handed;
mod live;
mod options;
mod single;
mod sweep;
mod table;

use super::tool::carry_out;
use crate::exit;
use crate::show::output;
use args::Args;
use hakobu_io::spec;
pub(super) use options::TABLE;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().map(two_dashes).collect();
    carry_out(TABLE.parse(&arguments), |typed| Args::new(&typed), |args| Ok(args.run()))
}

/// fio takes its long options with one dash as well: `-name=x`.
fn two_dashes(word: OsString) -> OsString {
    let name = word.to_str().and_then(|text| text.strip_prefix('-'));
    let name = name.and_then(|text| text.split('=').next()).filter(|name| name.len() > 1);
    match name {
        Some(name) if spec::is_option(name) => {
            let mut whole = OsString::from("-");
            whole.push(word);
            whole
        }
        _ => word,
    }
}

impl Args {
    /// Does it; the exit code.
    fn run(&self) -> u8 {
        for warning in &self.request.warnings {
            output::message(warning);
        }
        if self.request.run.show_cmd {
            output::text(&format!("hakobu io {}\n", self.request.command_line));
            return exit::OK;
        }
        if self.request.run.parse_only {
            return exit::OK;
        }
        let done = match self.is_sweep() {
            true => sweep::run(self),
            false => single::run(&self.request),
        };
        done.unwrap_or_else(|message| {
            output::message(&message);
            exit::FAILURE
        })
    }
}
