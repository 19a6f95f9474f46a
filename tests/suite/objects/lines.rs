//! Command lines of aws and s5cmd: target paths of folders, filters of each peer, options before the command,
//! and lines of `run` files as in s5cmd.

use crate::objects::stage::{Stage, file, names, stage, tree};
use crate::server::client::{ACCESS, SECRET};

fn keys(stage: &Stage) -> Vec<String> {
    names(&stage.objects())
}

#[test]
fn where_a_folder_lands_does_not_depend_on_what_is_there() {
    let stage = stage();
    file(&stage.src(), "x/f", b"one", 100);
    for (line, expected) in [
        ("cp -r SRC/x BKT/r", &["r/f"][..]),
        ("cp --recursive SRC/x/ BKT/r", &["r/f"]),
        ("cp -r SRC/x/ BKT/r/", &["r/f"]),
        ("cp -r SRC/x BKT/r/", &["r/x/f"]),
        ("cp -r SRC/x BKT", &["x/f"]),
        ("cp -r -T SRC/x BKT/r/", &["r/f"]),
        ("cp -r -t BKT/r SRC/x", &["r/x/f"]),
        ("cp SRC/x/f BKT/r", &["r"]),
        ("cp SRC/x/f BKT/r/", &["r/f"]),
    ] {
        for again in [false, true] {
            stage.ok(line);
            assert_eq!(keys(&stage), expected, "{line}; again: {again}");
        }
        stage.ok("rm -r BKT");
    }
    stage.put("p/f", b"one");
    for (line, expected) in [
        ("cp -r BKT/p DST/r", &["r/f"][..]),
        ("cp -r BKT/p/ DST/r", &["r/f"]),
        ("cp -r BKT/p/ DST/r/", &["r/f"]),
        ("cp -r BKT/p DST/r/", &["r/p/f"]),
        ("cp BKT/p/f DST/r/", &["r/f"]),
    ] {
        for again in [false, true] {
            stage.ok(line);
            assert_eq!(names(&tree(&stage.dst())), expected, "{line}; again: {again}");
        }
        std::fs::remove_dir_all(stage.dst()).unwrap();
        std::fs::create_dir(stage.dst()).unwrap();
    }
    let run = stage.ok("cp -r --dry-run SRC/x/ BKT/r/");
    assert!(run.err().contains(&format!("-> 's3://{}/r/'", stage.bucket)), "{run}");
    let run = stage.ok("cp -r --dry-run SRC/x BKT/r/");
    assert!(run.err().contains(&format!("-> 's3://{}/r/x/'", stage.bucket)), "{run}");
}

#[test]
fn sync_of_a_store_is_recursive_and_a_star_is_its_prefix() {
    let stage = stage();
    file(&stage.src(), "d/f", b"one", 100);
    stage.ok("sync SRC/ BKT");
    assert_eq!(keys(&stage), ["d/f"]);
    file(&stage.dst(), "old", b"x", 100);
    stage.ok("sync --delete 'BKT/*' DST/");
    assert_eq!(names(&tree(&stage.dst())), ["d/f"]);
    let run = stage.run("sync --delete 'BKT/d*' DST/");
    run.ok().says(&["--delete removes nothing with the wildcard"]);
    assert_eq!(names(&tree(&stage.dst())), ["d/f"]);
    stage.put("e/f", b"x");
    stage.run("sync --no-r BKT/ DST/");
    assert_eq!(names(&tree(&stage.dst())), ["d/f"]);
}

fn fill(stage: &Stage) {
    for key in ["a.txt", "a.py", "d/b.txt", "d/b.py", "d/e/c.txt"] {
        stage.put(key, b"body");
    }
}

