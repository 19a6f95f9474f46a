//! Conditional uploads and copies (`-n`) whose first response is lost: the existing object may or may not be
//! the result of the first attempt.

use crate::wire::hostile::{Answer, Hostile, Liar, Lie};
use crate::wire::server::{Server, Stage, counts};
use std::sync::Arc;

const FAILED: &str = "<Error><Code>PreconditionFailed</Code></Error>";

/// The first request of an operation as `first` says, later ones as the server answers.
fn at_first(first: impl Fn() -> Lie + Send + Sync + 'static) -> Liar {
    Arc::new(move |asked| if asked.before == 0 { first() } else { Lie::None })
}

fn run(
    server: &Server<'_>,
    operation: &'static str,
    liar: &Liar,
    line: &str,
) -> crate::common::case::Run {
    let hostile = Hostile::new(server, operation, liar);
    server.run(&format!("{line} -v --json --endpoint-url {}", hostile.url))
}

fn stage() -> Stage {
    let stage = Stage::new();
    stage.source("small", 14_000);
    stage.source("large", 11 << 20);
    stage
}

#[test]
fn what_the_first_try_stored_is_stored() {
    for (name, operation) in [("small", "PutObject"), ("large", "CompleteMultipartUpload")] {
        let stage = stage();
        let server = stage.serve("");
        let bytes = std::fs::read(stage.src().join(name)).unwrap();
        let line = format!("mv -n --part-size=5MiB SRC/{name} s3://bkt/{name}");
        let run = run(&server, operation, &at_first(|| Lie::Silence), &line);
        run.ok();
        counts(&run, &[("files", 1), ("skipped", 0), ("failed", 0)]);
        assert!(stage.object(name) == Some(bytes), "{run}");
        assert!(!stage.src().join(name).exists(), "{run}");
        assert_eq!(server.uploads(), 0);
    }
}

/// The server does what it is asked, and says that it failed.
#[test]
fn a_failure_that_was_none() {
    let stage = stage();
    let server = stage.serve("");
    let late = || {
        Lie::After(Box::new(|answer| {
            *answer = Answer::new(500, &[], "<Error><Code>InternalError</Code></Error>")
        }))
    };
    let run = run(&server, "PutObject", &at_first(late), "mv -n SRC/small s3://bkt/small");
    run.ok();
    counts(&run, &[("files", 1), ("skipped", 0)]);
    assert!(!stage.src().join("small").exists() && stage.object("small").is_some());
}

/// Another client made another object while the first try was under way.
#[test]
fn what_others_stored_is_kept() {
    let stage = stage();
    let server = stage.serve("");
    let path = stage.area.join("root/bkt/small");
    let other = vec![b'x'; 14_000];
    let (theirs, place) = (other.clone(), path.clone());
    let liar = at_first(move || {
        std::fs::write(&place, &theirs).unwrap();
        Lie::Instead(Answer::new(500, &[], "<Error><Code>InternalError</Code></Error>"))
    });
    let run = run(&server, "PutObject", &liar, "mv -n SRC/small s3://bkt/small");
    counts(&run, &[("files", 0)]);
    assert!(std::fs::read(&path).unwrap() == other, "{run}");
    assert!(stage.src().join("small").exists(), "{run}");
}

#[test]
fn copies_of_the_first_try() {
    let stage = stage();
    stage.seed();
    let server = stage.serve("");
    for (done, name) in [(true, "mine"), (false, "theirs")] {
        let other = stage.area.join("root/bkt/theirs");
        let liar: Liar = Arc::new(move |asked| match (asked.before, done) {
            (0, true) => Lie::Silence,
            (0, false) => {
                std::fs::write(&other, "another").unwrap();
                Lie::Instead(Answer::new(500, &[], "<Error><Code>InternalError</Code></Error>"))
            }
            _ => Lie::Instead(Answer::new(412, &[], FAILED)),
        });
        let line = format!("mv -n s3://bkt/small s3://bkt/{name}");
        let run = run(&server, "CopyObject", &liar, &line);
        counts(&run, &[("files", u64::from(done)), ("skipped", u64::from(!done))]);
        assert_eq!(stage.object("small").is_some(), !done, "{run}");
        assert!(stage.object(name).is_some(), "{run}");
        stage.seed();
    }
}

/// Answers that speak of a condition where there was none are not taken for "it is there already".
#[test]
fn conditions_that_were_never_set() {
    let stage = stage();
    let server = stage.serve("");
    for (status, line) in [
        (304, "mv SRC/small s3://bkt/small"),
        (304, "mv -n SRC/small s3://bkt/small"),
        (412, "mv SRC/small s3://bkt/small"),
    ] {
        let liar: Liar = Arc::new(move |_| Lie::Instead(Answer::new(status, &[], "")));
        let run = run(&server, "PutObject", &liar, line);
        assert_ne!(run.code, 0, "{run}");
        assert!(stage.src().join("small").exists() && stage.object("small").is_none(), "{run}");
        let said = run.out() + &run.err();
        assert!(!said.contains("the object does not meet the condition"), "{run}");
    }
}
