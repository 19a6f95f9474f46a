//! Options of fio, each by its effect on blocks and files.

use super::{area, io, measured, names, number};
use crate::common::area::{Area, Fs};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

const KIB: u64 = 1 << 10;

/// Offset and length of each block of a clone, from its log of latencies.
fn blocks(folder: &Path, clone: u32) -> Vec<(u64, u64)> {
    let text = std::fs::read_to_string(folder.join(format!("l_clat.{clone}.log"))).unwrap();
    let column = |line: &str, at: usize| line.split(", ").nth(at).unwrap().parse().unwrap();
    text.lines().map(|line| (column(line, 4), column(line, 3))).collect()
}

/// The blocks of a job with `ioengine=null`.
fn planned(line: &str) -> Vec<(u64, u64)> {
    let area = area();
    let logs = "--write_lat_log=l --log_offset=1";
    io(area.path(), &format!("--name=o --ioengine=null {line} {logs}")).ok();
    blocks(area.path(), 1)
}

#[test]
fn blocks_have_the_sizes_that_were_asked_for() {
    let found = planned("--rw=randread --size=64m --bssplit=4k/50:64k/30:16k/20 --number_ios=1000");
    assert_eq!(found.len(), 1000);
    for (kib, share) in [(4, 500), (64, 300), (16, 200)] {
        let many = found.iter().filter(|(_, bytes)| *bytes == kib * KIB).count();
        assert!(many.abs_diff(share) < 70, "{many} blocks of {kib} KiB");
    }
    let found = planned("--rw=randread --size=64m --bsrange=4k-32k --number_ios=1000");
    assert!(found.iter().all(|(_, bytes)| bytes % (4 * KIB) == 0 && *bytes <= 32 * KIB));
    for multiple in 1..=8 {
        let many = found.iter().filter(|(_, bytes)| *bytes == multiple * 4 * KIB).count();
        assert!((60..200).contains(&many), "{many} blocks of {multiple} times 4 KiB");
    }
    // Every third block, and backwards from the end.
    let at = |line: &str| planned(line).into_iter().map(|(at, _)| at / KIB).collect::<Vec<_>>();
    assert_eq!(at("--rw=read:8k --size=48k --bs=4k --number_ios=4"), [0, 12, 24, 36]);
    assert_eq!(at("--rw=read:-8k --size=48k --bs=4k --number_ios=4").last(), Some(&32));
}

#[test]
fn clones_begin_at_a_share_of_the_file() {
    let area = area();
    std::fs::write(area.join("f"), vec![0; 1 << 20]).unwrap();
    let line = "--name=o --filename=f --rw=read --bs=4k --size=25% --numjobs=4 \
                --offset_increment=25% --write_lat_log=l --log_offset=1";
    io(area.path(), line).ok();
    for clone in 1..=4 {
        let found = blocks(area.path(), clone);
        let begin = u64::from(clone - 1) * 256 * KIB;
        let wanted: Vec<_> = (0..64).map(|block| (begin + block * 4 * KIB, 4 * KIB)).collect();
        assert_eq!(found, wanted, "clone {clone}");
    }
}

#[test]
fn files_have_sizes_of_a_range() {
    let area = area();
    let line = "--name=o --rw=read --bs=4k --nrfiles=12 --filesize=16k-256k --create_only=1";
    io(area.path(), line).ok();
    let sizes: Vec<u64> = names(area.path())
        .iter()
        .map(|name| std::fs::metadata(area.join(name)).unwrap().len())
        .collect();
    assert_eq!(sizes.len(), 12);
    assert!(sizes.iter().all(|size| (16 * KIB..=256 * KIB).contains(size) && size % 4096 == 0));
    assert!(sizes.iter().any(|size| *size != sizes[0]), "{sizes:?}");
}

#[test]
fn clones_begin_after_a_delay_of_a_range() {
    let area = area();
    let line = "--name=o --ioengine=null --size=4k --startdelay=600ms-900ms";
    let begun = Instant::now();
    io(area.path(), line).ok();
    assert!(begun.elapsed().as_millis() >= 600, "{:?}", begun.elapsed());
    let line = "--name=o --ioengine=null --size=4k --startdelay=900ms-600ms";
    io(area.path(), line).expect(2).says(&["startdelay"]);
}

#[test]
fn blocks_of_files_are_reserved_or_not() {
    let Some(area) = Area::new(Fs::Ext4, "blocks of files") else { return };
    let allocated = |more: &str| {
        let line = format!("--name=o --rw=write --bs=4k --size=1m --create_only=1 {more}");
        io(area.path(), &line).ok();
        let path = area.join("o.0.0");
        let meta = std::fs::metadata(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        assert_eq!(meta.len(), 1 << 20);
        meta.blocks() * 512
    };
    assert!(allocated("--fallocate=none") < 64 * KIB);
    for reserved in
        ["", "--fallocate=native", "--fallocate=posix", "--fallocate=none --overwrite=1"]
    {
        assert!(allocated(reserved) >= 1 << 20, "{reserved}");
    }
}

#[test]
fn a_job_ends_where_its_rate_is_steady() {
    let area = area();
    let line = "--name=a --ioengine=null --size=1g --time_based --runtime=30 --rate_iops=500 \
                --ss=iops:40% --ss_dur=2";
    let found = measured(area.path(), line);
    assert_eq!(number(&found, "/jobs/0/steadystate/attained"), 1);
    assert!(number(&found, "/jobs/0/job_runtime") < 20_000);
}
