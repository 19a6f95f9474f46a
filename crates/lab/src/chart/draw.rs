//! Draws charts with plotters, on linear and logarithmic axes.

use crate::chart::{AxisScale, Chart, ChartColor, ChartPanel, ChartSeries, SeriesForm};
use crate::escape::visible_char;
use hakobu_core::number;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::ops::Range;

type DrawArea<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type DrawContext<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<ChartAxis, ChartAxis>>;
type DrawResult = Result<(), Box<dyn std::error::Error + Send + Sync>>;

const TITLE_HEIGHT: u32 = 44;
const PANEL_HEIGHT: u32 = 200;
/// Additional height of the last panel for the label of the x axis.
const FOOT_HEIGHT: u32 = 30;
/// Height of a legend row below the headline.
const LEGEND_ROW_HEIGHT: u32 = 20;
/// Height of the name of a dashed line.
const LEVEL_NAME_HEIGHT: i32 = 15;
/// Lengths of dashes and of the gaps between them, pixels.
const DASH: (u32, u32) = (8, 5);
const FONT: &str = "Helvetica, Arial, sans-serif";
const INK: RGBColor = RGBColor(0x33, 0x33, 0x33);
const FAINT: RGBColor = RGBColor(0xe4, 0xe4, 0xe4);
/// Longer series are thinned to about one point per pixel.
const POINTS_MAX: usize = 900;
/// Most characters of a headline.
const TITLE_CHARS_MAX: usize = 100;
/// Most characters of a name in the legend and of a tick label.
const NAME_CHARS_MAX: usize = 40;
const TICK_CHARS_MAX: usize = 11;

pub(super) fn svg(
    chart: &Chart,
    on_white: bool,
) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let width = chart.width();
    let headline = if chart.title.is_empty() { 0 } else { TITLE_HEIGHT };
    let mut height = headline;
    for panel in &chart.panels {
        height = height.checked_add(panel_height(chart, panel)).ok_or("too many panels")?;
    }
    // plotters uses signed pixel coordinates.
    let height = height.checked_add(FOOT_HEIGHT).filter(|height| i32::try_from(*height).is_ok());
    let height = height.ok_or("too many panels")?;
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (width, height)).into_drawing_area();
        if on_white {
            root.fill(&WHITE)?;
        }
        let title = printable(&chart.title, TITLE_CHARS_MAX);
        root.draw(&Text::new(title, (16, 14), (FONT, 20).into_font().color(&INK)))?;
        let mut above = headline;
        for (i, panel) in chart.panels.iter().enumerate() {
            let is_last = i + 1 == chart.panels.len();
            let tall = panel_height(chart, panel) + if is_last { FOOT_HEIGHT } else { 0 };
            let area = root.clone().shrink((0, above), (width, tall));
            draw_panel(chart, panel, is_last, &area)?;
            above += tall;
        }
        root.present()?;
    }
    Ok(text)
}

fn panel_height(chart: &Chart, panel: &ChartPanel) -> u32 {
    let rows = u32::try_from(ChartLegend::of(chart, panel).rows_below()).unwrap_or(0);
    panel.height_px.unwrap_or(PANEL_HEIGHT).clamp(80, 2000) + rows.min(50) * LEGEND_ROW_HEIGHT
}

