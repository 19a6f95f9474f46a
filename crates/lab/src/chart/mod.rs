//! Charts: stacked panels of series over a common axis, as SVG text. Deterministic. Charts contain numbers and labels
//! only; callers define their meaning.

mod draw;

use crate::escape::html;

impl Chart {
    /// SVG on white, ending with a newline.
    ///
    /// # Errors
    /// A message: a number is not finite, or there are too many panels.
    pub fn svg(&self) -> Result<String, String> {
        self.drawn(true)
    }

    /// SVG on white with an accessible name and description.
    pub fn svg_with(&self, words: ChartLabel<'_>) -> Result<String, String> {
        Ok(add_label(&self.drawn(true)?, words))
    }

    /// SVG element for an HTML page that defines the colours: `currentColor` for text, `var(--grid)`,
    /// `var(--blue)`, `var(--red)` and so on.
    pub fn svg_for_page(&self, words: ChartLabel<'_>) -> Result<String, String> {
        Ok(svg(&self.drawn(false)?, words))
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

/// Width of every chart, pixels.
pub const WIDTH_PX: u32 = 1000;
/// Width of a chart that is drawn for a phone, pixels.
pub const NARROW_PX: u32 = 440;

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
    /// A line with a square at each point.
    Squares,
    /// A line with a cross at each point.
    Crosses,
    /// A dashed line over the whole axis, with its name beside its end instead of in the legend.
    Level,
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
    /// Headline; without one there is no room for it.
    pub title: String,
    /// Width in pixels; 0 for [`WIDTH_PX`].
    pub width_px: u32,
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
}

impl Chart {
    /// Width in pixels.
    pub(crate) fn width(&self) -> u32 {
        if self.width_px == 0 { WIDTH_PX } else { self.width_px }
    }

    /// Ends of the common axis, pixels.
    pub(crate) fn plot(&self) -> (u32, u32) {
        let left = if self.width() < WIDTH_PX { 62 } else { 80 };
        let right = self.level_names_px().unwrap_or(0).max(24);
        (left, self.width().saturating_sub(right).max(left + 1))
    }

    /// Room for the names of dashed lines, to the right of the axis; longer ones are cut.
    fn level_names_px(&self) -> Option<u32> {
        let all = self.panels.iter().flat_map(|panel| &panel.series);
        let levels = all.filter(|of| of.form == SeriesForm::Level && !of.name.is_empty());
        let widest = levels.map(|of| draw::level_name_px(&of.name)).max()?;
        Some(u32::try_from(widest).unwrap_or(0).saturating_add(10).min(self.width() / 4))
    }
}

// Colours that remain distinguishable in print and with colour blindness (Paul Tol, "Colour Schemes", bright
// scheme).

/// Red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChartColor(pub u8, pub u8, pub u8);

/// First colour.
pub const BLUE: ChartColor = ChartColor(0x44, 0x77, 0xaa);
/// Second colour.
pub const RED: ChartColor = ChartColor(0xee, 0x66, 0x77);
/// Third colour.
pub const GREEN: ChartColor = ChartColor(0x22, 0x88, 0x33);
/// Fourth colour.
pub const YELLOW: ChartColor = ChartColor(0xcc, 0xbb, 0x44);
/// Fifth colour.
pub const CYAN: ChartColor = ChartColor(0x66, 0xcc, 0xee);
/// Sixth colour.
pub const PURPLE: ChartColor = ChartColor(0xaa, 0x33, 0x77);
/// For annotations.
pub const BLACK: ChartColor = ChartColor(0x33, 0x33, 0x33);
/// All colours in the order of use.
pub const ALL: [ChartColor; 6] = [BLUE, RED, GREEN, YELLOW, CYAN, PURPLE];

// Adapts charts to HTML pages: colours are CSS variables, so that they follow light and dark mode, and text
// describes the content.

/// Accessible name and description of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChartLabel<'a> {
    /// Identifier, unique in the page: letters, digits, dashes.
    pub id: &'a str,
    /// Short name.
    pub title: &'a str,
    /// Description of the content.
    pub description: &'a str,
}

/// Colours of the drawing, and the CSS that replaces them.
const COLORS: &[(&str, &str)] = &[
    ("#333333", "currentColor"),
    ("#E4E4E4", "var(--grid)"),
    ("#4477AA", "var(--blue)"),
    ("#EE6677", "var(--red)"),
    ("#228833", "var(--green)"),
    ("#CCBB44", "var(--yellow)"),
    ("#66CCEE", "var(--cyan)"),
    ("#AA3377", "var(--purple)"),
];

/// Attributes that are redundant or set by the page's style.
const NEEDLESS: &[&str] =
    &[" opacity=\"1\"", " stroke=\"none\"", " font-family=\"Helvetica, Arial, sans-serif\""];

