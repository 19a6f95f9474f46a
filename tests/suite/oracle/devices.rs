//! `--copy-devices`: the content of devices becomes that of files, as in rsync.

use super::meanings::{T, agree, file};
use crate::common::case::{Case, case};
use crate::common::diff::Fields;
use crate::common::grow::set_mtime;
use crate::common::machine::Loop;
use crate::common::{have_root, must};
use std::fs::{create_dir, read, remove_file};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::process::Command;

fn node(path: &Path, kind: &str, rdev: u64) {
    let (major, minor) = (rustix::fs::major(rdev), rustix::fs::minor(rdev));
    let numbers = [major, minor].map(|number| number.to_string());
    must(Command::new("mknod").arg(path).arg(kind).args(numbers));
    set_mtime(path, T, 0);
}

/// Makes a source with a large and a small block device, devices without a size, and other entries. Returns the
/// content of the block devices.
fn source(c: &Case, large: &Loop, small: &Loop) -> [Vec<u8>; 2] {
    create_dir(c.src()).unwrap();
    let contents = [(large, "large"), (small, "small")].map(|(device, name)| {
        let rdev = std::fs::metadata(&device.0).unwrap().rdev();
        node(&c.src().join(name), "b", rdev);
        read(&device.0).unwrap()
    });
    node(&c.src().join("zero"), "c", rustix::fs::makedev(1, 5));
    node(&c.src().join("null"), "c", rustix::fs::makedev(1, 3));
    must(Command::new("mkfifo").arg(c.src().join("fifo")));
    set_mtime(&c.src().join("fifo"), T, 0);
    file(&c.src().join("plain"), "plain", T);
    contents
}

#[test]
fn devices_are_copied_as_files() {
    if !have_root("devices") {
        return;
    }
    let area = crate::common::area::Area::tmpfs();
    // More than one worker reads the large one.
    let (large, small) = (area.join("large.img"), area.join("small.img"));
    let (large, small) = (Loop::over(&large, 12), Loop::over(&small, 1));
    for (device, mib) in [(&large, 12), (&small, 1)] {
        let words = (0..mib << 17).flat_map(|word: u64| (word * 0x9e37_79b9).to_le_bytes());
        std::fs::write(&device.0, words.collect::<Vec<u8>>()).unwrap();
    }
    for options in [
        "-a",
        "-rlt",
        "-rt --no-D",
        "-aH",
        "-a -n",
        "-ac",
        "-aS",
        "-aI --inplace",
        "-a --max-size=2M",
        "-a --existing",
        "-a --delay-updates",
        "-dt",
    ] {
        case(&format!("sync {options} --copy-devices SRC/ DST"), |c| {
            let contents = source(c, &large, &small);
            for root in [c.dst(), c.oracle_dst()] {
                file(&root.join("small"), "older", T - 9);
                node(&root.join("null"), "c", rustix::fs::makedev(1, 3));
            }
            let run = agree(c, &Fields { dir_times: false, ..Fields::ALL });
            run.ok();
            if options == "-a" {
                assert_eq!(read(c.dst().join("large")).unwrap(), contents[0]);
                assert_eq!(read(c.dst().join("small")).unwrap(), contents[1]);
                assert_eq!(std::fs::metadata(c.dst().join("zero")).unwrap().len(), 0);
                // A second run copies again, and %C is rsync's.
                let again = c.run_line("sync -ai --copy-devices SRC/ DST");
                assert!(again.ok().out().contains("small"), "{again}");
                let line =
                    "sync -aI --copy-devices '--out-format=%C %l %n' --exclude=fifo SRC/ DST";
                assert_eq!(c.run_line(line).sorted(), c.oracle_line(line).sorted());
            }
        });
    }
    // An argument, also through a symlink, and a device as the target.
    case("sync -aL --copy-devices SRC/link SRC/small DST", |c| {
        source(c, &large, &small);
        std::os::unix::fs::symlink("small", c.src().join("link")).unwrap();
        agree(c, &Fields { dir_times: false, ..Fields::ALL }).ok();
    });
    case("sync -a --copy-devices --write-devices SRC/small DST", |c| {
        let contents = source(c, &large, &small);
        let other = Loop::over(&area.join("other.img"), 1);
        node(&c.dst(), "b", std::fs::metadata(&other.0).unwrap().rdev());
        c.run().ok();
        assert!(c.dst().symlink_metadata().unwrap().file_type().is_block_device());
        assert_eq!(read(&other.0).unwrap(), contents[1]);
    });
    // A device is never removed, as in rsync.
    case("sync -a --copy-devices --remove-source-files SRC/ DST", |c| {
        source(c, &large, &small);
        c.run().expect(23).says(&["it is a device, which is kept"]);
        assert!(!c.src().join("plain").exists());
        for name in ["large", "small", "zero", "null"] {
            assert!(c.src().join(name).exists(), "{name}");
            assert!(c.dst().join(name).is_file(), "{name}");
        }
        remove_file(c.src().join("null")).unwrap();
    });
}
