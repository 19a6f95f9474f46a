//! Filter rules, generated from a seed and run through the real binary and through rsync: what is
//! copied, and what `--delete` takes away, must agree for every list of rules.

use crate::common::area::Area;
use crate::common::case::{Run, run_command};
use crate::common::grow::set_mtime;
use crate::common::snapshot::{Snapshot, show};
use crate::common::{first_seed, have, must, program, remove_tree, rounds};
use fastrand::Rng;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

const DIRS: &[&str] = &["a", "b", "foo", "bar", ".git", "x.d"];
const FILES: &[&str] = &["x", "y.o", "z.txt", "foo", "core", "a", "b~", "[x]", "q*"];
const PIECES: &[&str] = &[
    "*", "**", "?", "a", "b", "foo", "*.o", "*.txt", "[ab]", "[!a]", "x", "f*o", "*o*", "core",
    ".*", "[a-c]*", "\\[x\\]", "q\\*", "bar", "***",
];

/// A generated case: a tree, and rules in words of the command line and in files of the tree.
struct Scene {
    rules: Vec<String>,
    /// Per-directory rules, as a path and its content.
    merges: Vec<(String, String)>,
}

fn pattern(rng: &mut Rng) -> String {
    let mut text = String::new();
    if rng.u8(..4) == 0 {
        text.push('/');
    }
    for piece in 0..=rng.u8(..3) {
        if piece > 0 {
            text.push('/');
        }
        text.push_str(PIECES[rng.usize(..PIECES.len())]);
    }
    match rng.u8(..6) {
        0 => text.push('/'),
        1 => text.push_str("/***"),
        _ => {}
    }
    text
}

fn rule(rng: &mut Rng, merge: bool) -> String {
    let kinds =
        ["-", "+", "-", "+", "-", "P", "R", "H", "S", "-s", "-r", "+s", "-!", "+!", "-p", "-/"];
    let mut kind = kinds[rng.usize(..kinds.len())];
    if merge && kind == "-/" {
        kind = "-"; // absolute there as here, but the tree's own place is not known in a file
    }
    format!("{kind} {}", pattern(rng))
}

fn scene(seed: u64) -> Scene {
    let mut rng = Rng::with_seed(seed);
    let mut rules: Vec<String> = Vec::new();
    for _ in 0..rng.u8(1..6) {
        rules.push(match rng.u8(..12) {
            0 => format!("--exclude={}", pattern(&mut rng)),
            1 => format!("--include={}", pattern(&mut rng)),
            2 => "--filter=: .rules".to_owned(),
            3 => "--filter=:e .rules".to_owned(),
            4 => "--filter=:n- .rules".to_owned(),
            5 => "-F".to_owned(),
            6 => "-C".to_owned(),
            7 if rng.u8(..3) == 0 => "--filter=!".to_owned(),
            _ => format!("--filter={}", rule(&mut rng, false)),
        });
    }
    let mut merges = Vec::new();
    for place in ["", "a/", "foo/", "a/b/"] {
        for name in [".rules", ".rsync-filter", ".cvsignore"] {
            if rng.u8(..3) > 0 {
                continue;
            }
            let lines: Vec<_> = (0..rng.u8(1..4))
                .map(|_| match name {
                    ".cvsignore" => PIECES[rng.usize(..PIECES.len())].to_owned(),
                    _ => rule(&mut rng, true),
                })
                .collect();
            merges.push((format!("{place}{name}"), lines.join("\n") + "\n"));
        }
    }
    Scene { rules, merges }
}

fn tree(root: &Path, seed: u64, merges: &[(String, String)]) {
    let mut rng = Rng::with_seed(seed);
    let mut dirs = vec![root.to_owned(), root.join("a"), root.join("foo"), root.join("a/b")];
    dirs.iter().for_each(|dir| std::fs::create_dir_all(dir).unwrap());
    for _ in 0..8 {
        let dir = dirs[rng.usize(..dirs.len())].join(DIRS[rng.usize(..DIRS.len())]);
        if std::fs::create_dir(&dir).is_ok() {
            dirs.push(dir);
        }
    }
    for _ in 0..30 {
        let file = dirs[rng.usize(..dirs.len())].join(FILES[rng.usize(..FILES.len())]);
        if !file.is_dir() {
            std::fs::write(&file, "content").unwrap();
            set_mtime(&file, 1_000_000_000, 0);
        }
    }
    for (name, text) in merges {
        std::fs::write(root.join(name), text).unwrap();
    }
}

