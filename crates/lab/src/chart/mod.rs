//! Pictures: panels of series over one axis, below each other, as SVG text. The same data always
//! makes the same text. Who draws decides what the numbers mean; here they only get axes.

mod draw;
#[cfg(test)]
mod tests;

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
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A filled area on top of the areas before it in the same panel. All areas of a panel have
    /// their points at the same places.
    Area,
    /// A line.
    Line,
}

/// Numbers over the axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What the legend calls it.
    pub name: String,
    /// Its colour.
    pub color: Color,
    /// How it is drawn.
    pub form: Form,
    /// (place, number), places ascending, all finite.
    pub points: Vec<(f64, f64)>,
}

/// Series with one pair of axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Its headline.
    pub title: String,
    /// The unit of its numbers, beside the axis.
    pub unit: String,
    /// The top of the axis; otherwise a little more than the largest number.
    pub top: Option<f64>,
    /// What it shows.
    pub series: Vec<Series>,
}

/// A picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// The headline of the whole.
    pub title: String,
    /// What the common axis is, with its unit.
    pub x_label: String,
    /// Both ends of that axis.
    pub x: (f64, f64),
    /// From top to bottom.
    pub panels: Vec<Panel>,
}

impl Chart {
    /// The picture as SVG, with a line end.
    ///
    /// # Errors
    /// A sentence: numbers that are not finite, or too many panels for a picture.
    pub fn svg(&self) -> Result<String, String> {
        let points = self.panels.iter().flat_map(|panel| &panel.series).flat_map(|s| &s.points);
        let mut numbers = points.flat_map(|(x, y)| [*x, *y]).chain([self.x.0, self.x.1]);
        if !numbers.all(f64::is_finite) {
            return Err("a number that is not finite cannot be drawn".into());
        }
        draw::svg(self).map_err(|why| format!("cannot draw: {why}"))
    }
}
