//! The drawing itself, with plotters.

use super::{Chart, Color, Form, Panel, Series};
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::Color as _;
use plotters::style::text_anchor::{HPos, Pos, VPos};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Context<'a, 'b> =
    ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

const WIDTH: u32 = 1000;
const TITLE_HEIGHT: u32 = 44;
const PANEL_HEIGHT: u32 = 200;
/// What the last panel needs more, for the label of the common axis.
const FOOT_HEIGHT: u32 = 30;
const FONT: &str = "Helvetica, Arial, sans-serif";
const INK: RGBColor = RGBColor(0x33, 0x33, 0x33);
const FAINT: RGBColor = RGBColor(0xe4, 0xe4, 0xe4);
/// More points than pixels are no use: neighbours are drawn as their mean.
const POINTS_MAX: usize = 900;
/// Characters that fit into the headline.
const TITLE_CHARS_MAX: usize = 100;

pub(super) fn svg(chart: &Chart) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let panels = u32::try_from(chart.panels.len())?;
    let body = panels.checked_mul(PANEL_HEIGHT).ok_or("too many panels")?;
    let height = body.checked_add(TITLE_HEIGHT + FOOT_HEIGHT).ok_or("too many panels")?;
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
        root.fill(&WHITE)?;
        let title = printable(&chart.title, TITLE_CHARS_MAX);
        root.draw(&Text::new(title, (16, 14), (FONT, 20).into_font().color(&INK)))?;
        for (i, panel) in chart.panels.iter().enumerate() {
            let above = TITLE_HEIGHT + i as u32 * PANEL_HEIGHT;
            let is_last = i + 1 == chart.panels.len();
            let below = above + PANEL_HEIGHT + if is_last { FOOT_HEIGHT } else { 0 };
            let area = root.clone().shrink((0, above), (WIDTH, below - above));
            draw_panel(chart, panel, is_last, &area)?;
        }
        root.present()?;
    }
    Ok(text)
}

fn draw_panel(chart: &Chart, panel: &Panel, is_last: bool, area: &Area<'_>) -> Outcome {
    let title = printable(&panel.title, TITLE_CHARS_MAX);
    let bold = (FONT, 15).into_font().style(FontStyle::Bold).color(&INK);
    area.draw(&Text::new(title, (80, 8), bold))?;
    draw_legend(panel, area)?;
    let x_end = if chart.x.1 > chart.x.0 { chart.x.1 } else { chart.x.0 + 1.0 };
    let top = panel.top.unwrap_or_else(|| round_top(largest(panel)));
    let mut context: Context<'_, '_> = ChartBuilder::on(area)
        .margin_top(30)
        .margin_right(24)
        .margin_left(10)
        .x_label_area_size(if is_last { 24 + FOOT_HEIGHT } else { 24 })
        .y_label_area_size(70)
        .build_cartesian_2d(chart.x.0..x_end, 0.0..top)?;
    let x_range = x_end - chart.x.0;
    context
        .configure_mesh()
        .x_labels(11)
        .y_labels(5)
        .x_label_formatter(&|x| axis_number(*x, x_range))
        .y_label_formatter(&|y| axis_number(*y, top))
        .x_desc(if is_last { printable(&chart.x_label, TITLE_CHARS_MAX) } else { String::new() })
        .y_desc(printable(&panel.unit, TITLE_CHARS_MAX))
        .label_style((FONT, 13).into_font().color(&INK))
        .axis_desc_style((FONT, 14).into_font().color(&INK))
        .axis_style(INK.mix(0.6))
        .bold_line_style(FAINT)
        .light_line_style(TRANSPARENT)
        .draw()?;
    draw_areas(panel, &mut context)?;
    for series in panel.series.iter().filter(|series| series.form == Form::Line) {
        let points = thinned(&series.points);
        let line = LineSeries::new(points, ShapeStyle::from(rgb(series.color)).stroke_width(2));
        context.draw_series(line)?;
    }
    Ok(())
}

