//! Responses of a hostile or broken server, for each operation that transfers or removes: a source stays
//! until its target is complete, existing targets stay, and the exit code shows the failure.

use crate::wire::hostile::{Answer, Asked, Hostile, Liar, Lie};
use crate::wire::server::{Server, Stage, contents};
use std::sync::Arc;

const SMALL: usize = 14_000;
const LARGE: usize = 11 << 20;

/// Name of a lie, and the lie.
type Case = (String, Liar);

/// A lie that is told to every request.
fn always(name: impl Into<String>, lie: impl Fn(&Asked) -> Lie + Send + Sync + 'static) -> Case {
    (name.into(), Arc::new(lie))
}

/// A change of every answer.
fn change(name: &str, change: impl Fn(&mut Answer) + Clone + Send + Sync + 'static) -> Case {
    always(name, move |_| Lie::After(Box::new(change.clone())))
}

const ERROR: &str = "<?xml version=\"1.0\"?><Error><Code>InternalError</Code></Error>";

/// Ways to answer a request without doing what it asks for.
fn undone(root: &'static str) -> Vec<Case> {
    let mut cases: Vec<Case> = [201, 202, 203, 204, 206, 207, 299, 304]
        .into_iter()
        .map(|status| {
            always(format!("{status}"), move |_| {
                Lie::Instead(Answer::new(status, &[("etag", "\"e\"")], ""))
            })
        })
        .collect();
    cases.push(always("200 with an error", |_| {
        Lie::Instead(Answer::new(200, &[("etag", "\"e\"")], ERROR))
    }));
    cases.push(always("200 without anything", |_| Lie::Instead(Answer::new(200, &[], ""))));
    cases.push(always("200 with an empty document", move |_| {
        Lie::Instead(Answer::new(200, &[], &format!("<{root}/>")))
    }));
    cases.push(always("200 with another document", |_| {
        Lie::Instead(Answer::new(200, &[], "<html><body>welcome</body></html>"))
    }));
    cases
}

/// Ways to falsify the content of an object.
fn contents_lies() -> Vec<Case> {
    let short = |answer: &mut Answer| answer.body.truncate(answer.body.len() / 2);
    let mut cases = vec![
        change("fewer bytes, and a length of them", short),
        change("fewer bytes, and no length", move |answer| {
            short(answer);
            answer.endless = true;
        }),
        change("more bytes, and no length", |answer| {
            answer.body.extend_from_slice(b"more");
            answer.endless = true;
        }),
        change("no ETag", |answer| answer.set("etag", "")),
        change("no Last-Modified", |answer| answer.set("last-modified", "")),
    ];
    for status in [201, 202, 203, 204, 207, 299] {
        cases.push(change(&format!("{status}"), move |answer| answer.status = status));
    }
    cases
}

/// Ways to falsify ranges of an object.
fn range_lies() -> Vec<Case> {
    let range = |answer: &mut Answer, how: &dyn Fn(u64, u64, u64) -> String| {
        let told = answer.header("content-range").to_owned();
        let numbers: Vec<u64> = told
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|digits| digits.parse().ok())
            .collect();
        if let [first, last, size] = numbers[..] {
            answer.set("content-range", &how(first, last, size));
        }
    };
    let mut cases = contents_lies();
    cases.extend([
        change("another start", move |answer| {
            range(answer, &|first, last, size| format!("bytes {}-{last}/{size}", first + 1));
        }),
        change("another end", move |answer| {
            range(answer, &|first, last, size| format!("bytes {first}-{}/{size}", last - 1));
        }),
        change("another size", move |answer| {
            range(answer, &|first, last, size| format!("bytes {first}-{last}/{}", size + 1));
        }),
        change("no Content-Range", |answer| answer.set("content-range", "")),
        change("another unit", |answer| answer.set("content-range", "items 0-1/2")),
        always("another ETag of later ranges", |asked| {
            let later = asked.before > 0;
            Lie::After(Box::new(move |answer| {
                if later {
                    answer.body.fill(b'x');
                    answer.set("etag", "\"another\"");
                }
            }))
        }),
        // The bytes of another stretch under the Content-Range of that stretch.
        always("another stretch", |_| {
            Lie::After(Box::new(|answer| {
                if answer.header("content-range").starts_with("bytes 5242880-") {
                    let bytes = answer.body.len() as u64;
                    answer.set("content-range", &format!("bytes 0-{}/{LARGE}", bytes - 1));
                    answer.body.fill(b'x');
                }
            }))
        }),
    ]);
    cases
}

