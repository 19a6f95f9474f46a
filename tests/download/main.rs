//! Objects become files: the real binary against `hakobu serve null`, whose objects have made-up
//! contents of known checksums, and which breaks answers on demand.

#[path = "../server/client.rs"]
#[allow(dead_code, reason = "a part of what the server's own tests need")]
mod client;
#[path = "../common/mod.rs"]
mod common;
#[path = "../server/sign.rs"]
#[allow(dead_code, reason = "as above")]
mod sign;

mod broken;
mod interrupted;
mod markers;
mod places;

use client::Served;
use common::area::Area;
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
        let mut command = Command::new(common::program());
        let out = self.target().to_str().unwrap().to_owned();
        command.args(line.split_whitespace().map(|word| word.replace("OUT", &out)));
        command.arg("--endpoint-url").arg(self.server.url());
        command.env("AWS_ACCESS_KEY_ID", client::ACCESS);
        command.env("AWS_SECRET_ACCESS_KEY", client::SECRET);
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

    /// What the server has under a key of that size, by another client than the one under test.
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
