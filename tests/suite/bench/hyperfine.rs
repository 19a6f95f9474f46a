//! hyperfine's command line, option by option.

use crate::bench::{bench, lines, of_kind, run, runs};
use crate::common::area::Area;
use std::process::Command;

/// Options of hyperfine (its `--help`, up to 1.20) with an example each; the last field replaces the commands
/// of the command line, if the option needs others.
const OPTIONS: &[(&str, &str)] = &[
    ("-w", "-w 1"),
    ("--warmup", "--warmup 1"),
    ("-m", "-m 2"),
    ("--min-runs", "--min-runs 2"),
    ("-M", "-M 3"),
    ("--max-runs", "--max-runs 3"),
    ("-r", "-r 2"),
    ("--runs", "--runs 2"),
    ("-s", "-s true"),
    ("--setup", "--setup true"),
    ("--reference", "--reference true"),
    ("--reference-name", "--reference true --reference-name old"),
    ("-p", "-p true"),
    ("--prepare", "--prepare true"),
    ("-C", "-C true"),
    ("--conclude", "--conclude true"),
    ("-c", "-c true"),
    ("--cleanup", "--cleanup true"),
    ("-P", "-P x 1 2"),
    ("--parameter-scan", "--parameter-scan x 1 2"),
    ("-D", "-P x 1 2 -D 0.5"),
    ("--parameter-step-size", "-P x 1 2 --parameter-step-size 0.5"),
    ("-L", "-L x a,b"),
    ("--parameter-list", "--parameter-list x a,b"),
    ("-S", "-S bash"),
    ("--shell", "--shell=none"),
    ("-N", "-N"),
    ("-i", "-i"),
    ("--ignore-failure", "--ignore-failure=1,2"),
    ("--style", "--style basic"),
    ("--sort", "--sort mean-time"),
    ("-u", "-u millisecond"),
    ("--time-unit", "--time-unit second"),
    ("--export-asciidoc", "--export-asciidoc a"),
    ("--export-csv", "--export-csv a"),
    ("--export-json", "--export-json a"),
    ("--export-markdown", "--export-markdown a"),
    ("--export-orgmode", "--export-orgmode a"),
    ("--show-output", "--show-output"),
    ("--output", "--output null"),
    ("--input", "--input /dev/null"),
    ("-n", "-n name"),
    ("--command-name", "--command-name name"),
    ("--min-benchmarking-time", "--min-benchmarking-time 3"),
    ("--debug-mode", "--debug-mode"),
    ("-h", "-h"),
    ("--help", "--help"),
    ("-V", "-V"),
    ("--version", "--version"),
];

/// Refused options with their advice.
const REFUSED: &[(&str, &str)] = &[
    ("--min-benchmarking-time", "--min-runs and --budget say how much is measured"),
    ("--debug-mode", "--dry-run prints what would be run"),
    ("-V", "hakobu --version prints it"),
    ("--version", "hakobu --version prints it"),
];

#[test]
fn each_option_is_built_or_refused_with_advice() {
    let area = Area::tmpfs();
    for (option, line) in OPTIONS {
        let mut words = vec!["bench", "--dry-run"];
        words.extend(line.split(' '));
        words.push("echo {x}");
        let ran = run(&area, &words);
        match REFUSED.iter().find(|(name, _)| name == option) {
            Some((_, advice)) => {
                ran.expect(2).says(&[&format!("{option} is not supported: "), advice]);
            }
            None => {
                ran.ok();
            }
        }
    }
    // The list contains all options of the installed version.
    let Ok(help) = Command::new("hyperfine").arg("--help").output() else {
        crate::common::skip("the options of hyperfine: it is not installed");
        return;
    };
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    // Descriptions are indented further than options.
    let indent = |line: &str| line.len() - line.trim_start().len();
    let heads = help.lines().filter(|line| indent(line) <= 8).map(str::trim_start);
    let heads = heads.filter(|line| line.starts_with('-'));
    let words = heads.flat_map(|line| line.split([' ', ',', '[', '=']));
    let options: Vec<&str> = words.filter(|word| word.starts_with('-') && word.len() > 1).collect();
    assert!(options.len() > 30, "{options:?}");
    for option in options {
        assert!(OPTIONS.iter().any(|(name, _)| *name == option), "{option} is not in the list");
    }
}