/// Runs a command against each lie about an operation. It must fail, leave the source alone, and
/// leave at the target what was there.
#[track_caller]
fn refused(
    stage: &Stage,
    server: &Server<'_>,
    line: &str,
    operation: &'static str,
    cases: &[Case],
) {
    let bucket = || contents(&stage.area.join("root/bkt"));
    let seen = |all: std::collections::BTreeMap<std::path::PathBuf, Vec<u8>>| {
        // Files that the server keeps beside its objects.
        all.into_iter().filter(|(name, _)| !name.to_string_lossy().contains(".s3s"))
    };
    for (name, liar) in cases {
        let hostile = Hostile::new(server, operation, liar);
        let line = line.replace("URL", &hostile.url);
        let what = format!("{operation}: {name}: {line}");
        let before = (contents(&stage.src()), contents(&stage.dst()), bucket());
        let line = match line.contains("endpoint-url") {
            true => line,
            false => format!("{line} --endpoint-url {}", hostile.url),
        };
        let run = server.run_with(&line, &[("AWS_MAX_ATTEMPTS", "2")]);
        assert!(hostile.asked(operation) > 0, "{what}: it never asked\n{run}");
        assert!(run.code != 0 && run.code < 100, "{what}\n{run}");
        assert!(contents(&stage.src()) == before.0, "{what}: the source\n{run}");
        assert!(contents(&stage.dst()) == before.1, "{what}: the target\n{run}");
        let (now, then) = (seen(bucket()), seen(before.2));
        assert!(now.eq(then), "{what}: the bucket\n{run}");
    }
}

fn stage() -> Stage {
    let stage = Stage::new();
    stage.source("small", SMALL);
    stage.source("large", LARGE);
    stage.seed();
    stage
}

#[test]
fn objects_that_are_received_whole() {
    let stage = stage();
    let server = stage.serve("");
    let mut cases = contents_lies();
    cases.push(change("206", |answer| answer.status = 206));
    cases.push(change("another size", |answer| {
        answer.body.truncate(5);
        answer.set("content-range", "bytes 0-4/5");
    }));
    for old in [None, Some("old")] {
        if let Some(old) = old {
            std::fs::write(stage.dst().join("small"), old).unwrap();
        }
        for line in [
            "mv s3://bkt/small DST/small",
            "cp s3://bkt/small DST/small",
            "sync -r --delete --remove-source-files --exclude=large s3://bkt/ DST/",
            "cp --resume s3://bkt/small DST/small",
            "mv --source-endpoint-url=URL s3://bkt/small s3://bkt/small2 \
             --destination-endpoint-url=DIRECT",
        ] {
            let line = line.replace("DIRECT", &server.url);
            refused(&stage, &server, &line, "GetObject", &cases);
        }
    }
}

/// An object under another ETag is read as the changed one; the one that was listed stays.
#[test]
fn another_object_is_not_the_one_that_was_listed() {
    let stage = stage();
    let server = stage.serve("");
    let (_, liar) = change("another ETag", |answer| {
        answer.set("etag", "\"another\"");
        answer.body.fill(b'x');
    });
    let hostile = Hostile::new(&server, "GetObject", &liar);
    let run = server.run(&format!("mv s3://bkt/small DST/ --endpoint-url {}", hostile.url));
    assert_ne!(run.code, 0, "{run}");
    assert!(stage.object("small").is_some(), "{run}");
    assert_eq!(hostile.asked("DeleteObject"), 0, "{run}");
}

#[test]
fn ranges_of_large_objects() {
    let stage = stage();
    let server = stage.serve("");
    for line in [
        "mv --part-size=5MiB s3://bkt/large DST/large",
        "sync -r --delete --remove-source-files --exclude=small --part-size=5MiB s3://bkt/ DST/",
        "mv --part-size=5MiB --source-endpoint-url=URL s3://bkt/large s3://bkt/large2 \
         --destination-endpoint-url=DIRECT",
    ] {
        let line = line.replace("DIRECT", &server.url);
        refused(&stage, &server, &line, "GetObject", &range_lies());
    }
    // Standard output cannot be taken back: the exit code says that it is not all.
    for line in ["cat s3://bkt/large", "cat --range=5242880-10485759 s3://bkt/large"] {
        let mut cases = range_lies();
        cases.retain(|(name, _)| {
            let range = line.contains("range");
            // A first answer is all that is known of an object.
            range && !name.starts_with("another size") && !name.starts_with("another ETag")
                || !range && name.contains("later")
        });
        refused(&stage, &server, line, "GetObject", &cases);
    }
    // With --resume, ranges of an earlier run do not excuse it.
    let line = "cp --resume --part-size=5MiB s3://bkt/large DST/large";
    let mut cases = range_lies();
    cases.retain(|(name, _)| name.contains("ETag of") || name.contains("stretch"));
    for (name, liar) in cases {
        let hostile = Hostile::new(&server, "GetObject", &liar);
        let line = format!("{line} --endpoint-url {}", hostile.url);
        let run = server.run_with(&line, &[("AWS_MAX_ATTEMPTS", "2")]);
        assert!(run.code != 0 && !stage.dst().join("large").exists(), "{name}: {run}");
    }
    server.run(line).ok();
    assert!(std::fs::read(stage.dst().join("large")).ok() == stage.object("large"));
}