fn draw_panel(chart: &Chart, panel: &ChartPanel, is_last: bool, area: &DrawArea<'_>) -> DrawResult {
    let title = printable(&panel.title, TITLE_CHARS_MAX);
    let bold = (FONT, 15).into_font().style(FontStyle::Bold).color(&INK);
    let (left, right) = chart.plot();
    area.draw(&Text::new(title, (left as i32, 8), bold))?;
    let legend = ChartLegend::of(chart, panel);
    legend.draw(area)?;
    let places = |ticks: &[(f64, String)]| ticks.iter().map(|(place, _)| *place).collect();
    let x_axis = ChartAxis::new(chart.x.0, chart.x.1, chart.scale, places(&chart.ticks));
    let x_range = (chart.x.1 - chart.x.0).abs();
    let (low, top) = ends(panel);
    let y_axis = ChartAxis::new(low, top, panel.scale, places(&panel.ticks));
    let rows = u32::try_from(legend.rows_below()).unwrap_or(0);
    let mut context: DrawContext<'_, '_> = ChartBuilder::on(area)
        .margin_top(30 + rows.min(50) * LEGEND_ROW_HEIGHT)
        .margin_right(chart.width() - right)
        .margin_left(10)
        // Room for the descenders of the axis' name.
        .margin_bottom(if is_last { 6 } else { 0 })
        .x_label_area_size(if is_last { 24 + FOOT_HEIGHT } else { 24 })
        .y_label_area_size(left - 10)
        .build_cartesian_2d(x_axis, y_axis)?;
    // Each tick gets an equal share of the axis.
    let room = ((right - left) as usize / 7) / chart.ticks.len().max(1);
    let is_narrow = chart.width() < crate::chart::WIDTH_PX;
    let tick_chars = if is_narrow { TICK_CHARS_MAX - 3 } else { TICK_CHARS_MAX };
    context
        .configure_mesh()
        .x_labels(if is_narrow { 5 } else { 11 })
        .y_labels(5)
        .x_label_formatter(&|x| tick(&chart.ticks, *x, chart.scale, x_range, room.max(3)))
        .y_label_formatter(&|y| tick(&panel.ticks, *y, panel.scale, top, tick_chars))
        .x_desc(if is_last { printable(&chart.x_label, TITLE_CHARS_MAX) } else { String::new() })
        .y_desc(printable(&panel.unit, TITLE_CHARS_MAX))
        .label_style((FONT, 13).into_font().color(&INK))
        .axis_desc_style((FONT, 14).into_font().color(&INK))
        .axis_style(INK.mix(0.6))
        .bold_line_style(FAINT)
        .light_line_style(TRANSPARENT)
        .draw()?;
    draw_areas(panel, &mut context)?;
    for series in panel.series.iter().filter(|series| series.form != SeriesForm::Area) {
        draw_series(series, &mut context)?;
    }
    level_names(chart, panel, area, &context)
}

/// Names of dashed lines beside their right ends, moved apart where lines are close.
fn level_names(
    chart: &Chart,
    panel: &ChartPanel,
    area: &DrawArea<'_>,
    context: &DrawContext<'_, '_>,
) -> DrawResult {
    let (columns, rows) = area.get_pixel_range();
    let room = chart.width() as i32 - chart.plot().1 as i32 - 6;
    let mut names: Vec<(i32, i32, &ChartSeries)> = panel
        .series
        .iter()
        .filter(|series| series.form == SeriesForm::Level && !series.name.is_empty())
        .filter_map(|series| {
            let (x, y) = context.backend_coord(series.points.last()?);
            Some((x - columns.start, y - rows.start, series))
        })
        .collect();
    names.sort_by_key(|(_, y, _)| std::cmp::Reverse(*y));
    let mut free = i32::MAX;
    for (x, y, series) in names {
        let middle = y.min(free);
        free = middle - LEVEL_NAME_HEIGHT;
        let color = rgb(series.color);
        let style = (FONT, 13).into_font().color(&color).pos(Pos::new(HPos::Left, VPos::Center));
        let fits = |chars: &usize| level_name_px(&printable(&series.name, *chars)) <= room;
        let chars = (1..=NAME_CHARS_MAX).rev().find(fits).unwrap_or(1);
        area.draw(&Text::new(printable(&series.name, chars), (x + 4, middle), style))?;
    }
    Ok(())
}

/// Width of the name of a dashed line: at the chart's edge no letter may be missing in a wide font.
pub(super) fn level_name_px(name: &str) -> i32 {
    let name = printable(name, NAME_CHARS_MAX);
    let letters = name.chars().filter(|c| *c < '\u{1100}').count();
    text_px(&name) + i32::try_from(letters).unwrap_or(0) * 6 / 5
}

