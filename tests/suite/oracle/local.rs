//! Behaviour of local copies that rsync's own tests fix, compared with rsync.

use crate::common::area::{Area, Fs};
use crate::common::case::{Case, case};
use crate::common::diff::Fields;
use crate::common::{have_root, must, xattr};
use crate::oracle::meanings::{T, agree, file, trees};
use std::fs::create_dir_all;
use std::os::unix::fs::{MetadataExt, symlink};
use std::process::Command;

/// With one job the lines come in rsync's order, in directories of more names than a unit holds, too.
#[test]
fn one_job_keeps_the_order_of_rsync() {
    for options in ["-aiO", "-ainO", "-aiiO", "-avO"] {
        case(&format!("sync {options} SRC/ DST"), |c| {
            for index in (0..200).rev() {
                file(&c.src().join(format!("many/{index}")), "x", T);
            }
            for name in ["z", "b/c/d", "b/a", "b-c/x", "a", "b/c.d/e", "B", "b/c/a"] {
                file(&c.src().join(name), name, T);
            }
            symlink("a", c.src().join("b/symlink")).unwrap();
            for root in [c.dst(), c.oracle_dst()] {
                file(&root.join("b/c/d"), "old", T - 5);
                file(&root.join("b/old"), "not in the source", T);
            }
            let lines = |run: crate::common::case::Run| {
                let text = run.ok().out();
                let kept = |line: &&str| {
                    let is_total = ["sen", "total"].iter().any(|start| line.starts_with(start));
                    !line.is_empty() && !is_total
                };
                text.lines().filter(kept).map(str::to_owned).collect::<Vec<_>>()
            };
            let ours = lines(c.run_line(&format!("sync -j1 {options} SRC/ DST")));
            assert_eq!(ours, lines(c.oracle()), "{options}");
        });
    }
}

/// The modifier `x`: which attributes are copied, and which ones of the target stay.
#[test]
fn filters_of_extended_attributes() {
    for rules in [
        "-f '-x user.skip*'",
        "-f '-xs user.skip*'",
        "-f '-xr user.skip*'",
        "-f '+x user.skip1' -f '-x user.skip*'",
        "-f '-x! user.k*'",
        "-f '-x user.*'",
        "-f '-x user.skip*' -f '!'",
        "-f '-x user.skip*' --delete --delete-excluded",
        "-f '. LIST'",
    ] {
        let line = format!("sync -aX {rules} -f '-x security.*' -f '-x system.*' SRC/ DST");
        let areas = [(); 2].map(|()| Area::new(Fs::Ext4, &line));
        let [Some(from), Some(to)] = areas else { return };
        let c = Case::new(&line, from, to);
        std::fs::write(c.list(), "-x user.skip*\n- user.keep\n").unwrap();
        for root in trees(&c) {
            for name in ["d/f", "user.skip1", "user.keep"] {
                file(&root.join(name), "same", T);
            }
        }
        for name in ["user.keep", "user.skip1", "user.skip2"] {
            for path in ["d", "d/f"] {
                xattr::set(&c.src().join(path), name, b"new").unwrap();
            }
        }
        for root in [c.dst(), c.oracle_dst()] {
            for name in ["user.keep", "user.skip1", "user.skip3", "user.other"] {
                xattr::set(&root.join("d/f"), name, b"old").unwrap();
            }
        }
        agree(&c, &Fields { dir_times: false, ..Fields::ALL });
    }
}

/// The modifier `x` in a per-directory file: it concerns what is in the directory, not the directory itself.
#[test]
fn filters_of_extended_attributes_in_directories() {
    for (options, rules) in [
        ("-f ': .rules'", "-x user.skip*"),
        ("-f ':n .rules'", "-x user.skip*"),
        ("-f ': .rules'", "-xs user.skip*"),
        ("-f ': .rules'", "+x user.skip1\n-x user.skip*"),
        ("-f ': .rules'", "-x /user.skip*"),
        ("-f ': .rules'", "-x! user.k*"),
        ("-f ': .rules'", "-x user.skip*\n!"),
        ("-f ': .rules' -f '-x user.keep'", "-x user.skip*"),
    ] {
        let line = format!("sync -aX {options} -f '-x security.*' -f '-x system.*' SRC/ DST");
        let areas = [(); 2].map(|()| Area::new(Fs::Ext4, &line));
        let [Some(from), Some(to)] = areas else { return };
        let c = Case::new(&line, from, to);
        for name in ["f", "d/f", "d/e/f"] {
            file(&c.src().join(name), "same", T);
        }
        file(&c.src().join("d/.rules"), rules, T);
        for path in ["", "f", "d", "d/f", "d/e", "d/e/f"] {
            for name in ["user.keep", "user.skip1", "user.skip2"] {
                xattr::set(&c.src().join(path), name, b"new").unwrap();
            }
        }
        agree(&c, &Fields { dir_times: false, ..Fields::ALL });
        let there = xattr::read_all(&c.dst().join("d/f")).unwrap();
        assert_eq!(there.contains_key(&b"user.keep"[..]), !options.contains("keep"), "{line}");
    }
    // rsync's receiving side does not know the rule, and removes what it excludes.
    for line in ["sync -aX -f ': .rules' SRC/ DST", "sync -aX -f ': .rules' --delete SRC/ DST"] {
        let areas = [(); 2].map(|()| Area::new(Fs::Ext4, line));
        let [Some(from), Some(to)] = areas else { return };
        let c = Case::new(line, from, to);
        file(&c.src().join(".rules"), "-x user.mine", T);
        for root in [c.src(), c.dst()] {
            file(&root.join("f"), "same", T);
        }
        for name in ["user.mine", "user.other"] {
            xattr::set(&c.dst().join("f"), name, b"").unwrap();
        }
        c.run().ok();
        let there: Vec<_> = xattr::read_all(&c.dst().join("f")).unwrap().into_keys().collect();
        assert_eq!(there, [b"user.mine"], "{line}");
    }
}

