//! Random small worlds in which sources, targets and the folders of options are one another by path, `..`, symlink,
//! second place (bind mount), hard link or case, and command lines over them. Whatever the line says: every content of
//! a source, and every other content that no rule of the command lets it replace or delete, exists somewhere after.
//! GNU cp and mv and rsync run in a world of the same seed; where they are safe and both succeed, the trees are equal.
//!
//! `HAKOBU_SEEDS=N` runs more, `HAKOBU_SEED=N` begins elsewhere. A failure shows
//! its world and line, with `HAKOBU_SHRINK=1` the smallest that fail.

mod judge;
mod lines;
mod options;
mod world;

use crate::common::area::{Area, Fs};
use crate::common::case::Run;
use crate::common::machine::Undo;
use crate::common::{first_seed, have, is_root, must, program, skip};
use fastrand::Rng;
use judge::{after, before};
use lines::{Drawer, Line, Tool};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use world::{Make, Site};

/// Places for the worlds of all seeds.
struct Stage {
    // Unmounted before the folder that it is in is removed.
    caseless: Option<(PathBuf, Undo)>,
    work: Area,
    other: Option<Area>,
    binds: bool,
}

/// A world and a line over it.
#[derive(Clone)]
struct Trial {
    makes: Vec<Make>,
    line: Line,
}

impl Stage {
    fn new() -> Stage {
        let work = Area::tmpfs();
        let what = "aliases of sources and targets";
        let other = Area::new(Fs::Ext4, what);
        let binds = is_root();
        if !binds {
            skip(&format!("{what}: bind mounts need the superuser"));
        }
        let caseless = caseless(work.path(), what);
        Stage { work, other, caseless, binds }
    }

