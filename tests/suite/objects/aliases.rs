//! A generator of aliases: small random trees and prefixes, two to four sources that overlap, targets in the middle of
//! them; up, down and inside a bucket. Whatever the command: every content of a source, and every other content that
//! no rule of the command lets it replace or remove, exists somewhere afterwards, and what stayed behind shows in the
//! exit code.

use crate::common::case::Run;
use crate::objects::stage::{Stage, file, stage, tree};
use std::collections::{BTreeMap, BTreeSet};

/// Where something is (`s3/KEY`, `src/NAME`, `dst/NAME`), and its content.
type Place = BTreeMap<String, String>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Up,
    Down,
    Between,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// One file or object.
    One,
    /// `FOLDER/`, its content.
    Content,
    /// `FOLDER`, with its name.
    Named,
    /// `PREFIX/*`.
    Wild,
}

#[derive(Debug)]
struct Source {
    /// With its place: `s3/d/f`, `src/d`.
    path: String,
    what: What,
}

#[derive(Debug)]
struct Attempt {
    way: Way,
    line: String,
    command: &'static str,
    sources: Vec<Source>,
    /// With its place, and a slash at its end.
    target: String,
    removes: bool,
    deletes: bool,
    excludes: bool,
}

impl Source {
    /// Where an entry goes, if it is of this source.
    fn target(&self, target: &str, path: &str) -> Option<String> {
        let folder = format!("{}/", self.path);
        let rest = path.strip_prefix(&folder);
        let last = self.path.rsplit('/').next().unwrap();
        match self.what {
            What::One => (path == self.path).then(|| format!("{target}{last}")),
            What::Named => Some(format!("{target}{last}/{}", rest?)),
            What::Content | What::Wild => Some(format!("{target}{}", rest?)),
        }
    }

    fn is_named(&self) -> bool {
        matches!(self.what, What::One | What::Wild)
    }
}

impl Attempt {
    fn is_left_out(&self, path: &str) -> bool {
        self.excludes && path.ends_with("/g")
    }

    /// All entries of the sources in order, and where they go.
    fn moves<'a>(&'a self, before: &'a Place) -> Vec<(&'a Source, &'a String, String)> {
        let of = |source: &'a Source| {
            before
                .keys()
                .filter(|path| !self.is_left_out(path))
                .filter_map(move |path| Some((source, path, source.target(&self.target, path)?)))
        };
        self.sources.iter().flat_map(of).collect()
    }

    /// Whether deletion may take what is there.
    fn may_delete(&self, path: &str) -> bool {
        let below = |source: &Source| match source.what {
            What::Content => path.starts_with(&self.target),
            What::Named => {
                let last = source.path.rsplit('/').next().unwrap();
                path.starts_with(&format!("{}{last}/", self.target))
            }
            What::One | What::Wild => false,
        };
        self.deletes && !self.is_left_out(path) && self.sources.iter().any(below)
    }

    fn check(&self, run: &Run, before: &Place, after: &Place) -> Result<(), String> {
        let moves = self.moves(before);
        let sources: BTreeSet<_> = moves.iter().map(|(_, path, _)| *path).collect();
        let targets: BTreeSet<_> = moves.iter().map(|(_, _, target)| target).collect();
        let left: BTreeSet<_> = after.values().collect();
        for (path, content) in before {
            let is_source = sources.contains(path);
            // Without removal, what a copy writes over is gone, as with rsync and cp.
            let replaced = targets.contains(path) && !(is_source && self.removes);
            let may_go = replaced || !is_source && self.may_delete(path);
            if !left.contains(content) && !may_go {
                return Err(format!("the content of {path} is nowhere"));
            }
            if self.is_left_out(path) && after.get(path) != Some(content) {
                return Err(format!("{path} is excluded, and not as it was"));
            }
        }
        let stays = |path: &&&String| after.get(**path) == before.get(**path);
        if self.command == "mv" && run.code == 0 && sources.iter().any(|path| stays(&path)) {
            return Err("exit code 0, and a source is still there".to_owned());
        }
        // Deletion with several sources that fill one folder is refused, with nothing done.
        let unsupported = run.err().contains("is not supported");
        if self.way == Way::Between || unsupported || ![0, 1].contains(&run.code) {
            return Ok(());
        }
        // The sides are apart: it is known what is where in the end.
        let (mut expected, mut named, mut refused) = (BTreeMap::new(), BTreeMap::new(), false);
        for (source, path, target) in &moves {
            // What an argument has made is not overwritten by another one, whatever a folder's content did meanwhile.
            if self.command == "cp" && source.is_named() {
                if let Some(first) = named.get(target) {
                    refused |= first != path;
                    continue;
                }
                named.insert(target, *path);
            }
            match expected.get(target) {
                None => {
                    expected.insert(target, *path);
                }
                Some(first) if self.command == "mv" && first == path => {}
                Some(_) => match self.command {
                    "cp" => {
                        expected.insert(target, *path);
                    }
                    "sync" => {}
                    _ => refused |= expected[target] != *path,
                },
            }
        }
        let several: BTreeSet<_> = moves.iter().map(|(_, path, _)| path).collect();
        if several.len() < moves.len() && self.removes {
            // One source named twice: it goes where it goes first.
            return Ok(());
        }
        if refused != (run.code == 1) {
            return Err(format!("refused: {refused}"));
        }
        for (target, path) in expected {
            if after.get(target) != before.get(path) {
                return Err(format!("{target} is {:?}, not {path}", after.get(target)));
            }
        }
        Ok(())
    }
}

