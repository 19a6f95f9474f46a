//! Measures and explains: the servers to measure against, recordings of what a machine does, pictures.

pub mod analysis;
pub mod campaign;
pub mod chart;
pub mod io;
pub mod record;
pub mod report;
pub mod results;
pub mod serve;
