//! Job files and their places, what is shown, what is refused.

use crate::io::{area, io, json, measured, names, number};

#[test]
fn a_job_file_runs() {
    let area = area();
    let text = "[global]\nsize=64k\nbs=4k\nioengine=psync\ndirectory=.\n\n; two jobs, one after the other\n\
        [first]\nrw=randread\n\n[second]\nstonewall\nrw=write\nnumjobs=2\n";
    std::fs::write(area.join("two.fio"), text).unwrap();
    let found = measured(area.path(), "two.fio");
    let jobs = found["jobs"].as_array().unwrap();
    let told: Vec<_> = jobs
        .iter()
        .map(|job| {
            let ios = (number(job, "/read/total_ios"), number(job, "/write/total_ios"));
            (job["jobname"].as_str().unwrap(), number(job, "/groupid"), ios)
        })
        .collect();
    assert_eq!(told, [("first", 0, (16, 0)), ("second", 1, (0, 16)), ("second", 1, (0, 16))]);
    assert_eq!(found["global options"]["size"], "64k");
    assert_eq!(jobs[0]["job options"]["rw"], "randread");
    assert_eq!(names(area.path()), ["two.fio"]);
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let area = area();
    std::fs::write(area.join("bad.fio"), "[a]\nrw=read\nbs=4q\n").unwrap();
    io(area.path(), "bad.fio").expect(2).says(&["bad.fio:3"]);
    io(area.path(), "--name=a --size=1m --bssplit=4k/50").expect(2).says(&["bssplit"]);
    io(area.path(), "--name=a --size=1m --output-format=terse").expect(2).says(&["terse"]);
    io(area.path(), "none.fio").expect(2).says(&["none.fio", "No such file"]);
    io(area.path(), "").expect(2);
    assert_eq!(names(area.path()), ["bad.fio"]);
}

#[test]
fn an_iodepth_without_effect_is_told() {
    let area = area();
    let line = "--name=a --rw=read --size=64k --ioengine=psync --iodepth=16 --output-format=json";
    let run = io(area.path(), line);
    run.ok().says(&["iodepth"]);
    let warnings = json(&run)["hakobu"]["warnings"].to_string();
    assert!(warnings.contains("iodepth"), "{warnings}");
    io(area.path(), &format!("{line} --strict")).expect(2).says(&["iodepth"]);
    // People read it in the result as well.
    let normal = io(area.path(), "--name=a --rw=read --size=64k --ioengine=psync --iodepth=16");
    assert!(normal.ok().out().contains("\nWarnings:\n"), "{normal}");
}

#[test]
fn results_go_where_they_are_asked_to() {
    let area = area();
    let line = "--name=a --rw=read --size=64k --output=r.json --output-format=json";
    let run = io(area.path(), line);
    assert_eq!(run.ok().out(), "");
    let text = std::fs::read_to_string(area.join("r.json")).unwrap();
    let found: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(number(&found, "/jobs/0/read/total_ios"), 16);
    io(area.path(), "--name=a --size=64k --output=no/such/folder")
        .expect(1)
        .says(&["no/such/folder"]);
    assert_eq!(names(area.path()), ["r.json"]);
}

#[test]
fn nothing_runs_where_it_is_only_looked_at() {
    let area = area();
    let run = io(area.path(), "--name=a --rw=randwrite --size=1m --showcmd");
    assert!(run.ok().out().contains("--name=a"), "{run}");
    io(area.path(), "--name=a --rw=randwrite --size=1m --parse-only").ok();
    assert_eq!(names(area.path()), Vec::<String>::new());
    let laid = io(area.path(), "--name=a --rw=read --size=1m --create_only=1");
    laid.ok();
    assert_eq!(std::fs::metadata(area.join("a.0.0")).unwrap().len(), 1 << 20);
}

#[test]
fn logs_are_written() {
    let area = area();
    let line = "--name=a --rw=randread --size=64k --numjobs=2 --time_based --runtime=1500ms \
        --write_bw_log=x --write_iops_log=x --write_lat_log=x --log_avg_msec=200";
    io(area.path(), line).ok();
    let found = names(area.path());
    for name in ["x_bw.1.log", "x_bw.2.log", "x_iops.1.log", "x_clat.1.log", "x_lat.2.log"] {
        assert!(found.iter().any(|known| known == name), "{name} in {found:?}");
        let text = std::fs::read_to_string(area.join(name)).unwrap();
        let rows: Vec<Vec<u64>> = text
            .lines()
            .map(|line| line.split(", ").map(|word| word.parse().unwrap()).collect())
            .collect();
        assert!(rows.len() >= 4 && rows.len() <= 8, "{name}:\n{text}");
        assert!(rows.iter().all(|row| row.len() == 5 && row[1] > 0 && row[2] == 0), "{text}");
    }
}
