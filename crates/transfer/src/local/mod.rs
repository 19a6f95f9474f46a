//! Transfers between volumes: workers that walk two trees at once and copy as they go.
//!
//! A unit is a directory to open, a listing to continue, or a chunk of at most 64 names of one directory; the worker
//! holds descriptors of both directories and passes only single names to the kernel. [`Engine`] walks and decides;
//! the parts handle an entry, independent of the walk and of each other's data:
//!
//! | part | does |
//! |---|---|
//! | `content` | bytes of a file, alone or with other workers |
//! | `attributes` | mode, owner, times, ACLs and extended attributes |
//! | `fake` | attributes of `--fake-super`, kept in extended attributes |
//! | `guard` | sources and names of this run that it must not lose to itself |
//! | `publish` | temporary and final names, backups, links |
//! | `file` | a regular file, from the three above |
//! | `special` | symlinks, devices, FIFOs |
//! | `links` | groups of hard links |
//! | `proof` | whether a source has a name that the target has |
//! | `prune` | leftovers and extraneous entries |

mod announce;
pub(crate) mod attributes;
mod backup;
mod basis;
mod content;
mod delta;
mod engine;
mod entry;
mod fake_super;
mod file;
pub mod guard;
mod links;
mod owners;
mod proof;
mod prune;
mod receive;
mod report;
mod shared_copy;
pub mod source;
pub mod target_dir;
#[cfg(test)]
mod tests;
mod unchanged;
mod walk;

pub use crate::local::walk::ArgumentEnds;
pub(crate) use announce::BATCH_BYTES_MAX;
pub use announce::{
    Announced, AnnouncedChunk, AnnouncedReader, Announcer, HASH_BYTES, Opening, hash_of_file,
};
pub use attributes::ids_of_acl;
pub(crate) use content::SEGMENT_BYTES_MAX;
pub use engine::{LocalEngine, LocalSetup, Pass, TargetMode, Unit};
pub use links::Carried;
pub use owners::FarOwners;
pub use proof::absent;
pub use prune::{QUESTIONS_BYTES_MAX, SourceRemoval, question_bytes, remove_sources};
pub use receive::{Arrival, Arrivals, Coming, FarTarget, Receiving, SourceFacts};
pub use source::SourceDir;
pub(crate) use walk::read_merge_file;
