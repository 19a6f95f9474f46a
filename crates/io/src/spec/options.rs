//! The options of `hakobu io`, a row each: fio's name, what the help says, and what it sets. Options of jobs stand on the
//! command line and in job files, those of the run on the command line only. The rows are in the order of the help.

use super::draft::Draft;
use super::refused::{FIOS_ALONE, REFUSED, REMOVED};
use super::units::{self, BareTime, UnitBase, one_of, unless_zero};
use super::{Eta, RunOptions, values};
use crate::job::{Amount, Clocks, ExitWhat, LatencyTarget, StatCall};
use std::time::Duration;

/// Form of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    Value,
    /// Perhaps `=1` or `=0`; nothing is 1.
    Mark,
    /// Perhaps a text.
    Text,
    /// An option of the run without a value.
    Switch,
}

/// Effect of an option.
#[derive(Clone, Copy)]
pub enum Effect {
    /// Sets something of a job. The error goes on after `OPTION=VALUE: `.
    Job(fn(&mut Draft, &str) -> Result<(), String>),
    /// Sets something of the run as a whole.
    Run(fn(&mut RunOptions, &str) -> Result<(), String>),
    /// None: these values name the only supported behaviour; others are refused.
    Only(&'static [&'static str]),
    /// None on measurements, with the reason; the value is ignored.
    Noted(&'static str),
}

#[derive(Clone, Copy)]
pub struct IoOption {
    /// fio's first name for it, which results and fio's command line have.
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    /// The name that help and completions have: `name`, or an alias.
    pub listed: &'static str,
    /// Form of its value.
    pub takes: Takes,
    /// The value in the help, such as `SIZE`.
    pub what: &'static str,
    /// Its line of help.
    pub help: &'static str,
    /// Whether commas separate values of a sweep on the command line; they have no other meaning in these values.
    pub sweeps: bool,
    /// Whether each occurrence counts, not the last one only.
    pub repeats: bool,
    pub effect: Effect,
}

/// Options under one title of the help.
pub struct OptionGroup {
    pub title: &'static str,
    pub options: &'static [IoOption],
}

/// An option of jobs with a value.
const fn value(
    name: &'static str,
    what: &'static str,
    help: &'static str,
    set: fn(&mut Draft, &str) -> Result<(), String>,
) -> IoOption {
    IoOption {
        name,
        aliases: &[],
        listed: name,
        takes: Takes::Value,
        what,
        help,
        sweeps: true,
        repeats: true,
        effect: Effect::Job(set),
    }
}

/// An option of jobs that perhaps has `=1` or `=0`.
const fn mark(
    name: &'static str,
    help: &'static str,
    set: fn(&mut Draft, &str) -> Result<(), String>,
) -> IoOption {
    IoOption { takes: Takes::Mark, ..value(name, "BOOL", help, set) }
}

/// An option of jobs that perhaps has a text.
const fn text(
    name: &'static str,
    what: &'static str,
    help: &'static str,
    set: fn(&mut Draft, &str) -> Result<(), String>,
) -> IoOption {
    IoOption { takes: Takes::Text, sweeps: false, ..value(name, what, help, set) }
}

/// An option of jobs with one supported value, perhaps with several names; the first is in the help.
const fn only(name: &'static str, values: &'static [&'static str]) -> IoOption {
    IoOption {
        sweeps: false,
        effect: Effect::Only(values),
        ..value(name, values[0], "no other value", |_, _| Ok(()))
    }
}

/// An option of jobs that changes nothing that is measured here.
const fn noted(
    name: &'static str,
    what: &'static str,
    help: &'static str,
    why: &'static str,
) -> IoOption {
    IoOption { sweeps: false, effect: Effect::Noted(why), ..value(name, what, help, |_, _| Ok(())) }
}

const fn of_run(
    name: &'static str,
    what: &'static str,
    help: &'static str,
    set: fn(&mut RunOptions, &str) -> Result<(), String>,
) -> IoOption {
    IoOption {
        sweeps: false,
        repeats: false,
        effect: Effect::Run(set),
        ..value(name, what, help, |_, _| Ok(()))
    }
}

const fn switch(
    name: &'static str,
    help: &'static str,
    set: fn(&mut RunOptions, &str) -> Result<(), String>,
) -> IoOption {
    IoOption { takes: Takes::Switch, ..of_run(name, "", help, set) }
}

impl IoOption {
    const fn alias(self, aliases: &'static [&'static str]) -> IoOption {
        IoOption { aliases, ..self }
    }

    /// Commas are a part of its value.
    const fn commas(self) -> IoOption {
        IoOption { sweeps: false, ..self }
    }

    const fn mark(self) -> IoOption {
        IoOption { takes: Takes::Mark, ..self }
    }

    const fn listed_as(self, listed: &'static str) -> IoOption {
        IoOption { listed, ..self }
    }

    const fn repeats(self) -> IoOption {
        IoOption { repeats: true, ..self }
    }

    /// Returns whether `name` is one of its names.
    pub fn is(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// Returns whether it belongs to the run, not to a job.
    pub fn is_of_run(&self) -> bool {
        matches!(self.effect, Effect::Run(_))
    }
}

pub fn options() -> impl Iterator<Item = &'static IoOption> {
    GROUPS.iter().flat_map(|group| group.options)
}

