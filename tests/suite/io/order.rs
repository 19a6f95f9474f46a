//! Options of blocks by their effect: order and sizes, shares, zones, sequences, rates, latencies, steady states.

use crate::common::area::{Area, Fs};
use crate::io::{area, io, json, measured, names, number};
use serde_json::Value;
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

/// Offsets of the blocks of a job, from its log of latencies.
fn offsets(line: &str) -> Vec<u64> {
    let area = area();
    let line = format!("--name=o --ioengine=null {line} --write_lat_log=l --log_offset=1");
    io(area.path(), &line).ok();
    let text = std::fs::read_to_string(area.join("l_clat.1.log")).unwrap();
    let column = |line: &str| line.split(", ").nth(4).unwrap().parse().unwrap();
    text.lines().map(column).collect()
}

#[test]
fn blocks_go_where_they_are_told_to() {
    let kib = |list: &[u64]| list.iter().map(|at| at * 1024).collect::<Vec<_>>();
    let sequence = "--rw=randread --size=48k --bs=4k --io_size=24k";
    let area = area();
    let file = |stride: u8| {
        let text = format!(
            "[s]\nioengine=null\nrw=randread\nbs=4k\nsize=48k\nio_size=24k\n\
             random_distribution=sequence:2,0,1\nrandom_sequence_stride={stride}\n\
             write_lat_log=s\nlog_offset=1\n"
        );
        std::fs::write(area.join("s.fio"), text).unwrap();
        io(area.path(), "s.fio").ok();
        let text = std::fs::read_to_string(area.join("s_clat.1.log")).unwrap();
        let column = |line: &str| line.split(", ").nth(4).unwrap().parse::<u64>().unwrap() / 4096;
        text.lines().map(column).collect::<Vec<_>>()
    };
    assert_eq!(file(0), [2, 0, 1, 2, 0, 1]);
    assert_eq!(file(1), [2, 0, 1, 5, 3, 4]);
    assert_eq!(offsets(sequence).len(), 6);
    let zones = "--rw=read --size=64k --bs=4k --zonemode=strided --zonesize=8k --zoneskip=16k";
    assert_eq!(offsets(zones), kib(&[0, 4, 24, 28, 48, 52]));
    let aligned = offsets("--rw=randread --size=1m --bs=512 --blockalign=4k --number_ios=200");
    assert!(aligned.iter().all(|at| at % 4096 == 0) && aligned.len() == 200);
    let many = "--rw=randread --size=10m --bs=4k --norandommap";
    let found = offsets(&format!("{many} --random_distribution=zoned:50/5:30/15:20/"));
    assert_eq!(found.len(), 2560);
    let below = |limit: u64| found.iter().filter(|at| **at < (10 << 20) / 100 * limit).count();
    assert!(below(5).abs_diff(1280) < 130 && below(20).abs_diff(2048) < 130, "{}", below(5));
}

#[test]
fn zones_are_where_fio_has_them() {
    if !crate::common::have("fio", "its zones") {
        return;
    }
    let line = "--name=o --ioengine=null --rw=read --size=64k --bs=4k --zonemode=strided \
                --zonesize=8k --zoneskip=16k --write_lat_log=l --log_offset=1 --number_ios=6";
    let area = area();
    let mut command = std::process::Command::new("fio");
    crate::common::must(command.args(line.split_whitespace()).current_dir(area.path()));
    let read = || {
        let text = std::fs::read_to_string(area.join("l_clat.1.log")).unwrap();
        let column = |line: &str| line.split(", ").nth(4).unwrap().parse::<u64>().unwrap();
        text.lines().map(column).collect::<Vec<u64>>()
    };
    let theirs = read();
    io(area.path(), line).ok();
    assert_eq!(read(), theirs);
}

#[test]
fn a_job_below_its_least_rate_fails() {
    let area = area();
    let slow = "--name=a --ioengine=null --rw=read --size=1g --rate_iops=20 --runtime=4";
    let run = io(area.path(), &format!("{slow} --rate_min=1m --output-format=json"));
    run.expect(1).says(&["less than the minimum of"]);
    let took = json(&run).pointer("/jobs/0/job_runtime").and_then(Value::as_u64).unwrap();
    assert!((1800..3500).contains(&took), "{took} ms");
    io(area.path(), &format!("{slow} --rate_iops_min=100 --ratecycle=500")).expect(1);
    io(area.path(), "--name=a --ioengine=null --size=64k --rate_min=1k").ok();
}

#[test]
fn a_depth_that_keeps_a_latency_is_found() {
    let area = area();
    let line = "--name=a --ioengine=null --rw=randread --size=1g --norandommap --iodepth=16 \
                --time_based --runtime=20 --latency_window=20ms --latency_percentile=90";
    let found = measured(area.path(), &format!("{line} --latency_target=10s"));
    assert_eq!(number(&found, "/jobs/0/latency_depth"), 16);
    assert_eq!(number(&found, "/jobs/0/latency_target"), 10_000_000);
    assert!(number(&found, "/jobs/0/job_runtime") < 10_000, "it ends when it is found");
    // Blocks come later than that, whatever the depth.
    let slow = "--name=a --ioengine=psync --rw=read --size=1m --bs=1m --time_based --runtime=20 \
                --latency_window=20ms --latency_target=1us";
    io(area.path(), slow).expect(1).says(&["even one block at a time is not within"]);
}

#[test]
fn a_latency_becomes_steady() {
    let area = area();
    let line =
        "--name=a --ioengine=null --size=1g --time_based --runtime=30 --ss=lat:90% --ss_dur=2";
    let found = measured(area.path(), line);
    assert_eq!(found.pointer("/jobs/0/steadystate/attained"), Some(&Value::from(1)));
    assert_eq!(found.pointer("/jobs/0/steadystate/ss"), Some(&Value::from("lat:90%")));
    assert!(number(&found, "/jobs/0/job_runtime") < 20_000);
}

#[test]
fn files_that_have_to_be_there() {
    let area = area();
    let line = "--name=a --filename=f --size=64k --allow_file_create=0";
    io(area.path(), line)
        .expect(1)
        .says(&["does not exist, and allow_file_create=0 forbids creating it"]);
    std::fs::write(area.join("f"), [0; 65536]).unwrap();
    io(area.path(), line).ok();
}

#[test]
fn options_have_one_dash_or_two() {
    let area = area();
    let found = measured(area.path(), "-name=a -ioengine=null --size=8k -bs 4k");
    assert_eq!(number(&found, "/jobs/0/read/total_ios"), 2);
    let run = io(area.path(), "--client=host --name=a --size=4k");
    run.expect(2).says(&["--client is not supported"]);
}

#[test]
fn sizes_are_computed() {
    let area = area();
    let text = "[a]\nioengine=null\nsize=64*$pagesize\nbs=$pagesize\n";
    std::fs::write(area.join("a.fio"), text).unwrap();
    let found = measured(area.path(), "a.fio");
    assert_eq!(number(&found, "/jobs/0/read/total_ios"), 64);
    let found = measured(area.path(), "--name=a --ioengine=null --size=(4k+4k)*8 --bs=2k*4");
    assert_eq!(number(&found, "/jobs/0/read/total_ios"), 8);
}
