//! Command lines and job files, read into jobs.

use super::super::job::{Amount, Clocks, Distribution, Engine, Rw, VerifyKind};
use super::*;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

/// Files to include and variables, as pairs.
struct World(Vec<(&'static str, &'static str)>);

impl Outside for World {
    fn include(&self, path: &str) -> io::Result<String> {
        self.variable(path).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned())
    }

    fn cpus(&self) -> u64 {
        12
    }

    fn page_bytes(&self) -> u64 {
        4096
    }

    fn memory_mib(&self) -> u64 {
        1024
    }
}

fn world() -> World {
    World(vec![
        ("SIZE", "64m"),
        ("EMPTY", ""),
        ("dir/more.fio", "iodepth=4\nioengine=libaio\ninclude deep.fio"),
        ("deep.fio", "bs=8k ; of all"),
        ("sections.fio", "[a]\nrw=read"),
        ("loop.fio", "include loop.fio"),
    ])
}

fn words(line: &str) -> Vec<(String, Option<String>)> {
    let word = |word: &str| match word.split_once('=') {
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
        None => (word.to_owned(), None),
    };
    line.split_whitespace().map(word).collect()
}

/// Reads a command line, options without dashes.
fn line(line: &str) -> Result<Request, String> {
    read(&words(line), &[], &world())
}

/// Reads one job file.
fn file(text: &str) -> Result<Request, String> {
    read(&[], &[("dir/x.fio".to_owned(), text.to_owned())], &world())
}

/// The one job of a command line that has a size.
fn job(options: &str) -> Job {
    line(&format!("name=x size=1m {options}")).unwrap().jobs.remove(0)
}

fn wrong(options: &str) -> String {
    line(&format!("name=x size=1m {options}")).unwrap_err()
}

#[test]
fn defaults_are_fios() {
    let job = job("");
    assert_eq!(job.rw, Rw { reads: true, writes: false, random: false });
    assert_eq!((job.read_percent, job.block_bytes), (50, [4096, 4096]));
    assert_eq!((job.clones, job.files, job.loops, job.depth), (1, 1, 1, 1));
    assert_eq!((job.engine, job.direct, job.invalidate), (Engine::Psync, false, true));
    assert_eq!((job.random_map, job.random_repeat), (true, true));
    assert!(job.clat_percentiles && !job.lat_percentiles);
    assert_eq!(job.percentiles.len(), 17);
    assert_eq!(job.clocks, Clocks { clat: true, slat: true, lat: true, bandwidth: true });
    assert_eq!((job.runtime, job.time_based, job.verify), (None, false, None));
    assert_eq!(job.given, [("size".to_owned(), "1m".to_owned())]);
}

