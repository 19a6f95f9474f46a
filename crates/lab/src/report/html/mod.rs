//! Report as one self-contained HTML page: loads no resources, is complete without scripts, and is well-formed XML.
//! Foreign text is escaped by [`html`].

use crate::chart::{Chart, ChartLabel, NARROW_PX};
use crate::escape::{html, json_in_script};
use crate::report::document::{RUN_PICTURES_MAX, ReportBlock, ReportTable, sections};
use crate::report::facts::ReportFacts;
use crate::report::load_chart::LoadChart;
use crate::report::sweep_chart::DescribedChart;
use crate::report::words::ReportWords;
use crate::report::{ReportPart, tables};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Content security policy: no external resources. The script draws charts as images of the page's own data.
const POLICY: &str =
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// Renders the page.
pub(super) fn page(parts: &[ReportPart], words: &'static ReportWords) -> Result<String, String> {
    let all: Vec<ReportFacts<'_>> = parts.iter().map(ReportPart::facts).collect();
    let is_alone = all.len() == 1;
    let level = if is_alone { 2 } else { 3 };
    let pictures = RUN_PICTURES_MAX.div_ceil(all.len().max(1));
    let headline = all.first().map_or(words.report, |facts| facts.title_in(words.lang));
    let mut page = HtmlPage { body: String::new(), contents: Vec::new(), words };
    page.body.push_str(&format!("<header>\n<h1>{}</h1>\n", html(headline)));
    if let [facts] = all.as_slice() {
        page.origin(facts);
    }
    page.body.push_str("</header>\n<main>\n");
    if !is_alone {
        page.machines(&all)?;
    }
    for (i, (facts, name)) in all.iter().zip(tables::names(&all)).enumerate() {
        let prefix = format!("r{}", i + 1);
        if !is_alone {
            let heading = format!("{name}: {}", facts.title_in(words.lang));
            let heading = html(&heading);
            page.body.push_str(&format!("<article>\n<h2 id=\"{prefix}\">{heading}</h2>\n"));
            page.origin(facts);
            page.contents.push((prefix.clone(), name));
        }
        for section in sections(facts, words, pictures) {
            let id = format!("{prefix}-{}", section.name);
            let class = if section.name == "verdict" { "verdict" } else { "" };
            page.section(&id, &section.title, class, level, &section.blocks)?;
            if is_alone {
                page.contents.push((id, section.title));
            }
        }
        if !is_alone {
            page.body.push_str("</article>\n");
        }
    }
    page.body.push_str("</main>\n");
    Ok(page.document(headline))
}

/// Renders a comparison as a page; its headings begin sections.
pub(super) fn comparison_page(
    headline: &str,
    blocks: &[ReportBlock],
    words: &'static ReportWords,
) -> Result<String, String> {
    let mut page = HtmlPage { body: String::new(), contents: Vec::new(), words };
    page.body.push_str(&format!("<header>\n<h1>{}</h1>\n</header>\n<main>\n", html(headline)));
    let is_heading = |block: &ReportBlock| matches!(block, ReportBlock::Heading(_));
    for (at, section) in blocks.chunk_by(|_, next| !is_heading(next)).enumerate() {
        let Some((ReportBlock::Heading(title), rest)) = section.split_first() else { continue };
        let id = format!("s{}", at + 1);
        // The first section is emphasised.
        page.section(&id, title, if at == 0 { "verdict" } else { "" }, 2, rest)?;
        page.contents.push((id, title.clone()));
    }
    page.body.push_str("</main>\n");
    Ok(page.document(headline))
}

/// A page that grows.
struct HtmlPage {
    body: String,
    /// Identifiers and titles of sections.
    contents: Vec<(String, String)>,
    words: &'static ReportWords,
}

impl HtmlPage {
    fn document(&self, headline: &str) -> String {
        let code = self.words.lang.code();
        let links = self
            .contents
            .iter()
            .map(|(id, title)| format!("<li><a href=\"#{id}\">{}</a></li>\n", html(title)));
        let (links, contents) = (links.collect::<String>(), html(self.words.contents));
        let (headline, body) = (html(headline), &self.body);
        format!(
            "<!DOCTYPE html>\n<html lang=\"{code}\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
             <title>{headline}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
             <nav aria-label=\"{contents}\"><ul>\n{links}</ul></nav>\n{body}\
             <script>\n{SCRIPT}</script>\n</body>\n</html>\n"
        )
    }

