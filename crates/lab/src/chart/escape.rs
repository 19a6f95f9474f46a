//! Texts of others inside XML and HTML: nothing in them may become markup.

/// For text and for attributes with quotes.
pub(crate) fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c => out.push(shown(c)),
        }
    }
    out
}

/// Control characters, what XML cannot hold, and what turns the direction of a text become the
/// replacement character.
pub(crate) fn shown(c: char) -> char {
    let is_direction = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let none = c.is_control() || is_direction || matches!(c, '\u{fffe}' | '\u{ffff}');
    if none { '\u{fffd}' } else { c }
}
