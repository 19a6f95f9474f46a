//! Shared by all rooms: units, numbers, errors, events, control, the meter of a run, its limiters and gate, buffers for file
//! content, languages, threads for a list of items, percent-encoding, numbers of variable length.
//! Does no I/O.

pub mod buffer;
pub mod control;
pub mod error;
pub mod event;
pub mod language;
pub mod limit;
pub mod lines;
pub mod meter;
pub mod number;
pub mod percent;
pub mod threads;
pub mod timetable;
pub mod unit;
pub mod varint;
