//! `-z` and its kin: what crosses the link.

use super::shell;
use crate::common::area::Area;
use crate::common::case::{Case, Run};
use crate::common::diff::Fields;
use std::fs;

/// Runs a line in which `h:` is another machine, with files of text and of no text. Returns the run, and the bytes that
/// the source end sent.
fn sent(line: &str, name: &str) -> (Run, u64) {
    let (from, to) = (Area::tmpfs(), Area::tmpfs());
    let log = from.join("log");
    let tee = format!("tee '{}'", log.display());
    let counting = match line.contains("h:SRC") {
        true => format!("/bin/sh -c \"$*\" | {tee}; exit"),
        false => format!("{tee} | /bin/sh -c \"$*\"; exit"),
    };
    let shell = shell(&from, &counting).display().to_string();
    let case = Case::new(&line.replacen("sync", &format!("sync -a -e {shell}"), 1), from, to);
    fs::create_dir_all(case.src()).unwrap();
    let text: String = (0..90_000).map(|at| format!("line {} of {}\n", at, at % 7)).collect();
    fs::write(case.src().join(name), &text).unwrap();
    for at in 0..100 {
        fs::write(case.src().join(format!("{at}.{name}")), &text[..5_000]).unwrap();
    }
    let run = case.run();
    if run.code == 0 {
        case.target_is_source(&Fields::ALL);
    }
    (run, fs::metadata(log).map_or(0, |log| log.len()))
}

#[test]
fn content_is_compressed_where_that_was_asked_for() {
    // 1.6 MB and 100 × 5 kB.
    let whole = 2_000_000;
    for (options, name, is_packed) in [
        ("", "f", false),
        ("-z", "f", true),
        ("-z", "f.gz", false),
        ("-z --skip-compress=", "f.gz", true),
        ("-z --skip-compress=[fg]z/txt", "f.gz", false),
        ("-z --skip-compress=[fg]z/txt", "f.TXT", false),
        ("-z --skip-compress=[fg]z/txt", "f.jpg", true),
        ("--zc=zstd", "f", true),
        ("--zc=auto", "f", true),
        ("--zl=19", "f", true),
        ("--zl=-1", "f.txt", true),
        ("-z --no-z", "f", false),
        ("-z --zc=none", "f", false),
        ("--no-z --zl=3", "f", false),
    ] {
        for places in ["SRC/ h:DST", "h:SRC/ DST"] {
            let (run, bytes) = sent(&format!("sync {options} {places}"), name);
            run.ok();
            match is_packed {
                true => assert!(bytes > 1000 && bytes < whole / 2, "{bytes} bytes of {run}"),
                false => assert!(bytes > 1_500_000, "{bytes} bytes of {run}"),
            }
        }
    }
}

#[test]
fn other_algorithms_are_named() {
    let (run, bytes) = sent("sync --zc=zlib SRC/ h:DST", "f");
    run.ok().says(&["--compress-choice=zlib: zstd is used"]);
    assert!(bytes < 1_000_000, "{bytes} bytes of {run}");
    for (options, words) in [
        ("--zc=brotli", "invalid --compress-choice 'brotli'"),
        ("--zl=x", "invalid --compress-level 'x'"),
        ("-z --skip-compress=a[", "invalid --skip-compress"),
    ] {
        let (run, _) = sent(&format!("sync {options} SRC/ h:DST"), "f");
        run.expect(1).says(&[words]);
    }
    let (run, _) = sent("sync -z --zl=9 SRC/ DST", "f");
    run.ok().says(&["note: without effect here: -z, --compress-level (nothing is compressed"]);
}
