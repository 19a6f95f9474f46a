//! Report as one self-contained HTML page: loads no resources, is complete without scripts, and is
//! well-formed XML.

mod element;
mod sections;

use self::element::table;
use self::sections::{HtmlSection, sections};
use super::block::ReportBlock;
use super::escape::html;
use super::facts::ReportFacts;
use super::machines;
use super::part::ReportPart;
use super::words::ReportWords;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Most charts of single runs in a page: each takes about 25 kB.
const RUN_PICTURES_MAX: usize = 8;
/// Content security policy: no external resources.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// Renders the page.
///
/// # Errors
/// A message: a chart cannot be drawn.
pub(super) fn page(parts: &[ReportPart], words: &ReportWords) -> Result<String, String> {
    let all: Vec<ReportFacts<'_>> = parts.iter().map(ReportPart::facts).collect();
    let is_alone = all.len() == 1;
    let level = if is_alone { 2 } else { 3 };
    let pictures = RUN_PICTURES_MAX.div_ceil(all.len().max(1));
    let mut body = String::new();
    let headline = all.first().map_or(words.report, ReportFacts::title);
    body.push_str(&format!("<header>\n<h1>{}</h1>\n", html(headline)));
    if let [facts] = all.as_slice() {
        sections::origin(&mut body, facts, words);
    }
    body.push_str("</header>\n<main>\n");
    let mut contents: Vec<(String, String)> = Vec::new();
    if !is_alone {
        let text = machines_section(&all, words);
        contents.push(("machines".to_owned(), words.machines.to_owned()));
        body.push_str(&text);
    }
    for (i, (facts, name)) in all.iter().zip(machines::names(&all)).enumerate() {
        let prefix = format!("r{}", i + 1);
        if !is_alone {
            let heading = format!("{}: {}", name, facts.title());
            body.push_str(&format!("<article>\n<h2 id=\"{prefix}\">{}</h2>\n", html(&heading)));
            sections::origin(&mut body, facts, words);
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
pub(super) fn compared(headline: &str, blocks: &[ReportBlock], words: &ReportWords) -> String {
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
            element::blocks(&mut section.text, words.lang.code(), [block]);
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
    for (facts, name) in all.iter().zip(machines::names(all)) {
        text.push_str(&format!("<div class=\"verdict\"><strong>{}</strong>\n", html(&name)));
        sections::verdict(&mut text, facts, words);
        text.push_str("</div>\n");
    }
    table(&mut text, &machines::side_by_side(all, words));
    table(&mut text, &machines::fingerprints(all, words));
    let section = HtmlSection {
        id: "machines".to_owned(),
        title: words.machines.to_owned(),
        class: "",
        text,
    };
    section.text(2)
}
