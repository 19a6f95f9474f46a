//! C strings in one buffer: separate allocations would cost as much as filling them.

use std::ffi::CStr;

/// A list of C strings.
#[derive(Clone, Debug, Default)]
pub struct Strings {
    /// The strings, each terminated by NUL.
    bytes: Vec<u8>,
    /// Offset behind each string and its terminator.
    ends: Vec<usize>,
}

impl Strings {
    /// Makes room for `count` more strings of `bytes` bytes each, with their terminators.
    pub fn reserve(&mut self, count: usize, bytes: usize) {
        self.ends.reserve(count);
        self.bytes.reserve(count * bytes);
    }

    /// Adds a string.
    #[inline]
    pub fn push(&mut self, text: &CStr) {
        self.bytes.extend_from_slice(text.to_bytes_with_nul());
        self.ends.push(self.bytes.len());
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The string at an index; `None` behind the last one. Its length is known: no search for the terminator.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&CStr> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        let bytes = self.bytes.get(start.unwrap_or(0)..end)?;
        // SAFETY: `push` alone appends to the two lists, which never shrink. So these bytes are one C string with its
        // terminator, and have no other NUL.
        Some(unsafe { CStr::from_bytes_with_nul_unchecked(bytes) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_come_back_by_index() {
        let texts = [c"a", c"", c"a longer one, of thirty bytes..", c"b"];
        let mut strings = Strings::default();
        assert!(strings.is_empty() && strings.get(0).is_none());
        strings.reserve(2, 3);
        texts.iter().for_each(|text| strings.push(text));
        assert_eq!(strings.len(), texts.len());
        for (index, text) in texts.iter().enumerate() {
            assert_eq!(strings.get(index), Some(*text));
        }
        assert_eq!(strings.get(texts.len()), None);
    }
}
