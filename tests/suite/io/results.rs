//! Results agree with the work that was done.

use crate::io::{area, io, measured, number};

#[test]
fn every_engine_does_all_of_it() {
    let area = area();
    for engine in ["sync", "psync", "pvsync2", "libaio", "io_uring", "mmap", "null"] {
        for rw in ["read", "write", "randread", "randwrite", "rw", "randrw"] {
            let line = format!("--name=a --rw={rw} --bs=4k --size=256k --ioengine={engine}");
            let found = measured(area.path(), &line);
            let job = &found["jobs"][0];
            let (reads, writes) = (number(job, "/read/total_ios"), number(job, "/write/total_ios"));
            assert_eq!(reads + writes, 64, "{line}");
            assert_eq!(reads > 0, !rw.ends_with("write"), "{line}");
            assert_eq!(writes > 0, !rw.ends_with("read"), "{line}");
            for (way, ios) in [("read", reads), ("write", writes)] {
                assert_eq!(number(job, &format!("/{way}/io_bytes")), ios * 4096, "{line}");
                assert_eq!(number(job, &format!("/{way}/clat_ns/N")), ios, "{line}");
            }
        }
    }
}

#[test]
fn a_rate_is_kept() {
    let area = area();
    let line = "--name=a --rw=randread --size=1m --rate_iops=500 --time_based --runtime=2";
    let found = measured(area.path(), line);
    let iops = found["jobs"][0]["read"]["iops"].as_f64().unwrap();
    assert!((450.0..550.0).contains(&iops), "{iops}");
}

#[test]
fn people_read_fio_s_words() {
    let area = area();
    let run = io(area.path(), "--name=a --rw=randrw --size=1m --numjobs=2 --group_reporting");
    let text = run.ok().out();
    for words in [
        "a: (g=0): rw=randrw, bs=(R) 4096B-4096B",
        "\n...\nhakobu-",
        "\nStarting 2 threads\n",
        "\na: (groupid=0, jobs=2): err= 0: pid=",
        "\n  read: IOPS=",
        "\n  write: IOPS=",
        "\n    clat percentiles (",
        "\n  cpu          : usr=",
        "\n  IO depths    : 1=100.0%",
        "\n     issued rwts: total=",
        "\nRun status group 0 (all jobs):\n   READ: bw=",
        "\n  WRITE: bw=",
    ] {
        assert!(text.contains(words), "{words:?} in {run}");
    }
}
