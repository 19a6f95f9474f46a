//! Command lines and job files, read into jobs.

use super::*;
use crate::job::{Amount, BlockSizes, Clocks, Distribution, EngineKind, Rw, Sync, VerifyKind};
use crate::steady::{SteadyCriterion, SteadyMetric};
use std::path::{Path, PathBuf};

/// Files to include and variables, as pairs.
struct World(Vec<(&'static str, &'static str)>);

impl Environment for World {
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
    assert_eq!((job.engine, job.direct, job.invalidate), (EngineKind::Psync, false, true));
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
    assert_eq!((job.engine, job.depth, job.direct, job.clones), (EngineKind::IoUring, 32, true, 4));
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
        ("rw=trimwrite", "--rw=trimwrite: supported by fio, not by hakobu (trim and randtrim are)"),
        ("rw=randread:0", "x: rw: after the colon: must be at least 1"),
        ("rw=read:8q", "x: rw: the step '8q' is not a size"),
        ("rw=reed", "--rw=reed: none of"),
        ("ioengine=rados", "--ioengine=rados: supported by fio, not by hakobu"),
        ("ioengine=foo", "--ioengine=foo: no such engine"),
        ("verify=sha1", "--verify=sha1: supported by fio, not by hakobu"),
        ("sync=2", "--sync=2: none of none (0), sync (1), dsync"),
        ("fallocate=2", "--fallocate=2: none of"),
        (
            "random_distribution=pareto:0.9",
            "--random_distribution=pareto:0.9: supported by fio, not by hakobu (random,",
        ),
        ("random_distribution=zipf:1", "--random_distribution=zipf:1: theta"),
        ("random_distribution=zipf:1.2:0.25", "--random_distribution=zipf:1.2:0.25: a centre"),
        ("numjobs=0", "--numjobs=0: must be at least 1"),
        ("direct", "--direct: needs a value"),
        ("direct=2", "--direct=2: must be 1 or 0"),
        ("rwmixread=101", "--rwmixread=101: not a whole number"),
        ("size=(1+1)*", "--size=(1+1)*: not a number"),
        ("startdelay=5-1", "--startdelay=5-1: the range ends before it begins"),
        ("filesize=2m-1m", "--filesize=2m-1m: the range ends before it begins"),
        ("bsrange=4k", "--bsrange=4k: not a range"),
        ("bsrange=3k-4k", "--bsrange=3k-4k: 4096 is not a multiple of 3072"),
        ("ioengine=mmap sync=1", "x: ioengine=mmap writes to memory"),
        ("rw=randwrite bsrange=4k-8k verify=md5", "x: verify needs blocks of one size"),
        ("rw=randwrite:8 verify=md5", "x: verify does not go with several blocks"),
        ("filename=-", "--filename=-: standard input"),
        ("scramble_buffers=0", "--scramble_buffers=0: supported by fio, not by hakobu (only 1 is)"),
        ("thread=0", "--thread=0: supported by fio, not by hakobu (only 1 is)"),
        ("rate=1m rate_iops=5", "x: rate and rate_iops exclude"),
        ("io_size=50% size=50% filename=/x", "x: io_size in percent"),
        ("ioengine=mmap direct=1", "x: ioengine=mmap"),
        ("bssplit=4k/50", "--bssplit=4k/50: the percentages are 50 together"),
        ("bssplit=4k/50:8k/60", "--bssplit=4k/50:8k/60: the percentages are more than 100"),
        ("client=host", "--client=host: supported by fio, not by hakobu (nothing runs on"),
        ("hipri", "--hipri: supported by fio, not by hakobu"),
        ("numjob=3", "--numjob=3: no such option; did you mean numjobs?"),
        ("zzzzzz", "--zzzzzz: no such option"),
        ("output-format=terse", "--output-format=terse: supported by fio, not by hakobu"),
        ("output-format=normal,json", "--output-format=normal,json: several formats"),
        ("eta=sometimes", "--eta=sometimes: none of"),
        ("repeat=0", "--repeat=0: must be at least 1"),
        ("sweep=nosuch=1", "--sweep=nosuch=1: nosuch is not an option"),
        ("sweep=bs", "--sweep=bs: not OPTION="),
        ("readonly rw=write", "x: writes, and --readonly"),
    ] {
        let message = wrong(options);
        assert!(message.starts_with(expected), "{options}: {message}");
    }
    assert!(line("").unwrap_err().contains("no jobs"));
    assert!(line("name=global").unwrap_err().contains("no jobs"));
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
        ("size=1m numjobs=1,x", "--numjobs=x: not a number"),
        ("size=1m numjobs=1,,2", "--numjobs=1,,2: has an empty value"),
        ("size=1m rw=read,reed", "--rw=reed: none of"),
        ("size=1m numjobs=1,2 sweep=numjobs=3,4", "--sweep=numjobs: another list"),
        ("name=a size=1m numjobs=1,2 name=b numjobs=1,3", "--numjobs=1,3: another list"),
        ("size=1m numjobs=1..999 iodepth=1..999", "the sweep has more than"),
        ("size=1m iodepth=1,8 strict", "io: iodepth=8 has no effect"),
    ] {
        let message = line(options).unwrap_err();
        assert!(message.starts_with(expected), "{options}: {message}");
    }
}

