//! Results agree with the work that was done, and name the place: the file and line of an error, the type of a cloud's
//! machine.

use crate::common::case::Run;
use crate::io::{area, hakobu, io, json, measured, names, number};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn every_engine_does_all_of_it() {
    let area = area();
    for engine in ["sync", "psync", "pvsync2", "libaio", "io_uring", "mmap", "null"] {
        for rw in ["read", "write", "randread", "randwrite", "rw", "randrw"] {
            let line = format!("--name=a --rw={rw} --bs=4k --size=256k --ioengine={engine}");
            let found = measured(area.path(), &line);
            let job = &found["jobs"][0];
            let (reads, writes) = (number(job, "/read/total_ios"), number(job, "/write/total_ios"));
            assert_eq!(reads + writes, 64, "{line}");
            assert_eq!(reads > 0, !rw.ends_with("write"), "{line}");
            assert_eq!(writes > 0, !rw.ends_with("read"), "{line}");
            for (way, ios) in [("read", reads), ("write", writes)] {
                assert_eq!(number(job, &format!("/{way}/io_bytes")), ios * 4096, "{line}");
                assert_eq!(number(job, &format!("/{way}/clat_ns/N")), ios, "{line}");
            }
        }
    }
}

#[test]
fn a_rate_is_kept() {
    let area = area();
    let line = "--name=a --rw=randread --size=1m --rate_iops=500 --time_based --runtime=2";
    let found = measured(area.path(), line);
    let iops = found["jobs"][0]["read"]["iops"].as_f64().unwrap();
    assert!((450.0..550.0).contains(&iops), "{iops}");
}

#[test]
fn people_read_fio_s_words() {
    let area = area();
    let run = io(area.path(), "--name=a --rw=randrw --size=1m --numjobs=2 --group_reporting");
    let text = run.ok().out();
    for words in [
        "a: (g=0): rw=randrw, bs=(R) 4096B-4096B",
        "\n...\nhakobu-",
        "\nStarting 2 threads\n",
        "\na: (groupid=0, jobs=2): err= 0: pid=",
        "\n  read: IOPS=",
        "\n  write: IOPS=",
        "\n    clat percentiles (",
        "\n  cpu          : usr=",
        "\n  IO depths    : 1=100.0%",
        "\n     issued rwts: total=",
        "\nRun status group 0 (all jobs):\n   READ: bw=",
        "\n  WRITE: bw=",
    ] {
        assert!(text.contains(words), "{words:?} in {run}");
    }
}

#[test]
fn a_job_file_runs() {
    let area = area();
    let text = "[global]\nsize=64k\nbs=4k\nioengine=psync\ndirectory=.\n\n; two jobs, one after the other\n\
        [first]\nrw=randread\n\n[second]\nstonewall\nrw=write\nnumjobs=2\n";
    std::fs::write(area.join("two.fio"), text).unwrap();
    let found = measured(area.path(), "two.fio");
    let jobs = found["jobs"].as_array().unwrap();
    let told: Vec<_> = jobs
        .iter()
        .map(|job| {
            let ios = (number(job, "/read/total_ios"), number(job, "/write/total_ios"));
            (job["jobname"].as_str().unwrap(), number(job, "/groupid"), ios)
        })
        .collect();
    assert_eq!(told, [("first", 0, (16, 0)), ("second", 1, (0, 16)), ("second", 1, (0, 16))]);
    assert_eq!(found["global options"]["size"], "64k");
    assert_eq!(jobs[0]["job options"]["rw"], "randread");
    assert_eq!(names(area.path()), ["two.fio"]);
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let area = area();
    std::fs::write(area.join("bad.fio"), "[a]\nrw=read\nbs=4q\n").unwrap();
    io(area.path(), "bad.fio").expect(2).says(&["bad.fio:3"]);
    io(area.path(), "--name=a --size=1m --bssplit=4k/50").expect(2).says(&["bssplit"]);
    io(area.path(), "--name=a --size=1m --output-format=terse").expect(2).says(&["terse"]);
    io(area.path(), "none.fio").expect(2).says(&["none.fio", "No such file"]);
    io(area.path(), "").expect(2);
    assert_eq!(names(area.path()), ["bad.fio"]);
}

#[test]
fn an_iodepth_without_effect_is_told() {
    let area = area();
    let line = "--name=a --rw=read --size=64k --ioengine=psync --iodepth=16 --output-format=json";
    let run = io(area.path(), line);
    run.ok().says(&["iodepth"]);
    let warnings = json(&run)["hakobu"]["warnings"].to_string();
    assert!(warnings.contains("iodepth"), "{warnings}");
    io(area.path(), &format!("{line} --strict")).expect(2).says(&["iodepth"]);
    // People read it in the result as well.
    let normal = io(area.path(), "--name=a --rw=read --size=64k --ioengine=psync --iodepth=16");
    assert!(normal.ok().out().contains("\nWarnings:\n"), "{normal}");
}

