//! What shall happen to an entry: the options of a transfer as plain values, the pure function
//! that decides from two entries, and the filter rules. Knows no file system call.

mod chmod;
mod decide;
pub mod filter;

pub use chmod::{ChmodError, ChmodRules};
pub(crate) use decide::same_time;
pub use decide::{Action, Reason, decide};

use crate::error::Fatal;
use std::path::PathBuf;
use std::sync::Arc;

/// What to do with a symlink in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Symlinks {
    /// Leave it out and say so (rsync without `-l`).
    #[default]
    Skip,
    /// Make the same symlink (`-l`, `cp -P`).
    Keep,
    /// Copy what it names (`-L`).
    Follow,
}

/// When extraneous entries of the target are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Delete {
    /// Never.
    #[default]
    No,
    /// In a walk of its own before anything is copied.
    Before,
    /// In each directory when its source has been listed whole.
    During,
    /// In a second walk after everything was copied (`--delete-after`, `--delete-delay`).
    After,
}

/// When holes are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Sparse {
    /// Holes of the source stay holes where the file system tells them.
    #[default]
    Auto,
    /// Runs of zeroes become holes, too (`-S`, `cp --sparse=always`).
    Always,
    /// Every byte is written.
    Never,
}

/// Whether extents are shared with the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Reflink {
    /// Where the file systems can, else copy.
    #[default]
    Auto,
    /// Fail where they cannot.
    Always,
    /// Always copy the bytes.
    Never,
}

/// What is put at the target instead of a copy of a regular file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Content {
    /// A copy.
    #[default]
    Copy,
    /// A hard link to the source (`cp -l`).
    HardLink,
    /// A symlink to the source's absolute path (`cp -s`).
    Symlink,
}

/// Which of the attributes are kept. An attribute that only a privileged user may set is left
/// out for others with a count; `explicit` makes that an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Preserve {
    /// Permission bits.
    pub mode: bool,
    /// Owner (superuser only).
    pub owner: bool,
    /// Group.
    pub group: bool,
    /// Modification times.
    pub times: bool,
    /// Access times as well (cp).
    pub atimes: bool,
    /// POSIX ACLs (implies `mode`).
    pub acls: bool,
    /// Extended attributes.
    pub xattrs: bool,
    /// The owner was asked for by name (`-o`, `--chown`, `--preserve=ownership`), not by `-a`.
    pub owner_explicit: bool,
    /// ACLs were asked for by name and must work.
    pub acls_explicit: bool,
    /// Extended attributes were asked for by name and must work.
    pub xattrs_explicit: bool,
    /// Times of directories are left alone (`-O`).
    pub omit_dir_times: bool,
}

impl Preserve {
    /// Whether a copy keeps the extended attribute of that name; the POSIX ACLs are two of them.
    pub fn keeps_xattr(self, name: &[u8], is_root: bool) -> bool {
        if name == b"system.posix_acl_access" || name == b"system.posix_acl_default" {
            return self.acls;
        }
        // What else is in system.* belongs to the file system (NFSv4 ACLs, dos attributes).
        // XFS shows its ACLs a second time under names of its own.
        self.xattrs
            && !name.starts_with(b"system.")
            && !name.starts_with(b"trusted.SGI_ACL_")
            && (is_root || name.starts_with(b"user."))
    }
}

/// Asked before an existing target is overwritten (`cp -i`): the path, and whether to go on.
pub type Ask = Arc<dyn Fn(&std::path::Path) -> bool + Send + Sync>;

