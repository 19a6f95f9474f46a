//! Untrustworthy listings of versions: nothing is shown or removed by a page that cannot be trusted; and answers to
//! removals that name other versions.

use crate::common::case::Run;
use crate::wire::server::{Server, Stage};
use crate::wire::spoken::{Asked, Said, Spoken, other};
use rustix::process::Signal;
use std::sync::atomic::{AtomicUsize, Ordering};

const COMMANDS: [&str; 8] = [
    "ls --all-versions s3://bkt/p/",
    "ls -R --all-versions --json s3://bkt/p/",
    "du --all-versions s3://bkt/p/",
    "du -s --group --all-versions s3://bkt/p/",
    "rm -r --all-versions s3://bkt/p/",
    "rm --all-versions s3://bkt/p/*",
    "rm -rf --all-versions s3://bkt/p",
    "rb --force --all-versions s3://bkt",
];

fn version(element: &str, key: &str, id: &str) -> String {
    let size = if element == "Version" { "<Size>1</Size><ETag>\"e\"</ETag>" } else { "" };
    format!(
        "<{element}><Key>{key}</Key><VersionId>{id}</VersionId><IsLatest>true</IsLatest>\
         <LastModified>2020-01-01T00:00:00.000Z</LastModified>{size}</{element}>"
    )
}

fn page(inner: &str, next: Option<(&str, &str)>) -> String {
    let end = match next {
        None => "<IsTruncated>false</IsTruncated>".to_owned(),
        Some((key, id)) => format!(
            "<IsTruncated>true</IsTruncated><NextKeyMarker>{key}</NextKeyMarker>\
             <NextVersionIdMarker>{id}</NextVersionIdMarker>"
        ),
    };
    format!("<ListVersionsResult>{end}{inner}</ListVersionsResult>")
}

/// Two versions of `p/a`, and a delete marker of `p/b`.
fn inner() -> String {
    version("Version", "p/a", "v1")
        + &version("Version", "p/a", "v2")
        + &version("DeleteMarker", "p/b", "m")
}

fn is_listing(asked: &Asked) -> bool {
    asked.parameter("versions").is_some()
}

fn run(place: &Server<'_>, server: &Spoken, line: &str) -> Run {
    let line = format!("{line} --endpoint-url {}", server.url);
    place.run_with(&line, &[("AWS_MAX_ATTEMPTS", "1")])
}

#[test]
fn a_page_of_versions_that_cannot_be_trusted_removes_nothing() {
    let stage = Stage::new();
    let place = stage.null("");
    let whole = page(&inner(), None);
    for (from, to, why) in [
        (">p/a<", ">other/a<", "prefix"),
        ("<Key>p/a</Key>", "", "no Key"),
        ("<VersionId>v1</VersionId>", "", "no VersionId"),
        ("<VersionId>m</VersionId>", "<VersionId/>", "VersionId ''"),
        (">v2<", ">v1<", "version 'v1' of 'p/a' twice"),
        ("<IsLatest>true</IsLatest>", "", "no IsLatest"),
        ("<Size>1</Size>", "", "no Size"),
        ("<Size>1<", "<Size>-1<", "Size '-1'"),
        ("<Size>1<", "<Size>18446744073709551616<", "Size '18446744073709551616'"),
        ("2020-01-01T00:00:00.000Z", "never", "LastModified 'never'"),
        (">p/a</Key><VersionId>v1", ">p/c</Key><VersionId>v1", "out of order"),
        ("<IsTruncated>false</IsTruncated>", "", "no IsTruncated"),
        (">false<", ">maybe<", "IsTruncated 'maybe'"),
        (">false<", ">true<", "does not say where"),
        ("ListVersionsResult", "Other", "an unexpected <Other>"),
    ] {
        let body = whole.replace(from, to);
        assert!(body != whole, "{from}");
        let server = Spoken::start(move |asked| match is_listing(asked) {
            true => Said::xml(body.clone()),
            false => other(asked),
        });
        for line in COMMANDS {
            // A bucket is one prefix, so nothing is outside.
            if why == "prefix" && line.starts_with("rb") {
                continue;
            }
            let run = run(&place, &server, line);
            assert_ne!(run.code, 0, "{why}: {run}");
            run.says(&[why]);
            assert!(run.err().contains("ListObjectVersions"), "{run}");
            let changed = server.changes();
            assert!(changed.is_empty(), "{why}: {changed:?} by {run}");
        }
    }
}

#[test]
fn a_later_page_of_versions_that_cannot_be_trusted() {
    let stage = Stage::new();
    let place = stage.null("");
    for (bad, why) in [
        (page(&version("Version", "p/a", "v1"), None), "out of order"),
        (page(&version("Version", "p/0", "v9"), None), "out of order"),
        (page("", Some(("p/b", "m"))), "where it was before"),
        (page("", Some(("p/a", "m"))), "where it was before"),
        (page(&version("Version", "p/c", "v"), None).replace("<Size>1<", "<Size>x<"), "Size 'x'"),
    ] {
        let server = Spoken::start(move |asked| match is_listing(asked) {
            true if asked.parameter("key-marker").is_some() => Said::xml(bad.clone()),
            true => Said::xml(page(&inner(), Some(("p/b", "m")))),
            false => other(asked),
        });
        for line in COMMANDS {
            let run = run(&place, &server, line);
            assert_ne!(run.code, 0, "{why}: {run}");
            run.says(&[why]);
            // Versions of the good page may be removed, those of the bad one may not.
            for change in server.changes() {
                assert!(!change.body.contains("v9") && !change.body.contains("p/c"), "{change:?}");
            }
        }
    }
}

