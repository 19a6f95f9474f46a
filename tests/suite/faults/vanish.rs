//! Sources that change while they are read: deleted, grown, truncated, replaced. Any exit code of rsync is
//! accepted; the target may lack them, but never be wrong.

use crate::common::area::{Area, Fs};
use crate::common::case::{Case, case};
use crate::common::diff::{Fields, diff};
use crate::common::grow::age;
use crate::common::snapshot::{Snapshot, show};
use crate::common::{first_seed, have, program, remove_tree, rounds};
use crate::faults::start;
use fastrand::Rng;
use rustix::fs::FileType;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// Every file holds its own name again and again, so that any copy can be checked by itself.
fn content(name: &str, size: usize) -> Vec<u8> {
    let mut content = format!("{name}\n").repeat(size / (name.len() + 1) + 1).into_bytes();
    content.truncate(size);
    content
}

fn tree(root: &Path, rng: &mut Rng) {
    for dir in 0..10 {
        let dir = root.join(format!("d{dir}"));
        std::fs::create_dir_all(&dir).unwrap();
        for file in 0..60 {
            let name = format!("f{file}");
            let size = if file == 7 { 2_000_000 } else { rng.usize(..30_000) };
            std::fs::write(dir.join(&name), content(&name, size)).unwrap();
        }
    }
}

/// Runs `disturb` again and again while the line runs; then checks, and runs it once more in peace.
fn disturbed(line: &str, disturb: impl Fn(&Path, &mut Rng) + Sync) {
    let first = first_seed(1);
    for seed in first..first + rounds(8) {
        case(line, |c| {
            let mut rng = Rng::with_seed(seed);
            tree(&c.src(), &mut rng);
            let done = AtomicBool::new(false);
            let (source, disturb) = (c.src(), &disturb);
            let run = std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut rng = Rng::with_seed(seed);
                    while !done.load(Ordering::Relaxed) {
                        disturb(&source, &mut rng);
                    }
                });
                let run = c.run();
                done.store(true, Ordering::Relaxed);
                run
            });
            assert!([0, 23, 24].contains(&run.code), "seed {seed}: {run}");
            assert!(run.code == 0 || !run.stderr.is_empty(), "seed {seed}: {run}");
            for (path, entry) in &Snapshot::of(&c.dst()).entries {
                if entry.kind == FileType::RegularFile {
                    whole(&c.dst(), path, seed);
                }
            }
            c.run_line(&format!("{line} --delete")).ok();
            let wrong =
                diff(&Snapshot::of(&c.src()), &Snapshot::of(&c.dst()), &Fields::NO_TIMES, 10);
            assert!(wrong.is_empty(), "seed {seed}, in peace: {wrong:?}");
        });
    }
}

/// A copied file has the pattern of its name from its first byte to its last.
fn whole(root: &Path, path: &[u8], seed: u64) {
    let path = String::from_utf8(path.to_vec()).unwrap();
    let name = path.rsplit('/').next().unwrap();
    let bytes = std::fs::read(root.join(&path)).unwrap();
    let right = content(name, bytes.len());
    assert!(bytes == right, "seed {seed}: wrong content in {}", show(path.as_bytes()));
}

fn any(root: &Path, rng: &mut Rng) -> std::path::PathBuf {
    root.join(format!("d{}/f{}", rng.u8(..10), rng.u8(..60)))
}

#[test]
fn files_that_vanish() {
    disturbed("sync -a -j 4 SRC/ DST", |root, rng| {
        let _ = std::fs::remove_file(any(root, rng));
    });
}

#[test]
fn directories_that_vanish() {
    disturbed("sync -a -j 4 SRC/ DST", |root, rng| {
        let _ = std::fs::remove_dir_all(root.join(format!("d{}", rng.u8(..10))));
        std::thread::sleep(std::time::Duration::from_millis(5));
    });
}

#[test]
fn files_that_grow() {
    disturbed("sync -a -j 4 SRC/ DST", |root, rng| {
        let path = any(root, rng);
        let Ok(size) = std::fs::metadata(&path).map(|meta| meta.len() as usize) else { return };
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let more = content(&name, size + 5000).split_off(size);
        let mut file = OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(&more).unwrap();
    });
}