/// Areas, the topmost first: each covers the foot of the one before.
fn draw_areas(panel: &Panel, context: &mut Context<'_, '_>) -> Outcome {
    let mut stacked: Vec<(Color, Vec<(f64, f64)>)> = Vec::new();
    for series in panel.series.iter().filter(|series| series.form == Form::Area) {
        let below = stacked.last().map(|(_, points)| points.as_slice());
        stacked.push((series.color, on_top(below, series)));
    }
    for (color, points) in stacked.into_iter().rev() {
        let points = thinned(&points);
        context.draw_series(AreaSeries::new(points, 0.0, rgb(color)))?;
    }
    Ok(())
}

fn on_top(below: Option<&[(f64, f64)]>, series: &Series) -> Vec<(f64, f64)> {
    let points = series.points.iter().enumerate();
    let sum = points.map(|(i, (x, y))| {
        (*x, y + below.and_then(|below| below.get(i)).map_or(0.0, |(_, foot)| *foot))
    });
    sum.collect()
}

/// A square of the colour and the name, right of the headline, the last one near the right edge.
fn draw_legend(panel: &Panel, area: &Area<'_>) -> Outcome {
    let mut right = WIDTH as i32 - 20;
    for series in panel.series.iter().rev() {
        let name = printable(&series.name, 40);
        let style = (FONT, 13).into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Top));
        // The width of the text is not known here; most letters are narrower than this.
        let width = (name.chars().count() as f64 * 6.2) as i32 + 2;
        let left = right - width - 17;
        area.draw(&Text::new(name, (left + 17, 11), style))?;
        let (above, below) = match series.form {
            Form::Area => (10, 22),
            Form::Line => (15, 18),
        };
        area.draw(&Rectangle::new(
            [(left, above), (left + 12, below)],
            rgb(series.color).filled(),
        ))?;
        right = left - 14;
    }
    Ok(())
}

fn rgb(Color(r, g, b): Color) -> RGBColor {
    RGBColor(r, g, b)
}

/// The largest number that is drawn.
fn largest(panel: &Panel) -> f64 {
    let mut stack: Option<Vec<(f64, f64)>> = None;
    let mut largest = 0.0f64;
    for series in &panel.series {
        let points = match series.form {
            Form::Area => stack.insert(on_top(stack.as_deref(), series)).as_slice(),
            Form::Line => &series.points,
        };
        largest = points.iter().fold(largest, |largest, (_, y)| largest.max(*y));
    }
    largest
}

/// The next number of the form 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8 times a power of ten.
fn round_top(largest: f64) -> f64 {
    if largest <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(largest.log10().floor());
    let steps = [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    let fits = steps.iter().map(|step| step * power).find(|top| *top >= largest * 1.02);
    fits.unwrap_or(12.0 * power)
}

/// A number beside an axis that is `range` long: as many digits as that needs.
fn axis_number(number: f64, range: f64) -> String {
    let digits = match range {
        range if range >= 20.0 => 0,
        range if range >= 2.0 => 1,
        range if range >= 0.2 => 2,
        range if range >= 0.02 => 3,
        _ => 4,
    };
    let text = format!("{number:.digits$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    let (whole, fraction) = text.split_once('.').map_or((text, ""), |(w, f)| (w, f));
    let mut out = String::new();
    for (i, digit) in whole.chars().enumerate() {
        let left = whole.len() - i;
        if i > 0 && left % 3 == 0 && !out.ends_with('-') {
            out.push(',');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// At most as many points as can be told apart, each the mean of its neighbours.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let each = points.len().div_ceil(POINTS_MAX).max(1);
    let mean = |part: &[(f64, f64)]| {
        let sum = part.iter().map(|(_, y)| y).sum::<f64>();
        let x = part.last().map_or(0.0, |(x, _)| *x);
        (x, sum / part.len() as f64)
    };
    points.chunks(each).map(mean).collect()
}

/// A text that XML can hold, cut to `chars_max` characters.
fn printable(text: &str, chars_max: usize) -> String {
    let clean = text.chars().map(|c| {
        let none = c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}');
        if none { '\u{fffd}' } else { c }
    });
    let mut out: String = clean.clone().take(chars_max).collect();
    if clean.count() > chars_max {
        out.pop();
        out.push('…');
    }
    out
}
