//! Whole runs on real files: what was counted, what was written, when it ended, what went wrong.

use super::{RunView, groups, run};
use crate::job::tests::job;
use crate::job::{Amount, BlockSizes, EngineKind, Job, LogPrefixes, VerifyKind};
use crate::layout::tests::Loop;
use crate::layout::{Safety, lay_out};
use crate::outcome::Outcome;
use hakobu_sys::errno;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const KEEP: Safety = Safety { allow_overwrite: true, keep: true };
const ENGINES: [EngineKind; 7] = [
    EngineKind::Sync,
    EngineKind::Psync,
    EngineKind::Pvsync2,
    EngineKind::Libaio,
    EngineKind::IoUring,
    EngineKind::Mmap,
    EngineKind::Null,
];

/// A job with a file of so many KiB for each clone.
fn sized(rw: &str, engine: EngineKind, folder: &Path, kib: u64) -> Job {
    let size = Some(Amount::Bytes(kib << 10));
    let depth = if matches!(engine, EngineKind::IoUring | EngineKind::Libaio) { 8 } else { 1 };
    let directories = vec![folder.to_owned()];
    Job { engine, size, directories, depth, depth_low: depth, ..job(rw) }
}

/// Runs jobs and keeps their files.
#[track_caller]
fn go(jobs: &[Job]) -> Vec<Outcome> {
    go_with(jobs, &AtomicBool::new(false), |_| {})
}

#[track_caller]
fn go_with(jobs: &[Job], stop: &AtomicBool, mut watch: impl FnMut(&RunView<'_>)) -> Vec<Outcome> {
    let layout = lay_out(jobs, &KEEP, stop).unwrap();
    run(jobs, &layout, stop, Duration::from_millis(20), &mut watch).unwrap()
}

/// Runs one job of one clone, without an error.
#[track_caller]
fn one(job: &Job) -> Outcome {
    let outcome = go(std::slice::from_ref(job)).remove(0);
    assert_eq!(outcome.error, None, "{:?}", job.engine);
    outcome
}

/// Returns whether this machine does not support the engine; the test is skipped then.
fn is_missing(engine: EngineKind) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let outcome = go(&[sized("read", engine, folder.path(), 4)]).remove(0);
    outcome.error.is_some_and(|(_, why)| why.starts_with("ioengine="))
}

fn engines() -> impl Iterator<Item = EngineKind> {
    ENGINES.into_iter().filter(|engine| !is_missing(*engine))
}

fn ios(outcome: &Outcome) -> [u64; 2] {
    [outcome.sides[0].ios, outcome.sides[1].ios]
}

#[test]
fn every_engine_reads_and_writes_each_block_once() {
    for engine in engines() {
        for rw in ["read", "write", "randread", "randwrite", "rw", "randrw"] {
            let folder = tempfile::tempdir().unwrap();
            let job = sized(rw, engine, folder.path(), 256);
            let outcome = one(&job);
            let [reads, writes] = ios(&outcome);
            assert_eq!(reads + writes, 64, "{engine:?} {rw}");
            assert_eq!((reads > 0, writes > 0), (job.rw.reads, job.rw.writes), "{engine:?} {rw}");
            for side in &outcome.sides {
                assert_eq!((side.bytes, side.short), (4096 * side.ios, 0));
                assert_eq!((side.clat.count(), side.lat.count()), (side.ios, side.ios));
                let waits = !matches!(engine, EngineKind::IoUring | EngineKind::Libaio);
                assert_eq!(side.slat.count(), if waits { 0 } else { side.ios });
            }
            assert_eq!(outcome.depths.level.iter().sum::<u64>(), 64, "{engine:?} {rw}");
            if engine != EngineKind::Null {
                let content = std::fs::read(folder.path().join("job.0.0")).unwrap();
                assert_eq!(content.len(), 256 << 10);
                let blocks: std::collections::HashSet<_> = content.chunks(4096).collect();
                assert_eq!(blocks.len(), 64, "{engine:?} {rw}: all different");
            }
        }
    }
}

#[test]
fn what_was_written_is_verified() {
    for engine in engines().filter(|engine| *engine != EngineKind::Null) {
        for rw in ["write", "randwrite", "randrw"] {
            let folder = tempfile::tempdir().unwrap();
            let verify = Some(VerifyKind::Crc32c);
            let job = Job { verify, loops: 3, ..sized(rw, engine, folder.path(), 128) };
            let outcome = one(&job);
            let [reads, writes] = ios(&outcome);
            assert_eq!(reads + writes, 96, "{engine:?} {rw}");
            assert_eq!((outcome.verified, outcome.verify_errors), (writes, 0), "{engine:?} {rw}");
        }
    }
}

