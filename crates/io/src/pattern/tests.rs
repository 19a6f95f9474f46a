//! Sequences: what is visited, how often, in which order, and how long it takes.

use super::orders::Permutation;
use super::*;
use crate::job::tests::job;
use proptest::prelude::*;
use std::collections::HashMap;

const KIB: u64 = 1024;

fn extent(begin_bytes: u64, bytes: u64) -> Extent {
    Extent { begin_bytes, bytes }
}

fn random(write: bool) -> Job {
    let mut job = job("randread");
    (job.rw.reads, job.rw.writes) = (!write, write);
    job
}

fn offsets(picker: &mut Picker) -> Vec<u64> {
    picker.map(|block| block.offset).collect()
}

#[test]
fn in_sequence_blocks_follow_each_other_and_files_take_turns() {
    let job = job("write");
    let mut picker = Picker::new(&job, 0, &[extent(8192, 3 * 4096), extent(0, 4096 + 4095)]);
    let want: Vec<Block> = [(0, 8192), (1, 0), (0, 12288), (0, 16384)]
        .map(|(file, offset)| Block { file, write: true, bytes: 4096, offset })
        .to_vec();
    for _ in 0..3 {
        assert_eq!(picker.by_ref().collect::<Vec<_>>(), want);
        assert_eq!(picker.next(), None);
        picker.again();
    }
}

#[test]
fn what_is_shorter_than_a_block_is_left_out() {
    for name in ["read", "randread", "write", "randrw"] {
        let mut picker = Picker::new(&job(name), 0, &[extent(0, 10 * KIB)]);
        let mut seen = offsets(&mut picker);
        seen.sort_unstable();
        assert_eq!(seen, [0, 4096], "{name}");
        assert_eq!(Picker::new(&job(name), 0, &[extent(0, 4095)]).count(), 0, "{name}");
        assert_eq!(Picker::new(&job(name), 0, &[]).count(), 0, "{name}");
    }
    let mut job = job("randread");
    job.random_map = false;
    assert_eq!(Picker::new(&job, 0, &[extent(0, 4095)]).count(), 0);
    job.distribution = Distribution::Zipf(1.1);
    assert_eq!(Picker::new(&job, 0, &[extent(0, 4095)]).count(), 0);
}

#[test]
fn io_size_ends_a_pass_or_begins_the_files_again() {
    for name in ["read", "randread"] {
        let mut job = job(name);
        job.io_bytes = Some(8 * KIB);
        let files = [extent(0, 16 * KIB)];
        assert_eq!(Picker::new(&job, 0, &files).count(), 2, "{name}");
        job.io_bytes = Some(9 * KIB);
        assert_eq!(Picker::new(&job, 0, &files).count(), 3, "{name}");
        job.io_bytes = Some(40 * KIB);
        let mut picker = Picker::new(&job, 0, &files);
        let seen = offsets(&mut picker);
        assert_eq!(seen.len(), 10, "{name}");
        for part in seen.chunks(4) {
            let different: std::collections::HashSet<_> = part.iter().collect();
            assert_eq!(different.len(), part.len(), "{name}");
        }
        let mut all = seen[..4].to_vec();
        all.sort_unstable();
        assert_eq!(all, [0, 4 * KIB, 8 * KIB, 12 * KIB], "{name}");
        // Nothing fits: it ends, though there would be much to do.
        assert_eq!(Picker::new(&job, 0, &[extent(0, 1)]).count(), 0, "{name}");
    }
}

