//! Starting the other end, losing it, and meeting oneself there.

use super::shell;
use crate::common::area::Area;
use crate::common::case::{Case, case};
use crate::common::diff::Fields;
use crate::common::program;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

fn with_shell(line: &str, before: &str, body: impl FnOnce(&Case)) {
    let (from, to) = (Area::tmpfs(), Area::tmpfs());
    let shell = shell(&from, before).display().to_string();
    let mut made = Case::new(line, from, to);
    let line = line.replace("SHELL", &shell);
    made.relabel(&line);
    fs::create_dir(made.src()).unwrap();
    fs::write(made.src().join("f"), "content").unwrap();
    body(&made);
}

#[test]
fn what_cannot_be_is_said() {
    for (line, code, words) in [
        ("sync SRC/ h::mod/x", 1, &["modules of an rsync daemon"][..]),
        ("sync SRC/ rsync://h/mod", 1, &["rsync:// locations are not supported"]),
        ("sync h:a g:b", 1, &["both on other machines", "ssh -A g hakobu sync"]),
        ("sync h:a g:b DST", 1, &["all on one other machine"]),
        ("sync h:a SRC DST", 1, &["all on one other machine"]),
        ("sync SRC s3://bucket h:DST", 1, &["is an object", "ssh h hakobu sync"]),
        ("sync -e 'a \"b' SRC/ h:DST", 1, &["a quote without its end"]),
        ("sync SRC/ :DST", 1, &["a host or user has no name"]),
        ("sync -e /no/shell SRC/ h:DST", 5, &["cannot start the remote shell '/no/shell'"]),
    ] {
        case(line, |c| {
            fs::create_dir(c.src()).unwrap();
            let run = c.run();
            assert_eq!(run.code, code, "{run}");
            run.says(words);
        });
    }
}

#[test]
fn remote_shells_that_fail() {
    with_shell("sync -a -e SHELL SRC/ h:DST", "exit 255", |c| {
        c.run().expect(255).says(&["could not reach h"]);
    });
    with_shell("sync -a -e SHELL SRC/ h:DST", "PATH=/none; export PATH", |c| {
        c.run().expect(127).says(&["cannot start hakobu on h", "hint: install it there"]);
    });
    with_shell("sync -a -e SHELL --rsync-path=/no/hakobu SRC/ h:DST", "", |c| {
        c.run().expect(127).says(&["cannot start hakobu on h"]);
    });
    with_shell("sync -a -e SHELL SRC/ h:DST", "echo Welcome", |c| {
        c.run().expect(2).says(&["printed 'Welcome", "must print nothing"]);
        // The agent may have made the directory before its end.
        assert!(fs::read_dir(c.dst()).map_or(true, |mut names| names.next().is_none()));
    });
    // The program of the other end is found by its path, and RSYNC_RSH names the shell.
    let path = program().display().to_string();
    with_shell(&format!("sync -a -e SHELL --rsync-path={path} SRC/ h:DST"), "PATH=/none", |c| {
        c.run_line(&c.line.replace("PATH=/none", "")).ok();
        c.target_is_source(&Fields::ALL);
    });
}

/// An agent of another protocol is refused, and so is a near end.
#[test]
fn other_protocols_are_refused() {
    let area = Area::tmpfs();
    let other = area.join("agent.py");
    fs::write(
        &other,
        "#!/usr/bin/env python3\n\
         import json, sys\n\
         out = sys.stdout.buffer\n\
         out.write(b'\\0hakobu agent\\r\\n\\0')\n\
         hello = json.dumps({'protocol': 99, 'version': '9.9', 'task': None, 'facts': {}, 'is_here': False, 'place': None, 'refused': None}).encode()\n\
         hello = hello if len(hello) else b''\n\
         out.write(len(hello).to_bytes(4, 'little') + b'\\x01' + hello)\n\
         out.flush()\n\
         sys.stdin.buffer.read()\n",
    )
    .unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).unwrap();
    let line = format!("sync -a -e SHELL --rsync-path={} SRC/ h:DST", other.display());
    with_shell(&line, "", |c| {
        c.run().expect(2).says(&["the agent speaks protocol"]);
    });
}

/// A tree is not copied into itself, whichever end it is seen from.
#[test]
fn one_directory_at_both_ends() {
    for line in ["sync -a -e SHELL SRC/ h:SRC/sub/", "sync -a -e SHELL h:SRC/ SRC/sub/"] {
        with_shell(line, "", |c| {
            fs::create_dir(c.src().join("sub")).unwrap();
            c.run().says(&["it is not copied into itself"]);
            assert!(!c.src().join("sub/sub").exists());
            assert_eq!(fs::read(c.src().join("sub/f")).unwrap(), b"content");
        });
    }
    for line in ["sync -aI -e SHELL SRC/ h:SRC/", "sync -aI -e SHELL h:SRC/ SRC/"] {
        with_shell(line, "", |c| {
            c.run();
            assert_eq!(fs::read(c.src().join("f")).unwrap(), b"content");
        });
    }
}

/// Whatever is killed, and when: the same command finishes the job, and no file is torn.
#[test]
fn killed_at_any_moment() {
    for (seed, line) in [
        "sync -a -e SHELL SRC/ h:DST",
        "sync -a -e SHELL h:SRC/ DST",
        "sync -a -j 1 -e SHELL SRC/ h:DST",
    ]
    .into_iter()
    .enumerate()
    {
        with_shell(line, "", |c| {
            for at in 0..400 {
                let content = vec![at as u8; 997 * (at % 40)];
                fs::write(c.src().join(at.to_string()), content).unwrap();
            }
            fs::write(c.src().join("large"), vec![7; 12 << 20]).unwrap();
            for round in 0..8 {
                let words = c.words(&c.line, &c.dst());
                let mut child = Command::new(program())
                    .args(words)
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .env("XDG_STATE_HOME", crate::common::area::state_home())
                    .spawn()
                    .unwrap();
                std::thread::sleep(Duration::from_millis(3 + 4 * ((round * 7 + seed as u64) % 11)));
                // The agent, or the near end.
                match round % 2 {
                    0 => drop(child.kill()),
                    _ => {
                        let children = format!("/proc/{0}/task/{0}/children", child.id());
                        let children = fs::read_to_string(children).unwrap_or_default();
                        let agents: Vec<&str> = children.split_whitespace().collect();
                        drop(
                            Command::new("kill")
                                .arg("-9")
                                .args(agents)
                                .stderr(Stdio::null())
                                .status(),
                        );
                    }
                }
                child.wait().unwrap();
                for entry in fs::read_dir(c.dst()).into_iter().flatten().flatten() {
                    let (name, meta) = (entry.file_name(), entry.metadata().unwrap());
                    let Ok(source) = fs::metadata(c.src().join(&name)) else { continue };
                    let is_finished = meta.modified().unwrap() == source.modified().unwrap();
                    if is_finished && meta.len() == source.len() {
                        let same = fs::read(entry.path()).unwrap()
                            == fs::read(c.src().join(&name)).unwrap();
                        assert!(same, "{name:?} looks finished and is torn");
                    }
                }
            }
            c.run().ok();
            c.target_is_source(&Fields::ALL);
        });
    }
}

/// A far end that is full ends the run with its cause.
#[test]
fn failures_there_are_failures_here() {
    with_shell("sync -a -e SHELL SRC/ h:DST/missing/deep", "", |c| {
        c.run().expect(11).says(&["cannot create target directory"]);
    });
    with_shell("sync -a -e SHELL h:SRC/none DST", "", |c| {
        c.run().expect(23).says(&["none"]);
    });
}
