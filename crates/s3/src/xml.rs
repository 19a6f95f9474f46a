//! Streaming XML parser for S3 documents: builds no tree, passes each leaf on once.

mod fast;

pub(super) use fast::walk_plain;

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use std::borrow::Cow;

/// Most nested elements; S3 needs five.
const DEPTH_MAX: usize = 32;

/// A node of a document, in document order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node<'n> {
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
        /// Name.
        name: &'n [u8],
    },
}

/// Reason for rejecting a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum XmlError {
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
pub(super) fn walk(
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
pub(super) fn escaped(bytes: &[u8]) -> Option<String> {
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
}
