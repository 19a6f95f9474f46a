//! What happens during a run, told to whoever listens. Nothing below the binary prints: display,
//! records and exit codes are made from these events.

use crate::error::Problem;
use crate::unit::{Kind, Totals};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Files from this size on are told about while they are being copied.
pub const LARGE_BYTES_MIN: u64 = 8 << 20;

/// One thing that happened. Events come from all workers at once and in no order across files.
#[derive(Debug)]
pub enum Event<'a> {
    /// A unit (a directory listing, a chunk of up to 64 names) is finished: what it added.
    Unit(&'a Totals),
    /// A directory was listed (a part of): so many more entries are known to be ahead.
    Found {
        /// Entries found, not counting directories.
        entries: u64,
    },
    /// The walk has found everything there is.
    WalkDone,
    /// A file of at least [`LARGE_BYTES_MIN`] is being copied: its size is known to be ahead now.
    LargeFile {
        /// Its size in bytes.
        bytes: u64,
    },
    /// So many bytes of such a large file have been written (they come again in its `Unit`).
    LargeBytes {
        /// Bytes since the last event for this file.
        bytes: u64,
        /// Bytes of this file that are written but not on the device, where the kernel can say.
        undrained: Option<u64>,
    },
    /// An entry was (or under `--dry-run` would be) changed. Sent only when `Spec::items` asks.
    Item(&'a Item<'a>),
    /// Something went wrong with one entry, or deserves a line.
    Problem(&'a Problem),
    /// A sentence for the user before or during the run: free space, a seed, an unsafe choice.
    Warning(String),
}

/// What was done to an entry, in the terms of rsync's itemized output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// It did not exist at the target.
    pub created: bool,
    /// Content was transferred (`>`), as opposed to attributes only (`.`) or a local creation (`c`).
    pub transferred: bool,
    /// It became a hard link to an earlier name (`h`).
    pub hard_link: bool,
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
    /// ACLs differ (`a`).
    pub acl: bool,
    /// Extended attributes differ (`x`).
    pub xattr: bool,
}

impl Change {
    /// Whether anything at all differs.
    pub fn any(&self) -> bool {
        *self != Change::default()
    }
}

/// One changed entry, enough for rsync's itemized line, a JSON line, or a job log.
#[derive(Debug)]
pub struct Item<'a> {
    /// What was done to it.
    pub change: Change,
    /// The type of the source entry (for a deletion: of the target entry).
    pub kind: Kind,
    /// Path in the transfer, without the source's root: what rsync prints.
    pub path: &'a Path,
    /// Full path of the source as the user would spell it.
    pub source: Option<PathBuf>,
    /// Full path of the target as the user would spell it.
    pub target: Option<PathBuf>,
    /// Text of a symlink; for a hard link the path of the earlier name in the transfer.
    pub link: Option<PathBuf>,
    /// Size of the source in bytes.
    pub bytes: u64,
    /// Bytes of content moved.
    pub bytes_moved: u64,
    /// Unix time at which work on this entry began, seconds.
    pub start_s: f64,
    /// How long it took.
    pub took: Duration,
    /// Source mode (permission bits), for `--list-only`.
    pub mode: u32,
    /// Source modification time, seconds since 1970, for `--list-only`.
    pub mtime_s: i64,
}

/// Whoever listens. Called from all workers: must be quick and must not block for long.
pub trait Listener: Sync {
    /// Takes one event.
    fn event(&self, event: Event<'_>);
}
