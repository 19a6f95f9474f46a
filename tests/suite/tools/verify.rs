//! `hakobu verify` compared with rsync: a case for each way in which two trees can differ, and everything
//! that could hide a difference.

use crate::common::have_root;
use crate::tools::place::{HOSTILE, Place};
use std::collections::BTreeSet;

/// A tree with everything in it.
const SAMPLE: &str = r#"
    mkdir -p a/d/e a/empty; cd a
    echo one > one; echo two > d/two; yes | head -c 300000 > d/e/big
    truncate -s 4M sparse; printf x | dd of=sparse bs=1 seek=2000000 conv=notrunc status=none
    ln -s one link; ln -s /nowhere d/dangling; mkfifo pipe
    ln one d/hard; ln d/two d/e/hard2
    setfattr -n user.note -v hello one; setfacl -m u:1234:r d/two
    chmod 4751 d/e/big; touch -d '2001-02-03 04:05:06.789' one d
"#;

fn sample() -> Place {
    let place = Place::new();
    place.sh(SAMPLE);
    place.sh("cp -a --sparse=always a b");
    place
}

#[test]
fn a_copy_is_the_same_in_all_respects() {
    let place = sample();
    for line in ["verify a b", "verify -aHAXS a b", "verify -HAX --holes -j 7 a/ b", "verify a a"] {
        let out = place.run(line);
        out.ok();
        assert_eq!(out.out(), "", "{line}");
    }
    let summary = place.run("verify -HAXS --json a b").ok().summary();
    for (field, value) in [("files", 6), ("dirs", 4), ("others", 3), ("differences", 0)] {
        assert_eq!(summary[field], value, "{field}: {summary}");
    }
    assert_eq!((&summary["event"], &summary["exit_code"]), (&"summary".into(), &0.into()));
}

#[test]
fn every_respect_is_found_and_can_be_left_out() {
    for (change, options, without, line) in [
        (
            "printf X | dd of=b/d/e/big bs=1 seek=299999 conv=notrunc status=none; touch -r a/d/e/big b/d/e/big; chmod 4751 b/d/e/big",
            "",
            "--size-only",
            "differs: d/e/big (content from byte 299999)",
        ),
        ("printf X >> b/one; touch -r a/one b/one", "", "", "differs: d/hard (size 4 / 5)"),
        ("chmod 600 b/one", "", "--no-perms", "differs: one (mode 0644 / 0600)"),
        ("chmod u-s b/d/e/big", "", "--no-p", "differs: d/e/big (mode 4751 / 0751)"),
        (
            "touch -d '2001-02-03 04:05:06.788' b/d",
            "",
            "--no-times",
            "differs: d/ (mtime 2001-02-03T03:05:06.789Z / 2001-02-03T03:05:06.788Z)",
        ),
        ("touch -d '2001-02-03 04:05:06.788' b/d", "", "-O", "differs: d/ (mtime"),
        ("touch -d '2001-02-03 04:05:06.788' b/d", "", "--modify-window=0", "differs: d/ (mtime"),
        ("touch -h -d 2001-02-03 b/link", "", "-J", "differs: link (mtime"),
        (
            "ln -sfn two b/link; touch -h -r a/link b/link; touch -r a b",
            "",
            "--no-links",
            "differs: link (link)",
        ),
        ("cp -p b/one b/x; mv b/x b/one; touch -r a b", "-H", "--no-hard-links", "differs: "),
        ("setfattr -n user.note -v other b/one", "-X", "--no-X", "differs: one (xattrs)"),
        ("setfattr -x user.note b/one", "-X", "--no-xattrs", "differs: one (xattrs)"),
        (
            "setfacl -m u:1234:rw b/d/two; chmod 644 b/d/two; chmod 644 a/d/two",
            "-A",
            "--no-acls",
            "differs: d/two (acl)",
        ),
        ("setfacl -d -m u:1234:rwx b/d; touch -r a/d b/d", "-A", "--no-A", "differs: d/ (acl)"),
        ("cp --sparse=never -p a/sparse b/sparse", "-S", "--no-sparse", "differs: sparse (holes)"),
        ("rm b/pipe; touch b/pipe; touch -r a b", "", "", "differs: pipe (type fifo / file)"),
        ("rm -r b/d/e; touch -r a/d b/d", "", "", "only in SRC: d/e/"),
        ("touch b/d/new; touch -r a/d b/d", "", "--one-way", "only in DST: d/new"),
        ("mkdir b/new; touch -r a b", "", "--exclude=new", "only in DST: new/"),
        (
            "rm b/d/two b/d/e/hard2; touch -r a/d b/d; touch -r a/d/e b/d/e",
            "",
            "--filter=-_*two --exclude=hard2",
            "only in SRC: d/two",
        ),
    ] {
        let place = sample();
        place.sh(change);
        let out = place.run(&format!("verify {options} a b"));
        out.expect(1);
        assert!(out.out().contains(line), "{change}\n{}", out.out());
        if !without.is_empty() {
            let line = format!("verify {options} {without} a b");
            let out = place.run(&line);
            out.ok();
            assert_eq!(out.out(), "", "{line}");
        }
    }
}

