//! Claims: a worker says that it works on a shard, or on a range. They keep workers apart and guarantee nothing. A worker
//! lists claims and results now and then, and claims one of the most expensive units that are left. It does not know what
//! workers do with them.

use crate::folder::{self, RunError, RunFolder};
use crate::heartbeat::{self, CounterWatch, Heartbeat, WorkerState};
use crate::plan::{ShardNumber, class, number_text, parse_number};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// Unclaimed shards for each worker that one is picked from, where their costs differ: others pick from the same end. More
/// of them cost fewer lost claims, and leave larger shards to the end.
const CHOICE_PER_WORKER: usize = 2;
/// The fewest, and the most.
const CHOICE: RangeInclusive<usize> = 4..=256;
/// Unclaimed shards for each other worker that stay when one is claimed ahead of its time: one that they take next, and
/// one that they may claim ahead themselves.
const AHEAD_PER_WORKER: usize = 2;
/// Claims in a row that others were faster with, after which claims are looked at before the next one.
const MISSES_LOOK: u32 = 2;
/// The same, after which all claims are listed anew.
const MISSES_MAX: u32 = 8;
/// A worker without a free shard lists claims or results again after so many times the duration of the listing before, so
/// that workers that wait leave the folder to the others.
const PAUSE: u32 = 8;
/// Units without a known result up to which claims and results are looked at whenever a worker finds nothing to claim.
const MISSING_MAX: usize = 64;
/// Claims of others that a worker without a free unit watches: each takes others of them, so that together they watch
/// all.
const WATCHED_MAX: usize = 64;

/// Number of a unit (a shard, or a range) and generation of the claim on it. Generation 0 is the first claim on a unit;
/// each later one redoes what the one before seems to have left.
pub type ClaimId = (ShardNumber, u32);

/// Results of the units of a phase, as far as they are known.
pub(crate) trait KnownResults {
    /// Reads what was written since the last call.
    ///
    /// # Errors
    /// Those of the run folder.
    fn update(&mut self, folder: &dyn RunFolder) -> Result<(), RunError>;

    /// Returns whether a unit has a result.
    fn has(&self, number: ShardNumber) -> bool;

    /// Reads all results of a worker that has ended, also those that a listing does not have yet.
    ///
    /// # Errors
    /// Those of the run folder.
    fn read_all_of(&mut self, folder: &dyn RunFolder, worker: &str) -> Result<(), RunError>;
}

/// Reads a clock that only goes forward. Simulations have their own.
pub(crate) type Clock<'a> = &'a (dyn Fn() -> Instant + Sync);

/// A unit that can be claimed, in the order in which they are: the most expensive classes first, so that what is left at
/// the end is small; in a class in the order of the tree.
type Unit = (Reverse<u64>, ShardNumber);

/// A claim on a shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// A random text: a worker whose try was repeated on the way recognises its own claim.
    pub token: String,
    /// The worker; see [`crate::heartbeat::Heartbeat`].
    pub worker: String,
}

/// Number and generation of a claim, from its file's name.
pub fn parse(name: &str) -> Option<ClaimId> {
    let (number, generation) = name.split_once('.')?;
    Some((parse_number(number)?, generation.parse().ok()?))
}

fn name(claims: &str, (number, generation): ClaimId) -> String {
    format!("{claims}/{}.{generation}", number_text(number))
}

/// Claims a shard in the folder `claims`; whether it is ours now. A claim that is there is read: it is ours if it has our
/// token, because the answer to an earlier try may have been lost.
pub fn take(
    folder: &dyn RunFolder,
    claims: &str,
    claimed: ClaimId,
    worker: &str,
) -> Result<bool, RunError> {
    let claim = Claim { token: folder::random_name()?, worker: worker.to_owned() };
    let content = folder::json(&claim)?;
    Ok(folder.create(&name(claims, claimed), &content)?
        || read(folder, claims, claimed)?.as_ref() == Some(&claim))
}

/// Reads a claim; `None` where it is not there, or not written yet.
pub fn read(
    folder: &dyn RunFolder,
    claims: &str,
    claimed: ClaimId,
) -> Result<Option<Claim>, RunError> {
    folder::parsed(folder, &name(claims, claimed))
}

