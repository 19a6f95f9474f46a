//! Start of writeback during the copy of a large file.

use crate::common::area::{Fs, Volume};
use crate::common::grow::age;
use crate::common::{have, must, program, skip};
use std::path::Path;
use std::process::Command;

const BYTES: usize = 24 << 20;

/// The kernel can say what is in memory (cachestat(2)).
fn has_cachestat() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6, 5)
}

/// Times that writeback was asked for while a tree was copied.
fn asked(from: &Path, to: &Path, trace: &Path) -> usize {
    let mut command = Command::new("strace");
    command.args(["-f", "-e", "trace=sync_file_range", "-o"]).arg(trace).arg(program());
    let mut source = from.as_os_str().to_owned();
    source.push("/");
    must(command.args(["sync", "-a", "--no-memory"]).arg(source).arg(to));
    assert_eq!(
        std::fs::read(to.join("large")).unwrap(),
        std::fs::read(from.join("large")).unwrap()
    );
    let text = std::fs::read_to_string(trace).unwrap();
    text.lines().filter(|line| line.contains("sync_file_range(")).count()
}

/// Makes the page cache forget the source.
fn forget(from: &Path) {
    let name = format!("if={}", from.join("large").display());
    must(Command::new("sync").arg("-f").arg(from));
    must(Command::new("dd").args([&name, "iflag=nocache", "count=0", "status=none"]));
}

#[test]
fn reading_from_a_disk_comes_before_writing_to_it() {
    if !have("strace", "early writeback") {
        return;
    }
    if !has_cachestat() {
        return skip("early writeback: the kernel is older than 6.5");
    }
    let volume = |what| Volume::new(Fs::Ext4, 128, &[], what);
    let (Some(one), Some(other)) = (volume("writeback"), volume("writeback to another disk"))
    else {
        return;
    };
    let from = one.join("src");
    std::fs::create_dir(&from).unwrap();
    let mut bytes = vec![0; BYTES];
    fastrand::Rng::with_seed(7).fill(&mut bytes);
    std::fs::write(from.join("large"), bytes).unwrap();
    age(&from);
    let trace = other.join("trace");
    forget(&from);
    assert_eq!(asked(&from, &one.join("cold"), &trace), 0, "one disk, not in memory");
    // By now it is in memory.
    assert!(asked(&from, &one.join("warm"), &trace) >= 2, "one disk, in memory");
    forget(&from);
    assert!(asked(&from, &other.join("cold"), &trace) >= 2, "two disks");
}
