//! The next block: the sequence of a clone over its files, as fio(1) orders them.
//!
//! Sequential (perhaps in zones), random with each block once a pass, random without that, by Zipf's law
//! or by shares of the file, or in an order that is given; reads,
//! writes, or both by percent. A sequence is a function of seed, name and number of the clone, and
//! costs a few nanoseconds a block and no memory, however many blocks there are.

mod orders;

#[cfg(test)]
mod tests;

use crate::job::{Amount, BlockSizes, Distribution, Job, Zones};
use crate::random::{Random, mix, seed_of};
use orders::{Permutation, Sequence, Shares, Strides, Zipf};

/// The part of one file that a clone works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub begin_bytes: u64,
    /// Its length.
    pub bytes: u64,
}

/// One block to read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The place of its file in the clone's list.
    pub file: u32,
    /// It is written, not read.
    pub write: bool,
    /// Its length.
    pub bytes: u32,
    /// Its offset in the file.
    pub offset: u64,
}

/// The sequence of blocks of one clone: an iterator that ends where a pass is over, and goes on after
/// [`again`](Self::again).
///
/// A pass is over when as many bytes were handed out as `io_size` says, or else when all blocks were
/// (`size`). With `io_size` beyond `size` the files are begun again as often as it takes. Files take
/// turns, one block each (`file_service_type=roundrobin`). With a step (`rw=read:8k`) a pass is over
/// where the next block would be beyond an end of the file. What is left at the end of a file and is
/// shorter than a block is left out.
#[derive(Clone, Debug)]
pub struct Picker {
    /// For each file one; two (for reads and for writes) where they do not share one.
    lanes: Vec<Lane>,
    per_file: usize,
    files: usize,
    /// Whose turn it is.
    file: usize,
    course: Course,
    direction: Direction,
    block_bytes: [u32; 2],
    /// For blocks of several sizes.
    sizes: [Option<BlockSizes>; 2],
    /// Bytes that are left out after each block of a sequence, or gone back.
    skip_bytes: i64,
    /// Zones that are worked on one after the other.
    zones: Option<Zones>,
    /// Blocks in a row at each random place.
    run_blocks: u32,
    /// Blocks that may still be handed out, over all passes.
    blocks_left: u64,
    /// Handed out in this pass, and where it is over; past the end of all files it begins again
    /// only if it was told how much there is to do.
    done_bytes: u64,
    pass_bytes: u64,
    wraps: bool,
    seed: u64,
    /// Each pass is like the first.
    repeats: bool,
    chance: Chance,
    /// As it was when this pass began.
    chance_before: Chance,
}

/// One file, or one direction of it.
#[derive(Clone, Debug)]
struct Lane {
    begin_bytes: u64,
    end_bytes: u64,
    /// The next block in sequence.
    place_bytes: u64,
    /// Places in it at which a random block may begin, and how far apart they are.
    blocks: u64,
    unit_bytes: u64,
    /// Blocks that still follow the last one (`rw=randread:8`).
    run_left: u32,
    order: Permutation,
    zipf: Option<Zipf>,
    shares: Option<Shares>,
    sequence: Option<Box<Sequence>>,
    strides: Strides,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    Sequential,
    /// Random, each block once.
    Once,
    /// Random, as it comes.
    Free,
    /// Random, and some more likely than others.
    Zipf,
    /// Random, by shares of the file.
    Shares,
    /// In an order that is given.
    Given,
}

#[derive(Clone, Copy, Debug)]
enum Direction {
    Only {
        write: bool,
    },
    /// Reads if a number of 64 bits is below.
    Mixed {
        below: u128,
    },
}

/// Independent random streams: the same places for every mix of reads and writes.
#[derive(Clone, Debug)]
struct Chance {
    direction: Random,
    place: Random,
    size: Random,
}

impl Chance {
    fn new(seed: u64) -> Chance {
        Chance {
            direction: Random::new(seed, 1),
            place: Random::new(seed, 2),
            size: Random::new(seed, 4),
        }
    }
}

