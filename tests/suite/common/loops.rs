//! Loop devices.

use super::must;
use std::path::Path;
use std::process::Command;

/// A loop device over a file; detached when dropped.
pub struct Loop(pub String);

impl Loop {
    pub fn over(file: &Path, mib: u64) -> Loop {
        std::fs::File::create(file).unwrap().set_len(mib << 20).unwrap();
        let out = must(Command::new("losetup").args(["--find", "--show"]).arg(file));
        Loop(String::from_utf8(out).unwrap().trim().to_owned())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}
