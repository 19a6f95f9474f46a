//! Very many jobs: those that can be had work, of others the limit is named.

use crate::common::program;
use crate::io::area;
use crate::io::{io, measured, names};
use std::process::Command;

#[test]
fn ten_thousand_jobs() {
    let area = area();
    for line in [
        "--name=a --ioengine=null --rw=randrw --size=64k --numjobs=10000 --group_reporting",
        "--name=a --ioengine=psync --rw=randread --size=4k --numjobs=10000 --group_reporting \
         --filename=one",
    ] {
        if line.contains("one") {
            std::fs::write(area.join("one"), vec![1u8; 4096]).unwrap();
        }
        let found = measured(area.path(), line);
        let bytes = found["jobs"][0]["read"]["io_bytes"].as_u64().unwrap()
            + found["jobs"][0]["write"]["io_bytes"].as_u64().unwrap();
        let each = if line.contains("null") { 64 << 10 } else { 4096 };
        assert_eq!(bytes, 10_000 * each, "{line}");
    }
}

#[test]
fn a_million_jobs_are_refused_by_name() {
    let area = area();
    for engine in ["null", "psync"] {
        let line = format!("--name=a --ioengine={engine} --size=4k --numjobs=1000000");
        io(area.path(), &line).expect(1).says(&["1000000 jobs", "leaves", "hint: "]);
    }
    assert!(names(area.path()).is_empty());
    // Limits of a shell: addresses, and memory that is locked away from this process.
    for (limit, said) in [("-v 2000000", "RLIMIT_AS"), ("-n 100", "RLIMIT_NOFILE")] {
        let script = format!(
            "ulimit {limit}; exec \"$0\" io --name=a --size=4k --numjobs=9000 --filename=f --rw=read"
        );
        std::fs::write(area.join("f"), vec![0u8; 4096]).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", &script]).arg(program()).current_dir(area.path());
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(said), "{text}");
    }
}
