//! Demand of jobs on the machine besides files: threads, memory, mappings, descriptors. A thread that
//! cannot allocate memory ends the program, so excessive demands are refused before.

use super::groups;
use crate::job::{Amount, EngineKind, Job, NameUse};
use hakobu_sys::process::{self, Headroom, LimitedResource};

/// Memory that a clone touches besides its buffers: stacks, histograms, the kernel's part. A quarter
/// more than what was measured.
const CLONE_BYTES: u64 = 64 << 10;
/// Records of a clone and of a file, held from the beginning.
const RECORD_BYTES: u64 = 1 << 10;
/// Addresses of a clone besides its buffers: its stack, that for signals, and their guards.
const ADDRESS_BYTES: u64 = super::STACK_BYTES as u64 + (64 << 10);

/// Addresses of a thread that submits blocks: its stack, that for signals, and their guards.
const SUBMITTER_BYTES: u64 = 192 << 10;

/// Describes the resources that jobs lack.
pub fn check(jobs: &[Job]) -> Result<(), String> {
    refuse(jobs, &process::headroom())
}

/// Demand of one clone.
fn of_clone(job: &Job, of: LimitedResource) -> u64 {
    let block_bytes = job.block_bytes.into_iter().max().unwrap_or_default();
    let buffers = block_bytes.saturating_mul(job.depth.max(1).into());
    let files = u64::from(job.files.max(1)).max(job.filenames.len() as u64);
    // Threads that submit its blocks, each with a stack and an engine of its own.
    let submitters = if job.offload { u64::from(job.depth.max(1)) } else { 0 };
    let stacks = submitters.saturating_mul(SUBMITTER_BYTES);
    let own = match (job.engine, job.size) {
        (EngineKind::PageFault, Some(Amount::Bytes(bytes))) => bytes,
        _ => 0,
    };
    match of {
        LimitedResource::Threads => 1 + submitters,
        LimitedResource::Memory => {
            CLONE_BYTES.saturating_add(buffers).saturating_add(own).saturating_add(stacks / 16)
        }
        LimitedResource::Addresses => {
            ADDRESS_BYTES.saturating_add(buffers).saturating_add(own).saturating_add(stacks)
        }
        // A stack and one for signals, each with a guard, and buffers; rings and files besides.
        LimitedResource::Mappings => match job.engine {
            _ if job.offload => 5 + 6 * submitters,
            EngineKind::IoUring => 8,
            EngineKind::Libaio => 6,
            EngineKind::PageFault => 5 + files,
            EngineKind::Mmap => 5 + files,
            _ => 5,
        },
        LimitedResource::Files if job.engine.named() == NameUse::Nothing => 0,
        // One at a time.
        LimitedResource::Files if job.engine.is_of_names() => 1,
        LimitedResource::Files => files + u64::from(job.engine == EngineKind::IoUring),
    }
}

fn refuse(jobs: &[Job], rooms: &[Headroom]) -> Result<(), String> {
    let records = jobs.iter().map(|job| {
        let files = u64::from(job.clones).saturating_mul(job.files.max(1).into());
        files.saturating_add(job.clones.into()).saturating_mul(RECORD_BYTES)
    });
    let records = records.fold(0, u64::saturating_add);
    let begun = |job: &&Job| !job.create_only;
    for room in rooms {
        // Groups run one after the other.
        let needs = groups(jobs).into_iter().map(|group| {
            let of_group = jobs.get(group).unwrap_or_default().iter().filter(begun);
            let each = of_group.map(|job| of_clone(job, room.of).saturating_mul(job.clones.into()));
            each.fold(0, u64::saturating_add)
        });
        let mut need = needs.max().unwrap_or(0);
        if matches!(room.of, LimitedResource::Memory | LimitedResource::Addresses) {
            need = need.saturating_add(records);
        }
        if need <= room.left {
            continue;
        }
        let clones = jobs.iter().map(|job| u64::from(job.clones)).fold(0, u64::saturating_add);
        let what = match room.of {
            LimitedResource::Threads => "threads",
            LimitedResource::Memory => "bytes of memory",
            LimitedResource::Addresses => "bytes of address space",
            LimitedResource::Mappings => "mappings of memory",
            LimitedResource::Files => "open files",
        };
        let (name, left) = (room.name, room.left);
        return Err(format!(
            "{clones} jobs (numjobs) need {need} {what}, and {name} leaves {left}\n\
             hint: fewer jobs with a larger --iodepth, or a higher limit"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(clones: u32) -> Job {
        Job { clones, ..Job::default() }
    }

    fn room(of: LimitedResource, left: u64) -> Vec<Headroom> {
        vec![Headroom { of, name: "the-limit", left }]
    }

    #[test]
    fn every_limit_is_named() {
        for (of, enough) in [
            (LimitedResource::Threads, 100),
            (LimitedResource::Mappings, 500),
            (LimitedResource::Files, 100),
            (LimitedResource::Memory, 100 * ((64 << 10) + 4096 + 2048)),
            (LimitedResource::Addresses, 100 * ((320 << 10) + 4096 + 2048)),
        ] {
            assert_eq!(refuse(&[job(100)], &room(of, enough)), Ok(()), "{of:?}");
            let why = refuse(&[job(100)], &room(of, enough - 1)).unwrap_err();
            assert!(why.starts_with("100 jobs") && why.contains("the-limit leaves"), "{why}");
            assert!(refuse(&[job(u32::MAX)], &room(of, enough)).is_err());
        }
        assert_eq!(refuse(&[job(u32::MAX)], &[]), Ok(()));
    }

    #[test]
    fn groups_follow_each_other() {
        let later = Job { stonewall: true, ..job(60) };
        let threads = room(LimitedResource::Threads, 100);
        assert_eq!(refuse(&[job(60), later.clone()], &threads), Ok(()));
        assert!(refuse(&[job(60), job(60)], &threads).is_err());
        let only_made = Job { create_only: true, ..job(60) };
        assert_eq!(refuse(&[job(60), only_made], &threads), Ok(()));
        let null = Job { engine: EngineKind::Null, ..job(60) };
        assert_eq!(refuse(&[null], &room(LimitedResource::Files, 0)), Ok(()));
        let deep = Job { depth: 1 << 20, ..job(1) };
        assert!(refuse(&[deep], &room(LimitedResource::Memory, 1 << 30)).is_err());
    }
}
