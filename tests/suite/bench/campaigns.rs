//! Campaigns from TOML, with failing tools.

use crate::bench::{bench, lines, run, runs};
use crate::common::area::{Area, Fs};

/// A campaign with ten small files; tools are appended.
const TEXT: &str = r#"
name = "copies"
title = "Copies"
question = "Which of them copies?"
control = "good"

[data.small]
count = 10
size = "4KiB"

[place.target]
path = "target"

[repeat]
min = 2
max = 2

[check]
what = "tree"
compare = "all"

[[tool]]
name = "good"
command = "cp -r {src}/. {dst}"
"#;

fn write(area: &Area, tools: &str) {
    std::fs::write(area.join("c.toml"), format!("{TEXT}{tools}")).unwrap();
}

#[test]
fn tools_that_do_wrong_are_failed() {
    let area = Area::tmpfs();
    write(
        &area,
        r#"
[[tool]]
name = "loses"
command = "cp -r {src}/. {dst} && rm \"$(find {dst} -type f | head -n 1)\""
[[tool]]
name = "too much"
command = "cp -r {src}/. {dst} && echo more > {dst}/more"
[[tool]]
name = "wrong content"
command = "cp -r {src}/. {dst} && for f in $(find {dst} -type f); do printf x | dd of=$f conv=notrunc bs=1 seek=100 2>/dev/null; done"
[[tool]]
name = "shorter"
command = "cp -r {src}/. {dst} && for f in $(find {dst} -type f); do printf x > $f; done"
[[tool]]
name = "missing"
command = "no-such-program-here {src} {dst}"
[[tool]]
name = "hangs"
command = "sleep 100; true {src} {dst}"
"#,
    );
    let ran = bench(&area, &["c.toml", "--timeout", "2s"]);
    ran.expect(1).says(&["left out: missing", "results go to"]);
    let lines = lines(&area.join("out"));
    let cells = lines[0]["cells"].as_array().unwrap().clone();
    let mut good = 0;
    for run in runs(&area) {
        let series = cells[run["cell"].as_u64().unwrap() as usize]["series"].as_str().unwrap();
        let problem = run["problem"].as_str().unwrap_or_default();
        let said = match series {
            "loses" => "it lost 1 of 10 files",
            "too much" => "it wrote 1 file too many, 'more' is one",
            "wrong content" => "differs from its source at byte 100",
            "shorter" => "has 1 bytes, not 4096",
            "hangs" => "took longer than 2 s and was killed",
            _ => "",
        };
        assert!(problem.contains(said) && problem.is_empty() == said.is_empty(), "{series}: {run}");
        if said.is_empty() {
            good += 1;
            let checked = &run["checked"];
            assert_eq!((&checked["files"], &checked["compared"]), (&10.into(), &10.into()));
            assert_eq!(checked["bytes"], 40_960);
        }
    }
    // The working tool, and its control.
    assert_eq!(good, 4);
    assert_eq!(lines[0]["data"][0]["files"], 10);
    assert!(lines[0]["text"].as_str().unwrap().contains("name = \"copies\""));
    assert!(!area.join("cache/hakobu/work/copies").exists());
}

