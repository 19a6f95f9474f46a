//! Clocks for a program that the tests set.

use super::area::Area;
use super::{have, must, skip};
use std::path::PathBuf;
use std::process::Command;

/// A library to preload, in a folder of a test.
pub struct Clock {
    library: PathBuf,
    mark: PathBuf,
}

impl Clock {
    /// `None` where there is no compiler, which was said.
    pub fn new(area: &Area) -> Option<Clock> {
        if !have("gcc", "clocks of the tests") {
            return None;
        }
        let code = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/common/clock.c");
        let (library, mark) = (area.join("clock.so"), area.join("clock-mark"));
        must(Command::new("gcc").args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library).arg(code));
        Some(Clock { library, mark })
    }

    /// Has a command use it; `setting` is one of `clock.c`.
    pub fn set(&self, command: &mut Command, setting: &str, value: u64) {
        command.env("LD_PRELOAD", &self.library).env("CLOCK_MARK", &self.mark);
        command.env(setting, value.to_string());
    }

    /// Whether a command has used it; a static program does not, which is said.
    pub fn was_used(&self) -> bool {
        let used = self.mark.exists();
        if !used {
            skip("clocks of the tests: the program is static");
        }
        used
    }
}
