//! `ioengine=http`: against the embedded S3 server and small ones that say what they are told; what is checked of
//! answers, and that secrets are shown nowhere.

use super::{area, hakobu, io, json, measured, number};
use crate::common::case::Run;
use crate::server::client::{ACCESS, SECRET, Served};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A request that a server got: method, path, head, body.
type Asked = (String, String, Vec<String>, Vec<u8>);

fn read(stream: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut first = String::new();
    stream.read_line(&mut first).ok().filter(|bytes| *bytes > 0)?;
    let mut words = first.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let length = head.iter().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).ok()?;
    Some((method, path, head, body))
}

/// A server that answers as `answer` says; its address, and what it was asked.
fn server(
    answer: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static,
) -> (String, Arc<Mutex<Vec<Asked>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (log, answer) = (Arc::clone(&asked), Arc::new(answer));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
            std::thread::spawn(move || {
                let mut stream = BufReader::new(stream);
                while let Some(request) = read(&mut stream) {
                    let said = answer(&request);
                    log.lock().unwrap().push(request);
                    if stream.get_mut().write_all(&said).is_err() || said.is_empty() {
                        return;
                    }
                }
            });
        }
    });
    (address, asked)
}

/// A server that keeps what is put.
fn store() -> (String, Arc<Mutex<Vec<Asked>>>) {
    let objects = Mutex::new(BTreeMap::<String, Vec<u8>>::new());
    server(move |(method, path, head, body)| {
        let mut objects = objects.lock().unwrap();
        let range = head.iter().find_map(|line| line.strip_prefix("range: bytes="));
        let mut said = match (method.as_str(), objects.get(path)) {
            ("PUT", _) => {
                objects.insert(path.clone(), body.clone());
                return b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n".to_vec();
            }
            ("DELETE", Some(_)) => {
                objects.remove(path);
                return b"HTTP/1.1 204 No Content\r\n\r\n".to_vec();
            }
            ("GET", Some(found)) => match range.and_then(|range| range.split_once('-')) {
                Some((from, to)) => {
                    let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
                    let head = format!(
                        "HTTP/1.1 206 Partial\r\ncontent-range: bytes {from}-{to}/{}\r\ncontent-length: {}\r\n\r\n",
                        found.len(),
                        to + 1 - from
                    );
                    let mut said = head.into_bytes();
                    said.extend_from_slice(&found[from..=to]);
                    return said;
                }
                None => {
                    let length = found.len();
                    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
                    let mut said = head.into_bytes();
                    said.extend_from_slice(found);
                    said
                }
            },
            _ => b"HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\ngone".to_vec(),
        };
        said.shrink_to_fit();
        said
    })
}

#[test]
fn blocks_are_objects_that_are_put_read_and_deleted() {
    let area = area();
    let (address, asked) = store();
    let line = format!(
        "--ioengine=http --http_host={address} --http_user=me --http_pass=hush --bs=4k --size=64k \
         --filename_format=/dav/a#ü.$jobnum --name=w --rw=randwrite --verify=sha256 --numjobs=2 \
         --name=d --stonewall --rw=trim --numjobs=2 --io_size=32k"
    );
    let run = io(area.path(), &format!("{line} --output-format=json"));
    run.ok();
    let found = json(&run);
    for clone in 0..2 {
        assert_eq!(number(&found, &format!("/jobs/{clone}/write/total_ios")), 16);
        assert_eq!(number(&found, &format!("/jobs/{}/trim/total_ios", clone + 2)), 8);
    }
    assert_eq!(number(&found, "/hakobu/engines/0/verified"), 32);
    assert_eq!(number(&found, "/hakobu/engines/0/verify_errors"), 0);
    let asked = asked.lock().unwrap();
    let paths = |wanted: &str| {
        let of = asked.iter().filter(|(method, ..)| method == wanted);
        let mut paths: Vec<&str> = of.map(|(_, path, ..)| path.as_str()).collect();
        paths.sort_unstable();
        paths
    };
    assert_eq!(paths("PUT"), paths("GET"));
    assert_eq!((paths("PUT").len(), paths("DELETE").len()), (32, 16));
    assert!(paths("PUT").contains(&"/dav/a%23%C3%BC.1_4096_8192"), "{:?}", paths("PUT"));
    // me:hush
    let head =
        |(_, _, head, _): &Asked| head.contains(&"authorization: Basic bWU6aHVzaA==".to_owned());
    assert!(asked.iter().all(head));
    // The secret is in nothing that is printed.
    assert!(!run.out().contains("hush") && !run.err().contains("hush"), "{run}");
    assert!(run.out().contains("(not shown)"), "{run}");
}

