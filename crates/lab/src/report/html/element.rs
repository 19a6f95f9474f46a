//! HTML elements: tables, charts, lists. Foreign text is escaped by [`html`].

use crate::chart::{ChartLabel, PLOT_LEFT_PX, PLOT_RIGHT_PX};
use crate::report::block::ReportBlock;
use crate::report::escape::{html, json_in_script};
use crate::report::load::LoadChart;
use crate::report::sweep::DescribedChart;
use crate::report::table::ReportTable;
use crate::report::words::ReportWords;

/// Renders blocks without headings.
pub(super) fn blocks<'a>(
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
pub(super) fn folded(out: &mut String, summary: &str, inside: &str) {
    out.push_str(&format!("<details><summary>{}</summary>\n{inside}</details>\n", html(summary)));
}

/// Chart of a sweep.
///
/// # Errors
/// It cannot be drawn.
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
///
/// # Errors
/// It cannot be drawn.
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
