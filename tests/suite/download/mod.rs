//! Downloads with the real binary from `hakobu serve null`, whose objects have generated content with known
//! checksums, and which injects faults.

mod broken;
mod interrupted;
mod markers;
mod places;

use crate::common::area::Area;
use crate::server::client::Served;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A server and a folder to download into.
pub struct Stage {
    /// The server.
    pub server: Served,
    /// Holds the folder and the state of unfinished downloads.
    pub area: Area,
}

impl Stage {
    /// Starts `hakobu serve` with these words.
    pub fn new(serve: &str) -> Stage {
        let stage = Stage { server: Served::start(serve), area: Area::tmpfs() };
        std::fs::create_dir(stage.target()).unwrap();
        stage
    }

    /// The folder to download into.
    pub fn target(&self) -> PathBuf {
        self.area.join("target")
    }

    /// `hakobu` with these words; `OUT` is the folder.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(crate::common::program());
        let out = self.target().to_str().unwrap().to_owned();
        command.args(line.split_whitespace().map(|word| word.replace("OUT", &out)));
        command.arg("--endpoint-url").arg(self.server.url());
        command.env("AWS_ACCESS_KEY_ID", crate::server::client::ACCESS);
        command.env("AWS_SECRET_ACCESS_KEY", crate::server::client::SECRET);
        command.env("AWS_REGION", "us-east-1").env("XDG_STATE_HOME", self.area.join("state"));
        command
    }

    /// Runs it to its end.
    pub fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Runs it; it must succeed.
    pub fn ok(&self, line: &str) {
        let run = self.run(line);
        assert!(run.status.success(), "{line}: {}", String::from_utf8_lossy(&run.stderr));
    }

    /// Content of a key of that size, read by another client than the one under test.
    pub fn content(&self, size: u64) -> Vec<u8> {
        let answer = self.server.ask("GET", &format!("/bkt/plain.size-{size}"), "", b"");
        assert_eq!(answer.body.len() as u64, size);
        answer.body
    }

    /// Names in the folder, sorted.
    pub fn names(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.target()).unwrap();
        let mut names: Vec<_> =
            names.map(|name| name.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}
