//! From options to a job: fio's defaults, values that depend on each other, options that exclude each other, and notes about
//! options without effect.

use super::units;
use super::units::{UnitBase, refuse, unless_zero};
use super::values::{self, PrioritySplit};
use crate::check::HEADER_BYTES;
use crate::job::{
    Amount, BlockSizes, DedupeOptions, Distribution, EngineKind, ExitWhat, FlowShare, Ioprio, Job,
    LatencyTarget, NameUse, PriorityShare, Sync, VerifyKind, Zones,
};
use crate::steady::{SteadyCriterion, SteadyState};
use std::path::PathBuf;
use std::time::Duration;

defaulted! {
    /// A job with defaults, and its unresolved values.
    #[derive(Clone, Debug)]
    pub struct Draft {
        /// The values that stand by themselves.
        pub job: Job,
        /// Bytes of `k`.
        pub base: UnitBase,
        /// `bsrange`, and `bssplit`, which goes before it and before `bs`.
        pub range: [Option<BlockSizes>; 2],
        pub split: [Option<BlockSizes>; 2],
        /// The part after the colon of `rw`.
        pub step: Option<String>,
        /// `steadystate`, its duration, its ramp time, and the time between two looks.
        pub steady: (Option<SteadyCriterion>, u32, u32, u32) = (None, 0, 0, 1),
        /// `io_size` as percent of `size`.
        pub io_percent: Option<u8>,
        /// `iodepth_batch_submit`; 0 is as many as `iodepth`.
        pub batch_submit: u32 = 1,
        /// `iodepth_batch_complete_max`, if given.
        pub batch_complete_max: Option<u32>,
        /// `iodepth_low`, if given.
        pub depth_low: Option<u32>,
        /// `exitall`, and `exit_what`.
        pub exit: (bool, ExitWhat) = (false, ExitWhat::Group),
        /// `flow`, and its id and its sleep.
        pub flow: (Option<u32>, u32, Duration),
        /// `latency_target`, and what belongs to it.
        pub aim: (Option<Duration>, LatencyTarget) = (None, AIM),
        /// `zonemode=strided`, and `zonesize`, `zonerange`, `zoneskip`.
        pub strided: bool,
        pub zone_bytes: [u64; 3],
        /// `dedupe_percentage`, and what belongs to it: mode and set.
        pub dedupe: (u8, bool, Option<u8>, bool),
        /// `openfiles`.
        pub open_files: Option<u32>,
        /// I/O priorities.
        pub priorities: PriorityOptions,
        /// Notes about options without effect, each with the reason.
        pub notes: Vec<String>,
        /// First names of the options that were given, for the notes.
        pub given: Vec<&'static str>,
    }
}

/// Options of I/O priorities; pairs are for reads and writes.
#[derive(Clone, Debug, Default)]
pub struct PriorityOptions {
    /// `prioclass` and `prio` of the thread.
    pub own: (Option<u8>, Option<u8>),
    /// `cmdprio_percentage`.
    pub percent: [Option<u8>; 2],
    /// `cmdprio_class` and `cmdprio`.
    pub class: [Option<u8>; 2],
    pub level: [Option<u8>; 2],
    /// `cmdprio_bssplit`.
    pub split: [Vec<PrioritySplit>; 2],
}

/// Defaults of the options that belong to `latency_target`.
const AIM: LatencyTarget = LatencyTarget {
    latency: Duration::ZERO,
    window: Duration::ZERO,
    percentile: 100.0,
    goes_on: false,
};

