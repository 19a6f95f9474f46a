//! The fault sweep over commands with a store on one side: the server works, system calls of the client fail.

use crate::common::{must, remove_tree};
use crate::sweep::fault::{files_below, run};
use crate::sweep::judge::{Scenario, sweep};
use crate::wire::server::{Server, Stage, contents};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files of a tree: enough small ones that each call is made more often than at the start of the
/// process, and one that goes in two parts.
const SMALL: usize = 12;
const LARGE: usize = 6 << 20;

type Contents = BTreeMap<PathBuf, Vec<u8>>;

/// A command between a folder and a bucket.
pub struct Remote<'a> {
    stage: &'a Stage,
    server: Server<'a>,
    line: &'static str,
    /// Sources are removed.
    moves: bool,
    whole: Contents,
}

impl<'a> Remote<'a> {
    /// Fills the stage; `options` are those of its server.
    pub fn new(stage: &'a Stage, line: &'static str, options: &str) -> Remote<'a> {
        for number in 0..SMALL {
            stage.source(&format!("d{}/f{number}", number % 3), number * 700);
        }
        stage.source("large", LARGE);
        let whole = contents(&stage.src());
        copy(&stage.src(), &stage.area.join("original"));
        if !line.ends_with("s3://bkt/") {
            stage.seed();
            copy(&stage.area.join("root"), &stage.area.join("filled"));
        }
        let server = stage.serve(options);
        Remote { stage, server, line, moves: line.starts_with("mv "), whole }
    }

    fn is_up(&self) -> bool {
        self.line.ends_with("s3://bkt/")
    }

    fn bucket(&self) -> PathBuf {
        self.stage.area.join("root/bkt")
    }

    /// Source and target as they are.
    fn ends(&self) -> (Contents, Contents) {
        let (folder, bucket) = (contents(&self.stage.src()), contents(&self.bucket()));
        match self.is_up() {
            true => (folder, bucket),
            false => (bucket, contents(&self.stage.dst())),
        }
    }

    /// Whether the next run sees that a file of the target is unfinished: by its size or time, which comes last. Every
    /// file that comes down gets the time of its object.
    fn is_unfinished(&self, name: &Path) -> bool {
        let stat =
            |folder: PathBuf| folder.join(name).metadata().map(|meta| (meta.len(), meta.mtime()));
        !self.is_up() && stat(self.stage.dst()).ok() != stat(self.bucket()).ok()
    }

    /// The line with what a shell makes of `SRC/*`.
    fn expanded(&self) -> String {
        let names = std::fs::read_dir(self.stage.src()).unwrap();
        let names = names.map(|name| format!("SRC/{}", name.unwrap().file_name().display()));
        self.line.replace("SRC/*", &names.collect::<Vec<_>>().join(" "))
    }

    /// Empties a folder of the stage that is to stay itself.
    fn refill(&self, folder: &str, from: &str) {
        let path = self.stage.area.join(folder);
        for name in std::fs::read_dir(&path).unwrap() {
            remove_tree(&name.unwrap().path());
        }
        let from = self.stage.area.join(from);
        if from.exists() {
            must(Command::new("cp").arg("-a").arg(from.join(".")).arg(path));
        }
    }
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    must(Command::new("cp").arg("-a").arg(from).arg(to));
}

/// Names of what two ends have in different ways.
fn differences(left: &Contents, right: &Contents) -> Vec<String> {
    let names = left.keys().chain(right.keys()).filter(|name| left.get(*name) != right.get(*name));
    names.map(|name| format!("{} differs", name.display())).collect()
}

impl Scenario for Remote<'_> {
    fn line(&self) -> &str {
        self.line
    }

    fn command(&self) -> Command {
        self.server.command(&self.expanded(), false)
    }

    fn log(&self) -> PathBuf {
        self.stage.area.join("calls")
    }

    fn prepare(&self) {
        remove_tree(&self.stage.area.join("home"));
        self.refill("dst", "none");
        if self.moves && self.is_up() {
            self.refill("src", "original");
        }
        if self.is_up() {
            self.refill("root", "none");
            std::fs::create_dir(self.bucket()).unwrap();
        } else if self.moves {
            self.refill("root", "filled");
        }
    }

    fn not_whole(&self) -> Vec<String> {
        let (source, target) = self.ends();
        let mut wrong = differences(&self.whole, &target);
        wrong.extend(match self.moves {
            true => source.keys().map(|name| format!("{} is left", name.display())).collect(),
            false => differences(&self.whole, &source),
        });
        wrong
    }

    fn harm(&self) -> Vec<String> {
        let (source, target) = self.ends();
        let mut wrong = Vec::new();
        for (name, bytes) in &self.whole {
            let arrived = target.get(name);
            if arrived.is_some_and(|arrived| arrived != bytes) && !self.is_unfinished(name) {
                wrong.push(format!("{} is torn", name.display()));
            }
            let kept = source.get(name) == Some(bytes);
            if !(kept || self.moves && arrived == Some(bytes)) {
                wrong.push(format!("lost {}", name.display()));
            }
        }
        wrong
    }

    fn not_healed(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        if !self.ends().0.is_empty() {
            let run = run(self.server.command(&self.expanded(), true));
            if run.code != 0 {
                wrong.push(run.to_string());
            }
        }
        wrong.extend(self.not_whole());
        wrong
    }

    fn left_over(&self) -> Vec<String> {
        // A record of a killed run stays until the same sources come into the same target again.
        let state = files_below(&self.stage.state()).into_iter();
        let state = state.filter(|path| !path.parent().is_some_and(|dir| dir.ends_with("runs")));
        // Facts about objects stay: they are true whatever happened to a run. A file of them that a kill left unfinished
        // is removed by a run of another day.
        let of_facts = |path: &PathBuf| {
            let end = path.extension().and_then(|end| end.to_str());
            end == Some("manifest")
                || end == Some("new") && path.parent().is_some_and(|dir| dir.ends_with("known"))
        };
        let state = state.filter(|path| !of_facts(path));
        let state = state.map(|path| format!("{} is remembered", path.display()));
        let mut left: Vec<String> = state.collect();
        let uploads = self.server.uploads();
        if uploads > 0 {
            left.push(format!("{uploads} unfinished uploads"));
            self.server.run("mpu abort --all s3://bkt").ok();
        }
        left
    }
}

fn sweep_remote(line: &'static str, salt: usize) {
    let stage = Stage::new();
    sweep(&Remote::new(&stage, line, ""), 1, salt);
}

#[test]
fn sync_up() {
    sweep_remote("sync -rt -j 1 --resume --part-size=5MiB SRC/ s3://bkt/", 11);
}

#[test]
fn cp_up() {
    sweep_remote("cp -r -j 1 --part-size=5MiB SRC/* s3://bkt/", 12);
}

#[test]
fn mv_up() {
    sweep_remote("mv -j 1 --part-size=5MiB SRC/* s3://bkt/", 13);
}

#[test]
fn sync_down() {
    sweep_remote("sync -rt -j 1 --resume --part-size=5MiB s3://bkt/ DST/", 14);
}

#[test]
fn cp_down() {
    sweep_remote("cp -r -j 1 --part-size=5MiB s3://bkt/* DST/", 15);
}

#[test]
fn mv_down() {
    sweep_remote("mv -j 1 --part-size=5MiB s3://bkt/* DST/", 16);
}
