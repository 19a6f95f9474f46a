//! Estimates the distribution of keys: a page of them is taken as numbers, so that "n pages further" is an addition.
//! An estimate need not be right: it only decides where another request begins.
//!
//! The first keys differ from the last ones of a page at some byte. A window of bytes around it is read as a number
//! with a radix of its own at each place: as many digits as that place seems to have (`0`–`9`, hexadecimal, letters,
//! and other bytes seen). The bytes before the window are kept; those after it are ignored.

use std::cmp::Ordering;

/// Places of the window before and after the first byte that differs. 12 places of less than 1,024 digits fit into
/// 120 bits.
const PLACES_BEFORE: usize = 6;
const PLACES_AFTER: usize = 6;
/// Number of keys of a page that are examined for their digits.
const SAMPLED: usize = 64;

/// Statistics of the keys of one page.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// The bytes before the window.
    lead: Vec<u8>,
    places: Vec<Place>,
    /// Distance from the first to the last key, and the number of keys between.
    way: u128,
    keys: u128,
}

/// The digits at one place: a set of bytes.
#[derive(Clone, Debug, Default)]
struct Place {
    bytes: Vec<u8>,
    /// Some keys end before this place, so that "nothing" is the lowest digit.
    ends: bool,
}

impl Sample {
    /// Samples the sorted keys of a page, all of them after `before` (which is empty for the first page); `fixed`
    /// bytes are the same in all keys of the listing. Returns `None` if the page gives no information.
    pub(super) fn of<'a>(
        before: &'a [u8],
        keys: impl ExactSizeIterator<Item = &'a [u8]> + DoubleEndedIterator + Clone,
        fixed: usize,
    ) -> Option<Sample> {
        let count = keys.len();
        let last = keys.clone().next_back()?;
        let first = if before.is_empty() { keys.clone().next()? } else { before };
        let ways = if before.is_empty() { count - 1 } else { count };
        let differ = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        if count < 2 || differ >= last.len() {
            return None;
        }
        let start = differ.saturating_sub(PLACES_BEFORE).max(fixed.min(differ));
        let end = differ + PLACES_AFTER;
        let mut seen = vec![Place::default(); end - start];
        for key in keys.step_by((count / SAMPLED).max(1)).chain([first, last]) {
            for (at, place) in seen.iter_mut().enumerate() {
                match key.get(start + at) {
                    Some(byte) => {
                        if let Err(at) = place.bytes.binary_search(byte) {
                            place.bytes.insert(at, *byte);
                        }
                    }
                    None => place.ends = true,
                }
            }
        }
        // Drop trailing places that hardly any key has.
        while seen.last().is_some_and(|place| place.bytes.is_empty()) {
            seen.pop();
        }
        let varied = seen.iter().skip(differ - start).flat_map(|place| place.bytes.iter().copied());
        let varied = closure(varied.collect());
        for place in &mut seen {
            place.complete(&varied);
        }
        let mut sample =
            Sample { lead: first[..start].to_vec(), places: seen, way: 0, keys: ways as u128 };
        let (from, to) = (sample.number(first)?, sample.number(last)?);
        sample.way = to.checked_sub(from).filter(|way| *way > 0)?;
        Some(sample)
    }

    /// Estimates the number of keys between two keys; without an end up to the end of the window. Returns `None` if
    /// this sample does not apply to `from`.
    pub(super) fn between(&self, from: &[u8], to: Option<&[u8]>) -> Option<u64> {
        let start = self.number(from)?;
        let end = to.and_then(|to| self.number(to)).unwrap_or_else(|| self.numbers());
        let keys = end.saturating_sub(start).saturating_mul(self.keys) / self.way;
        Some(u64::try_from(keys).unwrap_or(u64::MAX))
    }

    /// Estimates the key that is `keys` keys after another one. Returns `None` if the window ends before that.
    pub(super) fn after(&self, from: &[u8], keys: u64) -> Option<Vec<u8>> {
        let way = u128::from(keys).checked_mul(self.way)? / self.keys;
        let number = self.number(from)?.checked_add(way.max(1))?;
        if number >= self.numbers() {
            return None;
        }
        Some(self.key(number))
    }

    /// Returns how many numbers the window has.
    fn numbers(&self) -> u128 {
        self.places.iter().map(Place::radix).product()
    }

    /// Returns the window of a key as a number; `None` for a key that does not begin like those of the sample. A byte
    /// that is not a digit counts as the next lower one.
    fn number(&self, key: &[u8]) -> Option<u128> {
        let rest = match key.strip_prefix(&*self.lead) {
            Some(rest) => rest,
            // A guess may have been truncated.
            None if self.lead.starts_with(key) => b"",
            None => return None,
        };
        let mut number = 0;
        let mut past = None;
        for (at, place) in self.places.iter().enumerate() {
            let radix = place.radix();
            let digit = match past {
                Some(true) => radix - 1,
                Some(false) => 0,
                None => {
                    let (digit, order) = place.digit(rest.get(at).copied());
                    // Not a digit: the rest is below or above all digits.
                    past = match order {
                        Ordering::Equal => None,
                        Ordering::Less => Some(false),
                        Ordering::Greater => Some(true),
                    };
                    digit
                }
            };
            number = number * radix + digit;
        }
        Some(number)
    }

    fn key(&self, mut number: u128) -> Vec<u8> {
        let mut digits = Vec::with_capacity(self.places.len());
        for place in self.places.iter().rev() {
            let radix = place.radix();
            digits.push(place.byte(number % radix));
            number /= radix;
        }
        let mut key = self.lead.clone();
        key.extend(digits.into_iter().rev().map_while(|byte| byte));
        key
    }
}

