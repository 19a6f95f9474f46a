//! Parallel operations on directory trees: worker pool, directory handles that are closed and reopened when
//! descriptors run short, comparison of contents, disk usage, removal.

pub mod compare;
pub mod handle;
pub mod names;
pub mod pool;
pub mod remove;
pub mod usage;
pub mod walk;
