//! The listing of a local tree in the order of keys: a folder sorts as `name/`, so `a-b` comes before `a/x`, and that
//! before `a0`. Every entry is reached from the open top, component by component; no symlink is followed unless
//! requested. Folders are read and names examined ahead, by as many workers as pay.

mod ahead;
mod names;
mod query;
mod read;
mod walk;

pub use query::{Dirs, LocalQuery};

use super::Listing;
use hakobu_core::unit::Jobs;
use hakobu_sys::OwnedFd;
use std::path::Path;
use std::sync::Arc;

/// Lists the tree below `top`; `shown` is its path, starting as the user typed it. Our own temporary names are never
/// listed.
///
/// Problems: a folder that cannot be read is a problem of the name `folder/`, an entry that cannot be examined one of
/// its name; an entry skipped on purpose is a problem of class `Notice`.
pub fn local(top: Arc<OwnedFd>, shown: &Path, query: LocalQuery) -> Listing {
    on_workers(Jobs::Auto, top, shown, query)
}

fn on_workers(jobs: Jobs, top: Arc<OwnedFd>, shown: &Path, query: LocalQuery) -> Listing {
    let (sender, listing) = Listing::channel(query.encode, false);
    let shown = shown.to_owned();
    Listing::start(sender, "list-local", move |sender| {
        walk::run(&top, &shown, query, jobs, sender);
    });
    listing
}

#[cfg(test)]
mod tests;
