//! Owners stored in metadata, and setuid bits.

use crate::wire::server::{Server, Stage};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

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
