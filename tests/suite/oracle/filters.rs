//! Filter rules generated from a seed, compared with rsync: copied files, and files removed by `--delete`,
//! must agree for every list of rules.

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

/// Which side has the per-directory rules of a scene. What those of the source protect, the program
/// keeps in the target; rsync protects by what lies in the target alone.
#[derive(Clone, Copy, PartialEq)]
enum Files {
    /// Source and target have the same ones, where something is to be deleted.
    Both,
    /// Only the target has them.
    Target,
    /// The source has those of another scene: what rsync keeps is kept, and perhaps more.
    Different,
}

/// Runs both programs; `None` when they agree.
fn disagree(
    area: &Path,
    seed: u64,
    scene: &Scene,
    (files, options): (Files, &[&str]),
) -> Option<String> {
    let places: [PathBuf; 3] = ["src", "dst", "ora"].map(|name| area.join(name));
    places.iter().for_each(|place| remove_tree(place));
    let deletes = options.iter().any(|option| option.starts_with("--delete"));
    let other;
    let (source, target): (&[_], &[_]) = match files {
        Files::Both if deletes => (&scene.merges, &scene.merges),
        Files::Both => (&scene.merges, &[]),
        Files::Target => (&[], &scene.merges),
        Files::Different => {
            other = self::scene(seed + 7).merges;
            (&other, &scene.merges)
        }
    };
    // A target with more of the same names.
    tree(&places[0], seed, source);
    tree(&places[1], seed + 1, target);
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
    let same = if files == Files::Different { left.is_subset(&right) } else { left == right };
    // An entry protected by a rule may be in the way of a file.
    let is_in_the_way = files == Files::Different
        && ours.code == 23
        && ours.err().contains("something in it is kept")
        && ours.err().contains("Directory not empty");
    if (ours.code == theirs.code || is_in_the_way) && same {
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
fn shrink(area: &Path, seed: u64, mut scene: Scene, how: (Files, &[&str])) -> Scene {
    let mut at = 0;
    while at < scene.rules.len() + scene.merges.len() {
        let mut less = Scene { rules: scene.rules.clone(), merges: scene.merges.clone() };
        if at < scene.rules.len() {
            less.rules.remove(at);
        } else {
            less.merges.remove(at - scene.rules.len());
        }
        if disagree(area, seed, &less, how).is_some() {
            scene = less;
        } else {
            at += 1;
        }
    }
    scene
}

fn generated(options: &[&str], usual_seed: u64, count: u64) {
    generated_with(Files::Both, options, usual_seed, count);
}

fn generated_with(files: Files, options: &[&str], usual_seed: u64, count: u64) {
    if !have("rsync", "comparison of filters") {
        return;
    }
    let area = Area::tmpfs();
    let mut failed = Vec::new();
    let first = first_seed(usual_seed);
    for seed in first..first + rounds(count) {
        let scene = scene(seed);
        let Some(first) = disagree(area.path(), seed, &scene, (files, options)) else {
            continue;
        };
        let scene = shrink(area.path(), seed, scene, (files, options));
        let how = disagree(area.path(), seed, &scene, (files, options))
            .unwrap_or_else(|| format!("only at times: {first}"));
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

#[test]
fn generated_rules_of_the_target() {
    generated_with(Files::Target, &["-a", "--delete"], 7000, 120);
    generated_with(Files::Target, &["-a", "--delete-before"], 7500, 30);
    generated_with(Files::Target, &["-a", "--delete-after"], 8000, 40);
    generated_with(Files::Target, &["-a", "--delete-excluded"], 8500, 40);
}

#[test]
fn generated_rules_that_differ_on_both_sides() {
    generated_with(Files::Different, &["-a", "--delete"], 9000, 80);
}

#[test]
fn files_of_rules_that_only_the_target_has_protect_it() {
    if !have("rsync", "filter files of the target") {
        return;
    }
    let all = ["keep", "gone", "d/keep", "d/gone", "d/e/keep", "x/keep", "x/y/gone", "x/y/keep"];
    for (place, text) in [
        (".rules", "P keep\n"),
        ("d/.rules", "P keep\n"),
        ("x/.rules", "P keep\n"),
        ("x/y/.rules", "P /keep\n"),
        (".rules", "P /d/keep\n"),
        (".rules", "P d/\n"),
        (".rules", "- keep\n"),
        (".rules", "+ keep\nP *\n"),
        (".rules", "!\n"),
        ("d/.rules", "R keep\n"),
        ("d/.rules", ": .more\n"),
        (".rsync-filter", "P keep\n"),
        ("x/.rsync-filter", "P keep\n"),
        (".cvsignore", "keep\n"),
        ("d/.cvsignore", "keep gone\n"),
        ("../.rsync-filter", "P keep\n"),
    ] {
        for options in [
            "--filter=: .rules",
            "--filter=:n .rules",
            "--filter=:e .rules",
            "--filter=:- .rules",
            "--filter=:+ .rules --filter=P keep",
            "--filter=: .rules --filter=P gone",
            "-F",
            "-FF",
            "-C",
        ] {
            for delete in ["--delete", "--delete-before", "--delete-after", "--delete-excluded"] {
                let area = Area::tmpfs();
                let run = |name: &str, program: &Path, first: &[&str]| {
                    let (src, dst) = (area.join("src"), area.join(name).join("dst"));
                    std::fs::create_dir_all(src.join("d/e")).unwrap();
                    std::fs::write(src.join("d/f"), "").unwrap();
                    let file = |path: &str, text: &str| {
                        std::fs::create_dir_all(dst.join(path).parent().unwrap()).unwrap();
                        std::fs::write(dst.join(path), text).unwrap();
                    };
                    all.iter().for_each(|path| file(path, ""));
                    file("d/.more", "P gone\n");
                    file(place, text);
                    let mut words: Vec<String> = first.iter().map(|w| (*w).to_owned()).collect();
                    words.extend(["-r".to_owned(), delete.to_owned()]);
                    // A rule has one space of its own.
                    let options = options.replace(" --", "\0--");
                    words.extend(options.split('\0').map(str::to_owned));
                    words.extend([format!("{}/", src.display()), format!("{}/", dst.display())]);
                    (run_command(program, &words), names(&dst))
                };
                let (theirs, left) = run("theirs", Path::new("rsync"), &[]);
                let (ours, right) = run("ours", &program(), &["sync"]);
                assert!(
                    ours.code == theirs.code && left == right,
                    "{place} {text:?} {options}: {left:?} {right:?}\n{ours}{theirs}"
                );
            }
        }
    }
}

#[test]
fn an_unreadable_file_of_rules_in_the_target_keeps_everything() {
    let area = Area::tmpfs();
    for (path, text) in [("src/d/f", ""), ("dst/d/f", ""), ("dst/d/own/x", ""), ("dst/gone", "")] {
        std::fs::create_dir_all(area.join(path).parent().unwrap()).unwrap();
        std::fs::write(area.join(path), text).unwrap();
    }
    std::fs::write(area.join("dst/d/.rules"), "nonsense\n").unwrap();
    // In one directory, and then in the target's top.
    let (src, dst) = (area.join("src"), area.join("dst"));
    let words = ["sync", "-r", "--delete", "--ignore-errors", "--filter=: .rules"];
    let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    words.extend([format!("{}/", src.display()), format!("{}/", dst.display())]);
    run_command(&program(), &words).expect(23).says(&["rules line 1"]);
    assert!(dst.join("d/own/x").exists() && !dst.join("gone").exists());
    std::fs::write(dst.join("gone"), "").unwrap();
    std::fs::write(dst.join(".rules"), "nonsense\n").unwrap();
    run_command(&program(), &words).expect(23).says(&["rules line 1"]);
    assert!(dst.join("d/own/x").exists() && dst.join("gone").exists());
}
