//! Jobs among each other: who waits for whom, who ends with whom, who has which share; and signals: what was measured until
//! then is told, and what was laid out goes.

use crate::io::{area, hakobu, io, json, measured, names, number};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn times(found: &Value, job: usize) -> f64 {
    let runtime = found.pointer(&format!("/jobs/{job}/job_runtime")).and_then(Value::as_f64);
    runtime.unwrap()
}

#[test]
fn a_job_waits_for_the_one_it_names() {
    let area = area();
    // The reader would find an empty file, had it not waited.
    let line = "--size=256k --name=first --rw=write --filename=x --verify=crc32c --thinktime=2ms \
                --name=other --filename=y --size=4k --name=last --wait_for=first --rw=read \
                --filename=x --verify=crc32c";
    let found = measured(area.path(), line);
    assert_eq!(found["hakobu"]["engines"][2]["verified"], 64);
    assert_eq!(number(&found, "/jobs/2/read/total_ios"), 64);
    for (line, why) in [
        ("--size=4k --name=a --wait_for=b --name=b", "no earlier job has this name"),
        (
            "--size=4k --name=b --name=b --name=a --wait_for=b",
            "several jobs before it have this name",
        ),
    ] {
        io(area.path(), line).expect(2).says(&[why]);
    }
}

#[test]
fn jobs_end_with_a_job() {
    let slow = "--rw=read --size=1g --ioengine=null --thinktime=1ms";
    let fast = "--rw=read --size=4k --ioengine=null";
    // Neither other groups nor later ones end with it; with other words they do.
    for (what, ends, later) in [
        ("", [true, false], true),
        ("--exit_what=group", [true, false], true),
        ("--exit_what=stonewall", [true, true], true),
        ("--exit_what=all", [true, true], false),
    ] {
        let area = area();
        let line = format!(
            "--name=same {slow} --runtime=2 --name=fast {fast} --startdelay=300ms --exitall {what} \
             --name=far {slow} --runtime=1 --new_group --name=later {fast} --stonewall"
        );
        let found = measured(area.path(), &line);
        let jobs = found["jobs"].as_array().unwrap();
        assert_eq!(jobs.len(), if later { 4 } else { 3 }, "{what}");
        for (job, limit, ends) in [(0, 1500.0, ends[0]), (2, 800.0, ends[1])] {
            let took = times(&found, job);
            assert_eq!(took < limit, ends, "{what}: job {job} took {took} ms");
        }
    }
}

#[test]
fn jobs_end_with_one_that_failed() {
    let area = area();
    std::fs::write(area.join("short"), [0; 4096]).unwrap();
    let line = "--name=slow --size=1g --ioengine=null --thinktime=1ms --runtime=3 \
                --name=bad --filename=missing --allow_file_create=1 --size=64k --rw=read \
                --verify=crc32c --verify_fatal=1 --exitall_on_error --output-format=json";
    let run = io(area.path(), line);
    run.expect(1);
    assert!(times(&json(&run), 0) < 2000.0);
}

#[test]
fn a_flow_is_shared_by_weight() {
    let area = area();
    // Blocks that take a while: alone, while the other begins or has ended, a job does few.
    let line = "--ioengine=null --size=1g --time_based --runtime=2 --thinktime=500us --flow_sleep=20 \
                --name=a --flow=1 --name=b --flow=3";
    let found = measured(area.path(), line);
    let blocks = |job: usize| number(&found, &format!("/jobs/{job}/read/total_ios")) as f64;
    let ratio = blocks(1) / blocks(0);
    assert!((2.5..3.5).contains(&ratio), "{} and {}", blocks(0), blocks(1));
    // Others do not wait.
    let line =
        "--ioengine=null --size=64k --name=a --flow=1 --flow_id=1 --name=b --flow=9 --flow_id=2";
    let found = measured(area.path(), line);
    assert_eq!(number(&found, "/jobs/0/read/total_ios"), 16);
}

#[test]
fn cpus_and_memory_of_nodes() {
    if !std::path::Path::new("/sys/devices/system/node/node0/cpulist").exists() {
        return;
    }
    let area = area();
    let line = "--name=n --size=64k --ioengine=null --numa_cpu_nodes=0";
    measured(area.path(), line);
    let run = io(area.path(), "--name=n --size=64k --ioengine=null --numa_cpu_nodes=4000");
    run.expect(1).says(&["node 4000 of CPUs and memory: this machine has none"]);
    let run = io(area.path(), "--name=n --size=64k --ioengine=null --numa_mem_policy=bind:4000");
    run.expect(1).says(&["this machine has none"]);
}

#[test]
fn an_interruption_has_results_and_leaves_nothing() {
    for (signal, engine) in [(Signal::INT, "psync"), (Signal::TERM, "io_uring")] {
        let area = area();
        let engine = format!("--ioengine={engine}");
        let words = [
            "io",
            "--name=a",
            "--rw=randread",
            "--size=1m",
            "--numjobs=2",
            "--group_reporting",
            &engine,
            "--time_based",
            "--runtime=60",
            "--output-format=json",
        ];
        let mut command = hakobu(area.path(), &words);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        while names(area.path()).len() < 2 {
            assert!(Instant::now() < until, "nothing was laid out");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(700));
        let began = Instant::now();
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(began.elapsed() < Duration::from_secs(10));
        assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found["hakobu"]["stopped"], true);
        assert!(number(&found, "/jobs/0/read/total_ios") > 0);
        assert_eq!(names(area.path()), Vec::<String>::new());
    }
}

#[test]
fn a_run_ends_by_itself_on_time() {
    let area = area();
    let began = Instant::now();
    let line = "--name=a --rw=randread --size=1m --time_based --runtime=1 --status-interval=300ms";
    let run = crate::io::io(area.path(), line);
    let took = began.elapsed().as_secs_f64();
    assert!((1.0..6.0).contains(&took), "{took} s");
    // Three whole reports on the way, fewer where the machine is busy, and the last one.
    let out = run.ok().out();
    let reports = out.lines().filter(|line| line.trim_start().starts_with("read: IOPS=")).count();
    assert!((2..=4).contains(&reports), "{run}");
    assert_eq!(out.matches("rw=randread").count(), 1, "the head stands there once: {run}");
}

#[test]
fn each_report_on_the_way_is_a_whole_document() {
    let area = area();
    let line = "--name=a --numjobs=2 --rw=randread --size=1m --time_based --runtime=1 \
                --status-interval=300ms --output-format=json --output=out.json";
    crate::io::io(area.path(), line).ok();
    let text = std::fs::read_to_string(area.path().join("out.json")).unwrap();
    let documents = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    let documents: Vec<Value> = documents.collect::<Result<_, _>>().unwrap();
    assert!((2..=4).contains(&documents.len()), "{text}");
    for pair in documents.windows(2) {
        for clone in 0..2 {
            let key = format!("/jobs/{clone}/read/total_ios");
            let counts = [&pair[0], &pair[1]].map(|document| number(document, &key));
            assert!(counts[0] > 0 && counts[0] < counts[1], "{counts:?}");
        }
        assert_eq!(pair[1]["disk_util"].is_array(), pair[0]["disk_util"].is_array());
    }
}
