//! Reverts changes to the machine when a test ends in any way.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

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