pub fn is_option(name: &str) -> bool {
    find(name).is_ok()
}

/// Looks up a name.
///
/// # Errors
/// Why there is no such option: fio's, with the reason, or unknown, with what may have been meant.
pub(super) fn find(name: &str) -> Result<&'static IoOption, String> {
    if let Some(option) = options().find(|option| option.is(name)) {
        return Ok(option);
    }
    if let Some((_, why)) = REFUSED.iter().find(|(theirs, _)| *theirs == name) {
        return Err(match why.is_empty() {
            true => FIOS_ALONE.to_owned(),
            false => format!("{FIOS_ALONE} ({why})"),
        });
    }
    if let Some((_, why)) = REMOVED.iter().find(|(removed, _)| *removed == name) {
        return Err(format!("not supported ({why})"));
    }
    let of_jobs = options().filter(|option| !option.is_of_run());
    let names =
        of_jobs.flat_map(|option| [option.name].into_iter().chain(option.aliases.iter().copied()));
    let near = names.map(|other| (strsim::damerau_levenshtein(name, other), other));
    Err(match near.min().filter(|(far, other)| *far <= 2 && *far < other.len()) {
        Some((_, near)) => format!("no such option; did you mean {near}?"),
        None => "no such option".to_owned(),
    })
}

/// Stores the parsed value.
fn put<T>(place: &mut T, read: Result<T, String>) -> Result<(), String> {
    *place = read?;
    Ok(())
}

/// All options, in the order of the help.
pub static GROUPS: &[OptionGroup] = &[
    OptionGroup { title: "Jobs", options: JOBS },
    OptionGroup { title: "Files and devices", options: TARGET },
    OptionGroup { title: "What is done", options: WORK },
    OptionGroup { title: "I/O priorities", options: PRIORITY },
    OptionGroup { title: "How fast", options: RATE },
    OptionGroup { title: "What is written", options: CONTENT },
    OptionGroup { title: "Measurements and reports", options: REPORT },
    OptionGroup { title: "The run", options: RUN },
    OptionGroup { title: "Sweeps", options: SWEEP },
    OptionGroup {
        title: "Accepted for compatibility with fio, with this value only",
        options: ONE_VALUE,
    },
];

