//! Parts of one large object, and permits to work on them: any core takes the next part. The number of permits follows
//! the tuner at any time. The worker that releases the last one ends the object, so that nothing of it is in flight
//! then.

use super::core::{Core, Engine, Parts};
use super::failed::Failed;
use futures_util::future::LocalBoxFuture;
use parking_lot::Mutex;
use std::sync::Arc;

/// A large object in progress.
pub(super) trait Large: Send + Sync {
    /// Returns its permits.
    fn permits(&self) -> &Permits;

    /// Returns how many of its parts may be in flight now.
    fn streams_max(&self, engine: &Engine<'_>) -> usize;

    /// Moves one part.
    ///
    /// # Errors
    /// No further part is begun.
    async fn move_part(&self, core: &Core<'_>, number: u32) -> Result<(), Failed>;

    /// Completes the object or gives it up, and ends it (`Core::finish` and `Queue::finished`, once).
    async fn end(self: Arc<Self>, core: &Core<'_>);
}

impl<T: Large + 'static> Parts for T {
    fn part<'a>(self: Arc<Self>, core: &'a Core<'a>) -> LocalBoxFuture<'a, ()> {
        Box::pin(async move {
            let permits = self.permits();
            if core.engine.is_stopped() {
                permits.fail(Failed::Stopped);
            }
            if let Some(number) = permits.next()
                && let Err(failed) = self.move_part(core, number).await
            {
                permits.fail(failed);
            }
            match permits.turn(self.streams_max(core.engine)) {
                Turn::Again => core.engine.queue.again(self),
                Turn::Leave => {}
                Turn::End => self.end(core).await,
            }
        })
    }

    fn widen(&self, engine: &Engine<'_>) -> usize {
        self.permits().more(self.streams_max(engine))
    }
}

/// Permits to work on one large object, and its parts that were not begun.
pub(super) struct Permits(Mutex<State>);

struct State {
    /// Numbers of parts not begun yet, the next one last.
    waiting: Vec<u32>,
    /// Number of permits that were not released.
    permits: usize,
    /// The first failure: no further part is begun.
    failed: Option<Failed>,
}

/// Next step of a permit's holder after a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Return the permit to the queue, for the next part.
    Again,
    /// Release it: nothing more is to be begun, or there are too many permits.
    Leave,
    /// It was the last one: end the object.
    End,
}

impl Permits {
    /// Returns permits for these parts, of which the next one is the last, and the number of permits to hand out: up
    /// to `streams_max`, and no more than parts.
    pub fn new(waiting: Vec<u32>, streams_max: usize) -> (Permits, usize) {
        let permits = streams_max.min(waiting.len()).max(1);
        (Permits(Mutex::new(State { waiting, permits, failed: None })), permits)
    }

    /// Begins again with these parts after the last permit was released; returns as [`Permits::new`].
    pub fn restart(&self, waiting: Vec<u32>, streams_max: usize) -> usize {
        let (again, permits) = Permits::new(waiting, streams_max);
        *self.0.lock() = again.0.into_inner();
        permits
    }

    /// Takes the failure, if there was one.
    pub fn failure(&self) -> Option<Failed> {
        self.0.lock().failed.take()
    }

    fn next(&self) -> Option<u32> {
        let mut state = self.0.lock();
        if state.failed.is_some() { None } else { state.waiting.pop() }
    }

    fn fail(&self, failed: Failed) {
        self.0.lock().failed.get_or_insert(failed);
    }

    /// Returns the next step of a permit's holder, and releases the permit if that is to leave or to end.
    fn turn(&self, streams_max: usize) -> Turn {
        let mut state = self.0.lock();
        let goes_on = state.failed.is_none() && !state.waiting.is_empty();
        if goes_on && state.permits <= streams_max.max(1) {
            return Turn::Again;
        }
        state.permits = state.permits.saturating_sub(1);
        if state.permits == 0 { Turn::End } else { Turn::Leave }
    }

    /// Returns how many more permits to hand out, and counts them: up to `streams_max`, and no more than parts that
    /// wait. None for an object that failed or whose last permit was released.
    fn more(&self, streams_max: usize) -> usize {
        let mut state = self.0.lock();
        if state.permits == 0 || state.failed.is_some() {
            return 0;
        }
        let count = streams_max.saturating_sub(state.permits).min(state.waiting.len());
        state.permits += count;
        count
    }
}

impl Engine<'_> {
    /// Returns how many parts of one large object may be in flight now: the requested number, else as many as `fit`
    /// into memory; never more than there are jobs.
    pub(super) fn streams(&self, fit: u64) -> usize {
        streams(fit, self.setup.options.concurrency, self.setup.controls.gate.jobs())
    }
}

