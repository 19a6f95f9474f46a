//! The run folder that a command line names: its plan, its transfer, and why it cannot be used.

use super::options::{self, Args, TABLE};
use crate::commands::line::{refuse, told};
use crate::commands::sync::read::read;
use crate::options::Refused;
use crate::show::Wanted;
use hakobu_cluster::plan::End;
use hakobu_cluster::{Folder, Plan, Trouble, folder};
use hakobu_core::error::quoted;
use hakobu_s3::Settings;
use hakobu_transfer::journal;
use hakobu_transfer::run::Spec;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// `work`, `collect`: another try may succeed (sysexits.h, EX_TEMPFAIL).
pub const AGAIN: u8 = 75;
/// `work`: no try will succeed (sysexits.h, EX_DATAERR).
pub const NEVER: u8 = 65;

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Options of a subcommand and its run folder; what comes after the folder is in `rest`.
pub struct Invocation {
    pub args: Args,
    pub run: OsString,
    pub rest: Vec<OsString>,
}

/// Reads the command line of a subcommand that takes a run folder; the error is an exit code, with its message already
/// told.
pub fn parse(verb: &str, arguments: &[OsString], usage_code: u8) -> Result<Invocation, u8> {
    let typed = TABLE.parse(arguments).map_err(|refused| refuse(refused, usage_code))?;
    let usage = |message: String| told(usage_code, &message);
    if let Some(other) = options::misplaced(verb, &typed) {
        return Err(usage(format!("--{other} is not an option of cluster {verb}")));
    }
    let args = TABLE.read(&typed, Args::default()).map_err(usage)?;
    let mut paths = typed.paths.into_iter();
    let Some(run) = paths.next() else {
        return Err(usage(format!("give a run folder: hakobu cluster {verb} RUN")));
    };
    let rest: Vec<OsString> = paths.collect();
    if verb != "submit" && !rest.is_empty() {
        return Err(usage(format!("cluster {verb} takes one run folder")));
    }
    Ok(Invocation { args, run: absolute(&run), rest })
}

/// The absolute form of a path; `s3://` is unchanged.
pub fn absolute(path: &OsStr) -> OsString {
    match path.as_bytes().starts_with(b"s3://") {
        true => path.to_owned(),
        false => {
            std::path::absolute(path).map_or_else(|_| path.to_owned(), PathBuf::into_os_string)
        }
    }
}

/// A run that was planned: its folder, its plan, and the transfer as the plan's words have it.
pub struct Opened {
    pub folder: Arc<dyn Folder>,
    pub plan: Plan,
    pub spec: Spec,
    pub wanted: Wanted,
}

/// Opens a run, goes to the folder of its paths, and reads its words.
pub fn open(run: &OsStr, settings: &Settings) -> Result<Opened, Trouble> {
    let folder = folder::open(run, settings, false)?;
    let plan = Plan::read(&*folder, VERSION)?;
    let entered = std::env::set_current_dir(decoded(&plan.folder));
    let words: Vec<OsString> = plan.words.iter().map(|word| decoded(word)).collect();
    let (spec, wanted, _) = match read(&words) {
        Ok(read) => read,
        Err(Refused::Usage(message) | Refused::Failed { message, .. }) => {
            return Err(Trouble::lasting(format!(
                "cannot read the plan's command line: {message}"
            )));
        }
        Err(Refused::Help(_)) => return Err(Trouble::lasting("the plan asks for help")),
    };
    if let Err(error) = entered
        && paths(&spec).any(Path::is_relative)
    {
        let shown = quoted(decoded(&plan.folder));
        let hint = "hint: relative paths begin there; plan with absolute ones";
        return Err(Trouble::lasting(format!("cannot enter {shown}: {error}\n{hint}")));
    }
    check_ends(&plan)?;
    Ok(Opened { folder, plan, spec, wanted })
}

fn decoded(text: &str) -> OsString {
    OsString::from_vec(journal::bytes(text))
}

/// Paths of this machine at both ends.
fn paths(spec: &Spec) -> impl Iterator<Item = &Path> {
    spec.sources.paths().iter().map(PathBuf::as_path).chain(spec.target.local())
}

/// The existing directories at both ends of a transfer.
pub fn ends(spec: &Spec) -> Vec<End> {
    let of = |path: &Path| {
        let meta = std::fs::metadata(path).ok().filter(|meta| meta.is_dir())?;
        Some(End { path: journal::text(path.as_os_str().as_bytes()), ino: meta.ino() })
    };
    paths(spec).filter_map(of).collect()
}

/// Compares the directories at both ends with those that the plan saw. A file system that is not
/// mounted leaves an empty directory in its place, and everything would seem to be gone.
fn check_ends(plan: &Plan) -> Result<(), Trouble> {
    for End { path, ino } in &plan.ends {
        let path = decoded(path);
        let there = std::fs::metadata(&path).map(|meta| meta.ino());
        let why = match there {
            Ok(there) if there == *ino => continue,
            Ok(_) => "it is another directory than the plan saw".to_owned(),
            Err(error) => error.to_string(),
        };
        let hint = "hint: every machine has to see both ends under the same paths";
        return Err(Trouble::lasting(format!("cannot use {}: {why}\n{hint}", quoted(path))));
    }
    Ok(())
}

/// Tells why a run cannot be used; the exit code.
pub fn unusable(why: Trouble) -> u8 {
    told(code_of(&why), &why.message)
}

/// The exit code of a worker that ended early.
pub fn code_of(why: &Trouble) -> u8 {
    if why.again { AGAIN } else { NEVER }
}