const JOBS: &[IoOption] = &[
    value("name", "NAME", "begin a job (global: options for all jobs after it)", |d, v| {
        put(&mut d.job.name, Ok(v.to_owned()))
    })
    .commas(),
    value("description", "TEXT", "text for the report", |_, _| Ok(())).commas(),
    value("numjobs", "N", "number of clones, each a thread (default 1)", |d, v| {
        put(&mut d.job.clones, units::count(v, d.base, 1))
    }),
    value("runtime", "TIME", "end after this time", |d, v| {
        put(&mut d.job.runtime, values::time(v, BareTime::Seconds).map(unless_zero))
    })
    .alias(&["timeout"]),
    mark("time_based", "begin again until --runtime is over", |d, v| {
        put(&mut d.job.time_based, units::truth(v))
    }),
    value("ramp_time", "TIME", "time at the beginning that is not measured", |d, v| {
        put(&mut d.job.ramp, values::time(v, BareTime::Seconds))
    }),
    value(
        "steadystate",
        "HOW",
        "end when steady: iops:2%, iops_slope:0.1%, bw:…, lat:…",
        |d, v| put(&mut d.steady.0, values::steady(v, d.base).map(Some)),
    )
    .alias(&["ss"]),
    value("steadystate_duration", "TIME", "window of the steady state", |d, v| {
        put(&mut d.steady.1, values::seconds(v))
    })
    .alias(&["ss_dur"]),
    value("steadystate_ramp_time", "TIME", "ignored at the beginning", |d, v| {
        put(&mut d.steady.2, values::seconds(v))
    })
    .alias(&["ss_ramp"]),
    value("steadystate_check_interval", "TIME", "time between two values (default 1s)", |d, v| {
        put(&mut d.steady.3, values::seconds(v).map(|seconds| seconds.max(1)))
    })
    .alias(&["ss_interval", "ss_check_interval"]),
    value(
        "startdelay",
        "TIME[-TIME]",
        "pause before the start; a range: each clone its own",
        |d, v| {
            (d.job.start_delay, d.job.start_delay_max) =
                values::range(v, |one| values::time(one, BareTime::Seconds))?;
            Ok(())
        },
    ),
    value("number_ios", "N", "end each clone after N blocks", |d, v| {
        put(&mut d.job.blocks_max, units::size(v, UnitBase::Decimal).map(unless_zero))
    }),
    value("loops", "N", "repeat everything N times (default 1)", |d, v| {
        put(&mut d.job.loops, units::count(v, d.base, 1).map(u64::from))
    }),
    mark("stonewall", "begin when all jobs before it have ended", |d, v| {
        put(&mut d.job.stonewall, units::truth(v))
    })
    .alias(&["wait_for_previous"]),
    value("wait_for", "NAME", "begin when all clones of this job have ended", |d, v| {
        put(&mut d.job.among.after, Ok(Some(v.to_owned())))
    })
    .commas(),
    mark("exitall", "end other jobs when a clone has ended", |d, v| {
        put(&mut d.exit.0, units::truth(v))
    }),
    value(
        "exit_what",
        "WHICH",
        "those of its group (default), stonewall: those that run, all",
        |d, v| {
            use ExitWhat::{All, Group, Stonewall};
            put(
                &mut d.exit.1,
                one_of(v, &[("group", Group), ("stonewall", Stonewall), ("all", All)]),
            )
        },
    ),
    mark("exitall_on_error", "the same where a clone ended with an error", |d, v| {
        put(&mut d.job.among.exit_on_error, units::truth(v))
    }),
    value("flow", "WEIGHT", "share of the blocks among the jobs of a flow", |d, v| {
        put(&mut d.flow.0, units::count(v, d.base, 0).map(unless_zero))
    }),
    value("flow_id", "N", "number of the flow (default 0)", |d, v| {
        put(&mut d.flow.1, units::count(v, d.base, 0))
    }),
    value(
        "flow_sleep",
        "TIME",
        "pause of a job that is ahead, in microseconds without a unit",
        |d, v| put(&mut d.flow.2, values::time(v, BareTime::Micros)),
    ),
    mark("new_group", "begin a group of reports", |d, v| {
        put(&mut d.job.new_group, units::truth(v))
    }),
    mark("group_reporting", "one report for a group, not one for each clone", |d, v| {
        put(&mut d.job.group_reporting, units::truth(v))
    }),
    value("cpus_allowed", "LIST", "CPUs to use, such as 0-3,5", |d, v| {
        put(&mut d.job.cpus, units::cpus(v))
    })
    .commas(),
    value(
        "cpus_allowed_policy",
        "HOW",
        "shared (default), or split: one for each clone",
        |d, v| put(&mut d.job.cpus_split, one_of(v, &[("shared", false), ("split", true)])),
    ),
    value("numa_cpu_nodes", "LIST", "CPUs of these nodes, such as 0-1", |d, v| {
        put(&mut d.job.nodes.cpus, units::cpus(v))
    })
    .commas(),
    value(
        "numa_mem_policy",
        "HOW",
        "memory: default, local, prefer:N, bind:LIST, interleave:LIST",
        |d, v| values::memory_policy(v, &mut d.job.nodes),
    )
    .commas(),
];