#[test]
fn reading_finds_a_flipped_bit() {
    for engine in engines().filter(|engine| *engine != EngineKind::Null) {
        let folder = tempfile::tempdir().unwrap();
        let verify = Some(VerifyKind::Sha256);
        one(&Job { verify, ..sized("write", engine, folder.path(), 128) });
        let read = Job { verify, ..sized("randread", engine, folder.path(), 128) };
        assert_eq!(one(&read).verified, 32);
        let path = folder.path().join("job.0.0");
        let mut content = std::fs::read(&path).unwrap();
        content[5 * 4096 + 999] ^= 4;
        std::fs::write(&path, content).unwrap();
        let outcome = go(&[read]).remove(0);
        assert_eq!((outcome.verified, outcome.verify_errors), (32, 1), "{engine:?}");
        let (errno, why) = outcome.error.unwrap();
        assert_eq!(errno, hakobu_sys::errno::EILSEQ);
        assert!(why.contains("offset 20480") && why.contains("job.0.0"), "{why}");
    }
}

#[test]
fn nothing_is_written_outside_of_the_part() {
    for engine in engines().filter(|engine| *engine != EngineKind::Null) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, vec![7; 64 << 10]).unwrap();
        let mut job = sized("randwrite", engine, folder.path(), 16);
        job.filenames = vec!["file".into()];
        job.offset = Amount::Bytes(20 << 10);
        job.block_bytes = [1024; 2];
        job.loops = 4;
        assert_eq!(one(&job).sides[1].ios, 64);
        let content = std::fs::read(&path).unwrap();
        let sevens = |part: &[u8]| part.iter().all(|byte| *byte == 7);
        assert!(content.len() == 64 << 10 && sevens(&content[..20 << 10]), "{engine:?}");
        assert!(sevens(&content[36 << 10..]), "{engine:?}");
        assert!(content[20 << 10..36 << 10].chunks(1024).all(|block| !sevens(block)));
    }
}

#[test]
fn sizes_loops_and_files() {
    let folder = tempfile::tempdir().unwrap();
    let job = Job { files: 4, loops: 5, ..sized("read", EngineKind::Psync, folder.path(), 64) };
    assert_eq!(ios(&one(&job)), [80, 0]);
    let job = Job { io_bytes: Some(24 << 10), ..job };
    assert_eq!(ios(&one(&job)), [30, 0]);
    let job = Job { io_bytes: Some(256 << 10), loops: 1, clones: 3, ..job };
    let outcomes = go(&[job]);
    let places: Vec<_> = outcomes.iter().map(|outcome| (outcome.job, outcome.clone)).collect();
    assert_eq!(places, [(0, 0), (0, 1), (0, 2)]);
    assert!(outcomes.iter().all(|outcome| ios(outcome) == [64, 0]));
}