#[test]
fn patterns_are_read_as_the_peer_reads_them() {
    let stage = stage();
    fill(&stage);
    for (options, expected) in [
        // rsync: the first one counts, and a folder that is left out is not looked into.
        ("--include=*.txt --exclude=*", &["a.txt"][..]),
        ("--exclude=d/", &["a.py", "a.txt"]),
        // aws: the last one counts, and a star crosses slashes.
        ("--filter-style=aws --exclude=* --include=*.txt", &["a.txt", "d/b.txt", "d/e/c.txt"]),
        ("--filter-style=aws --include=*.txt --exclude=*", &[]),
        ("--filter-style=aws --exclude=d/*", &["a.py", "a.txt"]),
        ("--filter-style=aws --exclude=*[!t]", &["a.txt", "d/b.txt", "d/e/c.txt"]),
        (
            "--filter-style=aws --exclude=b.txt",
            &["a.py", "a.txt", "d/b.py", "d/b.txt", "d/e/c.txt"],
        ),
        // s5cmd: an include leaves out all others, an exclude counts more.
        ("--filter-style=s5cmd --include=*.txt", &["a.txt", "d/b.txt", "d/e/c.txt"]),
        ("--filter-style=s5cmd --exclude=d/* --include=*.txt", &["a.txt"]),
        ("--filter-style=s5cmd --include=?.py", &["a.py"]),
    ] {
        stage.ok(&format!("cp -r {options} BKT/ DST/"));
        assert_eq!(names(&tree(&stage.dst())), expected, "cp {options}");
        std::fs::remove_dir_all(stage.dst()).unwrap();
        std::fs::create_dir(stage.dst()).unwrap();
        let listed = stage.ok(&format!("ls -R --show-fullpath {options} BKT/"));
        let url = format!("s3://{}/", stage.bucket);
        let listed: Vec<String> = listed.out().lines().map(|line| line.replace(&url, "")).collect();
        assert_eq!(listed, expected, "ls {options}");
        let used = stage.ok(&format!("du -s -b --objects {options} BKT/")).out();
        let objects = expected.len().to_string();
        assert_eq!(used.split('\t').nth(1), Some(&*objects), "du {options}: {used}");
        stage.ok(&format!("rm -r {options} BKT"));
        let left = keys(&stage);
        assert!(expected.iter().all(|key| !left.contains(&(*key).to_owned())), "rm {options}");
        assert_eq!(left.len() + expected.len(), 5, "rm {options}: {left:?}");
        fill(&stage);
    }
    let run = stage.run("cp -r --filter-style=aws --exclude-from=/dev/null BKT/ DST/");
    run.expect(2).says(&["--include and --exclude alone"]);
}

#[test]
fn an_include_that_changes_nothing_is_told() {
    let stage = stage();
    fill(&stage);
    for (options, told) in [
        ("--include=*.py", "--include '*.py' changes nothing"),
        ("--exclude=*.tmp --include=*.txt", "--include '*.txt' changes nothing"),
        ("--include=*.py --exclude=*", ""),
        ("--filter-style=aws --exclude=* --include=*.txt", ""),
        ("--filter-style=rsync --exclude=* --include=*.txt", ""),
    ] {
        let run = stage.ok(&format!("cp -r {options} BKT/ DST/"));
        assert_eq!(run.err().contains("changes nothing"), !told.is_empty(), "{options}: {run}");
        assert!(run.err().contains(told), "{options}: {run}");
    }
    // More would be removed than was meant.
    stage.run("rm -r --include=*.py BKT/").expect(2).says(&["changes nothing"]);
    assert_eq!(keys(&stage).len(), 5);
}

