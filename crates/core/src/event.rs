//! Events of a run. Nothing below the binary prints: display,
//! records and exit codes are made from these events.

use crate::error::Problem;
use crate::limit::Controls;
use crate::meter::Meter;
use crate::unit::{Kind, Meta};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// One thing that happened. Events come from all workers at once and in no order across files.
#[derive(Debug)]
pub enum Event<'a> {
    /// Work begins: the counters that tell how far it is. A command may begin several times.
    Begins(&'a Arc<Meter>),
    /// The limiters of the work that begins, which may be set while it goes on. Sent only if a rate is limited.
    Limited(&'a Arc<Controls>),
    /// An entry was (or under `--dry-run` would be) changed. Sent only when `Spec::items` asks.
    Item(&'a Item<'a>),
    /// An entry between paths would be changed. Sent instead of `Item` for all but directories when `Spec::plans` asks.
    Planned(&'a Planned<'a>),
    /// Something went wrong with one entry, or deserves a line.
    Problem(&'a Problem),
    /// A message about an entry besides its own line. Sent only when `Spec::remarks` asks.
    Remark(&'a Remark<'a>),
    /// A sentence for the user before or during the run: free space, a seed, an unsafe choice.
    Warning(String),
}

/// A change of an entry, in the terms of rsync's itemized output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// It did not exist at the target.
    pub created: bool,
    /// Content was transferred (`>`), as opposed to attributes only (`.`) or a local creation (`c`).
    pub transferred: bool,
    /// It became a hard link to an earlier name (`h`).
    pub hard_link: bool,
    /// The earlier name is one of the transfer, which `Item::link` names. No difference by itself.
    pub to_name: bool,
    /// It was removed from the target (`*deleting`).
    pub deleted: bool,
    /// Contents differ (`c`).
    pub checksum: bool,
    /// Sizes differ (`s`).
    pub size: bool,
    /// Modification times differ and are set (`t`).
    pub time: bool,
    /// Modification times are set to the time of the transfer (`T`).
    pub time_now: bool,
    /// Modes differ (`p`).
    pub mode: bool,
    /// Owners differ (`o`).
    pub owner: bool,
    /// Groups differ (`g`).
    pub group: bool,
    /// Access times differ (`u`).
    pub atime: bool,
    /// ACLs differ (`a`).
    pub acl: bool,
    /// Extended attributes differ (`x`).
    pub xattr: bool,
    /// It is compared with an entry of a tree beside the target (`--link-dest` and its like), or is a hard link already.
    /// Neither alone is a difference.
    pub beside: bool,
    /// An option or a rule of the command leaves it out. No difference; sent with unchanged entries only.
    pub left_out: bool,
}

impl Change {
    /// Returns whether anything at all differs.
    pub fn any(&self) -> bool {
        let hard_link = self.beside && self.hard_link;
        let Change { beside, to_name, left_out, .. } = *self;
        *self != Change { beside, to_name, left_out, hard_link, ..Change::default() }
    }

    /// Returns whether it equals the entry beside the target that it is compared with, or is a hard link already.
    pub fn is_as_beside(&self) -> bool {
        let Change { created, hard_link, to_name, .. } = *self;
        *self == Change { beside: true, created, hard_link, to_name, ..Change::default() }
    }
}

/// One changed entry, enough for rsync's itemized line, a JSON line, or a job log.
#[derive(Debug)]
pub struct Item<'a> {
    pub change: Change,
    /// The type of the source entry (for a deletion: of the target entry).
    pub kind: Kind,
    /// Path in the transfer, without the source's root: what rsync prints.
    pub path: &'a Path,
    /// Full path of the source as the user would spell it.
    pub source: Option<PathBuf>,
    /// Full path of the target as the user would spell it.
    pub target: Option<PathBuf>,
    /// Version ID of a removed version of an object.
    pub version: Option<&'a str>,
    /// Text of a symlink; for a hard link the path of the earlier name in the transfer.
    pub link: Option<PathBuf>,
    /// Size of the source in bytes.
    pub bytes: u64,
    /// Bytes of content moved.
    pub bytes_moved: u64,
    /// Unix time at which work on this entry began, seconds.
    pub start_s: f64,
    pub took: Duration,
    /// Source mode (permission bits), for `--list-only`.
    pub mode: u32,
    /// Source modification time, seconds since 1970, for `--list-only`.
    pub mtime_s: i64,
    /// The source entry as it was decided on (for a deletion: the target entry).
    pub meta: &'a Meta,
    /// Checksum of the content, in hexadecimal, if `Spec::digest` asks and the entry has one.
    pub digest: Option<String>,
    /// Checksum of the content that a store has, and its algorithm, as S3 spells them (`CRC64NVME`, base64), if it was
    /// computed or received anyway.
    pub checksum: Option<(&'static str, String)>,
}

/// A message about an entry besides its own line (rsync(1), `--info=backup`, `--info=skip` and `--debug=filter`). Paths of
/// entries are paths in the transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remark<'a> {
    /// The old entry of a name is kept under another name.
    BackedUp {
        path: &'a Path,
        /// The path of the backup; below the folder of `--backup-dir` if there is one.
        backup: PathBuf,
    },
    /// The directory that is the target did not exist.
    Made {
        /// Its path as the user would spell it.
        path: &'a Path,
        /// With `--mkpath`: number of directories, with those above.
        dirs: Option<usize>,
    },
    /// An option excludes an entry.
    Skipped {
        path: &'a Path,
        /// Its type in the source.
        kind: Kind,
        /// The reason.
        why: Skip,
    },
    /// A filter rule decides about an entry.
    Filtered {
        path: &'a Path,
        /// It is a directory, or a symlink that is treated as one.
        is_dir: bool,
        /// The rule decides whether the target may lose it, instead of whether it is transferred.
        at_target: bool,
        /// The rule includes it: it is transferred, or may be deleted.
        include: bool,
        /// The rule's pattern; `None` for one that a file contains.
        pattern: Option<&'a [u8]>,
        /// The list that has the rule, besides that of the options.
        list: Option<&'a [u8]>,
    },
}

