//! Attributes of a new file: from the object's metadata, its LastModified, the policy, and the replaced file.

use crate::object::core::Engine;
use crate::object::metadata;
use crate::object::moving::Moving;
use hakobu_core::unit::{Kind, Time};
use hakobu_s3::ops::ObjectHead;

/// Attributes of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Permission bits.
    pub mode: u32,
    /// Whether the file must have this mode, not only start with it.
    pub exact: bool,
    /// Whether the umask clears bits of the mode on creation.
    pub masked: bool,
    /// Owner, if we may set it.
    pub uid: Option<u32>,
    /// Group, if we may set it.
    pub gid: Option<u32>,
    /// Modification time.
    pub mtime: Time,
}

impl Shape {
    /// Returns the attributes for the file of an entry. `head` is given if headers were requested.
    pub fn of(engine: &Engine<'_>, moving: &Moving, head: Option<&ObjectHead>) -> Shape {
        let (policy, options) = (engine.policy(), engine.setup.options);
        let carried = head.map(|head| metadata::read(&head.metadata)).unwrap_or_default();
        let carried = carried.on_file(policy, options, hakobu_sys::process::euid());
        let listed = moving.entry.meta.mtime;
        let modified = match head {
            Some(head) if head.etag != *moving.entry.etag || listed.s == 0 => head.mtime,
            _ => listed,
        };
        let existing = moving.existing.as_ref().filter(|there| there.meta.kind == Kind::File);
        let existing = existing.map(|there| &there.meta);
        // As in rsync: a replaced file keeps its mode, minus bits that would raise privileges.
        let bits = carried.mode.or(existing.map(|there| there.mode & 0o777));
        let plain = 0o666 & !engine.setup.umask;
        let mode = match &policy.chmod {
            Some(rules) => rules.apply(bits.unwrap_or(plain), false),
            None => bits.unwrap_or(plain),
        };
        // As in cp, which writes into the existing file.
        let root = hakobu_sys::process::euid() == 0;
        let replaced = existing.filter(|_| policy.cp_targets && root);
        Shape {
            mode,
            exact: bits.is_some() || policy.chmod.is_some(),
            masked: mode & engine.setup.umask != 0,
            uid: carried.uid.or(replaced.map(|there| there.uid)),
            gid: carried.gid.or(replaced.map(|there| there.gid)),
            mtime: carried.mtime.unwrap_or(modified),
        }
    }
}

/// Returns whether metadata is required to determine the attributes of a file.
pub(super) fn wants_metadata(engine: &Engine<'_>) -> bool {
    let options = &engine.setup.options;
    options.keep_times
        || options.keep_modes
        || options.keep_owner
        || options.keep_group
        || engine.policy().symlinks == crate::policy::Symlinks::Keep
}