fn draw_series(series: &ChartSeries, context: &mut DrawContext<'_, '_>) -> DrawResult {
    let color = rgb(series.color);
    let points = series.points.iter().copied();
    let pairs = series.points.chunks_exact(2);
    let width = if series.form == SeriesForm::Thin { 1 } else { 2 };
    let line = ShapeStyle::from(color).stroke_width(width);
    if matches!(
        series.form,
        SeriesForm::Line
            | SeriesForm::Thin
            | SeriesForm::Dots
            | SeriesForm::Triangles
            | SeriesForm::Squares
            | SeriesForm::Crosses
    ) {
        context.draw_series(LineSeries::new(thin_points(&series.points), line))?;
    }
    match series.form {
        SeriesForm::Area | SeriesForm::Line | SeriesForm::Thin => {}
        SeriesForm::Dots => {
            context.draw_series(points.map(|point| Circle::new(point, 4, color.filled())))?;
        }
        SeriesForm::Triangles => {
            context
                .draw_series(points.map(|point| TriangleMarker::new(point, 6, color.filled())))?;
        }
        SeriesForm::Squares => {
            let corners = [(-4, -4), (4, 4)];
            context
                .draw_series(points.map(|point| {
                    EmptyElement::at(point) + Rectangle::new(corners, color.filled())
                }))?;
        }
        SeriesForm::Crosses => {
            context.draw_series(points.map(|point| Cross::new(point, 5, line)))?;
        }
        SeriesForm::Level => {
            let dashed = DashedLineSeries::new(points, DASH.0, DASH.1, line);
            context.draw_series(dashed)?;
        }
        SeriesForm::Rings => {
            context.draw_series(points.map(|point| Circle::new(point, 9, line)))?;
        }
        SeriesForm::Intervals => {
            context.draw_series(pairs.map(|pair| PathElement::new(pair.to_vec(), line)))?;
        }
        SeriesForm::Boxes => {
            let boxes = pairs.map(|pair| Rectangle::new([pair[0], pair[1]], color.filled()));
            context.draw_series(boxes)?;
        }
    }
    Ok(())
}

/// Draws areas, the topmost first: each one covers the lower part of the one before.
fn draw_areas(panel: &ChartPanel, context: &mut DrawContext<'_, '_>) -> DrawResult {
    let mut stacked: Vec<(ChartColor, Vec<(f64, f64)>)> = Vec::new();
    for series in panel.series.iter().filter(|series| series.form == SeriesForm::Area) {
        let below = stacked.last().map(|(_, points)| points.as_slice());
        stacked.push((series.color, on_top(below, series)));
    }
    for (color, points) in stacked.into_iter().rev() {
        let points = thin_points(&points);
        context.draw_series(AreaSeries::new(points, 0.0, rgb(color)))?;
    }
    Ok(())
}

fn on_top(below: Option<&[(f64, f64)]>, series: &ChartSeries) -> Vec<(f64, f64)> {
    let points = series.points.iter().enumerate();
    let sum = points.map(|(i, (x, y))| {
        (*x, y + below.and_then(|below| below.get(i)).map_or(0.0, |(_, foot)| *foot))
    });
    sum.collect()
}

/// Legend of a panel.
struct ChartLegend<'a> {
    entries: Vec<(&'a ChartSeries, String, i32)>,
    /// Width of the panel's headline, pixels.
    title_px: i32,
    /// Ends of the room for entries, pixels.
    left_px: i32,
    right_px: i32,
}

