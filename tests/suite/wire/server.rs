//! A folder with a bucket, servers on it with faults, and the program; the content of the bucket is read from
//! the folder directly.

use crate::common::area::Area;
use crate::common::case::{Run, run_fed};
use crate::common::running::Running;
use crate::common::{program, tool_path};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Longer than any run of these takes, in seconds.
const RUN_MAX_S: u64 = 90;

/// Places of one test: a served folder with the bucket `bkt`, a source, a target, a home.
pub struct Stage {
    pub area: Area,
}

impl Stage {
    pub fn new() -> Stage {
        let stage = Stage { area: Area::tmpfs() };
        for dir in ["root/bkt", "src", "dst", "home"] {
            std::fs::create_dir_all(stage.area.join(dir)).unwrap();
        }
        stage
    }

    pub fn src(&self) -> PathBuf {
        self.area.join("src")
    }

    pub fn dst(&self) -> PathBuf {
        self.area.join("dst")
    }

    /// Returns the folder of the journal.
    pub fn state(&self) -> PathBuf {
        self.area.join("home/state/hakobu")
    }

    /// A file of the source, of bytes that are nowhere the same; last changed a minute ago, so that
    /// its upload is later without doubt.
    pub fn source(&self, name: &str, size: usize) -> Vec<u8> {
        let bytes = noise(name.len() as u64, size);
        let path = self.src().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &bytes).unwrap();
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
        bytes
    }

    /// Uploads the source into the bucket, by a server without faults.
    pub fn seed(&self) {
        self.serve("").run("sync -r --part-size=5MiB SRC/ s3://bkt/").ok();
    }

    /// Starts `hakobu serve s3` on the folder with these options.
    pub fn serve(&self, options: &str) -> Server<'_> {
        let root = self.area.join("root").into_os_string();
        Server::start(self, &[&["s3".into(), root], &words(options)[..]].concat())
    }

    /// Starts `hakobu serve null` with these options.
    pub fn null(&self, options: &str) -> Server<'_> {
        Server::start(self, &[&["null".into()], &words(options)[..]].concat())
    }

    /// The object as it is kept.
    pub fn object(&self, key: &str) -> Option<Vec<u8>> {
        std::fs::read(self.area.join("root/bkt").join(key)).ok()
    }

    /// Source and target are the same, and nothing else is in the target.
    #[track_caller]
    pub fn target_is_source(&self) {
        let (source, target) = (contents(&self.src()), contents(&self.dst()));
        let names = |all: &BTreeMap<PathBuf, Vec<u8>>| all.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&source), names(&target));
        assert!(source == target, "contents differ");
    }

    /// All files in the target are files of the source, whole.
    #[track_caller]
    pub fn target_has_only_whole_files(&self) -> usize {
        let (source, target) = (contents(&self.src()), contents(&self.dst()));
        for (name, bytes) in &target {
            assert!(source.get(name) == Some(bytes), "{} is not whole", name.display());
        }
        target.len()
    }
}

/// All files below a folder.
pub fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => waiting.push(path),
                false => {
                    let bytes = std::fs::read(&path).unwrap();
                    found.insert(path.strip_prefix(dir).unwrap().to_owned(), bytes);
                }
            }
        }
    }
    found
}

/// Bytes of which no two stretches are the same.
pub fn noise(seed: u64, size: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut bytes = vec![0; size];
    random.fill(&mut bytes);
    bytes
}

fn words(line: &str) -> Vec<std::ffi::OsString> {
    line.split_whitespace().map(Into::into).collect()
}

/// A running server; killed when dropped.
pub struct Server<'a> {
    pub stage: &'a Stage,
    child: Child,
    pub url: String,
    log: PathBuf,
}

impl<'a> Server<'a> {
    fn start(stage: &'a Stage, words: &[std::ffi::OsString]) -> Server<'a> {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let log = stage.area.join(&format!("log{number}"));
        let mut command = Command::new(program());
        command.arg("serve").args(words).arg("--log").arg(&log);
        command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "secret");
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let url = first.trim().strip_prefix("listening on ");
        let url = url.unwrap_or_else(|| panic!("serve {words:?}: said {first:?}")).to_owned();
        Server { stage, child, url, log }
    }

    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Log lines of an operation so far.
    pub fn log(&self, operation: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let whole = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        whole.filter(|line| line["operation"] == operation).collect()
    }

    /// Returns the number of requests of an operation that succeeded so far.
    pub fn succeeded(&self, operation: &str) -> usize {
        self.succeeded_since(operation, UNIX_EPOCH)
    }

