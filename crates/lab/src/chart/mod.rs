//! Pictures: panels of series over one axis, below each other, as SVG text. The same data always
//! makes the same text. Who draws decides what the numbers mean; here they only get axes.

mod axis;
mod draw;
mod escape;
mod page;
#[cfg(test)]
mod tests;

pub(crate) use escape::{html, shown};

/// Width of every picture, in pixels.
pub const WIDTH_PX: u32 = 1000;
/// Where the axis over all panels begins, in pixels from the left.
pub const PLOT_LEFT_PX: u32 = 80;
/// Where it ends.
pub const PLOT_RIGHT_PX: u32 = 976;

/// Red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Color(pub u8, pub u8, pub u8);

/// Colours that stay apart in print and for people who see fewer of them (Paul Tol, "Colour
/// Schemes", the bright scheme).
pub mod color {
    use super::Color;

    /// The first to take.
    pub const BLUE: Color = Color(0x44, 0x77, 0xaa);
    /// The second.
    pub const RED: Color = Color(0xee, 0x66, 0x77);
    /// The third.
    pub const GREEN: Color = Color(0x22, 0x88, 0x33);
    /// The fourth.
    pub const YELLOW: Color = Color(0xcc, 0xbb, 0x44);
    /// The fifth.
    pub const CYAN: Color = Color(0x66, 0xcc, 0xee);
    /// The sixth.
    pub const PURPLE: Color = Color(0xaa, 0x33, 0x77);
    /// For what stands beside the matter.
    pub const BLACK: Color = Color(0x33, 0x33, 0x33);
    /// In the order in which they are taken.
    pub const ALL: [Color; 6] = [BLUE, RED, GREEN, YELLOW, CYAN, PURPLE];
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A filled area on top of the areas before it in the same panel. All areas of a panel have
    /// their points at the same places.
    Area,
    /// A line.
    Line,
    /// A thin line: something computed.
    Thin,
    /// A line with a dot at each point.
    Dots,
    /// A line with a triangle at each point.
    Triangles,
    /// Rings around points, without a line.
    Rings,
    /// Upright bars, each from one point to the next: points come in pairs.
    Intervals,
    /// Filled boxes; points come in pairs, two opposite corners.
    Boxes,
}

/// How numbers lie along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    #[default]
    Linear,
    /// By their logarithms. Numbers must be above nought; an axis that would begin at nought or
    /// below is drawn evenly.
    Logarithmic,
}

/// Numbers over the axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What the legend calls it; empty: it is not in the legend.
    pub name: String,
    /// Its colour.
    pub color: Color,
    /// How it is drawn.
    pub form: Form,
    /// (place, number), places ascending, all finite.
    pub points: Vec<(f64, f64)>,
}

/// Series with one pair of axes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// Its headline.
    pub title: String,
    /// The unit of its numbers, beside the axis.
    pub unit: String,
    /// The top of the axis; otherwise a little more than the largest number.
    pub top: Option<f64>,
    /// How its numbers lie along the axis.
    pub scale: Scale,
    /// Ticks with their texts; otherwise chosen.
    pub ticks: Vec<(f64, String)>,
    /// Its height in pixels, without the foot of the picture; otherwise that of most panels.
    pub height_px: Option<u32>,
    /// What it shows.
    pub series: Vec<Series>,
}

/// A picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// The headline of the whole.
    pub title: String,
    /// What the common axis is, with its unit.
    pub x_label: String,
    /// Both ends of that axis.
    pub x: (f64, f64),
    /// How places lie along it.
    pub scale: Scale,
    /// Ticks of that axis with their texts; otherwise chosen.
    pub ticks: Vec<(f64, String)>,
    /// From top to bottom.
    pub panels: Vec<Panel>,
}

/// What a picture in a page needs besides: nobody has to see it to know what it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words<'a> {
    /// An identifier that the page has once: letters, digits, dashes.
    pub id: &'a str,
    /// A short name.
    pub title: &'a str,
    /// What it shows, in words.
    pub description: &'a str,
}

impl Chart {
    /// The picture as SVG on white, with a line end.
    ///
    /// # Errors
    /// A sentence: numbers that are not finite, or too many panels for a picture.
    pub fn svg(&self) -> Result<String, String> {
        self.drawn(true)
    }

    /// The picture as an SVG element for an HTML page, which gives the colours: `currentColor` for
    /// ink, `var(--grid)` and `var(--blue)`, `--red` and so on for the rest.
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