/// Entries excluded by a rule on both sides are not compared, in every syntax of rules.
#[test]
fn filter_rules_are_those_of_sync() {
    let place = Place::new();
    place.sh(
        r#"mkdir -p a/d/x b/d/y; touch a/keep a/d/1.o b/d/2.o b/d/new b/gone.tmp; touch -r a b; touch -r a/d b/d
        printf '*.o\n' > list; printf 'new\0*.tmp\0' > nul; printf -- '- x\n- y\n' > a/d/.rsync-filter
        cp -p a/d/.rsync-filter b/d/; touch -r a/d b/d"#,
    );
    let all = [
        "only in DST: d/2.o",
        "only in DST: d/new",
        "only in DST: d/y/",
        "only in DST: gone.tmp",
        "only in SRC: d/1.o",
        "only in SRC: d/x/",
        "only in SRC: keep",
    ];
    assert_eq!(place.run("verify a b").expect(1).sorted(), all);
    for (line, left) in [
        ("--exclude-from=list", "2.o 1.o"),
        ("--from0 --exclude-from=nul", "new gone.tmp"),
        ("-F", "y/ x/"),
        ("-C", "2.o 1.o"),
        ("--include=1.o --exclude=*.o", "2.o"),
        ("--include-from=list --exclude=*.o", ""),
        ("--exclude=/d", "2.o new y/ 1.o x/"),
        ("--filter=P_*.tmp --filter=H_keep", "gone.tmp keep"),
    ] {
        let gone: Vec<&str> = left.split_whitespace().collect();
        let wanted: Vec<&str> = all
            .into_iter()
            .filter(|line| {
                let name = line.trim_end_matches('/').rsplit(['/', ' ']).next().unwrap();
                !gone.iter().any(|gone| gone.trim_end_matches('/') == name)
            })
            .collect();
        assert_eq!(place.run(&format!("verify {line} a b")).expect(1).sorted(), wanted, "{line}");
    }
}

#[test]
fn owners_and_devices() {
    if !have_root("owners and devices") {
        return;
    }
    let place = sample();
    place.sh("mknod a/dev c 1 3; mknod b/dev c 1 5; touch -r a b; touch -r a/dev b/dev; chown 7:8 b/d/two");
    let out = place.run("verify a b");
    out.expect(1);
    assert_eq!(out.sorted().len(), 3);
    assert!(out.out().contains("differs: dev (device 1:3 / 1:5)"));
    assert!(out.out().contains("differs: d/two (owner 0 / 7, group 0 / 8)"));
    place.run("verify --no-o --no-g --no-devices a b").ok();
}

#[test]
fn files_links_and_directories_as_arguments() {
    let place = sample();
    place.sh("cp -p a/one c; echo other > e; touch -r c e; ln -s a la; ln -s b lb");
    place.run("verify a/one c").ok();
    let out = place.run("verify c e");
    out.expect(1);
    assert_eq!(out.out(), "differs: . (size 4 / 6)\n");
    assert!(place.run("verify a c").expect(1).out().starts_with("differs: . (type dir / file)"));
    // A symlink is compared itself; with a slash it stands for the directory.
    let out = place.run("verify -t --no-times la lb");
    out.expect(1);
    assert_eq!(out.out(), "differs: . (link)\n");
    place.run("verify la/ lb/").ok();
    assert!(place.run("verify la b").expect(1).out().contains("type symlink / dir"));
}

