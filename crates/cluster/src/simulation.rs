//! Runs of many workers over many names, with a clock that is a number: what a plan, its workers and a collect take, and
//! which part of it one machine does alone. The decisions are the real ones (ranges, claims, shards, segments, beats); an
//! end, a server and the transfer of a shard are formulas.

use crate::claims::{ClaimId, KnownResults};
use crate::folder::{RunError, RunFolder};
use crate::heartbeat::{self, Heartbeat, WorkerState};
use crate::plan::{ClusterPlan, Phase, Shard};
use crate::planner::{Costs, range_count};
use crate::queue::{Claimed, Next, UnitQueue};
use crate::ranges::{KnownRanges, RangeEnd, RangePart, parts_folder};
use crate::results::SegmentWriter;
use crate::worker::ShardResult;
use parking_lot::Mutex;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Names of a page of a listing.
const PAGE: u64 = 1000;
/// Requests at the same time: samples of a plan, and lookups of a collect.
const AT_ONCE: u64 = 64;

/// What is simulated.
#[derive(Clone, Copy)]
struct Case {
    names: u64,
    workers: u64,
    /// Part of the names that has to be transferred.
    changed: f64,
    /// Part of the names that only the target has.
    extraneous: f64,
    request: Duration,
    /// Time that a worker takes for one object, with all its jobs.
    object: Duration,
    /// Workers that are killed at random moments.
    killed: u64,
    seed: u64,
}

impl Case {
    const fn new(names: u64, workers: u64, changed: f64) -> Case {
        Case {
            names,
            workers,
            changed,
            extraneous: 0.0,
            request: Duration::from_millis(20),
            object: Duration::from_micros(500),
            killed: 0,
            seed: 1,
        }
    }
}

/// The time of the event in hand, and of the requests that it has made so far.
struct Time {
    base: Instant,
    now_ns: AtomicU64,
    spent_ns: AtomicU64,
}

impl Time {
    fn read(&self) -> Instant {
        let ns = self.now_ns.load(Ordering::Relaxed) + self.spent_ns.load(Ordering::Relaxed);
        self.base + Duration::from_nanos(ns)
    }

    fn spend(&self, time: Duration) {
        self.spent_ns.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    fn begin(&self, at: Duration) {
        self.now_ns.store(at.as_nanos() as u64, Ordering::Relaxed);
        self.spent_ns.store(0, Ordering::Relaxed);
    }

    fn spent(&self) -> Duration {
        Duration::from_nanos(self.spent_ns.load(Ordering::Relaxed))
    }
}

/// A run folder in memory whose requests take time.
struct SimulatedFolder<'a> {
    time: &'a Time,
    request: Duration,
    files: Mutex<BTreeMap<String, (Vec<u8>, Instant)>>,
    requests: AtomicU64,
}

impl SimulatedFolder<'_> {
    fn count(&self, requests: u64, rounds: u64) {
        self.requests.fetch_add(requests, Ordering::Relaxed);
        self.time.spend(self.request.saturating_mul(rounds as u32));
    }

    fn list(&self, folder: &str, after: &str) -> Vec<(String, Instant)> {
        let prefix = format!("{folder}/");
        let files = self.files.lock();
        let from = format!("{prefix}{after}");
        let below = files.range(from.clone()..).take_while(|(name, _)| name.starts_with(&prefix));
        let after = below.filter(|(name, _)| **name > from || after.is_empty());
        after.map(|(name, (_, at))| (name[prefix.len()..].to_owned(), *at)).collect()
    }
}

