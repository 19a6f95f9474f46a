//! The options of jobs: fio's name, its value, and the field that it sets.

use super::super::job::{Amount, Clocks};
use super::draft::{self, Draft};
use super::known::{Known, Takes, mark, put, stays, value};
use super::units::{self, Bare, Base, one_of, unless_zero};
use super::{further, values};
use std::time::Duration;

/// All options of jobs.
pub const OPTIONS: &[&[Known]] = &[
    TARGET,
    WORK,
    TIME,
    FLOW,
    CONTENT,
    REPORT,
    STAYS,
    further::AMONG,
    further::ORDER,
    further::CHECKS,
    further::LIMITS,
    further::CPUIO,
    further::FILESTAT,
    further::NOTED,
    further::PRIORITY,
];

/// `filename_format`: the usual one is none.
fn name_format(text: &str) -> Result<Option<String>, String> {
    if text.is_empty() || text.contains("$clientuid") {
        return Err("knows $jobname, $jobnum and $filenum".to_owned());
    }
    Ok((text != "$jobname.$jobnum.$filenum").then(|| text.to_owned()))
}

const TARGET: &[Known] = &[
    value("name", |d, v| put(&mut d.job.name, Ok(v.to_owned()))).commas(),
    value("description", |_, _| Ok(())).commas(),
    value("directory", |d, v| {
        let names = units::names(v)?;
        put(&mut d.job.directories, Ok(names.into_iter().map(Into::into).collect()))
    })
    .commas(),
    value("filename", |d, v| {
        let names = units::names(v)?;
        if names.iter().any(|name| name == "-") {
            return Err("standard input and output are fio's and not supported here".to_owned());
        }
        put(&mut d.job.filenames, Ok(names.into_iter().map(Into::into).collect()))
    })
    .commas(),
    value("filename_format", |d, v| put(&mut d.job.name_format, name_format(v))).commas(),
    value("nrfiles", |d, v| put(&mut d.job.files, units::count(v, d.base, 1))).alias(&["nr_files"]),
    value("filesize", |d, v| {
        let (least, most) = draft::range(v, |one| units::size(one, d.base))?;
        (d.job.file_bytes, d.job.file_bytes_max) = (Some(least), most);
        Ok(())
    }),
    value("size", |d, v| put(&mut d.job.size, units::amount(v, d.base).map(Some))),
    value("io_size", |d, v| {
        (d.job.io_bytes, d.io_percent) = match units::amount(v, d.base)? {
            Amount::Bytes(bytes) => (Some(bytes), None),
            Amount::Percent(percent) => (None, Some(percent)),
        };
        Ok(())
    })
    .alias(&["io_limit"]),
    value("offset", |d, v| put(&mut d.job.offset, units::amount(v, d.base))).alias(&["fileoffset"]),
    value("offset_increment", |d, v| put(&mut d.job.offset_increment, units::amount(v, d.base))),
    value("number_ios", |d, v| {
        put(&mut d.job.blocks_max, units::size(v, Base::Decimal).map(unless_zero))
    }),
    value("fallocate", |d, v| put(&mut d.job.reserve, draft::reserve(v))),
    value("overwrite", |d, v| put(&mut d.job.overwrite, units::truth(v))),
    value("create_only", |d, v| put(&mut d.job.create_only, units::truth(v))),
    value("unlink", |d, v| put(&mut d.job.unlink, units::truth(v))),
    value("invalidate", |d, v| put(&mut d.job.invalidate, units::truth(v))),
];

