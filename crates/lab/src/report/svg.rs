//! The pictures of a report as one SVG file: those of its groups, then the load, below each other.

use super::Part;
use super::load::timeline;
use super::sweep;
use super::words::Words;
use crate::chart::WIDTH_PX;

/// The file.
///
/// # Errors
/// A sentence: nothing was measured, or it cannot be drawn.
pub(super) fn text(parts: &[Part], words: &Words) -> Result<String, String> {
    let mut pictures = Vec::new();
    for part in parts {
        let facts = part.facts();
        for group in facts.groups() {
            if let Some(found) = sweep::picture(&facts, group, words) {
                pictures.push(found.chart.svg()?);
            }
        }
        if let Some(load) = timeline(&facts, words) {
            pictures.push(load.chart.svg()?);
        }
    }
    match pictures.as_slice() {
        [] => Err("nothing was measured that could be drawn".into()),
        [one] => Ok(one.clone()),
        several => stacked(several),
    }
}

/// Pictures inside one: each keeps its own size and is moved down by those before it.
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

/// The height that a picture says of itself.
fn height_px(picture: &str) -> Option<u32> {
    let tag = picture.split('>').next()?;
    tag.split(" height=\"").nth(1)?.split('"').next()?.parse().ok()
}
