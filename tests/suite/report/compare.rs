//! `hakobu compare`: two machines of a published study, imported as results of fio; the study's conclusions
//! are reproduced.

use crate::common::area::Area;
use crate::common::case::Run;
use crate::report::folder::{Recipe, USUAL, make};
use crate::report::forms::is_xml;
use crate::report::{hakobu, words};
use serde_json::{Value, json};
use std::path::Path;

const NUMJOBS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
const PATTERNS: [&str; 4] = ["read", "write", "randread", "randwrite"];

/// IOPS of "Benchmarking the NVMe of the new storage-optimised I3", 2017: i2.xlarge, i3.xlarge; by pattern,
/// over numjobs.
const I2: [[f64; 8]; 4] = [
    [6916.4, 8100.6, 13829.4, 21621.8, 30078.0, 36089.2, 37190.0, 38237.4],
    [7256.8, 12192.0, 18136.0, 26260.4, 31288.6, 33777.0, 33653.2, 35289.4],
    [5439.4, 9780.0, 16099.6, 26403.2, 37554.4, 44384.4, 45394.4, 45142.8],
    [8091.4, 14003.0, 23147.4, 33653.4, 41419.2, 42895.8, 42668.2, 42769.2],
];
const I3: [[f64; 8]; 4] = [
    [28809.8, 35748.4, 45165.6, 69657.0, 123816.0, 203814.8, 212328.4, 209226.4],
    [21374.8, 23606.2, 21817.8, 20170.0, 19603.0, 19181.6, 18935.0, 18840.4],
    [10428.4, 20425.0, 39708.4, 74461.2, 130996.4, 207918.8, 214318.2, 209299.4],
    [23167.2, 24027.4, 22089.0, 20180.4, 19602.4, 19178.4, 18933.6, 18851.4],
];

/// Creates a results folder from output as written by fio.
fn import(dir: &Path, name: &str, figures: &[[f64; 8]; 4]) {
    let mut line = vec!["results", "import", "-n", name, "-o", name];
    let mut files = Vec::new();
    for (pattern, rates) in PATTERNS.iter().zip(figures) {
        for (numjobs, iops) in NUMJOBS.iter().zip(rates) {
            let side = |on: bool| json!({"iops": if on { *iops } else { 0.0 }, "total_ios": 1});
            let writes = pattern.contains("write");
            let fio = json!({"fio version": "fio-2.1.5", "jobs": [{
                "jobname": "j", "error": 0, "job_runtime": 1000,
                "job options": {"rw": pattern, "bs": "4k", "numjobs": numjobs.to_string()},
                "read": side(!writes), "write": side(writes),
            }]});
            let file = format!("{name}-{pattern}-{numjobs}.json");
            std::fs::write(dir.join(&file), fio.to_string()).unwrap();
            files.push(file);
        }
    }
    line.extend(files.iter().map(String::as_str));
    hakobu(dir, &line).ok();
}

/// Compares the study's machines: `hakobu compare i2=… i3=…` with these arguments.
fn compare(area: &Area, more: &str) -> Run {
    let line = format!(
        "compare i2=i2 i3=./i3 --price i2=1.001/h --price B=$0.366/h --rated A=35000/35000 --rated \
         i3=206250/18750 {more}"
    );
    hakobu(area.path(), &words(&line))
}

fn study() -> Area {
    let area = Area::tmpfs();
    import(area.path(), "i2", &I2);
    import(area.path(), "i3", &I3);
    area
}

