//! One transfer on many machines: plan, workers, collect. What comes out has to be what one sync
//! makes of the same trees, whatever happens to the workers on the way.

mod basic;
mod engines;
mod faults;
mod inventory;
mod ranges;
mod ray;
mod refused;
mod slurm;
mod store;
mod submitted;
mod trees;
mod verify;

use crate::common::area::Area;
use crate::common::case::Run;
use crate::common::diff::{Fields, diff};
use crate::common::grow::set_mtime;
use crate::common::running::Running;
use crate::common::snapshot::Snapshot;
use crate::common::{is_set, program};
use crate::objects::server::{Server, embedded};
use crate::server::client::{ACCESS, SECRET};
use fastrand::Rng;
use serde_json::Value;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Whether engines that take minutes to start and to notice a lost node are to be tested: `.ci/run` sets it.
fn asked_for(engine: &str) -> bool {
    let is_asked = is_set("HAKOBU_CLUSTERS");
    if !is_asked {
        let _ = writeln!(std::io::stderr(), "left to .ci/run (HAKOBU_CLUSTERS=1): {engine}");
    }
    is_asked
}

/// A place with a source, targets and a run folder.
pub struct Stage {
    pub area: Area,
    /// Of the store; `BKT` in lines.
    pub bucket: String,
}

impl Stage {
    pub fn new() -> Stage {
        let area = Area::tmpfs();
        std::fs::create_dir(area.join("src")).unwrap();
        Stage { area, bucket: String::new() }
    }

    /// A stage with a bucket of its own on the embedded server.
    pub fn with_bucket(name: &str) -> Stage {
        let bucket = format!("cluster-{name}");
        let answer = embedded().ask("PUT", &format!("/{bucket}"), b"");
        assert_eq!(answer.status, 200, "{}", answer.text());
        Stage { bucket, ..Stage::new() }
    }

    pub fn src(&self) -> PathBuf {
        self.area.join("src")
    }

    pub fn dst(&self) -> PathBuf {
        self.area.join("dst")
    }

    pub fn run(&self) -> PathBuf {
        self.area.join("run")
    }

    /// `hakobu` with these words: `SRC`, `DST`, `ONE` (a second target), `RUN` and `BKT` stand for
    /// places.
    pub fn command(&self, line: &str, server: Option<&str>) -> Command {
        let mut command = Command::new(program());
        for word in line.split_whitespace() {
            let text = |name: &str| self.area.join(name).to_str().unwrap().to_owned();
            let word = word.replace("SRC", &text("src")).replace("DST", &text("dst"));
            let word = word.replace("ONE", &text("one")).replace("RUN", &text("run"));
            command.arg(word.replace("BKT", &format!("s3://{}", self.bucket)));
        }
        command.env("HOME", self.area.path()).env("XDG_STATE_HOME", self.area.join("state"));
        command.env("AWS_ACCESS_KEY_ID", ACCESS).env("AWS_SECRET_ACCESS_KEY", SECRET);
        command.env("AWS_REGION", "us-east-1").env("AWS_EC2_METADATA_DISABLED", "true");
        if !self.bucket.is_empty() {
            let url = server.map_or_else(|| Server::url(embedded()), str::to_owned);
            command.env("AWS_ENDPOINT_URL", url);
        }
        command.current_dir(self.area.path()).stdin(Stdio::null());
        command
    }

    pub fn go(&self, line: &str) -> Run {
        Run::new(line.to_owned(), self.command(line, None).output().unwrap())
    }

    #[track_caller]
    pub fn ok(&self, line: &str) -> Run {
        let run = self.go(line);
        run.ok();
        run
    }

    /// Starts a line without waiting for it.
    pub fn start(&self, line: &str) -> Running {
        Running::start(line, self.command(line, None))
    }

    /// Runs so many workers to their end; all of them must succeed.
    #[track_caller]
    pub fn workers(&self, count: usize) {
        let workers: Vec<Running> = (0..count).map(|_| self.start("cluster work RUN")).collect();
        for worker in workers {
            worker.wait().ok();
        }
    }

    /// Results of all shards, from the segments of all workers.
    pub fn results(&self) -> Vec<Value> {
        self.results_in("done")
    }

    /// Results in a folder of the run.
    pub fn results_in(&self, folder: &str) -> Vec<Value> {
        let names = std::fs::read_dir(self.run().join(folder));
        let files = names.into_iter().flatten().map(|entry| entry.unwrap().path());
        let files = files.filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
        let texts: Vec<String> = files.map(|path| std::fs::read_to_string(path).unwrap()).collect();
        let lines = texts.iter().flat_map(|text| text.lines());
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The last sign of life of each worker.
    pub fn beats(&self) -> Vec<Value> {
        beats_of(&self.run())
    }

    pub fn plan(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.run().join("plan.json")).unwrap()).unwrap()
    }

    /// The target is what the source is, and nothing stray is there.
    #[track_caller]
    pub fn same(&self, fields: &Fields) {
        let (left, right) = (Snapshot::of(&self.src()), Snapshot::of(&self.dst()));
        let wrong = diff(&left, &right, fields, 20);
        assert!(wrong.is_empty(), "\n  {}", wrong.join("\n  "));
    }
}

/// The last sign of life of each worker of a run.
pub fn beats_of(run: &Path) -> Vec<Value> {
    let names = std::fs::read_dir(run.join("workers"));
    let files = names.into_iter().flatten().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|end| end == "json"));
    let beats = files.map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap());
    beats.filter(|beat: &Value| beat["collects"] != true).collect()
}

/// A tree with what transfers have to keep: modes, owners, links, empty directories, odd names.
pub fn tree(root: &Path, seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let long_ago = 1_700_000_000;
    for dir in 0..6 {
        let path = root.join(format!("d{dir}/e"));
        std::fs::create_dir_all(&path).unwrap();
        for file in 0..25 {
            let file = path.join(format!("f{file} \u{e4}"));
            let mut bytes = vec![0; rng.usize(..9000)];
            rng.fill(&mut bytes);
            std::fs::write(&file, bytes).unwrap();
            let mode = [0o644, 0o600, 0o755, 0o444][rng.usize(..4)];
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            set_mtime(&file, long_ago + rng.i64(..1_000_000), rng.u32(..1_000_000_000));
        }
        std::fs::hard_link(path.join("f1 \u{e4}"), root.join(format!("d{dir}/linked"))).unwrap();
        std::fs::hard_link(path.join("f1 \u{e4}"), root.join(format!("linked{dir}"))).unwrap();
        std::os::unix::fs::symlink("e/f2", root.join(format!("d{dir}/symlink"))).unwrap();
        std::fs::create_dir_all(root.join(format!("empty{dir}/inner"))).unwrap();
    }
    let odd = root.join(std::ffi::OsStr::from_bytes(b"not\xffutf8\n"));
    std::fs::write(&odd, b"x").unwrap();
    set_mtime(&odd, long_ago, 0);
    use std::os::unix::ffi::OsStrExt;
    let closed = root.join("d0/e");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o555)).unwrap();
    let mut dirs: Vec<PathBuf> = vec![root.to_owned()];
    let mut at = 0;
    while let Some(dir) = dirs.get(at).cloned() {
        let below = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap());
        dirs.extend(below.filter(|e| e.file_type().unwrap().is_dir()).map(|e| e.path()));
        at += 1;
    }
    for dir in dirs.iter().rev() {
        set_mtime(dir, long_ago - 5_000, 0);
    }
}
