//! Markdown for an article or an issue: verdict, tables and caveats, without charts and raw runs.

use crate::escape::markdown;
use crate::report::document::{ReportBlock, ReportTable};
use crate::report::facts::ReportFacts;
use crate::report::words::ReportWords;
use crate::report::{ReportPart, document, tables};

/// Formats the document.
pub(super) fn text(parts: &[ReportPart], words: &ReportWords) -> String {
    let all: Vec<ReportFacts<'_>> = parts.iter().map(ReportPart::facts).collect();
    let mut out = String::new();
    let names = tables::names(&all);
    if all.len() > 1 {
        heading(&mut out, 1, words.machines);
        table(&mut out, &tables::side_by_side(&all, words));
    }
    for (facts, name) in all.iter().zip(names) {
        let title = facts.title();
        match all.len() {
            1 => heading(&mut out, 1, title),
            _ => heading(&mut out, 1, &format!("{name}: {title}")),
        }
        campaign(&mut out, facts, words);
    }
    out
}

fn campaign(out: &mut String, facts: &ReportFacts<'_>, words: &ReportWords) {
    if !facts.header().question.is_empty() {
        paragraph(out, &facts.header().question);
    }
    heading(out, 2, words.verdict);
    list(out, &facts.analysis.verdict);
    heading(out, 2, words.tools);
    for group in facts.groups() {
        table(out, &tables::tools(facts, group, words));
    }
    table(out, &tables::settings(facts, words));
    let swept: Vec<&str> =
        facts.groups().into_iter().filter(|of| facts.has_x(&facts.lines(of))).collect();
    if !swept.is_empty() {
        heading(out, 2, words.sweep);
        for group in swept {
            table(out, &tables::sweep(facts, group, words));
            table(out, &tables::lines(facts, group, words));
        }
    }
    let published = tables::published_table(facts, words);
    if !published.is_empty() {
        heading(out, 2, words.published);
        table(out, &published);
    }
    if let Some(found) = document::proofs(facts, words) {
        heading(out, 2, words.proofs);
        blocks(out, &found);
    }
    heading(out, 2, words.controls);
    blocks(out, &document::controls(facts, words));
    heading(out, 2, words.caveats);
    blocks(out, &document::caveats(facts, words));
    heading(out, 2, words.machine);
    paragraph(out, &tables::origin(facts, words));
    blocks(out, &document::machine(facts, words));
    heading(out, 2, words.commands);
    table(out, &tables::commands(facts, words));
}

/// Formats blocks.
pub(super) fn blocks(out: &mut String, blocks: &[ReportBlock]) {
    for block in blocks {
        match block {
            ReportBlock::Heading(text) => heading(out, 2, text),
            ReportBlock::Text(text) => paragraph(out, text),
            ReportBlock::List(texts) => list(out, texts),
            ReportBlock::Table(of) => table(out, of),
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
