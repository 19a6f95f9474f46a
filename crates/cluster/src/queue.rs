//! The next unit of a worker: a shard that is known to be free, or else a range to list, or else what a worker that is
//! gone has left. All that it knows comes from the run folder, and it reads a clock only through [`Clock`]: simulations
//! run many of them.

use crate::claims::{ClaimId, Claims, Clock, KnownResults};
use crate::folder::{RunError, RunFolder};
use crate::plan::{ClusterPlan, Phase, ShardNumber, shard_number};
use crate::ranges::{KnownRanges, RangePart, parts_folder};
use crate::results::DoneShards;
use std::time::{Duration, Instant};

/// Workers that wait look for what others have left. All of them together take about as many looks however many they
/// are: each waits for this time, multiplied by the square of their number, as a look reads something of every worker.
const CHECK_EVERY: Duration = Duration::from_millis(1);
/// The same for what others have announced, which costs a listing.
const LEARN_EVERY: Duration = Duration::from_micros(10);
/// From this time between looks on, the first look of a worker comes at a random time of it.
const SPREAD_FROM: Duration = Duration::from_millis(100);
/// A look, or a listing, is made again after so many times its duration.
const PAUSE: u32 = 8;

/// A unit that was claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claimed {
    Shard(ClaimId),
    /// Number of the range and generation of the claim.
    Range(ClaimId),
}

/// What a worker does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Do(Claimed),
    /// Others have all that is left.
    Wait,
    /// Everything is done.
    Over,
}

/// Time at which something is done again.
#[derive(Clone, Copy, Default)]
struct Due(Option<Instant>);

impl Due {
    fn is_now(self, now: Instant) -> bool {
        self.0.is_none_or(|at| now >= at)
    }

    /// Sets the time after something that began at `began` and ended now.
    fn set(&mut self, began: Instant, now: Instant, least: Duration) {
        let took = now.saturating_duration_since(began);
        // Workers that began to wait together come apart.
        let spread = least.mul_f64(0.5 + fastrand::f64());
        self.0 = Some(now + took.saturating_mul(PAUSE).max(spread));
    }
}

/// Ranges of a plan, for one phase.
struct RangeQueue<'a> {
    claims: Claims<'a>,
    known: KnownRanges,
}

/// Units of a phase as one worker knows them.
pub(crate) struct UnitQueue<'a> {
    folder: &'a dyn RunFolder,
    plan: &'a ClusterPlan,
    clock: Clock<'a>,
    shards: Claims<'a>,
    done: DoneShards,
    ranges: Option<RangeQueue<'a>>,
    /// Ranges are claimed as well; a verification only reads what they announced.
    lists: bool,
    /// Shards of ranges are claimed; a look only lists.
    works: bool,
    /// The file that says that everything is done; `None` where this worker has to see it for itself.
    finished: Option<String>,
    learn: Due,
    check: Due,
    /// Nothing was claimed since the last wait.
    waited: bool,
}

impl<'a> UnitQueue<'a> {
    /// Nothing is known yet. `stale`: time without a sign of life after which another worker counts as gone; `last_word`:
    /// what others say of the end is not believed.
    pub fn new(
        folder: &'a dyn RunFolder,
        (plan, phase): (&'a ClusterPlan, &Phase),
        clock: Clock<'a>,
        stale: Duration,
        worker: &str,
        last_word: bool,
    ) -> UnitQueue<'a> {
        let is_look = matches!(phase, Phase::Look(_));
        let claims = |claims: String| Claims::new(folder, claims, clock, stale, worker);
        let mut shards = claims(phase.claims());
        let known = plan.shards.iter().enumerate().filter(|_| !is_look);
        shards.add(known.map(|(number, shard)| (number as u64, shard.cost)));
        let ranges = (plan.ranges() > 0).then(|| {
            let mut claims = claims(if is_look { phase.claims() } else { "range-claims".into() });
            claims.add((0..plan.ranges()).map(|range| (u64::from(range), 0)));
            RangeQueue { claims, known: KnownRanges::new(parts_folder(phase)) }
        });
        UnitQueue {
            folder,
            plan,
            clock,
            shards,
            done: DoneShards::new(phase),
            ranges,
            lists: !matches!(phase, Phase::Verify(_)),
            works: !is_look,
            finished: (!last_word).then(|| format!("finished-{}.json", phase.results())),
            learn: Due::default(),
            check: Due::default(),
            waited: false,
        }
    }

    /// Returns whether all that is known is done, and no range is left to list.
    fn is_all_done(&self) -> bool {
        let listed = |ranges: &RangeQueue<'_>| !self.lists || ranges.claims.is_all_done();
        self.shards.is_all_done() && self.ranges.as_ref().is_none_or(listed)
    }

