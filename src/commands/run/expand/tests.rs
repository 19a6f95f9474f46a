//! Command lines that lines of run files become.

use super::*;

fn takes_next(word: &str) -> bool {
    matches!(word, "--exclude" | "--include")
}

/// The command lines of a line, `R` being the folder.
fn expanded(root: &str, command: &str, line: &str) -> String {
    let words: Vec<OsString> = line
        .split_whitespace()
        .map(|word| word.replace("R/", &format!("{root}/")).into())
        .collect();
    match lines(command, &words, &takes_next) {
        Err(why) => why,
        Ok(lines) => {
            let text = |words: Vec<OsString>| {
                let words = words.iter().map(|word| word.to_str().unwrap().replace(root, "R"));
                words.collect::<Vec<_>>().join(" ")
            };
            lines.into_iter().map(text).collect::<Vec<_>>().join("; ")
        }
    }
}

fn filled() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a1/x", "a1/y", "a2/x", "b/x", "b/d/z.txt", "c*"] {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
    dir
}

#[test]
fn wildcards_keep_their_folders_and_folders_are_descended_into() {
    let dir = filled();
    let root = dir.path().to_str().unwrap();
    for (command, line, expected) in [
        ("cp", "R/a*/x s3://b/", "R/a1/x s3://b/a1/; R/a2/x s3://b/a2/"),
        ("cp", "R/a*/x s3://b", "R/a1/x s3://b/a1/; R/a2/x s3://b/a2/"),
        ("cp", "--flatten R/a*/x s3://b/", "--flatten R/a1/x R/a2/x s3://b/"),
        ("cp", "R/a? s3://b/", "-r -L R/a1 R/a2 s3://b/"),
        ("cp", "--no-follow-symlinks R/b s3://b/", "--no-follow-symlinks -r R/b s3://b/"),
        ("cp", "-r R/b s3://b/p", "-r R/b s3://b/p"),
        ("mv", "R/b/* s3://b/", "R/b/d R/b/x s3://b/"),
        // A name with a wildcard is one of its matches; with --raw it is the only one.
        ("cp", "R/c* s3://b/", "R/c* s3://b/"),
        ("cp", "--raw R/a* s3://b/", "--raw R/a* s3://b/"),
        ("cp", "-f R/a*/x s3://b/", "--flatten R/a1/x R/a2/x s3://b/"),
        ("mv", "-f s3://b/* R/b/", "--flatten s3://b/* R/b/"),
        ("cp", "-f R/b/x R/c", "-f R/b/x R/c"),
        ("cp", "-r -f R/b s3://b/p", "-r -f R/b s3://b/p"),
        ("cp", "R/z* s3://b/", "R/z* s3://b/"),
        ("cp", "--exclude * R/b/x s3://b/", "--exclude * R/b/x s3://b/"),
        ("cp", "s3://b/* R/b/", "s3://b/* R/b/"),
        ("cp", "R/b s3://b/p", NEEDS_PREFIX),
        ("cp", "R/a*/x s3://b/p", NEEDS_PREFIX),
        ("mv", "s3://b/* s3://b/p", NEEDS_PREFIX),
        ("cp", "s3://b/x R/*", WILD_TARGET),
        ("cp", "--raw s3://b/x R/*", "--raw s3://b/x R/*"),
        ("mv", "-n --raw R/c* R/d*", "-n R/c* R/d*"),
    ] {
        assert_eq!(expanded(root, command, line), expected, "{command} {line}");
    }
}

#[test]
fn sync_decides_as_s5cmd_unless_it_is_hakobus() {
    for (line, expected) in [
        ("s3://b/* d/", "--size-or-newer -L s3://b/* d/"),
        ("--delete --size-only s3://b/* d/", "--delete --size-only --size-or-newer -L s3://b/* d/"),
        ("--exclude * s3://b/ d/", "--exclude * --size-or-newer -L s3://b/ d/"),
        ("-a s3://b/ d/", "-a s3://b/ d/"),
        ("-rt --delete s3://b/ d/", "-rt --delete s3://b/ d/"),
        ("a b", "a b"),
    ] {
        assert_eq!(expanded("/nowhere", "sync", line), expected, "{line}");
    }
}

#[test]
fn local_removals_leave_folders() {
    let dir = filled();
    let root = dir.path().to_str().unwrap();
    for (line, expected) in [
        ("R/a1/x", "R/a1/x"),
        ("R/b", "-r --keep-dirs R/b"),
        ("R/b/*", "-r --keep-dirs R/b/d R/b/x"),
        ("R/a1/*", "R/a1/x R/a1/y"),
        ("R/z*", "R/z*"),
        ("--exclude *.txt R/b", "--exclude *.txt --filter-style=s5cmd -r --keep-dirs R/b"),
        (
            "--exclude d/z.txt -f R/b/*",
            "--exclude d/z.txt -f --filter-style=s5cmd -r --keep-dirs R/b/./d R/b/./x",
        ),
        ("--raw R/a*", "R/a*"),
        ("-r R/b", "-r R/b"),
        ("--filter=-_d R/b", "--filter=-_d R/b"),
        ("--exclude-fr=rules R/b", "--exclude-fr=rules R/b"),
        (
            "--filter-style=s5cmd --exclude=x R/b",
            "--filter-style=s5cmd --exclude=x -r --keep-dirs R/b",
        ),
        ("s3://b/*", "s3://b/*"),
    ] {
        assert_eq!(expanded(root, "rm", line), expected, "rm {line}");
    }
}

#[test]
fn du_counts_what_a_wildcard_matches() {
    let dir = filled();
    let root = dir.path().to_str().unwrap();
    for (command, line, expected) in [
        ("du", "R/a1/*", "R/a1/x R/a1/y"),
        ("du", "-a R/b/d", "-a R/b/d"),
        ("du", "R/z*", "R/z*"),
        ("du", "-s R/a*", "-s R/a1 R/a2"),
        ("ls", "--exclude x s3://b/*", "--exclude x s3://b/*"),
    ] {
        assert_eq!(expanded(root, command, line), expected, "{command} {line}");
    }
}

#[test]
fn a_folder_that_cannot_be_read_is_an_error() {
    let line = format!("{}/*", "a".repeat(300));
    for command in ["rm", "cp"] {
        let target = if command == "cp" { " s3://b/" } else { "" };
        let why = expanded("/nowhere", command, &format!("{line}{target}"));
        assert!(why.starts_with("cannot read 'aaa"), "{why}");
    }
    assert!(matching(b"/nowhere/*").unwrap().is_empty());
    assert!(matching(b"/dev/null/*").unwrap().is_empty());
}
