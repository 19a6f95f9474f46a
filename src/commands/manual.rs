//! `hakobu man`: manual pages, generated from the option tables.

mod page;
mod sections;

use super::tool::carry_out;
use super::{COMMANDS, find, unknown};
use crate::exit;
use crate::files::{self, Target};
use crate::options::{Opt, Table, Typed, parts, put, value};
use crate::show::output;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The command line of `man`.
pub static MAN: Table<Reading> = Table {
    command: "man",
    about: "Manual pages, for man(1): hakobu man sync | man -l -",
    usage: "hakobu man [COMMAND]\n       hakobu man --install DIR\n       hakobu man --all DIR",
    after: "--install takes a folder of manuals, such as ~/.local/share/man or /usr/share/man.\n\
            Exit codes: 0 done, 1 a file could not be written, 2 usage.",
    options: &[&OPTIONS],
    unbuilt: &[],
    abbreviates: false,
};

/// Folders for the pages.
#[derive(Default)]
pub struct Reading {
    all: Option<PathBuf>,
    install: Option<PathBuf>,
}

parts!(Reading {});

const OPTIONS: &[Opt<Reading>] = &[
    value("all", None, "DIR", "write the pages of all commands into DIR")
        .reads(|it, arg| put(&mut it.all, Some(arg.path()))),
    value("install", None, "DIR", "write them to DIR/man1, where man(1) finds them")
        .reads(|it, arg| put(&mut it.install, Some(arg.path().join("man1")))),
];

/// Runs `man`.
pub fn man(arguments: Vec<OsString>) -> ExitCode {
    carry_out(MAN.parse(&arguments), |typed| pages(&typed), show)
}

/// The requested pages.
enum Pages {
    /// The page of a command, or of the program.
    Of(Option<String>),
    /// All of them, into a folder.
    All(PathBuf),
}

fn pages(typed: &Typed) -> Result<Pages, String> {
    let read = MAN.read(typed, Reading::default())?;
    match (read.install.or(read.all), typed.paths.as_slice()) {
        (Some(dir), []) => Ok(Pages::All(dir)),
        (None, []) => Ok(Pages::Of(None)),
        (None, [name]) => Ok(Pages::Of(Some(name.to_string_lossy().into_owned()))),
        (Some(_), _) => Err("--all and --install write every page: give no command".into()),
        (None, _) => Err("give one command, or none for the page of the program".into()),
    }
}

fn show(pages: Pages) -> Result<u8, String> {
    let page = match pages {
        Pages::All(dir) => return write_all(&dir).map(|()| exit::OK),
        Pages::Of(None) => page::of_program(),
        Pages::Of(Some(name)) => match find(&name) {
            Some(command) => page::of_command(command),
            None => {
                unknown(&name);
                return Ok(exit::USAGE);
            }
        },
    };
    // Writing into memory does not fail.
    output::text(&String::from_utf8_lossy(&page.unwrap_or_default()));
    Ok(exit::OK)
}

fn write_all(dir: &Path) -> Result<(), String> {
    files::make_folder(dir)?;
    let write = |name: &str, page: io::Result<Vec<u8>>| {
        // Writing into memory does not fail.
        Target::open(&dir.join(name))?.deliver(page.unwrap_or_default())
    };
    write("hakobu.1", page::of_program())?;
    COMMANDS.iter().try_for_each(|command| {
        write(&format!("hakobu-{}.1", command.name), page::of_command(command))
    })
}
