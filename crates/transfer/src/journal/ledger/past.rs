//! Records as stored on disk, and their evaluation for a file; pure except for reading.
//!
//! A record is JSON lines: first the scope of the run, then one line for each file system on which it creates files
//! under their final names. The run never acted on a truncated line.

use super::scope::{Scope, Target};
use crate::journal::{Life, Owner, text};
use hakobu_core::unit::{Meta, Time};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Incremented when a field changes its meaning: a record of another schema is not read.
const SCHEMA: u32 = 1;
/// Maximum size of a record, in bytes; a larger one is not ours.
const BYTES_MAX: u64 = 1 << 20;
/// Maximum number of records of unfinished runs; the newest are kept.
pub(super) const RECORDS_MAX: usize = 64;
/// Age, in seconds, after which records are removed: 90 days.
const AGE_S_MAX: i64 = 90 * 24 * 3600;
/// Seconds from the last heartbeat to the end of a run: heartbeats come every second, and file systems may round
/// times to 2 s.
const SLACK_S: i64 = 4;
/// The same after a reboot: a power loss may lose the last heartbeats.
const LOST_S: i64 = 120;

/// The first line of a record.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Stored {
    schema: u32,
    pub targets: Vec<StoredTarget>,
    sources: Vec<String>,
    recurse: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredTarget {
    path: String,
    pub dev: u64,
    pub ino: u64,
}

/// A further line: two clocks at the same moment.
#[derive(Debug, Serialize, Deserialize)]
struct Device {
    dev: u64,
    /// The file system's clock.
    clock_s: i64,
    clock_ns: u32,
    /// This machine's clock.
    local_s: i64,
}

/// The record of another run.
#[derive(Debug)]
pub(super) struct Past {
    pub path: PathBuf,
    pub life: Life,
    /// The last heartbeat, by the clock of the machine of the run.
    pub heartbeat: Time,
    /// `None`: it cannot be read.
    pub stored: Option<Stored>,
    devices: Vec<Device>,
}

/// The time range in which a run created files, by the clock of their file system; both ends included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub from: Time,
    /// `None`: the run is active.
    pub to_s: Option<i64>,
}

impl Window {
    /// Returns whether a time is not before the range. Some times have no fractions where others have.
    fn has_begun(&self, time: Time) -> bool {
        time >= self.from || (time.ns == 0 && time.s >= self.from.s)
    }

    fn has(&self, time: Time) -> bool {
        self.has_begun(time) && self.to_s.is_none_or(|to_s| time.s <= to_s)
    }

    /// Returns whether a run may have left a target: it was changed in the time range and is shorter than the source.
    /// A finished file has the time of its source, but after a power loss a file with that time can still be shorter.
    fn fits(&self, source: &Meta, target: &Meta) -> bool {
        target.size < source.size
            && self.has_begun(target.ctime)
            && (self.has(target.mtime) || target.mtime == source.mtime)
    }

    /// Returns whether the run created it, if its birth time is known.
    fn made(&self, born: Option<Time>) -> bool {
        born.is_none_or(|born| self.has(born))
    }
}

/// Returns `run-HOST-BOOT-PID-START-NUMBER.json`.
pub(super) fn file_name(owner: &Owner, number: u32) -> String {
    let Owner { host, boot, pid, start } = owner;
    format!("run-{host:08x}-{boot:08x}-{pid:08x}-{start:012x}-{number:08x}.json")
}

fn owner(name: &[u8]) -> Option<Owner> {
    Owner::of_name(name.strip_prefix(b"run-")?.strip_suffix(b".json")?, 8)
}

fn line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value).map_err(io::Error::other)?;
    line.push(b'\n');
    Ok(line)
}

/// Returns the first line of a record.
pub(super) fn head(scope: &Scope) -> io::Result<Vec<u8>> {
    let target = |target: &Target| StoredTarget {
        path: text(target.path.as_os_str().as_bytes()),
        dev: target.identity.0,
        ino: target.identity.1,
    };
    line(&Stored {
        schema: SCHEMA,
        targets: scope.targets.iter().map(target).collect(),
        sources: scope.sources.iter().map(|source| text(source)).collect(),
        recurse: scope.recurse,
    })
}

/// Returns a further line.
pub(super) fn device(dev: u64, clock: Time, local: Time) -> io::Result<Vec<u8>> {
    line(&Device { dev, clock_s: clock.s, clock_ns: clock.ns, local_s: local.s })
}