#[test]
fn a_command_without_the_parameter_is_run_once() {
    let area = Area::tmpfs();
    let words = ["-r", "2", "--no-control", "-L", "jobs", "1,4"];
    let ran = bench(&area, &[&words[..], &["echo ran >> log", "echo {jobs}"]].concat());
    ran.ok();
    assert_eq!(std::fs::read_to_string(area.join("log")).unwrap(), "ran\nran\n");
    let header = &lines(&area.join("out"))[0];
    let cells = header["cells"].as_array().unwrap();
    let seen: Vec<_> = cells.iter().map(|cell| cell["x"].as_f64()).collect();
    assert_eq!((header["x_name"].as_str(), seen), (Some("jobs"), vec![None, Some(1.0), Some(4.0)]));
    // If no command uses it there is no sweep and no knee.
    let area = Area::tmpfs();
    let ran = bench(&area, &[&words[..], &["true"]].concat());
    ran.ok().says(&["left out: the values of jobs: no command has {jobs} in it"]);
    assert_eq!(runs(&area).len(), 2);
    assert!(!ran.out().contains("knee") && !ran.out().contains("jobs are"), "{ran}");
    assert!(lines(&area.join("out"))[0]["x_name"].is_null());
}

#[test]
fn output_goes_where_it_was_asked_to_go() {
    let area = Area::tmpfs();
    let script =
        "echo words; echo more >&2; test -t 1; test /dev/stdout -ef /dev/null && echo null > is";
    let begun = |words: &[&str]| {
        let _ = std::fs::remove_dir_all(area.join("out"));
        let _ = std::fs::remove_file(area.join("is"));
        let base = ["-q", "-r", "2", "-i", "--no-control"];
        bench(&area, &[&base[..], words, &[script]].concat())
    };
    let ran = begun(&[]);
    assert_eq!(
        (ran.out(), ran.err(), area.join("is").exists()),
        (String::new(), String::new(), false)
    );
    let ran = begun(&["--output", "null"]);
    assert_eq!(
        (ran.out(), ran.err(), area.join("is").exists()),
        (String::new(), String::new(), true)
    );
    for inherit in [&["--output=inherit"][..], &["--show-output"]] {
        let ran = begun(inherit);
        assert_eq!((ran.out().as_str(), ran.err().as_str()), ("words\nwords\n", "more\nmore\n"));
    }
    begun(&["--output", "file"]).ok();
    assert_eq!(std::fs::read_to_string(area.join("file")).unwrap(), "words\n");
    // One for each.
    let _ = std::fs::remove_dir_all(area.join("out"));
    let each = ["-q", "-r", "1", "--no-control", "--output", "a", "--output", "null"];
    bench(&area, &[&each[..], &["echo 1", "echo 2"]].concat()).ok();
    assert_eq!(std::fs::read_to_string(area.join("a")).unwrap(), "1\n");
    // A folder is not a file: results folders have another option.
    std::fs::create_dir(area.join("dir")).unwrap();
    run(&area, &["bench", "--output", "dir", "true"])
        .expect(2)
        .says(&["a directory; -o (--results) names the directory of results"]);
    // A failure still reports its cause.
    let _ = std::fs::remove_dir_all(area.join("out"));
    bench(&area, &["-r", "1", "--output=null", "echo no room >&2; exit 4"])
        .expect(1)
        .says(&["exit code 4; it said: no room"]);
}

#[test]
fn some_exit_codes_are_no_failure() {
    for (codes, code) in [("--ignore-failure=3,4", 0), ("-i=4", 0), ("-i", 0), ("-i=5", 1)] {
        let area = Area::tmpfs();
        bench(&area, &["-r", "1", codes, "exit 4"]).expect(code);
    }
    let area = Area::tmpfs();
    bench(&area, &["-i=x", "exit 4"]).expect(2).says(&["give exit codes from 0 to 255"]);
}

