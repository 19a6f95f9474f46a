//! Adapts charts to HTML pages: colours are CSS variables, so that they follow light and dark mode, and text
//! describes the content.

use super::escape::html;

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
    labelled(&text, words)
}

/// Adds an accessible name and description.
pub(super) fn labelled(text: &str, words: ChartLabel<'_>) -> String {
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
