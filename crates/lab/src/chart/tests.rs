//! Charts are deterministic and well-formed, and contain what was requested.

use super::*;

fn chart(title: &str) -> Chart {
    let points = |scale: f64| (0..5000).map(|i| (f64::from(i), f64::from(i % 7) * scale)).collect();
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
                    series("user", SeriesForm::Area, color::BLUE, 2.0),
                    series("system", SeriesForm::Area, color::RED, 1.0),
                    series("busiest", SeriesForm::Line, color::BLACK, 12.0),
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
        scale: AxisScale::Logarithmic,
        ticks: jobs.iter().map(|x| (*x, format!("{x} <jobs>"))).collect(),
        same_range: false,
        panels: vec![ChartPanel {
            title: "Seconds".into(),
            unit: "s".into(),
            scale: AxisScale::Logarithmic,
            height_px: Some(360),
            series: vec![
                line(
                    "rsync under GNU parallel, as published",
                    color::BLUE,
                    SeriesForm::Dots,
                    110.0,
                ),
                line(
                    "a tool with a name that takes much of a row",
                    color::RED,
                    SeriesForm::Triangles,
                    0.4,
                ),
                line(
                    "the fit through all of it, as it was computed",
                    color::BLUE,
                    SeriesForm::Thin,
                    100.0,
                ),
                ChartSeries {
                    name: String::new(),
                    color: color::BLUE,
                    form: SeriesForm::Intervals,
                    points: bars,
                },
                ChartSeries {
                    name: "knee".into(),
                    color: color::BLACK,
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
    let height = |text: &str| text.split("height=\"").nth(1).unwrap()[..3].parse::<u32>().unwrap();
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
        color: color::GREEN,
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
    assert!(number(rects[0], "x").abs_diff(PLOT_LEFT_PX) <= 1, "{rects:?}");
    let end = number(rects[1], "x") + number(rects[1], "width");
    assert!(end.abs_diff(PLOT_RIGHT_PX) <= 1, "{rects:?}");
    assert!(picture.contains("first of m…"));
}