/// Chart for a page. Quotes in texts are escaped, so that replacements match attributes only.
pub(super) fn svg(drawn: &str, words: ChartLabel<'_>) -> String {
    let mut text = drawn.to_owned();
    for (color, name) in COLORS {
        for attribute in ["fill", "stroke"] {
            let from = format!("{attribute}=\"{color}\"");
            text = text.replace(&from, &format!("{attribute}=\"{name}\""));
        }
    }
    for needless in NEEDLESS {
        text = text.replace(needless, "");
    }
    // plotters ends lists of points with a space.
    text = text.replace(" \"/>", "\"/>");
    add_label(&text, words)
}

/// Adds an accessible name and description.
fn add_label(text: &str, words: ChartLabel<'_>) -> String {
    let id = words.id;
    let role = format!("<svg role=\"img\" aria-labelledby=\"{id}-t {id}-d\" ");
    let text = text.replacen("<svg ", &role, 1);
    let inner = format!(
        ">\n<title id=\"{id}-t\">{}</title>\n<desc id=\"{id}-d\">{}</desc>\n",
        html(words.title),
        html(words.description)
    );
    text.replacen(">\n", &inner, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(title: &str) -> Chart {
        let points =
            |scale: f64| (0..5000).map(|i| (f64::from(i), f64::from(i % 7) * scale)).collect();
        let series = |name: &str, form, color, scale| ChartSeries {
            name: name.into(),
            color,
            form,
            points: points(scale),
        };
        Chart {
            title: title.into(),
            x_label: "seconds".into(),
            x: (0.0, 5000.0),
            panels: vec![
                ChartPanel {
                    title: "CPU".into(),
                    unit: "%".into(),
                    top: Some(100.0),
                    series: vec![
                        series("user", SeriesForm::Area, BLUE, 2.0),
                        series("system", SeriesForm::Area, RED, 1.0),
                        series("busiest", SeriesForm::Line, BLACK, 12.0),
                    ],
                    ..ChartPanel::default()
                },
                ChartPanel { title: "Empty".into(), unit: "1/s".into(), ..ChartPanel::default() },
            ],
            ..Chart::default()
        }
    }

    #[test]
    fn the_same_data_make_the_same_picture() {
        let picture = chart("a < b & \"c\" \u{1} \u{ffff}").svg().unwrap();
        assert_eq!(picture, chart("a < b & \"c\" \u{1} \u{ffff}").svg().unwrap());
        assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"), "{picture}");
        for part in ["a &lt; b &amp;", "user", "system", "busiest", "seconds", "#4477AA", "5,000"] {
            assert!(picture.contains(part), "{part} is not in {picture}");
        }
        assert!(!picture.contains(['\u{1}', '\u{ffff}']));
        // 5,000 points of three series are thinned.
        assert!(picture.len() < 60_000, "{}", picture.len());
    }

    #[test]
    fn what_cannot_be_drawn_is_an_error() {
        let mut broken = chart("");
        broken.panels[0].series[0].points[7].1 = f64::NAN;
        assert!(broken.svg().unwrap_err().contains("not finite"));
        let mut empty = chart("");
        empty.panels.clear();
        empty.x = (0.0, 0.0);
        assert!(empty.svg().unwrap().contains("</svg>"));
    }

    /// A sweep over doubled jobs: three tools far apart, intervals, a fit, a knee.
    fn sweep() -> Chart {
        let jobs = [1.0, 2.0, 4.0, 8.0, 16.0];
        let line = |name: &str, color, form, first: f64| ChartSeries {
            name: name.into(),
            color,
            form,
            points: jobs.iter().map(|x| (*x, first / x)).collect(),
        };
        let bars = jobs.iter().flat_map(|x| [(*x, 90.0 / x), (*x, 130.0 / x)]).collect();
        Chart {
            title: "Sweep".into(),
            x_label: "jobs".into(),
            x: (0.9, 17.6),
            width_px: 0,
            scale: AxisScale::Logarithmic,
            ticks: jobs.iter().map(|x| (*x, format!("{x} <jobs>"))).collect(),
            panels: vec![ChartPanel {
                title: "Seconds".into(),
                unit: "s".into(),
                scale: AxisScale::Logarithmic,
                height_px: Some(360),
                series: vec![
                    line("rsync under GNU parallel, as published", BLUE, SeriesForm::Dots, 110.0),
                    line(
                        "a tool with a name that takes much of a row",
                        RED,
                        SeriesForm::Triangles,
                        0.4,
                    ),
                    line(
                        "the fit through all of it, as it was computed",
                        BLUE,
                        SeriesForm::Thin,
                        100.0,
                    ),
                    ChartSeries {
                        name: String::new(),
                        color: BLUE,
                        form: SeriesForm::Intervals,
                        points: bars,
                    },
                    ChartSeries {
                        name: "knee".into(),
                        color: BLACK,
                        form: SeriesForm::Rings,
                        points: vec![(8.0, 13.75)],
                    },
                ],
                ..ChartPanel::default()
            }],
        }
    }

    #[test]
    fn a_sweep_over_doublings() {
        let picture = sweep().svg().unwrap();
        for part in ["16 &lt;jobs&gt;", "rsync", "knee", "0.1", "100", "<circle", "<polygon"] {
            assert!(picture.contains(part), "{part} is not in {picture}");
        }
        // Doublings are equidistant: dots of the first tool.
        let places: Vec<i32> = picture
            .lines()
            .filter(|line| line.starts_with("<circle") && line.contains("r=\"4\""))
            .map(|line| line.split('"').nth(1).unwrap().parse().unwrap())
            .collect();
        let steps: Vec<i32> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(steps.len(), 4);
        assert!(steps.iter().all(|step| (step - steps[0]).abs() <= 1), "{places:?}");
        // Names that do not fit beside the headline get their own rows.
        let height =
            |text: &str| text.split("height=\"").nth(1).unwrap()[..3].parse::<u32>().unwrap();
        assert_eq!(height(&picture), 44 + 360 + 20 + 30);
    }

    #[test]
    fn a_picture_in_a_page_has_its_colours_and_words() {
        let words = ChartLabel { id: "a-1", title: "a < b", description: "c & \"d\"\u{1}" };
        let picture = sweep().svg_for_page(words).unwrap();
        let start = "<svg role=\"img\" aria-labelledby=\"a-1-t a-1-d\" width=\"1000\"";
        assert!(picture.starts_with(start), "{picture}");
        assert!(picture.contains("<title id=\"a-1-t\">a &lt; b</title>"));
        assert!(picture.contains("<desc id=\"a-1-d\">c &amp; &quot;d&quot;\u{fffd}</desc>"));
        assert!(picture.contains("fill=\"var(--blue)\"") && picture.contains("currentColor"));
        assert!(!picture.contains("=\"#"), "a colour that does not follow the page: {picture}");
        assert!(!picture.contains("#FFFFFF"));
    }

    #[test]
    fn places_of_the_axis_are_where_they_are_said_to_be() {
        let corner = |x: f64| vec![(x, 0.0), (x + 1.0, 1.0)];
        let boxes = |x| ChartSeries {
            name: String::new(),
            color: GREEN,
            form: SeriesForm::Boxes,
            points: corner(x),
        };
        let chart = Chart {
            x: (0.0, 10.0),
            panels: vec![ChartPanel {
                top: Some(2.0),
                ticks: vec![(0.5, "first of many".into())],
                series: vec![boxes(0.0), boxes(9.0)],
                ..ChartPanel::default()
            }],
            ..Chart::default()
        };
        let picture = chart.svg().unwrap();
        let rects: Vec<&str> = picture.lines().filter(|line| line.contains("#228833")).collect();
        let number = |line: &str, name: &str| -> u32 {
            let from = line.split(&format!(" {name}=\"")).nth(1).unwrap();
            from.split('"').next().unwrap().parse().unwrap()
        };
        let (left, right) = chart.plot();
        assert!(number(rects[0], "x").abs_diff(left) <= 1, "{rects:?}");
        let end = number(rects[1], "x") + number(rects[1], "width");
        assert!(end.abs_diff(right) <= 1, "{rects:?}");
        assert!(picture.contains("first of m…"));
    }

    #[test]
    fn level_lines_have_their_names_at_the_end() {
        let level = |name: &str, y: f64| ChartSeries {
            name: name.into(),
            color: RED,
            form: SeriesForm::Level,
            points: vec![(0.0, y), (10.0, y)],
        };
        let mut chart = Chart {
            x: (0.0, 10.0),
            panels: vec![ChartPanel {
                series: vec![
                    level("cp", 5.0),
                    level("rsync", 5.01),
                    level("a tool with a name that takes much of a row", 1.0),
                ],
                ..ChartPanel::default()
            }],
            ..Chart::default()
        };
        for width in [0, NARROW_PX] {
            chart.width_px = width;
            let picture = chart.svg().unwrap();
            // Dashes: many short lines.
            assert!(picture.matches("stroke=\"#EE6677\"").count() > 20, "{picture}");
            assert!(picture.contains("\na tool") && picture.contains("…\n"), "{picture}");
            // Beside the axis, where no line crosses them; two at the same height would cover each other.
            let place = |name: &str, way: &str| -> i32 {
                let before = picture.split(&format!("\n{name}\n")).next().unwrap();
                let tag = before.rsplit("<text ").next().unwrap();
                tag.split(way).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
            };
            for name in ["cp", "rsync"] {
                assert!(place(name, "x=\"") > chart.plot().1 as i32, "{picture}");
            }
            let heights = ["cp", "rsync"].map(|name| place(name, " y=\""));
            assert!((heights[0] - heights[1]).abs() >= 14, "{heights:?}");
        }
    }
}
