//! Standard input that is closed or cannot be read is not an empty one, and output that could not be written is a
//! failure, of every command.

use super::stage::{Stage, content, file, names, on_servers, stage, tree};
use crate::common::case::{Run, run_fed};
use std::process::Command;

/// Runs a command line with its streams redirected by a shell.
fn redirected(stage: &Stage, line: &str, redirection: &str) -> Run {
    let plain = stage.command(line);
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec \"$@\" {redirection}"), "sh"]);
    command.arg(plain.get_program()).args(plain.get_args());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.current_dir(plain.get_current_dir().unwrap());
    let mut run = run_fed(&mut command, b"");
    run.line = format!("{line} {redirection}");
    run
}

/// Command lines that print something, each with the exit code if that is lost.
fn printing() -> Vec<(&'static str, i32)> {
    let mut lines = vec![
        ("--version", 1),
        ("--help", 1),
        ("help", 1),
        ("help sync", 1),
        ("help topics", 1),
        ("sync --help", 11),
        ("verify --help", 2),
        ("man", 1),
        ("man sync", 1),
        ("completions bash", 1),
        ("ls", 2),
        ("ls -l BKT", 2),
        ("ls --json BKT/", 2),
        ("du AREA", 1),
        ("du BKT", 1),
        ("head BKT/k", 1),
        ("stat --json BKT/k", 1),
        ("cat BKT/k", 1),
        ("cp BKT/k -", 1),
        ("presign BKT/k", 1),
        ("bucket-version BKT", 1),
        ("cp -v SRC/f DST/", 1),
        ("cp -v SRC/f BKT/", 1),
        ("cp --json SRC/f BKT/", 1),
        ("cp --json BKT/k DST/", 1),
        ("mv -v DST/f DST/g", 1),
        ("rm -n DST/g", 1),
        ("rm -v DST/g", 1),
        ("rm -n BKT/k", 1),
        ("sync -i -r SRC/ DST/", 11),
        ("sync -r --json SRC/ BKT/p/", 11),
        ("sync -rn --delete SRC/ BKT/q/", 11),
        ("sync -r --stats SRC/ BKT/p/", 11),
        ("verify -v SRC BKT/", 2),
        ("run -n LIST", 1),
        ("run LIST", 1),
    ];
    if cfg!(feature = "lab") {
        lines.extend([
            ("bench --dump a-rsync-parallel", 1),
            ("bench -r 2 true", 1),
            ("bench --dry-run true", 1),
            ("results ls", 1),
            ("results show AREA/measured", 1),
            ("watch -c 1", 1),
            ("watch -o - -- true", 1),
        ]);
    }
    if cfg!(feature = "io") {
        lines.push(("io --name=a --size=64k --rw=read --filename=SRC/f", 1));
        lines.push(("io --name=a --size=64k --rw=read --filename=SRC/f --output-format=json", 1));
    }
    lines
}

fn filled() -> Stage {
    let stage = stage();
    stage.put("k", b"precious");
    file(&stage.src(), "f", &[0; 65536], 100);
    std::fs::write(stage.area.join("list"), format!("ls s3://{}\n", stage.bucket)).unwrap();
    if cfg!(feature = "lab") {
        stage.ok("bench -r 2 --results AREA/measured true");
    }
    stage
}

