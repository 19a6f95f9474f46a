//! A server that supports only version 1 of the listing.

use crate::wire::server::Stage;

const ONE: &str = "--use-list-objects-v1";

#[test]
fn listings_by_the_first_version() {
    let stage = Stage::new();
    // More than a page; a folder after it, and one between two keys.
    for number in 0..1100 {
        stage.source(&format!("f{number:04}"), 3);
    }
    stage.source("f05/inside", 7);
    stage.source("z/last", 9);
    stage.seed();
    let server = stage.serve("--fault error:op=ListObjectsV2,code=NotImplemented,status=501");
    let run = server.run("ls s3://bkt/");
    assert_ne!(run.code, 0, "{run}");
    let listed = |line: &str| {
        let run = server.run(line);
        run.ok().out().lines().map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect()
    };
    let top: Vec<String> = listed(&format!("ls {ONE} s3://bkt/"));
    assert_eq!(top.len(), 1102, "{top:?}");
    assert!(top.contains(&"f05/".to_owned()) && top.contains(&"z/".to_owned()), "{top:?}");
    let all: Vec<String> = listed(&format!("ls -R {ONE} s3://bkt/"));
    assert_eq!(all.len(), 1102);
    assert!(all.contains(&"f05/inside".to_owned()) && all.is_sorted(), "{all:?}");
    // The word that others have for it.
    let long: Vec<String> = listed("ls -lR --list-objects-v1 s3://bkt/f05/");
    assert_eq!(long, ["f05/inside"]);
    server.run(&format!("sync -r {ONE} s3://bkt/ DST/")).ok();
    stage.target_is_source();
    server.run(&format!("sync -r --delete {ONE} DST/ s3://bkt/")).ok();
    server.run(&format!("rm -r {ONE} s3://bkt/")).ok();
    assert_eq!(stage.object("f0000"), None);
}
