//! Strict parser for the subset of XML that pages use.

/// An element: its name, and its own text without that of child elements.
#[derive(Debug)]
pub(super) struct XmlElement {
    pub(super) name: String,
    pub(super) attributes: Vec<(String, String)>,
    pub(super) text: String,
}

/// All elements in the order of their end tags. Malformed XML is an error with the text around it.
pub(super) fn elements(text: &str) -> Result<Vec<XmlElement>, String> {
    let mut rest = text.strip_prefix("<!DOCTYPE html>\n").unwrap_or(text);
    let (mut open, mut done): (Vec<XmlElement>, Vec<XmlElement>) = (Vec::new(), Vec::new());
    while !rest.is_empty() {
        let around = || rest.chars().take(80).collect::<String>();
        let Some(tag) = rest.strip_prefix('<') else {
            let end = rest.find('<').unwrap_or(rest.len());
            let (plain, behind) = rest.split_at(end);
            let plain = unescaped(plain).ok_or_else(|| format!("a bare &: {}", around()))?;
            match open.last_mut() {
                Some(element) => element.text.push_str(&plain),
                None if plain.trim().is_empty() => {}
                None => return Err(format!("text outside: {}", around())),
            }
            rest = behind;
            continue;
        };
        let end = tag_end(tag).ok_or_else(|| format!("a tag without end: {}", around()))?;
        let (inside, behind) = (&tag[..end], &tag[end + 1..]);
        if let Some(name) = inside.strip_prefix('/') {
            let element = open.pop().filter(|element| element.name == name);
            done.push(element.ok_or_else(|| format!("closes nothing: {}", around()))?);
        } else {
            let (inside, is_empty) =
                inside.strip_suffix('/').map_or((inside, false), |inside| (inside, true));
            let element = begun(inside).ok_or_else(|| format!("no tag: {}", around()))?;
            if is_empty { done.push(element) } else { open.push(element) }
        }
        rest = behind;
    }
    match open.last() {
        Some(element) => Err(format!("{} is not closed", element.name)),
        None => Ok(done),
    }
}

/// End of a tag: the first `>` outside quotes.
fn tag_end(tag: &str) -> Option<usize> {
    let mut in_quotes = false;
    for (at, c) in tag.char_indices() {
        match c {
            '"' => in_quotes = !in_quotes,
            '>' if !in_quotes => return Some(at),
            '<' => return None,
            _ => {}
        }
    }
    None
}

fn begun(inside: &str) -> Option<XmlElement> {
    let (name, mut rest) = inside.split_once(' ').unwrap_or((inside, ""));
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == ':';
    if name.is_empty() || !name.chars().all(is_name) {
        return None;
    }
    let mut attributes: Vec<(String, String)> = Vec::new();
    while !rest.trim().is_empty() {
        let (key, behind) = rest.trim_start().split_once("=\"")?;
        let (value, behind) = behind.split_once('"')?;
        if !key.chars().all(is_name) || attributes.iter().any(|(other, _)| other == key) {
            return None;
        }
        attributes.push((key.to_owned(), unescaped(value)?));
        rest = behind;
    }
    Some(XmlElement { name: name.to_owned(), attributes, text: String::new() })
}

/// Replaces references in a text; `None` for an invalid reference or character.
fn unescaped(text: &str) -> Option<String> {
    let is_bad = |c: char| c < ' ' && !matches!(c, '\n' | '\t' | '\r');
    if text.chars().any(is_bad) {
        return None;
    }
    let mut parts = text.split('&');
    let mut out = parts.next()?.to_owned();
    for part in parts {
        let (name, behind) = part.split_once(';')?;
        out.push(match name {
            "lt" => '<',
            "gt" => '>',
            "amp" => '&',
            "quot" => '"',
            "apos" | "#39" => '\'',
            _ => return None,
        });
        out.push_str(behind);
    }
    Some(out)
}

#[test]
fn the_reader_is_strict() {
    let found = elements("<a b=\"1 &lt; 2\">x<br/>y &amp; z</a>\n").unwrap();
    assert_eq!(found[1].text, "xy & z");
    assert_eq!(found[1].attributes, [("b".to_owned(), "1 < 2".to_owned())]);
    for wrong in [
        "<a>",
        "<a></b>",
        "</a>",
        "<a>&</a>",
        "<a>&nbsp;</a>",
        "<a b=1/>",
        "<a b=\"1\" b=\"2\"/>",
        "x",
        "<a>\u{1}</a>",
        "<a <b>",
        "<a b=\"<\"/>",
    ] {
        assert!(elements(wrong).is_err(), "{wrong}");
    }
}
