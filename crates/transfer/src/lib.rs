//! Moves, verifies and journals bytes.
//!
//! The modules, in the order in which they may import each other (ARCHITECTURE.md has the details): `location` and
//! `journal`, and `manifest`, which knows objects of earlier runs; `policy` decides what happens to an entry; `publish` gives files their names, and `compare`
//! contents by stored checksums; `local` and `object` carry transfers out, `far` connects the engines of two machines; `plan` and `verify` choose where to begin and compare the
//! result; `run` combines all of it and is the entry point for programs.

mod compare;
mod failure;
pub mod far;
pub mod journal;
pub mod local;
pub mod location;
pub mod manifest;
pub mod object;
pub mod plan;
pub mod policy;
pub mod publish;
pub mod run;
pub mod verify;
