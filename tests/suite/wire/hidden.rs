//! Failures that look like successes and vice versa: errors in the body of a 200 response, and responses lost
//! after the work was done.

use crate::wire::server::{Stage, contents, counts, retries};

fn stage() -> Stage {
    let stage = Stage::new();
    stage.source("small", 100_000);
    stage.source("large", 11 << 20);
    stage.seed();
    stage
}

#[test]
fn copies_that_fail_with_status_200() {
    let stage = stage();
    let fault = "--fault error:op=CopyObject,code=InternalError,status=200";
    let server = stage.serve(&format!("{fault},times=2"));
    let run = server.run("cp -r --json s3://bkt/ s3://bkt/copies/");
    let run = if run.code == 0 { run } else { panic!("{run}") };
    counts(&run, &[("failed", 0)]);
    assert!(retries(&run) >= 2, "{run}");
    for key in ["small", "large"] {
        assert!(stage.object(&format!("copies/{key}")) == stage.object(key), "{key}");
    }
    let server = stage.serve(&format!("{fault},key=small"));
    let line = "mv -v --json s3://bkt/small s3://bkt/large s3://bkt/moved/";
    let run = server.run_with(line, &[("AWS_MAX_ATTEMPTS", "2")]);
    run.expect(1);
    counts(&run, &[("files", 1), ("failed", 1)]);
    // Objects that were not copied still exist.
    assert!(stage.object("small").is_some() && stage.object("moved/small").is_none());
    assert!(stage.object("large").is_none() && stage.object("moved/large").is_some());
}

#[test]
fn completions_that_fail_or_seem_to() {
    let stage = stage();
    for (number, fault) in [
        // The work was not done, and the answer says so late.
        "error:code=InternalError,status=200,times=1",
        "error:code=SlowDown,times=1",
        // It was done, but the answer says that it was not, or does not arrive.
        "error:code=InternalError,late=yes,times=1",
        "error:code=InternalError,status=200,late=yes,times=1",
        "reset:in=response,times=1",
        "truncate:after=40,times=1",
        "silent:times=1",
    ]
    .into_iter()
    .enumerate()
    {
        let server = stage.serve(&format!("--fault {fault},op=CompleteMultipartUpload"));
        let line = "mv -v --json --part-size=5MiB --cli-read-timeout=1";
        let run = server.run(&format!("{line} SRC/large s3://bkt/{number}/large"));
        assert_eq!(run.code, 0, "{fault}: {run}");
        counts(&run, &[("files", 1), ("failed", 0)]);
        // Whether it was done is found out by looking, without asking again for it.
        assert!(retries(&run) >= 1 || number >= 2, "{fault}: {run}");
        assert!(stage.object(&format!("{number}/large")) == stage.object("large"), "{fault}");
        assert_eq!(server.uploads(), 0, "{fault}");
        assert!(!stage.src().join("large").exists());
        stage.source("large", 11 << 20);
    }
    let fault = "error:code=InternalError,status=200,op=CompleteMultipartUpload";
    let server = stage.serve(&format!("--fault {fault}"));
    let line = "mv -v --json --part-size=5MiB SRC/large s3://bkt/never/large";
    let run = server.run_with(line, &[("AWS_MAX_ATTEMPTS", "2")]);
    run.expect(1);
    counts(&run, &[("files", 0), ("failed", 1), ("retries", 1)]);
    assert_eq!(stage.object("never/large"), None);
    assert_eq!(server.uploads(), 0);
    assert!(stage.src().join("large").exists());
}

/// Deletion is idempotent: repeating it is a success.
#[test]
fn deletions_whose_answer_is_lost() {
    let stage = stage();
    for number in 0..30 {
        stage.source(&format!("more/{number}"), 10);
    }
    stage.seed();
    let server = stage.serve(
        "--fault reset:op=DeleteObjects,in=response,times=1 \
         --fault reset:op=DeleteObject,in=response,times=1",
    );
    let run = server.run("rm -r --json s3://bkt/more/");
    run.ok();
    assert_eq!(stage.object("more/7"), None);
    server.run("mv s3://bkt/small s3://bkt/other").ok();
    assert!(stage.object("small").is_none() && stage.object("other").is_some());
    let keys = contents(&stage.area.join("root/bkt"));
    let keys: Vec<_> = keys.keys().filter(|key| !key.to_string_lossy().contains('.')).collect();
    assert_eq!(keys.len(), 2, "{keys:?}");
}
