//! A list of independent items, on a few threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, scope};

/// Calls `work` once for each item, with its index, on up to `threads_max` threads, of which this one is the first.
/// Items are begun in their order; a panic continues here once all threads have ended.
///
/// If the system starts no more threads, the existing ones do all the work.
pub fn for_each<T: Sync>(items: &[T], threads_max: usize, work: impl Fn(usize, &T) + Sync) {
    let next = AtomicUsize::new(0);
    let take = || {
        let index = next.fetch_add(1, Ordering::Relaxed);
        Some((index, items.get(index)?))
    };
    let serve = || {
        while let Some((index, item)) = take() {
            work(index, item);
        }
    };
    scope(|scope| {
        for _ in 1..threads_max.min(items.len()) {
            if Builder::new().spawn_scoped(scope, serve).is_err() {
                break;
            }
        }
        serve();
    });
}

#[cfg(test)]
mod tests {
    use super::for_each;
    use parking_lot::Mutex;
    use std::sync::Barrier;

    #[test]
    fn each_item_is_worked_on_once_whatever_the_number_of_threads() {
        for (count, threads_max) in [(0, 4), (1, 0), (5, 1), (100, 7)] {
            let items: Vec<usize> = (100..100 + count).collect();
            let seen = Mutex::new(vec![0; count]);
            for_each(&items, threads_max, |index, item| {
                assert_eq!(*item, 100 + index);
                seen.lock()[index] += 1;
            });
            assert_eq!(seen.into_inner(), vec![1; count]);
        }
    }

    #[test]
    fn items_are_worked_on_side_by_side() {
        let all = Barrier::new(3);
        for_each(&[(); 3], 3, |_, ()| {
            all.wait();
        });
    }
}