/// Everything that decides *what* happens; nothing here says in what order or how fast.
#[derive(Clone, Default)]
pub struct Policy {
    /// Descend into directories.
    pub recurse: bool,
    /// Make named directories without descending (`-d`, `--dirs`).
    pub dirs: bool,
    /// Symlinks of the source.
    pub symlinks: Symlinks,
    /// A symlink that is itself a source argument is followed (`cp -H`; trailing slash).
    pub follow_args: bool,
    /// A symlink to a directory in the source is treated as the directory (`-k`).
    pub copy_dirlinks: bool,
    /// A symlink to a directory in the target is treated as the directory (`-K`).
    pub keep_dirlinks: bool,
    /// Symlinks that point outside the tree are left out.
    pub safe_links: bool,
    /// Hard links among the transferred files stay hard links (`-H`).
    pub hard_links: bool,
    /// Device nodes are made.
    pub devices: bool,
    /// FIFOs and sockets are made.
    pub specials: bool,
    /// Which attributes are kept.
    pub preserve: Preserve,
    /// Changes to the mode bits (`--chmod`).
    pub chmod: Option<ChmodRules>,
    /// Owner for everything (`--chown=USER:`).
    pub chown_uid: Option<u32>,
    /// Group for everything (`--chown=:GROUP`).
    pub chown_gid: Option<u32>,
    /// Holes.
    pub sparse: Sparse,
    /// Shared extents.
    pub reflink: Reflink,
    /// Copy, hard link or symlink.
    pub content: Content,
    /// A target that is newer than the source is left alone (`-u`).
    pub update: bool,
    /// With `update`: one of the same age is left alone, too, whatever its size (`cp -u`).
    pub update_same: bool,
    /// Equal size is not enough: contents are compared (`-c`).
    pub checksum: bool,
    /// Equal size is enough.
    pub size_only: bool,
    /// Equal size and time are not enough: copy again (`-I`, and plain `cp`).
    pub ignore_times: bool,
    /// Times that differ by no more seconds are equal; negative: compare nanoseconds.
    pub modify_window_s: i64,
    /// Sizes being equal, a target that is not older than its source is the same: its time is
    /// that of its upload (objects without times of their own).
    pub newer_only: bool,
    /// Only entries that exist in the target already.
    pub existing: bool,
    /// Only entries that do not exist in the target yet (`cp -n` as well).
    pub ignore_existing: bool,
    /// Asked before overwriting (`-i` of cp).
    pub ask: Option<Ask>,
    /// Existing targets are treated as cp does: they keep their owner and mode, and a device or
    /// FIFO is written to instead of being replaced.
    pub cp_targets: bool,
    /// A non-empty directory may be removed to make way for a file (`--force`, or `--delete`).
    pub force: bool,
    /// Removal of extraneous entries.
    pub delete: Delete,
    /// Entries that a rule hides are removed from the target as well.
    pub delete_excluded: bool,
    /// At most so many removals.
    pub max_delete: Option<u64>,
    /// Remove even in directories that could not be listed without error.
    pub ignore_errors: bool,
    /// Larger regular files are left out (bytes).
    pub max_size: Option<u64>,
    /// Smaller regular files are left out (bytes).
    pub min_size: Option<u64>,
    /// Existing files are written in place, without a temporary name.
    pub inplace: bool,
    /// An interrupted file is kept under its name instead of being removed.
    pub partial: bool,
    /// Where temporary files are made, instead of the target's directory.
    pub temp_dir: Option<PathBuf>,
    /// Replaced and removed targets are kept under another name.
    pub backup: bool,
    /// What is appended to that name.
    pub suffix: Vec<u8>,
    /// Trees to hard-link unchanged files from; relative ones are relative to the target.
    pub link_dest: Vec<PathBuf>,
    /// Every file is flushed before its name appears (`--fsync`).
    pub fsync: bool,
    /// Sources (all but directories) are removed when their target is complete and checked.
    pub remove_source_files: bool,
    /// Source directories are removed as well once they are empty (`mv` across file systems).
    pub remove_source_dirs: bool,
    /// Do not cross into other file systems of the source (`-x`).
    pub one_file_system: bool,
    /// Directories without any file below are not made (`-m`).
    pub prune_empty_dirs: bool,
    /// Say what would happen, change nothing (`-n`).
    pub dry_run: bool,
    /// Only list the source (`--list-only`).
    pub list_only: bool,
    /// Filter rules; `None` for none.
    pub filter: Option<Arc<filter::Filter>>,
}

impl Policy {
    /// Checks that the options fit together.
    ///
    /// # Errors
    /// Code 1 and a sentence that names the two options.
    pub fn check(&self) -> Result<(), Fatal> {
        if self.delete != Delete::No && !self.recurse && !self.dirs {
            return Err(Fatal::new(
                1,
                "--delete does not work without --recursive (-r) or --dirs (-d)",
            ));
        }
        if self.backup && self.suffix.is_empty() {
            return Err(Fatal::new(1, "--backup needs a suffix that is not empty"));
        }
        if self.backup && self.suffix.contains(&b'/') {
            return Err(Fatal::new(1, "--suffix cannot contain a slash"));
        }
        Ok(())
    }
}
