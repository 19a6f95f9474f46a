//! Written content: incompressible bytes without duplicates, unless options say otherwise.

use crate::check;
use crate::job::{Amount, DedupeOptions, Job, VerifyKind};
use crate::pattern::Block;
use crate::random::{Random, mix};
use std::sync::OnceLock;

/// Bytes in which the share of what can be compressed is as asked for (fio's default of
/// `buffer_compress_chunk`), and in which something is changed before each write.
const CHUNK: usize = 512;

/// Fills the buffers of one clone.
///
/// A buffer is filled by chance once, and before each write a few bytes in each 512 of it are changed:
/// that is cheap, and no two blocks are the same (fio's `scramble_buffers`). With `refill_buffers` it is
/// filled anew each time; with `zero_buffers` it is zeros, with `buffer_pattern` and `verify_pattern` that
/// pattern.
#[derive(Clone, Debug)]
pub struct Filler {
    random: Random,
    /// Random bytes at the beginning of each chunk; its rest is zeros.
    lively: usize,
    refill: bool,
    /// Bytes that are repeated from the beginning of each block.
    pattern: Vec<u8>,
    copies: Option<Copies>,
    verify: Option<VerifyKind>,
    /// Distance between headers in a block, in bytes.
    interval_bytes: Option<u32>,
}

impl Filler {
    /// Creates the filler of one clone of a job. Random content differs from that of any earlier run, because a device
    /// may deduplicate.
    pub fn new(job: &Job, clone: u32) -> Filler {
        let percent = if job.zero { 100 } else { job.compress_percent.unwrap_or(0).min(100) };
        Filler {
            random: Random::new(fastrand::u64(..), u64::from(clone)),
            lively: CHUNK * usize::from(100 - percent) / 100,
            refill: job.refill && job.written.pattern.is_empty(),
            pattern: job.written.pattern.clone(),
            copies: job.written.dedupe.map(|of| Copies::new(job, &of, clone)),
            verify: job.verify.filter(|kind| *kind != VerifyKind::Pattern),
            interval_bytes: job.checks.interval_bytes,
        }
    }

    /// Fills a buffer for the first time.
    pub fn first(&mut self, buffer: &mut [u8]) {
        if !self.pattern.is_empty() {
            repeat(buffer, &self.pattern);
            return;
        }
        for chunk in buffer.chunks_mut(CHUNK) {
            let lively = self.lively * chunk.len() / CHUNK;
            let (by_chance, rest) = chunk.split_at_mut(lively);
            fill(by_chance, &mut self.random);
            rest.fill(0);
        }
    }

    /// Makes a buffer ready for this write: fresh content, or the old one changed enough, and the
    /// header of `verify`. The block is the first `block.bytes` of the buffer; `generation` is the
    /// number of the pass.
    #[inline]
    pub fn before_write(&mut self, buffer: &mut [u8], block: &Block, generation: u64) {
        let bytes = buffer.len().min(block.bytes as usize);
        let Some(buffer) = buffer.get_mut(..bytes) else { return };
        if !self.pattern.is_empty() {
            // Headers of the block before may be in it.
            if self.verify.is_some() {
                self.first(buffer);
            }
        } else if let Some(copies) = &mut self.copies {
            self.random = copies.next();
            self.first(buffer);
        } else if self.refill {
            self.first(buffer);
        } else if self.lively >= 8 {
            let fresh = self.random.bits();
            for (number, chunk) in (0..).zip(buffer.chunks_mut(CHUNK)) {
                if let Some(place) = chunk.first_chunk_mut::<8>() {
                    *place = mix(fresh ^ number).to_le_bytes();
                }
            }
        }
        if let Some(kind) = self.verify {
            for (range, part) in check::parts(block, self.interval_bytes) {
                if let Some(buffer) = buffer.get_mut(range) {
                    check::stamp(buffer, kind, &part, generation);
                }
            }
        }
    }
}

/// Fills a buffer with bytes by chance.
pub(super) fn fill(buffer: &mut [u8], random: &mut Random) {
    let (words, rest) = buffer.as_chunks_mut::<8>();
    for word in words {
        *word = random.bits().to_le_bytes();
    }
    let last = random.bits().to_le_bytes();
    rest.iter_mut().zip(last).for_each(|(place, byte)| *place = byte);
}

