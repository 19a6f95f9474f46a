//! Progress of a run, read from its folder: what each worker does, what was done, what failed.

use crate::beat::{self, Beat, State, Watch};
use crate::folder::{self, Folder, Trouble};
use crate::phase::Phase;
use crate::plan::{Plan, number_text};
use crate::problems::{self, Problems};
use crate::verdict::{self, Judged, Summed};
use crate::worker::Done;
use hakobu_transfer::journal::Owner;
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

/// Sums over shards; of a verification `files` and `bytes` are those that were compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sums {
    /// Shards.
    pub shards: u64,
    /// Entries.
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
    /// Shards that were done in a second try.
    pub redone: u64,
    /// Seconds of work.
    pub work_s: f64,
}

/// Work of one worker, by the results that it wrote.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Share {
    /// Its host.
    pub host: String,
    /// Sums over its shards.
    pub sums: Sums,
    /// Bytes a second in each tenth of its life, by its own clock.
    pub rates: Vec<f64>,
    /// Seconds of its life at which its first shard began and its last one ended.
    pub from_s: f64,
    /// See `from_s`.
    pub to_s: f64,
    /// Its verdict.
    pub verdict: Option<Summed>,
}

/// Results of a run so far. Results are read once each.
#[derive(Debug, Default)]
pub struct Results {
    seen: HashSet<String>,
    /// All results, in the order in which they were read.
    pub done: Vec<Done>,
    /// Sums over all of them.
    pub sums: Sums,
    /// Problems: how many, and the first one's path.
    pub problems: Problems,
    /// Shards that could not be read, and why.
    pub damaged: Vec<(u32, String)>,
    watch: Watch,
}

impl Results {
    /// Reads the results of a phase that were written since the last call.
    ///
    /// # Errors
    /// The folder's.
    pub fn update(
        &mut self,
        folder: &dyn Folder,
        plan: &Plan,
        phase: &Phase,
    ) -> Result<(), Trouble> {
        let results = phase.results();
        for name in folder.names(&results)? {
            if self.seen.contains(&name) {
                continue;
            }
            if !folder::is_inside(&name) {
                continue;
            }
            // One that is not whole yet is read the next time.
            if let Some(done) = folder::parsed::<Done>(folder, &format!("{results}/{name}"))? {
                // A result of another shard, or of none, counts for nothing.
                if name == format!("{}.json", number_text(done.shard)) {
                    self.add(done, plan);
                }
                self.seen.insert(name);
            }
        }
        Ok(())
    }

    fn add(&mut self, done: Done, plan: &Plan) {
        let planned = plan.shards.get(done.shard as usize).cloned().unwrap_or_default();
        add(&mut self.sums, &done, planned.bytes, planned.cost);
        for (what, count, first) in &done.problems {
            problems::count(&mut self.problems, what, *count, || first.clone());
        }
        if let Some(why) = &done.damaged {
            self.damaged.push((done.shard, why.clone()));
        }
        self.done.push(done);
    }

    /// Work of each worker.
    pub fn shares(&self) -> BTreeMap<String, Share> {
        let mut shares: BTreeMap<String, Share> = BTreeMap::new();
        for done in &self.done {
            let share = shares.entry(done.worker.clone()).or_insert_with(|| Share {
                host: done.host.clone(),
                from_s: f64::MAX,
                ..Share::default()
            });
            add(&mut share.sums, done, 0, 0);
            share.from_s = share.from_s.min(done.from_s);
            share.to_s = share.to_s.max(done.to_s);
        }
        for (worker, share) in &mut shares {
            let step_s = ((share.to_s - share.from_s) / 10.0).max(f64::MIN_POSITIVE);
            let mine = self.done.iter().filter(|done| done.worker == *worker);
            share.verdict = verdict::sum(mine.clone().map(timed));
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
    pub fn verdict(&self) -> Option<Summed> {
        verdict::sum(self.done.iter().map(timed))
    }

    /// The workers that may still be at work: they have not ended, and their counter moved while
    /// this process watched, or was not watched for `stale` yet.
    ///
    /// # Errors
    /// The folder's.
    pub fn alive(
        &mut self,
        folder: &dyn Folder,
        stale: Duration,
    ) -> Result<Vec<(Beat, bool)>, Trouble> {
        let mut alive = Vec::new();
        for beat in beat::read_all(folder)? {
            if beat.state == State::Ended || beat::is_dead(&beat) {
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
fn timed(done: &Done) -> (Option<&Judged>, f64) {
    (done.verdict.as_ref(), done.to_s - done.from_s)
}

fn add(sums: &mut Sums, done: &Done, planned_bytes: u64, cost: u64) {
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
///
/// # Errors
/// The folder's.
pub fn owners(folder: &dyn Folder) -> Result<Vec<Owner>, Trouble> {
    let beats = beat::read_all(folder)?;
    Ok(beats.iter().filter_map(|beat| Owner::parse(&beat.owner)).collect())
}

/// Gain of more machines, from the results of all workers. `None` where too little was done
/// to tell.
pub fn outlook(results: &Results, shards: u64) -> Option<String> {
    let shares = results.shares();
    let workers = shares.len();
    let longest_s = shares.values().map(|share| share.to_s).fold(0.0, f64::max);
    if workers == 0 || longest_s < 1.0 {
        return None;
    }
    let busy = results.sums.work_s / (longest_s * workers as f64);
    let per_worker = shards / workers as u64;
    let verdict = results.verdict();
    let shared = verdict.as_ref().and_then(Summed::shared);
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
        "{workers} workers were busy for {:.0} % of the time of the longest; {sentence}",
        busy * 100.0
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(shard: u32, worker: &str, from_s: f64, to_s: f64, bytes: u64) -> Done {
        let worker = worker.to_owned();
        Done { shard, worker, from_s, to_s, bytes, entries: 1, ..Done::default() }
    }

    #[test]
    fn rates_follow_each_workers_own_clock() {
        let mut results = Results::default();
        let plan = Plan::default();
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
        let mut results = Results::default();
        for shard in 0..8 {
            let from_s = f64::from(shard);
            results.add(done(shard, "a", from_s, from_s + 1.0, 10), &Plan::default());
        }
        results.add(done(8, "b", 0.0, 0.5, 10), &Plan::default());
        assert!(outlook(&results, 9).unwrap().contains("help little"));
        results.add(done(9, "b", 0.5, 8.0, 10), &Plan::default());
        assert!(outlook(&results, 100).unwrap().contains("would help as long as"));
    }

    #[test]
    fn what_all_workers_share_says_that_more_would_not_help() {
        let mut results = Results::default();
        let verdict = Judged { resource: "server".into(), ..Judged::default() };
        for worker in ["a", "b"] {
            let verdict = Some(verdict.clone());
            results.add(Done { verdict, ..done(0, worker, 0.0, 9.0, 10) }, &Plan::default());
        }
        let outlook = outlook(&results, 100).unwrap();
        assert!(
            outlook.contains("help little: all of them waited for the same server"),
            "{outlook}"
        );
        assert!(results.shares().values().all(|share| share.verdict.as_ref().unwrap().is_known()));
    }
}
