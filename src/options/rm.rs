//! The options of `hakobu rm`: the names and meanings of rm(1), and ours.

use super::{Opt, Table, Takes, flag, s3, value, work};

/// The command line of `rm`.
pub const TABLE: Table = Table {
    command: "rm",
    about: "Remove files, and with -r directories with everything below, in parallel",
    usage: "hakobu rm [OPTIONS] PATH...",
    after: "Symlinks are removed themselves, never followed. Of -f, -i, -I and --interactive the \
            last one counts.\n\
            Exit codes: 0 done, 1 something could not be removed, 2 usage.",
    options: &[OPTIONS, s3::STORE, s3::RAW, s3::VERSION, s3::STAT, work::RPS, work::PRIORITY],
    unbuilt: &[UNBUILT, s3::UNBUILT],
    abbreviates: true,
};

const OPTIONS: &[Opt] = &[
    flag("recursive", Some('r'), "directories, too, with everything below them"),
    flag("R", Some('R'), "the same as -r").short_only(),
    flag("dir", Some('d'), "empty directories, too"),
    flag("force", Some('f'), "never ask; what does not exist is no error"),
    flag("dry-run", Some('n'), "with s3://: say what would be removed, remove nothing"),
    flag("i", Some('i'), "ask before each removal").short_only(),
    flag("I", Some('I'), "ask once before removing more than three, or with -r").short_only(),
    flag("interactive", None, "ask: never, once or always (the default)")
        .takes(Takes::Perhaps("WHEN")),
    flag("one-file-system", None, "leave directories on other file systems alone"),
    flag("preserve-root", None, "never remove '/' (the default); 'all': nor other mounted ones")
        .takes(Takes::Perhaps("all")),
    flag("no-preserve-root", None, "allow '/'"),
    value("jobs", Some('j'), "N", crate::jobs::HELP),
    flag("verbose", Some('v'), "say what is removed"),
    flag("json", None, "JSON lines on standard output, nothing else"),
];

const UNBUILT: &[(&str, &str)] =
    &[("--version", "it is an option of hakobu itself: hakobu --version")];
