//! Where the agent is found, and how it comes there.

use super::shell_of;
use crate::common::area::Area;
use crate::common::case::{Case, run_fed};
use crate::common::diff::Fields;
use crate::common::{have, program};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// A case whose remote machine has a home directory, `home`, and no hakobu in its PATH. `LOGIN` is its login shell.
fn machine(line: &str, login: &str, before: &str) -> Case {
    let (from, to) = (Area::tmpfs(), Area::tmpfs());
    let (home, fakes) = (to.join("home"), to.join("fakes"));
    fs::create_dir(&home).unwrap();
    fs::create_dir(&fakes).unwrap();
    let path = format!("{}:/usr/bin:/bin", fakes.display());
    let before = format!("HOME={}; PATH={path}; export HOME PATH\n{before}", home.display());
    let shell = shell_of(&to, login, &before).display().to_string();
    let case = Case::new(&line.replace("SHELL", &shell), from, to);
    fs::create_dir(case.src()).unwrap();
    fs::write(case.src().join("f"), "content").unwrap();
    case
}

/// The agent is found where programs of a user are, whatever the login shell is.
#[test]
fn found_by_each_login_shell() {
    for login in ["dash", "bash", "zsh", "fish", "tcsh"] {
        if !have(login, "login shells") {
            continue;
        }
        for place in [".local/bin", ".cache/hakobu/agent"] {
            let case = machine("sync -a -e SHELL SRC/ h:DST", login, "");
            let folder = case.place("home").join(place);
            fs::create_dir_all(&folder).unwrap();
            symlink(program(), folder.join("hakobu")).unwrap();
            case.run().ok();
            case.target_is_source(&Fields::ALL);
        }
    }
}

/// A missing agent is copied there when asked for, once, and is found afterwards.
#[test]
fn copied_there() {
    for login in ["sh", "fish"] {
        if !have(login, "login shells") {
            continue;
        }
        let case = machine("sync -a -e SHELL SRC/ h:DST", login, "");
        let missing = case.run();
        if !Path::new("/usr/local/bin/hakobu").exists() {
            missing.expect(127).says(&["it is not found there", "--install-agent"]);
        }
        let asks = case.line.replacen("-a", "-a --install-agent", 1);
        let first = case.run_line(&asks);
        first.ok().says(&["copying this program (", "h:~/.cache/hakobu/agent/"]);
        case.target_is_source(&Fields::ALL);
        let folder = case.place("home/.cache/hakobu/agent");
        let names = || -> Vec<_> {
            let mut names: Vec<_> =
                fs::read_dir(&folder).unwrap().flatten().map(|it| it.file_name()).collect();
            names.sort();
            names
        };
        let found = names();
        let [copy, link] = &*found else { panic!("{found:?}") };
        assert_eq!(link, "hakobu");
        assert!(copy.to_str().unwrap().starts_with(env!("CARGO_PKG_VERSION")), "{copy:?}");
        assert!(fs::read(folder.join(copy)).unwrap() == fs::read(program()).unwrap());
        // It is there: nothing is copied and nothing said.
        let again = case.run_line(&asks);
        assert_eq!(again.ok().err(), "", "{again}");
        case.run().ok();
        // One that is damaged is replaced.
        fs::write(folder.join(copy), "#!/bin/sh\nexit 3\n").unwrap();
        case.run_line(&asks).ok().says(&["copying this program ("]);
        assert_eq!(names(), found);
    }
}

/// Another system, bytes that get lost, and a program that does not start leave nothing, and are named.
#[test]
fn copies_that_do_not_fit() {
    for (fake, text, words) in [
        ("uname", "echo Plan9 mips", &["it is for Linux", "h is 'Plan9 mips'"][..]),
        ("cat", "exec head -c 1000", &["what arrived is not what was sent"]),
        ("chmod", "exit 0", &["it does not start there"]),
    ] {
        let case = machine("sync -a --install-agent -e SHELL h:SRC/ DST", "sh", "");
        let path = case.place("fakes").join(fake);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        case.run().expect(5).says(&["cannot copy this program to h:"]).says(words);
        let left = fs::read_dir(case.place("home/.cache/hakobu/agent")).unwrap().count();
        assert_eq!(left, 0, "{fake}");
        assert!(!case.dst().exists());
    }
    let case = machine("sync -a --install-agent -e SHELL h:SRC/ DST", "sh", "echo Welcome");
    case.run().expect(2).says(&["printed 'Welcome"]);
    let case = machine("sync -a --install-agent --rsync-path=x -e SHELL h:SRC/ DST", "sh", "");
    case.run().expect(1).says(&["--install-agent cannot be used with --rsync-path"]);
    let case = machine("sync -a --install-agent -e SHELL h:SRC/ DST", "sh", "exit 255");
    case.run().expect(255).says(&["could not reach h"]);
}

