//! Whatever is killed or stands still, and at which message: the same command finishes the job, no file is torn, nothing is
//! left, and no process stays.

use crate::common::area::{Area, state_home};
use crate::common::case::Case;
use crate::common::diff::Fields;
use crate::common::{have, program, side_by_side};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A remote shell that ends or stops something at a message.
struct Relay {
    script: PathBuf,
    notes: PathBuf,
}

impl Relay {
    fn new(case: &Case, at: u64, what: &str) -> Relay {
        let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/remote/relay.py");
        let (script, notes) = (case.place("relay.py"), case.place("notes"));
        let folder = program().parent().map(Path::to_owned).unwrap_or_default();
        let values = format!("AT, WHAT, NOTES, FOLDER = {at}, {what:?}, {notes:?}, {folder:?}");
        let text = fs::read_to_string(suite).unwrap();
        let empty = "AT, WHAT, NOTES, FOLDER = 0, \"none\", \"\", \"\"";
        assert!(text.contains(empty));
        fs::write(&script, text.replace(empty, &values)).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        Relay { script, notes }
    }

    /// A line of `sync` over it.
    fn line(&self, line: &str) -> String {
        line.replacen("sync", &format!("sync -e {}", self.script.display()), 1)
    }

    /// The process of the agent, the number of messages so far, bytes there and back.
    fn notes(&self) -> [u64; 4] {
        let text = fs::read_to_string(&self.notes).unwrap_or_default();
        let mut words = text.split_whitespace();
        [0; 4].map(|_| words.next().and_then(|word| word.parse().ok()).unwrap_or(0))
    }

    /// Waits until the agent is gone.
    fn agent_ends(&self) {
        let [agent, ..] = self.notes();
        until(&format!("agent {agent} is left"), || {
            let state = fs::read_to_string(format!("/proc/{agent}/stat")).unwrap_or_default();
            agent == 0 || state.is_empty() || state.contains(") Z ")
        });
    }
}

