//! `hakobu ls` compared with coreutils in the C locale, byte for byte.

use crate::common::case::Run;
use crate::common::{have_root, skip};
use crate::tools::place::{HOSTILE, Place};

const SAMPLE: &str = r#"
    mkdir -p t/dir/sub t/.hiddendir t/empty; cd t
    echo one > one; head -c 123456 /dev/zero > large; touch .hidden dir/inner dir/sub/f exe; chmod 755 exe
    ln -s one link; ln -s dir dirlink; ln -s /nowhere dangling; mkfifo pipe; ln one hard
    chmod 4755 large; chmod 1777 empty; touch -d '2001-02-03 04:05:06.789' one; touch -d '2 months ago' large
    touch -d '2037-01-01' exe; touch -d '3 days ago' dir; setfacl -m u:1234:r hard
"#;

/// Both programs with the same arguments.
fn both(place: &Place, line: &str) -> (Run, Run) {
    (place.run(&format!("ls {line}")), place.other(&format!("ls {line}"), b""))
}

#[test]
fn output_is_that_of_coreutils() {
    let place = Place::new();
    place.sh(SAMPLE);
    for line in [
        "",
        "t",
        "-a t",
        "-A t",
        "-l t",
        "-la t",
        "-lA t",
        "-lh t",
        "-lah t",
        "-d t",
        "-ld t",
        "-lt t",
        "-ltr t",
        "-t t",
        "-S t",
        "-lS t",
        "-r t",
        "-Sr t",
        "-1 t",
        "-1l t",
        "-U t",
        "-R t",
        "-lR t",
        "-aR t",
        "-AR t",
        "-n t",
        "-g t",
        "-o t",
        "-lG t",
        "-go t",
        "--full-time t",
        "-i t",
        "-li t",
        "-F t",
        "-lF t",
        "-p t",
        "-q t",
        "-N t",
        "--zero t",
        "-l --zero t",
        "t t/dir",
        "t/one t/dir t/large",
        "-l t/one t/dir",
        "-d t/one t/dir",
        "t/link",
        "-l t/link",
        "t/dirlink",
        "-l t/dirlink",
        "-l t/dirlink/",
        "-F t/dirlink",
        "-d t/dirlink",
        "-dl t/dirlink",
        "-l t/dangling",
        "t/empty",
        "-l t/empty",
        "t/ t//dir",
        "-al t/empty",
        "-ah --reverse -l t",
        "-iR t",
        "t/pipe",
        "-lrt t/one t/large t/exe",
    ] {
        let (ours, theirs) = both(&place, line);
        assert_eq!(ours.out(), theirs.out(), "{line}");
        assert_eq!((ours.code, ours.err()), (theirs.code, String::new()), "{line}");
    }
}

#[test]
fn columns_are_those_of_coreutils_without_tabs() {
    let place = Place::new();
    place.sh("mkdir t; cd t; touch a bb ccc dddd $(seq 40) a-rather-long-name-for-a-file");
    for width in [1, 20, 33, 34, 35, 79, 80, 81, 120, 1000] {
        for options in ["-C", "-CF", "-Cr", "-Ci"] {
            place.sh(&format!(
                "diff <(COLUMNS={width} ls {options} t | expand) <(COLUMNS={width} $H ls {options} t)"
            ));
        }
    }
}

#[test]
fn devices_and_owners() {
    if !have_root("devices") {
        return;
    }
    let place = Place::new();
    place.sh("mkdir t; cd t; mknod c c 1 3; mknod b b 259 1000; head -c 5000 /dev/zero > f; chown 65534:12345 f; chown 98765 c");
    for line in ["-l t", "-n t", "-lh t", "-l t/f", "-l t/c", "-gG t"] {
        let (ours, theirs) = both(&place, line);
        assert_eq!(ours.out(), theirs.out(), "{line}");
    }
}

