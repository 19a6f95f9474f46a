//! Report as one self-contained HTML page: loads no resources, is complete without scripts, and is well-formed XML.
//! Foreign text is escaped by [`html`].

use crate::chart::{ChartLabel, PLOT_LEFT_PX, PLOT_RIGHT_PX};
use crate::escape::{html, json_in_script};
use crate::report::document::{ReportBlock, ReportTable};
use crate::report::facts::ReportFacts;
use crate::report::load_chart::{LoadChart, timeline, typical};
use crate::report::sweep_chart::DescribedChart;
use crate::report::words::{ReportWords, with};
use crate::report::{ReportPart, document, sweep_chart, tables};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Most charts of single runs in a page: each takes about 25 kB.
const RUN_PICTURES_MAX: usize = 8;
/// Content security policy: no external resources.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// Renders the page.
pub(super) fn page(parts: &[ReportPart], words: &ReportWords) -> Result<String, String> {
    let all: Vec<ReportFacts<'_>> = parts.iter().map(ReportPart::facts).collect();
    let is_alone = all.len() == 1;
    let level = if is_alone { 2 } else { 3 };
    let pictures = RUN_PICTURES_MAX.div_ceil(all.len().max(1));
    let mut body = String::new();
    let headline = all.first().map_or(words.report, ReportFacts::title);
    body.push_str(&format!("<header>\n<h1>{}</h1>\n", html(headline)));
    if let [facts] = all.as_slice() {
        origin(&mut body, facts, words);
    }
    body.push_str("</header>\n<main>\n");
    let mut contents: Vec<(String, String)> = Vec::new();
    if !is_alone {
        let text = machines_section(&all, words);
        contents.push(("machines".to_owned(), words.machines.to_owned()));
        body.push_str(&text);
    }
    for (i, (facts, name)) in all.iter().zip(tables::names(&all)).enumerate() {
        let prefix = format!("r{}", i + 1);
        if !is_alone {
            let heading = format!("{}: {}", name, facts.title());
            body.push_str(&format!("<article>\n<h2 id=\"{prefix}\">{}</h2>\n", html(&heading)));
            origin(&mut body, facts, words);
            contents.push((prefix.clone(), name));
        }
        let found = sections(facts, words, &prefix, level, pictures)?;
        for section in found {
            body.push_str(&section.text(level));
            if is_alone {
                contents.push((section.id, section.title));
            }
        }
        if !is_alone {
            body.push_str("</article>\n");
        }
    }
    body.push_str("</main>\n");
    Ok(document(headline, &contents, &body, words))
}

/// Renders a comparison as a page.
pub(super) fn comparison_page(
    headline: &str,
    blocks: &[ReportBlock],
    words: &ReportWords,
) -> String {
    let mut sections: Vec<HtmlSection> = Vec::new();
    for block in blocks {
        if let ReportBlock::Heading(title) = block {
            let id = format!("s{}", sections.len() + 1);
            // The first section is emphasised.
            let class = if sections.is_empty() { "verdict" } else { "" };
            sections.push(HtmlSection { id, title: title.clone(), class, text: String::new() });
            continue;
        }
        if let Some(section) = sections.last_mut() {
            push_blocks(&mut section.text, words.lang.code(), [block]);
        }
    }
    let mut body = format!("<header>\n<h1>{}</h1>\n</header>\n<main>\n", html(headline));
    body.extend(sections.iter().map(|section| section.text(2)));
    body.push_str("</main>\n");
    let contents: Vec<(String, String)> =
        sections.into_iter().map(|section| (section.id, section.title)).collect();
    document(headline, &contents, &body, words)
}

fn document(
    headline: &str,
    contents: &[(String, String)],
    body: &str,
    words: &ReportWords,
) -> String {
    let code = words.lang.code();
    format!(
        "<!DOCTYPE html>\n<html lang=\"{code}\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{}{body}\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        html(headline),
        navigation(contents, words)
    )
}

fn navigation(contents: &[(String, String)], words: &ReportWords) -> String {
    let links = contents
        .iter()
        .map(|(id, title)| format!("<li><a href=\"#{id}\">{}</a></li>\n", html(title)));
    let links: String = links.collect();
    format!("<nav aria-label=\"{}\"><ul>\n{links}</ul></nav>\n", html(words.contents))
}

/// Section that compares several machines.
fn machines_section(all: &[ReportFacts<'_>], words: &ReportWords) -> String {
    let mut text = String::new();
    for (facts, name) in all.iter().zip(tables::names(all)) {
        text.push_str(&format!("<div class=\"verdict\"><strong>{}</strong>\n", html(&name)));
        verdict(&mut text, facts, words);
        text.push_str("</div>\n");
    }
    table(&mut text, &tables::side_by_side(all, words));
    table(&mut text, &tables::fingerprints(all, words));
    let section = HtmlSection {
        id: "machines".to_owned(),
        title: words.machines.to_owned(),
        class: "",
        text,
    };
    section.text(2)
}

/// A section.
pub(super) struct HtmlSection {
    pub(super) id: String,
    pub(super) title: String,
    /// CSS class of the element; may be empty.
    class: &'static str,
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
    out.push_str(&format!("<p class=\"soft\">{}</p>\n", html(&tables::origin(facts, words))));
}

/// Sentences of the verdict.
pub(super) fn verdict(out: &mut String, facts: &ReportFacts<'_>, words: &ReportWords) {
    list(out, words.lang.code(), &facts.analysis.verdict);
}

/// Renders all sections; `pictures` is the number of single runs to draw.
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
        push_blocks(&mut text, words.lang.code(), blocks);
        text
    };
    let none = || [ReportBlock::Text(words.no_proofs.to_owned())];
    let proofs =
        document::proofs(facts, words).map_or_else(|| shown(&none()), |found| shown(&found));
    add("proofs", words.proofs, "", proofs);
    add("controls", words.controls, "", shown(&document::controls(facts, words)));
    add("load", words.load, "", loads(facts, words, prefix, pictures)?);
    add("caveats", words.caveats, "", shown(&document::caveats(facts, words)));
    add("machine", words.machine, "", shown(&document::machine(facts, words)));
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
        if let Some(found) = sweep_chart::picture(facts, group, words) {
            picture(&mut text, &format!("{prefix}-sweep-{}", i + 1), &found)?;
        }
        let found = tables::sweep(facts, group, words);
        if !found.is_empty() {
            table(&mut text, &found);
            table(&mut text, &tables::lines(facts, group, words));
        }
    }
    table(&mut text, &tables::published_table(facts, words));
    Ok(text)
}