#[test]
fn blocks_of_several_sizes() {
    let split = |shares: &[(u64, u8)]| Some(BlockSizes::Split(shares.to_vec()));
    let of = job("rw=randrw bssplit=4k/10:64k/50:32k/40,8k/ bs=16k");
    assert_eq!(of.sizes, [split(&[(4096, 10), (65_536, 50), (32_768, 40)]), None]);
    // The largest is what buffers are made for; one size is not a choice.
    assert_eq!(of.block_bytes, [65_536, 8192]);
    // Sizes without a percentage share the rest.
    let of = job("rw=write bssplit=4k/:8k/:16k/");
    assert_eq!(of.sizes[1], split(&[(4096, 33), (8192, 33), (16_384, 34)]));
    let range = Some(BlockSizes::Range { least: 1024, largest: 4096 });
    let of = job("bs=64k bsrange=1k-4k,2k-2k");
    assert_eq!((of.sizes, of.block_bytes), ([range, None], [4096, 2048]));
    // The last of both counts.
    let of = job("bsrange=1k-4k bs=64k");
    assert_eq!((of.sizes, of.block_bytes), ([None, None], [65_536; 2]));
    // Random blocks of several sizes have no map.
    assert!(!job("rw=randread bsrange=4k-8k").random_map && job("rw=randread").random_map);
}

#[test]
fn steady_states() {
    let of = job("ss=iops_slope:0.3% ss_dur=5 ss_ramp=2s").steady.unwrap();
    let criterion =
        SteadyCriterion { of: SteadyMetric::Blocks, slope: true, limit: 0.3, percent: true };
    assert_eq!((of.criterion, of.window_s, of.ramp_s), (criterion, 5, 2));
    let of = job("steadystate=bw:2m steadystate_duration=1m").steady.unwrap();
    assert_eq!((of.criterion.limit, of.criterion.percent, of.window_s), (2097152.0, false, 60));
    let request = line("name=x size=1m ss=iops:2%").unwrap();
    assert_eq!(request.jobs[0].steady, None);
    assert!(request.warnings[0].contains("steadystate has no effect"), "{:?}", request.warnings);
    for (options, said) in [
        ("ss=late:5%", "none of iops"),
        ("ss=iops", "not a criterion"),
        ("ss=iops:0%", "needs a limit above 0"),
        ("ss=clat:5%", "none of iops"),
    ] {
        assert!(wrong(options).contains(said), "{options}");
    }
}

