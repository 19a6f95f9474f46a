//! Other programs that use the CPUs.

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