#[test]
fn a_reference_is_what_others_are_compared_with() {
    let area = Area::tmpfs();
    let words = ["-r", "2", "--no-control", "--reference", "sleep 0.2", "--reference-name", "old"];
    let exports = ["--export-orgmode", "-", "-u", "second", "--sort", "mean-time", "-n", "new"];
    let ran = bench(&area, &[&words[..], &exports, &["sleep 0.05"]].concat());
    ran.ok();
    // Standard output contains only the export, fastest first, relative to the reference.
    let text = ran.out();
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!(rows.len(), 4, "{text}");
    assert!(rows[0].starts_with("| Command | Mean [s] |"), "{text}");
    assert!(rows[2].starts_with("| =new= | 0.") && rows[3].starts_with("| =old= | 0."), "{text}");
    let relative =
        |row: &str| row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap().to_owned();
    assert_eq!(relative(rows[3]), "1.00");
    let new: f64 = relative(rows[2]).split(' ').next().unwrap().parse().unwrap();
    assert!(new > 0.1 && new < 0.9, "{text}");
    assert!(ran.err().contains("old") && ran.err().contains("0.2"), "the report: {ran}");
    run(&area, &["bench", "--reference-name", "x", "true"]).expect(2).says(&["needs --reference"]);
    run(&area, &["bench", "--export-csv=-", "--export-json=-", "true"])
        .expect(1)
        .says(&["only one export can go to standard output"]);
    assert_eq!(of_kind(&lines(&area.join("out")), "run").len(), 4);
}

#[test]
fn times_have_the_unit_that_was_asked_for() {
    let area = Area::tmpfs();
    let words = ["-r", "2", "-u", "millisecond", "--style=color", "--export-asciidoc", "a.adoc"];
    let ran = bench(&area, &[&words[..], &["sleep 0.05"]].concat());
    ran.ok();
    assert!(ran.out().contains(" ms") && ran.out().contains("user (ms)"), "{ran}");
    assert!(ran.out().contains("\u{1b}["), "colours were asked for: {ran}");
    let table = std::fs::read_to_string(area.join("a.adoc")).unwrap();
    assert!(table.contains("| Mean [ms]") && table.contains("| `sleep 0.05`"), "{table}");
    let area = Area::tmpfs();
    let ran = bench(&area, &["-r", "1", "--style", "none", "true"]);
    assert_eq!((ran.out(), ran.err()), (String::new(), String::new()));
}

#[test]
fn every_file_can_be_standard_output() {
    let area = Area::tmpfs();
    bench(&area, &["-q", "-r", "1", "--no-control", "true", "false || true"]).ok();
    let first =
        |ran: &crate::common::case::Run| ran.out().lines().next().unwrap_or_default().to_owned();
    for (words, said) in [
        (&["results", "export", "-o", "-", "out"][..], "campaign,machine,"),
        (&["report", "-o", "-", "out"], "# "),
        (&["compare", "-o", "-", "--format", "csv", "out", "out"], ""),
        (&["watch", "--no-live", "--csv", "-", "--", "sleep", "0.3"], "t,"),
        (&["watch", "--no-live", "-q", "--json", "-", "--", "sleep", "0.1"], "{"),
        (&["watch", "--no-live", "-q", "--svg", "-", "--", "sleep", "0.3"], "<svg "),
        (&["watch", "--no-live", "-o", "-", "--", "sleep", "0.1"], ""),
        (&["io", "--name=a", "--ioengine=null", "--size=1m", "--output=-"], "a: "),
    ] {
        let ran = run(&area, words);
        ran.ok();
        assert!(!ran.out().is_empty() && first(&ran).starts_with(said), "{words:?}: {ran}");
    }
    run(&area, &["watch", "--csv", "-", "--json", "-", "--", "true"])
        .expect(1)
        .says(&["only one file can be standard output"]);
    assert!(!area.join("-").exists());
}