impl<'a> ChartLegend<'a> {
    fn of(chart: &Chart, panel: &'a ChartPanel) -> ChartLegend<'a> {
        let in_legend = |of: &&ChartSeries| !of.name.is_empty() && of.form != SeriesForm::Level;
        let entries = panel.series.iter().filter(in_legend);
        let entries = entries.map(|series| {
            let name = printable(&series.name, NAME_CHARS_MAX);
            let width = text_px(&name) + 2;
            (series, name, width)
        });
        let title = printable(&panel.title, TITLE_CHARS_MAX);
        ChartLegend {
            entries: entries.collect(),
            title_px: text_px(&title) * 5 / 4,
            left_px: chart.plot().0 as i32,
            right_px: chart.width() as i32 - 20,
        }
    }

    /// Positions of all entries: row and left edge. Row 0 is beside the headline.
    fn places(&self) -> Vec<(usize, i32)> {
        let right_max = self.right_px;
        let whole: i32 = self.entries.iter().map(|(_, _, width)| width + 31).sum::<i32>() - 14;
        if self.left_px + self.title_px + 20 + whole <= right_max {
            let mut left = right_max - whole;
            let each = self.entries.iter().map(|(_, _, width)| {
                let place = (0, left);
                left += width + 31;
                place
            });
            return each.collect();
        }
        let (mut row, mut left) = (1, self.left_px);
        let each = self.entries.iter().map(|(_, _, width)| {
            if left > self.left_px && left + width + 17 > right_max {
                row += 1;
                left = self.left_px;
            }
            let place = (row, left);
            left += width + 31;
            place
        });
        each.collect()
    }

    fn rows_below(&self) -> usize {
        self.places().last().map_or(0, |(row, _)| *row)
    }

    fn draw(&self, area: &DrawArea<'_>) -> DrawResult {
        for ((series, name, _), (row, left)) in self.entries.iter().zip(self.places()) {
            let down = i32::try_from(row).unwrap_or(0) * LEGEND_ROW_HEIGHT as i32;
            let style = (FONT, 13).into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Top));
            area.draw(&Text::new(name.clone(), (left + 17, 11 + down), style))?;
            let color = rgb(series.color);
            let (above, below) = match series.form {
                SeriesForm::Area | SeriesForm::Boxes => (10, 22),
                SeriesForm::Dots => {
                    area.draw(&Circle::new((left + 6, 16 + down), 5, color.filled()))?;
                    (16, 18)
                }
                SeriesForm::Triangles => {
                    area.draw(&TriangleMarker::new((left + 6, 16 + down), 6, color.filled()))?;
                    (16, 18)
                }
                SeriesForm::Squares => {
                    let corners = [(left + 2, 12 + down), (left + 10, 20 + down)];
                    area.draw(&Rectangle::new(corners, color.filled()))?;
                    (16, 18)
                }
                SeriesForm::Crosses => {
                    let thick = ShapeStyle::from(color).stroke_width(2);
                    area.draw(&Cross::new((left + 6, 16 + down), 5, thick))?;
                    (16, 18)
                }
                SeriesForm::Level | SeriesForm::Line | SeriesForm::Intervals => (15, 18),
                SeriesForm::Thin => (16, 17),
                SeriesForm::Rings => {
                    let ring = ShapeStyle::from(color).stroke_width(2);
                    area.draw(&Circle::new((left + 6, 16 + down), 6, ring))?;
                    continue;
                }
            };
            let corners = [(left, above + down), (left + 12, below + down)];
            area.draw(&Rectangle::new(corners, color.filled()))?;
        }
        Ok(())
    }
}

/// Estimated width of a legend text: most letters are narrower than 6.2 pixels; most other characters (kana,
/// kanji) are square.
fn text_px(text: &str) -> i32 {
    let width: f64 = text.chars().map(|c| if c < '\u{1100}' { 6.2 } else { 13.0 }).sum();
    width as i32
}

fn rgb(ChartColor(r, g, b): ChartColor) -> RGBColor {
    RGBColor(r, g, b)
}

/// Range of a panel's axis.
fn ends(panel: &ChartPanel) -> (f64, f64) {
    let top = panel.top.unwrap_or_else(|| round_top(largest(panel)));
    let points = panel.series.iter().flat_map(|series| &series.points);
    let smallest = points.map(|(_, y)| *y).fold(f64::INFINITY, f64::min);
    let is_logarithmic = panel.scale == AxisScale::Logarithmic && smallest > 0.0;
    if is_logarithmic && smallest.is_finite() { (round_bottom(smallest), top) } else { (0.0, top) }
}