#[test]
fn steps_ranges_and_shares() {
    let of = job("rw=read:-8k");
    assert_eq!((of.skip_bytes, of.run_blocks, of.rw.random), (-8192, 1, false));
    let of = job("rw=randread:8");
    assert_eq!((of.skip_bytes, of.run_blocks, of.random_map), (0, 8, false));
    let of = job("rw=write number_ios=7 sync=dsync fallocate=none overwrite=1 verify=xxhash");
    assert_eq!(
        (of.blocks_max, of.sync, of.verify),
        (Some(7), Sync::Data, Some(VerifyKind::Xxhash))
    );
    assert_eq!((of.reserve, of.overwrite), (false, true));
    let of = job("startdelay=1-2500ms filesize=4k-1m offset_increment=25%");
    assert_eq!(of.start_delay, Duration::from_secs(1));
    assert_eq!(of.start_delay_max, Some(Duration::from_millis(2500)));
    assert_eq!((of.file_bytes, of.file_bytes_max), (Some(4096), Some(1 << 20)));
    assert_eq!(of.offset_increment, Amount::Percent(25));
    assert_eq!(job("startdelay=2").start_delay_max, None);
    let of = job("filesize=1m-1m");
    assert_eq!((of.file_bytes, of.file_bytes_max), (Some(1 << 20), None));
}

fn names(request: &Request) -> Vec<&str> {
    request.jobs.iter().map(|job| job.name.as_str()).collect()
}

#[test]
fn sections_comments_and_white_space() {
    let text = "; a comment\n  # another\n\n[global]\nrw=randread ; of all\n  size = 1m\t\n\
                [first]\nbs=8k # larger\n time_based\n\truntime=5\n\n[global]\nbs=16k\n\
                [second]\r\nnumjobs=2\r\n[third]\nbs=4k";
    let request = file(text).unwrap();
    assert_eq!(names(&request), ["first", "second", "third"]);
    let found: Vec<_> = request.jobs.iter().map(|job| (job.block_bytes[0], job.clones)).collect();
    assert_eq!(found, [(8192, 1), (16384, 2), (4096, 1)]);
    assert!(request.jobs.iter().all(|job| job.rw.random && job.size.is_some()));
    assert_eq!((request.jobs[0].time_based, request.jobs[1].time_based), (true, false));
    let globals = [("rw", "randread"), ("size", "1m"), ("bs", "16k")];
    let found: Vec<_> = request.globals.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    assert_eq!(found, globals);
    assert_eq!(request.jobs[1].given, [("numjobs".to_owned(), "2".to_owned())]);
    // A second [global] does not hold for the job before it.
    assert_eq!(
        request.command_line,
        "--name=first --rw=randread --size=1m --bs=8k --time_based=1 --runtime=5 \
         --name=second --rw=randread --size=1m --bs=16k --numjobs=2 \
         --name=third --rw=randread --size=1m --bs=4k"
    );
}

#[test]
fn variables_keywords_and_included_files() {
    let text = "[a]\nsize=${SIZE}\nnumjobs=$ncpus\nbs=$pagesize\ninclude more.fio\n\
                description=a ${EMPTY}b${NONE}\n";
    let request = file(text).unwrap();
    let job = &request.jobs[0];
    assert_eq!(job.size, Some(Amount::Bytes(64 << 20)));
    assert_eq!((job.clones, job.depth, job.engine), (12, 4, EngineKind::Libaio));
    assert_eq!(job.block_bytes, [8192; 2]);
    assert!(job.given.contains(&("description".to_owned(), "a b".to_owned())));
    assert!(request.command_line.ends_with("--description='a b'"), "{}", request.command_line);
}

