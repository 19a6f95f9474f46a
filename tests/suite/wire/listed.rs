//! Untrustworthy listings: an invalid page ends the run with an error that names operation and reason, and
//! nothing is removed on either side. And unusual but valid pages: empty ones before the last.

use crate::wire::server::{Server, Stage, contents};
use crate::wire::spoken::{Asked, KEYS, Said, Spoken, below, is_listing, object, other, page};
use rustix::process::Signal;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A server whose pages go through `spoil`.
fn spoiled(spoil: impl Fn(&Asked, String) -> String + Send + Sync + 'static) -> Spoken {
    Spoken::start(move |asked| match is_listing(asked) {
        true => Said::xml(spoil(asked, page(&below(asked), None))),
        false => other(asked),
    })
}

/// Runs a line against a server of this module; whatever fails is tried once.
fn run(place: &Server<'_>, server: &Spoken, line: &str) -> crate::common::case::Run {
    let line = format!("{line} --endpoint-url {}", server.url);
    place.run_with(&line, &[("AWS_MAX_ATTEMPTS", "1")])
}

/// A local source and target with files that no bucket has.
fn stage() -> Stage {
    let stage = Stage::new();
    for name in ["a", "b", "c/d"] {
        stage.source(name, 1);
        let there = stage.dst().join(name);
        std::fs::create_dir_all(there.parent().unwrap()).unwrap();
        std::fs::write(there, "mine").unwrap();
    }
    std::fs::write(stage.dst().join("zz"), "mine").unwrap();
    let run = stage.area.join("lines");
    std::fs::write(run, "rm -r s3://bkt/p/\nls s3://bkt/p/\n").unwrap();
    stage
}

/// Commands that read a listing of `p/`.
const COMMANDS: [&str; 18] = [
    "sync -r --delete s3://bkt/p/ DST/",
    "sync -r --delete-before s3://bkt/p/ DST/",
    "sync -r --delete-after s3://bkt/p/ DST/",
    "sync -r --delete SRC/ s3://bkt/p/",
    "sync -r --delete s3://bkt/p/ s3://bkt/q/",
    "cp -r s3://bkt/p/ DST/",
    "cp s3://bkt/p/* DST/",
    "mv s3://bkt/p/ DST/",
    "mv s3://bkt/p/* DST/",
    "rm -r s3://bkt/p/",
    "rm s3://bkt/p/*",
    "ls s3://bkt/p/",
    "ls -l s3://bkt/p/",
    "ls -R s3://bkt/p/",
    "ls -RU s3://bkt/p/",
    "du s3://bkt/p/",
    "du -s s3://bkt/p/",
    "verify SRC/ s3://bkt/p/",
];

