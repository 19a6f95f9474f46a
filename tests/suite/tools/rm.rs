//! `hakobu rm` compared with coreutils: the remaining files are the same, also with obstacles.

use crate::common::{have_root, skip};
use crate::tools::place::{HOSTILE, Place};
use std::sync::atomic::{AtomicBool, Ordering};

const SAMPLE: &str = r#"
    mkdir -p t/a/b/c t/empty outside; cd t
    for d in . a a/b a/b/c; do touch $d/1 $d/2; mkfifo $d/pipe; ln -s /nowhere $d/dangling; done
    ln -s ../outside link; touch ../outside/precious
"#;

#[test]
fn a_tree_goes_and_what_links_name_stays() {
    for jobs in ["1", "2", "8"] {
        let place = Place::new();
        place.sh(SAMPLE);
        let out = place.run(&format!("rm -r -j {jobs} t"));
        out.ok();
        assert_eq!((out.out(), out.err()), (String::new(), String::new()));
        assert_eq!(place.sh("find . | sort"), ".\n./outside\n./outside/precious\n");
    }
}

#[test]
fn verbose_lines_are_those_of_coreutils() {
    let place = Place::new();
    place.sh(SAMPLE);
    place.sh("cp -a t t2; echo > \"it's\"; mkdir x; mv t x; mv t2 t; rm -rf y");
    let theirs = place.other("rm -rv t ./it's", b"").sorted();
    place.sh("mv x/t t; echo > \"it's\"");
    let out = place.run("rm -rv t ./it's");
    out.ok();
    assert_eq!(out.sorted(), theirs);
    // A directory comes after everything that was in it.
    let text = out.out();
    let at = |line: &str| text.find(line).unwrap();
    assert!(at("removed 't/a/b/c/1'") < at("removed directory 't/a/b/c'"));
    assert!(at("removed directory 't/a/b/c'") < at("removed directory 't/a'"));
}