impl RunFolder for SimulatedFolder<'_> {
    fn create(&self, name: &str, content: &[u8]) -> Result<bool, RunError> {
        self.count(1, 1);
        let mut files = self.files.lock();
        if files.contains_key(name) {
            return Ok(false);
        }
        files.insert(name.to_owned(), (content.to_vec(), self.time.read()));
        Ok(true)
    }

    fn replace(&self, name: &str, content: &[u8]) -> Result<(), RunError> {
        self.count(1, 1);
        self.files.lock().insert(name.to_owned(), (content.to_vec(), self.time.read()));
        Ok(())
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, RunError> {
        self.count(1, 1);
        Ok(self.files.lock().get(name).map(|(content, _)| content.clone()))
    }

    fn read_all(&self, names: &[String]) -> Result<Vec<Option<Vec<u8>>>, RunError> {
        self.count(names.len() as u64, (names.len() as u64).div_ceil(64));
        let files = self.files.lock();
        let read = |name: &String| files.get(name).map(|(content, _)| content.clone());
        Ok(names.iter().map(read).collect())
    }

    fn names(&self, folder: &str) -> Result<Vec<String>, RunError> {
        let names = self.list(folder, "");
        let pages = names.len() as u64 / PAGE + 1;
        self.count(pages, pages);
        Ok(names.into_iter().map(|(name, _)| name).collect())
    }

    fn names_after(&self, folder: &str, after: &str) -> Result<Vec<String>, RunError> {
        self.count(1, 1);
        let names = self.list(folder, after).into_iter().take(PAGE as usize);
        Ok(names.map(|(name, _)| name).collect())
    }

    fn ages(&self, folder: &str) -> Result<Vec<(String, Duration)>, RunError> {
        let now = self.time.read();
        let files = self.list(folder, "").into_iter();
        Ok(files.map(|(name, at)| (name, now.saturating_duration_since(at))).collect())
    }

    fn remove(&self, name: &str) -> Result<(), RunError> {
        self.count(1, 1);
        self.files.lock().remove(name);
        Ok(())
    }

    fn shown(&self) -> String {
        "'simulated'".to_owned()
    }
}

/// What a worker has begun at an event, and ends at its next one.
enum InHand {
    Nothing,
    Range(ClaimId, Phase),
    Shard(ClaimId, Shard),
}

struct SimulatedWorker<'a> {
    name: String,
    units: UnitQueue<'a>,
    looks: bool,
    in_hand: InHand,
    /// The range that it has listed last.
    listed: Option<ClaimId>,
    ahead: Option<ClaimId>,
    segments: SegmentWriter,
    waiting_since: Option<Duration>,
    beat: Heartbeat,
    next_beat: Duration,
    killed_at: Option<Duration>,
}

/// What was measured.
#[derive(Debug, Default)]
struct Measured {
    plan: Duration,
    first_object: Duration,
    work: Duration,
    collect: Duration,
    /// Requests to the run folder, and to the ends.
    folder_requests: u64,
    end_requests: u64,
    shards: u64,
    /// Results of shards, those that were done twice included.
    results: u64,
    ranges: u32,
    /// Time of all workers that was spent on listings and transfers.
    busy: Duration,
}

impl Measured {
    fn all(&self) -> Duration {
        self.plan + self.work + self.collect
    }

    /// Part of the time in which one machine works alone.
    fn serial(&self) -> f64 {
        (self.plan + self.collect).as_secs_f64() / self.all().as_secs_f64()
    }
}

/// Names of each range: samples do not cut evenly.
fn ranges(case: &Case, count: u64, random: &mut fastrand::Rng) -> Vec<u64> {
    let weight = |_| match random.u32(..20) {
        0 => 4.0,
        _ => 0.5 + random.f64(),
    };
    let weights: Vec<f64> = (0..count).map(weight).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| (case.names as f64 * weight / sum) as u64).collect()
}

