//! The files of all jobs, each once, what is required of it, and the part of each that a clone works on: fio(1), "target
//! file/device".

use super::CloneFiles;
use super::safety::FileState;
use crate::check::HEADER_BYTES;
use crate::job::{Amount, EngineKind, Job, NameUse, VerifyKind};
use crate::pattern::Extent;
use crate::random::{Random, seed_of};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Use of a file by one job.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileUse<'a> {
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

#[derive(Clone, Debug)]
pub(super) struct FilePlan<'a> {
    pub path: PathBuf,
    pub found: FileState,
    /// Its least length.
    pub need_bytes: u64,
    /// Its use: engines of names create it, call stat(2) for it, or remove it.
    pub named: NameUse,
    /// It has to be there (`allow_file_create=0`).
    pub must_exist: bool,
    pub uses: Vec<FileUse<'a>>,
}

impl<'a> FilePlan<'a> {
    /// Returns whether the file is never opened.
    pub(super) fn is_nothing(&self) -> bool {
        self.named == NameUse::Nothing
    }

    pub(super) fn is_folder(&self) -> bool {
        matches!(
            self.named,
            NameUse::Made { folder: true }
                | NameUse::Seen { folder: true }
                | NameUse::Removed { folder: true }
        )
    }

    /// An engine makes it, and nothing may be there before.
    pub(super) fn is_made(&self) -> bool {
        matches!(self.named, NameUse::Made { .. })
    }

    /// It is a file whose content is moved, or at least a file that is to be there before.
    pub(super) fn is_laid_out(&self) -> bool {
        !self.is_nothing() && !self.is_made()
    }

    /// It begins empty, and writes make it longer.
    pub(super) fn grows(&self) -> bool {
        let fills = self.uses.iter().any(|user| user.job.fills);
        self.named == NameUse::Content && (fills || self.uses.iter().all(|user| user.job.grows))
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
            FileState::Absent => self.need_bytes,
            // A file that is read as it is needs nothing; one with holes is filled by writes.
            FileState::File { bytes, allocated_bytes, .. }
                if bytes < self.need_bytes || self.writes() =>
            {
                self.need_bytes.saturating_sub(allocated_bytes)
            }
            _ => 0,
        }
    }
}

/// Goes through all jobs and looks at all files.
pub(super) fn collect(jobs: &[Job]) -> Result<(Vec<FilePlan<'_>>, Vec<CloneFiles>), String> {
    let mut plans: Vec<FilePlan<'_>> = Vec::new();
    let mut known: HashMap<(PathBuf, bool), usize> = HashMap::new();
    let mut clones = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        let of_job = |why: String| format!("job {}: {why}", job.name);
        check(job).map_err(of_job)?;
        let named = job.engine.named();
        for clone in 0..job.clones {
            let names = names(job, clone).map_err(of_job)?;
            let count = names.len();
            let mut follows = false;
            let (mut files, mut extents) = (Vec::with_capacity(count), Vec::with_capacity(count));
            for (file, path) in names.into_iter().enumerate() {
                let of_file = |why: String| of_job(format!("{}: {why}", path.display()));
                let at = place(&mut plans, &mut known, &path, job).map_err(of_file)?;
                let Some(plan) = plans.get_mut(at) else { continue };
                // Files that earlier jobs lay out exist for this one.
                let planned = Some(plan.need_bytes).filter(|bytes| *bytes > 0);
                let is_device = matches!(plan.found, FileState::Device { .. });
                let filled = plan.uses.iter().any(|user| user.job.fills);
                let there = match (filled || job.fills) && !is_device {
                    true => Some(FILL_BYTES),
                    false => plan.found.bytes().or(planned),
                };
                follows |= filled && !job.fills;
                if plan.named != named {
                    let why = "another job uses it in another way: its content, or its name";
                    return Err(of_job(format!("{}: {why}", plan.path.display())));
                }
                plan.must_exist |= job.must_exist;
                let of_names = job.engine.is_of_names();
                let extent = match of_names {
                    false => extent(job, clone, (file, count), there).map_err(of_file)?,
                    // One operation on each.
                    true => Extent { begin_bytes: 0, bytes: blocks(job).max().unwrap_or(1) },
                };
                // The length of a file that is filled is not known in advance.
                let is_open = (filled || job.fills) && !is_device;
                let need_bytes = match of_names {
                    false if is_open => 0,
                    false => extent.begin_bytes + extent.bytes,
                    true if plan.is_folder() || plan.is_made() => 0,
                    true => name_bytes(job, clone, (file, count)),
                };
                plan.need_bytes = plan.need_bytes.max(need_bytes);
                let aligns = job.align_bytes.into_iter().flatten().filter(|_| job.rw.random);
                let steps = blocks(job).chain([extent.begin_bytes]).chain(aligns);
                let step = steps.fold(0, divisor);
                match plan.uses.last_mut().filter(|user| std::ptr::eq(user.job, job)) {
                    Some(user) => user.step_bytes = divisor(user.step_bytes, step),
                    None => plan.uses.push(used(job, step)),
                }
                files.push(at);
                extents.push(extent);
            }
            clones.push(CloneFiles { job: number, clone, files, extents, follows });
        }
    }
    Ok((plans, clones))
}

