//! `ioengine=net`: sender and receiver in one run and in two, what both count, and what becomes of one when the other
//! dies, is late or never comes.

use super::{area, hakobu, io, json, measured, names, number};
use crate::common::case::Run;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A port that was free just now.
fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn bytes(found: &Value, job: usize, way: &str) -> u64 {
    number(found, &format!("/jobs/{job}/{way}/io_bytes"))
}

/// `hakobu io` in the background, with its report on standard output.
fn begun(folder: &std::path::Path, line: &str) -> Child {
    let words: Vec<&str> =
        ["io", "--output-format=json"].into_iter().chain(line.split_whitespace()).collect();
    hakobu(folder, &words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn ended(line: &str, child: Child) -> Run {
    Run::new(line.to_owned(), child.wait_with_output().unwrap())
}

#[test]
fn two_jobs_of_a_run_count_the_same_bytes() {
    for (protocol, more) in [
        ("tcp", ""),
        ("tcp", "--nodelay=1 --window_size=256k --mss=1200"),
        ("tcp", "--pingpong=1"),
        ("tcpv6", ""),
        ("unix", ""),
        ("unix", "--pingpong"),
    ] {
        let area = area();
        let (at, to) = match protocol {
            "unix" => ("--filename=socket".to_owned(), String::new()),
            "tcpv6" => (format!("--port={}", port()), "--hostname=::1".to_owned()),
            _ => (format!("--port={}", port()), "--hostname=localhost".to_owned()),
        };
        let line = format!(
            "--ioengine=net --protocol={protocol} {at} --bs=4k --size=4m {more} --name=r --rw=read --listen \
             --name=s --rw=write {to} --startdelay=100ms"
        );
        let found = measured(area.path(), &line);
        assert_eq!(
            (bytes(&found, 0, "read"), bytes(&found, 1, "write")),
            (4 << 20, 4 << 20),
            "{line}"
        );
        assert_eq!(number(&found, "/jobs/0/read/clat_ns/N"), 1024, "{line}");
        assert_eq!(found["hakobu"]["engines"][1]["ioengine"], "net");
        let left = names(area.path());
        assert!(left.iter().all(|name| name == "state" || name == "cache"), "{left:?}");
    }
}

#[test]
fn clones_have_ports_of_their_own() {
    let area = area();
    let port = 20_000 + port() % 10_000;
    let line = format!(
        "--ioengine=net --port={port} --bs=64k --size=2m --numjobs=3 --group_reporting --name=r \
         --rw=read --listen --name=s --new_group --rw=write --hostname=127.0.0.1"
    );
    let found = measured(area.path(), &line);
    assert_eq!((bytes(&found, 0, "read"), bytes(&found, 1, "write")), (6 << 20, 6 << 20));
}

#[test]
fn datagrams_and_groups() {
    let area = area();
    // At a rate that loses none.
    let line = format!(
        "--ioengine=net --protocol=udp --port={} --bs=1k --size=256k --name=r --rw=read --name=s \
         --rw=write --hostname=127.0.0.1 --rate_iops=2000",
        port()
    );
    let found = measured(area.path(), &line);
    assert_eq!((bytes(&found, 0, "read"), bytes(&found, 1, "write")), (256 << 10, 256 << 10));
    let line = format!(
        "--ioengine=net --protocol=udp --port={} --bs=64 --size=16k --hostname=239.255.7.9 --ttl=1 \
         --interface=127.0.0.1 --name=a --pingpong=1 --rw=read --name=b --rw=read --name=s \
         --startdelay=100ms --pingpong=1 --rw=write",
        port()
    );
    let found = measured(area.path(), &line);
    for (job, way) in [(0, "read"), (1, "read"), (2, "write")] {
        assert_eq!(bytes(&found, job, way), 16 << 10, "{way} of {job}");
    }
}

#[test]
fn time_ends_both_ends() {
    let area = area();
    for pingpong in ["0", "1"] {
        let line = format!(
            "--ioengine=net --port={} --bs=4k --size=100g --runtime=1 --time_based --pingpong={pingpong} \
             --name=r --rw=read --listen --name=s --rw=write --hostname=127.0.0.1",
            port()
        );
        let began = Instant::now();
        let found = measured(area.path(), &line);
        assert!(began.elapsed() < Duration::from_secs(6));
        let (read, written) = (bytes(&found, 0, "read"), bytes(&found, 1, "write"));
        // The one that ended first has not what was under way.
        assert!(read > 0 && read.abs_diff(written) < 64 << 20, "{read}, {written}");
    }
}

#[test]
fn an_end_that_has_finished_ends_the_other() {
    let area = area();
    // The sender has less, and then the receiver has less.
    for (sender, receiver) in [("1m", "64m"), ("1g", "1m")] {
        let line = format!(
            "--ioengine=net --port={} --bs=4k --name=r --rw=read --listen --size={receiver} --name=s \
             --rw=write --hostname=127.0.0.1 --size={sender}",
            port()
        );
        let found = measured(area.path(), &line);
        assert!(bytes(&found, 0, "read") >= 1 << 20, "{line}");
    }
}

#[test]
fn a_sender_that_dies_is_an_error_of_the_receiver() {
    let area = area();
    let port = port();
    let line =
        format!("--name=r --ioengine=net --port={port} --listen --rw=read --bs=4k --size=1g");
    let receiver = begun(area.path(), &line);
    let to = format!(
        "--name=s --ioengine=net --port={port} --hostname=127.0.0.1 --rw=write --bs=4k --size=100g --rate=8m"
    );
    let mut sender = begun(area.path(), &to);
    std::thread::sleep(Duration::from_millis(700));
    sender.kill().unwrap();
    sender.wait().unwrap();
    let run = ended(&line, receiver);
    run.expect(1).says(&["receiving 4096 bytes", "the other end has gone"]);
    let found: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert!(bytes(&found, 0, "read") > 0);
}

#[test]
fn a_receiver_that_dies_is_an_error_of_the_sender() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let peer = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 8192]).unwrap();
    });
    let line =
        format!("--name=s --ioengine=net --port={port} --hostname=127.0.0.1 --rw=write --size=1g");
    io(area().path(), &line).expect(1).says(&["sending 4096 bytes", "the other end has gone"]);
    peer.join().unwrap();
}

