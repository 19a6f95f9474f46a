//! The engine of everything with objects on one side or both: tasks come from a bounded queue, run
//! on one single-threaded runtime per core with that core's own connections, and are told of as
//! events. What is to be done is decided before (`plan`), by the same `policy` as for local trees.
//!
//! ```text
//! listings → merge → decide → Queue → cores: put, get, copy, relay, compare, delete
//! ```
//!
//! Small objects are one task and one request. Larger ones become a [`Large`] whose parts go back
//! into the queue in front of further tasks, so that all cores work on them.

mod between;
mod budget;
mod compare;
mod copy;
mod core;
mod delete;
mod get;
pub mod list;
mod mapping;
mod metadata;
mod moving;
mod put;
mod queue;
mod reader;
mod relay;
mod rights;

pub use self::core::{Engine, Setup, run};
pub use compare::{Checked, Checking, Finding};
pub use get::{StreamError, download_stream};
pub use mapping::{NameError, key_of, path_of};
pub use put::content_type;
pub use put::stream::{Stream, upload_stream};

use crate::s3::Algorithm;
use crate::unit::Meta;
use hakobu_sys::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

/// Which of the two stores of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Where objects come from.
    Source,
    /// Where they go.
    Target,
}

/// Where the relative names of one stretch of work begin.
pub enum Root {
    /// A folder of this machine.
    Local {
        /// The folder, open. Everything below is reached from here, component by component.
        dir: Arc<OwnedFd>,
        /// As the user would spell it, for messages.
        shown: PathBuf,
    },
    /// A prefix in a bucket.
    Store {
        /// The bucket.
        bucket: String,
        /// What stands before every name; empty or as typed, mostly with a slash at its end.
        prefix: Vec<u8>,
    },
    /// Nowhere: what comes is counted and dropped.
    Null,
}

/// Both ends of a stretch of work (one source argument).
pub struct Pair {
    /// Where names of entries begin.
    pub source: Root,
    /// Where target names begin.
    pub target: Root,
    /// What stands before the names in the transfer: empty, or the name of the source folder and
    /// a slash, for filter rules and for what is shown.
    pub lead: Vec<u8>,
}

/// One file or object of a listing.
#[derive(Clone, Debug)]
pub struct Entry {
    /// From the root of its listing, components joined by `/`; a directory marker (`a/`) and a
    /// listed directory end with a slash.
    pub name: Box<[u8]>,
    /// What is known of it; of an object kind, size and mtime (LastModified).
    pub meta: Meta,
    /// Of an object: its ETag without quotes.
    pub etag: Box<str>,
}

/// One thing to do.
pub struct Task {
    /// Both ends.
    pub pair: Arc<Pair>,
    /// What.
    pub work: Work,
}

/// What is to be done.
pub enum Work {
    /// Move an entry of the source to a name at the target.
    Move {
        /// What is moved.
        entry: Entry,
        /// Its name from the target's root.
        name: Box<[u8]>,
        /// What is there now.
        existing: Option<Box<Entry>>,
    },
    /// Sizes are equal: look closer (stored checksums, metadata, or the contents), then move or
    /// leave alone as the policy says.
    Compare {
        /// What would be moved.
        entry: Entry,
        /// Its name from the target's root.
        name: Box<[u8]>,
        /// What is there now.
        existing: Box<Entry>,
    },
    /// Find out whether two entries of equal size are the same, and tell; nothing is moved.
    Check {
        /// Of the source.
        entry: Entry,
        /// The target's name from its root.
        name: Box<[u8]>,
        /// Of the target.
        existing: Box<Entry>,
        /// What counts, and who hears of it.
        asked: Checking,
    },
    /// Remove entries of the target: up to 1,000 objects, or files.
    Delete {
        /// Names from the target's root.
        entries: Vec<Entry>,
    },
}

/// How objects are written, beyond the policy.
#[derive(Clone, Debug, Default)]
pub struct ObjectOptions {
    /// Headers for every object that is written: storage class, ACL, encryption, tagging, cache
    /// control, content type and encoding where they were asked for, user metadata.
    pub headers: crate::s3::ops::Headers,
    /// Content type is guessed from the name where `headers` say nothing.
    pub guess_content_type: bool,
    /// `--metadata-directive REPLACE`: a server-side copy takes `headers` instead of the source's.
    pub replace_metadata: bool,
    /// `--version-id` of the single source object.
    pub version: Option<String>,
    /// An object that is there already is never replaced (`--if-none-match '*'`, `--no-clobber`).
    pub if_none_match: bool,
    /// The size of parts in bytes, where asked for; else by size of the object.
    pub part_bytes: Option<u64>,
    /// Parts in flight of one object.
    pub concurrency: Option<usize>,
    /// What `--checksum-algorithm` asks to store.
    pub algorithm: Option<Algorithm>,
    /// mtime and mode travel in metadata (`--times`, `--perms`), and are compared.
    pub keep_times: bool,
    /// See `keep_times`; modes.
    pub keep_modes: bool,
    /// Owner and group as numbers.
    pub keep_owners: bool,
    /// Zero-byte objects `name/` stand for directories, on request.
    pub dir_markers: bool,
    /// Names that are not UTF-8, and keys that no file can have, are percent-encoded instead of
    /// refused.
    pub encode_names: bool,
    /// Interrupted parts are kept for a later run and taken up from an earlier one.
    pub resume: bool,
    /// The first failure of an entry stops the run (`--exit-on-error`).
    pub exit_on_error: bool,
}

/// The number of jobs that S3 starts from where the user names none.
pub const JOBS_SEED: usize = 32;
