//! All files of all jobs, each once, and what is wanted of it.

use super::look::Found;
use super::{CloneFiles, plan};
use crate::io::{Engine, Job};
use std::collections::HashMap;
use std::path::PathBuf;

/// How one job uses a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub job: usize,
    pub reads: bool,
    pub writes: bool,
    pub direct: bool,
    pub unlink: bool,
    pub create_only: bool,
    /// Of all offsets and lengths the greatest common divisor.
    pub step_bytes: u64,
}

/// One file.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub path: PathBuf,
    pub found: Found,
    /// How long it has to be.
    pub need_bytes: u64,
    /// It is never opened (`ioengine=null`).
    pub null: bool,
    pub uses: Vec<Use>,
}

impl Wish {
    /// Some job writes to it.
    pub(super) fn writes(&self) -> bool {
        self.uses.iter().any(|user| user.writes)
    }

    /// The first job that reads it, for which there must be something to read.
    pub(super) fn reader(&self) -> Option<usize> {
        self.uses.iter().find(|user| user.reads).map(|user| user.job)
    }

    /// Bytes that it has to get, beyond those that it occupies.
    pub(super) fn lacks_bytes(&self) -> u64 {
        match self.found {
            _ if self.null => 0,
            Found::Absent => self.need_bytes,
            // A file that is read as it is needs nothing; one with holes is filled by writes.
            Found::File { bytes, allocated_bytes, .. }
                if bytes < self.need_bytes || self.writes() =>
            {
                self.need_bytes.saturating_sub(allocated_bytes)
            }
            _ => 0,
        }
    }
}

/// Goes through all jobs and looks at all files.
///
/// # Errors
/// What is wrong, with the names of job and file.
pub(super) fn collect(jobs: &[Job]) -> Result<(Vec<Wish>, Vec<CloneFiles>), String> {
    let mut wishes: Vec<Wish> = Vec::new();
    let mut known: HashMap<(PathBuf, bool), usize> = HashMap::new();
    let mut clones = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        let of_job = |why: String| format!("job {}: {why}", job.name);
        plan::check(job).map_err(of_job)?;
        let null = job.engine == Engine::Null;
        for clone in 0..job.clones {
            let names = plan::names(job, clone).map_err(of_job)?;
            let count = names.len();
            let (mut files, mut extents) = (Vec::with_capacity(count), Vec::with_capacity(count));
            for path in names {
                let of_file = |why: String| of_job(format!("{}: {why}", path.display()));
                let key = (path.clone(), null);
                let at = match known.get(&key) {
                    Some(at) => *at,
                    None => {
                        let found = if null {
                            Found::Absent
                        } else {
                            Found::look(&path).map_err(of_file)?
                        };
                        let path = path.clone();
                        wishes.push(Wish { path, found, need_bytes: 0, null, uses: Vec::new() });
                        known.insert(key, wishes.len() - 1);
                        wishes.len() - 1
                    }
                };
                let Some(wish) = wishes.get_mut(at) else { continue };
                // What jobs before it will have laid out is there for this one.
                let planned = Some(wish.need_bytes).filter(|bytes| *bytes > 0);
                let there = wish.found.bytes().or(planned);
                let extent = plan::extent(job, clone, count, there).map_err(of_file)?;
                wish.need_bytes = wish.need_bytes.max(extent.begin_bytes + extent.bytes);
                let steps = plan::blocks(job).chain([extent.begin_bytes]);
                let step = steps.fold(0, divisor);
                match wish.uses.last_mut().filter(|user| user.job == number) {
                    Some(user) => user.step_bytes = divisor(user.step_bytes, step),
                    None => wish.uses.push(used(number, job, step)),
                }
                files.push(at);
                extents.push(extent);
            }
            clones.push(CloneFiles { job: number, clone, files, extents });
        }
    }
    Ok((wishes, clones))
}

fn used(number: usize, job: &Job, step_bytes: u64) -> Use {
    Use {
        job: number,
        reads: job.rw.reads,
        writes: job.rw.writes,
        direct: job.direct && job.engine != Engine::Mmap,
        unlink: job.unlink,
        create_only: job.create_only,
        step_bytes,
    }
}

/// The greatest common divisor (Euclid); of 0 and something the latter.
fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}