#[test]
fn values_reach_their_places() {
    let job =
        job("rw=randrw rwmixread=70 bs=4k,8k ioengine=io_uring iodepth=32 direct=1 numjobs=4 \
        io_size=2m offset=10% offset_increment=4k nrfiles=3 filesize=1m directory=/d fsync=3 \
        fdatasync=4 end_fsync=1 invalidate=0 runtime=30 time_based ramp_time=500ms loops=2 \
        startdelay=1 thinktime=7 thinktime_blocks=5 norandommap randseed=9 zero_buffers \
        verify=crc32c percentile_list=99:50 clat_percentiles=0 lat_percentiles=1 group_reporting \
        new_group=1 stonewall cpus_allowed=0-1 cpus_allowed_policy=split fixedbufs registerfiles=1 \
        write_bw_log write_lat_log=p log_avg_msec=100 create_only=1 unlink=1 rate=1m,500k");
    assert_eq!(job.rw, Rw { reads: true, writes: true, random: true });
    assert_eq!((job.read_percent, job.block_bytes), (70, [4096, 8192]));
    assert_eq!((job.engine, job.depth, job.direct, job.clones), (Engine::IoUring, 32, true, 4));
    assert_eq!((job.size, job.io_bytes), (Some(Amount::Bytes(1 << 20)), Some(2 << 20)));
    assert_eq!((job.offset, job.offset_increment), (Amount::Percent(10), Amount::Bytes(4096)));
    assert_eq!((job.files, job.file_bytes), (3, Some(1 << 20)));
    assert_eq!(job.directories, [Path::new("/d")]);
    assert_eq!((job.fsync_every, job.fdatasync_every, job.end_fsync), (3, 4, true));
    assert_eq!((job.invalidate, job.loops, job.time_based), (false, 2, true));
    assert_eq!(job.runtime, Some(Duration::from_secs(30)));
    assert_eq!((job.ramp, job.start_delay), (Duration::from_millis(500), Duration::from_secs(1)));
    assert_eq!((job.think, job.think_blocks), (Duration::from_micros(7), 5));
    assert_eq!((job.random_map, job.seed), (false, 9));
    assert_eq!((job.zero, job.refill, job.verify), (true, true, Some(VerifyKind::Crc32c)));
    assert_eq!(job.percentiles, [50.0, 99.0]);
    assert_eq!((job.clat_percentiles, job.lat_percentiles), (false, true));
    assert!(job.group_reporting && job.new_group && job.stonewall && job.cpus_split);
    assert_eq!(job.cpus, [0, 1]);
    assert!(job.fixed_buffers && job.register_files && job.create_only && job.unlink);
    assert_eq!((job.logs.bandwidth, job.logs.latency), (Some("x".into()), Some("p".into())));
    assert_eq!(job.logs.average, Duration::from_millis(100));
    assert_eq!(job.rate_bytes_per_s, [Some(1 << 20), Some(500 << 10)]);
}

#[test]
fn aliases_are_the_same_options() {
    for (one, other) in [
        ("readwrite=write", "rw=write"),
        ("blocksize=8k", "bs=8k"),
        ("io_limit=8k", "io_size=8k"),
        ("nr_files=2", "nrfiles=2"),
        ("timeout=5", "runtime=5"),
        ("wait_for_previous", "stonewall"),
        (
            "iodepth_batch=2 ioengine=null iodepth=4",
            "iodepth_batch_submit=2 ioengine=null iodepth=4",
        ),
        ("iodepth_batch_complete=0 ioengine=null", "iodepth_batch_complete_min=0 ioengine=null"),
        ("disable_bw=1", "disable_bw_measurement=1"),
        ("ioengine=linuxaio", "ioengine=libaio"),
        ("verify=crc32c-intel", "verify=crc32c"),
        ("bs=4ki kb_base=1000", "kb_base=1000 bs=4ki"),
    ] {
        let (mut one, mut other) = (job(one), job(other));
        (one.given, other.given) = (Vec::new(), Vec::new());
        assert_eq!(one, other);
    }
    assert!(job("buffered=0").direct);
    assert_eq!(job("rw=rw rwmixwrite=30").read_percent, 70);
    assert_eq!(
        job("gtod_reduce=1").clocks,
        Clocks { clat: false, slat: false, lat: false, bandwidth: false }
    );
    assert_eq!(job("io_size=50%").io_bytes, Some(512 << 10));
    assert_eq!(job("size=20% filename=/x").size, Some(Amount::Percent(20)));
    assert_eq!(job(r"filename=/a\:b:/c").filenames, [PathBuf::from("/a:b"), "/c".into()]);
    let zipf = job("rw=randread random_distribution=zipf:1.2");
    assert_eq!((zipf.distribution, zipf.random_map), (Distribution::Zipf(1.2), false));
    assert_eq!(job("rate_iops=,500 rate_process=poisson rw=rw").rate_iops, [None, Some(500)]);
    assert_eq!(job("bs=,8k").block_bytes, [4096, 8192]);
    assert_eq!(job("bs=16k bs=,8k").block_bytes, [4096, 8192]);
}

