//! Failures: a clear error, and what was measured until then.

use super::*;
use crate::layout::tests::rig::Loop;
use hakobu_sys::errno;

#[test]
fn a_file_that_ends_too_early_ends_the_job() {
    for engine in engines().filter(|e| !matches!(e, Engine::Null | Engine::Mmap)) {
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
        if !matches!(engine, Engine::IoUring | Engine::Libaio) {
            // The seventh went in part, and then there was nothing.
            assert_eq!((ios(&outcome)[0], outcome.sides[0].short), (6, 1), "{engine:?}");
        }
    }
}

#[test]
fn a_device_that_takes_nothing_ends_the_job() {
    // The device knows no asynchronous I/O.
    let others = [Engine::Null, Engine::Mmap, Engine::Libaio];
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
    for engine in engines().filter(|e| !matches!(e, Engine::Null | Engine::Mmap)) {
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
    for engine in engines().filter(|e| !matches!(e, Engine::Null | Engine::Mmap)) {
        let mut job = sized("randwrite", engine, Path::new("/nowhere"), 4096);
        (job.filenames, job.direct) = (vec![device.device.clone()], true);
        job.directories = Vec::new();
        (job.fixed_buffers, job.register_files) = (true, true);
        job.verify = Some(crate::VerifyKind::Crc32);
        let outcome = one(&job);
        assert_eq!((ios(&outcome), outcome.verified), ([0, 1024], 1024), "{engine:?}");
    }
}

#[test]
fn what_cannot_begin_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let jobs = [sized("read", Engine::Psync, folder.path(), 64)];
    let layout = lay_out(&jobs, &KEEP, &stop).unwrap();
    std::fs::remove_file(&layout.files[0].path).unwrap();
    let outcome = run(&jobs, &layout, &stop, Duration::ZERO, &mut |_| {}).unwrap().remove(0);
    let (errno, why) = outcome.error.unwrap();
    assert_eq!(errno, errno::ENOENT);
    assert!(why.starts_with("opening ") && why.contains("job.0.0"), "{why}");
    // The others of its group work all the same.
    let mut lost = sized("read", Engine::Psync, folder.path(), 64);
    lost.cpus = vec![1023];
    let good = Job { name: "good".into(), ..sized("read", Engine::Psync, folder.path(), 64) };
    let outcomes = go(&[lost, good]);
    let (_, why) = outcomes[0].error.as_ref().unwrap();
    assert!(why.contains("CPUs [1023]"), "{why}");
    assert_eq!((ios(&outcomes[0]), ios(&outcomes[1])), ([0, 0], [16, 0]));
    assert_eq!(outcomes[1].error, None);
    let mut job = sized("read", Engine::Mmap, folder.path(), 64);
    job.direct = true;
    let (_, why) = go(&[job]).remove(0).error.unwrap();
    assert!(why.contains("mmap") && why.contains("direct"), "{why}");
}

#[test]
fn threads_stay_on_their_cpus() {
    let folder = tempfile::tempdir().unwrap();
    let cpus = hakobu_sys::proc::affinity(0).unwrap();
    let mut job = sized("read", Engine::Psync, folder.path(), 64);
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
