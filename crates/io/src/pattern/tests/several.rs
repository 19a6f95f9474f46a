//! Steps, blocks in a row, numbers of blocks, and blocks of several sizes.

use super::{KIB, extent, offsets, random};
use crate::job::Sizes;
use crate::job::tests::job;
use crate::pattern::{Block, Picker};
use proptest::prelude::*;

#[test]
fn a_step_leaves_blocks_out_or_goes_back() {
    let mut job = job("read");
    job.skip_bytes = 8192;
    let mut picker = Picker::new(&job, 0, &[extent(4096, 64 * KIB)]);
    let want: Vec<u64> =
        (0..6).map(|n| 4096 + n * 12_288).take_while(|at| at + 4096 <= 68 * KIB).collect();
    assert_eq!(offsets(&mut picker), want);
    job.skip_bytes = -8192;
    let mut picker = Picker::new(&job, 0, &[extent(4096, 16 * KIB)]);
    assert_eq!(offsets(&mut picker), [16_384, 12_288, 8192, 4096]);
    picker.again();
    assert_eq!(offsets(&mut picker).len(), 4);
}

#[test]
fn blocks_follow_each_other_at_random_places() {
    let mut job = random(false);
    (job.random_map, job.run_blocks) = (false, 4);
    job.io_bytes = Some(400 * 4096);
    let seen = offsets(&mut Picker::new(&job, 0, &[extent(0, 4 << 20)]));
    assert_eq!(seen.len(), 400);
    let follow = seen.windows(2).filter(|pair| pair[1] == pair[0] + 4096).count();
    // Three of four, but at the end of the file; a few more by chance.
    assert!((280..=330).contains(&follow), "{follow}");
    assert!(seen.iter().all(|at| at + 4096 <= 4 << 20));
}

#[test]
fn so_many_blocks_and_no_more() {
    for name in ["read", "randwrite", "randrw"] {
        let mut job = job(name);
        job.blocks_max = Some(5);
        let mut picker = Picker::new(&job, 0, &[extent(0, 3 * 4096)]);
        let first: Vec<Block> = picker.by_ref().collect();
        assert_eq!(first.len(), 3, "{name}");
        picker.again();
        assert_eq!(picker.by_ref().count(), 2, "{name}: over all passes");
        // Written blocks are still read again.
        assert_eq!(picker.replay().take(2).count(), 2, "{name}");
        picker.again();
        assert_eq!(picker.next(), None, "{name}");
    }
}

proptest! {
    #[test]
    fn blocks_of_several_sizes_stay_inside(
        rw in prop::sample::select(vec!["read", "write", "randread", "randwrite", "randrw"]),
        begin in 0u64..4, blocks in 0u64..200, largest in 1u64..9, seed: u64,
    ) {
        let mut job = job(rw);
        let sizes = Sizes::Range { least: 512, largest: 512 * largest };
        job.block_bytes = [512 * largest; 2];
        job.sizes = [Some(sizes.clone()), Some(sizes)];
        (job.random_map, job.seed) = (false, seed);
        let part = extent(begin * 512, blocks * 512);
        let mut picker = Picker::new(&job, 0, &[part]);
        let all: Vec<Block> = picker.by_ref().collect();
        for block in &all {
            prop_assert!(block.bytes >= 512 && u64::from(block.bytes) <= 512 * largest);
            prop_assert_eq!((block.bytes % 512, block.offset % 512), (0, 0));
            prop_assert!(block.offset >= part.begin_bytes);
            prop_assert!(block.offset + u64::from(block.bytes) <= part.begin_bytes + part.bytes);
        }
        // As much as there is, but for the last block; the same when it is read again.
        let bytes: u64 = all.iter().map(|block| u64::from(block.bytes)).sum();
        prop_assert!(job.rw.random || job.rw.reads && job.rw.writes || bytes + 512 * largest > part.bytes);
        let again: Vec<Block> = picker.replay().take(all.len()).collect();
        prop_assert_eq!(again, all);
    }
}
