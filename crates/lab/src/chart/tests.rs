//! Pictures are the same each time, well-formed, and hold what was asked for.

use super::*;

fn chart(title: &str) -> Chart {
    let points = |scale: f64| (0..5000).map(|i| (f64::from(i), f64::from(i % 7) * scale)).collect();
    let series = |name: &str, form, color, scale| Series {
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
            Panel {
                title: "CPU".into(),
                unit: "%".into(),
                top: Some(100.0),
                series: vec![
                    series("user", Form::Area, color::BLUE, 2.0),
                    series("system", Form::Area, color::RED, 1.0),
                    series("busiest", Form::Line, color::BLACK, 12.0),
                ],
            },
            Panel { title: "Empty".into(), unit: "1/s".into(), top: None, series: Vec::new() },
        ],
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
    // 5,000 points of three series are thinned to what can be seen.
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
