//! Choice of the next shard: a worker lists claims and results now and then, and claims one of the most expensive
//! shards that are left. It knows nothing of what is done with them.

use crate::beat::{self, Beat, State, Watch};
use crate::claim;
use crate::folder::{Folder, Trouble};
use crate::phase::Phase;
use crate::plan::{Plan, number_text};
use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// Unclaimed shards for each worker that one is picked from: others pick from the same end. More of
/// them cost fewer lost claims, and leave larger shards to the end.
const CHOICE_PER_WORKER: usize = 2;
/// The fewest, and the most.
const CHOICE: RangeInclusive<usize> = 4..=256;
/// The most where further ones cost at least three quarters of the first: which of them is last makes no difference, and
/// 64 workers lose most claims on 128 shards.
const CHOICE_ALIKE: usize = 1024;
/// Claims in a row that others were faster with, after which the claims are listed anew.
const MISSES_MAX: u32 = 8;

/// Number of a shard and generation of the claim on it.
pub(crate) type Claimed = (u32, u32);

/// Shards as a worker knows them.
pub(crate) struct Choice<'a> {
    folder: &'a dyn Folder,
    plan: &'a Plan,
    phase: &'a Phase,
    /// A worker without a sign of life for so long counts as gone.
    stale: Duration,
    /// Name of this worker.
    worker: String,
    order: Vec<u32>,
    /// Latest generation of the claims on a shard.
    claimed: HashMap<u32, u32>,
    done: HashSet<u32>,
    misses: u32,
    /// Claims and results were listed.
    listed: bool,
    /// Shards before this one in `order` are claimed or done.
    first: usize,
    /// Workers that have said that they are there.
    workers: usize,
    watch: Watch,
}

