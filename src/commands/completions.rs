//! `hakobu completions`: shell completions, generated from the option tables.

use super::tool::carry_out;
use crate::COMMANDS;
use crate::cli::{Opt, Table, Typed, flag, parts};
use crate::files::{self, Target};
use crate::show::output;
use crate::{environment, exit};
use clap_complete::Shell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const SHELLS: &str = "bash, elvish, fish, powershell, zsh";

/// The command line of `completions`.
pub static TABLE: Table<CompletionArgs> = Table {
    command: "completions",
    about: "Completions for a shell: bash, elvish, fish, powershell, zsh",
    description: "Prints a script with all commands and options, or installs it where the shell \
            finds it.",
    usage: "hakobu completions SHELL\n       hakobu completions --install [SHELL]",
    examples: &[
        ("hakobu completions --install bash", "Install the completions for bash."),
        ("hakobu completions zsh > _hakobu", "Write those for zsh to a file."),
    ],
    common: &[],
    after: "--install uses the shell of $SHELL if none is named, and prints the name of the \
            file.\n\
            Exit codes: 0 done, 1 a file could not be written, 2 usage.",
    options: &[&OPTIONS],
    unbuilt: &[],
    abbreviates: false,
};

/// Whether to install them.
#[derive(Default)]
pub struct CompletionArgs {
    install: bool,
}

parts!(CompletionArgs {});

const OPTIONS: &[Opt<CompletionArgs>] =
    &[flag("install", None, "install them where the shell finds them")
        .sets(|it, on| it.install = on)];

/// Runs `completions`.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    carry_out(TABLE.parse(&arguments), |typed| plan(&typed), show)
}

/// The parsed command line.
struct CompletionOptions {
    shell: Shell,
    /// The file to install, and a hint for the user; `None`: standard output.
    target: Option<(PathBuf, String)>,
}

fn plan(typed: &Typed) -> Result<CompletionOptions, String> {
    let install = TABLE.read(typed, CompletionArgs::default())?.install;
    let name = match typed.paths.as_slice() {
        [name] => name.clone(),
        [] if install => own_shell()?,
        _ => return Err(format!("missing shell: {SHELLS}")),
    };
    let shell = name
        .to_string_lossy()
        .parse()
        .map_err(|_| format!("there are no completions for '{}': {SHELLS}", name.display()))?;
    let target = if install { Some(place(shell)?) } else { None };
    Ok(CompletionOptions { shell, target })
}

/// Returns the name of the user's shell.
fn own_shell() -> Result<OsString, String> {
    let shell = std::env::var_os("SHELL").unwrap_or_default();
    let name = Path::new(&shell).file_name();
    name.map(OsString::from).ok_or_else(|| format!("missing shell, and SHELL is not set: {SHELLS}"))
}

/// Returns the file of a shell's completions, and a hint for shells that do not search there by default.
fn place(shell: Shell) -> Result<(PathBuf, String), String> {
    let data = || environment::xdg_folder("XDG_DATA_HOME", ".local/share");
    let config = || environment::xdg_folder("XDG_CONFIG_HOME", ".config");
    let with_hint = |path: PathBuf, before: &str, after: &str| {
        let dir = path.parent().unwrap_or(&path).display().to_string();
        (path, format!("\nhint: {before}{dir}{after}"))
    };
    Ok(match shell {
        Shell::Bash => (data()?.join("bash-completion/completions/hakobu"), String::new()),
        Shell::Fish => (config()?.join("fish/completions/hakobu.fish"), String::new()),
        Shell::Zsh => with_hint(
            data()?.join("zsh/site-functions/_hakobu"),
            "before compinit, ~/.zshrc needs: fpath+=(",
            ")",
        ),
        Shell::Elvish => {
            (config()?.join("elvish/lib/hakobu.elv"), "\nhint: rc.elv needs: use hakobu".to_owned())
        }
        _ => {
            return Err(format!(
                "--install does not know where {shell} looks\n\
                 hint: hakobu completions {shell} > FILE, and load FILE in its profile"
            ));
        }
    })
}

fn show(plan: CompletionOptions) -> Result<u8, String> {
    let text = text(plan.shell);
    let Some((path, hint)) = plan.target else {
        output::text(&String::from_utf8_lossy(&text));
        return Ok(exit::OK);
    };
    files::make_folder(path.parent().unwrap_or(Path::new(".")))?;
    // A shell may start meanwhile: it finds the old file or the new one.
    Target::open(&path)?.deliver(text)?;
    output::text(&format!("{}{hint}\n", path.display()));
    Ok(exit::OK)
}

fn text(shell: Shell) -> Vec<u8> {
    let mut root = clap::Command::new("hakobu").disable_help_subcommand(true);
    for command in COMMANDS {
        root = root.subcommand(command.table.clap().name(command.name));
    }
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut root, "hakobu", &mut text);
    text
}
