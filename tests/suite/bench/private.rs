//! What results hold and where they go: symlinks of other users, secrets, cells that a spreadsheet would run.

use crate::bench::{bench, run};
use crate::common::area::Area;
use crate::common::{have_root, program};
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

/// A file of ours, and symlinks of another user to it.
fn victim(area: &Area, links: &[&str]) -> impl Fn(&str) + use<> {
    let file = area.join("victim");
    std::fs::write(&file, "mine").unwrap();
    for link in links {
        let link = area.join(link);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(&file, &link).unwrap();
        lchown(&link, Some(65_534), Some(65_534)).unwrap();
    }
    move |after: &str| assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine", "{after}")
}

#[test]
fn nothing_is_written_through_symlinks_of_other_users() {
    if !have_root("symlinks of other users") {
        return;
    }
    // What commands print, results, exports.
    let area = Area::tmpfs();
    let links = ["o", "r/results.jsonl", "s/samples.jsonl", "e.json", "e.csv", "e.md", "b/running"];
    let is_whole = victim(&area, &links);
    let refused = "belongs to user 65534";
    bench(&area, &["-r", "1", "--output", "o", "echo x"]).expect(1).says(&[refused]);
    is_whole("--output");
    for (folder, code) in [("r", 1), ("s", 1), ("b", 1)] {
        run(&area, &["bench", "-o", folder, "-r", "1", "true"]).expect(code);
        is_whole(folder);
    }
    for (option, file) in
        [("--export-json", "e.json"), ("--export-csv", "e.csv"), ("--export-markdown", "e.md")]
    {
        // It gets the name itself.
        run(&area, &["bench", "-q", "-r", "1", option, file, "true"]).ok();
        is_whole(option);
        assert!(!area.join(file).is_symlink());
    }
    // A folder on the way.
    std::fs::create_dir(area.join("real")).unwrap();
    symlink("real", area.join("way")).unwrap();
    lchown(area.join("way"), Some(65_534), Some(65_534)).unwrap();
    for words in [
        &["bench", "-r", "1", "-o", "way/r", "true"][..],
        &["bench", "-q", "-r", "1", "--export-csv", "way/x", "true"],
        &["man", "--install", "way/man"],
        &["man", "--all", "way"],
        &["watch", "--json", "way/w", "--", "true"],
    ] {
        run(&area, words).expect(1).says(&[refused]);
        assert_eq!(std::fs::read_dir(area.join("real")).unwrap().count(), 0, "{words:?}");
    }
}

#[test]
fn pages_and_completions_are_not_written_through_symlinks_of_other_users() {
    if !have_root("symlinks of other users") {
        return;
    }
    let area = Area::tmpfs();
    let fish = "home/.config/fish/completions/hakobu.fish";
    let is_whole =
        victim(&area, &["m/man1/hakobu.1", "m/man1/hakobu-sync.1", "a/hakobu-cp.1", fish]);
    run(&area, &["man", "--install", "m"]).ok();
    run(&area, &["man", "--all", "a"]).ok();
    is_whole("man");
    let mut command = Command::new(program());
    command.args(["completions", "--install", "fish"]).env("HOME", area.join("home"));
    command.env_remove("XDG_CONFIG_HOME").stdout(Stdio::null());
    assert!(command.status().unwrap().success());
    is_whole("completions");
    for page in ["m/man1/hakobu.1", "a/hakobu-cp.1", fish] {
        let text = std::fs::read_to_string(area.join(page)).unwrap();
        assert!(!area.join(page).is_symlink() && text.len() > 1000, "{page}");
    }
}

const SECRETS: &str = r#"
name = "sec"
title = "t"
question = "q"

[data.d]
count = 2
size = "1KB"

[place.target]
path = "tgt"

[sweep]
jobs = [1, 2]

[[tool]]
name = "x"
command = "cp -r {src}/. {dst} # {jobs} $MIXED $JOBS"
set = { token = "hidden-1", shown = "public-1" }
env = { AWS_SECRET_ACCESS_KEY = "hidden-2", JOBS = "{jobs}", MIXED = "hidden-3-{jobs}", T = "{token}" }

[[tool]]
name = "y"
command = "cp -r {src}/. {dst} # {note}"
set = { note = "public-2" }

[tool.env]
"ODD.NAME" = 'hidden-4 " \ $x'
LONG = """
hidden-5
more"""
NUMBER = 77177001771
EMPTY = ""
"#;

