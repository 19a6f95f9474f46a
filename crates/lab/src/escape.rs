//! Escapes foreign text (names, commands, versions) for HTML and XML, Markdown, CSV (RFC 4180) and terminals, so that it
//! cannot become markup, a column, a formula or a terminal sequence.
//!
//! A spreadsheet takes a cell that begins with `=`, `+`, `-`, `@`, a tab or a line end for a formula, and runs it when the
//! file is opened. Names and commands are foreign text, so such a cell gets an apostrophe before it (OWASP, CSV
//! Injection). Numbers stay as they are.

/// Returns a text as a field: harmless for spreadsheets and terminals, quoted if necessary.
pub(crate) fn csv_field(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c == '\n' { c } else { visible_char(c) }).collect();
    let out = if is_formula(text) { format!("'{plain}") } else { plain };
    if out.contains([',', '"', '\n', '\r', ';']) || out.starts_with(' ') || out.ends_with(' ') {
        return format!("\"{}\"", out.replace('"', "\"\""));
    }
    out
}

/// Returns whether a spreadsheet would evaluate a cell. The full-width forms are those that some of them convert.
fn is_formula(text: &str) -> bool {
    const STARTS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];
    text.starts_with(STARTS) && !is_number(text)
}

/// Returns whether a text is a number as this program writes it.
fn is_number(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
    text == "-inf" || (text.chars().all(plain) && text.parse::<f64>().is_ok())
}

/// Escapes text for a Markdown table cell or paragraph, on one line.
pub(super) fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => {
                out.push('\\');
                out.push(c);
            }
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\n' | '\t' => out.push(' '),
            c => out.push(visible_char(c)),
        }
    }
    out
}

/// Formats a line of a CSV file.
pub(super) fn csv_line(fields: &[String]) -> String {
    let fields: Vec<String> = fields.iter().map(|text| csv_field(text)).collect();
    fields.join(",") + "\r\n"
}

/// Makes text safe for a terminal, on one line.
pub(super) fn terminal(text: &str) -> String {
    text.chars().map(|c| if c == '\n' || c == '\t' { ' ' } else { visible_char(c) }).collect()
}

/// Escapes JSON for a script element in HTML and XML.
pub(super) fn json_in_script(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

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
            c => out.push(visible_char(c)),
        }
    }
    out
}

/// Replaces control characters, characters invalid in XML, and bidirectional controls by U+FFFD.
pub(crate) fn visible_char(c: char) -> char {
    let is_direction = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let none = c.is_control() || is_direction || matches!(c, '\u{fffe}' | '\u{ffff}');
    if none { '\u{fffd}' } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_no_formula() {
        for (text, cell) in [
            ("a", "a"),
            ("", ""),
            ("=1+1", "'=1+1"),
            ("=HYPERLINK(\"http://x\",\"y\")", "\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\""),
            ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
            ("-2+3", "'-2+3"),
            ("--version", "'--version"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\u{fffd}=1"),
            ("\r=1", "'\u{fffd}=1"),
            ("\n=1", "\"'\n=1\""),
            ("＝1", "'＝1"),
            ("a=1", "a=1"),
            ("-1.5", "-1.5"),
            ("-1.2e-7", "-1.2e-7"),
            ("+4", "+4"),
            ("-inf", "-inf"),
            ("-", "'-"),
            ("-infinity", "'-infinity"),
            ("a;=b", "\"a;=b\""),
            ("a,\"b\"\n\u{1b}", "\"a,\"\"b\"\"\n\u{fffd}\""),
        ] {
            assert_eq!(csv_field(text), cell, "{text:?}");
        }
    }

    #[test]
    fn nothing_gets_out() {
        let odd = "a<b>&\"c'|`d`\u{1b}[2J\u{0}\u{202e}\n*e*, f";
        assert_eq!(html(odd), "a&lt;b&gt;&amp;&quot;c&#39;|`d`\u{fffd}[2J\u{fffd}\u{fffd}\n*e*, f");
        let line = markdown(odd);
        assert!(line.starts_with("a&lt;b&gt;&amp;\"c'\\|\\`d\\`\u{fffd}\\[2J"), "{line}");
        assert!(!line.contains(['\n', '\u{1b}', '<']) && line.ends_with("\\*e\\*, f"), "{line}");
        assert_eq!(terminal("a\u{1b}[2J\nb"), "a\u{fffd}[2J b");
        assert_eq!(json_in_script("\"</script>&\""), "\"\\u003c/script\\u003e\\u0026\"");
    }
}
