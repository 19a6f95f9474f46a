//! Lists of names, and missing sources, with S3 on a side.

use crate::common::case::Run;
use crate::objects::stage::{Stage, file, names, on_servers, tree};

fn fill(stage: &Stage) {
    for (name, body) in [("d/f", "1"), ("d2/f", "other"), ("d2/h", "2"), ("x/y/z", "3")] {
        file(&stage.src(), name, body.as_bytes(), 100);
    }
    stage.ok("sync -r SRC/ BKT/source/");
}

/// Runs a transfer in each direction; what is at the target then.
fn each(stage: &Stage, options: &str, list: &str) -> Vec<(Run, Vec<String>)> {
    std::fs::write(stage.area.join("list"), list).unwrap();
    let clear = || {
        crate::common::remove_tree(&stage.dst());
        std::fs::create_dir(stage.dst()).unwrap();
        stage.run("rm -r SPOT/");
    };
    let mut all = Vec::new();
    for (from, to) in [("SRC/", "SPOT/"), ("BKT/source/", "DST/"), ("BKT/source/", "SPOT/")] {
        clear();
        let run = stage.run(&format!("sync {options} --files-from=LIST {from} {to}"));
        let there = if to == "DST/" { tree(&stage.dst()) } else { stage.place() };
        let shown = there.iter().map(|(name, body)| {
            format!("{}={}", name.escape_ascii(), String::from_utf8_lossy(body))
        });
        all.push((run, shown.collect()));
    }
    all
}

#[test]
fn a_marker_in_a_line_cuts_the_path() {
    on_servers(|stage| {
        fill(stage);
        for (list, expected) in [
            ("x/./y/z\n", &["y/z=3"][..]),
            ("./d/f\n", &["d/f=1"]),
            ("d/./f\nd2/h\nd2/./h\n", &["d2/h=2", "f=1", "h=2"]),
            // The first one counts, as in rsync.
            ("d/./f\nd2/./f\n", &["f=1"]),
            ("d2/./f\nd/./f\n", &["f=other"]),
        ] {
            for (run, there) in each(stage, "-r", list) {
                run.ok();
                assert_eq!(there, expected, "{list:?}: {run}");
            }
            for (run, there) in each(stage, "-r --no-R", list).into_iter().take(1) {
                assert!(run.code == 0 && !there.is_empty(), "{list:?}: {run}");
            }
        }
    });
}

#[test]
fn what_a_list_names_and_is_not_there() {
    on_servers(|stage| {
        fill(stage);
        for list in ["nope\nd/f\n", "nope/./f\nd/f\n", "d/./nope\nd/f\n", "d/nope\nd/f\n"] {
            for options in ["-r", "-r --exclude=nope"] {
                for (run, there) in each(stage, options, list) {
                    run.expect(23).says(&["nope"]);
                    assert_eq!(there, ["d/f=1"], "{list:?}: {run}");
                }
            }
        }
        // A directory is not an object: a message, never nothing.
        for list in ["d/\n", "d/.\n", "x/./y/\n"] {
            for (run, _) in each(stage, "-t", list) {
                run.expect(23).says(&["hakobu: "]);
            }
        }
    });
}

#[test]
fn a_missing_source_is_told_of() {
    on_servers(|stage| {
        fill(stage);
        file(&stage.dst(), "kept", b"kept", 100);
        stage.put("place/kept", b"kept");
        for source in ["AREA/nope", "AREA/nope/", "BKT/nope", "BKT/nope/", "BKT/nope*"] {
            for target in ["SPOT/", "DST/"] {
                if source.starts_with("AREA") && target == "DST/" {
                    continue;
                }
                // A wildcard that matches nothing is told of by its prefix.
                let word = if source.ends_with('*') { "wildcard" } else { "nope" };
                for options in ["sync", "sync -r", "sync -r --exclude=nope --delete"] {
                    stage.run(&format!("{options} {source} {target}")).expect(23).says(&[word]);
                }
                for options in ["cp", "cp -r", "cp -r --exclude=nope", "mv"] {
                    stage.run(&format!("{options} {source} {target}")).expect(1).says(&[word]);
                }
            }
        }
        assert_eq!(names(&tree(&stage.dst())), ["kept"]);
        assert_eq!(names(&stage.place()), ["kept"]);
    });
}
