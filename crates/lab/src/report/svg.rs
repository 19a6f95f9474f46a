//! Charts of a report in one SVG file: those of the groups, then the load.

use super::load::timeline;
use super::part::ReportPart;
use super::sweep;
use super::words::ReportWords;
use crate::chart::{Chart, ChartLabel, WIDTH_PX};

/// Formats the file.
///
/// # Errors
/// A message: nothing was measured, or a chart cannot be drawn.
pub(super) fn charts_svg(parts: &[ReportPart], words: &ReportWords) -> Result<String, String> {
    let mut pictures = Vec::new();
    let mut add = |chart: &Chart, title: &str, description: &str| -> Result<(), String> {
        let id = format!("picture-{}", pictures.len() + 1);
        pictures.push(chart.svg_with(ChartLabel { id: &id, title, description })?);
        Ok(())
    };
    for part in parts {
        let facts = part.facts();
        for group in facts.groups() {
            if let Some(of) = sweep::picture(&facts, group, words) {
                add(&of.chart, &of.chart.title, &of.description)?;
            }
        }
        if let Some(load) = timeline(&facts, words) {
            add(&load.chart, &load.caption, &load.description)?;
        }
    }
    match pictures.as_slice() {
        [] => Err("nothing was measured that could be drawn".into()),
        [one] => Ok(one.clone()),
        several => stacked(several),
    }
}

/// Stacks charts in one image; each keeps its size.
fn stacked(pictures: &[String]) -> Result<String, String> {
    let (mut inside, mut height) = (String::new(), 0u32);
    for picture in pictures {
        let begin = format!("<svg y=\"{height}\" ");
        inside.push_str(&picture.replacen("<svg ", &begin, 1));
        height = height.saturating_add(height_px(picture).ok_or("a picture has no height")?);
    }
    Ok(format!(
        "<svg width=\"{WIDTH_PX}\" height=\"{height}\" viewBox=\"0 0 {WIDTH_PX} {height}\" \
         xmlns=\"http://www.w3.org/2000/svg\">\n{inside}</svg>\n"
    ))
}

/// Height attribute of a chart.
fn height_px(picture: &str) -> Option<u32> {
    let tag = picture.split('>').next()?;
    tag.split(" height=\"").nth(1)?.split('"').next()?.parse().ok()
}