/// Fills a buffer with a pattern, over and over.
fn repeat(buffer: &mut [u8], pattern: &[u8]) {
    for place in buffer.chunks_mut(pattern.len().max(1)) {
        place.iter_mut().zip(pattern).for_each(|(to, from)| *to = *from);
    }
}

/// Blocks of a job whose size is not known, to find out how large the set of copies is.
const BLOCKS: u64 = 1000;

/// Seeds of blocks.
#[derive(Clone, Debug)]
struct Copies {
    chance: Random,
    percent: u8,
    /// Seeds that copies have: their first, and how many there are; `None`: that of the block before.
    set: Option<(u64, u64)>,
    last: u64,
    /// Blocks of the set that were written as such.
    fresh: u64,
}

impl Copies {
    /// Creates the copies of one clone of a job.
    fn new(job: &Job, of: &DedupeOptions, clone: u32) -> Copies {
        // One for all jobs of a run, and another in the next run.
        static GLOBAL: OnceLock<u64> = OnceLock::new();
        let own = fastrand::u64(..);
        let first = if of.global { *GLOBAL.get_or_init(|| fastrand::u64(..)) } else { own };
        let bytes = match job.size {
            Some(Amount::Bytes(bytes)) => bytes / job.block_bytes[1].max(1),
            _ => BLOCKS,
        };
        let count = |percent: u8| (bytes * u64::from(percent) / 100).max(1);
        let set = of.working_set_percent.map(|percent| (first, count(percent)));
        let mut chance = Random::new(own, u64::from(clone));
        let last = chance.bits();
        Copies { chance, percent: of.percent, set, last, fresh: 0 }
    }