#[test]
fn json_has_a_line_for_each_entry_and_a_summary() {
    let place = Place::new();
    place.sh("mkdir t; touch t/1 t/2");
    let out = place.run("rm -rv --json t nowhere");
    out.expect(1);
    let summary = out.summary();
    assert_eq!((&summary["deleted"], &summary["failed"]), (&3.into(), &1.into()), "{summary}");
    assert_eq!(summary["exit_code"], 1);
    for line in out.out().lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
    assert!(out.out().contains(r#"{"event":"removed","kind":"dir","path":"t"}"#));
    assert_eq!(out.out().lines().count(), 5);
}

/// Every exit code, and what is left afterwards, with the same arguments for both programs.
#[test]
fn arguments_mean_the_same() {
    for (line, code) in [
        ("f", 0),
        ("f nowhere", 1),
        ("-f nowhere", 0),
        ("-f", 0),
        ("d", 1),
        ("-d e", 0),
        ("-d d", 1),
        ("-d d e f", 1),
        ("-r d", 0),
        ("-R d/", 0),
        ("-rf d/ e// f", 0),
        ("-r l", 0),
        ("-r l/", 1),
        ("f/", 1),
        ("-f f/", 0),
        ("-r .", 1),
        ("-r ..", 1),
        ("-r d/.", 1),
        ("-r d/..", 1),
        ("-rf d/../d/.//", 1),
        ("-r d/../d", 0),
        ("-rf -- -x", 0),
        ("-x", 2),
        ("-i nowhere", 1),
        ("-rf f/x", 0),
        ("f/x", 1),
        ("", 2),
        ("--nosuch f", 2),
        ("-j 0 -r d", 0),
        ("-j no f", 2),
        ("--interactive=what f", 2),
        ("-r --one-file-system d", 0),
        ("-r --preserve-root=all d", 0),
        ("-r --preserve-root d", 0),
        ("--force nowhere", 0),
        ("--recursive d", 0),
        ("--dir e", 0),
        ("--verbose f", 0),
    ] {
        let make = "mkdir -p w/d/x w/e; touch w/f w/d/1 w/d/x/2 w/-x; ln -s d w/l";
        let (ours, theirs) = (Place::new(), Place::new());
        ours.sh(make);
        theirs.sh(make);
        let out = ours.try_sh(&format!("cd w; $H rm {line} </dev/null"));
        out.expect(code);
        assert_eq!(out.err().is_empty(), code == 0, "{line}: {}", out.err());
        // Coreutils 9.1 empties the directory that the symlink names before it refuses.
        if line.contains("-j") || line == "-r l/" {
            assert!(line != "-r l/" || ours.path().join("w/d/x/2").exists());
            continue;
        }
        let theirs_code = theirs.try_sh(&format!("cd w; rm {line} </dev/null")).code;
        assert_eq!(theirs_code, code.min(1), "{line}");
        assert_eq!(ours.tree("."), theirs.tree("."), "{line}");
    }
}

#[test]
fn the_message_says_what_and_why() {
    let place = Place::new();
    place.sh("mkdir d; touch d/f f");
    for (line, message) in [
        ("rm nowhere", "hakobu: cannot remove 'nowhere': No such file or directory\n"),
        ("rm d", "hakobu: cannot remove 'd': is a directory (use -r)\n"),
        ("rm -d d", "hakobu: cannot remove 'd': Directory not empty\n"),
        ("rm f/", "hakobu: cannot remove 'f/': Not a directory\n"),
        ("rm -r .", "hakobu: cannot remove '.': '.' and '..' are never removed\n"),
    ] {
        assert_eq!(place.run(line).expect(1).err(), message);
    }
    assert!(place.run("rm --help").ok().out().contains("hakobu rm [OPTIONS] PATH..."));
}

#[test]
fn hostile_names() {
    let place = Place::new();
    place.sh(&format!("mkdir -p $'t/d\\n' $'t/\\xff'; cd t; {HOSTILE} cd $'d\\n'; {HOSTILE}"));
    place.run("rm -r t").ok();
    assert_eq!(place.sh("ls -A"), "");
}

#[test]
fn deeper_than_a_path_and_than_the_limit_of_open_files() {
    for options in ["-j 1", "-j 4", "-i <yes"] {
        let place = Place::new();
        place.deep("t", "directory", 3000, "last");
        place.sh("yes | head -n 100000 > yes");
        place.sh(&format!("ulimit -n 64; $H rm -r t {options} 2>/dev/null"));
        assert_eq!(place.sh("ls"), "yes\n");
    }
}

#[test]
fn wide_and_flat_trees_on_many_workers() {
    let place = Place::new();
    place.sh("mkdir t; cd t; seq 20000 | xargs touch; mkdir -p d{1..300}/e; for d in d*; do touch $d/e/{1..9}; done");
    let summary = place.run("rm -r -j 8 --json t").ok().summary();
    assert_eq!(summary["deleted"], 20_000 + 300 * 11 + 1);
    assert_eq!(place.sh("ls -A"), "");
}

#[test]
fn goes_on_after_errors_and_leaves_what_coreutils_leaves() {
    if !have_root("an ordinary user") {
        return;
    }
    let make = r#"mkdir -p t/{ok,locked,unlisted,hidden}/sub t/closed-empty; touch t/*/f t/*/sub/f
        chown -R 65534:65534 t; chmod 555 t/locked; chmod 333 t/unlisted; chmod 0 t/hidden t/closed-empty"#;
    let (ours, theirs) = (Place::new(), Place::new());
    for (place, program) in [(&ours, "$H rm"), (&theirs, "rm")] {
        place.sh(make);
        place.sh("chmod 777 .");
        let nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups";
        let out = place.try_sh(&format!("{nobody} {program} -rf t"));
        out.expect(1);
        assert!(out.err().contains("cannot remove 't/locked/"), "{}", out.err());
    }
    assert_eq!(ours.tree("."), theirs.tree("."));
}

#[test]
fn answers_decide() {
    for (options, answers) in [
        ("-i a b", "y\nn\n"),
        ("-i a b", "n\ny\n"),
        ("-i a", ""),
        ("-ri d", "y\ny\ny\ny\ny\n"),
        ("-ri d", "n\n"),
        ("-ri d", "y\nn\nn\nn\n"),
        ("-I a b", ""),
        ("-I a b d1 d2", "n\n"),
        ("-I a b d1 d2", "y\n"),
        ("-rI d", "no\n"),
        ("-rI d", "yes\n"),
        ("-di e", "y\n"),
        ("-di e", "n\n"),
        ("-ri e", "y\n"),
        ("-ri e", "n\n"),
        ("--interactive=once -r d", "n\n"),
    ] {
        let make = "mkdir -p d e; touch a b d1 d2 d/f";
        let (ours, theirs) = (Place::new(), Place::new());
        ours.sh(make);
        theirs.sh(make);
        let out = ours.run_with(&format!("rm {options}"), &[], answers.as_bytes());
        out.ok();
        assert_eq!(out.err().contains("hakobu rm: "), options != "-I a b", "{}", out.err());
        assert_eq!(out.out(), "");
        theirs.other(&format!("rm {options}"), answers.as_bytes());
        assert_eq!(ours.tree("."), theirs.tree("."), "{options} {answers:?}");
    }
}

/// On a terminal what is write-protected is asked about, and with -f nothing is.
#[test]
fn write_protected_files_are_asked_about_on_a_terminal() {
    if !have_root("an ordinary user") {
        return;
    }
    for (options, answer, left) in [("", "n", ". ./w ./w/f"), ("", "y", "."), ("-f", "n", ".")] {
        let place = Place::new();
        place.sh("mkdir w; touch w/f w/g; chmod 444 w/f; chown -R 65534 .");
        let out = place.try_sh(&format!(
            "command -v script >/dev/null || exit 77
             echo {answer} | setpriv --reuid 65534 --regid 65534 --clear-groups \
                 script -qec \"$H rm -r {options} w\" /dev/null"
        ));
        if out.code == 77 {
            return skip("needs script");
        }
        let asked = out.out().contains("remove write-protected regular file 'w/f'?");
        assert_eq!(asked, options.is_empty(), "{}", out.out());
        let tree: Vec<String> = place.tree(".").into_iter().collect();
        assert_eq!(tree.join(" "), left, "{options} {answer}: {}", out.out());
    }
}

#[test]
fn other_file_systems_stay_where_asked() {
    if !have_root("other file systems") {
        return;
    }
    let place = Place::new();
    place.sh("mkdir -p t/d/m t/e; touch t/d/f t/e/f");
    let out = place.try_sh(
        "unshare -m bash -c 'mount -t tmpfs none t/d/m || exit 77; touch t/d/m/kept
         $H rm -r --one-file-system t; code=$?; ls t/d/m; exit $code'",
    );
    if out.code == 77 {
        return skip("no mount namespace");
    }
    out.expect(1);
    assert_eq!(out.out(), "kept\n");
    assert!(
        out.err().contains("cannot remove 't/d/m': it is on another file system"),
        "{}",
        out.err()
    );
    assert_eq!(place.sh("find t"), "t\nt/d\nt/d/m\n");
}

/// Directories are swapped for symlinks all the time: nothing outside may be touched.
#[test]
fn a_swapped_symlink_leads_nowhere() {
    let place = Place::new();
    place.sh("mkdir -p outside/sub; touch outside/precious outside/sub/precious");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let base = place.path();
            while !stop.load(Ordering::Relaxed) {
                let (dir, away) = (base.join("t/d"), base.join("t/away"));
                let _ = std::fs::rename(&dir, &away);
                let _ = std::os::unix::fs::symlink("../outside", &dir);
                let _ = std::fs::remove_file(&dir);
                let _ = std::fs::rename(&away, &dir);
            }
        });
        for _ in 0..60 {
            // It may find something in its way, which is fine; it must end, and stay inside.
            place.try_sh(
                "rm -rf t; mkdir -p s/d/sub; touch s/d/{1..20} s/d/sub/{1..20}; mv -T s t
                 $H rm -rf -j 4 t",
            );
        }
        stop.store(true, Ordering::Relaxed);
    });
    place.try_sh("rm -rf s t");
    assert_eq!(place.sh("find . | sort").lines().count(), 5);
}

