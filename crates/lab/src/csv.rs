//! Fields of CSV files (RFC 4180): those of reports, comparisons, exports and recordings.
//!
//! A spreadsheet takes a cell that begins with `=`, `+`, `-`, `@`, a tab or a line end for a formula, and runs it when the
//! file is opened. Names and commands are foreign text, so such a cell gets an apostrophe before it (OWASP, CSV
//! Injection). Numbers stay as they are.

use crate::chart::shown;

/// Returns a text as a field: harmless for spreadsheets and terminals, quoted if necessary.
pub(crate) fn field(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c == '\n' { c } else { shown(c) }).collect();
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
            assert_eq!(field(text), cell, "{text:?}");
        }
    }
}
