//! The names of one folder in the order of keys.

use super::super::key_of;
use crate::publish;
use std::cmp::Ordering;
use std::ffi::CStr;

/// Handling of a name in the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Examine it; `follow` through a symlink.
    File { follow: bool },
    /// Enter it; `follow` through a symlink.
    Dir { follow: bool },
    /// Report and skip it.
    Left(Left),
}

/// Reason for skipping a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    Symlink,
    NoFile,
    Unfinished,
}

impl Left {
    pub(super) fn words(self) -> &'static str {
        match self {
            Left::Symlink => "it is a symlink (-l keeps it, -L copies what it points to)",
            Left::NoFile => "it is not a regular file, and no object can be one",
            Left::Unfinished => publish::LEFT_OUT,
        }
    }
}

impl Class {
    pub(super) fn is_dir(self) -> bool {
        matches!(self, Class::Dir { .. })
    }
}

/// Names in one buffer.
#[derive(Default)]
pub(super) struct Names {
    /// Each terminated by NUL.
    text: Vec<u8>,
    spans: Vec<Span>,
}

#[derive(Clone, Copy)]
struct Span {
    /// The first bytes of the sort key: most comparisons end here.
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

    /// Sorts the names. A name that readdir(3) returned twice, which may happen while another process removes
    /// entries (seen on tmpfs), is kept once.
    pub(super) fn sort(&mut self, encode: bool) {
        let text = &self.text;
        let bytes = |span: &Span| &text[span.start..span.start + usize::from(span.len)];
        self.spans.sort_unstable_by(|a, b| {
            a.head.cmp(&b.head).then_with(|| {
                let (left, right) = (key_of(bytes(a), encode), key_of(bytes(b), encode));
                compare((&left, a.class.is_dir()), (&right, b.class.is_dir()))
            })
        });
        self.spans.dedup_by(|a, b| {
            let may_be = a.head == b.head && a.class.is_dir() == b.class.is_dir();
            may_be && bytes(a) == bytes(b)
        });
    }

    /// Keeps the names for which `wanted` returns true.
    pub(super) fn retain(&mut self, mut wanted: impl FnMut(&CStr, Class) -> bool) {
        let text = &self.text;
        self.spans.retain(|span| name(text, span).is_some_and(|name| wanted(name, span.class)));
    }

    /// Returns a name by its index in the order.
    pub(super) fn get(&self, at: usize) -> Option<(&CStr, Class)> {
        let span = self.spans.get(at)?;
        Some((name(&self.text, span)?, span.class))
    }
}

fn name<'a>(text: &'a [u8], span: &Span) -> Option<&'a CStr> {
    let bytes = text.get(span.start..=span.start + usize::from(span.len))?;
    CStr::from_bytes_with_nul(bytes).ok()
}

/// Returns the first eight bytes of the sort key; zeroes stand for its end, since names contain none.
fn head(name: &[u8], is_dir: bool) -> u64 {
    let mut bytes = [0; 8];
    let len = name.len().min(8);
    bytes[..len].copy_from_slice(&name[..len]);
    if is_dir && len < 8 {
        bytes[len] = b'/';
    }
    u64::from_be_bytes(bytes)
}

/// Compares names of one folder, where folders end with a slash.
pub(super) fn compare((a, a_dir): (&[u8], bool), (b, b_dir): (&[u8], bool)) -> Ordering {
    let len = a.len().min(b.len());
    let end = |name: &[u8], is_dir: bool| match name.get(len) {
        Some(byte) => Some(*byte),
        None => is_dir.then_some(b'/'),
    };
    a[..len].cmp(&b[..len]).then_with(|| end(a, a_dir).cmp(&end(b, b_dir)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_was_read_twice_is_kept_once() {
        let mut names = Names::default();
        for name in [c"z", c"a", c"z", c"za"] {
            names.push(name, Class::Dir { follow: false }, false);
        }
        names.sort(false);
        let kept: Vec<_> = (0..names.len()).map(|at| names.get(at).unwrap().0).collect();
        assert_eq!(kept, [c"a", c"z", c"za"]);
    }
}
