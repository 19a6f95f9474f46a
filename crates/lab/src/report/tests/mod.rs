//! All formats of a report over generated campaigns: content, safety, size and time.

mod fixture;
mod xml;

use crate::chart::{Chart, ChartSeries, SeriesForm};
use crate::report::sweep_chart::picture;
use crate::report::terminal::TerminalOptions;
use crate::report::tests::fixture::{
    JOBS, LARGE, ODD, PLAUSIBLE, TOOLS, odd, part, plausible, results, slower,
};
use crate::report::tests::xml::{XmlElement, elements};
use crate::report::words::{all, words_in};
use crate::report::{Language, ReportFormat, ReportPart, render, said, terminal};
use crate::results::{PublishedFigure, Results};
use std::time::{Duration, Instant};

fn page(parts: &[ReportPart], lang: Language) -> String {
    render(parts, ReportFormat::Html, lang).unwrap()
}

/// Texts of all elements with these names.
fn texts<'a>(of: &'a [XmlElement], names: &[&str]) -> Vec<&'a str> {
    let of = of.iter().filter(|element| names.contains(&element.name.as_str()));
    of.map(|element| element.text.trim()).collect()
}

fn is_japanese(text: &str) -> bool {
    text.chars().any(|c| matches!(c, '\u{3040}'..='\u{30ff}' | '\u{4e00}'..='\u{9fff}'))
}

#[test]
fn the_page_says_everything() {
    let part = plausible();
    let text = page(std::slice::from_ref(&part), Language::English);
    let found = elements(&text).unwrap();
    let headings = texts(&found, &["h2"]);
    assert_eq!(headings[0], "Conclusion");
    for expected in [
        "Real time by jobs",
        "As published",
        "Resources",
        "Controlled experiments",
        "A/A test",
        "Load",
        "Caveats",
        "Machine",
        "Record",
    ] {
        assert!(headings.contains(&expected), "{expected} is not among {headings:?}");
    }
    let words = said(&part.results, &part.analysis, Language::English);
    for sentence in words.verdict.iter().chain(&words.caveats) {
        assert!(texts(&found, &["li"]).contains(&sentence.as_str()), "{sentence}");
    }
    let cells = texts(&found, &["td", "th"]);
    for tool in TOOLS {
        assert!(cells.contains(&tool), "{tool}");
    }
    assert!(cells.contains(&"115"), "what was published");
    for one in ["cpz: not installed", "rsync -j 16 src/ dst/", "Some CPU at 3 GHz", "5b5b"] {
        assert!(text.contains(one), "{one}");
    }
    // One row per run, and a caption for each table.
    assert_eq!(text.matches(">2000 files, 50 compared</td>").count(), part.results.runs.len());
    let count = |tag: &str| text.matches(tag).count();
    assert_eq!((count("<table"), count("<caption>")), (count("</table>"), count("<table")));
    // A chart has a title and a description, is there for wide and narrow pages, and has the name of a file.
    let pictures = count("<svg ");
    assert!(pictures >= 14, "{pictures}");
    for tag in ["<title id=", "<desc id=", "role=\"img\""] {
        assert_eq!(count(tag), pictures, "{tag}");
    }
    for tag in
        ["<figure data-name=\"rsync-parallel", "<svg class=\"large\"", "<svg class=\"small\""]
    {
        assert_eq!(2 * count(tag), pictures, "{tag}");
    }
    // Every internal link has a target.
    let ids: Vec<&str> = attributes(&found, "id");
    for href in attributes(&found, "href") {
        assert!(ids.contains(&href.trim_start_matches('#')), "{href}");
    }
    let mut unique = ids.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), ids.len());
    assert_eq!(
        page(&[part], Language::English),
        text,
        "the same results have to make the same page"
    );
}

fn attributes<'a>(of: &'a [XmlElement], name: &str) -> Vec<&'a str> {
    let all = of.iter().flat_map(|element| &element.attributes);
    all.filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
}

