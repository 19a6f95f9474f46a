//! Shared by all rooms: units, sizes, errors, events, control, the meter of a run, its limiters and gate, percent-encoding.
//! Does no I/O.

pub mod control;
pub mod error;
pub mod event;
pub mod limit;
pub mod machine;
pub mod meter;
pub mod number;
pub mod percent;
pub mod size;
pub mod unit;