#[test]
fn uploads() {
    let stage = Stage::new();
    stage.source("small", SMALL);
    stage.source("large", LARGE);
    let server = stage.serve("");
    for line in [
        "mv SRC/small s3://bkt/small",
        "sync -r --remove-source-files --delete --exclude=large SRC/ s3://bkt/",
        "cp -n SRC/small s3://bkt/small",
    ] {
        refused(&stage, &server, line, "PutObject", &undone("PutObjectResult"));
    }
    for (operation, root) in [
        ("CreateMultipartUpload", "InitiateMultipartUploadResult"),
        ("UploadPart", "UploadPartResult"),
        ("CompleteMultipartUpload", "CompleteMultipartUploadResult"),
    ] {
        let line = "mv --part-size=5MiB SRC/large s3://bkt/large";
        refused(&stage, &server, line, operation, &undone(root));
        assert_eq!(server.uploads(), 0, "{operation}");
    }
}

#[test]
fn copies_by_the_server() {
    let stage = stage();
    let server = stage.serve("");
    for line in ["mv s3://bkt/small s3://bkt/moved", "cp s3://bkt/small s3://bkt/moved"] {
        refused(&stage, &server, line, "CopyObject", &undone("CopyObjectResult"));
    }
    // The look at a source before it is removed, and at its target.
    let cases = [
        change("no ETag", |answer| answer.set("etag", "")),
        change("no length", |answer| {
            answer.set("content-length", "");
            answer.endless = true;
        }),
        change("another length", |answer| answer.set("content-length", "5")),
        change("no time", |answer| answer.set("last-modified", "")),
        change("204", |answer| answer.status = 204),
        change("206", |answer| answer.status = 206),
    ];
    for line in ["mv --part-size=5MiB s3://bkt/large DST/large", "head s3://bkt/large"] {
        let cases: Vec<Case> = cases
            .iter()
            // Nothing contradicts the only thing that is known.
            .filter(|(name, _)| !line.starts_with("head") || name != "another length")
            .map(|(name, liar)| (name.clone(), Arc::clone(liar)))
            .collect();
        refused(&stage, &server, line, "HeadObject", &cases);
    }
}

#[test]
fn deletions() {
    let stage = stage();
    let server = stage.serve("");
    let named = |body: &'static str| {
        always(body, move |_| {
            Lie::Instead(Answer::new(200, &[], &format!("<DeleteResult>{body}</DeleteResult>")))
        })
    };
    let mut cases = undone("NoResult");
    cases.push(named("<Deleted><Key>other</Key></Deleted>"));
    cases.push(named("<Deleted><Key>small</Key></Deleted><Deleted><Key>other</Key></Deleted>"));
    cases.push(named("<Error><Key>other</Key><Code>NoSuchKey</Code></Error>"));
    refused(&stage, &server, "rm -r s3://bkt/", "DeleteObjects", &cases);
    let empty = stage.area.join("empty");
    std::fs::create_dir(&empty).unwrap();
    let line = format!("sync -r --delete {}/ s3://bkt/", empty.display());
    refused(&stage, &server, &line, "DeleteObjects", &cases);
    // Keys that an answer leaves out are deleted one by one.
    let (_, silent) = named("");
    let hostile = Hostile::new(&server, "DeleteObjects", &silent);
    server.run(&format!("rm -r s3://bkt/ --endpoint-url {}", hostile.url)).ok();
    assert!(stage.object("small").is_none() && stage.object("large").is_none());
    assert_eq!(hostile.asked("DeleteObject"), 2);
}

/// A source that could not be removed is told of, and its copy is whole.
#[test]
fn removals_of_moved_objects() {
    let stage = stage();
    let server = stage.serve("");
    let mut cases = undone("NoResult");
    // Some servers answer 200 to a deletion, with or without a body; AWS answers 204.
    cases.retain(|(name, _)| name != "204" && (!name.starts_with("200") || name.contains("error")));
    for (name, liar) in cases {
        let hostile = Hostile::new(&server, "DeleteObject", &liar);
        let line = format!("mv s3://bkt/small DST/ --endpoint-url {}", hostile.url);
        let run = server.run_with(&line, &[("AWS_MAX_ATTEMPTS", "2")]);
        assert_ne!(run.code, 0, "{name}: {run}");
        assert!(stage.object("small") == std::fs::read(stage.dst().join("small")).ok(), "{name}");
    }
}
