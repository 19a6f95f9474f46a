//! `ioengine=nbd`: against a server of this file, which answers out of order, and beside fio on the same export.

use super::{area, io, measured, number};
use std::io::{Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const KIB: usize = 1 << 10;

/// Flags of an export: they are valid; it is read-only, it has flushes, it has trims.
const VALID: u16 = 1;
const READ_ONLY: u16 = 2;
const FLUSH: u16 = 4;
const TRIM: u16 = 32;

const READS: u16 = 0;
const WRITES: u16 = 1;
const LEAVES: u16 = 2;
const FLUSHES: u16 = 3;
const TRIMS: u16 = 4;

/// A server with the export `disk`, which is also the default.
struct Server {
    disk: Mutex<Vec<u8>>,
    flags: u16,
    /// It knows the option GO, and reports this largest block.
    go: Option<u32>,
    /// Requests at this offset get this error.
    error: Option<(u64, u32)>,
    /// It closes the connection in place of an answer to the request with this number.
    closes_at: Option<usize>,
    /// It never answers requests.
    silent: bool,
    /// Commands, offsets and lengths of requests.
    asked: Mutex<Vec<(u16, u64, u32)>>,
    /// The most requests that waited at once.
    most: Mutex<usize>,
}

impl Server {
    fn new(bytes: usize) -> Server {
        Server {
            disk: Mutex::new(vec![0; bytes]),
            flags: VALID | FLUSH | TRIM,
            go: Some(1 << 20),
            error: None,
            closes_at: None,
            silent: false,
            asked: Mutex::default(),
            most: Mutex::default(),
        }
    }

    fn tcp(self) -> (String, Arc<Server>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let uri = format!("nbd://{}/disk", listener.local_addr().unwrap());
        (uri, self.serve(move || Ok(listener.accept()?.0), TcpStream::try_clone))
    }

    fn unix(self, path: &Path) -> (String, Arc<Server>) {
        let listener = UnixListener::bind(path).unwrap();
        let uri = format!("nbd+unix:///?socket={}", path.display());
        (uri, self.serve(move || Ok(listener.accept()?.0), UnixStream::try_clone))
    }

    /// Serves all connections.
    fn serve<S: Read + Write + Send + 'static>(
        self,
        accept: impl Fn() -> Result<S> + Send + 'static,
        again: fn(&S) -> Result<S>,
    ) -> Arc<Server> {
        let server = Arc::new(self);
        let kept = Arc::clone(&server);
        std::thread::spawn(move || {
            while let Ok(stream) = accept() {
                let server = Arc::clone(&server);
                std::thread::spawn(move || server.talk(again(&stream)?, stream));
            }
        });
        kept
    }

    /// One connection, to its end.
    fn talk(
        self: &Arc<Server>,
        mut from: impl Read,
        mut writer: impl Write + Send + 'static,
    ) -> Result<()> {
        self.negotiate(&mut from, &mut writer)?;
        let (tell, told) = mpsc::channel();
        let server = Arc::clone(self);
        let answers = std::thread::spawn(move || server.answer(&mut writer, &told));
        let took = self.take(&mut from, &tell);
        drop(tell);
        let _ = answers.join().unwrap();
        took
    }

    fn negotiate(&self, from: &mut impl Read, to: &mut impl Write) -> Result<()> {
        to.write_all(b"NBDMAGICIHAVEOPT\0\x03")?;
        let no_zeroes = bytes(from, 4)?[3] & 2 != 0;
        loop {
            assert_eq!(bytes(from, 8)?, b"IHAVEOPT");
            let option = number_of(&bytes(from, 4)?);
            let length = number_of(&bytes(from, 4)?);
            let data = bytes(from, length as usize)?;
            let size = self.disk.lock().unwrap().len() as u64;
            let mut reply = |kind: u32, data: &[u8]| {
                let mut said = 0x0003_e889_0455_65a9_u64.to_be_bytes().to_vec();
                said.extend((option as u32).to_be_bytes());
                said.extend(kind.to_be_bytes());
                said.extend((data.len() as u32).to_be_bytes());
                said.extend(data);
                to.write_all(&said)
            };
            match (option, self.go) {
                (7, Some(most)) => {
                    let name = number_of(&data[..4]) as usize;
                    if !["", "disk"].map(str::as_bytes).contains(&&data[4..4 + name]) {
                        reply(0x8000_0006, b"")?;
                        continue;
                    }
                    let mut info = vec![0, 0];
                    info.extend(size.to_be_bytes());
                    info.extend(self.flags.to_be_bytes());
                    reply(3, &info)?;
                    let mut info = vec![0, 3];
                    info.extend([1_u32, 4096, most].map(u32::to_be_bytes).concat());
                    reply(3, &info)?;
                    return reply(1, b"");
                }
                (1, _) => {
                    to.write_all(&size.to_be_bytes())?;
                    to.write_all(&self.flags.to_be_bytes())?;
                    return if no_zeroes { Ok(()) } else { to.write_all(&[0; 124]) };
                }
                (2, _) => return reply(1, b""),
                _ => reply(0x8000_0001, b"")?,
            }
        }
    }

    /// Takes requests as they come.
    fn take(&self, from: &mut impl Read, tell: &Sender<Asked>) -> Result<()> {
        loop {
            let head = bytes(from, 28)?;
            assert_eq!(head[..4], 0x2560_9513_u32.to_be_bytes());
            let command = number_of(&head[6..8]) as u16;
            let handle = number_of(&head[8..16]);
            let (offset, length) = (number_of(&head[16..24]), number_of(&head[24..]) as u32);
            let data = if command == WRITES { bytes(from, length as usize)? } else { Vec::new() };
            let mut asked = self.asked.lock().unwrap();
            asked.push((command, offset, length));
            if command == LEAVES || self.closes_at.is_some_and(|at| asked.len() > at) {
                return Ok(());
            }
            drop(asked);
            let _ = tell.send(Asked { command, handle, offset, length, data });
        }
    }

    /// Answers what has come meanwhile, the last first.
    fn answer(&self, to: &mut impl Write, told: &Receiver<Asked>) -> Result<()> {
        while let Ok(first) = told.recv() {
            std::thread::sleep(Duration::from_millis(1));
            let mut waiting = vec![first];
            waiting.extend(told.try_iter());
            let mut most = self.most.lock().unwrap();
            *most = waiting.len().max(*most);
            drop(most);
            if self.silent {
                continue;
            }
            for asked in waiting.into_iter().rev() {
                let error = self.error.filter(|(at, _)| *at == asked.offset && asked.length > 0);
                let errno = error.map_or(0, |(_, errno)| errno);
                let mut said = 0x6744_6698_u32.to_be_bytes().to_vec();
                said.extend(errno.to_be_bytes());
                said.extend(asked.handle.to_be_bytes());
                let range = asked.offset as usize..asked.offset as usize + asked.length as usize;
                let mut disk = self.disk.lock().unwrap();
                match asked.command {
                    _ if errno != 0 => {}
                    READS => said.extend(&disk[range]),
                    WRITES => disk[range].copy_from_slice(&asked.data),
                    TRIMS => disk[range].fill(0),
                    _ => {}
                }
                drop(disk);
                to.write_all(&said)?;
            }
        }
        Ok(())
    }

    /// Offsets of the requests with a command, sorted.
    fn offsets(&self, command: u16) -> Vec<u64> {
        let asked = self.asked.lock().unwrap();
        let of = asked.iter().filter(|asked| asked.0 == command);
        let mut offsets: Vec<u64> = of.map(|asked| asked.1).collect();
        offsets.sort_unstable();
        offsets
    }

    /// Checks how many connections were ended as the protocol says. That has no answer: it may be read after the
    /// program's end.
    fn is_left(&self, times: usize, why: &str) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.offsets(LEAVES).len() < times && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(self.offsets(LEAVES).len(), times, "{why}");
    }
}

