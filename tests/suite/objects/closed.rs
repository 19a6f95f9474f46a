//! Standard input that is closed or cannot be read is not an empty one, and output that could not be written is a
//! failure, of every command.

use crate::common::case::{Run, run_fed};
use crate::objects::stage::{Stage, file, names, stage, tree};
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
