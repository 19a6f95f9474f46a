//! Signs of life: each worker rewrites one small file. Others look at whether its counter moves, by
//! their own clocks; the worker itself may publish its files only as long as it beats.

use crate::folder::{self, RunError, RunFolder};
use crate::plan::ShardNumber;
use crate::shares::ShareReport;
use crate::submitted;
use hakobu_core::control::Control;
use hakobu_sys::host;
use hakobu_transfer::journal::Owner;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The shortest time between two beats.
const BEAT_MIN: Duration = Duration::from_millis(200);
/// The longest.
const BEAT_MAX: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkerState {
    /// It works on a shard, or looks for one.
    #[default]
    Working,
    /// It waits for the others.
    Waiting,
    /// It has ended, and will not beat again.
    Ended,
}

/// One sign of life.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Name of the worker, random.
    pub worker: String,
    pub host: String,
    /// Its process ([`Owner::text`]), which is part of the names of its temporary files.
    pub owner: String,
    /// Its process ID on its host.
    #[serde(default)]
    pub pid: u32,
    /// Its job, as its engine calls it ([`crate::submitted::job`]).
    #[serde(default)]
    pub job: Option<String>,
    /// It ended before it had opened the plan and both ends.
    #[serde(default)]
    pub unopened: bool,
    /// Grows with each beat.
    pub counter: u64,
    /// Seconds without a beat after which it counts as gone, by which its lease is measured.
    pub stale_s: f64,
    pub state: WorkerState,
    /// It verifies shards.
    #[serde(default)]
    pub verifies: bool,
    /// It looks at both ends once more, after the transfer.
    #[serde(default)]
    pub looks: bool,
    /// It is no worker: it collects.
    #[serde(default)]
    pub collects: bool,
    /// The shard in hand.
    pub shard: Option<ShardNumber>,
    pub shards: u64,
    /// The range that it lists.
    #[serde(default)]
    pub range: Option<u32>,
    /// Ranges that it has listed.
    #[serde(default)]
    pub ranges: u64,
    /// Entries that it has done, those of the shard in hand included.
    pub entries: u64,
    /// Bytes that it has moved, those of the shard in hand included.
    pub bytes: u64,
    /// Bytes a second, of late.
    #[serde(default)]
    pub bytes_per_s: f64,
    /// Entries that it could not transfer.
    pub failed: u64,
    /// Its part of `--bwlimit`.
    #[serde(default)]
    pub byte_share: Option<ShareReport>,
    /// Its part of `--iops-limit` or `--rps-limit`.
    #[serde(default)]
    pub operation_share: Option<ShareReport>,
    /// Seconds since it began.
    pub up_s: f64,
    /// Reason why it ended early.
    pub message: Option<String>,
}

impl Heartbeat {
    /// The first beat of this process, under a random name.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn first(stale: Duration) -> Result<Heartbeat, RunError> {
        Ok(Heartbeat {
            worker: folder::random_name()?,
            host: host::name(),
            owner: Owner::me().text(),
            stale_s: stale.as_secs_f64(),
            ..submitted::this_process()
        })
    }

    /// Time without a beat after which the worker counts as gone for a process that waits for `own`.
    pub fn stale(&self, own: Duration) -> Duration {
        Duration::try_from_secs_f64(self.stale_s).map_or(own, |stale| stale.max(own))
    }
}

/// Time between beats, where a worker counts as gone after `stale`.
pub fn interval(stale: Duration) -> Duration {
    (stale / 10).clamp(BEAT_MIN, BEAT_MAX)
}

/// Time between the beats of one of `workers`: many of them together write no more than a hundred a second, as long as
/// each beats three times before it counts as gone.
pub fn interval_of_many(stale: Duration, workers: usize) -> Duration {
    let least = interval(stale);
    let share =
        Duration::from_millis(10).saturating_mul(u32::try_from(workers).unwrap_or(u32::MAX));
    share.clamp(least, (stale / 3).max(least))
}

/// Writes a beat.
///
/// # Errors
/// Those of the run folder.
pub fn write(folder: &dyn RunFolder, beat: &Heartbeat) -> Result<(), RunError> {
    let content = folder::json(beat)?;
    folder.replace(&format!("workers/{}.json", beat.worker), &content)
}

/// Writes a beat, and extends the lease: others call this worker gone no earlier than `stale` after
/// the file was written.
pub fn write_and_extend(
    folder: &dyn RunFolder,
    beat: &Heartbeat,
    control: &Control,
    stale: Duration,
) -> Result<(), RunError> {
    let before_ms = host::boot_ms();
    write(folder, beat)?;
    let lease_ms = u64::try_from(stale.as_millis() * 3 / 4).unwrap_or(u64::MAX);
    control.lease(before_ms.saturating_add(lease_ms));
    Ok(())
}

/// Reads the beats of all workers.
pub fn read_all(folder: &dyn RunFolder) -> Result<Vec<Heartbeat>, RunError> {
    let mut names = folder.names("workers")?;
    names.retain(|name| folder::is_inside(name));
    read_named(folder, &names).map(|beats| beats.into_iter().map(|(beat, _)| beat).collect())
}