/// A request.
struct Asked {
    command: u16,
    handle: u64,
    offset: u64,
    length: u32,
    data: Vec<u8>,
}

fn bytes(from: &mut impl Read, many: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; many];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn number_of(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Offsets of all blocks of 4 KiB.
fn all(bytes: usize) -> Vec<u64> {
    (0..bytes as u64).step_by(4 * KIB).collect()
}

#[test]
fn all_blocks_of_an_export_are_written_read_and_checked() {
    let area = area();
    let line = "--name=a --ioengine=nbd --rw=randwrite --bs=4k --iodepth=16 --verify=crc32c \
                --allow-overwrite --fsync=64 --end_fsync=1";
    for go in [Some(1 << 20), None] {
        let server = || Server { go, ..Server::new(512 * KIB) };
        let socket = area.join(&format!("socket-{}", go.is_some()));
        for (uri, server) in [server().tcp(), server().unix(&socket)] {
            // Without size= it is the whole export.
            let found = measured(area.path(), &format!("{line} --uri={uri}"));
            assert_eq!(number(&found, "/jobs/0/write/total_ios"), 128);
            assert_eq!(number(&found, "/hakobu/engines/0/verified"), 128);
            assert_eq!(found["jobs"][0]["job options"]["ioengine"], "nbd");
            assert_eq!(server.offsets(WRITES), all(512 * KIB));
            assert_eq!(server.offsets(READS), all(512 * KIB));
            assert!(server.offsets(FLUSHES).len() >= 2, "{:?}", server.offsets(FLUSHES));
            server.is_left(2, "once for the size, once for the job");
            let most = *server.most.lock().unwrap();
            assert!((8..=16).contains(&most), "{most} blocks in flight");
        }
    }
}

#[test]
fn parts_of_an_export_and_trims() {
    let area = area();
    let (uri, server) = Server::new(256 * KIB).tcp();
    server.disk.lock().unwrap().fill(7);
    let base = format!("--name=a --ioengine=nbd --uri={uri} --bs=4k --iodepth=4");
    measured(area.path(), &format!("{base} --rw=randread --offset=128k --size=25%"));
    let half: Vec<u64> = all(192 * KIB).into_iter().filter(|at| *at >= 128 << 10).collect();
    assert_eq!(server.offsets(READS), half);
    let found = measured(area.path(), &format!("{base} --rw=trim --size=64k --allow-overwrite"));
    assert_eq!(number(&found, "/jobs/0/trim/total_ios"), 16);
    assert_eq!(server.offsets(TRIMS), all(64 * KIB));
    let disk = server.disk.lock().unwrap();
    assert!(disk[..64 * KIB].iter().all(|byte| *byte == 0));
    assert!(disk[64 * KIB..].iter().all(|byte| *byte == 7));
}

#[test]
fn fio_finds_what_hakobu_wrote_and_the_other_way_round() {
    if !crate::common::have("fio", "its nbd engine") {
        return;
    }
    let area = area();
    let (uri, server) = Server::new(256 * KIB).unix(&area.join("socket"));
    let line = |rw: &str, pattern: &str| {
        format!(
            "--name=a --ioengine=nbd --uri={uri} --rw={rw} --bs=4k --iodepth=8 --verify=pattern \
             --verify_pattern={pattern} --size=256k --offset=0"
        )
    };
    let fio = |rw: &str, pattern: &str| {
        let mut command = std::process::Command::new("fio");
        command.args(line(rw, pattern).split_whitespace()).current_dir(area.path());
        command.output().unwrap()
    };
    let engines = std::process::Command::new("fio").arg("--enghelp").output().unwrap();
    if !String::from_utf8_lossy(&engines.stdout).contains("\tnbd\n") {
        crate::common::skip("fio's nbd engine: this fio was built without it");
        return;
    }
    io(area.path(), &format!("{} --allow-overwrite", line("randwrite", "0xdeadface"))).ok();
    assert_eq!(server.disk.lock().unwrap()[..8], [0xde, 0xad, 0xfa, 0xce, 0xde, 0xad, 0xfa, 0xce]);
    let theirs = fio("read", "0xdeadface");
    assert!(theirs.status.success(), "{theirs:?}");
    assert!(!fio("read", "0x11223344").status.success());
    let theirs = fio("randwrite", "0x11223344");
    assert!(theirs.status.success(), "{theirs:?}");
    io(area.path(), &line("randread", "0x11223344")).ok();
    io(area.path(), &line("randread", "0xdeadface")).expect(1).says(&["wrong blocks"]);
}

#[test]
fn exports_that_cannot_be_used_are_refused_before_anything_is_written() {
    let area = area();
    let (uri, server) = Server::new(64 * KIB).tcp();
    let run = |line: &str| io(area.path(), &format!("--name=a --ioengine=nbd --bs=4k {line}"));
    let of = |uri: &str, rest: &str| run(&format!("--uri={uri} {rest}"));
    of(&uri, "--rw=write").expect(1).says(&[&uri, "--allow-overwrite permits that"]);
    of(&uri, "--size=128k").expect(1).says(&["this export is too small: 65536 bytes"]);
    let other = uri.replace("/disk", "/other");
    of(&other, "").expect(1).says(&["the server has no export 'other'"]);
    run("").expect(2).says(&["ioengine=nbd needs uri="]);
    of("nbds://localhost", "").expect(2).says(&["TLS, which is not supported"]);
    of("localhost", "").expect(2).says(&["uri=localhost: is no URI"]);
    of("nbd+unix:///?socket=/nowhere/socket", "").expect(1).says(&["No such file"]);
    let flags = VALID | READ_ONLY;
    let (reads, _) = Server { flags, ..Server::new(64 * KIB) }.tcp();
    of(&reads, "--rw=write --allow-overwrite").expect(1).says(&["lets read only"]);
    of(&reads, "--rw=read").ok();
    let small = Server { go: Some(2048), ..Server::new(64 * KIB) };
    of(&small.tcp().0, "").expect(1).says(&["takes blocks of at most 2048 bytes (bs)"]);
    // Something else listens there.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let web = format!("nbd://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    });
    of(&web, "").expect(1).says(&["this is no NBD server"]);
    assert!(server.offsets(WRITES).is_empty());
    // Options of files have no effect, which is said.
    of(&uri, "--direct=1 --filename=x").ok().says(&["direct has no effect", "filename has no"]);
    run(&format!("--uri={uri} --ioengine=null --size=4k")).ok().says(&["only nbd knows it"]);
}

#[test]
fn errors_of_the_server_are_errors_of_the_job() {
    let area = area();
    let line = |uri: &str, rest: &str| {
        format!(
            "--name=a --ioengine=nbd --uri={uri} --bs=4k --iodepth=8 --allow-overwrite --rw={rest}"
        )
    };
    let failing = || Server { error: Some((16384, 28)), ..Server::new(64 * KIB) }.tcp().0;
    let run = io(area.path(), &line(&failing(), "write"));
    run.expect(1).says(&["writing 4096 bytes at 16384 of nbd://", "No space left on device"]);
    let bad = || Server { error: Some((16384, 5)), ..Server::new(64 * KIB) }.tcp().0;
    io(area.path(), &line(&bad(), "read")).expect(1).says(&["Input/output error"]);
    let found = measured(area.path(), &line(&bad(), "read --continue_on_error=read"));
    assert_eq!(number(&found, "/jobs/0/total_err"), 1);
    // A block that failed is not counted.
    assert_eq!(number(&found, "/jobs/0/read/total_ios"), 15);
    let closing = Server { closes_at: Some(9), ..Server::new(64 * KIB) }.tcp().0;
    io(area.path(), &line(&closing, "randwrite")).expect(1).says(&["Connection reset by peer"]);
    let plain = Server { flags: VALID, ..Server::new(64 * KIB) };
    let plain = plain.tcp().0;
    io(area.path(), &line(&plain, "write --fsync=4")).expect(1).says(&["not supported"]);
    io(area.path(), &line(&plain, "trim")).expect(1).says(&["the server does not trim"]);
    io(area.path(), &line(&plain, "write")).ok();
}

#[test]
fn a_silent_server_does_not_keep_a_job_that_others_end() {
    let area = area();
    let (uri, _) = Server { silent: true, ..Server::new(64 * KIB) }.tcp();
    let begun = Instant::now();
    let line = format!(
        "--name=waits --ioengine=nbd --uri={uri} --iodepth=4 --name=ends --ioengine=null \
         --size=1g --time_based --runtime=300ms --exitall"
    );
    io(area.path(), &line).ok();
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}
