//! Filters of `rm` for local names: entries that a rule excludes stay.

use crate::common::have_root;
use crate::tools::place::Place;

const SAMPLE: &str = r#"
    mkdir -p t/a/b t/e t/keep/deep outside; touch outside/precious.txt
    touch t/x.txt t/a/y.txt t/a/b/z t/keep/deep/f $'t/new\nline.txt'; ln -s ../outside t/link
    printf '%s\n' '*.txt' keep > rules
"#;

/// All paths below `t`, each in `[]`, with `~` for a newline.
fn left(place: &Place) -> String {
    place.sh(
        "[ ! -e t ] || find t -mindepth 1 -printf '%P\\0' | LC_ALL=C sort -z | sed -z 's/.*/[&]/' | tr '\\n\\0' '~ '",
    )
}

/// Lines of `-v` as those of a dry run.
fn as_dry(lines: Vec<String>) -> Vec<String> {
    let dry = |line: String| match line.strip_prefix("removed directory ") {
        Some(name) => format!("rmdir {name}"),
        None => line.replacen("removed ", "rm ", 1),
    };
    let mut lines: Vec<String> = lines.into_iter().map(dry).collect();
    lines.sort();
    lines
}

#[test]
fn excluded_entries_stay_with_the_folders_above() {
    for (line, expected) in [
        ("--exclude=*.txt t", "[a] [a/y.txt] [new~line.txt] [x.txt] "),
        ("--exclude=new* t", "[new~line.txt] "),
        ("--exclude=keep t", "[keep] [keep/deep] [keep/deep/f] "),
        ("--exclude=/keep t/", "[keep] [keep/deep] [keep/deep/f] "),
        ("--exclude=/t/keep t", "[keep] [keep/deep] [keep/deep/f] "),
        ("--exclude=t/keep ./t", "[keep] [keep/deep] [keep/deep/f] "),
        ("--exclude=/keep t", ""),
        ("--exclude=deep t", "[keep] [keep/deep] [keep/deep/f] "),
        ("--exclude=a/b t", "[a] [a/b] [a/b/z] "),
        ("--exclude=b/ --exclude=f t", "[a] [a/b] [a/b/z] [keep] [keep/deep] [keep/deep/f] "),
        ("--include=y.txt --exclude=*.txt t", "[new~line.txt] [x.txt] "),
        (
            "--include=*/ --include=*.txt --exclude=* t",
            "[a] [a/b] [a/b/z] [keep] [keep/deep] [keep/deep/f] [link] ",
        ),
        ("--filter=-_*.txt t", "[a] [a/y.txt] [new~line.txt] [x.txt] "),
        ("--filter=P_z t", "[a] [a/b] [a/b/z] "),
        ("--filter=._both t", ""),
        (
            "--filter-style=s5cmd --include=*.txt t",
            "[a] [a/b] [a/b/z] [keep] [keep/deep] [keep/deep/f] [link] ",
        ),
        (
            "--filter-style=aws --exclude=* --include=a/* t",
            "[keep] [keep/deep] [keep/deep/f] [link] [new~line.txt] [x.txt] ",
        ),
        (
            "--exclude-from=rules t",
            "[a] [a/y.txt] [keep] [keep/deep] [keep/deep/f] [new~line.txt] [x.txt] ",
        ),
        ("--exclude=link t", "[link] "),
        // The symlink is not a folder.
        ("--exclude=link/ t", ""),
        ("--exclude=t t/", ""),
        ("--keep-dirs t", "[a] [a/b] [e] [keep] [keep/deep] "),
        (
            "--keep-dirs --exclude=*.txt t",
            "[a] [a/b] [a/y.txt] [e] [keep] [keep/deep] [new~line.txt] [x.txt] ",
        ),
    ] {
        for jobs in [1, 4] {
            let place = Place::new();
            place.sh(SAMPLE);
            place.sh("printf '%s\\n' '+ *' '- *' > both");
            let before = place.tree(".");
            let dry = place.run(&format!("rm -rn -j {jobs} {line}"));
            assert_eq!((dry.code, dry.err().as_str()), (0, ""), "{line}");
            assert_eq!(place.tree("."), before, "{line}");
            let out = place.run(&format!("rm -rv -j {jobs} {line}"));
            assert_eq!((out.code, out.err().as_str()), (0, ""), "{line}");
            assert_eq!(left(&place), expected, "{line}");
            assert_eq!(dry.sorted(), as_dry(out.sorted()), "{line}");
            assert!(place.path().join("outside/precious.txt").exists(), "{line}");
            // Once more changes nothing.
            if place.path().join("t").exists() {
                let again = place.run(&format!("rm -rv {line}"));
                assert_eq!((again.code, again.out()), (0, String::new()), "{line}");
            }
        }
    }
}

