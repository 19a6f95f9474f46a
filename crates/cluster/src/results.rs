//! Results of a run, read from its folder: what was done, by whom, what failed, and what limited the workers.

use crate::folder::{self, RunError, RunFolder};
use crate::heartbeat::{self, CounterWatch, Heartbeat, WorkerState};
use crate::plan::{ClusterPlan, Phase, number_text};
use crate::worker::{ProblemCounts, ShardResult, count_problems};
use hakobu_core::language::Language;
use hakobu_explain::verdict::{Resource, Verdict, resource_words, sentence};
use hakobu_transfer::journal::Owner;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

/// WorkerShare of the time that a resource has to be named for to be the verdict.
const SHARE_MIN: f64 = 0.5;

/// Sums over shards; of a verification `files` and `bytes` are those that were compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ShardSums {
    pub shards: u64,
    pub entries: u64,
    /// Files transferred.
    pub files: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Bytes that the plan had for these shards.
    pub planned_bytes: u64,
    /// Cost that the plan had for these shards.
    pub cost: u64,
    /// Entries that could not be transferred.
    pub failed: u64,
    /// Entries that were gone.
    pub vanished: u64,
    /// Entries that had changed since the plan.
    pub changed: u64,
    /// Entries that differ at both ends.
    pub differences: u64,
    /// Shards that were done at the second attempt.
    pub redone: u64,
    /// Seconds of work.
    pub work_s: f64,
}

/// Work of one worker, by the results that it wrote.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WorkerShare {
    pub host: String,
    /// Sums over its shards.
    pub sums: ShardSums,
    /// Bytes a second in each tenth of its life, by its own clock.
    pub rates: Vec<f64>,
    /// Seconds of its life at which its first shard began and its last one ended.
    pub from_s: f64,
    /// See `from_s`.
    pub to_s: f64,
    pub verdict: Option<RunVerdict>,
}

/// Results of a run so far. Results are read once each.
#[derive(Debug, Default)]
pub struct RunResults {
    seen: HashSet<String>,
    /// All results, in the order in which they were read.
    pub done: Vec<ShardResult>,
    /// Sums over all of them.
    pub sums: ShardSums,
    /// Problems: how many, and the first one's path.
    pub problems: ProblemCounts,
    /// Shards that could not be read, and why.
    pub damaged: Vec<(u32, String)>,
    watch: CounterWatch,
}

impl RunResults {
    /// Reads the results of a phase that were written since the last call.
    pub fn update(
        &mut self,
        folder: &dyn RunFolder,
        plan: &ClusterPlan,
        phase: &Phase,
    ) -> Result<(), RunError> {
        let results = phase.results();
        for name in folder.names(&results)? {
            if self.seen.contains(&name) {
                continue;
            }
            if !folder::is_inside(&name) {
                continue;
            }
            // One that is not whole yet is read the next time.
            if let Some(done) = folder::parsed::<ShardResult>(folder, &format!("{results}/{name}"))?
            {
                // A result of another shard, or of none, counts for nothing.
                if name == format!("{}.json", number_text(done.shard)) {
                    self.add(done, plan);
                }
                self.seen.insert(name);
            }
        }
        Ok(())
    }

    fn add(&mut self, done: ShardResult, plan: &ClusterPlan) {
        let planned = plan.shards.get(done.shard as usize).cloned().unwrap_or_default();
        add(&mut self.sums, &done, planned.bytes, planned.cost);
        for (what, count, first) in &done.problems {
            count_problems(&mut self.problems, what, *count, || first.clone());
        }
        if let Some(why) = &done.damaged {
            self.damaged.push((done.shard, why.clone()));
        }
        self.done.push(done);
    }