/// The values of variables are neither in results nor in what is made of them; names and swept values are.
#[test]
fn values_of_variables_are_not_recorded() {
    let area = Area::tmpfs();
    std::fs::write(area.join("c.toml"), SECRETS).unwrap();
    let ran =
        bench(&area, &["-r", "1", "--export-json", "e.json", "--export-csv", "e.csv", "c.toml"]);
    ran.ok();
    let mut texts = vec![ran.out() + &ran.err()];
    texts.push(run(&area, &["bench", "--dry-run", "c.toml"]).ok().out());
    for form in ["html", "md", "json", "csv", "svg"] {
        let file = format!("report.{form}");
        run(&area, &["report", "out", "-o", &file]).ok();
        texts.push(std::fs::read_to_string(area.join(&file)).unwrap());
    }
    for file in ["out/results.jsonl", "out/samples.jsonl", "e.json", "e.csv"] {
        texts.push(std::fs::read_to_string(area.join(file)).unwrap());
    }
    for text in &texts {
        assert!(!text.contains("hidden-") && !text.contains("77177001771"), "{text}");
    }
    let record = &texts[7];
    assert!(record.starts_with("{\"line\":\"header\""), "{record}");
    for shown in [
        "AWS_SECRET_ACCESS_KEY=***",
        "JOBS=1 ",
        "JOBS=2 ",
        "MIXED=***2 ",
        "public-1",
        "public-2",
        "ODD.NAME=*** ",
        "EMPTY='' ",
        r#"env = { AWS_SECRET_ACCESS_KEY = \"***\", JOBS = \"{jobs}\", MIXED = \"***{jobs}\", T = \"***\" }"#,
        r#"set = { token = \"***\", shown = \"public-1\" }"#,
        r#"\"ODD.NAME\" = \"***\"\nLONG = \"***\"\nNUMBER = \"***\"\nEMPTY = \"\""#,
    ] {
        assert!(record.contains(shown), "{shown}: {record}");
    }
    // The commands have them.
    let script = "printf '%s ' \"$A\" \"$B\" >>said";
    let text = SECRETS.split("[[tool]]").next().unwrap().replace("jobs = [1, 2]", "jobs = [4]");
    let tool = format!(
        "[[tool]]\nname = \"z\"\nshell = true\ncommand = '''{script}; cp -r {{src}}/. {{dst}}'''\n\
         set = {{ token = \"hidden-1\" }}\nenv = {{ A = \"x-{{jobs}}\", B = \"{{token}}\" }}\n"
    );
    std::fs::write(area.join("z.toml"), text + &tool).unwrap();
    run(&area, &["bench", "-r", "1", "z.toml"]);
    let said = std::fs::read_to_string(area.join("said")).unwrap_or_default();
    assert!(!said.is_empty() && said.replace("x-4 hidden-1 ", "").is_empty(), "{said}");
    // Nobody else reads what commands hold in other places.
    for file in ["results.jsonl", "samples.jsonl"] {
        let mode = std::fs::metadata(area.join("out").join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600, "{file}");
    }
}

/// Cells that a spreadsheet would take for a formula.
#[test]
fn tables_hold_no_formulas() {
    let area = Area::tmpfs();
    let words = ["-r", "2", "-i", "-L", "v", "=1+1,-2+3,@SUM(A1),+cmd,-5", "-n", "=cmd|'/C x'!A0"];
    bench(&area, &[&words[..], &["--export-csv", "e.csv", "true '{v}'"]].concat()).ok();
    run(&area, &["report", "out", "-o", "r.csv"]).ok();
    run(&area, &["results", "export", "out", "-o", "x.csv"]).ok();
    run(&area, &["compare", "a=out", "b=out", "-o", "c.csv"]).ok();
    for file in ["e.csv", "r.csv", "x.csv", "c.csv"] {
        let cells = cells(&area.join(file));
        let wrong = cells.iter().filter(|cell| {
            cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell.parse::<f64>().is_err()
        });
        assert_eq!(wrong.count(), 0, "{file}: {cells:?}");
        assert!(cells.iter().any(|cell| cell.starts_with("'=cmd|")), "{file}: {cells:?}");
    }
    // Numbers are numbers.
    assert!(cells(&area.join("e.csv")).iter().any(|cell| cell == "-5"));
}

/// All cells of a CSV file.
fn cells(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let (mut all, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        match c {
            '"' if quoted && letters.peek() == Some(&'"') => cell.extend(letters.next()),
            '"' => quoted = !quoted,
            ',' | '\n' if !quoted => all.push(std::mem::take(&mut cell)),
            '\r' if !quoted && letters.peek() == Some(&'\n') => {}
            c => cell.push(c),
        }
    }
    all
}
