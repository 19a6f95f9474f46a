//! Lines of `run` files as s5cmd reads them: names, folders, standard input, output.

use crate::common::program;
use crate::objects::stage::{Stage, content, file, names, stage, tree};

fn keys(stage: &Stage) -> Vec<String> {
    names(&stage.objects())
}

/// Runs one line, in which `SRC`, `DST` and `BKT` are replaced.
fn typed(stage: &Stage, options: &str, line: &str) -> crate::common::case::Run {
    let line = line
        .replace("SRC", &stage.src().display().to_string())
        .replace("DST", &stage.dst().display().to_string())
        .replace("BKT", &format!("s3://{}", stage.bucket));
    stage.fed(&format!("run {options}"), format!("{line}\n").as_bytes())
}

#[test]
fn a_wildcard_keeps_the_folders_from_it_on() {
    let stage = stage();
    for name in ["p/c1/name.txt", "p/c2/name.txt", "p/c2/d/deep", "p/other"] {
        file(&stage.src(), name, name.as_bytes(), 100);
    }
    for (line, expected) in [
        ("cp SRC/p/*/name.txt BKT/new/", &["new/c1/name.txt", "new/c2/name.txt"][..]),
        ("sync SRC/p/c?/name.txt BKT/new/", &["new/c1/name.txt", "new/c2/name.txt"]),
        ("cp --flatten SRC/p/c1/* BKT/new/", &["new/name.txt"]),
        ("cp SRC/p/c* BKT", &["c1/name.txt", "c2/d/deep", "c2/name.txt"]),
        ("cp -raw SRC/p/other BKT/p*", &["p*"]),
    ] {
        typed(&stage, "", line).ok();
        assert_eq!(keys(&stage), expected, "{line}");
        stage.ok("rm -r BKT");
    }
    for (line, why) in [
        ("cp SRC/p BKT/new", "a prefix that ends with a slash"),
        ("cp SRC/p/c* BKT/new", "a prefix that ends with a slash"),
        ("cp SRC/p/other BKT/p*", "contains a wildcard"),
    ] {
        typed(&stage, "", line).expect(1).says(&["line 1", why]);
        assert!(keys(&stage).is_empty(), "{line}");
    }
}

#[test]
fn a_name_with_a_star_is_no_pattern_in_a_dry_run() {
    let stage = stage();
    for key in ["a*", "ab", "keep"] {
        stage.put(key, b"x");
    }
    file(&stage.src(), "ab", b"x", 100);
    file(&stage.src(), "keep", b"x", 100);
    let shown = stage.ok("sync -r --delete --dry-run SRC/ BKT/").out();
    let removal = format!("rm --raw 's3://{}/a*'\n", stage.bucket);
    assert!(shown.contains(&removal), "{shown}");
    stage.fed("run", removal.as_bytes()).ok();
    assert_eq!(keys(&stage), ["ab", "keep"]);
}

#[test]
fn sync_takes_what_differs_in_size_or_is_newer() {
    let stage = stage();
    for key in ["newer", "older", "size"] {
        stage.put(key, b"store");
    }
    file(&stage.dst(), "newer", b"local", 86_400);
    file(&stage.dst(), "older", b"local", -86_400);
    file(&stage.dst(), "size", b"other size", -86_400);
    typed(&stage, "", "sync BKT/* DST/").ok();
    let found = tree(&stage.dst());
    let body = |name: &str| String::from_utf8_lossy(&found[name.as_bytes()]).into_owned();
    assert_eq!([body("newer"), body("older"), body("size")], ["store", "local", "store"]);
    stage.ok("sync -r BKT/ DST/");
    assert_eq!(tree(&stage.dst())[&b"older"[..]], b"store");
}

