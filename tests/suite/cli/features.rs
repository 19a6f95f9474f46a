//! Optional commands: a lean build contains the mover and S3, and names missing features.

use crate::common::case::run_command;
use crate::common::program;

/// Optional commands, and whether this build has them.
const OPTIONAL: &[(&str, &str, bool)] = &[
    ("watch", "lab", cfg!(feature = "lab")),
    ("bench", "lab", cfg!(feature = "lab")),
    ("results", "lab", cfg!(feature = "lab")),
    ("report", "lab", cfg!(feature = "lab")),
    ("compare", "lab", cfg!(feature = "lab")),
    ("io", "io", cfg!(feature = "io")),
    ("serve", "serve", cfg!(feature = "serve")),
    ("demo", "lab,serve", cfg!(all(feature = "lab", feature = "serve"))),
];

/// Commands that every build has.
const ALWAYS: &[&str] = &[
    "sync",
    "cp",
    "mv",
    "verify",
    "rm",
    "ls",
    "du",
    "cat",
    "pipe",
    "head",
    "mb",
    "rb",
    "bucket-version",
    "presign",
    "mpu",
    "run",
    "man",
    "completions",
];

/// Columns of the first screen before the names of commands, and of these names.
const SUBJECT: usize = 15;
const NAMES: usize = 25;

/// The commands on the first screen.
pub fn commands(overview: &str) -> Vec<String> {
    let columns = overview.lines().filter_map(|line| line.get(SUBJECT..SUBJECT + NAMES));
    let lines = columns.filter(|names| {
        let letters = |c: char| c.is_ascii_lowercase() || ", -".contains(c);
        names.starts_with(|c: char| c.is_ascii_lowercase())
            && names.ends_with(' ')
            && names.chars().all(letters)
    });
    let names = lines.flat_map(|names| names.split(", ").map(|name| name.trim().to_owned()));
    names.filter(|name| name != "help" && !name.contains(' ')).collect()
}

fn listed(overview: &str, command: &str) -> bool {
    commands(overview).iter().any(|name| name == command)
}

#[test]
fn a_build_lists_what_it_has_and_names_what_it_lacks() {
    let overview = run_command(&program(), &["--help"]).ok().out();
    for command in ALWAYS {
        assert!(listed(&overview, command), "--help lacks {command}");
        run_command(&program(), &[command, "--help"]).ok();
    }
    for (command, features, there) in OPTIONAL {
        assert_eq!(listed(&overview, command), *there, "{command}\n{overview}");
        let run = run_command(&program(), &[command, "--help"]);
        if *there {
            run.ok();
        } else {
            run.expect(2).says(&[&format!("this build has no '{command}'")]);
            run.says(&[&format!("hint: build hakobu with --features {features}")]);
        }
    }
}

#[test]
fn help_never_sends_to_files_that_are_not_installed() {
    let overview = run_command(&program(), &["--help"]).ok().out();
    let commands = commands(&overview);
    assert!(commands.len() >= ALWAYS.len(), "{commands:?}");
    for command in &commands {
        let help = run_command(&program(), &[command.as_str(), "--help"]).ok().out();
        for word in ["docs/", ".md."] {
            assert!(!help.contains(word), "{command} --help cites {word}\n{help}");
        }
    }
}