/// Gives a claim back: another worker can take it at once.
pub fn give_back(folder: &dyn RunFolder, claims: &str, claimed: ClaimId) -> Result<(), RunError> {
    folder.remove(&name(claims, claimed))
}

/// A listing that was made: its end and its duration.
type Listing = Option<(Instant, Duration)>;

/// Claims and results as a worker knows them, and its choice of the next unit.
pub(crate) struct Claims<'a> {
    folder: &'a dyn RunFolder,
    /// Folder of the claims.
    claims_folder: String,
    clock: Clock<'a>,
    /// A worker without a sign of life for so long counts as gone.
    stale: Duration,
    worker: String,
    order: Vec<Unit>,
    /// Latest generation of the claims on a unit.
    claimed: HashMap<ShardNumber, u32>,
    done: HashSet<ShardNumber>,
    misses: u32,
    claims: Listing,
    results: Listing,
    /// Units before this one in `order` are claimed or done.
    first: usize,
    /// The unit after the one that was claimed last.
    next: Option<Unit>,
    /// Workers that have said that they are there.
    workers: usize,
    watch: CounterWatch,
    /// Workers of claims that were read.
    owners: HashMap<ClaimId, String>,
}

impl<'a> Claims<'a> {
    /// Nothing is known yet. `claims_folder`: where the claims are; `worker`: the name in claims; `stale`: time without a
    /// sign of life after which another worker counts as gone.
    pub fn new(
        folder: &'a dyn RunFolder,
        claims_folder: String,
        clock: Clock<'a>,
        stale: Duration,
        worker: &str,
    ) -> Claims<'a> {
        Claims {
            folder,
            claims_folder,
            clock,
            stale,
            worker: worker.to_owned(),
            order: Vec::new(),
            claimed: HashMap::new(),
            done: HashSet::new(),
            misses: 0,
            claims: None,
            results: None,
            first: 0,
            next: None,
            workers: 0,
            watch: CounterWatch::default(),
            owners: HashMap::new(),
        }
    }

    /// Adds units that can be claimed, each with its cost.
    pub fn add(&mut self, units: impl IntoIterator<Item = (ShardNumber, u64)>) {
        self.order.extend(units.into_iter().map(|(number, cost)| (Reverse(class(cost)), number)));
        // Two sorted runs: this sort merges them.
        self.order.sort();
        self.order.dedup();
        self.first = 0;
    }

    /// Returns whether all units that were added are known to be done.
    pub fn is_all_done(&self) -> bool {
        self.missing() == 0
    }

    /// Number of units without a known result.
    fn missing(&self) -> usize {
        self.order.iter().filter(|(_, number)| !self.done.contains(number)).count()
    }

    /// Notes that a unit is done.
    pub fn finished(&mut self, number: ShardNumber) {
        self.done.insert(number);
    }

    /// Returns the number of workers that have said that they are there, as far as is known.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Goes on at a unit, if it is free when the next one is claimed.
    pub fn prefer(&mut self, number: ShardNumber) {
        self.next = self.order.iter().find(|(_, known)| *known == number).copied();
    }

    /// Whether a worker without a free unit makes a listing again.
    fn is_due(&self, listing: Listing) -> bool {
        let since = |end: Instant| (self.clock)().saturating_duration_since(end);
        listing.is_none_or(|(end, took)| since(end) >= took.saturating_mul(PAUSE))
    }

    /// Claims a unit without a claim; `None` where none is known.
    pub fn next_free(&mut self) -> Result<Option<ClaimId>, RunError> {
        if self.order.is_empty() {
            return Ok(None);
        }
        loop {
            self.refresh()?;
            // Claims that were given back are free again. Of few units `reclaim` sees that without a listing.
            if self.free().is_none() && self.missing() > MISSING_MAX && self.is_due(self.claims) {
                self.list_claims()?;
            }
            let Some(at) = self.free() else { return Ok(None) };
            if let Some(claimed) = self.claim(at)? {
                return Ok(Some(claimed));
            }
        }
    }

    /// Claims a unit while another one is in hand; `None` where one of `workers` could lack one for that, as far as is
    /// known, and where another worker was faster.
    pub fn next_ahead(&mut self, workers: u64) -> Result<Option<ClaimId>, RunError> {
        if self.order.is_empty() {
            return Ok(None);
        }
        self.refresh()?;
        let Some(at) = self.free() else { return Ok(None) };
        let workers = usize::try_from(workers).unwrap_or(usize::MAX).max(self.workers);
        let spare = workers.saturating_sub(1).saturating_mul(AHEAD_PER_WORKER);
        match (self.first..self.order.len()).filter(|at| self.is_free(*at)).nth(spare) {
            Some(_) => self.claim(at),
            None => Ok(None),
        }
    }

    /// Claims the unit at a place in the order; `None` where another worker was faster.
    fn claim(&mut self, at: usize) -> Result<Option<ClaimId>, RunError> {
        let Some((_, number)) = self.order.get(at).copied() else { return Ok(None) };
        let ours = self.try_claim((number, 0))?;
        self.claimed.insert(number, 0);
        let next = self.order.get(at + 1).copied();
        (self.misses, self.next) = if ours { (0, next) } else { (self.misses + 1, None) };
        Ok(ours.then_some((number, 0)))
    }

    fn is_free(&self, at: usize) -> bool {
        let unit = self.order.get(at);
        unit.is_some_and(|(_, n)| !self.claimed.contains_key(n) && !self.done.contains(n))
    }

    /// The place in the order of a unit without a known claim. Among units of like cost a worker goes on where it is,
    /// so that workers seldom meet: each has a part of the tree. Otherwise it picks any of the first ones.
    fn free(&mut self) -> Option<usize> {
        let all = self.order.len();
        self.first = (self.first..all).find(|at| self.is_free(*at)).unwrap_or(all);
        let (class, _) = *self.order.get(self.first)?;
        let alike = self.order.partition_point(|(of, _)| *of <= class);
        let next = self.next.and_then(|next| self.order.binary_search(&next).ok());
        if let Some(next) = next
            && (self.first..alike).contains(&next)
            && self.is_free(next)
        {
            return Some(next);
        }
        fastrand::choice(self.choice(alike))
    }

    /// Places of units without a known claim: those before `alike`, and a few in any case.
    fn choice(&self, alike: usize) -> Vec<usize> {
        let few = (self.workers * CHOICE_PER_WORKER).clamp(*CHOICE.start(), *CHOICE.end());
        let free = (self.first..self.order.len()).filter(|at| self.is_free(*at)).enumerate();
        free.take_while(|(n, at)| *n < few || *at < alike).map(|(_, at)| at).collect()
    }

    /// Lists workers and claims.
    fn list(&mut self) -> Result<(), RunError> {
        self.workers = self.folder.names("workers")?.len();
        self.list_claims()
    }

    fn list_claims(&mut self) -> Result<(), RunError> {
        let began = (self.clock)();
        (self.misses, self.first) = (0, 0);
        self.claimed.clear();
        let claims = self.folder.names(&self.claims_folder)?;
        self.note(&claims);
        let end = (self.clock)();
        self.claims = Some((end, end.saturating_duration_since(began)));
        Ok(())
    }

    /// Notes claims by their names; the largest number among them.
    fn note(&mut self, claims: &[String]) -> Option<ShardNumber> {
        let claims = claims.iter().filter_map(|name| parse(name));
        claims.fold(None, |last, (number, generation)| {
            let latest = self.claimed.entry(number).or_insert(generation);
            *latest = generation.max(*latest);
            last.max(Some(number))
        })
    }

    /// Renews what is known of claims where that led to misses.
    fn refresh(&mut self) -> Result<(), RunError> {
        match self.misses {
            _ if self.claims.is_none() => self.list(),
            MISSES_MAX.. => self.list(),
            MISSES_LOOK.. => self.find_gap(),
            _ => Ok(()),
        }
    }

    /// Finds a shard without a claim: it lists a page of claims from the one of any shard on that seems to have none. That
    /// costs less than to list all claims, and where most are taken, less than to try one after another. A page without a
    /// free shard is a sign that few are left: then all claims are listed, as more pages from other places would take as
    /// many requests and find the same few.
    fn find_gap(&mut self) -> Result<(), RunError> {
        let Some(at) = self.free() else { return Ok(()) };
        let Some((_, number)) = self.order.get(at).copied() else { return Ok(()) };
        let names = self.folder.names_after(&self.claims_folder, &number_text(number))?;
        let last = self.note(&names);
        // Beyond the last one nothing is known.
        let known = |at: &usize| self.order.get(*at).map(|(_, n)| *n) <= last.max(Some(number));
        let after = (at..self.order.len()).take_while(known);
        let free: Vec<usize> = after.filter(|at| self.is_free(*at)).collect();
        // Another worker goes on where a gap begins.
        let gap = free.chunk_by(|one, next| one + 1 == *next).max_by_key(|gap| gap.len());
        match gap.and_then(|gap| gap.get(gap.len() / 2)) {
            Some(at) => self.next = self.order.get(*at).copied(),
            None => self.list_claims()?,
        }
        Ok(())
    }

    fn try_claim(&self, claimed: ClaimId) -> Result<bool, RunError> {
        take(self.folder, &self.claims_folder, claimed, &self.worker)
    }

    /// Notes results that are there by now; false where many are missing and it is too early to read them.
    fn find_results(&mut self, results: &mut dyn KnownResults) -> Result<bool, RunError> {
        if self.missing() > MISSING_MAX && !self.is_due(self.results) {
            return Ok(false);
        }
        let began = (self.clock)();
        results.update(self.folder)?;
        self.note_done(results);
        let end = (self.clock)();
        self.results = Some((end, end.saturating_duration_since(began)));
        Ok(true)
    }

    /// Takes over results that are known already.
    pub fn note_done(&mut self, results: &dyn KnownResults) {
        let done = self.order.iter().map(|(_, number)| *number).filter(|n| results.has(*n));
        self.done.extend(done);
    }

    /// Claims of others that this worker watches.
    fn watched(&self) -> Vec<ClaimId> {
        let units = self.order.iter().map(|(_, number)| *number);
        let open = units.filter(|number| !self.done.contains(number));
        let mut claimed: Vec<ClaimId> =
            open.filter_map(|n| Some((n, *self.claimed.get(&n)?))).collect();
        if claimed.len() > WATCHED_MAX {
            let draw = |claimed: &ClaimId| {
                let mut hasher = DefaultHasher::new();
                (&self.worker, claimed).hash(&mut hasher);
                hasher.finish()
            };
            claimed.sort_by_cached_key(draw);
            claimed.truncate(WATCHED_MAX);
        }
        claimed
    }

    /// Claims a unit anew whose worker is gone or has given it back.
    pub fn reclaim(&mut self, results: &mut dyn KnownResults) -> Result<Option<ClaimId>, RunError> {
        if self.order.is_empty() || !self.find_results(results)? {
            return Ok(None);
        }
        let folder = self.folder;
        let mut counters: HashMap<String, Option<Heartbeat>> = HashMap::new();
        for claimed @ (number, generation) in self.watched() {
            let worker = match self.owners.get(&claimed) {
                Some(worker) => worker.clone(),
                None => match read(folder, &self.claims_folder, claimed)? {
                    Some(Claim { worker, .. }) => {
                        self.owners.insert(claimed, worker.clone());
                        worker
                    }
                    // It was given back.
                    None if self.try_claim(claimed)? => return Ok(Some(claimed)),
                    // It is not whole yet, and is read again.
                    None => String::new(),
                },
            };
            let beat = match counters.entry(worker.clone()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => place.insert(heartbeat::read(folder, &worker)?),
            };
            let beat = beat.as_ref();
            let gone = beat
                .is_some_and(|beat| beat.state == WorkerState::Ended || heartbeat::is_dead(beat));
            let counter = beat.map_or(0, |beat| beat.counter);
            let key = format!("{number}.{generation} {worker}");
            let still = self.watch.still_for(&key, counter, (self.clock)());
            let stale = beat.map_or(self.stale, |beat| beat.stale(self.stale));
            if !gone && still < stale {
                continue;
            }
            // It may have been given back, and claimed by another one.
            let claim = read(folder, &self.claims_folder, claimed)?;
            if claim.map(|claim| claim.worker).unwrap_or_default() != worker {
                self.owners.remove(&claimed);
                continue;
            }
            // It may have ended after the results were looked for: they are written before that.
            results.read_all_of(folder, &worker)?;
            if results.has(number) {
                self.done.insert(number);
                continue;
            }
            let next = (number, generation + 1);
            let ours = self.try_claim(next)?;
            self.claimed.insert(number, next.1);
            if ours {
                return Ok(Some(next));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
