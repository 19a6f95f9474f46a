//! Creation of an object's file, by the rules of the local engine (`publish`): under its final name at once
//! only if that is safe, else without a name or under a temporary one until it is complete; an existing entry is
//! replaced through a temporary name and rename(2).

use super::entry::{CHANGED_WHILE_READ, Failed, MoveResult, Moving, Object};
use super::folded::HashedName;
use super::folders::{Look, OpenFolder, Rules, failed, split};
use super::get::unreadable;
use super::runtime::{Core, ObjectEngine, blocking};
use super::stream::{HELD_BYTES_MAX, StreamError, stream};
use super::{CaseConflict, Folded, ObjectOptions, Root, Side, folded, metadata};
use crate::journal::Ledger;
use crate::policy::Policy;
use crate::publish::{self, Direct, Draft, DraftName, Drafts, TempEntry, is_node};
use bytes::Bytes;
use hakobu_core::control::Control;
use hakobu_core::error::{Cause, DIRECTORY_STAYS, ErrorClass, Operation, Problem};
use hakobu_core::meter::Phase;
use hakobu_core::unit::{Kind, Time, Totals};
use hakobu_s3::ops::ObjectHead;
use hakobu_sys::dir::{self, Reader};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, errno, file, meta};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// Result of publishing a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Appeared {
    /// It has its name.
    Yes,
    /// An entry of that name appeared meanwhile and must not be replaced.
    Kept,
    /// A device or FIFO has the name, which cp writes into (see [`super::through`]).
    Node,
    /// It has its name, and replaced a file of another one that the target takes for the same.
    Replaced,
    /// The target takes its name for that of another file, and it was left out.
    LeftOut,
}

/// The file of an object while it is received. Dropped before [`DownloadFile::publish`] it is removed.
pub(super) struct DownloadFile {
    /// `None` once it has its name, or is kept for a later run.
    draft: Option<Draft<Arc<OwnedFd>, Arc<OwnedFd>>>,
    files: Arc<FileCreation>,
    /// Its final name.
    name: CString,
    /// An earlier run created it, so its attributes are unknown.
    adopted: bool,
}

impl FilePlace {
    /// Creates a file with the given content and attributes.
    ///
    /// # Errors
    /// Those of the system, with nothing left behind; of attributes that could not be set, after the file was
    /// published.
    pub async fn fill(
        self: &Arc<FilePlace>,
        core: &Core<'_>,
        shape: Shape,
        frames: &Arc<Vec<Bytes>>,
        size: u64,
    ) -> Result<Appeared, Failed> {
        let (waits, files) = (self.waits(), &core.engine.files);
        let (of, at) = (Arc::clone(files), Arc::clone(self));
        let begun = move || DownloadFile::begin(&of, &at, &shape, size);
        let file = match file_calls(waits, begun).await? {
            Ok(file) => file,
            Err(instead) => return Ok(instead),
        };
        core.doing.turn(Phase::Write);
        let frames = Arc::clone(frames);
        let write = move || {
            let buffers = frames.iter().map(|frame| &**frame);
            let written = file
                .share()
                .and_then(|fd| hakobu_sys::file::write_all_vectored(fd.as_fd(), buffers));
            written.map_err(failed(Operation::Write))?;
            Ok(file)
        };
        let file = file_calls(waits, write).await?;
        core.doing.turn(Phase::Settle);
        let at = Arc::clone(self);
        file_calls(waits, move || file.publish(&at, &shape)).await
    }

    /// Creates a symlink.
    ///
    /// # Errors
    /// Those of the system; EINVAL for a text with a NUL inside.
    pub async fn link(
        self: &Arc<FilePlace>,
        core: &Core<'_>,
        shape: Shape,
        text: &[u8],
    ) -> Result<Appeared, Failed> {
        let create = || failed(Operation::Create);
        let text = crate::failure::c_string(text).map_err(create())?;
        let (files, place) = (Arc::clone(&core.engine.files), Arc::clone(self));
        let calls = move || {
            let folder = place.folder.fd.as_fd();
            let temp = files.drafts.temp_names.make();
            dir::symlink(&text, folder, &temp).map_err(create())?;
            let made = TempEntry::new(folder, temp);
            let (_, temp) = made.place();
            // The text is the whole content; an unset time is harmless.
            drop(match place.folder.dev {
                Some(dev) => meta::stamp(dev, folder, temp, None, shape.mtime),
                None => meta::set_times(folder, temp, None, shape.mtime),
            });
            place_at(&files, &place, made)
        };
        file_calls(self.waits(), calls).await
    }
}