/// Each version is named, in one request; and what is answered about counts.
#[test]
fn versions_are_removed_by_their_ids() {
    let stage = Stage::new();
    let place = stage.null("");
    let deleted = |inner: &str| format!("<DeleteResult>{inner}</DeleteResult>");
    let all = "<Deleted><Key>p/a</Key><VersionId>v1</VersionId></Deleted>\
               <Deleted><Key>p/a</Key><VersionId>v2</VersionId></Deleted>\
               <Deleted><Key>p/b</Key><VersionId>m</VersionId><DeleteMarker>true</DeleteMarker></Deleted>";
    let without = all.replace("<VersionId>v2</VersionId>", "");
    let other_version = all.replace("v2", "v3");
    let denied = "<Error><Key>p/a</Key><VersionId>v2</VersionId><Code>AccessDenied</Code></Error>";
    let gone = denied.replace("AccessDenied", "NoSuchVersion");
    for (answer, code, singles) in [
        (deleted(all), 0, 0),
        // The current version may have been deleted instead: the missing one is named again.
        (deleted(&without), 0, 1),
        (deleted(""), 0, 3),
        // Another run removed it.
        (deleted(&(without.replace("<Deleted><Key>p/a</Key></Deleted>", "") + &gone)), 0, 0),
        (deleted(&other_version), 1, 0),
        (deleted(&all.replace("p/b", "q")), 1, 0),
        (deleted(&(all.to_owned() + denied)), 1, 0),
    ] {
        let said = answer.clone();
        let server = Spoken::start(move |asked| match &*asked.method {
            _ if is_listing(asked) => Said::xml(page(&inner(), None)),
            "POST" => Said::xml(said.clone()),
            _ => other(asked),
        });
        let run = run(&place, &server, "rm -r --all-versions s3://bkt/p/");
        assert_eq!(run.code, code, "{answer}: {run}");
        let changes = server.changes();
        let (batches, alone): (Vec<_>, Vec<_>) =
            changes.iter().partition(|change| change.method == "POST");
        assert_eq!((batches.len(), alone.len()), (1, singles), "{answer}: {changes:?}");
        for id in ["v1", "v2", "m"] {
            let named = format!("<VersionId>{id}</VersionId>");
            assert!(batches[0].body.contains(&named), "{}", batches[0].body);
        }
        assert!(alone.iter().all(|change| change.parameter("versionId").is_some()), "{alone:?}");
    }
    // A server that deletes another version than the named one.
    let server = Spoken::start(|asked| match &*asked.method {
        "DELETE" => Said { headers: "x-amz-version-id: other\r\n".to_owned(), ..Said::status(204) },
        _ => other(asked),
    });
    let run = run(&place, &server, "rm --version-id v1 s3://bkt/p/a");
    run.expect(1).says(&["version other instead of v1"]);
}

/// Hostile IDs are shown escaped on a terminal's line and sent back as they are.
#[test]
fn hostile_version_ids() {
    let stage = Stage::new();
    let place = stage.null("");
    let body = page(&version("Version", "p/a", "&lt;x&gt;&amp;'\" -r"), None);
    let server = Spoken::start(move |asked| match is_listing(asked) {
        true => Said::xml(body.clone()),
        false => other(asked),
    });
    let run_line = run(&place, &server, "rm -rn --all-versions s3://bkt/p/");
    assert!(run_line.out().starts_with("rm --version-id "), "{run_line}");
    run(&place, &server, "rm -r --all-versions s3://bkt/p/");
    let changes = server.changes();
    assert!(
        changes[0].body.contains("<VersionId>&lt;x&gt;&amp;'&quot; -r</VersionId>"),
        "{changes:?}"
    );
    let json = run(&place, &server, "ls -R --all-versions --json s3://bkt/p/").ok().out();
    let line: serde_json::Value = serde_json::from_str(json.trim()).unwrap();
    assert_eq!(line["version_id"], "<x>&'\" -r");
}

/// Pages without versions and without end: the first signal ends every command that reads them.
#[test]
fn the_first_signal_ends_versions_without_end() {
    let stage = Stage::new();
    let place = stage.null("");
    let count = AtomicUsize::new(0);
    let server = Spoken::start(move |asked| match is_listing(asked) {
        true => {
            std::thread::sleep(std::time::Duration::from_millis(2));
            let number = count.fetch_add(1, Ordering::Relaxed);
            Said::xml(page("", Some(("p/a", &format!("v{number}")))))
        }
        false => other(asked),
    });
    for line in COMMANDS {
        let begun = place.begin(&format!("{line} --endpoint-url {}", server.url));
        std::thread::sleep(std::time::Duration::from_millis(300));
        let run = begun.end(Signal::TERM);
        assert_ne!(run.code, 0, "{run}");
        let changed = server.changes();
        assert!(changed.is_empty(), "{changed:?} by {line}");
    }
}