/// A source that grows while it is copied stays, with a message and a code that says so.
#[test]
fn a_source_that_grows_while_it_is_moved_is_kept_aloud() {
    let volumes = [
        ("sync -a --remove-source-files --bwlimit=4M SRC/ DST", 23),
        ("sync -a --remove-source-files --inplace --bwlimit=4M SRC/ DST", 23),
        ("mv --bwlimit=4M -T SRC DST", 1),
    ];
    for (line, code) in volumes {
        // mv on one file system would rename.
        let Some(to) = Area::new(Fs::Ext4, line) else { continue };
        let c = Case::new(line, Area::tmpfs(), to);
        std::fs::create_dir(c.src()).unwrap();
        let (large, at_rest) = (c.src().join("large"), c.src().join("rest"));
        std::fs::write(&large, content("large", 6 << 20)).unwrap();
        std::fs::write(&at_rest, "rest").unwrap();
        age(&c.src());
        let running = start(&c, line);
        std::thread::sleep(std::time::Duration::from_millis(700));
        let mut file = OpenOptions::new().append(true).open(&large).unwrap();
        file.write_all(b"more").unwrap();
        drop(file);
        let run = running.wait();
        run.expect(code).says(&["large", "changed while it was copied"]);
        assert_eq!(std::fs::metadata(&large).unwrap().len(), (6 << 20) + 4, "{run}");
        assert!(!at_rest.exists(), "{run}");
        // At rest it is moved.
        let again = line.replace("--bwlimit=4M ", "").replace("-T SRC", "-T SRC/large");
        let again = again.replace("-T SRC/large DST", "-T SRC/large DST/large");
        c.run_line(&again).ok();
        assert!(!large.exists());
        assert_eq!(std::fs::metadata(c.dst().join("large")).unwrap().len(), (6 << 20) + 4);
    }
}

#[test]
fn files_that_shrink() {
    disturbed("sync -a -j 4 SRC/ DST", |root, rng| {
        if let Ok(file) = OpenOptions::new().write(true).open(any(root, rng)) {
            let size = file.metadata().unwrap().len();
            file.set_len(size / 2).unwrap();
        }
    });
}

#[test]
fn files_that_are_renamed() {
    disturbed("sync -aH -j 4 SRC/ DST", |root, rng| {
        let path = any(root, rng);
        let to = root.join(format!("d{}", rng.u8(..10))).join(path.file_name().unwrap());
        let _ = std::fs::rename(path, to);
    });
}

/// A file that turns into something else between its listing and its opening.
#[test]
fn files_that_become_links_and_pipes() {
    let line = "sync -a -j 4 SRC/ DST";
    let first = first_seed(1);
    for seed in first..first + rounds(4) {
        case(line, |c| {
            let mut rng = Rng::with_seed(seed);
            tree(&c.src(), &mut rng);
            let secret = c.place("secret");
            std::fs::write(&secret, "SECRET").unwrap();
            let done = AtomicBool::new(false);
            let source = c.src();
            let run = std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        let path = any(&source, &mut rng);
                        let _ = std::fs::remove_file(&path);
                        if rng.bool() {
                            let _ = std::os::unix::fs::symlink(&secret, &path);
                        } else {
                            use rustix::fs::{CWD, Mode, mknodat};
                            let _ = mknodat(CWD, &path, FileType::Fifo, Mode::RUSR, 0);
                        }
                    }
                });
                let run = c.run(); // a pipe that is opened for reading would hang here
                done.store(true, Ordering::Relaxed);
                run
            });
            assert!([0, 23, 24].contains(&run.code), "seed {seed}: {run}");
            for (path, entry) in &Snapshot::of(&c.dst()).entries {
                if entry.kind == FileType::RegularFile {
                    whole(&c.dst(), path, seed);
                }
            }
        });
    }
}

/// Every opening in turn finds nothing: one of them is a source's, and that is code 24.
#[test]
fn a_file_that_is_gone_at_its_opening_is_vanished() {
    if !have("strace", "a vanished file") {
        return;
    }
    case("sync -a -j 1 SRC/ DST", |c| {
        std::fs::create_dir(c.src()).unwrap();
        std::fs::write(c.src().join("one"), "x").unwrap();
        std::fs::write(c.src().join("other"), "x").unwrap();
        age(&c.src());
        let mut seen = Vec::new();
        for moment in 1..60 {
            remove_tree(&c.dst());
            let mut command = Command::new("strace");
            // Cargo names folders of libraries, each of which is searched by a call of its own.
            command.env_remove("LD_LIBRARY_PATH");
            command.args(["-f", "-qq", "-o", "/dev/null", "-e"]);
            command.arg(format!("inject=openat:error=ENOENT:when={moment}"));
            command.arg(program()).args(["sync", "-a", "-j", "1"]);
            let output = command.arg(c.src().join("")).arg(c.dst()).output().unwrap();
            let code = output.status.code().unwrap();
            let same = diff(&Snapshot::of(&c.src()), &Snapshot::of(&c.dst()), &Fields::ALL, 3);
            assert!(code != 0 || same.is_empty(), "opening {moment}: {same:?}");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(code != 24 || said.contains("vanished"), "{said}");
            seen.push(code);
        }
        assert!(seen.contains(&24), "no vanished file among {seen:?}");
    });
}