/// Returns the job, and notes about options without effect.
pub fn job(mut draft: Draft) -> Result<(Job, Vec<String>), String> {
    let mut warnings = Vec::new();
    // The kernel decides when blocks of the page cache are written.
    draft.job.direct |= draft.job.atomic;
    sizes(&mut draft)?;
    blocks(&mut draft)?;
    groups(&mut draft)?;
    together(&draft.job)?;
    of_verify(&draft.job)?;
    names(&draft)?;
    priorities(&draft.priorities, &mut draft.job)?;
    depth(&mut draft, &mut warnings);
    let given = |name: &str| draft.given.contains(&name);
    let job = &mut draft.job;
    if job.time_based && job.runtime.is_none() {
        warnings.push("time_based has no effect without runtime".to_owned());
        job.time_based = false;
    }
    let (criterion, window_s, ramp_s, every_s) = draft.steady;
    job.steady = criterion.filter(|_| window_s > 0).map(|criterion| {
        // One look has no change.
        SteadyState { criterion, window_s: window_s.max(2 * every_s), ramp_s, every_s }
    });
    // An explicit seed implies a repeatable sequence.
    job.random_repeat |= given("randseed");
    // A map would make all blocks alike likely in the end, and it is one of blocks of one size.
    job.random_map &= job.distribution == Distribution::Uniform
        && job.sizes.iter().all(Option::is_none)
        && job.align_bytes.iter().all(Option::is_none)
        && job.run_blocks == 1;
    // Checksums, and content of one compressibility, are made for each block.
    job.refill |= job.verify.is_some() || job.compress_percent.is_some_and(|percent| percent < 100);
    job.refill |= job.written.dedupe.is_some();
    // A log without a name is called like the job.
    let logs = [&mut job.logs.bandwidth, &mut job.logs.latency, &mut job.logs.iops];
    for log in logs.into_iter().flatten().filter(|log| log.as_os_str().is_empty()) {
        *log = PathBuf::from(&job.name);
    }
    warnings.extend(useless(&draft));
    let mut warnings: Vec<String> =
        warnings.iter().map(|warning| format!("{}: {warning}", draft.job.name)).collect();
    // Notes that hold for all jobs are printed once.
    warnings.append(&mut draft.notes);
    Ok((draft.job, warnings))
}

/// Returns whether a job has one block in flight at a time.
fn is_synchronous(job: &Job) -> bool {
    match job.engine {
        EngineKind::Libaio | EngineKind::IoUring | EngineKind::Null => job.trims,
        // Each block in flight has a thread of its own.
        _ => !job.offload || job.trims,
    }
}

/// Combines options that belong together: relations to other jobs, zones, copies, a target latency.
fn groups(draft: &mut Draft) -> Result<(), String> {
    let job = &mut draft.job;
    job.among.exit = Some(draft.exit.1).filter(|_| draft.exit.0);
    let (weight, id, sleep) = draft.flow;
    job.among.flow = weight.map(|weight| FlowShare { weight, id, sleep });
    let [work_bytes, range_bytes, skip_bytes] = draft.zone_bytes;
    job.spread.zones = None;
    if draft.strided {
        refuse(work_bytes == 0, "zonemode=strided needs zonesize")?;
        refuse(job.rw.random, "zonemode=strided in random order is not supported")?;
        let range_bytes = unless_zero(range_bytes).unwrap_or(work_bytes);
        refuse(
            job.block_bytes.iter().any(|bytes| range_bytes % bytes != 0),
            "zonerange (or zonesize) is not a multiple of the block size",
        )?;
        job.spread.zones = Some(Zones { work_bytes, range_bytes, skip_bytes });
    }
    let (percent, has_set, set_percent, global) = draft.dedupe;
    let working_set_percent = has_set.then(|| set_percent.unwrap_or(SET_PERCENT).max(1));
    job.written.dedupe =
        (percent > 0).then_some(DedupeOptions { percent, working_set_percent, global });
    let (latency, aim) = draft.aim;
    job.aim = latency.map(|latency| {
        let window = if aim.window.is_zero() { WINDOW } else { aim.window };
        LatencyTarget { latency, window, ..aim }
    });
    Ok(())
}

/// Default set of blocks that copies are taken from, percent.
const SET_PERCENT: u8 = 5;
/// Default time at each depth.
const WINDOW: Duration = Duration::from_secs(1);

/// Checks options of engines of names, and those that say when files are created and opened.
fn names(draft: &Draft) -> Result<(), String> {
    let job = &draft.job;
    let named = job.engine.named();
    refuse(
        job.grows && matches!(named, NameUse::Seen { .. } | NameUse::Removed { .. }),
        "create_on_open=1 does not go with engines that look at names or remove them: these have \
         to be there",
    )?;
    let grows = job.grows || job.fills;
    refuse(
        grows && job.engine == EngineKind::Mmap,
        "ioengine=mmap needs files as long as its blocks: not with create_on_open=1 or \
         fill_device=1",
    )?;
    refuse(
        grows && job.overwrite,
        "overwrite=1 wants files that are written before: not with create_on_open=1 or \
         fill_device=1",
    )?;
    let is_sequence = !job.rw.random && !job.rw.reads && !job.trims && job.skip_bytes == 0;
    refuse(
        job.fills && (!is_sequence || named != NameUse::Content),
        "fill_device=1 is for files that are written in sequence (rw=write)",
    )?;
    refuse(
        named == NameUse::Content && draft.open_files.is_some_and(|files| files < job.files),
        "fewer openfiles than nrfiles is not supported: all files of a job are open",
    )?;
    refuse(
        job.engine == EngineKind::CpuIo && job.cpu.load_percent == 0,
        "ioengine=cpuio needs cpuload, from 1 to 100",
    )
}

