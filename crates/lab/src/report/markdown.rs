//! Markdown for an article or an issue: the document without charts and raw runs.

use crate::escape::{markdown, terminal};
use crate::report::document::{ReportBlock, ReportSection, ReportTable, sections};
use crate::report::facts::ReportFacts;
use crate::report::words::ReportWords;
use crate::report::{ReportPart, tables};

/// Formats the document.
pub(super) fn text(parts: &[ReportPart], words: &'static ReportWords) -> String {
    let all: Vec<ReportFacts<'_>> = parts.iter().map(ReportPart::facts).collect();
    let mut out = String::new();
    let names = tables::names(&all);
    if all.len() > 1 {
        heading(&mut out, 1, words.machines);
        table(&mut out, &tables::side_by_side(&all, words));
    }
    for (facts, name) in all.iter().zip(names) {
        let title = facts.title_in(words.lang);
        match all.len() {
            1 => heading(&mut out, 1, title),
            _ => heading(&mut out, 1, &format!("{name}: {title}")),
        }
        let question = facts.question_in(words.lang);
        if !question.is_empty() {
            paragraph(&mut out, question);
        }
        paragraph(&mut out, &tables::origin(facts, words));
        for section in sections(facts, words, 0).into_iter().filter(is_shown) {
            let mut text = String::new();
            blocks(&mut text, &section.blocks, 3);
            if !text.trim().is_empty() {
                heading(&mut out, 2, &section.title);
                out.push_str(&text);
            }
        }
    }
    out
}

/// Charts and raw runs are left out.
fn is_shown(section: &ReportSection) -> bool {
    !matches!(section.name, "load" | "runs")
}

/// Formats blocks without charts.
pub(super) fn blocks(out: &mut String, blocks: &[ReportBlock], level: usize) {
    for block in blocks {
        match block {
            ReportBlock::Heading(text) => heading(out, level, text),
            ReportBlock::Text(text) | ReportBlock::Note(text) => paragraph(out, text),
            ReportBlock::List(texts) => list(out, texts),
            ReportBlock::Code(lines) => code(out, lines),
            ReportBlock::Table(of) => table(out, of),
            ReportBlock::Details(_, inside) => self::blocks(out, inside, level),
            ReportBlock::Chart(_) | ReportBlock::Load(_) => {}
        }
    }
}

pub(super) fn heading(out: &mut String, level: usize, text: &str) {
    if !out.is_empty() && !out.ends_with("\n\n") {
        out.push('\n');
    }
    out.push_str(&format!("{} {}\n\n", "#".repeat(level), markdown(text)));
}

fn paragraph(out: &mut String, text: &str) {
    out.push_str(&format!("{}\n\n", markdown(text)));
}

fn list(out: &mut String, texts: &[String]) {
    for text in texts {
        out.push_str(&format!("- {}\n", markdown(text)));
    }
    if !texts.is_empty() {
        out.push('\n');
    }
}

/// Between fences that are longer than those in the lines, which thus cannot end the block.
fn code(out: &mut String, lines: &[String]) {
    let lines: Vec<String> = lines.iter().map(|line| terminal(line)).collect();
    let longest = |line: &String| line.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(lines.iter().map(longest).max().unwrap_or(0).max(2) + 1);
    out.push_str(&format!("{fence}sh\n{}\n{fence}\n\n", lines.join("\n")));
}

fn table(out: &mut String, of: &ReportTable) {
    if of.is_empty() {
        return;
    }
    out.push_str(&format!("{}\n\n", markdown(&of.caption)));
    let line = |texts: &[String]| {
        let texts: Vec<String> = texts.iter().map(|text| markdown(text)).collect();
        format!("| {} |\n", texts.join(" | "))
    };
    out.push_str(&line(&of.head));
    let rule = of.numbers.iter().map(|number| if *number { "---:" } else { "---" });
    out.push_str(&format!("| {} |\n", rule.collect::<Vec<_>>().join(" | ")));
    for row in &of.rows {
        out.push_str(&line(row));
    }
    out.push('\n');
}
