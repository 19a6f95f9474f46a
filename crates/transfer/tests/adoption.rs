//! Daemons of a watched command, which leave its process tree; a process of its own, because the subreaper adopts all
//! orphans.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unreachable,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use hakobu_explain::sample::{Sampler, Watched};
use std::process::Command;
use std::time::{Duration, Instant};

#[test]
fn adopted_orphans_are_counted() {
    hakobu_sys::proc::adopt_orphans().unwrap();
    let mut sampler = Sampler::new(Watched::Children);
    sampler.read();
    // The intermediate shell ends at once, so the daemon is only visible through adoption.
    let burn = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let mut child =
        Command::new("sh").args(["-c", &format!("(sh -c '{burn}' & )")]).spawn().unwrap();
    child.wait().unwrap();
    let began = Instant::now();
    let process = loop {
        let process = sampler.read().process;
        if process.processes == 0 {
            break process;
        }
        assert_eq!(process.processes, 1, "{process:?}");
        assert!(began.elapsed() < Duration::from_secs(60), "{process:?}");
        std::thread::sleep(Duration::from_millis(5));
    };
    let used = Duration::from_nanos(process.user_ns + process.system_ns);
    // A few milliseconds would be the shells alone.
    assert!(used > Duration::from_millis(40), "{used:?}");
}
