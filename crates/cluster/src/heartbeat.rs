//! Signs of life: each worker rewrites one small file. Others look at whether its counter moves, by
//! their own clocks; the worker itself may publish its files only as long as it beats.

use crate::folder::{self, RunError, RunFolder};
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
    /// Grows with each beat.
    pub counter: u64,
    /// Seconds without a beat after which it counts as gone, by which its lease is measured.
    pub stale_s: f64,
    pub state: WorkerState,
    /// It verifies shards.
    #[serde(default)]
    pub verifies: bool,
    /// The shard in hand.
    pub shard: Option<u32>,
    pub shards: u64,
    pub entries: u64,
    /// Bytes that it has moved.
    pub bytes: u64,
    /// Entries that it could not transfer.
    pub failed: u64,
    /// Seconds since it began.
    pub up_s: f64,
    /// Reason why it ended early.
    pub message: Option<String>,
}

impl Heartbeat {
    /// Time without a beat after which the worker counts as gone for a process that waits for `own`.
    pub fn stale(&self, own: Duration) -> Duration {
        Duration::try_from_secs_f64(self.stale_s).map_or(own, |stale| stale.max(own))
    }
}

/// Time between beats, where a worker counts as gone after `stale`.
pub fn interval(stale: Duration) -> Duration {
    (stale / 10).clamp(BEAT_MIN, BEAT_MAX)
}

/// Writes a beat, and extends the lease: others call this worker gone no earlier than `stale` after
/// the file was written.
pub fn write(
    folder: &dyn RunFolder,
    beat: &Heartbeat,
    control: &Control,
    stale: Duration,
) -> Result<(), RunError> {
    let before_ms = host::boot_ms();
    let content = folder::json(beat)?;
    folder.replace(&format!("workers/{}.json", beat.worker), &content)?;
    let lease_ms = u64::try_from(stale.as_millis() * 3 / 4).unwrap_or(u64::MAX);
    control.lease(before_ms.saturating_add(lease_ms));
    Ok(())
}

/// Reads the beats of all workers.
pub fn read_all(folder: &dyn RunFolder) -> Result<Vec<Heartbeat>, RunError> {
    let mut beats: Vec<Heartbeat> = Vec::new();
    for name in folder.names("workers")?.into_iter().filter(|name| folder::is_inside(name)) {
        beats.extend(folder::parsed::<Heartbeat>(folder, &format!("workers/{name}"))?);
    }
    beats.sort_by(|a, b| (&a.host, &a.worker).cmp(&(&b.host, &b.worker)));
    Ok(beats)
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