#[test]
fn what_cannot_be_compared_is_code_2() {
    let place = sample();
    for line in [
        "verify",
        "verify a",
        "verify a b c",
        "verify --nosuch a b",
        "verify -j x a b",
        "verify a nowhere",
        "verify nowhere b",
        "verify --delete a b",
        "verify --max-differences=x a b",
        "verify --exclude-from=/nowhere a b",
    ] {
        let out = place.run(line);
        out.expect(2);
        assert!(out.err().starts_with("hakobu: "), "{line}: {}", out.err());
    }
    assert!(place.run("verify a nowhere").err().contains("'nowhere': No such file"));
    assert!(place.run("verify --help").ok().out().contains("hakobu verify [OPTIONS] SRC DST"));
}

#[test]
fn unreadable_parts_are_told_and_the_rest_is_compared() {
    if !have_root("an ordinary user") {
        return;
    }
    let place = sample();
    place.sh("chmod 700 a/d/e b/d/e; chmod 600 b/one; chmod 600 a/one; echo new > b/zzz");
    let line = "setpriv --reuid 65534 --regid 65534 --clear-groups $H verify a b";
    let out = place.try_sh(line);
    out.expect(2);
    assert!(
        out.err().contains("cannot list directory 'a/d/e': Permission denied"),
        "{}",
        out.err()
    );
    assert!(out.err().contains("cannot read 'a/"), "{}", out.err());
    assert!(out.out().contains("only in DST: zzz"));
    let json = place.try_sh(&format!("{line} --json"));
    json.expect(2);
    assert_eq!(json.summary()["failed"], 3);
}

#[test]
fn hostile_names_are_compared_and_told_in_one_line_each() {
    let place = Place::new();
    place.sh(&format!("mkdir a; cd a; {HOSTILE}"));
    place.sh("cp -a a b; touch -r a b");
    place.run("verify a b").ok();
    place.sh("cd b; for f in *; do echo x > \"./$f\"; done; rm -- $'new\\nline'; touch -r ../a .");
    let out = place.run("verify --no-times a b");
    out.expect(1);
    // All but the one that begins with a dot, which the script above does not see.
    let names = std::fs::read_dir(place.path().join("a")).unwrap().count() - 1;
    assert_eq!(out.out().lines().count(), names, "{}", out.out());
    assert!(out.out().contains("only in SRC: new\\#012line\n"));
    assert!(out.out().contains("differs: bad\\#377 (size 0 / 2)"));
    let json = place.run("verify --json a b").expect(1).out();
    let lines: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["path_bytes"] == "626164ff"));
    assert!(lines.iter().any(|line| line["path"] == "new\nline" && line["finding"] == "missing"));
}

#[test]
fn trees_deeper_than_a_path_and_than_the_limit_of_open_files() {
    let place = Place::new();
    place.deep("a", "directory", 3000, "f");
    place.deep("b", "directory", 3000, "f");
    place.deep("c", "directory", 3000, "new");
    place.sh("ulimit -n 256; $H verify --no-times a b");
    let out = place.try_sh("ulimit -n 256; $H verify -j 16 --no-times a c");
    out.expect(1);
    let text = out.out();
    assert!(text.starts_with("only in DST: directory/directory/"), "{text}");
    assert_eq!((text.lines().count(), text.ends_with("/new\n")), (1, true));
}