#[test]
fn nothing_is_loaded_from_elsewhere() {
    for parts in [vec![plausible()], vec![odd()], vec![plausible(), slower()]] {
        let text = page(&parts, Language::English);
        let found = elements(&text).unwrap();
        assert!(attributes(&found, "src").is_empty());
        assert!(attributes(&found, "href").iter().all(|href| href.starts_with('#')));
        for word in ["@import", "url(", "<link", "<img", "<iframe", "fetch(", "XMLHttpRequest"] {
            assert!(!text.contains(word), "{word}");
        }
        // Namespace names are not addresses.
        let elsewhere = text.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        assert!(!elsewhere.contains("http://") && !elsewhere.contains("https://"));
        // Colours are CSS variables, which follow light and dark mode.
        for name in ["fill", "stroke"] {
            assert!(attributes(&found, name).iter().all(|color| !color.starts_with('#')));
        }
        assert!(text.contains("prefers-color-scheme: dark") && text.contains("@media print"));
    }
}

#[test]
fn text_of_others_stays_text() {
    let parts = [odd()];
    for lang in [Language::English, Language::Japanese] {
        let text = page(&parts, lang);
        let found = elements(&text).unwrap();
        let names: Vec<&str> = found.iter().map(|element| element.name.as_str()).collect();
        assert!(!names.contains(&"b") && attributes(&found, "onload").is_empty());
        assert!(!text.contains(['\u{1b}', '\u{0}', '\u{202e}']));
        // The text is shown, with unsafe characters replaced.
        let shown = ODD.replace(['\u{1b}', '\u{0}', '\u{202e}'], "\u{fffd}");
        assert!(texts(&found, &["h1"]).contains(&shown.as_str()));
        let markdown = render(&parts, ReportFormat::Markdown, lang).unwrap();
        // Commands are between fences that they cannot end.
        let outside: String = markdown.split("```").step_by(2).collect();
        assert!(!outside.contains("<b>") && !markdown.contains(['\u{1b}', '\u{0}']));
    }
    let svg = render(&parts, ReportFormat::Svg, Language::English).unwrap();
    elements(&svg).unwrap();
    let csv = render(&parts, ReportFormat::Csv, Language::English).unwrap();
    assert!(!csv.contains(['\u{1b}', '\u{0}']));
    let part = &parts[0];
    let lines = terminal::terminal(&part.results, &part.analysis, &TerminalOptions::new(80, false));
    assert!(!lines.contains(['\u{1b}', '\u{0}', '\u{202e}']), "{lines}");
}

#[test]
fn a_large_campaign_is_small_and_soon_there() {
    let part = part(results(&LARGE));
    assert!(part.results.runs.len() >= 500);
    assert!(part.results.curves.iter().all(|curves| curves.t_s.len() == 100));
    let begin = Instant::now();
    let text = page(std::slice::from_ref(&part), Language::English);
    let took = begin.elapsed();
    assert!(text.len() < 1_000_000, "{} bytes", text.len());
    // Debug builds are several times slower.
    assert!(took < Duration::from_secs(5), "{took:?}");
    // Series are thinned.
    for points in text.split("points=\"").skip(1) {
        let points = points.split('"').next().unwrap().split(' ').count();
        assert!(points <= 410, "{points}");
    }
    elements(&text).unwrap();
}

#[test]
fn in_japanese_no_word_of_ours_is_english() {
    for parts in [vec![plausible()], vec![plausible(), slower()]] {
        let text = page(&parts, Language::Japanese);
        assert!(text.contains("<html lang=\"ja\">"));
        let found = elements(&text).unwrap();
        let ours = texts(&found, &["h1", "h2", "h3", "caption", "th", "summary", "figcaption"]);
        for (name, english, japanese) in all() {
            assert!(english == japanese || !ours.contains(&english), "{name}: {english}");
        }
        let headings = texts(&found, &["h2", "h3", "caption", "summary", "figcaption"]);
        let title = &parts[0].results.header.title;
        for text in headings.iter().filter(|text| !text.contains(title.as_str())) {
            let is_name = ["small files", "m5.large", "m5.small"].contains(text);
            assert!(is_japanese(text) || is_name, "{text}");
        }
        assert!(texts(&found, &["li"]).iter().any(|text| text.contains("最も速いのは")));
        // The analysis is in the same language.
        let words = said(&parts[0].results, &parts[0].analysis, Language::Japanese);
        for sentence in words.verdict.iter().chain(&words.caveats) {
            assert!(is_japanese(sentence) && text.contains("<ul lang=\"ja\">"), "{sentence}");
            assert!(texts(&found, &["li"]).contains(&sentence.as_str()), "{sentence}");
        }
        let markdown = render(&parts, ReportFormat::Markdown, Language::Japanese).unwrap();
        for line in markdown.lines().filter(|line| line.starts_with('#')) {
            assert!(is_japanese(line) || line.contains(title.as_str()), "{line}");
        }
    }
}