    /// Question, date and program.
    fn origin(&mut self, facts: &ReportFacts<'_>) {
        let question = facts.question_in(self.words.lang);
        if !question.is_empty() {
            self.paragraph(question, "");
        }
        self.paragraph(&tables::origin(facts, self.words), "soft");
    }

    /// Section that compares several machines.
    fn machines(&mut self, all: &[ReportFacts<'_>]) -> Result<(), String> {
        let words = self.words;
        let mut blocks = Vec::new();
        for (facts, name) in all.iter().zip(tables::names(all)) {
            blocks.push(ReportBlock::Heading(name));
            blocks.push(ReportBlock::List(facts.say(words).verdict(&facts.analysis.verdict)));
        }
        blocks.push(ReportBlock::Table(tables::side_by_side(all, words)));
        blocks.push(ReportBlock::Table(tables::fingerprints(all, words)));
        self.contents.push(("machines".to_owned(), words.machines.to_owned()));
        self.section("machines", words.machines, "verdict", 2, &blocks)
    }

    fn section(
        &mut self,
        id: &str,
        title: &str,
        class: &str,
        level: usize,
        blocks: &[ReportBlock],
    ) -> Result<(), String> {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        self.body.push_str(&format!(
            "<section{class} aria-labelledby=\"{id}\">\n<h{level} id=\"{id}\">{}</h{level}>\n",
            html(title)
        ));
        self.blocks(id, level + 1, blocks)?;
        self.body.push_str("</section>\n");
        Ok(())
    }

    fn blocks(&mut self, id: &str, level: usize, blocks: &[ReportBlock]) -> Result<(), String> {
        for (at, block) in blocks.iter().enumerate() {
            let id = format!("{id}-{}", at + 1);
            match block {
                ReportBlock::Heading(text) => {
                    self.body.push_str(&format!("<h{level}>{}</h{level}>\n", html(text)));
                }
                ReportBlock::Text(text) => self.paragraph(text, ""),
                ReportBlock::Note(text) => self.paragraph(text, "soft"),
                ReportBlock::List(texts) => self.list(texts),
                ReportBlock::Code(lines) => {
                    self.body.push_str(&format!("<pre>{}</pre>\n", html(&lines.join("\n"))));
                }
                ReportBlock::Table(of) => self.table(of),
                ReportBlock::Chart(of) => self.chart(&id, of)?,
                ReportBlock::Load(of) => self.load(&id, of)?,
                ReportBlock::Details(summary, inside) => {
                    let summary = html(summary);
                    self.body.push_str(&format!("<details><summary>{summary}</summary>\n"));
                    self.blocks(&id, level, inside)?;
                    self.body.push_str("</details>\n");
                }
            }
        }
        Ok(())
    }

    fn paragraph(&mut self, text: &str, class: &str) {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        self.body.push_str(&format!("<p{class}>{}</p>\n", html(text)));
    }

    fn list(&mut self, texts: &[String]) {
        self.body.push_str(&format!("<ul lang=\"{}\">\n", self.words.lang.code()));
        for text in texts {
            self.body.push_str(&format!("<li>{}</li>\n", html(text)));
        }
        self.body.push_str("</ul>\n");
    }

    /// A table. On a phone a compact one keeps its columns and the others become lists of named values, for
    /// which every cell has the name of its column.
    fn table(&mut self, of: &ReportTable) {
        if of.is_empty() {
            return;
        }
        let (class, columns) = match of.is_compact {
            true => (" class=\"compact\"", format!(" style=\"--columns: {}\"", of.head.len() - 2)),
            false => ("", String::new()),
        };
        let (md, csv) = (html(self.words.copy_markdown), html(self.words.copy_csv));
        let out = &mut self.body;
        let copies = match of.is_compact {
            true => format!(
                " data-md=\"{md}\" data-csv=\"{csv}\" data-done=\"{}\"",
                html(self.words.copied)
            ),
            false => String::new(),
        };
        out.push_str(&format!("<div class=\"wide\"{copies}><table{class}{columns}>\n"));
        out.push_str(&format!("<caption>{}</caption>\n<thead><tr>", html(&of.caption)));
        let number = |at: usize| match of.numbers.get(at) {
            Some(true) => " class=\"n\"",
            _ => "",
        };
        for (at, name) in of.head.iter().enumerate() {
            out.push_str(&format!("<th scope=\"col\"{}>{}</th>", number(at), html(name)));
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        let mut above = None;
        for (row, is_strong) in of.rows.iter().zip(&of.strong) {
            let is_first = above.replace(row.first()) != Some(row.first());
            let classes = [(*is_strong, "own"), (of.is_compact && is_first, "first")];
            let classes: Vec<&str> =
                classes.into_iter().filter(|(is, _)| *is).map(|(_, name)| name).collect();
            match classes.is_empty() {
                true => out.push_str("<tr>"),
                false => out.push_str(&format!("<tr class=\"{}\">", classes.join(" "))),
            }
            for (at, text) in row.iter().enumerate() {
                let text = cell(text, of.numbers.get(at) == Some(&true));
                if at == 0 {
                    out.push_str(&format!("<th scope=\"row\"{}>{text}</th>", number(at)));
                } else {
                    let label = of.head.get(at).map_or("", String::as_str);
                    let label = html(label);
                    out.push_str(&format!("<td{} data-label=\"{label}\">{text}</td>", number(at)));
                }
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
    }

    /// Chart of a group.
    fn chart(&mut self, id: &str, of: &DescribedChart) -> Result<(), String> {
        self.figure(&of.name, "");
        self.drawings(id, &of.chart, &of.title, &of.description, "")?;
        self.body.push_str("</figure>\n");
        Ok(())
    }

    /// Chart of a load, with the data that the cursor reads.
    fn load(&mut self, id: &str, of: &LoadChart) -> Result<(), String> {
        let numbers = serde_json::to_string(&of.cursor).map_err(|why| why.to_string())?;
        self.figure(&of.name, " data-cursor=\"\"");
        self.drawings(id, &of.chart, &of.caption, &of.description, "data-plot")?;
        self.body.push_str(&format!(
            "<figcaption><strong>{}</strong> {}<span class=\"script\"> {}</span></figcaption>\n\
             <output></output>\n<script type=\"application/json\">{}</script>\n</figure>\n",
            html(&of.caption),
            html(&of.description),
            html(self.words.cursor),
            json_in_script(&numbers)
        ));
        Ok(())
    }

    /// Begins a figure, whose chart the reader can save under this name.
    fn figure(&mut self, name: &str, attributes: &str) {
        let (name, save) = (file_name(name), html(self.words.save));
        self.body
            .push_str(&format!("<figure data-name=\"{name}\" data-save=\"{save}\"{attributes}>\n"));
    }

    /// The chart twice: for wide pages, and laid out anew for phones. Style shows one of them.
    fn drawings(
        &mut self,
        id: &str,
        chart: &Chart,
        title: &str,
        description: &str,
        plot: &str,
    ) -> Result<(), String> {
        let narrow = Chart { width_px: NARROW_PX, ..chart.clone() };
        for (chart, name) in [(chart, "large"), (&narrow, "small")] {
            let id = format!("{id}-{name}");
            let svg = chart.svg_for_page(ChartLabel { id: &id, title, description })?;
            let (left, right) = chart.plot();
            let ends = match plot.is_empty() {
                true => String::new(),
                false => format!(" data-left=\"{left}\" data-right=\"{right}\""),
            };
            let begin = format!("<svg class=\"{name}\"{ends} ");
            self.body.push_str(&svg.replacen("<svg ", &begin, 1));
        }
        Ok(())
    }
}

/// Name of a file: lower-case letters and digits, with dashes between them.
fn file_name(text: &str) -> String {
    let text = text.to_ascii_lowercase();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("-");
    if name.is_empty() { "chart".to_owned() } else { name }
}

/// Text of a cell. The interval of a number is smaller, and may begin a line of its own.
fn cell(text: &str, is_number: bool) -> String {
    match text.split_once(" [").filter(|_| is_number) {
        Some((value, interval)) => {
            format!("{} <small>[{}</small>", html(value), html(interval))
        }
        None => html(text),
    }
}