/// Reason for a skipped entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// It does not exist at the target (`--existing`).
    NotExisting,
    /// It exists at the target (`--ignore-existing`).
    Existing,
    /// The target is newer (`--update`).
    Newer,
    /// It is larger than `--max-size`.
    TooLarge,
    /// It is smaller than `--min-size`.
    TooSmall,
}

/// Requested remarks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    /// `Remark::BackedUp`.
    pub backups: bool,
    /// `Remark::Skipped`.
    pub skips: bool,
    /// `Remark::Filtered`.
    pub filters: bool,
    /// `Remark::Made`.
    pub made: bool,
}

impl Remarks {
    /// Returns whether any about entries are requested.
    pub fn of_entries(self) -> bool {
        self.backups || self.skips || self.filters
    }
}

/// One entry that would be changed, as a plan needs it: paths are made only on request, and no time is measured. Most
/// entries lie in the folder of the entry before.
pub struct Planned<'a> {
    pub change: Change,
    /// The source entry as it was decided on.
    pub meta: &'a Meta,
    /// Number of the folder in this process, and of the source in it: the same numbers mean the same folder on both
    /// sides.
    pub folder: (u64, usize),
    /// Name in the source folder.
    pub name: &'a [u8],
    /// It has another name at the target.
    pub renamed: bool,
    /// Makes its paths.
    pub paths: &'a dyn Fn() -> EntryPaths,
}

impl std::fmt::Debug for Planned<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Planned { change, folder, name, .. } = self;
        write!(f, "Planned({change:?}, {folder:?}, {})", String::from_utf8_lossy(name))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryPaths {
    /// Path in the transfer, without the source's root.
    pub path: Vec<u8>,
    /// Full path of the source as the user would spell it.
    pub source: PathBuf,
    /// Full path of the target as the user would spell it.
    pub target: PathBuf,
}

/// Receives events. Called from all workers: must be quick and must not block for long.
pub trait Listener: Sync {
    /// Takes one event.
    fn event(&self, event: Event<'_>);

    /// Returns whether somebody sees totals while a run works: then it may count ahead what there is to do.
    fn shows_totals(&self) -> bool {
        false
    }
}
