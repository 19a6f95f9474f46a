//! Job files: sections, comments, variables, files within files; and any text at all.

use super::*;
use std::time::Duration;

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
    assert_eq!((job.clones, job.depth, job.engine), (12, 4, Engine::Libaio));
    assert_eq!(job.block_bytes, [8192; 2]);
    assert!(job.given.contains(&("description".to_owned(), "a b".to_owned())));
    assert!(request.command_line.ends_with("--description='a b'"), "{}", request.command_line);
}

#[test]
fn errors_name_file_and_line() {
    for (text, expected) in [
        ("rw=read", "dir/x.fio:1: rw=read comes before the first [section]"),
        ("[a]\nsize=1m\nrw=reed", "dir/x.fio:3: rw=reed: is none of"),
        (
            "[a]\nsize=${NONE}",
            "dir/x.fio:2: size=: is not a number (not set in the environment: NONE)",
        ),
        ("[a]\nnumjob=2", "dir/x.fio:2: numjob=2: no such option; did you mean numjobs?"),
        ("[a]\n\nhipri=1", "dir/x.fio:3: hipri=1: an option of fio's"),
        (
            "[a]\niodepth=1,2,4",
            "dir/x.fio:2: iodepth=1,2,4: ',2,4' is not a unit (k, m, g, t, p, also with b or ib); a list of \
             values to measure goes on the command line: --sweep=iodepth=1,2,4",
        ),
        ("[a]\nexec_prerun=ls", "dir/x.fio:2: exec_prerun=ls: an option of fio's"),
        ("[a]\nkeep", "dir/x.fio:2: keep: is an option of the command line"),
        ("[a]\noutput=x", "dir/x.fio:2: output=x: is an option of the command line"),
        ("[a]\nsize=8*$mb_memory-", "dir/x.fio:2: size=8*1024-: is not a number"),
        ("[a]\nsize=8/$nocpus", "dir/x.fio:2: size=8/$nocpus: is not a number"),
        ("[a]\nnumjobs=1,2", "dir/x.fio:2: numjobs=1,2: ',2' is not a unit"),
        ("[a\nsize=1m", "dir/x.fio:1: a section that does not end with ]"),
        ("[]\nsize=1m", "dir/x.fio:1: a section without a name"),
        ("[a]\nsize=1m\nbs", "dir/x.fio:3: bs: needs a value"),
        ("[a]\nsize=1m\n=3", "dir/x.fio:3: =3: no such option"),
        ("[a]\ninclude none.fio", "dir/x.fio:2: cannot include none.fio"),
        ("[a]\ninclude sections.fio", "sections.fio:1: a section in a file that is included"),
        ("[a]\ninclude loop.fio", "loop.fio:1: more than 256 files are included"),
        ("[a]\nsize=1m\0", "dir/x.fio:2: is not valid UTF-8"),
        ("", "there is no job"),
        ("[global]\nsize=1m", "there is no job"),
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
    assert!(read(&words("section=none"), &files, &world()).unwrap_err().contains("no job"));
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
