//! Every command line in the documentation works as written: blocks of `sh`, `console` blocks with their
//! output, commands inside the text, and the examples of manual pages. A block is excluded only by a reason
//! in the text before it: `<!-- not run: REASON -->`. Long measurements are parsed and planned only: `<!--
//! run with --dry-run: REASON -->`.

mod reader;

use crate::common::area::Area;
use crate::common::case::run_command;
use crate::common::{have, have_root, program};
use reader::{Script, examples, scripts};
use std::path::Path;
use std::process::{Command, Stdio};

/// Documents whose blocks are steps of one session.
const SESSIONS: &[&str] = &["docs/tutorial.md", "docs/ja/tutorial.md"];

/// Whether this machine can set the stage.
fn can_run() -> bool {
    let tools = ["unshare", "ip", "parallel", "rsync", "bash", "make", "man"];
    have_root("documented commands") && tools.iter().all(|tool| have(tool, "documented commands"))
}

/// Runs all commands of a document.
fn check(file: &str) {
    if !can_run() {
        return;
    }
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let all = scripts(file, &text, SESSIONS.contains(&file));
    assert!(!all.is_empty(), "{file} has no command lines: the reader does not see them");
    run(&all);
}

fn run(all: &[Script]) {
    let failed: Vec<String> = all.iter().filter_map(|script| run_staged(script).err()).collect();
    assert!(failed.is_empty(), "{} of {} failed\n{}", failed.len(), all.len(), failed.join("\n\n"));
}

#[test]
fn readme() {
    check("README.md");
}

#[test]
fn japanese_readme() {
    check("README.ja.md");
}

#[test]
fn tutorial() {
    check("docs/tutorial.md");
}

#[test]
fn japanese_tutorial() {
    check("docs/ja/tutorial.md");
}

#[test]
fn limits() {
    check("docs/limits.md");
}

#[test]
fn how_to() {
    check("docs/how-to.md");
}

#[test]
fn another_machine() {
    check("docs/remote.md");
    check("docs/ja/remote.md");
}

#[test]
fn s3() {
    check("docs/s3.md");
    check("docs/s3-commands.md");
    check("docs/manifest.md");
}

#[test]
fn results() {
    check("docs/compare.md");
    check("docs/report.md");
}

#[test]
fn watch() {
    check("docs/watch.md");
}

#[test]
fn bench() {
    check("docs/bench.md");
}

#[test]
fn io() {
    check("docs/io.md");
}

#[test]
fn cluster() {
    check("docs/cluster.md");
}

#[test]
fn campaigns() {
    for name in ["README", "a-rsync-parallel", "b-aws-s3-requests"] {
        check(&format!("docs/campaigns/{name}.md"));
    }
    for name in ["c-fio-numjobs", "d-s3cmd-parallel", "e-cp-rsync-load", "f-remote"] {
        check(&format!("docs/campaigns/{name}.md"));
    }
}

#[test]
fn differences() {
    check("docs/differences.md");
}

