//! The segments of one file: assigns byte ranges to readers and orders the writes.
//!
//! Several workers read at once, each its own segment. Writes are in order: a worker that has read its segment waits
//! until all earlier ones are written. So the target grows from beginning to end as with one worker, and always holds
//! a prefix of the source: the guarantees for killed runs and `--partial` do not depend on the number of workers, and
//! file systems that only take writes in order (many in front of object stores) work. It costs little, as a buffered
//! write holds the lock of its inode on nearly all file systems.

use crate::failure::Stop;
use hakobu_sys::OwnedFd;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;

/// Number of condition variables for turns: the end of a segment wakes one of them.
const TURNS: usize = 16;

/// Source and target descriptors of a file, shared by its workers.
pub(super) struct Fds {
    pub from: OwnedFd,
    pub to: OwnedFd,
}

/// A range of a file that one worker moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Number of segments before it.
    pub number: u64,
    pub offset: u64,
    pub len: u64,
}

/// State of a file's segments; see the module.
pub(super) struct Segments {
    size: u64,
    order: Mutex<Order>,
    turns: [Condvar; TURNS],
    left: Condvar,
}

#[derive(Default)]
struct Order {
    /// Start of the next segment, and end of its data range.
    next: u64,
    data_end: u64,
    /// Number of segments taken.
    taken: u64,
    /// Number of finished segments; they are the first ones.
    done: u64,
    /// The segment whose turn it is is being written.
    is_writing: bool,
    /// No further segment may be taken or written.
    is_over: bool,
    /// Reason, if that is not the end of the file.
    stop: Option<Stop>,
    /// Number of workers besides the owner.
    others: usize,
    /// Descriptors that they use; `None` before helpers are allowed, and after the end.
    fds: Option<Arc<Fds>>,
}

impl Segments {
    /// Returns the segments of a file of `size` bytes.
    pub(super) fn new(size: u64) -> Segments {
        Segments { size, order: Mutex::default(), turns: Default::default(), left: Condvar::new() }
    }

    /// Takes the next segment, of at most `len_max` bytes; `None` if none is left. `find` returns the range of the
    /// next data at or after an offset, `None` if only a hole is left.
    pub(super) fn take(
        &self,
        len_max: u64,
        find: impl FnOnce(u64) -> Result<Option<(u64, u64)>, Stop>,
    ) -> Option<Segment> {
        let mut order = self.order.lock();
        if order.is_over || order.next >= self.size {
            return None;
        }
        if order.next >= order.data_end {
            match find(order.next) {
                Ok(Some((start, end))) => {
                    order.next = start.max(order.next);
                    order.data_end = end.min(self.size);
                }
                Ok(None) => order.next = self.size,
                Err(stop) => {
                    drop(order);
                    self.stop(stop);
                    return None;
                }
            }
        }
        let len = order.data_end.saturating_sub(order.next).min(len_max.max(1));
        if len == 0 {
            return None;
        }
        let segment = Segment { number: order.taken, offset: order.next, len };
        order.next += len;
        order.taken += 1;
        Some(segment)
    }

    /// Returns whether segments are left to take.
    pub(super) fn has_more(&self) -> bool {
        let order = self.order.lock();
        !order.is_over && order.next < self.size
    }

    /// Waits until all earlier segments are done; returns `false` if this one must not be written any more. `waits` is
    /// called before a wait, with whether another segment is being written.
    pub(super) fn turn(&self, segment: Segment, waits: impl FnOnce(bool)) -> bool {
        let mut order = self.order.lock();
        if order.done < segment.number && !order.is_over {
            waits(order.is_writing);
        }
        while order.done < segment.number && !order.is_over {
            self.turns[segment.number as usize % TURNS].wait(&mut order);
        }
        order.is_writing = true;
        !order.is_over
    }

    /// Records that the current segment is done.
    pub(super) fn done(&self) {
        let mut order = self.order.lock();
        order.done += 1;
        order.is_writing = false;
        self.turns[order.done as usize % TURNS].notify_all();
    }

    /// Ends everything early; the first reason counts.
    pub(super) fn stop(&self, stop: Stop) {
        let mut order = self.order.lock();
        order.is_over = true;
        order.stop.get_or_insert(stop);
        for turn in &self.turns {
            turn.notify_all();
        }
    }

    /// Allows helpers; `make` makes the descriptors they use.
    pub(super) fn open(&self, make: impl FnOnce() -> Option<Fds>) -> bool {
        let mut order = self.order.lock();
        if order.fds.is_none() {
            order.fds = make().map(Arc::new);
        }
        order.fds.is_some()
    }