impl Picker {
    /// The sequence of a clone over the given parts of its files.
    ///
    /// With `randrepeat` it is a function of `randseed`, the job's name and the number of the clone,
    /// and each of several `loops` is the same. A block of more than 4 GiB is taken as 4 GiB less
    /// one byte; jobs with such blocks are refused when their files are laid out.
    pub fn new(job: &Job, clone: u32, files: &[Extent]) -> Picker {
        let base = if job.random_repeat { job.seed } else { fastrand::u64(..) };
        let seed = mix(mix(base) ^ seed_of(&job.name)).wrapping_add(u64::from(clone));
        let course = match (job.rw.random, job.distribution, job.random_map) {
            (false, ..) => Course::Sequential,
            (true, Distribution::Zipf(_), _) => Course::Zipf,
            (true, Distribution::Zoned, _) => Course::Shares,
            (true, Distribution::Sequence, _) => Course::Given,
            (true, Distribution::Uniform, true) => Course::Once,
            (true, Distribution::Uniform, false) => Course::Free,
        };
        let direction = match (job.rw.reads, job.rw.writes) {
            (true, true) => Direction::Mixed { below: (u128::from(job.read_percent) << 64) / 100 },
            (_, write) => Direction::Only { write },
        };
        let block_bytes = job.block_bytes.map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
        // In sequence reads and writes each have a place of their own; in random order they share the
        // map, unless its blocks are not the same.
        let apart = course == Course::Sequential
            || block_bytes[0] != block_bytes[1]
            || job.align_bytes[0] != job.align_bytes[1]
            || job.spread.shares[0] != job.spread.shares[1]
            || job.sizes[0] != job.sizes[1];
        let sides: &[usize] = match direction {
            Direction::Mixed { .. } if apart => &[0, 1],
            Direction::Only { write: true } => &[1],
            _ => &[0],
        };
        // The same blocks stay likely in each pass.
        let mut hash = Random::new(seed, 3);
        let lanes = files.iter().flat_map(|extent| sides.iter().map(move |side| (extent, side)));
        let lanes = lanes.map(|(extent, side)| {
            let largest = u64::from(block_bytes[*side].max(1));
            // A random block of several sizes begins at any multiple of the least at which the largest
            // has room, one that is aligned at any multiple of that.
            let step = job.align_bytes[*side].or(job.sizes[*side].as_ref().map(BlockSizes::least));
            let (unit_bytes, blocks) = match step {
                None => (largest, extent.bytes / largest),
                Some(step) => {
                    let room = extent.bytes.checked_sub(largest);
                    (step, room.map_or(0, |room| room / step + 1))
                }
            };
            let mut order = Permutation::new(blocks);
            order.shuffle(&mut hash);
            let zipf = match job.distribution {
                Distribution::Zipf(theta) if job.rw.random => Some(Zipf::new(theta, blocks)),
                _ => None,
            };
            let (begin_bytes, end_bytes) =
                (extent.begin_bytes, extent.begin_bytes.saturating_add(extent.bytes));
            let place_bytes = begin_bytes;
            Lane {
                begin_bytes,
                end_bytes,
                place_bytes,
                blocks,
                unit_bytes,
                run_left: 0,
                order,
                zipf,
                shares: (course == Course::Shares)
                    .then(|| Shares::new(&job.spread.shares[*side], blocks)),
                sequence: (course == Course::Given)
                    .then(|| Sequence::new(&job.spread.sequence, job.spread.strides).into()),
                strides: Strides::new(extent.begin_bytes),
            }
        });
        let there_bytes = files.iter().fold(0, |sum: u64, file| sum.saturating_add(file.bytes));
        // With `filesize`, files may be larger in total than the amount of I/O.
        let size_bytes = match job.size {
            Some(Amount::Bytes(bytes)) => bytes.min(there_bytes),
            _ => there_bytes,
        };
        let mut picker = Picker {
            lanes: lanes.collect(),
            per_file: sides.len(),
            files: files.len(),
            file: 0,
            course,
            direction,
            block_bytes,
            sizes: job.sizes.clone(),
            skip_bytes: job.skip_bytes,
            zones: job.spread.zones,
            run_blocks: job.run_blocks.max(1),
            blocks_left: job.blocks_max.unwrap_or(u64::MAX),
            done_bytes: 0,
            pass_bytes: job.io_bytes.unwrap_or(size_bytes),
            wraps: job.io_bytes.is_some(),
            seed,
            repeats: job.random_repeat && !job.time_based,
            chance: Chance::new(seed),
            chance_before: Chance::new(seed),
        };
        picker.begin();
        picker
    }

    /// Begins another pass: the same as the first for `loops` with `randrepeat`, in another order
    /// otherwise, and where time is what ends the job.
    pub fn again(&mut self) {
        if self.repeats {
            self.chance = Chance::new(self.seed);
        }
        self.begin();
    }

