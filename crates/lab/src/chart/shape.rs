//! What a chart consists of: panels, series, scales, and the measures that all charts share.

use super::color::ChartColor;

/// Width of every chart, pixels.
pub const WIDTH_PX: u32 = 1000;
/// Left end of the common axis, pixels.
pub const PLOT_LEFT_PX: u32 = 80;
/// Right end of the common axis, pixels.
pub const PLOT_RIGHT_PX: u32 = 976;

/// Form of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesForm {
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
pub enum AxisScale {
    /// Evenly.
    #[default]
    Linear,
    /// Requires positive numbers; an axis from 0 or below falls back to linear.
    Logarithmic,
}

/// A series of points.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartSeries {
    /// Name in the legend; empty to omit it.
    pub name: String,
    /// Colour.
    pub color: ChartColor,
    /// Form.
    pub form: SeriesForm,
    /// Points (x, y) with ascending x, all finite.
    pub points: Vec<(f64, f64)>,
}

/// Series with a common y axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChartPanel {
    /// Headline.
    pub title: String,
    /// Unit of the y axis.
    pub unit: String,
    /// Top of the y axis; `None` for a little above the largest number.
    pub top: Option<f64>,
    /// Scale of the y axis.
    pub scale: AxisScale,
    /// Ticks with labels; chosen automatically if empty.
    pub ticks: Vec<(f64, String)>,
    /// Height in pixels without the x axis labels; `None` for the default.
    pub height_px: Option<u32>,
    /// Series.
    pub series: Vec<ChartSeries>,
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
    pub scale: AxisScale,
    /// Ticks of the x axis with labels; chosen automatically if empty.
    pub ticks: Vec<(f64, String)>,
    /// Panels from top to bottom.
    pub panels: Vec<ChartPanel>,
    /// True to give all panels the same y range, so that they can be compared.
    pub same_range: bool,
}