fn simulate(case: &Case) -> Measured {
    let mut random = fastrand::Rng::with_seed(case.seed);
    fastrand::seed(case.seed);
    let time = Time { base: Instant::now(), now_ns: 0.into(), spent_ns: 0.into() };
    let clock = || time.read();
    let folder = SimulatedFolder {
        time: &time,
        request: case.request,
        files: Mutex::default(),
        requests: 0.into(),
    };
    let stale = Duration::from_secs(30);
    let mut measured = Measured::default();
    // The plan: two samples for each range.
    let count = range_count(case.names, case.workers);
    let sizes = ranges(case, count, &mut random);
    let costs = Costs::of(false, case.workers, None, None);
    let all = case.names.saturating_mul(costs.operation);
    let plan = ClusterPlan {
        cuts: (1..count).map(|number| format!("{number:08}")).collect(),
        workers: case.workers,
        shard_cost: costs.limit(all),
        range_cost: all / count,
        ..ClusterPlan::default()
    };
    measured.end_requests += 2 * count;
    measured.plan = case.request * (2 * count).div_ceil(AT_ONCE) as u32 + case.request * 3;
    measured.ranges = plan.ranges();
    let shard_costs = Costs::of_range(&plan);
    // The workers.
    let transfer = Phase::Transfer;
    let queue = |phase: &Phase, name: &str| {
        UnitQueue::new(&folder, (&plan, phase), &clock, stale, name, false)
    };
    let estimate = Duration::from_secs_f64(
        case.object.as_secs_f64() * case.names as f64 * case.changed / case.workers as f64,
    );
    let mut workers: Vec<SimulatedWorker<'_>> = (0..case.workers)
        .map(|number| {
            let name = format!("{:016x}", random.u64(..));
            SimulatedWorker {
                units: queue(&transfer, &name),
                looks: false,
                in_hand: InHand::Nothing,
                listed: None,
                ahead: None,
                segments: SegmentWriter::new(transfer.results(), &name),
                waiting_since: None,
                beat: Heartbeat { worker: name.clone(), stale_s: 30.0, ..Heartbeat::default() },
                next_beat: Duration::ZERO,
                killed_at: (number < case.killed).then(|| estimate.mul_f64(random.f64())),
                name,
            }
        })
        .collect();
    let mut events: BinaryHeap<Reverse<(Duration, usize)>> = BinaryHeap::new();
    for number in 0..workers.len() {
        // Engines start them within seconds.
        events.push(Reverse((measured.plan + Duration::from_secs_f64(2.0 * random.f64()), number)));
    }
    let mut parts: HashMap<u64, Shard> = HashMap::new();
    let mut first_object = None;
    let mut end = measured.plan;
    while let Some(Reverse((at, number))) = events.pop() {
        let worker = &mut workers[number];
        time.begin(at);
        if worker.killed_at.is_some_and(|killed| at >= measured.plan + killed) {
            continue;
        }
        if at >= worker.next_beat {
            worker.beat.counter += 1;
            heartbeat::write(&folder, &worker.beat).unwrap();
            time.begin(at);
            let interval = heartbeat::interval_of_many(stale, case.workers as usize);
            worker.next_beat = at + interval;
        }
        // What was in hand is done now.
        match std::mem::replace(&mut worker.in_hand, InHand::Nothing) {
            InHand::Nothing => {}
            InHand::Range((range, generation), phase) => {
                let names = sizes[range as usize];
                let (todo, only_there) = match phase {
                    Phase::Transfer => ((names as f64 * case.changed) as u64, 0),
                    _ => (0, (names as f64 * case.extraneous) as u64),
                };
                let (mut shards, mut seen) = (Vec::new(), 0);
                while seen < todo {
                    let limit = shard_costs.limit(seen * costs.operation);
                    let entries = (limit / costs.operation).clamp(1, todo - seen);
                    let cost = entries * costs.operation;
                    shards.push(Shard { cost, entries, ..Shard::default() });
                    seen += entries;
                }
                let part = RangePart {
                    range: range as u32,
                    generation,
                    shards,
                    end: Some(RangeEnd { removals: only_there, ..RangeEnd::default() }),
                    ..RangePart::default()
                };
                for (place, shard) in part.shards.iter().enumerate() {
                    let number = crate::plan::shard_number(range as u32, generation, place as u32);
                    parts.insert(number, shard.clone());
                }
                // Its shards are written by several threads.
                folder.count(part.shards.len() as u64, part.shards.len().div_ceil(16) as u64);
                let path = format!("{}/{}", parts_folder(&phase), part.name());
                folder.create(&path, &part.content().unwrap()).unwrap();
                worker.units.listed((range, generation), &[part]);
                worker.listed = Some((range, generation));
            }
            InHand::Shard((number, generation), shard) => {
                let result = ShardResult {
                    shard: number,
                    worker: worker.name.clone(),
                    generation,
                    entries: shard.entries,
                    ..ShardResult::default()
                };
                worker.segments.write(&folder, &[result]).unwrap();
                worker.units.finished(number);
                measured.results += 1;
            }
        }
        let next = match worker.ahead.take() {
            Some(claim) => Next::Do(Claimed::Shard(claim)),
            None => worker.units.next().unwrap(),
        };
        match next {
            Next::Do(Claimed::Range(claim)) => {
                worker.waiting_since = None;
                let pages = sizes[claim.0 as usize] / PAGE + 1;
                measured.end_requests += 2 * pages;
                let took = case.request * pages as u32;
                measured.busy += took;
                let phase = match worker.looks {
                    false => Phase::Transfer,
                    true => Phase::current_look(&folder).unwrap().unwrap(),
                };
                worker.in_hand = InHand::Range(claim, phase);
                events.push(Reverse((at + time.spent() + took, number)));
            }
            Next::Do(Claimed::Shard(claim)) => {
                worker.waiting_since = None;
                let shard = parts[&claim.0].clone();
                // Its entries, and its part, unless this worker has announced it.
                let (of, _) = crate::plan::parts_of(claim.0);
                let of = of.map(|(range, generation)| (u64::from(range), generation));
                let reads = if of == worker.listed { 1 } else { 2 };
                folder.count(reads, reads);
                let took = case.object.saturating_mul(shard.entries as u32);
                measured.end_requests += shard.entries;
                measured.busy += took;
                let begins = at + time.spent();
                first_object.get_or_insert(begins + case.request);
                // The next one is claimed meanwhile.
                time.begin(begins);
                worker.ahead = worker.units.next_ahead(case.workers).unwrap();
                let took = took.max(time.spent());
                worker.in_hand = InHand::Shard(claim, shard);
                events.push(Reverse((begins + took, number)));
            }
            Next::Wait => {
                worker.beat.state = WorkerState::Waiting;
                let since = *worker.waiting_since.get_or_insert(at);
                let gap = (at.saturating_sub(since) / 4)
                    .clamp(Duration::from_millis(50), heartbeat::interval(stale));
                events.push(Reverse((at + time.spent() + gap, number)));
            }
            Next::Over if !worker.looks => {
                let phase = Phase::begin_look(&folder).unwrap();
                worker.looks = true;
                worker.waiting_since = None;
                worker.units = queue(&phase, &worker.name);
                events.push(Reverse((at + time.spent(), number)));
            }
            Next::Over => {
                worker.beat.state = WorkerState::Ended;
                heartbeat::write(&folder, &worker.beat).unwrap();
                end = end.max(at + time.spent());
            }
        }
    }
    measured.work = end.saturating_sub(measured.plan);
    measured.first_object = first_object.unwrap_or_default();
    // Collect: what the look has found.
    time.begin(end);
    let phase = Phase::begin_look(&folder).unwrap();
    heartbeat::read_all(&folder).unwrap();
    let mut known = KnownRanges::new(parts_folder(&phase));
    known.update(&folder).unwrap();
    let (looked, damaged) = crate::ranges::read_parts(&folder, &known.files()).unwrap();
    assert_eq!((damaged, known.ended()), (0, plan.ranges() as usize), "the look is not whole");
    let removals: u64 =
        looked.iter().filter_map(|part| part.end.as_ref()).map(|end| end.removals).sum();
    // Each candidate is looked up at both ends, then they are removed by thousands.
    measured.end_requests += 2 * removals + removals.div_ceil(PAGE);
    time.spend(case.request * (2 * removals).div_ceil(AT_ONCE) as u32);
    measured.collect = time.spent();
    let done = known_results(&folder);
    measured.shards = parts.len() as u64;
    assert!(parts.keys().all(|number| done.has(*number)), "a shard has no result");
    measured.folder_requests = folder.requests.load(Ordering::Relaxed);
    measured
}

