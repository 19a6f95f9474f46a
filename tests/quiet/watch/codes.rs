//! Exit codes, signals, and streams.

use super::{run, watch};
use crate::common::area::Area;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn the_commands_code_is_ours() {
    for (script, code) in [
        ("exit 0", 0),
        ("exit 3", 3),
        ("exit 255", 255),
        ("kill -TERM $$", 143),
        ("kill -KILL $$", 137),
    ] {
        run(&["--", "sh", "-c", script]).expect(code);
    }
}

#[test]
fn what_cannot_be_run() {
    let area = Area::tmpfs();
    let csv = area.join("csv");
    std::fs::write(&csv, "old").unwrap();
    let csv_word = csv.to_str().unwrap();
    run(&["--csv", csv_word, "--", "/no/such/program"]).expect(127).says(&["'/no/such/program'"]);
    run(&["--", "no-such-program-in-the-path"]).expect(127);
    run(&["--", csv_word]).expect(126).says(&["Permission denied"]);
    // The existing file is unchanged, and no file is added.
    assert_eq!(std::fs::read(&csv).unwrap(), b"old");
    assert_eq!(std::fs::read_dir(area.path()).unwrap().count(), 1);
    run(&["true"]).expect(2).says(&["put -- before the command"]);
    run(&["--nonsense", "--", "true"]).expect(2).says(&["--nonsense"]);
    run(&["--pid", "4194305"]).expect(1).says(&["there is no process 4194305"]);
}

#[test]
fn streams_are_the_commands_own() {
    let bytes: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
    let mut child = watch(&["--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let written = bytes.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&written).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    assert!(output.stdout == bytes, "{} bytes came of {}", output.stdout.len(), bytes.len());
    // The summary follows the command's output, or goes to a file.
    let both = run(&["--", "sh", "-c", "echo out; echo err >&2"]);
    assert_eq!(both.out(), "out\n");
    let text = both.err();
    let (said, table) = text.split_once("\n\ncommand        sh -c").unwrap_or_default();
    assert!(said.starts_with("err\n\nBottleneck: unknown. "), "{both}");
    assert!(table.contains("ended          exit code 0"), "{both}");
    let area = Area::tmpfs();
    let file = area.join("summary");
    let apart = run(&["-o", file.to_str().unwrap(), "--", "sh", "-c", "echo err >&2"]);
    assert_eq!((apart.out(), apart.err()), (String::new(), "err\n".into()));
    assert!(std::fs::read_to_string(&file).unwrap().contains("real 0."));
}

#[test]
fn a_file_that_cannot_be_written() {
    // Detected before the command starts.
    let area = Area::tmpfs();
    let made = area.join("made");
    let made = made.to_str().unwrap();
    for option in ["--csv", "--json", "--svg", "--output"] {
        let run = run(&[option, "/no/such/folder/file", "--", "touch", made]);
        run.expect(1).says(&["cannot write '/no/such/folder/file'", "No such file"]);
    }
    assert!(!std::path::Path::new(made).exists());
    // Detected at the end: the command's own failure takes precedence.
    for (script, code) in [("exit 0", 1), ("exit 7", 7)] {
        let run = run(&["--json", "/dev/full", "--", "sh", "-c", script]);
        run.expect(code).says(&["cannot write '/dev/full'", "exit code"]);
    }
}

/// Starts a script under watch, and waits for its first output.
fn started(script: &str) -> std::process::Child {
    let mut child = watch(&["--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut byte = [0];
    child.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
    child
}

fn send(signal: &str, pid: &str) {
    assert!(Command::new("kill").args([signal, pid]).status().unwrap().success());
}

#[test]
fn signals_go_to_the_command_and_the_summary_comes() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let child = started("echo; exec sleep 30");
        send(signal, &child.id().to_string());
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{signal}: {text}");
        assert!(text.contains("killed by signal") && text.contains("real 0."), "{signal}: {text}");
    }
    // Waits for a command that continues after the signal.
    let child = started("trap 'echo caught; exit 5' INT; echo; while :; do sleep 0.05; done");
    send("-INT", &child.id().to_string());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(5), &b"caught\n"[..]));
}

#[test]
fn keys_of_the_terminal_reach_the_command_once_and_there_is_a_status_line() {
    if !crate::common::have("python3", "a terminal for watch") {
        return;
    }
    // On its own terminal; ^C is typed when the command reports that it is ready.
    let typist = r#"
import fcntl, os, pty, struct, sys, termios
pid, tty = pty.fork()
if pid == 0:
    fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
    os.execv(sys.argv[1], sys.argv[1:])
text, typed = b"", False
while True:
    try:
        more = os.read(tty, 4096)
    except OSError:
        break
    if not more:
        break
    text += more
    if b"ready" in text and not typed:
        typed = True
        os.write(tty, b"\x03")
_, status = os.waitpid(pid, 0)
sys.stdout.buffer.write(text)
sys.exit(os.waitstatus_to_exitcode(status))
"#;
    let script = "n=0; trap 'n=$((n+1)); echo caught$n' INT; echo ready; \
        i=0; while [ $i -lt 8 ]; do sleep 0.1; i=$((i+1)); done; exit $n";
    let output = Command::new("python3")
        .args(["-c", typist])
        .arg(crate::common::program())
        .args(["watch", "--", "sh", "-c", script])
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text:?}");
    assert!(text.contains("caught1") && !text.contains("caught2"), "{text:?}");
    // The status line was reserved before the command could write, shown, and removed.
    assert!(text.find("\x1b[1;23r") < text.find("ready"), "{text:?}");
    assert!(text.contains("\x1b[24;1H\x1b[7m 0.") && text.contains(" | CPU us "), "{text:?}");
    let (line, end) = text.rsplit_once("\x1b[r").unwrap();
    assert!(line.contains("\x1b[1;23r") && end.contains("exit code 1"), "{text:?}");
    assert!(end.contains("machine: ") && !end.contains("\x1b[7m"), "{text:?}");
}

#[test]
fn whoever_is_left_behind_is_not_waited_for() {
    let start = Instant::now();
    let area = Area::tmpfs();
    let file = area.join("pid");
    let script = format!("setsid sleep 20 >/dev/null 2>&1 & echo $! >{}", file.display());
    run(&["--", "sh", "-c", &script]).expect(0);
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    let pid = std::fs::read_to_string(&file).unwrap();
    send("-KILL", pid.trim());
}