#[test]
fn machines_stand_side_by_side() {
    let parts = [plausible(), slower()];
    let text = page(&parts, Language::English);
    let found = elements(&text).unwrap();
    assert_eq!(texts(&found, &["h2"])[0], "Machines side by side");
    let heads = texts(&found, &["th"]);
    for head in ["m5.large", "m5.small", "m5.small: speed"] {
        assert!(heads.contains(&head), "{head}: {heads:?}");
    }
    // Half as fast: a ratio of 0.5.
    let ratio = texts(&found, &["td"])
        .iter()
        .any(|text| text.starts_with("50%") || text.starts_with("49%"));
    assert!(ratio);
    // The same machine twice gets distinct names.
    let text = page(&[plausible(), plausible()], Language::English);
    assert!(text.contains("m5.large #1") && text.contains("m5.large #2"));
}

#[test]
fn markdown() {
    let part = plausible();
    let text =
        render(std::slice::from_ref(&part), ReportFormat::Markdown, Language::English).unwrap();
    assert!(text.starts_with("# rsync under GNU parallel, between two volumes\n\n"), "{text}");
    for expected in [
        "## Conclusion\n\n- ",
        "## Real time by jobs",
        "| tool | jobs | real (s) | user (s) | sys (s) | speed |",
        "## As published",
        "| machine | tool | jobs=1 | jobs=4 | jobs=8 | jobs=16 | jobs=32 |",
        "| m5.large | rsync | 115 | 27.6 | 18.5 | 17.2 | 17.1 |",
    ] {
        assert!(text.contains(expected), "{expected} is not in {text}");
    }
    // All rows of a table have as many cells as its head.
    let mut cells = None;
    for line in text.lines() {
        let count = line.replace("\\|", "").matches('|').count();
        match cells {
            Some(expected) if line.starts_with('|') => assert_eq!(count, expected, "{line}"),
            _ => cells = line.starts_with('|').then_some(count),
        }
    }
    for jobs in JOBS {
        assert!(text.contains(&format!("\n| rsync | {jobs} ")), "{jobs}");
    }
}

#[test]
fn csv_has_every_run() {
    let parts = [plausible(), slower()];
    let text = render(&parts, ReportFormat::Csv, Language::English).unwrap();
    let lines: Vec<&str> = text.split("\r\n").collect();
    let runs: usize = parts.iter().map(|part| part.results.runs.len()).sum();
    assert_eq!((lines.len(), lines[runs + 1]), (runs + 2, ""));
    let columns = lines[0].split(',').count();
    assert!(lines[0].starts_with("campaign,machine,group,series,x,cell,block"));
    assert!(lines[0].ends_with(",parameter.jobs,load.cpu_percent"), "{}", lines[0]);
    assert!(lines[1..=runs].iter().all(|line| line.split(',').count() == columns));
    assert!(
        lines[1].starts_with("rsync-parallel,m5.large,small files,hakobu,1,0,0,0,0,false,true,,0,")
    );
}

#[test]
fn json_is_the_analysis() {
    let part = plausible();
    let text = render(std::slice::from_ref(&part), ReportFormat::Json, Language::Japanese).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["schema"], 1);
    let one = &value["results"][0];
    assert_eq!(one["header"]["name"], "rsync-parallel");
    assert_eq!(
        one["analysis"]["verdict"][0],
        said(&part.results, &part.analysis, Language::English).verdict[0].as_str()
    );
    assert_eq!(one["analysis"]["cells"].as_array().unwrap().len(), 26);
    assert_eq!(one["runs"], 130);
}

#[test]
fn svg_has_all_pictures() {
    let parts = [plausible()];
    let text = render(&parts, ReportFormat::Svg, Language::English).unwrap();
    elements(&text).unwrap();
    // One around two: the sweep and the load.
    assert_eq!(text.matches("<svg ").count(), 3);
    // Each has a title and a description.
    assert_eq!([text.matches("<title id=").count(), text.matches("<desc id=").count()], [2, 2]);
    assert!(text.contains("#4477AA") && !text.contains("var(--"));
    let nothing = ReportPart::default();
    assert!(
        render(&[nothing], ReportFormat::Svg, Language::English)
            .unwrap_err()
            .contains("nothing was measured")
    );
    assert!(render(&[], ReportFormat::Html, Language::English).is_err());
}

