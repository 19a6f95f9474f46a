//! `hakobu du` compared with coreutils: the same lines in another order.

use crate::common::{have_root, skip};
use crate::tools::place::{HOSTILE, Place};

const SAMPLE: &str = r#"
    mkdir -p t/a/b/c t/a.b t/z/y t/empty; cd t
    for d in . a a/b a/b/c a.b z z/y; do head -c $((RANDOM * 10)) /dev/zero > $d/f; touch $d/none; done
    truncate -s 5M a/sparse; ln -s f z/link; mkfifo z/pipe
    ln -s ../z a/l; ln -s a l; ln -s nowhere z/gone; ln -s .. a/b/up; printf 'f\n*.b\n' > ../patterns
    printf 't/a\0t/z\0' > ../list
    echo x > z/one; ln z/one z/two; ln z/one z/y/../three
"#;

#[test]
fn lines_are_those_of_coreutils() {
    let place = Place::new();
    place.sh(SAMPLE);
    for line in [
        "",
        "t",
        "t/",
        "-a t",
        "-s t",
        "-h t",
        "-ah t",
        "-b t",
        "-ab t",
        "-sb t",
        "-d 0 t",
        "-d 1 t",
        "-ad 1 t",
        "--max-depth=2 t",
        "-c t",
        "-ch t/a t/z",
        "-s t/a t/z",
        "-x t",
        "-k t",
        "-m t",
        "-l t",
        "-sl t",
        "-bl t",
        "--apparent-size t",
        "-h --apparent-size t",
        "-bk t",
        "-a t/z/one t/z/two",
        "-l t/z/one t/z/two",
        "t/a t",
        "t t/a",
        "t t",
        "-c t t",
        "t/a/../a t",
        "-0 t",
        "t/a/f",
        "t/z/link",
        "-s -d 0 t",
        "-ha t/a/sparse",
        "t//a",
        "-D t/l",
        "-H t/l",
        "-D t",
        "t/l",
        "-aD t/l t/z/link",
        "--inodes t",
        "--inodes -a t",
        "--inodes -s t",
        "--inodes -l t",
        "--inodes -c t/a t/z",
        "-S t",
        "-S -b t",
        "-sS t",
        "-Sc t",
        "-a --inodes -S t",
        "--si t",
        "-a --si t",
        "-B 512 t",
        "-B M t",
        "-BKB t",
        "-B1MB t",
        "--block-size=KiB t",
        "--block-size=human-readable t",
        "-b -B 10 t",
        "-t 100K t",
        "-a -t -8K t",
        "-ab --threshold=1000 t",
        "--inodes -t 4 t",
        "--exclude=f t",
        "-a --exclude=*.b t",
        "-a --exclude=y/three --exclude=pipe t",
        "-a --exclude=one t/z/one t/z/two",
        "--exclude=t t",
        "-s --exclude=a t t/z",
        "-a -X patterns t",
        "--exclude-from=patterns t",
        "--files0-from=list",
        "-s --files0-from=list",
    ] {
        let theirs = place.other(&format!("du {line}"), b"");
        let ours = place.run(&format!("du {line}"));
        ours.expect(theirs.code);
        let sort = |text: String| {
            let mut lines: Vec<String> = text.split(['\n', '\0']).map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sort(ours.out()), sort(theirs.out()), "{line}");
        assert_eq!(ours.err(), "", "{line}");
    }
}

/// Links to other trees are followed, those that lead up or nowhere are not counted twice or are told.
#[test]
fn symlinks_are_followed_as_in_coreutils() {
    let place = Place::new();
    place.sh(
        "mkdir -p u/a/b out/x; echo a > u/f; head -c 9000 /dev/zero > out/x/g; head -c 70000 /dev/zero > one; \\
         ln -s ../out u/link; ln -s ../../one u/a/file; ln -s .. u/a/b/up; ln -s u top; mkdir v; ln -s nowhere v/gone; \\
         ln -s self v/self; echo b > v/f",
    );
    for line in [
        "-L u",
        "-aL u",
        "-LP u",
        "-PL u",
        "-sL u out",
        "-L top",
        "-aD top",
        "-D u",
        "-aLx u",
        "-L --inodes u",
        "-L v",
        "-aL v",
        "-D v/gone",
    ] {
        let (theirs, ours) =
            (place.other(&format!("du {line}"), b""), place.run(&format!("du {line}")));
        ours.expect(theirs.code);
        assert_eq!(ours.sorted(), theirs.sorted(), "{line}");
        assert_eq!(ours.err().is_empty(), theirs.err().is_empty(), "{line}");
    }
}

