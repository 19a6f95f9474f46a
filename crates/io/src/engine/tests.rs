//! One suite for all engines: random operations on two files, against a copy of them in memory.

use super::*;
use crate::pattern::Extent;
use hakobu_sys::aio;
use hakobu_sys::ring::{Ring, Settings};
use std::path::PathBuf;

const BYTES: usize = 64 << 10;
const BUFFER: usize = 8192;
const DEPTH: usize = 6;

/// Two files of the same content as their models.
struct Files {
    _folder: tempfile::TempDir,
    paths: [PathBuf; 2],
    open: Vec<OwnedFd>,
    models: [Vec<u8>; 2],
}

fn files() -> Files {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a", "b"].map(|name| folder.path().join(name));
    let models = [3, 5].map(|seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        Vec::from_iter(std::iter::repeat_with(|| random.u8(..)).take(BYTES))
    });
    for (path, model) in paths.iter().zip(&models) {
        std::fs::write(path, model).unwrap();
    }
    let open = paths.iter().map(|path| blocks::open(path, true, false).unwrap()).collect();
    Files { _folder: folder, paths, open, models }
}

/// Operations in batches of as many as there are slots, which do not touch each other's bytes.
fn conforms<E: Engine>(mut engine: E, paths: &[PathBuf; 2], models: &mut [Vec<u8>; 2]) {
    let mut random = fastrand::Rng::with_seed(11);
    let depth = if E::WAITS { 1 } else { DEPTH };
    for _ in 0..300 {
        let count = random.usize(1..=depth);
        let mut expected = vec![None; depth];
        let mut landed: Vec<Completion> = Vec::new();
        for (slot, expected) in expected.iter_mut().enumerate().take(count) {
            // Each slot has its own part of the file.
            let part = BYTES / DEPTH;
            let bytes = random.usize(1..=BUFFER.min(part));
            let offset = slot * part + random.usize(0..=part - bytes);
            let begin = random.usize(0..=BUFFER - bytes);
            let (file, write) = (random.usize(..2), random.bool());
            let range = offset..offset + bytes;
            let buffer = engine.buffer(slot);
            assert_eq!(buffer.len(), BUFFER);
            if write {
                random.fill(buffer);
                models[file][range.clone()].copy_from_slice(&buffer[begin..begin + bytes]);
            }
            let is = models[file][range].to_vec();
            *expected = Some((begin, is));
            let block = Transfer {
                file: file as u32,
                write,
                begin: begin as u32,
                bytes: bytes as u32,
                offset: offset as u64,
                priority: 0,
            };
            match engine.transfer(slot, block) {
                Submission::Done(result) => landed.push((slot, result)),
                Submission::Queued => assert!(!E::WAITS),
            }
        }
        let mut begun = 0;
        if random.bool() {
            begun += engine.commit().unwrap();
        }
        while landed.len() < count {
            let most = random.u32(1..=depth as u32);
            let before = landed.len();
            begun += engine.reap(1, most, None, &mut landed).unwrap();
            assert!((1..=most as usize).contains(&(landed.len() - before)));
        }
        assert_eq!(begun as usize, if E::WAITS { 0 } else { count });
        for (slot, result) in landed {
            let (begin, is) = expected[slot].take().unwrap();
            assert_eq!(result, is.len() as i64);
            assert_eq!(engine.buffer(slot)[begin..begin + is.len()], is);
        }
    }
    // Nothing more comes.
    let mut landed = Vec::new();
    engine.reap(0, 8, Some(Duration::ZERO), &mut landed).unwrap();
    assert!(landed.is_empty());
    for file in 0..2 {
        for data in [false, true] {
            if engine.sync(0, file, data) == Submission::Queued {
                engine.reap(1, 1, None, &mut landed).unwrap();
                assert_eq!(landed.pop(), Some((0, 0)));
            }
        }
    }
    for (path, model) in paths.iter().zip(models) {
        assert!(std::fs::read(path).unwrap() == *model, "{}", path.display());
    }
    // Invalid requests do no harm.
    let offset = 0;
    let block = Transfer { file: 0, write: true, begin: 0, bytes: 4096, offset, priority: 0 };
    let refused = Submission::Done(-i64::from(errno::EINVAL));
    let mut said = |engine: &mut E, queued| match queued {
        // Its thread says it.
        Submission::Queued => {
            engine.reap(1, 1, None, &mut landed).unwrap();
            Submission::Done(landed.pop().unwrap().1)
        }
        done => done,
    };
    for wrong in [
        Transfer { file: 2, ..block },
        Transfer { begin: BUFFER as u32 - 4095, ..block },
        Transfer { begin: u32::MAX, ..block },
    ] {
        let queued = engine.transfer(0, wrong);
        assert_eq!(said(&mut engine, queued), refused);
    }
    let queued = engine.sync(0, 2, false);
    assert_eq!(said(&mut engine, queued), refused);
}