fn known_results(folder: &SimulatedFolder<'_>) -> crate::results::DoneShards {
    let mut done = crate::results::DoneShards::new(&Phase::Transfer);
    done.update(folder).unwrap();
    done
}

#[test]
fn every_shard_is_done_once_and_little_is_done_alone() {
    for (workers, changed) in [(8, 0.1), (64, 1.0), (8, 0.0)] {
        let case = Case::new(10_000_000, workers, changed);
        let measured = simulate(&case);
        assert_eq!(measured.results, measured.shards, "{measured:?}");
        assert!(measured.serial() <= 0.02, "{workers} {changed}: {measured:?}");
        assert!(measured.first_object <= Duration::from_secs(5), "{measured:?}");
        if changed == 0.0 {
            // Two listings of both ends, and little more.
            let all = measured.end_requests + measured.folder_requests;
            assert!(all <= 2 * 2 * 10_000 * 5 / 4, "{all} requests");
        }
    }
}

#[test]
fn what_killed_workers_have_left_is_done_by_others() {
    for seed in 0..8 {
        let case = Case { killed: 5, seed, ..Case::new(2_000_000, 16, 0.5) };
        let measured = simulate(&case);
        let again = measured.results - measured.shards.min(measured.results);
        assert!(again <= 3 * case.killed, "{seed}: {measured:?}");
    }
}

