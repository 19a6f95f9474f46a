//! Final output of a run, and its destination.

use super::files;
use crate::common::area::Fs;
use crate::common::case::{case, case_on};
use crate::server::Stage;

fn source(c: &crate::common::case::Case) {
    files(&c.src(), 6, 1 << 20);
}

/// Six seconds under a rate limit, which is the limiting resource.
#[test]
fn long_runs_say_what_limits_where_somebody_looks() {
    case_on(Fs::Tmpfs, Fs::Tmpfs, "sync -a --stats --bwlimit=1m SRC/ DST", |c| {
        source(c);
        c.run().ok().says(&["--bwlimit"]);
    });
}

#[test]
fn nobody_hears_of_it_who_did_not_ask() {
    for line in ["sync -a --bwlimit=1m SRC/ DST", "cp -r --bwlimit=1m SRC DST"] {
        case_on(Fs::Tmpfs, Fs::Tmpfs, line, |c| {
            source(c);
            let run = c.run();
            run.ok();
            assert_eq!((run.out().as_str(), run.err().as_str()), ("", ""));
        });
    }
}

#[test]
fn explaining_goes_beside_the_output() {
    for line in ["sync -a --explain --bwlimit=2m SRC/ DST", "cp -r --explain --bwlimit=2m SRC DST"]
    {
        case_on(Fs::Tmpfs, Fs::Tmpfs, line, |c| {
            source(c);
            let run = c.run();
            run.ok().says(&["--bwlimit"]);
            assert_eq!(run.out(), "");
        });
    }
}

#[test]
fn what_is_over_at_once_is_explained_too() {
    case("cp --explain SRC/f0 DST", |c| {
        files(&c.src(), 1, 7);
        c.run().ok().says(&["Bottleneck: unknown.", "too little work"]);
    });
    case("cp --explain --lang ja SRC/f0 DST", |c| {
        files(&c.src(), 1, 7);
        c.run().ok().says(&["ボトルネック: 不明。"]);
    });
    case("cp --explain --lang fr SRC/f0 DST", |c| {
        c.run().expect(2).says(&["invalid --lang 'fr': give en or ja"]);
    });
}

/// Half a second under a rate limit: too short for a verdict, long enough to see what the workers did.
#[test]
fn a_short_run_says_where_its_time_went() {
    case_on(Fs::Tmpfs, Fs::Tmpfs, "cp -r --explain --bwlimit=4m SRC DST", |c| {
        files(&c.src(), 3, 1 << 20);
        let run = c.run();
        run.ok().says(&[
            "There was too little work to judge. Workers ",
            "spent ",
            "throttled by the rate limit",
        ]);
        assert!(!run.err().contains("phase_"), "{run}");
    });
}

/// Replaces numbers: those of this machine are not those of the documentation.
fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    for part in text.split_inclusive(|c: char| !c.is_ascii_digit() && c != '.') {
        let end = part.trim_end_matches(|c: char| !c.is_ascii_digit());
        let is_number = !end.is_empty();
        out += if is_number { "#" } else { "" };
        out += &part[end.len()..];
    }
    out
}

/// The two examples of the tutorial with a distant bucket.
#[test]
fn examples_of_the_tutorial_come_out_as_printed() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tutorial.md");
    let text = std::fs::read_to_string(path).unwrap();
    let stage = Stage::new();
    files(&stage.src(), 2005, 4096);
    let server = stage.null("--latency 20ms");
    let lines: Vec<&str> = text.lines().collect();
    let mut seen = 0;
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.contains(" --explain ")) {
        let (_, command) = line.split_once(" hakobu ").unwrap();
        let printed = lines[at..].iter().find(|line| line.starts_with("    hakobu: ")).unwrap();
        let mut tries = 0;
        loop {
            let run = server.run(&command.replace("src/.", "SRC/."));
            run.ok();
            let said = run.err();
            let said = said.lines().find(|line| line.starts_with("hakobu: Bottleneck")).unwrap();
            // CPUs that others use are named only where there are any.
            let said = without_numbers(said).replace(", other processes #", "");
            tries += 1;
            // Others may be busy during one run. As long as they leave no CPU idle, latency cannot be told from waiting
            // for a CPU.
            let full = run.err().contains("no CPU idle") && said.contains("Bottleneck: unknown.");
            if said == without_numbers(printed.trim()) || tries == 5 {
                assert!(full || said == without_numbers(printed.trim()), "{printed}\n{run}");
                break;
            }
        }
        seen += 1;
    }
    assert_eq!(seen, 2);
}

#[test]
fn the_summary_names_the_limit() {
    case_on(Fs::Tmpfs, Fs::Tmpfs, "sync -a --json --bwlimit=1m SRC/ DST", |c| {
        source(c);
        let run = c.run();
        let summary = run.ok().summary();
        let verdict = &summary["verdict"];
        assert_eq!(verdict["resource"], "user-limit", "{summary}");
        let evidence = verdict["evidence"].as_array().unwrap();
        assert!(evidence.len() >= 2, "{summary}");
        for signal in evidence {
            assert!(signal["signal"].is_string() && signal["value"].is_number(), "{summary}");
            assert!(signal["limit"].is_number(), "{summary}");
        }
        assert_eq!(run.err(), "");
    });
}

#[test]
fn failures_keep_their_codes() {
    for (line, code) in [
        ("sync -a --explain SRC/ SRC/none DST", 23),
        ("cp -r --explain SRC/none DST", 1),
        ("sync -a --prove SRC/ DST", 0),
        ("sync -a --explain --no-memory -n SRC/ DST", 0),
    ] {
        case(line, |c| {
            files(&c.src(), 1, 7);
            c.run().expect(code);
        });
    }
}

/// Small files: what numbers of jobs are compared by is more than bytes, and no byte more is reported.
#[test]
fn rates_are_those_of_content() {
    let line = "sync -a --json --explain --no-memory --iops-limit=4000 SRC/ DST";
    case_on(Fs::Tmpfs, Fs::Tmpfs, line, |c| {
        files(&c.src(), 1500, 7);
        let run = c.run();
        let summary = run.ok().summary();
        let content = summary["bytes"].as_f64().unwrap();
        let steps = summary["jobs_path"].as_array().unwrap();
        let rates: Vec<f64> = steps.iter().filter_map(|step| step["rate"].as_f64()).collect();
        let entries = steps.iter().filter_map(|step| step["entries_per_s"].as_f64());
        // No window is shorter than 50 ms.
        assert!(!rates.is_empty() && rates.iter().all(|rate| *rate <= content / 0.05), "{run}");
        assert!(entries.fold(0.0, f64::max) > 1.0, "{run}");
        run.says(&["(best: ", " entries/s with "]);
        assert!(!run.err().contains("MB/s"), "{run}");
    });
}