/// Largest number in a panel.
fn largest(panel: &ChartPanel) -> f64 {
    let mut stack: Option<Vec<(f64, f64)>> = None;
    let mut largest = 0.0f64;
    for series in &panel.series {
        let points = match series.form {
            SeriesForm::Area => stack.insert(on_top(stack.as_deref(), series)).as_slice(),
            _ => &series.points,
        };
        largest = points.iter().fold(largest, |largest, (_, y)| largest.max(*y));
    }
    largest
}

/// Label of a tick.
fn tick(
    ticks: &[(f64, String)],
    at: f64,
    scale: AxisScale,
    range: f64,
    chars_max: usize,
) -> String {
    if let Some((_, text)) = ticks.iter().find(|(place, _)| *place == at) {
        return printable(text, chars_max);
    }
    match scale {
        AxisScale::Linear => axis_number(at, range),
        AxisScale::Logarithmic => tick_number(at),
    }
}

/// Reduces points to the resolution of the chart by averaging neighbours.
fn thin_points(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let each = points.len().div_ceil(POINTS_MAX).max(1);
    let mean = |part: &[(f64, f64)]| {
        let sum = part.iter().map(|(_, y)| y).sum::<f64>();
        let x = part.last().map_or(0.0, |(x, _)| *x);
        (x, sum / part.len() as f64)
    };
    points.chunks(each).map(mean).collect()
}

/// Removes characters that XML cannot contain, and truncates to `chars_max` characters.
fn printable(text: &str, chars_max: usize) -> String {
    let clean = text.chars().map(visible_char);
    let mut out: String = clean.clone().take(chars_max).collect();
    if clean.count() > chars_max {
        out.pop();
        out.push('…');
    }
    out
}

// Linear and logarithmic axes: mapping to pixels, ticks and their labels.

/// A logarithmic axis with more ticks than this shows powers of ten only.
const TICKS_MAX: usize = 9;

/// Bound of the numbers of an axis: lengths and next round numbers stay finite.
const BOUND: f64 = 1e300;

/// Axis from `low` to `high`.
#[derive(Clone, Debug)]
pub(super) struct ChartAxis {
    low: f64,
    high: f64,
    scale: AxisScale,
    /// Positions of ticks; chosen automatically if empty.
    ticks: Vec<f64>,
}

impl ChartAxis {
    /// Falls back to a linear axis if a logarithm does not exist.
    pub(super) fn new(low: f64, high: f64, scale: AxisScale, ticks: Vec<f64>) -> ChartAxis {
        let bounded = |number: f64| if number.is_nan() { 0.0 } else { number.clamp(-BOUND, BOUND) };
        let (low, high) = (bounded(low), bounded(high));
        // Beside a large number 1 is nothing.
        let high = if high > low { high } else { (low + 1.0).max(low + low.abs() * 1e-9) };
        let scale = if low > 0.0 { scale } else { AxisScale::Linear };
        ChartAxis { low, high, scale, ticks }
    }

    fn of_logarithms(&self) -> RangedCoordf64 {
        RangedCoordf64::from(self.low.ln()..self.high.ln())
    }
}

impl Ranged for ChartAxis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        match self.scale {
            AxisScale::Linear => RangedCoordf64::from(self.low..self.high).map(value, limit),
            AxisScale::Logarithmic => {
                let value = value.max(self.low.min(self.high)).ln();
                self.of_logarithms().map(&value, limit)
            }
        }
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if !self.ticks.is_empty() {
            return self.ticks.clone();
        }
        match self.scale {
            AxisScale::Linear => RangedCoordf64::from(self.low..self.high).key_points(hint),
            AxisScale::Logarithmic => decades(self.low, self.high),
        }
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

/// Numbers of the form 1, 2, 5 × 10ⁿ from `low` to `high`.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let powers = || (low.log10().floor() as i32..=high.log10().ceil() as i32).map(power_of_ten);
    let inside = |tick: &f64| *tick >= low * 0.999 && *tick <= high * 1.001;
    let fine: Vec<f64> =
        powers().flat_map(|power| [power, 2.0 * power, 5.0 * power]).filter(inside).collect();
    if fine.len() <= TICKS_MAX { fine } else { powers().filter(inside).collect() }
}

