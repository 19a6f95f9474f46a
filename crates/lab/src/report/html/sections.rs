//! Sections of a campaign's results, in order.

use super::element::{self, folded, list, load, paragraph, picture, table};
use crate::report::block::{self, ReportBlock};
use crate::report::escape::html;
use crate::report::facts::ReportFacts;
use crate::report::load::{timeline, typical};
use crate::report::words::{ReportWords, with};
use crate::report::{record, sweep, tables};

/// A section.
pub(super) struct HtmlSection {
    pub(super) id: String,
    pub(super) title: String,
    /// CSS class of the element; may be empty.
    pub(super) class: &'static str,
    pub(super) text: String,
}

impl HtmlSection {
    /// Renders the element, with a heading of this level.
    pub(super) fn text(&self, level: usize) -> String {
        let class = match self.class {
            "" => String::new(),
            class => format!(" class=\"{class}\""),
        };
        format!(
            "<section{class} aria-labelledby=\"{id}\">\n<h{level} id=\"{id}\">{}</h{level}>\n{}\
             </section>\n",
            html(&self.title),
            self.text,
            id = self.id
        )
    }
}

/// Question, date and programs.
pub(super) fn origin(out: &mut String, facts: &ReportFacts<'_>, words: &ReportWords) {
    let header = facts.header();
    if !header.question.is_empty() {
        paragraph(out, &header.question);
    }
    out.push_str(&format!("<p class=\"soft\">{}</p>\n", html(&record::origin(facts, words))));
}

/// Sentences of the verdict.
pub(super) fn verdict(out: &mut String, facts: &ReportFacts<'_>, words: &ReportWords) {
    list(out, words.lang.code(), &facts.analysis.verdict);
}

/// Renders all sections; `pictures` is the number of single runs to draw.
///
/// # Errors
/// A chart cannot be drawn.
pub(super) fn sections(
    facts: &ReportFacts<'_>,
    words: &ReportWords,
    prefix: &str,
    level: usize,
    pictures: usize,
) -> Result<Vec<HtmlSection>, String> {
    let mut found = Vec::new();
    let mut add = |name: &str, title: &str, class: &'static str, text: String| {
        let id = format!("{prefix}-{name}");
        found.push(HtmlSection { id, title: title.to_owned(), class, text });
    };
    let mut text = String::new();
    verdict(&mut text, facts, words);
    add("verdict", words.verdict, "verdict", text);
    add("sweep", sweep_title(facts, words), "", groups(facts, words, prefix, level)?);
    add("tools", words.tools, "", tools(facts, words));
    let shown = |blocks: &[ReportBlock]| {
        let mut text = String::new();
        element::blocks(&mut text, words.lang.code(), blocks);
        text
    };
    let none = || [ReportBlock::Text(words.no_proofs.to_owned())];
    let proofs = block::proofs(facts, words).map_or_else(|| shown(&none()), |found| shown(&found));
    add("proofs", words.proofs, "", proofs);
    add("controls", words.controls, "", shown(&block::controls(facts, words)));
    add("load", words.load, "", loads(facts, words, prefix, pictures)?);
    add("caveats", words.caveats, "", shown(&block::caveats(facts, words)));
    add("machine", words.machine, "", shown(&block::machine(facts, words)));
    add("runs", words.raw_runs, "", runs(facts, words));
    Ok(found)
}

fn sweep_title<'a>(facts: &ReportFacts<'_>, words: &'a ReportWords) -> &'a str {
    let is_swept = facts.header().cells.iter().any(|cell| cell.x.is_some());
    if is_swept { words.sweep } else { words.comparison }
}

/// For each group: chart, table, knee and fit; then published figures.
fn groups(
    facts: &ReportFacts<'_>,
    words: &ReportWords,
    prefix: &str,
    level: usize,
) -> Result<String, String> {
    let mut text = String::new();
    let all = facts.groups();
    for (i, group) in all.iter().enumerate() {
        if all.len() > 1 {
            let below = level + 1;
            text.push_str(&format!("<h{below}>{}</h{below}>\n", html(words.group(group))));
        }
        if let Some(found) = sweep::picture(facts, group, words) {
            picture(&mut text, &format!("{prefix}-sweep-{}", i + 1), &found)?;
        }
        let found = tables::sweep(facts, group, words);
        if !found.is_empty() {
            table(&mut text, &found);
            table(&mut text, &tables::lines(facts, group, words));
        }
    }
    table(&mut text, &tables::published(facts, words));
    Ok(text)
}

fn tools(facts: &ReportFacts<'_>, words: &ReportWords) -> String {
    let mut text = String::new();
    for group in facts.groups() {
        table(&mut text, &tables::tools(facts, group, words));
    }
    let mut inside = String::new();
    table(&mut inside, &tables::settings(facts, words));
    folded(&mut text, words.all_settings, &inside);
    text
}

fn loads(
    facts: &ReportFacts<'_>,
    words: &ReportWords,
    prefix: &str,
    pictures: usize,
) -> Result<String, String> {
    let mut text = String::new();
    let Some(all) = timeline(facts, words) else {
        paragraph(&mut text, words.no_load);
        return Ok(text);
    };
    load(&mut text, &format!("{prefix}-load-0"), &all, words)?;
    for (i, one) in typical(facts, pictures, words).iter().enumerate() {
        load(&mut text, &format!("{prefix}-load-{}", i + 1), one, words)?;
    }
    paragraph(&mut text, words.load_more);
    Ok(text)
}

fn runs(facts: &ReportFacts<'_>, words: &ReportWords) -> String {
    let (raw, count) = tables::runs(facts, words);
    let mut inside = String::new();
    if raw.rows.len() < count {
        let parts = [raw.rows.len().to_string(), count.to_string()];
        paragraph(&mut inside, &with(words.raw_some, &[&parts[0], &parts[1]]));
    }
    table(&mut inside, &raw);
    let mut text = String::new();
    folded(&mut text, words.raw_runs, &inside);
    let mut inside = String::new();
    table(&mut inside, &record::commands(facts, words));
    folded(&mut text, words.commands, &inside);
    if !facts.header().text.is_empty() {
        let inside = format!("<pre>{}</pre>\n", html(&facts.header().text));
        folded(&mut text, words.campaign, &inside);
    }
    text
}
