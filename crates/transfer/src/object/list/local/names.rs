//! The names of one folder in the order of keys.

use super::super::key_of;
use crate::unit::Kind;
use std::cmp::Ordering;
use std::ffi::CStr;

/// What a name is for the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// To be looked at; whether through a symlink.
    File { follow: bool },
    /// To be entered; whether through a symlink.
    Dir { follow: bool },
    /// A kind that is told of and left out.
    Left(Kind),
}

impl Class {
    fn is_dir(self) -> bool {
        matches!(self, Class::Dir { .. })
    }
}

/// Names in one piece of memory.
#[derive(Default)]
pub(super) struct Names {
    /// Each ended by NUL.
    text: Vec<u8>,
    spans: Vec<Span>,
    next: usize,
}

#[derive(Clone, Copy)]
struct Span {
    /// The first bytes of what it sorts as: most comparisons end here.
    head: u64,
    start: usize,
    len: u16,
    class: Class,
}

impl Names {
    pub(super) fn push(&mut self, name: &CStr, class: Class, encode: bool) {
        let bytes = name.to_bytes();
        let span = Span {
            head: head(&key_of(bytes, encode), class.is_dir()),
            start: self.text.len(),
            // At most NAME_MAX.
            len: bytes.len() as u16,
            class,
        };
        self.text.extend_from_slice(name.to_bytes_with_nul());
        self.spans.push(span);
    }

    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    pub(super) fn sort(&mut self, encode: bool) {
        let text = &self.text;
        let bytes = |span: &Span| &text[span.start..span.start + usize::from(span.len)];
        self.spans.sort_unstable_by(|a, b| {
            a.head.cmp(&b.head).then_with(|| {
                let (left, right) = (key_of(bytes(a), encode), key_of(bytes(b), encode));
                compare((&left, a.class.is_dir()), (&right, b.class.is_dir()))
            })
        });
    }

    /// The next name in order.
    pub(super) fn next(&mut self) -> Option<(&CStr, Class)> {
        let span = self.spans.get(self.next)?;
        self.next += 1;
        let text = &self.text[span.start..=span.start + usize::from(span.len)];
        Some((CStr::from_bytes_with_nul(text).ok()?, span.class))
    }
}

/// The first eight bytes of a name as it sorts; zeroes stand for its end, since names hold none.
fn head(name: &[u8], is_dir: bool) -> u64 {
    let mut bytes = [0; 8];
    let len = name.len().min(8);
    bytes[..len].copy_from_slice(&name[..len]);
    if is_dir && len < 8 {
        bytes[len] = b'/';
    }
    u64::from_be_bytes(bytes)
}

/// The order of names of one folder, where folders end with a slash.
pub(super) fn compare((a, a_dir): (&[u8], bool), (b, b_dir): (&[u8], bool)) -> Ordering {
    let len = a.len().min(b.len());
    let end = |name: &[u8], is_dir: bool| match name.get(len) {
        Some(byte) => Some(*byte),
        None => is_dir.then_some(b'/'),
    };
    a[..len].cmp(&b[..len]).then_with(|| end(a, a_dir).cmp(&end(b, b_dir)))
}
