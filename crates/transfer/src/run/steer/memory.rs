//! Use of job hints: the key of a run, when it may start with a hint, and when its result is stored.

use super::conditions;
use super::ends::Ends;
use super::facts::Subject;
use crate::journal::{JobHints, Journal, Key};
use crate::plan::Spec;
use hakobu_core::error::Fatal;
use hakobu_core::meter::Counts;
use hakobu_core::unit::Jobs;
use hakobu_explain::verdict::Side;
use hakobu_sys::dir::paths_in;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Minimum duration of a run whose result is stored.
const TAUGHT_MIN: Duration = Duration::from_millis(500);
/// Number of consecutive runs that confirm a number below the rule of thumb.
const CONFIRMED_MIN: u32 = 2;
/// Number of source entries that are sampled to estimate the size of its files.
const SAMPLE: usize = 32;
/// Maximum depth of folders opened for that.
const DEPTH: usize = 4;
/// The size class of the last run: for sources whose sizes are unknown in advance.
const ANY: &str = "any";

/// The job hints for one run.
#[derive(Default)]
pub(in super::super) struct RunHints {
    /// The number of the run before this one, which counts instead of a hint.
    before: Option<usize>,
    /// `None`: hints are neither read nor written.
    job_hints: Option<JobHints>,
    /// Path whose files are sampled for their sizes.
    source: PathBuf,
    /// The user's conditions.
    asked: String,
    teaches: bool,
}

impl RunHints {
    /// Reads the hints, if they are enabled.
    ///
    /// # Errors
    /// The file is damaged: code 1, before anything was moved.
    pub fn read(spec: &Spec) -> Result<RunHints, Fatal> {
        let auto = spec.jobs == Jobs::Auto;
        if auto && spec.jobs_before.is_some() {
            return Ok(RunHints { before: spec.jobs_before, ..RunHints::default() });
        }
        if !auto || !spec.remember || spec.policy.list_only {
            return Ok(RunHints::default());
        }
        let job_hints = JobHints::load(&Journal::of_user(), SystemTime::now())
            .map_err(|damaged| Fatal::new(1, damaged.to_string()))?;
        // Limits and `null:` make other numbers good.
        let limited = spec.bytes_per_s_max.is_some() || spec.operations_per_s_max.is_some();
        Ok(RunHints {
            before: None,
            job_hints: Some(job_hints),
            source: spec.sources.paths().first().cloned().unwrap_or_default(),
            asked: conditions::asked(spec),
            teaches: !limited && !spec.policy.dry_run,
        })
    }

    /// Returns the number that was good last time between these ends, under the same conditions. A number below
    /// `by_rule`, the default, needs several runs to confirm it: most runs are too short to correct the result of one
    /// disturbed run.
    pub(super) fn jobs(&self, ends: &Ends, by_rule: usize) -> Option<usize> {
        if self.before.is_some() {
            return self.before;
        }
        let job_hints = self.job_hints.as_ref()?;
        // Skip sampling if there is no hint for these ends.
        if !job_hints.has_like(&key(ends, ANY)) {
            return None;
        }
        let class = match ends.is_store(Side::Source) {
            true => ANY,
            false => class(mean_size(&self.source)?),
        };
        if !job_hints.has_like(&key(ends, class)) {
            return None;
        }
        let key = key(ends, class).under(&conditions::all(&self.asked, ends));
        let jobs = job_hints.get(&key)?;
        (jobs >= by_rule || job_hints.runs(&key) >= CONFIRMED_MIN).then_some(jobs)
    }

    /// Stores the result of a run with this much work in this time, if that is enough. A failure to write is ignored:
    /// the run is done.
    pub(super) fn remember(
        mut self,
        subject: &Subject,
        jobs: usize,
        counts: &Counts,
        took: Duration,
    ) {
        let Some(job_hints) = self.job_hints.as_mut().filter(|_| self.teaches) else { return };
        if took < TAUGHT_MIN || counts.items == 0 {
            return;
        }
        let now = SystemTime::now();
        let conditions = conditions::all(&self.asked, &subject.ends);
        for class in [ANY, class(counts.bytes / counts.items)] {
            job_hints.put(key(&subject.ends, class).under(&conditions), jobs, now);
        }
        let _ = job_hints.save(now);
    }
}

fn key(ends: &Ends, class: &str) -> Key {
    Key::new(ends.name(Side::Source), ends.name(Side::Target), class)
}

/// Returns the size class of a mean file size in bytes: within a class the same number is good.
fn class(bytes: u64) -> &'static str {
    match bytes >> 10 {
        0..64 => "below-64KiB",
        64..1024 => "below-1MiB",
        1024..16_384 => "below-16MiB",
        _ => "large",
    }
}

/// Returns the mean size of some files of a source, from the start of its first folder; `None` if it has none there.
fn mean_size(source: &Path) -> Option<u64> {
    let meta = source.metadata().ok()?;
    if !meta.is_dir() {
        return Some(meta.len());
    }
    let mut folder = source.to_owned();
    for _ in 0..DEPTH {
        let (mut bytes, mut files, mut next) = (0u64, 0, None);
        for path in paths_in(&folder, SAMPLE).ok()? {
            match path.symlink_metadata() {
                Ok(meta) if meta.is_dir() => next = Some(path),
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
