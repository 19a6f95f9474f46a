//! `--bwlimit` with a store, measured on the network by a counting relay.

use crate::common::in_turn;
use crate::wire::server::{Server, Stage, noise};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes a second, as the command lines below say it.
const RATE: f64 = (8 << 20) as f64;
/// About five seconds of work.
const TOTAL: usize = 40 << 20;
const SMALL: usize = 256 << 10;
/// Interval in which bytes are counted.
const STRETCH: Duration = Duration::from_millis(50);
const STRETCHES_A_SECOND: usize = 20;

/// Passes everything on in both directions, and counts it. Of so many connections at once all
/// together hold little on the way.
struct Relay {
    url: String,
    up: Arc<[AtomicU64]>,
    down: Arc<[AtomicU64]>,
}

impl Relay {
    fn new(server: &Server<'_>, streams: usize) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let behind = server.url.strip_prefix("http://").unwrap().to_owned();
        let counts = || (0..2000).map(|_| AtomicU64::new(0)).collect::<Arc<[AtomicU64]>>();
        let (up, down, begun) = (counts(), counts(), Instant::now());
        let both = [Arc::clone(&up), Arc::clone(&down)];
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.unwrap();
                // Waiting bytes have not passed yet.
                socket2::SockRef::from(&client)
                    .set_send_buffer_size((128 << 10) / streams)
                    .unwrap();
                let server = TcpStream::connect(&behind).unwrap();
                let ways = [(client.try_clone(), server.try_clone()), (Ok(server), Ok(client))];
                for ((from, to), counts) in ways.into_iter().zip(both.clone()) {
                    let (from, to) = (from.unwrap(), to.unwrap());
                    std::thread::spawn(move || pass_on(from, to, begun, &counts));
                }
            }
        });
        Relay { url, up, down }
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, begun: Instant, counts: &[AtomicU64]) {
    let mut buffer = [0; 16 << 10];
    while let Ok(got @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..got]).is_err() {
            break;
        }
        let at = (begun.elapsed().as_nanos() / STRETCH.as_nanos()) as usize;
        counts[at.min(counts.len() - 1)].fetch_add(got as u64, Ordering::Relaxed);
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// Mean and fastest second, as shares of the rate.
fn shares(counts: &[AtomicU64]) -> (f64, f64) {
    let counts: Vec<f64> = counts.iter().map(|n| n.load(Ordering::Relaxed) as f64).collect();
    let content = |count: &&f64| **count > 10_000.0;
    let first = counts.iter().position(|count| content(&count)).unwrap();
    let last = counts.iter().rposition(|count| content(&count)).unwrap();
    let passed = &counts[first..=last];
    let seconds = passed.len() as f64 / STRETCHES_A_SECOND as f64;
    let fastest = passed.windows(STRETCHES_A_SECOND).map(|second| second.iter().sum::<f64>());
    let fastest = fastest.fold(0.0, f64::max);
    (passed.iter().sum::<f64>() / seconds / RATE, fastest / RATE)
}

/// Runs it up to four times (other programs may be in the way): once the mean is within 5 % and no
/// second has more than a tenth too much. Whole, whatever the rate.
fn kept(
    options: &str,
    line: &str,
    streams: usize,
    prepare: impl Fn(&Stage),
    check: impl Fn(&Stage),
) {
    let mut seen = Vec::new();
    for _ in 0..4 {
        let stage = Stage::new();
        prepare(&stage);
        let server = if options.is_empty() { stage.serve("") } else { stage.null(options) };
        let relay = Relay::new(&server, streams);
        server.run(&format!("{line} --bwlimit=8m --no-memory --endpoint-url {}", relay.url)).ok();
        check(&stage);
        let counts = if options.is_empty() { &relay.up } else { &relay.down };
        let (mean, fastest) = shares(counts);
        if (mean - 1.0).abs() <= 0.05 && fastest <= 1.1 {
            return;
        }
        seen.push((mean, fastest));
    }
    panic!("mean and fastest second {seen:.3?} of the rate: {line}");
}

/// Connections that are busy at once: parts of one object, or the jobs that a run begins with.
fn streams(line: &str, count: usize) -> usize {
    match count {
        _ if line.contains("-j 1 ") => 1,
        1 => 5,
        _ => 32,
    }
}

fn upload(line: &str, count: usize) {
    let streams = streams(line, count);
    let name = |number: usize| format!("f{number}");
    let sizes = TOTAL / count;
    let prepare = |stage: &Stage| {
        for number in 0..count {
            stage.source(&name(number), sizes);
        }
    };
    kept("", line, streams, prepare, |stage| {
        for number in 0..count {
            let wanted = noise(name(number).len() as u64, sizes);
            assert!(stage.object(&name(number)) == Some(wanted), "{} differs", name(number));
        }
    });
}

fn download(line: &str, count: usize) {
    let streams = streams(line, count);
    let options = format!("--keys {count} --object-size {}", TOTAL / count);
    kept(
        &options,
        line,
        streams,
        |_| {},
        |stage| {
            let found = crate::wire::server::contents(&stage.dst());
            let bytes: usize = found.values().map(Vec::len).sum();
            assert_eq!((found.len(), bytes), (count, TOTAL));
        },
    );
}

/// They would be in each other's way.
#[test]
fn rates_are_kept() {
    in_turn!(
        uploads_of_small_objects_keep_the_rate,
        an_upload_in_parts_keeps_the_rate,
        downloads_of_small_objects_keep_the_rate,
        a_download_in_parts_keeps_the_rate,
        one_job_keeps_the_rate,
    );
}

fn uploads_of_small_objects_keep_the_rate() {
    upload("sync -r SRC/ s3://bkt/", TOTAL / SMALL);
}

fn an_upload_in_parts_keeps_the_rate() {
    upload("sync -r SRC/ s3://bkt/", 1);
}

fn downloads_of_small_objects_keep_the_rate() {
    download("sync -r s3://bkt/ DST/", TOTAL / SMALL);
}

fn a_download_in_parts_keeps_the_rate() {
    download("sync -r s3://bkt/ DST/", 1);
}

fn one_job_keeps_the_rate() {
    upload("sync -r -j 1 SRC/ s3://bkt/", 10);
    download("sync -r -j 1 s3://bkt/ DST/", 10);
}
