//! Who may wait for whom. Walkers and senders of the source end wait for credit, workers of the target end for content, and all
//! of them for room in a queue; readers wait for nobody. What the target end holds back before it tells of room has to be less than
//! what the source end may wait for: the numbers are checked here, and their rule by all states of a small model.

use super::source_end::{ENTRIES_MAX, MESSAGE_BYTES, UNASKED_BYTES_MAX};
use super::target_end::TOLD_BYTES;
use crate::local::BATCH_BYTES_MAX;
use crate::local::source;
use hakobu_remote::message::{CHUNK_ENTRIES_MAX, CONTENT_BYTES_MAX};

/// What may be held back, and the largest thing that waits for credit, fit into the credit together.
const fn ends(credit: u64, held_back: u64, largest: u64) -> bool {
    held_back + largest <= credit
}

const CHUNK_BYTES_MAX: u64 = (BATCH_BYTES_MAX + CONTENT_BYTES_MAX) as u64;
const _: () = assert!(ends(UNASKED_BYTES_MAX, TOLD_BYTES, CHUNK_BYTES_MAX));
const _: () = assert!(CONTENT_BYTES_MAX as u64 + MESSAGE_BYTES <= CHUNK_BYTES_MAX);
const _: () = assert!(ends(source::WINDOW_BYTES_MIN, source::TOLD_BYTES - 1, 1));
// Answers to entries are not held back, and content that is wanted needs no further entries.
const _: () = assert!(ends(ENTRIES_MAX as u64, 0, CHUNK_ENTRIES_MAX as u64));

#[cfg(test)]
mod tests {
    use super::ends;
    use std::collections::{HashSet, VecDeque};

    /// Numbers of a model. A unit is a piece of content.
    #[derive(Clone, Copy, Debug)]
    struct Sizes {
        entries: u8,
        unasked: u8,
        told: u8,
        window: u8,
        told_of_file: u8,
        queue: usize,
        senders: usize,
    }

    /// What is announced, in order: a chunk whose content is announced with it, or one with a file that is asked for.
    #[derive(Clone, Copy, Debug)]
    enum Chunk {
        Pushed(u8),
        Asked { file: usize, pieces: u8 },
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    enum Said {
        Entries(usize),
        First(usize),
        Piece(usize),
        Want(usize),
        Room(u8),
        More(usize, u8),
    }

    /// A thread that wants to say something waits for room in its queue.
    type Waiting = VecDeque<Said>;

    #[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
    struct World {
        // The source end.
        announced: usize,
        entries: u8,
        unasked: u8,
        walker: Waiting,
        wanted: VecDeque<usize>,
        senders: Vec<(Option<(usize, u8)>, Waiting)>,
        windows: Vec<u8>,
        source_queue: VecDeque<Said>,
        // The link, which holds one message in each direction.
        there: Option<Said>,
        back: Option<Said>,
        // The target end, with one worker.
        inbox: VecDeque<Said>,
        pieces: Vec<u8>,
        /// The file that is written, and pieces that are missing.
        writes: Option<(usize, u8)>,
        worker: Waiting,
        target_queue: VecDeque<Said>,
        untold: u8,
        untold_of_file: u8,
        written: usize,
    }

    struct Model<'a> {
        sizes: Sizes,
        chunks: &'a [Chunk],
        files: Vec<u8>,
    }

    impl Model<'_> {
        fn begin(&self) -> World {
            let files = self.files.len();
            World {
                senders: vec![(None, Waiting::new()); self.sizes.senders],
                windows: vec![0; files],
                pieces: vec![0; files],
                ..World::default()
            }
        }

        fn is_done(&self, world: &World) -> bool {
            world.announced == self.chunks.len()
                && world.inbox.is_empty()
                && world.written == self.files.len()
        }

        /// The worker has done with content that came unasked.
        fn consume(&self, world: &mut World, pieces: u8) {
            world.untold += pieces;
            if pieces > 0 && world.untold >= self.sizes.told {
                world.worker.push_back(Said::Room(std::mem::take(&mut world.untold)));
            }
        }

