//! The store of results: what stands in its files, and what reports make of it.

use hakobu_core::language::Language;
use hakobu_lab::report::{ReportFormat, ReportPart, render};
use hakobu_lab::results::read::parse;
use std::path::Path;

/// Up to the first NUL stands the file of runs, after it the file of curves. Both are refused with
/// a message that names the file and the line, or read; every form of report can be made of them.
pub fn check(data: &[u8]) {
    let (runs, curves) = match data.iter().position(|byte| *byte == 0) {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, &b""[..]),
    };
    let (a, b) = (Path::new("x/results.jsonl"), Path::new("x/samples.jsonl"));
    let results = match parse((a, runs), (b, curves), &|_| {}) {
        Ok(results) => results,
        Err(why) => return assert!(why.to_string().contains(".jsonl'"), "{why}"),
    };
    // Intervals are drawn again and again from the runs: many only cost time.
    if results.runs.len() > 24 || results.header.cells.len() > 8 {
        return;
    }
    for (format, lang) in [
        (ReportFormat::Html, Language::English),
        (ReportFormat::Markdown, Language::Japanese),
        (ReportFormat::Csv, Language::English),
        (ReportFormat::Json, Language::English),
        (ReportFormat::Svg, Language::English),
    ] {
        let part = ReportPart::new(results.clone());
        if let Err(why) = render(&[part], format, lang) {
            assert!(!why.is_empty());
        }
    }
}
