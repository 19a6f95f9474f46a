//! The rooms of ARCHITECTURE.md as a test: who may import whom, where unsafe code, system calls and
//! printing live, and what may not be left lying about.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Which crates a crate may name.
const CRATES: &[(&str, &[&str])] = &[
    ("crates/sys", &[]),
    ("crates/transfer", &["hakobu_sys"]),
    ("crates/lab", &["hakobu_sys", "hakobu_transfer"]),
    ("src", &["hakobu_sys", "hakobu_transfer", "hakobu_lab"]),
];

/// Which modules of the transfer crate a module of it may name, besides itself. An arrow never
/// turns back, and rooms on the same floor do not know each other.
const TRANSFER: &[(&str, &[&str])] = &[
    ("unit", &[]),
    ("clock", &[]),
    ("control", &[]),
    ("error", GROUND),
    ("event", GROUND),
    ("location", GROUND),
    ("meter", GROUND),
    ("limit", &["unit", "error", "event", "clock", "control", "meter"]),
    ("tune", GROUND),
    ("sample", GROUND),
    ("journal", GROUND),
    ("verdict", &["unit", "error", "event", "clock", "control", "meter", "sample"]),
    ("s3", &["unit", "error", "event", "clock", "control", "meter", "location", "limit"]),
    ("policy", FIRST),
    ("engine", SECOND),
    ("object", OBJECT),
    ("plan", THIRD),
    ("verify", THIRD),
    ("run", FOURTH),
];
const GROUND: &[&str] = &["unit", "error", "event", "clock", "control"];
const FIRST: &[&str] = &[
    "unit", "error", "event", "clock", "control", "meter", "location", "limit", "tune", "sample",
    "journal", "verdict",
];
const SECOND: &[&str] = &[
    "unit", "error", "event", "clock", "control", "meter", "location", "limit", "tune", "sample",
    "journal", "verdict", "policy",
];
const OBJECT: &[&str] = &[
    "unit", "error", "event", "clock", "control", "meter", "location", "limit", "tune", "sample",
    "journal", "verdict", "s3", "policy", "engine",
];
const THIRD: &[&str] = &[
    "unit", "error", "event", "clock", "control", "meter", "location", "limit", "tune", "sample",
    "journal", "verdict", "s3", "policy", "engine", "object",
];
const FOURTH: &[&str] = &[
    "unit", "error", "event", "clock", "control", "meter", "location", "limit", "tune", "sample",
    "journal", "verdict", "s3", "policy", "engine", "object", "plan", "verify",
];

/// The longest that a file of each kind may be (the first kind that fits): as long as its longest
/// was when this was last looked at, rounded up to tens. To raise one is a decision, not a habit.
const LINES_MAX: &[(&str, &str, usize)] = &[
    ("tables of options", "src/options/", 350),
    ("a walk over two trees, to be divided", "crates/transfer/src/verify/walk.rs", 580),
    ("removal, to be divided", "crates/transfer/src/engine/remove", 490),
    ("the program", "src/", 440),
    ("tests", "tests/", 400),
    ("tests", "crates/transfer/tests/", 380),
    ("the transfer crate", "crates/transfer/", 520),
    ("system calls", "crates/sys/", 230),
    ("the lab", "crates/lab/", 400),
];

struct Source {
    /// Path from the top of the repository.
    path: String,
    text: String,
    /// The text without comments, contents of strings, and the tests at its end; lines kept.
    code: String,
}

fn sources() -> Vec<Source> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for dir in ["src", "crates", "tests"] {
        collect(&top.join(dir), &mut files);
    }
    let sources = files.into_iter().map(|file| {
        let text = std::fs::read_to_string(&file).unwrap();
        let path = file.strip_prefix(top).unwrap().to_str().unwrap().to_owned();
        let code = without_tests(&blank(&text));
        Source { path, text, code }
    });
    let sources: Vec<_> = sources.collect();
    assert!(sources.len() > 20, "found only {} files", sources.len());
    sources
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            collect(&path, files);
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
    files.sort();
}

/// Replaces comments and the insides of strings by spaces. Knows as much of Rust as it needs.
fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if rest.starts_with("r\"") || rest.starts_with("r#\"") {
            let close = if rest.starts_with("r\"") { "\"" } else { "\"#" };
            let open = close.len() + 1;
            rest[open..].find(close).map_or(rest.len(), |end| open + end + close.len())
        } else if rest.starts_with('"') {
            string_length(rest)
        } else if let Some(length) = char_length(rest) {
            length
        } else {
            let length = rest.chars().next().unwrap().len_utf8();
            out.push_str(&rest[..length]);
            at += length;
            continue;
        };
        let gone = rest[..length].chars().map(|c| if c == '\n' { '\n' } else { ' ' });
        out.extend(gone);
        at += length;
    }
    out
}

