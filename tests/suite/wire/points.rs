//! Access points as bucket names: requests go to their hosts, and an object is never moved onto itself through one.

use super::server::{Server, Stage};
use super::spoken::{Said, Spoken, object, other, page};
use crate::common::case::Run;
use std::sync::{Arc, Mutex};

const POINT: &str = "arn:aws:s3:eu-west-1:123456789012:accesspoint/point";

/// A proxy that answers for every host, and the URLs that it was asked for.
fn proxy() -> (Spoken, Arc<Mutex<Vec<String>>>) {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&asked);
    let server = Spoken::start(move |request| {
        seen.lock().unwrap().push(format!("{}?{}", request.path, request.query));
        match request.parameter("list-type") {
            Some(_) => Said::xml(page(&object("p/a"), None)),
            None => {
                let key = request.path.rsplit_once("p/").map_or("", |(_, name)| name);
                other(&crate::wire::spoken::Asked {
                    path: format!("bkt/p/{key}"),
                    ..request.clone()
                })
            }
        }
    });
    (server, asked)
}

fn run(place: &Server<'_>, proxy: &Spoken, line: &str) -> Run {
    let line = format!("{line} --endpoint-url http://s3.example");
    place.run_with(&line, &[("HTTP_PROXY", &proxy.url), ("AWS_MAX_ATTEMPTS", "1")])
}

#[test]
fn requests_go_to_the_host_of_the_access_point() {
    let stage = Stage::new();
    let place = stage.null("");
    let (server, asked) = proxy();
    run(&place, &server, &format!("ls -R s3://{POINT}/p/")).ok();
    run(&place, &server, &format!("cp s3://{POINT}/p/a DST/")).ok();
    run(&place, &server, "ls -R --addressing-style virtual s3://point-abc-s3alias/p/").ok();
    let asked = asked.lock().unwrap();
    let host = "http://point-123456789012.s3.example/";
    let is_listing = asked[0].starts_with(&format!("{host}?")) && asked[0].contains("list-type=2");
    assert!(is_listing, "{asked:?}");
    assert!(asked[1..3].iter().any(|url| url.starts_with(&format!("{host}p/a"))), "{asked:?}");
    assert!(asked.last().unwrap().starts_with("http://point-abc-s3alias.s3.example/"), "{asked:?}");
    assert_eq!(std::fs::read(stage.dst().join("a")).unwrap(), b"a");
}

#[test]
fn nothing_is_moved_onto_itself_through_an_access_point() {
    let stage = Stage::new();
    let place = stage.null("");
    for (from, to) in
        [(POINT, "bkt"), ("bkt", POINT), ("point-abc-s3alias", "bkt"), (POINT, "point-abc-s3alias")]
    {
        let (server, _) = proxy();
        for line in ["mv s3://FROM/p/a s3://TO/p/a", "mv s3://FROM/p/ s3://TO/p/"] {
            let line = line.replace("FROM", from).replace("TO", to);
            let run = run(&place, &server, &line);
            run.expect(1).says(&["may be one object"]);
            assert!(server.changes().is_empty(), "{run}");
        }
    }
}

#[test]
fn other_arns_say_why_they_are_not_taken() {
    let stage = Stage::new();
    let place = stage.null("");
    for (arn, why) in [
        ("arn:aws:s3-outposts:r:123456789012:outpost/op-1/accesspoint/p", "Outposts"),
        ("arn:aws:s3::123456789012:accesspoint/m.mrap", "multi-region"),
        ("arn:aws:s3-object-lambda:r:123456789012:accesspoint/p", "Object Lambda"),
        ("arn:aws:s3:evil.example/:123456789012:accesspoint/p", "access point is"),
        ("arn:aws:s3:::bucket", "only access points"),
    ] {
        for line in ["ls s3://ARN/k", "cp s3://ARN/k DST/", "rm s3://ARN/k", "cat s3://ARN/k"] {
            let run = place.run(&line.replace("ARN", arn));
            assert_ne!(run.code, 0, "{run}");
            run.says(&[why]);
        }
    }
    place.run(&format!("rb --force s3://{POINT}")).expect(2).says(&["access point"]);
}

// User and password in the URL of an endpoint are refused and never shown.

#[test]
fn passwords_of_endpoints_are_not_shown() {
    let stage = Stage::new();
    stage.source("small", 10);
    let server = stage.null("");
    for url in [
        "http://user:s3cret@127.0.0.1:1",
        "https://user:s3cret@127.0.0.1:1/path",
        "http://user:s3/cret@127.0.0.1:1",
        "user:s3cret@127.0.0.1",
        "http://127.0.0.1:x/?password=s3cret",
        "http://s3cret@",
    ] {
        for line in [
            "ls -v --endpoint-url=URL s3://bkt",
            "sync -r -v --json --endpoint-url=URL SRC/ s3://bkt/",
            "cp -v --endpoint-url URL SRC/small s3://bkt/",
            "mv --source-endpoint-url=URL --destination-endpoint-url=URL s3://a/b s3://c/d",
            "rm --json --endpoint-url=URL s3://bkt/k",
            "cat --endpoint-url=URL s3://bkt/k",
            "presign --endpoint-url=URL s3://bkt/k",
            "ls --endpoint-urls=URL s3://bkt",
        ] {
            let line = line.replace("URL", url);
            // This server's URL is added where no other is named.
            let run = server.run(&line);
            assert_ne!(run.code, 0, "{run}");
            let said = run.out() + &run.err();
            assert!(!said.contains("cret"), "{run}");
        }
        let run = server.run_with("ls --endpoint-url= s3://bkt", &[("AWS_ENDPOINT_URL", url)]);
        assert!(!(run.out() + &run.err()).contains("cret"), "{run}");
    }

    // A file of commands, shown and run.
    let file = stage.area.join("lines");
    let lines = "ls --endpoint-url http://u:s3cret@h s3://bkt\n\
                 cp --endpoint-url=http://u:s3cret@h /etc/hostname s3://bkt/k\n";
    std::fs::write(&file, lines).unwrap();
    let run = server.run(&format!("run -n {}", file.display()));
    run.ok();
    assert!(run.out().contains("***@h") && !run.out().contains("cret"), "{run}");
    let run = server.run(&format!("run {}", file.display()));
    assert_ne!(run.code, 0, "{run}");
    assert!(!(run.out() + &run.err()).contains("cret"), "{run}");
}
