//! The options of `hakobu io`: fio's names and meanings, and ours.

use super::{Opt, Table, Takes, Typed, flag, value};
use hakobu_lab::io::spec::REFUSED;

/// The command line of `io`.
pub const TABLE: Table = Table {
    command: "io",
    about: "Measure a disk, a volume or a page cache: fio's options, job files and JSON",
    usage: "hakobu io [OPTIONS] [JOBFILE]...",
    after: "Options and job files are fio's: --name begins a job, and options before the first --name \
            hold for all of them; without any, the options make one job. JOBFILE is - for standard \
            input. SIZE is a number with k, m, g, t or p (of 1024; kib, mib, ... of 1000); TIME one with us, \
            ms, s, m, h or d. BOOL is 1 or 0.\n\
            Where a comma means nothing else, an option takes a list (--numjobs 1,2,4..128), and each \
            combination is measured; --sweep takes one of any option. Nothing is written to a file that \
            was not laid out here, or to a device, without --allow-overwrite.\n\
            docs/io.md has every option with its default, and what differs from fio.\n\
            Exit codes: 0 done, 1 a job failed, 2 usage, 130 a signal stopped it (what was measured is \
            reported).",
    options: &[JOBS, TARGET, WORK, RATE, CONTENT, REPORT, RUN, SWEEP, STAYS],
    unbuilt: &[REFUSED],
    abbreviates: false,
};

/// An option of jobs with a value.
const fn job(name: &'static str, what: &'static str, help: &'static str) -> Opt {
    value(name, None, what, help).takes(Takes::Values(what)).in_group("Jobs")
}

/// An option of jobs that perhaps has a value.
const fn mark(name: &'static str, what: &'static str, help: &'static str) -> Opt {
    job(name, what, help).takes(Takes::PerhapsValues(what))
}

const TARGETS: &str = "Files and devices";
const WORKS: &str = "What is done";
const RATES: &str = "How fast";
const CONTENTS: &str = "What is written";
const REPORTS: &str = "Measurements and reports";
const RUNS: &str = "The run";
const SWEEPS: &str = "Sweeps";
const ALWAYS: &str = "Taken for fio's sake: always as said here";

/// An option that may only say what is done anyway.
const fn stays(name: &'static str, value: &'static str) -> Opt {
    job(name, value, "no other value").in_group(ALWAYS)
}

const JOBS: &[Opt] = &[
    job("name", "NAME", "begin a job (global: options for all jobs after it)"),
    job("description", "TEXT", "text for the report"),
    job("numjobs", "N", "so many clones of it, each a thread (default 1)"),
    job("runtime", "TIME", "end after so long").alias(&["timeout"]),
    mark("time_based", "BOOL", "begin again until --runtime is over"),
    job("ramp_time", "TIME", "not measured at the beginning"),
    job("startdelay", "TIME", "wait before it begins"),
    job("loops", "N", "do all of it so often (default 1)"),
    mark("stonewall", "BOOL", "begin when all jobs before it have ended")
        .alias(&["wait_for_previous"]),
    mark("new_group", "BOOL", "begin a group of reports"),
    mark("group_reporting", "BOOL", "one report for a group, not one for each clone"),
    job("cpus_allowed", "LIST", "CPUs to use, such as 0-3,5"),
    job("cpus_allowed_policy", "HOW", "shared (default), or split: one for each clone"),
];

