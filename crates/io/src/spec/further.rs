//! More options of jobs: relations to other jobs, order of blocks, checks, limits, I/O priorities, and options of
//! single engines.

use super::known::{Known, Takes, mark, noted, put, value};
use super::units::{self, Bare, Base, one_of, unless_zero};
use super::{draft, priority, values};
use crate::job::{Aim, ExitWhat, StatCall};
use std::time::Duration;

/// A job among the others.
pub const AMONG: &[Known] = &[
    value("wait_for", |d, v| put(&mut d.job.among.after, Ok(Some(v.to_owned())))).commas(),
    mark("exitall", |d, v| put(&mut d.exit.0, units::truth(v))),
    value("exit_what", |d, v| {
        use ExitWhat::{All, Group, Stonewall};
        put(&mut d.exit.1, one_of(v, &[("group", Group), ("stonewall", Stonewall), ("all", All)]))
    }),
    mark("exitall_on_error", |d, v| put(&mut d.job.among.exit_on_error, units::truth(v))),
    value("flow", |d, v| put(&mut d.flow.0, units::count(v, d.base, 0).map(unless_zero))),
    value("flow_id", |d, v| put(&mut d.flow.1, units::count(v, d.base, 0))),
    value("flow_sleep", |d, v| put(&mut d.flow.2, draft::time(v, Bare::Micros))),
    value("io_submit_mode", |d, v| {
        put(&mut d.job.offload, one_of(v, &[("inline", false), ("offload", true)]))
    }),
    value("steadystate_check_interval", |d, v| {
        put(&mut d.steady.3, draft::seconds(v).map(|seconds| seconds.max(1)))
    })
    .alias(&["ss_interval", "ss_check_interval"]),
    value("numa_cpu_nodes", |d, v| put(&mut d.job.nodes.cpus, units::cpus(v))).commas(),
    value("numa_mem_policy", |d, v| values::memory_policy(v, &mut d.job.nodes)).commas(),
];

/// Order of blocks.
pub const ORDER: &[Known] = &[
    value("blockalign", |d, v| {
        put(&mut d.job.align_bytes, units::sides(v, |one| draft::block(one, d.base)))
    })
    .alias(&["ba"])
    .commas(),
    value("random_sequence_stride", |d, v| put(&mut d.job.spread.strides, units::truth(v))),
    value("zonemode", |d, v| match v {
        "none" => put(&mut d.strided, Ok(false)),
        "strided" => put(&mut d.strided, Ok(true)),
        "zbd" => Err("zoned block devices are fio's and not supported here (none and strided \
                      are)"
            .to_owned()),
        _ => Err("is none of none, strided".to_owned()),
    }),
    value("zonesize", |d, v| put(&mut d.zone_bytes[0], units::size(v, d.base))),
    value("zonerange", |d, v| put(&mut d.zone_bytes[1], units::size(v, d.base))),
    value("zoneskip", |d, v| put(&mut d.zone_bytes[2], units::size(v, d.base))),
];

/// Written content, and its checks.
pub const CHECKS: &[Known] = &[
    value("do_verify", |d, v| {
        put(&mut d.job.checks.only_written, units::truth(v).map(|does| !does))
    }),
    value("verify_backlog", |d, v| {
        put(&mut d.job.checks.backlog, units::count(v, d.base, 0).map(unless_zero))
    }),
    value("verify_backlog_batch", |d, v| {
        put(&mut d.job.checks.backlog_batch, units::count(v, d.base, 0).map(unless_zero))
    }),
    value("verify_interval", |d, v| {
        put(&mut d.job.checks.interval_bytes, units::count(v, d.base, 0).map(unless_zero))
    }),
    value("verify_fatal", |d, v| put(&mut d.job.checks.fatal, units::truth(v))),
    value("verify_dump", |d, v| put(&mut d.job.checks.dump, units::truth(v))),
    value("verify_write_sequence", |d, v| {
        put(&mut d.job.checks.any_pass, units::truth(v).map(|checked| !checked))
    }),
    value("verify_pattern", |d, v| put(&mut d.job.written.pattern, values::pattern(v))).commas(),
    value("buffer_pattern", |d, v| put(&mut d.job.written.pattern, values::pattern(v))).commas(),
    value("dedupe_percentage", |d, v| put(&mut d.dedupe.0, units::percent(v))),
    value("dedupe_mode", |d, v| {
        put(&mut d.dedupe.1, one_of(v, &[("repeat", false), ("working_set", true)]))
    }),
    value("dedupe_working_set_percentage", |d, v| {
        put(&mut d.dedupe.2, units::percent(v).map(Some))
    }),
    value("dedupe_global", |d, v| put(&mut d.dedupe.3, units::truth(v))),
];