#[test]
fn the_queue_is_as_deep_as_it_was_asked_to_be() {
    for engine in [EngineKind::IoUring, EngineKind::Libaio].into_iter().filter(|e| !is_missing(*e))
    {
        for clocks in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let mut job = sized("randread", engine, folder.path(), 1024);
            (job.depth, job.depth_low) = (16, 16);
            if !clocks {
                (job.clocks.slat, job.clocks.clat, job.clocks.lat) = (false, false, false);
            }
            let depths = one(&job).depths;
            assert_eq!(depths.level.iter().sum::<u64>(), 256);
            // One begins after the other; once there are 16, one goes for each that comes.
            assert!(depths.level[4] >= 230 && depths.level[5..] == [0, 0], "{depths:?}");
            assert_eq!(depths.submit, [0, 256, 0, 0, 0, 0, 0], "{engine:?} {clocks}");
            // In batches: eight go together, and at least four come together.
            (job.batch_submit, job.batch_complete_min, job.batch_complete_max) = (8, 4, 16);
            job.depth_low = 4;
            let depths = one(&job).depths;
            assert_eq!(depths.level.iter().sum::<u64>(), 256);
            // What comes in between leaves a few batches smaller.
            assert!(depths.submit[1] <= 4 && depths.submit[2] >= 24, "{depths:?}");
            // Looking all the time.
            (job.batch_submit, job.batch_complete_min, job.depth_low) = (1, 0, 16);
            assert_eq!(ios(&one(&job)), [256, 0]);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let null =
        Job { depth: 4, depth_low: 4, ..sized("write", EngineKind::Null, folder.path(), 400) };
    let depths = one(&null).depths;
    assert_eq!((depths.level[2], depths.level.iter().sum()), (97, 100));
}

#[test]
fn rings_are_tuned() {
    if is_missing(EngineKind::IoUring) {
        return;
    }
    for rw in ["randread", "randwrite"] {
        let folder = tempfile::tempdir().unwrap();
        let mut job = sized(rw, EngineKind::IoUring, folder.path(), 512);
        (job.fixed_buffers, job.register_files, job.files) = (true, true, 4);
        job.verify = job.rw.writes.then_some(VerifyKind::Crc64);
        let outcome = one(&job);
        assert_eq!(ios(&outcome).iter().sum::<u64>(), 128);
        assert_eq!(outcome.verified, ios(&outcome)[1]);
    }
}

#[test]
fn syncs_are_counted_apart() {
    for engine in engines() {
        let folder = tempfile::tempdir().unwrap();
        let mut job = sized("write", engine, folder.path(), 64);
        job.fsync_every = 4;
        let outcome = one(&job);
        assert_eq!((ios(&outcome), outcome.sync.count()), ([0, 16], 3), "{engine:?}");
        (job.fdatasync_every, job.loops) = (8, 2);
        let outcome = one(&job);
        assert_eq!((ios(&outcome), outcome.sync.count()), ([0, 32], 10), "{engine:?}");
        (job.fsync_every, job.fdatasync_every, job.end_fsync) = (0, 0, true);
        let last = one(&job).sync.count();
        assert_eq!(last, u64::from(engine != EngineKind::Null), "{engine:?}");
    }
}

#[test]
fn past_the_page_cache_means_o_direct() {
    let folder = tempfile::tempdir().unwrap();
    for (direct, engine) in
        [(true, EngineKind::Psync), (true, EngineKind::IoUring), (false, EngineKind::Psync)]
    {
        if is_missing(engine) {
            continue;
        }
        let mut job = sized("randrw", engine, folder.path(), 256);
        (job.direct, job.time_based) = (direct, true);
        // A name that no other test has.
        job.name = format!("opened-{direct}-{engine:?}");
        let name = format!("{}.0.0", job.name);
        job.runtime = Some(Duration::from_millis(150));
        let mut seen = Vec::new();
        let outcomes = go_with(&[job], &AtomicBool::new(false), |_| seen.extend(flags(&name)));
        if outcomes[0].error.as_ref().is_some_and(|(_, why)| why.contains("no O_DIRECT")) {
            return;
        }
        assert_eq!(outcomes[0].error, None);
        assert!(!seen.is_empty());
        // O_DIRECT and O_RDWR of open(2), in octal.
        assert!(seen.iter().all(|flags| flags & 0o3 == 2 && (flags & 0o40000 != 0) == direct));
    }
}

/// The flags of all open files of that name.
fn flags(name: &str) -> Vec<u32> {
    let own = Path::new("/proc").join("self");
    let entries = std::fs::read_dir(own.join("fd")).unwrap().flatten();
    let named = entries
        .filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|path| path.ends_with(name)));
    let flags = named.filter_map(|entry| {
        let text = std::fs::read_to_string(own.join("fdinfo").join(entry.file_name())).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("flags:"))?.to_owned();
        u32::from_str_radix(line.trim(), 8).ok()
    });
    flags.collect()
}

#[test]
fn blocks_of_several_sizes_are_read_written_and_verified() {
    for engine in engines() {
        let folder = tempfile::tempdir().unwrap();
        let sizes = Some(BlockSizes::Split(vec![(4096, 50), (16_384, 30), (1024, 20)]));
        let mut job = sized("write", engine, folder.path(), 512);
        job.block_bytes = [16_384; 2];
        job.sizes = [sizes.clone(), sizes];
        job.verify = (engine != EngineKind::Null).then_some(VerifyKind::Xxhash);
        let outcome = one(&job);
        let side = &outcome.sides[1];
        assert!(side.bytes > (512 - 16) << 10 && side.bytes <= 512 << 10, "{engine:?}");
        assert_ne!(side.bytes, side.ios * 4096, "{engine:?}: not all of one size");
        let verified = if engine == EngineKind::Null { 0 } else { side.ios };
        assert_eq!((outcome.verified, outcome.verify_errors), (verified, 0), "{engine:?}");
    }
}

#[test]
fn every_checksum_finds_a_flipped_bit() {
    use VerifyKind::*;
    for kind in [Crc32, Crc32c, Crc64, Md5, Sha256, Sha512, Xxhash, Meta] {
        let folder = tempfile::tempdir().unwrap();
        let verify = Some(kind);
        one(&Job { verify, ..sized("write", EngineKind::Psync, folder.path(), 64) });
        let path = folder.path().join("job.0.0");
        let mut content = std::fs::read(&path).unwrap();
        // In the content; of a sum of nothing, in the header.
        content[4096 + if kind == Meta { 20 } else { 999 }] ^= 4;
        std::fs::write(&path, content).unwrap();
        let read = Job { verify, ..sized("read", EngineKind::Psync, folder.path(), 64) };
        let outcome = go(&[read]).remove(0);
        assert_eq!((outcome.verified, outcome.verify_errors), (16, 1), "{kind:?}");
    }
}