#[test]
fn local_removals_take_files_and_leave_folders() {
    let stage = stage();
    for name in ["d/a.txt", "d/e/b.py", "d/e/c.txt", "x1", "x2", "y1/e/b.py", "y1/f/b.py"] {
        file(&stage.src(), name, b"x", 100);
    }
    // Names begin with the component of the first wildcard.
    typed(&stage, "", "rm --exclude 'e/*' --exclude 'y1/f/*' SRC/y*").ok();
    assert!(stage.src().join("y1/f/b.py").exists() && !stage.src().join("y1/e/b.py").exists());
    typed(&stage, "", "rm --include '?1/f/b.py' SRC/*").ok();
    assert!(!stage.src().join("y1/f/b.py").exists() && stage.src().join("x1").exists());
    typed(&stage, "", "rm --exclude '*.py' SRC/d").ok();
    assert_eq!(names(&tree(&stage.src())), ["d/e/b.py", "x1", "x2"]);
    typed(&stage, "", "rm SRC/x* SRC/d/").ok();
    assert!(tree(&stage.src()).is_empty());
    assert!(stage.src().join("d/e").is_dir());
    file(&stage.src(), "d/again", b"x", 100);
    let here = stage.src().join("d");
    let run = std::process::Command::new(program())
        .args(["rm", "-r", "--keep-dirs", "."])
        .current_dir(&here)
        .output();
    assert!(
        run.unwrap().status.success() && here.join("e").is_dir() && !here.join("again").exists()
    );
    typed(&stage, "", "rm SRC/none").expect(1).says(&["line 1", "none"]);
    typed(&stage, "", "rm SRC/none*").expect(1).says(&["line 1", "none*"]);
}

#[test]
fn one_line_may_read_standard_input() {
    let stage = stage();
    let lines = format!("pipe s3://{0}/k\npipe s3://{0}/l\n", stage.bucket);
    std::fs::write(stage.area.join("commands"), &lines).unwrap();
    let run = stage.fed("run AREA/commands", b"body");
    run.expect(1).says(&["line 2: standard input"]);
    assert_eq!(stage.objects()[&b"k"[..]], b"body");
    stage.fed("run -", lines.as_bytes()).expect(1).says(&["line 1: standard input"]);
}

#[test]
fn pipe_leaves_an_object_that_is_there() {
    let stage = stage();
    stage.fed("pipe -n BKT/k", b"first").ok();
    let run = stage.fed("pipe -n BKT/k", b"second");
    run.ok().says(&["already exists"]);
    assert_eq!(stage.objects()[&b"k"[..]], b"first");
    let event = stage.fed("pipe -n --json BKT/k", b"second").ok().summary();
    assert_eq!(event["event"], "kept");
    let event = stage.fed("pipe --json BKT/k", b"third").ok().summary();
    assert_eq!(event["event"], "uploaded");
    assert_eq!(stage.objects()[&b"k"[..]], b"third");
}

#[test]
fn json_and_counts_of_lines() {
    let stage = stage();
    file(&stage.src(), "f", b"body", 100);
    stage.put("k", b"x");
    let lines = "cp SRC/f BKT/f\nls BKT/k\nrm BKT/k\ncp BKT/none DST/\nfrob\nhead BKT/none";
    let run = typed(&stage, "--json", lines);
    run.expect(1).says(&["line 4", "line 5", "line 6"]);
    let events: Vec<serde_json::Value> =
        run.out().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let any = |event: &str, path: &str| {
        events.iter().any(|it| it["event"] == event && it.to_string().contains(path))
    };
    assert!(any("item", "/f\""), "{run}");
    assert!(any("item", "/k\""), "{run}");
    assert!(any("problem", "/none\""), "{run}");
    assert!(any("problem", "look_at"), "{run}");
    let lines = events.iter().filter(|it| it["event"] == "error").map(|it| &it["line"]);
    assert_eq!(lines.collect::<Vec<_>>(), [5, 6], "{run}");
    let run = typed(&stage, "--stat", "ls");
    assert!(run.ok().out().contains(&stage.bucket), "{run}");
    let run = typed(&stage, "--stat", "cp --sse AES256 SRC/ BKT/g/");
    assert!(run.ok().out().contains("Requests: "), "{run}");
    assert!(!typed(&stage, "", "cp SRC/f BKT/h").ok().out().contains("Requests: "));
}

#[test]
fn small_commands_print_json() {
    let stage = stage();
    stage.put("k", b"x");
    let other = format!("s3://{}-json", stage.bucket);
    let made = stage.ok(&format!("mb --json {other}")).summary();
    assert_eq!((&made["event"], &made["bucket"]), (&"bucket_made".into(), &other[5..].into()));
    assert_eq!(stage.ok(&format!("rb --json {other}")).summary()["event"], "bucket_removed");
    let run = stage.run(&format!("rb --json {other}"));
    let problem = run.expect(1).summary();
    assert_eq!((&problem["event"], &problem["source"]), (&"problem".into(), &other.into()));
    let url = stage.ok("presign --json --expires-in 2m BKT/k").summary();
    assert_eq!((&url["event"], &url["expires_s"]), (&"url".into(), &120.into()));
    assert!(url["url"].as_str().is_some_and(|url| url.contains("X-Amz-Expires=120")), "{url}");
}

