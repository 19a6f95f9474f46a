//! The commands, one file or folder each: their list, the lookup by name, and help.

#[cfg(feature = "lab")]
mod bench;
mod bucket_version;
mod buckets;
mod cat;
mod cluster;
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

use crate::cli::Syntax;
use crate::exit;
use crate::show::output;
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

/// One command of the program.
pub struct Command {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line of description.
    pub about: &'static str,
    /// Runs it with the arguments after its name.
    pub run: fn(Vec<OsString>) -> ExitCode,
    /// Its options.
    pub table: &'static dyn Syntax,
}

impl Command {
    /// Returns whether it has an option of this internal name.
    pub fn has(&self, option: &str) -> bool {
        self.table.clap().get_arguments().any(|argument| argument.get_id() == option)
    }

    /// Returns the spellings of its options whose value may be the next word.
    pub fn spellings_before_values(&self) -> Vec<String> {
        let clap = self.table.clap();
        let takes = clap.get_arguments().filter(|argument| {
            argument.get_action().takes_values() && !argument.is_require_equals_set()
        });
        takes
            .flat_map(|argument| {
                let long = argument.get_long().into_iter().map(|long| format!("--{long}"));
                let aliases = argument.get_all_aliases().unwrap_or_default();
                let aliases = aliases.into_iter().map(|alias| format!("--{alias}"));
                let short = argument.get_short().map(|short| format!("-{short}"));
                long.chain(aliases).chain(short).collect::<Vec<_>>()
            })
            .collect()
    }
}

const fn row(
    name: &'static str,
    about: &'static str,
    run: fn(Vec<OsString>) -> ExitCode,
    table: &'static dyn Syntax,
) -> Command {
    Command { name, about, run, table }
}

/// All of them, in the order of the overview.
pub const COMMANDS: &[Command] = &[
    row("sync", "synchronise DST with SRC (rsync's options)", sync::run, &sync::TABLE),
    row("cp", "copy (cp's options)", cp::run, &cp::TABLE),
    row("mv", "rename or move (mv's options)", mv::run, &mv::TABLE),
    row("verify", "compare two trees", verify::run, &verify::TABLE),
    row("rm", "remove files and trees (rm's options)", rm::run, &rm::TABLE),
    row("ls", "list buckets and objects", ls::run, &ls::TABLE),
    row("du", "report disk usage (du's options)", du::run, &du::TABLE),
    row("cat", "objects to standard output", cat::run, &cat::TABLE),
    row("pipe", "standard input to an object", pipe::run, &pipe::TABLE),
    row("head", "headers of objects, existence of buckets", head::run, &head::TABLE),
    row("stat", "the same as head", head::run, &head::TABLE),
    row("mb", "make buckets", buckets::make, &buckets::MB),
    row("rb", "remove buckets", buckets::remove, &buckets::RB),
    row(
        "bucket-version",
        "whether buckets keep versions of their objects",
        bucket_version::run,
        &bucket_version::TABLE,
    ),
    row("presign", "URLs that give read access to an object", presign::run, &presign::TABLE),
    row("mpu", "list or abort unfinished multipart uploads", mpu::run, &mpu::TABLE),
    row("run", "commands from a file, one a line, in parallel", run::run, &run::TABLE),
    row(
        "cluster",
        "one transfer on many machines: plan, work, status, collect, submit",
        cluster::run,
        &cluster::TABLE,
    ),
    #[cfg(feature = "lab")]
    row("watch", "record a command as time and vmstat would", watch::run, &watch::TABLE),
    #[cfg(feature = "lab")]
    row("bench", "measure commands or a campaign of them", bench::run, &bench::TABLE),
    #[cfg(feature = "io")]
    row(
        "io",
        "measure devices and file systems (fio's options and job files)",
        io::run,
        &io::TABLE,
    ),
    #[cfg(feature = "lab")]
    row("results", "what bench measured: ls, show, rm, export", results::run, &results::TABLE),
    #[cfg(feature = "lab")]
    row("report", "make a page of what campaigns found", report::run, &report::TABLE),
    #[cfg(feature = "lab")]
    row("compare", "results of several machines, with prices", compare::run, &compare::TABLE),
    #[cfg(all(feature = "lab", feature = "serve"))]
    row("demo", "upload, download and verify generated files", demo::run, &demo::TABLE),
    #[cfg(feature = "serve")]
    row("serve", "serve S3 for tests and measurements", serve::run, &serve::TABLE),
    row("man", "manual pages of these commands", manual::man, &manual::MAN),
    row("completions", "completions for a shell", completions::run, &completions::TABLE),
];

/// Runs the command of a command line.
pub fn run(line: global::CommandLine) -> ExitCode {
    let name = line.command.to_string_lossy();
    let Some(command) = find(&name) else { return unknown(&name) };
    if !line.dropped.is_empty() {
        let dropped = line.dropped.join(", --");
        output::message(&format!(
            "note: without effect here: --{dropped} (hakobu {name} has none)"
        ));
    }
    (command.run)(line.arguments)
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
    match find(&name) {
        Some(command) => (command.run)(vec!["--help".into()]),
        None if topics::show(&name) => exit::OK.into(),
        None => unknown(&name),
    }
}

/// Commands that cargo features enable, and the feature of each.
pub const OPTIONAL: &[(&str, &str)] = &[
    ("watch", "lab"),
    ("bench", "lab"),
    ("io", "io"),
    ("results", "lab"),
    ("report", "lab"),
    ("compare", "lab"),
    ("demo", "lab,serve"),
    ("serve", "serve"),
];

/// Returns the command of a name.
pub fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name)
}

/// Reports an unknown command, with a suggestion.
fn unknown(name: &str) -> ExitCode {
    if name == "select" {
        output::message("select is not supported: hakobu cat reads whole objects");
        return exit::USAGE.into();
    }
    if let Some((_, features)) = OPTIONAL.iter().find(|(command, _)| *command == name) {
        output::message(&format!(
            "this build has no '{name}'\nhint: build hakobu with --features {features}"
        ));
        return exit::USAGE.into();
    }
    let hint = match nearest(name) {
        Some(near) => format!("did you mean '{near}'?"),
        None => "hakobu --help lists the commands, hakobu help topics the documentation".to_owned(),
    };
    output::message(&format!("there is no command '{name}'; {hint}"));
    exit::USAGE.into()
}

/// Returns the command within two typing errors of a name.
fn nearest(name: &str) -> Option<&'static str> {
    let near =
        COMMANDS.iter().map(|command| (strsim::levenshtein(name, command.name), command.name));
    near.min().filter(|(far, best)| *far <= 2 && *far < best.len()).map(|(_, best)| best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors() {
        for (typed, meant) in [
            ("snyc", Some("sync")),
            ("sunc", Some("sync")),
            ("rsync", Some("sync")),
            ("copy", None),
            ("c", Some("cp")),
            ("mvv", Some("mv")),
            ("frobnicate", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed), meant, "{typed}");
        }
    }
}