#[test]
fn seeds_names_and_clones_make_the_order() {
    let files = [extent(0, 4096 * 1000)];
    let order = |job: &Job, clone| offsets(&mut Picker::new(job, clone, &files));
    let one = random(false);
    assert_eq!(order(&one, 0), order(&one, 0));
    assert_eq!(order(&one, 0), order(&random(true), 0));
    assert_ne!(order(&one, 0), order(&one, 1));
    let other = Job { seed: one.seed + 1, ..one.clone() };
    assert_ne!(order(&one, 0), order(&other, 0));
    let other = Job { name: "other".to_owned(), ..one.clone() };
    assert_ne!(order(&one, 0), order(&other, 0));
    let chance = Job { random_repeat: false, ..one.clone() };
    assert_ne!(order(&chance, 0), order(&chance, 0));
    // Clones have independent positions.
    let together = order(&one, 0).iter().zip(order(&one, 1)).filter(|(a, b)| **a == *b).count();
    assert!(together < 10, "{together}");
}

#[test]
fn passes_repeat_as_told_and_a_replay_is_the_pass_under_way() {
    let files = [extent(0, 4096 * 100), extent(4096, 4096 * 50)];
    for (time_based, repeat) in [(false, true), (true, true), (false, false)] {
        for name in ["randrw", "rw"] {
            let job = Job { time_based, random_repeat: repeat, ..job(name) };
            let mut picker = Picker::new(&job, 3, &files);
            let first: Vec<Block> = picker.by_ref().collect();
            assert_eq!(picker.replay().collect::<Vec<_>>(), first);
            picker.again();
            let second: Vec<Block> = picker.by_ref().take(70).collect();
            assert_eq!(picker.replay().take(70).collect::<Vec<_>>(), second);
            assert_eq!(first[..70] == second, repeat && !time_based, "{time_based} {repeat}");
        }
    }
}

#[test]
fn mixed_blocks_are_reads_by_percent() {
    for name in ["randrw", "rw"] {
        for percent in [0, 1, 30, 50, 99, 100] {
            let mut job = job(name);
            job.read_percent = percent;
            let blocks = 40_000;
            let picker = Picker::new(&job, 0, &[extent(0, 4096 * blocks)]);
            let all: Vec<Block> = picker.collect();
            assert_eq!(all.len() as u64, blocks);
            if name == "rw" {
                // Each in its own sequence.
                for write in [false, true] {
                    let mine = all.iter().filter(|block| block.write == write);
                    assert!(mine.zip(0..).all(|(block, number)| block.offset == number * 4096));
                }
            } else {
                // Each place once, by a read or by a write.
                let mut places: Vec<u64> = all.iter().map(|block| block.offset / 4096).collect();
                assert!(!places.is_sorted());
                places.sort_unstable();
                assert_eq!(places, (0..blocks).collect::<Vec<_>>());
            }
            let reads = all.iter().filter(|block| !block.write).count() as f64;
            let share = f64::from(percent) / 100.0;
            // Five standard deviations of a binomial distribution.
            let room = 5.0 * (blocks as f64 * share * (1.0 - share)).sqrt();
            assert!((reads - blocks as f64 * share).abs() <= room, "{percent}: {reads}");
        }
    }
}

#[test]
fn reads_and_writes_may_have_blocks_of_different_sizes() {
    let mut mixed = job("randrw");
    mixed.block_bytes = [4 * KIB, 16 * KIB];
    let size = 64 * KIB * 100;
    let all: Vec<Block> = Picker::new(&mixed, 0, &[extent(4096, size)]).collect();
    let sum: u64 = all.iter().map(|block| u64::from(block.bytes)).sum();
    assert!((size..size + 16 * KIB).contains(&sum), "{sum}");
    for write in [false, true] {
        let bytes = mixed.block_bytes[usize::from(write)];
        let mine: Vec<&Block> = all.iter().filter(|block| block.write == write).collect();
        let mut places: Vec<u64> = mine.iter().map(|block| block.offset).collect();
        assert!(mine.iter().all(|block| u64::from(block.bytes) == bytes));
        assert!(
            places.iter().all(|place| (place - 4096) % bytes == 0 && place + bytes <= 4096 + size)
        );
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), mine.len(), "no block twice");
    }
    let mut mixed = job("rw");
    mixed.block_bytes = [4 * KIB, 16 * KIB];
    let mut next = [0; 2];
    for block in Picker::new(&mixed, 0, &[extent(0, size)]) {
        let next = &mut next[usize::from(block.write)];
        assert_eq!(block.offset, *next);
        *next += u64::from(block.bytes);
    }
    assert!((size..size + 16 * KIB).contains(&(next[0] + next[1])), "{next:?}");
}

