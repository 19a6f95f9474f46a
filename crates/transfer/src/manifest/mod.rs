//! Manifests: what runs know about the objects below a prefix, so that the next run asks for no headers of an object
//! that did not change. For each object: its ETag, size and LastModified, and the mtime, mode, owner and type in its
//! metadata.
//!
//! A listing returns the first three. Where all of them agree with a manifest, the metadata is what the manifest says:
//! other content has another ETag, and an object that was copied onto itself for other metadata another LastModified.
//!
//! # What a fact is taken from, and the races that remain
//!
//! - *Observed*: the headers of a HEAD or GET that agree with the listing. Some servers (AWS) state LastModified in whole
//!   seconds; an object that is replaced twice in a second looks the same afterwards. So a fact is recorded only if that
//!   second was over when the headers were sent, by the `Date` of the same server.
//! - *Written by this run*: the response to a PUT has no LastModified. It lies between the beginning of the request and
//!   the `Date` of its response, by the server's clock, and the next listing has to agree with that. Facts of the last
//!   second of a run are recorded only after that second is over ([`Recorder::settle`]): nothing that is written after
//!   the run has a LastModified that would be taken for ours.
//!
//! Taken for ours is another client's object with the same content (ETag) but other metadata, in these cases only:
//! it is written within the second of our own write, while this run still writes; its multipart upload was
//! initiated in the seconds of our write and completed later (AWS dates it by its initiation); or the clocks of the
//! machines behind one endpoint differ by more than the time between the two writes. Then its mtime, mode or owner
//! stays until it is written again or the fact expires. Content is never mistaken.
//!
//! # Format
//!
//! A header, frames of records in the order of their keys, an index of the frames, and a trailer; each with a
//! checksum (`format`). A file that is damaged, cut off, of another version or about another place counts as none.

mod format;
mod recorder;
mod state;

pub use format::{Known, ManifestWriter};
pub use recorder::Recorder;
pub use recorder::merge_contents;
pub use state::{Cursor, Manifest, Manifests};

use crate::location::Side;
use hakobu_core::unit::{Kind, Time};
use hakobu_s3::ops::Etag;

/// Days after which a fact is not used any more: it is asked for again, which ends the remaining races of the module's
/// documentation.
pub const AGE_DAYS_MAX: u32 = 90;

/// File metadata stored with an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileMetadata {
    /// Modification time.
    pub mtime: Option<Time>,
    /// Permission bits, 0 to 0o7777.
    pub mode: Option<u32>,
    /// The type in the stored `st_mode`: file, directory or symlink.
    pub kind: Option<Kind>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
}

/// The objects that a manifest is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// URL of the store.
    pub endpoint: String,
    pub bucket: String,
    /// Start of all keys; records hold the rest.
    pub prefix: Vec<u8>,
}

/// LastModified of an object, by the server's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modified {
    /// As listed.
    At(Time),
    /// In these seconds since 1970, both included: from the beginning of our request to the date of its response.
    Within(i64, i64),
}

impl Modified {
    /// Returns whether a listing agrees.
    pub fn agrees(&self, listed: Time) -> bool {
        match self {
            Modified::At(time) => *time == listed,
            Modified::Within(from_s, until_s) => (*from_s..=*until_s).contains(&listed.s),
        }
    }

    /// Returns the last second in which it may be.
    pub fn last_s(&self) -> i64 {
        match self {
            Modified::At(time) => time.s,
            Modified::Within(_, until_s) => *until_s,
        }
    }

    /// Returns whether a later write can have the same time, if the second `now_s` of the server's clock has begun.
    pub fn may_recur(&self, now_s: i64) -> bool {
        match self {
            // A server that states fractions dates a later write later.
            Modified::At(time) if time.ns > 0 => false,
            other => other.last_s() >= now_s,
        }
    }
}

/// An object as a manifest knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The key without the prefix of the place.
    pub key: Box<[u8]>,
    /// ETag without quotes. An empty one is no object: the key is gone.
    pub etag: Etag,
    /// Size in bytes.
    pub size: u64,
    pub modified: Modified,
    /// Days since 1970 when it was learnt, by the clock of this machine.
    pub learnt_day: u32,
    pub facts: FileMetadata,
}