#[test]
fn so_many_blocks_end_a_job() {
    let folder = tempfile::tempdir().unwrap();
    let job = Job {
        blocks_max: Some(21),
        loops: 9,
        ..sized("read", EngineKind::Psync, folder.path(), 64)
    };
    assert_eq!(ios(&one(&job)), [21, 0]);
}

#[test]
fn what_is_overwritten_was_written_before() {
    for (overwrite, reserve, has_blocks, is_zero) in
        [(false, true, true, true), (false, false, false, true), (true, false, true, false)]
    {
        let folder = tempfile::tempdir().unwrap();
        let job = Job {
            overwrite,
            reserve,
            create_only: true,
            ..sized("write", EngineKind::Psync, folder.path(), 256)
        };
        lay_out(&[job], &KEEP, &AtomicBool::new(false)).unwrap();
        let path = folder.path().join("job.0.0");
        let blocks = std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(&path).unwrap());
        assert_eq!(blocks >= 512, has_blocks, "{overwrite} {reserve}: {blocks}");
        let content = std::fs::read(&path).unwrap();
        assert_eq!((content.len(), content.iter().all(|byte| *byte == 0)), (256 << 10, is_zero));
    }
}

#[test]
fn files_of_a_range_have_sizes_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let job = Job {
        size: None,
        files: 20,
        file_bytes: Some(4096),
        file_bytes_max: Some(1 << 20),
        ..sized("read", EngineKind::Psync, folder.path(), 0)
    };
    one(&job);
    let sizes = || -> Vec<u64> {
        let name = |file: u32| folder.path().join(format!("job.0.{file}"));
        (0..20).map(|file| std::fs::metadata(name(file)).unwrap().len()).collect()
    };
    let first = sizes();
    assert!(first.iter().all(|bytes| (4096..=1 << 20).contains(bytes) && bytes % 4096 == 0));
    assert!(first.iter().collect::<std::collections::HashSet<_>>().len() > 10, "{first:?}");
    // The same again: nothing is laid out anew.
    one(&job);
    assert_eq!(sizes(), first);
}

#[test]
fn a_file_that_ends_too_early_ends_the_job() {
    for engine in engines().filter(|e| !matches!(e, EngineKind::Null | EngineKind::Mmap)) {
        let folder = tempfile::tempdir().unwrap();
        let stop = AtomicBool::new(false);
        let jobs = [sized("read", engine, folder.path(), 64)];
        let layout = lay_out(&jobs, &KEEP, &stop).unwrap();
        let file = std::fs::File::options().write(true).open(&layout.files[0].path).unwrap();
        file.set_len(6 * 4096 + 100).unwrap();
        let outcome = run(&jobs, &layout, &stop, Duration::ZERO, &mut |_| {}).unwrap().remove(0);
        let (errno, why) = outcome.error.clone().unwrap();
        assert_eq!(errno, errno::EIO, "{engine:?}");
        assert!(why.contains("the file ends there") && why.contains("job.0.0"), "{why}");
        assert!(why.contains("at 24576 of") || why.contains("at 28672 of"), "{engine:?} {why}");
        assert!(ios(&outcome)[0] <= 6, "{engine:?}");
        if !matches!(engine, EngineKind::IoUring | EngineKind::Libaio) {
            // The seventh went in part, and then there was nothing.
            assert_eq!((ios(&outcome)[0], outcome.sides[0].short), (6, 1), "{engine:?}");
        }
    }
}

#[test]
fn a_device_that_takes_nothing_ends_the_job() {
    // The device knows no asynchronous I/O.
    let others = [EngineKind::Null, EngineKind::Mmap, EngineKind::Libaio];
    for engine in engines().filter(|engine| !others.contains(engine)) {
        let folder = tempfile::tempdir().unwrap();
        let stop = AtomicBool::new(false);
        let jobs = [sized("write", engine, folder.path(), 64)];
        let mut layout = lay_out(&jobs, &KEEP, &stop).unwrap();
        layout.files[0].path = "/dev/full".into();
        let outcome = run(&jobs, &layout, &stop, Duration::ZERO, &mut |_| {}).unwrap().remove(0);
        let (errno, why) = outcome.error.clone().unwrap();
        assert_eq!(errno, errno::ENOSPC, "{engine:?}: {why}");
        assert!(why.contains("of /dev/full") && why.starts_with("writing 4096 bytes at"), "{why}");
        assert_eq!((ios(&outcome), outcome.depths.level[5..].iter().sum::<u64>()), ([0, 0], 0));
    }
}

