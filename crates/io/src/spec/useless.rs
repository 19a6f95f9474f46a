//! Options without effect on their job, with the reason.

use super::draft::Draft;
use super::{http, net};
use crate::job::{Engine, Protocol};

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
/// Options without effect where order is not random.
const OF_RANDOM: &[&str] = &["norandommap", "random_distribution", "blockalign"];
/// Options that change nothing here.
const OF_GENERATORS: &[&str] = &["random_generator"];
/// Options without effect where a job does not both read and write.
const OF_MIX: &[&str] = &["rwmixread", "rwmixwrite"];
/// Options without effect where blocks go one after the other.
pub const OF_DEPTH: &[&str] =
    &["iodepth_batch", "iodepth_batch_complete_min", "iodepth_batch_complete_max", "iodepth_low"];
/// Options without effect on other engines than io_uring.
const OF_URING: &[&str] = &["fixedbufs", "registerfiles"];
const OF_STEADY: &[&str] =
    &["steadystate", "steadystate_duration", "steadystate_ramp_time", "steadystate_check_interval"];
const OF_CPUIO: &[&str] = &["cpuload", "cpuchunks", "cpumode", "exit_on_io_done"];
const OF_FILESTAT: &[&str] = &["stat_type"];
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
const OF_BACKLOG: &[&str] = &["verify_backlog_batch"];
const OF_DEDUPE: &[&str] = &["dedupe_mode", "dedupe_working_set_percentage", "dedupe_global"];
const OF_WORKING_SET: &[&str] = &["dedupe_working_set_percentage", "dedupe_global"];
const OF_AIM: &[&str] = &["latency_window", "latency_percentile", "latency_run"];
const OF_FLOW: &[&str] = &["flow_id", "flow_sleep"];
const OF_EXITALL: &[&str] = &["exit_what"];
const OF_STRIDED: &[&str] = &["zonesize", "zonerange", "zoneskip"];
const OF_LEAST: &[&str] = &["rate_cycle"];
const OF_SEQUENCE: &[&str] = &["random_sequence_stride"];
/// Options of blocks, which operations on names do not have.
const OF_BLOCKS: &[&str] = &["direct", "fallocate", "overwrite", "verify", "fsync", "fdatasync"];
/// Options of single blocks that only queues of the kernel have.
const OF_CMDPRIO: &[&str] = &["cmdprio_percentage", "cmdprio_bssplit"];
const OF_SHARES: &[&str] = &["cmdprio_class", "cmdprio"];
const OF_LATENCY_LOG: &[&str] = &["log_prio"];
const OF_FILES: &[&str] = &["direct", "fallocate", "overwrite", "fsync", "fdatasync", "end_fsync"];
/// The same, of engines with other options of syncs.
const OF_NBD_FILES: &[&str] = &["direct", "fallocate", "overwrite", "sync", "unlink"];
const OF_OWN_FILES: &[&str] = &["filename", "directory", "nrfiles", "filename_format"];
const OF_EXEC: &[&str] = &["program", "arguments", "grace_time", "std_redirect"];
const OF_E4DEFRAG: &[&str] = &["donorname", "inplace"];
const OF_NBD: &[&str] = &["uri"];
const OF_RATE: &[&str] = &["rate_process"];
const OF_THINKTIME: &[&str] = &["thinktime_blocks"];
const OF_CPUS: &[&str] = &["cpus_allowed_policy"];
const OF_LOGS: &[&str] = &["log_avg_msec"];
const OF_CONTENT: &[&str] = &["refill_buffers"];
const OF_GENERATED_NAMES: &[&str] = &["nrfiles", "filename_format"];

