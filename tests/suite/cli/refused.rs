//! Unsupported options of peers are refused by name, never accepted and ignored.

use crate::cli::arguments::{case, files};

#[test]
fn options_that_are_not_built_are_named() {
    for (option, name) in [
        ("--munge-links", "--munge-links"),
        ("--copy-as=x", "--copy-as"),
        ("--crtimes", "--crtimes"),
        ("-M--log-file=x", "--remote-option"),
        ("--read-batch=x", "--read-batch"),
        ("--iconv=.", "--iconv"),
        ("--daemon", "--daemon"),
        ("--write-batch=x", "--write-batch"),
    ] {
        case(&format!("sync -a {option} SRC/ DST"), |c| {
            files(&c.src(), &["a"]);
            let run = c.run();
            run.expect(1).says(&[name]);
            assert!(!c.dst().exists(), "moved something: {run}");
        });
    }
}

#[test]
fn options_without_effect_are_accepted_with_one_note() {
    let line =
        "sync -az --zl=9 -s --timeout=9 --no-whole-file --no-inc-recursive --debug=ALL SRC/ DST";
    case(line, |c| {
        files(&c.src(), &["a"]);
        let run = c.run();
        run.ok();
        assert_eq!(run.err().lines().count(), 1, "{run}");
        run.says(&["note: without effect here: ", "-z", "--timeout", "--no-whole-file", "-s"]);
        assert!(c.dst().join("a").exists());
    });
    for (line, words) in [
        ("sync --nonsense SRC/ rsync://host/module", &["rsync://"][..]),
        ("sync --nonsense SRC/ host:path", &["'--nonsense'"]),
        ("sync --exclud=x SRC/ DST", &["'--exclud'", "hint: a similar option is '--exclude'"]),
    ] {
        case(line, |c| {
            files(&c.src(), &["a"]);
            c.run().expect(1).says(words);
        });
    }
    case("sync --qqq SRC/ DST", |c| {
        files(&c.src(), &["a"]);
        let run = c.run();
        run.expect(1).says(&["'--qqq'"]);
        assert!(!run.err().contains("hint") && !run.err().contains("tip"), "{run}");
    });
}

#[test]
fn remote_places_are_named() {
    for line in
        ["sync -a SRC/ host::module", "sync -a rsync://host/module DST", "cp -r SRC host::module"]
    {
        case(line, |c| {
            files(&c.src(), &["a"]);
            let mut words = c.words(line, &c.dst());
            words.remove(0);
            // In a folder of its own: a mistake would make a file named host:path there.
            let mut command = std::process::Command::new(crate::common::program());
            command.arg(line.split(' ').next().unwrap()).args(words).current_dir(c.src());
            let output = command.output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).to_lowercase();
            assert_ne!(output.status.code(), Some(0), "{line}");
            let named = said.contains("another machine") || said.contains("are not supported");
            assert!(said.contains("host") && named, "{line}: {said}");
            assert_eq!(std::fs::read_dir(c.src()).unwrap().count(), 1, "{line} made something");
        });
    }
}

/// The spellings of an option in a line of the help (`  -r, --recursive  …`), and the name of its
/// value where it must have one. Continued and other lines have none.
fn spellings(line: &str) -> (Vec<String>, Option<String>) {
    let text = line.trim_start();
    if !text.starts_with('-') || !(2..=6).contains(&(line.len() - text.len())) {
        return (Vec::new(), None);
    }
    let head = text.split("  ").next().unwrap();
    let value = head.split_once(" <").map(|(_, rest)| rest.trim_end_matches(['>', '.']).to_owned());
    let names = head.split_once(" <").map_or(head, |(names, _)| names);
    let names =
        names.split(", ").map(|name| name.split(['[', '=', '.']).next().unwrap().to_owned());
    (names.collect(), value)
}

/// A value that fits where the help shows this name for it.
fn sample(option: &str, value: &str) -> &'static str {
    match (option, value) {
        ("--chmod", _) => "u+r",
        ("--chown", _) => "0:0",
        ("--sparse" | "--reflink", _) => "auto",
        ("--preserve" | "--no-preserve", _) => "mode",
        ("--info", _) => "progress2",
        ("--debug", _) => "filter",
        ("--filter" | "-f", _) => "-_x",
        ("--suffix" | "-S", _) => "~",
        ("--modify-window" | "-@", _) => "1",
        ("--files-from", _) => "LIST",
        ("--joblog" | "--log-file", _) => "OLD/log",
        ("--ionice", _) => "idle",
        ("--compress-choice", _) => "auto",
        ("--rsh" | "-e", _) => "ssh",
        ("--usermap" | "--groupmap", _) => "0:0",
        ("--out-format" | "--log-file-format", _) => "%n",
        ("--stop-after" | "--time-limit", _) => "100",
        ("--stop-at", _) => "23:59",
        // Accepted with a note, whatever the value.
        (_, "NAME" | "LEVEL" | "HOW" | "LIST" | "PROGRAM" | "OPTIONS" | "ADDRESS" | "PORT") => "x",
        (_, "FLAGS" | "JMESPATH" | "FORM" | "ENABLED" | "COMMAND") => "x",
        ("--remote-option" | "-M", _) => "--super",
        ("--iops-limit", _) => "1000",
        ("--filter-style", _) => "rsync",
        ("--lang", _) => "ja",
        (_, "FILE") => "LIST",
        (_, "DIR") => "OLD",
        (_, "PATTERN" | "RULE") => "x",
        (_, "SIZE" | "RATE" | "BYTES") => "1m",
        (_, "N" | "NUM" | "DEPTH" | "COUNT" | "SECONDS") => "2",
        other => panic!("no sample for {other:?}: the help has something new"),
    }
}