#[test]
fn plans_can_be_looked_at_and_cut() {
    let area = Area::tmpfs();
    write(&area, "[[tool]]\nname = \"other\"\ncommand = \"cp -r {src}/. {dst}\"\n");
    let dry = run(&area, &["bench", "--dry-run", "c.toml"]);
    dry.ok();
    for said in
        ["copies: Copies", "Which of them copies?", "data set small: 10 files", "before: empty"]
    {
        assert!(dry.out().contains(said), "{said}: {dry}");
    }
    bench(&area, &["c.toml", "--only", "other", "-r", "1", "--scale", "2", "--machine", "mine"])
        .ok();
    let lines = lines(&area.join("out"));
    let header = &lines[0];
    let series: Vec<&str> = header["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| cell["series"].as_str().unwrap())
        .collect();
    assert_eq!(series, ["other"]);
    assert_eq!((&header["data"][0]["files"], &header["scale"]), (&20.into(), &2.0.into()));
    assert_eq!(header["machine"]["name"], "mine");
    assert_eq!(runs(&area)[0]["checked"]["files"], 20);
}

#[test]
fn mistakes_in_a_campaign_are_pointed_at() {
    let area = Area::tmpfs();
    write(&area, "[[tool]]\nname = \"bad\"\ncommand = \"cp {src} {dst}\"\ncomand = \"x\"\n");
    let ran = bench(&area, &["c.toml"]);
    ran.expect(2).says(&["c.toml:", "comand"]);
    bench(&area, &["c.toml", "-p", "x"]).expect(2).says(&["--prepare goes with commands"]);
    assert!(!area.join("out").exists());
}

#[test]
fn the_page_cache_is_as_the_campaign_wants_it() {
    // A file system in memory cannot be evicted, which is reported; after reading it is warm.
    let area = Area::tmpfs();
    for (state, said) in [("cold", "left out: cold data"), ("warm", "results go to")] {
        let text = TEXT.replace("[repeat]", &format!("[run]\ncache = \"{state}\"\n[repeat]"));
        std::fs::write(area.join("c.toml"), text).unwrap();
        let output = area.join(state);
        let words = ["bench", "-o", output.to_str().unwrap(), "-r", "1", "c.toml"];
        run(&area, &words).ok().says(&[said]);
        let runs = crate::bench::of_kind(&lines(&output), "run");
        assert_eq!((&runs[0]["cached"], &runs[0]["ok"]), (&1.0.into(), &true.into()));
    }
    // On a disk eviction works and is verified.
    let Some(disk) = Area::new(Fs::Ext4, "cold data") else { return };
    let text = TEXT.replace("[repeat]", "[run]\ncache = \"cold\"\n[repeat]");
    std::fs::write(disk.join("c.toml"), text).unwrap();
    bench(&disk, &["-r", "2", "c.toml"]).ok();
    for run in runs(&disk) {
        assert_eq!((&run["cached"], &run["ok"]), (&0.0.into(), &true.into()), "{run}");
    }
}

#[test]
fn servers_of_our_own_are_measured_against() {
    let area = Area::tmpfs();
    let text = TEXT
        .replace("path = \"target\"", "serve = \"folder\"")
        .split("[[tool]]")
        .next()
        .unwrap()
        .replace("control = \"good\"\n", "")
        .replace("[check]\nwhat = \"tree\"\ncompare = \"all\"\n", "")
        + "[[tool]]\nuse = \"hakobu\"\n";
    std::fs::write(area.join("c.toml"), text).unwrap();
    let ran = bench(&area, &["c.toml", "-r", "1"]);
    ran.ok();
    let runs = runs(&area);
    assert_eq!(runs.len(), 2);
    for run in runs {
        assert_eq!((&run["ok"], &run["metrics"]["files"]), (&true.into(), &10.0.into()), "{run}");
    }
}

#[test]
fn campaigns_come_with_the_program() {
    let area = Area::tmpfs();
    let list = run(&area, &["bench", "--list"]);
    list.ok();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("campaigns");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(list.out().lines().any(|line| line == name), "{name}: {list}");
        let dumped = run(&area, &["bench", "--dump", name]);
        dumped.ok();
        assert_eq!(dumped.out(), std::fs::read_to_string(&path).unwrap());
    }
    // A campaign by name is equal to the same as a file.
    std::fs::write(area.join("e.toml"), run(&area, &["bench", "--dump", "e-cp-rsync-load"]).out())
        .unwrap();
    let [named, file] =
        ["e-cp-rsync-load", "e.toml"].map(|what| run(&area, &["bench", "--dry-run", what]));
    named.ok();
    assert_eq!(named.out(), file.out());
    for (words, said) in [
        (&["bench", "--dump", "none"][..], "there is no campaign 'none' (there are a-rsync"),
        (&["bench", "--dump"], "--list shows them"),
        (&["bench", "--list", "true"], "--list goes alone"),
    ] {
        run(&area, words).expect(2).says(&[said]);
    }
}

#[test]
fn every_setting_is_compared_with_a_baseline() {
    let area = Area::tmpfs();
    let words = ["-r", "3", "--no-control", "-L", "t", "0.05,0.5", "--baseline", "t=0.5"];
    let ran = bench(&area, &[&words[..], &["sleep {t}"]].concat());
    ran.ok();
    // 0.05 s are far less than 0.5 s on any machine.
    assert!(
        ran.out().contains("sleep {t} with t=0.05: ") && ran.out().contains("% shorter"),
        "{ran}"
    );
    for words in [
        &["report", "--baseline", "t=0.5", "out"][..],
        &["results", "show", "--baseline", "t=0.5", "out"],
    ] {
        let ran = run(&area, words);
        ran.ok();
        for said in ["% shorter", "vs t=0.5", "min", "max"] {
            assert!(ran.out().contains(said), "{said}: {ran}");
        }
    }
    run(&area, &["report", "--baseline", "t=7", "out"])
        .expect(1)
        .says(&["--baseline=t=7: no setting has it; t is one of 0.05, 0.5"]);
    run(&area, &["report", "--baseline", "t", "out"])
        .expect(1)
        .says(&["--baseline=t: no such tool; there are sleep {t}"]);
}
