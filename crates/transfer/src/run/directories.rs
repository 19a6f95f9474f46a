//! Attributes of directories after a transfer between paths that was done in parts: whoever writes into a directory, or removes
//! something from it, changes its time.

use crate::failure::c_string;
use crate::location::Location;
use crate::plan::{self, Spec};
use crate::policy::{EntrySelection, Symlinks};
use crate::run::{Outcome, transfer};
use hakobu_core::control::Control;
use hakobu_core::error::Fatal;
use hakobu_core::event::Listener;
use hakobu_core::unit::{Kind, Time};
use hakobu_sys::{AsFd, dir, errno, meta};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Gives directories at the target, and those above them, the attributes that their sources have, as the transfer wants them.
/// Names without a directory at the source or the target are passed over.
///
/// `names`: paths in the transfer, without a slash at the end; `.` is the top.
///
/// # Errors
/// Those of a transfer as a whole; it has one source directory.
pub fn set_directories(
    spec: &Spec,
    names: impl Iterator<Item = Vec<u8>>,
    control: &Control,
    listener: &dyn Listener,
) -> Result<Outcome, Fatal> {
    let arguments = plan::arguments(spec.sources.paths(), spec.layout)?;
    let [argument] = &*arguments else {
        return Err(Fatal::new(1, "directories are set of one source directory only"));
    };
    let folder = plan::or_here(&argument.folder);
    let unreadable = |error| Fatal::new(11, format!("cannot open {}: {error}", folder.display()));
    let top = c_string(folder.as_os_str().as_bytes()).and_then(|name| dir::open_root(&name));
    let top = top.map_err(unreadable)?;
    let follows = spec.policy.symlinks == Symlinks::Follow || spec.policy.copy_dirlinks;
    let mut chosen = EntrySelection::default();
    for name in names {
        let Ok(path) = c_string(&name) else { continue };
        match meta::of(top.as_fd(), &path, follows) {
            Ok(there) if there.kind != Kind::Dir => continue,
            Err(error) if errno::is_gone(&error) => continue,
            // What cannot be told is reported by the transfer.
            _ => {}
        }
        let name = name.into_boxed_slice();
        chosen.states.insert(name.clone(), (Kind::Dir, 0, Time::default()));
        chosen.names.push((name, Kind::Dir));
    }
    if chosen.names.is_empty() {
        return Ok(Outcome::default());
    }
    let mut spec = spec.clone();
    // With a slash at its end.
    spec.limit_to(Location::Local(folder.join("")))?;
    spec.chosen = Some(Arc::new(chosen));
    spec.policy.existing = true;
    transfer(&spec, control, listener)
}