#[test]
fn devices_that_fail_are_reported() {
    let Some(device) = Loop::new(8, &[], "", "a device that fails") else { return };
    // The first MiB works, the second does not.
    device.lose(1);
    for engine in engines().filter(|e| !matches!(e, EngineKind::Null | EngineKind::Mmap)) {
        let mut job = sized("read", engine, Path::new("/nowhere"), 2048);
        (job.filenames, job.directories) = (vec![device.device.clone()], Vec::new());
        job.direct = true;
        let outcome = go(&[job]).remove(0);
        let (errno, why) = outcome.error.clone().unwrap();
        assert_eq!(errno, errno::EIO, "{engine:?}");
        assert!(why.contains(&format!("of {}", device.device.display())), "{why}");
        let done: u64 = ios(&outcome).iter().sum();
        assert!((248..=256).contains(&done), "{engine:?}: {done}");
    }
}

#[test]
fn loop_devices_are_written_and_read_past_the_cache() {
    let Some(device) = Loop::new(4, &[], "", "O_DIRECT on a loop device") else { return };
    for engine in engines().filter(|e| !matches!(e, EngineKind::Null | EngineKind::Mmap)) {
        let mut job = sized("randwrite", engine, Path::new("/nowhere"), 4096);
        (job.filenames, job.direct) = (vec![device.device.clone()], true);
        job.directories = Vec::new();
        (job.fixed_buffers, job.register_files) = (true, true);
        job.verify = Some(crate::job::VerifyKind::Crc32);
        let outcome = one(&job);
        assert_eq!((ios(&outcome), outcome.verified), ([0, 1024], 1024), "{engine:?}");
    }
}

#[test]
fn what_cannot_begin_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let jobs = [sized("read", EngineKind::Psync, folder.path(), 64)];
    let layout = lay_out(&jobs, &KEEP, &stop).unwrap();
    std::fs::remove_file(&layout.files[0].path).unwrap();
    let outcome = run(&jobs, &layout, &stop, Duration::ZERO, &mut |_| {}).unwrap().remove(0);
    let (errno, why) = outcome.error.unwrap();
    assert_eq!(errno, errno::ENOENT);
    assert!(why.starts_with("opening ") && why.contains("job.0.0"), "{why}");
    // The others of its group work all the same.
    let mut lost = sized("read", EngineKind::Psync, folder.path(), 64);
    lost.cpus = vec![1023];
    let good = Job { name: "good".into(), ..sized("read", EngineKind::Psync, folder.path(), 64) };
    let outcomes = go(&[lost, good]);
    let (_, why) = outcomes[0].error.as_ref().unwrap();
    assert!(why.contains("CPUs [1023]"), "{why}");
    assert_eq!((ios(&outcomes[0]), ios(&outcomes[1])), ([0, 0], [16, 0]));
    assert_eq!(outcomes[1].error, None);
    let mut job = sized("read", EngineKind::Mmap, folder.path(), 64);
    job.direct = true;
    let (_, why) = go(&[job]).remove(0).error.unwrap();
    assert!(why.contains("mmap") && why.contains("direct"), "{why}");
}

#[test]
fn threads_stay_on_their_cpus() {
    let folder = tempfile::tempdir().unwrap();
    let cpus = hakobu_sys::proc::affinity(0).unwrap();
    let mut job = sized("read", EngineKind::Psync, folder.path(), 64);
    (job.clones, job.time_based) = (2, true);
    (job.cpus, job.cpus_split) = (cpus.clone(), true);
    (job.runtime, job.name) = (Some(Duration::from_millis(150)), "bound".into());
    let mut seen = std::collections::HashSet::new();
    let outcomes = go_with(&[job], &AtomicBool::new(false), |_| {
        for tid in hakobu_sys::proc::own_threads() {
            let own = Path::new("/proc").join(format!("self/task/{tid}/comm"));
            let Ok(name) = std::fs::read_to_string(own) else { continue };
            if let Some(clone) = name.trim().strip_prefix("bound/") {
                seen.insert((clone.to_owned(), hakobu_sys::proc::affinity(tid).unwrap()));
            }
        }
    });
    assert!(outcomes.iter().all(|outcome| outcome.error.is_none()));
    let on = |clone: usize| (clone.to_string(), vec![cpus[clone % cpus.len()]]);
    assert!(seen.contains(&on(0)) && seen.contains(&on(1)), "{seen:?}");
}