impl Core<'_> {
    /// Reports that the target takes a name for that of another file, if that was allowed with a notice.
    pub(super) fn tell_conflict(&self, moving: &Moving, appeared: Appeared) {
        let why = match appeared {
            Appeared::LeftOut => folded::CASE,
            Appeared::Replaced => folded::REPLACED,
            _ => return,
        };
        self.engine.problem(&Problem {
            operation: Operation::Read,
            source: Some(moving.source_path()),
            target: Some(moving.target_path()),
            cause: Cause::Reason(why),
            class: ErrorClass::Notice,
        });
    }
}

impl FileCreation {
    /// Returns whether the existing entry is written into instead of being replaced.
    fn writes_into(&self, place: &FilePlace) -> Result<bool, Failed> {
        if !self.policy.cp_targets {
            return Ok(false);
        }
        match meta::of(place.folder.fd.as_fd(), &place.name, false) {
            Ok(there) => Ok(publish::is_node(there.kind)),
            Err(error) if errno::is(&error, errno::ENOENT) => Ok(false),
            Err(error) => Err(failed(Operation::Stat)(error)),
        }
    }
}

impl FileCreation {
    /// Returns the result for a file whose name was absent when the target was listed and is in use now; `None` to
    /// replace what has it.
    fn instead(&self, place: &FilePlace) -> Result<Option<Appeared>, Failed> {
        if self.never_replaces() {
            return Ok(Some(Appeared::Kept));
        }
        if self.writes_into(place)? {
            return Ok(Some(Appeared::Node));
        }
        Ok(self.on_other(place)?.filter(|appeared| *appeared == Appeared::LeftOut))
    }

    /// Handles an entry that was absent when the target was listed, where names are not known to meet: `None` if it
    /// has the same name after all. Only names with other characters than ASCII's can meet there.
    ///
    /// # Errors
    /// Its name is another one, and that is refused.
    fn on_other(&self, place: &FilePlace) -> Result<Option<Appeared>, Failed> {
        if place.name.to_bytes().is_ascii() {
            return Ok(None);
        }
        let is_variant = folded::is_variant(place.folder.fd.as_fd(), &place.name);
        match is_variant.map_err(failed(Operation::List))? {
            true => self.on_conflict(),
            false => Ok(None),
        }
    }

    /// Returns the result for a name that the target takes for that of another file, or `None` to replace that in
    /// silence.
    ///
    /// # Errors
    /// It is refused.
    fn on_conflict(&self) -> Result<Option<Appeared>, Failed> {
        let moves = self.policy.remove_source_files;
        Ok(match folded::on_conflict(self.case_conflict, moves)? {
            CaseConflict::Skip => Some(Appeared::LeftOut),
            CaseConflict::Warn => Some(Appeared::Replaced),
            _ => None,
        })
    }
}

impl DownloadFile {
    /// Begins a file of `size` bytes whose content is available; the inner error is the result for an entry that
    /// appeared meanwhile.
    fn begin(
        files: &Arc<FileCreation>,
        place: &FilePlace,
        shape: &Shape,
        size: u64,
    ) -> Result<Result<DownloadFile, Appeared>, Failed> {
        match DownloadFile::create(files, place, shape, size, true) {
            // Another program created it first: handle it as an existing file.
            Err(Failed::File(_, _, error)) if errno::is(&error, errno::EEXIST) => {
                match files.instead(place)? {
                    Some(instead) => Ok(Err(instead)),
                    None => DownloadFile::temporary(files, place, shape).map(Ok),
                }
            }
            created => created.map(Ok),
        }
    }

    /// Begins a file of `size` bytes. `whole`: its content is available and checked.
    ///
    /// # Errors
    /// EEXIST if a file appeared under the final name meanwhile.
    pub fn create(
        files: &Arc<FileCreation>,
        place: &FilePlace,
        shape: &Shape,
        size: u64,
        whole: bool,
    ) -> Result<DownloadFile, Failed> {
        // Where names meet it is looked up when it gets its name.
        if place.exists || !whole || place.names.is_some() {
            return DownloadFile::temporary(files, place, shape);
        }
        let dir = Arc::clone(&place.folder.fd);
        let early = place.folder.dev.map(|dev| (dev, size, shape.mtime));
        let made = files.drafts.create(dir, &place.name, early, first_mode(place, shape));
        made.map(|draft| DownloadFile::new(files, place, draft)).map_err(failed(Operation::Create))
    }

