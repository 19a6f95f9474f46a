//! What is counted while blocks go: latencies as histograms, rates over time.

/// Latencies in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Histogram {}

/// A rate over time: one value for each interval.
#[derive(Clone, Debug, Default)]
pub struct Series {}
