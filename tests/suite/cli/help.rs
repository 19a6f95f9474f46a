//! Help and messages as people read them: the first screen, the help of each command in both lengths, the manual, and the
//! form of messages.

use super::features::commands;
use crate::common::area::Area;
use crate::common::case::{Run, on_terminal, run_command};
use crate::common::program;
use crate::objects::stage::{file, stage};
use std::process::Command;

fn run(line: &str) -> Run {
    let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
    run_command(&program(), &words)
}

fn screen() -> String {
    run("--help").ok().out()
}

/// The place of the first line with a text.
fn place(text: &str, line: &str) -> Option<usize> {
    text.lines().position(|found| found == line)
}

#[test]
fn the_first_screen_is_one_screen_by_subjects_with_three_examples() {
    let screen = screen();
    assert!(screen.lines().count() <= 30, "{screen}");
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    assert_eq!(screen.lines().filter(|line| line.starts_with("  hakobu ")).count(), 3, "{screen}");
    for subject in ["Move", "Objects", "Measure", "Many machines", "Learn"] {
        assert!(screen.lines().any(|line| line.starts_with(&format!("{subject} "))), "{subject}");
    }
    // Without a command it is shown in a terminal as well, but that is an error.
    let bare = on_terminal(&Command::new(program()));
    assert!(bare.expect(2).out().replace('\r', "").contains(&screen), "{bare}");
    let bare = run_command::<&str>(&program(), &[]);
    bare.expect(2).says(&["missing command", "hint: hakobu --help"]);
}

#[test]
fn help_of_each_command_begins_with_what_it_does_and_examples() {
    for command in commands(&screen()) {
        let help = run(&format!("{command} --help")).ok().out();
        let first = help.lines().next().unwrap_or_default();
        assert!(first.starts_with(|c: char| c.is_uppercase()) && first.len() <= 100, "{help}");
        let usage = help.lines().position(|line| line.starts_with("Usage: hakobu "));
        let examples = place(&help, "Examples:");
        let options = help.lines().position(|line| line.trim_start().starts_with("--help"));
        assert!(usage.is_some() && usage < examples && examples < options, "{command}\n{help}");
        let shown = help.lines().filter(|line| line.starts_with("  # ")).count();
        assert!((2..=4).contains(&shown), "{command}: {shown} examples");
        // What has no effect comes last, and no line is a riddle.
        if let Some(accepted) = place(&help, "Accepted without effect:") {
            let later = help.lines().skip(accepted + 1);
            let heads = later.filter(|line| !line.starts_with(' ') && line.ends_with(':'));
            assert_eq!(heads.count(), 0, "{command}");
        }
        for line in help.lines() {
            assert!(!line.trim_end().ends_with("  ..."), "{command}: {line}");
            assert!(line.chars().count() <= 100 || !line.starts_with(' '), "{command}: {line}");
        }
    }
}

/// Each has its own options only, the same in three spellings.
#[test]
fn subcommands_of_cluster_have_a_help_each() {
    for (verb, own, others, usage_code) in [
        ("plan", "--shard-size", "--slurm", 1),
        ("work", "--stale-after", "--once", 65),
        ("status", "--once", "--stale-after", 2),
        ("collect", "--wait", "--slurm", 1),
        ("submit", "--slurm", "--once", 2),
    ] {
        let help = run(&format!("cluster {verb} --help")).ok().out();
        assert!(help.contains(&format!("Usage: hakobu cluster {verb} ")), "{help}");
        assert!(help.contains(own) && !help.contains(others), "{help}");
        assert!(help.contains("Exit codes: ") && help.contains("\nExamples:\n"), "{help}");
        assert_eq!(help, run(&format!("help cluster {verb}")).ok().out());
        let short = run(&format!("cluster {verb} -h")).ok().out();
        assert!(short.contains(own) && short.lines().count() <= 40, "{short}");
        // What they do not have is refused by name.
        run(&format!("cluster {verb} {others} r")).expect(usage_code).says(&[others]);
    }
    // The variable is about what status shows.
    let mut status = Command::new(program());
    status.args(["cluster", "status", "/nowhere/at/all"]).env("HAKOBU_LANG", "ja");
    let said = String::from_utf8(status.output().unwrap().stderr).unwrap();
    assert!(said.contains("/nowhere/at/all") && !said.contains("lang"), "{said}");
}