#[test]
fn what_was_not_measured_is_no_error() {
    let mut without = results(&PLAUSIBLE);
    (without.curves, without.experiments, without.end) = (Vec::new(), Vec::new(), None);
    let mut none = without.clone();
    none.runs.clear();
    let mut unswept = without.clone();
    unswept.header.x_name = None;
    unswept.header.cells.truncate(5);
    unswept.runs.retain(|run| run.cell < 5);
    for (i, cell) in unswept.header.cells.iter_mut().enumerate() {
        (cell.x, cell.series) = (None, TOOLS[i].to_owned());
    }
    for (results, said) in [
        (without, "Caveats"),
        (none, "Conclusion"),
        (unswept, "Side by side"),
        (Results::default(), "Conclusion"),
    ] {
        let parts = [part(results)];
        let text = page(&parts, Language::English);
        elements(&text).unwrap();
        assert!(text.contains(said) && text.contains("The campaign is incomplete"), "{said}");
        elements(&page(&parts, Language::Japanese)).unwrap();
        for format in [ReportFormat::Markdown, ReportFormat::Csv, ReportFormat::Json] {
            render(&parts, format, Language::Japanese).unwrap();
        }
        terminal::terminal(&parts[0].results, &parts[0].analysis, &TerminalOptions::new(80, true));
    }
}

#[test]
fn the_terminal_has_the_same_verdict() {
    let part = plausible();
    for width in [40, 80, 100, 200] {
        let text =
            terminal::terminal(&part.results, &part.analysis, &TerminalOptions::new(width, false));
        for line in text.lines() {
            assert!(line.chars().count() <= width.min(160), "{width}: {line}");
        }
        assert!(!text.contains('\u{1b}'));
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        for sentence in &said(&part.results, &part.analysis, Language::English).verdict {
            assert!(words(&text).contains(&words(sentence)), "{sentence}: {text}");
        }
    }
    let text = terminal::terminal(&part.results, &part.analysis, &TerminalOptions::new(100, true));
    assert!(text.contains("\u{1b}[32m") && text.contains("speed"));
    // Every escape sequence is reset on its line.
    assert!(text.lines().all(|line| line.matches('\u{1b}').count() % 2 == 0));
}

#[test]
fn the_cursor_reads_what_is_drawn() {
    let part = plausible();
    let text = page(&[part], Language::English);
    let scripts: Vec<&str> = text.split("<script type=\"application/json\">").skip(1).collect();
    assert!(scripts.len() >= 6, "{}", scripts.len());
    for script in scripts {
        let json = script.split("</script>").next().unwrap();
        let value: serde_json::Value = serde_json::from_str(json).unwrap();
        let names = value["names"].as_array().unwrap();
        let values = value["values"].as_array().unwrap();
        assert_eq!((names.len(), value["from"].as_f64()), (values.len(), Some(0.0)));
        assert!(value["to"].as_f64().unwrap() > 0.0);
        let length = values[0].as_array().unwrap().len();
        assert!(values.iter().all(|list| list.as_array().unwrap().len() == length));
        // No steal time, no curve for it.
        assert!(names.iter().all(|name| name[0] != "steal"));
    }
}

#[test]
fn formats_have_names() {
    for (name, format) in [
        ("html", Some(ReportFormat::Html)),
        ("md", Some(ReportFormat::Markdown)),
        ("csv", Some(ReportFormat::Csv)),
        ("json", Some(ReportFormat::Json)),
        ("svg", Some(ReportFormat::Svg)),
        ("pdf", None),
    ] {
        assert_eq!(ReportFormat::of_name(name), format);
    }
}

// Tools that do not depend on x: dashed lines and rows of their own.

/// cp has one setting without jobs, and so have its published figures.
fn with_level() -> ReportPart {
    let mut results = results(&PLAUSIBLE);
    let is_level = |series: &str| series == "cp";
    let first = results.header.cells.iter().find(|cell| is_level(&cell.series)).unwrap().id;
    results.header.cells.retain(|cell| !is_level(&cell.series) || cell.id == first);
    results.runs.retain(|run| results.header.cells.iter().any(|cell| cell.id == run.cell));
    for cell in results.header.cells.iter_mut().filter(|cell| cell.id == first) {
        cell.x = None;
        cell.parameters.clear();
    }
    results.header.published.push(PublishedFigure {
        machine: "m5.large".into(),
        series: "cp".into(),
        group: None,
        x: None,
        value: 9000.0,
    });
    part(results)
}

