//! Counts agree with those of the kernel.

use crate::common::have_root;
use crate::common::loops::Loop;
use crate::io::{area, measured, number};

/// Reads, sectors read, writes, sectors written of a device (Documentation/block/stat.rst).
fn counted(device: &str) -> [u64; 4] {
    let name = device.trim_start_matches("/dev/");
    let text = std::fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
    let numbers: Vec<u64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
    [numbers[0], numbers[2], numbers[4], numbers[6]]
}

#[test]
fn blocks_and_bytes_are_those_of_the_device() {
    if !have_root("counters of a device") {
        return;
    }
    let area = area();
    let device = Loop::over(&area.join("disk.img"), 16);
    for (engine, rw) in [
        ("psync", "randread"),
        ("io_uring", "randrw"),
        ("libaio", "randwrite"),
        ("pvsync2", "randrw"),
    ] {
        let before = counted(&device.0);
        let found = measured(
            area.path(),
            &format!(
                "--name=a --filename={} --direct=1 --rw={rw} --bs=4k --size=8m --ioengine={engine} \
                 --iodepth={} --allow-overwrite",
                device.0,
                if engine.starts_with('p') { 1 } else { 16 }
            ),
        );
        let after = counted(&device.0);
        let did: Vec<u64> =
            after.iter().zip(before).map(|(after, before)| after - before).collect();
        let side = |way: &str, what: &str| number(&found, &format!("/jobs/0/{way}/{what}"));
        let (reads, writes) = (side("read", "total_ios"), side("write", "total_ios"));
        assert_eq!(reads + writes, 2048, "{engine} {rw}");
        assert_eq!(side("read", "io_bytes"), reads * 4096, "{engine} {rw}");
        assert_eq!((did[1], did[3]), (reads * 8, writes * 8), "sectors of {engine} {rw}");
        // Neighbours may have been joined on their way.
        assert!(did[0] <= reads + 2 && did[2] <= writes, "{engine} {rw}: {did:?}");
        let util = &found["disk_util"][0];
        assert_eq!(util["name"].as_str().unwrap(), device.0.trim_start_matches("/dev/"));
        assert_eq!((number(util, "/read_ios"), number(util, "/write_ios")), (did[0], did[2]));
    }
}
