//! Options of `cp` and `mv` compared with coreutils: the same command in the same small folders, then the same names,
//! contents, links, modes and exit codes.

use crate::common::area::{Area, Fs, Volume};
use crate::common::case::Run;
use crate::common::{have, must};
use crate::tools::place::Place;
use std::collections::HashMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::process::Command;

/// What is below a folder: names with types and contents, and for each file the first of its names.
fn state(top: &Path) -> Vec<String> {
    let mut names: Vec<_> = Vec::new();
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.symlink_metadata().unwrap().is_dir() {
                folders.push(path.clone());
            }
            names.push(path);
        }
    }
    names.sort();
    let mut first: HashMap<(u64, u64), String> = HashMap::new();
    let lines = names.iter().map(|path| {
        let meta = path.symlink_metadata().unwrap();
        let name = path.strip_prefix(top).unwrap().display().to_string();
        let what = match meta.file_type() {
            kind if kind.is_symlink() => format!("-> {}", path.read_link().unwrap().display()),
            kind if kind.is_dir() => "/".into(),
            kind if kind.is_fifo() => "|".into(),
            _ => format!("{:?}", String::from_utf8_lossy(&std::fs::read(path).unwrap())),
        };
        let link = first.entry((meta.dev(), meta.ino())).or_insert_with(|| name.clone());
        let link = if *link == name { String::new() } else { format!(" = {link}") };
        format!("{name} {what} {:o}{link}", meta.mode() & 0o7777)
    });
    lines.collect()
}

/// Runs a line in two equal folders, with the program and with coreutils; returns how the results differ.
fn compare(place: &Place, fixture: &str, line: &str) -> Option<String> {
    let run = |name: &str, prefix: &str| -> (Run, Vec<String>) {
        let script = format!(
            "rm -rf {name}; mkdir {name}; cd {name}; umask 022; {fixture}\n{prefix}{line} </dev/null"
        );
        (place.try_sh(&script), state(&place.path().join(name)))
    };
    let ((ours, mine), (theirs, other)) = (run("ours", "\"$H\" "), run("theirs", ""));
    (ours.code != theirs.code || mine != other).then(|| {
        format!(
            "{line}   [{fixture}]\n    exit code {} instead of {}\n    {mine:?}\n    {other:?}\n    {}    {}",
            ours.code,
            theirs.code,
            ours.err(),
            theirs.err()
        )
    })
}

fn all(cases: impl IntoIterator<Item = (String, String)>) {
    let place = Place::new();
    let cases: Vec<_> = cases.into_iter().collect();
    let differs = |(fixture, line): &(String, String)| compare(&place, fixture, line);
    let wrong: Vec<_> = cases.iter().filter_map(differs).collect();
    let count = (wrong.len(), cases.len());
    assert!(wrong.is_empty(), "{count:?} differ from coreutils:\n{}", wrong.join("\n"));
}

fn lines(fixture: &str, lines: &[&str]) {
    all(lines.iter().map(|line| (fixture.to_owned(), (*line).to_owned())));
}

/// A file, its other names, and what may be in their way.
const SAME: &[(&str, &[&str])] = &[
    ("echo foo > foo; ln -s foo sl", &["foo foo", "foo sl", "sl foo"]),
    ("echo foo > foo; ln -s foo s1; ln -s foo s2", &["s1 s2", "s1 foo"]),
    ("echo foo > foo; ln foo hl", &["foo hl", "hl foo"]),
    ("echo foo > foo; ln -s foo sl; ln sl hlsl", &["sl hlsl", "hlsl sl"]),
    ("echo foo > foo; ln foo hl; ln -s hl sl", &["foo sl", "sl foo", "sl hl"]),
    ("echo foo > foo; echo bar > bar", &["foo bar"]),
    ("echo foo > foo; echo bar > bar; ln -s bar sl", &["foo sl"]),
    ("echo foo > foo; ln -s gone sl", &["foo sl"]),
    ("echo foo > foo; echo old > foo~; echo bar > bar", &["foo~ foo", "foo bar"]),
    ("echo foo > foo; mkdir d; ln foo d/foo", &["foo d"]),
    ("echo foo > foo; mkdir d", &["foo d", "d foo"]),
];

fn same(command: &str, options: &[&str], left_out: impl Fn(&str, &str) -> bool) {
    let mut cases = Vec::new();
    for options in options {
        for (fixture, lines) in SAME {
            for names in lines.iter().filter(|names| !left_out(options, names)) {
                // With equal times `-u` replaces nothing.
                let fixture = format!("{fixture}; touch -h -d 2001-01-01 *");
                cases.push((fixture, format!("{command} {options} {names}")));
            }
        }
    }
    all(cases);
}

