//! `hakobu man` and `hakobu completions`: manual pages and shell completions, made from the same
//! tables as the options themselves.

use super::{COMMANDS, Command, find, refuse, unknown};
use crate::exit;
use crate::options::manual::{COMPLETIONS, MAN};
use crate::options::{Refused, Typed};
use crate::show::output;
use clap_complete::Shell;
use hakobu_transfer::error::quoted;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs `man`.
pub fn man(arguments: Vec<OsString>) -> ExitCode {
    let typed = MAN.parse(&arguments);
    match typed.and_then(|typed| pages(&typed).map_err(Refused::Usage)) {
        Ok(Pages::Of(name)) => match name.map(|name| find(&name).ok_or(name)) {
            None => shown(whole()),
            Some(Ok(command)) => shown(page(command)),
            Some(Err(name)) => unknown(&name),
        },
        Ok(Pages::All(dir)) => match write_all(&dir) {
            Ok(()) => exit::OK.into(),
            Err(error) => {
                output::message(&format!("cannot write into {}: {error}", quoted(&dir)));
                exit::FAILURE.into()
            }
        },
        Err(refused) => refuse(refused, exit::USAGE),
    }
}

/// What is asked for.
enum Pages {
    /// The page of a command, or of the program.
    Of(Option<String>),
    /// All of them, into a folder.
    All(PathBuf),
}

fn pages(typed: &Typed) -> Result<Pages, String> {
    let all = typed.options.iter().find(|given| given.name == "all");
    match (all, typed.paths.as_slice()) {
        (Some(given), []) => Ok(Pages::All(PathBuf::from(&given.value))),
        (None, []) => Ok(Pages::Of(None)),
        (None, [name]) => Ok(Pages::Of(Some(name.to_string_lossy().into_owned()))),
        (Some(_), _) => Err("--all writes every page: give no command".into()),
        (None, _) => Err("give one command, or none for the page of the program".into()),
    }
}

fn shown(page: io::Result<Vec<u8>>) -> ExitCode {
    // Writing into memory does not fail.
    output::text(&String::from_utf8_lossy(&page.unwrap_or_default()));
    exit::OK.into()
}

fn write_all(dir: &Path) -> io::Result<()> {
    std::fs::create_dir_all(dir)?;
    std::fs::write(dir.join("hakobu.1"), whole()?)?;
    for command in COMMANDS {
        std::fs::write(dir.join(format!("hakobu-{}.1", command.name)), page(command)?)?;
    }
    Ok(())
}

/// The page of one command.
fn page(command: &Command) -> io::Result<Vec<u8>> {
    let name = format!("hakobu-{}", command.name);
    let clap = command.table.clap().name(name);
    // What stands there for the terminal is the synopsis here; the options have their own section.
    let usage = command.table.usage;
    let mut out = render(&clap, usage)?;
    section(&mut out, "SEE ALSO", "hakobu(1)");
    Ok(out)
}

/// The page of the program.
fn whole() -> io::Result<Vec<u8>> {
    let clap = clap::Command::new("hakobu")
        .about("moves files between volumes and S3 at the machine's limit")
        .disable_help_flag(true);
    let mut out = render(&clap, "hakobu COMMAND [OPTIONS] [PATHS]")?;
    out.extend_from_slice(b".SH COMMANDS\n");
    for command in COMMANDS {
        let line = format!(".TP\n\\fBhakobu\\-{}\\fR(1)\n{}\n", command.name, roff(command.about));
        out.extend_from_slice(line.as_bytes());
    }
    Ok(out)
}

fn render(clap: &clap::Command, usage: &str) -> io::Result<Vec<u8>> {
    let man = clap_mangen::Man::new(clap.clone())
        .source(concat!("hakobu ", env!("CARGO_PKG_VERSION")))
        .manual("hakobu");
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    out.extend_from_slice(b".SH SYNOPSIS\n");
    for line in usage.lines() {
        out.extend_from_slice(format!("{}\n.br\n", roff(line.trim())).as_bytes());
    }
    man.render_description_section(&mut out)?;
    if clap.get_arguments().any(|arg| !arg.is_hide_set()) {
        man.render_options_section(&mut out)?;
    }
    if clap.get_after_help().is_some() {
        man.render_extra_section(&mut out)?;
    }
    Ok(out)
}

fn section(out: &mut Vec<u8>, title: &str, text: &str) {
    out.extend_from_slice(format!(".SH \"{title}\"\n{}\n", roff(text)).as_bytes());
}

/// Text for troff: what would be a request or an escape is none, and dashes stay dashes.
fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    match text.starts_with(['.', '\'']) {
        true => format!("\\&{text}"),
        false => text,
    }
}

/// Runs `completions`.
pub fn completions(arguments: Vec<OsString>) -> ExitCode {
    let typed = COMPLETIONS.parse(&arguments);
    match typed.and_then(|typed| shell(&typed).map_err(Refused::Usage)) {
        Ok(shell) => {
            let mut root = clap::Command::new("hakobu").disable_help_subcommand(true);
            for command in COMMANDS {
                root = root.subcommand(command.table.clap().name(command.name));
            }
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut root, "hakobu", &mut text);
            shown(Ok(text))
        }
        Err(refused) => refuse(refused, exit::USAGE),
    }
}

fn shell(typed: &Typed) -> Result<Shell, String> {
    match typed.paths.as_slice() {
        [name] => name.to_string_lossy().parse().map_err(|_| {
            format!(
                "there are no completions for '{}': bash, elvish, fish, powershell, zsh",
                name.display()
            )
        }),
        _ => Err("give one shell: bash, elvish, fish, powershell, zsh".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        assert_eq!(roff(".TH --x a\\b"), "\\&.TH \\-\\-x a\\eb");
        assert_eq!(roff("'a"), "\\&'a");
    }

    #[test]
    fn every_option_has_its_line() {
        for command in COMMANDS {
            let page = String::from_utf8(page(command).unwrap()).unwrap();
            let shown = command.table.clap();
            for arg in shown.get_arguments().filter(|arg| !arg.is_hide_set()) {
                if let Some(long) = arg.get_long() {
                    let spelled = format!("\\-\\-{}", long.replace('-', "\\-"));
                    assert!(page.contains(&spelled), "{}: {spelled}", command.name);
                }
            }
        }
    }
}
