//! Import cycles among the files of a crate, which make files inseparable.
//!
//! A file refers to another one by a path in a `use` or in code. A `pub use` of a child does not count: a
//! folder's first file exposes its other files. Types shared by a parent and its children have their own
//! file.

use std::collections::{BTreeMap, BTreeSet};

/// The files of one crate by the paths of their modules.
type Files<'a> = BTreeMap<Vec<&'a str>, &'a str>;

/// The module that a file is, below its crate.
fn module(file: &str) -> Vec<&str> {
    let mut names: Vec<&str> = file.trim_end_matches(".rs").split('/').collect();
    if matches!(names.last(), Some(&("mod" | "lib" | "main"))) {
        names.pop();
    }
    names
}

/// Takes a tree of imports apart.
fn expand(prefix: &str, tree: &str, found: &mut Vec<String>) {
    let Some((start, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        found.push(format!("{prefix}{}", path.trim()));
        return;
    };
    let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
    let prefix = format!("{prefix}{}", start.trim());
    let (mut depth, mut from) = (0, 0);
    for (at, letter) in inner.char_indices().chain([(inner.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let part = inner[from..at].trim();
                if !part.is_empty() {
                    expand(&prefix, part, found);
                }
                from = at + 1;
            }
            _ => {}
        }
    }
}

/// The paths that a text names: those of `pub use`, and all others.
fn named(text: &str) -> (Vec<String>, Vec<String>) {
    // Tests that stand in the file end it; `mod tests;` may stand anywhere.
    let program = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let program = program.split("#[cfg(test)]\npub(super) mod tests {").next().unwrap_or_default();
    // Visibility names no file that is needed.
    let lines = program.lines().filter(|line| !line.contains("pub(in "));
    let lines: Vec<&str> = lines.filter_map(|line| line.split("//").next()).collect();
    let (mut shown, mut used, mut code) = (Vec::new(), Vec::new(), String::new());
    for statement in lines.join("\n").split(';') {
        let whole = statement.trim();
        let at = whole.find("use ").filter(|at| {
            let before = whole[..*at].rsplit(['\n', ']']).next().unwrap_or_default().trim();
            before.is_empty() || before.starts_with("pub") && !before.contains("fn ")
        });
        match at {
            Some(at) => {
                let is_shown = whole[..at]
                    .trim_end()
                    .rsplit('\n')
                    .next()
                    .is_some_and(|line| line.trim_start().starts_with("pub"));
                expand("", &whole[at + 4..], if is_shown { &mut shown } else { &mut used });
            }
            None => code.push_str(statement),
        }
    }
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let paths = code.split(|c: char| !is_part(c)).filter(|path| path.contains("::"));
    used.extend(paths.map(str::to_owned));
    (shown, used)
}

/// The module of the crate that a path in the module `own` begins with; `None` for what is not of this crate.
fn resolved<'a>(path: &str, own: &[&'a str], files: &Files<'a>) -> Option<Vec<&'a str>> {
    let mut parts = path.split("::").peekable();
    let mut base: Vec<&str> = match parts.peek() {
        Some(&"crate") => Vec::new(),
        Some(&("super" | "self")) => own.to_vec(),
        Some(name)
            if files.keys().any(|key| {
                key.len() == own.len() + 1 && key.starts_with(own) && key.ends_with(&[name])
            }) =>
        {
            own.to_vec()
        }
        _ => return None,
    };
    for part in parts {
        match part {
            "crate" | "self" => {}
            "super" => drop(base.pop()),
            name => {
                let key = files.keys().find(|key| {
                    key.len() == base.len() + 1 && key.starts_with(&base) && key.ends_with(&[name])
                });
                match key {
                    Some(key) => base.clone_from(key),
                    None => break,
                }
            }
        }
    }
    files.contains_key(&base).then_some(base)
}

/// The modules of a crate that reach themselves.
fn in_circles<'a>(files: &Files<'a>) -> BTreeSet<Vec<&'a str>> {
    let mut edges: BTreeMap<&Vec<&str>, BTreeSet<Vec<&str>>> = BTreeMap::new();
    for (own, text) in files {
        let (shown, used) = named(text);
        let below = |to: &Vec<&str>| to.starts_with(own);
        let shown =
            shown.iter().filter_map(|path| resolved(path, own, files)).filter(|to| !below(to));
        let used = used.iter().filter_map(|path| resolved(path, own, files));
        edges.insert(own, shown.chain(used).filter(|to| to != own).collect());
    }
    let reaches_itself = |own: &&Vec<&'a str>| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![*own]);
        while let Some(at) = open.pop() {
            for to in edges.get(at).into_iter().flatten() {
                if to == *own {
                    return true;
                }
                if seen.insert(to) {
                    open.extend(edges.get_key_value(to).map(|(key, _)| *key));
                }
            }
        }
        false
    };
    files.keys().filter(reaches_itself).cloned().collect()
}

#[test]
fn files_of_a_crate_import_in_no_circle() {
    let sources = super::sources();
    let mut crates: BTreeMap<&str, Files<'_>> = BTreeMap::new();
    for (path, text) in &sources {
        let Some((top, file)) = path.split_once("src/") else { continue };
        if !file.contains("tests") {
            crates.entry(top).or_default().insert(module(file), text);
        }
    }
    assert!(crates.len() > 8, "found only {} crates", crates.len());
    let mut found = Vec::new();
    for (top, files) in &crates {
        let circles = in_circles(files).into_iter().map(|module| module.join("::"));
        found.extend(circles.map(|module| format!("{top}{module}")));
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn circles_are_found() {
    let of = |texts: &[(&'static str, &'static str)]| {
        let files: Files<'_> = texts.iter().map(|(file, text)| (module(file), *text)).collect();
        let circles = in_circles(&files);
        circles.iter().map(|module| module.join("::")).collect::<Vec<_>>()
    };
    let parent = "mod b;\npub use b::{B, C as D};\npub struct A;";
    assert_eq!(of(&[("a.rs", parent), ("a/b.rs", "use super::A;")]), [""; 0]);
    let parent = "mod b;\n#[cfg(test)]\nmod tests;\nuse b::B;\npub struct A;";
    assert_eq!(of(&[("a/mod.rs", parent), ("a/b.rs", "use super::A;")]), ["a", "a::b"]);
    let one = "use crate::{x::Y, b::{self, Z}};";
    assert_eq!(of(&[("a.rs", one), ("b.rs", "fn f() { crate::a::g(); }")]), ["a", "b"]);
    assert_eq!(of(&[("a.rs", one), ("b.rs", "// crate::a::g\n")]), [""; 0]);
}
