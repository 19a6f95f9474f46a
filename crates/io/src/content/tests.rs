//! Content that is written: by chance, as compressible as asked for, never the same twice.

use super::*;
use crate::job::tests::job;
use std::collections::HashSet;
use std::io::Write;
use std::process::{Command, Stdio};

fn block(bytes: u32, offset: u64) -> Block {
    Block { file: 0, write: true, bytes, offset }
}

/// All blocks that a job would write, one after the other, from one buffer.
fn written(job: &Job, bytes: usize, blocks: u64) -> Vec<u8> {
    let mut filler = Filler::new(job, 0);
    let mut buffer = vec![0xaa; bytes];
    filler.first(&mut buffer);
    let mut all = Vec::new();
    for number in 0..blocks {
        filler.before_write(&mut buffer, &block(bytes as u32, number * bytes as u64), 0);
        all.extend_from_slice(&buffer);
    }
    all
}

/// Size after gzip, as a share of its length; `None` where there is no gzip.
fn compressed(content: &[u8]) -> Option<f64> {
    let mut gzip = Command::new("gzip");
    let gzip = gzip.args(["-1", "-c"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut gzip) = gzip else {
        assert!(std::env::var_os("HAKOBU_REQUIRE_ALL").is_none(), "gzip is missing");
        return None;
    };
    let mut input = gzip.stdin.take().unwrap();
    let all = content.to_vec();
    let feeder = std::thread::spawn(move || input.write_all(&all));
    let output = gzip.wait_with_output().unwrap();
    feeder.join().unwrap().unwrap();
    Some(output.stdout.len() as f64 / content.len() as f64)
}

/// One long buffer: blocks of one that was filled once and changed a little can be found again by a
/// compressor whose window is longer than a block.
fn once(job: &Job, bytes: usize) -> Vec<u8> {
    let mut all = vec![0xaa; bytes];
    Filler::new(job, 0).first(&mut all);
    all
}

#[test]
fn content_is_as_compressible_as_asked_for() {
    for (percent, low, high) in
        [(None, 0.99, 1.01), (Some(0), 0.99, 1.01), (Some(50), 0.48, 0.56), (Some(90), 0.08, 0.16)]
    {
        let job = Job { compress_percent: percent, ..job("write") };
        let all = once(&job, 1 << 20);
        let zeros = all.iter().filter(|byte| **byte == 0).count() as f64 / all.len() as f64;
        let want = f64::from(percent.unwrap_or(0)) / 100.0;
        assert!((zeros - want).abs() < 0.01, "{percent:?}: {zeros} are zeros");
        if let Some(share) = compressed(&all) {
            assert!(low < share && share < high, "{percent:?}: {share}");
        }
        // And it stays like that, however often it is changed.
        let all = written(&job, 65536, 16);
        let zeros = all.iter().filter(|byte| **byte == 0).count() as f64 / all.len() as f64;
        assert!((zeros - want).abs() < 0.01, "{percent:?}: {zeros} are zeros");
    }
}

#[test]
fn zeros_are_zeros() {
    for job in [
        Job { zero: true, ..job("write") },
        Job { zero: true, refill: true, ..job("write") },
        Job { compress_percent: Some(100), ..job("write") },
    ] {
        assert!(written(&job, 4096, 3).iter().all(|byte| *byte == 0));
    }
}

#[test]
fn no_512_bytes_are_written_twice() {
    for refill in [false, true] {
        for percent in [None, Some(80)] {
            let job = Job { refill, compress_percent: percent, ..job("write") };
            let all = written(&job, 8192, 200);
            let different: HashSet<&[u8]> = all.chunks(512).collect();
            assert_eq!(different.len(), all.len() / 512);
        }
    }
    // Nor by another run, nor by another clone.
    let job = job("write");
    assert_ne!(written(&job, 512, 1), written(&job, 512, 1));
}

#[test]
fn refilled_blocks_share_nothing_and_others_nearly_everything() {
    for (refill, most) in [(false, 1.0), (true, 0.01)] {
        let job = Job { refill, ..job("write") };
        let all = written(&job, 4096, 2);
        let same = all[..4096].iter().zip(&all[4096..]).filter(|(a, b)| a == b).count();
        let share = same as f64 / 4096.0;
        assert!(if refill { share < most } else { share > 0.97 && share < most }, "{share}");
    }
}

#[test]
fn blocks_with_a_checksum_verify() {
    for refill in [false, true] {
        let kind = VerifyKind::Crc64;
        let job = Job { verify: Some(kind), refill, ..job("write") };
        let mut filler = Filler::new(&job, 1);
        let mut buffer = vec![0; 8192];
        filler.first(&mut buffer);
        for (bytes, offset) in [(4096, 0), (8192, 4096), (512, 1 << 40)] {
            let block = block(bytes, offset);
            filler.before_write(&mut buffer, &block, 9);
            let whole = &buffer[..bytes as usize];
            assert_eq!(check::verify(whole, kind, &block, 9..=9), Ok(()));
        }
    }
}

#[test]
fn patterns_are_repeated_in_each_block() {
    let mut of = job("write");
    of.written.pattern = b"abc".to_vec();
    let all = written(&of, 512, 3);
    let expected: Vec<u8> = b"abc".iter().copied().cycle().take(512).collect();
    assert!(all.chunks(512).all(|block| block == expected));
}

/// Different blocks among so many.
fn different(job: &Job, blocks: u64) -> usize {
    let all = written(job, 512, blocks);
    all.chunks(512).collect::<HashSet<_>>().len()
}

#[test]
fn copies_are_as_many_as_asked_for() {
    let with = |percent, working_set_percent| {
        let mut of = job("write");
        (of.refill, of.size) = (true, Some(crate::Amount::Bytes(1000 * 4096)));
        let global = false;
        of.written.dedupe = Some(crate::job::Dedupe { percent, working_set_percent, global });
        different(&of, 1000)
    };
    assert!(with(50, None).abs_diff(500) < 70, "repeats");
    assert!(with(100, Some(10)) <= 100, "only of the set");
    let found = with(50, Some(10));
    assert!(found.abs_diff(500) < 70, "{found}");
}

#[test]
fn jobs_may_have_one_set_of_copies() {
    let of = |global| {
        let mut of = job("write");
        (of.refill, of.size) = (true, Some(crate::Amount::Bytes(100 * 4096)));
        let working_set_percent = Some(10);
        let percent = 100;
        of.written.dedupe = Some(crate::job::Dedupe { percent, working_set_percent, global });
        written(&of, 512, 200)
    };
    let together = |global| {
        let (one, other) = (of(global), of(global));
        one.chunks(512).chain(other.chunks(512)).collect::<HashSet<_>>().len()
    };
    assert_eq!((together(true), together(false)), (10, 20));
}
