//! Downloads onto existing targets: symlinks, FIFOs, devices, files with another mode, standard output;
//! compared with cp and rsync on local files.

use super::server::{Server, Stage, contents, noise};
use crate::common::area::{Fs, Volume};
use crate::common::must;
use rustix::process::Signal;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// More than a pipe holds, and more than is received in one piece.
const LARGE: usize = 9 << 20;

fn stage() -> Stage {
    let stage = Stage::new();
    stage.source("f", 100_000);
    stage.source("large", LARGE);
    stage.source("d/x", 10);
    stage.seed();
    stage
}

fn node(path: &Path, kind: &[&str]) {
    must(Command::new("mknod").arg(path).args(kind));
}

fn null_device(path: &Path) {
    node(path, &["c", "1", "3"]);
}

/// Reads a FIFO to its end.
fn reader(fifo: &Path) -> Receiver<Vec<u8>> {
    let (fifo, (told, bytes)) = (fifo.to_owned(), channel());
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        File::open(fifo).unwrap().read_to_end(&mut bytes).unwrap();
        // A test that has failed waits no longer.
        let _ = told.send(bytes);
    });
    bytes
}

fn all_of(reader: &Receiver<Vec<u8>>) -> Vec<u8> {
    reader.recv_timeout(Duration::from_secs(20)).expect("nobody wrote into the FIFO")
}

/// Type and content of a target, for comparisons.
fn shown(path: &Path) -> String {
    let Ok(there) = fs::symlink_metadata(path) else { return "nothing".to_owned() };
    let kind = there.file_type();
    if kind.is_symlink() {
        let text = fs::read_link(path).unwrap();
        let text = text.file_name().unwrap().to_string_lossy().into_owned();
        return format!("symlink {text}");
    }
    if kind.is_dir() {
        return format!("folder {:?}", contents(path).into_keys().collect::<Vec<_>>());
    }
    let owner = format!("{:o} {} {}", there.mode() & 0o7777, there.uid(), there.gid());
    match kind.is_file() {
        true => format!("file of {} bytes, {owner}", there.size()),
        false => format!("fifo {} device {}, {owner}", kind.is_fifo(), kind.is_char_device()),
    }
}

/// Makes `x` at the target what a case is about; a reader where there has to be one.
type Make = fn(&Path) -> Option<Receiver<Vec<u8>>>;

const CASES: [(&str, Make); 8] = [
    ("nothing", |_| None),
    ("a symlink to a file", |dir| {
        fs::write(dir.join("file"), "old").unwrap();
        fs::set_permissions(dir.join("file"), fs::Permissions::from_mode(0o640)).unwrap();
        symlink("file", dir.join("x")).unwrap();
        None
    }),
    ("a symlink to a folder", |dir| {
        fs::create_dir(dir.join("file")).unwrap();
        symlink("file", dir.join("x")).unwrap();
        None
    }),
    ("a symlink to nothing", |dir| {
        symlink("file", dir.join("x")).unwrap();
        None
    }),
    ("a file of somebody", |dir| {
        fs::write(dir.join("x"), "old").unwrap();
        fs::set_permissions(dir.join("x"), fs::Permissions::from_mode(0o600)).unwrap();
        chown(dir.join("x"), Some(1234), Some(1235)).unwrap();
        None
    }),
    ("a device", |dir| {
        null_device(&dir.join("x"));
        None
    }),
    ("a symlink to a device", |dir| {
        null_device(&dir.join("file"));
        symlink("file", dir.join("x")).unwrap();
        None
    }),
    ("a FIFO", |dir| {
        node(&dir.join("x"), &["p"]);
        Some(reader(&dir.join("x")))
    }),
];

fn fresh(stage: &Stage, name: &str) -> PathBuf {
    let dir = stage.area.join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir(&dir).unwrap();
    dir
}

/// Result of a command on the target of a case: exit code, state of `x` and `file`, and the data that a
/// reader got.
fn outcome(
    stage: &Stage,
    make: Make,
    copy: impl FnOnce(&Path) -> i32,
) -> (bool, String, String, Option<Vec<u8>>) {
    let dir = fresh(stage, "case");
    let reader = make(&dir);
    let code = copy(&dir);
    let got = reader.as_ref().map(all_of);
    (code == 0, shown(&dir.join("x")), shown(&dir.join("file")), got)
}

