//! Names in the output are escaped for the terminal like in rsync.

use crate::common::case::case;
use crate::common::grow::set_mtime;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const NAMES: &[&[u8]] = &[
    b"plain",
    b"with space ",
    b"line\nbreak",
    b"tab\there",
    b"bell\x07",
    b"\xff\xfe not UTF-8",
    b"\xe9\x81\x8b\xe3\x81\xb6",
    b"\xc3\xa9t\xc3\xa9",
    b"back\\slash",
    b"looks\\#012escaped",
    b"-n",
];

fn odd(root: &Path) {
    std::fs::create_dir(root).unwrap();
    for name in NAMES {
        let path = root.join(OsStr::from_bytes(name));
        std::fs::write(&path, name).unwrap();
        set_mtime(&path, 1_500_000_000, 0);
        let link = [name, &b".link"[..]].concat();
        std::os::unix::fs::symlink(OsStr::from_bytes(name), root.join(OsStr::from_bytes(&link)))
            .unwrap();
    }
}

#[test]
fn odd_names_are_escaped_as_rsync_does() {
    for line in ["sync -a -i SRC/ DST", "sync -a -n -i SRC/ DST"] {
        case(line, |c| {
            odd(&c.src());
            [c.dst(), c.oracle_dst()].iter().for_each(|dir| std::fs::create_dir(dir).unwrap());
            assert_eq!(c.run().ok().items(), c.oracle().ok().items());
        });
    }
}

#[test]
fn odd_names_are_deleted_and_itemized() {
    case("sync -a -i --delete SRC/ DST", |c| {
        std::fs::create_dir(c.src()).unwrap();
        odd(&c.dst());
        odd(&c.oracle_dst());
        set_mtime(&c.src(), 1_500_000_000, 0);
        assert_eq!(c.run().ok().items(), c.oracle().ok().items());
        c.target_is_oracles(&crate::common::diff::Fields::ALL);
    });
}

#[test]
fn verbose_names_every_file() {
    case("sync -av SRC/ DST", |c| {
        odd(&c.src());
        let (ours, theirs) = (c.run(), c.oracle());
        let names = |lines: Vec<String>| {
            let kept = |l: &String| !l.starts_with("sen") && !l.starts_with("total");
            lines.into_iter().filter(kept).collect::<Vec<_>>()
        };
        let ours = names(ours.ok().sorted());
        for line in names(theirs.ok().sorted()) {
            if line != "created directory" && !line.starts_with("created directory") {
                assert!(ours.contains(&line), "{line} is missing in {ours:?}");
            }
        }
    });
}

#[test]
fn list_only_reads_nothing_and_writes_nothing() {
    for line in ["sync -a --list-only SRC/", "sync --list-only SRC/", "sync -r --list-only SRC/"] {
        case(line, |c| {
            crate::oracle::stage::set(c);
            let (ours, theirs) = (c.run(), c.oracle());
            assert_eq!(ours.ok().sorted(), theirs.ok().sorted(), "{ours}\n{theirs}");
        });
    }
}
