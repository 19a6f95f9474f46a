//! `hakobu io`: fio's jobs, and sweeps of them. Options are handed to the reader of options and job files as they were typed.

mod single;
mod sweep;

use super::tool::carry_out;
use crate::files::is_stdout;
use crate::options::{self, Block, OptArg, Row, Table, Takes, Typed};
use crate::show::output;
use crate::{exit, input};
use hakobu_core::error::cannot;
use hakobu_core::lines;
use hakobu_io::spec::{self, Format, REFUSED, REMOVED, Request};
use std::ffi::OsString;
use std::process::ExitCode;

/// The command line of `io`.
pub static TABLE: Table<Vec<Word>> = Table {
    command: "io",
    about: "Measure a disk, a volume or a page cache: fio's options, job files and JSON",
    usage: "hakobu io [OPTIONS] [JOBFILE]...",
    after: "Options and job files are those of fio: --name begins a job, options before the \
            first --name apply to all jobs, and without --name the options define one job. \
            JOBFILE may be - for standard input. SIZE is a number with k, m, g, t or p (of 1024; \
            kib, mib, ... of 1000); TIME is a number with us, ms, s, m, h or d. BOOL is 1 or 0.\n\
            Where a comma has no other meaning, an option takes a list (--numjobs 1,2,4..128), \
            and each combination is measured; --sweep gives lists for all options. Files that \
            were not laid out here, and devices, are written only with --allow-overwrite.\n\
            hakobu help io-guide lists every option with its default, and the differences from \
            fio.\n\
            Exit codes: 0 done, 1 a job failed, 2 usage, 130 stopped by a signal (the \
            measurements so far are reported).",
    options: &[&JOBS, &TARGET, &WORK, &PRIORITY, &RATE, &CONTENT, &REPORT, &RUN, &SWEEP, &STAYS],
    unbuilt: &[REFUSED, REMOVED],
    abbreviates: false,
};

const JOBS: WordGroup = word_group("Jobs").with(&[
    job("name", "NAME", "begin a job (global: options for all jobs after it)"),
    job("description", "TEXT", "text for the report"),
    job("numjobs", "N", "number of clones, each a thread (default 1)"),
    job("runtime", "TIME", "end after this time").alias(&["timeout"]),
    mark("time_based", "BOOL", "begin again until --runtime is over"),
    job("ramp_time", "TIME", "time at the beginning that is not measured"),
    job("steadystate", "HOW", "end when steady: iops:2%, iops_slope:0.1%, bw:…, lat:…")
        .alias(&["ss"]),
    job("steadystate_duration", "TIME", "window of the steady state").alias(&["ss_dur"]),
    job("steadystate_ramp_time", "TIME", "ignored at the beginning").alias(&["ss_ramp"]),
    job("steadystate_check_interval", "TIME", "time between two values (default 1s)")
        .alias(&["ss_interval", "ss_check_interval"]),
    job("startdelay", "TIME[-TIME]", "pause before the start; a range: each clone its own"),
    job("number_ios", "N", "end each clone after N blocks"),
    job("loops", "N", "repeat everything N times (default 1)"),
    mark("stonewall", "BOOL", "begin when all jobs before it have ended")
        .alias(&["wait_for_previous"]),
    job("wait_for", "NAME", "begin when all clones of this job have ended"),
    mark("exitall", "BOOL", "end other jobs when a clone has ended"),
    job("exit_what", "WHICH", "those of its group (default), stonewall: those that run, all"),
    mark("exitall_on_error", "BOOL", "the same where a clone ended with an error"),
    job("flow", "WEIGHT", "share of the blocks among the jobs of a flow"),
    job("flow_id", "N", "number of the flow (default 0)"),
    job("flow_sleep", "TIME", "pause of a job that is ahead, in microseconds without a unit"),
    mark("new_group", "BOOL", "begin a group of reports"),
    mark("group_reporting", "BOOL", "one report for a group, not one for each clone"),
    job("cpus_allowed", "LIST", "CPUs to use, such as 0-3,5"),
    job("cpus_allowed_policy", "HOW", "shared (default), or split: one for each clone"),
    job("numa_cpu_nodes", "LIST", "CPUs of these nodes, such as 0-1"),
    job("numa_mem_policy", "HOW", "memory: default, local, prefer:N, bind:LIST, interleave:LIST"),
]);

