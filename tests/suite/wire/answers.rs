//! Error responses: server failures, missing permission, wrong region or bucket, and expired credentials.

use crate::wire::server::{Stage, contents, counts, retries};
use std::os::unix::fs::PermissionsExt;

fn stage() -> Stage {
    let stage = Stage::new();
    for number in 0..20 {
        stage.source(&format!("f{number:02}"), 1000 + number);
    }
    stage
}

#[test]
fn servers_that_fail_for_a_while() {
    let stage = stage();
    let server = stage.serve(
        "--fault error:op=PutObject,code=InternalError,times=4 \
         --fault error:op=PutObject,code=SlowDown,times=3 \
         --fault error:op=GetObject,code=ServiceUnavailable,times=3 \
         --fault error:op=ListObjectsV2,code=InternalError,times=2",
    );
    let run = server.run("sync -r --json SRC/ s3://bkt/p/");
    run.ok();
    counts(&run, &[("files", 20), ("failed", 0)]);
    assert!(retries(&run) >= 7, "{run}");
    assert!(contents(&stage.area.join("root/bkt/p")) == contents(&stage.src()));
    let run = server.run("sync -r --json s3://bkt/p/ DST/");
    run.ok();
    counts(&run, &[("files", 20), ("failed", 0)]);
    assert!(retries(&run) >= 3, "{run}");
    stage.target_is_source();
}

#[test]
fn a_share_of_failures_is_survived() {
    let stage = stage();
    let server = stage.serve("--error-rate 0.2 --seed 5");
    server.run_with("sync -r SRC/ s3://bkt/p/", &[("AWS_MAX_ATTEMPTS", "10")]).ok();
    server.run_with("sync -r s3://bkt/p/ DST/", &[("AWS_MAX_ATTEMPTS", "10")]).ok();
    stage.target_is_source();
}

#[test]
fn one_object_that_fails_does_not_hold_up_the_others() {
    let stage = stage();
    for (number, (fault, repeated)) in
        [("error:code=InternalError", true), ("error:code=AccessDenied", false)]
            .into_iter()
            .enumerate()
    {
        let server = stage.serve(&format!("--fault {fault},op=PutObject,key=f07"));
        let line = format!("sync -r --json --remove-source-files SRC/ s3://bkt/{number}/");
        let run = server.run_with(&line, &[("AWS_MAX_ATTEMPTS", "3")]);
        run.expect(23);
        counts(&run, &[("files", 19), ("failed", 1), ("exit_code", 23)]);
        assert_eq!(retries(&run), if repeated { 2 } else { 0 }, "{run}");
        assert!(run.out().contains("f07"), "{run}");
        assert_eq!(contents(&stage.src()).len(), 1, "the others were moved");
        assert!(stage.src().join("f07").exists());
        for number in 0..20 {
            stage.source(&format!("f{number:02}"), 1000 + number);
        }
    }
}

/// Access is taken away in the middle: what was done counts, nothing else is said to be.
#[test]
fn access_that_ends() {
    let stage = stage();
    let server = stage.serve("--fault error:op=PutObject,code=AccessDenied,skip=5");
    let run = server.run("sync -r --json SRC/ s3://bkt/p/");
    assert!([11, 23].contains(&run.code), "{run}");
    counts(&run, &[("files", 5), ("exit_code", run.code as u64)]);
    let there = contents(&stage.area.join("root/bkt/p"));
    assert_eq!(there.len(), 5);
    let source = contents(&stage.src());
    assert!(there.iter().all(|(name, bytes)| source.get(name) == Some(bytes)));
}

