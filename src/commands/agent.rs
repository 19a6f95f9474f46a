//! `hakobu agent`: the other end of a transfer over a remote shell, started by the program of the near end. It says nothing
//! but messages on standard output.

use super::confinement::Confinement;
use super::{cp, sync, verify};
use crate::cli::{Opt, Table, flag, parts, put, value};
use crate::show::output;
use crate::{exit, names};
use hakobu_core::error::Fatal;
use hakobu_sys::paths::Links;
use hakobu_sys::stdio;
use hakobu_transfer::far::SourceSends;
use hakobu_transfer::run::{Agent, Control};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The command line of `agent`.
pub static TABLE: Table<AgentArgs> = Table {
    command: "agent",
    about: "Be the other end of a transfer over ssh",
    description: "hakobu starts it on the other machine, and tells it on standard input what to do.\n\
                  In authorized_keys it restricts what a key may do, whatever the near end's command line asks for:\n\
                  restrict,command=\"hakobu agent --root /srv/backup --write-only --no-delete\" ssh-ed25519 AAAA...",
    usage: "hakobu agent [--root DIR [--read-only | --write-only] [--no-delete] [--no-overwrite]]",
    examples: &[
        ("hakobu agent --root /srv/pub --read-only", "Give files of one directory, and take none."),
        (
            "hakobu agent --root /srv/in --write-only --no-delete --no-overwrite",
            "Take new files into one directory.",
        ),
    ],
    common: &[],
    after: "Exit codes: 0 done, or the near end was told why not; 2 usage; 11 standard input and output, or DIR, cannot be \
            used.",
    options: &[&OPTIONS],
    unbuilt: &[],
    abbreviates: false,
};

/// The options read so far.
#[derive(Default)]
pub struct AgentArgs {
    root: Option<PathBuf>,
    confinement: Confinement,
}

parts!(AgentArgs {});

const OPTIONS: &[Opt<AgentArgs>] = &[
    value("root", None, "DIR", "every path is one below DIR, and none leads out of it")
        .reads(|args, arg| put(&mut args.root, Some(arg.path()))),
    flag("read-only", None, "with --root: give files, take none")
        .sets(|args, on| args.confinement.refuses_writing = on),
    flag("write-only", None, "with --root: take files, give none")
        .sets(|args, on| args.confinement.refuses_reading = on),
    flag("no-delete", None, "with --root: refuse --delete, --force and --remove-source-files")
        .sets(|args, on| args.confinement.refuses_deleting = on),
    flag("no-overwrite", None, "with --root: keep every file that is there (--ignore-existing)")
        .sets(|args, on| args.confinement.refuses_overwriting = on),
];

/// Returns what the agent is confined to.
fn confinement(args: AgentArgs) -> Result<Option<Confinement>, Fatal> {
    let AgentArgs { root, confinement } = args;
    let usage = |message: &str| Err(Fatal::new(exit::USAGE, message.to_owned()));
    if confinement.refuses_reading && confinement.refuses_writing {
        return usage("--read-only and --write-only cannot be used together");
    }
    match root {
        Some(root) => confinement.enter(&root).map(Some),
        None if confinement.is_any() => {
            usage("--read-only, --write-only, --no-delete and --no-overwrite need --root")
        }
        None => Ok(None),
    }
}

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let typed = match TABLE.parse(&arguments) {
        Ok(typed) => typed,
        Err(refused) => return super::tool::refuse(refused, exit::USAGE).into(),
    };
    if let Some(path) = typed.paths.first() {
        output::message(&format!("'{}': agent takes no arguments", path.display()));
        return exit::USAGE.into();
    }
    let args = TABLE.read(&typed, AgentArgs::default());
    let args = args.map_err(|message| Fatal::new(exit::USAGE, message));
    match args.and_then(confinement).and_then(|confinement| serve(confinement.as_ref())) {
        Ok(()) => exit::OK.into(),
        Err(fatal) => {
            output::message(&fatal.message);
            fatal.code.into()
        }
    }
}

fn serve(confinement: Option<&Confinement>) -> Result<(), Fatal> {
    let failed = |error: std::io::Error| {
        Fatal::new(exit::SYNC_IO, format!("cannot use standard input and output: {error}"))
    };
    let (from, to) = (stdio::input().map_err(failed)?, stdio::output().map_err(failed)?);
    let read = |path: &Path, nul: bool| {
        let (path, links) = match confinement {
            None => (path.to_owned(), Links::default()),
            Some(confinement) => confinement.list(path)?,
        };
        let listed = names::read_list(path.as_os_str(), &links, nul, names::split);
        listed.map_err(|message| Fatal::new(exit::SYNC_USAGE, message))
    };
    let met = Agent::meet(from, to, VERSION, read)?;
    let Some((agent, mut task)) = met else { return Ok(()) };
    let control = Control::default();
    let confined = confinement.map_or(Ok(()), |confinement| confinement.confine(&mut task));
    let read = confined.and_then(|()| match &*task.command {
        "sync" => sync::read_task(&task).map(|spec| (spec, 0, SourceSends::Contents)),
        "cp" => cp::read_task(&task, &agent.listener())
            .map(|(spec, failed)| (spec, failed, SourceSends::Contents)),
        "verify" => verify::read_task(&task).map(|spec| (spec, 0, SourceSends::Hashes)),
        other => Err(Fatal::new(exit::SYNC_USAGE, format!("the agent does not know {other}"))),
    });
    let read = read.and_then(|(mut spec, failed, sends)| {
        spec.items |= task.items;
        spec.items_unchanged |= task.items_unchanged;
        if let Some(confinement) = confinement {
            confinement.limit(&task, &mut spec)?;
        }
        Ok((spec, failed, sends))
    });
    match read {
        Ok((spec, failed, sends)) => agent.run((&spec, failed, sends), &task, VERSION, &control),
        Err(fatal) => agent.refuse(VERSION, &fatal),
    }
    Ok(())
}