/// `rm -r /` in a root of its own, with nothing in it but the program and what it is linked to.
fn throw_away_root() -> Place {
    let place = Place::new();
    place.sh("mkdir -p root/keep; echo x > root/keep/precious; cp \"$H\" root/hakobu
         for lib in $(ldd \"$H\" | grep -o '/[^ ]*'); do
             mkdir -p \"root${lib%/*}\"; cp -L \"$lib\" \"root$lib\"
         done");
    place
}

#[test]
fn the_root_of_the_system_stays() {
    if !have_root("a root directory of its own") {
        return;
    }
    let place = throw_away_root();
    let before = place.tree("root");
    for line in ["-r /", "-rf //", "-rf --preserve-root /", "-rf --preserve-root=all /", "-rf ///"]
    {
        let out = place.try_sh(&format!("chroot root /hakobu rm {line}"));
        out.expect(1).says(&["cannot remove '/", "--no-preserve-root allows it"]);
        assert_eq!(place.tree("root"), before, "{line}");
    }
    // Its siblings are removed nevertheless.
    let out = place.try_sh("touch root/one; chroot root /hakobu rm -rf / /one");
    out.expect(1).says(&["--no-preserve-root allows it"]);
    assert_eq!(place.tree("root"), before);
    // That the guard was all that held it back, also to know that the test tests something.
    place.try_sh("chroot root /hakobu rm -rf --no-preserve-root /");
    assert_eq!(place.sh("ls -A root"), "");
}

#[test]
fn mounted_file_systems_stay_where_asked() {
    if !have_root("mounting") {
        return;
    }
    let place = Place::new();
    let out = place.try_sh(
        "mkdir m; unshare -m bash -c 'mount -t tmpfs none m || exit 77; touch m/kept
         $H rm -r --preserve-root=all m; code=$?; ls m; exit $code'",
    );
    if out.code == 77 {
        return skip("no mount namespace");
    }
    out.expect(1).says(&["a file system is mounted there"]);
    assert_eq!(out.out(), "kept\n");
}