#[test]
fn exit_codes() {
    let place = Place::new();
    place.sh("mkdir -p t/closed t/open; chmod 0 t/closed");
    for (line, code) in
        [("nowhere", 2), ("t nowhere", 2), ("t", 0), ("--nosuch", 2), ("--color t", 2)]
    {
        let out = place.run(&format!("ls {line}"));
        out.expect(code);
        assert_eq!(out.err().is_empty(), code == 0, "{line}");
    }
    assert_eq!(
        place.run("ls nowhere").err(),
        "hakobu: cannot look at 'nowhere': No such file or directory\n"
    );
    assert!(place.run("ls --color t").err().starts_with("hakobu: --color is not supported"));
    assert!(place.run("ls --help").ok().out().contains("hakobu ls [OPTIONS] [PATH]..."));
    if have_root("an ordinary user") {
        for (line, code) in
            [("-R t", 1), ("t/closed", 2), ("-l t/open t/closed", 2), ("-ld t/closed", 0)]
        {
            let nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups";
            let ours = place.try_sh(&format!("{nobody} $H ls {line}"));
            ours.expect(code);
            let theirs = place.try_sh(&format!("{nobody} ls {line}"));
            theirs.expect(code);
            assert_eq!(ours.err().is_empty(), theirs.err().is_empty(), "{line}");
        }
    }
}

#[test]
fn names_that_cannot_be_looked_at_show_question_marks() {
    if !have_root("an ordinary user") {
        return;
    }
    let place = Place::new();
    place.sh("mkdir t; touch t/f; ln -s f t/l; chmod 744 t");
    let nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups";
    let ours = place.try_sh(&format!("{nobody} $H ls -l t"));
    ours.expect(1);
    let theirs = place.try_sh(&format!("{nobody} ls -l t"));
    theirs.expect(1);
    let squeeze = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(squeeze(ours.out()), squeeze(theirs.out()));
}

#[test]
fn hostile_names() {
    let place = Place::new();
    place.sh(&format!("mkdir t; cd t; {HOSTILE}"));
    for line in ["t", "-l t", "-q t", "-lq t", "--zero t", "-N t"] {
        let (ours, theirs) = both(&place, line);
        assert_eq!(ours.stdout, theirs.stdout, "{line}");
    }
    let json = place.run("ls --json t").ok().out();
    let lines: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 13);
    assert!(lines.iter().any(|line| line["path_bytes"] == "742f626164ff"));
    assert!(lines.iter().any(|line| line["path"] == "t/new\nline" && line["kind"] == "file"));
}

#[test]
fn names_are_quoted_on_a_terminal() {
    let place = Place::new();
    place.sh("mkdir t; cd t; touch 'a b' plain $'esc\\e[31m' \"it's\"");
    let out = place
        .try_sh("command -v script >/dev/null || exit 77; script -qec \"$H ls -1 t\" /dev/null");
    if out.code == 77 {
        return skip("needs script");
    }
    let text = out.out();
    assert_eq!(text.replace('\r', ""), "'a b'\n'esc'$'\\033''[31m'\n\"it's\"\nplain\n");
}

#[test]
fn json_has_what_stat_says() {
    let place = Place::new();
    place.sh("mkdir t; echo hello > t/f; chmod 640 t/f; touch -d @1000000000.5 t/f; ln -s f t/l");
    let text = place.run("ls --json t").ok().out();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (field, value) in
        [("bytes", 6), ("nlink", 1), ("mtime_s", 1_000_000_000), ("mtime_ns", 500_000_000)]
    {
        assert_eq!(lines[0][field], value);
    }
    assert_eq!((&lines[0]["mode"], &lines[1]["link"]), (&"0640".into(), &"f".into()));
}

#[test]
fn recursion_is_bound_neither_by_path_max_nor_by_descriptors() {
    let place = Place::new();
    place.deep("deep", "directory", 2000, "last");
    let ours = place.sh("ulimit -n 64; $H ls -R deep | tail -n 3");
    assert!(ours.ends_with("directory:\nf\nlast\n"));
}
