//! A far-away other end: round trips, and further lanes of one login. The script that stands for ssh delays what it passes on,
//! and has at most 2 MiB in each direction on the way, as a channel of ssh has.

use crate::common::area::Area;
use crate::common::case::Case;
use crate::common::diff::Fields;
use crate::common::{have, program};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// `relay.py MILLISECONDS DIES COMMAND`: `DIES`: it ends after so many bytes of a direction, if that is not 0.
const RELAY: &str = r#"
import collections, os, subprocess, sys, threading, time
delay, dies = float(sys.argv[1]) / 1000, int(sys.argv[2])
WINDOW = 2 << 20
child = subprocess.Popen(['/bin/sh', '-c', sys.argv[3]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
def relay(source, target):
    queue, have = collections.deque(), threading.Condition()
    def read():
        back, ahead, passed = collections.deque(), 0, 0
        while True:
            data = os.read(source, 65536)
            now = time.monotonic()
            with have:
                queue.append((now + delay, data))
                have.notify()
            if not data:
                return
            passed += len(data)
            if dies and passed > dies:
                child.kill()
                os._exit(1)
            back.append((now + 2 * delay, len(data)))
            ahead += len(data)
            while ahead > WINDOW:
                until, bytes = back.popleft()
                time.sleep(max(0, until - time.monotonic()))
                ahead -= bytes
    def write():
        while True:
            with have:
                while not queue:
                    have.wait()
                due, data = queue.popleft()
            time.sleep(max(0, due - time.monotonic()))
            try:
                if not data:
                    os.close(target)
                    return
                while data:
                    data = data[os.write(target, data):]
            except OSError:
                return
    threading.Thread(target=read, daemon=True).start()
    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    return writer
relay(0, os.dup(child.stdin.fileno()))
child.stdin.close()
relay(child.stdout.fileno(), 1).join()
os._exit(child.wait())
"#;

/// A case with a far-away `h`; `lane`: a line of the script that runs first for a further lane.
fn far_away(line: &str, delay_ms: u32, lane: &str, body: impl FnOnce(&Case, &Path)) {
    if !have("python3", "another machine far away") {
        return;
    }
    let (from, to) = (Area::tmpfs(), Area::tmpfs());
    let (ssh, calls) = (from.join("ssh"), from.join("calls"));
    fs::write(from.join("relay.py"), RELAY).unwrap();
    let folder = program().parent().map(Path::to_owned).unwrap_or_default();
    // There, agents meet in the folder of the session; or, where its name is taken, in /tmp.
    let runtime = from.join("runtime");
    fs::create_dir(&runtime).unwrap();
    if line.contains("h:SRC") {
        fs::write(runtime.join("hakobu"), "").unwrap();
    }
    let text = format!(
        "#!/bin/sh\n\
         echo \"$*\" >> {calls}\n\
         dies=0\n\
         case $* in *ControlMaster=no*) {lane};; esac\n\
         while :; do case $1 in -G) exit 0;; -l|-p|-o|-F|-S) shift 2;; -*) shift;; *) break;; esac; done\n\
         shift\n\
         PATH={folder}:$PATH; XDG_RUNTIME_DIR={runtime}; export PATH XDG_RUNTIME_DIR\n\
         exec python3 {relay} {delay_ms} $dies \"$*\"\n",
        calls = calls.display(),
        folder = folder.display(),
        relay = from.join("relay.py").display(),
        runtime = runtime.display(),
    );
    fs::write(&ssh, text).unwrap();
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    let line = line.replacen("sync", &format!("sync -e {}", ssh.display()), 1);
    let case = Case::new(&line, from, to);
    fs::create_dir(case.src()).unwrap();
    body(&case, &calls);
}

/// Content that repeats nowhere.
fn content(bytes: usize) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut content = Vec::with_capacity(bytes + 8);
    while content.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        content.extend_from_slice(&state.to_le_bytes());
    }
    content.truncate(bytes);
    content
}

fn lanes(calls: &Path) -> usize {
    let text = fs::read_to_string(calls).unwrap();
    text.lines().filter(|line| line.contains("ControlMaster=no")).count()
}