const TARGET: &[IoOption] = &[
    value(
        "filename",
        "PATHS",
        "files or devices, with ':' between them; shared by all clones",
        |d, v| {
            let names = units::names(v)?;
            if names.iter().any(|name| name == "-") {
                return Err("standard input and output are not supported".to_owned());
            }
            put(&mut d.job.filenames, Ok(names.into_iter().map(Into::into).collect()))
        },
    )
    .commas(),
    value(
        "filename_format",
        "NAME",
        "names without --filename, with $jobname, $jobnum, $filenum",
        |d, v| put(&mut d.job.name_format, values::name_format(v)),
    )
    .commas(),
    value("directory", "DIR", "directory for the files (default: the current one)", |d, v| {
        let names = units::names(v)?;
        put(&mut d.job.directories, Ok(names.into_iter().map(Into::into).collect()))
    })
    .commas(),
    value(
        "size",
        "SIZE",
        "bytes of each clone over all its files, or percent of existing files",
        |d, v| put(&mut d.job.size, units::amount(v, d.base).map(Some)),
    ),
    value("io_size", "SIZE", "end after SIZE bytes, which may differ from --size", |d, v| {
        (d.job.io_bytes, d.io_percent) = match units::amount(v, d.base)? {
            Amount::Bytes(bytes) => (Some(bytes), None),
            Amount::Percent(percent) => (None, Some(percent)),
        };
        Ok(())
    })
    .alias(&["io_limit"]),
    value("offset", "SIZE", "start within each file, or percent", |d, v| {
        put(&mut d.job.offset, units::amount(v, d.base))
    })
    .alias(&["fileoffset"]),
    value("offset_increment", "SIZE", "added to the offset for each clone, or percent", |d, v| {
        put(&mut d.job.offset_increment, units::amount(v, d.base))
    }),
    value("nrfiles", "N", "files of each clone (default 1)", |d, v| {
        put(&mut d.job.files, units::count(v, d.base, 1))
    })
    .alias(&["nr_files"]),
    value("filesize", "SIZE[-SIZE]", "bytes of each file; a range: each file its own", |d, v| {
        let (least, most) = values::range(v, |one| units::size(one, d.base))?;
        (d.job.file_bytes, d.job.file_bytes_max) = (Some(least), most);
        Ok(())
    }),
    value(
        "fallocate",
        "HOW",
        "reserve blocks of new files: native (default), none; others as in fio",
        |d, v| put(&mut d.job.reserve, values::reserve(v)),
    ),
    value("overwrite", "BOOL", "write new files once before the run (default 0)", |d, v| {
        put(&mut d.job.overwrite, units::truth(v))
    }),
    value("create_only", "BOOL", "only lay out the files", |d, v| {
        put(&mut d.job.create_only, units::truth(v))
    }),
    value("create_on_open", "BOOL", "files begin empty and grow; they are not laid out", |d, v| {
        put(&mut d.job.grows, units::truth(v))
    }),
    value(
        "fill_device",
        "BOOL",
        "write in sequence until no space is left, or up to --size",
        |d, v| put(&mut d.job.fills, units::truth(v)),
    )
    .alias(&["fill_fs"]),
    noted(
        "create_serialize",
        "BOOL",
        "accepted without effect: files are laid out one by one",
        "files are laid out one after the other, before all jobs",
    ),
    value("allow_file_create", "BOOL", "0: files must exist", |d, v| {
        put(&mut d.job.must_exist, units::truth(v).map(|may| !may))
    }),
    value("openfiles", "N", "at least --nrfiles: all files of a job are open", |d, v| {
        put(&mut d.open_files, units::count(v, d.base, 1).map(Some))
    }),
    value("unlink", "BOOL", "remove the files at the end", |d, v| {
        put(&mut d.job.unlink, units::truth(v))
    }),
    value("invalidate", "BOOL", "first drop the files from the page cache (default 1)", |d, v| {
        put(&mut d.job.invalidate, units::truth(v))
    }),
];