fn logged(average_ms: u64, folder: &Path) -> Job {
    let name = Some("log".into());
    let logs = LogPrefixes {
        bandwidth: name.clone(),
        latency: name.clone(),
        iops: name,
        average: Duration::from_millis(average_ms),
    };
    Job { logs, ..sized("randrw", EngineKind::Psync, folder, 64) }
}

#[test]
fn each_block_has_a_line_or_each_window() {
    let folder = tempfile::tempdir().unwrap();
    let job = logged(0, folder.path());
    let outcome = one(&job);
    let log = &outcome.logged;
    // A call that waits has no time of submission.
    assert_eq!((log.slat.len(), log.clat.len(), log.lat.len()), (0, 16, 16));
    let writes = log.clat.iter().filter(|entry| entry.write).count() as u64;
    assert_eq!(writes, ios(&outcome)[1]);
    let mut offsets: Vec<u64> = log.lat.iter().map(|entry| entry.offset).collect();
    offsets.sort_unstable();
    assert_eq!(offsets, Vec::from_iter((0..16).map(|block| 4096 * block)));
    let slowest = log.clat.iter().map(|entry| entry.value).max();
    let most = outcome.sides.iter().map(|side| side.clat.max_ns()).max();
    assert_eq!(slowest, most);
    assert!(log.clat.iter().all(|entry| entry.bytes == 4096));

    let mut job = logged(50, folder.path());
    (job.runtime, job.time_based) = (Some(Duration::from_millis(210)), true);
    job.rate_iops = [Some(1000), None];
    (job.rw.writes, job.rw.random) = (false, false);
    let log = one(&job).logged;
    assert!((4..=6).contains(&log.iops.len()), "{:?}", log.iops);
    assert_eq!(log.iops.len(), log.bandwidth.len());
    for (number, (iops, bandwidth)) in log.iops.iter().zip(&log.bandwidth).take(4).enumerate() {
        // A busy machine moves some of the 50 blocks from one window to the next.
        assert!((600..1500).contains(&iops.value), "{:?}", log.iops);
        assert!(bandwidth.value.abs_diff(4 * iops.value) <= 4);
        assert!(iops.at_ms.abs_diff(50 * (number as u64 + 1)) < 20 && iops.bytes == 0);
    }
    assert!((4..=6).contains(&log.clat.len()) && log.slat.is_empty());
}

#[test]
fn rates_are_sampled_each_half_second() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = sized("randread", EngineKind::Psync, folder.path(), 64);
    (job.runtime, job.time_based) = (Some(Duration::from_millis(1100)), true);
    job.rate_iops = [Some(2000), None];
    let outcome = one(&job);
    let side = &outcome.sides[0];
    assert_eq!(side.iops.samples(), 2);
    assert!((side.iops.mean() / 2000.0 - 1.0).abs() < 0.05, "{:?}", side.iops);
    assert!((side.bandwidth.mean() / side.iops.mean() - 4096.0).abs() < 1.0);
    assert_eq!(outcome.sides[1].iops.samples(), 0);
    job.clocks.bandwidth = false;
    assert_eq!(one(&job).sides[0].iops.samples(), 0);
}

#[test]
fn threads_say_what_they_used() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = sized("randread", EngineKind::Psync, folder.path(), 64);
    (job.runtime, job.time_based) = (Some(Duration::from_millis(300)), true);
    let outcome = one(&job);
    let busy = (outcome.user_ns + outcome.sys_ns) as f64 / outcome.runtime_ns as f64;
    assert!((0.05..=1.05).contains(&busy), "{busy}");
    assert!(outcome.sys_ns > 0);
}

fn by_time(rw: &str, engine: EngineKind, folder: &Path, ms: u64) -> Job {
    let runtime = Some(Duration::from_millis(ms));
    Job { runtime, time_based: true, ..sized(rw, engine, folder, 64) }
}

fn ms(outcome: &Outcome) -> f64 {
    outcome.runtime_ns as f64 / 1e6
}