#[test]
fn without_a_map_blocks_are_drawn_as_they_come() {
    let mut job = random(false);
    job.random_map = false;
    let blocks = 10_000u64;
    let seen = offsets(&mut Picker::new(&job, 0, &[extent(0, blocks * 4096)]));
    assert_eq!(seen.len() as u64, blocks);
    assert!(seen.iter().all(|place| place % 4096 == 0 && place / 4096 < blocks));
    let different = seen.iter().collect::<std::collections::HashSet<_>>().len() as f64;
    // 1 − 1/e of them.
    assert!((different / blocks as f64 - 0.632).abs() < 0.02, "{different}");
}

/// Ranks are as likely as the law says, for theta below, at and above 1, and places are those of the
/// file, each of one rank.
#[test]
fn zipf_is_zipf() {
    for theta in [0.5, 0.99, 1.0, 1.2, 2.0] {
        let ranks = 1000u64;
        let zipf = Zipf::new(theta, ranks);
        let mut random = Random::new(7, 7);
        let draws = 400_000;
        let mut counts = vec![0u64; ranks as usize];
        (0..draws).for_each(|_| counts[zipf.draw(&mut random) as usize] += 1);
        let whole: f64 = (1..=ranks).map(|rank| (rank as f64).powf(-theta)).sum();
        let mut chi = 0.0;
        let mut cells = 0;
        for (rank, count) in (1..=ranks).zip(&counts) {
            let want = f64::from(draws) * (rank as f64).powf(-theta) / whole;
            if want >= 10.0 {
                chi += (*count as f64 - want).powi(2) / want;
                cells += 1;
            }
        }
        // Mean and deviation of chi square with so many cells.
        let (mean, deviation) = (f64::from(cells), (2.0 * f64::from(cells)).sqrt());
        assert!((chi - mean).abs() < 6.0 * deviation, "theta {theta}: {chi} of {mean}");
    }
    let mut job = random(false);
    job.distribution = Distribution::Zipf(1.2);
    let mut counts: HashMap<u64, u64> = HashMap::new();
    let blocks = 3000u64;
    for block in Picker::new(&job, 0, &[extent(8192, blocks * 4096)]) {
        assert!(block.offset >= 8192 && block.offset + 4096 <= 8192 + blocks * 4096);
        *counts.entry(block.offset).or_default() += 1;
    }
    let most = counts.iter().max_by_key(|(_, count)| **count).unwrap();
    // One block in five or so; and it is not the first of the file.
    assert!(*most.1 > blocks / 10 && *most.0 != 8192, "{most:?}");
    // A file of one block, and one of two.
    assert!(Picker::new(&job, 0, &[extent(0, 4096)]).all(|block| block.offset == 0));
    assert_eq!(Picker::new(&job, 0, &[extent(0, 8192)]).count(), 2);
}