const WORK: &[IoOption] = &[
    value("rw", "HOW", "read (default), write, rw, trim, randread, randwrite, randrw, randtrim; read:8k leaves bytes out", |d, v| {
        (d.job.rw, d.job.trims, d.step) = values::rw(v)?;
        Ok(())
    }).alias(&["readwrite"]),
    value("rwmixread", "PERCENT", "percentage of reads in mixes (default 50)", |d, v| put(&mut d.job.read_percent, units::percent(v))),
    value("rwmixwrite", "PERCENT", "percentage of writes in mixes (default 50)", |d, v| {
        put(&mut d.job.read_percent, units::percent(v).map(|percent| 100 - percent))
    }),
    value("bs", "SIZE[,SIZE]", "bytes of a block; for reads, for writes (default 4k)", |d, v| {
        let read = units::sides(v, |one| values::block(one, d.base))?;
        let default = Draft::default().job.block_bytes;
        d.range = [None, None];
        d.job.block_bytes = [read[0].unwrap_or(default[0]), read[1].unwrap_or(default[1])];
        Ok(())
    }).alias(&["blocksize"]).commas(),
    value("bsrange", "SIZE-SIZE", "blocks of any multiple of the first size up to the second", |d, v| put(&mut d.range, values::ranges(v, d.base))).alias(&["blocksize_range"]).commas(),
    value("bssplit", "SIZE/PERCENT:...", "blocks of these sizes with these shares: 4k/60:64k/40", |d, v| put(&mut d.split, values::splits(v, d.base))).commas(),
    value("ioengine", "NAME", "sync, psync (default), pvsync2, libaio, io_uring, mmap, page_fault, null, falloc, ftruncate, \
         filecreate, filestat, filedelete, dircreate, dirstat, dirdelete, cpuio", |d, v| put(&mut d.job.engine, values::engine(v))),
    value("blockalign", "SIZE[,SIZE]", "random blocks begin at multiples of SIZE", |d, v| {
        put(&mut d.job.align_bytes, units::sides(v, |one| values::block(one, d.base)))
    }).alias(&["ba"]).commas(),
    value("zonemode", "HOW", "none (default), or strided: zone after zone", |d, v| match v {
        "none" => put(&mut d.strided, Ok(false)),
        "strided" => put(&mut d.strided, Ok(true)),
        "zbd" => Err(format!("{FIOS_ALONE} (none and strided are)")),
        _ => Err("none of none, strided".to_owned()),
    }),
    value("zonesize", "SIZE", "bytes to read or write in each zone", |d, v| put(&mut d.zone_bytes[0], units::size(v, d.base))),
    value("zonerange", "SIZE", "bytes of a zone (default --zonesize)", |d, v| put(&mut d.zone_bytes[1], units::size(v, d.base))),
    value("zoneskip", "SIZE", "bytes between zones", |d, v| put(&mut d.zone_bytes[2], units::size(v, d.base))),
    value("iodepth", "N", "blocks in flight, with libaio, io_uring and null (default 1)", |d, v| put(&mut d.job.depth, units::count(v, d.base, 1))),
    value("io_submit_mode", "HOW", "inline (default), or offload: by separate threads", |d, v| {
        put(&mut d.job.offload, one_of(v, &[("inline", false), ("offload", true)]))
    }),
    value("iodepth_batch", "N", "blocks that are submitted at once (default 1)", |d, v| put(&mut d.batch_submit, units::count(v, d.base, 0))).alias(&["iodepth_batch_submit"]).listed_as("iodepth_batch_submit"),
    value("iodepth_batch_complete_min", "N", "blocks to wait for at once (default 1)", |d, v| {
        put(&mut d.job.batch_complete_min, units::count(v, d.base, 0))
    }).alias(&["iodepth_batch_complete"]),
    value("iodepth_batch_complete_max", "N", "blocks to take at once, at most", |d, v| {
        put(&mut d.batch_complete_max, units::count(v, d.base, 0).map(Some))
    }),
    value("iodepth_low", "N", "drain to N before more are submitted (default: --iodepth)", |d, v| put(&mut d.depth_low, units::count(v, d.base, 0).map(Some))),
    value("direct", "BOOL", "bypass the page cache, O_DIRECT (default 0)", |d, v| put(&mut d.job.direct, units::truth(v))),
    value("buffered", "BOOL", "the opposite of --direct", |d, v| put(&mut d.job.direct, units::truth(v).map(|buffered| !buffered))),
    value("atomic", "BOOL", "write each block as a whole or not at all (RWF_ATOMIC), with O_DIRECT", |d, v| put(&mut d.job.atomic, units::truth(v))),
    value("sync", "HOW", "writes wait for the device: none (default), sync or 1, dsync", |d, v| put(&mut d.job.sync, values::sync(v))),
    value("fsync", "N", "fsync(2) after every N writes", |d, v| put(&mut d.job.fsync_every, units::count(v, d.base, 0))),
    value("fdatasync", "N", "fdatasync(2) after every N writes", |d, v| put(&mut d.job.fdatasync_every, units::count(v, d.base, 0))),
    value("end_fsync", "BOOL", "fsync(2) at the end", |d, v| put(&mut d.job.end_fsync, units::truth(v))),
    mark("norandommap", "random blocks may come twice, or never", |d, v| put(&mut d.job.random_map, units::truth(v).map(|none| !none))),
    value("randrepeat", "BOOL", "the same random order in every run (default 1)", |d, v| put(&mut d.job.random_repeat, units::truth(v))),
    value("randseed", "N", "seed of the random order", |d, v| put(&mut d.job.seed, units::size(v, d.base))),
    value("random_generator", "NAME", "accepted without effect: there is one generator", |_, v| {
        one_of(v, &[("tausworthe", ()), ("lfsr", ()), ("tausworthe64", ())])
    }),
    value("random_distribution", "HOW", "random (default), zipf:THETA, zoned:ACCESS/SIZE:..., sequence:N,N,...", |d, v| {
        let found = values::distribution(v)?;
        (d.job.distribution, d.job.spread.shares, d.job.spread.sequence) = found;
        Ok(())
    }).commas(),
    value("random_sequence_stride", "BOOL", "each repetition of a sequence continues after the last", |d, v| put(&mut d.job.spread.strides, units::truth(v))),
    mark("fixedbufs", "register buffers with io_uring", |d, v| put(&mut d.job.fixed_buffers, units::truth(v))),
    mark("registerfiles", "register files with io_uring", |d, v| put(&mut d.job.register_files, units::truth(v))),
];

const PRIORITY: &[IoOption] = &[
    value(
        "prioclass",
        "CLASS",
        "I/O class of the job: 0 none, 1 realtime, 2 best-effort, 3 idle",
        |d, v| put(&mut d.priorities.own.0, values::priority_class(v).map(Some)),
    ),
    value("prio", "LEVEL", "I/O priority of the job: from 0, the highest, to 7", |d, v| {
        put(&mut d.priorities.own.1, values::priority_level(v).map(Some))
    }),
    value("cmdprio_percentage", "N[,N]", "percentage of blocks with the priority below", |d, v| {
        put(&mut d.priorities.percent, units::sides(v, units::percent))
    })
    .commas(),
    value(
        "cmdprio_class",
        "CLASS[,CLASS]",
        "its class (default 1, realtime); for reads, for writes",
        |d, v| put(&mut d.priorities.class, units::sides(v, values::priority_class)),
    )
    .commas(),
    value("cmdprio", "LEVEL[,LEVEL]", "its level (default 0)", |d, v| {
        put(&mut d.priorities.level, units::sides(v, values::priority_level))
    })
    .commas(),
    value(
        "cmdprio_bssplit",
        "LIST",
        "SIZE/PERCENT[/CLASS/LEVEL[/HINT]]:...: shares of the blocks of these sizes",
        |d, v| put(&mut d.priorities.split, values::priority_split(v, d.base)),
    )
    .commas(),
    value("log_prio", "BOOL", "latency logs have the full value of the priority", |d, v| {
        put(&mut d.job.log_priority, units::truth(v))
    }),
];