#[test]
fn time_ends_a_job_and_ramp_time_does_not_count() {
    for engine in engines() {
        for clocks in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let mut job = by_time("randread", engine, folder.path(), 120);
            if !clocks {
                (job.clocks.slat, job.clocks.clat, job.clocks.lat) = (false, false, false);
            }
            let outcome = one(&job);
            assert!((120.0..150.0).contains(&ms(&outcome)), "{engine:?} {}", ms(&outcome));
            let [reads, _] = ios(&outcome);
            assert!(reads > 100);
            assert_eq!(outcome.sides[0].clat.count(), if clocks { reads } else { 0 });
            job.ramp = Duration::from_millis(100);
            let mut all = 0;
            let begun = Instant::now();
            let jobs = [job];
            let outcome = go_with(&jobs, &AtomicBool::new(false), |view| {
                all = view.progress.sides[0].0;
            })
            .remove(0);
            assert!(begun.elapsed() >= Duration::from_millis(220));
            // Whoever waits for a CPU sees the end of the ramp time late; with it, it would be 220.
            assert!((100.0..150.0).contains(&ms(&outcome)), "{engine:?} {}", ms(&outcome));
            let [reads, _] = ios(&outcome);
            let level: u64 = outcome.depths.level.iter().sum();
            assert!(reads > 0 && reads < all + all / 2, "{engine:?}: {reads} of {all}");
            assert!(level.abs_diff(reads) <= 8 && outcome.sides[0].bytes == 4096 * reads);
        }
    }
}

#[test]
fn a_job_may_end_before_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = by_time("read", EngineKind::Psync, folder.path(), 60_000);
    job.time_based = false;
    assert_eq!(ios(&one(&job)), [16, 0]);
    // All of it was ramp time: nothing was measured.
    job.ramp = Duration::from_secs(60);
    let outcome = one(&job);
    assert_eq!((ios(&outcome), outcome.runtime_ns), ([0, 0], 0));
}

#[test]
fn a_steady_job_ends() {
    use crate::steady::{SteadyCriterion, SteadyMetric, SteadyState};
    // A rate that is held is steady: it ends long before its time.
    let criterion =
        SteadyCriterion { of: SteadyMetric::Blocks, slope: false, limit: 30.0, percent: true };
    for (limit, attained) in [(50.0, true), (1e-9, false)] {
        let folder = tempfile::tempdir().unwrap();
        let mut job = by_time("randread", EngineKind::Psync, folder.path(), 60_000);
        job.rate_iops = [Some(200), None];
        let criterion = SteadyCriterion { limit, ..criterion };
        job.steady = Some(SteadyState { criterion, window_s: 2, ramp_s: 1, every_s: 1 });
        if !attained {
            job.runtime = Some(Duration::from_secs(4));
        }
        let outcome = one(&job);
        let found = outcome.steady.clone().unwrap();
        assert_eq!(found.attained, attained, "{found:?}");
        // It takes three seconds at least.
        assert!((2900.0..40_000.0).contains(&ms(&outcome)), "{}", ms(&outcome));
        assert!(found.mean > 20.0 && found.mean < 400.0, "{found:?}");
    }
}

#[test]
fn rates_are_held() {
    for engine in engines() {
        for poisson in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let mut job = by_time("randread", engine, folder.path(), 500);
            (job.rate_iops, job.poisson) = ([Some(4000), None], poisson);
            let outcome = one(&job);
            let rate = ios(&outcome)[0] as f64 * 1000.0 / ms(&outcome);
            // By chance it is some numbers of 2000 ± 45 blocks.
            let apart = if poisson { 0.12 } else { 0.02 };
            assert!((rate / 4000.0 - 1.0).abs() < apart, "{engine:?} {poisson} {rate}");
        }
        let folder = tempfile::tempdir().unwrap();
        let mut job = by_time("randrw", engine, folder.path(), 500);
        job.rate_bytes_per_s = [Some(8 << 20), Some(8 << 20)];
        let outcome = one(&job);
        for side in &outcome.sides {
            let rate = side.bytes as f64 * 1000.0 / ms(&outcome);
            assert!(rate < 1.03 * (8 << 20) as f64, "{engine:?} {rate}");
        }
    }
}

#[test]
fn latency_counts_from_when_a_block_should_have_gone() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = by_time("read", EngineKind::Psync, folder.path(), 300);
    job.rate_iops = [Some(1000), None];
    // Every 50 ms it does nothing for 25: what was due meanwhile is late.
    (job.think, job.think_blocks) = (Duration::from_millis(25), 50);
    let side = &one(&job).sides[0];
    assert_eq!(side.clat.count(), side.lat.count());
    assert!(side.lat.max_ns() > 20_000_000, "{}", side.lat.max_ns());
    assert!(side.lat.percentile(75.0) > 5 * side.clat.percentile(75.0));
    assert!(side.clat.percentile(50.0) < 2_000_000);
}