    pub fn shares(&self) -> BTreeMap<String, WorkerShare> {
        let mut shares: BTreeMap<String, WorkerShare> = BTreeMap::new();
        for done in &self.done {
            let share = shares.entry(done.worker.clone()).or_insert_with(|| WorkerShare {
                host: done.host.clone(),
                from_s: f64::MAX,
                ..WorkerShare::default()
            });
            add(&mut share.sums, done, 0, 0);
            share.from_s = share.from_s.min(done.from_s);
            share.to_s = share.to_s.max(done.to_s);
        }
        for (worker, share) in &mut shares {
            let step_s = ((share.to_s - share.from_s) / 10.0).max(f64::MIN_POSITIVE);
            let mine = self.done.iter().filter(|done| done.worker == *worker);
            share.verdict = sum_verdicts(mine.clone().map(timed));
            let mut rates = vec![0.0; 10];
            for done in mine {
                let took_s = (done.to_s - done.from_s).max(f64::MIN_POSITIVE);
                for (step, rate) in rates.iter_mut().enumerate() {
                    let from_s = share.from_s + step as f64 * step_s;
                    let overlap_s = done.to_s.min(from_s + step_s) - done.from_s.max(from_s);
                    *rate += done.bytes as f64 * (overlap_s.max(0.0) / took_s) / step_s;
                }
            }
            share.rates = rates;
        }
        shares
    }

    /// Verdict of most of the time of all workers.
    pub fn verdict(&self) -> Option<RunVerdict> {
        sum_verdicts(self.done.iter().map(timed))
    }

    /// The workers that may still be at work: they have not ended, and their counter moved while
    /// this process watched, or was not watched for `stale` yet.
    pub fn alive(
        &mut self,
        folder: &dyn RunFolder,
        stale: Duration,
    ) -> Result<Vec<(Heartbeat, bool)>, RunError> {
        let mut alive = Vec::new();
        for beat in heartbeat::read_all(folder)? {
            if beat.state == WorkerState::Ended || heartbeat::is_dead(&beat) {
                continue;
            }
            let still = self.watch.still_for(&beat.worker, beat.counter, Instant::now());
            if still < beat.stale(stale) {
                alive.push((beat, still == Duration::ZERO));
            }
        }
        Ok(alive)
    }
}

/// The verdict on a shard, and the seconds that it took.
fn timed(done: &ShardResult) -> (Option<&ShardVerdict>, f64) {
    (done.verdict.as_ref(), done.to_s - done.from_s)
}

fn add(sums: &mut ShardSums, done: &ShardResult, planned_bytes: u64, cost: u64) {
    sums.shards += 1;
    sums.entries += done.entries;
    sums.files += done.files;
    sums.bytes += done.bytes;
    sums.planned_bytes += planned_bytes;
    sums.cost += cost;
    sums.failed += done.failed;
    sums.vanished += done.vanished;
    sums.changed += done.changed;
    sums.differences += done.differences;
    sums.redone += u64::from(done.generation > 0);
    sums.work_s += done.to_s - done.from_s;
}

/// Processes of all workers that a folder knows.
pub fn worker_owners(folder: &dyn RunFolder) -> Result<Vec<Owner>, RunError> {
    let beats = heartbeat::read_all(folder)?;
    Ok(beats.iter().filter_map(|beat| Owner::parse(&beat.owner)).collect())
}

/// Gain of more machines, from the results of all workers. `None` where too little was done
/// to tell.
pub fn outlook(results: &RunResults, shards: u64) -> Option<String> {
    let shares = results.shares();
    let workers = shares.len();
    let longest_s = shares.values().map(|share| share.to_s).fold(0.0, f64::max);
    if workers == 0 || longest_s < 1.0 {
        return None;
    }
    let busy = results.sums.work_s / (longest_s * workers as f64);
    let per_worker = shards / workers as u64;
    let verdict = results.verdict();
    let shared = verdict.as_ref().and_then(RunVerdict::shared);
    let sentence = if busy < 0.7 {
        "more machines would help little: these were idle for part of the time".to_owned()
    } else if let Some(why) = shared {
        format!("more machines would help little: {why}")
    } else if per_worker < 4 {
        "more machines would help little with this plan: it has few shards for each worker"
            .to_owned()
    } else {
        "more machines would help as long as both ends keep up: all were busy".to_owned()
    };
    Some(format!(
        "{workers} workers were busy for {:.0}% of the time of the longest; {sentence}",
        busy * 100.0
    ))
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardVerdict {
    /// Name of the limiting resource, as in the summary of a transfer: `disk-iops`, `none`.
    pub resource: String,
    /// Certainty: `consistent`.
    pub level: String,
    /// The verdict with its evidence.
    pub sentence: String,
}

impl ShardVerdict {
    /// The verdict of a transfer.
    pub(crate) fn of(verdict: &Verdict) -> ShardVerdict {
        ShardVerdict {
            resource: verdict.resource.name().to_owned(),
            level: verdict.level.name().to_owned(),
            sentence: sentence(verdict, Language::English),
        }
    }
}

/// The verdict on several shards.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunVerdict {
    /// The resource that limited for most of the time: `disk-iops`; `none` where no resource was
    /// named for half of it.
    pub resource: &'static str,
    /// The same in words: `CPU`.
    pub named: &'static str,
    /// WorkerShare of the time of all shards for which it was named.
    pub share: f64,
    /// The certainty that it was named with for most of that time.
    pub level: String,
    /// The verdict on the longest of these shards, with its evidence.
    pub sentence: String,
    #[serde(skip)]
    of: Resource,
}