#[test]
fn parts_of_one_object_are_read() {
    let area = area();
    let (address, asked) = store();
    let put = format!(
        "--ioengine=http --http_host={address} --name=w --filename=o --bs=64k --size=64k --rw=write"
    );
    measured(area.path(), &put);
    // In the mode of blocks it has another name: the same content is put under that of the file.
    let content = asked.lock().unwrap()[0].3.clone();
    let mut stream = TcpStream::connect(&address).unwrap();
    let head = format!("PUT /o HTTP/1.1\r\ncontent-length: {}\r\n\r\n", content.len());
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&content).unwrap();
    stream.read_exact(&mut [0; 20]).unwrap();
    let line = format!(
        "--ioengine=http --http_host={address} --name=r --filename=/o --bs=4k --size=64k --rw=randread \
         --http_object_mode=range"
    );
    let found = measured(area.path(), &line);
    assert_eq!(number(&found, "/jobs/0/read/io_bytes"), 64 << 10);
    assert!(
        asked
            .lock()
            .unwrap()
            .iter()
            .any(|(.., head, _)| head.contains(&"range: bytes=61440-65535".to_owned()))
    );
}

#[test]
fn objects_of_s3() {
    let served = Served::start("s3 DIR --listen 127.0.0.1:0");
    let area = area();
    let made = hakobu(area.path(), &["mb", "s3://bench"]);
    let run = with_keys(made, &served).output().unwrap();
    Run::new("mb".to_owned(), run).ok();
    std::fs::write(
        area.join("job.fio"),
        "[global]\nioengine=http\nfilename=/bench/a b\nhttp_mode=s3\nhttp_s3_key=${KEY}\n\
         http_s3_keyid=${ID}\nhttp_host=${HOST}\nhttp_s3_region=us-east-1\n\
         http_s3_storage_class=STANDARD\n\
         [create]\nrw=write\nbs=4k\nsize=64k\nverify=sha256\n\
         [read]\nstonewall\nrw=randread\nbs=4k\nsize=64k\nverify=sha256\n\
         [trim]\nstonewall\nrw=trim\nbs=4k\nsize=64k\nio_size=32k\n",
    )
    .unwrap();
    let mut command = hakobu(area.path(), &["io", "job.fio", "--output-format=json"]);
    command.env("KEY", SECRET).env("ID", ACCESS).env("HOST", &served.address);
    let run = Run::new("io job.fio".to_owned(), command.output().unwrap());
    run.ok();
    let found = json(&run);
    for (job, way, count) in [(0, "write", 16), (1, "read", 16), (2, "trim", 8)] {
        assert_eq!(number(&found, &format!("/jobs/{job}/{way}/total_ios")), count, "{way}");
    }
    assert_eq!(number(&found, "/hakobu/engines/0/verified"), 16);
    assert_eq!(number(&found, "/hakobu/engines/1/verify_errors"), 0);
    let left = super::names(&served.root().join("bench"));
    assert_eq!(left.iter().filter(|name| name.starts_with("a b_")).count(), 8, "{left:?}");
    assert!(!run.out().contains(SECRET) && !run.err().contains(SECRET));
    // Another key is refused by the server, and that is what is told.
    command.env("KEY", "another");
    let run = Run::new("another key".to_owned(), command.output().unwrap());
    run.expect(1).says(&["the server answers 403", "not accepted"]);
    assert!(!run.err().contains("another"));
}

fn with_keys(mut command: Command, served: &Served) -> Command {
    command.env("AWS_ACCESS_KEY_ID", ACCESS).env("AWS_SECRET_ACCESS_KEY", SECRET);
    command.env("AWS_ENDPOINT_URL", served.url()).env("AWS_REGION", "us-east-1");
    command
}

#[test]
fn swift_has_a_token() {
    let (address, asked) = store();
    let line = format!(
        "--ioengine=http --http_host={address} --http_mode=swift --http_swift_auth_token=tok123 \
         --name=w --rw=randwrite --filename=/v1/c/o --bs=64k --size=1m --io_size=256k --verify=sha256"
    );
    let run = io(area().path(), &line);
    run.ok();
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 8);
    assert!(asked.iter().all(|(.., head, _)| head.contains(&"x-auth-token: tok123".to_owned())));
    assert!(!run.out().contains("tok123") && !run.err().contains("tok123"));
}

#[test]
fn answers_that_are_wrong_are_named() {
    let of_length = |length: usize, status: &str| {
        let mut said =
            format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n").into_bytes();
        said.resize(said.len() + length, 7);
        said
    };
    let cases: Vec<(Vec<u8>, &str, &str)> = vec![
        (of_length(4095, "200 OK"), "", "the answer has 4095 bytes, not 4096"),
        (of_length(4097, "200 OK"), "", "the answer has 4097 bytes, not 4096"),
        (of_length(4096, "206 Part"), "", "the server answers 206"),
        (of_length(4096, "200 OK"), "--http_object_mode=range", "it does not know ranges"),
        (
            of_length(4096, "206 Part"),
            "--http_object_mode=range",
            "the answer has nothing in place of",
        ),
        (of_length(3, "404 No"), "", "there is no such object"),
        (of_length(3, "503 Slow"), "", "asked too often"),
        (of_length(0, "307 There"), "", "elsewhere"),
        (b"HTTP/1.1 200 OK\r\n\r\nabc".to_vec(), "", "does not say how long"),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n".to_vec(),
            "",
            "does not say how long",
        ),
        (b"220 ftp ready\r\n\r\n".to_vec(), "", "no HTTP answer"),
        (Vec::new(), "", "closed the connection without an answer"),
        (vec![b'x'; 40 << 10], "", "no HTTP answer"),
        (b"HTTP/1.1 100 Go\r\n\r\n".repeat(40), "", "interim answers without end"),
    ];
    for (said, more, why) in cases {
        let (address, _) = server(move |_| said.clone());
        let line = format!(
            "--ioengine=http --http_host={address} --name=r --rw=read --filename=/o --bs=4k --size=4k {more}"
        );
        io(area().path(), &line).expect(1).says(&["reading 4096 bytes at 0 of /o", why]);
    }
}

