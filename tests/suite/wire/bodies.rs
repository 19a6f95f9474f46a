//! Bodies that break, end early or are altered in transit, and wrong checksums: retried, and finally given up
//! without a trace.

use crate::wire::server::{Stage, contents, counts, noise, retries};

const SMALL: usize = 100_000;
const LARGE: usize = 11 << 20;

fn stage() -> Stage {
    let stage = Stage::new();
    stage.source("small", SMALL);
    stage.source("large", LARGE);
    stage.source("other", 10);
    stage
}

#[test]
fn uploads_are_tried_again() {
    let stage = stage();
    for (number, fault) in [
        "reset:op=PutObject,key=small,after=50000,times=1",
        "reset:op=PutObject,key=small,in=response,times=1",
        "truncate:op=CreateMultipartUpload,after=20,times=1",
        "corrupt:op=PutObject,key=small,at=50000,times=1",
        "reset:op=UploadPart,after=3000000,times=2",
        "reset:op=UploadPart,in=response,times=1",
        "corrupt:op=UploadPart,at=5000,times=1",
        "checksum:op=UploadPart,times=1",
        "checksum:op=PutObject,key=small,times=1",
    ]
    .into_iter()
    .enumerate()
    {
        let server = stage.serve(&format!("--fault {fault}"));
        let line = format!("sync -r --json --part-size=5MiB SRC/ s3://bkt/{number}/");
        let run = server.run(&line);
        assert_eq!(run.code, 0, "{fault}: {run}");
        counts(&run, &[("files", 3), ("failed", 0), ("exit_code", 0)]);
        assert!(retries(&run) >= 1, "{fault}: {run}");
        let there = contents(&stage.area.join("root/bkt").join(number.to_string()));
        assert!(there == contents(&stage.src()), "{fault}");
        // The id of an upload whose first answer did not arrive is unknown.
        let unknown = usize::from(fault.contains("CreateMultipartUpload"));
        assert_eq!(server.uploads(), unknown, "{fault}");
        if unknown > 0 {
            server.run("mpu abort --all s3://bkt").ok();
        }
    }
}

#[test]
fn uploads_that_stay_broken_leave_nothing() {
    let stage = stage();
    for (number, (key, fault)) in [
        ("small", "reset:op=PutObject,key=small,after=50000"),
        ("small", "corrupt:op=PutObject,key=small,at=50000"),
        ("large", "reset:op=UploadPart,after=3000000"),
        ("large", "corrupt:op=UploadPart,at=5000"),
        ("large", "error:op=CompleteMultipartUpload,code=InternalError"),
    ]
    .into_iter()
    .enumerate()
    {
        let server = stage.serve(&format!("--fault {fault}"));
        let line = format!("mv -v --json --part-size=5MiB SRC/{key} SRC/other s3://bkt/{number}/");
        let run = server.run_with(&line, &[("AWS_MAX_ATTEMPTS", "3")]);
        assert_eq!(run.code, 1, "{fault}: {run}");
        counts(&run, &[("files", 1), ("failed", 1), ("exit_code", 1)]);
        assert!(retries(&run) >= 2, "{fault}: {run}");
        assert_eq!(stage.object(&format!("{number}/{key}")), None, "{fault}");
        assert_eq!(server.uploads(), 0, "{fault}");
        // Missing objects are still at the source, others are not.
        assert!(stage.src().join(key).exists() && !stage.src().join("other").exists());
        stage.source("other", 10);
    }
}

#[test]
fn downloads_are_tried_again() {
    let stage = stage();
    stage.seed();
    for key in ["small", "large"] {
        for fault in ["reset:after=50000", "truncate:after=60000", "corrupt:at=70000", "checksum:"]
        {
            let server = stage.serve(&format!("--fault {fault},op=GetObject,key={key},times=1"));
            let run = server.run("sync -r --json --part-size=5MiB s3://bkt/ DST/");
            assert_eq!(run.code, 0, "{key} {fault}: {run}");
            counts(&run, &[("files", 3), ("failed", 0)]);
            // Which checksum of the parts of a large object is wrong does not matter to whoever
            // compares the whole.
            if (key, fault) != ("large", "checksum:") {
                assert!(retries(&run) >= 1, "{key} {fault}: {run}");
            }
            stage.target_is_source();
            for name in ["small", "large", "other"] {
                std::fs::remove_file(stage.dst().join(name)).unwrap();
            }
        }
    }
}

#[test]
fn downloads_that_stay_broken_leave_what_was_there() {
    let stage = stage();
    stage.seed();
    for key in ["small", "large"] {
        for fault in ["reset:after=5000", "truncate:after=6000", "corrupt:at=70000"] {
            let server = stage.serve(&format!("--fault {fault},op=GetObject,key={key}"));
            for old in [None, Some(noise(9, 1000))] {
                let path = stage.dst().join(key);
                if let Some(bytes) = &old {
                    std::fs::write(&path, bytes).unwrap();
                }
                let line = "sync -r --json --part-size=5MiB s3://bkt/ DST/";
                let run = server.run_with(line, &[("AWS_MAX_ATTEMPTS", "2")]);
                assert_eq!(run.code, 23, "{key} {fault}: {run}");
                counts(&run, &[("files", 2), ("failed", 1), ("exit_code", 23)]);
                assert_eq!(std::fs::read(&path).ok(), old, "{key} {fault}");
                let names = contents(&stage.dst());
                assert_eq!(names.len(), 2 + usize::from(old.is_some()), "{:?}", names.keys());
                for name in names.keys() {
                    std::fs::remove_file(stage.dst().join(name)).unwrap();
                }
            }
        }
    }
}

/// A server that says that it has something else is not believed to have the object.
#[test]
fn uploads_that_the_server_has_otherwise() {
    let stage = stage();
    for key in ["small", "large"] {
        let server = stage.serve(&format!("--fault checksum:key={key}"));
        let line = format!("mv -v --json --part-size=5MiB SRC/{key} s3://bkt/");
        let run = server.run_with(&line, &[("AWS_MAX_ATTEMPTS", "3")]);
        run.expect(1);
        counts(&run, &[("files", 0), ("failed", 1)]);
        assert!(retries(&run) >= 2, "{run}");
        assert!(run.out().contains("damaged"), "{run}");
        assert!(stage.src().join(key).exists());
        assert_eq!(server.uploads(), 0);
    }
}

/// The source of `mv` is removed only when the target is complete.
#[test]
fn a_broken_download_is_not_moved() {
    let stage = stage();
    stage.seed();
    let server = stage.serve("--fault corrupt:op=GetObject,key=small,at=7000");
    let line = "mv -v --json s3://bkt/small s3://bkt/other DST/";
    let run = server.run_with(line, &[("AWS_MAX_ATTEMPTS", "2")]);
    run.expect(1);
    counts(&run, &[("files", 1), ("failed", 1)]);
    assert!(stage.object("small").is_some() && stage.object("other").is_none());
    assert_eq!(contents(&stage.dst()).len(), 1);
}
