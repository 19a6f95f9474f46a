//! Claims: a worker says that it works on a shard. They keep workers apart and guarantee nothing. A worker lists claims
//! and results now and then, and claims one of the most expensive shards that are left. It does not know what workers do
//! with them.

use crate::folder::{self, RunError, RunFolder};
use crate::heartbeat::{self, CounterWatch, Heartbeat, WorkerState};
use crate::plan::{ClusterPlan, Phase, number_text};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};
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
/// Shards without a known result that are looked up one by one; of more of them the results are listed.
const MISSING_MAX: usize = 64;

/// Number of a shard and generation of the claim on it. Generation 0 is the first claim on a shard; each
/// later one redoes what the one before seems to have left.
pub type ClaimId = (u32, u32);

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
    Some((number.parse().ok()?, generation.parse().ok()?))
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
    let claim = Claim { token: format!("{:016x}", fastrand::u64(..)), worker: worker.to_owned() };
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

/// Whether a worker without a free shard makes a listing again.
fn is_due(listing: Listing) -> bool {
    listing.is_none_or(|(end, took)| end.elapsed() >= took.saturating_mul(PAUSE))
}

/// Claims and results as a worker knows them, and its choice of the next shard.
pub(crate) struct Claims<'a> {
    folder: &'a dyn RunFolder,
    plan: &'a ClusterPlan,
    phase: &'a Phase,
    /// A worker without a sign of life for so long counts as gone.
    stale: Duration,
    worker: String,
    order: Vec<u32>,
    /// Latest generation of the claims on a shard.
    claimed: HashMap<u32, u32>,
    done: HashSet<u32>,
    misses: u32,
    claims: Listing,
    results: Listing,
    /// Shards before this one in `order` are claimed or done.
    first: usize,
    /// Place in `order` after the shard that was claimed last.
    next_at: usize,
    /// Workers that have said that they are there.
    workers: usize,
    watch: CounterWatch,
    /// Workers of claims that were read.
    owners: HashMap<ClaimId, String>,
}