#[test]
fn an_object_is_copied_to_a_name_as_cp_copies_a_file() {
    let stage = stage();
    let server = stage.serve("");
    for name in ["f", "large"] {
        let file = stage.src().join(name);
        let whole = fs::read(&file).unwrap();
        for (what, make) in CASES {
            let theirs = outcome(&stage, make, |dir| {
                let mut command = Command::new("cp");
                command.arg(&file).arg(dir.join("x"));
                command.output().unwrap().status.code().unwrap()
            });
            let local = outcome(&stage, make, |dir| {
                server_less(&server, &format!("cp SRC/{name} {}", dir.join("x").display()))
            });
            let ours = outcome(&stage, make, |dir| {
                server.run(&format!("cp s3://bkt/{name} {}", dir.join("x").display())).code
            });
            assert_eq!(local, theirs, "{name} onto {what}, from here");
            assert_eq!(ours, theirs, "{name} onto {what}, from the store");
            if let Some(got) = ours.3 {
                assert!(got == whole, "{name} onto {what}: {} bytes", got.len());
            }
            // A move leaves the same behind, and the object only where it could not be written.
            stage.seed();
            let moved = outcome(&stage, make, |dir| {
                server.run(&format!("mv s3://bkt/{name} {}", dir.join("x").display())).code
            });
            assert_eq!(moved.0, theirs.0, "{name} moved onto {what}");
            assert_eq!(moved.3, theirs.3, "{name} moved onto {what}");
            assert_eq!(kind_of(&moved.1), kind_of(&theirs.1), "{name} moved onto {what}");
            assert_eq!(stage.object(name).is_none(), moved.0, "{name} moved onto {what}");
            stage.seed();
        }
    }
}

/// Kind of a target without its mode (a move keeps that of the source).
fn kind_of(shown: &str) -> &str {
    shown.split(',').next().unwrap()
}

/// Runs a line without any store.
fn server_less(server: &Server<'_>, line: &str) -> i32 {
    // The option is refused where no argument is in S3, so it is given by the environment.
    let src = server.stage.src();
    let line = line.replace("SRC", src.to_str().unwrap());
    let mut command = Command::new(crate::common::program());
    command.args(line.split_whitespace()).env("XDG_STATE_HOME", server.stage.area.join("home"));
    command.output().unwrap().status.code().unwrap()
}

/// Below a folder a symlink is replaced by the file, and what it names stays; rsync replaces
/// devices and FIFOs as well, cp writes into them.
#[test]
fn below_a_folder_a_symlink_is_replaced() {
    let stage = stage();
    let server = stage.serve("");
    let make = |dir: &Path| {
        fs::write(stage.area.join("outside"), "mine").unwrap();
        for folder in ["d", "e"] {
            fs::create_dir(dir.join(folder)).unwrap();
        }
        symlink(stage.area.join("outside"), dir.join("d/x")).unwrap();
        null_device(&dir.join("f"));
        node(&dir.join("large"), &["p"]);
    };
    let rsync = |dir: &Path| {
        let mut command = Command::new("rsync");
        command.args(["-rt", "-I"]).arg(format!("{}/", stage.src().display())).arg(dir);
        command.output().unwrap().status.code().unwrap()
    };
    let with = |line: &str| {
        let line = line.to_owned();
        let server = &server;
        move |dir: &Path| server.run(&line.replace("DIR", dir.to_str().unwrap())).code
    };
    let outcome = |copy: &dyn Fn(&Path) -> i32| {
        let dir = fresh(&stage, "case");
        make(&dir);
        assert_eq!(copy(&dir), 0);
        assert_eq!(fs::read(stage.area.join("outside")).unwrap(), b"mine");
        ["d/x", "f", "large"].map(|name| kind_of(&shown(&dir.join(name))).to_owned())
    };
    let theirs = outcome(&rsync);
    assert_eq!(outcome(&with("sync -rt -I s3://bkt/ DIR")), theirs);
    assert_eq!(outcome(&with("sync -r s3://bkt/ DIR")), theirs);
    // One object to a name, too.
    for name in ["f", "large", "d/x"] {
        let dir = fresh(&stage, "case");
        make(&dir);
        let target = dir.join(name);
        server.run(&format!("sync s3://bkt/{name} {}", target.display())).ok();
        assert!(fs::symlink_metadata(&target).unwrap().is_file(), "{}", shown(&target));
        assert_eq!(fs::read(stage.area.join("outside")).unwrap(), b"mine");
    }
    // cp writes into nodes wherever they are.
    for line in ["cp -r s3://bkt/ DIR", "cp s3://bkt/* DIR", "mv s3://bkt/* DIR"] {
        let dir = fresh(&stage, "case");
        make(&dir);
        let reader = reader(&dir.join("large"));
        server.run(&line.replace("DIR", dir.to_str().unwrap())).ok();
        assert!(all_of(&reader) == noise(5, LARGE), "{line}");
        assert!(fs::symlink_metadata(dir.join("f")).unwrap().file_type().is_char_device());
        assert!(fs::symlink_metadata(dir.join("large")).unwrap().file_type().is_fifo());
        assert_eq!(fs::read(stage.area.join("outside")).unwrap(), b"mine", "{line}");
    }
    assert!(stage.object("f").is_none() && stage.object("large").is_none());
}