const WORK: &[Known] = &[
    value("rw", |d, v| {
        (d.job.rw, d.job.trims, d.step) = draft::rw(v)?;
        Ok(())
    })
    .alias(&["readwrite"]),
    value("rwmixread", |d, v| put(&mut d.job.read_percent, units::percent(v))),
    value("rwmixwrite", |d, v| {
        put(&mut d.job.read_percent, units::percent(v).map(|percent| 100 - percent))
    }),
    value("bs", |d, v| {
        let read = units::sides(v, |one| draft::block(one, d.base))?;
        let default = Draft::default().job.block_bytes;
        d.range = [None, None];
        d.job.block_bytes = [read[0].unwrap_or(default[0]), read[1].unwrap_or(default[1])];
        Ok(())
    })
    .alias(&["blocksize"])
    .commas(),
    value("bsrange", |d, v| put(&mut d.range, draft::ranges(v, d.base)))
        .alias(&["blocksize_range"])
        .commas(),
    value("bssplit", |d, v| put(&mut d.split, draft::splits(v, d.base))).commas(),
    value("ioengine", |d, v| put(&mut d.job.engine, values::engine(v))),
    value("iodepth", |d, v| put(&mut d.job.depth, units::count(v, d.base, 1))),
    value("iodepth_batch", |d, v| put(&mut d.batch_submit, units::count(v, d.base, 0)))
        .alias(&["iodepth_batch_submit"]),
    value("iodepth_batch_complete_min", |d, v| {
        put(&mut d.job.batch_complete_min, units::count(v, d.base, 0))
    })
    .alias(&["iodepth_batch_complete"]),
    value("iodepth_batch_complete_max", |d, v| {
        put(&mut d.batch_complete_max, units::count(v, d.base, 0).map(Some))
    }),
    value("iodepth_low", |d, v| put(&mut d.depth_low, units::count(v, d.base, 0).map(Some))),
    value("direct", |d, v| put(&mut d.job.direct, units::truth(v))),
    value("sync", |d, v| put(&mut d.job.sync, draft::sync(v))),
    value("buffered", |d, v| put(&mut d.job.direct, units::truth(v).map(|buffered| !buffered))),
    value("fsync", |d, v| put(&mut d.job.fsync_every, units::count(v, d.base, 0))),
    value("fdatasync", |d, v| put(&mut d.job.fdatasync_every, units::count(v, d.base, 0))),
    value("end_fsync", |d, v| put(&mut d.job.end_fsync, units::truth(v))),
    mark("norandommap", |d, v| put(&mut d.job.random_map, units::truth(v).map(|none| !none))),
    value("randrepeat", |d, v| put(&mut d.job.random_repeat, units::truth(v))),
    value("random_generator", |_, v| {
        one_of(v, &[("tausworthe", ()), ("lfsr", ()), ("tausworthe64", ())])
    }),
    value("randseed", |d, v| put(&mut d.job.seed, units::size(v, d.base))),
    value("random_distribution", |d, v| {
        let found = values::distribution(v)?;
        (d.job.distribution, d.job.spread.shares, d.job.spread.sequence) = found;
        Ok(())
    })
    .commas(),
    mark("fixedbufs", |d, v| put(&mut d.job.fixed_buffers, units::truth(v))),
    mark("registerfiles", |d, v| put(&mut d.job.register_files, units::truth(v))),
];

const TIME: &[Known] = &[
    value("numjobs", |d, v| put(&mut d.job.clones, units::count(v, d.base, 1))),
    value("loops", |d, v| put(&mut d.job.loops, units::count(v, d.base, 1).map(u64::from))),
    value("runtime", |d, v| {
        put(&mut d.job.runtime, draft::time(v, Bare::Seconds).map(unless_zero))
    })
    .alias(&["timeout"]),
    mark("time_based", |d, v| put(&mut d.job.time_based, units::truth(v))),
    value("steadystate", |d, v| put(&mut d.steady.0, draft::steady(v, d.base).map(Some)))
        .alias(&["ss"]),
    value("steadystate_duration", |d, v| put(&mut d.steady.1, draft::seconds(v)))
        .alias(&["ss_dur"]),
    value("steadystate_ramp_time", |d, v| put(&mut d.steady.2, draft::seconds(v)))
        .alias(&["ss_ramp"]),
    value("ramp_time", |d, v| put(&mut d.job.ramp, draft::time(v, Bare::Seconds))),
    value("startdelay", |d, v| {
        (d.job.start_delay, d.job.start_delay_max) =
            draft::range(v, |one| draft::time(one, Bare::Seconds))?;
        Ok(())
    }),
    mark("stonewall", |d, v| put(&mut d.job.stonewall, units::truth(v)))
        .alias(&["wait_for_previous"]),
    mark("new_group", |d, v| put(&mut d.job.new_group, units::truth(v))),
    mark("group_reporting", |d, v| put(&mut d.job.group_reporting, units::truth(v))),
    value("cpus_allowed", |d, v| put(&mut d.job.cpus, units::cpus(v))).commas(),
    value("cpus_allowed_policy", |d, v| {
        put(&mut d.job.cpus_split, one_of(v, &[("shared", false), ("split", true)]))
    }),
];

