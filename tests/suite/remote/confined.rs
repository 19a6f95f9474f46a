//! An agent for one directory (`hakobu agent --root`): whatever the near end asks for, nothing outside is read or written.

use crate::common::area::Area;
use crate::common::case::{Case, Run};
use crate::common::{grow, program};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A case whose remote shell starts an agent as `authorized_keys` does: for the directory `root` beside the target, with
/// these options.
struct Key {
    case: Case,
    root: PathBuf,
    shell: String,
}

fn script(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn key(options: &str) -> Key {
    let (from, to) = (Area::tmpfs(), Area::tmpfs());
    let (root, shell) = (to.join("root"), from.join("shell.sh"));
    fs::create_dir(&root).unwrap();
    fs::write(to.join("outside"), "outside").unwrap();
    fs::create_dir(to.join("beside")).unwrap();
    fs::write(to.join("beside/secret"), "never told").unwrap();
    let agent = format!("{} agent --root {} {options}", program().display(), root.display());
    script(&shell, &format!("#!/bin/sh\nexec {agent}\n"));
    let shell = shell.display().to_string();
    let case = Case::new("sync", from, to);
    fs::create_dir_all(case.src().join("a")).unwrap();
    fs::write(case.src().join("a/f"), "new").unwrap();
    Key { case, root, shell }
}

impl Key {
    fn run(&self, line: &str) -> Run {
        let run = self.case.run_line(&line.replacen("sync", &format!("sync -e {}", self.shell), 1));
        self.is_whole(&run);
        run
    }

    /// What is outside of the directory is what it was.
    fn is_whole(&self, run: &Run) {
        let area = self.root.parent().unwrap();
        assert_eq!(fs::read(area.join("outside")).unwrap(), b"outside", "{run}");
        assert_eq!(fs::read_dir(area.join("beside")).unwrap().count(), 1, "{run}");
        assert_eq!(fs::read(area.join("beside/secret")).unwrap(), b"never told", "{run}");
        let known = ["beside", "dst", "outside", "root"];
        for entry in fs::read_dir(area).unwrap().flatten() {
            let name = entry.file_name();
            assert!(known.iter().any(|known| name == *known), "{name:?} was made\n{run}");
        }
    }
}

#[test]
fn paths_begin_in_the_directory() {
    let key = key("");
    for (line, there) in [
        ("sync -a SRC/ h:x", "x/a/f"),
        ("sync -a SRC/ h:/y/", "y/a/f"),
        ("sync -a SRC/ h:x/../z", "z/a/f"),
        ("sync -a --mkpath SRC/a/f h:/p/q/", "p/q/f"),
        ("sync -aR SRC/./a/f h:", "a/f"),
        ("sync -a --temp-dir=/x SRC/ h:t", "t/a/f"),
        ("sync -ab --backup-dir=/old -I SRC/ h:x", "old/a/f"),
        ("sync -ab --backup-dir=../older -I SRC/ h:x", "older/a/f"),
    ] {
        key.run(line).ok();
        assert_eq!(fs::read(key.root.join(there)).unwrap(), b"new", "{line}");
    }
    for (line, there) in [
        ("sync -a h:x/ DST", "a/f"),
        ("sync -a h:/x DST/", "x/a/f"),
        ("sync -aR h:/x/./a DST/", "a/f"),
        ("sync -a h:x/a/f h:y/a DST/", "a/f"),
    ] {
        drop(fs::remove_dir_all(key.case.dst()));
        key.run(line).ok();
        assert_eq!(fs::read(key.case.dst().join(there)).unwrap(), b"new", "{line}");
    }
}

#[test]
fn nothing_leads_out() {
    let key = key("");
    let area = key.root.parent().unwrap().to_owned();
    symlink(&area, key.root.join("up")).unwrap();
    symlink("../beside", key.root.join("rel")).unwrap();
    symlink(area.join("outside"), key.root.join("file")).unwrap();
    fs::create_dir(key.root.join("in")).unwrap();
    symlink("../../beside", key.root.join("in/deep")).unwrap();
    fs::write(area.join("rules"), "secret rule").unwrap();
    fs::remove_file(area.join("rules")).unwrap();
    for line in [
        "sync -a SRC/ h:../x",
        "sync -a SRC/ h:/../x",
        "sync -a SRC/ h:a/../../x",
        "sync -a SRC/ h:up/x",
        "sync -a SRC/ h:rel/",
        "sync -a SRC/ h:in/deep",
        "sync SRC/a/f h:file",
        "sync -a --backup-dir=../../x SRC/ h:y",
        "sync -a --backup-dir=/up SRC/ h:y",
        "sync -a --backup-dir=/../x SRC/ h:y",
        "sync -a --temp-dir=../../ SRC/ h:y",
        "sync -a --temp-dir=/up SRC/ h:y",
        "sync -a --partial-dir=/up/beside SRC/ h:y",
        "sync -aK SRC/ h:y",
        "sync -a --confine-root=/ SRC/ h:y",
        "sync -a h:../beside DST",
        "sync -a h:up/beside DST",
        "sync -a h:rel/ DST",
        "sync -a h:rel DST",
        "sync -aR h:in/deep/secret DST",
        "sync -aR h:in/./deep/secret DST",
        "sync -a h:file DST",
        "sync -aL h:in DST",
        "sync -ak h:in DST",
        "sync -a --copy-unsafe-links h:in DST",
    ] {
        let run = key.run(line);
        assert_eq!(run.code, 4, "{run}");
        run.says(&["agent"]);
        assert!(!key.case.dst().exists() && !key.root.join("y").exists(), "{run}");
    }
    // Below an argument they are symlinks, and a directory in their place is none of theirs.
    key.run("sync -a h:in DST").ok();
    assert!(key.case.dst().join("in/deep").is_symlink());
    fs::create_dir_all(key.case.src().join("in/deep")).unwrap();
    fs::write(key.case.src().join("in/deep/f"), "new").unwrap();
    key.run("sync -a SRC/in h:").ok();
    assert!(!key.root.join("in/deep").is_symlink());
    assert!(key.root.join("in/deep/f").exists());
}

#[test]
fn what_a_key_may_do() {
    for (options, line, words) in [
        ("--read-only", "sync -a SRC/ h:x", Some("only gives files")),
        ("--read-only", "sync -a --remove-source-files h:x/ DST", Some("removes no sources")),
        ("--read-only", "sync -a --delete h:x/ DST", None),
        ("--write-only", "sync -a h:x/ DST", Some("only takes files")),
        ("--write-only", "sync -a --delete SRC/ h:x", None),
        ("--no-delete", "sync -a --delete SRC/ h:x", Some("deletes nothing")),
        ("--no-delete", "sync -a --delete-after SRC/ h:x", Some("deletes nothing")),
        ("--no-delete", "sync -a --delete-excluded SRC/ h:x", Some("deletes nothing")),
        ("--no-delete", "sync -a --force SRC/ h:x", Some("deletes nothing")),
        ("--no-delete", "sync -r --delete-missing-args SRC/none h:x", Some("deletes nothing")),
        ("--no-delete", "sync -a --remove-source-files h:x/ DST", Some("removes no sources")),
        ("--no-delete", "sync -a --remove-source-files SRC/ h:x", None),
        ("--no-delete", "sync -a --delete h:x/ DST", None),
        ("--no-overwrite", "sync -ab SRC/ h:x", Some("replaces nothing")),
        ("--no-overwrite", "sync -a --partial-dir=p SRC/ h:x", Some("replaces nothing")),
    ] {
        let key = key(options);
        fs::create_dir(key.root.join("x")).unwrap();
        fs::write(key.root.join("x/old"), "old").unwrap();
        let run = key.run(line);
        match words {
            None => drop(run.ok()),
            Some(words) => {
                assert_eq!(run.code, 4, "{options} {run}");
                run.says(&[words]);
                assert_eq!(fs::read(key.root.join("x/old")).unwrap(), b"old", "{run}");
                assert_eq!(fs::read_dir(key.root.join("x")).unwrap().count(), 1, "{run}");
            }
        }
    }
    let key = key("--write-only --no-delete --no-overwrite");
    fs::create_dir_all(key.root.join("a")).unwrap();
    fs::write(key.root.join("a/f"), "old").unwrap();
    fs::write(key.case.src().join("a/g"), "new").unwrap();
    fs::create_dir(key.case.src().join("b")).unwrap();
    fs::write(key.root.join("b"), "a file in its way").unwrap();
    for line in ["sync -aI SRC/ h:", "sync -aI --inplace SRC/ h:", "sync -aIc SRC/ h:"] {
        key.run(line);
        assert_eq!(fs::read(key.root.join("a/f")).unwrap(), b"old");
        assert_eq!(fs::read(key.root.join("b")).unwrap(), b"a file in its way");
    }
    assert_eq!(fs::read(key.root.join("a/g")).unwrap(), b"new");
}

/// What a near end sends to a key that may not, one case a line: options of the key, what it says.
const DENIED: &[(&str, &str)] = &[
    (
        "--read-only",
        "task(False, ['.']); frame(2, directory(1)); frame(3, entries(1, 1, entry(b'keep', 0, 1, b'x'), entry(b'new', 0, 1, b'x')))",
    ),
    (
        "--read-only",
        "task(False, ['.'], option('delete')); frame(2, directory(1)); frame(4, number(1) + b'\\1'); frame(15, number(1) + b'\\1\\377')",
    ),
    (
        "--read-only",
        "task(True, ['.'], option('remove-source-files')); frame(16, number(1) + b'\\0\\1')",
    ),
    ("--read-only", "task(True, ['.'], option('delete')); frame(16, number(1) + b'\\0\\1')"),
    ("--read-only", "task(True, ['./']); frame(3, entries(1, 1, entry(b'new', 0, 1, b'x')))"),
    ("--write-only", "task(True, ['keep']); frame(6, number(1) + b'\\0')"),
    ("--write-only", "task(True, ['.']); frame(6, number(1) + b'\\0\\1')"),
    (
        "--write-only",
        "task(False, ['x']); frame(6, number(1) + b'\\0'); frame(14, number(1) + b'\\1' + text(b'keep'))",
    ),
    (
        "--no-delete",
        "task(False, ['.'], option('delete')); frame(2, directory(1)); frame(4, number(1) + b'\\1'); frame(15, number(1) + b'\\1\\377')",
    ),
    (
        "--no-delete",
        "task(False, ['.'], option('delete-before')); frame(2, directory(1)); frame(4, number(1) + b'\\1'); frame(15, number(1) + b'\\1\\377')",
    ),
    (
        "--no-delete",
        "task(False, ['.'], option('delete-excluded'), option('exclude', 'keep')); frame(2, directory(1)); frame(4, number(1) + b'\\1'); frame(15, number(1) + b'\\1\\377')",
    ),
    (
        "--no-delete",
        "task(False, ['.'], option('delete-missing-args')); frame(2, directory(1)); frame(3, entries(1, 1, entry(b'keep', 7)))",
    ),
    (
        "--no-delete",
        "task(False, ['.']); frame(2, directory(1)); frame(3, entries(1, 1, entry(b'keep', 7)))",
    ),
    (
        "--no-delete",
        "task(False, ['.']); frame(2, directory(1)); frame(4, number(1) + b'\\1'); frame(15, number(1) + b'\\1\\377')",
    ),
    (
        "--no-delete",
        "task(False, ['.'], option('force')); frame(2, directory(1)); frame(3, entries(1, 1, entry(b'dir', 0, 1, b'x')))",
    ),
    (
        "--no-delete",
        "task(False, ['.']); frame(2, directory(1)); frame(3, entries(1, 1, entry(b'dir', 0, 1, b'x')))",
    ),
    (
        "--no-delete",
        "task(True, ['.'], option('remove-source-files')); frame(16, number(1) + b'\\0\\1')",
    ),
    (
        "--no-overwrite",
        "task(False, ['.']); frame(2, directory(1)); frame(3, entries(1, 1, entry(b'keep', 0, 1, b'x'))); frame(4, number(1) + b'\\1'); frame(11, b'{}')",
    ),
    (
        "--no-overwrite",
        "task(False, ['.'], option('inplace'), option('ignore-times')); frame(2, directory(1)); frame(3, entries(1, 1, entry(b'keep', 0, 1))); frame(7, number(1) + b'\\0\\1x')",
    ),
    (
        "--no-overwrite",
        "task(False, ['.'], option('ignore-existing', on=False)); frame(2, directory(1)); frame(3, entries(1, 1, entry(b'keep', 0, 1, b'x'))); frame(4, number(1) + b'\\1'); frame(11, b'{}')",
    ),
    (
        "--no-overwrite",
        "task(False, ['.']); frame(2, directory(1)); frame(3, entries(1, 1, entry(b'keep', 2, 3, None, b'dir')))",
    ),
    (
        "--no-overwrite",
        "task(False, ['.']); frame(2, directory(1)); frame(2, directory(2, 1, b'keep')); frame(3, entries(2, 1, entry(b'x', 0, 1, b'x'))); frame(4, number(2) + b'\\1')",
    ),
    (
        "--no-overwrite",
        "task(False, ['.']); frame(2, directory(1)); frame(3, entries(1, 1, entry(b'dir', 0, 1, b'x')))",
    ),
    (
        "--no-overwrite",
        "task(False, ['.'], option('backup')); frame(2, directory(1)); frame(3, entries(1, 1, entry(b'keep', 0, 1, b'x')))",
    ),
    (
        "--no-overwrite",
        "task(False, ['keep'], takes_name=True, takes_new_name=True, has_content=False, is_dir=False); frame(2, directory(1)[:2] + b'\\0' + directory(1)[3:]); frame(3, entries(1, 1, entry(b'x', 0, 1, b'x'))); frame(4, number(1) + b'\\1'); frame(11, b'{}')",
    ),
];

#[test]
fn a_hostile_near_end_does_not_what_its_key_may_not() {
    for (options, send) in DENIED {
        let key = key(options);
        fs::write(key.root.join("keep"), "never told").unwrap();
        fs::create_dir(key.root.join("dir")).unwrap();
        fs::write(key.root.join("dir/keep"), "kept").unwrap();
        let mut words = vec![program().display().to_string(), "agent".into(), "--root".into()];
        words.push(key.root.display().to_string());
        words.extend(options.split(' ').map(str::to_owned));
        let script = NEAR
            .replace("WIRE", super::WIRE)
            .replace("AGENT", &format!("{words:?}"))
            .replace("SEND", send);
        let output =
            Command::new("timeout").args(["30", "python3", "-c", &script]).output().unwrap();
        let run = Run::new(format!("agent {options} < {send}"), output.clone());
        assert_eq!(run.code, 0, "the agent hangs: {run}");
        key.is_whole(&run);
        let told = output.stdout.windows(10).any(|part| part == b"never told");
        assert!(!told || *options != "--write-only", "{run}");
        assert_eq!(fs::read(key.root.join("keep")).unwrap(), b"never told", "{run}");
        assert_eq!(fs::read(key.root.join("dir/keep")).unwrap(), b"kept", "{run}");
        assert_eq!(fs::symlink_metadata(key.root.join("keep")).unwrap().len(), 10, "{run}");
        assert!(!key.root.join("new").exists() || *options != "--read-only", "{run}");
    }
}

#[test]
fn options_that_do_not_go_together() {
    for (options, words) in [
        ("--read-only", "need --root"),
        ("--root /none", "cannot enter"),
        ("--root / --read-only --write-only", "cannot be used together"),
        ("--root / beside", "takes no arguments"),
    ] {
        let output =
            Command::new(program()).arg("agent").args(options.split(' ')).output().unwrap();
        assert!(!output.status.success(), "{options}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(words), "{options}: {output:?}");
    }
}

/// A near end in Python: sends a task and what the test says, and prints what comes back.
const NEAR: &str = r#"
import json, os, subprocess, sys
agent = subprocess.Popen(AGENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
out, back = agent.stdin, agent.stdout
def frame(kind, body=b''):
    try: out.write(len(body).to_bytes(4, 'little') + bytes([kind]) + body); out.flush()
    except BrokenPipeError: pass
WIRE
def option(name, value='', on=True): return {'name': name, 'on': on, 'count': 1, 'value': value}
facts = {'has_content': True, 'exists': True, 'is_missing': False, 'takes_new_name': False, 'takes_name': False, 'is_dir': True, 'is_link': False, 'roots': []}
def task(reads, paths, *options, **more):
    them = {'command': 'sync', 'reads': reads, 'paths': paths, 'options': [option('archive'), *options], 'facts': {**facts, **more}, 'machine': ''}
    frame(1, json.dumps({'protocol': 1, 'version': '0', 'task': them}).encode())
back.read(len(b'\0hakobu agent\r\n\0'))
SEND
try: out.close()
except BrokenPipeError: pass
sys.stdout.buffer.write(back.read())
agent.wait(20)
"#;

/// What a hostile near end sends, one case a line.
const CASES: &[&str] = &[
    "task(False, ['../beside']); frame(2, directory(1)); frame(3, entries(1, 1, entry(b'x', 0, 1, b'x')))",
    "task(False, ['a', 'b'])",
    "task(False, [])",
    "task(True, [])",
    "task(True, ['..'])",
    "task(True, ['/../../../../etc/passwd'])",
    "task(True, ['up/beside'])",
    "task(True, ['up/beside/secret'])",
    "task(True, ['up'], option('recursive')); frame(6, number(1) + b'\\0')",
    "task(True, ['in'], option('copy-links'))",
    "task(True, ['in'], option('copy-unsafe-links'))",
    "task(True, ['in'], option('no-such-option'))",
    "task(True, ['in'], option('rsh', 'touch OUT'))",
    "task(True, ['in'], option('rsync-path', 'touch OUT'))",
    "task(True, ['in'], option('insecure-links'))",
    "task(True, ['in'], option('confine-root', '/'))",
    "task(True, ['in'], option('log-file', 'OUT'))",
    "task(True, ['in'], option('files-from', '/etc/passwd'))",
    "task(True, ['in'], option('exclude-from', '/etc/passwd'))",
    "task(True, ['in'], option('filter', 'merge /etc/passwd'))",
    "task(True, ['in'], option('filter', 'merge up/beside/secret'))",
    "task(True, ['in'], option('filter', ': /etc/passwd'))",
    "task(False, ['x'], option('backup'), option('backup-dir', '/up'))",
    "task(False, ['x'], option('temp-dir', '../../beside')); frame(2, directory(1)); frame(3, entries(1, 1, entry(b'x', 0, 1, b'x')))",
    "task(False, ['x'], option('link-dest', 'OUT'))",
    "task(False, ['h:x'], option('mkpath')); frame(2, directory(1))",
    "task(True, ['h:x'])",
    "task(True, ['s3://bucket/x'])",
    "task(False, ['file'], takes_name=True, takes_new_name=True, has_content=False, is_dir=False)",
    "task(False, ['.'], takes_name=True, takes_new_name=True, has_content=False, is_dir=False)",
    "task(False, ['in/..'], takes_name=True, takes_new_name=True, has_content=False, is_dir=False)",
    "task(False, ['x']); frame(2, directory(1, path=b'../../beside')); frame(3, entries(1, 1, entry(b'x', 0, 1, b'x')))",
    "task(False, ['x']); frame(2, directory(1)); frame(2, directory(2, 1, b'..')); frame(3, entries(2, 1, entry(b'x', 0, 1, b'x')))",
    "task(False, ['.']); frame(2, directory(1)); frame(2, directory(2, 1, b'up')); frame(3, entries(2, 1, entry(b'outside', 0, 1, b'x'))); frame(4, number(2) + b'\\1'); frame(4, number(1) + b'\\1'); frame(11, b'{}')",
    "task(False, ['.']); frame(2, directory(1)); frame(3, entries(1, 1, entry(b'l', 2, 3, None, b'../beside'))); frame(2, directory(2, 1, b'l')); frame(3, entries(2, 2, entry(b'x', 0, 1, b'x'))); frame(4, number(2) + b'\\1'); frame(4, number(1) + b'\\1'); frame(11, b'{}')",
    "task(False, ['.'], option('delete')); frame(2, directory(1)); frame(2, directory(2, 1, b'up')); frame(4, number(2) + b'\\1'); frame(4, number(1) + b'\\1'); frame(15, number(2) + b'\\1\\377'); frame(11, b'{}')",
    "task(False, ['x'], option('delete')); frame(15, number(7) + b'\\1\\377')",
    "task(False, ['x'], option('delete')); frame(2, directory(1)); frame(15, number(1) + b'\\1' + b'\\377' * 600)",
    "task(True, ['in'], option('delete')); frame(14, number(1) + b'\\1' + text(b'../../beside'))",
    "task(True, ['in'], option('delete')); frame(14, number(99) + b'\\1' + text(b'x'))",
    "task(True, ['in'], option('remove-source-files')); frame(16, number(1) + b'\\77\\1')",
    "task(True, ['in'], option('remove-source-files')); frame(16, number(99) + b'\\0\\1')",
    "task(True, ['in'], option('remove-source-files')); [frame(16, number(n) + bytes([k, 7])) for n in range(9) for k in range(9)]",
    "frame(99, b'x')",
    "out.write(b'\\377\\377\\377\\377\\1'); out.flush()",
    "frame(1, b'[]')",
    "pass",
];

#[test]
fn a_hostile_near_end_stays_inside() {
    for send in CASES {
        let key = key("");
        let area = key.root.parent().unwrap().to_owned();
        symlink(&area, key.root.join("up")).unwrap();
        symlink(area.join("outside"), key.root.join("file")).unwrap();
        fs::create_dir(key.root.join("in")).unwrap();
        fs::write(key.root.join("in/own"), "own").unwrap();
        symlink("../../beside", key.root.join("in/deep")).unwrap();
        let words =
            format!("['{}', 'agent', '--root', '{}']", program().display(), key.root.display());
        let script = NEAR
            .replace("WIRE", super::WIRE)
            .replace("AGENT", &words)
            .replace("SEND", send)
            .replace("OUT", &area.join("made").display().to_string());
        let output =
            Command::new("timeout").args(["30", "python3", "-c", &script]).output().unwrap();
        let run = Run::new(format!("agent < {send}"), output.clone());
        assert_eq!(run.code, 0, "the agent hangs: {run}");
        key.is_whole(&run);
        for secret in [&b"never told"[..], b"root:"] {
            let found = output.stdout.windows(secret.len()).any(|part| part == secret);
            assert!(!found, "{send}: {run}");
        }
        assert_eq!(fs::read(key.root.join("in/own")).unwrap_or_default(), b"own", "{run}");
    }
}

/// A comparison reads, below the directory; `cp` writes to what symlinks at the target lead to.
#[test]
fn other_commands() {
    let key = key("--read-only");
    let area = key.root.parent().unwrap().to_owned();
    fs::create_dir_all(key.root.join("x/a")).unwrap();
    fs::write(key.root.join("x/a/f"), "new").unwrap();
    for root in [key.case.src(), key.root.join("x")] {
        ["a/f", "a", ""]
            .iter()
            .for_each(|name| grow::set_mtime(&root.join(name), 1_700_000_000, 0));
    }
    symlink("../beside", key.root.join("rel")).unwrap();
    symlink(&area, key.root.join("up")).unwrap();
    for (line, code, words) in [
        ("verify SRC h:x", 0, &[][..]),
        ("verify h:/x SRC", 0, &[]),
        ("verify -f '- g' --exclude 'h*' h:/x SRC", 0, &[]),
        ("verify h:x/a SRC", 1, &[]),
        ("verify SRC h:../beside", 2, &["leads out", "--root"]),
        ("verify SRC h:rel/", 2, &["leads out"]),
        ("verify SRC h:up/beside", 2, &["leads out"]),
        ("cp h:x/a/f DST", 1, &["does not take cp", "hint: hakobu sync"]),
        ("cp -r SRC/a h:y", 1, &["does not take cp"]),
    ] {
        let with_shell = line.replacen(' ', &format!(" -e {} ", key.shell), 1);
        let run = key.case.run_line(&with_shell);
        assert_eq!(run.code, code, "{run}");
        run.says(words);
        key.is_whole(&run);
    }
    let key = self::key("--write-only");
    // Hashes of what is there are not told, either.
    for (key, is_told) in [(&key, false), (&self::key(""), true)] {
        let content: Vec<u8> = (0..50_000_u32).flat_map(u32::to_le_bytes).collect();
        fs::write(key.case.src().join("a/f"), &content).unwrap();
        fs::create_dir(key.root.join("a")).unwrap();
        fs::write(key.root.join("a/f"), &content).unwrap();
        let run = key.run("sync -rI --no-whole-file --stats SRC/ h:.");
        run.ok();
        let was_told = run.out().contains("\nMatched data: 200,000 bytes\n");
        assert_eq!(was_told, is_told, "{run}");
    }
    let run = key.case.run_line(&format!("verify -e {} SRC h:.", key.shell));
    assert_eq!(run.code, 2, "{run}");
    run.says(&["only takes files"]);
}
