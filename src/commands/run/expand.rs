//! Names in lines of a run file, as s5cmd reads them: local wildcards, which no shell has expanded, and folders, which
//! need no `-r`. One line may become several command lines.

mod local;

use crate::objects::is_s3;
use hakobu_transfer::object::list::Pattern;
use local::matching;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Most names of one command line: far below the kernel's limit for arguments.
const NAMES_MAX: usize = 1000;
/// Options of `sync` that s5cmd has as well. A line with other ones is written for hakobu.
const SYNC_OPTIONS: &[&str] = &[
    "--acl",
    "--cache-control",
    "--concurrency",
    "--content-disposition",
    "--content-encoding",
    "--content-type",
    "--delete",
    "--destination-region",
    "--exclude",
    "--exit-on-error",
    "--expires",
    "--filter-style",
    "--include",
    "--metadata",
    "--metadata-directive",
    "--no-follow-symlinks",
    "--part-size",
    "--raw",
    "--size-only",
    "--source-region",
    "--sse",
    "--sse-kms-key-id",
    "--storage-class",
];
const NEEDS_PREFIX: &str =
    "the target of a folder or a wildcard must be a bucket, or a prefix that ends with a slash";
const WILD_TARGET: &str = "the target contains a wildcard; --raw takes it literally";

/// The options and the paths of a line.
struct Words {
    options: Vec<OsString>,
    paths: Vec<OsString>,
}

impl Words {
    /// `takes_next`: whether the word after an option is its value.
    fn of(words: &[OsString], takes_next: &dyn Fn(&str) -> bool) -> Words {
        let (mut options, mut paths) = (Vec::new(), Vec::new());
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "--" {
                paths.extend(words.by_ref().cloned());
            } else if !word.as_bytes().starts_with(b"-") || word == "-" {
                paths.push(word.clone());
            } else {
                options.push(word.clone());
                if word.to_str().is_some_and(takes_next) {
                    options.extend(words.next().cloned());
                }
            }
        }
        Words { options, paths }
    }

    fn has(&self, names: &[&str]) -> bool {
        self.options.iter().any(|word| names.contains(&name_of(word)))
    }
}

fn name_of(word: &OsStr) -> &str {
    word.to_str().and_then(|word| word.split('=').next()).unwrap_or("")
}

/// Returns the command lines of a line, without the command: mostly one.
///
/// In `cp`, `mv` and `sync` to a store, local sources with `*` or `?` are replaced by the matching names, which keep
/// their folders from the first wildcard on. `cp` of a folder gets `-r` and follows symlinks. `sync` decides as s5cmd
/// does unless it has options that s5cmd does not know. `rm` of a local folder gets `-r --keep-dirs`. `-f` of `cp` and
/// `mv` is `--flatten`. In `rm` and `du` of local names wildcards are replaced as well.
/// With `--raw` all names are literal.
///
/// # Errors
/// The mistake in the line, as in s5cmd; a folder that cannot be read.
pub fn lines(
    command: &str,
    words: &[OsString],
    takes_next: &dyn Fn(&str) -> bool,
) -> Result<Vec<Vec<OsString>>, String> {
    let typed = Words::of(words, takes_next);
    match command {
        "cp" | "mv" | "sync" => transfer(command, typed, words),
        "rm" if !typed.paths.iter().any(is_s3) => removals(typed, words),
        "du" if !typed.paths.iter().any(is_s3) => usages(typed, words),
        _ => Ok(vec![words.to_vec()]),
    }
}

fn transfer(command: &str, typed: Words, words: &[OsString]) -> Result<Vec<Vec<OsString>>, String> {
    let Some((target, sources)) = typed.paths.split_last() else { return Ok(vec![words.to_vec()]) };
    let raw = typed.has(&["--raw"]);
    let is_wild = |path: &OsString| !raw && Pattern::parse(path.as_bytes()).is_some();
    let stored = typed.paths.iter().any(is_s3);
    if !stored && raw {
        // Names of local copies are always literal, and `cp` has no such option for them.
        let options: Vec<OsString> =
            typed.options.iter().filter(|word| *word != "--raw").cloned().collect();
        return Ok(vec![line(&options, sources, target)]);
    }
    if stored && is_wild(target) {
        return Err(WILD_TARGET.into());
    }
    // Then the line is written for hakobu, whose rules for folders hold.
    let ours = typed.has(&["-r", "-R", "-a", "--recursive", "--archive", "-T", "-t"]);
    let is_folder = |path: &OsString| !is_s3(path) && Path::new(path).is_dir();
    let many = sources.iter().any(|source| is_wild(source) || is_folder(source));
    let mut options = typed.options.clone();
    if command != "sync" && stored && !ours {
        options.iter_mut().filter(|word| *word == "-f").for_each(|word| *word = "--flatten".into());
    }
    if command == "sync" {
        if stored && typed.options.iter().all(|word| is_s5cmds(word)) {
            options.push("--size-or-newer".into());
            if !typed.has(&["--no-follow-symlinks"]) {
                options.push("-L".into());
            }
        }
    } else if many && is_s3(target) && !ours && !is_prefix(target) {
        return Err(NEEDS_PREFIX.into());
    }
    if !is_s3(target) || !many {
        return Ok(vec![line(&options, sources, target)]);
    }
    let flat = options.iter().any(|word| word == "--flatten");
    let mut groups: BTreeMap<Vec<u8>, Vec<OsString>> = BTreeMap::new();
    for source in sources {
        let found = match is_wild(source) && !is_s3(source) {
            true => matching(source.as_bytes())?,
            false => Vec::new(),
        };
        if found.is_empty() {
            groups.entry(Vec::new()).or_default().push(source.clone());
        }
        let base = base_len(source.as_bytes());
        for path in found {
            let folders = path.as_bytes()[base..].iter().rposition(|byte| *byte == b'/');
            let folders = folders.filter(|_| !flat).map_or(0, |end| end + 1);
            let folders = path.as_bytes()[base..base + folders].to_vec();
            groups.entry(folders).or_default().push(path);
        }
    }
    let mut lines = Vec::new();
    for (folders, sources) in groups {
        let mut options = options.clone();
        if command == "cp" && !ours && sources.iter().any(is_folder) {
            options.push("-r".into());
            if !typed.has(&["--no-follow-symlinks", "-P", "--no-dereference", "-d"]) {
                options.push("-L".into());
            }
        }
        let mut into = target.clone();
        if !folders.is_empty() {
            if !target.as_bytes().ends_with(b"/") {
                into.push("/");
            }
            into.push(OsStr::from_bytes(&folders));
        }
        lines.push(line(&options, &sources, &into));
    }
    Ok(lines)
}

