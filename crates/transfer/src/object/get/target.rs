//! Creation of an object's file, by the rules of the local engine (`engine/publish`): under its final name at once
//! only if that is safe, else without a name or under a temporary one until it is complete; an existing entry is
//! replaced through a temporary name and rename(2).

use super::carried::Shape;
use super::files::Files;
use super::folded;
use super::folders::failed;
use super::place::{self, Place};
use crate::object::core::Core;
use crate::object::failed::Failed;
use crate::object::moving::Moving;
use crate::object::{CaseConflict, Side};
use crate::publish::{self, Draft, DraftName, TempEntry};
use bytes::Bytes;
use hakobu_core::error::{Cause, Class, DIRECTORY_STAYS, Operation, Problem};
use hakobu_core::meter::Phase;
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, close, dir, errno, file, meta, stamp};
use std::ffi::CString;
use std::io;
use std::sync::Arc;

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
    files: Arc<Files>,
    /// Its final name.
    name: CString,
    /// An earlier run created it, so its attributes are unknown.
    adopted: bool,
}

impl Place {
    /// Creates a file with the given content and attributes.
    ///
    /// # Errors
    /// Those of the system, with nothing left behind; of attributes that could not be set, after the file was
    /// published.
    pub async fn fill(
        self: &Arc<Place>,
        core: &Core<'_>,
        shape: Shape,
        frames: &Arc<Vec<Bytes>>,
        size: u64,
    ) -> Result<Appeared, Failed> {
        let (waits, files) = (self.waits(), &core.engine.files);
        let (of, at) = (Arc::clone(files), Arc::clone(self));
        let begun = move || DownloadFile::begin(&of, &at, &shape, size);
        let file = match place::make(waits, begun).await? {
            Ok(file) => file,
            Err(instead) => return Ok(instead),
        };
        core.doing.turn(Phase::Write);
        let frames = Arc::clone(frames);
        let write = move || {
            let buffers = frames.iter().map(|frame| &**frame);
            let written =
                file.share().and_then(|fd| hakobu_sys::gather::write_all(fd.as_fd(), buffers));
            written.map_err(failed(Operation::Write))?;
            Ok(file)
        };
        let file = place::make(waits, write).await?;
        core.doing.turn(Phase::Settle);
        let at = Arc::clone(self);
        place::make(waits, move || file.publish(&at, &shape)).await
    }

    /// Creates a symlink.
    ///
    /// # Errors
    /// Those of the system; EINVAL for a text with a NUL inside.
    pub async fn link(
        self: &Arc<Place>,
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
                Some(dev) => stamp::set(dev, folder, temp, None, shape.mtime),
                None => meta::set_times(folder, temp, None, shape.mtime),
            });
            place_at(&files, &place, made)
        };
        place::make(self.waits(), calls).await
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
            class: Class::Notice,
        });
    }
}

impl Files {
    /// Returns whether the existing entry is written into instead of being replaced.
    fn writes_into(&self, place: &Place) -> Result<bool, Failed> {
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

impl Files {
    /// Returns the result for a file whose name was absent when the target was listed and is in use now; `None` to
    /// replace what has it.
    fn instead(&self, place: &Place) -> Result<Option<Appeared>, Failed> {
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
    fn on_other(&self, place: &Place) -> Result<Option<Appeared>, Failed> {
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
        files: &Arc<Files>,
        place: &Place,
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
        files: &Arc<Files>,
        place: &Place,
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
        files: &Arc<Files>,
        place: &Place,
        shape: &Shape,
    ) -> Result<DownloadFile, Failed> {
        DownloadFile::named(files, place, shape, files.drafts.temp_names.make())
    }

    /// Begins a file under a name that is not the final one.
    pub fn named(
        files: &Arc<Files>,
        place: &Place,
        shape: &Shape,
        name: CString,
    ) -> Result<DownloadFile, Failed> {
        let dir = Arc::clone(&place.folder.fd);
        let made = Draft::temporary(dir, name, first_mode(place, shape));
        made.map(|draft| DownloadFile::new(files, place, draft)).map_err(failed(Operation::Create))
    }

    /// Continues a file that an earlier run has begun.
    pub fn adopt(files: &Arc<Files>, place: &Place, fd: OwnedFd, name: CString) -> DownloadFile {
        let dir = Arc::clone(&place.folder.fd);
        let draft = Draft { fd, dir, name: DraftName::Temporary(name) };
        let mut file = DownloadFile::new(files, place, draft);
        file.adopted = true;
        file
    }

    fn new(files: &Arc<Files>, place: &Place, draft: Draft<Arc<OwnedFd>>) -> DownloadFile {
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
    pub fn publish(mut self, place: &Place, shape: &Shape) -> Result<Appeared, Failed> {
        let files = Arc::clone(&self.files);
        let target = (place.folder.fd.as_fd(), &*place.name);
        files.drafts.check_lease().map_err(failed(Operation::Create))?;
        let fd = self.share().map_err(failed(Operation::Write))?;
        // Before setting the times: without them no later run takes the file for finished, and setting them could
        // receive the error of a write and hide it from close(2).
        if place.folder.reports_late {
            close::flush(&*fd).map_err(failed(Operation::Write))?;
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
            Ok(fd) => close::close(fd),
            // Other holders of the descriptor have nothing left to write.
            Err(shared) => close::flush(&*shared),
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
fn first_mode(place: &Place, shape: &Shape) -> u32 {
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
fn settle(fd: BorrowedFd<'_>, place: &Place, shape: &Shape, adopted: bool) -> Result<(), Failed> {
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
        Some(dev) => stamp::set_fd(dev, fd, None, shape.mtime),
        None => meta::set_times_fd(fd, None, shape.mtime),
    };
    let timed = timed.map_err(failed(Operation::SetTimes));
    owned.and(moded).and(timed)
}

/// Renames a finished temporary entry to its final name, after the backup of an existing one.
fn place_at<D: AsFd>(
    files: &Files,
    place: &Place,
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