#[test]
fn cp_onto_names_of_the_same_file() {
    let options = [
        "",
        "-f",
        "-b",
        "-bf",
        "-d",
        "-bd",
        "-bdf",
        "-l",
        "-lf",
        "-bl",
        "-rl",
        "-al",
        "-alf",
        "-s",
        "--remove-destination",
        "-b --remove-destination",
        "-d --remove-destination",
        "--attributes-only",
        "-b --attributes-only",
        "-u",
        "-RL",
        "-RH",
    ];
    same("cp", &options, |options, names| {
        // coreutils make relative symlinks in the working directory only.
        options == "-s" && names == "foo d"
    });
}

#[test]
fn mv_onto_names_of_the_same_file() {
    let options = ["", "-f", "-b", "-bf", "-u", "--backup=numbered", "-T", "-bT", "-S .old"];
    same("mv", &options, |_, _| false);
}

/// coreutils 9.1 leave simple backups of a file in a directory argument in the working directory, so targets are files
/// here.
#[test]
fn backups() {
    let fixture = "echo new > f; mkdir d; echo old > d/f; echo 1 > d/f.~1~; echo 9 > d/f.~9~; \
                   echo x > d/f.~010~; echo y > d/g; mkdir e; echo old > e/f; echo s > e/f~; \
                   ln -s d l; mkdir u; echo u > u/g; mkdir t; echo g > t/g; mkdir t/f; echo in > t/f/in";
    let values =
        ["", "=numbered", "=t", "=nu", "=existing", "=nil", "=simple", "=never", "=none", "=off"];
    let of = |command: &str| {
        let mut lines = Vec::new();
        for value in values {
            lines.push(format!("{command} --backup{value} f d/f"));
            lines.push(format!("{command} --backup{value} f e/f"));
        }
        for variables in [
            "VERSION_CONTROL=numbered",
            "VERSION_CONTROL=simple SIMPLE_BACKUP_SUFFIX=.bak",
            "VERSION_CONTROL=none",
            "SIMPLE_BACKUP_SUFFIX=a/b",
        ] {
            for options in ["-b", "--backup=simple", "-S .s", "", "--backup"] {
                lines.push(format!("env {variables} {command} {options} f d/f"));
                lines.push(format!("env {variables} {command} {options} f e/f"));
            }
        }
        lines
    };
    let mut cases = of("cp");
    cases.extend(of("mv"));
    for more in [
        "cp -b f d/new",
        "cp -r --backup=t t/. u",
        "cp -a --backup=numbered t/. u",
        "cp --backup=t f t/g u",
        "mv --backup=t t/g f u",
        "mv --backup=t f t/g u -v >/dev/null",
        "mv -bT t e",
        "mv -b --backup=t -T t e",
        "cp -b --suffix=.o f e/f",
        "cp --backup=numbered f e/f",
        "mv --strip-trailing-slashes d/ n/",
        "cp -r --strip-trailing-slashes d/ n/",
        "cp -rP --strip-trailing-slashes l/ u",
        "mv --strip-trailing-slashes l/// u",
    ] {
        cases.push(more.to_owned());
    }
    // `env` runs the program too.
    let cases = cases.into_iter().map(|line| (fixture.to_owned(), line));
    let place = Place::new();
    let wrong: Vec<String> = cases
        .filter_map(|(fixture, line)| match line.strip_prefix("env ") {
            None => compare(&place, &fixture, &line),
            Some(rest) => {
                let at = rest.find(" cp").or_else(|| rest.find(" mv")).unwrap();
                let (variables, line) = rest.split_at(at);
                compare(&place, &format!("{fixture}; export {variables}"), line.trim_start())
            }
        })
        .collect();
    assert!(wrong.is_empty(), "{} differ from coreutils:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn attributes_without_contents_and_whole_replacements() {
    let fixture = "umask 022; echo content > f; chmod 640 f; touch -d 2001-02-03 f; echo other > g; \
                   chmod 604 g; ln -s f l; mkdir -p d/s; echo in > d/s/x; chmod 700 d/s/x; \
                   mkdir -p e/d/s; echo old > e/d/s/x; chmod 666 e/d/s/x; ln -s ../g e/l; mkfifo e/p";
    lines(
        fixture,
        &[
            "cp --attributes-only f new",
            "cp --attributes-only f g",
            "cp --attributes-only -p f g",
            "cp --attributes-only -p f new",
            "cp --attributes-only --preserve=mode f g",
            "cp --attributes-only -a d e",
            "cp --attributes-only -r d e",
            "cp --attributes-only -r d n",
            "cp --attributes-only f e/l",
            "cp --attributes-only -d l n",
            "cp --attributes-only --remove-destination f g",
            "cp --remove-destination f g",
            "cp --remove-destination -p f g",
            "cp --remove-destination f e/l",
            "cp --remove-destination f e/p",
            "cp --remove-destination f e",
            "cp -r --remove-destination d e",
            "cp -a --remove-destination d e",
            "cp -r --remove-destination d n",
            "cp --remove-destination d/s g",
            "cp --parents d/s/x e",
            "cp --parents -r d e",
            "cp --parents -a d/s e",
            "cp --parents d/s/x new",
            "cp --parents -p ./d/s/x e",
            "cp -r --parents d/s/ e",
            "cp --parents d/s/x f e",
            "cp --parents -b d/s/x e",
            "cp --parents missing/x e",
            "cp --parents $PWD/d/s/x e >/dev/null 2>&1; rm -rf e/*",
        ],
    );
}

#[test]
fn hard_links_stay_together() {
    let links = "mkdir s t; echo one > s/a; ln s/a s/b; ln s/a s/c; touch -d 2005-01-01 s/a";
    for (fixture, list) in [
        (
            "echo x > a; ln -s a b; mkdir c",
            &[
                "cp --preserve=links -R -H a b c",
                "cp --preserve=links -R -L a b c",
                "cp --preserve=links -L a b c",
                "cp --preserve=links -R -P a b c",
                "cp -aL a b c",
                "cp -aH b a c",
            ][..],
        ),
        (links, &["cp -au s t", "cp -a s/. t", "cp -au s/. t", "cp -dR s/. t", "cp -aL s t"][..]),
        (
            &format!("{links}; cp -p s/a t/a"),
            &["cp -au s/. t", "cp -au s/a s/b s/c t", "cp -au s/b s/a t"],
        ),
        (&format!("{links}; cp -p s/a t/a; cp -p s/b t/b"), &["cp -au s/. t"]),
        (&format!("{links}; echo newer > t/b; touch t/b"), &["cp -au s/b s/a t"]),
        (&format!("{links}; echo older > t/b; touch -d 2001-01-01 t/b"), &["cp -au s/. t"]),
        (
            &format!("{links}; cp -al s n; echo f > s/f; ln -s f s/l; mkfifo s/p"),
            &["cp -al s t", "cp -al s/. n", "cp -al s/. n; cp -al s/. n", "cp -alf s/. n"],
        ),
        (
            &format!("{links}; echo other > t/a"),
            &["cp -al s/. t", "cp -alf s/. t", "cp -alu s/. t", "cp -aln s/. t"],
        ),
        (
            "echo a > a; echo b > b",
            &["cp -lf a b", "cp -l a b", "cp -lf a a", "cp -lf a b; cp -lf a b"],
        ),
    ] {
        lines(fixture, list);
    }
}

/// A newer target is not replaced under `-u`, even by a link to another name of its source; coreutils replace it if its
/// name comes later.
#[test]
fn a_newer_target_stays_under_update() {
    let place = Place::new();
    for order in ["s/a s/b", "s/b s/a", "s/."] {
        place.sh("rm -rf s t; mkdir s t; echo one > s/a; ln s/a s/b; touch -d 2005-01-01 s/a; echo mine > t/b");
        place.run(&format!("cp -rau {order} t")).ok();
        assert_eq!(place.sh("cat t/b; stat -c %h t/a t/b"), "mine\n2\n2\n", "{order}");
    }
}

#[test]
fn values_of_update_and_contradictions() {
    let place = Place::new();
    place
        .sh("echo new > a; echo old > b; touch -d 2001-01-01 b; echo x > c; touch -d 2001-01-01 c");
    place.run("cp --update=none a b").ok();
    place.run("mv --update=none a b").ok();
    assert_eq!(place.sh("cat a b"), "new\nold\n");
    place.run("cp -u --update=all c a").ok();
    assert_eq!(place.sh("cat a"), "x\n");
    place.run("mv -u --update=all c b").ok();
    assert_eq!(place.sh("cat b; ls"), "x\na\nb\n");
    for line in ["cp -bn a b", "mv --backup -n a b", "cp --backup=x a b", "mv -S a/b a b"] {
        place.run(line).expect(2);
    }
    for option in ["--copy-contents", "--context", "-Z", "--keep-directory-symlink"] {
        place.run(&format!("cp {option} a b")).expect(2).says(&["is not supported"]);
    }
    for option in ["--exchange", "--context", "-Z"] {
        place.run(&format!("mv {option} a b")).expect(2).says(&["is not supported"]);
    }
}

/// Names of one file keep together on another file system, in whatever folders and arguments they are.
#[test]
fn mv_keeps_hard_links_across_file_systems() {
    let Some(other) = Area::new(Fs::Ext4, "mv across file systems") else { return };
    let place = Place::new();
    let fixture = "mkdir -p s/d1 s/d2/e t; echo one > s/d1/f; ln s/d1/f s/d2/g; ln s/d1/f s/d2/e/h; \
                   ln s/d1/f s/top; echo two > a; ln a b; mkdir d; ln a d/c; ln a outside; \
                   for i in $(seq 40); do mkdir s/n$i; echo $i > s/n$i/x; ln s/n$i/x s/x$i; done";
    for (line, left) in [
        ("s", "a b d outside"),
        ("-t OTHER a b d", "outside s"),
        ("b d a", "outside s"),
        ("d b s", "a outside"),
        ("-j 1 s a b", "d outside"),
        ("s a b d outside", ""),
    ] {
        let line = if line.starts_with("-t") { line.to_owned() } else { format!("{line} OTHER") };
        let mut states = Vec::new();
        for (name, program) in [("ours", "\"$H\" mv"), ("theirs", "mv")] {
            let to = other.join(name);
            // An option of the program's own.
            let line = if name == "theirs" { line.replace("-j 1 ", "") } else { line.clone() };
            let line = line.replace("OTHER", to.to_str().unwrap());
            let to = to.display();
            place.sh(&format!(
                "rm -rf {name} {to}; mkdir {name} {to}; cd {name}; {fixture}\nrmdir t; {program} {line}"
            ));
            states.push((state(&place.path().join(name)), state(&other.join(name))));
        }
        assert_eq!(states[0], states[1], "{line}");
        let kept = place.sh("cd ours; ls").split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(kept, left, "{line}");
    }
    let to = other.join("copies");
    place.sh(&format!(
        "rm -rf x; mkdir x; echo a > x/a; ln x/a x/b; \"$H\" mv --no-preserve=links x {}",
        to.display()
    ));
    assert_ne!(to.join("a").metadata().unwrap().ino(), to.join("b").metadata().unwrap().ino());
    place.sh("echo f > f");
    place.run(&format!("mv --no-copy f {}", to.display())).expect(1).says(&["cross-device"]);
    assert_eq!(place.sh("cat f"), "f\n");
}

/// An attribute that the target has no room for is named as that, the source stays, and an option gives it up.
#[test]
fn mv_says_which_attribute_the_target_cannot_keep() {
    let Some(xfs) = Area::new(Fs::Xfs, "large attributes") else { return };
    let Some(ext4) = Area::new(Fs::Ext4, "large attributes") else { return };
    if !have("setfattr", "large attributes") {
        return;
    }
    let place = Place::new();
    let (from, to) = (xfs.path().display(), ext4.path().display());
    let script = format!(
        "cd {from}; mkdir d; echo one > d/big; echo two > d/small; \
         setfattr -n user.big -v $(head -c 40000 /dev/zero | tr '\\0' x) d/big"
    );
    place.sh(&script);
    let run = place.run(&format!("mv {from}/d {to}/d"));
    run.expect(1).says(&["set extended attributes of", "no room", "--no-preserve=xattr"]);
    assert!(!run.err().contains("is full"), "{run}");
    assert_eq!(
        place.sh(&format!("cd {from}; cat d/big; ls d; cat {to}/d/small")),
        "one\nbig\ntwo\n"
    );
    place.run(&format!("mv --no-preserve=xattr {from}/d/big {to}/d")).ok();
    assert_eq!(place.sh(&format!("cat {to}/d/big; ls {from}/d")), "one\n");
    // `sync` names its own option.
    place.sh(&format!("cd {from}; rm -r d; {}", script.split_once("; ").unwrap().1));
    let run = place.run(&format!("sync -aX {from}/d/ {to}/s"));
    run.expect(23).says(&["no room", "leave -X out"]);
    assert_eq!(place.sh(&format!("cat {to}/s/big {to}/s/small")), "one\ntwo\n");
}

struct Unmount<'a>(&'a Path);

