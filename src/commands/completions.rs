//! `hakobu completions`: shell completions, generated from the option tables.

use super::tool::carry_out;
use super::topics;
use crate::cli::{Opt, Part, Table, Typed, flag, parts};
use crate::files::{self, Target};
use crate::show::output;
use crate::{COMMANDS, Command};
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

/// The shells.
pub static PARTS: &[Part] = &[
    Part::new("bash", "completions for bash"),
    Part::new("elvish", "completions for elvish"),
    Part::new("fish", "completions for fish"),
    Part::new("powershell", "completions for PowerShell"),
    Part::new("zsh", "completions for zsh"),
];

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

/// Returns the script of a shell.
fn text(shell: Shell) -> Vec<u8> {
    let mut root = clap::Command::new("hakobu").disable_help_subcommand(true);
    for command in COMMANDS {
        let table = command.table.completed().name(command.name).about(command.about);
        let parts = (command.parts)();
        root = root.subcommand(match parts.as_slice() {
            [] => table,
            parts => with_parts(&table, parts.iter().map(|part| part.completed(command.table))),
        });
    }
    let named = COMMANDS.iter().map(|command| (command.name, command.about));
    let topics = topics::names().map(|name| (name, "a document"));
    let topics = named.chain(topics).map(|(name, about)| word(name, about));
    root = root.subcommand(with_parts(&word("help", "show the help of a command"), topics));
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut root, "hakobu", &mut text);
    let text = String::from_utf8_lossy(&text);
    match shell {
        Shell::Bash => adjusted_bash(&text),
        // With two colons `_arguments` takes all that follows the first operand for operands.
        Shell::Zsh => text.replace("'*::PATHS:", "'*:PATHS:"),
        Shell::Fish => adjusted_fish(&text),
        _ => text.into_owned(),
    }
    .into_bytes()
}

fn word(name: &'static str, about: &'static str) -> clap::Command {
    clap::Command::new(name).about(about).disable_help_flag(true)
}

/// Returns a command whose first operand is one of `parts`. Its own operand is left out: the generators would count it.
fn with_parts(table: &clap::Command, parts: impl Iterator<Item = clap::Command>) -> clap::Command {
    let options: Vec<_> =
        table.get_arguments().filter(|arg| !arg.is_positional()).cloned().collect();
    clap::Command::new(table.get_name().to_owned())
        .about(table.get_about().cloned().unwrap_or_default())
        .disable_help_flag(true)
        .disable_version_flag(true)
        .disable_help_subcommand(true)
        .version("-")
        .args(options)
        .subcommands(parts)
}

/// Mends what the generator writes for fish: a command that is also the name of one of its own operands (`man man`) would
/// count as an operand that is already there.
fn adjusted_fish(text: &str) -> String {
    let mut text = text.to_owned();
    let is_own =
        |command: &&Command| (command.parts)().iter().any(|part| part.name == command.name);
    for command in COMMANDS.iter().filter(is_own) {
        let using = format!("__fish_hakobu_using_subcommand {}; and not ", command.name);
        let Some(at) = text.find(&using) else { continue };
        let Some((seen, _)) = text.get(at..).and_then(|rest| rest.split_once('"')) else {
            continue;
        };
        let others = seen.replace(&format!(" {} ", command.name), " ");
        // The name behind `using` has a semicolon and stays.
        text = text.replace(seen, &others);
    }
    text
}

/// Mends what the generator writes for bash: the value of `--NAME=VALUE` is completed as that of `--NAME VALUE`, and
/// an empty operand is a file, where the generator lists all options.
fn adjusted_bash(text: &str) -> String {
    const PREVIOUS: &str = "    prev=\"$3\"\n";
    const WITH_VALUE: &str = "    prev=\"$3\"\n    \
         # Bash splits --NAME=VALUE into three words.\n    \
         [[ \"$cur\" == \"=\" ]] && cur=\"\"\n    \
         [[ \"$prev\" == \"=\" && $COMP_CWORD -ge 2 ]] && prev=\"${COMP_WORDS[COMP_CWORD-2]}\"\n";
    const OPERANDS: &str = "            esac\n            \
         COMPREPLY=( $(compgen -W \"${opts}\" -- \"${cur}\") )\n";
    const FILES: &str = "            esac\n            \
         [[ -n \"${cur}\" ]] && COMPREPLY=( $(compgen -W \"${opts}\" -- \"${cur}\") )\n";
    text.replace(PREVIOUS, WITH_VALUE).replace(OPERANDS, FILES)
}