#[test]
fn a_page_that_cannot_be_trusted_removes_nothing() {
    let stage = stage();
    let place = stage.null("");
    type Spoil = fn(&Asked, String) -> String;
    let cases: [(&str, Spoil); 15] = [
        ("does not begin with the prefix", |_, page: String| {
            page.replacen("<Contents>", &format!("{}<Contents>", object("other1/key")), 1)
        }),
        ("does not begin with the prefix", |_, page| page.replace("<Key>p/", "<Key>p2/")),
        ("no IsTruncated", |_, page| page.replace("<IsTruncated>false</IsTruncated>", "")),
        ("IsTruncated 'maybe'", |_, page| page.replace(">false<", ">maybe<")),
        ("IsTruncated ''", |_, page| page.replace(">false<", "><")),
        ("does not say where", |_, page| page.replace(">false<", ">true<")),
        ("no Size", |_, page| page.replace("<Size>1</Size>", "")),
        ("Size '-1'", |_, page| page.replace("<Size>1<", "<Size>-1<")),
        ("Size '18446744073709551616'", |_, page| {
            page.replace("<Size>1<", "<Size>18446744073709551616<")
        }),
        ("no Key", |_, page| page.replacen("<Key>p/a</Key>", "", 1)),
        ("Key ''", |_, page| page.replacen("<Key>p/a<", "<Key><", 1)),
        ("no LastModified", |_, page| {
            page.replace("<LastModified>2020-01-01T00:00:00.000Z</LastModified>", "")
        }),
        ("LastModified 'never'", |_, page| page.replace("2020-01-01T00:00:00.000Z", "never")),
        ("out of order", |_, page| {
            page.replace(">p/a<", ">p/?<").replace(">p/b<", ">p/a<").replace(">p/?<", ">p/b<")
        }),
        ("an unexpected <Other>", |_, _| "<Other></Other>".to_owned()),
    ];
    let before = contents(stage.area.path());
    for (why, spoil) in cases {
        let server = spoiled(spoil);
        for line in COMMANDS {
            let run = run(&place, &server, line);
            assert_ne!(run.code, 0, "{why}: {run}");
            assert!(run.code < 100, "{why}: {run}");
            run.says(&[why]);
            assert!(
                run.err().contains("ListObjectsV2")
                    || run.err().contains("out of order")
                    || run.err().contains("<ListBucketResult>"),
                "{run}"
            );
            let changed = server.changes();
            assert!(changed.is_empty(), "{why}: {changed:?} by {run}");
            assert!(contents(&stage.dst()) == below_of(&before, "dst"), "{why}: {run}");
            assert!(contents(&stage.src()) == below_of(&before, "src"), "{why}: {run}");
        }
    }
}

type Files = std::collections::BTreeMap<std::path::PathBuf, Vec<u8>>;

fn below_of(all: &Files, folder: &str) -> Files {
    let inside = |(path, bytes): (&std::path::PathBuf, &Vec<u8>)| {
        Some((path.strip_prefix(folder).ok()?.to_owned(), bytes.clone()))
    };
    all.iter().filter_map(inside).collect()
}

/// A gateway that does not know `prefix=` lists everything; its keys are never cut by length.
#[test]
fn a_gateway_that_ignores_the_prefix() {
    let stage = stage();
    let place = stage.null("");
    let server = Spoken::start(|asked| match is_listing(asked) {
        true => {
            let inner: String = KEYS.iter().map(|key| object(key)).collect();
            Said::xml(page(&inner, None))
        }
        false => other(asked),
    });
    let before = contents(&stage.dst());
    for line in COMMANDS {
        let run = run(&place, &server, line);
        assert_ne!(run.code, 0, "{run}");
        run.says(&["'other1/key'", "prefix 'p/'"]);
        let changed = server.changes();
        assert!(changed.is_empty(), "{changed:?} by {run}");
        assert!(contents(&stage.dst()) == before, "{run}");
    }
}

/// Divided listings: a prefix from elsewhere, one that the delimiter did not cut, a key that it
/// should have cut.
#[test]
fn common_prefixes_are_checked() {
    let stage = stage();
    let place = stage.null("");
    for (name, why) in [
        ("<CommonPrefixes><Prefix>other1/</Prefix></CommonPrefixes>", "prefix 'p/'"),
        ("<CommonPrefixes><Prefix>p/c</Prefix></CommonPrefixes>", "delimiter"),
        ("<CommonPrefixes><Prefix>p/c/d/</Prefix></CommonPrefixes>", "delimiter"),
        ("<CommonPrefixes></CommonPrefixes>", "no Prefix"),
        (&object("p/c/d"), "delimiter"),
    ] {
        let inner = name.to_owned();
        let server = Spoken::start(move |_| Said::xml(page(&inner, None)));
        for line in ["ls s3://bkt/p/", "ls -l s3://bkt/p/", "ls --json s3://bkt/p/"] {
            let run = run(&place, &server, line);
            assert_ne!(run.code, 0, "{name}: {run}");
            run.says(&["ListObjectsV2", why]);
        }
    }
}

