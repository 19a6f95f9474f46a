//! Asynchronous I/O on a real file: transfers, results, rejected operations.

use super::*;
use crate::blocks;
use crate::blocks::tests::{block, numbered};
use std::path::PathBuf;

/// A file of numbered blocks.
fn file(name: &str, write: bool) -> (PathBuf, [OwnedFd; 1]) {
    let path = numbered(&format!("aio-{name}"));
    let open = blocks::open(&path, write, false).unwrap();
    (path, [open])
}

/// A context; `None` without kernel support.
fn context(files: &[OwnedFd]) -> Option<Context<'_>> {
    match Context::new(files, 8, 5000) {
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => None,
        other => Some(other.unwrap()),
    }
}

#[test]
fn blocks_go_and_come() {
    let (path, files) = file("blocks", true);
    let Some(mut context) = context(&files) else { return };
    for round in 0..8u32 {
        for slot in 0..8 {
            assert!(context.transfer(slot, block(8 * round + slot as u32, false)));
            assert!(!context.transfer(slot, block(0, false)) && context.buffer(slot).is_none());
        }
        assert_eq!((context.in_flight(), context.submit().unwrap()), (8, 8));
        // At most three, then the rest.
        context.wait(1, 3, None).unwrap();
        let mut done = Vec::from_iter(std::iter::from_fn(|| context.take()));
        assert!((1..=3).contains(&done.len()));
        while done.len() < 8 {
            context.wait(1, 8, None).unwrap();
            done.extend(std::iter::from_fn(|| context.take()));
        }
        done.sort_unstable();
        for (slot, result) in done {
            assert_eq!(result, 4096);
            let is = context.buffer(slot).unwrap();
            assert!(is[..4096].iter().all(|byte| u32::from(*byte) == 8 * round + slot as u32));
        }
    }
    context.buffer(3).unwrap().fill(77);
    assert!(context.transfer(3, Transfer { begin: 904, ..block(5, true) }));
    context.wait(1, 1, None).unwrap();
    assert_eq!(context.take(), Some((3, 4096)));
    assert_eq!((context.sync(0, false), context.sync(0, true)), (0, 0));
    assert_eq!(context.sync(1, true), -i64::from(libc::EINVAL));
    let content = std::fs::read(&path).unwrap();
    assert!(content[5 * 4096..6 * 4096].iter().all(|byte| *byte == 77));
    assert!(content[6 * 4096..7 * 4096].iter().all(|byte| *byte == 6));
    std::fs::remove_file(path).unwrap();
}

#[test]
fn what_is_out_of_bounds_is_refused_and_errors_come_back() {
    let (path, files) = file("bounds", false);
    let Some(mut context) = context(&files) else { return };
    assert!(!context.transfer(8, block(0, false)));
    assert!(!context.transfer(0, Transfer { begin: 905, ..block(0, false) }));
    assert!(!context.transfer(0, Transfer { file: 1, ..block(0, false) }));
    // Nothing is in flight, so there is nothing to wait for.
    assert_eq!((context.wait(1, 1, None).unwrap(), context.take()), (0, None));
    // The first one is rejected, the others are submitted.
    assert!(context.transfer(0, block(1, true)) && context.transfer(1, block(64, false)));
    assert!(context.transfer(2, Transfer { offset: 63 * 4096 + 96, ..block(0, false) }));
    assert_eq!(context.submit().unwrap(), 3);
    let mut done = Vec::from_iter(std::iter::from_fn(|| context.take()));
    while done.len() < 3 {
        context.wait(1, 8, Some(Duration::from_secs(1))).unwrap();
        done.extend(std::iter::from_fn(|| context.take()));
    }
    done.sort_unstable();
    assert_eq!(done, [(0, -i64::from(libc::EBADF)), (1, 0), (2, 4000)]);
    // Never submitted.
    assert!(context.transfer(0, block(1, false)));
    drop(context);
    std::fs::remove_file(path).unwrap();
}
