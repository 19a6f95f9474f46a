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
pub use part::ReportPart;
pub use words::Lang;

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

    /// Language of the sentences in this format: formats for programs are always in English.
    pub fn lang(self, asked: Lang) -> Lang {
        match self {
            ReportFormat::Csv | ReportFormat::Json => Lang::En,
            ReportFormat::Html | ReportFormat::Markdown | ReportFormat::Svg | ReportFormat::Png => {
                asked
            }
        }
    }
}

/// Renders a report about one or more campaigns, machines or settings. Parts must be analysed in the language
/// of the report ([`ReportFormat::lang`]).
///
/// # Errors
/// A message: there are no results, or a chart cannot be drawn.
pub fn render(parts: &[ReportPart], format: ReportFormat, lang: Lang) -> Result<String, String> {
    if parts.is_empty() {
        return Err("there are no results to report on".into());
    }
    let words = lang.words();
    match format {
        ReportFormat::Html => html::page(parts, words),
        ReportFormat::Markdown => Ok(markdown::text(parts, words)),
        ReportFormat::Csv => Ok(csv::text(parts)),
        ReportFormat::Json => json::results_json(parts),
        ReportFormat::Svg | ReportFormat::Png => svg::charts_svg(parts, words),
    }
}