#[test]
fn depths_follow_each_other() {
    for (options, expected) in [
        ("", (1, 1, 1, 1, 1)),
        ("iodepth=16", (16, 1, 1, 1, 16)),
        ("iodepth=16 iodepth_batch=0", (16, 16, 1, 1, 16)),
        ("iodepth=16 iodepth_batch=99", (16, 16, 1, 1, 16)),
        ("iodepth=16 iodepth_batch=4 iodepth_low=8", (16, 4, 1, 1, 8)),
        ("iodepth=16 iodepth_batch_complete_min=4", (16, 1, 4, 4, 16)),
        ("iodepth=16 iodepth_batch_complete_max=8", (16, 1, 1, 8, 16)),
        ("iodepth=16 iodepth_batch_complete_min=0", (16, 1, 0, 1, 16)),
        ("iodepth=16 iodepth_batch_complete_min=32", (16, 1, 16, 16, 16)),
        ("iodepth=16 iodepth_batch_complete_min=8 iodepth_batch_complete_max=4", (16, 1, 8, 8, 16)),
    ] {
        let job = job(&format!("ioengine=null {options}"));
        let found = (
            job.depth,
            job.batch_submit,
            job.batch_complete_min,
            job.batch_complete_max,
            job.depth_low,
        );
        assert_eq!(found, expected, "{options}");
    }
}

#[test]
fn what_has_no_effect_is_said_and_refused_when_strict() {
    for (options, expected) in [
        ("iodepth=16", "iodepth=16 has no effect"),
        ("ioengine=sync iodepth=2", "iodepth=2 has no effect"),
        ("ioengine=pvsync2 iodepth=2", "iodepth=2 has no effect"),
        ("ioengine=mmap iodepth=2", "iodepth=2 has no effect"),
        ("iodepth_batch=4", "iodepth_batch has no effect"),
        ("fixedbufs", "fixedbufs has no effect"),
        ("registerfiles ioengine=libaio", "registerfiles has no effect"),
        ("rwmixread=70", "rwmixread has no effect"),
        ("norandommap", "norandommap has no effect"),
        ("random_distribution=zipf:1.2", "random_distribution has no effect"),
        ("fsync=1", "fsync has no effect"),
        ("end_fsync=1", "end_fsync has no effect"),
        ("refill_buffers", "refill_buffers has no effect"),
        ("rw=write refill_buffers zero_buffers", "refill_buffers has no effect: of zero_buffers"),
        ("time_based", "time_based has no effect"),
        ("rate_process=poisson", "rate_process has no effect"),
        ("thinktime_blocks=2", "thinktime_blocks has no effect"),
        ("cpus_allowed_policy=split", "cpus_allowed_policy has no effect"),
        ("log_avg_msec=5", "log_avg_msec has no effect"),
        ("filename=/x nrfiles=2", "nrfiles has no effect"),
    ] {
        let options = format!("name=x size=1m {options}");
        let warnings = line(&options).unwrap().warnings;
        assert_eq!(warnings.len(), 1, "{options}: {warnings:?}");
        assert!(warnings[0].starts_with(&format!("x: {expected}")), "{warnings:?}");
        let error = line(&format!("{options} strict")).unwrap_err();
        assert!(error.contains(expected) && error.ends_with("(--strict)"), "{error}");
    }
    for options in [
        "ioengine=null iodepth=16",
        "ioengine=io_uring iodepth=16 fixedbufs",
        "ioengine=libaio iodepth=16 direct=1",
        "rw=randrw rwmixread=70 norandommap fsync=1",
    ] {
        let request = line(&format!("name=x size=1m strict {options}")).unwrap();
        assert!(request.warnings.is_empty(), "{options}");
    }
    assert_eq!(job("iodepth=16").depth, 1);
}

