//! Statistics of a run: latencies as histograms, rates over time.

mod histogram;

#[cfg(test)]
mod tests;

pub use histogram::Histogram;

/// A rate over time: one value for each interval, all of them kept, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    values: Vec<f64>,
}

impl Series {
    /// Adds the value of the next interval.
    pub fn push(&mut self, value: f64) {
        self.values.push(value);
    }

    /// Number of values.
    pub fn samples(&self) -> usize {
        self.values.len()
    }

    /// The smallest; 0 if there is none.
    pub fn min(&self) -> f64 {
        self.values.iter().copied().reduce(f64::min).unwrap_or(0.0)
    }

    /// The largest; 0 if there is none.
    pub fn max(&self) -> f64 {
        self.values.iter().copied().reduce(f64::max).unwrap_or(0.0)
    }

    /// The arithmetic mean; 0 if there is none.
    pub fn mean(&self) -> f64 {
        let count = self.values.len();
        if count == 0 { 0.0 } else { self.values.iter().sum::<f64>() / count as f64 }
    }

    /// The sample's standard deviation (divided by n − 1); 0 for fewer than two.
    pub fn deviation(&self) -> f64 {
        let count = self.values.len();
        if count < 2 {
            return 0.0;
        }
        let mean = self.mean();
        let around: f64 = self.values.iter().map(|value| (value - mean).powi(2)).sum();
        (around / (count - 1) as f64).sqrt()
    }
}