/// Documents that are not run have no command lines, so a new one is seen.
#[test]
fn every_document_is_run() {
    let source = include_str!("mod.rs");
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    for folder in ["docs", "docs/ja", "docs/campaigns"] {
        for entry in std::fs::read_dir(top.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let Some(name) = path.file_name().unwrap().to_str().unwrap().strip_suffix(".md") else {
                continue;
            };
            let file = format!("{folder}/{name}.md");
            let text = std::fs::read_to_string(&path).unwrap();
            let is_run = match folder {
                "docs" | "docs/ja" => source.contains(&format!("check(\"{file}\")")),
                _ => source.contains(&format!("\"{name}\"")),
            };
            assert!(is_run || scripts(&file, &text, false).is_empty(), "{file} is not run");
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
}

/// Links between documents name files, and headings in them, that exist.
#[test]
fn links_have_targets() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &Path| std::fs::read_to_string(file).unwrap();
    let mut seen = 0;
    for folder in ["", "docs", "docs/ja", "docs/campaigns", "docs/benchmarks"] {
        for entry in std::fs::read_dir(top.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|end| end != "md") {
                continue;
            }
            for link in links(&read(&path)) {
                let (file, heading) = link.split_once('#').unwrap_or((&link, ""));
                let target = match file {
                    "" => path.clone(),
                    file => path.parent().unwrap().join(file),
                };
                assert!(target.exists(), "{}: {link}", path.display());
                let found = || anchors(&read(&target)).iter().any(|anchor| anchor == heading);
                assert!(heading.is_empty() || found(), "{}: {link}", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 100, "{seen}");
}

/// Targets of the links of a document, without those to other sites.
fn links(markdown: &str) -> Vec<String> {
    let targets = markdown.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://")).map(str::to_owned).collect()
}

/// Headings of a document as GitHub makes anchors of them.
fn anchors(markdown: &str) -> Vec<String> {
    let headings = markdown.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let text = heading.trim_start_matches(['#', ' ']).to_lowercase();
        let kept = text.chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>()
    };
    headings.map(anchor).collect()
}

/// The catalogue of docs/explain.md is the one that the verdict's own tests compare with what it says.
#[test]
fn catalogue_of_bottlenecks() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| std::fs::read_to_string(top.join(file)).unwrap();
    let text = read("docs/explain.md");
    let (_, shown) = text.split_once("<!-- catalogue -->\n\n").unwrap();
    let (shown, _) = shown.split_once("<!-- end of catalogue -->\n").unwrap();
    let said = read("crates/explain/src/verdict/tests/catalogue.md");
    assert!(shown.lines().count() > 200, "{shown}");
    assert!(
        shown == said,
        "write it anew: HAKOBU_WRITE_CATALOGUE=1 (crates/explain, catalogue.rs)"
    );
}

#[test]
fn manual_pages() {
    if !can_run() {
        return;
    }
    let page = run_command(&program(), &["man"]).ok().out();
    let commands: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("\\fBhakobu\\-")?.strip_suffix("\\fR(1)"))
        .collect();
    assert!(commands.len() > 15, "{commands:?}");
    let mut all = Vec::new();
    // An agent alone has nobody to talk to.
    for command in commands.into_iter().filter(|command| *command != "agent") {
        let page = run_command(&program(), &["man", command]).ok().out();
        let found = examples(&format!("hakobu-{command}(1)"), &page);
        assert!(!found.is_empty(), "hakobu-{command}(1) has no examples");
        all.extend(found);
    }
    run(&all);
}

#[test]
fn a_wrong_line_fails() {
    if !can_run() {
        return;
    }
    let fence = "```";
    for (text, why) in [
        ("`hakobu cp -a nowhere copy`", "nowhere"),
        ("```sh\nhakobu verify src same    # exit code 1\n```", "exit code 0, not 1"),
        ("```console\n$ hakobu --version\nhakobu 0.0.1\n```", "hakobu 0.0.1"),
    ] {
        let text = text.replace("```", fence);
        let all = scripts("a text", &text, false);
        assert_eq!(all.len(), 1, "{text}");
        let failed = run_staged(&all[0]).unwrap_err();
        assert!(failed.contains(why), "{text}: {failed}");
    }
}

// Runs a script in an environment with everything that the documentation mentions: files, volumes, a store
// with buckets, results. It has its own namespaces, so that fixed ports, `/mnt` and `/srv` are free.

/// Runs a script; the error says what went wrong.
pub fn run_staged(script: &Script) -> Result<(), String> {
    let area = Area::tmpfs();
    std::fs::write(area.join("stage.sh"), include_str!("stage.sh")).unwrap();
    std::fs::write(area.join("script.sh"), &script.text).unwrap();
    let output = Command::new("timeout")
        .args(["-s", "KILL", "300", "unshare", "--mount", "--net", "--pid", "--fork"])
        .args(["--kill-child", "--mount-proc", "setsid", "bash", "-euo"])
        .args(["pipefail"])
        .arg(area.join("stage.sh"))
        .arg(area.path())
        .arg(program())
        .arg(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = std::fs::read_to_string(area.join("printed")).unwrap_or_default();
    let told = || {
        format!(
            "{}\n{}--- {}\n{printed}{}{}",
            script.place,
            script.text,
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    };
    if !output.status.success() {
        return Err(told());
    }
    match &script.output {
        Some(expected) if *expected != printed => {
            Err(format!("{}\n--- not as documented:\n{expected}", told()))
        }
        _ => Ok(()),
    }
}
