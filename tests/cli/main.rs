//! The command line as a contract: exit codes, messages, formats that programs read.

#[path = "../common/mod.rs"]
mod common;

mod arguments;
mod asking;
mod exit_codes;
mod formats;
mod lists;
mod rates;
mod refused;