fn all(stage: &Stage) -> Place {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let mut found = Place::new();
    let mut add = |place: &str, tree: BTreeMap<Vec<u8>, Vec<u8>>| {
        let entries =
            tree.iter().map(|(name, body)| (format!("{place}{}", text(name)), text(body)));
        found.extend(entries);
    };
    add("s3/", stage.objects());
    for (place, dir) in [("src/", stage.src()), ("dst/", stage.dst())] {
        // A folder that was moved is gone.
        if dir.exists() {
            add(place, tree(&dir));
        }
    }
    found
}

/// A folder's path of up to so many components, without a slash.
fn folder(random: &mut fastrand::Rng, depth: usize) -> Vec<&'static str> {
    (0..random.usize(0..=depth)).map(|_| random.choice(["d", "e", "x"]).unwrap()).collect()
}

fn fill(stage: &Stage, random: &mut fastrand::Rng, place: &str, count: usize, number: &mut usize) {
    for _ in 0..count {
        let mut name = folder(random, 2);
        name.push(random.choice(["f", "g", "h"]).unwrap());
        let name = name.join("/");
        *number += 1;
        // No two contents are alike, nor of one size.
        let width = 40 + *number;
        let body = format!("{:.<width$}", format!("{place} {name} {number}"));
        match place {
            "s3" => stage.put(&name, body.as_bytes()),
            "src" => file(&stage.src(), &name, body.as_bytes(), 100),
            _ => file(&stage.dst(), &name, body.as_bytes(), 100),
        }
    }
}

fn attempt(random: &mut fastrand::Rng, before: &Place) -> Option<Attempt> {
    let way = random.choice([Way::Up, Way::Down, Way::Between, Way::Between]).unwrap();
    let from = if way == Way::Up { "src" } else { "s3" };
    let into = if way == Way::Down { "dst" } else { "s3" };
    let command = random.choice(["cp", "mv", "sync"]).unwrap();
    let files: Vec<&String> =
        before.keys().filter(|path| path.starts_with(&format!("{from}/"))).collect();
    let mut sources: Vec<Source> = Vec::new();
    for _ in 0..random.usize(2..=4) {
        let path = (*random.choice(&files)?).clone();
        let what = match random.u8(0..8) {
            0..3 => What::One,
            3..6 => What::Content,
            6 => What::Named,
            _ if from == "s3" && command != "sync" => What::Wild,
            _ => What::Content,
        };
        let path = match what {
            What::One => path,
            _ => {
                // Some folder above the file; the top has no name.
                let ends: Vec<usize> = path.match_indices('/').map(|(at, _)| at).collect();
                let least = usize::from(what == What::Named);
                let end = ends.get(random.usize(least.min(ends.len())..=ends.len()));
                let end = end.or(ends.last()).filter(|_| ends.len() > least)?;
                path[..*end].to_owned()
            }
        };
        // The same source again is left out, as by GNU cp.
        if !sources.iter().any(|source| source.path == path) {
            sources.push(Source { path, what });
        }
    }
    let removes = command == "mv" || command == "sync" && random.bool();
    let deletes = command == "sync" && random.u8(0..3) == 0;
    let excludes = random.u8(0..4) == 0;
    if deletes && random.bool() {
        // Several that fill one folder are refused.
        sources.truncate(1);
    }
    let mut target = into.to_owned();
    for name in folder(random, 2) {
        target = format!("{target}/{name}");
    }
    let spelt = |path: &str| {
        let path = path.replacen("src/", "SRC/", 1).replacen("dst/", "DST/", 1);
        path.replacen("s3/", "BKT/", 1)
    };
    let mut line = command.to_owned();
    line += match command {
        "cp" => " -r",
        "sync" => " -r",
        _ => "",
    };
    if removes && command == "sync" {
        line += " --remove-source-files";
    }
    if deletes {
        line += random.choice([" --delete", " --delete-before", " --delete-after"]).unwrap();
    }
    if excludes {
        line += random.choice([" --exclude=g", " --filter-style=aws --exclude=*g"]).unwrap();
    }
    for source in &sources {
        let end = match source.what {
            What::One | What::Named => "",
            What::Content => "/",
            What::Wild => "/*",
        };
        line += &format!(" {}", spelt(&format!("{}{end}", source.path)));
    }
    line += &format!(" {}", spelt(&format!("{target}/")));
    let target = format!("{target}/");
    Some(Attempt { way, line, command, sources, target, removes, deletes, excludes })
}

fn round(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let (stage, mut number) = (stage(), 0);
    for (place, count) in [("s3", 8), ("src", 6), ("dst", 3)] {
        fill(&stage, &mut random, place, count, &mut number);
    }
    for _ in 0..2 {
        let before = all(&stage);
        let Some(attempt) = attempt(&mut random, &before) else { continue };
        let run = stage.run(&attempt.line);
        let after = all(&stage);
        if let Err(why) = attempt.check(&run, &before, &after) {
            panic!(
                "HAKOBU_SEED={seed}: {why}\n{run}\n{attempt:#?}\nbefore {before:#?}\nafter {after:#?}"
            );
        }
        let again = attempt.command == "sync" && attempt.way != Way::Between;
        if again && !attempt.removes && run.code == 0 {
            let run = stage.run(&format!("{} --json", attempt.line));
            assert_eq!(run.ok().summary()["files"], 0, "HAKOBU_SEED={seed}: the second {run}");
        }
    }
}

/// `HAKOBU_SEEDS=N` tries as many.
#[test]
fn nothing_is_lost_where_sources_and_targets_overlap() {
    let count = std::env::var("HAKOBU_SEEDS").ok().and_then(|text| text.parse().ok());
    let first = crate::common::first_seed(1);
    for seed in first..first + count.unwrap_or(100) {
        round(seed);
    }
}
