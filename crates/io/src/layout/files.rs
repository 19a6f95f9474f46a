//! Files that jobs work on, and what may be done with them.

use crate::pattern::Extent;
use std::path::PathBuf;

/// Permissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Safety {
    /// Existing files and block devices may be overwritten.
    pub allow_overwrite: bool,
    /// Files that were laid out stay.
    pub keep: bool,
}

/// A file, or a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaidFile {
    /// Its name.
    pub path: PathBuf,
    /// Its length; of `ioengine=null`, where nothing is opened, the length it would have.
    pub bytes: u64,
    /// It was made now.
    pub laid_out: bool,
    /// It is a block device.
    pub device: bool,
    /// It is only a name: an engine that opens no file has it.
    pub nothing: bool,
}

/// The files of one clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloneFiles {
    /// Its job's place in the list.
    pub job: usize,
    /// Number of the clone, from 0.
    pub clone: u32,
    /// Places in [`Layout::files`].
    pub files: Vec<usize>,
    /// The part of each that it works on.
    pub extents: Vec<Extent>,
    /// An earlier job fills them: how much is there is known when this one begins.
    pub follows: bool,
}