impl<'a> Claims<'a> {
    /// Nothing is known yet. `worker`: the name in claims; `stale`: time without a sign of life after which another
    /// worker counts as gone.
    pub fn new(
        folder: &'a dyn RunFolder,
        (plan, phase): (&'a ClusterPlan, &'a Phase),
        stale: Duration,
        worker: &str,
    ) -> Claims<'a> {
        Claims {
            folder,
            plan,
            phase,
            stale,
            worker: worker.to_owned(),
            order: plan.order(),
            claimed: HashMap::new(),
            done: HashSet::new(),
            misses: 0,
            claims: None,
            results: None,
            first: 0,
            next_at: usize::MAX,
            workers: 0,
            watch: CounterWatch::default(),
            owners: HashMap::new(),
        }
    }

    /// Returns whether all shards are known to be done.
    pub fn is_all_done(&self) -> bool {
        self.missing() == 0
    }

    /// Number of shards without a known result.
    fn missing(&self) -> usize {
        self.order.len().saturating_sub(self.done.len())
    }

    /// Notes that a shard is done.
    pub fn finished(&mut self, number: u32) {
        self.done.insert(number);
    }

    /// Claims a shard: one without a claim, else one whose worker is gone; `None` where there is none now.
    pub fn next(&mut self) -> Result<Option<ClaimId>, RunError> {
        loop {
            self.refresh()?;
            // Claims that were given back are free again. Of few shards `reclaim` sees that without a listing.
            if self.free().is_none() && self.missing() > MISSING_MAX && is_due(self.claims) {
                self.list_claims()?;
            }
            let Some(at) = self.free() else { return self.reclaim() };
            if let Some(claimed) = self.claim(at)? {
                return Ok(Some(claimed));
            }
        }
    }

    /// Claims a shard while another one is in hand; `None` where one of `workers` could lack one for that, as far as is
    /// known, and where another worker was faster.
    pub fn next_ahead(&mut self, workers: u64) -> Result<Option<ClaimId>, RunError> {
        self.refresh()?;
        let Some(at) = self.free() else { return Ok(None) };
        let workers = usize::try_from(workers).unwrap_or(usize::MAX).max(self.workers);
        let spare = workers.saturating_sub(1).saturating_mul(AHEAD_PER_WORKER);
        match (self.first..self.order.len()).filter(|at| self.is_free(*at)).nth(spare) {
            Some(_) => self.claim(at),
            None => Ok(None),
        }
    }

    /// Claims the shard at a place in the order; `None` where another worker was faster.
    fn claim(&mut self, at: usize) -> Result<Option<ClaimId>, RunError> {
        let Some(number) = self.order.get(at).copied() else { return Ok(None) };
        let ours = self.try_claim((number, 0))?;
        self.claimed.insert(number, 0);
        (self.misses, self.next_at) =
            if ours { (0, at + 1) } else { (self.misses + 1, usize::MAX) };
        Ok(ours.then_some((number, 0)))
    }

    fn is_free(&self, at: usize) -> bool {
        let number = self.order.get(at);
        number.is_some_and(|n| !self.claimed.contains_key(n) && !self.done.contains(n))
    }

    /// The place in the order of a shard without a known claim. Among shards of like cost a worker goes on where it is,
    /// so that workers seldom meet: each has a part of the tree. Otherwise it picks any of the first ones.
    fn free(&mut self) -> Option<usize> {
        let all = self.order.len();
        self.first = (self.first..all).find(|at| self.is_free(*at)).unwrap_or(all);
        let class = self.plan.class(*self.order.get(self.first)?);
        let alike = self.order.partition_point(|number| self.plan.class(*number) >= class);
        if (self.first..alike).contains(&self.next_at) && self.is_free(self.next_at) {
            return Some(self.next_at);
        }
        fastrand::choice(self.choice(alike))
    }

    /// Places of shards without a known claim: those before `alike`, and a few in any case.
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
        let began = Instant::now();
        (self.misses, self.first) = (0, 0);
        self.claimed.clear();
        let claims = self.folder.names(&self.phase.claims())?;
        self.note(&claims);
        self.claims = Some((Instant::now(), began.elapsed()));
        Ok(())
    }

    /// Notes claims by their names; the largest number among them.
    fn note(&mut self, claims: &[String]) -> Option<u32> {
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
        let Some(number) = self.order.get(at).copied() else { return Ok(()) };
        let names = self.folder.names_after(&self.phase.claims(), &number_text(number))?;
        let last = self.note(&names);
        // Beyond the last one nothing is known.
        let known = |at: &usize| self.order.get(*at).copied() <= last.max(Some(number));
        let after = (at..self.order.len()).take_while(known);
        let free: Vec<usize> = after.filter(|at| self.is_free(*at)).collect();
        // Another worker goes on where a gap begins.
        let gap = free.chunk_by(|one, next| one + 1 == *next).max_by_key(|gap| gap.len());
        match gap.and_then(|gap| gap.get(gap.len() / 2)) {
            Some(at) => self.next_at = *at,
            None => self.list_claims()?,
        }
        Ok(())
    }

    fn result(&self, number: u32) -> String {
        format!("{}/{}.json", self.phase.results(), number_text(number))
    }

    /// Notes results that are there by now; false where many are missing and it is too early to list them.
    fn find_results(&mut self) -> Result<bool, RunError> {
        if self.missing() <= MISSING_MAX {
            let missing = self.order.iter().filter(|number| !self.done.contains(number));
            let missing: Vec<u32> = missing.copied().collect();
            // One that is missing is enough to know that the run goes on.
            for number in missing {
                if self.folder.read(&self.result(number))?.is_none() {
                    break;
                }
                self.done.insert(number);
            }
            return Ok(true);
        }
        if !is_due(self.results) {
            return Ok(false);
        }
        let (began, all) = (Instant::now(), self.order.len());
        for name in self.folder.names(&self.phase.results())? {
            let number = name.strip_suffix(".json").and_then(|number| number.parse().ok());
            self.done.extend(number.filter(|n: &u32| all > *n as usize));
        }
        self.results = Some((Instant::now(), began.elapsed()));
        Ok(true)
    }

    fn try_claim(&self, claimed: ClaimId) -> Result<bool, RunError> {
        take(self.folder, &self.phase.claims(), claimed, &self.worker)
    }

    /// Claims a shard anew whose worker is gone or has given it back.
    fn reclaim(&mut self) -> Result<Option<ClaimId>, RunError> {
        if !self.find_results()? {
            return Ok(None);
        }
        let (folder, claims) = (self.folder, self.phase.claims());
        let mut counters: HashMap<String, Option<Heartbeat>> = HashMap::new();
        let claimed = self.claimed.iter().filter(|(number, _)| !self.done.contains(number));
        let claimed: Vec<ClaimId> = claimed.map(|(n, generation)| (*n, *generation)).collect();
        for claimed @ (number, generation) in claimed {
            let worker = match self.owners.get(&claimed) {
                Some(worker) => worker.clone(),
                None => match read(folder, &claims, claimed)? {
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
            let still = self.watch.still_for(&key, counter, Instant::now());
            let stale = beat.map_or(self.stale, |beat| beat.stale(self.stale));
            if !gone && still < stale {
                continue;
            }
            // It may have been given back, and claimed by another one.
            let claim = read(folder, &claims, claimed)?;
            if claim.map(|claim| claim.worker).unwrap_or_default() != worker {
                self.owners.remove(&claimed);
                continue;
            }
            // It may have ended after the results were looked for: they are written before that.
            if folder.read(&self.result(number))?.is_some() {
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