/// Returns whether a URL is a bucket or ends with a slash.
fn is_prefix(url: &OsString) -> bool {
    let path = &url.as_bytes()["s3://".len().min(url.len())..];
    path.ends_with(b"/") || !path.contains(&b'/')
}

fn is_s5cmds(word: &OsStr) -> bool {
    !word.as_bytes().starts_with(b"-") || SYNC_OPTIONS.contains(&name_of(word))
}

/// Returns the length of the folders before the first wildcard.
fn base_len(pattern: &[u8]) -> usize {
    let wild = pattern.iter().position(|byte| matches!(byte, b'*' | b'?')).unwrap_or(pattern.len());
    pattern[..wild].iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1)
}

fn line(options: &[OsString], paths: &[OsString], last: &OsStr) -> Vec<OsString> {
    let mut line = options.to_vec();
    let dashed = |path: &OsString| path.as_bytes().starts_with(b"-") && path != "-";
    if paths.iter().any(dashed) {
        line.push("--".into());
    }
    line.extend(paths.iter().cloned());
    line.extend((!last.is_empty()).then(|| last.to_owned()));
    line
}

/// Local removals: folders stay, as in s5cmd, unless `-r` is given.
fn removals(typed: Words, words: &[OsString]) -> Result<Vec<Vec<OsString>>, String> {
    let raw = typed.has(&["--raw"]);
    // Rules that s5cmd lacks are read as those of `rm`.
    let ruled = |word: &OsString| {
        let name = name_of(word);
        let rules = ["--filter", "--exclude-from", "--include-from"];
        name.len() > "--".len()
            && !matches!(name, "--exclude" | "--include")
            && rules.iter().any(|rule| rule.starts_with(name))
    };
    let ours = typed.has(&["-r", "-R", "-rf", "-fr", "-d", "--recursive", "--dir", "--keep-dirs"])
        || typed.options.iter().any(ruled);
    let is_wild = |path: &OsString| !raw && Pattern::parse(path.as_bytes()).is_some();
    let is_folder =
        |path: &OsString| Path::new(path).symlink_metadata().is_ok_and(|meta| meta.is_dir());
    let filtered = typed.has(&["--exclude", "--include"]);
    let special = |path: &OsString| is_wild(path) || is_folder(path);
    if ours || !(raw || filtered || typed.paths.iter().any(special)) {
        return Ok(vec![words.to_vec()]);
    }
    let names = local_names(&typed.paths, raw, |name, base| match filtered {
        true => marked(&name, base),
        false => name,
    })?;
    let mut options = typed.options;
    options.retain(|word| word != "--raw");
    if filtered {
        in_style(&mut options);
    }
    if names.iter().any(is_folder) {
        options.extend(["-r".into(), "--keep-dirs".into()]);
    }
    Ok(names.chunks(NAMES_MAX).map(|names| line(&options, names, OsStr::new(""))).collect())
}

/// Sizes of local names.
fn usages(typed: Words, words: &[OsString]) -> Result<Vec<Vec<OsString>>, String> {
    if !typed.paths.iter().any(|path| Pattern::parse(path.as_bytes()).is_some()) {
        return Ok(vec![words.to_vec()]);
    }
    let names = local_names(&typed.paths, false, |name, _| name)?;
    let lines = names.chunks(NAMES_MAX);
    Ok(lines.map(|names| line(&typed.options, names, OsStr::new(""))).collect())
}

/// Adds s5cmd's style of patterns, if there is no other.
fn in_style(options: &mut Vec<OsString>) {
    if !options.iter().any(|word| name_of(word) == "--filter-style") {
        options.push("--filter-style=s5cmd".into());
    }
}

/// Returns local names, those with a wildcard replaced by what they match. `of` makes a word of a match and of the
/// length of the folders before the wildcard.
fn local_names(
    paths: &[OsString],
    raw: bool,
    of: impl Fn(OsString, usize) -> OsString,
) -> Result<Vec<OsString>, String> {
    let mut names = Vec::new();
    for path in paths {
        let is_wild = !raw && Pattern::parse(path.as_bytes()).is_some();
        let found = if is_wild { matching(path.as_bytes())? } else { Vec::new() };
        if found.is_empty() {
            names.push(path.clone());
        }
        let base = base_len(path.as_bytes());
        names.extend(found.into_iter().map(|name| of(name, base)));
    }
    Ok(names)
}

/// Marks in a path where the names begin that filters see.
fn marked(path: &OsStr, base: usize) -> OsString {
    let (folders, name) = path.as_bytes().split_at(base);
    let folders = if folders.is_empty() { b"./" } else { folders };
    OsStr::from_bytes(&[folders, b"./", name].concat()).to_owned()
}

#[cfg(test)]
mod tests;
