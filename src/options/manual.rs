//! The options of `hakobu man` and `hakobu completions`.

use super::{Opt, Table, value};

const EXIT: &str = "Exit codes: 0 done, 1 a file could not be written, 2 usage.";

/// The command line of `man`.
pub const MAN: Table = Table {
    command: "man",
    about: "Manual pages, for man(1): hakobu man sync | man -l -",
    usage: "hakobu man [COMMAND]\n       hakobu man --all DIR",
    after: EXIT,
    options: &[&[ALL]],
    unbuilt: &[],
    abbreviates: false,
};

const ALL: Opt = value("all", None, "DIR", "write the pages of all commands into DIR");

/// The command line of `completions`.
pub const COMPLETIONS: Table = Table {
    command: "completions",
    about: "Completions for a shell: bash, elvish, fish, powershell, zsh",
    usage: "hakobu completions SHELL",
    after: EXIT,
    options: &[],
    unbuilt: &[],
    abbreviates: false,
};