    /// The pass under way from its beginning: what was written in it comes again, block by block, to
    /// be read and verified.
    pub fn replay(&self) -> Picker {
        let mut replay = self.clone();
        replay.chance = self.chance_before.clone();
        replay.blocks_left = u64::MAX;
        replay.begin();
        replay
    }

    fn begin(&mut self) {
        self.chance_before = self.chance.clone();
        self.done_bytes = 0;
        self.file = 0;
        self.rewind();
    }

    /// Every file from its beginning.
    fn rewind(&mut self) {
        let last = u64::from(self.block_bytes[0].max(self.block_bytes[1]));
        for lane in &mut self.lanes {
            lane.run_left = 0;
            if let Some(sequence) = &mut lane.sequence {
                sequence.rewind();
            }
            lane.strides = Strides::new(lane.begin_bytes);
            lane.place_bytes = match self.skip_bytes {
                // Backwards from the last whole block.
                ..0 => {
                    lane.begin_bytes
                        + (lane.end_bytes - lane.begin_bytes).saturating_sub(last) / last * last
                }
                _ => lane.begin_bytes,
            };
            if self.course == Course::Once {
                lane.order.shuffle(&mut self.chance.place);
            }
        }
    }

    /// The next place in a file, `None` if there is none left.
    #[inline]
    fn place(&mut self, file: usize, write: bool, bytes: u64) -> Option<u64> {
        let side = usize::from(write) & (self.per_file - 1);
        let lane = self.lanes.get_mut(file * self.per_file + side)?;
        let number = match self.course {
            Course::Sequential => {
                if let Some(zones) = &self.zones {
                    lane.place_bytes = lane.strides.place(zones, lane.place_bytes, bytes);
                }
                let place = lane.place_bytes;
                let next = place.checked_add(bytes).filter(|next| *next <= lane.end_bytes)?;
                let next = next.checked_add_signed(self.skip_bytes);
                // Before the beginning there is nothing, as behind the end.
                lane.place_bytes =
                    next.filter(|next| *next >= lane.begin_bytes).unwrap_or(u64::MAX);
                return Some(place);
            }
            _ if lane.run_left > 0 && lane.place_bytes.saturating_add(bytes) <= lane.end_bytes => {
                let place = lane.place_bytes;
                lane.place_bytes = place + bytes;
                lane.run_left -= 1;
                return Some(place);
            }
            Course::Once => lane.order.next()?,
            Course::Free if lane.blocks > 0 => self.chance.place.below(lane.blocks),
            Course::Zipf if lane.blocks > 0 => {
                let rank = lane.zipf.as_ref()?.draw(&mut self.chance.place);
                lane.order.inside(rank)
            }
            Course::Shares if lane.blocks > 0 => lane.shares.as_ref()?.draw(&mut self.chance.place),
            Course::Given => {
                lane.sequence.as_mut()?.next().filter(|number| *number < lane.blocks)?
            }
            Course::Free | Course::Zipf | Course::Shares => return None,
        };
        let place = lane.begin_bytes + number * lane.unit_bytes;
        lane.place_bytes = place + bytes;
        lane.run_left = self.run_blocks - 1;
        Some(place)
    }

    /// The file whose turn it is, or the next that has something left.
    #[inline]
    fn turn(&mut self, write: bool, bytes: u32) -> Option<Block> {
        for _ in 0..self.files {
            let file = self.file;
            self.file = if file + 1 < self.files { file + 1 } else { 0 };
            if let Some(offset) = self.place(file, write, u64::from(bytes)) {
                return Some(Block { file: file as u32, write, bytes, offset });
            }
        }
        None
    }
}

impl Iterator for Picker {
    type Item = Block;

    /// The next block; `None` where the pass is over.
    #[inline]
    fn next(&mut self) -> Option<Block> {
        if self.done_bytes >= self.pass_bytes || self.blocks_left == 0 {
            return None;
        }
        let write = match self.direction {
            Direction::Only { write } => write,
            Direction::Mixed { below } => u128::from(self.chance.direction.bits()) >= below,
        };
        let side = usize::from(write);
        let bytes = match &self.sizes[side] {
            None => self.block_bytes[side],
            Some(sizes) => sizes.draw(&mut self.chance.size) as u32,
        };
        let mut block = self.turn(write, bytes);
        if block.is_none() && self.wraps {
            self.rewind();
            block = self.turn(write, bytes);
        }
        self.done_bytes = match block {
            Some(_) => {
                self.blocks_left -= 1;
                self.done_bytes + u64::from(bytes)
            }
            None => self.pass_bytes,
        };
        block
    }
}