#[test]
fn pauses_delays_and_walls_take_their_time() {
    let folder = tempfile::tempdir().unwrap();
    for engine in engines() {
        let mut job = sized("read", engine, folder.path(), 64);
        (job.think, job.think_blocks) = (Duration::from_millis(10), 4);
        assert!(ms(&one(&job)) >= 39.9, "{engine:?}");
    }
    let mut first = sized("read", EngineKind::Psync, folder.path(), 64);
    first.start_delay = Duration::from_millis(80);
    let mut second = Job { name: "second".into(), stonewall: true, ..first.clone() };
    let begun = Instant::now();
    let outcomes = go(&[first.clone(), second.clone()]);
    assert!(begun.elapsed() >= Duration::from_millis(160));
    assert!(outcomes.iter().all(|outcome| ios(outcome) == [16, 0] && ms(outcome) < 80.0));
    assert_eq!(groups(&[first.clone(), second.clone(), first.clone()]), [0..1, 1..3]);
    second.stonewall = false;
    assert_eq!(groups(&[first, second]), std::slice::from_ref(&(0..2)));
    assert!(groups(&[]).is_empty());
}

#[test]
fn it_stops_when_it_is_told_to() {
    for engine in engines() {
        let folder = tempfile::tempdir().unwrap();
        let stop = AtomicBool::new(false);
        let mut job = by_time("randrw", engine, folder.path(), 60_000);
        job.clones = 2;
        let mut late = Job { name: "late".into(), stonewall: true, ..job.clone() };
        late.rate_iops = [Some(1), Some(1)];
        let begun = Instant::now();
        let outcomes = go_with(&[job, late], &stop, |view| {
            let progress = view.progress;
            assert_eq!(progress.running + progress.done, 2);
            if progress.sides[0].0 > 0 && progress.elapsed > Duration::from_millis(100) {
                stop.store(true, Ordering::Relaxed);
            }
        });
        assert!(begun.elapsed() < Duration::from_secs(5), "{engine:?}");
        assert_eq!(outcomes.len(), 2, "the second group was not begun");
        assert!(outcomes.iter().all(|outcome| outcome.error.is_none() && ios(outcome)[0] > 0));
    }
    // A job that waits for its turn hears it as well.
    let folder = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let mut slow = by_time("read", EngineKind::Psync, folder.path(), 60_000);
    slow.rate_iops = [Some(1), None];
    let delayed =
        Job { name: "delayed".into(), start_delay: slow.runtime.unwrap(), ..slow.clone() };
    let begun = Instant::now();
    let outcomes = go_with(&[slow, delayed], &stop, |_| stop.store(true, Ordering::Relaxed));
    assert!(begun.elapsed() < Duration::from_secs(5) && outcomes.len() == 2);
}

#[test]
fn many_clones_run_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let job = Job { clones: 128, ..by_time("randread", EngineKind::Psync, folder.path(), 100) };
    let outcomes = go_with(&[job], &AtomicBool::new(false), |view| {
        assert_eq!(view.progress.running + view.progress.done, 128);
    });
    assert_eq!(outcomes.len(), 128);
    assert!(outcomes.iter().all(|outcome| outcome.error.is_none() && ios(outcome)[0] > 0));
}

#[test]
fn whoever_watches_may_see_what_was_measured_so_far() {
    for engine in engines() {
        let folder = tempfile::tempdir().unwrap();
        let first = sized("read", engine, folder.path(), 8);
        let work =
            Job { clones: 2, stonewall: true, ..by_time("randread", engine, folder.path(), 600) };
        let mut seen: Vec<Vec<Outcome>> = Vec::new();
        let last =
            go_with(&[first, work], &AtomicBool::new(false), |view| seen.push(view.outcomes()));
        // The group before, which has ended, and both clones.
        let shape = |outcomes: &[Outcome]| -> Vec<(usize, u32)> {
            outcomes.iter().map(|outcome| (outcome.job, outcome.clone)).collect()
        };
        let whole = seen.iter().filter(|outcomes| outcomes.len() == 3);
        let whole: Vec<&Vec<Outcome>> = whole.collect();
        assert!(whole.len() >= 3, "{engine:?}: {:?}", seen.iter().map(Vec::len));
        for outcomes in &whole {
            assert_eq!(shape(outcomes), shape(&last));
            assert_eq!(ios(&outcomes[0]), ios(&last[0]));
        }
        // It grows, and is whole in itself.
        for (before, after) in whole.iter().zip(&whole[1..]) {
            let sums = [before, after].map(|outcomes| ios(&outcomes[1])[0]);
            assert!(sums[0] <= sums[1] && sums[1] <= ios(&last[1])[0], "{engine:?} {sums:?}");
        }
        let [middle, ..] = &whole[whole.len() / 2..] else { panic!("no middle") };
        let side = &middle[2].sides[0];
        assert_eq!(side.bytes, 4096 * side.ios, "{engine:?}");
        assert_eq!(side.clat.count(), side.ios, "{engine:?}");
        assert!(side.ios > 0 && middle[2].runtime_ns < last[2].runtime_ns, "{engine:?}");
    }
}