#[test]
fn errors_name_file_and_line() {
    for (text, expected) in [
        ("rw=read", "dir/x.fio:1: rw=read comes before the first [section]"),
        ("[a]\nsize=1m\nrw=reed", "dir/x.fio:3: rw=reed: none of"),
        (
            "[a]\nsize=${NONE}",
            "dir/x.fio:2: size=: not a number (not set in the environment: NONE)",
        ),
        ("[a]\nnumjob=2", "dir/x.fio:2: numjob=2: no such option; did you mean numjobs?"),
        ("[a]\n\nhipri=1", "dir/x.fio:3: hipri=1: supported by fio, not by hakobu"),
        (
            "[a]\niodepth=1,2,4",
            "dir/x.fio:2: iodepth=1,2,4: ',2,4' is not a unit (k, m, g, t, p, also with b or ib); a list of \
             values to measure goes on the command line: --sweep=iodepth=1,2,4",
        ),
        ("[a]\nexec_prerun=ls", "dir/x.fio:2: exec_prerun=ls: supported by fio, not by hakobu"),
        ("[a]\nkeep", "dir/x.fio:2: keep: is an option of the command line"),
        ("[a]\noutput=x", "dir/x.fio:2: output=x: is an option of the command line"),
        ("[a]\nsize=8*$mb_memory-", "dir/x.fio:2: size=8*1024-: not a number"),
        ("[a]\nsize=8/$nocpus", "dir/x.fio:2: size=8/$nocpus: not a number"),
        ("[a]\nnumjobs=1,2", "dir/x.fio:2: numjobs=1,2: ',2' is not a unit"),
        ("[a\nsize=1m", "dir/x.fio:1: a section that does not end with ]"),
        ("[]\nsize=1m", "dir/x.fio:1: a section without a name"),
        ("[a]\nsize=1m\nbs", "dir/x.fio:3: bs: needs a value"),
        ("[a]\nsize=1m\n=3", "dir/x.fio:3: =3: no such option"),
        ("[a]\ninclude none.fio", "dir/x.fio:2: cannot include none.fio"),
        ("[a]\ninclude sections.fio", "sections.fio:1: a section in a file that is included"),
        ("[a]\ninclude loop.fio", "loop.fio:1: more than 256 files are included"),
        ("[a]\nsize=1m\0", "dir/x.fio:2: not valid UTF-8"),
        ("", "no jobs: pass a job file or --name=..."),
        ("[global]\nsize=1m", "no jobs: pass a job file"),
    ] {
        let message = file(text).unwrap_err();
        assert!(message.starts_with(expected), "{text:?}: {message}");
    }
}

#[test]
fn several_files_wait_for_each_other() {
    let text = |name: &str| format!("[global]\nsize=1m\n[{name}]\n[{name}2]\n");
    let files = [("a.fio".to_owned(), text("a")), ("b.fio".to_owned(), text("b"))];
    let request = read(&words("rw=write"), &files, &world()).unwrap();
    assert_eq!(names(&request), ["a", "a2", "b", "b2"]);
    let waits: Vec<bool> = request.jobs.iter().map(|job| job.stonewall).collect();
    assert_eq!(waits, [false, false, true, false]);
    // Options before the first job of the command line also apply to job files.
    assert!(request.jobs.iter().all(|job| job.rw.writes));
    let request = read(&words("section=b2 section=a"), &files, &world()).unwrap();
    assert_eq!(names(&request), ["a", "b2"]);
    assert!(request.jobs[1].stonewall);
    assert!(read(&words("section=none"), &files, &world()).unwrap_err().contains("no jobs"));
    // A wrong option of a section that is left out is not looked at.
    let files = [("a.fio".to_owned(), "[a]\nsize=1m\n[b]\nnosuch=1".to_owned())];
    assert!(read(&words("section=a"), &files, &world()).is_ok());
    assert!(read(&words("name=first size=1m"), &files[..0], &world()).is_ok());
}

#[test]
fn a_name_may_be_given_again() {
    let request = file("[a]\nsize=1m\nname=other\nwrite_iops_log").unwrap();
    assert_eq!(names(&request), ["other"]);
    assert_eq!(request.jobs[0].logs.iops, Some("other".into()));
    assert_eq!(request.command_line, "--name=other --size=1m --write_iops_log");
}

/// Text of a generated job, in words of its own.
#[derive(Clone, Debug)]
struct Meant {
    rw: usize,
    kib: u64,
    clones: u32,
    depth: u32,
    direct: bool,
    runtime_s: Option<u64>,
    percent: u8,
}

const RW: [&str; 6] = ["read", "write", "rw", "randread", "randwrite", "randrw"];

fn meant() -> impl proptest::strategy::Strategy<Value = Meant> {
    use proptest::prelude::*;
    let runtime = proptest::option::of(1u64..100_000);
    let parts = (0..6usize, 1u64..4096, 1u32..300, 1u32..300, any::<bool>(), runtime, 0u8..=100);
    parts.prop_map(|(rw, kib, clones, depth, direct, runtime_s, percent)| Meant {
        rw,
        kib,
        clones,
        depth,
        direct,
        runtime_s,
        percent,
    })
}

