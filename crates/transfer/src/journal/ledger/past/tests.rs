//! Evaluation of records, without a file system.

use super::*;
use hakobu_core::unit::Kind;

fn file(size: u64, mtime_s: i64, ctime_s: i64) -> Meta {
    let at = |s| Time { s, ns: 0 };
    Meta {
        dev: 7,
        ino: 8,
        atime: at(0),
        ctime: at(ctime_s),
        ..Meta::bare(Kind::File, size, at(mtime_s))
    }
}

/// A run on a file system whose clock is an hour ahead: begun at 5000 of the local clock, last heartbeat at 5100.
fn past(life: Life) -> Past {
    let scope = Scope { sources: vec![b"/s".to_vec()], recurse: true, ..Scope::default() };
    let lines = [
        head(&scope).unwrap(),
        device(7, Time { s: 8600, ns: 1 }, Time { s: 5000, ns: 0 }).unwrap(),
    ];
    let (stored, devices) = parse(&lines.concat());
    Past { path: PathBuf::new(), life, heartbeat: Time { s: 5100, ns: 0 }, stored, devices }
}

#[test]
fn half_written_files_are_told_by_size_times_and_birth() {
    let source = file(100, 1000, 1000);
    let born = |s| Some(Time { s, ns: 0 });
    for (target, birth, dead, alive, what) in [
        (file(50, 8650, 8650), born(8650), true, true, "written when the run was at it"),
        (file(50, 8650, 8650), None, true, true, "the same without a birth"),
        (file(0, 8600, 8600), born(8600), true, true, "at the very beginning, in whole seconds"),
        (file(50, 8650, 8650), Some(Time { s: 8600, ns: 2 }), true, true, "born right after it"),
        (file(50, 8650, 8650), Some(Time { s: 8600, ns: 1 }), true, true, "born in the same tick"),
        (file(50, 8704, 8704), born(8704), true, true, "just before the end"),
        (file(50, 8720, 8720), born(8720), false, true, "after the end"),
        (file(50, 8720, 8720), born(8650), false, true, "finished, then cut by its user"),
        (file(50, 8650, 8650), born(8000), false, false, "changed meanwhile, but older"),
        (file(50, 8650, 8650), Some(Time { s: 8599, ns: 999 }), false, false, "born just before"),
        (file(50, 8500, 8500), born(8500), false, false, "older than the run"),
        (file(100, 8650, 8650), born(8650), false, false, "not shorter"),
        (file(50, 900, 8650), born(8650), false, false, "whole copy of a source that grew since"),
        (file(50, 1000, 8650), born(8650), true, true, "cut by a power loss"),
    ] {
        for (life, expected) in [(Life::Dead, dead), (Life::Elsewhere, dead), (Life::Alive, alive)]
        {
            assert_eq!(past(life).made(&source, &target, birth), expected, "{what}, {life:?}");
        }
    }
}

#[test]
fn a_reboot_widens_the_time_by_what_a_power_loss_takes() {
    let source = file(100, 1000, 1000);
    let made = |s| past(Life::Rebooted).made(&source, &file(50, s, s), None);
    assert!(made(8700 + LOST_S) && !made(8700 + LOST_S + 1));
    // Device numbers changed: those of the record have no meaning.
    let moved = Meta { dev: 99, ..file(50, 8650, 8650) };
    assert!(past(Life::Rebooted).made(&source, &moved, None));
}

#[test]
fn lines_that_are_cut_off_do_not_count() {
    let scope = Scope { sources: vec![b"/s\xff".to_vec()], ..Scope::default() };
    let whole = [head(&scope).unwrap(), device(1, Time::now(), Time::now()).unwrap()].concat();
    for cut in 0..=whole.len() {
        let (stored, devices) = parse(&whole[..cut]);
        let first = whole.iter().position(|byte| *byte == b'\n').unwrap();
        assert_eq!(stored.is_some(), cut > first, "{cut}");
        assert_eq!(devices.len(), usize::from(cut == whole.len()), "{cut}");
    }
    assert!(parse(b"{\"schema\":2}\n").0.is_none());
}

#[test]
fn paths_are_compared_by_components() {
    let target = |path: &str| StoredTarget { path: path.into(), dev: 0, ino: 0 };
    for (top, path, inside) in [
        ("/a/b", "/a/b", true),
        ("/a/b", "/a/b/c", true),
        ("/a/b", "/a/bc", false),
        ("/a/b", "/a", false),
        ("/", "/a", true),
    ] {
        assert_eq!(target(top).has(path), inside, "{top} {path}");
    }
}

#[test]
fn names_of_records_come_back() {
    let me = Owner { host: 1, boot: 2, pid: 3, start: 4 };
    let name = file_name(&me, 5);
    assert_eq!(owner(name.as_bytes()), Some(me));
    assert_eq!(owner(b"run-1-2-3-4-5.json"), None);
    assert_eq!(owner(b"seeds.json"), None);
}