fn tools(facts: &ReportFacts<'_>, words: &ReportWords) -> String {
    let mut text = String::new();
    for group in facts.groups() {
        table(&mut text, &tables::tools(facts, group, words));
    }
    let mut inside = String::new();
    table(&mut inside, &tables::settings(facts, words));
    collapsed_section(&mut text, words.all_settings, &inside);
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
    collapsed_section(&mut text, words.raw_runs, &inside);
    let mut inside = String::new();
    table(&mut inside, &tables::commands(facts, words));
    collapsed_section(&mut text, words.commands, &inside);
    if !facts.header().text.is_empty() {
        let inside = format!("<pre>{}</pre>\n", html(&facts.header().text));
        collapsed_section(&mut text, words.campaign, &inside);
    }
    text
}

/// Renders blocks without headings.
fn push_blocks<'a>(
    out: &mut String,
    lang: &str,
    blocks: impl IntoIterator<Item = &'a ReportBlock>,
) {
    for block in blocks {
        match block {
            // Headings belong to sections.
            ReportBlock::Heading(_) => {}
            ReportBlock::Text(text) => paragraph(out, text),
            ReportBlock::List(texts) => list(out, lang, texts),
            ReportBlock::Table(of) => table(out, of),
        }
    }
}

pub(super) fn paragraph(out: &mut String, text: &str) {
    out.push_str(&format!("<p>{}</p>\n", html(text)));
}

pub(super) fn list<'a>(out: &mut String, lang: &str, texts: impl IntoIterator<Item = &'a String>) {
    out.push_str(&format!("<ul lang=\"{lang}\">\n"));
    for text in texts {
        out.push_str(&format!("<li>{}</li>\n", html(text)));
    }
    out.push_str("</ul>\n");
}

pub(super) fn table(out: &mut String, of: &ReportTable) {
    if of.is_empty() {
        return;
    }
    out.push_str("<div class=\"wide\"><table>\n");
    out.push_str(&format!("<caption>{}</caption>\n<thead><tr>", html(&of.caption)));
    let class = |at: usize| match of.numbers.get(at) {
        Some(true) => " class=\"n\"",
        _ => "",
    };
    for (at, name) in of.head.iter().enumerate() {
        out.push_str(&format!("<th scope=\"col\"{}>{}</th>", class(at), html(name)));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for (row, is_strong) in of.rows.iter().zip(&of.strong) {
        out.push_str(if *is_strong { "<tr class=\"own\">" } else { "<tr>" });
        for (at, text) in row.iter().enumerate() {
            let (open, close) = if at == 0 { ("th scope=\"row\"", "th") } else { ("td", "td") };
            out.push_str(&format!("<{open}{}>{}</{close}>", class(at), html(text)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}

/// A collapsed section.
fn collapsed_section(out: &mut String, summary: &str, inside: &str) {
    out.push_str(&format!("<details><summary>{}</summary>\n{inside}</details>\n", html(summary)));
}

/// Chart of a sweep.
pub(super) fn picture(out: &mut String, id: &str, of: &DescribedChart) -> Result<(), String> {
    let words = ChartLabel { id, title: &of.chart.title, description: &of.description };
    let svg = of.chart.svg_for_page(words)?;
    out.push_str(&format!(
        "<figure>\n{svg}<figcaption>{}</figcaption>\n</figure>\n",
        html(&of.description)
    ));
    Ok(())
}

/// Chart of a load, with the data that the cursor reads.
pub(super) fn load(
    out: &mut String,
    id: &str,
    of: &LoadChart,
    said: &ReportWords,
) -> Result<(), String> {
    let words = ChartLabel { id, title: &of.caption, description: &of.description };
    let svg = of.chart.svg_for_page(words)?;
    let numbers = serde_json::to_string(&of.cursor).map_err(|why| why.to_string())?;
    out.push_str(&format!(
        "<figure data-left=\"{PLOT_LEFT_PX}\" data-right=\"{PLOT_RIGHT_PX}\">\n{svg}<figcaption>{}. \
         {}<span class=\"script\"> {}</span></figcaption>\n<output></output>\n\
         <script type=\"application/json\">{}</script>\n</figure>\n",
        html(&of.caption),
        html(&of.description),
        html(said.cursor),
        json_in_script(&numbers)
    ));
    Ok(())
}
