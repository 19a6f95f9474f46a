//! How a policy becomes calls: workers that walk two trees at once and copy as they go.
//!
//! Local to local the walker is the engine. A unit is a directory to enter, a listing to go on
//! with, or a chunk of at most 64 names of one directory; the worker holds descriptors of both
//! directories and makes no call with a longer path than one name.

pub mod handle;
pub mod pool;
pub mod remove;
pub mod usage;