/// Place of a file among all, where it is looked at when it is new.
fn place(
    plans: &mut Vec<FilePlan<'_>>,
    known: &mut HashMap<(PathBuf, bool), usize>,
    path: &Path,
    job: &Job,
) -> Result<usize, String> {
    let named = job.engine.named();
    let nothing = named == NameUse::Nothing;
    let key = (path.to_owned(), nothing);
    if let Some(at) = known.get(&key) {
        return Ok(*at);
    }
    let found = if nothing { FileState::Absent } else { FileState::look(path)? };
    let (need_bytes, must_exist, uses) = (0, false, Vec::new());
    plans.push(FilePlan { path: path.to_owned(), found, need_bytes, named, must_exist, uses });
    known.insert(key, plans.len() - 1);
    Ok(plans.len() - 1)
}

fn used(job: &Job, step_bytes: u64) -> FileUse<'_> {
    let of_names = job.engine.is_of_names();
    let removes = matches!(job.engine.named(), NameUse::Removed { .. });
    // Engines that only allocate or free ranges need neither whole sectors nor content.
    let of_ranges = matches!(job.engine, EngineKind::Falloc | EngineKind::Ftruncate) || job.trims;
    FileUse {
        job,
        reads: job.rw.reads && !of_names && !of_ranges,
        writes: (job.rw.writes || job.engine == EngineKind::Falloc) && !of_names,
        overwrites: job.overwrite && job.rw.writes && !of_names,
        direct: job.direct && job.engine != EngineKind::Mmap && !of_names && !of_ranges,
        unlink: job.unlink || removes,
        step_bytes,
    }
}

/// The greatest common divisor (Euclid); of 0 and something the latter.
fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// Length of a file that is written until there is no room: more than a file system has.
const FILL_BYTES: u64 = 1 << 50;

/// Checks of a job before anything is looked at.
pub(super) fn check(job: &Job) -> Result<(), String> {
    for bytes in blocks(job) {
        if bytes == 0 || u32::try_from(bytes).is_err() {
            return Err(format!("bs: blocks of {bytes} bytes: from 1 to 4294967295 is possible"));
        }
        if job.verify.is_some_and(|kind| kind != VerifyKind::Pattern)
            && bytes <= HEADER_BYTES as u64
        {
            return Err(format!(
                "verify: blocks of {bytes} bytes have no room for the header of {HEADER_BYTES}",
            ));
        }
    }
    Ok(())
}

/// Sizes of the blocks of the directions that it goes in.
pub(super) fn blocks(job: &Job) -> impl Iterator<Item = u64> {
    let sides = [job.rw.reads, job.rw.writes].into_iter().enumerate();
    sides.filter(|(_, used)| *used).flat_map(|(side, _)| match &job.sizes[side] {
        Some(sizes) => sizes.ends(),
        None => vec![job.block_bytes[side]],
    })
}

