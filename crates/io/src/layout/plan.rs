//! Files of a clone, and the part of each that it works on: fio(1), "target file/device". Pure.

use crate::check::HEADER_BYTES;
use crate::pattern::Extent;
use crate::pattern::random::{Random, seed_of};
use crate::{Amount, Engine, Job, VerifyKind};
use std::path::{Path, PathBuf};

/// Length of a file that is written until there is no room: more than a file system has.
pub(super) const FILL_BYTES: u64 = 1 << 50;

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
    if job.engine == Engine::CpuIo {
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