fn power_of_ten(exponent: i32) -> f64 {
    10f64.powi(exponent)
}

/// Largest number of the form 1, 2, 5 × 10ⁿ that is not above `smallest`.
fn round_bottom(smallest: f64) -> f64 {
    let power = power_of_ten(smallest.log10().floor() as i32);
    let fits = [5.0, 2.0, 1.0].iter().map(|step| step * power).find(|low| *low <= smallest * 1.001);
    fits.unwrap_or(power)
}

/// Next larger number of the form 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8 × 10ⁿ.
fn round_top(largest: f64) -> f64 {
    if largest <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(largest.log10().floor());
    let steps = [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    let fits = steps.iter().map(|step| step * power).find(|top| *top >= largest * 1.02);
    fits.unwrap_or(12.0 * power)
}

/// Formats a tick label with the digits that an axis of length `range` needs.
fn axis_number(number: f64, range: f64) -> String {
    let digits = match range {
        range if range >= 20.0 => 0,
        range if range >= 2.0 => 1,
        range if range >= 0.2 => 2,
        range if range >= 0.02 => 3,
        _ => 4,
    };
    group_thousands(&format!("{number:.digits$}"))
}

/// Formats a tick label of a logarithmic axis with the digits that the number needs.
fn tick_number(number: f64) -> String {
    let digits = if number > 0.0 { (-number.log10().floor()).clamp(0.0, 9.0) as usize } else { 0 };
    group_thousands(&format!("{number:.digits$}"))
}

/// Strips trailing zeros of the fraction and groups thousands by commas.
fn group_thousands(text: &str) -> String {
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
    let (whole, fraction) = text.split_once('.').map_or((text, ""), |(w, f)| (w, f));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |rest| ("-", rest));
    let mut out = format!("{sign}{}", number::grouped_digits(whole));
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doublings_are_evenly_apart() {
        let axis = ChartAxis::new(1.0, 16.0, AxisScale::Logarithmic, Vec::new());
        let places: Vec<i32> =
            [1.0, 2.0, 4.0, 8.0, 16.0].iter().map(|x| axis.map(x, (0, 400))).collect();
        for (place, expected) in places.iter().zip([0, 100, 200, 300, 400]) {
            assert!((place - expected).abs() <= 1, "{places:?}");
        }
        // Without logarithms the axis is linear, and an empty range gets a length.
        assert_eq!(
            ChartAxis::new(0.0, 10.0, AxisScale::Logarithmic, Vec::new()).map(&5.0, (0, 100)),
            50
        );
        assert_eq!(ChartAxis::new(3.0, 3.0, AxisScale::Linear, Vec::new()).range(), 3.0..4.0);
    }

    #[test]
    fn the_largest_numbers_have_an_axis() {
        for low in [f64::MIN_POSITIVE, 1.0, f64::MAX, f64::INFINITY, f64::NAN] {
            let axis = ChartAxis::new(low, f64::INFINITY, AxisScale::Logarithmic, Vec::new());
            let range = axis.range();
            assert!(range.end > range.start && range.end.is_finite(), "{low}: {range:?}");
            assert!(decades(range.start.max(1e-300), range.end).len() < 1000);
        }
    }

    #[test]
    fn ticks() {
        assert_eq!(decades(0.5, 20.0), [0.5, 1.0, 2.0, 5.0, 10.0, 20.0]);
        assert_eq!(decades(0.01, 1000.0), [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]);
        for (smallest, bottom) in [(0.034, 0.02), (1.0, 1.0), (7.0, 5.0), (999.0, 500.0)] {
            assert!((round_bottom(smallest) - bottom).abs() < bottom * 1e-9, "{smallest}");
        }
        assert_eq!(tick_number(0.05), "0.05");
        assert_eq!(tick_number(2000.0), "2,000");
        assert_eq!(tick_number(0.0), "0");
    }
}
