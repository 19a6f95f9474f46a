//! What is not built is refused by name: no option of a peer is accepted and then ignored.

use crate::arguments::{case, files};

#[test]
fn options_that_are_not_built_are_named() {
    for (option, name) in [
        ("--append", "--append"),
        ("--append-verify", "--append-verify"),
        ("--delay-updates", "--delay-updates"),
        ("--munge-links", "--munge-links"),
        ("--copy-unsafe-links", "--copy-unsafe-links"),
        ("--copy-dest=x", "--copy-dest"),
        ("--compare-dest=x", "--compare-dest"),
        ("--backup-dir=x", "--backup-dir"),
        ("--out-format=%n", "--out-format"),
        ("--rsync-path=x", "--rsync-path"),
        ("--fuzzy", "--fuzzy"),
        ("--no-implied-dirs", "--no-implied-dirs"),
        ("-z", "-z"),
        ("--compress", "--compress"),
        ("-e ssh", "-e"),
        ("--rsh=ssh", "--rsh"),
        ("--iconv=.", "--iconv"),
        ("--daemon", "--daemon"),
        ("--write-batch=x", "--write-batch"),
    ] {
        case(&format!("sync -a {option} SRC/ DST"), |c| {
            files(&c.src(), &["a"]);
            let run = c.run();
            run.expect(1).says(&[name]);
            assert!(!c.dst().exists(), "moved something: {run}");
        });
    }
}

#[test]
fn remote_places_are_named() {
    for line in [
        "sync -a SRC/ host:path",
        "sync -a host:path DST",
        "sync -a user@host:/path DST",
        "sync -a SRC/ host::module",
        "sync -a rsync://host/module DST",
        "cp -r SRC host:path",
    ] {
        case(line, |c| {
            files(&c.src(), &["a"]);
            let mut words = c.words(line, &c.dst());
            words.remove(0);
            // In a folder of its own: a mistake would make a file named host:path there.
            let mut command = std::process::Command::new(crate::common::program());
            command.arg(line.split(' ').next().unwrap()).args(words).current_dir(c.src());
            let output = command.output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).to_lowercase();
            assert_ne!(output.status.code(), Some(0), "{line}");
            let named = said.contains("remote") || said.contains("not built");
            assert!(said.contains("host") && named, "{line}: {said}");
            assert_eq!(std::fs::read_dir(c.src()).unwrap().count(), 1, "{line} made something");
        });
    }
}

/// Every option that the help names is understood, and nothing is promised that is refused.
#[test]
fn help_promises_nothing_that_is_refused() {
    for command in ["sync", "cp", "mv", "rm", "ls", "du", "verify"] {
        let words = [command, "--help"];
        let help = crate::common::case::run_command(&crate::common::program(), &words);
        for option in ["--append", "--munge-links", "--copy-dest", "--backup-dir", "--out-format"] {
            let promised = help.out().lines().any(|line| line.trim_start().starts_with(option));
            assert!(!promised, "{command} --help offers {option}");
        }
    }
}