    fn site(&self) -> Site {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("s{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let work = self.work.join(&name).join("w");
        let other = match &self.other {
            Some(area) => area.join(&name),
            None => self.work.join(&name).join("o"),
        };
        let caseless = self.caseless.as_ref().map(|(root, _)| root.join(&name));
        Site { work, other, caseless, binds: Vec::new() }
    }
}

/// A file system that ignores case, or `None` (said as skipped).
fn caseless(below: &Path, what: &str) -> Option<(PathBuf, Undo)> {
    if !is_root() || !have("lowntfs-3g", what) || !have("mkntfs", what) {
        return None;
    }
    let (image, root) = (below.join("ntfs.img"), below.join("ntfs"));
    std::fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    std::fs::create_dir(&root).unwrap();
    must(Command::new("mkntfs").args(["-F", "-Q", "-q"]).arg(&image).stderr(Stdio::null()));
    let undo = Undo::new(&format!("umount -l '{}'", root.display()));
    let mut mount = Command::new("lowntfs-3g");
    let mounted = mount.args(["-o", "ignore_case"]).arg(&image).arg(&root).output().unwrap();
    if !mounted.status.success() {
        skip(&format!("{what}: {}", String::from_utf8_lossy(&mounted.stderr)));
        return None;
    }
    Some((root, undo))
}

/// Draws the trial of a seed.
fn trial(seed: u64, stage: &Stage) -> Trial {
    let mut rng = Rng::with_seed(seed);
    let (caseless, binds) = (rng.u8(..6) == 0, rng.u8(..8) == 0);
    let (makes, names) =
        world::grow(&mut rng, caseless && stage.caseless.is_some(), binds && stage.binds);
    let line = Drawer { rng: &mut rng, names: &names, makes: &makes }.line();
    Trial { makes, line }
}

fn run(program: &Path, site: &Site, line: &Line) -> Run {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=1", "4"]).arg(program);
    let ours = program.is_absolute();
    if ours {
        command.arg(match line.tool {
            Tool::Cp => "cp",
            Tool::Mv => "mv",
            Tool::Sync => "sync",
        });
    }
    for word in line.words().iter().filter(|word| ours || !word.starts_with("-j")) {
        command.arg(site.fill(word).replace("LIST", "../list"));
    }
    if let Some(list) = &line.list {
        std::fs::write(site.work.join("../list"), list.join("\n")).unwrap();
    }
    command.current_dir(&site.work).env("LC_ALL", "C.UTF-8");
    command.env("XDG_STATE_HOME", site.work.join("../state"));
    crate::common::case::run_fed(&mut command, b"")
}

/// What is wrong after one run, and what it said.
fn attempt(stage: &Stage, trial: &Trial, with_peer: bool) -> (Vec<String>, String) {
    let mut site = stage.site();
    site.build(&trial.makes);
    let known = before(&site, &trial.line);
    let had = site.relative(&site.scan());
    let ours = run(&program(), &site, &trial.line);
    let mut wrong = after(&site, &trial.line, &known, ours.code);
    let mut text = ours.to_string();
    if with_peer && wrong.is_empty() {
        let tree = site.relative(&site.scan());
        site.clear();
        let mut peers = stage.site();
        peers.build(&trial.makes);
        let known = before(&peers, &trial.line);
        let name = match trial.line.tool {
            Tool::Cp => "cp",
            Tool::Mv => "mv",
            Tool::Sync => "rsync",
        };
        let theirs = run(Path::new(name), &peers, &trial.line);
        let safe = after(&peers, &trial.line, &known, theirs.code).is_empty();
        let alike = !known.backs_up_into_target(&peers, &trial.line);
        let quiet = alike && theirs.stderr.is_empty() && !judge::has_both_kinds(&known);
        if safe && quiet && theirs.code == 0 && ours.code == 0 {
            let other = peers.relative(&peers.scan());
            let mut differ: Vec<String> = Vec::new();
            // A source that stands in the target, and what the run may still have to read there, is not deleted.
            let stays = |key: &String| {
                trial.line.deletes() && !other.contains_key(key) && tree.get(key) == had.get(key)
            };
            let stayed: Vec<_> =
                tree.keys().filter(|key| stays(key)).map(|key| &tree[key]).collect();
            for key in tree.keys().chain(other.keys()) {
                let (a, b) = (tree.get(key), other.get(key));
                // rsync's backup of what it deleted.
                let backup =
                    |it: &&_| !stayed.is_empty() && (stayed.contains(it) || it.as_str() == "Dir");
                if stays(key) || a.is_none() && b.as_ref().is_some_and(backup) {
                    continue;
                }
                if a != b && differ.len() < 5 {
                    differ.push(format!("{key}: {a:?}, {name} {b:?}"));
                }
            }
            if !differ.is_empty() {
                wrong.push(format!("differs from {name}: {}", differ.join("; ")));
            }
        } else if ours.code == 0 && trial.line.tool != Tool::Sync && refuses(&theirs) {
            wrong.push(format!("code-of-{name} {} and ours {}", theirs.code, ours.code));
        }
        text.push_str(&theirs.to_string());
        peers.clear();
    }
    site.clear();
    let _ = std::fs::remove_dir_all(site.work.join(".."));
    (wrong, text)
}

/// cp or mv refused what would lose a content.
fn refuses(peer: &Run) -> bool {
    let text = peer.err();
    text.contains("just-created") || text.contains("are the same file")
}

/// The first word of what is wrong.
fn kind(wrong: &[String]) -> String {
    wrong.first().and_then(|text| text.split(' ').next()).unwrap_or_default().to_owned()
}

/// The smallest world and line that go wrong in the same way.
fn smallest(stage: &Stage, trial: &Trial, wanted: &str, with_peer: bool) -> Trial {
    let tries = 6;
    let fails =
        |trial: &Trial| (0..tries).any(|_| kind(&attempt(stage, trial, with_peer).0) == wanted);
    let mut best = trial.clone();
    for _ in 0..3 {
        let size = best.makes.len() + best.line.words().len();
        for at in (0..best.makes.len()).rev() {
            let mut less = best.clone();
            less.makes.remove(at);
            if fails(&less) {
                best = less;
            }
        }
        for at in (0..best.line.options.len()).rev() {
            let mut less = best.clone();
            less.line.options.remove(at);
            if fails(&less) {
                best = less;
            }
        }
        for at in (0..best.line.sources.len()).rev() {
            let mut less = best.clone();
            less.line.sources.remove(at);
            if !less.line.sources.is_empty() && fails(&less) {
                best = less;
            }
        }
        if size == best.makes.len() + best.line.words().len() {
            break;
        }
    }
    best
}

fn shown(trial: &Trial) -> String {
    let list =
        trial.line.list.as_ref().map(|list| format!("printf '{}\\n' >../list\n", list.join("\\n")));
    format!(
        "{}{}{}",
        world::script(&trial.makes),
        list.unwrap_or_default(),
        trial.line.text("hakobu")
    )
}

#[test]
fn every_content_exists_after() {
    let stage = Stage::new();
    let first = first_seed(1);
    let count =
        std::env::var("HAKOBU_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(100);
    let next = AtomicU64::new(first);
    let failures = Mutex::new(Vec::new());
    // It takes a minute for each failure.
    let shrinks = std::env::var_os("HAKOBU_SHRINK").is_some();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            // A run that goes wrong may have made very deep trees.
            let thread = std::thread::Builder::new().stack_size(256 << 20);
            let work = || {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        break;
                    }
                    let trial = trial(seed, &stage);
                    let (wrong, text) = attempt(&stage, &trial, true);
                    if wrong.is_empty() {
                        continue;
                    }
                    let peer = wrong[0].starts_with("differs") || wrong[0].starts_with("code-of");
                    let least =
                        if shrinks { smallest(&stage, &trial, &kind(&wrong), peer) } else { trial };
                    let told =
                        format!("seed {seed}: {}\n{}\n{text}", wrong.join("\n  "), shown(&least));
                    failures.lock().unwrap().push((kind(&wrong), told));
                }
            };
            thread.spawn_scoped(scope, work).unwrap();
        }
    });
    let mut failures = failures.into_inner().unwrap();
    failures.sort();
    if !failures.is_empty() {
        let texts: Vec<String> = failures.iter().map(|(_, text)| text.clone()).collect();
        panic!("{} failures in {count} seeds\n\n{}", failures.len(), texts.join("\n---\n"));
    }
}
