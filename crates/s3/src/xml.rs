//! Streaming XML parsers for S3 documents: they build no tree and pass each leaf on once. [`walk`] reads every document;
//! [`walk_plain`] reads the simple XML of listings four times as fast, and gives up on anything unknown.

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use std::borrow::Cow;

/// Most nested elements; S3 needs five.
const DEPTH_MAX: usize = 32;

/// A node of a document, in document order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node<'n> {
    /// An element without child elements.
    Leaf {
        /// Parent element without namespace prefix; empty for the root.
        parent: &'n [u8],
        /// Name without namespace prefix.
        name: &'n [u8],
        /// Text without markup, including whitespace.
        text: &'n [u8],
    },
    /// End of an element with child elements.
    End {
        /// Parent element; empty for the root.
        parent: &'n [u8],
        name: &'n [u8],
    },
}

/// Reason for rejecting a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum XmlError {
    /// Malformed or truncated: problem and position.
    Malformed(String),
    /// The root is this element instead of the expected one.
    Root(String),
}

/// An open element.
struct Open<'a> {
    start: BytesStart<'a>,
    leaf: bool,
}

/// Walks a document whose root must be `root` (any if empty). Nodes before an error have already been passed
/// on.
pub(crate) fn walk(
    document: &[u8],
    root: &[u8],
    mut visit: impl FnMut(Node<'_>),
) -> Result<(), XmlError> {
    let mut reader = Reader::from_reader(document);
    reader.config_mut().expand_empty_elements = true;
    let mut open: Vec<Open<'_>> = Vec::with_capacity(8);
    let mut text = Cow::Borrowed(&b""[..]);
    let mut rooted = false;
    loop {
        let event = match reader.read_event() {
            Ok(event) => event,
            Err(error) => return Err(malformed(&reader, &error.to_string())),
        };
        match event {
            Event::Start(start) => {
                match open.last_mut() {
                    Some(parent) => parent.leaf = false,
                    None if rooted => return Err(malformed(&reader, "a second root")),
                    None => check_root(&start, root)?,
                }
                if open.len() == DEPTH_MAX {
                    return Err(malformed(&reader, "too many elements inside each other"));
                }
                rooted = true;
                open.push(Open { start, leaf: true });
                text = Cow::Borrowed(b"");
            }
            Event::End(_) => {
                let Some(Open { start, leaf }) = open.pop() else {
                    return Err(malformed(&reader, "an end without a start"));
                };
                let (name, around) = (start.local_name(), open.last());
                let around = around.map(|open| open.start.local_name());
                let parent = around.as_ref().map_or(&b""[..], |name| name.as_ref());
                visit(match leaf {
                    true => Node::Leaf { parent, name: name.as_ref(), text: &text },
                    false => Node::End { parent, name: name.as_ref() },
                });
            }
            Event::Text(piece) => add(&mut text, piece.into_inner()),
            Event::CData(piece) => add(&mut text, piece.into_inner()),
            Event::GeneralRef(reference) => match entity(&reference) {
                Some(character) => add(&mut text, Cow::Owned(character.into_bytes())),
                None => return Err(malformed(&reader, "an unknown entity")),
            },
            Event::Eof if open.is_empty() && rooted => return Ok(()),
            Event::Eof => return Err(malformed(&reader, "it ends too early")),
            _ => {}
        }
    }
}

fn malformed(reader: &Reader<&[u8]>, why: &str) -> XmlError {
    XmlError::Malformed(format!("{why}, at byte {}", reader.buffer_position()))
}

fn check_root(start: &BytesStart<'_>, root: &[u8]) -> Result<(), XmlError> {
    let name = start.local_name();
    let fits = root.is_empty() || name.as_ref() == root;
    let found = || XmlError::Root(String::from_utf8_lossy(name.as_ref()).into_owned());
    if fits { Ok(()) } else { Err(found()) }
}

/// A single piece of text is borrowed, several are joined.
fn add<'a>(text: &mut Cow<'a, [u8]>, piece: Cow<'a, [u8]>) {
    if text.is_empty() {
        *text = piece;
    } else {
        text.to_mut().extend_from_slice(&piece);
    }
}

fn entity(reference: &BytesRef<'_>) -> Option<String> {
    match reference.resolve_char_ref() {
        Ok(Some(character)) => Some(character.to_string()),
        Ok(None) => resolve_predefined_entity(&reference.decode().ok()?).map(str::to_owned),
        Err(_) => None,
    }
}