/// No part of a file is visited early or late, and successive blocks have nothing to do with each
/// other: chi square over 64 parts of the file in each of 64 parts of the pass, of the distances
/// between successive blocks, and of the lowest bits.
#[test]
fn orders_are_even_for_all_kinds_of_sizes() {
    let limits = [1000, 4096, 5000, 65_536, 100_003, 131_073, 262_144u64];
    for (limit, seed) in limits.into_iter().flat_map(|limit| (0..5).map(move |seed| (limit, seed)))
    {
        let mut order = Permutation::new(limit);
        order.shuffle(&mut Random::new(seed, limit));
        let all: Vec<u64> = std::iter::from_fn(|| order.next()).collect();
        assert_eq!(all.len() as u64, limit);
        let part = |value: u64, of: u64| (u128::from(value) * 64 / u128::from(of)) as usize;
        let mut cells = vec![0f64; 64 * 64];
        for (time, place) in all.iter().enumerate() {
            cells[part(time as u64, limit) * 64 + part(*place, limit)] += 1.0;
        }
        // Drawn without putting back: a little more even than chance, never less.
        even(&cells, &format!("{limit}: times and places"));
        let mut cells = vec![0f64; 64];
        for pair in all.windows(2) {
            let distance = (pair[1] + limit - pair[0]) % limit;
            cells[part(distance, limit)] += 1.0;
        }
        even(&cells, &format!("{limit}: distances"));
        let mut cells = vec![0f64; 64];
        for pair in all.windows(2) {
            cells[((pair[0] % 8) * 8 + pair[1] % 8) as usize] += 1.0;
        }
        even(&cells, &format!("{limit}: lowest bits"));
        let steps = all.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
        assert!(steps < 12, "{limit}: {steps} times the neighbour");
        let mut cells = vec![0f64; 64 * 64];
        all.windows(2)
            .for_each(|pair| cells[part(pair[0], limit) * 64 + part(pair[1], limit)] += 1.0);
        even(&cells, &format!("{limit}: from where to where"));
    }
}

/// Chi square no more than six standard deviations above its mean.
fn even(cells: &[f64], what: &str) {
    let mean = cells.iter().sum::<f64>() / cells.len() as f64;
    let chi: f64 = cells.iter().map(|cell| (cell - mean).powi(2) / mean).sum();
    let (wanted, deviation) = (cells.len() as f64, (2.0 * cells.len() as f64).sqrt());
    assert!(chi < wanted + 6.0 * deviation, "{what}: {chi} for {wanted}");
}

#[test]
fn large_files_need_no_memory_and_stay_inside() {
    let mut job = random(false);
    let size = 4096u64 << 31;
    job.io_bytes = Some(4096 * 100_000);
    assert!(size_of::<Lane>() <= 384, "{}", size_of::<Lane>());
    let seen = offsets(&mut Picker::new(&job, 0, &[extent(4096, size)]));
    assert_eq!(seen.iter().collect::<std::collections::HashSet<_>>().len(), 100_000);
    assert!(seen.iter().all(|place| (4096..4096 + size).contains(place)));
    let middle = seen.iter().filter(|place| **place < size / 2).count();
    assert!((49_000..51_000).contains(&middle), "{middle}");
}

proptest! {
    #[test]
    fn every_block_once_a_pass(
        sizes in prop::collection::vec((0u64..5, 0u64..3_000), 1..5),
        block in 1u64..9,
        seed in any::<u64>(),
    ) {
        let bytes = block * 512;
        let files: Vec<Extent> =
            sizes.iter().map(|(begin, blocks)| extent(begin * 4096, blocks * 512)).collect();
        let mut job = random(true);
        job.seed = seed;
        job.block_bytes = [bytes; 2];
        let mut picker = Picker::new(&job, 1, &files);
        for _ in 0..2 {
            let mut seen: Vec<(u32, u64)> =
                picker.by_ref().map(|block| (block.file, block.offset)).collect();
            seen.sort_unstable();
            let mut want = Vec::new();
            for (number, file) in files.iter().enumerate() {
                let places = (0..file.bytes / bytes).map(|place| file.begin_bytes + place * bytes);
                want.extend(places.map(|place| (number as u32, place)));
            }
            prop_assert_eq!(seen, want);
            picker.again();
        }
    }

    #[test]
    fn walking_inside_is_one_to_one(limit in 1u64..2000, seed in any::<u64>()) {
        let mut order = Permutation::new(limit);
        order.shuffle(&mut Random::new(seed, 0));
        let mut seen: Vec<u64> = (0..limit).map(|number| order.inside(number)).collect();
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..limit).collect::<Vec<_>>());
    }
}

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
        let sizes = BlockSizes::Range { least: 512, largest: 512 * largest };
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