    /// Begins a file under a temporary name.
    pub fn temporary(
        files: &Arc<FileCreation>,
        place: &FilePlace,
        shape: &Shape,
    ) -> Result<DownloadFile, Failed> {
        DownloadFile::named(files, place, shape, files.drafts.temp_names.make())
    }

    /// Begins a file under a name that is not the final one.
    pub fn named(
        files: &Arc<FileCreation>,
        place: &FilePlace,
        shape: &Shape,
        name: CString,
    ) -> Result<DownloadFile, Failed> {
        let dir = Arc::clone(&place.folder.fd);
        let made = Draft::temporary(dir, name, first_mode(place, shape));
        made.map(|draft| DownloadFile::new(files, place, draft)).map_err(failed(Operation::Create))
    }

    /// Continues a file that an earlier run has begun.
    pub fn adopt(
        files: &Arc<FileCreation>,
        place: &FilePlace,
        fd: OwnedFd,
        name: CString,
    ) -> DownloadFile {
        let dir = Arc::clone(&place.folder.fd);
        let draft = Draft { fd, dir, name: DraftName::Temporary(name) };
        let mut file = DownloadFile::new(files, place, draft);
        file.adopted = true;
        file
    }

    fn new(
        files: &Arc<FileCreation>,
        place: &FilePlace,
        draft: Draft<Arc<OwnedFd>>,
    ) -> DownloadFile {
        let Draft { fd, dir, name } = draft;
        let draft = Some(Draft { fd: Arc::new(fd), dir, name });
        let (files, name) = (Arc::clone(files), place.name.clone());
        DownloadFile { draft, files, name, adopted: false }
    }

    /// Returns the file for writing on other threads.
    ///
    /// # Errors
    /// It has its name already.
    pub fn share(&self) -> io::Result<Arc<OwnedFd>> {
        let draft = self.draft.as_ref();
        draft.map(|draft| Arc::clone(&draft.fd)).ok_or(io::ErrorKind::NotFound.into())
    }

