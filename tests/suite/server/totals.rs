//! Status of a running server: totals on SIGUSR1, and a line per second with `--progress`.

use crate::common::area::Area;
use crate::common::program;
use crate::server::client::Connection;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn totals_are_told_while_it_runs_and_at_the_end() {
    let area = Area::tmpfs();
    for line in ["null --object-size 100", "null --object-size 100 --latency 1ms"] {
        let stderr = area.join("stderr");
        let mut child = Command::new(program())
            .arg("serve")
            .args(line.split(' '))
            .arg("--progress")
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&stderr).unwrap())
            .spawn()
            .unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let address = first.trim().strip_prefix("listening on http://").unwrap();
        // Nothing is printed before the first request.
        std::thread::sleep(Duration::from_millis(1100));
        assert_eq!(std::fs::read_to_string(&stderr).unwrap(), "", "{line}");
        let mut connection = Connection::new(address);
        for _ in 0..3 {
            connection.send("PUT", "/b/k", "", b"hello");
            assert_eq!(connection.answer("PUT").unwrap().status, 200);
        }
        connection.send("GET", "/b/k", "", b"");
        assert_eq!(connection.answer("GET").unwrap().body.len(), 100);
        let until = |wanted: &str| {
            let begun = Instant::now();
            loop {
                let text = std::fs::read_to_string(&stderr).unwrap();
                if text.contains(wanted) {
                    return text;
                }
                assert!(begun.elapsed() < Duration::from_secs(20), "{line}: no {wanted} in {text}");
                std::thread::sleep(Duration::from_millis(10));
            }
        };
        until("hakobu: 4 requests (");
        let pid = Pid::from_child(&child);
        kill_process(pid, Signal::USR1).unwrap();
        let totals = "hakobu: 4 requests, 15 bytes received, 100 bytes sent\n";
        until(totals);
        kill_process(pid, Signal::TERM).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{line}");
        let text = std::fs::read_to_string(&stderr).unwrap();
        assert_eq!(text.matches(totals).count(), 2, "{line}: {text}");
    }
}
