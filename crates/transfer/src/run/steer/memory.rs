//! What earlier runs found out: which key a run has in the journal of good numbers, when it may
//! begin with one of them, and when it has something to teach.

use super::ends::Ends;
use super::facts::Subject;
use crate::error::Fatal;
use crate::journal::{Journal, Key, Seed, Seeds};
use crate::meter::Counts;
use crate::plan::Spec;
use crate::unit::Jobs;
use crate::verdict::Side;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Shorter runs teach nothing.
const TAUGHT_MIN: Duration = Duration::from_millis(500);
/// Entries of a source that are looked at to guess how large its files are.
const SAMPLE: usize = 32;
/// Folders that are opened for that, one inside the other.
const DEPTH: usize = 4;
/// The class of whatever was moved last: for sources whose sizes nobody knows before.
const ANY: &str = "any";

/// What is remembered, for one run.
#[derive(Default)]
pub(in super::super) struct Notes {
    /// `None`: nothing is to be read or written.
    seeds: Option<Seeds>,
    /// Where to look for sizes.
    source: PathBuf,
    teaches: bool,
}

impl Notes {
    /// Reads what is remembered, if it is wanted.
    ///
    /// # Errors
    /// The file is damaged: code 1, before anything was moved.
    pub fn read(spec: &Spec) -> Result<Notes, Fatal> {
        if !spec.remember || spec.jobs != Jobs::Auto || spec.policy.list_only {
            return Ok(Notes::default());
        }
        let seeds = Seeds::load(&Journal::of_user(), SystemTime::now())
            .map_err(|damaged| Fatal::new(1, damaged.to_string()))?;
        // Under a limit, and where nothing is written, other numbers are good than without.
        let limited = spec.bytes_per_s_max.is_some() || spec.operations_per_s_max.is_some();
        Ok(Notes {
            seeds: Some(seeds),
            source: spec.sources.first().cloned().unwrap_or_default(),
            teaches: !limited && !spec.policy.dry_run,
        })
    }

    /// What was good the last time between these ends.
    pub(super) fn jobs(&self, ends: &Ends) -> Option<usize> {
        let seeds = self.seeds.as_ref()?;
        // Nothing is looked at for nothing.
        let whatever = seeds.get(&key(ends, ANY))?;
        let seed = match ends.is_store(Side::Source) {
            true => whatever,
            false => seeds.get(&key(ends, class(mean_size(&self.source)?)))?,
        };
        Some(seed.jobs)
    }

    /// Remembers what was good for a run that did so much in so long, if that is enough to learn
    /// from. A place that cannot be written is no reason to complain: the run is done.
    pub(super) fn remember(
        mut self,
        subject: &Subject,
        jobs: usize,
        counts: &Counts,
        took: Duration,
    ) {
        let Some(seeds) = self.seeds.as_mut().filter(|_| self.teaches) else { return };
        if took < TAUGHT_MIN || counts.items == 0 {
            return;
        }
        let now = SystemTime::now();
        for class in [ANY, class(counts.bytes / counts.items)] {
            seeds.put(key(&subject.ends, class), Seed { jobs }, now);
        }
        let _ = seeds.save(now);
    }
}

fn key(ends: &Ends, class: &str) -> Key {
    Key::new(ends.name(Side::Source), ends.name(Side::Target), class)
}

/// The class of a mean size of files in bytes: within one of them the same number is good.
fn class(bytes: u64) -> &'static str {
    match bytes >> 10 {
        0..64 => "below-64KiB",
        64..1024 => "below-1MiB",
        1024..16_384 => "below-16MiB",
        _ => "large",
    }
}

/// The mean size of some files of a source: those that its first folder shows first. `None` where
/// it has none there.
fn mean_size(source: &Path) -> Option<u64> {
    let meta = source.metadata().ok()?;
    if !meta.is_dir() {
        return Some(meta.len());
    }
    let mut folder = source.to_owned();
    for _ in 0..DEPTH {
        let (mut bytes, mut files, mut next) = (0u64, 0, None);
        for entry in std::fs::read_dir(&folder).ok()?.take(SAMPLE).flatten() {
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => next = Some(entry.path()),
                Ok(meta) => (bytes, files) = (bytes.saturating_add(meta.len()), files + 1),
                Err(_) => {}
            }
        }
        match (files, next) {
            (1.., _) => return Some(bytes / files),
            (0, Some(next)) => folder = next,
            (0, None) => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_a_source() {
        let dir = std::env::temp_dir().join(format!("hakobu-sizes-{}", std::process::id()));
        let deep = dir.join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        assert_eq!(mean_size(&dir), None);
        std::fs::write(deep.join("f"), [0; 300]).unwrap();
        std::fs::write(deep.join("g"), [0; 100]).unwrap();
        assert_eq!(mean_size(&dir), Some(200));
        assert_eq!(mean_size(&deep.join("f")), Some(300));
        assert_eq!(mean_size(&deep.join("none")), None);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn classes_grow() {
        let sizes = [0, 65_535, 65_536, 1 << 20, 16 << 20, u64::MAX];
        let classes: Vec<&str> = sizes.iter().map(|size| class(*size)).collect();
        assert_eq!(
            classes,
            ["below-64KiB", "below-64KiB", "below-1MiB", "below-16MiB", "large", "large"]
        );
    }
}
