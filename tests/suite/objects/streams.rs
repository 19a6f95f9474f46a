//! Standard input and command files: pipe, run, and lists of names.

use crate::objects::stage::{content, file, names, on_servers, tree};

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
