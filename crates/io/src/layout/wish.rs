//! All files of all jobs, each once, and the requirements for it.

use super::files::CloneFiles;
use super::found::Found;
use super::plan;
use crate::job::Named;
use crate::pattern::Extent;
use crate::{Engine, Job};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Use of a file by one job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use<'a> {
    pub job: &'a Job,
    pub reads: bool,
    pub writes: bool,
    /// Existing content is required before the job writes.
    pub overwrites: bool,
    pub direct: bool,
    pub unlink: bool,
    /// Greatest common divisor of all offsets and lengths.
    pub step_bytes: u64,
}

/// One file.
#[derive(Clone, Debug)]
pub(super) struct Wish<'a> {
    pub path: PathBuf,
    pub found: Found,
    /// Its least length.
    pub need_bytes: u64,
    /// Its use: engines of names create it, call stat(2) for it, or remove it.
    pub named: Named,
    /// It has to be there (`allow_file_create=0`).
    pub must_exist: bool,
    pub uses: Vec<Use<'a>>,
}

impl<'a> Wish<'a> {
    /// Returns whether the file is never opened.
    pub(super) fn is_nothing(&self) -> bool {
        self.named == Named::Nothing
    }

    /// It is a folder, or is to be one.
    pub(super) fn is_folder(&self) -> bool {
        matches!(
            self.named,
            Named::Made { folder: true }
                | Named::Seen { folder: true }
                | Named::Removed { folder: true }
        )
    }

    /// An engine makes it, and nothing may be there before.
    pub(super) fn is_made(&self) -> bool {
        matches!(self.named, Named::Made { .. })
    }

    /// It is a file whose content is moved, or at least a file that is to be there before.
    pub(super) fn is_laid_out(&self) -> bool {
        !self.is_nothing() && !self.is_made()
    }

    /// It begins empty, and writes make it longer.
    pub(super) fn grows(&self) -> bool {
        let fills = self.uses.iter().any(|user| user.job.fills);
        self.named == Named::Content && (fills || self.uses.iter().all(|user| user.job.grows))
    }

    /// Some job writes to it.
    pub(super) fn writes(&self) -> bool {
        self.uses.iter().any(|user| user.writes)
    }

    /// The first job that reads it, or overwrites it, for which there must be something.
    pub(super) fn reader(&self) -> Option<&'a Job> {
        self.uses.iter().find(|user| user.reads || user.overwrites).map(|user| user.job)
    }

    /// Its blocks are reserved before anything is written.
    pub(super) fn reserves(&self) -> bool {
        self.uses.iter().all(|user| user.job.reserve)
    }

    /// Bytes that it has to get, beyond those that it occupies.
    pub(super) fn lacks_bytes(&self) -> u64 {
        match self.found {
            _ if !self.is_laid_out() || self.is_folder() || self.grows() => 0,
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
/// A sentence with the names of job and file.
pub(super) fn collect(jobs: &[Job]) -> Result<(Vec<Wish<'_>>, Vec<CloneFiles>), String> {
    let mut wishes: Vec<Wish<'_>> = Vec::new();
    let mut known: HashMap<(PathBuf, bool), usize> = HashMap::new();
    let mut clones = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        let of_job = |why: String| format!("job {}: {why}", job.name);
        plan::check(job).map_err(of_job)?;
        let named = job.engine.named();
        for clone in 0..job.clones {
            let names = plan::names(job, clone).map_err(of_job)?;
            let count = names.len();
            let mut follows = false;
            let (mut files, mut extents) = (Vec::with_capacity(count), Vec::with_capacity(count));
            for (file, path) in names.into_iter().enumerate() {
                let of_file = |why: String| of_job(format!("{}: {why}", path.display()));
                let at = place(&mut wishes, &mut known, &path, job).map_err(of_file)?;
                let Some(wish) = wishes.get_mut(at) else { continue };
                // Files that earlier jobs lay out exist for this one.
                let planned = Some(wish.need_bytes).filter(|bytes| *bytes > 0);
                let is_device = matches!(wish.found, Found::Device { .. });
                let filled = wish.uses.iter().any(|user| user.job.fills);
                let there = match (filled || job.fills) && !is_device {
                    true => Some(plan::FILL_BYTES),
                    false => wish.found.bytes().or(planned),
                };
                follows |= filled && !job.fills;
                if wish.named != named {
                    let why = "another job uses it in another way: its content, or its name";
                    return Err(of_job(format!("{}: {why}", wish.path.display())));
                }
                wish.must_exist |= job.must_exist;
                let of_names = job.engine.is_of_names();
                let extent = match of_names {
                    false => plan::extent(job, clone, (file, count), there).map_err(of_file)?,
                    // One operation on each.
                    true => Extent { begin_bytes: 0, bytes: plan::blocks(job).max().unwrap_or(1) },
                };
                // The length of a file that is filled is not known in advance.
                let is_open = (filled || job.fills) && !is_device;
                let need_bytes = match of_names {
                    false if is_open => 0,
                    false => extent.begin_bytes + extent.bytes,
                    true if wish.is_folder() || wish.is_made() => 0,
                    true => plan::name_bytes(job, clone, (file, count)),
                };
                wish.need_bytes = wish.need_bytes.max(need_bytes);
                let aligns = job.align_bytes.into_iter().flatten().filter(|_| job.rw.random);
                let steps = plan::blocks(job).chain([extent.begin_bytes]).chain(aligns);
                let step = steps.fold(0, divisor);
                match wish.uses.last_mut().filter(|user| std::ptr::eq(user.job, job)) {
                    Some(user) => user.step_bytes = divisor(user.step_bytes, step),
                    None => wish.uses.push(used(job, step)),
                }
                files.push(at);
                extents.push(extent);
            }
            clones.push(CloneFiles { job: number, clone, files, extents, follows });
        }
    }
    Ok((wishes, clones))
}

/// Place of a file among all, where it is looked at when it is new.
fn place(
    wishes: &mut Vec<Wish<'_>>,
    known: &mut HashMap<(PathBuf, bool), usize>,
    path: &Path,
    job: &Job,
) -> Result<usize, String> {
    let named = job.engine.named();
    let nothing = named == Named::Nothing;
    let key = (path.to_owned(), nothing);
    if let Some(at) = known.get(&key) {
        return Ok(*at);
    }
    let found = if nothing { Found::Absent } else { Found::look(path)? };
    let (need_bytes, must_exist, uses) = (0, false, Vec::new());
    wishes.push(Wish { path: path.to_owned(), found, need_bytes, named, must_exist, uses });
    known.insert(key, wishes.len() - 1);
    Ok(wishes.len() - 1)
}

fn used(job: &Job, step_bytes: u64) -> Use<'_> {
    let of_names = job.engine.is_of_names();
    let removes = matches!(job.engine.named(), Named::Removed { .. });
    // Engines that only allocate or free ranges need neither whole sectors nor content.
    let of_ranges = matches!(job.engine, Engine::Falloc | Engine::Ftruncate) || job.trims;
    Use {
        job,
        reads: job.rw.reads && !of_names && !of_ranges,
        writes: (job.rw.writes || job.engine == Engine::Falloc) && !of_names,
        overwrites: job.overwrite && job.rw.writes && !of_names,
        direct: job.direct && job.engine != Engine::Mmap && !of_names && !of_ranges,
        unlink: job.unlink || removes,
        step_bytes,
    }
}

/// The greatest common divisor (Euclid); of 0 and something the latter.
fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}