/// Reads beats, each with the place of its name; sorted by hosts.
fn read_named(
    folder: &dyn RunFolder,
    names: &[String],
) -> Result<Vec<(Heartbeat, usize)>, RunError> {
    let paths: Vec<String> = names.iter().map(|name| format!("workers/{name}")).collect();
    let read = folder.read_all(&paths)?.into_iter().enumerate();
    let parsed = |(at, content): (usize, Option<Vec<u8>>)| {
        let beat = serde_json::from_slice::<Heartbeat>(&content?).ok()?;
        Some((beat, at))
    };
    let mut beats: Vec<(Heartbeat, usize)> = read.filter_map(parsed).collect();
    beats.sort_by(|(a, _), (b, _)| (&a.host, &a.worker).cmp(&(&b.host, &b.worker)));
    Ok(beats)
}

/// A worker as others see it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeenWorker {
    #[serde(flatten)]
    pub beat: Heartbeat,
    /// Seconds since its last sign of life, by the clock of the run folder.
    pub silent_s: f64,
    /// It gave no sign of life for so long that it counts as gone, or its process is known to have ended.
    pub lost: bool,
}

impl SeenWorker {
    /// `age`: time since the beat was written.
    pub fn new(beat: Heartbeat, age: Duration) -> SeenWorker {
        let silent = age >= beat.stale(Duration::ZERO);
        let lost = beat.state != WorkerState::Ended && (silent || is_dead(&beat));
        SeenWorker { beat, silent_s: age.as_secs_f64(), lost }
    }

    /// Whether it may be at work.
    pub fn is_alive(&self) -> bool {
        !self.lost && self.beat.state != WorkerState::Ended
    }
}

/// Reads the beats of all workers, and says which of them are lost.
pub fn see_all(folder: &dyn RunFolder) -> Result<Vec<SeenWorker>, RunError> {
    let mut ages = folder.ages("workers")?;
    ages.retain(|(name, _)| folder::is_inside(name));
    let names: Vec<String> = ages.iter().map(|(name, _)| name.clone()).collect();
    let age = |at: usize| ages.get(at).map_or(Duration::ZERO, |(_, age)| *age);
    let beats = read_named(folder, &names)?.into_iter();
    Ok(beats.map(|(beat, at)| SeenWorker::new(beat, age(at))).collect())
}

/// Reads the beat of one worker; `None` for what cannot be the name of one.
pub fn read(folder: &dyn RunFolder, worker: &str) -> Result<Option<Heartbeat>, RunError> {
    if !folder::is_word(worker) {
        return Ok(None);
    }
    folder::parsed(folder, &format!("workers/{worker}.json"))
}

/// Whether the process of a beat is known to be gone: it ended on this machine.
pub fn is_dead(beat: &Heartbeat) -> bool {
    use hakobu_transfer::journal::Life;
    let owner = Owner::parse(&beat.owner);
    owner.is_some_and(|owner| matches!(Owner::me().judge(&owner), Life::Dead | Life::Rebooted))
}

/// Watches counters. A counter counts as still only while this process watched it.
#[derive(Debug, Default)]
pub struct CounterWatch {
    seen: HashMap<String, (u64, Instant)>,
}

impl CounterWatch {
    /// Time for which a counter has not changed, as seen by this process.
    pub fn still_for(&mut self, key: &str, counter: u64, now: Instant) -> Duration {
        match self.seen.get_mut(key) {
            Some((known, since)) if *known == counter => now.saturating_duration_since(*since),
            _ => {
                self.seen.insert(key.to_owned(), (counter, now));
                Duration::ZERO
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_lost_that_is_silent_for_long_enough() {
        let beat = |state| Heartbeat { stale_s: 30.0, state, ..Heartbeat::default() };
        let seen = |state, s| SeenWorker::new(beat(state), Duration::from_secs(s));
        assert!(seen(WorkerState::Working, 29).is_alive());
        assert!(seen(WorkerState::Working, 30).lost && seen(WorkerState::Waiting, 31).lost);
        let ended = seen(WorkerState::Ended, 9000);
        assert!(!ended.lost && !ended.is_alive());
    }

    /// Generators of programs that start at the same time by their machines' clocks begin alike.
    #[test]
    fn workers_that_start_in_the_same_moment_have_names_of_their_own() {
        let name = || {
            fastrand::seed(1);
            Heartbeat::first(Duration::from_secs(30)).unwrap().worker
        };
        assert_ne!(name(), name());
    }

    #[test]
    fn many_workers_beat_less_often() {
        let stale = Duration::from_secs(30);
        assert_eq!(interval_of_many(stale, 1), interval(stale));
        assert_eq!(interval_of_many(stale, 1000), Duration::from_secs(10));
        assert_eq!(interval_of_many(stale, 1_000_000), Duration::from_secs(10));
        assert_eq!(interval_of_many(Duration::from_secs(2), 1000), Duration::from_secs(2) / 3);
    }

    #[test]
    fn a_counter_stands_still_only_while_it_is_watched() {
        let mut watch = CounterWatch::default();
        let start = Instant::now();
        let at = |s: u64| start + Duration::from_secs(s);
        assert_eq!(watch.still_for("a", 7, at(100)), Duration::ZERO);
        assert_eq!(watch.still_for("a", 7, at(130)), Duration::from_secs(30));
        assert_eq!(watch.still_for("b", 7, at(130)), Duration::ZERO);
        assert_eq!(watch.still_for("a", 8, at(131)), Duration::ZERO);
        // A counter that went back has moved as well: the worker was started anew.
        assert_eq!(watch.still_for("a", 1, at(140)), Duration::ZERO);
        assert_eq!(watch.still_for("a", 1, at(141)), Duration::from_secs(1));
    }
}