/// The files of a clone: those of `filename`, in the first `directory`, or `JOB.CLONE.FILE` in its own
/// (`filename_format`'s default).
pub(super) fn names(job: &Job, clone: u32) -> Result<Vec<PathBuf>, String> {
    if job.engine == EngineKind::CpuIo {
        return Ok(Vec::new());
    }
    let count = job.directories.len().max(1);
    let directory = |clone: u32| {
        let own = job.directories.get(clone as usize % count);
        own.map_or(Path::new(""), PathBuf::as_path)
    };
    if !job.filenames.is_empty() {
        return Ok(job.filenames.iter().map(|name| directory(0).join(name)).collect());
    }
    if let Some(format) = &job.name_format {
        let name = |file: u32| {
            let name = format.replace("$jobname", &job.name).replace("$jobnum", &clone.to_string());
            directory(clone).join(name.replace("$filenum", &file.to_string()))
        };
        return Ok((0..job.files.max(1)).map(name).collect());
    }
    if job.name.contains('/') {
        return Err("a name with a / cannot be part of the names of its files: give it another \
                    name, or its files by filename="
            .to_owned());
    }
    let name = |file| directory(clone).join(format!("{}.{clone}.{file}", job.name));
    Ok((0..job.files.max(1)).map(name).collect())
}

/// Wanted length of a file (`filesize`); of a range, by the seed.
fn own_bytes(job: &Job, clone: u32, file: usize) -> Option<u64> {
    let least = job.file_bytes?;
    let Some(most) = job.file_bytes_max else { return Some(least) };
    let mut random =
        Random::new(job.seed ^ seed_of(&job.name), u64::from(clone) << 32 | file as u64);
    let largest = blocks(job).max().unwrap_or(1);
    let bytes = least + random.below((most - least).saturating_add(1));
    // Whole blocks, and at least one.
    Some((bytes - bytes % largest).max(largest))
}

/// Bytes of a file that an engine of names works on: those of `filesize`, or its part of `size`.
pub(super) fn name_bytes(job: &Job, clone: u32, (file, files): (usize, usize)) -> u64 {
    let each = match job.size {
        Some(Amount::Bytes(bytes)) => bytes / files.max(1) as u64,
        _ => 0,
    };
    own_bytes(job, clone, file).unwrap_or(each)
}

/// The part of one of `files` files (the `file`-th of them) that a clone works on. `there` is how long the file or device is,
/// if there is one.
pub(super) fn extent(
    job: &Job,
    clone: u32,
    (file, files): (usize, usize),
    there: Option<u64>,
) -> Result<Extent, String> {
    let step = blocks(job).min().unwrap_or(1);
    // `size` for each file; a size that is too small to be divided counts as none.
    let each = match job.size {
        Some(Amount::Bytes(bytes)) => Some(bytes / files.max(1) as u64).filter(|each| *each > 0),
        _ => None,
    };
    let own = own_bytes(job, clone, file);
    let whole = own.or(there).or(each);
    let Some(whole) = whole else {
        return Err(match job.size {
            Some(Amount::Percent(_)) => "the file does not exist, so size cannot be a share of it",
            _ => "the file does not exist, and size= does not give its size",
        }
        .to_owned());
    };
    let share = |percent: u8| (u128::from(whole) * u128::from(percent) / 100) as u64;
    let offset = |of: Amount| match of {
        Amount::Bytes(bytes) => Some(bytes),
        Amount::Percent(percent) => share(percent).checked_next_multiple_of(step),
    };
    let further = offset(job.offset_increment).and_then(|bytes| bytes.checked_mul(clone.into()));
    let begin =
        offset(job.offset).zip(further).and_then(|(begin, further)| begin.checked_add(further));
    let begin = begin.ok_or("offset: too large for 64 bits")?;
    let bytes = match (own, each, job.size) {
        // The rest, or a share, of the present or future size.
        (_, _, Some(Amount::Percent(percent))) => {
            let bytes = share(percent).min(whole.saturating_sub(begin));
            bytes - bytes % step
        }
        (None, Some(each), _) => each,
        _ => whole.saturating_sub(begin),
    };
    if bytes == 0 && begin > 0 {
        return Err(format!("offset: begins at {begin} of {whole} bytes"));
    }
    let largest = blocks(job).max().unwrap_or(1);
    if bytes < largest {
        return Err(format!("no block of {largest} bytes fits into its part of {bytes} bytes"));
    }
    if let Some(last) = job.spread.sequence.iter().max().filter(|last| **last >= bytes / largest) {
        return Err(format!(
            "random_distribution=sequence: block {last} is behind its part of {bytes} bytes"
        ));
    }
    match begin.checked_add(bytes) {
        Some(_) => Ok(Extent { begin_bytes: begin, bytes }),
        None => Err("offset and size: too large for 64 bits".to_owned()),
    }
}
