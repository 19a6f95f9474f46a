//! Blocks: how many, of which content, where, and how many at a time.

use super::*;
use crate::VerifyKind;
use crate::job::Sizes;

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
                let waits = !matches!(engine, Engine::IoUring | Engine::Libaio);
                assert_eq!(side.slat.count(), if waits { 0 } else { side.ios });
            }
            assert_eq!(outcome.depths.level.iter().sum::<u64>(), 64, "{engine:?} {rw}");
            if engine != Engine::Null {
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
    for engine in engines().filter(|engine| *engine != Engine::Null) {
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
    for engine in engines().filter(|engine| *engine != Engine::Null) {
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
    for engine in engines().filter(|engine| *engine != Engine::Null) {
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
    let job = Job { files: 4, loops: 5, ..sized("read", Engine::Psync, folder.path(), 64) };
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
    for engine in [Engine::IoUring, Engine::Libaio].into_iter().filter(|e| !is_missing(*e)) {
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
            assert!(depths.submit[1] <= 2 && depths.submit[2] >= 24, "{depths:?}");
            // Looking all the time.
            (job.batch_submit, job.batch_complete_min, job.depth_low) = (1, 0, 16);
            assert_eq!(ios(&one(&job)), [256, 0]);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let null = Job { depth: 4, depth_low: 4, ..sized("write", Engine::Null, folder.path(), 400) };
    let depths = one(&null).depths;
    assert_eq!((depths.level[2], depths.level.iter().sum()), (97, 100));
}

#[test]
fn rings_are_tuned() {
    if is_missing(Engine::IoUring) {
        return;
    }
    for rw in ["randread", "randwrite"] {
        let folder = tempfile::tempdir().unwrap();
        let mut job = sized(rw, Engine::IoUring, folder.path(), 512);
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
        assert_eq!(last, u64::from(engine != Engine::Null), "{engine:?}");
    }
}

#[test]
fn past_the_page_cache_means_o_direct() {
    let folder = tempfile::tempdir().unwrap();
    for (direct, engine) in [(true, Engine::Psync), (true, Engine::IoUring), (false, Engine::Psync)]
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
        let sizes = Some(Sizes::Split(vec![(4096, 50), (16_384, 30), (1024, 20)]));
        let mut job = sized("write", engine, folder.path(), 512);
        job.block_bytes = [16_384; 2];
        job.sizes = [sizes.clone(), sizes];
        job.verify = (engine != Engine::Null).then_some(VerifyKind::Xxhash);
        let outcome = one(&job);
        let side = &outcome.sides[1];
        assert!(side.bytes > (512 - 16) << 10 && side.bytes <= 512 << 10, "{engine:?}");
        assert_ne!(side.bytes, side.ios * 4096, "{engine:?}: not all of one size");
        let verified = if engine == Engine::Null { 0 } else { side.ios };
        assert_eq!((outcome.verified, outcome.verify_errors), (verified, 0), "{engine:?}");
    }
}

#[test]
fn every_checksum_finds_a_flipped_bit() {
    use VerifyKind::*;
    for kind in [Crc32, Crc32c, Crc64, Md5, Sha256, Sha512, Xxhash, Meta] {
        let folder = tempfile::tempdir().unwrap();
        let verify = Some(kind);
        one(&Job { verify, ..sized("write", Engine::Psync, folder.path(), 64) });
        let path = folder.path().join("job.0.0");
        let mut content = std::fs::read(&path).unwrap();
        // In the content; of a sum of nothing, in the header.
        content[4096 + if kind == Meta { 20 } else { 999 }] ^= 4;
        std::fs::write(&path, content).unwrap();
        let read = Job { verify, ..sized("read", Engine::Psync, folder.path(), 64) };
        let outcome = go(&[read]).remove(0);
        assert_eq!((outcome.verified, outcome.verify_errors), (16, 1), "{kind:?}");
    }
}

#[test]
fn so_many_blocks_end_a_job() {
    let folder = tempfile::tempdir().unwrap();
    let job =
        Job { blocks_max: Some(21), loops: 9, ..sized("read", Engine::Psync, folder.path(), 64) };
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
            ..sized("write", Engine::Psync, folder.path(), 256)
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
        ..sized("read", Engine::Psync, folder.path(), 0)
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
