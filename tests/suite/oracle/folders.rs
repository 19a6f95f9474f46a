//! rsync options about folders beside the transfer and links that lead out of it, compared with rsync.

use super::meanings::{T, agree, file};
use crate::common::case::case;
use crate::common::diff::Fields;
use crate::common::grow::set_mtime;
use std::fs::{create_dir_all, read, write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

#[test]
fn backups_go_to_another_folder() {
    for line in [
        "sync -ab --backup-dir=DST.bak --delete SRC/ DST",
        "sync -a --backup-dir=DST.bak --suffix=.x --delete-after SRC/ DST",
        "sync -a --backup-dir=DST.bak --inplace SRC/ DST",
        "sync -a --backup-dir=DST.bak --delay-updates SRC/ DST",
        "sync -an --backup-dir=DST.bak --delete SRC/ DST",
        "sync -a --backup-dir=DST.bak --no-backup --delete SRC/ DST",
    ] {
        case(line, |c| {
            for root in [c.dst(), c.oracle_dst()] {
                file(&root.join("d/f"), "old", T);
                file(&root.join("d/k/g"), "old", T);
                file(&root.join("x/y/z"), "old", T);
                file(&root.join("was-file"), "old", T);
                symlink("z", root.join("x/link")).unwrap();
                file(&root.with_extension("bak").join("d/f"), "oldest", T);
                if !line.contains("--inplace") {
                    create_dir_all(root.with_extension("bak").join("d/k/g")).unwrap();
                }
            }
            file(&c.src().join("d/f"), "new content", T);
            file(&c.src().join("d/k/g"), "newer content", T);
            file(&c.src().join("was-file/inside"), "in", T);
            agree(c, &Fields { dir_times: false, link_times: false, ..Fields::ALL });
            let (ours, theirs) =
                (c.dst().with_extension("bak"), c.oracle_dst().with_extension("bak"));
            let fields = Fields { dir_times: false, link_times: false, ..Fields::ALL };
            c.same("backups", &theirs, &ours, &fields);
        });
    }
}

/// A folder of backups below the target is not taken for extraneous, and backups on another file system are
/// copies with mode and time.
#[test]
fn backups_inside_the_target_and_elsewhere() {
    case("sync -a --backup-dir=bak --delete SRC/ DST", |c| {
        file(&c.src().join("f"), "new content", T);
        file(&c.dst().join("f"), "old", T);
        file(&c.dst().join("bak/before"), "before", T);
        c.run().ok();
        assert_eq!(read(c.dst().join("bak/f")).unwrap(), b"old");
        assert_eq!(read(c.dst().join("bak/before")).unwrap(), b"before");
    });
    let Some(other) = crate::common::area::Area::new(crate::common::area::Fs::Ext4, "backups")
    else {
        return;
    };
    let bak = other.join("bak");
    case(&format!("sync -a --backup-dir={} --delete SRC/ DST", bak.display()), |c| {
        file(&c.src().join("f"), "new content", T);
        file(&c.dst().join("f"), "old", T - 5);
        file(&c.dst().join("d/extra"), "extra", T - 5);
        std::fs::set_permissions(c.dst().join("f"), std::fs::Permissions::from_mode(0o640))
            .unwrap();
        c.run().ok();
        assert_eq!(read(bak.join("d/extra")).unwrap(), b"extra");
        let there = std::fs::metadata(bak.join("f")).unwrap();
        assert_eq!((there.mode() & 0o7777, there.mtime()), (0o640, T - 5));
        assert!(!c.dst().join("d").exists());
    });
}

#[test]
fn directories_above_an_argument_are_left_as_they_are() {
    for line in [
        "sync -aR --no-implied-dirs SRC/./a/b/c/f DST",
        "sync -aR --no-implied-dirs SRC/./a/b/c DST",
        "sync -aRi --no-implied-dirs SRC/./a/b DST",
        "sync -aRin --no-implied-dirs SRC/./a/b/c/f DST",
        "sync -a --no-implied-dirs --files-from=LIST SRC DST",
    ] {
        for exists in [false, true] {
            case(line, |c| {
                file(&c.src().join("a/b/c/f"), "f", T);
                for name in ["a/b/c", "a/b", "a"] {
                    let mode = std::fs::Permissions::from_mode(0o711);
                    std::fs::set_permissions(c.src().join(name), mode).unwrap();
                    set_mtime(&c.src().join(name), T, 0);
                }
                write(c.list(), "a/b/c/f\n").unwrap();
                for root in [c.dst(), c.oracle_dst()].iter().filter(|_| exists) {
                    create_dir_all(root.join("a")).unwrap();
                    let mode = std::fs::Permissions::from_mode(0o700);
                    std::fs::set_permissions(root.join("a"), mode).unwrap();
                }
                agree(c, &Fields::ALL).ok();
            });
        }
    }
}

#[test]
fn unsafe_links_become_what_they_name() {
    for line in [
        "sync -a --copy-unsafe-links SRC/ DST",
        "sync -r --copy-unsafe-links SRC/ DST",
        "sync -a --copy-unsafe-links --safe-links SRC/ DST",
        "sync -aL --copy-unsafe-links SRC/ DST",
        "sync -a --copy-unsafe-links --exclude=sub/ SRC/ DST",
    ] {
        case(line, |c| {
            let outside = c.place("outside");
            file(&outside.join("f"), "outside", T);
            file(&outside.join("sub/g"), "deep", T);
            symlink("f", outside.join("link")).unwrap();
            file(&c.src().join("d/inside"), "in", T);
            symlink("../../outside/f", c.src().join("d/up")).unwrap();
            symlink(&outside, c.src().join("abs")).unwrap();
            symlink("d", c.src().join("safe")).unwrap();
            // Both areas are on their own: make the relative one lead to something.
            let _ = symlink(&outside, c.src().join("../outside"));
            agree(c, &Fields { dir_times: false, link_times: false, ..Fields::ALL });
        });
    }
}