#[test]
fn short_help_fits_on_one_screen_where_the_letter_is_free() {
    for command in commands(&screen()) {
        // Their own meaning: sizes for people.
        if ["sync", "ls", "du"].contains(&command.as_str()) {
            continue;
        }
        let help = run(&format!("{command} -h")).ok().out();
        assert!(help.lines().count() <= 40, "{command}: {} lines\n{help}", help.lines().count());
        assert!(help.lines().all(|line| line.chars().count() <= 110), "{command}\n{help}");
        assert!(help.contains("Usage: hakobu ") && help.contains("\nExamples:\n"), "{help}");
        assert!(help.contains("--help shows all options"), "{help}");
    }
    for command in ["cp", "mv", "rm", "verify"] {
        let help = run(&format!("{command} -h")).ok().out();
        assert!(help.lines().count() <= 28, "{command}\n{help}");
    }
    // As in rsync, -h alone is help, and otherwise a form of numbers.
    let alone = run("sync -h").ok().out();
    assert!(alone.contains("Usage: hakobu sync") && alone.contains("--delete"), "{alone}");
    let area = Area::tmpfs();
    std::fs::create_dir(area.join("d")).unwrap();
    let sizes = run(&format!("du -h {}", area.join("d").display())).ok().out();
    assert!(!sizes.contains("Usage"), "{sizes}");
}

#[test]
fn manual_pages_describe_before_they_list() {
    for command in commands(&screen()) {
        let page = run(&format!("man {command}")).ok().out();
        let section = |name: &str| {
            let head = format!(".SH \"{name}\"");
            page.lines().position(|line| line == head || line == format!(".SH {name}"))
        };
        let (describes, examples) = (section("DESCRIPTION"), section("EXAMPLES"));
        assert!(describes.is_some() && describes < examples, "{command}\n{page}");
        let options = page.lines().position(|line| line.starts_with("\\fB\\-"));
        assert!(examples < options, "{command}");
        let prose = page.lines().nth(describes.unwrap() + 1).unwrap_or_default();
        assert!(prose.len() > 60 && prose.ends_with('.'), "{command}: {prose}");
        let synopsis = section("SYNOPSIS").unwrap();
        let usage = page.lines().skip(synopsis + 1).take_while(|line| !line.starts_with(".SH"));
        assert!(
            usage.filter(|line| !line.starts_with(".br")).all(|line| line.starts_with("hakobu"))
        );
    }
}

#[test]
fn words_of_other_programs_get_the_right_suggestion() {
    for (line, hint) in [
        ("copy a b", "hakobu cp"),
        ("move a b", "hakobu mv"),
        ("check a b", "hakobu verify"),
        ("diff a b", "hakobu verify"),
        ("s3 cp a s3://b", "drop the word s3"),
        ("mirror a b", "hakobu sync -a --delete"),
        ("rcat s3://b/k", "hakobu pipe"),
        ("snyc a b", "did you mean 'sync'?"),
        ("cp --threads=8 a b", "-j N"),
        ("sync --transfers 8 a b", "-j N"),
        ("cp --parallel 8 a b", "-j N"),
        ("sync --bandwidth 1M a b", "--bwlimit RATE"),
        ("ls -H s3://b", "-h prints sizes"),
        ("cp -s a s3://bkt/k", "--size-only"),
        ("du -H s3://bkt/k", "-h here"),
        ("-a cp x y", "hakobu COMMAND --help"),
    ] {
        let ran = run(line);
        assert_ne!(ran.code, 0, "{line}");
        assert!(ran.err().contains(hint), "{line}: {ran}");
    }
}

