//! Checks beyond the compiler and clippy: direction of imports between the modules of the transfer crate,
//! unfinished code. (Manifests restrict dependencies between crates; `unsafe`, printing and
//! panics are lints of the workspace.)

use std::path::{Path, PathBuf};

/// Floors of the transfer crate, the lowest first: a room imports from floors below its own only.
const FLOORS: &[&[&str]] = &[
    &["location", "journal"],
    &["failure", "manifest"],
    &["policy"],
    &["publish", "compare"],
    &["local"],
    &["object", "far"],
    &["plan", "verify"],
    &["run"],
];

/// Paths from the top of the repository and texts of all source files.
fn sources() -> Vec<(String, String)> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for dir in ["src", "crates", "tests"] {
        collect(&top.join(dir), &mut files);
    }
    files.sort();
    assert!(files.len() > 500, "found only {} files", files.len());
    let read = |path: &PathBuf| std::fs::read_to_string(path).unwrap();
    let name = |path: &PathBuf| path.strip_prefix(top).unwrap().to_str().unwrap().to_owned();
    files.iter().map(|path| (name(path), read(path))).collect()
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
}

/// Rooms that a line imports from.
fn imported(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split("//").next().unwrap_or_default();
    code.split("crate::").skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
        &rest[..end.unwrap_or(rest.len())]
    })
}

#[test]
fn rooms_of_transfer_import_downwards() {
    let floor = |room: &str| FLOORS.iter().position(|floor| floor.contains(&room));
    let mut found = Vec::new();
    for (path, text) in sources() {
        let Some(inside) = path.strip_prefix("crates/transfer/src/") else { continue };
        let room = inside.split('/').next().unwrap().trim_end_matches(".rs");
        if room == "lib" {
            continue;
        }
        let own = floor(room).unwrap_or_else(|| panic!("{path}: a room without a floor"));
        for (number, line) in text.lines().enumerate() {
            // One form of import only, so that this reader sees them all.
            if line.contains("crate::{") {
                found.push(format!("{path}:{}: name the room: crate::ROOM::{{…}}", number + 1));
            }
            for import in imported(line) {
                if import != room && floor(import).is_some_and(|floor| floor >= own) {
                    found.push(format!("{path}:{}: {room} may not know {import}", number + 1));
                }
            }
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// The part of a file that is not a test of its own, without comments.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let program = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = program.lines().enumerate();
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

#[test]
fn arguments_are_parsed_where_they_are_typed() {
    // A record on disk names its target as it was typed.
    let own = ["crates/transfer/src/location.rs", "crates/transfer/src/object/parts.rs"];
    let mut found = Vec::new();
    for (path, text) in sources() {
        if !path.starts_with("crates/transfer/src/") || path.contains("/tests") {
            continue;
        }
        if own.iter().any(|own| path.starts_with(own)) {
            continue;
        }
        for (number, line) in code(&text) {
            let parses = line.contains("Location::parse") || line.contains("S3Url::parse");
            if parses || line.contains("b\"s3://") {
                found.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn every_run_goes_through_the_same_stages() {
    let mut found = Vec::new();
    for (path, text) in sources() {
        let here = path.starts_with("crates/transfer/src/run") && !path.contains("/tests");
        let begins = code(&text).any(|(_, line)| line.contains("Event::Begins("));
        found.extend((here && begins).then_some(path));
    }
    assert_eq!(found, ["crates/transfer/src/run.rs"]);
}

#[test]
fn the_reader_of_imports_reads() {
    let line = "use crate::local::{A, B}; crate::policy::x(hakobu_sys::y) // crate::run::z";
    assert_eq!(imported(line).collect::<Vec<_>>(), ["local", "policy"]);
}

#[test]
fn files_open_with_their_purpose_and_are_finished() {
    let mut found = Vec::new();
    for (path, text) in sources() {
        if !text.starts_with("//!") {
            found.push(format!("{path}: no purpose at the top"));
        }
        // Written apart: this file is read as well.
        let words = [concat!("FIX", "ME"), concat!("TO", "DO"), concat!("XX", "X"), "#[ignore"];
        for (number, line) in text.lines().enumerate() {
            let is_here = path == "tests/suite/layers.rs";
            if words.iter().any(|word| line.contains(word)) && !is_here {
                found.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn system_interfaces_are_read_in_sys() {
    let mut found = Vec::new();
    for (path, text) in sources() {
        let program = path.starts_with("crates/") && !path.contains("/tests");
        if !program || path.starts_with("crates/sys/") {
            continue;
        }
        for (number, line) in code(&text) {
            if line.contains("\"/proc/") || line.contains("\"/sys/") {
                found.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}