fn chart(part: &ReportPart) -> Chart {
    picture(&part.facts(), "small files", words_in(Language::English)).unwrap().chart
}

#[test]
fn they_are_dashed_lines_without_intervals() {
    let part = with_level();
    let chart = chart(&part);
    let [panel] = &chart.panels[..] else { panic!("{:?}", chart.panels.len()) };
    let levels: Vec<&ChartSeries> =
        panel.series.iter().filter(|series| series.form == SeriesForm::Level).collect();
    let [level] = levels[..] else { panic!("{levels:?}") };
    assert_eq!(level.name, "cp");
    let [(from, a), (to, b)] = level.points[..] else { panic!("{:?}", level.points) };
    assert_eq!(((from, to), a), (chart.x, b));
    let colors = |form| panel.series.iter().filter(move |of| of.form == form).map(|of| of.color);
    assert!(colors(SeriesForm::Intervals).all(|color| color != level.color));
    // Without x there is no knee.
    assert!(!part.analysis.sweeps.iter().any(|sweep| sweep.series == "cp"));
    // Published figures of other machines do not stretch the axis.
    assert!(!chart.svg().unwrap().contains("\n10,000\n"));
}

#[test]
fn they_have_rows_of_the_table() {
    let text = render(&[with_level()], ReportFormat::Markdown, Language::English).unwrap();
    let row = text.lines().find(|line| line.starts_with("| cp | – | ")).expect("a row of cp");
    let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
    assert!(cells[2].starts_with('5') || cells[2].starts_with('6'), "{row}");
    assert!(cells[5].contains('%'), "{row}");
    // The study's figure is in its own table.
    assert!(text.contains("| m5.large | cp | 9,000 |"), "{text}");
}

#[test]
fn load_is_that_of_the_command() {
    let mut part = plausible();
    let own = page(std::slice::from_ref(&part), Language::English);
    for name in ["user (command)", "system (command)", "all processes", "busiest CPU", "iowait"] {
        assert!(own.contains(&format!("\n{name}\n")), "{name}");
    }
    assert!(own.contains("Means, in percent of all CPUs: the command ") && !own.contains("(mean)"));
    // A setting that has one of the two CPUs, and disks and networks that did nothing.
    for cell in &mut part.results.header.cells {
        cell.conditions.insert("cpus".into(), "1".into());
    }
    for curves in &mut part.results.curves {
        for name in ["read", "write", "iops", "net"] {
            curves.values.get_mut(name).unwrap().fill(10.0);
        }
    }
    let confined = page(std::slice::from_ref(&part), Language::English);
    assert!(confined.contains("\n1 CPU allowed\n") && !own.contains(" allowed\n"));
    assert!(own.contains("\nNetwork\n") && !confined.contains("\nNetwork\n"));
    // Results of older versions do not have it.
    for curves in &mut part.results.curves {
        curves.values.retain(|name, _| !name.starts_with("own_"));
    }
    let old = page(&[part], Language::English);
    assert!(old.contains("\ncommand (mean)\n") && !old.contains("(command)"));
    assert!(old.contains("Means of the whole machine: user "));
}

#[test]
fn short_runs_have_no_curves() {
    let mut part = plausible();
    for curves in &mut part.results.curves {
        curves.t_s.truncate(9);
        curves.values.values_mut().for_each(|values| values.truncate(9));
    }
    let text = page(&[part], Language::English);
    assert!(text.contains("Caveats") && !text.contains("Runs one after the other"));
}

#[test]
fn two_commands_take_few_lines() {
    let mut results = results(&PLAUSIBLE);
    results.header.x_name = None;
    results.header.cells.truncate(2);
    results.runs.retain(|run| run.cell < 2);
    for (cell, name) in results.header.cells.iter_mut().zip(["sleep 0.1", "sleep 0.2"]) {
        (cell.x, cell.series) = (None, name.to_owned());
        cell.parameters.clear();
    }
    let part = part(results);
    let text = terminal::terminal(&part.results, &part.analysis, &TerminalOptions::new(100, false));
    assert!(text.lines().count() <= 15, "{text}");
    // Nothing is there twice.
    let mut lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let all = lines.len();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), all, "{text}");
}