/// Every option that the help names is understood and does not end in a usage error, in all its
/// spellings, and nothing is promised that is refused.
#[test]
fn help_promises_nothing_that_is_refused() {
    for (command, places, usage) in [
        ("sync", "-r OPT SRC/ DST", 1),
        ("cp", "-r OPT SRC DST", 2),
        ("mv", "OPT SRC DST", 2),
        ("rm", "-r OPT SRC", 2),
        ("du", "OPT SRC", 2),
        ("verify", "OPT SRC SRC", 2),
    ] {
        let words = [command, "--help"];
        let help = crate::common::case::run_command(&crate::common::program(), &words);
        let mut count = 0;
        let mut in_stores = false;
        for line in help.ok().out().lines() {
            if line.ends_with(':') {
                in_stores = line.starts_with("S3");
            }
            let (names, value) = spellings(line);
            for name in names {
                // Those need a server: what they are without one is told below.
                if in_stores || line.contains("with s3://") {
                    continue;
                }
                // Those go together and start workers: tests/suite/cluster has them.
                let many = ["--cluster", "--run", "--workers", "--shard-size"];
                // And those need another machine: tests/suite/remote has them.
                let far =
                    ["--rsh", "-e", "--rsync-path", "--timeout", "--contimeout", "--ipv4", "-4"];
                let far =
                    far.into_iter().chain(["--remote-path", "--ipv6", "-6", "--install-agent"]);
                if command != "sync" && far.into_iter().any(|other| other == name) {
                    continue;
                }
                let more = ["--inventory", "--target-inventory", "--previous-run", "--verify"];
                if many.into_iter().chain(more).any(|other| other == name) {
                    continue;
                }
                let value = value.as_deref().map(|value| sample(&name, value));
                let option = match value {
                    Some(value) if name.starts_with("--") => format!("{name}={value}"),
                    Some(value) => format!("{name} {value}"),
                    None => name.clone(),
                };
                count += 1;
                // It stands for the arguments.
                let places = if name == "--files0-from" { "OPT" } else { places };
                case(&format!("{command} {}", places.replace("OPT", &option)), |c| {
                    files(&c.src(), &["a", "d/b"]);
                    std::fs::create_dir(c.old()).unwrap();
                    if command == "cp" {
                        std::fs::create_dir(c.dst()).unwrap();
                    }
                    let list = if name == "--files-from" && command == "cp" {
                        c.src().join("a").display().to_string()
                    } else {
                        "a\n".to_owned()
                    };
                    std::fs::write(c.list(), list).unwrap();
                    let run = c.run();
                    let refused =
                        ["is not supported", "unexpected", "no such option", "contradict"]
                            .iter()
                            .any(|word| run.err().contains(word));
                    // rm takes no include that has no effect.
                    let idle = run.err().contains("changes nothing: nothing is left out");
                    assert!((idle || run.code != usage) && !refused, "{option} of the help: {run}");
                });
            }
        }
        assert!(count > 8, "found only {count} options: {help}");
    }
}

/// Options for stores are errors without a store.
#[test]
fn options_of_stores_need_one() {
    for (line, option) in [
        ("sync -r --region=x SRC/ DST", "--region"),
        ("cp -r --storage-class=GLACIER SRC DST", "--storage-class"),
        ("mv --dry-run SRC DST", "--dry-run"),
        ("rm -r --all-versions SRC", "--all-versions"),
        ("du --objects SRC", "--objects"),
    ] {
        case(line, |c| {
            files(&c.src(), &["a"]);
            let run = c.run();
            assert!(run.code == 1 || run.code == 2, "{run}");
            run.says(&[option, "s3://"]);
            assert!(c.src().join("a").exists() && !c.dst().exists(), "{run}");
        });
    }
}

/// Options without meaning for stores are errors before the first request.
#[test]
fn options_of_files_mean_nothing_in_stores() {
    for (line, option) in [
        ("sync -aH SRC/ s3://bucket/p/", "--hard-links"),
        ("sync -aX s3://bucket/p/ DST", "--xattrs"),
        ("sync -rb SRC/ s3://bucket/p/", "--backup"),
        ("sync -rP SRC/ s3://bucket/p/", "-P"),
        ("cp -rx SRC s3://bucket/p/", "--one-file-system"),
        ("mv -b SRC s3://bucket/p/", "-b"),
        ("ls -t s3://bucket", "-t"),
        ("ls -a s3://bucket", "-a"),
        ("du -x s3://bucket", "--one-file-system"),
        ("rm -i s3://bucket/key", "-i"),
        ("rm -r --filter=-_x s3://bucket/p/", "--filter"),
        ("rm -r --keep-dirs s3://bucket/p/", "--keep-dirs"),
        ("verify --sse-c=x SRC/ s3://bucket/", "--sse-c"),
        ("cat --all-versions s3://bucket/key", "--all-versions"),
    ] {
        case(line, |c| {
            files(&c.src(), &["a"]);
            let run = c.run();
            assert!(run.code == 1 || run.code == 2, "{run}");
            run.says(&[option, "is not supported"]);
        });
    }
}