const RATE: &[IoOption] = &[
    value(
        "rate",
        "SIZE[,SIZE]",
        "maximum bytes per second of each clone; reads, writes",
        |d, v| put(&mut d.job.rate_bytes_per_s, units::rates(v, |one| units::size(one, d.base))),
    )
    .commas(),
    value("rate_iops", "N[,N]", "maximum blocks per second of each clone", |d, v| {
        let blocks = |one: &str| units::count(one, d.base, 0).map(u64::from);
        put(&mut d.job.rate_iops, units::rates(v, blocks))
    })
    .commas(),
    value(
        "rate_process",
        "HOW",
        "blocks come evenly (linear, default) or at random (poisson)",
        |d, v| put(&mut d.job.poisson, one_of(v, &[("linear", false), ("poisson", true)])),
    ),
    value("thinktime", "TIME", "pause between blocks, in microseconds without a unit", |d, v| {
        put(&mut d.job.think, values::time(v, BareTime::Micros))
    }),
    value("thinktime_blocks", "N", "pause after every N blocks (default 1)", |d, v| {
        put(&mut d.job.think_blocks, units::count(v, d.base, 1))
    }),
    value(
        "rate_min",
        "SIZE[,SIZE]",
        "end with an error below this many bytes per second",
        |d, v| put(&mut d.job.least.bytes_per_s, units::rates(v, |one| units::size(one, d.base))),
    )
    .alias(&["ratemin"])
    .commas(),
    value(
        "rate_iops_min",
        "N[,N]",
        "end with an error below this many blocks per second",
        |d, v| put(&mut d.job.least.iops, units::rates(v, |one| units::size(one, d.base))),
    )
    .commas(),
    value("rate_cycle", "MS", "interval at which these are checked (default 1000)", |d, v| {
        let millis = units::count(v, UnitBase::Decimal, 1)?;
        put(&mut d.job.least.cycle, Ok(Duration::from_millis(millis.into())))
    })
    .alias(&["ratecycle"]),
    value("latency_target", "TIME", "find the greatest depth that meets this latency", |d, v| {
        put(&mut d.aim.0, values::time(v, BareTime::Micros).map(unless_zero))
    }),
    value("latency_window", "TIME", "time at each depth (default 1s)", |d, v| {
        put(&mut d.aim.1.window, values::time(v, BareTime::Micros))
    }),
    value(
        "latency_percentile",
        "PERCENT",
        "share of the blocks that must meet it (default 100)",
        |d, v| {
            let percent = v.parse::<f64>().ok().filter(|of| *of > 0.0 && *of <= 100.0);
            let percentile = percent.ok_or("not a percentage above 0 and up to 100")?;
            d.aim.1 = LatencyTarget { percentile, ..d.aim.1 };
            Ok(())
        },
    ),
    value("latency_run", "BOOL", "continue when the depth is found", |d, v| {
        put(&mut d.aim.1.goes_on, units::truth(v))
    }),
    value("cpuload", "PERCENT", "time in which cpuio computes", |d, v| {
        put(&mut d.job.cpu.load_percent, units::percent(v))
    }),
    value("cpuchunks", "US", "length of a computing period (default 50000)", |d, v| {
        let micros = units::count(v, UnitBase::Decimal, 1)?;
        put(&mut d.job.cpu.chunk, Ok(Duration::from_micros(micros.into())))
    }),
    value("cpumode", "HOW", "noop (default), or qsort", |d, v| {
        put(&mut d.job.cpu.sorts, one_of(v, &[("noop", false), ("qsort", true)]))
    }),
    value("exit_on_io_done", "BOOL", "cpuio ends when all other jobs have ended", |d, v| {
        put(&mut d.job.cpu.ends_with_others, units::truth(v))
    }),
];

