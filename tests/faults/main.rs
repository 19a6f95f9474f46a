//! What can go wrong, made to go wrong: the promise is that nothing is lost, nothing half-done is
//! taken for done, and the exit code says so.

#[path = "../common/mod.rs"]
mod common;

mod deletion;
mod full;
mod inject;
mod kill;
mod limits;
mod partial;
mod process;
mod race;
mod same;
mod signal;
mod user;
mod vanish;
mod writeback;