        /// All states that one step of one thread leads to.
        fn steps(&self, world: &World) -> Vec<World> {
            let Sizes { entries, unasked, window, told_of_file, queue, .. } = self.sizes;
            let mut after = Vec::new();
            let mut step = |is_possible: bool, change: &dyn Fn(&mut World)| {
                if is_possible {
                    let mut next = world.clone();
                    change(&mut next);
                    after.push(next);
                }
            };
            let first = |file: usize| Said::First(file);
            // The walker reserves, then waits for room in the queue.
            if let Some(chunk) = self.chunks.get(world.announced) {
                let pushed = if let Chunk::Pushed(pieces) = chunk { *pieces } else { 0 };
                let may = world.entries < entries
                    && (pushed == 0 || world.unasked + pushed <= unasked)
                    && world.walker.is_empty();
                step(may, &|next| {
                    next.entries += 1;
                    next.unasked += pushed;
                    next.walker.push_back(Said::Entries(next.announced));
                    next.announced += 1;
                });
            }
            let has_room = world.source_queue.len() < queue;
            step(has_room && !world.walker.is_empty(), &|next| {
                let said = next.walker.pop_front();
                next.source_queue.extend(said);
            });
            for (at, (file, waiting)) in world.senders.iter().enumerate() {
                step(has_room && !waiting.is_empty(), &|next| {
                    let said = next.senders[at].1.pop_front();
                    next.source_queue.extend(said);
                });
                if !waiting.is_empty() {
                    continue;
                }
                match *file {
                    None => step(!world.wanted.is_empty(), &|next| {
                        let file = next.wanted.pop_front();
                        next.senders[at].0 = file.map(|file| (file, 0));
                    }),
                    Some((file, 0)) => step(world.unasked < unasked, &|next| {
                        next.unasked += 1;
                        next.senders[at] = (Some((file, 1)), [first(file)].into());
                    }),
                    Some((file, sent)) if sent < self.files[file] => {
                        step(world.windows[file] > 0, &|next| {
                            next.windows[file] -= 1;
                            next.senders[at] = (Some((file, sent + 1)), [Said::Piece(file)].into());
                        });
                    }
                    Some(_) => step(true, &|next| next.senders[at].0 = None),
                }
            }
            // Writers and readers.
            step(world.there.is_none() && !world.source_queue.is_empty(), &|next| {
                next.there = next.source_queue.pop_front();
            });
            step(world.back.is_none() && !world.target_queue.is_empty(), &|next| {
                next.back = next.target_queue.pop_front();
            });
            step(world.there.is_some(), &|next| match next.there.take() {
                Some(Said::Piece(file)) => next.pieces[file] += 1,
                said => next.inbox.extend(said),
            });
            step(world.back.is_some(), &|next| match next.back.take() {
                Some(Said::Want(chunk)) => {
                    next.entries -= 1;
                    if let Chunk::Asked { file, .. } = self.chunks[chunk] {
                        next.wanted.push_back(file);
                    }
                }
                Some(Said::Room(pieces)) => next.unasked -= pieces,
                Some(Said::More(file, pieces)) => next.windows[file] += pieces,
                other => panic!("{other:?} came from the target end"),
            });
            // The worker.
            step(world.target_queue.len() < queue && !world.worker.is_empty(), &|next| {
                let said = next.worker.pop_front();
                next.target_queue.extend(said);
            });
            if !world.worker.is_empty() {
                return after;
            }
            match world.writes {
                None => step(!world.inbox.is_empty(), &|next| match next.inbox.pop_front() {
                    Some(Said::Entries(chunk)) => {
                        if let Chunk::Pushed(pieces) = self.chunks[chunk] {
                            self.consume(next, pieces);
                        }
                        next.worker.push_back(Said::Want(chunk));
                    }
                    Some(Said::First(file)) => {
                        next.writes = Some((file, self.files[file] - 1));
                        next.worker.push_back(Said::More(file, window));
                    }
                    other => panic!("{other:?} came from the source end"),
                }),
                Some((_, 0)) => step(true, &|next| {
                    next.writes = None;
                    next.untold_of_file = 0;
                    next.written += 1;
                    self.consume(next, 1);
                }),
                Some((file, left)) => step(world.pieces[file] > 0, &|next| {
                    next.pieces[file] -= 1;
                    next.writes = Some((file, left - 1));
                    next.untold_of_file += 1;
                    if next.untold_of_file >= told_of_file {
                        let pieces = std::mem::take(&mut next.untold_of_file);
                        next.worker.push_back(Said::More(file, pieces));
                    }
                }),
            }
            after
        }