impl<'a> Choice<'a> {
    /// Nothing is known yet. `worker`: the name in claims; `stale`: time without a sign of life after which another
    /// worker counts as gone.
    pub fn new(
        folder: &'a dyn Folder,
        (plan, phase): (&'a Plan, &'a Phase),
        stale: Duration,
        worker: &str,
    ) -> Choice<'a> {
        Choice {
            folder,
            plan,
            phase,
            stale,
            worker: worker.to_owned(),
            order: plan.order(),
            claimed: HashMap::new(),
            done: HashSet::new(),
            misses: 0,
            listed: false,
            first: 0,
            workers: 0,
            watch: Watch::default(),
        }
    }

    /// Returns whether all shards are known to be done.
    pub fn is_all_done(&self) -> bool {
        self.done.len() >= self.order.len()
    }

    /// Notes that a shard is done.
    pub fn finished(&mut self, number: u32) {
        self.done.insert(number);
    }

    /// Claims a shard: one without a claim, else one whose worker is gone; `None` where there is none now.
    ///
    /// # Errors
    /// The folder's.
    pub fn next(&mut self) -> Result<Option<Claimed>, Trouble> {
        loop {
            let mut free = self.free();
            if !self.listed || self.misses >= MISSES_MAX || free.is_empty() {
                self.refresh()?;
                free = self.free();
            }
            if free.is_empty() {
                return self.left();
            }
            if let Some(claimed) = self.pick(&free)? {
                return Ok(Some(claimed));
            }
        }
    }

    /// Claims one of these; `None` where another worker was faster.
    fn pick(&mut self, free: &[u32]) -> Result<Option<Claimed>, Trouble> {
        let Some(number) = free.get(fastrand::usize(..free.len().max(1))).copied() else {
            return Ok(None);
        };
        let ours = self.take(number, 0)?;
        self.claimed.insert(number, 0);
        self.misses += u32::from(!ours);
        Ok(ours.then_some((number, 0)))
    }

    /// The first shards without a known claim.
    fn free(&mut self) -> Vec<u32> {
        let Choice { order, claimed, done, first, workers, plan, .. } = self;
        let is_free = |n: &u32| !claimed.contains_key(n) && !done.contains(n);
        let rest = order.get(*first..).unwrap_or_default();
        *first += rest.iter().position(is_free).unwrap_or(rest.len());
        let choice = (*workers * CHOICE_PER_WORKER).clamp(*CHOICE.start(), *CHOICE.end());
        let rest = order.get(*first..).unwrap_or_default();
        let cost = |n: &u32| plan.shards.get(*n as usize).map_or(0, |shard| shard.cost);
        let alike = rest.first().map_or(0, cost) / 4 * 3;
        let is_choice =
            |(at, n): &(usize, &u32)| *at < choice || *at < CHOICE_ALIKE && cost(n) >= alike;
        let free = rest.iter().filter(|n| is_free(n)).enumerate().take_while(is_choice);
        free.map(|(_, n)| *n).collect()
    }

    fn refresh(&mut self) -> Result<(), Trouble> {
        (self.misses, self.listed, self.first) = (0, true, 0);
        self.workers = self.folder.names("workers")?.len();
        // Claims that were given back are free again.
        self.claimed.clear();
        let claims = self.folder.names(&self.phase.claims())?;
        for (number, generation) in claims.iter().filter_map(|name| claim::parse(name)) {
            let latest = self.claimed.entry(number).or_insert(generation);
            *latest = generation.max(*latest);
        }
        let all = self.order.len();
        for name in self.folder.names(&self.phase.results())? {
            let number = name.strip_suffix(".json").and_then(|number| number.parse().ok());
            self.done.extend(number.filter(|n: &u32| all > *n as usize));
        }
        Ok(())
    }

    fn take(&self, number: u32, generation: u32) -> Result<bool, Trouble> {
        claim::take(self.folder, &self.phase.claims(), number, generation, &self.worker)
    }

    /// Claims a shard anew whose worker is gone.
    fn left(&mut self) -> Result<Option<Claimed>, Trouble> {
        let (folder, claims) = (self.folder, self.phase.claims());
        let mut counters: HashMap<String, Option<Beat>> = HashMap::new();
        let claimed = self.claimed.iter().filter(|(number, _)| !self.done.contains(number));
        let claimed: Vec<Claimed> = claimed.map(|(n, generation)| (*n, *generation)).collect();
        for (number, generation) in claimed {
            let claim = claim::read(folder, &claims, number, generation)?;
            let worker = claim.map(|claim| claim.worker).unwrap_or_default();
            let beat = match counters.get(&worker) {
                Some(known) => known.clone(),
                None => {
                    let read = beat::read(folder, &worker)?;
                    counters.insert(worker.clone(), read.clone());
                    read
                }
            };
            let beat = beat.as_ref();
            let gone = beat.is_some_and(|beat| beat.state == State::Ended || beat::is_dead(beat));
            let counter = beat.map_or(0, |beat| beat.counter);
            let key = format!("{number}.{generation} {worker}");
            let still = self.watch.still_for(&key, counter, Instant::now());
            let stale = beat.map_or(self.stale, |beat| beat.stale(self.stale));
            if !gone && still < stale {
                continue;
            }
            // It may have ended after the results were listed: they are written before that.
            let result = format!("{}/{}.json", self.phase.results(), number_text(number));
            if folder.read(&result)?.is_some() {
                self.done.insert(number);
                continue;
            }
            let next = generation + 1;
            let ours = self.take(number, next)?;
            self.claimed.insert(number, next);
            if ours {
                return Ok(Some((number, next)));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::Local;
    use crate::plan::Shard;

    /// A run folder, and a plan whose shards have these costs.
    struct Run {
        folder: Local,
        plan: Plan,
        _place: tempfile::TempDir,
    }

    impl Run {
        fn new(costs: impl IntoIterator<Item = u64>) -> Run {
            let place = tempfile::tempdir().unwrap();
            let folder = Local::open(&place.path().join("run"), true).unwrap();
            let shards = costs.into_iter().map(|cost| Shard { cost, ..Shard::default() });
            Run {
                folder,
                plan: Plan { shards: shards.collect(), ..Plan::default() },
                _place: place,
            }
        }

        /// A worker that has said that it is there.
        fn worker(&self, name: &str) -> Choice<'_> {
            let beat = Beat { worker: name.to_owned(), ..Beat::default() };
            let content = crate::folder::json(&beat).unwrap();
            self.folder.replace(&format!("workers/{name}.json"), &content).unwrap();
            let hour = Duration::from_secs(3600);
            Choice::new(&self.folder, (&self.plan, &Phase::Transfer), hour, name)
        }
    }

    /// Number of shards that the only worker picks its first one from.
    fn choice_of(costs: impl IntoIterator<Item = u64>) -> usize {
        let run = Run::new(costs);
        let mut worker = run.worker("a");
        worker.refresh().unwrap();
        worker.free().len()
    }

    #[test]
    fn shards_of_like_cost_are_all_in_the_choice() {
        assert_eq!(choice_of((0..40).map(|n| 1 << n)), *CHOICE.start());
        let steps = [(300, 100), (300, 75), (300, 74)];
        let costs = steps.iter().flat_map(|(count, cost)| std::iter::repeat_n(*cost, *count));
        assert_eq!(choice_of(costs), 600);
        assert_eq!(choice_of(std::iter::repeat_n(100, 5000)), CHOICE_ALIKE);
        assert_eq!(choice_of([100, 100]), 2);
        assert_eq!(choice_of([]), 0);
    }

    #[test]
    fn each_shard_is_claimed_once() {
        let run = Run::new([5, 4, 3, 2, 1]);
        let (mut a, mut b) = (run.worker("a"), run.worker("b"));
        let mut seen = Vec::new();
        while let Some((number, generation)) = a.next().unwrap() {
            assert_eq!(generation, 0);
            seen.push(number);
            seen.extend(b.next().unwrap().map(|(number, _)| number));
        }
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2, 3, 4]);
        assert!(b.next().unwrap().is_none() && !b.is_all_done());
    }
}
