//! Random numbers that are reproducible for ever on every machine, because data sets depend on them:
//! independent of the version of any crate and of the rounding of mathematical libraries.

/// xoshiro256** (Blackman, Vigna 2018), seeded by SplitMix64.
#[derive(Clone, Debug)]
pub struct Xoshiro256 {
    state: [u64; 4],
}

/// Next number of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
pub(crate) fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Xoshiro256 {
    /// Stream for a seed, a purpose and a number; different ones are independent.
    pub fn new(seed: u64, purpose: u64, number: u64) -> Xoshiro256 {
        let mut state = seed;
        let mut state = splitmix(&mut state) ^ purpose;
        let mut state = splitmix(&mut state) ^ number;
        Xoshiro256 { state: std::array::from_fn(|_| splitmix(&mut state)) }
    }

    /// Next 64 bits.
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// Fills a buffer with random bytes.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        let mut pieces = buffer.chunks_exact_mut(8);
        for piece in &mut pieces {
            piece.copy_from_slice(&self.bits().to_le_bytes());
        }
        let rest = pieces.into_remainder();
        if !rest.is_empty() {
            let last = self.bits().to_le_bytes();
            rest.copy_from_slice(&last[..rest.len()]);
        }
    }

    /// Uniform number in [0, 1).
    pub fn share(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform integer, both ends included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        let span = u128::from(high.saturating_sub(low)) + 1;
        low + ((u128::from(self.bits()) * span) >> 64) as u64
    }

    /// Standard normal number (polar method; Marsaglia, Bray 1964).
    pub fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.share() - 1.0, 2.0 * self.share() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * ln(square) / square).sqrt();
            }
        }
    }
}

/// Natural logarithm of a positive number, by its exponent and the series of artanh.
fn ln(x: f64) -> f64 {
    let (mut x, mut halvings) = (x, 0.0);
    while x < 0.75 {
        x *= 2.0;
        halvings -= 1.0;
    }
    while x > 1.5 {
        x /= 2.0;
        halvings += 1.0;
    }
    let z = (x - 1.0) / (x + 1.0);
    let (mut sum, mut power, mut odd) = (0.0, z, 1.0);
    for _ in 0..16 {
        sum += power / odd;
        power *= z * z;
        odd += 2.0;
    }
    2.0 * sum + halvings * std::f64::consts::LN_2
}

/// e to the power of `x`, by its series after halving `x` until it is near 0.
pub fn exp(x: f64) -> f64 {
    let (mut x, mut squarings) = (x.clamp(-700.0, 700.0), 0);
    while x.abs() > 0.5 {
        x /= 2.0;
        squarings += 1;
    }
    let (mut sum, mut term, mut number) = (1.0, 1.0, 1.0);
    for _ in 0..18 {
        term *= x / number;
        sum += term;
        number += 1.0;
    }
    for _ in 0..squarings {
        sum *= sum;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        // Output of its authors' program for seed 1234567.
        let mut state = 1_234_567;
        assert_eq!(splitmix(&mut state), 6_457_827_717_110_365_317);
        assert_eq!(splitmix(&mut state), 3_203_168_211_198_807_973);
        // Output for the state 1, 2, 3, 4.
        let mut random = Xoshiro256 { state: [1, 2, 3, 4] };
        assert_eq!([random.bits(), random.bits(), random.bits()], [11520, 0, 1_509_978_240]);
    }

    #[test]
    fn streams_differ_and_repeat() {
        let first = |seed, purpose, number| Xoshiro256::new(seed, purpose, number).bits();
        assert_eq!(first(1, 2, 3), first(1, 2, 3));
        let all = [first(1, 2, 3), first(2, 2, 3), first(1, 3, 3), first(1, 2, 4), first(2, 1, 3)];
        assert!((1..5).all(|at| !all[..at].contains(&all[at])), "{all:?}");
    }

    #[test]
    fn functions_are_near_those_of_the_library() {
        for x in [1e-300, 1e-9, 0.1, 0.74, 0.75, 1.0, 1.5, 1.51, 2.0, 1e9] {
            let (ours, theirs): (f64, f64) = (ln(x), f64::ln(x));
            assert!((ours - theirs).abs() <= 1e-13 * theirs.abs().max(1.0), "ln {x}: {ours}");
        }
        for x in [-50.0, -1.0, -0.5, 0.0, 0.3, 1.0, 10.0, 50.0] {
            let (ours, theirs): (f64, f64) = (exp(x), f64::exp(x));
            assert!((ours / theirs - 1.0).abs() < 1e-12, "exp {x}: {ours}");
        }
    }

    #[test]
    fn the_normal_distribution_has_its_moments() {
        let mut random = Xoshiro256::new(7, 0, 0);
        let count = 50_000;
        let numbers: Vec<f64> = (0..count).map(|_| random.normal()).collect();
        let mean = numbers.iter().sum::<f64>() / f64::from(count);
        let square = numbers.iter().map(|x| x * x).sum::<f64>() / f64::from(count);
        assert!(mean.abs() < 0.02 && (square - 1.0).abs() < 0.03, "{mean} {square}");
        let beyond = numbers.iter().filter(|x| x.abs() > 1.96).count() as f64 / f64::from(count);
        assert!((beyond - 0.05).abs() < 0.005, "{beyond}");
    }

    proptest::proptest! {
        #[test]
        fn between_stays_between(seed: u64, a: u64, b: u64) {
            let (low, high) = (a.min(b), a.max(b));
            let mut random = Xoshiro256::new(seed, 0, 0);
            for _ in 0..20 {
                proptest::prop_assert!((low..=high).contains(&random.between(low, high)));
            }
        }

        #[test]
        fn a_buffer_starts_as_a_longer_one(seed: u64, short in 0usize..40, long in 40usize..80) {
            let (mut a, mut b) = (vec![0; short], vec![0; long]);
            Xoshiro256::new(seed, 1, 1).fill(&mut a);
            Xoshiro256::new(seed, 1, 1).fill(&mut b);
            proptest::prop_assert_eq!(&a[..], &b[..short]);
        }
    }
}
