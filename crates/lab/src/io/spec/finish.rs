//! The end of reading a job: values that depend on others, what cannot be together, and what was
//! said and has no effect.

use super::super::job::{Amount, Distribution, Engine, Job};
use super::draft::Draft;
use std::path::PathBuf;

/// Options without effect where a job does not write.
const OF_WRITES: &[&str] = &[
    "fsync",
    "fdatasync",
    "end_fsync",
    "buffer_compress_percentage",
    "refill_buffers",
    "zero_buffers",
];
/// Options without effect where order is not random.
const OF_RANDOM: &[&str] = &["norandommap", "random_distribution"];
/// Options without effect where a job does not both read and write.
const OF_MIX: &[&str] = &["rwmixread", "rwmixwrite"];
/// Options without effect where blocks go one after the other.
const OF_DEPTH: &[&str] =
    &["iodepth_batch", "iodepth_batch_complete_min", "iodepth_batch_complete_max", "iodepth_low"];
/// Options without effect on other engines than io_uring.
const OF_URING: &[&str] = &["fixedbufs", "registerfiles"];
const OF_RATE: &[&str] = &["rate_process"];
const OF_THINKTIME: &[&str] = &["thinktime_blocks"];
const OF_CPUS: &[&str] = &["cpus_allowed_policy"];
const OF_LOGS: &[&str] = &["log_avg_msec"];
const OF_CONTENT: &[&str] = &["refill_buffers"];
const OF_GENERATED_NAMES: &[&str] = &["nrfiles"];

/// The job, and what was said without effect.
///
/// # Errors
/// Options that cannot be together.
pub fn job(mut draft: Draft) -> Result<(Job, Vec<String>), String> {
    let mut warnings = Vec::new();
    sizes(&mut draft)?;
    together(&draft.job)?;
    depth(&mut draft, &mut warnings);
    let given = |name: &str| draft.given.contains(&name);
    let job = &mut draft.job;
    if job.time_based && job.runtime.is_none() {
        warnings.push("time_based has no effect without runtime".to_owned());
        job.time_based = false;
    }
    // A seed that is said is one that repeats.
    job.random_repeat |= given("randseed");
    // A map would make all blocks alike likely in the end.
    job.random_map &= job.distribution == Distribution::Uniform;
    // Checksums, and content of one compressibility, are made for each block.
    job.refill |= job.verify.is_some() || job.compress_percent.is_some_and(|percent| percent < 100);
    let unnamed = [&mut job.logs.bandwidth, &mut job.logs.latency, &mut job.logs.iops];
    for (log, is_unnamed) in unnamed.into_iter().zip(draft.unnamed_logs) {
        if is_unnamed {
            *log = Some(PathBuf::from(&job.name));
        }
    }
    let logs = &job.logs;
    let logs = logs.bandwidth.is_some() || logs.latency.is_some() || logs.iops.is_some();
    let rates = job.rate_bytes_per_s.iter().chain(&job.rate_iops).any(Option::is_some);
    for (useless, options, because) in [
        (!job.rw.writes, OF_WRITES, "the job does not write"),
        (!job.rw.random, OF_RANDOM, "the order is sequential"),
        (!(job.rw.reads && job.rw.writes), OF_MIX, "the job does not both read and write"),
        (job.engine != Engine::IoUring, OF_URING, "only io_uring knows it"),
        (!rates, OF_RATE, "there is neither rate nor rate_iops"),
        (job.think.is_zero(), OF_THINKTIME, "there is no thinktime"),
        (job.cpus.is_empty(), OF_CPUS, "there is no cpus_allowed"),
        (!logs, OF_LOGS, "no log is written"),
        (!job.filenames.is_empty(), OF_GENERATED_NAMES, "filename says which files there are"),
        (job.zero, OF_CONTENT, "of zero_buffers"),
    ] {
        for option in options.iter().filter(|option| useless && given(option)) {
            warnings.push(format!("{option} has no effect: {because}"));
        }
    }
    let warnings = warnings.iter().map(|warning| format!("{}: {warning}", job.name)).collect();
    Ok((draft.job, warnings))
}

/// Whether an engine has one block in flight at a time.
fn is_synchronous(engine: Engine) -> bool {
    match engine {
        Engine::Sync | Engine::Psync | Engine::Pvsync2 | Engine::Mmap => true,
        Engine::Libaio | Engine::IoUring | Engine::Null => false,
    }
}

/// `io_size` in percent of `size`.
fn sizes(draft: &mut Draft) -> Result<(), String> {
    let job = &mut draft.job;
    if job.size == Some(Amount::Percent(0)) {
        return Err("size=0% is nothing".to_owned());
    }
    job.io_bytes = job.io_bytes.filter(|bytes| *bytes > 0);
    job.file_bytes = job.file_bytes.filter(|bytes| *bytes > 0);
    job.size = job.size.filter(|size| *size != Amount::Bytes(0));
    let Some(percent) = draft.io_percent else { return Ok(()) };
    let Some(Amount::Bytes(bytes)) = job.size else {
        return Err("io_size in percent needs size in bytes".to_owned());
    };
    let io_bytes = (u128::from(bytes) * u128::from(percent) / 100) as u64;
    job.io_bytes = Some(io_bytes).filter(|bytes| *bytes > 0);
    Ok(())
}

/// What excludes each other.
fn together(job: &Job) -> Result<(), String> {
    let any = |rates: &[Option<u64>; 2]| rates.iter().any(Option::is_some);
    if any(&job.rate_bytes_per_s) && any(&job.rate_iops) {
        return Err("rate and rate_iops exclude each other".to_owned());
    }
    if job.engine == Engine::Mmap && job.direct {
        return Err("ioengine=mmap goes through the page cache; direct=1 cannot be".to_owned());
    }
    Ok(())
}

/// How many blocks are in flight, submitted and reaped at once.
fn depth(draft: &mut Draft, warnings: &mut Vec<String>) {
    let job = &mut draft.job;
    if is_synchronous(job.engine) {
        let engine = format!("{:?}", job.engine).to_lowercase();
        let because = format!("ioengine={engine} is synchronous");
        if job.depth > 1 {
            warnings.push(format!(
                "iodepth={} has no effect: {because}, one block is in flight at a time (use \
                 io_uring or libaio, or numjobs)",
                job.depth
            ));
        }
        for option in OF_DEPTH.iter().filter(|option| draft.given.contains(option)) {
            warnings.push(format!("{option} has no effect: {because}"));
        }
        (job.depth, job.batch_submit, job.depth_low) = (1, 1, 1);
        (job.batch_complete_min, job.batch_complete_max) = (1, 1);
        return;
    }
    let depth = job.depth;
    let or_depth = |count: u32| if count == 0 || count > depth { depth } else { count };
    job.batch_submit = or_depth(draft.batch_submit);
    job.depth_low = or_depth(draft.depth_low.unwrap_or(0));
    job.batch_complete_min = job.batch_complete_min.min(depth);
    let most = draft.batch_complete_max.unwrap_or(job.batch_complete_min);
    job.batch_complete_max = most.max(job.batch_complete_min).max(1).min(depth);
}

/// What must be said before a job can run, but not before it can be read.
///
/// # Errors
/// There is no size to work over.
pub fn can_run(job: &Job) -> Result<(), String> {
    let size = job.size.is_some() || job.file_bytes.is_some() || !job.filenames.is_empty();
    let needs = "needs size= (or filesize=, or filename= of something that is there)";
    if size { Ok(()) } else { Err(format!("{}: {needs}", job.name)) }
}
