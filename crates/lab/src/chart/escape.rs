//! Escapes foreign text for XML and HTML.

/// Escapes text for element content and quoted attributes.
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

/// Replaces control characters, characters invalid in XML, and bidirectional controls by U+FFFD.
pub(crate) fn shown(c: char) -> char {
    let is_direction = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let none = c.is_control() || is_direction || matches!(c, '\u{fffe}' | '\u{ffff}');
    if none { '\u{fffd}' } else { c }
}
