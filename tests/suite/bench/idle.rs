//! Warnings about commands that find their work done from the second run on.

use crate::bench::bench;
use crate::common::area::{Area, Fs};
use crate::common::have;
use std::fs;
use std::path::Path;

const WARNING: &str = "The second run wrote far less than the first";

/// A folder `src` with some megabytes in it.
fn source(area: &Area) {
    fs::create_dir(area.join("src")).unwrap();
    for number in 0..40 {
        let content: Vec<u8> = (0..100_000_u32).map(|n| (n * 31 + number) as u8).collect();
        fs::write(area.join(&format!("src/f{number}")), content).unwrap();
    }
}

#[test]
fn a_second_run_that_finds_its_work_done_is_told() {
    for fs in [Fs::Tmpfs, Fs::Ext4] {
        let Some(area) = Area::new(fs, "a second run on a file system") else { continue };
        source(&area);
        let commands = ["cp -u -r src/. dst", "rm -rf other && cp -r src other"];
        let setup = ["--setup", "mkdir -p dst"];
        let ran = bench(&area, &[&["-r", "3"], &setup[..], &commands[..]].concat());
        ran.ok();
        assert!(ran.out().contains(WARNING) && ran.out().contains("--prepare"), "{ran}");
        let text = ran.out();
        let line = text.lines().find(|line| line.contains(WARNING)).unwrap();
        assert!(!line.contains("other"), "{line}");
        // No warning if each run is prepared, nor for commands that write nothing or little.
        for options in [
            &["--prepare", "rm -rf dst; mkdir dst", commands[0], commands[1]][..],
            &["-w", "1", "sleep 0.01", "cat src/f1", "echo once >> little"],
        ] {
            let _ = fs::remove_dir_all(area.join("out"));
            let ran = bench(&area, &[&["-r", "3"], options].concat());
            ran.ok();
            assert!(!ran.out().contains(WARNING), "{options:?}: {ran}");
        }
    }
}

/// Commands of a line of the README that starts with `bench`, as split by a shell.
fn example(readme: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(readme);
    let text = fs::read_to_string(path).unwrap();
    text.lines().find(|line| line.starts_with("hakobu bench ")).unwrap().to_owned()
}

/// The first example of the README works: each run copies everything.
#[test]
fn the_first_example_of_the_readme_is_true() {
    if !have("rsync", "the first example") {
        return;
    }
    assert_eq!(example("README.md"), example("README.ja.md"));
    let area = Area::tmpfs();
    source(&area);
    let words = example("README.md");
    let words = words.strip_prefix("hakobu bench ").unwrap();
    assert!(words.starts_with("-r 3 "), "{words}");
    // The program of these tests under its name; results where they are found.
    let bin = area.join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(crate::bench::program(), bin.join("hakobu")).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &format!("hakobu bench -o out {words}")]).env("PATH", path);
    command.env("XDG_STATE_HOME", area.join("state")).env("XDG_CACHE_HOME", area.join("cache"));
    let output = command.current_dir(area.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && !text.contains(WARNING), "{text}");
    let runs = crate::bench::runs(&area);
    // Three commands and a control, three times each.
    assert_eq!(runs.len(), 12);
    for run in runs {
        let written = run["written_bytes"].as_u64().unwrap();
        assert!(run["ok"] == true && written >= 4_000_000, "{run}");
    }
    for number in 0..40 {
        let name = format!("f{number}");
        let both = ["src", "dst"].map(|dir| fs::read(area.join(dir).join(&name)).unwrap());
        assert_eq!(both[0], both[1]);
    }
}