#[test]
fn calls_conform() {
    for which in 0..3 {
        let Files { _folder, paths, open, mut models } = files();
        match which {
            0 => {
                conforms(CallEngine::<Positioned>::new(&open, BUFFER).unwrap(), &paths, &mut models)
            }
            1 => conforms(CallEngine::<Vectored>::new(&open, BUFFER).unwrap(), &paths, &mut models),
            _ => conforms(CallEngine::<Seeking>::new(&open, BUFFER).unwrap(), &paths, &mut models),
        }
    }
}

#[test]
fn mappings_conform() {
    let Files { _folder, paths, open, mut models } = files();
    // Not from the beginning of a page: what is before it is mapped as well.
    let extents =
        [0, 5].map(|begin_bytes| Extent { begin_bytes, bytes: BYTES as u64 - begin_bytes });
    let engine = Mmap::new(&open, &extents, true, BUFFER).unwrap();
    conforms(engine, &paths, &mut models);
    assert!(Mmap::new(&open, &extents, false, BUFFER).is_ok());
}

#[test]
fn rings_conform() {
    for (fixed_buffers, register_files) in [(false, false), (true, true)] {
        let Files { _folder, paths, open, mut models } = files();
        let (depth, buffer_bytes) = (DEPTH as u32, BUFFER);
        let settings =
            Settings { depth, buffer_bytes, fixed_buffers, register_files, atomic: false };
        match Ring::new(&open, settings) {
            Ok(ring) => conforms(ring, &paths, &mut models),
            Err(error) => {
                assert!(errno::is(&error, errno::ENOSYS) || errno::is(&error, errno::EPERM));
            }
        }
    }
}

#[test]
fn contexts_conform() {
    let Files { _folder, paths, open, mut models } = files();
    match aio::Context::new(&open, DEPTH as u32, BUFFER) {
        Ok(context) => conforms(context, &paths, &mut models),
        Err(error) => assert!(errno::is(&error, errno::ENOSYS)),
    }
}

#[test]
fn engines_of_threads_conform() {
    let Files { _folder, paths, open, mut models } = files();
    let engine = |_| CallEngine::<Positioned>::new(&open, BUFFER).unwrap();
    let engines: Vec<_> = (0..DEPTH).map(engine).collect();
    with_threads(engines, |engine| conforms(engine, &paths, &mut models)).unwrap();
    let Files { _folder, paths, open, mut models } = files();
    let contexts = (0..DEPTH).map(|_| aio::Context::new(&open, 1, BUFFER));
    match contexts.collect::<Result<Vec<_>>>() {
        Ok(engines) => {
            with_threads(engines, |engine| conforms(engine, &paths, &mut models)).unwrap();
        }
        Err(error) => assert!(errno::is(&error, errno::ENOSYS)),
    }
}

#[test]
fn memory_of_its_own_keeps_what_was_written() {
    let extents = [Extent { begin_bytes: 4096, bytes: 8192 }];
    let mut engine = PageFault::new(&extents, 512).unwrap();
    let offset = 8192;
    let block = Transfer { file: 0, write: true, begin: 0, bytes: 512, offset, priority: 0 };
    engine.buffer(0).fill(7);
    assert_eq!(engine.transfer(0, block), Submission::Done(512));
    engine.buffer(0).fill(0);
    assert_eq!(engine.transfer(0, Transfer { write: false, ..block }), Submission::Done(512));
    assert_eq!(engine.buffer(0), [7; 512]);
    for offset in [0, 4096 + 8192 - 511, u64::MAX] {
        assert_eq!(engine.transfer(0, Transfer { offset, ..block }), REFUSED);
    }
    assert_eq!(engine.transfer(0, Transfer { file: 1, ..block }), REFUSED);
}