const CONTENT: &[IoOption] = &[
    mark("zero_buffers", "write zeros", |d, v| put(&mut d.job.zero, units::truth(v))),
    mark("refill_buffers", "new content for every block", |d, v| {
        put(&mut d.job.refill, units::truth(v))
    }),
    value(
        "buffer_compress_percentage",
        "PERCENT",
        "content that can be compressed by this share",
        |d, v| put(&mut d.job.compress_percent, units::percent(v).map(Some)),
    ),
    value(
        "verify",
        "SUM",
        "read written blocks again: crc32c, crc32, crc64, md5, sha256, sha512, xxhash, meta, pattern",
        |d, v| put(&mut d.job.verify, values::verify(v)),
    ),
    value("do_verify", "BOOL", "0: blocks have headers but are not read again", |d, v| {
        put(&mut d.job.checks.only_written, units::truth(v).map(|does| !does))
    }),
    value("verify_backlog", "N", "read again after every N blocks", |d, v| {
        put(&mut d.job.checks.backlog, units::count(v, d.base, 0).map(unless_zero))
    }),
    value("verify_backlog_batch", "N", "number of them to check (default all)", |d, v| {
        put(&mut d.job.checks.backlog_batch, units::count(v, d.base, 0).map(unless_zero))
    }),
    value("verify_interval", "SIZE", "a header in each SIZE of a block", |d, v| {
        put(&mut d.job.checks.interval_bytes, units::count(v, d.base, 0).map(unless_zero))
    }),
    value(
        "verify_pattern",
        "PATTERN",
        "content of the blocks: 0xHEX, a number, \"text\"",
        |d, v| put(&mut d.job.written.pattern, values::pattern(v)),
    )
    .commas(),
    value("verify_fatal", "BOOL", "end with the first wrong block", |d, v| {
        put(&mut d.job.checks.fatal, units::truth(v))
    }),
    value("verify_dump", "BOOL", "keep the wrong content in FILE.OFFSET.received", |d, v| {
        put(&mut d.job.checks.dump, units::truth(v))
    }),
    value(
        "verify_write_sequence",
        "BOOL",
        "0: a block of an earlier pass is also correct",
        |d, v| put(&mut d.job.checks.any_pass, units::truth(v).map(|checked| !checked)),
    ),
    noted(
        "verify_async",
        "N",
        "accepted without effect: the thread of a job verifies",
        "the thread of a job checks its blocks, apart from its time",
    ),
    noted(
        "verify_async_cpus",
        "LIST",
        "accepted without effect, likewise",
        "the thread of a job checks its blocks, apart from its time",
    ),
    value(
        "buffer_pattern",
        "PATTERN",
        "content of the blocks: 0xHEX, a number, \"text\"",
        |d, v| put(&mut d.job.written.pattern, values::pattern(v)),
    )
    .commas(),
    value("dedupe_percentage", "PERCENT", "share of blocks that are copies of others", |d, v| {
        put(&mut d.dedupe.0, units::percent(v))
    }),
    value("dedupe_mode", "HOW", "repeat the block before (default), or working_set", |d, v| {
        put(&mut d.dedupe.1, one_of(v, &[("repeat", false), ("working_set", true)]))
    }),
    value(
        "dedupe_working_set_percentage",
        "PERCENT",
        "size of the set, of the blocks (default 5)",
        |d, v| put(&mut d.dedupe.2, units::percent(v).map(Some)),
    ),
    value("dedupe_global", "BOOL", "all jobs share one set", |d, v| {
        put(&mut d.dedupe.3, units::truth(v))
    }),
];

const REPORT: &[IoOption] = &[
    value("percentile_list", "LIST", "percentiles of latencies, with ':' between them", |d, v| {
        put(&mut d.job.percentiles, units::percentiles(v))
    })
    .commas(),
    value("clat_percentiles", "BOOL", "percentiles of completion latency (default 1)", |d, v| {
        put(&mut d.job.clat_percentiles, units::truth(v))
    }),
    value("lat_percentiles", "BOOL", "percentiles of the total latency (default 0)", |d, v| {
        put(&mut d.job.lat_percentiles, units::truth(v))
    }),
    value("gtod_reduce", "BOOL", "read no clock for each block", |d, v| {
        let kept = !units::truth(v)?;
        d.job.clocks = Clocks { clat: kept, slat: kept, lat: kept, bandwidth: kept };
        put(&mut d.job.clat_percentiles, Ok(kept))
    }),
    value("disable_lat", "BOOL", "do not measure the total latency", |d, v| {
        put(&mut d.job.clocks.lat, units::truth(v).map(|off| !off))
    }),
    value("disable_clat", "BOOL", "do not measure completion latency", |d, v| {
        put(&mut d.job.clocks.clat, units::truth(v).map(|off| !off))
    }),
    value("disable_slat", "BOOL", "do not measure submission latency", |d, v| {
        put(&mut d.job.clocks.slat, units::truth(v).map(|off| !off))
    }),
    value("disable_bw_measurement", "BOOL", "do not measure bandwidth over time", |d, v| {
        put(&mut d.job.clocks.bandwidth, units::truth(v).map(|off| !off))
    })
    .alias(&["disable_bw"]),
    text("write_bw_log", "PREFIX", "a log of bandwidth over time", |d, v| {
        put(&mut d.job.logs.bandwidth, Ok(Some(v.into())))
    }),
    text("write_lat_log", "PREFIX", "a log of latencies over time", |d, v| {
        put(&mut d.job.logs.latency, Ok(Some(v.into())))
    }),
    text("write_iops_log", "PREFIX", "a log of operations over time", |d, v| {
        put(&mut d.job.logs.iops, Ok(Some(v.into())))
    }),
    value("log_avg_msec", "MS", "average log entries over MS", |d, v| {
        let millis = units::count(v, d.base, 0)?;
        put(&mut d.job.logs.average, Ok(Duration::from_millis(millis.into())))
    }),
    value("log_offset", "BOOL", "a column of offsets in the logs", |d, v| {
        put(&mut d.job.log_offset, units::truth(v))
    }),
    value("continue_on_error", "WHICH", "none (default), read, write, io, verify, all", |d, v| {
        put(&mut d.job.tolerates.goes_on, values::goes_on(v))
    }),
    value(
        "ignore_error",
        "LISTS",
        "errors that do not end a job: of reads, writes, checks",
        |d, v| put(&mut d.job.tolerates.ignores, values::ignored(v)),
    )
    .commas(),
    value("stat_type", "CALL", "of filestat: stat (default), lstat, statx", |d, v| {
        let calls =
            [("stat", StatCall::Stat), ("lstat", StatCall::Lstat), ("statx", StatCall::Statx)];
        put(&mut d.job.stat, one_of(v, &calls))
    }),
    value("kb_base", "N", "k is 1024 (default) or 1000", |d, v| {
        put(&mut d.base, one_of(v, &[("1024", UnitBase::Binary), ("1000", UnitBase::Decimal)]))
    })
    .commas(),
];

