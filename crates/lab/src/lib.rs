//! Measures and explains: campaigns of benchmarks, their analysis and reports, recordings of a machine's
//! load, charts.

pub mod analysis;
pub mod campaign;
pub mod chart;
pub mod record;
pub mod report;
pub mod results;
pub mod sweep;
