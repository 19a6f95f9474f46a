//! Naming of target files: temporary names, the rule for final names, drafts and links.

mod backup;
mod delay;
mod direct;
mod draft;
pub(super) mod names;
mod partial;
mod temp;

pub(super) use backup::{BackupDir, Backups};
pub(crate) use direct::{Direct, Scratch};
pub(super) use draft::{Draft, Publisher};
pub(super) use names::DirName;
pub(crate) use names::{
    back_up, cannot_link, disown, is_node, lacks_unnamed, lease_ended, rename_into_place,
    reserve_ahead, set_aside, unfinished,
};
pub(crate) use temp::{LEFT_OUT, TempNames};