        /// Visits all states. Returns their number, or the one in which everybody waits.
        fn explore(&self) -> Result<usize, Box<World>> {
            let begin = self.begin();
            let (mut seen, mut left) = (HashSet::from([begin.clone()]), vec![begin]);
            while let Some(world) = left.pop() {
                let after = self.steps(&world);
                if after.is_empty() && !self.is_done(&world) {
                    return Err(Box::new(world));
                }
                for next in after {
                    if seen.insert(next.clone()) {
                        left.push(next);
                    }
                }
            }
            Ok(seen.len())
        }
    }

    fn model(sizes: Sizes, chunks: &[Chunk]) -> Model<'_> {
        let mut files = Vec::new();
        for chunk in chunks {
            if let Chunk::Asked { file, pieces } = *chunk {
                assert_eq!(file, files.len());
                files.push(pieces);
            }
        }
        Model { sizes, chunks, files }
    }

    const LOADS: [&[Chunk]; 3] = [
        &[Chunk::Pushed(1), Chunk::Pushed(2), Chunk::Pushed(1), Chunk::Pushed(2)],
        &[
            Chunk::Asked { file: 0, pieces: 3 },
            Chunk::Asked { file: 1, pieces: 1 },
            Chunk::Asked { file: 2, pieces: 3 },
        ],
        &[
            Chunk::Pushed(2),
            Chunk::Asked { file: 0, pieces: 3 },
            Chunk::Pushed(1),
            Chunk::Asked { file: 1, pieces: 2 },
            Chunk::Pushed(2),
        ],
    ];

    /// Sizes by the rule never let everybody wait, whatever the order of steps.
    #[test]
    fn never_all_wait() {
        let mut states = 0;
        for (entries, unasked, told) in [(1, 3, 1), (2, 3, 1), (2, 4, 2)] {
            for (window, told_of_file) in [(1, 1), (2, 2), (2, 1)] {
                for (queue, senders) in [(1, 1), (1, 2), (2, 2)] {
                    let sizes =
                        Sizes { entries, unasked, told, window, told_of_file, queue, senders };
                    assert!(ends(unasked.into(), u64::from(told) - 1, 2));
                    for load in LOADS {
                        match model(sizes, load).explore() {
                            Ok(count) => states += count,
                            Err(world) => panic!("{sizes:?}, {load:?}: all wait: {world:#?}"),
                        }
                    }
                }
            }
        }
        assert!(states > 100_000, "{states} states");
    }

    /// The model finds it if they do: more is held back than there is credit for.
    #[test]
    fn sizes_against_the_rule_let_all_wait() {
        let right = Sizes {
            entries: 2,
            unasked: 3,
            told: 2,
            window: 2,
            told_of_file: 1,
            queue: 1,
            senders: 2,
        };
        assert!(model(right, LOADS[2]).explore().is_ok());
        let held = Sizes { unasked: 2, ..right };
        assert!(!ends(2, 1, 2) && model(held, LOADS[0]).explore().is_err());
        let windows = Sizes { told_of_file: 3, window: 1, ..right };
        assert!(!ends(1, 2, 1) && model(windows, LOADS[1]).explore().is_err());
    }
}