impl Drop for Unmount<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

/// What cannot be written on a read-only file system is 23, as in rsync, and the rest goes on.
#[test]
fn read_only_targets_end_as_in_rsync() {
    if !have("rsync", "read-only targets") {
        return;
    }
    let Some(volume) = Volume::new(Fs::Ext4, 16, &[], "read-only targets") else { return };
    let place = Place::new();
    place.sh("mkdir -p src/d to/d to2; echo a > src/f; echo b > src/d/g; mkdir out");
    let (at, here) = (volume.path().display(), place.path().display());
    place.sh(&format!("cd {here}; cp -a src {at}/src; cp -a src {at}/old; echo old > {at}/old/f; echo x > {at}/src/x"));
    must(Command::new("mount").args(["-o", "remount,ro"]).arg(volume.path()));
    for line in [
        "-a src/ RO/",
        "-a src/ RO/new",
        "-a src/f RO/",
        "-a src/f RO/new",
        "-a src/f RO/old/f",
        "-a src/ RO/old/",
        "-a --inplace src/ RO/old/",
        "-ab src/ RO/old/",
        "-aH src/ RO/old/",
        "-a --delete src/ RO/src/",
        "-a --mkpath src/ RO/a/b",
        "-a --remove-source-files RO/src/ out/",
        "-an src/ RO/",
    ] {
        let line = line.replace("RO", volume.path().to_str().unwrap());
        let theirs = place.other(&format!("rsync {line}"), b"");
        place.run(&format!("sync {line}")).expect(theirs.code);
    }
    place.run(&format!("cp -r src {at}/")).expect(1).says(&["read-only"]);
    // A part of the target is read-only: the rest is copied.
    must(Command::new("mount").args(["--bind"]).arg(volume.path()).arg(place.path().join("to/d")));
    let part = place.path().join("to/d");
    let _unmount = Unmount(&part);
    place.run("sync -a src/ to/").expect(23);
    assert_eq!(place.sh("cat to/f"), "a\n");
}