/// Refuses options that exclude `verify`.
fn of_verify(job: &Job) -> Result<(), String> {
    let Some(kind) = job.verify else { return Ok(()) };
    let has_pattern = kind != VerifyKind::Pattern || !job.written.pattern.is_empty();
    refuse(!has_pattern, "verify=pattern needs verify_pattern")?;
    refuse(job.trims, "verify does not go with trims")?;
    if let Some(interval) = job.checks.interval_bytes.map(u64::from) {
        if interval <= HEADER_BYTES as u64 {
            return Err(format!(
                "verify_interval has no room for the header of {HEADER_BYTES} bytes"
            ));
        }
        let divides = job.block_bytes.iter().all(|bytes| bytes % interval == 0);
        refuse(!divides, "verify_interval does not divide the block size")?;
    }
    let overlaps = |(align, bytes): (&Option<u64>, &u64)| align.is_some_and(|of| of % bytes != 0);
    refuse(
        job.rw.random && job.align_bytes.iter().zip(&job.block_bytes).any(overlaps),
        "verify does not go with a blockalign at which blocks overlap",
    )
}

/// Blocks of several sizes, and what stands after the colon of `rw`.
fn blocks(draft: &mut Draft) -> Result<(), String> {
    let job = &mut draft.job;
    let asked = draft.split.iter_mut().zip(&mut draft.range);
    let sides = job.block_bytes.iter_mut().zip(&mut job.sizes);
    for ((split, range), (bytes, sizes)) in asked.zip(sides) {
        let found = split.take().or(range.take());
        if let Some(found) = &found {
            *bytes = found.largest();
        }
        // One size is not a choice.
        *sizes = found.filter(|found| found.least() < found.largest());
    }
    if let Some(step) = &draft.step {
        match job.rw.random {
            false => {
                job.skip_bytes =
                    values::skip(step, draft.base).map_err(|why| format!("rw: {why}"))?
            }
            true => {
                let blocks = units::count(step, draft.base, 1);
                job.run_blocks = blocks.map_err(|why| format!("rw: after the colon: {why}"))?;
            }
        }
    }
    let several = job.sizes.iter().any(Option::is_some);
    refuse(
        several && job.rw.random && job.verify.is_some(),
        "verify needs blocks of one size where the order is random: others would overwrite parts \
         of them",
    )?;
    refuse(
        job.run_blocks > 1 && job.verify.is_some(),
        "verify does not go with several blocks at each random place (rw=…:N): they may overwrite \
         each other",
    )
}

/// `io_size` in percent of `size`.
fn sizes(draft: &mut Draft) -> Result<(), String> {
    let job = &mut draft.job;
    refuse(job.size == Some(Amount::Percent(0)), "size=0% is nothing")?;
    job.io_bytes = job.io_bytes.and_then(unless_zero);
    job.file_bytes = job.file_bytes.and_then(unless_zero);
    job.size = job.size.filter(|size| *size != Amount::Bytes(0));
    let Some(percent) = draft.io_percent else { return Ok(()) };
    let Some(Amount::Bytes(bytes)) = job.size else {
        return Err("io_size in percent needs size in bytes".to_owned());
    };
    job.io_bytes = unless_zero((u128::from(bytes) * u128::from(percent) / 100) as u64);
    Ok(())
}

/// Refuses options that exclude each other.
fn together(job: &Job) -> Result<(), String> {
    let any = |rates: &[Option<u64>; 2]| rates.iter().any(Option::is_some);
    let is = |engine: EngineKind| job.engine == engine;
    refuse(
        any(&job.rate_bytes_per_s) && any(&job.rate_iops),
        "rate and rate_iops exclude each other",
    )?;
    refuse(
        is(EngineKind::Mmap) && job.sync != Sync::None,
        "ioengine=mmap writes to memory; sync cannot be (fsync=1 can)",
    )?;
    refuse(
        is(EngineKind::Mmap) && job.direct,
        "ioengine=mmap goes through the page cache; direct=1 cannot be",
    )?;
    let more_than_writes = job.rw.reads || job.trims;
    refuse(
        is(EngineKind::Ftruncate) && more_than_writes,
        "ioengine=ftruncate knows writes only (rw=write, rw=randwrite)",
    )?;
    let writes_whole = [EngineKind::Pvsync2, EngineKind::Libaio, EngineKind::IoUring];
    refuse(
        job.atomic && (!writes_whole.contains(&job.engine) || job.trims),
        "atomic=1 is for writes with ioengine=pvsync2, libaio or io_uring",
    )?;
    let alone = [
        EngineKind::Sync,
        EngineKind::IoUring,
        EngineKind::Mmap,
        EngineKind::PageFault,
        EngineKind::CpuIo,
    ];
    refuse(
        job.offload && (alone.contains(&job.engine) || job.engine.is_of_names()),
        "io_submit_mode=offload is for psync, pvsync2, libaio and null: others belong to the \
         thread of their job, or share the position in a file",
    )
}

