//! The place of a file: its folder, and the thread that makes calls there. A core has many connections: calls for
//! slow file systems run on helper threads, so that no connection waits while another one's file is created. Calls
//! for local file systems are made directly.

use super::folded::Names;
use super::folders::{Folder, Look, Rules, failed, split};
use crate::object::core::Core;
use crate::object::failed::Failed;
use crate::object::helper::blocking;
use crate::object::moving::Moving;
use crate::object::{Root, Side};
use hakobu_core::error::Operation;
use hakobu_core::unit::Totals;
use hakobu_sys::{AsFd, OwnedFd};
use std::ffi::CString;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::Notify;

/// Target location of an entry's file.
#[derive(Clone)]
pub(super) struct Place {
    /// Its folder.
    pub folder: Folder,
    /// Its name there.
    pub name: CString,
    /// The target had an entry of this name when it was listed.
    pub exists: bool,
    /// Its name as it is remembered, if the target holds different names for one.
    pub names: Option<Names>,
}

/// Runs calls for a file system: directly, or on a helper thread if they may be slow.
///
/// # Errors
/// Those of `calls`.
pub(super) async fn make<T: Send + 'static>(
    waits: bool,
    calls: impl FnOnce() -> Result<T, Failed> + Send + 'static,
) -> Result<T, Failed> {
    match waits {
        false => calls(),
        true => blocking(|| Ok(calls())).await.map_err(failed(Operation::Write))?,
    }
}

impl Place {
    /// Opens or creates the folder of the entry's target name.
    ///
    /// # Errors
    /// See [`folder`].
    pub async fn of(core: &Core<'_>, moving: &Moving) -> Result<Place, Failed> {
        let Root::Local { dir: root, .. } = &moving.pair.target else {
            let why = "the target is not a local folder";
            return Err(Failed::Reason(Operation::Create, Side::Target, why));
        };
        let (above, name) = split(&moving.name)?;
        let (folder, made) = folder(core, root, above).await;
        count_made(core, made);
        let folder = folder?;
        let names = known(core, &folder, root, &moving.name).await?;
        Ok(Place { folder, name, exists: moving.existing.is_some(), names })
    }

    /// As `of`, after the folder turned out to be gone.
    ///
    /// # Errors
    /// See [`folder`].
    pub async fn again(core: &Core<'_>, moving: &Moving) -> Result<Place, Failed> {
        if let (Root::Local { dir: root, .. }, Ok((above, _))) =
            (&moving.pair.target, split(&moving.name))
        {
            // Missing folders above it are created again, too.
            let top = above.split(|byte| *byte == b'/').next().unwrap_or_default();
            core.folders.borrow_mut().forget(root, top);
        }
        Place::of(core, moving).await
    }

    /// Returns whether calls there may be slow.
    pub fn waits(&self) -> bool {
        self.folder.waits()
    }
}

/// Removes what dead runs left in the folder of a name, if nobody else does; returns the name as it is remembered, if
/// the target holds different names for one.
async fn known(
    core: &Core<'_>,
    folder: &Folder,
    root: &Arc<OwnedFd>,
    name: &[u8],
) -> Result<Option<Names>, Failed> {
    let files = Arc::clone(&core.engine.files);
    if let Some(identity) = folder.older
        && files.clears.load(Ordering::Relaxed)
        && !core.folders.borrow_mut().is_cleared(identity)
    {
        let (of, fd) = (Arc::clone(&files), Arc::clone(&folder.fd));
        make(folder.waits(), move || {
            of.clear((*fd).as_fd(), identity);
            Ok(())
        })
        .await?;
    }
    let Some(dev) = folder.dev else { return Ok(None) };
    let top = core.folders.borrow_mut().identity(root);
    let Some(top) = top else { return Ok(None) };
    let meets = core.folders.borrow().meets(top, dev);
    let meets = match meets {
        Some(meets) => meets,
        None => {
            let (of, fd) = (Arc::clone(&files), Arc::clone(&folder.fd));
            let look = move || Ok(of.folded.has(top, (*fd).as_fd(), dev));
            let meets = make(folder.waits(), look).await?;
            core.folders.borrow_mut().learn(top, dev, meets);
            meets
        }
    };
    Ok(meets.then(|| files.folded.names(top, name)))
}

/// Returns the folder at `path` below `root`, created if it is missing, and the number of folders created. Fails with
/// the system's error, or with a reason if a file or a symlink is in the way.
pub(super) async fn folder(
    core: &Core<'_>,
    root: &Arc<OwnedFd>,
    path: &[u8],
) -> (Result<Folder, Failed>, u64) {
    let rules =
        Rules { follow: core.engine.policy().keep_dirlinks, umask: core.engine.setup.umask };
    loop {
        let look = core.folders.borrow_mut().look(root, path, rules);
        let way = match look {
            Look::Open(folder) => return (Ok(folder), 0),
            Look::Opening(end) => {
                end.notified().await;
                continue;
            }
            Look::Way(way) => way,
        };
        let waits = way.waits();
        if waits {
            core.engine.queue.spread();
        }
        let _opening = waits.then(|| Opening::begin(core, root, path));
        let reached = match make(waits, move || Ok(way.go())).await {
            Ok(reached) => reached,
            Err(failed) => return (Err(failed), 0),
        };
        core.folders.borrow_mut().reached(root, &reached);
        return (reached.end, reached.made);
    }
}

/// A folder being opened on a helper thread. Workers that need the same one wait for the end.
struct Opening<'a> {
    core: &'a Core<'a>,
    root: &'a Arc<OwnedFd>,
    path: &'a [u8],
    end: Rc<Notify>,
}

impl<'a> Opening<'a> {
    fn begin(core: &'a Core<'_>, root: &'a Arc<OwnedFd>, path: &'a [u8]) -> Opening<'a> {
        let end = core.folders.borrow_mut().begins(root, path);
        Opening { core, root, path, end }
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.core.folders.borrow_mut().ends(self.root, self.path);
        self.end.notify_waiters();
    }
}

/// Counts folders that were created on the path to something else.
pub(super) fn count_made(core: &Core<'_>, made: u64) {
    if made > 0 {
        core.add(Totals { dirs_created: made, ..Totals::default() });
    }
}