#[test]
fn a_study_finds_its_own_conclusions_again() {
    let area = study();
    let run = compare(&area, "--no-color");
    let text = run.ok().out();
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        // Reads reach the rating of i3 at 32 jobs, writes at one.
        "Rated limit of read is the same: reached with 32 jobs.",
        "Rated limit of write differs: reached with 128 jobs on i2, reached with 1 job on i3.",
        "Rated limit of randread differs: reached with 16 jobs on i2, reached with 32 jobs on i3.",
        "Rated limit of randwrite differs: reached with 16 jobs on i2, reached with 1 job on i3.",
        // 0.366 $ per hour for 206,250: 1.77 per million; 16 times as many reads for the same price, 1.5
        // times as many writes.
        "cheapest for 1M IOPS, as rated for reads: i3 (1.77 vs 28.6 on i2: 16.1× better value)",
        "cheapest for 1M IOPS, as rated for writes: i3 (19.5 vs 28.6 on i2: 1.47× better value)",
        // i3 reads faster and writes slower; one run each is not enough for a claim.
        "fastest (randread): tie: i3 and i2 within noise (214,318 IOPS / 45,394 IOPS)",
        "fastest (randwrite): tie: i2 and i3 within noise",
        "i3: Only one run",
    ] {
        assert!(said.contains(part), "{part}\n{text}");
    }
    // Reading is not a tool that could be compared with writing.
    assert!(!said.contains("best tool"), "{text}");
    // The study's own table.
    for (place, numjobs) in NUMJOBS.iter().enumerate() {
        for pattern in 0..PATTERNS.len() {
            let percent = 100.0 * I3[pattern][place] / I2[pattern][place];
            assert!(text.contains(&format!("({percent:.1}%)")), "{numjobs}: {percent}\n{text}");
        }
    }
    assert!(text.contains("6,916 / 28,810 (416.5%)") && !text.contains('\u{1b}'), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn the_range_of_the_study_over_its_machines() {
    let area = study();
    // i2.8xlarge: 12.4 times for reads, 1.3 times for writes, compared with 16.1 and 1.47 of i2.xlarge.
    let line = "compare i2=i2 i3=i3 --price A=8.004/h --price B=0.366/h --rated A=365000/315000 \
                --rated B=206250/18750 --format json";
    let found: Value = serde_json::from_str(&hakobu(area.path(), &words(line)).ok().out()).unwrap();
    let best = found["best"].as_array().unwrap();
    let why = |need: &str| {
        let of = best.iter().find(|of| of["need"] == need).unwrap();
        of["why"].as_str().unwrap().to_owned()
    };
    assert!(why("cheapest for 1M IOPS, as rated for reads").contains("12.4× better value"));
    assert!(why("cheapest for 1M IOPS, as rated for writes").contains("1.30× better value"));
}

#[test]
fn every_form() {
    let area = study();
    for (end, begin) in [
        ("html", "<!DOCTYPE html>\n<html lang=\"en\">"),
        ("md", "# i2, i3 side by side\n"),
        ("csv", "group,series,x,parameters,result,metric,runs,median,"),
        ("json", "{\n  \"schema\": 1,\n  \"names\": [\n    \"i2\",\n    \"i3\""),
    ] {
        let name = format!("both.{end}");
        let run = compare(&area, &format!("-o {name}"));
        assert!(run.ok().stdout.is_empty() && run.stderr.is_empty(), "{run}");
        let text = std::fs::read_to_string(area.path().join(&name)).unwrap();
        assert!(text.starts_with(begin), "{}", text.lines().next().unwrap());
        assert_eq!(compare(&area, &format!("--format {end}")).ok().out(), text);
        // Formats for programs are the same in every language, others are translated.
        let ja = compare(&area, &format!("--format {end} --lang ja")).ok().out();
        assert_eq!(ja == text, ["csv", "json"].contains(&end), "{end}");
        if end == "html" {
            is_xml(&area.path().join(&name));
            std::fs::write(area.path().join("ja.html"), &ja).unwrap();
            is_xml(&area.path().join("ja.html"));
        }
    }
    let csv = std::fs::read_to_string(area.path().join("both.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 2 * 32);
    let first = "\r\n,read,1,\"bs=4k, rw=read\",i2,iops,1,6916.4,6916.4,6916.4,6916.4,,,,\r\n";
    assert!(csv.contains(first), "{csv}");
    let json: Value =
        serde_json::from_str(&std::fs::read_to_string(area.path().join("both.json")).unwrap())
            .unwrap();
    assert_eq!(json["rows"].as_array().unwrap().len(), 32);
    let rated = json["costs"]
        .as_array()
        .unwrap()
        .iter()
        .find(|cost| cost["name"] == "i3" && cost["of"] == "rated for reads");
    let price = rated.unwrap()["per_1m_iops"].as_f64().unwrap();
    assert!((price - 0.366 / 206_250.0 * 1e6).abs() < 1e-9, "{price}");
    let ja = compare(&area, "--lang ja").ok().out();
    for part in
        ["用途別の選び方", "変わる結論", "1M IOPS あたり最安、公称値（読み込み）: i3", "費用"]
    {
        assert!(ja.contains(part), "{part}\n{ja}");
    }
}

#[test]
fn machines_that_were_measured() {
    let area = Area::tmpfs();
    make(&area.path().join("a"), &USUAL);
    make(&area.path().join("b"), &Recipe { machine: "m5.small", slower: 2.0, ..USUAL });
    make(&area.path().join("c"), &Recipe { machine: "m5.tiny", slower: 4.0, ..USUAL });
    let line = "compare a b slow=c --price A=1/h --price m5.small=0.1/h --price slow=0.9/h";
    let run = hakobu(area.path(), &words(line));
    let text = run.ok().out();
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "fastest: m5.large (",
        "on m5.small, 2.00× as fast)",
        // Half the speed at a tenth of the price.
        "cheapest per GB: m5.small (",
        "cheapest per million files: m5.small (",
        "5.00× better value)",
        "Best tool is the same: hakobu",
        "Knee of rsync is the same: 8 jobs.",
        "m5.small: speed",
        "slow: speed",
        "slower",
    ] {
        assert!(said.contains(part), "{part}\n{text}");
    }
}

#[test]
fn what_cannot_be_compared() {
    let area = Area::tmpfs();
    make(&area.path().join("a"), &USUAL);
    std::fs::create_dir(area.path().join("empty")).unwrap();
    for (line, code, said) in [
        ("a", 2, "missing results"),
        ("a a --price C=1/h", 2, "--price C=…: no result is called C (m5.large #1, m5.large #2)"),
        ("x=a x=a", 2, "two results are called x"),
        ("a a --rated A=lots", 2, "'lots' is not a number of operations per second"),
        ("a a --format svg", 2, "invalid --format 'svg': give html, md, csv or json"),
        ("a ./none", 1, "cannot read './none/results.jsonl'"),
        ("a empty", 1, "'empty' holds no results"),
        ("a nosuch", 1, "there are no results 'nosuch'; hakobu results ls lists them"),
        ("a a -o no/such/x.md", 1, "cannot write 'no/such/x.md'"),
    ] {
        let run = hakobu(area.path(), &words(&format!("compare {line}")));
        run.expect(code).says(&[said]);
        assert!(run.stdout.is_empty(), "{run}");
    }
    assert!(hakobu(area.path(), &["compare", "--help"]).ok().out().contains("--rated"));
}