#[test]
fn messages_have_one_form() {
    let area = Area::tmpfs();
    let path = |name: &str| area.join(name).display().to_string();
    std::fs::create_dir(area.join("src")).unwrap();
    std::fs::write(area.join("src/a"), "x").unwrap();
    for (line, expected) in [
        ("sync", "hakobu: missing source and destination"),
        ("cp a", "hakobu: missing destination after 'a'"),
        ("rm", "hakobu: missing path"),
        ("cat", "hakobu: missing object: s3://BUCKET/KEY"),
        ("mb", "hakobu: missing bucket: s3://BUCKET"),
        ("-a sync x y", "hakobu: option '-a' must follow a command"),
        (
            "sync --bwlimit=fast a b",
            "hakobu: invalid --bwlimit 'fast': not a size (examples: 500, 1.5m, 2GiB, 1MB-1)",
        ),
        ("sync -j x a b", "hakobu: invalid -j 'x': not a number of jobs"),
        ("rm --iops-limit=0 x", "hakobu: invalid --iops-limit '0': not a whole number"),
    ] {
        let ran = run(line);
        assert_ne!(ran.code, 0, "{line}");
        assert!(ran.err().starts_with(expected), "{line}: {ran}");
    }
    // A hint is a line of its own, without the name of the program.
    let globbed = run(&format!("cp {} {}", path("src/*"), path("dst")));
    assert_eq!(globbed.code, 1, "{globbed}");
    let lines: Vec<String> = globbed.err().lines().map(str::to_owned).collect();
    assert!(lines.iter().any(|line| line.starts_with("hakobu: cannot ")), "{globbed}");
    assert!(lines.iter().any(|line| line.starts_with("hint: the shell expands")), "{globbed}");
    let dir = run(&format!("cp {} {}", path("src"), path("dst")));
    assert!(dir.expect(1).err().contains("is a directory (use -r)"), "{dir}");
}

#[test]
fn messages_of_stores_are_plain_and_said_once() {
    let stage = stage();
    file(&stage.src(), "a.txt", b"one", 100);
    for (line, expected) in [
        ("mb BKT", "it already exists (BucketAlreadyOwnedByYou, HTTP 409)"),
        ("head BKT/no-such", "no such object"),
        ("cp BKT/no-such DST/x", "no such object"),
        ("--no-sign-request ls BKT", "anonymous access is not allowed"),
        ("cp --storage-class NOPE SRC/a.txt BKT/c", "unknown storage class"),
    ] {
        let ran = stage.run(line);
        assert_ne!(ran.code, 0, "{line}");
        let text = ran.err();
        assert!(text.contains(expected), "{line}: {ran}");
        for said in text.lines().filter(|said| said.starts_with("hakobu: cannot ")) {
            let causes = said.trim_start_matches("hakobu: ").replace("s3://", "");
            assert!(causes.matches(": ").count() <= 2, "{line}: {said}");
        }
    }
    stage.put("k", b"x");
    let kept = stage.run("rb BKT");
    assert!(kept.expect(1).err().contains("the bucket is not empty (BucketNotEmpty"), "{kept}");
    // Classes of S3 are known.
    stage.ok("cp --storage-class STANDARD_IA SRC/a.txt BKT/cold");
}

#[test]
fn sync_shows_where_a_directory_goes_in_a_store() {
    let stage = stage();
    file(&stage.src(), "d/f", b"one", 100);
    let shown = stage.ok("sync -n SRC/d BKT/p");
    let target = format!("' -> 's3://{}/p/d/'", stage.bucket);
    assert!(shown.err().contains(&target), "{shown}");
    let inside = stage.ok("sync -n SRC/d/ BKT/p");
    assert!(inside.err().contains(&format!("' -> 's3://{}/p/'", stage.bucket)), "{inside}");
    // Without a terminal and for work that is done, nothing is said.
    assert_eq!(stage.ok("sync SRC/d BKT/p").err(), "");
    // Nothing goes anywhere without credentials.
    let area = Area::tmpfs();
    let mut refused = Command::new(program());
    refused.args(["sync", "-n"]).arg(stage.src().join("d")).arg("s3://bkt/p");
    for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"] {
        refused.env_remove(name);
    }
    refused.env("HOME", area.path()).env("AWS_EC2_METADATA_DISABLED", "true");
    let refused = on_terminal(&refused);
    let told = refused.out();
    assert!(told.contains("no credentials") && !told.contains(" -> '"), "{refused}");
    // In a terminal a local copy needs no such line: it is rsync's rule.
    std::fs::create_dir(area.join("d")).unwrap();
    let mut local = Command::new(program());
    local.args(["sync", "-a"]).arg(area.join("d")).arg(area.join("t"));
    assert!(!on_terminal(&local).out().contains(" -> '"));
}