/// A sentence for each option that was given and has no effect.
pub fn options(draft: &Draft) -> Vec<String> {
    let given = |name: &str| draft.given.contains(&name);
    let job = &draft.job;
    let mut warnings = Vec::new();
    let logs = &job.logs;
    let logs = logs.bandwidth.is_some() || logs.latency.is_some() || logs.iops.is_some();
    let rates = job.rate_bytes_per_s.iter().chain(&job.rate_iops).any(Option::is_some);
    let takes_priorities = matches!(job.engine, Engine::IoUring | Engine::Libaio) && !job.trims;
    let is_net = job.engine == Engine::Net;
    let is_tcp = is_net && matches!(job.net.protocol, Protocol::Tcp | Protocol::Tcp6);
    let is_udp = is_net && job.net.protocol.has_datagrams();
    for (useless, options, because) in [
        (!job.rw.writes, OF_WRITES, "the job does not write"),
        (true, OF_GENERATORS, "there is one generator, of 64 bits"),
        (!job.rw.random, OF_RANDOM, "the order is sequential"),
        (!(job.rw.reads && job.rw.writes), OF_MIX, "the job does not both read and write"),
        (job.engine != Engine::IoUring, OF_URING, "only io_uring knows it"),
        (job.steady.is_none(), OF_STEADY, "it takes steadystate and steadystate_duration"),
        (!rates, OF_RATE, "there is neither rate nor rate_iops"),
        (job.think.is_zero(), OF_THINKTIME, "there is no thinktime"),
        (job.cpus.is_empty(), OF_CPUS, "there is no cpus_allowed"),
        (!logs, OF_LOGS, "no log is written"),
        (!job.filenames.is_empty(), OF_GENERATED_NAMES, "filename says which files there are"),
        (job.zero, OF_CONTENT, "of zero_buffers"),
        (job.engine != Engine::CpuIo, OF_CPUIO, "only cpuio knows it"),
        (job.engine != Engine::FileStat, OF_FILESTAT, "only filestat knows it"),
        (job.verify.is_none(), OF_VERIFY, "there is no verify"),
        (job.checks.backlog.is_none(), OF_BACKLOG, "there is no verify_backlog"),
        (job.written.dedupe.is_none(), OF_DEDUPE, "there is no dedupe_percentage"),
        (!draft.dedupe.1, OF_WORKING_SET, "it takes dedupe_mode=working_set"),
        (job.aim.is_none(), OF_AIM, "there is no latency_target"),
        (job.among.flow.is_none(), OF_FLOW, "there is no flow"),
        (!draft.exit.0, OF_EXITALL, "there is no exitall"),
        (job.spread.zones.is_none(), OF_STRIDED, "it takes zonemode=strided"),
        (job.least == Default::default(), OF_LEAST, "there is neither rate_min nor rate_iops_min"),
        (job.spread.sequence.is_empty(), OF_SEQUENCE, "it takes random_distribution=sequence:..."),
        (
            !takes_priorities,
            OF_CMDPRIO,
            "only io_uring and libaio have priorities of single blocks",
        ),
        (
            !job.priorities.of_blocks(),
            OF_SHARES,
            "there is neither cmdprio_percentage nor cmdprio_bssplit",
        ),
        (job.logs.latency.is_none(), OF_LATENCY_LOG, "there is no write_lat_log"),
        (!is_net, net::OF_NET, "only net knows it"),
        (is_net && !is_tcp, net::OF_TCP, "only TCP knows it"),
        (is_net && !is_udp, net::OF_MULTICAST, "only multicast (UDP) knows it"),
        (is_net, OF_BLOCKS, "there is no file"),
        (job.engine != Engine::E4defrag, OF_E4DEFRAG, "only e4defrag knows it"),
        (job.engine != Engine::Exec, OF_EXEC, "only exec knows it"),
        (job.engine != Engine::Http, http::OF_HTTP, "only http knows it"),
        (job.engine != Engine::Nbd, OF_NBD, "only nbd knows it"),
        (job.engine == Engine::Nbd, OF_OWN_FILES, "uri says what is read and written"),
        (job.engine == Engine::Nbd, OF_NBD_FILES, "there is no file"),
        (job.engine == Engine::Http, OF_FILES, "there is no file"),
        (job.engine.is_of_names(), OF_BLOCKS, "no content is moved"),
    ] {
        for option in options.iter().filter(|option| useless && given(option)) {
            warnings.push(format!("{option} has no effect: {because}"));
        }
    }
    warnings
}
