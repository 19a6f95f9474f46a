//! Owners stored in metadata, and setuid bits; symlinks that are kept, and verified.

use super::server::{Server, Stage, counts};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

const FILES: [(&str, u32, u32, u32); 4] = [
    ("plain", 0o644, 1234, 1235),
    ("suid", 0o4755, 1234, 1235),
    ("sgid", 0o2755, 1234, 1235),
    ("both", 0o6711, 1234, 1235),
];

fn stage() -> Stage {
    let stage = Stage::new();
    for (name, mode, uid, gid) in FILES {
        stage.source(name, 10);
        let path = stage.src().join(name);
        chown(&path, Some(uid), Some(gid)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    stage
}

/// Mode, owner and group of all files, down by these options into an empty folder; and a second
/// run, which has nothing to do.
fn down(server: &Server<'_>, options: &str) -> Vec<(&'static str, u32, u32, u32)> {
    let dst = server.stage.dst();
    fs::remove_dir_all(&dst).unwrap();
    fs::create_dir(&dst).unwrap();
    server.run(&format!("sync {options} s3://bkt/ DST/")).ok();
    idle(server, &format!("sync {options} s3://bkt/ DST/"));
    found(server)
}

fn found(server: &Server<'_>) -> Vec<(&'static str, u32, u32, u32)> {
    let of = |(name, ..): (&'static str, u32, u32, u32)| {
        let there = fs::metadata(server.stage.dst().join(name)).unwrap();
        (name, there.mode() & 0o7777, there.uid(), there.gid())
    };
    FILES.map(of).to_vec()
}

/// A run that has nothing to do.
#[track_caller]
fn idle(server: &Server<'_>, line: &str) {
    let run = server.run(&format!("{line} -i"));
    assert_eq!(run.ok().out(), "", "{run}");
}

/// A run that moves no content and sets the attributes of so many entries.
#[track_caller]
fn sets(server: &Server<'_>, line: &str, count: usize) {
    let run = server.run(&format!("{line} -i"));
    let lines = run.ok().items();
    assert!(lines.len() == count && lines.iter().all(|line| line.starts_with('.')), "{run}");
}

#[test]
fn owners_come_back_and_setuid_goes_with_them() {
    let stage = stage();
    let server = stage.serve("");
    server.run("sync -a SRC/ s3://bkt/").ok();
    idle(&server, "sync -a SRC/ s3://bkt/");
    let head = server.run("head s3://bkt/suid");
    let text = head.ok().out();
    assert!(text.contains("1234") && text.contains("1235"), "{head}");
    assert_eq!(down(&server, "-a"), FILES.to_vec());
    assert_eq!(down(&server, "-rtpog"), FILES.to_vec());
    // Without owners no bit that speaks for them.
    let plain = FILES.map(|(name, mode, ..)| (name, mode & 0o777, 0, 0)).to_vec();
    assert_eq!(down(&server, "-rtp"), plain);
    assert_eq!(down(&server, "-a --no-o --no-g"), plain);
    let of_root = FILES.map(|(name, mode, _, gid)| (name, mode & 0o777, 0, gid)).to_vec();
    assert_eq!(down(&server, "-a --no-o"), of_root);
    let of_group = FILES.map(|(name, mode, uid, _)| (name, mode & 0o4777, uid, 0)).to_vec();
    assert_eq!(down(&server, "-a --no-g"), of_group);
    // Owners only where they are asked for.
    let times = FILES.map(|(name, ..)| (name, 0o644, 0, 0)).to_vec();
    assert_eq!(down(&server, "-rt"), times);
    // Files with current content only get owner and mode.
    sets(&server, "sync -a s3://bkt/ DST/", 4);
    assert_eq!(found(&server), FILES.to_vec());
    idle(&server, "sync -a s3://bkt/ DST/");
    // A second run that asks for less takes nothing away but what it would not have set.
    server.run("sync -rtp s3://bkt/ DST/").ok();
    idle(&server, "sync -rtp s3://bkt/ DST/");
}

/// Objects that say nothing of their owner (uploaded without `-o`).
#[test]
fn without_an_owner_in_metadata_there_is_no_setuid() {
    let stage = stage();
    let server = stage.serve("");
    server.run("sync -rtp SRC/ s3://bkt/").ok();
    idle(&server, "sync -rtp SRC/ s3://bkt/");
    // To ask for owners now is not a reason to write all objects anew.
    idle(&server, "sync -a SRC/ s3://bkt/");
    let plain = FILES.map(|(name, mode, ..)| (name, mode & 0o777, 0, 0)).to_vec();
    assert_eq!(down(&server, "-a"), plain);
    assert_eq!(down(&server, "-rtp"), plain);
}

/// A changed owner alone: metadata, not content.
#[test]
fn a_changed_owner_is_metadata() {
    let stage = stage();
    let server = stage.serve("");
    server.run("sync -a SRC/ s3://bkt/").ok();
    chown(stage.src().join("plain"), Some(77), None).unwrap();
    sets(&server, "sync -a SRC/ s3://bkt/", 1);
    idle(&server, "sync -a SRC/ s3://bkt/");
    let down = down(&server, "-a");
    assert_eq!(down[0], ("plain", 0o644, 77, 1235));
    server.run("sync -rg SRC/ s3://bkt/g/").ok();
    let head = server.run("head s3://bkt/g/plain").out();
    assert!(head.contains("1235") && !head.contains("uid"), "{head}");
}

// Symlinks that are kept, with `--checksum`; and `verify`, which follows them and ends on request.

#[test]
fn kept_links_are_compared_by_their_text() {
    let stage = Stage::new();
    stage.source("file", 1000);
    symlink("file", stage.src().join("link")).unwrap();
    symlink("/nowhere", stage.src().join("dangling")).unwrap();
    let server = stage.serve("");
    server.run("sync -rl --json SRC/ s3://bkt/").ok();
    server.run("sync -rl s3://bkt/ DST/").ok();
    for line in ["sync -rlc --json SRC/ s3://bkt/", "sync -rlc --json s3://bkt/ DST/"] {
        let run = server.run(line);
        run.ok();
        counts(&run, &[("files", 0), ("failed", 0), ("skipped", 3)]);
    }
    // As long as before, but another one.
    std::fs::remove_file(stage.src().join("link")).unwrap();
    symlink("elif", stage.src().join("link")).unwrap();
    let run = server.run("sync -rlc --json SRC/ s3://bkt/");
    run.ok();
    counts(&run, &[("failed", 0), ("skipped", 2)]);
    assert_eq!(stage.object("link").unwrap(), b"elif");
    let run = server.run("sync -rlc --json s3://bkt/ DST/");
    run.ok();
    counts(&run, &[("failed", 0), ("skipped", 2)]);
    let link = std::fs::read_link(stage.dst().join("link")).unwrap();
    assert_eq!(link.to_str(), Some("elif"));
}

#[test]
fn verify_looks_through_links_on_either_side() {
    let stage = Stage::new();
    let bytes = stage.source("file", 1000);
    std::fs::write(stage.src().join("link"), &bytes).unwrap();
    stage.seed();
    std::fs::remove_file(stage.src().join("link")).unwrap();
    symlink("file", stage.src().join("link")).unwrap();
    let server = stage.serve("");
    for line in ["verify SRC s3://bkt/", "verify s3://bkt/ SRC"] {
        server.run(line).ok();
    }
    std::fs::write(stage.src().join("file"), vec![7; 1000]).unwrap();
    for line in ["verify SRC s3://bkt/", "verify s3://bkt/ SRC"] {
        let run = server.run(line);
        run.expect(1);
        assert_eq!(run.out().matches("differs: ").count(), 2, "{run}");
    }
}

#[test]
fn verify_ends_when_it_is_asked_to() {
    let stage = Stage::new();
    for number in 0..40 {
        stage.source(&format!("f{number:02}"), 100_000);
    }
    let server = stage.serve("");
    server.run("sync -r --checksum-algorithm=SHA256 SRC/ s3://bkt/").ok();
    let server = stage.serve("--latency 300ms");
    let begun = server.begin("verify -j 1 SRC s3://bkt/");
    server.wait_for("HeadObject", 2);
    begun.end(Signal::INT).expect(2).says(&["stopped"]);
    assert!(server.succeeded("HeadObject") < 30);
}