#[test]
fn results_go_where_they_are_asked_to() {
    let area = area();
    let line = "--name=a --rw=read --size=64k --output=r.json --output-format=json";
    let run = io(area.path(), line);
    assert_eq!(run.ok().out(), "");
    let text = std::fs::read_to_string(area.join("r.json")).unwrap();
    let found: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(number(&found, "/jobs/0/read/total_ios"), 16);
    io(area.path(), "--name=a --size=64k --output=no/such/folder")
        .expect(1)
        .says(&["no/such/folder"]);
    assert_eq!(names(area.path()), ["r.json"]);
}

#[test]
fn nothing_runs_where_it_is_only_looked_at() {
    let area = area();
    let run = io(area.path(), "--name=a --rw=randwrite --size=1m --showcmd");
    assert!(run.ok().out().contains("--name=a"), "{run}");
    io(area.path(), "--name=a --rw=randwrite --size=1m --parse-only").ok();
    assert_eq!(names(area.path()), Vec::<String>::new());
    let laid = io(area.path(), "--name=a --rw=read --size=1m --create_only=1");
    laid.ok();
    assert_eq!(std::fs::metadata(area.join("a.0.0")).unwrap().len(), 1 << 20);
}

#[test]
fn logs_are_written() {
    let area = area();
    let line = "--name=a --rw=randread --size=64k --numjobs=2 --time_based --runtime=1500ms \
        --write_bw_log=x --write_iops_log=x --write_lat_log=x --log_avg_msec=200";
    io(area.path(), line).ok();
    let found = names(area.path());
    for name in ["x_bw.1.log", "x_bw.2.log", "x_iops.1.log", "x_clat.1.log", "x_lat.2.log"] {
        assert!(found.iter().any(|known| known == name), "{name} in {found:?}");
        let text = std::fs::read_to_string(area.join(name)).unwrap();
        let rows: Vec<Vec<u64>> = text
            .lines()
            .map(|line| line.split(", ").map(|word| word.parse().unwrap()).collect())
            .collect();
        assert!(rows.len() >= 4 && rows.len() <= 8, "{name}:\n{text}");
        assert!(rows.iter().all(|row| row.len() == 5 && row[1] > 0 && row[2] == 0), "{text}");
    }
}

const WORDS: [&str; 5] = ["io", "--name=a", "--rw=read", "--size=4k", "--output-format=json"];

/// A metadata service of version 2 that says this; its address.
fn service(says: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            answer(stream, says);
        }
    });
    address
}

fn answer(mut stream: TcpStream, says: &str) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    let head: Vec<String> =
        lines.take_while(|line| !line.is_empty()).map(|line| line.to_lowercase()).collect();
    let has = |wanted: &str| head.iter().any(|line| line.starts_with(wanted));
    let (status, more, body) = match first.as_str() {
        "PUT /latest/api/token HTTP/1.1" if has("x-aws-ec2-metadata-token-ttl-seconds:") => {
            ("200 OK", "x-aws-ec2-metadata-token-ttl-seconds: 60\r\n", "a-token")
        }
        "GET /latest/meta-data/instance-type HTTP/1.1"
            if has("x-aws-ec2-metadata-token: a-token") =>
        {
            ("200 OK", "", says)
        }
        _ => ("401 Unauthorized", "", ""),
    };
    let length = body.len();
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\n{more}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
}

/// The fields of results about the machine's type, and the seconds that it took.
fn told(variables: &[(&str, &str)]) -> (Value, f64) {
    let area = area();
    let mut command = hakobu(area.path(), &WORDS);
    command.env("HOME", area.path()).envs(variables.iter().copied());
    let began = Instant::now();
    let run = Run::new(format!("{variables:?}"), command.output().unwrap());
    let took_s = began.elapsed().as_secs_f64();
    let found: Value = serde_json::from_str(&run.ok().out()).unwrap();
    (found["hakobu"]["machine"]["instance_type"].clone(), took_s)
}

#[test]
fn the_metadata_service_says_the_type() {
    const ENDPOINT: &str = "AWS_EC2_METADATA_SERVICE_ENDPOINT";
    const OFF: (&str, &str) = ("AWS_EC2_METADATA_DISABLED", "true");
    let address = service("x9.3xlarge");
    let (firmware, _) = told(&[(ENDPOINT, &address), OFF]);
    if firmware != Value::Null {
        // The firmware knows the type, so no request is made.
        assert_eq!(told(&[(ENDPOINT, &address)]).0, firmware);
        return;
    }
    assert_eq!(told(&[(ENDPOINT, &address)]).0, "x9.3xlarge");
    // Text that is not a type name is ignored.
    assert_eq!(told(&[(ENDPOINT, &service("<html>no</html>"))]).0, Value::Null);
    // No server, and a server without an answer: measured all the same, and soon.
    assert_eq!(told(&[(ENDPOINT, "http://127.0.0.1:9")]).0, Value::Null);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", silent.local_addr().unwrap());
    let (kind, took_s) = told(&[(ENDPOINT, &address)]);
    assert_eq!(kind, Value::Null);
    assert!(took_s < Duration::from_secs(10).as_secs_f64(), "{took_s} s");
}
