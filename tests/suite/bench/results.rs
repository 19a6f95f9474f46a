//! `hakobu results`: list, show, import, export, remove.

use crate::bench::{hakobu, lines, of_kind, run};
use crate::common::area::Area;
use std::io::Write;
use std::process::Stdio;

#[test]
fn from_bench_to_rm() {
    let area = Area::tmpfs();
    run(&area, &["results", "ls"]).ok();
    run(&area, &["results", "show"]).expect(1).says(&["there are no results yet"]);
    run(&area, &["bench", "-r", "2", "-N", "true"]).ok();
    run(&area, &["bench", "-r", "2", "-N", "--no-control", "-n", "nothing", "sleep 0"]).ok();
    let kept = area.join("state/hakobu/results");
    let mut names: Vec<String> = std::fs::read_dir(&kept)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let [sleep, done] = &names[..] else { panic!("{names:?}") };
    assert!(sleep.starts_with("sleep-20") && done.starts_with("true-20"), "{names:?}");
    let list = run(&area, &["results", "ls"]);
    let text = list.ok().out();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows.len(), 3, "{list}");
    let row = rows.iter().find(|row| row[0] == sleep).unwrap();
    assert_eq!((row[1], &row[3..]), ("sleep", &["1", "2", "0", "done"][..]));
    // By name, by folder, and the newest.
    for words in [vec!["results", "show", sleep], vec!["results", "show"]] {
        let shown = run(&area, &words);
        assert!(shown.ok().out().contains("nothing"), "{shown}");
    }
    let folder = kept.join(done);
    run(&area, &["results", "show", folder.to_str().unwrap()]).ok();
    run(&area, &["results", "show", "none"]).expect(1).says(&["there are no results 'none'"]);

    let json = run(&area, &["results", "export", "--format=hyperfine", sleep]);
    let value: serde_json::Value = serde_json::from_str(&json.ok().out()).unwrap();
    assert_eq!(value["results"][0]["command"], "nothing");
    assert_eq!(value["results"][0]["times"].as_array().unwrap().len(), 2);
    run(&area, &["results", "export", sleep, "-o", "runs.csv"]).ok();
    let csv = std::fs::read_to_string(area.join("runs.csv")).unwrap();
    assert_eq!(csv.lines().count(), 3, "{csv}");
    assert!(csv.lines().next().unwrap().contains("wall_s"), "{csv}");

    // It asks for confirmation; a folder with other files stays.
    let answer = |answer: &str| {
        let mut child = hakobu(&area, &["results", "rm", done]);
        let mut child = child.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(answer.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
        folder.exists()
    };
    assert!(answer("n\n"));
    assert!(!answer("y\n"));
    std::fs::create_dir(area.join("precious")).unwrap();
    std::fs::write(area.join("precious/thesis"), "").unwrap();
    run(&area, &["results", "rm", "-f", "./precious"]).expect(1).says(&["holds no results"]);
    std::fs::write(kept.join(sleep).join("thesis"), "").unwrap();
    run(&area, &["results", "rm", "-f", sleep]).expect(1).says(&["more than results (thesis)"]);
    std::fs::remove_file(kept.join(sleep).join("thesis")).unwrap();
    run(&area, &["results", "rm", "-f", sleep]).ok();
    assert_eq!(std::fs::read_dir(&kept).unwrap().count(), 0);
    assert!(area.join("precious/thesis").exists());
}

#[test]
fn what_others_measured() {
    let area = Area::tmpfs();
    let hyperfine = r#"{"results":[{"command":"a 1","mean":1.5,"stddev":0.7,"median":1.5,"user":1.0,
        "system":0.1,"min":1.0,"max":2.0,"times":[1.0,2.0],"exit_codes":[0,0],"parameters":{"n":"1"}}]}"#;
    std::fs::write(area.join("Old Times.json"), hyperfine).unwrap();
    let fio = |jobs: u32, iops: u32| {
        format!(
            r#"{{"fio version":"fio-3.36","jobs":[{{"jobname":"j","error":0,"job_runtime":1000,
            "job options":{{"rw":"randread","bs":"4k","numjobs":"{jobs}"}},
            "read":{{"iops":{iops},"bw_bytes":4096,"total_ios":9}},"write":{{"iops":0}}}}]}}"#
        )
    };
    std::fs::write(area.join("1.json"), fio(1, 100)).unwrap();
    std::fs::write(area.join("2.json"), fio(2, 190)).unwrap();
    let brought = run(&area, &["results", "import", "Old Times.json"]);
    let out = brought.ok().out();
    let folder = std::path::Path::new(out.trim());
    assert!(folder.file_name().unwrap().to_str().unwrap().starts_with("old-times-20"), "{brought}");
    assert_eq!(of_kind(&lines(folder), "run").len(), 2);
    assert!(run(&area, &["results", "show"]).ok().out().contains("a {n}"));
    let back = run(&area, &["results", "export", "--format=hyperfine"]);
    let back: serde_json::Value = serde_json::from_str(&back.ok().out()).unwrap();
    assert_eq!(back["results"][0]["times"], serde_json::json!([1.0, 2.0]));

    run(&area, &["results", "import", "-n", "disk", "-o", "disk", "1.json", "2.json"]).ok();
    let read = lines(&area.join("disk"));
    assert_eq!((&read[0]["metric"], &read[0]["x_name"]), (&"iops".into(), &"numjobs".into()));
    assert_eq!(of_kind(&read, "run")[1]["metrics"]["iops"], 190.0);
    run(&area, &["results", "show", "./disk"]).ok();
    for (words, said) in [
        (&["results", "import", "-o", "disk", "1.json"][..], "there are results in 'disk' already"),
        (&["results", "import", "none.json"], "cannot read 'none.json'"),
        (
            &["results", "import", "1.json", "Old Times.json"],
            "is of hyperfine, and what came before it of fio",
        ),
    ] {
        run(&area, words).expect(1).says(&[said]);
    }
}
