//! Comparison with rsync and cp as oracles: the same trees, the same options, the same result.

mod clashes;
mod copy;
mod decisions;
mod devices;
mod fake;
mod filters;
mod folders;
pub mod generated;
mod itemize;
mod layout;
mod links;
mod lists;
mod local;
mod made;
mod meanings;
mod messages;
mod options;

mod progress;
mod random;
mod rules;
mod second;
mod special;
mod stage;
mod times;
mod written;