#[test]
fn wrong_values_are_named() {
    for (options, expected) in [
        ("bs=4q", "--bs=4q: 'q' is not a unit"),
        ("bs=0", "--bs=0: must be at least 1"),
        ("rw=trimwrite", "--rw=trimwrite: trims together with writes are fio's"),
        ("rw=randread:0", "x: rw: after the colon: must be at least 1"),
        ("rw=read:8q", "x: rw: the step '8q' is not a size"),
        ("rw=reed", "--rw=reed: is none of"),
        ("ioengine=rados", "--ioengine=rados: an engine of fio's"),
        ("ioengine=foo", "--ioengine=foo: no such engine"),
        ("verify=sha1", "--verify=sha1: a checksum of fio's"),
        ("sync=2", "--sync=2: is none of none (0), sync (1), dsync"),
        ("fallocate=2", "--fallocate=2: is none of"),
        ("random_distribution=pareto:0.9", "--random_distribution=pareto:0.9: a distribution of"),
        ("random_distribution=zipf:1", "--random_distribution=zipf:1: theta"),
        ("random_distribution=zipf:1.2:0.25", "--random_distribution=zipf:1.2:0.25: a centre"),
        ("numjobs=0", "--numjobs=0: must be at least 1"),
        ("direct", "--direct: needs a value"),
        ("direct=2", "--direct=2: must be 1 or 0"),
        ("rwmixread=101", "--rwmixread=101: is not a whole number"),
        ("size=(1+1)*", "--size=(1+1)*: is not a number"),
        ("startdelay=5-1", "--startdelay=5-1: the range ends before it begins"),
        ("filesize=2m-1m", "--filesize=2m-1m: the range ends before it begins"),
        ("bsrange=4k", "--bsrange=4k: is not a range"),
        ("bsrange=3k-4k", "--bsrange=3k-4k: 4096 is not a multiple of 3072"),
        ("ioengine=mmap sync=1", "x: ioengine=mmap writes to memory"),
        ("rw=randwrite bsrange=4k-8k verify=md5", "x: verify needs blocks of one size"),
        ("rw=randwrite:8 verify=md5", "x: verify does not go with several blocks"),
        ("filename=-", "--filename=-: standard input"),
        ("scramble_buffers=0", "--scramble_buffers=0: of fio's values only 1"),
        ("thread=0", "--thread=0: of fio's values only 1"),
        ("rate=1m rate_iops=5", "x: rate and rate_iops exclude"),
        ("io_size=50% size=50% filename=/x", "x: io_size in percent"),
        ("ioengine=mmap direct=1", "x: ioengine=mmap"),
        ("bssplit=4k/50", "--bssplit=4k/50: the percentages are 50 together"),
        ("bssplit=4k/50:8k/60", "--bssplit=4k/50:8k/60: the percentages are more than 100"),
        (
            "client=host",
            "--client=host: an option of fio's that is not supported here: nothing runs on",
        ),
        ("hipri", "--hipri: an option of fio's"),
        ("numjob=3", "--numjob=3: no such option; did you mean numjobs?"),
        ("zzzzzz", "--zzzzzz: no such option"),
        ("output-format=terse", "--output-format=terse: is fio's"),
        ("output-format=normal,json", "--output-format=normal,json: several formats"),
        ("eta=sometimes", "--eta=sometimes: is none of"),
        ("repeat=0", "--repeat=0: must be at least 1"),
        ("sweep=nosuch=1", "--sweep=nosuch=1: nosuch is not an option"),
        ("sweep=bs", "--sweep=bs: is not OPTION="),
        ("readonly rw=write", "x: writes, and --readonly"),
    ] {
        let message = wrong(options);
        assert!(message.starts_with(expected), "{options}: {message}");
    }
    assert!(line("").unwrap_err().contains("no job"));
    assert!(line("name=global").unwrap_err().contains("no job"));
    assert!(line("name=x").unwrap_err().contains("needs size="));
    assert!(line("name=x parse-only").is_ok() && line("name=x filename=/y").is_ok());
    assert!(line("name").unwrap_err().starts_with("--name: needs a value"));
}

#[test]
fn names_begin_jobs_and_the_front_is_for_all() {
    let request = line("rw=write size=1m name=a name=b rw=read size=2m").unwrap();
    let found: Vec<_> =
        request.jobs.iter().map(|j| (j.name.as_str(), j.rw.writes, j.size)).collect();
    let megabytes = |n: u64| Some(Amount::Bytes(n << 20));
    assert_eq!(found, [("a", true, megabytes(1)), ("b", false, megabytes(2))]);
    assert_eq!(request.globals, [("rw".into(), "write".into()), ("size".into(), "1m".into())]);
    assert!(request.jobs[0].given.is_empty());
    assert_eq!(request.command_line, "--rw=write --size=1m --name=a --name=b --rw=read --size=2m");
    // Without a name, the options make one job.
    let request = line("rw=write size=1m").unwrap();
    assert_eq!((request.jobs.len(), request.jobs[0].name.as_str()), (1, "io"));
    assert!(request.jobs[0].rw.writes);
    let request = line("name=global rw=write name=x size=1m").unwrap();
    assert!(request.jobs[0].rw.writes && request.jobs.len() == 1);
    let request = line("name=a size=1m name=b size=1m section=b").unwrap();
    assert_eq!((request.jobs.len(), request.jobs[0].name.as_str()), (1, "b"));
}