#[test]
fn cat_fetches_parts_of_the_size_asked_for() {
    let stage = stage();
    let body = content(3, (4 << 20) + 5);
    stage.put("k", &body);
    for (options, gets) in [("", 1), ("--part-size 1", 5), ("-p 2MiB -c 1", 3)] {
        let asked =
            stage.asked(|| assert!(stage.ok(&format!("cat {options} BKT/k")).stdout == body));
        assert_eq!(asked.unwrap()["GetObject"], gets, "{options}");
    }
    stage.run("cat -p 1GiB -c 4 BKT/k").expect(2).says(&["more than 4 GiB"]);
    stage.ok("cp --part-size 1 BKT/k DST/");
    assert!(tree(&stage.dst())[&b"k"[..]] == body);
    file(&stage.src(), "f", b"x", 100);
    stage.run("cp --part-size 1 SRC/f BKT/").expect(2).says(&["5 MiB at least"]);
}

#[test]
fn no_line_starts_a_program() {
    let stage = stage();
    file(&stage.src(), "f", b"x", 100);
    let made = stage.area.join("made");
    let (made, list) = (made.display().to_string(), stage.area.join("list"));
    let process = format!("[default]\ncredential_process = touch {made}\n");
    std::fs::write(stage.area.join("keys"), process).unwrap();
    std::fs::write(&list, format!("watch -- touch {made}\n")).unwrap();
    for line in [
        format!("watch -- touch {made}"),
        format!("bench -r 2 'touch {made}'"),
        format!("io --exec_prerun='touch {made}' --name=a --size=4k --filename={made}"),
        format!("run {}", list.display()),
        "cluster plan --run AREA/run SRC/ DST/".to_owned(),
        "cluster work AREA/run".to_owned(),
        "sync --cluster local:2 -r SRC/ DST/".to_owned(),
        "sync --clus=local:2 -r SRC/ DST/".to_owned(),
        "serve s3 SRC".to_owned(),
        "demo".to_owned(),
        "report AREA".to_owned(),
        "results ls".to_owned(),
        "compare AREA".to_owned(),
        "man --install AREA/man".to_owned(),
        "completions bash".to_owned(),
        "help".to_owned(),
        "copy SRC/f DST/".to_owned(),
        "CP SRC/f DST/".to_owned(),
        "./cp SRC/f DST/".to_owned(),
        format!("touch {made}"),
        "cp --credentials-file=AREA/keys SRC/f BKT/".to_owned(),
    ] {
        let line = line.replace("AREA", &stage.area.path().display().to_string());
        for options in ["", "-n"] {
            let run = typed(&stage, options, &line);
            run.expect(1).says(&["line 1: "]);
            assert!(run.out().is_empty(), "{run}");
        }
    }
    assert!(!stage.area.join("made").exists() && !stage.area.join("run").exists());
    assert!(keys(&stage).is_empty() && tree(&stage.dst()).is_empty());
}

/// Runs the lines that a dry run printed, in the folder of the case.
fn replayed(stage: &Stage, dry_run: &str) -> String {
    let printed = stage.ok(dry_run);
    stage.fed("run", &printed.stdout).ok();
    printed.out()
}

#[test]
fn lines_of_a_removal_stand_for_what_they_name() {
    let stage = stage();
    let fill = |dir: &std::path::Path| {
        for name in ["*", "a?", "k.keep", "ab", "it's", "new\nline", "-rf", "d/x", "d/* *", "e/f/g"]
        {
            file(dir, name, b"x", 100);
        }
        std::os::unix::fs::symlink("d", dir.join("link")).unwrap();
        std::fs::create_dir(dir.join("-empty")).unwrap();
    };
    fill(&stage.src());
    file(&stage.src(), "d/y.keep", b"x", 100);
    let printed = replayed(&stage, "rm -rn --exclude=*.keep SRC/");
    assert_eq!(names(&tree(&stage.src())), ["d/y.keep", "k.keep"], "{printed}");
    assert!(!stage.src().join("e").exists() && !stage.src().join("-empty").exists());
    // Names that begin with a dash, as they are typed.
    let dash = stage.area.join("-r");
    std::fs::create_dir(&dash).unwrap();
    fill(&dash);
    file(&dash, "d/y.keep", b"x", 100);
    let printed = replayed(&stage, "rm -rn --exclude=*.keep -- -r");
    assert_eq!(names(&tree(&dash)), ["d/y.keep", "k.keep"], "{printed}");
    // A folder that is not empty any more stays.
    let printed = stage.ok("rm -rn SRC/").out();
    file(&stage.src(), "d/later", b"x", 100);
    stage.fed("run", printed.as_bytes()).expect(1).says(&["not empty"]);
    assert_eq!(names(&tree(&stage.src())), ["d/later"], "{printed}");
    // -n of run itself: the lines as they were understood.
    let shown = stage.fed("run -n", b"rmdir 'a b'\n").ok().out();
    assert_eq!(shown, "rmdir 'a b'\n");
    for line in ["rmdir", "rmdir -p SRC/d", "rmdir SRC/d SRC/e", "rmdir BKT/d"] {
        typed(&stage, "", line).expect(1).says(&["rmdir takes one local directory"]);
    }
}