impl Place {
    fn radix(&self) -> u128 {
        self.bytes.len() as u128 + u128::from(self.ends)
    }

    /// Returns the digit of a byte, and the order of the byte relative to that digit.
    fn digit(&self, byte: Option<u8>) -> (u128, Ordering) {
        let low = u128::from(self.ends);
        let Some(byte) = byte else {
            return (0, if self.ends { Ordering::Equal } else { Ordering::Less });
        };
        match self.bytes.binary_search(&byte) {
            Ok(at) => (at as u128 + low, Ordering::Equal),
            Err(0) => (low, Ordering::Less),
            Err(at) => (at as u128 - 1 + low, Ordering::Greater),
        }
    }

    fn byte(&self, digit: u128) -> Option<u8> {
        let at = digit.checked_sub(u128::from(self.ends))?;
        self.bytes.get(usize::try_from(at).ok()?).copied()
    }

    /// Adds unseen digits that belong to the seen ones.
    fn complete(&mut self, varied: &[u8]) {
        let own = closure(self.bytes.clone());
        let alike = self
            .bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() && varied.binary_search(byte).is_ok());
        let more = varied.iter().filter(|byte| alike && byte.is_ascii_alphanumeric());
        self.bytes = own.into_iter().chain(more.copied()).collect();
        self.bytes.sort_unstable();
        self.bytes.dedup();
    }
}

/// Completes a set of bytes with those that usually occur with them: digits, hexadecimal digits, letters.
fn closure(mut bytes: Vec<u8>) -> Vec<u8> {
    let has = |range: std::ops::RangeInclusive<u8>| bytes.iter().any(|byte| range.contains(byte));
    let digits = has(b'0'..=b'9');
    let mut add: Vec<std::ops::RangeInclusive<u8>> = Vec::new();
    if digits {
        add.push(b'0'..=b'9');
    }
    for (first, hex, last) in [(b'a', b'f', b'z'), (b'A', b'F', b'Z')] {
        if has(hex + 1..=last) || (has(first..=hex) && !digits) {
            add.push(first..=last);
        } else if has(first..=hex) {
            add.push(first..=hex);
        }
    }
    bytes.extend(add.into_iter().flatten());
    bytes.sort_unstable();
    bytes.dedup();
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(keys: &[String], fixed: usize) -> Sample {
        Sample::of(b"", keys.iter().map(String::as_bytes), fixed).unwrap()
    }

    #[test]
    fn counting_keys_go_on_as_they_began() {
        let keys: Vec<_> = (0..1000).map(|i| format!("p/k{i:07}")).collect();
        let sample = sample(&keys, 2);
        assert_eq!(sample.after(b"p/k0000999", 4000).unwrap(), b"p/k0004999");
        assert_eq!(sample.after(b"p/k0098999", 4000).unwrap(), b"p/k0102999");
        assert_eq!(sample.between(b"p/k0000999", Some(b"p/k0004999")), Some(4000));
        assert_eq!(sample.after(b"q/k0000999", 4000), None);
    }

    #[test]
    fn hexadecimal_keys_are_seen_as_such() {
        let keys: Vec<_> = (0..1000).map(|i| format!("{:08x}-tail", i * 4_000)).collect();
        let sample = sample(&keys, 0);
        let half = sample.after(b"003d0000-", 536_000).unwrap();
        assert!((b"7f".as_slice()..b"81").contains(&&*half), "{}", half.escape_ascii());
    }

    #[test]
    fn a_gap_before_a_page_counts() {
        let keys: Vec<_> = (1000..2000).map(|i| format!("d0001/f{i:06}")).collect();
        let sample = Sample::of(b"d0000/f000999", keys.iter().map(String::as_bytes), 0).unwrap();
        let further = sample.after(b"d0001/f001999", 4000).unwrap();
        assert!(further.starts_with(b"d0005/f00"), "{}", further.escape_ascii());
    }

    #[test]
    fn one_key_or_a_window_that_ends_teach_nothing() {
        let one = ["a".to_owned()];
        assert!(Sample::of(b"", one.iter().map(String::as_bytes), 0).is_none());
        let keys: Vec<_> = (900..1000).map(|i| format!("{i}")).collect();
        assert_eq!(sample(&keys, 0).after(b"999", 50), None);
    }
}
