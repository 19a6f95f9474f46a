//! Markdown for an article or an issue: verdict, tables and caveats, without charts and raw runs.

use super::Part;
use super::escape::markdown;
use super::facts::Facts;
use super::machines;
use super::number::percent;
use super::record;
use super::table::Table;
use super::tables;
use super::words::{Words, with};

/// Formats the document.
pub(super) fn text(parts: &[Part], words: &Words) -> String {
    let all: Vec<Facts<'_>> = parts.iter().map(Part::facts).collect();
    let mut out = String::new();
    let names = machines::names(&all);
    if all.len() > 1 {
        heading(&mut out, 1, words.machines);
        table(&mut out, &machines::side_by_side(&all, words));
    }
    for (facts, name) in all.iter().zip(names) {
        let title = &facts.header().title;
        let title = if title.is_empty() { &facts.header().name } else { title };
        let title = if all.len() > 1 { format!("{name}: {title}") } else { title.clone() };
        heading(&mut out, 1, &title);
        one(&mut out, facts, words);
    }
    out
}

fn one(out: &mut String, facts: &Facts<'_>, words: &Words) {
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
            if let Some(found) = tables::sweep(facts, group, words) {
                table(out, &found);
            }
            table(out, &tables::lines(facts, group, words));
        }
    }
    if let Some(found) = tables::published(facts, words) {
        heading(out, 2, words.published);
        table(out, &found);
    }
    let proofs = tables::proofs(facts, words);
    if !proofs.is_empty() {
        heading(out, 2, words.proofs);
        table(out, &proofs);
        paragraph(out, words.elasticity_means);
    }
    heading(out, 2, words.controls);
    let controls = tables::controls(facts, words);
    if controls.is_empty() {
        paragraph(out, words.no_controls);
    }
    table(out, &controls);
    if let Some(noise) = facts.analysis.noise {
        paragraph(out, &with(words.noise, &[&percent(noise)]));
    }
    heading(out, 2, words.caveats);
    paragraph(out, &record::ending(facts, words));
    if facts.analysis.caveats.is_empty() {
        paragraph(out, words.no_caveats);
    }
    list(out, &facts.analysis.caveats);
    heading(out, 2, words.machine);
    paragraph(out, &record::origin(facts, words));
    table(out, &machines::fingerprints(&[*facts], words));
    table(out, &record::programs(facts, words));
    table(out, &record::data(facts, words));
    heading(out, 2, words.commands);
    table(out, &record::commands(facts, words));
}

pub(super) fn heading(out: &mut String, level: usize, text: &str) {
    if !out.is_empty() && !out.ends_with("\n\n") {
        out.push('\n');
    }
    out.push_str(&format!("{} {}\n\n", "#".repeat(level), markdown(text)));
}

pub(super) fn paragraph(out: &mut String, text: &str) {
    out.push_str(&format!("{}\n\n", markdown(text)));
}

pub(super) fn list(out: &mut String, texts: &[String]) {
    for text in texts {
        out.push_str(&format!("- {}\n", markdown(text)));
    }
    if !texts.is_empty() {
        out.push('\n');
    }
}

pub(super) fn table(out: &mut String, of: &Table) {
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