#[track_caller]
fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(super) fn spawn(case: &Case, line: &str) -> Child {
    Command::new(program())
        .args(case.words(line, &case.dst()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .env("XDG_STATE_HOME", state_home())
        .spawn()
        .unwrap()
}

/// A tree whose directories are partly there already, so that content is asked for and comes unasked.
fn grow(case: &Case) {
    for dir in 0..8 {
        let path = case.src().join(format!("d{dir}"));
        fs::create_dir_all(&path).unwrap();
        for at in 0..40 {
            let content = vec![(dir * 40 + at) as u8; 613 * (at % 30)];
            fs::write(path.join(at.to_string()), content).unwrap();
        }
        if dir < 5 {
            fs::create_dir_all(case.dst().join(format!("d{dir}"))).unwrap();
        }
    }
    fs::write(case.src().join("large"), vec![7; 3 << 20]).unwrap();
}

/// Fails if a file of the target looks finished and is torn.
fn nothing_is_torn(case: &Case, dir: &str) {
    for entry in fs::read_dir(case.dst().join(dir)).into_iter().flatten().flatten() {
        let path = case.src().join(dir).join(entry.file_name());
        let (Ok(meta), Ok(source)) = (entry.metadata(), fs::metadata(&path)) else { continue };
        let looks_finished = meta.modified().unwrap() == source.modified().unwrap();
        if meta.is_file() && looks_finished && meta.len() == source.len() {
            let same = fs::read(entry.path()).unwrap() == fs::read(&path).unwrap();
            assert!(same, "{} looks finished and is torn", entry.path().display());
        }
    }
}

/// `HAKOBU_KILLS=300` kills at so many messages in each direction; usual are a few.
#[test]
fn killed_at_each_message() {
    if !have("python3", "kills at messages") {
        return;
    }
    let rounds = std::env::var("HAKOBU_KILLS").ok().and_then(|text| text.parse().ok());
    let rounds: u64 = rounds.unwrap_or(12);
    side_by_side(["SRC/ h:DST", "h:SRC/ DST"], |places| {
        let line = format!("sync -a {places}");
        let counted = Case::new(&line, Area::tmpfs(), Area::tmpfs());
        grow(&counted);
        let relay = Relay::new(&counted, 0, "none");
        counted.run_line(&relay.line(&line)).ok();
        counted.target_is_source(&Fields::ALL);
        let [_, messages, ..] = relay.notes();
        assert!(messages > 300, "{messages} messages");
        for round in 0..rounds {
            let at = 1 + round * messages / rounds;
            let what = ["near", "agent", "shell"][round as usize % 3];
            let first = ["", "-u", "--ignore-existing"][round as usize / 3 % 3];
            let again = ["", "-u", "--ignore-existing"][round as usize / 2 % 3];
            let case = Case::new(
                &format!("{places} {what} at {at}: {first}, {again}"),
                Area::tmpfs(),
                Area::tmpfs(),
            );
            grow(&case);
            let relay = Relay::new(&case, at, what);
            let line = relay.line(&line);
            let code =
                spawn(&case, &line.replacen("-a", &format!("-a {first}"), 1)).wait().unwrap();
            if code.success() {
                // Its last message was on its way.
                case.target_is_source(&Fields::ALL);
            }
            relay.agent_ends();
            (0..8).for_each(|dir| nothing_is_torn(&case, &format!("d{dir}")));
            nothing_is_torn(&case, "");
            let _none = Relay::new(&case, 0, "none");
            case.run_line(&line.replacen("-a", &format!("-a {again}"), 1)).ok();
            case.target_is_source(&Fields::ALL);
        }
    });
}

/// A killed near end leaves no process; the file that was on its way is given up, or kept by `--partial`.
#[test]
fn nothing_stays_after_a_killed_near_end() {
    if !have("python3", "kills at messages") {
        return;
    }
    side_by_side(["", " --partial"], |partial| {
        let case = Case::new(&format!("sync -a{partial} SRC/ h:DST"), Area::tmpfs(), Area::tmpfs());
        fs::create_dir(case.src()).unwrap();
        fs::create_dir(case.dst()).unwrap();
        fs::write(case.src().join("large"), vec![7; 100 << 20]).unwrap();
        let relay = Relay::new(&case, 30, "near");
        let code = spawn(&case, &relay.line(&case.line)).wait().unwrap();
        assert!(!code.success());
        relay.agent_ends();
        let names: Vec<_> =
            fs::read_dir(case.dst()).unwrap().flatten().map(|it| it.file_name()).collect();
        if partial.is_empty() {
            assert!(names.is_empty(), "{names:?}");
        } else {
            let bytes = fs::metadata(case.dst().join("large")).unwrap().len();
            assert!(
                names == ["large"] && bytes > 0 && bytes < 100 << 20,
                "{names:?}, {bytes} bytes"
            );
        }
    });
}

/// A link that stands still ends the run after `--timeout`, and is waited for without it.
#[test]
fn frozen_links() {
    if !have("python3", "a link that stands still") {
        return;
    }
    let cases = ["SRC/ h:DST", "h:SRC/ DST"]
        .into_iter()
        .flat_map(|places| [(places, true), (places, false)]);
    side_by_side(cases, |(places, limits)| {
        // Starting the agent takes part of it.
        let limit = if limits { "--timeout=4" } else { "" };
        let case = Case::new(&format!("sync -a {limit} {places}"), Area::tmpfs(), Area::tmpfs());
        grow(&case);
        let relay = Relay::new(&case, 20, "stop");
        let line = relay.line(&case.line);
        if limits {
            case.run_line(&line).expect(30).says(&["said nothing for longer than --timeout"]);
            relay.agent_ends();
            let _none = Relay::new(&case, 0, "none");
            case.run_line(&line).ok();
        } else {
            let mut near = spawn(&case, &line);
            until("the link does not stand still", || relay.notes()[0] != 0);
            std::thread::sleep(Duration::from_millis(2500));
            assert!(near.try_wait().unwrap().is_none());
            let children = format!("/proc/{0}/task/{0}/children", near.id());
            let shell = fs::read_to_string(children).unwrap();
            let mut kill = Command::new("kill");
            kill.arg("-CONT").arg(shell.trim());
            assert!(kill.status().unwrap().success());
            assert!(near.wait().unwrap().success());
        }
        case.target_is_source(&Fields::ALL);
    });
}

/// An agent whose near end stands still ends by itself.
#[test]
fn frozen_near_end() {
    if !have("python3", "a near end that stands still") {
        return;
    }
    let case =
        Case::new("sync -a --timeout=4 --bwlimit=1m SRC/ h:DST", Area::tmpfs(), Area::tmpfs());
    grow(&case);
    let relay = Relay::new(&case, 0, "none");
    let mut near = spawn(&case, &relay.line(&case.line));
    let has_files = |dir: u8| {
        let listed = fs::read_dir(case.dst().join(format!("d{dir}")));
        listed.is_ok_and(|it| it.count() > 0)
    };
    until("nothing is written", || (0..8).any(has_files));
    let signal = |name: &str| {
        let mut kill = Command::new("kill");
        assert!(kill.arg(name).arg(near.id().to_string()).status().unwrap().success());
    };
    signal("-STOP");
    // The relay tells its number when the agent has ended.
    until("the agent does not end", || relay.notes()[0] != 0);
    relay.agent_ends();
    signal("-KILL");
    assert!(!near.wait().unwrap().success());
    nothing_is_torn(&case, "");
}

/// An end that does not appear ends the run after `--contimeout`, or `--timeout`.
#[test]
fn ends_that_do_not_appear() {
    side_by_side(
        [("--contimeout=1", 35), ("--timeout=1", 30), ("--timeout=9 --contimeout=1", 35)],
        |(limits, code)| {
            let from = Area::tmpfs();
            let shell = super::shell(&from, "exec sleep 600");
            let line = format!("sync -a {limits} -e {} SRC/ h:DST", shell.display());
            let case = Case::new(&line, from, Area::tmpfs());
            fs::create_dir(case.src()).unwrap();
            let begun = Instant::now();
            case.run().expect(code).says(&["h could not be reached within the time"]);
            assert!(begun.elapsed() < Duration::from_secs(8));
        },
    );
    // What is late is not lost.
    let from = Area::tmpfs();
    let shell = super::shell(&from, "sleep 0.3");
    let line = format!("sync -a --contimeout=20 --timeout=20 -e {} SRC/ h:DST", shell.display());
    let case = Case::new(&line, from, Area::tmpfs());
    fs::create_dir(case.src()).unwrap();
    case.run().ok();
}

/// An end that works and has nothing to say is not taken for a silent one.
#[test]
fn busy_ends_are_alive() {
    side_by_side(["SRC/ h:DST", "h:SRC/ DST"], |places| {
        let from = Area::tmpfs();
        let shell = super::shell(&from, "");
        let line = format!("sync -a --timeout=1 --bwlimit=100k -e {} {places}", shell.display());
        let case = Case::new(&line, from, Area::tmpfs());
        fs::create_dir(case.src()).unwrap();
        // Pieces of 256 KiB.
        fs::write(case.src().join("f"), vec![1; 500_000]).unwrap();
        let begun = Instant::now();
        case.run().ok();
        assert!(begun.elapsed() > Duration::from_secs(3));
        case.target_is_source(&Fields::ALL);
    });
}

/// The statistics tell what crossed the link, in both directions.
#[test]
fn bytes_are_those_of_the_link() {
    if !have("python3", "bytes of a link") {
        return;
    }
    for line in ["sync -av SRC/ h:DST", "sync -av h:SRC/ DST", "sync -avn h:SRC/ DST"] {
        let case = Case::new(line, Area::tmpfs(), Area::tmpfs());
        grow(&case);
        let relay = Relay::new(&case, 0, "none");
        let run = case.run_line(&relay.line(&line.replacen("-a", "--stats -a", 1)));
        let [_, _, there, back] = relay.notes();
        assert!(there > 500 && back > 500, "{there}, {back}");
        let out = run.ok().out().replace(',', "");
        for part in [
            format!("\nTotal bytes sent: {there}\nTotal bytes received: {back}\n"),
            format!("\nsent {there} bytes  received {back} bytes  "),
        ] {
            assert!(out.contains(&part), "no {part:?}: {run}");
        }
        let json = case.run_line(&relay.line(&line.replacen("-a", "--json -a", 1)));
        let [_, _, there, back] = relay.notes();
        let summary = json.ok().summary();
        assert_eq!(summary["sent_bytes"], there, "{json}");
        assert_eq!(summary["received_bytes"], back, "{json}");
    }
}

/// Files that become shorter or vanish while they are on their way take no room from the others.
#[test]
fn files_that_change_on_their_way() {
    let both = [false, true].map(|is_all| ["SRC/ h:DST", "h:SRC/ DST"].map(|of| (is_all, of)));
    side_by_side(both.concat(), |(is_all, places)| {
        let from = Area::tmpfs();
        let shell = super::shell(&from, "");
        let line = format!("sync -a --bwlimit=8m -e {} {places}", shell.display());
        let case = Case::new(&line, from, Area::tmpfs());
        fs::create_dir(case.src()).unwrap();
        fs::create_dir(case.dst()).unwrap();
        // Far more than may be on the way.
        let files: Vec<PathBuf> = (0..400).map(|at| case.src().join(at.to_string())).collect();
        files.iter().for_each(|file| fs::File::create(file).unwrap().set_len(250_000).unwrap());
        let mut near = spawn(&case, &line);
        until("nothing comes", || fs::read_dir(case.dst()).unwrap().count() > 0);
        for (at, file) in files.iter().enumerate() {
            match is_all || at % 3 == 0 {
                true => fs::remove_file(file).unwrap(),
                false => fs::write(file, "short").unwrap(),
            }
        }
        let begun = Instant::now();
        let code = near.wait().unwrap().code();
        assert_eq!(code, Some(if is_all { 24 } else { 23 }));
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    });
}