#[test]
fn lines_of_a_dry_run_stand_for_what_they_name() {
    let stage = stage();
    for name in ["*", "a?", "ab", "it's", "new\nline", "d/x", "d/*", "d/skip.tmp"] {
        file(&stage.src(), name, name.as_bytes(), 100);
    }
    std::fs::create_dir(stage.src().join("empty")).unwrap();
    let without = |mut found: crate::objects::stage::Tree| {
        found.retain(|name, _| !name.ends_with(b".tmp"));
        found
    };
    let expected = without(tree(&stage.src()));
    for options in ["", "--dir-markers"] {
        // Up, across, down; with removals of what is elsewhere.
        for old in ["old/*", "old/x", "o*"] {
            stage.put(&format!("up/{old}"), b"old");
        }
        let printed =
            replayed(&stage, &format!("sync -n --delete {options} --exclude=*.tmp SRC/ BKT/up/"));
        let mut there = stage.objects();
        there.retain(|key, _| key.starts_with(b"up/") && !key.ends_with(b"/"));
        let there = there.into_iter().map(|(key, body)| (key["up/".len()..].to_vec(), body));
        assert_eq!(there.collect::<crate::objects::stage::Tree>(), expected, "{printed}");
        stage.put("up/d/skip.tmp", b"x");
        let printed =
            replayed(&stage, &format!("sync -n {options} --exclude=*.tmp BKT/up/ BKT/next/"));
        assert!(!keys(&stage).contains(&"next/d/skip.tmp".to_owned()), "{printed}");
        for old in ["old/*", "old/x", "o*", "kept/k.tmp", "kept/x"] {
            file(&stage.dst(), old, b"old", 100);
        }
        let printed =
            replayed(&stage, &format!("sync -n --delete {options} --exclude=*.tmp BKT/up/ DST/"));
        let found = tree(&stage.dst());
        assert!(found.contains_key(&b"kept/k.tmp"[..]), "{printed}");
        assert_eq!(without(found), expected, "{printed}");
        let printed = replayed(&stage, "cp -rn --dry-run --exclude=*.tmp BKT/up/ DST/copy/");
        assert_eq!(without(tree(&stage.dst().join("copy"))), expected, "{printed}");
        let printed = replayed(&stage, "mv --dry-run 'BKT/next/*' DST/moved/");
        assert_eq!(tree(&stage.dst().join("moved")), expected, "{printed}");
        let printed = replayed(&stage, "rm -rn --exclude=*.tmp BKT");
        assert_eq!(keys(&stage), ["up/d/skip.tmp"], "{printed}");
        stage.ok("rm -r BKT");
        crate::common::remove_tree(&stage.dst());
        std::fs::create_dir(stage.dst()).unwrap();
    }
    // A target that begins with a dash is no option.
    stage.put("k", b"x");
    std::fs::create_dir(stage.area.join("-f")).unwrap();
    let printed = replayed(&stage, "sync -n -- BKT/ -f/");
    assert_eq!(names(&tree(&stage.area.join("-f"))), ["k"], "{printed}");
}

#[test]
fn short_options_of_s5cmd_have_values() {
    let stage = stage();
    file(&stage.src(), "f", &[b'x'; 6 << 20], 100);
    let line = "cp -c=1 -p=5 -n=false -s=true SRC/f BKT/f";
    let shown = typed(&stage, "-n", line).ok().out();
    assert!(shown.contains("'--concurrency=1' '--part-size=5' '--size-only'"), "{shown}");
    typed(&stage, "", line).ok();
    assert_eq!(stage.objects()[&b"f"[..]].len(), 6 << 20);
    typed(&stage, "", "cp -n=true -u=0 SRC/f BKT/f\ncat -c=1 -p=5 BKT/f").ok();
}
