//! A hash of a window of bytes that moves by one byte in constant time: the sum of the bytes, and their sum weighted by the
//! distance from the window's end, as in Andrew Tridgell's thesis ("Efficient Algorithms for Sorting and Synchronization",
//! 1999). It only tells where another hash is worth its time; it protects nothing.

/// Bytes that are summed at once: few enough for sums of 32 bits, and enough for the compiler to use vectors.
const STEP: usize = 64;
const WEIGHTS: [i16; STEP] = {
    let mut weights = [0; STEP];
    let mut at = 0;
    while at < STEP {
        weights[at] = (STEP - at) as i16;
        at += 1;
    }
    weights
};

/// The sums of a window.
#[derive(Clone, Copy, Debug)]
pub struct Rolling {
    plain: u64,
    weighted: u64,
    length: u64,
}

impl Rolling {
    /// Returns the sums of a window.
    pub fn of(window: &[u8]) -> Rolling {
        let (steps, rest) = window.as_chunks::<STEP>();
        let (mut plain, mut weighted) = (0_u64, 0_u64);
        for step in steps {
            let sum: u32 = step.iter().map(|byte| u32::from(*byte)).sum();
            let of = |(byte, weight): (&u8, &i16)| i32::from(i16::from(*byte)) * i32::from(*weight);
            let local: i32 = step.iter().zip(&WEIGHTS).map(of).sum();
            weighted = weighted.wrapping_add(plain * STEP as u64).wrapping_add(local as u64);
            plain += u64::from(sum);
        }
        for byte in rest {
            plain += u64::from(*byte);
            weighted = weighted.wrapping_add(plain);
        }
        Rolling { plain, weighted, length: window.len() as u64 }
    }

    /// Returns 32 bits that depend on both sums.
    pub fn weak(&self) -> u32 {
        let mixed = self.weighted ^ self.plain.rotate_left(40);
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
    }

    /// Moves the window byte by byte: those of `leaving` go, those of `coming` come. Stops at the first window whose weak hash is
    /// `wanted`, or at the end of either. Returns the number of steps.
    pub fn roll(&mut self, leaving: &[u8], coming: &[u8], wanted: impl Fn(u32) -> bool) -> usize {
        let mut steps = 0;
        for (old, new) in leaving.iter().zip(coming) {
            let (old, new) = (u64::from(*old), u64::from(*new));
            self.plain = self.plain.wrapping_add(new).wrapping_sub(old);
            self.weighted = self.weighted.wrapping_sub(self.length.wrapping_mul(old));
            self.weighted = self.weighted.wrapping_add(self.plain);
            steps += 1;
            if wanted(self.weak()) {
                break;
            }
        }
        steps
    }
}

/// Returns the weak hash of a block.
pub fn weak_of(block: &[u8]) -> u32 {
    Rolling::of(block).weak()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A window that came by rolling has the hash of its bytes.
        #[test]
        fn rolled_is_computed(bytes in proptest::collection::vec(any::<u8>(), 1..300), length in 1..64_usize) {
            let length = length.min(bytes.len());
            let mut rolling = Rolling::of(&bytes[..length]);
            for at in 1..=bytes.len() - length {
                prop_assert_eq!(rolling.roll(&bytes[at - 1..at], &bytes[at + length - 1..], |_| false), 1);
                prop_assert_eq!(rolling.weak(), weak_of(&bytes[at..at + length]));
            }
        }
    }

    #[test]
    fn rolling_stops_at_a_wanted_window() {
        let bytes: Vec<u8> =
            (0..=255).cycle().take(4000).map(|byte: u8| byte.wrapping_mul(byte)).collect();
        let wanted = weak_of(&bytes[70..90]);
        let mut rolling = Rolling::of(&bytes[..20]);
        assert_eq!(rolling.roll(&bytes, &bytes[20..], |weak| weak == wanted), 70);
        assert_eq!(rolling.weak(), wanted);
    }

    /// Windows that differ in one byte differ in their hash, wherever it is.
    #[test]
    fn each_byte_counts() {
        let block = vec![0; 4096];
        let plain = weak_of(&block);
        for at in 0..4096 {
            let mut other = block.clone();
            other[at] = 1;
            assert_ne!(weak_of(&other), plain, "{at}");
        }
    }
}