const TARGET: WordGroup = word_group("Files and devices").with(&[
    job("filename", "PATHS", "files or devices, with ':' between them; shared by all clones"),
    job("filename_format", "NAME", "names without --filename, with $jobname, $jobnum, $filenum"),
    job("directory", "DIR", "folder for the files (default: the current one)"),
    job("size", "SIZE", "bytes of each clone over all its files, or percent of existing files"),
    job("io_size", "SIZE", "end after SIZE bytes, which may differ from --size")
        .alias(&["io_limit"]),
    job("offset", "SIZE", "start within each file, or percent").alias(&["fileoffset"]),
    job("offset_increment", "SIZE", "added to the offset for each clone, or percent"),
    job("nrfiles", "N", "files of each clone (default 1)").alias(&["nr_files"]),
    job("filesize", "SIZE[-SIZE]", "bytes of each file; a range: each file its own"),
    job(
        "fallocate",
        "HOW",
        "reserve blocks of new files: native (default), none; others as in fio",
    ),
    job("overwrite", "BOOL", "write new files once before the run (default 0)"),
    job("create_only", "BOOL", "only lay out the files"),
    job("create_on_open", "BOOL", "files begin empty and grow; they are not laid out"),
    job("fill_device", "BOOL", "write in sequence until no space is left, or up to --size")
        .alias(&["fill_fs"]),
    job("create_serialize", "BOOL", "accepted without effect: files are laid out one by one"),
    job("allow_file_create", "BOOL", "0: files must exist"),
    job("openfiles", "N", "at least --nrfiles: all files of a job are open"),
    job("unlink", "BOOL", "remove the files at the end"),
    job("invalidate", "BOOL", "first drop the files from the page cache (default 1)"),
]);

const WORK: WordGroup = word_group("What is done").with(&[
    job(
        "rw",
        "HOW",
        "read (default), write, rw, trim, randread, randwrite, randrw, randtrim; read:8k leaves bytes out",
    )
    .alias(&["readwrite"]),
    job("rwmixread", "PERCENT", "percentage of reads in mixes (default 50)"),
    job("rwmixwrite", "PERCENT", "percentage of writes in mixes (default 50)"),
    job("bs", "SIZE[,SIZE]", "bytes of a block; for reads, for writes (default 4k)")
        .alias(&["blocksize"]),
    job("bsrange", "SIZE-SIZE", "blocks of any multiple of the first size up to the second")
        .alias(&["blocksize_range"]),
    job("bssplit", "SIZE/PERCENT:...", "blocks of these sizes with these shares: 4k/60:64k/40"),
    job(
        "ioengine",
        "NAME",
        "sync, psync (default), pvsync2, libaio, io_uring, mmap, page_fault, null, falloc, ftruncate, \
         filecreate, filestat, filedelete, dircreate, dirstat, dirdelete, cpuio",
    ),
    job("blockalign", "SIZE[,SIZE]", "random blocks begin at multiples of SIZE").alias(&["ba"]),
    job("zonemode", "HOW", "none (default), or strided: zone after zone"),
    job("zonesize", "SIZE", "bytes to read or write in each zone"),
    job("zonerange", "SIZE", "bytes of a zone (default --zonesize)"),
    job("zoneskip", "SIZE", "bytes between zones"),
    job("iodepth", "N", "blocks in flight, with libaio, io_uring and null (default 1)"),
    job("io_submit_mode", "HOW", "inline (default), or offload: by separate threads"),
    job("iodepth_batch_submit", "N", "blocks that are submitted at once (default 1)")
        .alias(&["iodepth_batch"]),
    job("iodepth_batch_complete_min", "N", "blocks to wait for at once (default 1)")
        .alias(&["iodepth_batch_complete"]),
    job("iodepth_batch_complete_max", "N", "blocks to take at once, at most"),
    job("iodepth_low", "N", "drain to N before more are submitted (default: --iodepth)"),
    job("direct", "BOOL", "bypass the page cache, O_DIRECT (default 0)"),
    job("buffered", "BOOL", "the opposite of --direct"),
    job("atomic", "BOOL", "write each block as a whole or not at all (RWF_ATOMIC), with O_DIRECT"),
    job("sync", "HOW", "writes wait for the device: none (default), sync or 1, dsync"),
    job("fsync", "N", "fsync(2) after every N writes"),
    job("fdatasync", "N", "fdatasync(2) after every N writes"),
    job("end_fsync", "BOOL", "fsync(2) at the end"),
    mark("norandommap", "BOOL", "random blocks may come twice, or never"),
    job("randrepeat", "BOOL", "the same random order in every run (default 1)"),
    job("randseed", "N", "seed of the random order"),
    job("random_generator", "NAME", "accepted without effect: there is one generator"),
    job(
        "random_distribution",
        "HOW",
        "random (default), zipf:THETA, zoned:ACCESS/SIZE:..., sequence:N,N,...",
    ),
    job("random_sequence_stride", "BOOL", "each repetition of a sequence continues after the last"),
    mark("fixedbufs", "BOOL", "register buffers with io_uring"),
    mark("registerfiles", "BOOL", "register files with io_uring"),
]);

