//! Options without effect on their job, with the reason.

use super::draft::Draft;
use super::further;
use super::known::settable;
use crate::job::Engine;

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
pub const OF_DEPTH: &[&str] =
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
const OF_DEDUPE: &[&str] = &["dedupe_mode", "dedupe_working_set_percentage", "dedupe_global"];
/// Options of blocks, which operations on names do not have.
const OF_BLOCKS: &[&str] = &["direct", "fallocate", "overwrite", "verify", "fsync", "fdatasync"];

/// A sentence for each option that was given and has no effect.
pub fn options(draft: &Draft) -> Vec<String> {
    let job = &draft.job;
    let logs = &job.logs;
    let logs = logs.bandwidth.is_some() || logs.latency.is_some() || logs.iops.is_some();
    let rates = job.rate_bytes_per_s.iter().chain(&job.rate_iops).any(Option::is_some);
    // Only queues of the kernel have priorities of single blocks.
    let takes_priorities = matches!(job.engine, Engine::IoUring | Engine::Libaio) && !job.trims;
    let mixes = job.rw.reads && job.rw.writes;
    let isnt = |engine: Engine| job.engine != engine;
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
        (isnt(Engine::IoUring), &["fixedbufs", "registerfiles"], "only io_uring knows it"),
        (job.steady.is_none(), OF_STEADY, "it takes steadystate and steadystate_duration"),
        (!rates, &["rate_process"], "there is neither rate nor rate_iops"),
        (job.think.is_zero(), &["thinktime_blocks"], "there is no thinktime"),
        (job.cpus.is_empty(), &["cpus_allowed_policy"], "there is no cpus_allowed"),
        (!logs, &["log_avg_msec"], "no log is written"),
        (is_named, &["nrfiles", "filename_format"], "filename says which files there are"),
        (job.zero, &["refill_buffers"], "of zero_buffers"),
        (isnt(Engine::CpuIo), &settable(further::CPUIO), "only cpuio knows it"),
        (isnt(Engine::FileStat), &["stat_type"], "only filestat knows it"),
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