#[test]
fn what_comes_back_has_to_be_what_went() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let peer = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut block = [0; 4096];
        stream.read_exact(&mut block).unwrap();
        block[4000] ^= 1;
        stream.write_all(&block).unwrap();
        let _ = stream.read(&mut block);
    });
    let line = format!(
        "--name=s --ioengine=net --port={port} --hostname=127.0.0.1 --rw=write --size=1m --pingpong"
    );
    io(area().path(), &line).expect(1).says(&["the returned content is not what was sent"]);
    peer.join().unwrap();
}

#[test]
fn ports_and_names_that_are_taken_are_named() {
    let area = area();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let line = format!(
        "--name=r --ioengine=net --port={port} --hostname=127.0.0.1 --listen --rw=read --size=4k"
    );
    io(area.path(), &line).expect(1).says(&["listening at tcp 127.0.0.1", "in use"]);
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let line = format!(
        "--name=r --ioengine=net --protocol=udp --port={port} --hostname=127.0.0.1 --rw=read --size=4k"
    );
    io(area.path(), &line).expect(1).says(&["listening at udp 127.0.0.1", "in use"]);
    // A file of somebody else stays.
    std::fs::write(area.join("mine"), "precious").unwrap();
    let line =
        "--name=r --ioengine=net --protocol=unix --filename=mine --listen --rw=read --size=4k";
    io(area.path(), line).expect(1).says(&["listening at unix mine", "in use"]);
    assert_eq!(std::fs::read(area.join("mine")).unwrap(), b"precious");
}

#[test]
fn a_silent_end_is_left_by_a_signal_or_in_time() {
    let area = area();
    // No sender connects: a signal ends it, and nothing is left.
    let line = "--name=r --ioengine=net --protocol=unix --filename=s --listen --rw=read --size=4k";
    let child = begun(area.path(), line);
    std::thread::sleep(Duration::from_millis(500));
    assert!(area.join("s").exists());
    crate::common::must(std::process::Command::new("kill").args(["-INT", &child.id().to_string()]));
    ended(line, child).expect(130);
    assert!(!area.join("s").exists());
    // Somebody comes and says nothing: the job's time ends it.
    let port = port();
    let line =
        format!("--name=r --ioengine=net --port={port} --listen --rw=read --size=4k --runtime=1");
    let child = begun(area.path(), &line);
    let until = Instant::now() + Duration::from_secs(5);
    let peer = loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(peer) => break peer,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
    };
    let run = ended(&line, child);
    run.ok();
    assert_eq!(bytes(&json(&run), 0, "read"), 0);
    drop(peer);
}

#[test]
fn what_is_missing_is_named() {
    for (line, why) in [
        ("--rw=read --listen", "needs port="),
        ("--rw=write --port=5", "needs hostname="),
        ("--rw=read --port=5", "needs listen"),
        ("--rw=write --port=5 --hostname=x --listen", "listen is for jobs that receive"),
        ("--rw=randread --port=5 --listen", "in sequence"),
        ("--rw=rw --port=5 --listen", "receives (rw=read) or sends"),
        ("--rw=write --port=5 --hostname=x --verify=md5", "verify does not go with it"),
        ("--rw=write --port=5 --hostname=x --bs=32", "at least 64 bytes"),
        ("--rw=write --port=5 --hostname=x --bs=64k --protocol=udp", "65507"),
        ("--rw=write --port=5 --hostname=x --filename=y", "not filename="),
        ("--rw=write --protocol=unix --port=5", "protocol=unix needs filename="),
        ("--rw=write --port=5 --hostname=x --protocol=sctp", "is none of tcp"),
        ("--rw=write --port=0 --hostname=x", "is not a port"),
    ] {
        io(area().path(), &format!("--name=a --ioengine=net --size=64k {line}"))
            .expect(2)
            .says(&[why]);
    }
    let line = "--name=a --ioengine=net --size=4k --rw=write --port=70000 --hostname=127.0.0.1";
    io(area().path(), line).expect(1).says(&["there is no such port"]);
    let line =
        "--name=a --ioengine=net --size=4k --rw=write --port=5 --protocol=vsock --hostname=a.b";
    io(area().path(), line).expect(1).says(&["hostname is not a number"]);
}
