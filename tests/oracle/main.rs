//! The program against rsync and cp as oracles: the same trees, the same options, the same result.

#[path = "../common/mod.rs"]
mod common;

mod copy;
mod filters;
mod itemize;
mod layout;
mod options;
mod random;
mod second;
mod special;
mod stage;
