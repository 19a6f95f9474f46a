//! Changes a page of a listing, as if keys had been added or deleted between pages, or the server did not
//! sort.

use super::xml::push_escaped;

const OPEN: &str = "<Contents>";
const CLOSE: &str = "</Contents>";

/// Drops the first `drop` keys of a page, adds a key, and exchanges the first and the last key. Text that is
/// no listing, or has no keys, is returned unchanged.
pub fn changed(page: &str, drop: usize, add: Option<&str>, swap: bool) -> String {
    let (Some(start), Some(end)) = (page.find(OPEN), page.rfind(CLOSE)) else {
        return page.to_owned();
    };
    let end = end + CLOSE.len();
    let mut entries: Vec<String> =
        page[start..end].split_inclusive(CLOSE).map(str::to_owned).collect();
    let like = entries.first().cloned().unwrap_or_default();
    entries.drain(..drop.min(entries.len()));
    if let Some(key) = add {
        let added = named(&like, key);
        let at = entries.iter().position(|entry| key_of(entry) > key_of(&added));
        entries.insert(at.unwrap_or(entries.len()), added);
    }
    if swap && entries.len() > 1 {
        let last = entries.len() - 1;
        entries.swap(0, last);
    }
    [&page[..start], &entries.concat(), &page[end..]].concat()
}

/// Key of the entry as written.
fn key_of(entry: &str) -> &str {
    let rest = entry.split_once("<Key>").map_or("", |(_, rest)| rest);
    rest.split_once("</Key>").map_or("", |(key, _)| key)
}

/// The entry with another key.
fn named(entry: &str, key: &str) -> String {
    let mut escaped = Vec::new();
    push_escaped(key.as_bytes(), &mut escaped);
    let old = format!("<Key>{}</Key>", key_of(entry));
    entry.replacen(&old, &format!("<Key>{}</Key>", String::from_utf8_lossy(&escaped)), 1)
}

#[cfg(test)]
mod tests {
    use super::changed;

    #[test]
    fn pages() {
        let page = |keys: &str| {
            let entries = keys
                .split_whitespace()
                .map(|key| format!("<Contents><Key>{key}</Key><Size>1</Size></Contents>"))
                .collect::<String>();
            format!("<L><KeyCount>3</KeyCount>{entries}<X/></L>")
        };
        for (drop, add, swap, keys) in [
            (0, None, false, "a b d"),
            (1, None, false, "b d"),
            (9, None, false, ""),
            (0, Some("c"), false, "a b c d"),
            (1, Some("e"), false, "b d e"),
            (0, Some("a&"), false, "a a&amp; b d"),
            (0, None, true, "d b a"),
        ] {
            assert_eq!(
                changed(&page("a b d"), drop, add, swap),
                page(keys),
                "{drop} {add:?} {swap}"
            );
        }
        assert_eq!(changed("<Error/>", 1, Some("x"), true), "<Error/>");
    }
}