fn string_length(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    rest.len()
}

/// The length of a character literal, which a lifetime is not.
fn char_length(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('\'')?;
    if inner.starts_with('\\') {
        return inner[2..].find('\'').map(|end| end + 4);
    }
    let first = inner.chars().next()?;
    inner[first.len_utf8()..].starts_with('\'').then(|| first.len_utf8() + 2)
}

/// Whether a file is part of the program, and not of its tests.
fn is_program(path: &str) -> bool {
    let source = path.starts_with("src/") || path.starts_with("crates/") && path.contains("/src/");
    source && !path.ends_with("/tests.rs") && !path.contains("/tests/")
}

/// A module of tests stands at the end of its file, or in a file of its own, wherever that is
/// declared. Whatever else is made for tests only counts as part of the program.
fn without_tests(code: &str) -> String {
    let starts = code.match_indices("#[cfg(test)]\n").map(|(at, _)| at);
    let end = starts.into_iter().find(|at| {
        let item = code[*at..].lines().nth(1).unwrap_or_default();
        item.ends_with("mod tests {") && !item.starts_with(' ')
    });
    code[..end.unwrap_or(code.len())].to_owned()
}

/// Where a word stands by itself in the code, as line numbers.
fn lines_with<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_name = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    code.match_indices(word).filter_map(move |(at, _)| {
        let starts_name = is_name(word.chars().next());
        let ends_name = is_name(word.chars().last());
        let before = starts_name && is_name(code[..at].chars().last());
        let after = ends_name && is_name(code[at + word.len()..].chars().next());
        (!before && !after).then(|| code[..at].matches('\n').count() + 1)
    })
}

fn no_lines(found: Vec<String>) {
    assert!(found.is_empty(), "\n  {}", found.join("\n  "));
}

/// Finds words in all files that `concerns` picks.
fn forbid(words: &[&str], why: &str, concerns: impl Fn(&str) -> bool) {
    let mut found = Vec::new();
    for source in sources().iter().filter(|source| concerns(&source.path)) {
        for word in words {
            for line in lines_with(&source.code, word) {
                found.push(format!("{}:{line}: {word}: {why}", source.path));
            }
        }
    }
    no_lines(found);
}

#[test]
fn crates_import_downwards() {
    for (room, allowed) in CRATES {
        for name in ["hakobu_sys", "hakobu_transfer", "hakobu_lab"] {
            let own = format!("hakobu_{}", room.trim_start_matches("crates/"));
            if !allowed.contains(&name) && name != own {
                let inside = format!("{room}/");
                forbid(&[name], "an arrow that turns back", |path| path.starts_with(&inside));
            }
        }
    }
}

/// First names after `crate::` (or as many `super::` as lead to the crate's root).
fn imports(code: &str, depth: usize) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let roots = ["crate::".to_owned(), "super::".repeat(depth)];
    for root in roots.iter().filter(|root| !root.is_empty()) {
        for (at, _) in code.match_indices(root.as_str()) {
            if code[..at].ends_with("::") || code[at + root.len()..].starts_with("super::") {
                continue; // a part of a longer path
            }
            found.extend(first_names(&code[at + root.len()..]));
        }
    }
    found
}