fn names(root: &Path) -> BTreeSet<String> {
    Snapshot::of(root).entries.keys().map(|key| show(key)).collect()
}

/// Runs both programs; `None` when they agree.
fn disagree(area: &Path, seed: u64, scene: &Scene, options: &[&str]) -> Option<String> {
    let places: [PathBuf; 3] = ["src", "dst", "ora"].map(|name| area.join(name));
    places.iter().for_each(|place| remove_tree(place));
    tree(&places[0], seed, &scene.merges);
    // A target with more of the same names, and with the same per-directory rules where something
    // is to be deleted: rsync protects by what lies in the target, the program by the source's.
    let deletes = options.iter().any(|option| option.starts_with("--delete"));
    tree(&places[1], seed + 1, if deletes { &scene.merges } else { &[] });
    must(Command::new("cp").arg("-a").arg(&places[1]).arg(&places[2]));
    let run = |program: &Path, first: &[&str], target: &PathBuf| -> Run {
        let mut words: Vec<String> = first.iter().map(|word| (*word).to_owned()).collect();
        words.extend(options.iter().map(|word| (*word).to_owned()));
        words.extend(scene.rules.iter().cloned());
        words.push(format!("{}/", places[0].display()));
        words.push(target.display().to_string());
        run_command(program, &words)
    };
    let theirs = run(Path::new("rsync"), &[], &places[2]);
    let ours = run(&program(), &["sync"], &places[1]);
    let (left, right) = (names(&places[2]), names(&places[1]));
    if ours.code == theirs.code && left == right {
        return None;
    }
    Some(format!(
        "exit codes {} and {} (rsync)\n  lacks {:?}\n  has {:?}\n  {}\n  {}",
        ours.code,
        theirs.code,
        left.difference(&right).collect::<Vec<_>>(),
        right.difference(&left).collect::<Vec<_>>(),
        ours.err(),
        theirs.err(),
    ))
}

/// Leaves out whatever is not needed for the disagreement.
fn shrink(area: &Path, seed: u64, mut scene: Scene, options: &[&str]) -> Scene {
    let mut at = 0;
    while at < scene.rules.len() + scene.merges.len() {
        let mut less = Scene { rules: scene.rules.clone(), merges: scene.merges.clone() };
        if at < scene.rules.len() {
            less.rules.remove(at);
        } else {
            less.merges.remove(at - scene.rules.len());
        }
        if disagree(area, seed, &less, options).is_some() {
            scene = less;
        } else {
            at += 1;
        }
    }
    scene
}

fn generated(options: &[&str], usual_seed: u64, count: u64) {
    if !have("rsync", "comparison of filters") {
        return;
    }
    let area = Area::tmpfs();
    let mut failed = Vec::new();
    let first = first_seed(usual_seed);
    for seed in first..first + rounds(count) {
        let scene = scene(seed);
        if disagree(area.path(), seed, &scene, options).is_none() {
            continue;
        }
        let scene = shrink(area.path(), seed, scene, options);
        let how = disagree(area.path(), seed, &scene, options).unwrap();
        failed.push(format!(
            "seed {seed}: sync {} {:?} with {:?}: {how}",
            options.join(" "),
            scene.rules,
            scene.merges
        ));
        if failed.len() == 5 {
            break;
        }
    }
    assert!(failed.is_empty(), "filters differ from rsync's:\n{}", failed.join("\n"));
}

#[test]
fn generated_rules() {
    generated(&["-a"], 1000, 60);
}

#[test]
fn generated_rules_with_delete() {
    generated(&["-a", "--delete"], 2000, 120);
}

#[test]
fn generated_rules_with_delete_after() {
    generated(&["-a", "--delete-after"], 3000, 40);
}

#[test]
fn generated_rules_with_delete_excluded() {
    generated(&["-a", "--delete-excluded"], 4000, 60);
}

#[test]
fn generated_rules_with_pruned_directories() {
    generated(&["-am", "--delete"], 5000, 40);
}

#[test]
fn generated_rules_with_relative_names() {
    generated(&["-aR", "--delete"], 6000, 30);
}