/// Writes it down, in one of several ways.
fn written(meant: &Meant, way: usize) -> String {
    let (equals, end) =
        [("=", "\n"), (" = ", "  \n"), ("= ", " ; why\n"), (" =", "\r\n\n")][way % 4];
    let block = [format!("{}k", meant.kib), format!("{}", meant.kib << 10)][way % 2].clone();
    let engine = "ioengine".to_owned();
    let mut lines = vec![
        (["rw", "readwrite"][way % 2].to_owned(), RW[meant.rw].to_owned()),
        (["bs", "blocksize"][way / 2 % 2].to_owned(), block),
        ("numjobs".to_owned(), meant.clones.to_string()),
        (engine, "io_uring".to_owned()),
        ("iodepth".to_owned(), format!("{:#x}", meant.depth)),
        ("direct".to_owned(), u8::from(meant.direct).to_string()),
        ("rwmixread".to_owned(), meant.percent.to_string()),
        ("size".to_owned(), "16m".to_owned()),
    ];
    if let Some(seconds) = meant.runtime_s {
        let time = [format!("{seconds}"), format!("{}ms", seconds * 1000)][way % 2].clone();
        lines.push(("runtime".to_owned(), time));
    }
    lines.iter().map(|(name, value)| format!("{name}{equals}{value}{end}")).collect()
}

proptest::proptest! {
    #[test]
    fn what_was_meant_is_read(
        jobs in proptest::collection::vec((meant(), 0usize..8), 1..5),
    ) {
        let sections = jobs.iter().enumerate();
        let text: String = sections.map(|(at, (m, way))| format!("[j{at}]\n{}", written(m, *way))).collect();
        let request = file(&text).unwrap();
        proptest::prop_assert_eq!(request.jobs.len(), jobs.len());
        for (job, (meant, _)) in request.jobs.iter().zip(&jobs) {
            let rw = RW[meant.rw];
            let reads = rw.contains("read") || rw.contains("rw");
            let writes = rw.contains("write") || rw.contains("rw");
            proptest::prop_assert_eq!(job.rw, Rw { reads, writes, random: rw.contains("rand") });
            proptest::prop_assert_eq!(job.block_bytes, [meant.kib << 10; 2]);
            proptest::prop_assert_eq!((job.clones, job.depth), (meant.clones, meant.depth));
            proptest::prop_assert_eq!(job.direct, meant.direct);
            proptest::prop_assert_eq!(job.read_percent, meant.percent);
            proptest::prop_assert_eq!(job.runtime, meant.runtime_s.map(Duration::from_secs));
        }
        // The output of --showcmd means the same.
        let again = line(&request.command_line.replace("--", "")).unwrap();
        proptest::prop_assert_eq!(again.jobs, request.jobs);
    }

    #[test]
    fn any_text_is_a_job_file_or_none(text in "\\PC{0,200}") {
        let _ = file(&text);
    }

    #[test]
    fn any_lines_are_a_job_file_or_none(
        lines in proptest::collection::vec(
            "\\[[a-z]{0,3}\\]?|(rw|bs|size|iodepth|rate|runtime|include|verify|zoned|name|cpus_allowed)[ =]{0,2}[-0-9a-z,.:%${}]{0,8}|[;#]?.{0,10}",
            0..12,
        ),
    ) {
        let _ = file(&lines.join("\n"));
    }

    #[test]
    fn any_options_are_a_command_line_or_none(
        options in proptest::collection::vec(
            ("(name|rw|bs|size|numjobs|iodepth|sweep|repeat|eta|section)", "[-0-9a-z,.:=%;]{0,10}"),
            0..6,
        ),
    ) {
        let options: Vec<_> = options.into_iter().map(|(name, value)| (name, Some(value))).collect();
        if let Ok(request) = read(&options, &[], &world()) {
            proptest::prop_assert!(!request.jobs.is_empty());
        }
    }
}