/// What both write into a file of theirs, and their exit codes.
fn beside_hyperfine(area: &Area, words: &[&str], file: &str) -> Option<[(Option<i32>, String); 2]> {
    if !crate::common::have("hyperfine", "the meaning of its options") {
        return None;
    }
    let read = |code| {
        let text = std::fs::read_to_string(area.join(file)).unwrap_or_default();
        let _ = std::fs::remove_file(area.join(file));
        (code, text)
    };
    let mut hyperfine = Command::new("hyperfine");
    hyperfine.args(words).current_dir(area.path()).stdin(std::process::Stdio::null());
    let theirs = read(hyperfine.output().unwrap().status.code());
    let ours = run(area, &[&["bench", "--no-control"], words].concat());
    Some([theirs, read(Some(ours.code))])
}

#[test]
fn a_cleanup_that_fails_is_a_failure() {
    let area = Area::tmpfs();
    for (command, code) in [("false", 1), ("exit 7", 1), ("kill -TERM $$", 1), ("true", 0)] {
        let words = ["-r", "1", "-c", command, "true"];
        if let Some([theirs, ours]) = beside_hyperfine(&area, &words, "none") {
            assert_eq!((theirs.0, ours.0), (Some(code), Some(code)), "{command}");
        }
    }
    // Runs and exports are kept.
    let ran = bench(&area, &["-r", "2", "-c", "false", "--export-json", "x.json", "true"]);
    ran.expect(1).says(&["cleanup: 'false' ended with exit code 1"]);
    assert_eq!(runs(&area).len(), 2);
    assert!(area.join("x.json").exists());
    run(&area, &["bench", "-q", "-r", "1", "-c", "false", "true"]).expect(1);
    // That of a campaign, too.
    let text = "name = \"c\"\ntitle = \"t\"\nquestion = \"q\"\n\
                [[tool]]\nname = \"t\"\ncommand = \"true\"\n[run]\nteardown = \"false\"\n";
    std::fs::write(area.join("c.toml"), text).unwrap();
    let ran = run(&area, &["bench", "-r", "1", "c.toml"]);
    ran.expect(1).says(&["cleanup: 'false' ended"]);
}

#[test]
fn a_shell_is_split_as_a_shell_does() {
    let area = Area::tmpfs();
    std::fs::write(area.join("my shell"), "#!/bin/sh\nprintf '<%s>' \"$@\" >>said\n").unwrap();
    let may_run = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(area.join("my shell"), may_run).unwrap();
    for shell in ["'./my shell'", "./my\\ shell a 'b c' \"d\"", "\"./my shell\" '' x"] {
        // hyperfine calls it to measure its start as well: the last call is that of the command.
        let last = |text: &str| text.rsplit("<-c>").next().unwrap_or_default().to_owned();
        let options = |text: &str| text.split("<-c>").next().unwrap_or_default().to_owned();
        let found = beside_hyperfine(&area, &["-r", "1", "-S", shell, "echo x"], "said");
        let Some([theirs, ours]) = found else { return };
        assert_eq!((theirs.0, last(&theirs.1)), (ours.0, last(&ours.1)), "{shell}");
        assert_eq!(options(&theirs.1), options(&ours.1), "{shell}");
    }
    for shell in ["", " ", "sh 'x"] {
        run(&area, &["bench", "-S", shell, "true"]).expect(2).says(&["invalid --shell "]);
    }
}

/// HYPERFINE_ITERATION as hyperfine 1.20 sets it, and later versions for the commands around a run.
#[test]
fn commands_know_the_number_of_their_run() {
    let area = Area::tmpfs();
    let log = |what: &str| format!("echo {what} ${{HYPERFINE_ITERATION-none}} >>log");
    let [setup, prepare, conclude, cleanup, command] =
        ["setup", "prepare", "conclude", "cleanup", "run"].map(log);
    let around = ["-s", &setup, "-p", &prepare, "-C", &conclude, "-c", &cleanup];
    let words = [&["--no-control", "-w", "1", "-r", "2"][..], &around, &[&command]].concat();
    bench(&area, &words).ok();
    let said = std::fs::read_to_string(area.join("log")).unwrap();
    let run = |number: &str| format!("prepare {number}\nrun {number}\nconclude {number}\n");
    let wanted = ["warmup-0", "0", "1"].map(run).concat();
    assert_eq!(said, format!("setup none\n{wanted}cleanup none\n"));
}