#[test]
fn rules_in_the_order_of_aws_are_refused_without_a_style() {
    let stage = stage();
    fill(&stage);
    for name in ["a.txt", "b.py"] {
        file(&stage.src(), name, b"x", 100);
    }
    for rules in [
        "--exclude '*' --include '*.txt'",
        "--exclude=* --include=*.txt --exclude=secret*",
        "--exclude=*.txt --include=a.txt",
        "--include=* --exclude=*.py",
    ] {
        for (line, code) in [
            ("sync SRC/ BKT/up/", 1),
            ("sync --delete SRC/ BKT/", 1),
            ("sync BKT/ DST/", 1),
            ("sync BKT/ BKT/copy/", 1),
            ("cp -r SRC/ BKT/up/", 2),
            ("cp -r BKT/ DST/", 2),
            ("mv BKT/* DST/", 2),
            ("mv SRC/a.txt SRC/b.py BKT/up/", 2),
            ("rm -r BKT", 2),
            ("ls -R BKT", 2),
            ("du BKT", 2),
            ("cat BKT/", 2),
            ("verify SRC BKT/", 2),
        ] {
            let run = stage.run(&format!("{line} {rules}"));
            run.expect(code).says(&[
                "changes nothing",
                "hint: --filter-style=aws --",
                "rsync's order",
            ]);
            assert!(run.out().is_empty(), "{run}");
        }
    }
    assert_eq!(keys(&stage), ["a.py", "a.txt", "d/b.py", "d/b.txt", "d/e/c.txt"]);
    assert!(tree(&stage.dst()).is_empty() && tree(&stage.src()).len() == 2);
    // Both ways that the message shows do what was meant.
    let run = stage.run("sync SRC/ BKT/up/ --exclude '*' --include '*.txt'");
    run.says(&["--include '*/' --include '*.txt' --exclude '*'"]);
    for rules in [
        "--filter-style=aws --exclude '*' --include '*.txt'",
        "--include '*/' --include '*.txt' --exclude '*'",
    ] {
        let found = stage.ok(&format!("sync -n BKT/ DST/ {rules}")).sorted();
        assert_eq!(found.len(), 3, "{rules}: {found:?}");
        stage.ok(&format!("sync SRC/ BKT/up/ {rules}"));
        assert!(keys(&stage).contains(&"up/a.txt".to_owned()));
        stage.ok("rm -r BKT/up/");
    }
    // Between folders they mean what they mean in rsync, and lines of run files follow s5cmd.
    stage.ok("sync -r --exclude=* --include=*.txt SRC/ DST/");
    assert!(tree(&stage.dst()).is_empty());
    let line = format!("cp --exclude=*.py --include=*.txt s3://{}/* DST/\n", stage.bucket);
    let line = line.replace("DST", &stage.dst().display().to_string());
    stage.fed("run", line.as_bytes()).ok();
    assert_eq!(names(&tree(&stage.dst())), ["a.txt", "d/b.txt", "d/e/c.txt"]);
}

#[test]
fn advice_on_styles_is_for_those_who_gave_none() {
    let stage = stage();
    file(&stage.src(), "a.txt", b"x", 100);
    for (line, advised) in [
        ("sync --exclude=* SRC/ BKT/", true),
        ("sync --filter-style=aws --exclude=* SRC/ BKT/", false),
        ("sync --filter-style=rsync --exclude=* SRC/ BKT/", false),
        ("cp -r --exclude=* SRC/ BKT/", true),
        ("cp -r --filter-style=aws --exclude=* SRC/ BKT/", false),
        ("cp -r --filter-style=s5cmd --exclude=* SRC/ BKT/", false),
    ] {
        let run = stage.ok(line);
        run.says(&["the filter rules leave out everything there"]);
        assert_eq!(run.err().contains("--filter-style"), advised, "{run}");
    }
}

#[test]
fn messages_name_what_was_asked_for() {
    let stage = stage();
    stage.put("a", b"x");
    let pattern = format!("'s3://{}/zz*'", stage.bucket);
    stage.run("rm BKT/zz*").expect(1).says(&["cannot remove", &pattern]);
    stage.run("du BKT/nope").expect(1).says(&["nope", "no such object or prefix"]);
    stage.run("du -s BKT/nope/").expect(1);
    stage.ok("du -s BKT");
}

#[test]
fn options_before_the_command() {
    let stage = stage();
    stage.put("k", b"body");
    let (url, bucket) = (stage.server.unwrap().url(), &stage.bucket);
    let bare = |line: &str| {
        let mut command = stage.command(line);
        command.env_remove("AWS_ENDPOINT_URL");
        crate::common::case::run_fed(&mut command, b"")
    };
    let buckets = bare(&format!("--endpoint-url {url} ls"));
    assert!(buckets.ok().out().contains(bucket.as_str()), "{buckets}");
    let listed = bare(&format!("--endpoint-url={url} --json ls BKT"));
    assert!(listed.ok().out().contains("\"event\":\"object\""), "{listed}");
    bare(&format!("--endpoint-url {url} --numworkers 3 --log error --retry-count 2 cp BKT/k DST/"))
        .ok();
    assert_eq!(names(&tree(&stage.dst())), ["k"]);
    bare(&format!("--endpoint-url {url} --dry-run rm BKT/k")).ok();
    assert_eq!(keys(&stage), ["k"]);
    bare("--frob ls").expect(2).says(&["option '--frob' must follow a command"]);
    let keys =
        format!("[default]\naws_access_key_id = {ACCESS}\naws_secret_access_key = {SECRET}\n");
    std::fs::write(stage.area.join("keys"), keys).unwrap();
    let mut command = stage.command("--credentials-file keys cat BKT/k");
    command.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
    let run = crate::common::case::run_fed(&mut command, b"");
    assert_eq!(run.ok().out(), "body");
    let run = stage.run("--credentials-file none cat BKT/k");
    run.expect(1).says(&["there is no credentials file 'none'"]);
}