/// Numbers of blocks in flight, submitted and reaped at once.
fn depth(draft: &mut Draft, warnings: &mut Vec<String>) {
    let job = &mut draft.job;
    if is_synchronous(job) {
        let engine = format!("{:?}", job.engine).to_lowercase();
        let because = match job.trims {
            true => "trims are synchronous".to_owned(),
            false => format!("ioengine={engine} is synchronous"),
        };
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

/// Checks options that a job needs to run, but not to be read.
pub fn can_run(job: &Job) -> Result<(), String> {
    let (can, needs) = match job.engine {
        EngineKind::CpuIo => (
            job.runtime.is_some() || job.cpu.ends_with_others,
            "ioengine=cpuio needs runtime= or exit_on_io_done=1",
        ),
        _ => {
            let size = job.size.is_some() || job.file_bytes.is_some() || !job.filenames.is_empty();
            (
                size || job.fills || job.engine.is_of_names(),
                "needs size= (or filesize=, or filename= of something that is there)",
            )
        }
    };
    if can { Ok(()) } else { Err(format!("{}: {needs}", job.name)) }
}

/// Realtime: the class of blocks without `cmdprio_class`, as in fio.
const CLASS: u8 = 1;

/// Best-effort: the class of a thread that has only a level.
const CLASS_OF_THREAD: u8 = 2;

/// Puts the priorities into a job.
fn priorities(options: &PriorityOptions, job: &mut Job) -> Result<(), String> {
    let own = match options.own {
        (None, None) => None,
        (class, level) => {
            let class = class.unwrap_or(CLASS_OF_THREAD);
            Some(Ioprio { class, level: level.unwrap_or(0), hint: 0 })
        }
    };
    // The kernel knows no levels of these.
    if own.is_some_and(|own| own.class == 0 && own.level > 0) {
        return Err("prio is a level of prioclass=1 (realtime) or 2 (best-effort)".to_owned());
    }
    job.priorities.own = own;
    let shares = |percent: &Option<u8>| percent.is_some_and(|percent| percent > 0);
    let splits = options.split.iter().any(|parts| !parts.is_empty());
    if options.percent.iter().any(shares) && splits {
        return Err("cmdprio_percentage and cmdprio_bssplit exclude each other".to_owned());
    }
    for side in 0..2 {
        let class = options.class[side].unwrap_or(CLASS);
        let usual = Ioprio { class, level: options.level[side].unwrap_or(0), hint: 0 };
        let of_split = options.split[side].iter().map(|part| PriorityShare {
            block_bytes: Some(part.bytes),
            percent: part.percent,
            priority: part.own.unwrap_or(usual),
        });
        let of_all = options.percent[side].map(|percent| PriorityShare {
            block_bytes: None,
            percent,
            priority: usual,
        });
        let all = of_split.chain(of_all).filter(|share| share.percent > 0);
        job.priorities.blocks[side] = all.collect();
    }
    Ok(())
}

/// Options without effect where a job does not write.
const OF_WRITES: &[&str] = &[
    "atomic",
    "sync",
    "overwrite",
    "fsync",
    "fdatasync",
    "end_fsync",
    "buffer_compress_percentage",
    "refill_buffers",
    "zero_buffers",
    "buffer_pattern",
    "dedupe_percentage",
];
/// Options without effect where blocks go one after the other.
const OF_DEPTH: &[&str] =
    &["iodepth_batch", "iodepth_batch_complete_min", "iodepth_batch_complete_max", "iodepth_low"];
const OF_STEADY: &[&str] =
    &["steadystate", "steadystate_duration", "steadystate_ramp_time", "steadystate_check_interval"];
const OF_VERIFY: &[&str] = &[
    "do_verify",
    "verify_backlog",
    "verify_backlog_batch",
    "verify_interval",
    "verify_fatal",
    "verify_dump",
    "verify_write_sequence",
    "verify_pattern",
];
const OF_CPUIO: &[&str] = &["cpuload", "cpuchunks", "cpumode", "exit_on_io_done"];
const OF_DEDUPE: &[&str] = &["dedupe_mode", "dedupe_working_set_percentage", "dedupe_global"];
/// Options of blocks, which operations on names do not have.
const OF_BLOCKS: &[&str] = &["direct", "fallocate", "overwrite", "verify", "fsync", "fdatasync"];

/// A sentence for each option that was given and has no effect.
fn useless(draft: &Draft) -> Vec<String> {
    let job = &draft.job;
    let logs = &job.logs;
    let logs = logs.bandwidth.is_some() || logs.latency.is_some() || logs.iops.is_some();
    let rates = job.rate_bytes_per_s.iter().chain(&job.rate_iops).any(Option::is_some);
    // Only queues of the kernel have priorities of single blocks.
    let takes_priorities =
        matches!(job.engine, EngineKind::IoUring | EngineKind::Libaio) && !job.trims;
    let mixes = job.rw.reads && job.rw.writes;
    let isnt = |engine: EngineKind| job.engine != engine;
    let is_named = !job.filenames.is_empty();
    let rows: &[(bool, &[&str], &str)] = &[
        (!job.rw.writes, OF_WRITES, "the job does not write"),
        (true, &["random_generator"], "there is one generator, of 64 bits"),
        (
            !job.rw.random,
            &["norandommap", "random_distribution", "blockalign"],
            "the order is sequential",
        ),
        (!mixes, &["rwmixread", "rwmixwrite"], "the job does not both read and write"),
        (isnt(EngineKind::IoUring), &["fixedbufs", "registerfiles"], "only io_uring knows it"),
        (job.steady.is_none(), OF_STEADY, "it takes steadystate and steadystate_duration"),
        (!rates, &["rate_process"], "there is neither rate nor rate_iops"),
        (job.think.is_zero(), &["thinktime_blocks"], "there is no thinktime"),
        (job.cpus.is_empty(), &["cpus_allowed_policy"], "there is no cpus_allowed"),
        (!logs, &["log_avg_msec"], "no log is written"),
        (is_named, &["nrfiles", "filename_format"], "filename says which files there are"),
        (job.zero, &["refill_buffers"], "of zero_buffers"),
        (isnt(EngineKind::CpuIo), OF_CPUIO, "only cpuio knows it"),
        (isnt(EngineKind::FileStat), &["stat_type"], "only filestat knows it"),
        (job.verify.is_none(), OF_VERIFY, "there is no verify"),
        (job.checks.backlog.is_none(), &["verify_backlog_batch"], "there is no verify_backlog"),
        (job.written.dedupe.is_none(), OF_DEDUPE, "there is no dedupe_percentage"),
        (
            !draft.dedupe.1,
            &["dedupe_working_set_percentage", "dedupe_global"],
            "it takes dedupe_mode=working_set",
        ),
        (
            job.aim.is_none(),
            &["latency_window", "latency_percentile", "latency_run"],
            "there is no latency_target",
        ),
        (job.among.flow.is_none(), &["flow_id", "flow_sleep"], "there is no flow"),
        (!draft.exit.0, &["exit_what"], "there is no exitall"),
        (
            job.spread.zones.is_none(),
            &["zonesize", "zonerange", "zoneskip"],
            "it takes zonemode=strided",
        ),
        (
            job.least == Default::default(),
            &["rate_cycle"],
            "there is neither rate_min nor rate_iops_min",
        ),
        (
            job.spread.sequence.is_empty(),
            &["random_sequence_stride"],
            "it takes random_distribution=sequence:...",
        ),
        (
            !takes_priorities,
            &["cmdprio_percentage", "cmdprio_bssplit"],
            "only io_uring and libaio have priorities of single blocks",
        ),
        (
            !job.priorities.of_blocks(),
            &["cmdprio_class", "cmdprio"],
            "there is neither cmdprio_percentage nor cmdprio_bssplit",
        ),
        (job.logs.latency.is_none(), &["log_prio"], "there is no write_lat_log"),
        (job.engine.is_of_names(), OF_BLOCKS, "no content is moved"),
    ];
    let useless = rows.iter().filter(|(useless, ..)| *useless);
    let given = useless.flat_map(|(_, options, because)| {
        let given = options.iter().filter(|option| draft.given.contains(option));
        given.map(move |option| format!("{option} has no effect: {because}"))
    });
    given.collect()
}
