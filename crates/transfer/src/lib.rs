//! Moves, verifies and journals bytes.
//!
//! The modules, in the order in which they may import each other (ARCHITECTURE.md has the details): `location` and
//! `journal`; `policy` decides what happens to an entry; `local` and `object` carry it out; `plan` and `verify`
//! choose where to begin and compare the result; `run` combines all of it and is the entry point for programs.

pub(crate) mod failure;
pub mod journal;
pub mod local;
pub mod location;
pub mod object;
pub mod plan;
pub mod policy;
pub(crate) mod publish;
pub mod run;
pub mod verify;