/// `a::b` gives a; `{a::b, c}` gives a and c.
fn first_names(rest: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let Some(group) = rest.strip_prefix('{') else { return vec![name(rest)] };
    let (mut names, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                names.push(name(&group[start..at]));
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                names.push(name(&group[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    names
}

#[test]
fn modules_of_transfer_import_one_way() {
    let mut found = Vec::new();
    let modules: Vec<&str> = TRANSFER.iter().map(|(module, _)| *module).collect();
    for source in sources() {
        let Some(inside) = source.path.strip_prefix("crates/transfer/src/") else { continue };
        let parts: Vec<&str> = inside.trim_end_matches(".rs").split('/').collect();
        if parts == ["lib"] {
            continue; // names all of them
        }
        let module = parts[0];
        let depth = parts.iter().filter(|part| **part != "mod").count();
        let Some((_, allowed)) = TRANSFER.iter().find(|(name, _)| *name == module) else {
            found.push(format!("{}: module {module} has no place in the table", source.path));
            continue;
        };
        for import in imports(&source.code, depth) {
            let room = modules.contains(&import.as_str());
            if room && import != module && !allowed.contains(&import.as_str()) {
                found.push(format!("{}: {module} may not know {import}", source.path));
            }
        }
    }
    no_lines(found);
}

#[test]
fn unsafe_code_is_in_sys_and_says_why_it_is_sound() {
    forbid(&["unsafe"], "unsafe code belongs to crates/sys", |path| {
        !path.starts_with("crates/sys/") && path != "tests/layers.rs"
    });
    let mut found = Vec::new();
    for source in sources().iter().filter(|source| source.path.starts_with("crates/sys/")) {
        let lines: Vec<&str> = source.text.lines().collect();
        for number in lines_with(&source.code, "unsafe") {
            let above = &lines[number.saturating_sub(12)..number];
            if !above.iter().any(|line| line.contains("SAFETY:") || line.contains("# Safety")) {
                found.push(format!("{}:{number}: unsafe without a SAFETY comment", source.path));
            }
        }
    }
    no_lines(found);
}

#[test]
fn system_calls_are_in_sys() {
    forbid(&["libc", "rustix", "nix"], "system calls belong to crates/sys", |path| {
        is_program(path) && !path.starts_with("crates/sys/")
    });
    let mut found = Vec::new();
    for source in sources() {
        let inner = source.path.starts_with("crates/") && !source.path.starts_with("crates/sys/");
        let has = |word: &str| {
            let code = &source.text[..without_tests(&source.text).len()];
            code.lines().any(|line| !line.trim_start().starts_with("//") && line.contains(word))
        };
        if inner && (has("\"/proc/") || has("\"/sys/")) {
            found
                .push(format!("{}: a path below /proc or /sys belongs to crates/sys", source.path));
        }
    }
    no_lines(found);
}

#[test]
fn nothing_below_the_program_prints_or_exits() {
    let words = ["println!", "eprintln!", "print!", "eprint!", "process::exit", "env::args"];
    forbid(&words, "the program's own work", |path| {
        path.starts_with("crates/") && is_program(path)
    });
}

#[test]
fn nothing_is_left_lying_about() {
    let words = ["todo!", "unimplemented!", "dbg!"];
    forbid(&words, "not finished", |path| path != "tests/layers.rs");
    let mut found = Vec::new();
    for source in sources().iter().filter(|source| source.path != "tests/layers.rs") {
        for (number, line) in source.text.lines().enumerate() {
            if ["FIXME", "TODO", "XXX", "#[ignore"].iter().any(|word| line.contains(word)) {
                found.push(format!("{}:{}: {}", source.path, number + 1, line.trim()));
            }
        }
    }
    no_lines(found);
}

#[test]
fn what_comes_from_outside_is_not_unwrapped() {
    let words = [".unwrap()", ".expect(", ".unwrap_err()", "panic!", "unreachable!"];
    forbid(&words, "an error of the outside must be handled", is_program);
}

#[test]
fn files_open_with_their_purpose_and_stay_short() {
    let mut found = Vec::new();
    for source in sources() {
        if !source.text.starts_with("//!") {
            found.push(format!("{}: no purpose at the top", source.path));
        }
        let lines = source.text.lines().count();
        let limit = LINES_MAX.iter().find(|(_, start, _)| source.path.starts_with(start));
        match limit {
            Some((kind, _, max)) if lines > *max => {
                found.push(format!("{}: {lines} lines, for {kind} at most {max}", source.path));
            }
            None => found.push(format!("{}: is of no known kind", source.path)),
            _ => {}
        }
    }
    no_lines(found);
}

/// The checker itself: what it must see and what it must not.
#[test]
fn the_reader_of_sources_reads() {
    let code = blank("let a = \"crate::run\"; // crate::run\nuse crate::{unit::X, policy};");
    let names: Vec<_> = imports(&code, 1).into_iter().collect();
    assert_eq!(names, ["policy", "unit"]);
    assert_eq!(imports("use super::super::engine::X;", 2).into_iter().next().unwrap(), "engine");
    assert!(imports("use super::engine::X;", 2).is_empty());
    let code = blank("'\"' a 'b' &'c r\"unsafe\" d // e\nf");
    assert_eq!(code.split_whitespace().collect::<Vec<_>>(), ["a", "&'c", "d", "f"]);
    let late = "#[cfg(test)]\nmod tests;\n#[cfg(test)]\nuse x::y;\nfn f() {}\n";
    assert_eq!(without_tests(late), late);
    let end = format!("{late}#[cfg(test)]\npub(super) mod tests {{\n    fn g() {{}}\n}}\n");
    assert_eq!(without_tests(&end), late);
}
