//! Charts: stacked panels of series over a common axis, as SVG text. Deterministic. Charts contain numbers
//! and labels only; callers define their meaning.

mod axis;
pub mod color;
mod draw;
mod escape;
mod page;
mod shape;
#[cfg(test)]
mod tests;

pub use color::ChartColor;
pub(crate) use escape::{html, shown};
pub use page::ChartLabel;
pub use shape::{
    AxisScale, Chart, ChartPanel, ChartSeries, PLOT_LEFT_PX, PLOT_RIGHT_PX, SeriesForm, WIDTH_PX,
};

impl Chart {
    /// SVG on white, ending with a newline.
    ///
    /// # Errors
    /// A message: a number is not finite, or there are too many panels.
    pub fn svg(&self) -> Result<String, String> {
        self.drawn(true)
    }

    /// SVG on white with an accessible name and description.
    ///
    /// # Errors
    /// As [`Chart::svg`].
    pub fn svg_with(&self, words: ChartLabel<'_>) -> Result<String, String> {
        Ok(page::labelled(&self.drawn(true)?, words))
    }

    /// SVG element for an HTML page that defines the colours: `currentColor` for text, `var(--grid)`,
    /// `var(--blue)`, `var(--red)` and so on.
    ///
    /// # Errors
    /// As [`Chart::svg`].
    pub fn svg_for_page(&self, words: ChartLabel<'_>) -> Result<String, String> {
        Ok(page::svg(&self.drawn(false)?, words))
    }

    fn drawn(&self, on_white: bool) -> Result<String, String> {
        let points = self.panels.iter().flat_map(|panel| &panel.series).flat_map(|s| &s.points);
        let mut numbers = points.flat_map(|(x, y)| [*x, *y]).chain([self.x.0, self.x.1]);
        if !numbers.all(f64::is_finite) {
            return Err("a number that is not finite cannot be drawn".into());
        }
        draw::svg(self, on_white).map_err(|why| format!("cannot draw: {why}"))
    }
}