const TARGET: &[Opt] = &[
    job("filename", "PATHS", "files or devices, with ':' between them; shared by all clones")
        .in_group(TARGETS),
    job("directory", "DIR", "where files are laid out (default: here)").in_group(TARGETS),
    job("size", "SIZE", "bytes of each clone over all its files, or percent of what is there")
        .in_group(TARGETS),
    job("io_size", "SIZE", "end after so many bytes, fewer or more than --size")
        .alias(&["io_limit"])
        .in_group(TARGETS),
    job("offset", "SIZE", "where in each file it begins, or percent")
        .alias(&["fileoffset"])
        .in_group(TARGETS),
    job("offset_increment", "SIZE", "how much further each clone begins").in_group(TARGETS),
    job("nrfiles", "N", "files of each clone (default 1)").alias(&["nr_files"]).in_group(TARGETS),
    job("filesize", "SIZE", "bytes of each file").in_group(TARGETS),
    job("create_only", "BOOL", "lay the files out, and no more").in_group(TARGETS),
    job("unlink", "BOOL", "remove the files at the end").in_group(TARGETS),
    job("invalidate", "BOOL", "drop the files from the page cache before (default 1)")
        .in_group(TARGETS),
];

const WORK: &[Opt] = &[
    job("rw", "HOW", "read (default), write, randread, randwrite, rw, randrw")
        .alias(&["readwrite"])
        .in_group(WORKS),
    job("rwmixread", "PERCENT", "reads among both (default 50)").in_group(WORKS),
    job("rwmixwrite", "PERCENT", "writes among both (default 50)").in_group(WORKS),
    job("bs", "SIZE[,SIZE]", "bytes of a block; for reads, for writes (default 4k)")
        .alias(&["blocksize"])
        .in_group(WORKS),
    job("ioengine", "NAME", "sync, psync (default), pvsync2, libaio, io_uring, mmap, null")
        .in_group(WORKS),
    job("iodepth", "N", "blocks in flight, with libaio, io_uring and null (default 1)")
        .in_group(WORKS),
    job("iodepth_batch_submit", "N", "blocks that are submitted at once (default 1)")
        .alias(&["iodepth_batch"])
        .in_group(WORKS),
    job("iodepth_batch_complete_min", "N", "blocks to wait for at once (default 1)")
        .alias(&["iodepth_batch_complete"])
        .in_group(WORKS),
    job("iodepth_batch_complete_max", "N", "blocks to take at once, at most").in_group(WORKS),
    job("iodepth_low", "N", "sink so low before more are submitted (default: --iodepth)")
        .in_group(WORKS),
    job("direct", "BOOL", "past the page cache, O_DIRECT (default 0)").in_group(WORKS),
    job("buffered", "BOOL", "the opposite of --direct").in_group(WORKS),
    job("fsync", "N", "fsync(2) after so many writes").in_group(WORKS),
    job("fdatasync", "N", "fdatasync(2) after so many writes").in_group(WORKS),
    job("end_fsync", "BOOL", "fsync(2) at the end").in_group(WORKS),
    mark("norandommap", "BOOL", "random blocks may come twice, or never").in_group(WORKS),
    job("randrepeat", "BOOL", "the same random order at every run (default 1)").in_group(WORKS),
    job("randseed", "N", "another random order").in_group(WORKS),
    job("random_distribution", "HOW", "random (default), or zipf:THETA").in_group(WORKS),
    mark("fixedbufs", "BOOL", "register buffers with io_uring").in_group(WORKS),
    mark("registerfiles", "BOOL", "register files with io_uring").in_group(WORKS),
];

const RATE: &[Opt] = &[
    job("rate", "SIZE[,SIZE]", "bytes a second at most, of each clone; reads, writes")
        .in_group(RATES),
    job("rate_iops", "N[,N]", "blocks a second at most, of each clone").in_group(RATES),
    job("rate_process", "HOW", "blocks come evenly (linear, default) or at random (poisson)")
        .in_group(RATES),
    job("thinktime", "TIME", "pause between blocks, in microseconds without a unit")
        .in_group(RATES),
    job("thinktime_blocks", "N", "pause after so many blocks (default 1)").in_group(RATES),
];

const CONTENT: &[Opt] = &[
    mark("zero_buffers", "BOOL", "write zeros").in_group(CONTENTS),
    mark("refill_buffers", "BOOL", "new content for every block").in_group(CONTENTS),
    job("buffer_compress_percentage", "PERCENT", "content that compresses by so much")
        .in_group(CONTENTS),
    job("verify", "SUM", "read written blocks again, with crc32c, crc32, crc64 or sha256")
        .in_group(CONTENTS),
];

