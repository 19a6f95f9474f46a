//! Where to begin and in what order: turns a description of the work into units for an engine.

pub mod mv;
