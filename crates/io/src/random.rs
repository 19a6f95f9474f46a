//! Numbers by chance for one thread: cheap, and the same for the same seed everywhere.

/// splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014): two
/// multiplications a number, and every seed is a good one.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// The stream of a seed and a purpose: those of different pairs have nothing to do with each
    /// other.
    pub(crate) fn new(seed: u64, purpose: u64) -> Random {
        Random { state: mix(seed) ^ mix(!purpose) }
    }

    /// The next 64 bits.
    #[inline]
    pub(crate) fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number below `limit`, all alike but for a share of `limit` ÷ 2^64 (Lemire: "Fast random
    /// integer generation in an interval", 2019, without its last step). 0 for a limit of 0.
    #[inline]
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(limit)) >> 64) as u64
    }

    /// A number from 0 up to, but without, 1.
    #[inline]
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

/// A one-to-one mapping of 64 bits in which each bit of the input changes about half of the output.
#[inline]
pub(crate) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The seed of a text: FNV-1a (Fowler, Noll, Vo), which does not change with a release of Rust as
/// the standard library's may.
pub(crate) fn seed_of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