fn streams(fit: u64, concurrency: Option<usize>, jobs: usize) -> usize {
    // The user's number is a hard limit; memory is waited for.
    concurrency.unwrap_or(usize::try_from(fit).unwrap_or(usize::MAX)).min(jobs).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Permits for this many waiting parts, of which `streams` are handed out.
    fn permits(parts: u32, streams: usize) -> Permits {
        Permits::new((1..=parts).rev().collect(), streams).0
    }

    fn left(permits: &Permits) -> usize {
        permits.0.lock().permits
    }

    #[test]
    fn rights_follow_what_may_be() {
        let of = permits(9, 4);
        assert_eq!(of.turn(4), Turn::Again);
        // Fewer are wanted: the first holders release, down to the wanted number, and never the last one.
        assert_eq!(of.turn(2), Turn::Leave);
        assert_eq!(of.turn(0), Turn::Leave);
        assert_eq!(of.turn(2), Turn::Again);
        assert_eq!(of.turn(0), Turn::Leave);
        assert_eq!((of.turn(0), left(&of)), (Turn::Again, 1));
        assert_eq!((of.more(3), left(&of)), (2, 3));
        of.0.lock().waiting.truncate(1);
        assert_eq!((of.more(9), left(&of)), (1, 4));
        assert_eq!((of.next(), of.next()), (Some(9), None));
        assert_eq!((of.more(9), left(&of)), (0, 4));
        for rest in [3, 2, 1] {
            assert_eq!((of.turn(9), left(&of)), (Turn::Leave, rest));
        }
        assert_eq!((of.turn(9), left(&of)), (Turn::End, 0));
        of.0.lock().waiting.push(1);
        assert_eq!((of.more(9), left(&of)), (0, 0), "it has ended");
        assert_eq!((of.restart(vec![2, 1], 9), of.next()), (2, Some(1)));
    }

    #[test]
    fn after_a_failure_no_part_is_handed_out() {
        let of = permits(10, 3);
        assert_eq!((of.next(), left(&of)), (Some(1), 3));
        of.fail(Failed::Stopped);
        of.fail(Failed::Vanished(hakobu_core::error::Operation::Read));
        assert_eq!((of.next(), of.more(9)), (None, 0));
        assert_eq!([of.turn(9), of.turn(9), of.turn(9)], [Turn::Leave, Turn::Leave, Turn::End]);
        assert!(matches!(of.failure(), Some(Failed::Stopped)), "the first one counts");
    }

    #[test]
    fn parts_in_flight_are_limited_by_memory_jobs_and_request() {
        assert_eq!([streams(8, None, 32), streams(8, None, 7), streams(0, None, 7)], [8, 7, 1]);
        assert_eq!([streams(8, Some(1000), 32), streams(8, Some(3), 2)], [32, 2]);
    }

    proptest! {
        /// For any order of workers, every part is handed out once and one worker ends the object, after all others.
        #[test]
        fn every_part_is_handed_out_and_one_ends_it(
            parts in 1_u32..200,
            streams in 1_usize..20,
            order in prop::collection::vec(any::<prop::sample::Index>(), 2000),
        ) {
            let of = permits(parts, streams);
            let (mut idle, mut working, mut ended) = (left(&of), Vec::new(), false);
            let mut covered = vec![false; parts as usize];
            for index in order {
                prop_assert_eq!(idle + working.len(), left(&of));
                // Either a part is finished, or an idle holder asks for the next one.
                if idle == 0 || (index.index(2) == 0 && !working.is_empty()) {
                    let number: Option<u32> = working.swap_remove(index.index(working.len()));
                    if let Some(number) = number {
                        let again = std::mem::replace(&mut covered[number as usize - 1], true);
                        prop_assert!(!again);
                    }
                    match of.turn(usize::MAX) {
                        Turn::Again => idle += 1,
                        Turn::Leave => {}
                        Turn::End => {
                            prop_assert_eq!((idle, working.len()), (0, 0));
                            ended = true;
                            break;
                        }
                    }
                } else {
                    idle -= 1;
                    working.push(of.next());
                }
            }
            prop_assert!(ended);
            prop_assert!(covered.iter().all(|one| *one));
        }
    }
}
