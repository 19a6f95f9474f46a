//! Results of a run: the segments that workers write them to, and what they say: what was done, by whom, what failed, and
//! what limited the workers.
//!
//! Each worker has a segment, a file of JSON lines that is rewritten with each result, and the next one when it is full.

use crate::claims::KnownResults;
use crate::folder::{self, RunError, RunFolder};
use crate::heartbeat::{self, CounterWatch, Heartbeat, WorkerState};
use crate::plan::{Phase, ShardNumber};
use crate::worker::{ProblemCounts, ShardResult, count_problems};
use hakobu_core::language::Language;
use hakobu_explain::verdict::{Resource, Verdict, resource_words, sentence};
use hakobu_transfer::journal::Owner;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

/// A segment with so many bytes is full: rewriting it costs no more than its first packets.
const SEGMENT_BYTES: usize = 32 << 10;

/// The name of a worker's segment.
fn segment(worker: &str, number: u32) -> String {
    format!("{worker}-{number:06}.jsonl")
}

/// Returns the results in the lines of a segment, but for the first `known` of them, and the number of lines. A line that
/// is not whole yet is left out.
fn parse(content: &[u8], known: usize) -> (Vec<ShardResult>, usize) {
    let lines = content.split_inclusive(|byte| *byte == b'\n');
    let whole: Vec<&[u8]> = lines.filter(|line| line.ends_with(b"\n")).collect();
    let new = whole.iter().skip(known);
    let results = new.filter_map(|line| serde_json::from_slice::<ShardResult>(line).ok());
    (results.collect(), whole.len().max(known))
}

/// Writes the results of one worker.
pub(crate) struct SegmentWriter {
    folder: String,
    worker: String,
    number: u32,
    lines: Vec<u8>,
}

impl SegmentWriter {
    /// `folder`: that of the results of the phase.
    pub fn new(folder: String, worker: &str) -> SegmentWriter {
        SegmentWriter { folder, worker: worker.to_owned(), number: 0, lines: Vec::new() }
    }

    /// Writes results after those that were written before.
    ///
    /// # Errors
    /// Those of the run folder; the segment is as it was then.
    pub fn write(
        &mut self,
        folder: &dyn RunFolder,
        results: &[ShardResult],
    ) -> Result<(), RunError> {
        let before = self.lines.len();
        for result in results {
            self.lines.extend_from_slice(&folder::json(result)?);
            self.lines.push(b'\n');
        }
        let name = format!("{}/{}", self.folder, segment(&self.worker, self.number));
        let written = folder.replace(&name, &self.lines);
        match &written {
            Ok(()) if self.lines.len() >= SEGMENT_BYTES => {
                self.number += 1;
                self.lines.clear();
            }
            Ok(()) => {}
            Err(_) => self.lines.truncate(before),
        }
        written
    }
}

/// Reads the results of all workers, each once.
#[derive(Debug, Default)]
struct SegmentReader {
    folder: String,
    /// Segments that are full, and were read.
    closed: HashSet<String>,
    /// Lines that were read of the others.
    lines: HashMap<String, usize>,
}

impl SegmentReader {
    fn update(
        &mut self,
        folder: &dyn RunFolder,
        mut found: impl FnMut(ShardResult),
    ) -> Result<(), RunError> {
        let mut names = folder.names(&self.folder)?;
        names.retain(|name| name.ends_with(".jsonl") && folder::is_inside(name));
        names.sort_unstable();
        let worker = |name: &str| name.rsplit_once('-').map(|(worker, _)| worker.to_owned());
        // The last segment of a worker may grow.
        let is_last: Vec<bool> = (0..names.len())
            .map(|at| {
                names
                    .get(at + 1)
                    .is_none_or(|next| worker(next) != names.get(at).and_then(|name| worker(name)))
            })
            .collect();
        let open: Vec<(&String, bool)> =
            names.iter().zip(is_last).filter(|(name, _)| !self.closed.contains(*name)).collect();
        let paths: Vec<String> =
            open.iter().map(|(name, _)| format!("{}/{name}", self.folder)).collect();
        for ((name, is_last), content) in open.iter().zip(folder.read_all(&paths)?) {
            let known = self.lines.entry((*name).clone()).or_default();
            let (results, lines) = parse(&content.unwrap_or_default(), *known);
            *known = lines;
            results.into_iter().for_each(&mut found);
            if !is_last {
                self.lines.remove(*name);
                self.closed.insert((*name).clone());
            }
        }
        Ok(())
    }
}

/// The shards of a phase that have a result.
#[derive(Debug, Default)]
pub(crate) struct DoneShards {
    reader: SegmentReader,
    done: HashSet<ShardNumber>,
}

impl DoneShards {
    /// Nothing is known yet.
    pub fn new(phase: &Phase) -> DoneShards {
        let reader = SegmentReader { folder: phase.results(), ..SegmentReader::default() };
        DoneShards { reader, done: HashSet::new() }
    }
}

impl KnownResults for DoneShards {
    fn update(&mut self, folder: &dyn RunFolder) -> Result<(), RunError> {
        let done = &mut self.done;
        self.reader.update(folder, |result| {
            done.insert(result.shard);
        })
    }