const RATE: WordGroup = word_group("How fast").with(&[
    job("rate", "SIZE[,SIZE]", "maximum bytes a second of each clone; reads, writes"),
    job("rate_iops", "N[,N]", "maximum blocks a second of each clone"),
    job("rate_process", "HOW", "blocks come evenly (linear, default) or at random (poisson)"),
    job("thinktime", "TIME", "pause between blocks, in microseconds without a unit"),
    job("thinktime_blocks", "N", "pause after every N blocks (default 1)"),
    job("rate_min", "SIZE[,SIZE]", "end with an error below this many bytes a second")
        .alias(&["ratemin"]),
    job("rate_iops_min", "N[,N]", "end with an error below this many blocks a second"),
    job("rate_cycle", "MS", "interval at which these are checked (default 1000)")
        .alias(&["ratecycle"]),
    job("latency_target", "TIME", "find the greatest depth that meets this latency"),
    job("latency_window", "TIME", "time at each depth (default 1s)"),
    job("latency_percentile", "PERCENT", "share of the blocks that must meet it (default 100)"),
    job("latency_run", "BOOL", "continue when the depth is found"),
    job("cpuload", "PERCENT", "time in which cpuio computes"),
    job("cpuchunks", "US", "length of a computing period (default 50000)"),
    job("cpumode", "HOW", "noop (default), or qsort"),
    job("exit_on_io_done", "BOOL", "cpuio ends when all other jobs have ended"),
]);

const CONTENT: WordGroup = word_group("What is written").with(&[
    mark("zero_buffers", "BOOL", "write zeros"),
    mark("refill_buffers", "BOOL", "new content for every block"),
    job("buffer_compress_percentage", "PERCENT", "content that can be compressed by this share"),
    job(
        "verify",
        "SUM",
        "read written blocks again: crc32c, crc32, crc64, md5, sha256, sha512, xxhash, meta, pattern",
    ),
    job("do_verify", "BOOL", "0: blocks have headers but are not read again"),
    job("verify_backlog", "N", "read again after every N blocks"),
    job("verify_backlog_batch", "N", "number of them to check (default all)"),
    job("verify_interval", "SIZE", "a header in each SIZE of a block"),
    job("verify_pattern", "PATTERN", "content of the blocks: 0xHEX, a number, \"text\""),
    job("verify_fatal", "BOOL", "end with the first wrong block"),
    job("verify_dump", "BOOL", "keep the wrong content in FILE.OFFSET.received"),
    job("verify_write_sequence", "BOOL", "0: a block of an earlier pass is also correct"),
    job("verify_async", "N", "accepted without effect: the thread of a job verifies"),
    job("verify_async_cpus", "LIST", "accepted without effect, likewise"),
    job("buffer_pattern", "PATTERN", "content of the blocks: 0xHEX, a number, \"text\""),
    job("dedupe_percentage", "PERCENT", "share of blocks that are copies of others"),
    job("dedupe_mode", "HOW", "repeat the block before (default), or working_set"),
    job("dedupe_working_set_percentage", "PERCENT", "size of the set, of the blocks (default 5)"),
    job("dedupe_global", "BOOL", "all jobs share one set"),
]);

