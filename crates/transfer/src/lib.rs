//! Moves, proves and remembers bytes.
//!
//! The rooms, in the order in which they may import each other (ARCHITECTURE.md has the picture):
//! `unit`, `error`, `control`, `event` know nobody above them; `location`, `limit`, `tune` stand on them; `policy` decides
//! what happens to an entry; `engine` makes it happen; `plan` and `verify` say where to begin and
//! prove the end; `run` puts all of it together and is what a program calls.

pub mod control;
pub mod engine;
pub mod error;
pub mod event;
pub mod journal;
pub mod limit;
pub mod location;
pub mod meter;
pub mod object;
pub mod plan;
pub mod policy;
pub mod run;
pub mod s3;
pub mod sample;
pub mod tune;
pub mod unit;
pub mod verdict;
pub mod verify;
