//! rsync's `--info=FLAGS`, and the texts of `--info=help` and `--debug=help`.

use super::reading::Reading;
use crate::options::{OptArg, Typed};
use std::ffi::OsString;

/// Flags with an effect.
const BUILT: &str = "NAME       names of what is updated; NAME2: of what is unchanged, too\n\
                     PROGRESS   progress, as --progress; PROGRESS2: of the whole run only\n\
                     STATS      counts at the end, as --stats\n\
                     BACKUP     entries that are kept as backups (also with -vv)\n\
                     SKIP       entries that an option excludes (also with -vv)\n\
                     ALL, NONE  all or none of these";

/// rsync's flags without an effect: the messages are always printed, or never.
const OTHERS: &[&str] = &["copy", "del", "flist", "misc", "mount", "nonreg", "remove", "symsafe"];

/// Applies one `--info`.
///
/// # Errors
/// A flag that rsync does not have.
pub fn set(it: &mut Reading, arg: &OptArg) -> Result<(), String> {
    let mut without = Vec::new();
    for flag in arg.text()?.split(',') {
        let name = flag.trim_end_matches(|c: char| c.is_ascii_digit());
        let level: u8 = match &flag[name.len()..] {
            "" => 1,
            digits => digits.parse().map_err(|_| arg.refuse("has a level that is not a number"))?,
        };
        match &*name.to_ascii_lowercase() {
            "name" => it.names = Some(level.min(2)),
            "backup" => it.backups = Some(level > 0),
            "skip" => {
                it.skips = Some(level > 0);
                if level > 1 {
                    without.push("skip2 (as skip)");
                }
            }
            "progress" => {
                it.wanted.progress = Some(level > 0);
                it.wanted.transfers = level == 1;
            }
            "stats" => it.wanted.stats = level > 0,
            "all" => {
                it.names = Some(level.min(2));
                (it.backups, it.skips) = (Some(level > 0), Some(level > 0));
                (it.wanted.stats, it.wanted.progress) = (level > 0, Some(level > 0));
                it.wanted.transfers = level == 1;
            }
            "none" => {
                (it.names, it.backups, it.skips) = (Some(0), Some(false), Some(false));
                (it.wanted.stats, it.wanted.progress) = (false, Some(false));
                it.wanted.transfers = false;
            }
            other if OTHERS.contains(&other) => without.push(flag),
            _ => {
                return Err(format!(
                    "--info={flag}: there is no such flag (--info=help lists them)"
                ));
            }
        }
    }
    if !without.is_empty() {
        let flags = without.join(",");
        it.wanted.notes.push(format!("note: without effect here: --info={flags}"));
    }
    Ok(())
}

/// Returns the text of `--info=help` or `--debug=help` on a command line.
pub fn help(arguments: &[OsString], typed: &Typed) -> Option<String> {
    let is_help = |name: &str| arguments.iter().any(|word| word == &*format!("--{name}=help"));
    let info = typed.options.iter().any(|arg| arg.name == "info" && arg.value == "help");
    if info || is_help("info") {
        let others = OTHERS.join(", ").to_ascii_uppercase();
        return Some(format!(
            "Flags of --info, with commas between, each with a level behind it (0 is off):\n\n{BUILT}\n\n\
             Accepted without effect: {others}.\n"
        ));
    }
    is_help("debug").then(|| {
        "All flags of --debug are accepted and have no effect: there is no protocol to watch. \
         --explain says what limits a run, -vv and -ii tell of every entry.\n"
            .to_owned()
    })
}
