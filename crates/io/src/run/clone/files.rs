//! Opens the files of a clone, and looks how long those are that an earlier job has filled.

use super::Task;
use crate::Engine;
use crate::engine::Failure;
use crate::pattern::Extent;
use hakobu_sys::blocks::{self, size_bytes};
use hakobu_sys::{AsFd, OwnedFd, cache, errno};
use std::borrow::Cow;
use std::path::Path;

impl Task<'_> {
    /// Returns the parts of its files that it works on; for files that an earlier job filled, their present extents.
    pub(super) fn extents(&self, files: &[OwnedFd]) -> Result<Cow<'_, [Extent]>, Failure> {
        let planned = &self.files.extents;
        if !self.files.follows {
            return Ok(Cow::Borrowed(planned));
        }
        let largest = self.job.block_bytes.into_iter().max().unwrap_or(1).max(1);
        let there = |((file, extent), path): ((&OwnedFd, &Extent), &&Path)| {
            let here = |errno, why: &dyn std::fmt::Display| Failure {
                errno,
                sentence: format!("{}: {why}", path.display()),
            };
            let bytes =
                size_bytes(file.as_fd()).map_err(|error| here(errno::of(&error), &error))?;
            let left = bytes.unwrap_or(0).saturating_sub(extent.begin_bytes).min(extent.bytes);
            match left < largest {
                true => Err(here(0, &"the job that fills it has left no whole block there")),
                false => Ok(Extent { bytes: left, ..*extent }),
            }
        };
        let found = files.iter().zip(planned).zip(&self.paths).map(there);
        found.collect::<Result<Vec<_>, _>>().map(Cow::Owned)
    }

    /// Opens its files, and lets the page cache forget them (`invalidate`).
    pub(super) fn open(&self) -> Result<Vec<OwnedFd>, Failure> {
        let job = self.job;
        if job.engine.is_of_names() {
            return Ok(Vec::new());
        }
        // Ranges have no sectors.
        let of_ranges = matches!(job.engine, Engine::Falloc | Engine::Ftruncate) || job.trims;
        let direct = job.direct && !of_ranges;
        let writes = job.rw.writes || job.engine == Engine::Falloc;
        let open = |path: &&Path| {
            let file = blocks::open_synced(path, writes, direct, job.sync).map_err(|error| {
                let errno = errno::of(&error);
                let mut sentence = format!("opening {}: {error}", path.display());
                if direct && errno == errno::EINVAL {
                    sentence += " (its file system has no O_DIRECT)";
                }
                Failure { errno, sentence }
            })?;
            if job.invalidate {
                // As far as it can: what others have mapped or not written back stays.
                let _ = cache::forget(file.as_fd());
            }
            Ok(file)
        };
        self.paths.iter().map(open).collect()
    }
}