    /// Registers a helper. Returns `None` if nothing is left for it.
    pub(super) fn enter(&self) -> Option<Arc<Fds>> {
        let mut order = self.order.lock();
        let fds = order.fds.clone()?;
        order.others += 1;
        Some(fds)
    }

    /// Unregisters a helper.
    pub(super) fn leave(&self, fds: Arc<Fds>) {
        let mut order = self.order.lock();
        drop(fds);
        order.others -= 1;
        if order.others == 0 {
            self.left.notify_all();
        }
    }

    /// Called by the owner when no segment is left: waits until the helpers are gone, admits no more, and returns
    /// their descriptors and the reason of an early end.
    pub(super) fn close(&self) -> (Option<Fds>, Option<Stop>) {
        let mut order = self.order.lock();
        while order.others > 0 {
            self.left.wait(&mut order);
        }
        order.is_over = true;
        (order.fds.take().and_then(Arc::into_inner), order.stop.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns ranges of data and the size of a file, from alternating lengths of data and holes.
    fn stretches(lengths: &[(u64, u64)]) -> (Vec<(u64, u64)>, u64) {
        let mut at = 0;
        let mut found = Vec::new();
        for (data, hole) in lengths {
            found.push((at, at + data));
            at += data + hole;
        }
        (found, at)
    }

    proptest! {
        /// Every byte of data is assigned once, no hole is, and writes are in order, for any assignment and any
        /// durations.
        #[test]
        fn segments_cover_the_data_once_and_in_order(
            lengths in proptest::collection::vec((1u64..40, 0u64..9), 0..8),
            len_max in 1u64..17,
            workers in 1usize..5,
        ) {
            let (data, size) = stretches(&lengths);
            let segments = Segments::new(size);
            let find = |offset: u64| Ok(data
                .iter()
                .find(|(_, end)| offset < *end)
                .map(|(start, end)| (offset.max(*start), *end)));
            let written = Mutex::new(Vec::new());
            std::thread::scope(|scope| {
                for _ in 0..workers {
                    scope.spawn(|| {
                        while let Some(segment) = segments.take(len_max, find) {
                            assert!((1..=len_max).contains(&segment.len));
                            assert!(segments.turn(segment, |_| ()));
                            written.lock().push((segment.offset, segment.offset + segment.len));
                            segments.done();
                        }
                    });
                }
            });
            let mut joined: Vec<(u64, u64)> = Vec::new();
            for (start, end) in written.into_inner() {
                match joined.last_mut() {
                    Some(last) if last.1 == start && !data.iter().any(|(begin, _)| *begin == start) => {
                        last.1 = end;
                    }
                    _ => joined.push((start, end)),
                }
            }
            prop_assert_eq!(joined, data);
            prop_assert!(!segments.has_more());
            let (fds, stop) = segments.close();
            prop_assert!(fds.is_none() && stop.is_none());
        }
    }

    #[test]
    fn a_stop_ends_all_waiting_and_the_first_reason_counts() {
        let segments = Segments::new(100);
        let find = |offset| Ok(Some((offset, 100)));
        let first = segments.take(10, find).unwrap();
        let second = segments.take(10, find).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| segments.turn(second, |_| ()));
            segments.stop(Stop::Changed);
            segments.stop(Stop::Asked);
            assert!(!waiting.join().unwrap());
        });
        assert!(!segments.turn(first, |_| ()));
        assert_eq!(segments.take(10, find), None);
        assert!(matches!(segments.close(), (None, Some(Stop::Changed))));
    }

    #[test]
    fn data_that_cannot_be_found_is_a_reason() {
        let segments = Segments::new(100);
        assert_eq!(segments.take(10, |_| Err(Stop::Changed)), None);
        assert!(matches!(segments.close(), (None, Some(Stop::Changed))));
    }

    #[test]
    fn others_come_and_go_and_none_comes_after_the_end() {
        let file = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        let segments = Segments::new(10);
        assert!(segments.enter().is_none());
        assert!(!segments.open(|| None));
        assert!(segments.open(|| Some(Fds { from: file(), to: file() })));
        let fds = segments.enter().unwrap();
        std::thread::scope(|scope| {
            let closed = scope.spawn(|| segments.close());
            segments.leave(fds);
            assert!(closed.join().unwrap().0.is_some(), "the owner gets them back");
        });
        assert!(segments.enter().is_none());
    }
}