const REPORT: WordGroup = word_group("Measurements and reports").with(&[
    job("percentile_list", "LIST", "percentiles of latencies, with ':' between them"),
    job("clat_percentiles", "BOOL", "percentiles of completion latency (default 1)"),
    job("lat_percentiles", "BOOL", "percentiles of the total latency (default 0)"),
    job("gtod_reduce", "BOOL", "read no clock for each block"),
    job("disable_lat", "BOOL", "do not measure the total latency"),
    job("disable_clat", "BOOL", "do not measure completion latency"),
    job("disable_slat", "BOOL", "do not measure submission latency"),
    job("disable_bw_measurement", "BOOL", "do not measure bandwidth over time")
        .alias(&["disable_bw"]),
    mark("write_bw_log", "PREFIX", "a log of bandwidth over time"),
    mark("write_lat_log", "PREFIX", "a log of latencies over time"),
    mark("write_iops_log", "PREFIX", "a log of operations over time"),
    job("log_avg_msec", "MS", "average log entries over MS"),
    job("log_offset", "BOOL", "a column of offsets in the logs"),
    job("continue_on_error", "WHICH", "none (default), read, write, io, verify, all"),
    job("ignore_error", "LISTS", "errors that do not end a job: of reads, writes, checks"),
    job("stat_type", "CALL", "of filestat: stat (default), lstat, statx"),
    job("kb_base", "N", "k is 1024 (default) or 1000"),
]);

const RUN: WordGroup = word_group("The run").with(&[
    value("output", "FILE", "write the report to FILE"),
    value("output-format", "FORMAT", "normal (default), json, or json+ (with histograms)"),
    value("status-interval", "TIME", "report the measurements so far at this interval"),
    value("eta", "WHEN", "progress: auto (default, on a terminal), always, never"),
    value("section", "NAME", "only the jobs with this name").takes(Takes::Values("NAME")),
    flag("showcmd", "print fio's command line for the jobs, run nothing"),
    flag("parse-only", "read options and job files, run nothing"),
    flag("readonly", "refuse jobs that write"),
    flag("strict", "an option without effect is an error").alias(&["warnings-fatal"]),
    flag("allow-overwrite", "write to files and devices that were not laid out here"),
    flag("keep", "keep the files that were laid out"),
]);

const SWEEP: WordGroup = word_group("Sweeps").with(&[
    value("repeat", "N", "measure each combination N times (default 1)"),
    flag("precondition", "write all files first: once, or twice if any job is random"),
    value("sweep", "OPTION=LIST", "measure each of these values; ';' separates lists with ','")
        .takes(Takes::Values("OPTION=LIST")),
]);

/// Options of fio with several values, of which one is supported.
const STAYS: WordGroup = word_group("Accepted for compatibility with fio, with this value only")
    .with(&[
        stays("allow_mounted_write", "0"),
        stays("allrandrepeat", "0"),
        stays("bwavgtime", "500"),
        stays("error_dump", "0"),
        stays("file_service_type", "roundrobin"),
        stays("iopsavgtime", "500"),
        stays("per_job_logs", "1"),
        stays("percentage_random", "100"),
        stays("pre_read", "0"),
        stays("scramble_buffers", "1"),
        stays("slat_percentiles", "0"),
        stays("stats", "1"),
        stays("thinktime_blocks_type", "complete"),
        mark("thread", "1", "no other value").alias(&["threads"]),
        stays("unified_rw_reporting", "none"),
        stays("unit_base", "0"),
    ]);

/// An option as it was typed, and its value.
pub type Word = (String, Option<String>);

