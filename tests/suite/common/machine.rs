//! The machine of a test: other programs that use its CPUs, loop devices, changes that are reverted.

use super::must;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// One process for each CPU that never rests; ended when dropped, or if the test ends without that.
pub struct Busy(Vec<Child>);

impl Busy {
    pub fn all_cpus() -> Busy {
        let cpus = std::thread::available_parallelism().unwrap().get();
        let own = std::process::id();
        let script = format!(
            "while kill -0 {own} 2>/dev/null; do i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; done"
        );
        let start = |_| {
            let mut command = Command::new("sh");
            command.args(["-c", &script]).stdin(Stdio::null()).spawn().unwrap()
        };
        Busy((0..cpus).map(start).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

// Loop devices.

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

// Reverts changes to the machine when a test ends in any way.

/// A script that runs when this is dropped, or when the test program is gone, even by SIGKILL.
#[derive(Debug)]
pub struct Undo {
    keeper: Child,
}

impl Undo {
    /// Call this before the change is made; what fails in the script is passed over.
    pub fn new(script: &str) -> Undo {
        // The pipe closes when this process ends. A group of its own keeps ^C away.
        let script = format!("trap '' INT TERM HUP\necho ready\ncat >/dev/null\n{script}\ntrue");
        let mut keeper = Command::new("sh");
        keeper.args(["-c", &script]).process_group(0);
        keeper.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut keeper = keeper.spawn().unwrap();
        let mut ready = [0; 6];
        keeper.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
        Undo { keeper }
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}
