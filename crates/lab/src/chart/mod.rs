//! Charts: stacked panels of series over a common axis, as SVG text. Deterministic. Charts contain numbers
//! and labels only; callers define their meaning.

mod axis;
mod draw;
mod escape;
mod page;
#[cfg(test)]
mod tests;

pub(crate) use escape::{html, shown};

/// Width of every chart, pixels.
pub const WIDTH_PX: u32 = 1000;
/// Left end of the common axis, pixels.
pub const PLOT_LEFT_PX: u32 = 80;
/// Right end of the common axis, pixels.
pub const PLOT_RIGHT_PX: u32 = 976;

/// Red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Color(pub u8, pub u8, pub u8);

/// Colours that remain distinguishable in print and with colour blindness (Paul Tol, "Colour Schemes", bright
/// scheme).
pub mod color {
    use super::Color;

    /// First colour.
    pub const BLUE: Color = Color(0x44, 0x77, 0xaa);
    /// Second colour.
    pub const RED: Color = Color(0xee, 0x66, 0x77);
    /// Third colour.
    pub const GREEN: Color = Color(0x22, 0x88, 0x33);
    /// Fourth colour.
    pub const YELLOW: Color = Color(0xcc, 0xbb, 0x44);
    /// Fifth colour.
    pub const CYAN: Color = Color(0x66, 0xcc, 0xee);
    /// Sixth colour.
    pub const PURPLE: Color = Color(0xaa, 0x33, 0x77);
    /// For annotations.
    pub const BLACK: Color = Color(0x33, 0x33, 0x33);
    /// All colours in the order of use.
    pub const ALL: [Color; 6] = [BLUE, RED, GREEN, YELLOW, CYAN, PURPLE];
}

/// Form of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A filled area stacked on the areas before it in the panel. All areas of a panel share their x
    /// positions.
    Area,
    /// A line.
    Line,
    /// A thin line, for computed curves.
    Thin,
    /// A line with a dot at each point.
    Dots,
    /// A line with a triangle at each point.
    Triangles,
    /// Rings around points, without a line.
    Rings,
    /// Vertical bars between pairs of consecutive points.
    Intervals,
    /// Filled boxes, each from two opposite corners.
    Boxes,
}

/// Scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    #[default]
    Linear,
    /// Requires positive numbers; an axis from 0 or below falls back to linear.
    Logarithmic,
}

/// A series of points.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Name in the legend; empty to omit it.
    pub name: String,
    /// Colour.
    pub color: Color,
    /// Form.
    pub form: Form,
    /// Points (x, y) with ascending x, all finite.
    pub points: Vec<(f64, f64)>,
}

/// Series with a common y axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// Headline.
    pub title: String,
    /// Unit of the y axis.
    pub unit: String,
    /// Top of the y axis; `None` for a little above the largest number.
    pub top: Option<f64>,
    /// Scale of the y axis.
    pub scale: Scale,
    /// Ticks with labels; chosen automatically if empty.
    pub ticks: Vec<(f64, String)>,
    /// Height in pixels without the x axis labels; `None` for the default.
    pub height_px: Option<u32>,
    /// Series.
    pub series: Vec<Series>,
}

/// A chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// Headline.
    pub title: String,
    /// Label of the x axis, with unit.
    pub x_label: String,
    /// Range of the x axis.
    pub x: (f64, f64),
    /// Scale of the x axis.
    pub scale: Scale,
    /// Ticks of the x axis with labels; chosen automatically if empty.
    pub ticks: Vec<(f64, String)>,
    /// Panels from top to bottom.
    pub panels: Vec<Panel>,
    /// True to give all panels the same y range, so that they can be compared.
    pub same_range: bool,
}

/// Accessible name and description of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words<'a> {
    /// Identifier, unique in the page: letters, digits, dashes.
    pub id: &'a str,
    /// Short name.
    pub title: &'a str,
    /// Description of the content.
    pub description: &'a str,
}

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
    pub fn svg_with(&self, words: Words<'_>) -> Result<String, String> {
        Ok(page::labelled(&self.drawn(true)?, words))
    }

    /// SVG element for an HTML page that defines the colours: `currentColor` for text, `var(--grid)`,
    /// `var(--blue)`, `var(--red)` and so on.
    ///
    /// # Errors
    /// As [`Chart::svg`].
    pub fn svg_for_page(&self, words: Words<'_>) -> Result<String, String> {
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
