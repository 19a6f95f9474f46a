//! The command line interface as a contract: exit codes, messages, machine-readable formats.

mod arguments;
mod asking;
mod bars;
mod completions;
mod display;
mod exit_codes;
mod features;
mod formats;
mod help;
mod installed;
mod lists;
pub mod progress;
mod rates;
mod refused;
mod textfile;