#[test]
fn lost_output_is_a_failure_of_every_command() {
    let stage = filled();
    let mut wrong = Vec::new();
    for (redirection, cause) in
        [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")]
    {
        file(&stage.dst(), "f", b"x", 100);
        for (line, code) in printing() {
            let run = redirected(&stage, line, redirection);
            let told = run.err().matches(cause).count();
            if run.code != code || told == 0 {
                wrong.push(run.to_string());
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Nothing is lost where nothing is printed.
    for line in ["cp SRC/f DST/", "sync -r SRC/ DST/", "mv DST/f DST/h", "rm DST/h", "mb BKT-new"] {
        redirected(&stage, line, ">&-").ok();
    }
}

#[test]
fn a_closed_standard_input_is_no_empty_one() {
    let stage = filled();
    file(&stage.dst(), "old", b"kept", 100);
    for redirection in ["<&-", "0>/dev/null", "<."] {
        let cause = if redirection == "<." { "Is a directory" } else { "Bad file descriptor" };
        for (line, code) in [
            ("pipe BKT/k", 1),
            ("pipe -n BKT/new", 1),
            ("pipe --json BKT/k", 1),
            ("cp - BKT/k", 1),
            ("run", 1),
            ("run -", 1),
            ("sync -r --delete --files-from=- SRC/ BKT/", 1),
            ("sync -r --delete --exclude-from=- SRC/ DST/", 11),
            ("cp -r --exclude-from=- SRC/ BKT/new/", 2),
            ("rm -r --exclude-from=- DST", 2),
        ] {
            redirected(&stage, line, redirection).expect(code).says(&[cause]);
        }
        if cfg!(feature = "io") {
            redirected(&stage, "io -", redirection).expect(2).says(&[cause]);
        }
        assert_eq!(names(&stage.objects()), ["k"], "{redirection}");
        assert_eq!(stage.objects()[&b"k"[..]], b"precious", "{redirection}");
        assert_eq!(names(&tree(&stage.dst())), ["old"], "{redirection}");
    }
    // The lines of a file do not need it, but one of them may.
    std::fs::write(stage.area.join("list"), format!("pipe s3://{}/k\n", stage.bucket)).unwrap();
    redirected(&stage, "run LIST", "<&-").expect(1).says(&["line 1", "Bad file descriptor"]);
    for line in ["cp /dev/stdin BKT/k", "cp /dev/fd/0 BKT/k", "sync /dev/stdin BKT/k"] {
        let run = redirected(&stage, line, "<&-");
        assert!(run.code != 0, "{run}");
    }
    assert_eq!(stage.objects()[&b"k"[..]], b"precious");
    for line in ["cp BKT/k /dev/stdout", "cat BKT/k", "cp BKT/k -"] {
        let run = redirected(&stage, line, ">&-");
        assert!(run.code != 0, "{run}");
    }
    // A child gets what this program was given.
    if cfg!(feature = "lab") {
        let run = redirected(&stage, "watch -q -- cat", "<&-");
        run.expect(1).says(&["Bad file descriptor"]);
    }
}

// Standard input and command files: pipe, run, and lists of names.

#[test]
fn pipe_makes_objects() {
    on_servers(|stage| {
        let large = content(4, 12_000_000);
        for (name, body) in [("none", &b""[..]), ("small", b"said"), ("large", &large)] {
            stage.fed(&format!("pipe --part-size 5MiB SPOT/{name}"), body).ok();
            assert!(stage.place()[name.as_bytes()] == body, "{name}");
        }
        assert!(stage.ok("cat SPOT/large").stdout == large);
        stage.fed("pipe --content-type text/x-own SPOT/typed", b"x").ok();
        let found = stage.ok("head --json SPOT/typed").summary();
        assert_eq!(found["content_type"], "text/x-own", "{found}");
        stage.fed("pipe s3://b-that-is-not-there/x", b"x").expect(1);
        assert_eq!(stage.ok("mpu ls BKT").out(), "");
    });
}

#[test]
fn run_does_each_line() {
    on_servers(|stage| {
        for number in 0..20 {
            file(&stage.src(), &format!("f {number}"), b"x", 100);
        }
        let (src, bucket) = (stage.src(), &stage.bucket);
        let mut lines = String::from("# a comment\n\n");
        for number in 0..20 {
            let to = format!("s3://{bucket}/place/f{number}");
            lines += &format!("cp '{}/f {number}' {to}\n", src.display());
        }
        let commands = stage.area.join("commands");
        std::fs::write(&commands, &lines).unwrap();
        stage.ok("run AREA/commands");
        assert_eq!(stage.place().len(), 20);
        let lines = format!(
            "rm s3://{bucket}/place/f1 s3://{bucket}/place/f2\ncp s3://{bucket}/place/none {0}/x\n\
             mv s3://{bucket}/place/f3 {0}/three\nmb s3://{bucket}-run\n",
            stage.dst().display()
        );
        let run = stage.fed("run -", lines.as_bytes());
        run.expect(1).says(&["line 2", "none"]);
        assert_eq!(run.err().lines().count(), 1, "{run}");
        assert_eq!(stage.place().len(), 17);
        assert_eq!(names(&tree(&stage.dst())), ["three"]);
        assert!(stage.ok("ls s3://").out().contains(&format!("{bucket}-run")));
        let run = stage.fed("run -", b"frobnicate s3://x\n");
        assert_ne!(run.code, 0, "{run}");
        run.says(&["line 1"]);
    });
}

#[test]
fn lists_of_names() {
    on_servers(|stage| {
        for name in ["a", "d/b", "d/c", "e"] {
            file(&stage.src(), name, name.as_bytes(), 100);
        }
        stage.fed("sync -r --files-from=- SRC/ SPOT/", b"a\nd/b\n").ok();
        assert_eq!(names(&stage.place()), ["a", "d/b"]);
        let run = stage.fed("sync -r --files-from=- --from0 SRC/ SPOT/", b"d/c\0none\0");
        run.expect(23).says(&["none"]);
        assert_eq!(names(&stage.place()), ["a", "d/b", "d/c"]);
        stage.fed("sync -r --files-from=- SPOT/ DST/", b"d/c\na\n").ok();
        assert_eq!(names(&tree(&stage.dst())), ["a", "d/c"]);
        stage.fed("sync -r --files-from=- SPOT/ DST/", b"none\n").expect(23).says(&["none"]);
    });
}