impl StoredTarget {
    /// Returns whether a path is this one or below it.
    pub fn has(&self, path: &str) -> bool {
        let rest = path.strip_prefix(self.path.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn is_gone(&self) -> bool {
        // The original path cannot be recovered.
        if self.path.contains('%') {
            return false;
        }
        let path = Path::new(&self.path);
        let absent = |path: &Path| {
            path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        };
        // The nearest existing ancestor must be on the volume that the target was on.
        let above = path.ancestors().skip(1).find(|path| !absent(path));
        absent(path)
            && above
                .and_then(|path| path.metadata().ok())
                .is_some_and(|there| there.dev() == self.dev)
    }
}

impl Past {
    /// Reads a record; `None` if it is not a record or cannot be opened.
    pub fn read(path: PathBuf, me: &Owner) -> Option<Past> {
        let owner = owner(path.file_name()?.as_bytes())?;
        let mut bytes = Vec::new();
        let file = File::open(&path).ok()?;
        let found = file.metadata().ok()?;
        file.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
        let heartbeat =
            Time { s: found.mtime(), ns: u32::try_from(found.mtime_nsec()).unwrap_or(0) };
        let (stored, devices) = parse(&bytes);
        Some(Past { path, life: me.judge(&owner), heartbeat, stored, devices })
    }

    /// Returns the time ranges in which the run created files on a file system; those of all file systems if its
    /// device is not known (any more).
    fn windows(&self, dev: u64) -> impl Iterator<Item = Window> {
        let known = self.life != Life::Rebooted && self.devices.iter().any(|line| line.dev == dev);
        let lines = self.devices.iter().filter(move |line| !known || line.dev == dev);
        lines.map(|line| {
            let to_local_s = match self.life {
                Life::Alive => None,
                Life::Dead | Life::Elsewhere => Some(self.heartbeat.s + SLACK_S),
                Life::Rebooted => {
                    Some((self.heartbeat.s + LOST_S).min(hakobu_sys::host::booted_s() + SLACK_S))
                }
            };
            let to_s = to_local_s.map(|to_s| line.clock_s + (to_s - line.local_s));
            Window { from: Time { s: line.clock_s, ns: line.clock_ns }, to_s }
        })
    }

    /// See [`Window::fits`].
    pub fn fits(&self, source: &Meta, target: &Meta) -> bool {
        self.windows(target.dev).any(|window| window.fits(source, target))
    }

    /// Returns whether the run can have created the target: it fits, and its birth time is in the range.
    pub fn made(&self, source: &Meta, target: &Meta, born: Option<Time>) -> bool {
        self.windows(target.dev).any(|window| window.fits(source, target) && window.made(born))
    }

    /// Returns whether the record is no longer needed.
    pub fn is_old(&self, now_s: i64) -> bool {
        now_s - self.heartbeat.s > AGE_S_MAX
    }

    /// Returns whether its targets were removed. A path on an unmounted volume does not count as removed.
    pub fn is_gone(&self) -> bool {
        let Some(stored) = self.stored.as_ref().filter(|_| self.life == Life::Dead) else {
            return false;
        };
        !stored.targets.is_empty() && stored.targets.iter().all(StoredTarget::is_gone)
    }

    /// Returns whether a complete run over `scope` left nothing unfinished of this one.
    pub fn is_finished_by(&self, scope: &Scope) -> bool {
        let Some(stored) = &self.stored else { return false };
        let ended = matches!(self.life, Life::Dead | Life::Rebooted);
        let same_target = |target: &StoredTarget| {
            scope.targets.iter().any(|own| text(own.path.as_os_str().as_bytes()) == target.path)
        };
        let same_source = |source: &String| scope.sources.iter().any(|own| text(own) == *source);
        ended
            && !scope.partial
            && (scope.recurse || !stored.recurse)
            && stored.targets.iter().all(same_target)
            && stored.sources.iter().all(same_source)
    }
}

/// Parses the valid whole lines of a record.
fn parse(bytes: &[u8]) -> (Option<Stored>, Vec<Device>) {
    let mut lines =
        bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    let stored = lines.next().and_then(|line| serde_json::from_slice::<Stored>(line).ok());
    let Some(stored) = stored.filter(|stored| stored.schema == SCHEMA) else {
        return (None, Vec::new());
    };
    (Some(stored), lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

#[cfg(test)]
mod tests;