/// Limits, and what happens where they are broken.
pub const LIMITS: &[Known] = &[
    value("rate_min", |d, v| {
        put(&mut d.job.least.bytes_per_s, units::rates(v, |one| units::size(one, d.base)))
    })
    .alias(&["ratemin"])
    .commas(),
    value("rate_iops_min", |d, v| {
        put(&mut d.job.least.iops, units::rates(v, |one| units::size(one, d.base)))
    })
    .commas(),
    value("rate_cycle", |d, v| {
        let millis = units::count(v, Base::Decimal, 1)?;
        put(&mut d.job.least.cycle, Ok(Duration::from_millis(millis.into())))
    })
    .alias(&["ratecycle"]),
    value("latency_target", |d, v| {
        put(&mut d.aim.0, draft::time(v, Bare::Micros).map(unless_zero))
    }),
    value("latency_window", |d, v| put(&mut d.aim.1.window, draft::time(v, Bare::Micros))),
    value("latency_percentile", |d, v| {
        let percent = v.parse::<f64>().ok().filter(|of| *of > 0.0 && *of <= 100.0);
        let percentile = percent.ok_or("is not a percentage above 0 and up to 100")?;
        d.aim.1 = Aim { percentile, ..d.aim.1 };
        Ok(())
    }),
    value("latency_run", |d, v| put(&mut d.aim.1.goes_on, units::truth(v))),
    value("continue_on_error", |d, v| put(&mut d.job.tolerates.goes_on, values::goes_on(v))),
    value("ignore_error", |d, v| put(&mut d.job.tolerates.ignores, values::ignored(v))).commas(),
    value("log_offset", |d, v| put(&mut d.job.log_offset, units::truth(v))),
    value("allow_file_create", |d, v| put(&mut d.job.must_exist, units::truth(v).map(|may| !may))),
    value("create_on_open", |d, v| put(&mut d.job.grows, units::truth(v))),
    value("fill_device", |d, v| put(&mut d.job.fills, units::truth(v))).alias(&["fill_fs"]),
    value("atomic", |d, v| put(&mut d.job.atomic, units::truth(v))),
    value("openfiles", |d, v| put(&mut d.open_files, units::count(v, d.base, 1).map(Some))),
];

/// The engine `cpuio`.
pub const CPUIO: &[Known] = &[
    value("cpuload", |d, v| put(&mut d.job.cpu.load_percent, units::percent(v))),
    value("cpuchunks", |d, v| {
        let micros = units::count(v, Base::Decimal, 1)?;
        put(&mut d.job.cpu.chunk, Ok(Duration::from_micros(micros.into())))
    }),
    value("cpumode", |d, v| {
        put(&mut d.job.cpu.sorts, one_of(v, &[("noop", false), ("qsort", true)]))
    }),
    value("exit_on_io_done", |d, v| put(&mut d.job.cpu.ends_with_others, units::truth(v))),
];

/// The engine `filestat`.
pub const FILESTAT: &[Known] = &[value("stat_type", |d, v| {
    let calls = [("stat", StatCall::Stat), ("lstat", StatCall::Lstat), ("statx", StatCall::Statx)];
    put(&mut d.job.stat, one_of(v, &calls))
})];

/// Options that change nothing that is measured here.
pub const NOTED: &[Known] = &[
    noted("verify_async", "the thread of a job checks its blocks, apart from its time"),
    noted("verify_async_cpus", "the thread of a job checks its blocks, apart from its time")
        .takes(Takes::Value),
    noted("create_serialize", "files are laid out one after the other, before all jobs"),
];

/// I/O priorities.
pub const PRIORITY: &[Known] = &[
    value("prioclass", |d, v| put(&mut d.priorities.own.0, priority::class(v).map(Some))),
    value("prio", |d, v| put(&mut d.priorities.own.1, priority::level(v).map(Some))),
    value("cmdprio_percentage", |d, v| {
        put(&mut d.priorities.percent, units::sides(v, units::percent))
    })
    .commas(),
    value("cmdprio_class", |d, v| put(&mut d.priorities.class, units::sides(v, priority::class)))
        .commas(),
    value("cmdprio", |d, v| put(&mut d.priorities.level, units::sides(v, priority::level)))
        .commas(),
    value("cmdprio_bssplit", |d, v| put(&mut d.priorities.split, priority::split(v, d.base)))
        .commas(),
    value("log_prio", |d, v| put(&mut d.job.log_priority, units::truth(v))),
];