/// Sums up verdicts of shards, each with the seconds that it took. Shards without a verdict count as
/// time in which nothing was named. `None` where no shard has one.
fn sum_verdicts<'a>(
    shards: impl Iterator<Item = (Option<&'a ShardVerdict>, f64)>,
) -> Option<RunVerdict> {
    /// Seconds for which a resource was named.
    #[derive(Default)]
    struct Named<'a> {
        took_s: f64,
        levels: BTreeMap<&'a str, f64>,
        longest: Option<(&'a ShardVerdict, f64)>,
    }
    let (mut all_s, mut judged) = (0.0, false);
    let mut named: BTreeMap<&str, Named<'_>> = BTreeMap::new();
    for (verdict, took_s) in shards {
        all_s += took_s;
        let Some(verdict) = verdict else { continue };
        judged = true;
        let one = named.entry(&verdict.resource).or_default();
        one.took_s += took_s;
        *one.levels.entry(&verdict.level).or_default() += took_s;
        if one.longest.is_none_or(|(_, known_s)| known_s < took_s) {
            one.longest = Some((verdict, took_s));
        }
    }
    if !judged {
        return None;
    }
    let nothing = Resource::None;
    let most = named
        .iter()
        .filter(|(name, one)| **name != nothing.name() && one.took_s >= SHARE_MIN * all_s)
        .max_by(|a, b| a.1.took_s.total_cmp(&b.1.took_s));
    let known = most.and_then(|(name, one)| {
        let of = Resource::ALL.into_iter().find(|resource| resource.name() == *name)?;
        Some((of, one))
    });
    let (of, one) = match known {
        Some((of, one)) => (of, Some(one)),
        None => (nothing, named.get(nothing.name())),
    };
    let level = one.and_then(|one| one.levels.iter().max_by(|a, b| a.1.total_cmp(b.1)));
    let longest = one.and_then(|one| one.longest);
    Some(RunVerdict {
        resource: of.name(),
        named: resource_words(of, Language::English),
        share: one.map_or(0.0, |one| one.took_s / all_s.max(f64::MIN_POSITIVE)),
        level: level.map_or_else(String::new, |(level, _)| (*level).to_owned()),
        sentence: longest.map_or_else(String::new, |(judged, _)| judged.sentence.clone()),
        of,
    })
}

