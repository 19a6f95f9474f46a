//! Names in lines of a run file, as s5cmd reads them: local wildcards, which no shell has expanded, and folders, which
//! need no `-r`. One line may become several command lines.

use crate::objects::is_s3;
use hakobu_core::error::cannot;
use hakobu_transfer::object::list::Pattern;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
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
    "the target of a directory or a wildcard must be a bucket, or a prefix that ends with a slash";
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

fn exists(word: &OsStr) -> bool {
    Path::new(word).symlink_metadata().is_ok()
}

/// Returns all paths that a pattern matches, by name; a star stays within its component.
///
/// # Errors
/// A folder cannot be read: not all names are known. One that is missing, or is none, has no names.
pub fn matching(pattern: &[u8]) -> Result<Vec<OsString>, String> {
    let mut found: Vec<Vec<u8>> = vec![Vec::new()];
    for (at, part) in pattern.split(|byte| *byte == b'/').enumerate() {
        let joined = |base: &[u8], name: &[u8]| match at {
            0 => name.to_vec(),
            _ => [base, b"/", name].concat(),
        };
        let Some(wild) = Pattern::parse(part) else {
            found = found.iter().map(|base| joined(base, part)).collect();
            continue;
        };
        let mut next = Vec::new();
        for base in &found {
            let dir: &[u8] = match (at, base.is_empty()) {
                (0, _) => b".",
                (_, true) => b"/",
                _ => base,
            };
            let names =
                names_in(dir).map_err(|error| cannot("read", OsStr::from_bytes(dir), error))?;
            let names = names.iter().map(|name| name.as_bytes());
            next.extend(names.filter(|name| wild.matches(name)).map(|name| joined(base, name)));
        }
        next.sort();
        found = next;
    }
    let paths = found.into_iter().map(OsString::from_vec);
    Ok(paths.filter(|path| exists(path)).collect())
}