    fn read_all_of(&mut self, folder: &dyn RunFolder, worker: &str) -> Result<(), RunError> {
        if !folder::is_word(worker) {
            return self.update(folder);
        }
        for number in 0.. {
            let name = format!("{}/{}", self.reader.folder, segment(worker, number));
            let Some(content) = folder.read(&name)? else { break };
            self.done.extend(parse(&content, 0).0.into_iter().map(|result| result.shard));
        }
        Ok(())
    }

    fn has(&self, number: ShardNumber) -> bool {
        self.done.contains(&number)
    }
}

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
    reader: SegmentReader,
    seen: HashSet<ShardNumber>,
    /// All results, in the order in which they were read.
    pub done: Vec<ShardResult>,
    /// Sums over all of them.
    pub sums: ShardSums,
    /// Problems: how many, and the first one's path.
    pub problems: ProblemCounts,
    /// Shards that could not be read, and why.
    pub damaged: Vec<(ShardNumber, String)>,
    watch: CounterWatch,
}

impl RunResults {
    /// Nothing is known yet of the results of this phase.
    pub fn of(phase: &Phase) -> RunResults {
        let reader = SegmentReader { folder: phase.results(), ..SegmentReader::default() };
        RunResults { reader, ..RunResults::default() }
    }

    /// Reads the results that were written since the last call. Of several on one shard the first one counts.
    pub fn update(&mut self, folder: &dyn RunFolder) -> Result<(), RunError> {
        let mut found = Vec::new();
        self.reader.update(folder, |result| found.push(result))?;
        found.into_iter().for_each(|done| self.add(done));
        Ok(())
    }

    fn add(&mut self, done: ShardResult) {
        if !self.seen.insert(done.shard) {
            // It was done twice. Failures count: they may be those of shards that were done with this one.
            self.sums.failed += done.failed;
            self.sums.vanished += done.vanished;
            self.sums.changed += done.changed;
            return;
        }
        add(&mut self.sums, &done);
        for (what, count, first) in &done.problems {
            count_problems(&mut self.problems, what, *count, || first.clone());
        }
        if let Some(why) = &done.damaged {
            self.damaged.push((done.shard, why.clone()));
        }
        self.done.push(done);
    }

    /// Adds a problem that is none of a shard.
    pub fn add_problem(&mut self, what: &str, count: u64, first: String) {
        count_problems(&mut self.problems, what, count, || first);
    }

    pub fn shares(&self) -> BTreeMap<String, WorkerShare> {
        let mut shares: BTreeMap<String, WorkerShare> = BTreeMap::new();
        for done in &self.done {
            let share = shares.entry(done.worker.clone()).or_insert_with(|| WorkerShare {
                host: done.host.clone(),
                from_s: f64::MAX,
                ..WorkerShare::default()
            });
            add(&mut share.sums, done);
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

fn add(sums: &mut ShardSums, done: &ShardResult) {
    sums.shards += 1;
    sums.entries += done.entries;
    sums.files += done.files;
    sums.bytes += done.bytes;
    sums.planned_bytes += done.planned_bytes;
    sums.cost += done.cost;
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

    fn done(shard: u64, worker: &str, from_s: f64, to_s: f64, bytes: u64) -> ShardResult {
        let worker = worker.to_owned();
        ShardResult { shard, worker, from_s, to_s, bytes, entries: 1, ..ShardResult::default() }
    }

    #[test]
    fn rates_follow_each_workers_own_clock() {
        let mut results = RunResults::default();
        results.add(done(0, "a", 0.0, 5.0, 500));
        results.add(done(1, "a", 5.0, 10.0, 1000));
        results.add(done(2, "b", 100.0, 110.0, 1000));
        let shares = results.shares();
        let a = &shares["a"];
        assert_eq!(a.sums.bytes, 1500);
        assert!((a.rates[0] - 100.0).abs() < 1.0 && (a.rates[9] - 200.0).abs() < 1.0, "{a:?}");
        assert!(shares["b"].rates.iter().all(|rate| (rate - 100.0).abs() < 1.0));
    }

    /// Of two results of one shard, either may have the failures of shards that were done with it.
    #[test]
    fn failures_count_whichever_result_comes_first() {
        let failed = |failed| ShardResult { failed, ..done(0, "a", 0.0, 5.0, 500) };
        for both in [[3, 0], [0, 3]] {
            let mut results = RunResults::default();
            both.into_iter().for_each(|count| results.add(failed(count)));
            let sums = &results.sums;
            assert_eq!((sums.shards, sums.bytes, sums.failed), (1, 500, 3));
        }
    }

    #[test]
    fn idle_workers_say_that_more_would_not_help() {
        let mut results = RunResults::default();
        for shard in 0..8 {
            let from_s = shard as f64;
            results.add(done(shard, "a", from_s, from_s + 1.0, 10));
        }
        results.add(done(8, "b", 0.0, 0.5, 10));
        assert!(outlook(&results, 9).unwrap().contains("help little"));
        results.add(done(9, "b", 0.5, 8.0, 10));
        assert!(outlook(&results, 100).unwrap().contains("would help as long as"));
    }

    #[test]
    fn what_all_workers_share_says_that_more_would_not_help() {
        let mut results = RunResults::default();
        let verdict = ShardVerdict { resource: "server".into(), ..ShardVerdict::default() };
        for (shard, worker) in [(0, "a"), (1, "b")] {
            let verdict = Some(verdict.clone());
            results.add(ShardResult { verdict, ..done(shard, worker, 0.0, 9.0, 10) });
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