    /// Numbers by chance of which the next block is made.
    fn next(&mut self) -> Random {
        let copies = self.chance.below(100) < u64::from(self.percent);
        let seed = match (copies, self.set) {
            (true, Some((first, count))) => mix(first ^ self.chance.below(count)),
            (true, None) => self.last,
            // The first blocks that are not copies are those of the set.
            (false, Some((first, count))) if self.fresh < count => {
                self.fresh += 1;
                mix(first ^ (self.fresh - 1))
            }
            (false, _) => self.chance.bits(),
        };
        self.last = seed;
        Random::new(seed, 5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::tests::job;
    use std::collections::HashSet;
    use std::io::Write;
    use std::process::{Command, Stdio};

    fn block(bytes: u32, offset: u64) -> Block {
        Block { file: 0, write: true, bytes, offset }
    }

    /// All blocks that a job would write, one after the other, from one buffer.
    fn written(job: &Job, bytes: usize, blocks: u64) -> Vec<u8> {
        let mut filler = Filler::new(job, 0);
        let mut buffer = vec![0xaa; bytes];
        filler.first(&mut buffer);
        let mut all = Vec::new();
        for number in 0..blocks {
            filler.before_write(&mut buffer, &block(bytes as u32, number * bytes as u64), 0);
            all.extend_from_slice(&buffer);
        }
        all
    }

    /// Size after gzip, as a share of its length; `None` where there is no gzip.
    fn compressed(content: &[u8]) -> Option<f64> {
        let mut gzip = Command::new("gzip");
        let gzip = gzip.args(["-1", "-c"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let Ok(mut gzip) = gzip else {
            assert!(std::env::var_os("HAKOBU_REQUIRE_ALL").is_none(), "gzip is missing");
            return None;
        };
        let mut input = gzip.stdin.take().unwrap();
        let all = content.to_vec();
        let feeder = std::thread::spawn(move || input.write_all(&all));
        let output = gzip.wait_with_output().unwrap();
        feeder.join().unwrap().unwrap();
        Some(output.stdout.len() as f64 / content.len() as f64)
    }

    /// One long buffer: blocks of one that was filled once and changed a little can be found again by a
    /// compressor whose window is longer than a block.
    fn once(job: &Job, bytes: usize) -> Vec<u8> {
        let mut all = vec![0xaa; bytes];
        Filler::new(job, 0).first(&mut all);
        all
    }

    #[test]
    fn content_is_as_compressible_as_asked_for() {
        for (percent, low, high) in [
            (None, 0.99, 1.01),
            (Some(0), 0.99, 1.01),
            (Some(50), 0.48, 0.56),
            (Some(90), 0.08, 0.16),
        ] {
            let job = Job { compress_percent: percent, ..job("write") };
            let all = once(&job, 1 << 20);
            let zeros = all.iter().filter(|byte| **byte == 0).count() as f64 / all.len() as f64;
            let want = f64::from(percent.unwrap_or(0)) / 100.0;
            assert!((zeros - want).abs() < 0.01, "{percent:?}: {zeros} are zeros");
            if let Some(share) = compressed(&all) {
                assert!(low < share && share < high, "{percent:?}: {share}");
            }
            // And it stays like that, however often it is changed.
            let all = written(&job, 65536, 16);
            let zeros = all.iter().filter(|byte| **byte == 0).count() as f64 / all.len() as f64;
            assert!((zeros - want).abs() < 0.01, "{percent:?}: {zeros} are zeros");
        }
    }

    #[test]
    fn zeros_are_zeros() {
        for job in [
            Job { zero: true, ..job("write") },
            Job { zero: true, refill: true, ..job("write") },
            Job { compress_percent: Some(100), ..job("write") },
        ] {
            assert!(written(&job, 4096, 3).iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn no_512_bytes_are_written_twice() {
        for refill in [false, true] {
            for percent in [None, Some(80)] {
                let job = Job { refill, compress_percent: percent, ..job("write") };
                let all = written(&job, 8192, 200);
                let different: HashSet<&[u8]> = all.chunks(512).collect();
                assert_eq!(different.len(), all.len() / 512);
            }
        }
        // Nor by another run, nor by another clone.
        let job = job("write");
        assert_ne!(written(&job, 512, 1), written(&job, 512, 1));
    }

    #[test]
    fn refilled_blocks_share_nothing_and_others_nearly_everything() {
        for (refill, most) in [(false, 1.0), (true, 0.01)] {
            let job = Job { refill, ..job("write") };
            let all = written(&job, 4096, 2);
            let same = all[..4096].iter().zip(&all[4096..]).filter(|(a, b)| a == b).count();
            let share = same as f64 / 4096.0;
            assert!(if refill { share < most } else { share > 0.97 && share < most }, "{share}");
        }
    }

    #[test]
    fn blocks_with_a_checksum_verify() {
        for refill in [false, true] {
            let kind = VerifyKind::Crc64;
            let job = Job { verify: Some(kind), refill, ..job("write") };
            let mut filler = Filler::new(&job, 1);
            let mut buffer = vec![0; 8192];
            filler.first(&mut buffer);
            for (bytes, offset) in [(4096, 0), (8192, 4096), (512, 1 << 40)] {
                let block = block(bytes, offset);
                filler.before_write(&mut buffer, &block, 9);
                let whole = &buffer[..bytes as usize];
                assert_eq!(check::verify(whole, kind, &block, 9..=9), Ok(()));
            }
        }
    }

    #[test]
    fn patterns_are_repeated_in_each_block() {
        let mut of = job("write");
        of.written.pattern = b"abc".to_vec();
        let all = written(&of, 512, 3);
        let expected: Vec<u8> = b"abc".iter().copied().cycle().take(512).collect();
        assert!(all.chunks(512).all(|block| block == expected));
    }

    /// Different blocks among so many.
    fn different(job: &Job, blocks: u64) -> usize {
        let all = written(job, 512, blocks);
        all.chunks(512).collect::<HashSet<_>>().len()
    }

    #[test]
    fn copies_are_as_many_as_asked_for() {
        let with = |percent, working_set_percent| {
            let mut of = job("write");
            (of.refill, of.size) = (true, Some(crate::job::Amount::Bytes(1000 * 4096)));
            let global = false;
            of.written.dedupe =
                Some(crate::job::DedupeOptions { percent, working_set_percent, global });
            different(&of, 1000)
        };
        assert!(with(50, None).abs_diff(500) < 70, "repeats");
        assert!(with(100, Some(10)) <= 100, "only of the set");
        let found = with(50, Some(10));
        assert!(found.abs_diff(500) < 70, "{found}");
    }

    #[test]
    fn jobs_may_have_one_set_of_copies() {
        let of = |global| {
            let mut of = job("write");
            (of.refill, of.size) = (true, Some(crate::job::Amount::Bytes(100 * 4096)));
            let working_set_percent = Some(10);
            let percent = 100;
            of.written.dedupe =
                Some(crate::job::DedupeOptions { percent, working_set_percent, global });
            written(&of, 512, 200)
        };
        let together = |global| {
            let (one, other) = (of(global), of(global));
            one.chunks(512).chain(other.chunks(512)).collect::<HashSet<_>>().len()
        };
        assert_eq!((together(true), together(false)), (10, 20));
    }
}
