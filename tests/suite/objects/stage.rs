//! A case: a local tree, a second one, and a place of its own on a server (or in a folder).

use crate::common::area::Area;
use crate::common::case::{Run, replace, run_fed, split};
use crate::common::program;
use crate::objects::server::{Server, embedded, gateway};
use crate::server::client::{ACCESS, SECRET};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Names (relative) and contents of regular files or objects.
pub type Tree = BTreeMap<Vec<u8>, Vec<u8>>;

pub struct Stage {
    pub server: Option<&'static Server>,
    /// Of the server; empty for a folder.
    pub bucket: String,
    pub area: Area,
}

/// Runs a case on a folder and on every server.
pub fn everywhere(body: impl Fn(&Stage)) {
    body(&Stage::new(None));
    on_servers(body);
}

/// Runs a case on every server.
pub fn on_servers(body: impl Fn(&Stage)) {
    body(&Stage::new(Some(embedded())));
    if let Some(server) = gateway() {
        body(&Stage::new(Some(server)));
    }
}

/// A case on the embedded server alone.
pub fn stage() -> Stage {
    Stage::new(Some(embedded()))
}

impl Stage {
    pub fn new(server: Option<&'static Server>) -> Stage {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let area = Area::tmpfs();
        for name in ["src", "dst", "place"] {
            std::fs::create_dir(area.join(name)).unwrap();
        }
        let bucket = match server {
            Some(_) => format!("b{:04}", COUNT.fetch_add(1, Ordering::Relaxed)),
            None => String::new(),
        };
        if let Some(server) = server {
            let answer = server.ask("PUT", &format!("/{bucket}"), b"");
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
        Stage { server, bucket, area }
    }

    pub fn src(&self) -> PathBuf {
        self.area.join("src")
    }

    pub fn dst(&self) -> PathBuf {
        self.area.join("dst")
    }

    /// Value of a word: `SRC`, `DST` and `AREA` are folders, `LIST` is a file, `BKT` the bucket (`s3://…`,
    /// without a trailing slash), `SPOT` a prefix in it or a folder.
    fn word(&self, word: &str) -> OsString {
        let bucket = match self.server {
            Some(_) => format!("s3://{}", self.bucket),
            None => self.area.path().to_str().unwrap().to_owned(),
        };
        let path = |path: PathBuf| path.into_os_string().into_vec();
        let places = [
            ("SPOT", format!("{bucket}/place").into_bytes()),
            ("BKT", bucket.into_bytes()),
            ("SRC", path(self.src())),
            ("DST", path(self.dst())),
            ("LIST", path(self.area.join("list"))),
            ("AREA", path(self.area.path().to_owned())),
        ];
        let bytes = places.iter().fold(word.as_bytes().to_vec(), |bytes, (name, with)| {
            replace(&bytes, name.as_bytes(), with)
        });
        OsString::from_vec(bytes)
    }

    /// `hakobu` with these words.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", "60"]).arg(program());
        command.args(split(line).iter().map(|word| self.word(word)));
        let mine = |name: &str| name.starts_with("AWS_") || name == "RUST_BACKTRACE";
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(mine)) {
            command.env_remove(name);
        }
        command.env("HOME", self.area.path()).env("XDG_STATE_HOME", self.area.join("state"));
        command.env("AWS_ACCESS_KEY_ID", ACCESS).env("AWS_SECRET_ACCESS_KEY", SECRET);
        command.env("AWS_REGION", "us-east-1").env("AWS_EC2_METADATA_DISABLED", "true");
        if let Some(server) = self.server {
            command.env("AWS_ENDPOINT_URL", server.url());
        }
        command.current_dir(self.area.path());
        command
    }

    /// Runs it to its end.
    pub fn run(&self, line: &str) -> Run {
        self.fed(line, b"")
    }

    /// The same with something on its standard input.
    pub fn fed(&self, line: &str, input: &[u8]) -> Run {
        run_fed(&mut self.command(line), input)
    }

    /// Runs it; it must succeed.
    #[track_caller]
    pub fn ok(&self, line: &str) -> Run {
        let run = self.run(line);
        run.ok();
        run
    }

    /// Runs it with `--json`; its summary, which must count these files and, where no folders count
    /// as well, skipped files.
    #[track_caller]
    pub fn counts(&self, line: &str, files: u64, skipped: u64) -> Value {
        let run = self.run(&format!("{line} --json"));
        let summary = run.ok().summary();
        let alone = self.server.is_some();
        let found = (&summary["files"], if alone { &summary["skipped"] } else { &skipped.into() });
        assert_eq!(found, (&files.into(), &skipped.into()), "files, skipped (left) of {run}");
        summary
    }

    /// Everything in the place, by name below it.
    pub fn place(&self) -> Tree {
        match self.server {
            None => tree(&self.area.join("place")),
            Some(_) => {
                let objects = self.objects().into_iter();
                let below = objects
                    .filter_map(|(key, body)| Some((key.strip_prefix(b"place/")?.to_vec(), body)));
                below.collect()
            }
        }
    }

    /// Everything in the bucket, by key.
    pub fn objects(&self) -> Tree {
        self.server.unwrap().objects(&self.bucket).into_iter().collect()
    }

    pub fn put(&self, key: &str, body: &[u8]) {
        self.server.unwrap().put(&self.bucket, key.as_bytes(), body);
    }

    /// Which operations the server was asked for in this bucket while `during` ran, with their
    /// counts; `None` where it keeps no log.
    pub fn asked(&self, during: impl FnOnce()) -> Option<BTreeMap<String, usize>> {
        let log = || self.server?.log(&self.bucket);
        let before = log().map_or(0, |lines| lines.len());
        during();
        let mut counts = BTreeMap::new();
        for line in &log()?[before..] {
            *counts.entry(line["operation"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        Some(counts)
    }
}

/// The regular files below a folder.
pub fn tree(dir: &Path) -> Tree {
    let mut found = Tree::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(next) = dirs.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                dirs.push(entry.path());
            } else if kind.is_file() {
                let path = entry.path();
                let name = path.strip_prefix(dir).unwrap().as_os_str().as_bytes().to_vec();
                found.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// Names of a tree, for people.
pub fn names(tree: &Tree) -> Vec<String> {
    tree.keys().map(|name| name.escape_ascii().to_string()).collect()
}

/// Bytes that are their own: no two of these are alike.
pub fn content(seed: u64, size: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut bytes = vec![0; size];
    random.fill(&mut bytes);
    bytes
}

/// Makes a file and its folders, last changed so many seconds ago (below 0: in the future).
pub fn file(dir: &Path, name: &str, body: &[u8], ago_s: i64) {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, body).unwrap();
    age(&path, ago_s);
}

/// Sets a file's modification time to so many seconds ago, in whole seconds.
pub fn age(path: &Path, ago_s: i64) {
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let at = std::time::Duration::from_secs(now.checked_add_signed(-ago_s).unwrap());
    let at = std::time::UNIX_EPOCH + at;
    std::fs::File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
}

/// The same trees, told by their names and sizes where they are not.
#[track_caller]
pub fn same(what: &str, left: &Tree, right: &Tree) {
    let differs = |name: &&Vec<u8>| left.get(*name) != right.get(*name);
    let mut all: Vec<_> = left.keys().chain(right.keys()).filter(differs).collect();
    all.sort();
    all.dedup();
    let size = |tree: &Tree, name| tree.get(name).map(Vec::len);
    let lines = all.iter().take(20).map(|name| {
        format!("{}: {:?} {:?}", name.escape_ascii(), size(left, *name), size(right, *name))
    });
    let lines: Vec<_> = lines.collect();
    assert!(lines.is_empty(), "{what}: sizes left and right\n  {}", lines.join("\n  "));
}