#[test]
fn large_files_are_compared_by_several_workers() {
    let place = Place::new();
    place.sh("mkdir a b; head -c 100M /dev/zero > a/f; cp -p a/f b/f
         for n in 1 2 3; do truncate -s 9G a/s$n; cp -p a/s$n b/s$n; done; touch -r a b");
    let summary = place.run("verify --json -j 8 a b").ok().summary();
    assert_eq!(summary["bytes"], 104_857_600_u64 + 3 * (9 << 30));
    place.sh("printf X | dd of=b/f bs=1 seek=104857599 conv=notrunc status=none
        printf X | dd of=b/s2 bs=1 seek=5000000000 conv=notrunc status=none; touch -r a/f b/f");
    let out = place.try_sh("ulimit -n 64; $H verify --no-times a b");
    out.expect(1);
    assert_eq!(
        out.sorted(),
        ["differs: f (content from byte 104857599)", "differs: s2 (content from byte 5000000000)"]
    );
}

#[test]
fn output_can_be_shortened_but_not_the_counts() {
    let place = Place::new();
    place.sh("mkdir a b; cd b; touch $(seq 300); touch -r ../a .");
    let out = place.run("verify --max-differences 5 a b");
    out.expect(1);
    assert_eq!(out.out().lines().count(), 5);
    assert!(out.err().contains("295 more differences are not shown"), "{}", out.err());
    assert_eq!(place.run("verify -q a b").expect(1).out(), "");
    let out = place.run("verify --max-differences 0 --stats a b");
    out.expect(1);
    assert!(out.out().contains("Differences: 300\n  extra: 300\n"), "{}", out.out());
    let summary = place.run("verify --max-differences 0 --json a b").expect(1).summary();
    assert_eq!((&summary["differences"], &summary["by_kind"]["extra"]), (&300.into(), &300.into()));
    let out = place.run("verify -v --one-way a b");
    out.ok();
    assert!(out.err().contains("0 files, 1 directory and 0 bytes compared: the same"));
}

#[test]
fn memory_does_not_grow_with_a_flat_directory() {
    let place = Place::new();
    place.sh("mkdir a; cd a; seq 20000 | xargs touch; cd ..; cp -a a b");
    // By way of a small program: a process begins with the peak of the one that started it.
    let summary = |line: &str| place.try_sh(&format!("$H verify --json {line}")).ok().summary();
    let rss = |summary: &serde_json::Value| summary["max_rss_bytes"].as_u64().unwrap();
    place.sh("mkdir e f");
    // The program itself, most of it where it is not optimised.
    let (least, most) = (summary("e f"), summary("a b"));
    assert_eq!(most["files"], 20_000);
    assert!(rss(&most) < rss(&least) + (8 << 20), "{least}\n{most}");
    place.sh("cd b; touch extra-{1..3000}; rm 1 20000; touch -r ../a .");
    let summary = place.run("verify --json a b").expect(1).summary();
    assert_eq!(
        (&summary["by_kind"]["extra"], &summary["by_kind"]["missing"]),
        (&3000.into(), &2.into())
    );
}

/// Random changes; the names that rsync would touch are the names that differ.
#[test]
fn rsync_would_change_the_same_names() {
    let place = Place::new();
    place.sh("mkdir a; cd a
         for d in 1 2 3 4 5 6; do mkdir -p d$d/e; for f in $(seq 12); do
           echo $d$f > d$d/f$f; echo $f > d$d/e/g$f; done; done
         ln d1/f1 d2/hard; ln -s x d3/link
         find . -exec touch -h -d '2020-01-01' {} +");
    for seed in 1..=8_u64 {
        place.sh("rm -rf b; cp -a a b");
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = |n: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % n
        };
        let mut script = String::from("cd b\n");
        for _ in 0..25 {
            let dir = format!("d{}{}", 1 + random(6), if random(2) == 0 { "" } else { "/e" });
            let file =
                format!("{dir}/{}{}", if dir.ends_with('e') { "g" } else { "f" }, 1 + random(12));
            script += &match random(8) {
                0 => format!("rm -f {file}\n"),
                1 => format!("echo new > {dir}/new{}\n", random(9)),
                2 => format!("[ -e {file} ] && chmod 600 {file}\n"),
                3 => format!("[ -e {file} ] && touch -d 2021-01-01 {file}\n"),
                4 => format!("[ -e {file} ] && echo longer than before > {file}\n"),
                5 => format!(
                    "[ -e {file} ] && tr 0-9 1-90 < {file} > x && cat x > {file}; rm -f x\n"
                ),
                6 => format!("mkdir -p {dir}/newdir; touch {dir}/newdir/x\n"),
                _ => format!("rm -rf {dir}/e\n"),
            };
        }
        place.sh(&format!(
            "{script}find . -newermt 2022-01-01 -exec touch -h -d 2020-01-01 {{}} +; true"
        ));
        let rsync = place.sh("rsync -aHAXcni --delete a/ b/");
        let mut wanted: BTreeSet<String> = rsync
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(_, path)| path.trim().split(" -> ").next().unwrap_or_default())
            .map(|path| {
                path.split(" => ").next().unwrap_or_default().trim_end_matches('/').to_owned()
            })
            .collect();
        let json = place.run("verify -HAX --json a b").out();
        let mut found = BTreeSet::new();
        for line in json.lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            if line["event"] == "difference" {
                found.insert(line["path"].as_str().unwrap().to_owned());
            }
        }
        // The content of a directory missing on one side is one difference here.
        let whole: Vec<String> = found.iter().map(|path| format!("{path}/")).collect();
        wanted.retain(|path| {
            !whole
                .iter()
                .any(|dir| path.starts_with(dir) && !json.contains(&format!("\"path\":\"{path}\"")))
        });
        assert_eq!(found, wanted, "seed {seed}\n{rsync}\n{json}");
    }
}
