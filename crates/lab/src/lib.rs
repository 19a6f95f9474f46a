//! Measures and explains. So far: the servers to measure against.

pub mod serve;