/// Options that are handed on: the reader of options and job files gives all of them their meaning,
/// those of the command line and those in files.
pub struct WordGroup(pub(super) &'static str, pub(super) &'static [Row]);

/// An empty group of options.
pub(super) const fn word_group(title: &'static str) -> WordGroup {
    WordGroup(title, &[])
}

impl WordGroup {
    /// The same with these options.
    pub(super) const fn with(self, rows: &'static [Row]) -> WordGroup {
        WordGroup(self.0, rows)
    }
}

impl Block<Vec<Word>> for WordGroup {
    fn rows(&self) -> Vec<(&'static str, &'static Row)> {
        self.1.iter().map(|row| (self.0, row)).collect()
    }

    fn set(&self, words: &mut Vec<Word>, given: &OptArg) -> Option<Result<(), String>> {
        let row = self.1.iter().find(|row| row.name == given.name)?;
        Some(given.text().map(|text| {
            words.push((row.name.to_owned(), (!text.is_empty()).then(|| text.to_owned())));
        }))
    }
}

/// An option of jobs with a value.
pub(super) const fn job(name: &'static str, what: &'static str, help: &'static str) -> Row {
    options::values(name, None, what, help)
}

/// An option of jobs that perhaps has a value.
pub(super) const fn mark(name: &'static str, what: &'static str, help: &'static str) -> Row {
    job(name, what, help).takes(Takes::PerhapsValues(what))
}

/// An option of the run with a value, of which the last one counts.
pub(super) const fn value(name: &'static str, what: &'static str, help: &'static str) -> Row {
    options::value(name, None, what, help)
}

/// A switch of the run.
pub(super) const fn flag(name: &'static str, help: &'static str) -> Row {
    options::flag(name, None, help)
}

/// An option that accepts only the value that applies anyway.
pub(super) const fn stays(name: &'static str, value: &'static str) -> Row {
    job(name, value, "no other value")
}

pub const PRIORITY: WordGroup = word_group("I/O priorities").with(&[
    job("prioclass", "CLASS", "I/O class of the job: 0 none, 1 realtime, 2 best-effort, 3 idle"),
    job("prio", "LEVEL", "I/O priority of the job: from 0, the highest, to 7"),
    job("cmdprio_percentage", "N[,N]", "percentage of blocks with the priority below"),
    job("cmdprio_class", "CLASS[,CLASS]", "its class (default 1, realtime); for reads, for writes"),
    job("cmdprio", "LEVEL[,LEVEL]", "its level (default 0)"),
    job(
        "cmdprio_bssplit",
        "LIST",
        "SIZE/PERCENT[/CLASS/LEVEL[/HINT]]:...: shares of the blocks of these sizes",
    ),
    job("log_prio", "BOOL", "latency logs have the full value of the priority"),
]);

/// A command line of `io`.
pub struct IoArgs {
    /// Options, in order.
    pub(super) words: Vec<Word>,
    /// Job files, as typed.
    pub(super) files: Vec<String>,
    /// Jobs and settings of the run.
    pub(super) request: Request,
}

impl IoArgs {
    pub fn new(typed: &Typed) -> Result<IoArgs, String> {
        let words = TABLE.read(typed, Vec::new())?;
        let mut files = Vec::new();
        for path in &typed.paths {
            let name =
                path.to_str().ok_or_else(|| format!("'{}' is not valid UTF-8", path.display()))?;
            files.push(name.to_owned());
        }
        let texts = files.iter().map(|name| Ok((name.clone(), text_of(name)?)));
        let texts: Vec<(String, String)> = texts.collect::<Result<_, String>>()?;
        let request = spec::read(&words, &texts, &spec::System)?;
        let args = IoArgs { words, files, request };
        if args.is_sweep() {
            args.goes_with_sweeps()?;
        }
        Ok(args)
    }

    /// Several runs; one value for each list is one, and the request has its jobs.
    pub fn is_sweep(&self) -> bool {
        self.request.run.repeat > 1 || self.request.sweep.iter().any(|axis| axis.values.len() > 1)
    }