impl RunVerdict {
    /// The resource in words of a language.
    pub fn words(&self, language: Language) -> &'static str {
        resource_words(self.of, language)
    }

    /// Whether it names a resource.
    pub fn is_known(&self) -> bool {
        self.of != Resource::None
    }

    /// Reason why more machines would not help, where what limited is one for all of them.
    pub fn shared(&self) -> Option<&'static str> {
        match self.of {
            Resource::Server | Resource::Peer => Some("all of them waited for the same server"),
            Resource::Source => Some("all of them waited for the same source"),
            Resource::Target => Some("all of them waited for the same target"),
            Resource::UserLimit => Some("a limit that was set is divided among them"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(shard: u32, worker: &str, from_s: f64, to_s: f64, bytes: u64) -> ShardResult {
        let worker = worker.to_owned();
        ShardResult { shard, worker, from_s, to_s, bytes, entries: 1, ..ShardResult::default() }
    }

    #[test]
    fn rates_follow_each_workers_own_clock() {
        let mut results = RunResults::default();
        let plan = ClusterPlan::default();
        results.add(done(0, "a", 0.0, 5.0, 500), &plan);
        results.add(done(1, "a", 5.0, 10.0, 1000), &plan);
        results.add(done(2, "b", 100.0, 110.0, 1000), &plan);
        let shares = results.shares();
        let a = &shares["a"];
        assert_eq!(a.sums.bytes, 1500);
        assert!((a.rates[0] - 100.0).abs() < 1.0 && (a.rates[9] - 200.0).abs() < 1.0, "{a:?}");
        assert!(shares["b"].rates.iter().all(|rate| (rate - 100.0).abs() < 1.0));
    }

    #[test]
    fn idle_workers_say_that_more_would_not_help() {
        let mut results = RunResults::default();
        for shard in 0..8 {
            let from_s = f64::from(shard);
            results.add(done(shard, "a", from_s, from_s + 1.0, 10), &ClusterPlan::default());
        }
        results.add(done(8, "b", 0.0, 0.5, 10), &ClusterPlan::default());
        assert!(outlook(&results, 9).unwrap().contains("help little"));
        results.add(done(9, "b", 0.5, 8.0, 10), &ClusterPlan::default());
        assert!(outlook(&results, 100).unwrap().contains("would help as long as"));
    }

    #[test]
    fn what_all_workers_share_says_that_more_would_not_help() {
        let mut results = RunResults::default();
        let verdict = ShardVerdict { resource: "server".into(), ..ShardVerdict::default() };
        for worker in ["a", "b"] {
            let verdict = Some(verdict.clone());
            results.add(
                ShardResult { verdict, ..done(0, worker, 0.0, 9.0, 10) },
                &ClusterPlan::default(),
            );
        }
        let outlook = outlook(&results, 100).unwrap();
        assert!(
            outlook.contains("help little: all of them waited for the same server"),
            "{outlook}"
        );
        assert!(results.shares().values().all(|share| share.verdict.as_ref().unwrap().is_known()));
    }

    fn shard_verdict(resource: &str) -> ShardVerdict {
        let text = |text: &str| text.to_owned();
        ShardVerdict { resource: text(resource), level: text("consistent"), sentence: text("...") }
    }

    #[test]
    fn the_resource_of_most_of_the_time_is_the_verdict() {
        let (cpu, server) = (shard_verdict("cpu"), shard_verdict("server"));
        let of = |shards: &[(Option<&ShardVerdict>, f64)]| sum_verdicts(shards.iter().copied());
        let found = of(&[(Some(&cpu), 6.0), (Some(&server), 2.0), (None, 2.0)]).unwrap();
        assert_eq!(
            (found.resource, found.named, found.level.as_str()),
            ("cpu", "CPU", "consistent")
        );
        assert!((found.share - 0.6).abs() < 1e-9 && found.is_known() && found.shared().is_none());
        let found = of(&[(Some(&server), 6.0), (Some(&cpu), 2.0)]).unwrap();
        assert!(found.shared().is_some_and(|why| why.contains("same server")));
    }

    #[test]
    fn nothing_is_named_where_no_resource_has_half_of_the_time() {
        let (cpu, none) = (shard_verdict("cpu"), shard_verdict("none"));
        let of = |shards: &[(Option<&ShardVerdict>, f64)]| sum_verdicts(shards.iter().copied());
        assert_eq!(of(&[(None, 5.0)]), None);
        for shards in [
            &[(Some(&cpu), 4.0), (Some(&none), 6.0)][..],
            &[(Some(&cpu), 4.0), (None, 6.0)],
            &[(Some(&none), 6.0)],
        ] {
            let found = of(shards).unwrap();
            assert!(!found.is_known() && found.resource == "none", "{found:?}");
        }
    }
}