const REPORT: &[Opt] = &[
    job("percentile_list", "LIST", "percentiles of latencies, with ':' between them")
        .in_group(REPORTS),
    job("clat_percentiles", "BOOL", "of completion latency (default 1)").in_group(REPORTS),
    job("lat_percentiles", "BOOL", "of the whole latency (default 0)").in_group(REPORTS),
    job("gtod_reduce", "BOOL", "read no clock for each block").in_group(REPORTS),
    job("disable_lat", "BOOL", "do not measure the whole latency").in_group(REPORTS),
    job("disable_clat", "BOOL", "do not measure completion latency").in_group(REPORTS),
    job("disable_slat", "BOOL", "do not measure submission latency").in_group(REPORTS),
    job("disable_bw_measurement", "BOOL", "do not measure bandwidth over time")
        .alias(&["disable_bw"])
        .in_group(REPORTS),
    mark("write_bw_log", "PREFIX", "a log of bandwidth over time").in_group(REPORTS),
    mark("write_lat_log", "PREFIX", "a log of latencies over time").in_group(REPORTS),
    mark("write_iops_log", "PREFIX", "a log of operations over time").in_group(REPORTS),
    job("log_avg_msec", "MS", "one entry of a log is the mean over so long").in_group(REPORTS),
    job("kb_base", "N", "k is 1024 (default) or 1000").in_group(REPORTS),
];

const RUN: &[Opt] = &[
    value("output", None, "FILE", "write the report to FILE").in_group(RUNS),
    value("output-format", None, "FORMAT", "normal (default), json, or json+ (with histograms)")
        .in_group(RUNS),
    value("status-interval", None, "TIME", "what went, after each such time").in_group(RUNS),
    value("eta", None, "WHEN", "progress: auto (default, on a terminal), always, never")
        .in_group(RUNS),
    value("section", None, "NAME", "only the jobs with this name")
        .takes(Takes::Values("NAME"))
        .in_group(RUNS),
    flag("showcmd", None, "print fio's command line for the jobs, do nothing").in_group(RUNS),
    flag("parse-only", None, "read the options and job files, do nothing").in_group(RUNS),
    flag("readonly", None, "refuse jobs that write").in_group(RUNS),
    flag("strict", None, "an option without effect is an error")
        .alias(&["warnings-fatal"])
        .in_group(RUNS),
    flag("allow-overwrite", None, "write to files and devices that were not laid out here")
        .in_group(RUNS),
    flag("keep", None, "keep the files that were laid out").in_group(RUNS),
];

const SWEEP: &[Opt] = &[
    value("repeat", None, "N", "measure each combination so often (default 1)").in_group(SWEEPS),
    flag("precondition", None, "write all files before: once, twice where any job is random")
        .in_group(SWEEPS),
    value(
        "sweep",
        None,
        "OPTION=LIST",
        "go through these values; ';' in place of ',' where needed",
    )
    .takes(Takes::Values("OPTION=LIST"))
    .in_group(SWEEPS),
];

/// What fio lets choose and is done in one way here.
const STAYS: &[Opt] = &[
    stays("allow_file_create", "1"),
    stays("allow_mounted_write", "0"),
    stays("allrandrepeat", "0"),
    stays("atomic", "0"),
    stays("bwavgtime", "500"),
    stays("create_on_open", "0"),
    stays("create_serialize", "1"),
    stays("do_verify", "1"),
    stays("file_service_type", "roundrobin"),
    stays("filename_format", "$jobname.$jobnum.$filenum"),
    stays("iopsavgtime", "500"),
    stays("per_job_logs", "1"),
    stays("percentage_random", "100"),
    stays("pre_read", "0"),
    stays("scramble_buffers", "1"),
    stays("slat_percentiles", "0"),
    stays("stats", "1"),
    stays("sync", "none"),
    stays("thinktime_blocks_type", "complete"),
    mark("thread", "1", "no other value").in_group(ALWAYS),
    stays("unified_rw_reporting", "none"),
    stays("unit_base", "0"),
    stays("zonemode", "none"),
];