    /// Claims a unit.
    ///
    /// # Errors
    /// Those of the run folder.
    pub fn next(&mut self) -> Result<Next, RunError> {
        if let Some(claim) = self.shards.next_free()? {
            return Ok(self.take(Claimed::Shard(claim)));
        }
        if self.lists
            && let Some(ranges) = &mut self.ranges
            && let Some(claim) = ranges.claims.next_free()?
        {
            return Ok(self.take(Claimed::Range(claim)));
        }
        if let Some(finished) = &self.finished
            && self.waited
            && self.folder.read(finished)?.is_some()
        {
            return Ok(Next::Over);
        }
        if self.learn.is_now((self.clock)())
            && self.learn()?
            && let Some(claim) = self.shards.next_free()?
        {
            return Ok(self.take(Claimed::Shard(claim)));
        }
        let least = self.per_workers(CHECK_EVERY);
        if !self.waited && least >= SPREAD_FROM {
            // Many workers begin to wait at the same time.
            self.check.0 = Some((self.clock)() + least.mul_f64(fastrand::f64()));
        }
        if !self.check.is_now((self.clock)()) {
            return Ok(self.wait());
        }
        let began = (self.clock)();
        let mut claimed = self.shards.reclaim(&mut self.done)?.map(Claimed::Shard);
        if claimed.is_none()
            && self.lists
            && let Some(ranges) = &mut self.ranges
        {
            claimed = ranges.claims.reclaim(&mut ranges.known)?.map(Claimed::Range);
            self.learned();
        }
        self.check.set(began, (self.clock)(), least);
        if let Some(claimed) = claimed {
            return Ok(self.take(claimed));
        }
        if !self.is_all_done() {
            return Ok(self.wait());
        }
        if let Some(finished) = &self.finished {
            // Others learn of it without a look of their own.
            self.folder.create(finished, b"{}\n")?;
        }
        Ok(Next::Over)
    }

    fn take(&mut self, claimed: Claimed) -> Next {
        self.waited = false;
        Next::Do(claimed)
    }

    fn wait(&mut self) -> Next {
        self.waited = true;
        Next::Wait
    }

    /// A time for each pair of workers.
    fn per_workers(&self, each: Duration) -> Duration {
        let workers = u32::try_from(self.shards.workers().max(1)).unwrap_or(u32::MAX);
        each.saturating_mul(workers.saturating_mul(workers))
    }

    /// Learns of shards that were announced, and of ranges that were listed; whether there are new shards.
    fn learn(&mut self) -> Result<bool, RunError> {
        let Some(ranges) = &mut self.ranges else { return Ok(false) };
        let began = (self.clock)();
        ranges.known.update(self.folder)?;
        let found = self.learned();
        let least = self.per_workers(LEARN_EVERY);
        self.learn.set(began, (self.clock)(), least);
        Ok(found)
    }

    /// Takes over what is known of ranges; whether there are new shards.
    fn learned(&mut self) -> bool {
        let Some(ranges) = &mut self.ranges else { return false };
        ranges.claims.note_done(&ranges.known);
        let new = ranges.known.take_new_shards();
        let found = self.works && !new.is_empty();
        if found {
            self.shards.add(new);
        }
        found
    }

    /// Notes that this worker has listed a range, and announced its shards in these parts: it goes on with them.
    pub fn listed(&mut self, (range, generation): ClaimId, parts: &[RangePart]) {
        if let Some(ranges) = &mut self.ranges {
            ranges.claims.finished(range);
            parts.iter().for_each(|part| ranges.known.note(&part.name()));
        }
        self.learned();
        let range = u32::try_from(range).unwrap_or(u32::MAX);
        self.shards.prefer(shard_number(range, generation, 0));
    }

    /// Notes that a shard is done.
    pub fn finished(&mut self, number: ShardNumber) {
        self.shards.finished(number);
    }

    /// Claims a shard while another one is in hand: only where so many are left that no other worker will lack one.
    ///
    /// # Errors
    /// Those of the run folder.
    pub fn next_ahead(&mut self, workers: u64) -> Result<Option<ClaimId>, RunError> {
        self.shards.next_ahead(workers)
    }

    /// Reads the part of a range with a shard.
    ///
    /// # Errors
    /// Those of the run folder.
    pub fn read_part(&self, number: ShardNumber) -> Result<Option<RangePart>, RunError> {
        match &self.ranges {
            Some(ranges) => ranges.known.read_part(self.folder, number),
            None => Ok(None),
        }
    }

    /// Returns whether shards come from ranges.
    pub fn has_ranges(&self) -> bool {
        self.plan.ranges() > 0
    }
}
