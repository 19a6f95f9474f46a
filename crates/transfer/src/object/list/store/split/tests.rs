//! The splitter against a simulated server: for any keys, each comes once and in order, the number of waiting pages
//! is bounded, and latencies overlap.

use super::*;
use hakobu_core::unit::Time;
use hakobu_s3::ops::Etag;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn listed(key: Vec<u8>) -> ListedObject {
    let (mtime, etag) = (Time::default(), Etag::default());
    ListedObject { key, size: 0, mtime, etag, storage_class: "".into() }
}

struct World {
    keys: Vec<Vec<u8>>,
    page: usize,
    /// Minimum and maximum ticks of a request.
    ticks: (u64, u64),
    /// Ticks between two pages that are taken.
    pace: u64,
    /// The server ignores `start-after`.
    deaf: bool,
}

struct Seen {
    keys: Vec<Vec<u8>>,
    ticks: u64,
    requests: usize,
    waiting: usize,
}

impl World {
    fn new(keys: impl IntoIterator<Item = Vec<u8>>) -> World {
        let keys: BTreeSet<_> = keys.into_iter().collect();
        let keys = keys.into_iter().collect();
        World { keys, page: 10, ticks: (1, 1), pace: 0, deaf: false }
    }

    fn serve(&self, ask: &Ask) -> (Vec<ListedObject>, Option<String>) {
        let start = match &ask.continuation {
            Some(token) => token.parse().unwrap(),
            None if self.deaf => 0,
            None => self.keys.partition_point(|key| *key <= ask.start_after),
        };
        let end = (start + self.page).min(self.keys.len());
        let next = (end < self.keys.len()).then(|| end.to_string());
        (self.keys[start..end].iter().cloned().map(listed).collect(), next)
    }

    fn list(&self, parallel: usize, ordered: bool, seed: u64) -> Seen {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut splitter = Splitter::new(0, parallel, ordered, parallel > 1);
        let mut flying: Vec<(u64, Ask)> = Vec::new();
        let (mut now, mut taken_at) = (0, 0);
        let mut seen = Seen { keys: Vec::new(), ticks: 0, requests: 0, waiting: 0 };
        while !splitter.is_over() {
            while let Some(ask) = splitter.ask() {
                seen.requests += 1;
                assert!(seen.requests < 20 * (self.keys.len() / self.page + 10), "no end");
                flying.push((now + random.u64(self.ticks.0..=self.ticks.1), ask));
            }
            assert!(flying.len() <= parallel);
            if now >= taken_at
                && let Some(page) = splitter.take()
            {
                seen.keys.extend(page.into_iter().map(|object| object.key));
                taken_at = now + self.pace;
                continue;
            }
            let next = (0..flying.len()).min_by_key(|at| flying[*at].0);
            match next {
                Some(next) => {
                    let (at, ask) = flying.swap_remove(next);
                    now = now.max(at);
                    let (page, more) = self.serve(&ask);
                    splitter.answer(ask.range, page, more).unwrap();
                }
                None => {
                    assert!(taken_at > now || splitter.is_over(), "nothing goes on");
                    now = taken_at;
                }
            }
            seen.waiting = seen.waiting.max(splitter.waiting());
        }
        seen.ticks = now;
        seen
    }

    /// Lists with one and with eight concurrent requests: returns the speed-up, and the factor of requests.
    fn gain(&self) -> (f64, f64) {
        let (one, eight) = (self.list(1, true, 1), self.list(8, true, 1));
        assert!(eight.keys == self.keys);
        let ratio = |a: u64, b: u64| a as f64 / b as f64;
        let requests = ratio(eight.requests as u64, one.requests as u64);
        (ratio(one.ticks, eight.ticks), requests)
    }
}

