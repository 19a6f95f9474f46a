//! Reports: results and their analysis as one HTML page, Markdown, CSV of the raw runs, JSON of the analysis,
//! SVG, and text for a terminal. Pure and deterministic; the caller reads and writes files.

mod block;
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
mod part;
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
pub use part::Part;
pub use words::Lang;

/// Format of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
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

impl Format {
    /// Format by file name extension: `html`, `md`, `csv`, `json`, `svg`, `png`.
    pub fn of_name(name: &str) -> Option<Format> {
        match name {
            "html" | "htm" => Some(Format::Html),
            "md" | "markdown" => Some(Format::Markdown),
            "csv" => Some(Format::Csv),
            "json" => Some(Format::Json),
            "svg" => Some(Format::Svg),
            "png" => Some(Format::Png),
            _ => None,
        }
    }

    /// Language of the sentences in this format: formats for programs are always in English.
    pub fn lang(self, asked: Lang) -> Lang {
        match self {
            Format::Csv | Format::Json => Lang::En,
            Format::Html | Format::Markdown | Format::Svg | Format::Png => asked,
        }
    }
}

/// Renders a report about one or more campaigns, machines or settings. Parts must be analysed in the language
/// of the report ([`Format::lang`]).
///
/// # Errors
/// A message: there are no results, or a chart cannot be drawn.
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
        Format::Svg | Format::Png => svg::text(parts, words),
    }
}
