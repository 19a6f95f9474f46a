//! Many jobs take little memory.

use crate::common::{have, program};
use crate::io::area;
use std::process::Command;

/// Kilobytes of all but buffers.
const MOST_KB: u64 = 64 << 10;

#[test]
fn a_hundred_and_twenty_eight_jobs() {
    if !have("time", "memory of 128 jobs") {
        return;
    }
    let area = area();
    for line in [
        "--name=a --ioengine=null --rw=randrw --bs=4k --size=16m --numjobs=128 --time_based --runtime=1",
        "--name=a --ioengine=psync --rw=randrw --bs=4k --size=256k --numjobs=128 --time_based --runtime=1 \
         --group_reporting",
    ] {
        let mut command = Command::new("time");
        command.args(["-f", "%M", "-o", "kb"]).arg(program()).arg("io");
        command.args(line.split_whitespace()).arg("--output-format=json").current_dir(area.path());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = std::fs::read_to_string(area.join("kb")).unwrap();
        let kb: u64 = text.trim().parse().unwrap();
        assert!(kb < MOST_KB + 128 * 4, "{kb} KB: {line}");
    }
}
