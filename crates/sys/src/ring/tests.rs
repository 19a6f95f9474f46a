//! io_uring on a real file: transfers, results, rejected operations, and dropping a ring.

use super::*;
use crate::blocks;
use crate::blocks::tests::{block, numbered};
use std::path::PathBuf;
use std::time::Duration;

/// A file of numbered blocks.
pub(crate) fn file(name: &str) -> (PathBuf, OwnedFd) {
    let path = numbered(&format!("ring-{name}"));
    let open = blocks::open(&path, true, false).unwrap();
    (path, open)
}

/// A ring; `None` if this machine does not allow one.
fn ring(files: &[OwnedFd], fixed_buffers: bool, register_files: bool) -> Option<Ring<'_>> {
    let (depth, buffer_bytes, atomic) = (8, 5000, false);
    let settings = Settings { depth, buffer_bytes, fixed_buffers, register_files, atomic };
    match Ring::new(files, settings) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => None,
        other => Some(other.unwrap()),
    }
}

#[test]
fn blocks_go_and_come() {
    for (fixed, registered) in [(false, false), (true, true), (true, false), (false, true)] {
        let (path, open) = file(&format!("blocks-{fixed}-{registered}"));
        let files = [open];
        let Some(mut ring) = ring(&files, fixed, registered) else { return };
        for round in 0..8 {
            for slot in 0..8 {
                assert!(ring.transfer(slot, block(8 * round + slot as u32, false)));
                assert!(!ring.transfer(slot, block(0, false)) && ring.buffer(slot).is_none());
            }
            assert_eq!((ring.in_flight(), ring.submit().unwrap()), (8, 8));
            let mut seen = [false; 8];
            while let Some((slot, result)) = {
                ring.wait(1, None).unwrap();
                ring.take()
            } {
                assert_eq!(result, 4096);
                assert!(!std::mem::replace(&mut seen[slot], true));
                let is = ring.buffer(slot).unwrap();
                assert!(is[..4096].iter().all(|byte| u32::from(*byte) == 8 * round + slot as u32));
            }
            assert_eq!((seen, ring.in_flight()), ([true; 8], 0));
        }
        ring.buffer(3).unwrap().fill(77);
        assert!(ring.transfer(3, Transfer { begin: 904, ..block(5, true) }));
        assert!(ring.sync(4, 0, false) && ring.sync(5, 0, true));
        assert_eq!(ring.wait(3, None).unwrap(), 3);
        let mut done = Vec::from_iter(std::iter::from_fn(|| ring.take()));
        while done.len() < 3 {
            ring.wait(1, None).unwrap();
            done.extend(std::iter::from_fn(|| ring.take()));
        }
        done.sort_unstable();
        assert_eq!(done, [(3, 4096), (4, 0), (5, 0)]);
        let content = std::fs::read(&path).unwrap();
        assert!(content[5 * 4096..6 * 4096].iter().all(|byte| *byte == 77));
        assert!(content[4 * 4096..5 * 4096].iter().all(|byte| *byte == 4));
        assert!(content[6 * 4096..7 * 4096].iter().all(|byte| *byte == 6));
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn what_is_out_of_bounds_is_refused_and_errors_come_back() {
    let (path, _open) = file("bounds");
    let files = [blocks::open(&path, false, false).unwrap()];
    let Some(mut ring) = ring(&files, false, false) else { return };
    assert!(!ring.transfer(8, block(0, false)));
    assert!(!ring.transfer(0, Transfer { begin: 905, ..block(0, false) }));
    assert!(!ring.transfer(0, Transfer { begin: u32::MAX, ..block(0, false) }));
    assert!(!ring.transfer(0, Transfer { file: 1, ..block(0, false) }));
    assert!(!ring.sync(0, 1, false) && ring.buffer(8).is_none());
    assert_eq!((ring.in_flight(), ring.take()), (0, None));
    // Nothing is in flight, so there is nothing to wait for.
    assert_eq!(ring.wait(1, None).unwrap(), 0);
    assert!(ring.transfer(0, block(1, true)) && ring.transfer(1, block(64, false)));
    let short = Transfer { offset: 63 * 4096 + 96, ..block(0, false) };
    assert!(ring.transfer(2, short));
    ring.wait(3, None).unwrap();
    let mut done = Vec::from_iter(std::iter::from_fn(|| ring.take()));
    done.sort_unstable();
    assert_eq!(done, [(0, -i64::from(libc::EBADF)), (1, 0), (2, 4000)]);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn waiting_ends_in_time() {
    // The pipe stays empty: reading it is in flight until the writer is closed.
    let (reader, writer) = std::io::pipe().unwrap();
    let files = [OwnedFd::from(reader)];
    let Some(mut ring) = ring(&files, false, false) else { return };
    assert!(ring.transfer(0, Transfer { offset: u64::MAX, ..block(0, false) }));
    let since = std::time::Instant::now();
    ring.wait(1, Some(Duration::from_millis(30))).unwrap();
    assert!(since.elapsed() >= Duration::from_millis(29) && ring.take().is_none());
    drop(writer);
    ring.wait(1, None).unwrap();
    assert_eq!(ring.take(), Some((0, 0)));
}

#[test]
fn a_ring_that_goes_waits_for_what_is_in_flight() {
    let (path, open) = file("dropped");
    let files = [open];
    let Some(mut ring) = ring(&files, false, false) else { return };
    for slot in 0..4 {
        assert!(ring.transfer(slot, block(slot as u32, false)));
    }
    ring.submit().unwrap();
    // Never submitted.
    for slot in 4..8 {
        ring.buffer(slot).unwrap().fill(99);
        assert!(ring.transfer(slot, block(slot as u32, true)));
    }
    drop(ring);
    assert!(!std::fs::read(&path).unwrap().contains(&99));
    std::fs::remove_file(path).unwrap();
}

#[test]
fn what_is_in_flight_is_out_of_reach() {
    let mut slots = Slots::new(3, 5000).unwrap();
    for slot in 0..3 {
        slots.buffer(slot).unwrap().fill(slot as u8 + 1);
    }
    assert!(slots.buffer(3).is_none());
    assert!(slots.send(1, 4000, 1001).is_none() && slots.send(1, usize::MAX, 2).is_none());
    assert!(slots.send(3, 0, 1).is_none());
    assert!(slots.send(1, 4000, 1000).is_some());
    assert!(slots.send(1, 0, 1).is_none() && slots.buffer(1).is_none());
    assert_eq!(slots.flying(), 1);
    assert_eq!(slots.buffer(0).unwrap(), [1; 5000]);
    assert!(slots.complete(1) && !slots.complete(1) && !slots.complete(9));
    assert_eq!(slots.buffer(1).unwrap(), [2; 5000]);
    let vectors = slots.vectors();
    assert_eq!(vectors.len(), 3);
    assert!(vectors.iter().all(|vector| {
        vector.iov_len == 5000 && (vector.iov_base as usize).is_multiple_of(4096)
    }));
    assert!(Slots::new(usize::MAX, 5000).is_err());
}