/// The greeting of an agent, or the first message of a near end, of another protocol.
fn hello(greeting: &[u8]) -> Vec<u8> {
    let json = br#"{"protocol": 7, "version": "9.9", "new": [1]}"#;
    [greeting, &(json.len() as u32).to_le_bytes(), &[1], json].concat()
}

/// Another protocol is refused by both ends, with both numbers and what to do.
#[test]
fn other_protocols() {
    let words = ["protocol 7 (hakobu 9.9)", "protocol 1 (hakobu ", "--install-agent"];
    let (from, to) = (Area::tmpfs(), Area::tmpfs());
    fs::write(from.join("hello"), hello(b"\0hakobu agent\r\n\0")).unwrap();
    let agent = format!("--rsync-path='cat {}; cat >/dev/null #'", from.join("hello").display());
    let shell = shell_of(&from, "sh", "").display().to_string();
    let case = Case::new(&format!("sync -a -e {shell} {agent} SRC/ h:DST"), from, to);
    fs::create_dir(case.src()).unwrap();
    case.run().expect(2).says(&words);
    case.run_line(&case.line.replace("SRC/ h:DST", "h:SRC/ DST")).expect(2).says(&words);
    let mut agent = Command::new(program());
    let run = run_fed(agent.arg("agent"), &hello(b""));
    run.expect(2).says(&words);
    let told = String::from_utf8_lossy(&run.stdout);
    assert!(words.iter().all(|word| told.contains(word)), "{told}");
}

/// What another end says does nothing to a terminal, and its errors are errors.
#[test]
fn texts_of_another_end() {
    let json = br#"{"refused": {"code": 0, "message": "\u001b]0;title\u0007\u009b2J no\r"}}"#;
    let (from, to) = (Area::tmpfs(), Area::tmpfs());
    let said = [&b"\0hakobu agent\r\n\0"[..], &(json.len() as u32).to_le_bytes(), &[1], json];
    fs::write(from.join("hello"), said.concat()).unwrap();
    let agent = format!("--rsync-path='cat {}; cat >/dev/null #'", from.join("hello").display());
    let shell = shell_of(&from, "sh", "").display().to_string();
    let case = Case::new(&format!("sync -a -e {shell} {agent} SRC/ h:DST"), from, to);
    fs::create_dir(case.src()).unwrap();
    case.run().expect(12).says(&["hakobu: \\#033]0;title\\#007\\#302\\#2332J no\\#015"]);
}

/// What a start-up file or a login prints before, or instead of, the agent's greeting is shown.
#[test]
fn noise() {
    for (before, words) in [
        ("echo Welcome to h", &["printed 'Welcome to h", "start-up file there"][..]),
        ("printf '\\0hakobu agent'; exit 0", &["start-up file there"]),
        ("printf '\\377\\376'; exit 0", &["printed '\\#377\\#376'", "start-up file there"]),
        ("head -c 1000000 /dev/zero | tr '\\0' x", &["printed 'xxxxxxxxxxxxxxxx"]),
    ] {
        for line in ["sync -a -e SHELL SRC/ h:DST", "sync -a --install-agent -e SHELL h:SRC/ DST"] {
            let case = machine(line, "sh", before);
            let folder = case.place("home/.local/bin");
            fs::create_dir_all(&folder).unwrap();
            symlink(program(), folder.join("hakobu")).unwrap();
            case.run().expect(2).says(words);
        }
    }
    // On standard error it is no noise.
    let case = machine("sync -a --install-agent -e SHELL h:SRC/ DST", "sh", "echo Welcome >&2");
    case.run().ok().says(&["Welcome"]);
}