#[test]
fn names_are_made_seen_and_removed() {
    use crate::job::{NameUse, StatCall};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let offset = 0;
    let block = Transfer { file: 0, write: false, begin: 0, bytes: 4096, offset, priority: 0 };
    let act = |named, stat| {
        let mut engine = NameEngine::new(named, stat, &[&path]).unwrap();
        let said = engine.transfer(0, block);
        engine.settle();
        assert_eq!(engine.transfer(0, Transfer { file: 1, ..block }), REFUSED);
        said
    };
    let failed = |errno: i32| Submission::Done(-i64::from(errno));
    for folder in [false, true] {
        assert_eq!(act(NameUse::Made { folder }, StatCall::Stat), Submission::Done(4096));
        assert_eq!(act(NameUse::Made { folder }, StatCall::Stat), failed(errno::EEXIST));
        assert_eq!(path.is_dir(), folder);
        for stat in [StatCall::Stat, StatCall::Lstat, StatCall::Statx] {
            assert_eq!(act(NameUse::Seen { folder }, stat), Submission::Done(4096));
        }
        assert_eq!(act(NameUse::Removed { folder }, StatCall::Stat), Submission::Done(4096));
        assert_eq!(act(NameUse::Seen { folder }, StatCall::Statx), failed(errno::ENOENT));
    }
    // A link is looked at, not through.
    std::os::unix::fs::symlink("nowhere", &path).unwrap();
    let seen = NameUse::Seen { folder: false };
    assert_eq!(act(seen, StatCall::Lstat), Submission::Done(4096));
    assert_eq!(act(seen, StatCall::Stat), failed(errno::ENOENT));
}

#[test]
fn ranges_are_taken_cut_and_given_back() {
    let Files { _folder, paths, open, .. } = files();
    let offset = BYTES as u64;
    let block = Transfer { file: 0, write: true, begin: 0, bytes: 4096, offset, priority: 0 };
    let length = || std::fs::metadata(&paths[0]).unwrap().len();
    let mut taking = CallEngine::<Taking>::new(&open, BUFFER).unwrap();
    match taking.transfer(0, Transfer { write: false, ..block }) {
        Submission::Done(4096) => assert_eq!(length(), BYTES as u64),
        // The file system of this folder cannot.
        said => return assert_eq!(said, Submission::Done(-i64::from(errno::EOPNOTSUPP))),
    }
    assert_eq!(taking.transfer(0, block), Submission::Done(4096));
    assert_eq!(length(), BYTES as u64 + 4096);
    let mut trimming = CallEngine::<Trimming>::new(&open, BUFFER).unwrap();
    assert_eq!(trimming.transfer(0, Transfer { offset: 4096, ..block }), Submission::Done(4096));
    let content = std::fs::read(&paths[0]).unwrap();
    assert!(content[4096..8192].iter().all(|byte| *byte == 0));
    assert!(content[8192..12288].iter().any(|byte| *byte != 0));
    let mut cutting = CallEngine::<Cutting>::new(&open, BUFFER).unwrap();
    assert_eq!(cutting.transfer(0, Transfer { offset: 8192, ..block }), Submission::Done(4096));
    assert_eq!(length(), 8192);
}

#[test]
fn null_moves_nothing_and_says_it_did() {
    let offset = 1 << 60;
    let block = Transfer { file: 9, write: true, begin: 0, bytes: 512, offset, priority: 0 };
    let mut null = Null::new(512).unwrap();
    assert_eq!(null.transfer(0, block), Submission::Done(512));
    assert_eq!((null.buffer(0).len(), null.sync(0, 0, true)), (512, Submission::Done(0)));
    let mut queue = NullQueue::new(4, 512).unwrap();
    for slot in 0..4 {
        assert_eq!(queue.transfer(slot, block), Submission::Queued);
        queue.buffer(slot).fill(slot as u8);
    }
    let mut landed = Vec::new();
    assert_eq!(queue.reap(1, 3, None, &mut landed).unwrap(), 4);
    assert_eq!(landed, [(0, 512), (1, 512), (2, 512)]);
    assert_eq!(queue.commit().unwrap(), 0);
    queue.reap(1, 3, None, &mut landed).unwrap();
    assert_eq!(landed.pop(), Some((3, 512)));
    assert_eq!(queue.buffer(2), [2; 512]);
    assert_eq!(queue.transfer(0, Transfer { bytes: 513, ..block }), REFUSED);
}