/// Escapes text for element content, including whitespace that a parser would change. `None` for text that
/// XML 1.0 cannot represent: control characters, U+FFFE, U+FFFF, invalid UTF-8.
pub(crate) fn escaped(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' => out.push_str("&#x9;"),
            '\n' => out.push_str("&#xA;"),
            '\r' => out.push_str("&#xD;"),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => return None,
            _ => out.push(character),
        }
    }
    Some(out)
}

/// Walks a document like [`walk`]. `None` if the document is not simple, valid or not: then passed-on
/// nodes must be discarded.
pub(crate) fn walk_plain(
    document: &[u8],
    root: &[u8],
    mut visit: impl FnMut(Node<'_>),
) -> Option<()> {
    let mut open: Vec<&[u8]> = Vec::with_capacity(8);
    let mut scratch = Vec::new();
    let mut rest = after_declaration(document)?;
    let (name, inside, empty) = plain_start(rest)?;
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
        let (name, inside, empty) = plain_start_inside(rest)?;
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
fn plain_start(text: &[u8]) -> Option<(&[u8], &[u8], bool)> {
    plain_start_inside(text.strip_prefix(b"<")?)
}

/// As [`start`], after its `<`.
fn plain_start_inside(text: &[u8]) -> Option<(&[u8], &[u8], bool)> {
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
    use proptest::prelude::*;

    fn leaves(document: &[u8]) -> Result<Vec<(String, String, Vec<u8>)>, XmlError> {
        let mut found = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        walk(document, b"", |node| {
            if let Node::Leaf { parent, name, text: value } = node {
                found.push((text(parent), text(name), value.to_vec()));
            }
        })?;
        Ok(found)
    }

    #[test]
    fn leaves_have_parents_and_whole_texts() {
        let document =
            b"  <?xml version=\"1.0\"?>\n<s:R xmlns:s='u'><a>1&amp;2&#x3;<![CDATA[<]]> </a>\
        <!-- c --><b/><c> <d>x</d></c></s:R>\n";
        let expected = [("R", "a", &b"1&2\x03< "[..]), ("R", "b", b""), ("c", "d", b"x")];
        let expected = expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_vec()));
        assert_eq!(leaves(document).unwrap(), expected);
    }

    #[test]
    fn ends_come_after_their_leaves() {
        let mut ends = Vec::new();
        walk(b"<r><a><b>1</b></a></r>", b"r", |node| {
            if let Node::End { parent, name } = node {
                ends.push((parent.to_vec(), name.to_vec()));
            }
        })
        .unwrap();
        assert_eq!(ends, [(b"r".to_vec(), b"a".to_vec()), (b"".to_vec(), b"r".to_vec())]);
    }

    #[test]
    fn what_is_no_whole_document_is_refused() {
        let deep = "<a>".repeat(100);
        for document in [
            "",
            "x",
            "<a>",
            "<a><b></a>",
            "</a>",
            "<a/><b/>",
            "<a>&x;</a>",
            "<a>&#0;</a>",
            "<a",
            "<a>1</a",
            "<html><br></html>",
            &deep,
        ] {
            let result = leaves(document.as_bytes());
            assert!(matches!(result, Err(XmlError::Malformed(_))), "{document}: {result:?}");
        }
        assert_eq!(walk(b"<a/>", b"b", |_| {}), Err(XmlError::Root("a".to_owned())));
    }

    #[test]
    fn what_xml_cannot_carry_is_not_escaped() {
        assert_eq!(escaped(b"\x01"), None);
        assert_eq!(escaped(b"\xff"), None);
        assert_eq!(escaped("\u{ffff}".as_bytes()), None);
    }

    proptest! {
        #[test]
        fn no_bytes_upset_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = leaves(&bytes);
        }

        #[test]
        fn no_markup_upsets_the_reader(text in "[<>/a&;#x0-9!\\[\\]CDAT?\"=' -]{0,60}") {
            let _ = leaves(text.as_bytes());
        }

        #[test]
        fn what_is_escaped_is_read(text in "\\PC{0,20}[\t\r\n <>&\"']{0,5}\\PC{0,20}") {
            let document = format!("<r><k>{}</k></r>", escaped(text.as_bytes()).unwrap());
            let found = leaves(document.as_bytes()).unwrap();
            prop_assert_eq!(&found[0].2, text.as_bytes());
        }

        #[test]
        fn a_cut_document_is_refused(cut in 0..60_usize) {
            let document = b"<?xml version='1.0'?><r><a>1</a><b><c>2</c><d/></b><e>3</e></r>";
            prop_assert!(leaves(&document[..cut]).is_err());
        }
    }

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
