//! Reports: results and their analysis as one HTML page, Markdown for an article, CSV of the raw
//! runs, JSON of the analysis, SVG, and text for a terminal. All pure: the same results always make
//! the same text. Reading and writing is the caller's.

mod compared;
mod csv;
mod escape;
mod facts;
mod html;
mod json;
mod load;
mod machines;
mod markdown;
mod number;
mod record;
mod sentences;
mod svg;
mod sweep;
mod table;
mod tables;
pub mod terminal;
#[cfg(test)]
mod tests;
mod words;

pub use compared::render as render_compared;
pub use words::Lang;

use crate::analysis::{Analysis, analyse_in};
use crate::results::Results;

/// One campaign's results, and what they say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// What was measured.
    pub results: Results,
    /// What that means.
    pub analysis: Analysis,
}

impl Part {
    /// Results, analysed in a language.
    pub fn new(results: Results, lang: Lang) -> Part {
        let analysis = analyse_in(&results, lang);
        Part { results, analysis }
    }

    fn facts(&self) -> facts::Facts<'_> {
        facts::Facts { results: &self.results, analysis: &self.analysis }
    }
}

/// What a report is written as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// A page for a browser.
    #[default]
    Html,
    /// Markdown with tables (GitHub Flavored Markdown), for an article or an issue.
    Markdown,
    /// Raw runs, one a line.
    Csv,
    /// Header and analysis.
    Json,
    /// The pictures below each other.
    Svg,
}

impl Format {
    /// The format of a name: `html`, `md`, `csv`, `json`, `svg`, as file names end.
    pub fn of_name(name: &str) -> Option<Format> {
        match name {
            "html" | "htm" => Some(Format::Html),
            "md" | "markdown" => Some(Format::Markdown),
            "csv" => Some(Format::Csv),
            "json" => Some(Format::Json),
            "svg" => Some(Format::Svg),
            _ => None,
        }
    }

    /// The language of sentences in this form: what is read by programs is the same in every one.
    pub fn lang(self, asked: Lang) -> Lang {
        match self {
            Format::Csv | Format::Json => Lang::En,
            Format::Html | Format::Markdown | Format::Svg => asked,
        }
    }
}

/// The report about one or more campaigns, machines or settings. Parts have to be analysed in the
/// language of the report ([`Format::lang`]).
///
/// # Errors
/// A sentence: there are no results, or something cannot be drawn.
pub fn render(parts: &[Part], format: Format, lang: Lang) -> Result<String, String> {
    if parts.is_empty() {
        return Err("there are no results to report on".into());
    }
    let words = lang.words();
    match format {
        Format::Html => html::page(parts, words),
        Format::Markdown => Ok(markdown::text(parts, words)),
        Format::Csv => Ok(csv::text(parts)),
        Format::Json => json::text(parts),
        Format::Svg => svg::text(parts, words),
    }
}