#[test]
fn servers_that_hang_are_left_and_idle_connections_are_renewed() {
    let area = area();
    // It closes after each answer, without a word of that.
    let (address, asked) =
        server(|_| b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n".to_vec());
    let relay = TcpListener::bind("127.0.0.1:0").unwrap();
    let front = relay.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in relay.incoming().flatten() {
            let mut behind = TcpStream::connect(&address).unwrap();
            let mut request = BufReader::new(stream.try_clone().unwrap());
            let Some((method, path, head, body)) = read(&mut request) else { continue };
            let head = head.join("\r\n");
            write!(behind, "{method} {path} HTTP/1.1\r\n{head}\r\n\r\n").unwrap();
            behind.write_all(&body).unwrap();
            let mut said = [0; 512];
            let bytes = behind.read(&mut said).unwrap();
            let _ = stream.write_all(&said[..bytes]);
        }
    });
    let line = format!(
        "--ioengine=http --http_host={front} --name=w --rw=write --filename=/o --bs=4k --size=32k"
    );
    let found = measured(area.path(), &line);
    assert_eq!(number(&found, "/jobs/0/write/total_ios"), 8);
    assert_eq!(asked.lock().unwrap().len(), 8);
    // One that never answers: the job's time ends it.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let line = format!(
        "--ioengine=http --http_host={} --name=w --rw=write --filename=/o --size=32k --runtime=1",
        silent.local_addr().unwrap()
    );
    let began = Instant::now();
    assert_eq!(number(&measured(area.path(), &line), "/jobs/0/write/total_ios"), 0);
    assert!(began.elapsed() < Duration::from_secs(5));
    // None at all.
    let line =
        "--ioengine=http --http_host=127.0.0.1:9 --name=w --rw=write --filename=/o --size=4k";
    io(area.path(), line).expect(1).says(&["cannot connect", "refused"]);
}

#[test]
fn what_is_missing_is_named_and_secrets_are_not_shown() {
    for (line, why) in [
        ("--http_mode=s3 --filename=/b/k", "needs http_s3_keyid="),
        ("--http_mode=s3 --http_s3_keyid=a --filename=/b/k", "needs http_s3_key="),
        ("--http_mode=swift --filename=/b/k", "needs http_swift_auth_token="),
        ("--http_object_mode=range --rw=write --filename=/b/k", "is for jobs that read"),
        ("--http_pass=x --filename=/b/k", "http_pass needs http_user"),
        ("--http_user=a:b --filename=/b/k", "has a colon"),
        ("--http_mode=ftp --filename=/b/k", "is none of webdav"),
        ("--https=perhaps --filename=/b/k", "is none of off"),
        ("--http_verbose=1 --filename=/b/k", "only 0 is supported"),
    ] {
        let run = io(area().path(), &format!("--name=a --ioengine=http --size=4k {line}"));
        run.expect(2).says(&[why]);
    }
    let area = area();
    for (words, code) in [(["--http_s3_key=h\u{fc}sh"], 2), (["--http_pass=h\u{7}ush"], 2)] {
        let all = ["io", "--name=a", "--ioengine=http", "--size=4k", words[0]];
        let run = Run::new(words[0].to_owned(), hakobu(area.path(), &all).output().unwrap());
        run.expect(code).says(&["(not shown)", "has a character that no header may have"]);
        assert!(!run.err().contains("sh:") && !run.err().contains("ush"), "{run}");
    }
    // Results of a sweep have its command lines.
    let line =
        "--ioengine=http --http_user=u --http_pass=hush --size=4k --filename=/o --numjobs=1,2";
    io(area.path(), line).expect(2).says(&["--http_pass", "in a job file"]);
    let shown = io(
        area.path(),
        "--name=a --ioengine=http --http_user=u --http_pass=hush --size=4k --showcmd",
    );
    assert!(!shown.ok().out().contains("hush"), "{shown}");
    let run = io(area.path(), "--name=a --size=4k --sweep=http_pass=hush,other");
    run.expect(2).says(&["http_pass is a secret"]);
    assert!(!run.err().contains("hush"), "{run}");
    // A host that is none.
    let line = "--name=a --ioengine=http --http_host=x/y --size=4k --filename=/o";
    io(area.path(), line).expect(1).says(&["is not a host name"]);
}