    /// Returns the file for reading. Its name is a temporary one.
    ///
    /// # Errors
    /// NotFound for a file without a name.
    pub fn reader(&self) -> io::Result<OwnedFd> {
        match &self.draft {
            Some(Draft { dir, name: DraftName::Temporary(name), .. }) => {
                file::open_read(dir.as_fd(), name, false)
            }
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Keeps the file for a later run.
    pub fn keep(mut self) {
        self.draft = None;
    }

    /// Sets the attributes of a complete file, gives it its name and closes it.
    ///
    /// # Errors
    /// Those of the system, with nothing left behind; of attributes that could not be set, after the file has its
    /// name.
    pub fn publish(mut self, place: &FilePlace, shape: &Shape) -> Result<Appeared, Failed> {
        let files = Arc::clone(&self.files);
        let target = (place.folder.fd.as_fd(), &*place.name);
        files.drafts.check_lease().map_err(failed(Operation::Create))?;
        let fd = self.share().map_err(failed(Operation::Write))?;
        // Before setting the times: without them no later run takes the file for finished, and setting them could
        // receive the error of a write and hide it from close(2).
        if place.folder.reports_late {
            file::flush(&*fd).map_err(failed(Operation::Write))?;
        }
        let attributes = settle(fd.as_fd(), place, shape, self.adopted);
        if files.policy.fsync {
            file::sync(fd.as_fd()).map_err(failed(Operation::Sync))?;
        }
        drop(fd);
        let Some(draft) = &mut self.draft else { return Ok(Appeared::Kept) };
        match draft.link(target) {
            Err(error) if errno::is(&error, errno::EEXIST) => {
                if let Some(instead) = files.instead(place)? {
                    return Ok(instead);
                }
                let linked = draft.link_temporary(&files.drafts.temp_names);
                linked.map_err(failed(Operation::Create))?;
            }
            linked => linked.map_err(failed(Operation::Create))?,
        }
        let Some(draft) = self.draft.take() else { return Ok(Appeared::Kept) };
        let close = |fd| match Arc::try_unwrap(fd) {
            Ok(fd) => file::close(fd),
            // Other holders of the descriptor have nothing left to write.
            Err(shared) => file::flush(&*shared),
        };
        let entry = draft.close(&files.drafts, target, close).map_err(failed(Operation::Write))?;
        let appeared = match entry {
            Some(entry) => place_at(&files, place, entry)?,
            None => Appeared::Yes,
        };
        // Attributes that could not be set are reported; the content is right and stays.
        attributes.map(|()| appeared)
    }
}

impl Drop for DownloadFile {
    fn drop(&mut self) {
        if let Some(draft) = &self.draft {
            draft.discard(&self.files.drafts, (draft.dir.as_fd(), &self.name));
        }
    }
}

/// Returns the mode to create a file with: the final one if nothing changes it later, else a private one.
fn first_mode(place: &FilePlace, shape: &Shape) -> u32 {
    if shape.uid.is_some() || shape.gid.is_some() || shape.mode & 0o6000 != 0 {
        0o600
    } else if place.folder.default_acl && !shape.exact {
        // The folder's default ACL replaces the umask.
        0o666
    } else {
        shape.mode
    }
}

/// Sets owner, mode and times, in this order: a change of owner clears setuid bits. Skips what the kernel has set
/// already.
fn settle(
    fd: BorrowedFd<'_>,
    place: &FilePlace,
    shape: &Shape,
    adopted: bool,
) -> Result<(), Failed> {
    let owned = match (shape.uid, shape.gid) {
        (None, None) => Ok(()),
        (uid, gid) => meta::set_owner_fd(fd, uid, gid).map_err(failed(Operation::SetOwner)),
    };
    let inherits = place.folder.default_acl && !shape.exact;
    let first = first_mode(place, shape);
    let other = adopted || place.folder.default_acl || first != shape.mode || shape.masked;
    let moded = match !inherits && other {
        // No setuid bits for an owner that they were not meant for.
        true if owned.is_err() => meta::set_mode_fd(fd, shape.mode & 0o777),
        true => meta::set_mode_fd(fd, shape.mode),
        false => Ok(()),
    };
    let moded = moded.map_err(failed(Operation::SetMode));
    let timed = match place.folder.dev {
        Some(dev) => meta::stamp_fd(dev, fd, None, shape.mtime),
        None => meta::set_times_fd(fd, None, shape.mtime),
    };
    let timed = timed.map_err(failed(Operation::SetTimes));
    owned.and(moded).and(timed)
}

/// Renames a finished temporary entry to its final name, after the backup of an existing one.
fn place_at<D: AsFd>(
    files: &FileCreation,
    place: &FilePlace,
    mut entry: TempEntry<D>,
) -> Result<Appeared, Failed> {
    let folder = place.folder.fd.as_fd();
    if files.policy.backup && place.exists {
        let kept = publish::back_up(&files.policy, folder, &place.name);
        kept.map_err(|failure| Failed::File(failure.operation, Side::Target, failure.error))?;
    }
    // An entry in the listing is known not to be a node.
    if !place.exists && files.writes_into(place)? {
        return Ok(Appeared::Node);
    }
    let mut appeared = Appeared::Yes;
    // Held until the file has its name.
    let mut made = place.names.map(|names| (files.folded.made(), names));
    if let Some((made, names)) = &mut made
        && made.meets(folder, &place.name, *names)?
    {
        match files.on_conflict()? {
            Some(Appeared::LeftOut) => return Ok(Appeared::LeftOut),
            other => appeared = other.unwrap_or(appeared),
        }
    }
    let renamed = match !place.exists {
        // What was absent is not replaced unseen.
        true => match entry.rename((folder, &place.name), true) {
            Err(error) if errno::is(&error, errno::EEXIST) => {
                if files.never_replaces() {
                    return Ok(Appeared::Kept);
                }
                if made.is_none() {
                    match files.on_other(place)? {
                        Some(Appeared::LeftOut) => return Ok(Appeared::LeftOut),
                        other => appeared = other.unwrap_or(appeared),
                    }
                }
                entry.rename((folder, &place.name), false)
            }
            other => other,
        },
        false => entry.rename((folder, &place.name), false),
    };
    match renamed {
        Err(error) if files.policy.cp_targets && errno::is(&error, errno::EISDIR) => {
            return Err(Failed::Reason(Operation::Create, Side::Target, DIRECTORY_STAYS));
        }
        renamed => renamed.map_err(failed(Operation::Rename))?,
    }
    if let Some((made, names)) = &mut made {
        made.placed(folder, &place.name, *names);
    }
    Ok(appeared)
}

// State of creating files, shared by all cores.

/// Maximum number of folders that are known to be without files of dead runs.
const CLEARED_MAX: usize = 100_000;

/// State of creating files, shared by all cores and their helper threads.
pub(in crate::object) struct FileCreation {
    pub(super) policy: Policy,
    /// Existing files are never replaced.
    pub(super) if_none_match: bool,
    pub drafts: Drafts,
    /// What is known of targets that hold different names for one.
    pub folded: Arc<Folded>,
    pub(super) case_conflict: CaseConflict,
    /// Targets are not listed, so that their folders are looked through for files of dead runs when they are opened.
    pub clears: AtomicBool,
    /// Those that were looked through.
    cleared: Mutex<HashSet<(u64, u64)>>,
}

impl FileCreation {
    /// Returns the initial state of a run.
    pub fn new(
        policy: &Policy,
        options: &ObjectOptions,
        control: &Control,
        ledger: &Arc<Ledger>,
        folded: &Arc<Folded>,
    ) -> FileCreation {
        FileCreation {
            policy: policy.clone(),
            if_none_match: options.if_none_match,
            // Times are always kept: files get the object's.
            drafts: Drafts::new(Direct::new(policy, !options.if_none_match, ledger), control),
            folded: Arc::clone(folded),
            case_conflict: options.case_conflict,
            clears: AtomicBool::new(false),
            cleared: Mutex::default(),
        }
    }

    /// Removes the temporary files of dead runs from a folder, the first time that it is seen.
    pub(super) fn clear(&self, folder: BorrowedFd<'_>, identity: (u64, u64)) {
        let mut cleared = self.cleared.lock();
        if cleared.len() >= CLEARED_MAX {
            // To look again costs little.
            cleared.clear();
        }
        let is_first = cleared.insert(identity);
        drop(cleared);
        if !is_first {
            return;
        }
        // A folder that cannot be read keeps them.
        let Ok(own) = dir::open(folder, c".", false) else { return };
        let _ = Reader::default().for_each(own.as_fd(), |name, kind, _| {
            if kind != Kind::Dir && self.drafts.temp_names.is_abandoned(name) {
                // One that cannot be removed is left to the next run.
                drop(dir::unlink(folder, name));
            }
        });
    }

    /// Returns whether a file that appeared meanwhile must not be replaced.
    pub(super) fn never_replaces(&self) -> bool {
        self.policy.ignore_existing || self.if_none_match
    }
}

// The place of a file: its folder, and the thread that makes calls there. A core has many connections: calls for
// slow file systems run on helper threads, so that no connection waits while another one's file is created. Calls
// for local file systems are made directly.

/// Target location of an entry's file.
#[derive(Clone)]
pub(super) struct FilePlace {
    pub folder: OpenFolder,
    pub name: CString,
    /// The target had an entry of this name when it was listed.
    pub exists: bool,
    /// Its name as it is remembered, if the target holds different names for one.
    pub names: Option<HashedName>,
}

/// Runs calls for a file system: directly, or on a helper thread if they may be slow.
pub(super) async fn file_calls<T: Send + 'static>(
    waits: bool,
    calls: impl FnOnce() -> Result<T, Failed> + Send + 'static,
) -> Result<T, Failed> {
    match waits {
        false => calls(),
        true => blocking(|| Ok(calls())).await.map_err(failed(Operation::Write))?,
    }
}

impl FilePlace {
    /// Opens or creates the folder of the entry's target name.
    pub async fn of(core: &Core<'_>, moving: &Moving) -> Result<FilePlace, Failed> {
        let Root::Local { dir: root, .. } = &moving.pair.target else {
            let why = "the target is not a local directory";
            return Err(Failed::Reason(Operation::Create, Side::Target, why));
        };
        let (above, name) = split(&moving.name)?;
        let (folder, made) = folder(core, root, above).await;
        count_made(core, made);
        let folder = folder?;
        let names = known(core, &folder, root, &moving.name).await?;
        Ok(FilePlace { folder, name, exists: moving.existing.is_some(), names })
    }

