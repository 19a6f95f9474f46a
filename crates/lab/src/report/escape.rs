//! Escapes foreign text (names, commands, versions), so that it cannot become markup, a column, or a terminal
//! sequence.

pub(super) use crate::chart::html;
use crate::chart::shown;
use crate::csv;

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
            c => out.push(shown(c)),
        }
    }
    out
}

/// Formats a line of a CSV file.
pub(super) fn csv_line(fields: &[String]) -> String {
    let fields: Vec<String> = fields.iter().map(|text| csv::field(text)).collect();
    fields.join(",") + "\r\n"
}

/// Makes text safe for a terminal, on one line.
pub(super) fn terminal(text: &str) -> String {
    text.chars().map(|c| if c == '\n' || c == '\t' { ' ' } else { shown(c) }).collect()
}

/// Escapes JSON for a script element in HTML and XML.
pub(super) fn json_in_script(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;

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