/// Returns the names in a folder; none if it is missing or no folder.
fn names_in(dir: &[u8]) -> io::Result<Vec<OsString>> {
    match std::fs::read_dir(OsStr::from_bytes(dir)) {
        Ok(entries) => entries.map(|entry| entry.map(|entry| entry.file_name())).collect(),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes_next(word: &str) -> bool {
        matches!(word, "--exclude" | "--include")
    }

    /// The command lines of a line, `R` being the folder.
    fn expanded(root: &str, command: &str, line: &str) -> String {
        let words: Vec<OsString> = line
            .split_whitespace()
            .map(|word| word.replace("R/", &format!("{root}/")).into())
            .collect();
        match lines(command, &words, &takes_next) {
            Err(why) => why,
            Ok(lines) => {
                let text = |words: Vec<OsString>| {
                    let words = words.iter().map(|word| word.to_str().unwrap().replace(root, "R"));
                    words.collect::<Vec<_>>().join(" ")
                };
                lines.into_iter().map(text).collect::<Vec<_>>().join("; ")
            }
        }
    }

    fn filled() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a1/x", "a1/y", "a2/x", "b/x", "b/d/z.txt", "c*"] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        dir
    }

    #[test]
    fn wildcards_keep_their_folders_and_folders_are_descended_into() {
        let dir = filled();
        let root = dir.path().to_str().unwrap();
        for (command, line, expected) in [
            ("cp", "R/a*/x s3://b/", "R/a1/x s3://b/a1/; R/a2/x s3://b/a2/"),
            ("cp", "R/a*/x s3://b", "R/a1/x s3://b/a1/; R/a2/x s3://b/a2/"),
            ("cp", "--flatten R/a*/x s3://b/", "--flatten R/a1/x R/a2/x s3://b/"),
            ("cp", "R/a? s3://b/", "-r -L R/a1 R/a2 s3://b/"),
            ("cp", "--no-follow-symlinks R/b s3://b/", "--no-follow-symlinks -r R/b s3://b/"),
            ("cp", "-r R/b s3://b/p", "-r R/b s3://b/p"),
            ("mv", "R/b/* s3://b/", "R/b/d R/b/x s3://b/"),
            // A name with a wildcard is one of its matches; with --raw it is the only one.
            ("cp", "R/c* s3://b/", "R/c* s3://b/"),
            ("cp", "--raw R/a* s3://b/", "--raw R/a* s3://b/"),
            ("cp", "-f R/a*/x s3://b/", "--flatten R/a1/x R/a2/x s3://b/"),
            ("mv", "-f s3://b/* R/b/", "--flatten s3://b/* R/b/"),
            ("cp", "-f R/b/x R/c", "-f R/b/x R/c"),
            ("cp", "-r -f R/b s3://b/p", "-r -f R/b s3://b/p"),
            ("cp", "R/z* s3://b/", "R/z* s3://b/"),
            ("cp", "--exclude * R/b/x s3://b/", "--exclude * R/b/x s3://b/"),
            ("cp", "s3://b/* R/b/", "s3://b/* R/b/"),
            ("cp", "R/b s3://b/p", NEEDS_PREFIX),
            ("cp", "R/a*/x s3://b/p", NEEDS_PREFIX),
            ("mv", "s3://b/* s3://b/p", NEEDS_PREFIX),
            ("cp", "s3://b/x R/*", WILD_TARGET),
            ("cp", "--raw s3://b/x R/*", "--raw s3://b/x R/*"),
            ("mv", "-n --raw R/c* R/d*", "-n R/c* R/d*"),
        ] {
            assert_eq!(expanded(root, command, line), expected, "{command} {line}");
        }
    }

    #[test]
    fn sync_decides_as_s5cmd_unless_it_is_hakobus() {
        for (line, expected) in [
            ("s3://b/* d/", "--size-or-newer -L s3://b/* d/"),
            (
                "--delete --size-only s3://b/* d/",
                "--delete --size-only --size-or-newer -L s3://b/* d/",
            ),
            ("--exclude * s3://b/ d/", "--exclude * --size-or-newer -L s3://b/ d/"),
            ("-a s3://b/ d/", "-a s3://b/ d/"),
            ("-rt --delete s3://b/ d/", "-rt --delete s3://b/ d/"),
            ("a b", "a b"),
        ] {
            assert_eq!(expanded("/nowhere", "sync", line), expected, "{line}");
        }
    }

    #[test]
    fn local_removals_leave_folders() {
        let dir = filled();
        let root = dir.path().to_str().unwrap();
        for (line, expected) in [
            ("R/a1/x", "R/a1/x"),
            ("R/b", "-r --keep-dirs R/b"),
            ("R/b/*", "-r --keep-dirs R/b/d R/b/x"),
            ("R/a1/*", "R/a1/x R/a1/y"),
            ("R/z*", "R/z*"),
            ("--exclude *.txt R/b", "--exclude *.txt --filter-style=s5cmd -r --keep-dirs R/b"),
            (
                "--exclude d/z.txt -f R/b/*",
                "--exclude d/z.txt -f --filter-style=s5cmd -r --keep-dirs R/b/./d R/b/./x",
            ),
            ("--raw R/a*", "R/a*"),
            ("-r R/b", "-r R/b"),
            ("--filter=-_d R/b", "--filter=-_d R/b"),
            ("--exclude-fr=rules R/b", "--exclude-fr=rules R/b"),
            (
                "--filter-style=s5cmd --exclude=x R/b",
                "--filter-style=s5cmd --exclude=x -r --keep-dirs R/b",
            ),
            ("s3://b/*", "s3://b/*"),
        ] {
            assert_eq!(expanded(root, "rm", line), expected, "rm {line}");
        }
    }

    #[test]
    fn du_counts_what_a_wildcard_matches() {
        let dir = filled();
        let root = dir.path().to_str().unwrap();
        for (command, line, expected) in [
            ("du", "R/a1/*", "R/a1/x R/a1/y"),
            ("du", "-a R/b/d", "-a R/b/d"),
            ("du", "R/z*", "R/z*"),
            ("du", "-s R/a*", "-s R/a1 R/a2"),
            ("ls", "--exclude x s3://b/*", "--exclude x s3://b/*"),
        ] {
            assert_eq!(expanded(root, command, line), expected, "{command} {line}");
        }
    }

    #[test]
    fn a_folder_that_cannot_be_read_is_an_error() {
        let line = format!("{}/*", "a".repeat(300));
        for command in ["rm", "cp"] {
            let target = if command == "cp" { " s3://b/" } else { "" };
            let why = expanded("/nowhere", command, &format!("{line}{target}"));
            assert!(why.starts_with("cannot read 'aaa"), "{why}");
        }
        assert!(matching(b"/nowhere/*").unwrap().is_empty());
        assert!(matching(b"/dev/null/*").unwrap().is_empty());
    }
}