/// A reader that goes away before everything was written: the object stays.
#[test]
fn a_move_into_a_fifo_that_breaks_keeps_the_object() {
    let stage = stage();
    let server = stage.serve("");
    let fifo = stage.dst().join("fifo");
    node(&fifo, &["p"]);
    for name in ["f", "large"] {
        let path = fifo.clone();
        std::thread::spawn(move || {
            File::open(path).unwrap().read_exact(&mut [0; 10]).unwrap();
        });
        let run = server.run(&format!("mv s3://bkt/{name} DST/fifo"));
        run.expect(1).says(&["fifo", "Broken pipe"]);
        assert!(stage.object(name).is_some(), "{run}");
        assert!(fs::symlink_metadata(&fifo).unwrap().file_type().is_fifo());
    }
    // One without a reader is waited for, until the first signal.
    for signal in [Signal::TERM, Signal::INT] {
        let begun = server.begin("mv s3://bkt/f DST/fifo");
        std::thread::sleep(Duration::from_millis(400));
        let run = begun.end(signal);
        assert_ne!(run.code, 0, "{run}");
        assert!(stage.object("f").is_some(), "{run}");
    }
}

#[test]
fn a_dash_is_standard_input_or_output() {
    let stage = stage();
    let server = stage.serve("");
    for name in ["f", "large"] {
        let run = server.run(&format!("cp s3://bkt/{name} -"));
        run.ok();
        assert!(run.stdout == fs::read(stage.src().join(name)).unwrap(), "{name}");
    }
    let bytes = noise(1, LARGE);
    server.run_fed("cp - s3://bkt/in", &bytes).ok();
    assert!(stage.object("in") == Some(bytes.clone()));
    server.run_fed("cp -n - s3://bkt/in", b"other").ok().says(&["already exists and is kept"]);
    assert!(stage.object("in") == Some(bytes));
    let lines = stage.area.join("lines");
    fs::write(&lines, "cp s3://bkt/d/x -\n").unwrap();
    let run = server.run(&format!("run {}", lines.display()));
    assert_eq!(run.ok().stdout, fs::read(stage.src().join("d/x")).unwrap());
    fs::write(&lines, "cp - s3://bkt/in2\n").unwrap();
    server.run(&format!("run {}", lines.display())).expect(1).says(&["standard input"]);
    for (line, word) in [
        ("cp -r s3://bkt/d -", "-r"),
        ("cp -v s3://bkt/f -", "--verbose"),
        ("cp s3://bkt/d/* -", "wildcard"),
        ("cp s3://bkt/f s3://bkt/d/x -", "one object"),
        ("cp - SRC/f s3://bkt/p/", "one object"),
        ("mv s3://bkt/f -", "./-"),
    ] {
        let run = server.run(line);
        run.expect(2);
        assert!(run.err().contains(word) || word == "-r", "{run}");
        assert_eq!(run.out(), "", "{run}");
    }
    server.run("cp s3://bkt/none -").expect(1).says(&["none"]);
    assert!(!Path::new("-").exists());
}

// A full disk or file size limit during a download: it stops with a message, and files under their final
// names are complete.

#[test]
fn a_full_disk_ends_a_download() {
    let Some(volume) = Volume::new(Fs::Ext4, 32, &[], "full disk") else { return };
    let stage = Stage::new();
    stage.source("large", 24 << 20);
    for number in 0..30 {
        stage.source(&format!("s{number:02}"), 400_000);
    }
    stage.seed();
    let server = stage.serve("");
    let target = volume.join("dst");
    std::fs::create_dir(&target).unwrap();
    // There is something that must not be lost.
    let old = contents(&stage.src())[std::path::Path::new("s05")].clone();
    std::fs::write(target.join("s05"), &old[1..]).unwrap();
    volume.fill(4 << 20);
    for _ in 0..2 {
        let line = format!("sync -r --json --part-size=5MiB s3://bkt/ {}/", target.display());
        let run = server.run(&line);
        run.expect(11);
        let said = run.err() + &run.out();
        assert!(said.contains("No space left on device"), "{run}");
        assert!(run.err().lines().count() <= 10, "a full disk is one problem: {run}");
        let source = contents(&stage.src());
        for (name, bytes) in contents(&target) {
            let whole = source.get(&name) == Some(&bytes);
            assert!(whole || (name.ends_with("s05") && bytes == old[1..]), "{name:?} is half");
        }
        assert!(!target.join("large").exists());
    }
    std::fs::remove_file(volume.join("ballast")).unwrap();
    let line = format!("cp s3://bkt/s0* {}/", target.display());
    server.run(&line).ok();
    assert_eq!(std::fs::read(target.join("s05")).unwrap(), old);
}

/// Room runs out for a large object only: the same, with `--resume`, whose file is kept.
#[test]
fn a_full_disk_keeps_what_can_be_resumed() {
    let Some(volume) = Volume::new(Fs::Ext4, 32, &[], "full disk") else { return };
    let stage = Stage::new();
    stage.source("large", 20 << 20);
    stage.seed();
    let server = stage.serve("");
    let ballast = volume.fill(8 << 20);
    let target = volume.join("large");
    let line = format!("cp --resume --part-size=5MiB s3://bkt/large {}", target.display());
    server.run(&line).expect(1).says(&["No space left on device"]);
    assert!(!target.exists());
    std::fs::remove_file(ballast).unwrap();
    server.run(&line).ok();
    assert!(std::fs::read(&target).ok() == stage.object("large"));
    let strays = std::fs::read_dir(volume.path())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains("hakobu"));
    assert_eq!(strays.count(), 0);
}
