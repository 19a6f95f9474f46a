//! Keys listed by the null server: `d0000/f000000`, `d0000/f000001`, … with 1,000 per `d…/`, numbered
//! consecutively in byte order.

/// Keys that share a `d…/`.
const KEYS_PER_DIR: u64 = 1000;

/// A number of keys with uniform names. The number of a key is its position in the order.
#[derive(Clone, Debug)]
pub struct Space {
    /// Number of keys.
    pub count: u64,
    dir_digits: usize,
    file_digits: usize,
}

impl Space {
    /// `count` keys. Numbers have as many digits as the largest one, at least four and six.
    pub fn new(count: u64) -> Space {
        let last = count.saturating_sub(1);
        let digits = |number: u64| number.checked_ilog10().map_or(1, |log| log as usize + 1);
        Space {
            count,
            dir_digits: digits(last / KEYS_PER_DIR).max(4),
            file_digits: digits(last).max(6),
        }
    }

    /// Appends the name of a key.
    pub fn push_key(&self, number: u64, out: &mut Vec<u8>) {
        out.push(b'd');
        push_number(number / KEYS_PER_DIR, self.dir_digits, out);
        out.extend_from_slice(b"/f");
        push_number(number, self.file_digits, out);
    }

    /// Number of keys before `text` in byte order.
    pub fn before(&self, text: &[u8]) -> u64 {
        self.count_while(|key| key < text)
    }

    /// Number of keys before `prefix` or beginning with it.
    pub fn through(&self, prefix: &[u8]) -> u64 {
        self.count_while(|key| key < prefix || key.starts_with(prefix))
    }

    /// Number of keys before `text` or equal to it.
    pub fn up_to(&self, text: &[u8]) -> u64 {
        self.count_while(|key| key <= text)
    }

    /// Number of leading keys for which `holds`; it must be true for a prefix of the keys only.
    fn count_while(&self, holds: impl Fn(&[u8]) -> bool) -> u64 {
        let (mut low, mut high) = (0, self.count);
        let mut key = Vec::with_capacity(32);
        while low < high {
            let middle = low + (high - low) / 2;
            key.clear();
            self.push_key(middle, &mut key);
            if holds(&key) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

fn push_number(mut number: u64, digits: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + digits, b'0');
    for digit in out[start..].iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(space: &Space) -> Vec<Vec<u8>> {
        let key = |number| {
            let mut key = Vec::new();
            space.push_key(number, &mut key);
            key
        };
        (0..space.count).map(key).collect()
    }

    #[test]
    fn names() {
        let mut key = Vec::new();
        Space::new(1_000_000).push_key(123_456, &mut key);
        assert_eq!(key, b"d0123/f123456");
        key.clear();
        Space::new(20_000_000).push_key(123_456, &mut key);
        assert_eq!(key, b"d00123/f00123456");
        let keys = all(&Space::new(12_345));
        assert!(keys.is_sorted() && keys.len() == 12_345);
        assert!(all(&Space::new(0)).is_empty());
    }

    proptest::proptest! {
        #[test]
        fn places(count in 0u64..5000, text in "(d[0-9]{0,5}/?)?(f[0-9]{0,7})?.?") {
            let space = Space::new(count);
            let text = text.as_bytes();
            let keys = all(&space);
            let count = |holds: &dyn Fn(&[u8]) -> bool| {
                keys.iter().filter(|key| holds(key)).count() as u64
            };
            proptest::prop_assert_eq!(space.before(text), count(&|key| key < text));
            proptest::prop_assert_eq!(space.up_to(text), count(&|key| key <= text));
            let through = count(&|key| key < text || key.starts_with(text));
            proptest::prop_assert_eq!(space.through(text), through);
        }
    }
}
