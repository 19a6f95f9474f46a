//! Zipf's law: the k-th most likely block is as likely as 1 ÷ k^theta.

use super::random::Random;

/// Draws ranks by rejection-inversion (Hörmann, Derflinger: "Rejection-inversion to generate variates
/// from monotone discrete distributions", ACM TOMACS 6, 1996). Exact for every theta above 0 and every
/// number of ranks, also where theta is 1, in the same time and without a table or a sum over them;
/// the approximation of Gray et al. (SIGMOD 1994) needs the sum, and is exact for two ranks only.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    theta: f64,
    ranks: f64,
    /// The integral up to the middle after the first rank, less its weight; and up to the end.
    begin: f64,
    end: f64,
    /// Draws no further than this to the left of their rank are always taken.
    squeeze: f64,
}

impl Zipf {
    /// Creates the distribution over this many ranks, at least one; `theta` is above 0.
    pub(crate) fn new(theta: f64, ranks: u64) -> Zipf {
        let ranks = ranks.max(1) as f64;
        let mut zipf = Zipf { theta, ranks, begin: 0.0, end: 0.0, squeeze: 0.0 };
        zipf.begin = zipf.integral(1.5) - 1.0;
        zipf.end = zipf.integral(ranks + 0.5);
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    /// A rank, from 0 on.
    #[inline]
    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let area = self.end + random.fraction() * (self.begin - self.end);
            let place = self.inverse(area);
            let rank = (place + 0.5).floor().clamp(1.0, self.ranks);
            // Taken without looking, or if it lies below the bar of its rank.
            if rank - place <= self.squeeze || area >= self.integral(rank + 0.5) - self.weight(rank)
            {
                return rank as u64 - 1;
            }
        }
    }

    fn weight(&self, place: f64) -> f64 {
        (-self.theta * place.ln()).exp()
    }

    /// ∫ x^-theta from 1 on: (x^(1−theta) − 1) ÷ (1 − theta), or ln x where theta is 1. Written so
    /// that it is right near 1 as well.
    fn integral(&self, place: f64) -> f64 {
        let log = place.ln();
        let power = (1.0 - self.theta) * log;
        if power.abs() < 1e-8 {
            log * (1.0 + power / 2.0)
        } else {
            power.exp_m1() / (1.0 - self.theta)
        }
    }

    fn inverse(&self, area: f64) -> f64 {
        let power = (area * (1.0 - self.theta)).max(-1.0);
        let log = if power.abs() < 1e-8 {
            area * (1.0 - power / 2.0)
        } else {
            power.ln_1p() / (1.0 - self.theta)
        };
        log.exp()
    }
}
