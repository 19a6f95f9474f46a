//! rsync's `--info=FLAGS` and `--debug=FLAGS`, and the texts of `--info=help` and `--debug=help`.

use super::reading::Reading;
use crate::options::{OptArg, Typed};
use std::ffi::OsString;

/// Flags with an effect.
const BUILT: &str = "NAME       names of what is updated; NAME2: of what is unchanged, too\n\
                     PROGRESS   progress, as --progress; PROGRESS2: of the whole run only\n\
                     STATS      sizes and rate at the end (also with -v); STATS2: counts, too, as --stats\n\
                     BACKUP     entries that are kept as backups (also with -vv)\n\
                     SKIP       entries that an option excludes (also with -vv)\n\
                     ALL, NONE  all or none of these";

/// rsync's flags without an effect: the messages are always printed, or never.
const OTHERS: &[&str] = &["copy", "del", "flist", "misc", "mount", "nonreg", "remove", "symsafe"];

/// rsync's flags of `--debug` without an effect.
const OTHER_DEBUG: &[&str] = &[
    "acl", "backup", "bind", "chdir", "connect", "cmd", "del", "deltasum", "dup", "exit", "flist",
    "fuzzy", "genr", "hash", "hlink", "iconv", "io", "nstr", "own", "proto", "recv", "send",
    "time",
];

/// Splits a list of flags into lower-case names and levels, with the flags as typed.
fn flags(arg: &OptArg) -> Result<Vec<(String, u8, &str)>, String> {
    let flag = |flag: &'_ str| -> Result<(String, u8), String> {
        let name = flag.trim_end_matches(|c: char| c.is_ascii_digit());
        let level = match &flag[name.len()..] {
            "" => 1,
            digits => digits.parse().map_err(|_| arg.refuse("has a level that is not a number"))?,
        };
        Ok((name.to_ascii_lowercase(), level))
    };
    let typed = arg.text()?.split(',');
    typed.map(|text| flag(text).map(|(name, level)| (name, level, text))).collect()
}

/// Applies one `--debug`.
///
/// # Errors
/// A flag that rsync does not have.
pub fn debug(it: &mut Reading, arg: &OptArg) -> Result<(), String> {
    for (name, level, flag) in flags(arg)? {
        let why = match &*name {
            "filter" | "all" => {
                it.rules = Some(level > 0);
                if level <= u8::from(name == "filter") {
                    continue;
                }
                "as filter"
            }
            "none" => {
                it.rules = Some(false);
                continue;
            }
            "help" => continue,
            other if !OTHER_DEBUG.contains(&other) => {
                return Err(format!(
                    "--debug={flag}: there is no such flag (--debug=help lists them)"
                ));
            }
            _ if level == 0 => continue,
            _ => "there is no protocol to watch",
        };
        it.without.push((format!("--debug={flag}"), why));
    }
    Ok(())
}

/// Applies one `--info`.
///
/// # Errors
/// A flag that rsync does not have.
pub fn set(it: &mut Reading, arg: &OptArg) -> Result<(), String> {
    let mut without = Vec::new();
    for (name, level, flag) in flags(arg)? {
        match &*name {
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
                (it.wanted.transfers, it.wanted.whole) = (level == 1, level > 1);
            }
            "stats" => it.stats = Some(level),
            "all" | "none" => {
                let level = if name == "none" { 0 } else { level };
                it.names = Some(level.min(2));
                (it.backups, it.skips) = (Some(level > 0), Some(level > 0));
                (it.stats, it.wanted.progress) = (Some(level), Some(level > 0));
                (it.wanted.transfers, it.wanted.whole) = (level == 1, level > 1);
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
        let others = OTHER_DEBUG.join(", ").to_ascii_uppercase();
        format!(
            "Flags of --debug, with commas between, each with a level behind it (0 is off):\n\n\
             FILTER     which filter rule decides about an entry (also with -vv)\n\
             ALL, NONE  the same, or not\n\n\
             Accepted without effect, as there is no protocol to watch: {others}.\n\
             --explain says what limits a run, -vv and -ii tell of every entry.\n"
        )
    })
}
