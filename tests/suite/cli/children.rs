//! Started by a program that ignores SIGCHLD (some daemons and wrappers of cron): children are still seen.

use crate::common::area::Area;
use crate::common::case::Run;
use crate::common::{have, program};
use std::process::{Command, Stdio};

const IGNORING: &str = "import os, signal, sys\n\
                        signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n\
                        os.execv(sys.argv[1], sys.argv[1:])";

#[test]
fn children_are_seen_where_their_ends_are_ignored() {
    if !have("python3", "a parent that ignores SIGCHLD") {
        return;
    }
    let area = Area::tmpfs();
    std::fs::create_dir(area.join("src")).unwrap();
    std::fs::write(area.join("src/f"), "content").unwrap();
    // The second line is one that a process of its own runs.
    std::fs::write(area.join("lines"), "cp -r src dst\ndu .\n").unwrap();
    let cases: [(&[&str], i32); 7] = [
        (&["watch", "--", "sh", "-c", "exit 3"], 3),
        (&["watch", "--", "sh", "-c", "kill -TERM $$"], 143),
        (&["watch", "--", "/no/such/program"], 127),
        (&["bench", "-r", "2", "-o", "out", "-p", "true", "-c", "true", "true"], 0),
        (&["run", "lines"], 0),
        (&["cluster", "plan", "-a", "--run", "run", "src/", "dst2"], 0),
        (&["cluster", "submit", "--local", "2", "run"], 0),
    ];
    for (words, code) in cases {
        let mut command = Command::new("python3");
        command.args(["-c", IGNORING]).arg(program()).args(words);
        command.current_dir(area.path()).stdin(Stdio::null());
        command.env("HOME", area.path()).env("XDG_STATE_HOME", area.join("state"));
        let ran = Run::new(words.join(" "), command.output().unwrap());
        ran.expect(code);
    }
    assert!(area.join("dst/f").exists() && area.join("dst2/f").exists());
}