/// What takes long goes over further channels of the same login, in both directions; what does not is left alone. A pass
/// that deletes begins when all of them are through with the one before.
#[test]
fn channels_of_one_login_are_added() {
    for line in ["sync -a --delete-after SRC/ h:DST", "sync -a --delete-after h:SRC/ DST"] {
        far_away(line, 50, ":", |c, calls| {
            fs::write(c.src().join("small"), "content").unwrap();
            c.run().ok();
            assert_eq!(lanes(calls), 0);
            fs::write(c.src().join("large"), content(48 << 20)).unwrap();
            for at in 0..6 {
                fs::write(c.src().join(format!("f{at}")), content((1 << 20) + at)).unwrap();
            }
            fs::create_dir(c.dst().join("old")).unwrap();
            fs::write(c.dst().join("old/file"), "extraneous").unwrap();
            let run = c.run();
            assert_eq!(run.ok().err(), "", "{run}");
            c.target_is_source(&Fields::ALL);
            assert!(lanes(calls) >= 3, "{}", fs::read_to_string(calls).unwrap());
        });
    }
}

/// Where there are no further channels there is one, and nothing is said about it. The verdict knows the link.
#[test]
fn one_channel_is_enough() {
    let refuses =
        "echo 'channel 3: open failed: administratively prohibited: open failed' >&2; exit 255";
    far_away("sync -a --explain SRC/ h:DST", 50, refuses, |c, calls| {
        fs::write(c.src().join("large"), content(56 << 20)).unwrap();
        let run = c.run();
        let said = format!("{}{}", run.ok().out(), run.err());
        assert!(!said.contains("channel 3"), "{run}");
        assert!(said.contains("Bottleneck: "), "{run}");
        assert!(said.contains("link throughput"), "{run}");
        assert!(said.contains("time of the sending end waiting for the link"), "{run}");
        c.target_is_source(&Fields::ALL);
        assert!(lanes(calls) >= 1);
    });
}

/// A channel that is lost is a lost connection, and the same command finishes the job.
#[test]
fn a_lost_channel_ends_the_run() {
    for line in ["sync -a SRC/ h:DST", "sync -a h:SRC/ DST"] {
        far_away(line, 50, "dies=1000000", |c, calls| {
            // On a busy machine all may be sent before there is a lane.
            let run = [40, 80, 160].into_iter().find_map(|megabytes| {
                let _ = fs::remove_file(c.dst().join("large"));
                fs::write(c.src().join("large"), content(megabytes << 20)).unwrap();
                Some(c.run()).filter(|run| run.code != 0)
            });
            run.expect("no lane was lost").expect(12).says(&["lost the other end (h)"]);
            assert!(!c.dst().join("large").exists());
            assert!(lanes(calls) >= 1);
            let ssh = calls.with_file_name("ssh");
            let text = fs::read_to_string(&ssh).unwrap().replace("dies=1000000", "dies=0");
            fs::write(&ssh, text).unwrap();
            c.run().ok();
            c.target_is_source(&Fields::ALL);
        });
    }
}

/// An agent that is asked to hand its lane over to nobody it knows does nothing else.
#[test]
fn lanes_have_a_secret() {
    for (number, token) in [
        (1, "0123456789abcdef0123456789abcdef"),
        (0, "0123456789abcdef0123456789abcdef"),
        (1, "../x"),
    ] {
        let mut agent = Command::new(program())
            .arg("agent")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut frame = ((1 + token.len()) as u32).to_le_bytes().to_vec();
        frame.extend([27, number]);
        frame.extend(token.as_bytes());
        agent.stdin.take().unwrap().write_all(&frame).unwrap();
        let ended = agent.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(5), "{ended:?}");
        assert_eq!(ended.stdout, b"\0hakobu agent\r\n\0");
    }
}

/// 2,000 small files take at most 8 round trips beyond the start of the agent, which takes one, and 3 if nothing has changed.
#[test]
fn few_round_trips() {
    let round_trip = Duration::from_millis(600);
    for line in ["sync -a SRC/ h:DST", "sync -a h:SRC/ DST"] {
        far_away(line, 300, ":", |c, _| {
            for dir in 0..20 {
                let dir = c.src().join(dir.to_string());
                fs::create_dir(&dir).unwrap();
                (0..100).for_each(|at| fs::write(dir.join(at.to_string()), [7; 4096]).unwrap());
            }
            let took = || {
                let began = Instant::now();
                c.run().ok();
                began.elapsed()
            };
            let new = took();
            c.target_is_source(&Fields::ALL);
            // Eight, and the time of two for the work on a busy machine.
            assert!(new <= 10 * round_trip, "new: {new:?}");
            // Others may use this machine, too: more round trips would take longer each time.
            let mut again = Vec::new();
            while again.last().is_none_or(|took| *took > 4 * round_trip) {
                assert!(
                    again.len() < 6,
                    "unchanged, more than {:?} each time: {again:?}",
                    4 * round_trip
                );
                again.push(took());
            }
        });
    }
}
