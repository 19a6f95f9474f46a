//! The engine for transfers with objects on one or both sides: tasks come from a bounded queue, run on one
//! single-threaded runtime per core with that core's own connections, and are reported as events. `plan` decides what
//! to do beforehand, by the same `policy` as for local trees.
//!
//! ```text
//! listings → merge → decide → Queue → cores: put, get, copy, relay, compare, delete
//! ```
//!
//! Small objects are one task and one request. Larger ones become [`core::Parts`], which go back into the queue in
//! front of further tasks, so that all cores work on them.

mod compare;
mod copy;
mod delete;
mod download_file;
mod entry;
mod facts;
mod folded;
mod folders;
mod get;
pub mod list;
mod mapping;
mod metadata;
mod parts;
mod put;
mod queue;
mod relay;
pub(crate) mod room;
mod runtime;
mod stream;

pub use crate::object::parts::tidy;
pub use crate::object::runtime::{ObjectEngine, ObjectSetup, run};
pub use compare::{Checking, ComparedPair, PairFinding};
pub(crate) use delete::CHANGED_SINCE;
pub use facts::KnownFacts;
pub(crate) use folded::CASE;
pub use folded::Folded;
pub use mapping::{NameError, key_of, path_of};
pub(crate) use metadata::says_symlink;
pub use put::of_name_alone as content_type;
pub use stream::{ObjectStream, StreamError, StreamParts, download_stream, upload_stream};

pub use crate::location::Side;

use hakobu_core::unit::Meta;
use hakobu_s3::Algorithm;
use hakobu_s3::ops::Etag;
use hakobu_sys::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

/// Base of the relative names of one source argument.
#[derive(Clone)]
pub enum Root {
    /// A local folder.
    Local {
        /// The folder, open. Everything below is reached from here, component by component.
        dir: Arc<OwnedFd>,
        /// Its path, starting as the user typed it, for messages.
        shown: PathBuf,
    },
    /// A prefix in a bucket.
    Store {
        bucket: String,
        /// The prefix of every name; empty or as typed, mostly with a slash at its end.
        prefix: Vec<u8>,
    },
    /// Nothing is written: the content is counted and dropped.
    Null,
}

/// Both ends of one source argument.
pub struct Pair {
    /// Base of the entries' names.
    pub source: Root,
    /// Base of the target names.
    pub target: Root,
    /// The prefix of the names in the transfer: empty, or the name of the source folder and a slash, for filter rules
    /// and for display.
    pub lead: Vec<u8>,
}

impl Pair {
    pub fn root(&self, side: Side) -> &Root {
        match side {
            Side::Source => &self.source,
            Side::Target => &self.target,
        }
    }

    /// Returns whether the only work is removal.
    pub fn is_removal(&self) -> bool {
        matches!(self.source, Root::Null)
    }
}

/// One file or object of a listing.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Name from the root of its listing, components joined by `/`; a directory marker (`a/`) and a listed directory
    /// end with a slash.
    pub name: Box<[u8]>,
    /// Its metadata; for an object kind, size and mtime (LastModified).
    pub meta: Meta,
    /// ETag of an object, without quotes.
    pub etag: Etag,
}

/// A unit of work for a core.
pub struct Task {
    /// Both ends.
    pub pair: Arc<Pair>,
    pub work: Work,
}

/// Kind of work of a task.
pub enum Work {
    /// Move an entry of the source to a name at the target, or compare both.
    Move {
        /// The source's entry.
        entry: Entry,
        /// Target name, relative to the target's root.
        name: Box<[u8]>,
        /// The current target entry.
        existing: Option<Box<Entry>>,
        how: How,
    },
    /// Remove entries of the target.
    Delete {
        /// Up to 1,000 entries with names relative to the target's root.
        entries: Vec<Extraneous>,
    },
    /// As `Delete`, but only those that are still as they were looked at: an object with the same ETag, if the server
    /// supports conditional deletions; a local entry with the same identity, size and mtime. The others are kept, with
    /// a notice, and those that are gone are not counted.
    DeleteUnchanged {
        /// As in `Delete`, with the ETag or the metadata that was found.
        entries: Vec<Extraneous>,
    },
}

/// An entry to remove, and the ID of its version if that is not the current one.
pub type Extraneous = (Entry, Option<Box<str>>);

/// Treatment of an entry that both sides may have.
pub enum How {
    /// It is moved.
    Transfer,
    /// Sizes are equal: compare stored checksums, metadata, or the contents, then move or skip as the policy
    /// requires. What manifests know about the metadata is not asked for.
    Compare(Box<KnownFacts>),
    /// Compare two entries of equal size in these aspects and report the result; nothing is moved.
    Check(Checking),
}

/// What happens to an object whose name the target's file system takes for that of another file (aws'
/// `--case-conflict`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaseConflict {
    /// It is refused: a failure of this object.
    #[default]
    Error,
    /// It is left out, with a notice.
    Skip,
    /// It replaces the other file, with a notice.
    Warn,
    /// It replaces the other file.
    Ignore,
}

/// Options for writing objects, in addition to the policy.
#[derive(Clone, Debug, Default)]
pub struct ObjectOptions {
    /// Headers for every object written: storage class, ACL, encryption, tagging, cache control, content type and
    /// encoding if requested, user metadata.
    pub headers: hakobu_s3::ops::Headers,
    /// Guess the content type if `headers` do not set it: from the name, else from the content.
    pub guess_content_type: bool,
    /// `--metadata-directive REPLACE`: a server-side copy takes `headers` instead of the source's.
    pub replace_metadata: bool,
    /// `--version-id` of the single source object.
    pub version: Option<String>,
    /// An archived object that is not restored is skipped, and is no failure (`--ignore-glacier-warnings`).
    pub leave_archived: bool,
    /// Never replace an existing object (`--if-none-match '*'`, `--no-clobber`).
    pub if_none_match: bool,
    /// The part size in bytes, if requested; otherwise chosen by the object's size.
    pub part_bytes: Option<u64>,
    /// Concurrent parts of one object.
    pub concurrency: Option<usize>,
    /// The checksum that `--checksum-algorithm` asks to store.
    pub algorithm: Option<Algorithm>,
    /// Store mtime in metadata (`--times`), and compare it.
    pub keep_times: bool,
    /// Store the mode in metadata (`--perms`), and compare it.
    pub keep_modes: bool,
    /// Store the owner in metadata, as a number (`--owner`). Only the superuser sets it on files.
    pub keep_owner: bool,
    /// Store the group in metadata, as a number (`--group`).
    pub keep_group: bool,
    /// Zero-byte objects `name/` stand for directories, on request.
    pub dir_markers: bool,
    /// Percent-encode names that are not UTF-8, and keys that no file can have, instead of refusing them.
    pub encode_names: bool,
    /// Keep interrupted parts for a later run, and continue those of an earlier one.
    pub resume: bool,
    /// What happens to names that the target's file system takes for one.
    pub case_conflict: CaseConflict,
    /// The first failure of an entry stops the run (`--exit-on-error`).
    pub exit_on_error: bool,
}

/// Initial number of jobs for S3 if the user sets none.
pub const JOBS_SEED: usize = 32;
