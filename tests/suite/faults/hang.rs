//! A server that does not respond for a while: the run waits, reports it, continues when responses arrive,
//! and ends cleanly after a stop.

use crate::common::area::Area;
use crate::common::case::Run;
use crate::common::fuse::Mount;
use crate::common::fuse::slow::Slow;
use crate::common::grow::age;
use crate::common::{program, side_by_side, skip};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Files in each of ten folders.
const FILES: usize = 20;
const BYTES: usize = 300_000;

struct Scene {
    slow: Arc<Slow>,
    mount: Mount,
    area: Area,
}

impl Scene {
    /// `far` says that the slow file system has the sources, else it gets the targets.
    fn new(far: bool) -> Option<Scene> {
        let area = Area::tmpfs();
        let (mount, slow) = match Slow::mount(area.join("slow"), Duration::ZERO, 48) {
            Ok(mounted) => mounted,
            Err(why) => {
                skip(&format!("a file system that hangs: {why}"));
                return None;
            }
        };
        let scene = Scene { slow, mount, area };
        let source = scene.places(far).0;
        for dir in 0..10 {
            let dir = source.join(format!("d{dir}"));
            std::fs::create_dir_all(&dir).unwrap();
            for file in 0..FILES {
                std::fs::write(dir.join(format!("f{file}")), vec![file as u8; BYTES]).unwrap();
            }
        }
        age(&source);
        scene.slow.set_delay(Duration::from_millis(5));
        scene.slow.seen();
        Some(scene)
    }

    fn places(&self, far: bool) -> (std::path::PathBuf, std::path::PathBuf) {
        match far {
            true => (self.mount.join("src"), self.area.join("dst")),
            false => (self.area.join("src"), self.mount.join("dst")),
        }
    }

    fn command(&self, far: bool) -> Command {
        let (source, target) = self.places(far);
        let mut command = Command::new(program());
        command.args(["sync", "-a", "--progress", "--no-memory"]).arg(source.join("")).arg(target);
        command.env("XDG_STATE_HOME", self.area.join("state"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// Starts the run and returns when files move.
    fn start(&self, far: bool) -> (Child, BufReader<ChildStderr>) {
        let mut child = self.command(far).spawn().unwrap();
        let begun = Instant::now();
        let mut calls = 0;
        while calls < 20 {
            assert!(begun.elapsed() < Duration::from_secs(60), "nothing moves");
            assert!(child.try_wait().unwrap().is_none(), "over before anything was disturbed");
            let (reads, writes) = self.slow.seen();
            calls += if far { reads } else { writes };
            std::thread::sleep(Duration::from_millis(1));
        }
        let lines = BufReader::new(child.stderr.take().unwrap());
        (child, lines)
    }
}

/// Reads lines of progress until one says that nothing answers.
fn says_so(lines: &mut impl BufRead) {
    let begun = Instant::now();
    let mut all = String::new();
    loop {
        let from = all.len();
        assert!(lines.read_line(&mut all).unwrap() > 0, "ended: {all}");
        if all[from..].contains("no response for ") {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{all}");
    }
}

fn whole_files(dir: &Path) -> usize {
    let mut whole = 0;
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            whole += whole_files(&entry.path());
            continue;
        }
        let name = entry.file_name().into_string().unwrap();
        assert!(!name.contains(".hakobu-"), "{name} is left");
        let number: usize = name[1..].parse().unwrap();
        let content = std::fs::read(entry.path()).unwrap();
        assert!(content == vec![number as u8; BYTES], "{name} is not whole");
        whole += 1;
    }
    whole
}

#[test]
fn a_run_waits_for_a_server_that_hangs_and_says_so() {
    side_by_side([true, false], |far| {
        let Some(scene) = Scene::new(far) else { return };
        let (child, mut lines) = scene.start(far);
        let hang = scene.slow.hang();
        says_so(&mut lines);
        drop(hang);
        let rest = std::thread::spawn(move || lines.read_to_string(&mut String::new()));
        let run = Run::new("sync".into(), child.wait_with_output().unwrap());
        rest.join().unwrap().unwrap();
        run.ok();
        assert_eq!(whole_files(&scene.places(far).1), 10 * FILES);
    });
}

#[test]
fn a_run_is_stopped_while_a_server_hangs() {
    side_by_side([true, false], |far| {
        let Some(scene) = Scene::new(far) else { return };
        let (child, mut lines) = scene.start(far);
        let hang = scene.slow.hang();
        says_so(&mut lines);
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        // The calls under way are the kernel's: they end with their answers, and nothing comes after them.
        std::thread::sleep(Duration::from_millis(300));
        drop(hang);
        let answered = Instant::now();
        let mut said = String::new();
        lines.read_to_string(&mut said).unwrap();
        let run = Run::new("sync".into(), child.wait_with_output().unwrap());
        assert!(answered.elapsed() < Duration::from_secs(5), "took {:?}", answered.elapsed());
        assert_eq!(run.code, 20, "{said}");
        scene.slow.set_delay(Duration::ZERO);
        assert!(whole_files(&scene.places(far).1) < 10 * FILES, "was not stopped");
        assert!(scene.command(far).status().unwrap().success());
        assert_eq!(whole_files(&scene.places(far).1), 10 * FILES);
    });
}

/// Regular files below a folder that have their full size.
fn full_files(dir: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    let count = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => full_files(&entry.path()),
        Ok(meta) => usize::from(meta.len() == BYTES as u64),
        Err(_) => 0,
    };
    entries.map(Result::unwrap).map(count).sum()
}

#[test]
fn a_server_that_hangs_does_not_hold_up_another_one() {
    let (Some(one), Some(two)) = (Scene::new(true), Scene::new(true)) else { return };
    let (target, other) = (one.area.join("both"), two.mount.join("other"));
    std::fs::rename(two.places(true).0, &other).unwrap();
    one.slow.set_delay(Duration::from_millis(30));
    let mut command = Command::new(program());
    command.args(["sync", "-a", "-j", "4", "--no-memory"]);
    // There is work for more than all workers where no answer comes, and it comes first.
    command.args((0..10).map(|n| one.places(true).0.join(format!("d{n}/f{n}"))));
    command.args([other, target.clone()]);
    command.env("XDG_STATE_HOME", one.area.join("state"));
    std::fs::create_dir(&target).unwrap();
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while one.slow.seen().0 == 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing moves");
        std::thread::sleep(Duration::from_millis(1));
    }
    let hang = one.slow.hang();
    loop {
        let there = full_files(&target.join("other"));
        if there == 10 * FILES {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{there} files");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(child.try_wait().unwrap().is_none(), "the first one hangs");
    drop(hang);
    Run::new("sync".into(), child.wait_with_output().unwrap()).ok();
    assert_eq!(whole_files(&target), 10 * FILES + 10);
}
