//! Fast parser for the simple XML of listings: four times as fast as a full parser, and gives up on anything
//! unknown.
//!
//! Supported: element names of ASCII letters and digits, no attributes except one `xmlns`, no comments,
//! sections, declarations or processing instructions after the first line, and only the five predefined
//! references.

use super::{DEPTH_MAX, Node};

/// Walks a document like [`super::walk`]. `None` if the document is not simple, valid or not: then passed-on
/// nodes must be discarded.
pub(crate) fn walk_plain(
    document: &[u8],
    root: &[u8],
    mut visit: impl FnMut(Node<'_>),
) -> Option<()> {
    let mut open: Vec<&[u8]> = Vec::with_capacity(8);
    let mut scratch = Vec::new();
    let mut rest = after_declaration(document)?;
    let (name, inside, empty) = start(rest)?;
    if name != root || empty {
        return None;
    }
    if after_space(inside)?.starts_with(b"/") {
        return None; // a root that is a leaf
    }
    open.push(name);
    rest = inside;
    while let Some(parent) = open.last().copied() {
        rest = after_space(rest)?;
        if let Some(end) = rest.strip_prefix(b"/") {
            rest = end.strip_prefix(parent)?.strip_prefix(b">")?;
            open.pop();
            let around = open.last().copied().unwrap_or_default();
            visit(Node::End { parent: around, name: parent });
            continue;
        }
        let (name, inside, empty) = start_inside(rest)?;
        if empty {
            visit(Node::Leaf { parent, name, text: b"" });
            rest = inside;
            continue;
        }
        let at = memchr::memchr(b'<', inside)?;
        let (text, end) = (&inside[..at], &inside[at + 1..]);
        if end.first() == Some(&b'/') {
            rest = end[1..].strip_prefix(name)?.strip_prefix(b">")?;
            let text = resolved(text, &mut scratch)?;
            visit(Node::Leaf { parent, name, text });
        } else if open.len() < DEPTH_MAX - 1 {
            open.push(name);
            rest = inside;
        } else {
            return None;
        }
    }
    rest.trim_ascii().is_empty().then_some(())
}

fn after_declaration(document: &[u8]) -> Option<&[u8]> {
    let rest = document.trim_ascii_start();
    let Some(declaration) = rest.strip_prefix(b"<?xml ") else { return Some(rest) };
    let end = memchr::memchr(b'>', declaration)?;
    let inner = declaration[..end].strip_suffix(b"?")?;
    let plain = inner.iter().all(|byte| byte.is_ascii_alphanumeric() || b" .-=\"'".contains(byte));
    plain.then(|| declaration[end + 1..].trim_ascii_start())
}

/// A start tag: its name, the text after it, and whether it is self-closing.
fn start(text: &[u8]) -> Option<(&[u8], &[u8], bool)> {
    start_inside(text.strip_prefix(b"<")?)
}

/// As [`start`], after its `<`.
fn start_inside(text: &[u8]) -> Option<(&[u8], &[u8], bool)> {
    let length = text.iter().position(|byte| !byte.is_ascii_alphanumeric())?;
    let (name, rest) = text.split_at(length);
    if !name.first()?.is_ascii_alphabetic() {
        return None;
    }
    let rest = match rest.strip_prefix(b" xmlns=\"") {
        Some(space) => {
            let end = memchr::memchr(b'"', space)?;
            let (uri, rest) = space.split_at(end);
            let plain =
                uri.iter().all(|byte| byte.is_ascii_alphanumeric() || b":/.-_".contains(byte));
            plain.then_some(&rest[1..])?
        }
        None => rest,
    };
    match rest {
        [b'>', rest @ ..] => Some((name, rest, false)),
        [b'/', b'>', rest @ ..] => Some((name, rest, true)),
        _ => None,
    }
}

/// Returns the text after the next `<`; `None` if anything but white space stands before it. Text between elements is
/// no part of a listing, and only the full parser knows whether it is well formed.
fn after_space(text: &[u8]) -> Option<&[u8]> {
    text.trim_ascii_start().strip_prefix(b"<")
}

/// Text with references resolved, borrowed if there are none.
fn resolved<'t>(text: &'t [u8], scratch: &'t mut Vec<u8>) -> Option<&'t [u8]> {
    let Some(first) = memchr::memchr(b'&', text) else { return Some(text) };
    scratch.clear();
    scratch.extend_from_slice(&text[..first]);
    let mut rest = &text[first..];
    while let Some(reference) = rest.strip_prefix(b"&") {
        let (byte, length) = match reference {
            [b'q', b'u', b'o', b't', b';', ..] => (b'"', 5),
            [b'a', b'm', b'p', b';', ..] => (b'&', 4),
            [b'l', b't', b';', ..] => (b'<', 3),
            [b'g', b't', b';', ..] => (b'>', 3),
            [b'a', b'p', b'o', b's', b';', ..] => (b'\'', 5),
            [b'#', b'3', b'4', b';', ..] => (b'"', 4),
            [b'#', b'3', b'9', b';', ..] => (b'\'', 4),
            _ => return None,
        };
        scratch.push(byte);
        rest = &reference[length..];
        let until = memchr::memchr(b'&', rest).unwrap_or(rest.len());
        scratch.extend_from_slice(&rest[..until]);
        rest = &rest[until..];
    }
    Some(scratch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xml::walk;
    use proptest::prelude::*;

    /// Nodes as text; `None` if the parser gives up.
    fn fast(document: &[u8], root: &[u8]) -> Option<Vec<String>> {
        let mut nodes = Vec::new();
        walk_plain(document, root, |node| nodes.push(format!("{node:?}"))).map(|()| nodes)
    }

    fn thorough(document: &[u8], root: &[u8]) -> Option<Vec<String>> {
        let mut nodes = Vec::new();
        walk(document, root, |node| nodes.push(format!("{node:?}"))).ok().map(|()| nodes)
    }

    const PLAIN: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
        <R xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><A>x&amp;y&quot;</A> <B>\n<C>1</C><D/>\
        <E></E></B><A>&lt;&gt;&apos;&#34;&#39;</A></R>\n";

    #[test]
    fn a_plain_document_is_read_as_the_parser_reads_it() {
        let nodes = fast(PLAIN.as_bytes(), b"R").unwrap();
        assert_eq!(nodes.len(), 7);
        assert_eq!(Some(nodes), thorough(PLAIN.as_bytes(), b"R"));
    }

    #[test]
    fn it_gives_up_on_all_else() {
        for document in [
            "",
            "<R",
            "<R/>",
            "<R></R>",
            "<R>x</R>",
            "<R></R>x",
            "<R><A></B></R>",
            "<R><!-- --></R>",
            "<R><A>&x;</A></R>",
            "<R><A b='1'/></R>",
            "<R><a:b/></R>",
            "<R><A>1</A>",
            "<S></S>",
            "<R><![CDATA[x]]></R>",
            "<R>x<A>1</A></R>",
            "<R><A>1</A>&000;</R>",
            "<R><A>1</A>&000</R>",
            "<R><A>x<B>1</B></A></R>",
            "<R><A>&#65;</A></R>",
            "<R xmlns=\"&amp;\"></R>",
            "<R><1/></R>",
        ] {
            assert_eq!(fast(document.as_bytes(), b"R"), None, "{document}");
        }
        let deep = format!("<R>{}{}</R>", "<a>".repeat(99), "</a>".repeat(99));
        assert_eq!(fast(deep.as_bytes(), b"R"), None);
    }

    proptest! {
        #[test]
        fn what_it_reads_is_what_the_parser_reads(
            changes in prop::collection::vec((0..PLAIN.len(), any::<u8>()), 0..4),
            cut in 1..PLAIN.len() * 3,
        ) {
            let mut bytes = PLAIN.as_bytes().to_vec();
            for (at, byte) in changes {
                bytes[at] = byte;
            }
            bytes.truncate(cut);
            if let Some(nodes) = fast(&bytes, b"R") {
                prop_assert_eq!(Some(nodes), thorough(&bytes, b"R"));
            }
        }

        #[test]
        fn the_same_for_any_markup(text in "(<R>)?(</?[abR]/?>|[ab ]|&amp;|&lt;|<a>b</a>){0,12}(</R>)?") {
            if let Some(nodes) = fast(text.as_bytes(), b"R") {
                prop_assert_eq!(Some(nodes), thorough(text.as_bytes(), b"R"));
            }
        }
    }
}
