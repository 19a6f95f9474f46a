//! The commands, one file or folder each, and their shared modules.

#[cfg(feature = "lab")]
mod bench;
mod bucket_version;
mod buckets;
mod cat;
mod cluster;
mod command;
#[cfg(feature = "lab")]
mod compare;
mod completions;
mod cp;
#[cfg(all(feature = "lab", feature = "serve"))]
mod demo;
mod du;
pub mod global;
mod head;
#[cfg(feature = "io")]
mod io;
mod line;
mod list;
mod ls;
mod manual;
mod mpu;
mod mv;
mod operands;
mod pipe;
mod presign;
#[cfg(feature = "lab")]
mod report;
#[cfg(feature = "lab")]
mod results;
mod rm;
mod run;
#[cfg(feature = "serve")]
mod serve;
mod session;
mod sync;
mod tool;
mod topics;
mod verify;
#[cfg(feature = "lab")]
mod watch;

use crate::exit;
use crate::show::output;
pub use command::find;
use command::unknown;
pub use list::COMMANDS;
use std::ffi::OsStr;
use std::process::ExitCode;

/// Runs the command of a command line.
pub fn run(line: global::Line) -> ExitCode {
    let name = line.command.to_string_lossy();
    let Some(command) = find(COMMANDS, &name) else { return unknown(COMMANDS, &name) };
    if !line.dropped.is_empty() {
        let dropped = line.dropped.join(", --");
        output::message(&format!(
            "note: without effect here: --{dropped} (hakobu {name} has none)"
        ));
    }
    command.run(COMMANDS, line.arguments)
}

/// Returns the help of the program.
pub fn overview() -> String {
    let mut out = String::from(
        "hakobu copies and synchronises files between volumes and S3, verifies that they\n\
         arrived, and reports what limited the speed.\n\n\
         Usage: hakobu COMMAND [OPTIONS] [PATHS]\n\nCommands:\n",
    );
    for command in COMMANDS {
        out.push_str(&format!("  {:<14} {}\n", command.name, command.about));
    }
    out.push_str(
        "\nhakobu help COMMAND (or hakobu COMMAND --help) shows its options, hakobu help topics the\n\
         documentation, hakobu --version the version.\n",
    );
    out
}

/// Runs `hakobu help COMMAND`, `hakobu help TOPIC`.
pub fn help(topic: &OsStr) -> ExitCode {
    let name = topic.to_string_lossy();
    match find(COMMANDS, &name) {
        Some(command) => command.run(COMMANDS, vec!["--help".into()]),
        None if topics::show(&name) => exit::OK.into(),
        None => unknown(COMMANDS, &name),
    }
}