#[test]
fn lines_are_sorted_and_directories_come_last() {
    let place = Place::new();
    place.sh("mkdir -p t/{b,a.b,a}/{y,x}; touch t/b/f t/a/x/z");
    let text = place.run("du -a -j 8 t").ok().out();
    let names: Vec<&str> = text.lines().filter_map(|line| line.split('\t').nth(1)).collect();
    assert_eq!(
        names,
        [
            "t/a/x/z", "t/a/x", "t/a/y", "t/a", "t/a.b/x", "t/a.b/y", "t/a.b", "t/b/f", "t/b/x",
            "t/b/y", "t/b", "t"
        ]
    );
}

#[test]
fn json_lines() {
    let place = Place::new();
    place.sh("mkdir t; head -c 1000 /dev/zero > $'t/\\xff'; mkdir t/d");
    let text = place.run("du -ac --apparent-size --json t").ok().out();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[1]["path_bytes"], &lines[1]["bytes"]), (&"742fff".into(), &1000.into()));
    assert_eq!((&lines[3]["event"], &lines[3]["bytes"]), (&"total".into(), &lines[2]["bytes"]));
}

#[test]
fn failures_are_told_and_counted() {
    let place = Place::new();
    place.sh("mkdir -p t/closed t/open; chmod 0 t/closed; touch t/open/f");
    let out = place.run("du t nowhere");
    out.expect(1);
    assert!(out.err().contains("hakobu: cannot access 'nowhere': No such file or directory"));
    assert!(out.out().ends_with("\tt\n"));
    if have_root("an ordinary user") {
        place.sh("chmod 755 t");
        let line =
            |program| format!("setpriv --reuid 65534 --regid 65534 --clear-groups {program} t");
        let ours = place.try_sh(&line("$H du"));
        ours.expect(1);
        let theirs = place.try_sh(&line("du"));
        theirs.expect(1);
        assert_eq!(ours.sorted(), theirs.sorted());
        assert!(ours.err().contains("cannot list directory 't/closed': Permission denied"));
    }
    for (line, start) in [
        ("du -sa t", "hakobu: -s and -a contradict"),
        ("du -s -d 3 t", "hakobu: -s and --max-depth=3 contradict"),
        ("du -d x t", "hakobu: invalid --max-depth 'x'"),
        ("du --time t", "hakobu: --time is not supported"),
        ("du --nosuch t", "hakobu: unexpected argument"),
        ("du -j x t", "hakobu: invalid -j 'x'"),
    ] {
        let out = place.run(line);
        out.expect(2);
        assert!(out.err().starts_with(start), "{line}: {}", out.err());
    }
    assert!(place.run("du --help").ok().out().contains("hakobu du [OPTIONS] [PATH]..."));
}

#[test]
fn hostile_names_and_deep_trees() {
    let place = Place::new();
    place.sh(&format!("mkdir -p t/$'d\\n' t/-a; cd t; {HOSTILE}"));
    let (ours, theirs) = (place.run("du -a0 t"), place.other("du -a0 t", b""));
    ours.ok();
    let sort = |bytes: &[u8]| {
        let mut lines: Vec<Vec<u8>> = bytes.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
        lines.sort();
        lines
    };
    assert_eq!(sort(&ours.stdout), sort(&theirs.stdout));
    place.deep("deep", "directory", 3000, "last");
    let ours = place.sh("ulimit -n 64; $H du -s -j 4 deep; $H du -d 2 deep | cut -f1");
    let theirs = place.sh("du -s deep; du -d 2 deep | cut -f1");
    assert_eq!(ours, theirs);
}

#[test]
fn other_file_systems_are_left_out() {
    if !have_root("other file systems") {
        return;
    }
    let place = Place::new();
    place.sh("mkdir -p t/d/m; echo > t/f");
    let out = place.try_sh(
        "unshare -m bash -c 'mount -t tmpfs none t/d/m || exit 77; head -c 9M /dev/zero > t/d/m/big
         diff <(du -x t) <($H du -x t) && diff <(du -a t | sort) <($H du -a t | sort)'",
    );
    if out.code == 77 {
        return skip("no mount namespace");
    }
    out.ok();
}

#[test]
fn a_mount_of_a_directory_above_counts_once() {
    if !have_root("a bind mount") {
        return;
    }
    let place = Place::new();
    place.sh(
        "mkdir -p t/a/b/c t/z; head -c 9M /dev/zero > t/a/big; head -c 1M /dev/zero > t/a/b/c/f",
    );
    let script = |program: &str| {
        format!(
            "unshare -m bash -c 'mount --bind t/a t/a/b/c || exit 77; mount --bind t/a t/z
             {program} -a t | sort; {program} -sb t; {program} -s t/z'"
        )
    };
    let run = place.try_sh(&script("$H du"));
    if run.code == 77 {
        return skip("a bind mount: mount is refused");
    }
    let theirs = place.try_sh(&script("du"));
    assert_eq!(run.ok().out(), theirs.ok().out());
}