const RUN: &[IoOption] = &[
    of_run("output", "FILE", "write the report to FILE", |run, v| {
        put(&mut run.output, Ok(Some(v.into())))
    }),
    of_run(
        "output-format",
        "FORMAT",
        "normal (default), json, or json+ (with histograms)",
        |run, v| put(&mut run.format, values::format(v)),
    ),
    of_run(
        "status-interval",
        "TIME",
        "report the measurements so far at this interval",
        |run, v| put(&mut run.status_interval, values::time(v, BareTime::Seconds).map(unless_zero)),
    ),
    of_run("eta", "WHEN", "progress: auto (default, on a terminal), always, never", |run, v| {
        let times = [("auto", Eta::Auto), ("always", Eta::Always), ("never", Eta::Never)];
        put(&mut run.eta, one_of(v, &times))
    }),
    of_run("section", "NAME", "only the jobs with this name", |run, v| {
        run.only.push(v.to_owned());
        Ok(())
    })
    .repeats(),
    switch("showcmd", "print fio's command line for the jobs, run nothing", |run, v| {
        put(&mut run.show_cmd, units::truth(v))
    }),
    switch("parse-only", "read options and job files, run nothing", |run, v| {
        put(&mut run.parse_only, units::truth(v))
    }),
    switch("readonly", "refuse jobs that write", |run, v| put(&mut run.read_only, units::truth(v))),
    switch("strict", "an option without effect is an error", |run, v| {
        put(&mut run.strict, units::truth(v))
    })
    .alias(&["warnings-fatal"]),
    switch(
        "allow-overwrite",
        "write to files and devices that were not laid out here",
        |run, v| put(&mut run.safety.allow_overwrite, units::truth(v)),
    ),
    switch("keep", "keep the files that were laid out", |run, v| {
        put(&mut run.safety.keep, units::truth(v))
    }),
];

const SWEEP: &[IoOption] = &[
    of_run("repeat", "N", "measure each combination N times (default 1)", |run, v| {
        put(&mut run.repeat, values::repeat(v))
    }),
    switch(
        "precondition",
        "write all files first: once, or twice if any job is random",
        |run, v| put(&mut run.precondition, units::truth(v)),
    ),
    of_run(
        "sweep",
        "OPTION=LIST",
        "measure each of these values; ';' separates lists with ','",
        |run, v| {
            run.sweep.push(values::axis(v)?);
            Ok(())
        },
    )
    .repeats(),
];

/// Options of fio with several values, of which one is supported.
const ONE_VALUE: &[IoOption] = &[
    only("allow_mounted_write", &["0"]),
    only("allrandrepeat", &["0"]),
    only("bwavgtime", &["500"]),
    only("error_dump", &["0"]),
    only("file_service_type", &["roundrobin"]),
    only("iopsavgtime", &["500"]),
    only("per_job_logs", &["1"]),
    only("percentage_random", &["100"]),
    only("pre_read", &["0"]),
    only("scramble_buffers", &["1"]),
    only("slat_percentiles", &["0"]),
    only("stats", &["1"]),
    only("thinktime_blocks_type", &["complete"]),
    only("thread", &["1"]).mark().alias(&["threads"]),
    only("unified_rw_reporting", &["none", "0"]),
    only("unit_base", &["0", "8"]),
];