/// Partial files of a killed rsync go when the file is complete, and are not part of the tree.
#[test]
fn delayed_updates_use_up_what_rsync_left() {
    for line in ["sync -a --delay-updates SRC/ DST", "sync -a --delay-updates --delete SRC/ DST"] {
        case(line, |c| {
            file(&c.src().join("d/f"), "content", T);
            file(&c.src().join("e/.~tmp~/other"), "left out", T);
            for root in [c.dst(), c.oracle_dst()] {
                file(&root.join("d/.~tmp~/f"), "con", T);
                file(&root.join("e/.~tmp~/kept"), "x", T);
            }
            agree(c, &Fields { dir_times: false, ..Fields::ALL });
            assert!(!c.dst().join("d/.~tmp~").exists() && c.dst().join("e/.~tmp~/kept").exists());
        });
    }
}

/// A symlink of the target on the path above what is copied is followed, if its owner is trusted.
#[test]
fn no_implied_dirs_goes_through_links_of_the_target() {
    let line = "sync -aR --no-implied-dirs SRC/./path/file DST/";
    let prepare = |c: &Case| {
        file(&c.src().join("path/file"), "new", T);
        for root in [c.dst(), c.oracle_dst()] {
            create_dir_all(root.join("real")).unwrap();
            symlink("real", root.join("path")).unwrap();
        }
    };
    case(line, |c| {
        prepare(c);
        agree(c, &Fields { dir_times: false, ..Fields::ALL });
        assert!(c.dst().join("real/file").exists());
    });
    case("sync -aR SRC/./path/file DST/", |c| {
        prepare(c);
        agree(c, &Fields { dir_times: false, ..Fields::ALL });
        assert!(c.dst().join("path").symlink_metadata().unwrap().is_dir());
    });
    // One that leaves the target is not.
    case(line, |c| {
        file(&c.src().join("path/file"), "new", T);
        let outside = c.src().with_file_name("outside");
        create_dir_all(&outside).unwrap();
        for root in [c.dst(), c.oracle_dst()] {
            create_dir_all(&root).unwrap();
            symlink(&outside, root.join("path")).unwrap();
        }
        agree(c, &Fields { dir_times: false, link_times: false, ..Fields::ALL }).expect(23);
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    });
    if !have_root("symlinks of other users") {
        return;
    }
    case(line, |c| {
        prepare(c);
        must(Command::new("chown").args(["-h", "1000"]).arg(c.dst().join("path")));
        c.run().expect(23);
        assert!(!c.dst().join("real/file").exists() && c.dst().join("path").is_symlink());
    });
}

/// An empty FROM stands for the numbers without a name.
#[test]
fn maps_of_numbers_without_a_name() {
    if !have_root("owners") {
        return;
    }
    for maps in [
        "--groupmap=:7",
        "--usermap=:5 --groupmap=0:3,:7",
        "--usermap=0:9,:8,*:1",
        "--numeric-ids --groupmap=:7",
    ] {
        case(&format!("sync -a {maps} SRC/ DST"), |c| {
            for (name, owner) in [("a", "0:0"), ("b", "54321:54321"), ("c", "1:54322")] {
                file(&c.src().join(name), name, T);
                must(Command::new("chown").arg(owner).arg(c.src().join(name)));
            }
            agree(c, &Fields::ALL);
        });
    }
}

/// All blocks of a new file are there, those of the source's holes, too, unless `-S` asks for holes.
#[test]
fn preallocated_files_have_all_blocks() {
    for (line, has_holes) in [
        ("sync -a SRC/ DST", true),
        ("sync -a --preallocate SRC/ DST", false),
        ("sync -aS --preallocate SRC/ DST", true),
    ] {
        let areas = [(); 2].map(|()| Area::new(Fs::Ext4, line));
        let [Some(from), Some(to)] = areas else { return };
        let c = Case::new(line, from, to);
        for (name, bytes) in [("small", 1 << 17), ("large", 8 << 20)] {
            file(&c.src().join(name), "begin", T);
            let holes = std::fs::File::options().write(true).open(c.src().join(name)).unwrap();
            holes.set_len(bytes).unwrap();
        }
        c.run().ok();
        c.target_is_source(&Fields { dir_times: false, ..Fields::ALL });
        for name in ["small", "large"] {
            let there = std::fs::metadata(c.dst().join(name)).unwrap();
            assert_eq!(there.blocks() * 512 < there.size(), has_holes, "{line} {name}");
        }
    }
}