/// What was typed, for the reader of options and job files.
///
/// # Errors
/// A value is no text.
pub fn arguments(typed: &Typed) -> Result<Vec<(String, Option<String>)>, String> {
    let each = typed.options.iter().map(|given| {
        let text = given.text()?;
        Ok((given.name.to_owned(), (!text.is_empty()).then(|| text.to_owned())))
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_lab::io::spec::{System, options, read};
    use std::ffi::OsString;

    /// Reads a command line to its end.
    fn typed(line: &str) -> Result<Vec<(String, Option<String>)>, String> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        match TABLE.parse(&words) {
            Ok(typed) => arguments(&typed),
            Err(super::super::Refused::Usage(message)) => Err(message),
            Err(other) => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn every_option_of_jobs_is_in_the_table() {
        let spelled = |opt: &Opt| {
            let mut all = vec![opt.name];
            all.extend(opt.aliases);
            all.sort_unstable();
            all
        };
        let ours: Vec<Vec<&str>> = TABLE.options.iter().copied().flatten().map(spelled).collect();
        for known in options() {
            let mut names = vec![known.name];
            names.extend(known.aliases);
            names.sort_unstable();
            assert!(ours.contains(&names), "{names:?} is not in the table");
        }
        let groups = [RUNS, SWEEPS];
        for opt in TABLE.options.iter().copied().flatten() {
            let job = options().any(|known| known.is(opt.name));
            assert_eq!(job, !groups.contains(&opt.group), "{}", opt.name);
        }
    }

    #[test]
    fn each_option_is_read_as_it_stands() {
        for (line, expected) in [
            ("--bs 4k --bs=8k", "bs=4k bs=8k"),
            ("--name a --rw=read --name=b --readwrite write", "name=a rw=read name=b rw=write"),
            ("--time_based --runtime 3 --time_based=0", "time_based runtime=3 time_based=0"),
            ("--strict --output-format json+", "strict output-format=json+"),
            ("--write_bw_log --write_lat_log=x", "write_bw_log write_lat_log=x"),
            ("--group_reporting --numjobs 1,2..8", "group_reporting numjobs=1,2..8"),
            ("--sweep bs=4k..1m --sweep rw=read,write", "sweep=bs=4k..1m sweep=rw=read,write"),
            ("--num 1", ""),
            ("--bssplit=4k/50", ""),
            ("-rw=read", ""),
        ] {
            let found = typed(line).unwrap_or_default();
            let found = found.iter().map(|(name, value)| match value {
                Some(value) => format!("{name}={value}"),
                None => name.clone(),
            });
            assert_eq!(found.collect::<Vec<_>>().join(" "), expected, "{line}");
        }
    }

    #[test]
    fn what_is_fios_and_not_ours_is_named() {
        for (line, expected) in [
            ("--bssplit=4k/50:8k/50", "--bssplit is not built"),
            ("--steadystate=iops:2", "--steadystate is not built"),
            ("--minimal", "--minimal is not built"),
            ("--client=host", "--client is not built"),
            ("--nosuch", "unexpected argument '--nosuch'"),
        ] {
            let message = typed(line).err().unwrap_or_default();
            assert!(message.starts_with(expected), "{line}: {message}");
        }
    }

    #[test]
    fn what_is_always_so_is_taken() {
        for opt in STAYS {
            let (Takes::Values(value) | Takes::PerhapsValues(value)) = opt.takes else {
                panic!("{}", opt.name);
            };
            let line = format!("--name=x --size=1m --{}={value}", opt.name);
            let arguments = typed(&line).unwrap();
            assert!(read(&arguments, &[], &System).is_ok(), "{line}");
        }
    }
}
