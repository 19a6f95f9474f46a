//! A page of a listing put together from its document.

use super::{ListPage, Listed};
use crate::s3::ops::etag::Etag;
use crate::s3::ops::{number, string};
use crate::s3::time::parse_iso;
use crate::s3::xml::{Node, url_decoded};
use crate::unit::Time;
use std::borrow::Cow;

/// The storage classes of AWS, the usual one first.
const CLASSES: [&str; 12] = [
    "STANDARD",
    "STANDARD_IA",
    "GLACIER",
    "INTELLIGENT_TIERING",
    "ONEZONE_IA",
    "DEEP_ARCHIVE",
    "GLACIER_IR",
    "REDUCED_REDUNDANCY",
    "EXPRESS_ONEZONE",
    "OUTPOSTS",
    "SNOW",
    "",
];

/// Whether names are URL-encoded, which a document may say after it has told them.
///
/// Some servers say so and do not do it. What no encoder leaves as it is (a space, a control
/// character, a byte beyond ASCII, a lone `%`) gives them away, and then no name of that page is
/// decoded.
#[derive(Default)]
pub(in crate::s3::ops) struct Names {
    said: bool,
    /// Whether there is anything to decode.
    marked: bool,
    /// Whether a name cannot be one that was encoded.
    plain: bool,
}

impl Names {
    /// Takes the text of `EncodingType`.
    pub fn encoding(&mut self, text: &[u8]) {
        self.said = text.eq_ignore_ascii_case(b"url");
    }

    /// Looks at a name and keeps it as it is for now.
    pub fn keep(&mut self, text: &[u8]) -> Vec<u8> {
        // One pass without branches over what nearly all keys consist of.
        let usual = text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"/-_.".contains(byte));
        if !usual {
            self.look(text);
        }
        text.to_vec()
    }

    fn look(&mut self, text: &[u8]) {
        for (at, byte) in text.iter().enumerate() {
            match byte {
                b'+' => self.marked = true,
                b'%' => {
                    let digits = text.get(at + 1..at + 3).unwrap_or_default();
                    let whole = digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit);
                    self.marked = true;
                    self.plain |= !whole;
                }
                _ => self.plain |= !byte.is_ascii_graphic() || b"\"<>\\^`{|}".contains(byte),
            }
        }
    }

    /// Whether the names that were kept are to be decoded now.
    pub fn are_encoded(&self) -> bool {
        self.said && self.marked && !self.plain
    }
}

/// What has been read so far.
#[derive(Default)]
pub(super) struct Reader {
    page: ListPage,
    names: Names,
    object: Option<Listed>,
    truncated: bool,
    next: Option<String>,
}

impl Reader {
    /// Takes the next node.
    pub fn take(&mut self, node: Node<'_>) {
        match node {
            Node::Leaf { parent: b"Contents", name, text } => self.field(name, text),
            Node::Leaf { parent: b"CommonPrefixes", name: b"Prefix", text } => {
                let prefix = self.names.keep(text);
                self.page.prefixes.push(prefix);
            }
            Node::Leaf { parent: b"ListBucketResult", name, text } => match name {
                b"EncodingType" => self.names.encoding(text),
                b"IsTruncated" => self.truncated = text == b"true",
                b"NextContinuationToken" => self.next = Some(string(text)),
                _ => {}
            },
            Node::End { name: b"Contents", .. } => self.page.objects.extend(self.object.take()),
            _ => {}
        }
    }

    fn field(&mut self, name: &[u8], text: &[u8]) {
        let object = self.object.get_or_insert_with(|| Listed {
            key: Vec::new(),
            size: 0,
            mtime: Time::default(),
            etag: Etag::default(),
            storage_class: Cow::Borrowed(""),
        });
        match name {
            b"Key" => object.key = self.names.keep(text),
            b"Size" => object.size = number(text),
            b"LastModified" => object.mtime = parse_iso(text).unwrap_or_default(),
            b"ETag" => object.etag = Etag::new(&String::from_utf8_lossy(text)),
            b"StorageClass" => object.storage_class = class(text),
            _ => {}
        }
    }

    /// The page, or why it is none that can be trusted.
    pub fn page(mut self) -> Result<ListPage, String> {
        if self.names.are_encoded() {
            let keys = self.page.objects.iter_mut().map(|object| &mut object.key);
            for name in keys.chain(&mut self.page.prefixes) {
                *name = url_decoded(name);
            }
        }
        if self.page.objects.iter().any(|object| object.key.is_empty()) {
            return Err("the server listed an object without a key".to_owned());
        }
        self.page.next = self.next.filter(|token| self.truncated && !token.is_empty());
        if self.truncated && self.page.next.is_none() {
            return Err("the server did not say how its listing goes on".to_owned());
        }
        Ok(self.page)
    }
}

fn class(text: &[u8]) -> Cow<'static, str> {
    let known = CLASSES.into_iter().find(|class| class.as_bytes() == text);
    known.map_or_else(|| Cow::Owned(string(text)), Cow::Borrowed)
}

#[cfg(test)]
mod tests;