/// Pages after a good one are checked as well, and dependent entries stay.
#[test]
fn a_later_page_that_cannot_be_trusted() {
    let stage = stage();
    let place = stage.null("");
    let second = object("p/b") + &object("p/c/d");
    for (bad, why) in [
        (page(&second.replacen("<Size>1<", "<Size>x<", 1), None), "Size 'x'"),
        (page(&second, Some("t1")), "where it was before"),
        (page(&object("p/Z"), None), "out of order"),
        (page(&object("p/a"), None), "twice"),
        (page(&second, None).replace("<IsTruncated>false</IsTruncated>", ""), "no IsTruncated"),
    ] {
        let server = Spoken::start(move |asked| match is_listing(asked) {
            true if asked.parameter("continuation-token").is_some() => Said::xml(bad.clone()),
            true if asked.parameter("start-after").is_some() => Said::xml(bad.clone()),
            true => Said::xml(page(&object("p/a"), Some("t1"))),
            false => other(asked),
        });
        let before = contents(&stage.dst());
        for line in [
            "sync -r --delete --size-only --existing s3://bkt/p/ DST/",
            "sync -r --delete --existing s3://bkt/q/ DST/",
        ] {
            let run = run(&place, &server, line);
            assert_ne!(run.code, 0, "{why}: {run}");
            let names = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
            assert_eq!(names(&contents(&stage.dst())), names(&before), "{why}: {run}");
        }
        for line in ["ls s3://bkt/p/", "ls -l s3://bkt/p/", "ls -R s3://bkt/p/", "du s3://bkt/p/"] {
            let run = run(&place, &server, line);
            assert_ne!(run.code, 0, "{why}: {run}");
            let order = ["twice", "out of order"];
            let said = run.err().contains(why)
                || order.contains(&why) && order.iter().any(|word| run.err().contains(word));
            assert!(said, "{why}: {run}");
        }
        let run = run(&place, &server, "rm -r s3://bkt/p/");
        run.expect(1).says(&["cannot list"]);
        // Names of the good page may be removed, names of the bad one may not.
        for change in server.changes() {
            assert!(!change.body.contains("p/b") && !change.body.contains("p/Z"), "{change:?}");
        }
    }
}

/// Empty pages are legal, also as the first one (API reference, ListObjectsV2: a page may have
/// fewer keys than asked for, and none).
#[test]
fn empty_pages_go_on() {
    for line in COMMANDS {
        let stage = stage();
        let place = stage.null("");
        let server = Spoken::start(|asked| match is_listing(asked) {
            true => match asked.parameter("continuation-token") {
                None => Said::xml(page("", Some("t1"))),
                Some("t1") => Said::xml(page("", Some("t2"))),
                Some(_) => Said::xml(page(&below(asked), None)),
            },
            false => other(asked),
        });
        let run = run(&place, &server, line);
        let text = run.err() + &run.out();
        assert!(!text.contains("nothing below") && !text.contains("no such object"), "{run}");
        // The contents of the two sides differ.
        let expected = i32::from(line.starts_with("verify"));
        assert_eq!(run.code, expected, "{run}");
        if line.contains("--delete") && line.ends_with("p/ DST/") {
            let there: Vec<_> = contents(&stage.dst()).into_keys().collect();
            assert_eq!(there, ["a", "b", "c/d"].map(std::path::PathBuf::from), "{run}");
        }
    }
}

/// Pages without keys and without end: the first signal ends every command that reads them.
#[test]
fn the_first_signal_ends_a_listing_without_end() {
    let stage = stage();
    let place = stage.null("");
    let count = AtomicUsize::new(0);
    let server = Spoken::start(move |asked| match is_listing(asked) {
        true => {
            std::thread::sleep(std::time::Duration::from_millis(2));
            let number = count.fetch_add(1, Ordering::Relaxed);
            Said::xml(page("", Some(&format!("t{number}"))))
        }
        false => other(asked),
    });
    let lines = stage.area.join("lines");
    let of_a_file = format!("run {}", lines.display());
    for line in COMMANDS.iter().copied().chain([&*of_a_file]) {
        for signal in [Signal::TERM, Signal::INT] {
            let begun = place.begin(&format!("{line} --endpoint-url {}", server.url));
            std::thread::sleep(std::time::Duration::from_millis(300));
            let run = begun.end(signal);
            assert_ne!(run.code, 0, "{run}");
            if line.starts_with("sync") {
                assert_eq!(run.code, 20, "{run}");
            }
        }
        let changed = server.changes();
        assert!(changed.is_empty(), "{changed:?} by {line}");
    }
}

