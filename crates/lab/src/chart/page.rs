//! Pictures inside a page: the page gives the colours, so that they follow light and dark, and words
//! stand for what is seen.

use super::Words;
use super::escape::html;

/// What is drawn with, and what a page has for it.
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

/// What says nothing, or what the page's style says.
const NEEDLESS: &[&str] =
    &[" opacity=\"1\"", " stroke=\"none\"", " font-family=\"Helvetica, Arial, sans-serif\""];

/// A picture for a page. Quotes in texts are escaped, so that attributes are never mistaken.
pub(super) fn svg(drawn: &str, words: Words<'_>) -> String {
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
    // Points end with a space each.
    text = text.replace(" \"/>", "\"/>");
    let id = words.id;
    let role = format!("<svg role=\"img\" aria-labelledby=\"{id}-t {id}-d\" ");
    text = text.replacen("<svg ", &role, 1);
    let inner = format!(
        ">\n<title id=\"{id}-t\">{}</title>\n<desc id=\"{id}-d\">{}</desc>\n",
        html(words.title),
        html(words.description)
    );
    text.replacen(">\n", &inner, 1)
}
