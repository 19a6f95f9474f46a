//! Statistics of a run: latencies as histograms, rates over time.

mod histogram;
mod series;

#[cfg(test)]
mod tests;

pub use histogram::Histogram;
pub use series::Series;