#[test]
fn words_of_aws() {
    let stage = stage();
    file(&stage.src(), "f", b"one", 100);
    std::os::unix::fs::symlink("f", stage.src().join("l")).unwrap();
    let run = stage.ok("sync SRC/ BKT --dryrun --page-size 100");
    assert!(run.err().contains("without effect here: --page-size"), "{run}");
    assert!(run.out().contains("cp "), "{run}");
    let run = stage.ok("sync SRC/ BKT --dryrun --only-show-errors");
    assert_eq!(run.out(), "", "{run}");
    assert!(keys(&stage).is_empty(), "{run}");
    stage.ok("cp --recursive SRC/ BKT/ --no-follow-symlinks --sse --quiet");
    assert_eq!(keys(&stage), ["f"]);
    stage.ok("cp --recursive SRC/ BKT/ --follow-symlinks --sse AES256");
    assert_eq!(keys(&stage), ["f", "l"]);
    stage.run("cp SRC/f BKT/ --grants read=nobody").expect(2).says(&["no grantee"]);
    stage.ok("rm --recursive --dryrun BKT");
    assert_eq!(keys(&stage), ["f", "l"]);
}

#[test]
fn lines_of_s5cmd_mean_what_they_mean_there() {
    let stage = stage();
    let bucket = &stage.bucket;
    let body = |key: &str| stage.objects().get(key.as_bytes()).map(|body| body.len());
    let src = stage.src().display().to_string();
    file(&stage.src(), "f", b"longer", 0);
    // Each of -n, -s, -u allows or refuses; the last one of this order counts.
    for (options, there, replaced) in [
        ("-n", &b"x"[..], false),
        ("-n -s", b"x", true),
        ("-n -s", b"same s", false),
        ("-s", b"same s", false),
    ] {
        stage.put("f", there);
        stage.fed("run", format!("cp {options} {src}/f s3://{bucket}/f\n").as_bytes()).ok();
        let expected = if replaced { 6 } else { there.len() };
        assert_eq!(body("f"), Some(expected), "{options}");
        let differs = stage.objects()[&b"f"[..]] == b"longer";
        assert_eq!(differs, replaced, "{options}");
    }
    file(&stage.src(), "old", b"old one", 100_000);
    stage.put("old", b"x");
    stage.fed("run", format!("cp -n -s -u {src}/old s3://{bucket}/old\n").as_bytes()).ok();
    assert_eq!(body("old"), Some(1), "not newer");
    fill(&stage);
    let lines = format!("cp --include=*.txt s3://{bucket}/* {}/\n", stage.dst().display());
    stage.fed("run", lines.as_bytes()).ok();
    assert_eq!(names(&tree(&stage.dst())), ["a.txt", "d/b.txt", "d/e/c.txt"]);
    file(&stage.src(), "d/g", b"x", 100);
    std::os::unix::fs::symlink("f", stage.src().join("link")).unwrap();
    let lines = format!(
        "cp --no-follow-symlinks {src}/ s3://{bucket}/up/\nsync {src}/ s3://{bucket}/synced/\n\
         cp {src}/*l* s3://{bucket}/wild/\n"
    );
    stage.fed("run", lines.as_bytes()).ok();
    let found = keys(&stage);
    let below = |prefix: &str| -> Vec<&str> {
        found.iter().filter_map(|key| key.strip_prefix(prefix)).collect()
    };
    assert_eq!(below("up/"), ["d/g", "f", "old"]);
    assert_eq!(below("synced/"), ["d/g", "f", "link", "old"]);
    assert_eq!(below("wild/"), ["link", "old"]);
}
