//! rsync's messages about filter rules (`--debug=filter`, `-vv`), compared with rsync.

use super::meanings::{T, file};
use crate::common::case::{Case, Run, case};
use crate::common::have;

/// Messages about rules, sorted.
fn told(run: &Run) -> Vec<String> {
    let mut lines: Vec<String> =
        run.out().lines().filter(|line| line.starts_with('[')).map(str::to_owned).collect();
    lines.sort();
    lines
}

fn fill(c: &Case) {
    for name in ["a", "keep", "m.tmp", "d/b", "d/keep", "d/m.tmp", "sub/in/f", "x y", "a.o"] {
        file(&c.src().join(name), name, T);
    }
    file(&c.src().join(".rules"), "- *.tmp\n+ keep\n: .inner\n", T);
    file(&c.src().join("d/.rules"), "- b\n", T);
    file(&c.list(), "- *.tmp\n+ keep\n", T);
    for root in [c.dst(), c.oracle_dst()] {
        for name in ["keep", "zz.tmp", "zz", "q2", "d/b", "old/in.tmp", "old/keep"] {
            file(&root.join(name), name, T);
        }
    }
}

#[test]
fn rules_that_decide_are_told_in_rsyncs_words() {
    if !have("rsync", "messages beside rsync") {
        return;
    }
    for (line, words) in [
        (
            "sync -a --debug=filter -f '- *.tmp' -f '+ keep' -f 'H sub/' SRC/ DST",
            "[sender] hiding directory sub because of pattern sub/",
        ),
        (
            "sync -a --debug=FILTER1 --delete -f 'P zz' -f 'R q2' -f '- sub/' SRC/ DST",
            "[generator] protecting file zz because of pattern zz",
        ),
        (
            "sync -avv --delete-before -f 'P in.tmp' -f '-p keep' -f '- zz*' SRC/ DST",
            "[generator] protecting file old/in.tmp because of pattern in.tmp",
        ),
        (
            "sync -an --debug=filter --delete-after --exclude='z*' SRC/ DST",
            "protecting file zz.tmp",
        ),
        (
            "sync -avv -f ': .rules' SRC/ DST",
            "[sender] hiding file d/b because of pattern <rule from a file read earlier> [per-dir .rules]",
        ),
        (
            "sync -avv --exclude-from=LIST SRC/ DST",
            "[sender] showing file keep because of pattern <rule from a file read earlier>",
        ),
        (
            "sync -a --debug=filter -f '. LIST' --exclude='/a' SRC/ DST",
            "[sender] hiding file a because of pattern /a",
        ),
        ("sync -avvC SRC/ DST", "because of pattern *.o [global CVS]"),
        (
            "sync -avv -f ':e .rules' SRC/ DST",
            "[sender] hiding file d/.rules because of pattern .rules",
        ),
        ("sync -avv --exclude='x ?' --include='*/' --exclude='*' SRC/ DST", "file x y because of"),
        ("sync -a --debug=filter -f '-! */' SRC/ DST", "because of pattern */"),
        (
            "sync -a --debug=filter -f '- a ' -f 'Pp! z ' --exclude='u/ ' SRC/ DST",
            "[client] add_rule(-!rp z ) -- CAUTION: trailing whitespace!",
        ),
        ("sync -avv --debug=filter0 -f '- a' SRC/ DST", ""),
        ("sync -avv --debug=none -f '- a' SRC/ DST", ""),
        ("sync -av -f '- a' SRC/ DST", ""),
        ("sync -aq --debug=filter -f '- a' SRC/ DST", ""),
    ] {
        case(line, |c| {
            fill(c);
            let (ours, theirs) = (c.run(), c.oracle());
            assert_eq!((ours.code, theirs.code), (0, 0), "{ours}\n{theirs}");
            let found = told(&ours);
            match words {
                "" => assert!(found.is_empty(), "{ours}"),
                _ => assert!(found.iter().any(|line| line.contains(words)), "{words}: {ours}"),
            }
            assert_eq!(found, told(&theirs), "{ours}\n{theirs}");
        });
    }
}

/// Arguments are checked as well, and nothing is told twice.
#[test]
fn rules_about_arguments() {
    if !have("rsync", "messages beside rsync") {
        return;
    }
    case("sync -avv -f '- sub' -f '+ a' SRC/a SRC/sub SRC/d DST", |c| {
        fill(c);
        let (ours, theirs) = (c.run(), c.oracle());
        assert_eq!(told(&ours), told(&theirs), "{ours}\n{theirs}");
        assert_eq!(told(&ours).len(), 2, "{ours}");
    });
}

#[test]
fn patterns_that_are_too_long_are_discarded() {
    if !have("rsync", "messages beside rsync") {
        return;
    }
    for (length, told) in [(4095, false), (4096, true)] {
        let pattern = "Q".repeat(length);
        case(&format!("sync -a -f '-! {pattern}' SRC/ DST"), |c| {
            fill(c);
            let (ours, theirs) = (c.run(), c.oracle());
            assert_eq!((ours.code, theirs.code), (0, 0));
            for run in [&ours, &theirs] {
                let words = format!("discarding over-long filter: {pattern}");
                assert_eq!(run.err().contains(&words), told, "{length}");
            }
            // Without the rule everything is copied.
            assert_eq!(c.dst().join("a").exists(), told);
            assert_eq!(c.oracle_dst().join("a").exists(), told);
        });
    }
}

/// A merge file that a file names is reported without its name, which may be anything.
#[test]
fn a_name_from_a_file_is_not_repeated() {
    case("sync -a -f ': .rules' SRC/ DST", |c| {
        file(&c.src().join(".rules"), &format!(": SECRET{}\n", "Q".repeat(300)), T);
        let run = c.run();
        run.expect(23).says(&["merge-file name overflows"]);
        assert!(!run.err().contains("SECRET"), "{run}");
    });
}

#[test]
fn flags_of_debug() {
    for (line, code, words) in [
        ("sync -a --debug=frob SRC/ DST", 1, "--debug=frob: there is no such flag"),
        ("sync -a --debug=del2,filter SRC/ DST", 0, "note: without effect here: --debug=del2"),
        ("sync -a --debug=del0,none SRC/ DST", 0, ""),
        ("sync -a --debug=filter s3://bucket/ DST", 1, "without effect with s3://"),
    ] {
        case(line, |c| {
            fill(c);
            let run = c.run();
            match words {
                "" => assert_eq!(run.expect(code).err(), "", "{run}"),
                _ if code == 0 => drop(run.expect(code).says(&[words])),
                _ => assert!(run.code != 0 && run.err().contains(words), "{run}"),
            }
        });
    }
    case("sync --debug=help", |c| {
        assert!(c.run().ok().out().contains("FILTER "));
    });
}