    /// As `of`, after the folder turned out to be gone.
    pub async fn again(core: &Core<'_>, moving: &Moving) -> Result<FilePlace, Failed> {
        if let (Root::Local { dir: root, .. }, Ok((above, _))) =
            (&moving.pair.target, split(&moving.name))
        {
            // Missing folders above it are created again, too.
            let top = above.split(|byte| *byte == b'/').next().unwrap_or_default();
            core.folders.borrow_mut().forget(root, top);
        }
        FilePlace::of(core, moving).await
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
    folder: &OpenFolder,
    root: &Arc<OwnedFd>,
    name: &[u8],
) -> Result<Option<HashedName>, Failed> {
    let files = Arc::clone(&core.engine.files);
    if let Some(identity) = folder.older
        && files.clears.load(Ordering::Relaxed)
        && !core.folders.borrow_mut().is_cleared(identity)
    {
        let (of, fd) = (Arc::clone(&files), Arc::clone(&folder.fd));
        file_calls(folder.waits(), move || {
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
            let meets = file_calls(folder.waits(), look).await?;
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
) -> (Result<OpenFolder, Failed>, u64) {
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
        let reached = match file_calls(waits, move || Ok(way.go())).await {
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

// Attributes of a new file: from the object's metadata, its LastModified, the policy, and the replaced file.

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
    pub fn of(engine: &ObjectEngine<'_>, moving: &Moving, head: Option<&ObjectHead>) -> Shape {
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
pub(super) fn wants_metadata(engine: &ObjectEngine<'_>) -> bool {
    let options = &engine.setup.options;
    options.keep_times
        || options.keep_modes
        || options.keep_owner
        || options.keep_group
        || engine.policy().symlinks == crate::policy::Symlinks::Keep
}

// Objects written to a device or FIFO: a copy with such a target writes into it, as cp does, and never replaces it.
// Its attributes stay unchanged.

/// Interval of checks for a stop while waiting for a FIFO's reader.
const STEP: Duration = Duration::from_millis(50);

/// Writes an object into the device or FIFO that has its name, in order. Success is reported only if every byte was
/// taken.
///
/// # Errors
/// Those of the request or the target; `Stopped` also while a FIFO has no reader. Bytes already written stay.
pub(super) async fn write_into_node(
    core: &Core<'_>,
    moving: &Moving,
) -> Result<MoveResult, Failed> {
    let place = FilePlace::of(core, moving).await?;
    let node = open_node(core, &place).await?;
    let client = core.store(Side::Source)?;
    let Object { bucket, key, version, .. } = Object::source(core, moving)?;
    // The budget is never closed.
    let _room = core.room(HELD_BYTES_MAX.min(moving.entry.meta.size)).await;
    core.doing.turn(Phase::Write);
    let mut taker = Taker { node: File::from(node), core };
    let listed = &moving.entry;
    let is_known = !listed.etag.is_empty() && !moving.is_unknown();
    let known = is_known.then(|| (listed.etag.to_string(), listed.meta.size));
    let moved = stream(client, bucket, &key, version, known, &mut taker).await;
    let bytes = moved.map_err(|error| match error {
        StreamError::Write(_) if core.engine.is_stopped() => Failed::Stopped,
        StreamError::Write(error) => Failed::File(Operation::Write, Side::Target, error),
        StreamError::Request(error) => unreadable(moving, error),
    })?;
    if bytes != moving.entry.meta.size && !moving.is_unknown() {
        return Err(Failed::Reason(Operation::Read, Side::Source, CHANGED_WHILE_READ));
    }
    Ok(MoveResult { bytes, ..MoveResult::default() })
}

/// Opens the node. Waits for the reader of a FIFO.
async fn open_node(core: &Core<'_>, place: &FilePlace) -> Result<OwnedFd, Failed> {
    let folder = place.folder.fd.as_fd();
    loop {
        match file::open_write(folder, &place.name) {
            Ok(node) => {
                let there = meta::of_fd(&node).map_err(failed(Operation::Stat))?;
                if is_node(there.kind) {
                    return Ok(node);
                }
                let why = "something else took the place of the device or FIFO meanwhile";
                return Err(Failed::Reason(Operation::Write, Side::Target, why));
            }
            Err(error) if errno::is(&error, errno::ENXIO) => {
                let there = meta::of(folder, &place.name, false);
                if there.map_err(failed(Operation::Stat))?.kind != Kind::Fifo {
                    return Err(failed(Operation::Write)(error));
                }
            }
            Err(error) => return Err(failed(Operation::Write)(error)),
        }
        if core.engine.is_stopped() {
            return Err(Failed::Stopped);
        }
        tokio::time::sleep(STEP).await;
    }
}

/// Writes the bytes of the object; ends early if the run is asked to stop.
struct Taker<'a, 'e> {
    node: File,
    core: &'a Core<'e>,
}

impl Write for Taker<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            if self.core.engine.is_stopped() {
                return Err(io::Error::other("stopped"));
            }
            match self.node.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    file::wait_writable(self.node.as_fd(), STEP.as_millis() as u32)?;
                }
                written => {
                    let count = written?;
                    self.core.doing.lane().bytes(count as u64);
                    return Ok(count);
                }
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
