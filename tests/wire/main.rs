//! What goes wrong on the way to a store, made to go wrong: the real binary against servers that
//! break, delay and falsify on demand. Whatever happens, either everything arrives as it was, or
//! the exit code and the counts say what did not, and nothing half-done is left anywhere.

#[path = "../common/mod.rs"]
mod common;

mod answers;
mod bodies;
mod full;
mod hidden;
mod killed;
mod links;
mod listings;
mod memory;
mod rates;
mod resume;
mod server;
mod skew;
mod waiting;