#[test]
fn arguments_are_entries_as_well() {
    for (line, gone) in [
        ("rm --exclude=*.txt t/x.txt t/a/b/z", "t/a/b/z"),
        ("rm --exclude=t t t/x.txt", "t/x.txt"),
        ("rm -d --exclude=e t/e t/x.txt", "t/x.txt"),
        ("rm -r --exclude=keep t/a t/keep", "t/a"),
        ("rm --filter-style=s5cmd --exclude=*.txt t/x.txt t/a/b/z", "t/a/b/z"),
        ("rm -r --exclude=link t/link t/x.txt", "t/x.txt"),
    ] {
        let place = Place::new();
        place.sh(SAMPLE);
        let kept = |place: &Place| {
            let mut tree = place.tree(".");
            tree.retain(|path| !path.strip_prefix("./").is_some_and(|path| path.starts_with(gone)));
            tree
        };
        let before = kept(&place);
        place.run(line).ok();
        assert_eq!(place.tree("."), before, "{line}");
        assert!(!place.path().join(gone).exists(), "{line}");
    }
}

#[test]
fn questions_are_not_asked_about_what_stays() {
    let place = Place::new();
    place.sh(SAMPLE);
    let out = place.try_sh("yes | $H rm -ri --exclude=keep t");
    out.ok();
    assert!(out.err().contains("'t/a/b/z'") && !out.err().contains("keep"), "{}", out.err());
    assert_eq!(left(&place), "[keep] [keep/deep] [keep/deep/f] ");
    let out = place.try_sh("yes | $H rm -ri --keep-dirs t");
    out.ok();
    assert!(!out.err().contains("remove directory"), "{}", out.err());
    assert_eq!(left(&place), "[keep] [keep/deep] ");
    // A dry run asks nothing.
    assert_eq!(place.try_sh("$H rm -rin t </dev/null").ok().err(), "");
    assert_eq!(left(&place), "[keep] [keep/deep] ");
}

#[test]
fn a_dry_run_without_rules_says_what_fails() {
    let place = Place::new();
    place.sh("mkdir -p d/e; touch f");
    let out = place.run("rm -dn f d d/e nowhere");
    out.expect(1).says(&["cannot remove 'd': Directory not empty", "'nowhere'"]);
    assert_eq!(out.sorted(), ["rm \\'f\\'", "rmdir \\'d/e\\'"]);
    assert_eq!(place.sh("find . | sort"), ".\n./d\n./d/e\n./f\n");
    let out = place.run("rm -rn --json d").ok().out();
    assert!(out.contains(r#"{"event":"removed","kind":"dir","path":"d/e"}"#), "{out}");
    assert!(place.path().join("d/e").exists());
}

#[test]
fn rules_that_may_remove_more_than_meant_are_refused() {
    let place = Place::new();
    place.sh(SAMPLE);
    let before = place.tree(".");
    for (line, words) in [
        ("rm -r --include=*.txt t", &["--include '*.txt' changes nothing", "hint: "][..]),
        ("rm -r --exclude=* --include=*.txt t", &["changes nothing"]),
        ("rm -r --filter=:_.rules t", &["per-directory"]),
        ("rm -r --filter=nosuch t", &["nosuch"]),
        ("rm -r --exclude-from=nowhere t", &["nowhere"]),
        ("rm -d --keep-dirs t", &["contradict"]),
    ] {
        place.run(line).expect(2).says(words);
        assert_eq!(place.tree("."), before, "{line}");
    }
}

#[test]
fn an_excluded_folder_is_not_entered() {
    if !have_root("an ordinary user") {
        return;
    }
    for (line, code, left_over) in [
        ("rm -r --exclude=closed t", 0, "t\nt/closed\nt/closed/f\n"),
        ("rm -r --exclude=other t", 1, "t\nt/closed\nt/closed/f\n"),
        ("rm -rn --exclude=other t", 1, "t\nt/closed\nt/closed/f\nt/empty\nt/f\n"),
        // One that cannot be listed is removed only if it is empty, and never with --keep-dirs.
        ("rm -r --keep-dirs --exclude=closed t", 1, "t\nt/closed\nt/closed/f\nt/empty\n"),
    ] {
        let place = Place::new();
        place.sh("mkdir -p t/closed t/empty; touch t/f t/closed/f; chown -R 65534:65534 t
             chmod 0 t/closed t/empty; chmod 777 .");
        let nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups";
        let out = place.try_sh(&format!("{nobody} $H {line}"));
        out.expect(code);
        assert_eq!(out.err().is_empty(), code == 0, "{line}: {}", out.err());
        assert_eq!(place.sh("find t | LC_ALL=C sort"), left_over, "{line}");
    }
}
