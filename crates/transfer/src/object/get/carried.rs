//! What a new file shall look like: from the object's metadata, its LastModified, the policy, and
//! what was there before.

use crate::object::core::Engine;
use crate::object::metadata;
use crate::object::moving::Moving;
use crate::s3::ops::Head;
use crate::unit::{Kind, Time};

/// What a file shall have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Permission bits.
    pub mode: u32,
    /// Whether the mode is one that the file must have, and not only one to begin with.
    pub exact: bool,
    /// Whether the umask takes bits of the mode away where a file is created with it.
    pub masked: bool,
    /// Owner, where it is ours to set.
    pub uid: Option<u32>,
    /// Group, where it is ours to set.
    pub gid: Option<u32>,
    /// Last change.
    pub mtime: Time,
}

impl Shape {
    /// What the file of an entry shall have. `head` is given where headers were looked at.
    pub fn of(engine: &Engine<'_>, moving: &Moving, head: Option<&Head>) -> Shape {
        let (policy, options) = (engine.policy(), &engine.setup.options);
        let carried = head.map(|head| metadata::read(&head.metadata)).unwrap_or_default();
        let listed = moving.entry.meta.mtime;
        let modified = match head {
            Some(head) if head.etag != *moving.entry.etag || listed.s == 0 => head.mtime,
            _ => listed,
        };
        let existing = moving.existing.as_ref().filter(|there| there.meta.kind == Kind::File);
        let stored = carried.mode.filter(|_| options.keep_modes);
        // As rsync: what is replaced keeps its mode, less what would raise privileges.
        let bits = stored.or(existing.map(|there| there.meta.mode & 0o777));
        let plain = 0o666 & !engine.setup.umask;
        let mode = match &policy.chmod {
            Some(rules) => rules.apply(bits.unwrap_or(plain), false),
            None => bits.unwrap_or(plain),
        };
        let is_root = || hakobu_sys::process::euid() == 0;
        let owners = |stored: Option<u32>| stored.filter(|_| options.keep_owners && is_root());
        Shape {
            mode,
            exact: bits.is_some() || policy.chmod.is_some(),
            masked: mode & engine.setup.umask != 0,
            uid: policy.chown_uid.or(owners(carried.uid)),
            gid: policy.chown_gid.or(owners(carried.gid)),
            mtime: carried.mtime.filter(|_| options.keep_times).unwrap_or(modified),
        }
    }
}

/// Whether metadata has to be looked at to know the shape of a file.
pub(super) fn wants_metadata(engine: &Engine<'_>) -> bool {
    let options = &engine.setup.options;
    options.keep_times
        || options.keep_modes
        || options.keep_owners
        || engine.policy().symlinks == crate::policy::Symlinks::Keep
}
