//! Wildcards in keys as in s5cmd: `*` matches any run of characters, slashes included, `?` one character. There is no
//! escaping: `--raw` takes a key literally.

use hakobu_sys::below::split;

/// A key with wildcards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: Vec<u8>,
}

impl Pattern {
    /// Returns the pattern, or `None` if the text has no wildcard and so is a plain key.
    pub fn parse(text: &[u8]) -> Option<Pattern> {
        let wild = text.iter().any(|byte| is_wild(*byte));
        wild.then(|| Pattern { text: text.to_vec() })
    }

    /// Returns the pattern as typed.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns the common prefix of all matching keys.
    pub fn literal(&self) -> &[u8] {
        let end = self.text.iter().position(|byte| is_wild(*byte));
        &self.text[..end.unwrap_or(self.text.len())]
    }

    /// Returns the literal part up to and including its last slash: relative names begin there.
    pub fn root(&self) -> &[u8] {
        let (root, _) = split(self.literal());
        root
    }

    /// Returns whether a whole key matches. Linear in key times number of stars; no recursion.
    pub fn matches(&self, key: &[u8]) -> bool {
        let (mut at, mut in_text) = (0, 0);
        // Position to continue from if the text after the last star does not match: one character later.
        let mut again: Option<(usize, usize)> = None;
        loop {
            let step = match self.text.get(in_text) {
                Some(b'*') => {
                    again = Some((at, in_text + 1));
                    in_text += 1;
                    continue;
                }
                Some(b'?') => character_len(&key[at..]),
                Some(byte) => usize::from(key.get(at) == Some(byte)),
                None if at == key.len() => return true,
                None => 0,
            };
            if step > 0 {
                (at, in_text) = (at + step, in_text + 1);
                continue;
            }
            let Some((from, after_star)) = again else { return false };
            let skipped = character_len(&key[from..]);
            if skipped == 0 {
                return false;
            }
            again = Some((from + skipped, after_star));
            (at, in_text) = (from + skipped, after_star);
        }
    }
}

fn is_wild(byte: u8) -> bool {
    matches!(byte, b'*' | b'?')
}

/// Returns the length in bytes of the first character: of UTF-8, or 1 for invalid bytes; 0 at the end.
fn character_len(bytes: &[u8]) -> usize {
    let Some(first) = bytes.first() else { return 0 };
    let len = match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    bytes.get(..len).filter(|bytes| std::str::from_utf8(bytes).is_ok()).map_or(1, <[u8]>::len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Matches characters by definition: every star tries every length.
    fn naive(pattern: &[char], key: &[char]) -> bool {
        match (pattern.split_first(), key.split_first()) {
            (None, None) => true,
            (Some(('*', rest)), _) => (0..=key.len()).any(|len| naive(rest, &key[len..])),
            (Some(('?', rest)), Some((_, key))) => naive(rest, key),
            (Some((a, rest)), Some((b, key))) => a == b && naive(rest, key),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn matches_as_the_definition_does(pattern in "[ab/ä*?]{0,8}", key in "[ab/ä]{0,9}") {
            let (chars, keys): (Vec<_>, Vec<_>) = (pattern.chars().collect(), key.chars().collect());
            let Some(parsed) = Pattern::parse(pattern.as_bytes()) else {
                prop_assert!(!pattern.contains(['*', '?']));
                return Ok(());
            };
            let is = parsed.matches(key.as_bytes());
            prop_assert_eq!(is, naive(&chars, &keys));
            prop_assert!(!is || key.as_bytes().starts_with(parsed.literal()));
        }
    }

    #[test]
    fn patterns() {
        let pattern = Pattern::parse(b"logs/2024-*/x?.gz").unwrap();
        assert_eq!(pattern.literal(), b"logs/2024-");
        assert_eq!(pattern.root(), b"logs/");
        assert!(pattern.matches(b"logs/2024-01/deep/er/x1.gz"));
        assert!(!pattern.matches(b"logs/2024-01/x.gz"));
        assert!(Pattern::parse(b"a?").unwrap().matches(b"a\xff"));
        assert_eq!(Pattern::parse(b"plain [x] \\ key"), None);
        let long = [b'a'; 20_000];
        assert!(!Pattern::parse(b"*a*a*a*b").unwrap().matches(&long));
    }
}