/// The table of docs/scale.md.
#[test]
fn the_document_has_what_is_simulated() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scale.md");
    let Some(cases) = std::env::var_os("HAKOBU_SIMULATE") else {
        // It takes minutes and gigabytes: the document says how it was made.
        return;
    };
    let mut table = String::new();
    let million = |names: u64| names / 1_000_000;
    let all = [
        (10_000_000, 64, 0.0),
        (10_000_000, 64, 0.1),
        (10_000_000, 1000, 0.1),
        (100_000_000, 64, 0.1),
        (100_000_000, 1000, 0.1),
        (1_000_000_000, 64, 0.01),
        (1_000_000_000, 1000, 0.0),
        (1_000_000_000, 1000, 0.01),
        (1_000_000_000, 1000, 0.1),
    ];
    let most: u64 = cases.to_str().and_then(|most| most.parse().ok()).unwrap_or(u64::MAX);
    for (names, workers, changed) in all.into_iter().filter(|(names, ..)| *names <= most) {
        let measured = simulate(&Case { extraneous: 0.0001, ..Case::new(names, workers, changed) });
        let busy = measured.busy.as_secs_f64() / (measured.work.as_secs_f64() * workers as f64);
        writeln!(
            table,
            "| {} | {workers} | {:.0} % | {} | {:.1} s | {:.1} s | {:.0} s | {:.1} s | {:.2} % | {:.0} % | {} | {} |",
            million(names),
            changed * 100.0,
            measured.ranges,
            measured.plan.as_secs_f64(),
            measured.first_object.as_secs_f64(),
            measured.work.as_secs_f64(),
            measured.collect.as_secs_f64(),
            measured.serial() * 100.0,
            busy * 100.0,
            measured.end_requests,
            measured.folder_requests,
        )
        .unwrap();
    }
    let document = std::fs::read_to_string(path).unwrap();
    let (begin, end) = ("<!-- simulated -->\n", "<!-- end of simulated -->\n");
    let (before, rest) = document.split_once(begin).unwrap();
    let (old, after) = rest.split_once(end).unwrap();
    let head: String = old.lines().take(2).map(|line| format!("{line}\n")).collect();
    std::fs::write(path, format!("{before}{begin}{head}{table}{end}{after}")).unwrap();
}
