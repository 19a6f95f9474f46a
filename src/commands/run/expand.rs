//! Local sources in lines of a run file: wildcards, which no shell has expanded, and folders, which s5cmd accepts
//! without `-r`.

use crate::objects::is_s3;
use hakobu_transfer::object::list::Pattern;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Returns the arguments of a command. In `cp`, `mv` and `sync` to a store, local sources with `*` or `?` are
/// replaced by the matching names, unless a file of that literal name exists; `cp` of a folder gets `-r`.
pub fn arguments(command: &str, words: &[OsString]) -> Vec<OsString> {
    let to_store = words.last().is_some_and(is_s3);
    if !to_store || !matches!(command, "cp" | "mv" | "sync") {
        return words.to_vec();
    }
    let mut out = Vec::with_capacity(words.len() + 1);
    let last = words.len() - 1;
    for (at, word) in words.iter().enumerate() {
        let is_option = word.as_bytes().starts_with(b"-");
        let is_source = at < last && !is_option && !is_s3(word);
        match Pattern::parse(word.as_bytes()).filter(|_| is_source && !exists(word)) {
            Some(_) => match matching(word.as_bytes()) {
                found if found.is_empty() => out.push(word.clone()),
                found => out.extend(found),
            },
            None => out.push(word.clone()),
        }
    }
    let is_folder = |word: &OsString| {
        !word.as_bytes().starts_with(b"-") && !is_s3(word) && Path::new(word).is_dir()
    };
    if command == "cp" && out.iter().any(is_folder) {
        out.insert(0, "-r".into());
    }
    out
}

fn exists(word: &OsStr) -> bool {
    Path::new(word).symlink_metadata().is_ok()
}

/// Returns all paths that a pattern matches, by name; a star stays within its component.
fn matching(pattern: &[u8]) -> Vec<OsString> {
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
            let Ok(entries) = std::fs::read_dir(OsStr::from_bytes(dir)) else { continue };
            let names = entries.flatten().map(|entry| entry.file_name());
            next.extend(
                names
                    .filter(|name| wild.matches(name.as_bytes()))
                    .map(|name| joined(base, name.as_bytes())),
            );
        }
        next.sort();
        found = next;
    }
    let paths = found.into_iter().map(OsString::from_vec);
    paths.filter(|path| exists(path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_become_names_and_folders_are_descended_into() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a1/x", "a1/y", "a2/x", "b/x", "c*"] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let root = dir.path().to_str().unwrap();
        let expanded = |command: &str, line: &str| {
            let words: Vec<OsString> = line
                .split_whitespace()
                .map(|word| word.replace("R/", &format!("{root}/")).into())
                .collect();
            let words = arguments(command, &words);
            let words = words.iter().map(|word| word.to_str().unwrap().replace(root, "R"));
            words.collect::<Vec<_>>().join(" ")
        };
        for (command, line, expected) in [
            ("cp", "R/a*/x s3://b/", "R/a1/x R/a2/x s3://b/"),
            ("cp", "R/a? s3://b/", "-r R/a1 R/a2 s3://b/"),
            ("cp", "R/b s3://b/", "-r R/b s3://b/"),
            ("mv", "R/b/* s3://b/", "R/b/x s3://b/"),
            // A file of that literal name, and a pattern without matches.
            ("cp", "R/c* s3://b/", "R/c* s3://b/"),
            ("cp", "R/z* s3://b/", "R/z* s3://b/"),
            ("cp", "--exclude=* R/b/x s3://b/", "--exclude=* R/b/x s3://b/"),
            ("rm", "s3://b/*", "s3://b/*"),
            ("cp", "s3://b/* R/b/", "s3://b/* R/b/"),
        ] {
            assert_eq!(expanded(command, line), expected, "{command} {line}");
        }
    }
}