    /// Refuses what only one run can have.
    fn goes_with_sweeps(&self) -> Result<(), String> {
        if self.request.run.format != Format::Normal {
            return Err(
                "--output-format goes with one run: a sweep's results are a folder, of which \
                        hakobu report makes JSON, CSV, a page"
                    .into(),
            );
        }
        if self.request.run.output.as_deref().is_some_and(is_stdout) {
            return Err("--output=- goes with one run: a sweep's results are a folder".into());
        }
        if self.request.run.status_interval.is_some() {
            return Err("--status-interval goes with one run, not with a sweep".into());
        }
        Ok(())
    }
}

/// A job file; `-` is standard input.
fn text_of(name: &str) -> Result<String, String> {
    let read = || match name {
        "-" => lines::text(&mut *input::stdin()?),
        _ => lines::text(std::fs::File::open(name)?),
    };
    read().map_err(|error| cannot("read", name, error))
}

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().map(two_dashes).collect();
    carry_out(TABLE.parse(&arguments), |typed| IoArgs::new(&typed), |args| Ok(args.run()))
}

/// fio takes its long options with one dash as well: `-name=x`.
fn two_dashes(word: OsString) -> OsString {
    let name = word.to_str().and_then(|text| text.strip_prefix('-'));
    let name = name.and_then(|text| text.split('=').next()).filter(|name| name.len() > 1);
    match name {
        Some(name) if spec::is_option(name) => {
            let mut whole = OsString::from("-");
            whole.push(word);
            whole
        }
        _ => word,
    }
}

impl IoArgs {
    /// Does it; the exit code.
    fn run(&self) -> u8 {
        for warning in &self.request.warnings {
            output::message(warning);
        }
        if self.request.run.show_cmd {
            output::text(&format!("hakobu io {}\n", self.request.command_line));
            return exit::OK;
        }
        if self.request.run.parse_only {
            return exit::OK;
        }
        let done = match self.is_sweep() {
            true => sweep::run_sweep(self),
            false => single::run_single(&self.request),
        };
        done.unwrap_or_else(|message| {
            output::message(&message);
            exit::FAILURE
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Row;
    use hakobu_io::spec::{System, options, read};
    use std::ffi::OsString;

    /// Reads a command line to its end.
    fn typed(line: &str) -> Result<Vec<(String, Option<String>)>, String> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        match TABLE.parse(&words) {
            Ok(typed) => TABLE.read(&typed, Vec::new()),
            Err(crate::options::Refused::Usage(message)) => Err(message),
            Err(other) => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn every_option_of_jobs_is_in_the_table() {
        let spelled = |row: &Row| {
            let mut all = vec![row.name];
            all.extend(row.aliases);
            all.sort_unstable();
            all
        };
        let ours: Vec<Vec<&str>> = TABLE.rows().map(spelled).collect();
        for known in options() {
            let mut names = vec![known.name];
            names.extend(known.aliases);
            names.sort_unstable();
            assert!(ours.contains(&names), "{names:?} is not in the table");
        }
        let own = [RUN, SWEEP].map(|group| group.1.iter().map(|row| row.name));
        let own: Vec<&str> = own.into_iter().flatten().collect();
        for row in TABLE.rows() {
            let job = options().any(|known| known.is(row.name));
            assert_eq!(job, !own.contains(&row.name), "{}", row.name);
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
            ("--bssplit=4k/50", "bssplit=4k/50"),
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
            ("--minimal", "--minimal is not supported"),
            ("--client=host", "--client is not supported"),
            ("--nosuch", "unexpected argument '--nosuch'"),
        ] {
            let message = typed(line).err().unwrap_or_default();
            assert!(message.starts_with(expected), "{line}: {message}");
        }
    }

    #[test]
    fn what_is_always_so_is_taken() {
        for opt in STAYS.1 {
            let (Takes::Values(value) | Takes::PerhapsValues(value)) = opt.takes else {
                panic!("{}", opt.name);
            };
            let line = format!("--name=x --size=1m --{}={value}", opt.name);
            let arguments = typed(&line).unwrap();
            assert!(read(&arguments, &[], &System).is_ok(), "{line}");
        }
    }
}