/// A list with one name gives it the target's name where that does not exist, as in rsync.
#[test]
fn one_listed_name_gets_the_name_of_the_target() {
    if !have("rsync", "lists of one name") {
        return;
    }
    let place = Place::new();
    place.sh(
        "mkdir -p src/d have; echo a > src/f; echo b > src/d/g; echo x > file; echo f > one; echo d/g > deep; \
         echo d > dir; echo d/ > slash; printf 'f\\nf\\n' > twice; printf 'f\\nnone\\n' > gone; \
         printf 'f\\nd/g\\n' > two; touch -d @1500000000 src/f src/d/g file",
    );
    for list in ["one", "deep", "dir", "slash", "twice", "gone", "two"] {
        for line in [
            "src/ t",
            "src/ t/",
            "-a src/ t",
            "-r src/ t",
            "--no-R src/ t",
            "src/ t/x",
            "--mkpath src/ t/x",
            "src/ have",
            "src/ file",
        ] {
            let mut ends = Vec::new();
            for program in ["rsync", "\"$H\" sync"] {
                let script = format!(
                    "rm -rf w; mkdir w; cp -a have file src one {list} w 2>/dev/null; cd w; \
                     {program} --files-from={list} {line}"
                );
                let run = place.try_sh(&script);
                ends.push((run.code, state(&place.path().join("w"))));
            }
            // A target that does not exist is 11 here and 3 in rsync.
            if ends[0].0 == 3 && ends[1].0 == 11 {
                ends[1].0 = 3;
            }
            assert_eq!(ends[1], ends[0], "--files-from={list} {line}");
        }
    }
}

/// A hint names only options that the command has.
#[test]
fn hints_are_for_their_command() {
    let place = Place::new();
    place.sh("mkdir d; echo a > f; ln -s f l");
    for line in ["cp f no/x", "cp -r d no/x/y", "mv f no/x", "cp -r d no/such/", "cp f f no/such"] {
        let run = place.run(line);
        run.expect(1);
        assert!(!run.err().contains("--mkpath"), "{run}");
    }
    place.run("sync f no/such/x").expect(3).says(&["--mkpath"]);
    place.run("sync -r d/ no/such/x").expect(11).says(&["--mkpath"]);
    let run = place.run("cp --no-follow-symlinks l new");
    assert!(!run.err().contains("-l keeps"), "{run}");
    let run = place.run("cp --parents ../f d");
    assert!(!run.expect(1).err().contains("FOLDER/./"), "{run}");
}