impl Record {
    /// Returns the record of a key that is gone.
    pub fn gone(key: &[u8]) -> Record {
        Record {
            key: key.into(),
            etag: Etag::new(""),
            size: 0,
            modified: Modified::Within(0, 0),
            learnt_day: 0,
            facts: FileMetadata::default(),
        }
    }

    /// Returns whether the key is gone.
    pub fn is_gone(&self) -> bool {
        self.etag.is_empty()
    }

    /// Returns the facts about a listed object if it is this one and they have not expired on this day.
    pub fn facts_of(&self, etag: &str, size: u64, mtime: Time, today: u32) -> Option<FileMetadata> {
        let same = !etag.is_empty() && *self.etag == *etag && self.size == size;
        let is_current = self.learnt_day <= today.saturating_add(1)
            && today.saturating_sub(self.learnt_day) <= AGE_DAYS_MAX;
        (same && is_current && self.modified.agrees(mtime)).then_some(self.facts)
    }
}

/// Manifests that lie elsewhere than in the user's state folder: those of a run that many processes share.
pub trait ManifestFiles: Send + Sync {
    /// Returns what is known about a place: contents of manifests, the oldest first. Those of other places in the same
    /// bucket count as far as they are about its keys.
    fn earlier(&self, side: Side, place: &Place) -> Vec<Vec<u8>>;

    /// Keeps what a transfer knows and has learnt about a place in the end.
    fn keep(&self, side: Side, place: &Place, content: Vec<u8>);
}

impl std::fmt::Debug for dyn ManifestFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ManifestFiles")
    }
}

/// Returns the days since 1970 by the clock of this machine.
pub fn today() -> u32 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u32::try_from(since.as_secs() / 86_400).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: i64, ns: u32) -> Time {
        Time { s, ns }
    }

    #[test]
    fn an_object_is_known_by_etag_size_and_time() {
        let facts = FileMetadata { mode: Some(0o644), ..FileMetadata::default() };
        let record = Record {
            etag: Etag::new("e"),
            size: 5,
            modified: Modified::At(at(100, 7)),
            learnt_day: 1000,
            facts,
            ..Record::gone(b"k")
        };
        let of = |etag, size, time, day| record.facts_of(etag, size, time, day).is_some();
        assert!(of("e", 5, at(100, 7), 1000));
        assert!(of("e", 5, at(100, 7), 1000 + AGE_DAYS_MAX));
        assert!(!of("e", 5, at(100, 7), 1001 + AGE_DAYS_MAX), "expired");
        assert!(!of("e", 5, at(100, 7), 998), "from the future");
        assert!(!of("f", 5, at(100, 7), 1000));
        assert!(!of("", 5, at(100, 7), 1000));
        assert!(!of("e", 6, at(100, 7), 1000));
        assert!(!of("e", 5, at(100, 8), 1000));
        assert!(!of("e", 5, at(100, 0), 1000));
    }

    #[test]
    fn a_key_that_is_gone_is_known_to_nothing() {
        let gone = Record::gone(b"k");
        assert!(gone.is_gone());
        assert_eq!(gone.facts_of("", 0, at(0, 0), 0), None);
    }

    #[test]
    fn a_written_object_is_one_of_the_time_of_its_request() {
        let within = Modified::Within(100, 102);
        for (s, ns, agrees) in
            [(99, 999_999_999, false), (100, 0, true), (102, 999_999_999, true), (103, 0, false)]
        {
            assert_eq!(within.agrees(at(s, ns)), agrees, "{s}.{ns}");
        }
        assert!(within.may_recur(102));
        assert!(!within.may_recur(103));
        assert!(Modified::At(at(100, 0)).may_recur(100));
        assert!(!Modified::At(at(100, 0)).may_recur(101));
        assert!(!Modified::At(at(100, 1)).may_recur(100));
    }
}