const FLOW: &[Known] = &[
    value("rate", |d, v| {
        put(&mut d.job.rate_bytes_per_s, units::rates(v, |one| units::size(one, d.base)))
    })
    .commas(),
    value("rate_iops", |d, v| {
        let blocks = |one: &str| units::count(one, d.base, 0).map(u64::from);
        put(&mut d.job.rate_iops, units::rates(v, blocks))
    })
    .commas(),
    value("rate_process", |d, v| {
        put(&mut d.job.poisson, one_of(v, &[("linear", false), ("poisson", true)]))
    }),
    value("thinktime", |d, v| put(&mut d.job.think, draft::time(v, Bare::Micros))),
    value("thinktime_blocks", |d, v| put(&mut d.job.think_blocks, units::count(v, d.base, 1))),
];

const CONTENT: &[Known] = &[
    value("buffer_compress_percentage", |d, v| {
        put(&mut d.job.compress_percent, units::percent(v).map(Some))
    }),
    mark("refill_buffers", |d, v| put(&mut d.job.refill, units::truth(v))),
    mark("zero_buffers", |d, v| put(&mut d.job.zero, units::truth(v))),
    value("verify", |d, v| put(&mut d.job.verify, draft::verify(v))),
];

const REPORT: &[Known] = &[
    value("percentile_list", |d, v| put(&mut d.job.percentiles, units::percentiles(v))).commas(),
    value("clat_percentiles", |d, v| put(&mut d.job.clat_percentiles, units::truth(v))),
    value("lat_percentiles", |d, v| put(&mut d.job.lat_percentiles, units::truth(v))),
    value("gtod_reduce", |d, v| {
        let kept = !units::truth(v)?;
        d.job.clocks = Clocks { clat: kept, slat: kept, lat: kept, bandwidth: kept };
        put(&mut d.job.clat_percentiles, Ok(kept))
    }),
    value("disable_lat", |d, v| put(&mut d.job.clocks.lat, units::truth(v).map(|off| !off))),
    value("disable_clat", |d, v| put(&mut d.job.clocks.clat, units::truth(v).map(|off| !off))),
    value("disable_slat", |d, v| put(&mut d.job.clocks.slat, units::truth(v).map(|off| !off))),
    value("disable_bw_measurement", |d, v| {
        put(&mut d.job.clocks.bandwidth, units::truth(v).map(|off| !off))
    })
    .alias(&["disable_bw"]),
    value("write_bw_log", |d, v| put(&mut d.job.logs.bandwidth, Ok(Some(v.into()))))
        .takes(Takes::Text)
        .commas(),
    value("write_lat_log", |d, v| put(&mut d.job.logs.latency, Ok(Some(v.into()))))
        .takes(Takes::Text)
        .commas(),
    value("write_iops_log", |d, v| put(&mut d.job.logs.iops, Ok(Some(v.into()))))
        .takes(Takes::Text)
        .commas(),
    value("log_avg_msec", |d, v| {
        let millis = units::count(v, d.base, 0)?;
        put(&mut d.job.logs.average, Ok(Duration::from_millis(millis.into())))
    }),
    value("kb_base", |d, v| {
        put(&mut d.base, one_of(v, &[("1024", Base::Binary), ("1000", Base::Decimal)]))
    })
    .commas(),
];

/// Options of fio with one supported value: that one is taken, others are refused.
const STAYS: &[Known] = &[
    // Clones are threads, always.
    stays("thread", &["1"]).takes(Takes::Mark).alias(&["threads"]),
    stays("scramble_buffers", &["1"]),
    stays("allrandrepeat", &["0"]),
    stays("file_service_type", &["roundrobin"]),
    stays("percentage_random", &["100"]),
    stays("thinktime_blocks_type", &["complete"]),
    stays("unified_rw_reporting", &["none", "0"]),
    stays("unit_base", &["0", "8"]),
    stays("slat_percentiles", &["0"]),
    stays("bwavgtime", &["500"]),
    stays("iopsavgtime", &["500"]),
    stays("per_job_logs", &["1"]),
    stays("stats", &["1"]),
    stays("allow_mounted_write", &["0"]),
    stays("pre_read", &["0"]),
    stays("error_dump", &["0"]),
];
