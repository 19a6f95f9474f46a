//! Runs generated filter rules over generated trees through rsync itself and through
//! `policy::filter`, and compares which entries each would transfer and which it would delete.
//! Skipped with a message where rsync is missing, unless `HAKOBU_REQUIRE_PEERS=1`.
//! `HAKOBU_ORACLE_SEED` and `HAKOBU_ORACLE_CASES` choose other cases.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::Arc;
use std::{env, fs, io, thread};

use crate::common::have;
use hakobu_transfer::policy::filter::{DirRules, Filter, FilterBuilder, Origin};

type Names = BTreeSet<Vec<u8>>;

/// A temporary directory that is removed at the end.
struct Lab(PathBuf);

impl Lab {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("hakobu-filter-{}-{name}", process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    fn fresh(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        path
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn number(name: &str, default: u64) -> u64 {
    env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn write(path: &Path, content: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Returns the names of a directory, each with whether it is a directory.
fn list(dir: &Path) -> Vec<(Vec<u8>, bool)> {
    let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
    entries.map(|e| (e.file_name().into_vec(), e.file_type().unwrap().is_dir())).collect()
}

fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    if dir.is_empty() { name.to_vec() } else { [dir, b"/", name].concat() }
}

fn at(root: &Path, path: &[u8]) -> PathBuf {
    if path.is_empty() { root.to_owned() } else { root.join(OsStr::from_bytes(path)) }
}

fn load(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The effect of a transfer: entries sent and entries deleted, by transfer path.
#[derive(Default, PartialEq, Debug)]
struct Outcome {
    sent: Names,
    deleted: Names,
}

/// The walk of an engine, using names only.
struct Walk<'a> {
    filter: &'a Filter,
    source: &'a Path,
    target: &'a Path,
    outcome: Outcome,
    refused: Option<String>,
}

impl Walk<'_> {
    fn enter(&mut self, rules: &Arc<DirRules>, dir: &[u8]) -> Arc<DirRules> {
        let mut read = |name: &[u8]| load(&at(&at(self.source, dir), name));
        self.filter.enter(rules, dir, &mut read).unwrap_or_else(|error| {
            self.refused = Some(error.to_string());
            Arc::clone(rules)
        })
    }

    fn send(&mut self, parent: &Arc<DirRules>, dir: &[u8]) {
        let rules = self.enter(parent, dir);
        for (name, is_dir) in list(&at(self.source, dir)) {
            self.entry(&rules, &join(dir, &name), is_dir);
        }
    }

    fn entry(&mut self, rules: &Arc<DirRules>, path: &[u8], is_dir: bool) {
        if !self.filter.check(rules, path, is_dir, false).hide {
            self.outcome.sent.insert(path.to_vec());
            if is_dir {
                self.send(rules, path);
            }
        }
    }

    /// Deletes in a target directory whose source was walked. `parent` is the state above it.
    fn delete(&mut self, parent: &Arc<DirRules>, dir: &[u8]) {
        let rules = self.enter(parent, dir);
        for (name, is_dir) in list(&at(self.target, dir)) {
            let path = join(dir, &name);
            if !self.outcome.sent.contains(&path) {
                self.remove(&rules, &path, is_dir, false);
            } else if is_dir {
                self.delete(&rules, &path);
            }
        }
    }

    /// Removes an entry unless it is or contains a protected one; returns whether it is gone.
    fn remove(
        &mut self,
        rules: &Arc<DirRules>,
        path: &[u8],
        is_dir: bool,
        in_deleted: bool,
    ) -> bool {
        if self.filter.check(rules, path, is_dir, in_deleted).protect {
            return false;
        }
        if is_dir {
            let rules = self.filter.enter(rules, path, &mut |_| Ok(None)).unwrap();
            let mut empty = true;
            for (name, is_dir) in list(&at(self.target, path)) {
                empty &= self.remove(&rules, &join(path, &name), is_dir, true);
            }
            if !empty {
                return false;
            }
        }
        self.outcome.deleted.insert(path.to_vec())
    }
}

/// Runs rsync in `dir`. A dry run is not enough: it counts directories as deleted that it could not remove.
fn ask_rsync(dir: &Path, options: &[String], source: &str) -> Result<Outcome, String> {
    let mut before = Names::new();
    names_below(&dir.join("target"), b"", &mut before);
    let mut command = Command::new("rsync");
    command.args(["-r", "-8", "--times", "-ii", "--delete", "--out-format=%i %n"]).args(options);
    command.args([source, "target/"]).current_dir(dir).env("HOME", dir).env_remove("CVSIGNORE");
    let output = command.output().unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let mut outcome = Outcome::default();
    for line in output.stdout.split(|byte| *byte == b'\n') {
        let sent =
            line.first().is_some_and(|byte| b">c.".contains(byte)) && line.get(11) == Some(&b' ');
        if sent && &line[12..] != b"./" {
            outcome.sent.insert(line[12..].strip_suffix(b"/").unwrap_or(&line[12..]).to_vec());
        }
    }
    let mut after = Names::new();
    names_below(&dir.join("target"), b"", &mut after);
    outcome.deleted =
        before.difference(&after).filter(|name| !outcome.sent.contains(*name)).cloned().collect();
    Ok(outcome)
}

fn names_below(root: &Path, dir: &[u8], into: &mut Names) {
    for (name, is_dir) in list(&at(root, dir)) {
        let path = join(dir, &name);
        if is_dir {
            names_below(root, &path, into);
        }
        into.insert(path);
    }
}

fn show(names: &Names) -> String {
    names.iter().map(|name| String::from_utf8_lossy(name)).collect::<Vec<_>>().join(" | ")
}

fn difference(ours: &Outcome, theirs: &Outcome) -> String {
    let less = |a: &Names, b: &Names| show(&a.difference(b).cloned().collect());
    format!(
        "  sent only here: {}\n  sent only by rsync: {}\n  deleted only here: {}\n  deleted only by rsync: {}",
        less(&ours.sent, &theirs.sent),
        less(&theirs.sent, &ours.sent),
        less(&ours.deleted, &theirs.deleted),
        less(&theirs.deleted, &ours.deleted)
    )
}

/// Every pattern gets a directory with the same content and a file with only this pattern, so that one run of rsync
/// tests many patterns.
#[test]
fn patterns_match_what_rsync_matches() {
    if !have("rsync", "its filter rules") {
        return;
    }
    let lab = Lab::new("patterns");
    let mut dice = Dice(number("HAKOBU_ORACLE_SEED", 1));
    let mut failures = Vec::new();
    for round in 0..number("HAKOBU_ORACLE_CASES", 400).div_ceil(100) {
        let case = lab.fresh(&format!("{round}"));
        fs::create_dir_all(case.join("target")).unwrap();
        let mut patterns = Vec::new();
        for index in 0..100 {
            let text = if dice.one_in(4) { sensible(&mut dice) } else { pattern(&mut dice) };
            let top = case.join(format!("source/{index}"));
            for (dir, files) in [("", FILES), ("d", &FILES[..4]), ("d/dd/e", FILES), ("foo.d", &[])]
            {
                fs::create_dir_all(top.join(dir)).unwrap();
                files.iter().for_each(|file| write(&top.join(dir).join(file), b""));
            }
            write(&top.join(".p"), text.as_bytes());
            patterns.push(text);
        }
        let mut builder = FilterBuilder::default();
        builder.rule(b":-n .p").unwrap();
        builder.rule(b":- .q").unwrap();
        let options = ["-f:-n .p".to_owned(), "-f:- .q".to_owned()];
        // Half of the patterns are inherited, too.
        for index in (0..100).step_by(2) {
            let top = case.join(format!("source/{index}"));
            fs::rename(top.join(".p"), top.join(".q")).unwrap();
        }
        let ours = run(&case, builder, "source/").unwrap();
        let theirs = ask_rsync(&case, &options, "source/").unwrap();
        for (index, text) in patterns.iter().enumerate() {
            let prefix = format!("{index}/");
            let only = |names: &Names| {
                names.iter().filter(|n| n.starts_with(prefix.as_bytes())).cloned().collect()
            };
            let (ours, theirs): (Names, Names) = (only(&ours.sent), only(&theirs.sent));
            if ours != theirs {
                let [ours, theirs] =
                    [ours, theirs].map(|sent| Outcome { sent, ..Outcome::default() });
                failures.push(format!("pattern {text:?}\n{}", difference(&ours, &theirs)));
            }
        }
    }
    assert!(failures.is_empty(), "{} patterns differ:\n{}", failures.len(), failures.join("\n"));
}

/// Builds the filter and walks `source` as an engine would.
fn run(case: &Path, builder: FilterBuilder, source: &str) -> Result<Outcome, String> {
    let filter = builder.build(&mut |name| fs::read(at(case, name))).map_err(|e| e.to_string())?;
    let whole = !source.ends_with('/');
    let root = if whole { case.to_owned() } else { case.join("source") };
    let target = case.join("target");
    let origin = Origin {
        source: root.as_os_str().as_bytes(),
        target: target.as_os_str().as_bytes(),
        first: if whole { b"source" } else { b"" },
    };
    let top = filter
        .root(&origin, &mut |name| load(&at(Path::new("/"), name)))
        .map_err(|e| e.to_string())?;
    let mut walk = Walk {
        filter: &filter,
        source: &root,
        target: &target,
        outcome: Outcome::default(),
        refused: None,
    };
    if whole {
        walk.entry(&top, b"source", true);
    } else {
        walk.send(&top, b"");
    }
    give_target_the_merge_files(&walk);
    if !whole {
        walk.delete(&top, b"");
    } else if walk.outcome.sent.contains(&b"source"[..]) && target.join("source").is_dir() {
        walk.delete(&top, b"source");
    }
    walk.refused.map_or(Ok(walk.outcome), Err)
}

/// rsync reads the target's per-directory files to decide deletions, this program the source's. Puts the same files
/// on both sides where the source is walked, to make the two comparable.
fn give_target_the_merge_files(walk: &Walk<'_>) {
    let dirs = walk.outcome.sent.iter().map(|path| &**path).chain([&b""[..]]);
    for dir in dirs.filter(|dir| at(walk.target, dir).is_dir() && at(walk.source, dir).is_dir()) {
        for name in MERGE_FILES {
            let file = at(walk.source, dir).join(name);
            if file.is_file() {
                fs::copy(file, at(walk.target, dir).join(name)).unwrap();
            }
        }
    }
}

fn compare(lab: &Lab, seed: u64) -> Option<String> {
    let mut dice = Dice(seed.wrapping_mul(0x2545_F491_4F6C_DD1D));
    let case = lab.fresh(&format!("{seed}"));
    let source = dice.pick(&["source/", "source/", "source"]);
    tree(&mut dice, &case.join("source"), 2, true);
    let inner = if source.ends_with('/') { "target" } else { "target/source" };
    tree(&mut dice, &case.join(inner), 2, false);
    for file in ["merge1", "merge2", ".r", ".s"] {
        write(&case.join(file), rule_file(&mut dice, true).as_bytes());
    }
    let (options, builder) = options(&mut dice);
    // `run` completes the target, so it comes first.
    let ours = run(&case, builder, source);
    let theirs = ask_rsync(&case, &options, source);
    let report = match (&ours, &theirs) {
        (Ok(ours), Ok(theirs)) if ours == theirs => None,
        (Ok(ours), Ok(theirs)) => Some(difference(ours, theirs)),
        (Err(_), Err(_)) => None,
        (Err(ours), Ok(_)) => Some(format!("  refused only here: {ours}")),
        (Ok(_), Err(theirs)) => Some(format!("  refused only by rsync: {theirs}")),
    };
    let report = report.map(|text| format!("seed {seed}: {} {source}\n{text}", options.join(" ")));
    if env::var_os("HAKOBU_ORACLE_KEEP").is_none() {
        let _ = fs::remove_dir_all(case);
    }
    report
}

#[test]
fn rule_lists_decide_what_rsync_decides() {
    if !have("rsync", "its filter rules") {
        return;
    }
    let lab = Lab::new("lists");
    let first = number("HAKOBU_ORACLE_SEED", 1);
    let last = first + number("HAKOBU_ORACLE_CASES", 250);
    let failures: Vec<String> = thread::scope(|scope| {
        let part = |lane: u64| {
            (first + lane..last).step_by(2).filter_map(|seed| compare(&lab, seed)).collect()
        };
        let other = scope.spawn(move || part(1));
        let mut failures: Vec<String> = part(0);
        failures.extend(other.join().unwrap());
        failures
    });
    assert!(failures.is_empty(), "{} cases differ:\n{}", failures.len(), failures.join("\n"));
}

// Seeded generators of patterns, rules, options and trees, rich in cases that the two programs could treat differently.

/// A seeded generator, so that a failure can be reproduced by its number (SplitMix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }

    fn one_in(&mut self, sides: usize) -> bool {
        self.below(sides) == 0
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

const FILES: &[&str] = &[
    "a", "b", "c", "ab", "abc", "foo", "foo.o", "foo.c", ".x", "a b", "a-b", "a[b", "a]b", "a\\b",
    "*", "x*y", "A", "1", "-", "[a", "é", "b.bak", "#a", "tags",
];
const DIRS: &[&str] = &["d", "dd", "foo.d", "e", "CVS", "d d", "d-e"];
const PIECES: &[&str] = &[
    "a", "b", "c", "d", "e", "foo", ".o", ".", "x", "*", "*", "*", "?", "**", "**", "***", "/",
    "/", "/", "[a-c]", "[!a]", "[^b]", "[]]", "[]-a]", "\\", "\\*", "\\a", "[", "]", "-", "[a",
    "[a-", "[a-]", "[\\]]", "[\\\\]", "[+--]", "[!/]", "[,-0]", "[c-a]", " ", "[[a]", "[[:a]",
    "[!]", "[!]]", "[]", "[[]", "[*]", "[é]", "é",
];
const CLASSES: &[&str] =
    &["[[:alpha:]]", "[[:digit:]a]", "[[:punct:]]", "[[:foo:]]", "[[:alpha:]-z]", "[a[:digit:]]"];
const SENSIBLE: &[&str] = &[
    "a", "b", "/a", "/d", "d/", "*", "*/", "/*", "*.o", "foo*", "d/a", "/d/a", "d/**", "d/***",
    "/d/***", "**/a", "**/***", "**/*a", "***/b", "*/**", "a*", "/d/*", "**", "d**b", "[ab]",
    "foo.?", "*b*", "/e/d/", "e/*/a", ".x", ".r", ".s", "tags", "CVS", "dd/", "?", "??", "/**/a",
    "d*/", "-", "/e/**/b", "*/b", "/*/b", ".*",
];

fn pattern(dice: &mut Dice) -> String {
    let mut text = String::new();
    for _ in 0..=dice.below(4) {
        let pieces = if dice.one_in(8) { CLASSES } else { PIECES };
        text.push_str(dice.pick(pieces));
    }
    text
}

fn sensible(dice: &mut Dice) -> String {
    if dice.one_in(8) { pattern(dice) } else { dice.pick(SENSIBLE).to_owned() }
}

const MERGE_FILES: &[&str] = &[".r", ".s", ".n", ".rsync-filter", ".cvsignore", ".x"];

/// Returns a rule as `--filter` takes it. `nested` rules are in files.
fn any_rule(dice: &mut Dice, nested: bool) -> String {
    let pattern = sensible(dice);
    let sign = dice.pick(&["-", "-", "-", "+", "+", "H", "S", "P", "R"]);
    match dice.below(if nested { 16 } else { 24 }) {
        0 => format!("{sign}! {pattern}"),
        1 => format!("{sign}p {pattern}"),
        2 => format!(
            "{},{} {pattern}",
            dice.pick(&["-", "+", "include", "exclude"]),
            dice.pick(&["s", "r", "sr", "rp", "s!"])
        ),
        3 if dice.one_in(2) => "!".to_owned(),
        4 => format!(
            "{}_{pattern}",
            dice.pick(&["include", "exclude", "hide", "show", "protect", "risk"])
        ),
        5 => format!(
            "{sign}/ {}",
            dice.pick(&["source/d", "/**/source/*.o", "d/a", "a", "target/*", "e/*/b", "/**/dd"])
        ),
        6 if dice.one_in(3) => "-C".to_owned(),
        7 => format!(": {}", dice.pick(&[".s", ".n", ".s", ".x"])),
        8 if dice.one_in(3) => ":C".to_owned(),
        // The modifier `x` is rejected by name, so it is not compared.
        9 => format!("{sign}p {pattern}"),
        16..=19 => format!(
            ":{} {}",
            dice.pick(&["", "", "n", "e", "p", "-", "s", "sr", "+n", "w-", "/", "en"]),
            dice.pick(&[".r", ".s", ".n"])
        ),
        20 => format!(": {}", dice.pick(&["/.r", "../.r", "../.s", "/.n"])),
        21 => format!(
            ".{} {}",
            dice.pick(&["", "-", "+", "s", "e", "C", "p"]),
            dice.pick(&["merge1", "merge2"])
        ),
        _ => format!("{sign} {pattern}"),
    }
}

fn rule_file(dice: &mut Dice, nested: bool) -> String {
    let mut lines: Vec<String> = (0..=dice.below(3)).map(|_| any_rule(dice, nested)).collect();
    if dice.one_in(5) {
        lines.insert(0, dice.pick(&["# a", "", "; b", "#"]).to_owned());
    }
    lines.join(dice.pick(&["\n", "\n", "\r\n"]))
}

fn tree(dice: &mut Dice, root: &Path, depth: usize, merges: bool) {
    fs::create_dir_all(root).unwrap();
    for file in FILES {
        if dice.one_in(4) {
            write(&root.join(file), b"");
        }
    }
    for name in MERGE_FILES.iter().take(4) {
        if merges && dice.one_in(3) {
            write(&root.join(name), rule_file(dice, true).as_bytes());
        }
    }
    if merges && dice.one_in(4) {
        write(&root.join(".cvsignore"), dice.pick(&["a *.o", "!", "foo*\nd", "! b"]).as_bytes());
    }
    for dir in DIRS {
        if depth > 0 && dice.one_in(3) {
            tree(dice, &root.join(dir), depth - 1, merges);
        }
    }
}

/// The options of one case, for both programs.
fn options(dice: &mut Dice) -> (Vec<String>, FilterBuilder) {
    let mut options = Vec::new();
    let mut builder = FilterBuilder::default();
    let mut accepted = |option: String, taken: bool| {
        if taken {
            options.push(option)
        }
    };
    for _ in 0..=dice.below(5) {
        let pattern = sensible(dice);
        match dice.below(12) {
            0 => accepted(
                format!("--exclude={pattern}"),
                builder.exclude(pattern.as_bytes()).is_ok(),
            ),
            1 => accepted(
                format!("--include={pattern}"),
                builder.include(pattern.as_bytes()).is_ok(),
            ),
            2 if dice.one_in(2) => accepted("-F".to_owned(), builder.per_directory().is_ok()),
            _ => {
                let rule = any_rule(dice, false);
                accepted(format!("--filter={rule}"), builder.rule(rule.as_bytes()).is_ok());
            }
        }
    }
    if dice.one_in(6) {
        accepted("--cvs-exclude".to_owned(), true);
        builder.cvs_exclude();
    }
    if dice.one_in(5) {
        accepted("--delete-excluded".to_owned(), true);
        builder.delete_excluded(true);
    }
    (options, builder)
}
