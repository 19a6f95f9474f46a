//! The page in a real headless browser: light and dark, with and without scripts, and for print. The console
//! stays empty, only the page is requested, and content is visible.

use crate::common::area::Area;
use crate::common::{have, must, skip};
use crate::report::folder::{Recipe, USUAL, make};
use crate::report::report;
use std::path::PathBuf;
use std::process::Command;

/// Command names of this family of browsers.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path)
        .flat_map(|dir| NAMES.map(|name| dir.join(name)))
        .filter(|program| program.is_file());
    let found = places.next();
    if found.is_none() {
        skip("the report in a browser: needs chromium");
    }
    found
}

#[test]
fn the_page_in_a_browser() {
    let Some(browser) = browser() else { return };
    if !have("python3", "the report in a browser") {
        return;
    }
    let area = Area::tmpfs();
    make(&area.path().join("a"), &USUAL);
    make(&area.path().join("b"), &Recipe { machine: "other", slower: 3.0, ..USUAL });
    for line in ["a -o page.html", "a b -o page.html --lang ja"] {
        report(area.path(), &line.split(' ').collect::<Vec<_>>()).ok();
        let shots = area.path().join("shots");
        std::fs::create_dir_all(&shots).unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/report/browse.py");
        let page = area.path().join("page.html");
        let mut command = Command::new("python3");
        command.arg(script).arg(&browser).arg(&page).arg(&shots);
        let text = String::from_utf8(must(&mut command)).unwrap();
        let seen: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(seen.len(), 5, "{text}");
        for one in &seen {
            let number = |name: &str| one[name].as_f64().unwrap();
            assert_eq!(one["console"], serde_json::json!([]), "{one}");
            let asked = one["asked"].as_array().unwrap();
            assert!(asked.len() == 1 && asked[0].as_str().unwrap().ends_with("page.html"), "{one}");
            // Text and charts on a mostly blank background.
            assert!(number("colours") > 50.0, "a blank page: {one}");
            assert!((0.3..0.98).contains(&number("commonest")), "{one}");
            let is_printed = one["print"] == true;
            let is_dark = one["dark"] == true && !is_printed;
            assert_eq!(number("light") < 0.5, is_dark, "{one}");
            if is_printed {
                // Collapsed sections are expanded, and what cannot be used on paper is hidden.
                assert_eq!((&one["closed"], &one["shown"]), (&0.into(), &0.into()), "{one}");
                continue;
            }
            let cursor = one["cursor"].as_str().unwrap();
            let reads = cursor.contains("user ") && cursor.contains(" s · ");
            assert_eq!(reads, one["scripts"] == true, "{one}");
        }
        std::fs::remove_dir_all(&shots).unwrap();
    }
}
