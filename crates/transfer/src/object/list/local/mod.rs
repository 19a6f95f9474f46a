//! The listing of a local tree in the order of keys: a folder sorts as `name/`, so `a-b` comes before `a/x`, and that
//! before `a0`. Every entry is reached from the open top, component by component; no symlink is followed unless
//! requested. Folders are read and names examined ahead, by as many workers as pay.

mod ahead;
mod names;
mod read;
mod walk;

pub use walk::local;

use super::NameFilter;
use crate::policy::Symlinks;

/// Folders that are listed as entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Dirs {
    /// None.
    #[default]
    No,
    /// Those without any listed entry directly in them.
    Empty,
    /// All but the top.
    All,
}

/// Parameters of listing a local tree.
#[derive(Default)]
pub struct LocalQuery {
    /// Handling of symlinks: skipped with a notice, entries of kind `Symlink`, or followed.
    pub symlinks: Symlinks,
    /// Folders on other file systems than the top are skipped with a notice.
    pub one_file_system: bool,
    /// Folders that are listed as entries.
    pub dirs: Dirs,
    /// Folders are not entered; all of them are entries and `dirs` is ignored.
    pub flat: bool,
    /// Devices, FIFOs and sockets are entries (of a target, where they are in the way); otherwise they are skipped
    /// with a notice.
    pub specials: bool,
    /// Names sort by their percent-encoded keys.
    pub encode: bool,
    /// Temporary files of dead runs of this machine (in a target) are removed.
    pub clear_leftovers: bool,
    /// Names that the rules hide are skipped, and hidden folders are not entered.
    pub name_filter: Option<NameFilter>,
}

#[cfg(test)]
mod tests;