/// Keys of several shapes, some of them mixed.
fn keys() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let counted = (1..2000_u32, "[a-c/]{0,3}").prop_map(|(count, lead)| {
        (0..count).map(|i| format!("{lead}{i:06}").into_bytes()).collect::<Vec<_>>()
    });
    let folders = (1..30_u32, 1..100_u32).prop_map(|(folders, files)| {
        let names = (0..folders).flat_map(move |a| (0..files).map(move |b| (a, b)));
        names.map(|(a, b)| format!("d{a}/file-{b}.txt").into_bytes()).collect()
    });
    let bytes = prop::collection::vec(prop::collection::vec(any::<u8>(), 1..6), 0..800);
    let letters = prop::collection::vec("[a-zA-Z/é]{1,8}", 0..800)
        .prop_map(|keys| keys.into_iter().map(String::into_bytes).collect());
    let one = prop_oneof![counted, folders, bytes, letters];
    prop::collection::vec(one, 1..4).prop_map(|sets| sets.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn each_key_comes_once_and_in_order(
        keys in keys(),
        page in 1..40_usize,
        parallel in 1..12_usize,
        slowest in 1..20_u64,
        pace in 0..8_u64,
        deaf in prop::bool::weighted(0.1),
        seed in any::<u64>(),
    ) {
        let world = World { page, ticks: (1, slowest), pace, deaf, ..World::new(keys) };
        let seen = world.list(parallel, true, seed);
        prop_assert!(seen.keys == world.keys);
        let max = 2 * parallel * RANGE_PAGES as usize + 2 * RANGE_PAGES as usize;
        prop_assert!(seen.waiting <= max, "{} pages waited", seen.waiting);
        let mut seen = world.list(parallel, false, seed);
        prop_assert!(seen.waiting <= max, "{} pages waited", seen.waiting);
        seen.keys.sort();
        prop_assert!(seen.keys == world.keys);
    }
}

#[test]
fn latency_is_shared() {
    let mut random = fastrand::Rng::with_seed(7);
    let worlds: [(&str, World, f64, f64); 7] = [
        (
            "a folder a page",
            World::new((0..10_000).map(|i| format!("d{:04}/f{:06}", i / 10, i).into_bytes())),
            3.4,
            1.4,
        ),
        ("counted", World::new((0..10_000).map(|i| format!("key-{i:010}").into_bytes())), 6.5, 1.2),
        (
            "hashes",
            World::new((0..10_000).map(|_| format!("{:016x}", random.u64(..)).into_bytes())),
            5.0,
            1.5,
        ),
        (
            "folders",
            World::new((0..10_000).map(|i| {
                format!("2024/{:02}/{:02}/part-{:04}.gz", i / 800, i / 25 % 32, i % 25).into_bytes()
            })),
            2.0,
            1.4,
        ),
        (
            "few large folders",
            World::new((0..10_000).map(|i| format!("{}/x{:05}", i / 2500, i % 2500).into_bytes())),
            4.0,
            1.6,
        ),
        (
            "words",
            World::new((0..10_000).map(|_| {
                let word = |random: &mut fastrand::Rng| {
                    (0..random.usize(3..9)).map(|_| random.lowercase()).collect::<String>()
                };
                format!("{}-{}", word(&mut random), word(&mut random)).into_bytes()
            })),
            4.0,
            1.8,
        ),
        (
            "numbers without zeroes",
            World::new((0..10_000).map(|i| format!("img{i}.jpg").into_bytes())),
            1.8,
            1.4,
        ),
    ];
    let mut missed = Vec::new();
    let mut rows = Vec::new();
    for (name, world, faster, dearer) in worlds {
        let (gain, cost) = world.gain();
        rows.push(format!("{name}: {gain:.1} times as fast, {cost:.2} times the requests"));
        if gain < faster || cost > dearer {
            missed.push(name);
        }
    }
    assert!(missed.is_empty(), "{missed:?} of {rows:#?}");
}

#[test]
fn a_short_listing_is_few_requests() {
    let keys = |count: u32| (0..count).map(|i| format!("k{i:04}").into_bytes());
    assert_eq!(World::new(keys(0)).list(8, true, 1).requests, 1);
    assert_eq!(World::new(keys(9)).list(8, true, 1).requests, 1);
    let seen = World::new(keys(15)).list(8, true, 1);
    assert!(seen.requests <= 4, "{} requests", seen.requests);
}

#[test]
fn a_page_out_of_order_is_refused() {
    let key = |text: &str| text.as_bytes().to_vec();
    let mut splitter = Splitter::new(0, 1, true, true);
    let ask = splitter.ask().unwrap();
    let page = ["a", "c", "b"].map(|name| listed(key(name))).into();
    assert_eq!(splitter.answer(ask.range, page, None), Err(Unsorted(key("c"), key("b"))));
    let mut splitter = Splitter::new(0, 1, true, true);
    for (name, fine) in [("b", true), ("a", false)] {
        let ask = splitter.ask().unwrap();
        let page = vec![listed(key(name))];
        assert_eq!(splitter.answer(ask.range, page, Some("more".into())).is_ok(), fine);
    }
}