    /// Returns the number of those after `start` that succeeded. (The server still reads for a
    /// while what a killed client had sent.)
    pub fn succeeded_since(&self, operation: &str, start: SystemTime) -> usize {
        let start_s = start.duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        let good = |line: &&Value| {
            let time = |field: &str| line[field].as_f64().unwrap_or_default();
            let came_s = time("time_s") - time("took_s");
            line["status"].as_u64().is_some_and(|s| s / 100 == 2) && came_s >= start_s
        };
        self.log(operation).iter().filter(good).count()
    }

    /// Waits until so many requests of an operation have succeeded.
    #[track_caller]
    pub fn wait_for(&self, operation: &str, count: usize) {
        let begun = Instant::now();
        while self.succeeded(operation) < count {
            assert!(begun.elapsed() < Duration::from_secs(30), "no {count} times {operation}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Unfinished multipart uploads, as the program lists them.
    #[track_caller]
    pub fn uploads(&self) -> usize {
        let run = self.run("mpu ls --json s3://bkt");
        run.ok();
        run.out().lines().count()
    }

    /// The program with these words; `SRC` and `DST` are folders. With `limit`, `timeout` ends it.
    pub fn command(&self, line: &str, limit: bool) -> Command {
        let mut command = match limit {
            true => Command::new(tool_path("timeout")),
            false => Command::new(program()),
        };
        if limit {
            command.args(["-k", "5"]).arg(RUN_MAX_S.to_string()).arg(program());
        }
        let (src, dst) = (self.stage.src(), self.stage.dst());
        let place = |word: &str| {
            let word = word.replace("SRC", src.to_str().unwrap());
            word.replace("DST", dst.to_str().unwrap())
        };
        command.args(line.split_whitespace().map(place));
        if !line.contains("--endpoint-url") {
            command.arg("--endpoint-url").arg(&self.url);
        }
        let home = self.stage.area.join("home");
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("XDG_STATE_HOME", home.join("state")).env("HOME", home);
        command.env("LC_ALL", "C.UTF-8").env("AWS_REGION", "us-east-1");
        command.env("AWS_EC2_METADATA_DISABLED", "true");
        command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "secret");
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, line: &str) -> Run {
        self.run_with(line, &[])
    }

    /// As [`Server::run`], with more of an environment; an empty value takes a variable away.
    pub fn run_with(&self, line: &str, environment: &[(&str, &str)]) -> Run {
        let mut command = self.command(line, true);
        for (name, value) in environment {
            match value.is_empty() {
                true => command.env_remove(name),
                false => command.env(name, value),
            };
        }
        Run::new(line.to_owned(), command.output().unwrap())
    }

    /// Runs the program to its end, with this on its standard input.
    pub fn run_fed(&self, line: &str, input: &[u8]) -> Run {
        run_fed(&mut self.command(line, true), input)
    }

    /// As [`Server::run`], started by another command (`taskset -c 0`).
    #[allow(dead_code, reason = "only the tests of steering need it")]
    pub fn run_by(&self, before: &str, line: &str) -> Run {
        let plain = self.command(line, true);
        let mut words = before.split_whitespace();
        let Some(first) = words.next() else { return self.run(line) };
        let mut command = Command::new(tool_path(first));
        command.args(words).arg(plain.get_program()).args(plain.get_args()).env_clear();
        let set = plain.get_envs().filter_map(|(name, value)| Some((name, value?)));
        command.envs(set);
        Run::new(format!("{before} {line}"), command.output().unwrap())
    }

    /// Runs the program to its end; also its peak memory in KiB, as the kernel counted it.
    #[track_caller]
    pub fn run_measured(&self, line: &str) -> (Run, u64) {
        let plain = self.command(line, true);
        let peak = self.stage.area.join("peak");
        let mut command = Command::new("/usr/bin/time");
        command.args(["-q", "-f", "%M", "-o"]).arg(&peak);
        command.arg(plain.get_program()).args(plain.get_args()).env_clear();
        for (name, value) in plain.get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        let run = Run::new(line.to_owned(), command.output().unwrap());
        let text = std::fs::read_to_string(peak).unwrap();
        let last = text.lines().last().unwrap_or_default();
        (run, last.parse().unwrap_or_else(|_| panic!("no memory figure: {text}")))
    }

    /// Starts the program and does not wait for it.
    pub fn begin(&self, line: &str) -> Running {
        Running::start(line, self.command(line, false))
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Checks fields of a run's summary.
#[track_caller]
pub fn counts(run: &Run, expected: &[(&str, u64)]) {
    let summary = run.summary();
    for (field, value) in expected {
        assert_eq!(summary[*field], *value, "{field} in {run}");
    }
}

/// Returns the number of retries of a run.
#[track_caller]
pub fn retries(run: &Run) -> u64 {
    run.summary()["retries"].as_u64().unwrap()
}
