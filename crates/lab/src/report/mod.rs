//! Reports: results and their analysis as one HTML page, Markdown, CSV of the raw runs, JSON of the analysis, SVG, and text
//! for a terminal. Pure and deterministic; the caller reads and writes files.

pub mod comparison;
mod csv;
mod document;
mod facts;
mod html;
mod json;
mod load_chart;
mod markdown;
mod number;
pub mod redact;
mod sentences;
mod sweep_chart;
mod tables;
pub mod terminal;
#[cfg(test)]
mod tests;
mod words;

use crate::analysis::{Analysis, analyse};
use crate::chart::{Chart, ChartLabel, WIDTH_PX};
use crate::report::facts::ReportFacts;
use crate::report::load_chart::timeline;
#[cfg(test)]
pub(crate) use crate::report::sentences::{said, said_of_comparison};
pub use crate::report::words::Language;
use crate::report::words::{ReportWords, words_in};
use crate::results::Results;
use serde::Serialize;

/// Format of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReportFormat {
    /// HTML page.
    #[default]
    Html,
    /// GitHub Flavored Markdown with tables.
    Markdown,
    /// Raw runs, one per line.
    Csv,
    /// Header and analysis.
    Json,
    /// All charts in one image.
    Svg,
    /// The same as a bitmap: [`render`] returns the SVG, which the caller rasterises.
    Png,
}

impl ReportFormat {
    /// Format by file name extension: `html`, `md`, `csv`, `json`, `svg`, `png`.
    pub fn of_name(name: &str) -> Option<ReportFormat> {
        match name {
            "html" | "htm" => Some(ReportFormat::Html),
            "md" | "markdown" => Some(ReportFormat::Markdown),
            "csv" => Some(ReportFormat::Csv),
            "json" => Some(ReportFormat::Json),
            "svg" => Some(ReportFormat::Svg),
            "png" => Some(ReportFormat::Png),
            _ => None,
        }
    }
}

/// Renders a report about one or more campaigns, machines or settings.
///
/// # Errors
/// A message: there are no results, or a chart cannot be drawn.
pub fn render(
    parts: &[ReportPart],
    format: ReportFormat,
    lang: Language,
) -> Result<String, String> {
    if parts.is_empty() {
        return Err("there are no results to report on".into());
    }
    let words = words_in(lang);
    match format {
        ReportFormat::Html => html::page(parts, words),
        ReportFormat::Markdown => Ok(markdown::text(parts, words)),
        ReportFormat::Csv => Ok(csv::text(parts)),
        ReportFormat::Json => json::results_json(parts),
        ReportFormat::Svg | ReportFormat::Png => charts_svg(parts, words),
    }
}

/// Results of a campaign with their analysis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportPart {
    /// Results.
    pub results: Results,
    /// Analysis of the results.
    pub analysis: Analysis,
}

impl ReportPart {
    /// Analyses results.
    pub fn new(results: Results) -> ReportPart {
        let analysis = analyse(&results);
        ReportPart { results, analysis }
    }

    /// The facts of a report about it.
    fn facts(&self) -> ReportFacts<'_> {
        ReportFacts {
            results: &self.results,
            analysis: &self.analysis,
            time: None,
            is_sorted: false,
        }
    }
}

/// Version of the schema, increased by changes other than new fields.
const SCHEMA: u32 = 1;

/// Formats a document of this schema with a newline. Numbers that are not finite are `null`.
fn json_document(content: &impl Serialize) -> Result<String, String> {
    #[derive(Serialize)]
    struct VersionedDocument<'a, T> {
        schema: u32,
        #[serde(flatten)]
        content: &'a T,
    }
    let text = serde_json::to_string_pretty(&VersionedDocument { schema: SCHEMA, content });
    text.map(|text| text + "\n").map_err(|why| format!("cannot write JSON: {why}"))
}

/// Formats the file.
///
/// # Errors
/// A message: nothing was measured, or a chart cannot be drawn.
fn charts_svg(parts: &[ReportPart], words: &'static ReportWords) -> Result<String, String> {
    let mut pictures = Vec::new();
    // Without a page around it, a chart says itself what it shows.
    let mut add = |chart: &Chart, title: &str, description: &str| -> Result<(), String> {
        let id = format!("picture-{}", pictures.len() + 1);
        let chart = Chart { title: title.to_owned(), ..chart.clone() };
        pictures.push(chart.svg_with(ChartLabel { id: &id, title, description })?);
        Ok(())
    };
    for part in parts {
        let facts = part.facts();
        for group in facts.groups() {
            if let Some(of) = sweep_chart::picture(&facts, group, words) {
                add(&of.chart, &of.title, &of.description)?;
            }
        }
        if let Some(load) = timeline(&facts, words) {
            add(&load.chart, &load.caption, &load.description)?;
        }
    }
    match pictures.as_slice() {
        [] => Err("nothing was measured that could be drawn".into()),
        [one] => Ok(one.clone()),
        several => stack_charts(several),
    }
}

/// Stacks charts in one image; each keeps its size.
fn stack_charts(pictures: &[String]) -> Result<String, String> {
    let (mut inside, mut height) = (String::new(), 0u32);
    for picture in pictures {
        let begin = format!("<svg y=\"{height}\" ");
        inside.push_str(&picture.replacen("<svg ", &begin, 1));
        height = height.saturating_add(height_px(picture).ok_or("a picture has no height")?);
    }
    Ok(format!(
        "<svg width=\"{WIDTH_PX}\" height=\"{height}\" viewBox=\"0 0 {WIDTH_PX} {height}\" \
         xmlns=\"http://www.w3.org/2000/svg\">\n{inside}</svg>\n"
    ))
}

/// Height attribute of a chart.
fn height_px(picture: &str) -> Option<u32> {
    let tag = picture.split('>').next()?;
    tag.split(" height=\"").nth(1)?.split('"').next()?.parse().ok()
}