fn upload(key: &str) -> String {
    format!(
        "<Upload><Key>{key}</Key><UploadId>u</UploadId><Initiated>2020-01-01T00:00:00.000Z\
         </Initiated></Upload>"
    )
}

#[test]
fn uploads_that_cannot_be_trusted_are_not_aborted() {
    let stage = stage();
    let place = stage.null("");
    let whole = format!(
        "<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>{}</ListMultipartUploadsResult>",
        upload("p/a")
    );
    let good = whole.clone();
    let server = Spoken::start(move |asked| match asked.parameter("uploads") {
        Some(_) => Said::xml(good.clone()),
        None => other(asked),
    });
    run(&place, &server, "mpu abort --all s3://bkt/p/").ok();
    assert_eq!(server.changes().len(), 1);
    for (from, to, why) in [
        (">p/a<", ">q<", "prefix 'p/'"),
        ("<Key>p/a</Key>", "", "no Key"),
        (">u<", "><", "UploadId ''"),
        ("<Initiated>2020-01-01T00:00:00.000Z</Initiated>", "", "no Initiated"),
        ("2020-01-01T", "", "Initiated '"),
        ("<IsTruncated>false</IsTruncated>", "", "no IsTruncated"),
        (">false<", ">maybe<", "IsTruncated 'maybe'"),
        (">false<", ">true<", "does not say where"),
    ] {
        let body = whole.replacen(from, to, 1);
        assert!(body != whole, "{from}");
        let server = Spoken::start(move |asked| match asked.parameter("uploads") {
            Some(_) => Said::xml(body.clone()),
            None if is_listing(asked) => Said::xml(page("", None)),
            None => other(asked),
        });
        for line in ["mpu ls s3://bkt/p/", "mpu abort --older-than=1d s3://bkt/p/"] {
            let run = run(&place, &server, line);
            run.expect(1).says(&["ListMultipartUploads", why]);
            assert_eq!(server.changes().len(), 0, "{run}");
        }
        if why != "prefix 'p/'" {
            let run = run(&place, &server, "rb --force s3://bkt");
            run.expect(1).says(&["ListMultipartUploads", why]);
            assert_eq!(server.changes().len(), 0, "{run}");
        }
    }
}

#[test]
fn buckets_are_checked() {
    let stage = stage();
    let place = stage.null("");
    let whole = "<ListAllMyBucketsResult><Buckets><Bucket><Name>b1</Name></Bucket></Buckets>\
                 </ListAllMyBucketsResult>";
    for (from, to, why) in [
        ("<Name>b1</Name>", "", "no Name"),
        ("<Name>b1</Name>", "<Name/>", "Name ''"),
        ("</Name>", "</Name><CreationDate>old</CreationDate>", "CreationDate 'old'"),
        ("</Buckets>", "</Buckets><ContinuationToken>t</ContinuationToken>", "where it was"),
    ] {
        let body = whole.replacen(from, to, 1);
        let server = Spoken::start(move |_| Said::xml(body.clone()));
        let run = run(&place, &server, "ls s3://");
        assert_ne!(run.code, 0, "{run}");
        run.says(&["ListBuckets", why]);
    }
    let server = Spoken::start(move |_| Said::xml(whole));
    let run = run(&place, &server, "ls s3://");
    assert!(run.ok().out().contains(" b1\n"));
}