#[test]
fn options_of_the_run() {
    let request = line(
        "name=x size=1m output=o.json output-format=json+ status-interval=500ms \
        eta=never keep allow-overwrite repeat=5 precondition strict parse-only showcmd",
    )
    .unwrap();
    assert_eq!((request.run.output, request.run.format), (Some("o.json".into()), Format::JsonPlus));
    assert_eq!(request.run.status_interval, Some(Duration::from_millis(500)));
    assert_eq!((request.run.eta, request.run.repeat), (Eta::Never, 5));
    assert!(
        request.run.safety.keep && request.run.safety.allow_overwrite && request.run.precondition
    );
    assert!(request.run.strict && request.run.parse_only && request.run.show_cmd);
    let request = line("name=x size=1m").unwrap();
    assert!(!request.run.safety.keep && !request.run.safety.allow_overwrite && !request.run.strict);
    assert_eq!(
        (request.run.repeat, request.run.format, request.run.eta),
        (1, Format::Normal, Eta::Auto)
    );
}

#[test]
fn sweeps() {
    let request = line("numjobs=1,2,4..128 rw=read,randread size=1m repeat=5").unwrap();
    assert_eq!(request.sweep.len(), 2);
    assert_eq!(request.sweep[0].values.len() * request.sweep[1].values.len(), 16);
    assert_eq!((request.jobs.len(), request.jobs[0].clones), (1, 1));
    let cell = cell(&request, &[("numjobs", "64"), ("rw", "randread")]).unwrap();
    assert_eq!((cell.jobs[0].clones, cell.jobs[0].rw.random), (64, true));
    assert!(cell.sweep.is_empty());
    assert!(super::cell(&request, &[("numjobs", "64")]).unwrap_err().contains("rw has no value"));
    assert!(super::cell(&request, &[("numjobs", "x"), ("rw", "read")]).is_err());
    // One of any option, over what is said in place, for all jobs.
    let request = line("name=a size=1m bs=4k name=b size=1m sweep=bs=4k,8k;64k").unwrap();
    assert_eq!(request.sweep[0].values, ["4k,8k", "64k"]);
    let cell = super::cell(&request, &[("bs", "64k")]).unwrap();
    assert!(cell.jobs.iter().all(|job| job.block_bytes == [65536; 2]));
    // A list in one job is that job's alone.
    let request = line("name=a size=1m iodepth=1,2 ioengine=null name=b size=1m").unwrap();
    let cell = super::cell(&request, &[("iodepth", "2")]).unwrap();
    assert_eq!((cell.jobs[0].depth, cell.jobs[1].depth), (2, 1));
    // Each cell is tried, and what they warn of is gathered.
    let request = line("size=1m iodepth=1,8 ioengine=psync,io_uring").unwrap();
    assert_eq!(request.warnings.len(), 1);
    for (options, expected) in [
        ("size=1m numjobs=1,x", "--numjobs=x: is not a number"),
        ("size=1m numjobs=1,,2", "--numjobs=1,,2: has an empty value"),
        ("size=1m rw=read,reed", "--rw=reed: is none of"),
        ("size=1m numjobs=1,2 sweep=numjobs=3,4", "--sweep=numjobs: another list"),
        ("name=a size=1m numjobs=1,2 name=b numjobs=1,3", "--numjobs=1,3: another list"),
        ("size=1m numjobs=1..999 iodepth=1..999", "the sweep has more than"),
        ("size=1m iodepth=1,8 strict", "io: iodepth=8 has no effect"),
    ] {
        let message = line(options).unwrap_err();
        assert!(message.starts_with(expected), "{options}: {message}");
    }
}

mod files;
mod several;
