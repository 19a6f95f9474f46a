//! More options of jobs: relations to other jobs, order of blocks, checks, limits, and options of single
//! engines.

use super::super::job::Aim;
use super::draft;
use super::known::{Known, Takes, mark, noted, put, value};
use super::units::{self, Bare, Base};
use super::values;
use std::time::Duration;

/// A job among the others.
pub const AMONG: &[Known] = &[
    value("wait_for", |d, v| put(&mut d.job.among.after, Ok(Some(v.to_owned())))).commas(),
    mark("exitall", |d, v| put(&mut d.exit.0, units::truth(v))),
    value("exit_what", |d, v| put(&mut d.exit.1, values::exit_what(v))),
    mark("exitall_on_error", |d, v| put(&mut d.job.among.exit_on_error, units::truth(v))),
    value("flow", |d, v| {
        let weight = units::count(v, d.base, 0)?;
        put(&mut d.flow.0, Ok(Some(weight).filter(|weight| *weight > 0)))
    }),
    value("flow_id", |d, v| put(&mut d.flow.1, units::count(v, d.base, 0))),
    value("flow_sleep", |d, v| put(&mut d.flow.2, draft::time(v, Bare::Micros))),
    value("io_submit_mode", |d, v| {
        put(
            &mut d.job.offload,
            match v {
                "inline" => Ok(false),
                "offload" => Ok(true),
                _ => Err("is neither inline nor offload".to_owned()),
            },
        )
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
        let read = units::sides(v, |one| draft::block(one, d.base))?;
        put(&mut d.job.align_bytes, Ok(read))
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
        let blocks = units::count(v, d.base, 0)?;
        put(&mut d.job.checks.backlog, Ok(Some(blocks).filter(|blocks| *blocks > 0)))
    }),
    value("verify_backlog_batch", |d, v| {
        let blocks = units::count(v, d.base, 0)?;
        put(&mut d.job.checks.backlog_batch, Ok(Some(blocks).filter(|blocks| *blocks > 0)))
    }),
    value("verify_interval", |d, v| {
        let bytes = units::count(v, d.base, 0)?;
        put(&mut d.job.checks.interval_bytes, Ok(Some(bytes).filter(|bytes| *bytes > 0)))
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
        put(
            &mut d.dedupe.1,
            match v {
                "repeat" => Ok(false),
                "working_set" => Ok(true),
                _ => Err("is neither repeat nor working_set".to_owned()),
            },
        )
    }),
    value("dedupe_working_set_percentage", |d, v| {
        put(&mut d.dedupe.2, units::percent(v).map(Some))
    }),
    value("dedupe_global", |d, v| put(&mut d.dedupe.3, units::truth(v))),
];

/// Limits, and what happens where they are broken.
pub const LIMITS: &[Known] = &[
    value("rate_min", |d, v| {
        let read = units::sides(v, |one| units::size(one, d.base))?;
        put(&mut d.job.least.bytes_per_s, Ok(read.map(|rate| rate.filter(|rate| *rate > 0))))
    })
    .alias(&["ratemin"])
    .commas(),
    value("rate_iops_min", |d, v| {
        let read = units::sides(v, |one| units::size(one, d.base))?;
        put(&mut d.job.least.iops, Ok(read.map(|rate| rate.filter(|rate| *rate > 0))))
    })
    .commas(),
    value("rate_cycle", |d, v| {
        let millis = units::count(v, Base::Decimal, 1)?;
        put(&mut d.job.least.cycle, Ok(Duration::from_millis(millis.into())))
    })
    .alias(&["ratecycle"]),
    value("latency_target", |d, v| {
        let latency = draft::time(v, Bare::Micros)?;
        put(&mut d.aim.0, Ok(Some(latency).filter(|latency| !latency.is_zero())))
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

/// Options of single engines.
pub const ENGINES: &[Known] = &[
    value("cpuload", |d, v| put(&mut d.job.cpu.load_percent, units::percent(v))),
    value("cpuchunks", |d, v| {
        let micros = units::count(v, Base::Decimal, 1)?;
        put(&mut d.job.cpu.chunk, Ok(Duration::from_micros(micros.into())))
    }),
    value("cpumode", |d, v| {
        put(
            &mut d.job.cpu.sorts,
            match v {
                "noop" => Ok(false),
                "qsort" => Ok(true),
                _ => Err("is neither noop nor qsort".to_owned()),
            },
        )
    }),
    value("exit_on_io_done", |d, v| put(&mut d.job.cpu.ends_with_others, units::truth(v))),
    value("stat_type", |d, v| put(&mut d.job.stat, values::stat_type(v))),
];

/// Options that change nothing that is measured here.
pub const NOTED: &[Known] = &[
    noted("verify_async", "the thread of a job checks its blocks, apart from its time"),
    noted("verify_async_cpus", "the thread of a job checks its blocks, apart from its time")
        .takes(Takes::Value),
    noted("create_serialize", "files are laid out one after the other, before all jobs"),
];