/// A target that cannot be listed is not taken for an empty one.
#[test]
fn a_listing_that_is_refused_deletes_nothing() {
    let stage = stage();
    stage.seed();
    std::fs::write(stage.dst().join("extra"), "extra").unwrap();
    for (line, code) in [
        ("sync -r --delete --json s3://bkt/ DST/", "AccessDenied"),
        ("sync -r --delete --json s3://bkt/ DST/", "InternalError"),
        ("sync -r --delete --json DST/ s3://bkt/", "AccessDenied"),
        ("sync -r --delete --json DST/ s3://bkt/", "InternalError"),
    ] {
        let server = stage.serve(&format!("--fault error:op=ListObjectsV2,code={code}"));
        let run = server.run_with(line, &[("AWS_MAX_ATTEMPTS", "2")]);
        assert!([11, 23].contains(&run.code), "{code}: {run}");
        counts(&run, &[("deleted", 0)]);
        assert!(run.out().contains(code) || run.err().contains(code), "{run}");
        assert!(stage.dst().join("extra").exists());
        assert!(stage.object("f00").is_some());
    }
}

const CONFIG: &str = "[default]\nregion = us-east-1\ncredential_process = HOME/keys\n";

/// Keys that come from a program are fetched again when the server says that they are too old.
#[test]
fn expired_tokens_are_fetched_again() {
    let stage = stage();
    let home = stage.area.join("home");
    let script = format!(
        "#!/bin/sh\necho x >> {0}/fetched\n\
         echo '{{\"Version\":1,\"AccessKeyId\":\"key\",\"SecretAccessKey\":\"secret\"}}'\n",
        home.display()
    );
    let keys = home.join("keys");
    std::fs::write(&keys, script).unwrap();
    std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::create_dir(home.join(".aws")).unwrap();
    let config = CONFIG.replace("HOME", home.to_str().unwrap());
    std::fs::write(home.join(".aws/config"), config).unwrap();
    let server = stage.serve("--fault error:op=PutObject,code=ExpiredToken,skip=4,times=3");
    let unset = [("AWS_ACCESS_KEY_ID", ""), ("AWS_SECRET_ACCESS_KEY", "")];
    let run = server.run_with("sync -r --json SRC/ s3://bkt/p/", &unset);
    run.ok();
    counts(&run, &[("files", 20), ("failed", 0)]);
    assert!(contents(&stage.area.join("root/bkt/p")) == contents(&stage.src()));
    let fetched = std::fs::read_to_string(home.join("fetched")).unwrap().lines().count();
    assert!((2..=4).contains(&fetched), "fetched {fetched} times");
}

/// Keys that cannot be renewed: the run ends, soon and with the reason.
#[test]
fn expired_tokens_without_others() {
    let stage = stage();
    let server = stage.serve("--fault error:op=PutObject,code=ExpiredToken,skip=4");
    let run = server.run("sync -r --json SRC/ s3://bkt/p/");
    run.expect(1);
    counts(&run, &[("files", 4), ("retries", 0)]);
    assert!(run.err().contains("ExpiredToken") || run.out().contains("ExpiredToken"), "{run}");
}

/// The bucket is elsewhere: every request goes there, at once after the first was sent back.
#[test]
fn another_region() {
    let stage = stage();
    for code in ["PermanentRedirect", "AuthorizationHeaderMalformed", "TemporaryRedirect"] {
        let server = stage.serve(&format!("--fault error:code={code},region=eu-west-1,times=1"));
        let run = server.run(&format!("sync -r --json SRC/ s3://bkt/{code}/"));
        run.ok();
        counts(&run, &[("files", 20), ("failed", 0)]);
        assert!(contents(&stage.area.join("root/bkt").join(code)) == contents(&stage.src()));
    }
    // One that always points elsewhere is not a reason to go round in circles.
    let server = stage.serve("--fault error:code=PermanentRedirect,region=eu-west-1");
    let run = server.run("sync -r --json SRC/ s3://bkt/x/");
    run.expect(1).says(&["eu-west-1"]);
    counts(&run, &[("files", 0)]);
    assert!(server.log("ListObjectsV2").len() + server.log("PutObject").len() < 50);
}
