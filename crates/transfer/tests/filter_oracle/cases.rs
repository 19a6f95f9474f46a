//! Seeded generators of patterns, rules, options and trees, rich in cases that the two programs could treat
//! differently.

use std::{fs, path::Path};

use hakobu_transfer::policy::filter::FilterBuilder;

use super::write;

/// A seeded generator, so that a failure can be reproduced by its number (SplitMix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }

    pub fn one_in(&mut self, sides: usize) -> bool {
        self.below(sides) == 0
    }

    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

pub const FILES: &[&str] = &[
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

pub fn pattern(dice: &mut Dice) -> String {
    let mut text = String::new();
    for _ in 0..=dice.below(4) {
        let pieces = if dice.one_in(8) { CLASSES } else { PIECES };
        text.push_str(dice.pick(pieces));
    }
    text
}

pub fn sensible(dice: &mut Dice) -> String {
    if dice.one_in(8) { pattern(dice) } else { dice.pick(SENSIBLE).to_owned() }
}

pub const MERGE_FILES: &[&str] = &[".r", ".s", ".n", ".rsync-filter", ".cvsignore", ".x"];

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

pub fn rule_file(dice: &mut Dice, nested: bool) -> String {
    let mut lines: Vec<String> = (0..=dice.below(3)).map(|_| any_rule(dice, nested)).collect();
    if dice.one_in(5) {
        lines.insert(0, dice.pick(&["# a", "", "; b", "#"]).to_owned());
    }
    lines.join(dice.pick(&["\n", "\n", "\r\n"]))
}

pub fn tree(dice: &mut Dice, root: &Path, depth: usize, merges: bool) {
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
pub fn options(dice: &mut Dice) -> (Vec<String>, FilterBuilder) {
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
