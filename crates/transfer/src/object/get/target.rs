//! How the file of an object appears, by the rules of the local engine (`engine/appear.rs`):
//! under its final name at once only where that is safe, else without a name or under a temporary
//! one until it is complete; what is there is replaced by way of a temporary name and rename(2).

use super::carried::Shape;
use super::folders::{Folder, Rules, failed, split};
use crate::engine::appear;
use crate::error::Operation;
use crate::meter::Phase;
use crate::object::core::{Core, Engine};
use crate::object::moving::{Failed, Moving};
use crate::object::{ObjectOptions, Root, Side};
use crate::policy::Policy;
use crate::unit::Totals;
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, errno, file, meta};
use std::ffi::{CStr, CString};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What all cores know of making files.
pub(in crate::object) struct Files {
    /// The policy allows to create files under their final name.
    direct: bool,
    /// Objects that changed after this moment may not.
    direct_before_s: i64,
    /// `O_TMPFILE` works at the target, as far as we know.
    unnamed_works: AtomicBool,
}

/// Where the file of an entry goes.
pub(super) struct Place {
    /// Its folder.
    pub folder: Folder,
    /// Its name there.
    pub name: CString,
    /// Something was there when the target was listed.
    pub exists: bool,
}

/// What became of a file that is finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Appeared {
    /// It has its name.
    Yes,
    /// Something with that name came meanwhile, and is not to be replaced.
    Kept,
}

/// A file under construction. Dropped before [`Draft::publish`] it leaves nothing behind.
pub(super) struct Draft {
    fd: Arc<OwnedFd>,
    folder: Arc<OwnedFd>,
    name: Name,
    /// An earlier run made it: nothing is known of its attributes.
    adopted: bool,
}

enum Name {
    /// None yet.
    Unnamed,
    /// The final one.
    Final(CString),
    /// A temporary one.
    Temporary(CString),
    /// It has what it shall have, or is gone.
    Settled,
}

impl Files {
    /// At the start of a run.
    pub fn new(policy: &Policy, options: &ObjectOptions) -> Files {
        Files {
            direct: appear::allows_direct(policy) && !options.if_none_match,
            direct_before_s: appear::direct_before_s(policy),
            unnamed_works: AtomicBool::new(true),
        }
    }

    /// Times are always kept: files get the object's.
    fn may_be_direct(&self, size: u64, shape: &Shape) -> bool {
        self.direct && size <= appear::DIRECT_BYTES_MAX && shape.mtime.s < self.direct_before_s
    }
}

impl Place {
    /// Opens, or makes, the folder of the entry's target name.
    ///
    /// # Errors
    /// See [`super::folders::Folders::open`].
    pub fn of(core: &Core<'_>, moving: &Moving) -> Result<Place, Failed> {
        let Root::Local { dir: root, .. } = &moving.pair.target else {
            let why = "the target is no local folder";
            return Err(Failed::Reason(Operation::Create, Side::Target, why));
        };
        let (above, name) = split(&moving.name)?;
        let (folder, made) = core.folders.borrow_mut().open(root, above, rules(core))?;
        count_made(core, made);
        Ok(Place { folder, name, exists: moving.existing.is_some() })
    }

    /// The same after the folder turned out to be gone.
    pub fn again(core: &Core<'_>, moving: &Moving) -> Result<Place, Failed> {
        if let (Root::Local { dir: root, .. }, Ok((above, _))) =
            (&moving.pair.target, split(&moving.name))
        {
            // Whatever above it is gone, too, is made anew.
            let top = above.split(|byte| *byte == b'/').next().unwrap_or_default();
            core.folders.borrow_mut().forget(root, top);
        }
        Place::of(core, moving)
    }

    /// Makes a file with the given content and shape.
    ///
    /// # Errors
    /// The system's, with nothing left behind; of attributes that could not be set, when the file
    /// is there.
    pub fn fill(
        &self,
        core: &Core<'_>,
        shape: &Shape,
        frames: &[bytes::Bytes],
        size: u64,
    ) -> Result<Appeared, Failed> {
        let engine = core.engine;
        let draft = match Draft::create(engine, self, shape, size, true) {
            Ok(draft) => draft,
            // Somebody was faster: the same way as with a file that was there before.
            Err(Failed::File(_, _, error)) if errno::is(&error, errno::EEXIST) => {
                if never_replaces(engine) {
                    return Ok(Appeared::Kept);
                }
                Draft::temporary(engine, self, shape)?
            }
            Err(other) => return Err(other),
        };
        core.doing.turn(Phase::Write);
        let written =
            hakobu_sys::gather::write_all(draft.fd(), frames.iter().map(|frame| &**frame));
        written.map_err(failed(Operation::Write))?;
        core.doing.turn(Phase::Settle);
        draft.publish(engine, self, shape)
    }

    /// Makes a symlink.
    ///
    /// # Errors
    /// The system's; EINVAL for a text with a NUL inside.
    pub fn link(
        &self,
        engine: &Engine<'_>,
        shape: &Shape,
        text: &[u8],
    ) -> Result<Appeared, Failed> {
        let create = || failed(Operation::Create);
        let text = crate::engine::node::c_string(text).map_err(create())?;
        let folder = self.folder.fd.as_fd();
        let temp = engine.temp.make();
        dir::symlink(&text, folder, &temp).map_err(create())?;
        // The text is the whole of it; a time that cannot be set is no harm that a user could see.
        drop(meta::set_times(folder, &temp, None, shape.mtime));
        let done = place_at(engine, self, &temp);
        if !matches!(done, Ok(Appeared::Yes)) {
            drop(dir::unlink(folder, &temp));
        }
        done
    }
}

impl Draft {
    /// Begins a file of `size` bytes. `whole` says that its content is at hand and checked.
    ///
    /// # Errors
    /// The system's; EEXIST where a file appeared under the final name meanwhile.
    pub fn create(
        engine: &Engine<'_>,
        place: &Place,
        shape: &Shape,
        size: u64,
        whole: bool,
    ) -> Result<Draft, Failed> {
        let create = || failed(Operation::Create);
        if place.exists || !whole {
            return Draft::temporary(engine, place, shape);
        }
        let folder = place.folder.fd.as_fd();
        let mode = first_mode(place, shape);
        let draft = |fd, name| Draft::new(fd, place, name);
        if engine.files.may_be_direct(size, shape) {
            let fd = file::create_new(folder, &place.name, mode).map_err(create())?;
            return Ok(draft(fd, Name::Final(place.name.clone())));
        }
        if engine.files.unnamed_works.load(Ordering::Relaxed) {
            match file::create_unnamed(folder, mode) {
                Ok(fd) => return Ok(draft(fd, Name::Unnamed)),
                Err(error) if appear::lacks_unnamed(&error) => {
                    engine.files.unnamed_works.store(false, Ordering::Relaxed);
                }
                Err(error) => return Err(create()(error)),
            }
        }
        Draft::temporary(engine, place, shape)
    }

    /// Begins a file under a temporary name.
    pub fn temporary(engine: &Engine<'_>, place: &Place, shape: &Shape) -> Result<Draft, Failed> {
        Draft::named(place, shape, engine.temp.make())
    }

    /// Begins a file under a name that is not the final one.
    pub fn named(place: &Place, shape: &Shape, name: CString) -> Result<Draft, Failed> {
        let folder = place.folder.fd.as_fd();
        let fd = file::create_new(folder, &name, first_mode(place, shape))
            .map_err(failed(Operation::Create))?;
        Ok(Draft::new(fd, place, Name::Temporary(name)))
    }

    /// Goes on with a file that an earlier run has begun.
    pub fn adopt(fd: OwnedFd, place: &Place, name: CString) -> Draft {
        let mut draft = Draft::new(fd, place, Name::Temporary(name));
        draft.adopted = true;
        draft
    }

    fn new(fd: OwnedFd, place: &Place, name: Name) -> Draft {
        Draft { fd: Arc::new(fd), folder: Arc::clone(&place.folder.fd), name, adopted: false }
    }

    /// The file, to write into it from elsewhere.
    pub fn share(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.fd)
    }

    /// The file, to read it. Its name is a temporary one.
    ///
    /// # Errors
    /// The system's; NotFound for a file without a name or one that is not there.
    pub fn reader(&self) -> io::Result<OwnedFd> {
        match &self.name {
            Name::Temporary(name) => file::open_read(self.folder.as_fd(), name, false),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Leaves the file where it is, for a later run.
    pub fn keep(mut self) {
        self.name = Name::Settled;
    }

    /// To write into.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Gives a complete file its attributes and its name.
    ///
    /// # Errors
    /// The system's, with nothing left behind; of attributes that could not be set, when the file
    /// has its name.
    pub fn publish(
        mut self,
        engine: &Engine<'_>,
        place: &Place,
        shape: &Shape,
    ) -> Result<Appeared, Failed> {
        let attributes = settle(self.fd(), place, shape, self.adopted);
        if engine.policy().fsync {
            file::sync(self.fd()).map_err(failed(Operation::Sync))?;
        }
        let folder = place.folder.fd.as_fd();
        let appeared = match &self.name {
            Name::Final(_) | Name::Settled => Appeared::Yes,
            Name::Temporary(temp) => place_at(engine, place, temp)?,
            Name::Unnamed => match file::publish(self.fd(), folder, &place.name) {
                Ok(()) => Appeared::Yes,
                Err(error) if errno::is(&error, errno::EEXIST) => {
                    if never_replaces(engine) {
                        return Ok(Appeared::Kept);
                    }
                    let temp = engine.temp.make();
                    file::publish(self.fd(), folder, &temp).map_err(failed(Operation::Create))?;
                    self.name = Name::Temporary(temp.clone());
                    place_at(engine, place, &temp)?
                }
                Err(error) => return Err(failed(Operation::Create)(error)),
            },
        };
        if appeared == Appeared::Yes {
            self.name = Name::Settled;
        }
        // What could not be set is told of; the content is right and stays.
        attributes.map(|()| appeared)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Name::Final(name) | Name::Temporary(name) = &self.name {
            // The error that is told is the one that led here; the next run clears up the rest.
            drop(dir::unlink(self.folder.as_fd(), name));
        }
    }
}

/// How folders are made in this run.
pub(super) fn rules(core: &Core<'_>) -> Rules {
    Rules { follow: core.engine.policy().keep_dirlinks, umask: core.engine.setup.umask }
}

/// Counts folders that were made on the way to something else.
pub(super) fn count_made(core: &Core<'_>, made: u64) {
    if made > 0 {
        core.add(Totals { dirs_created: made, ..Totals::default() });
    }
}

/// Whether a file that came while we were busy is left alone.
fn never_replaces(engine: &Engine<'_>) -> bool {
    engine.policy().ignore_existing || engine.setup.options.if_none_match
}

/// The mode to create a file with: the final one where nothing comes after it, else one that lets
/// nobody in.
fn first_mode(place: &Place, shape: &Shape) -> u32 {
    if shape.uid.is_some() || shape.gid.is_some() || shape.mode & 0o6000 != 0 {
        0o600
    } else if place.folder.default_acl && !shape.exact {
        // The folder's ACL takes the place of the umask.
        0o666
    } else {
        shape.mode
    }
}

/// Sets owner, mode and times, in this order: a change of owner clears setuid bits. Only what the
/// kernel has not done already.
fn settle(fd: BorrowedFd<'_>, place: &Place, shape: &Shape, adopted: bool) -> Result<(), Failed> {
    let owned = match (shape.uid, shape.gid) {
        (None, None) => Ok(()),
        (uid, gid) => meta::set_owner_fd(fd, uid, gid).map_err(failed(Operation::SetOwner)),
    };
    let inherits = place.folder.default_acl && !shape.exact;
    let first = first_mode(place, shape);
    let other = adopted || place.folder.default_acl || first != shape.mode || shape.masked;
    let moded = match !inherits && other {
        // Not for an owner that it was not meant for.
        true if owned.is_err() => meta::set_mode_fd(fd, shape.mode & 0o777),
        true => meta::set_mode_fd(fd, shape.mode),
        false => Ok(()),
    };
    let moded = moded.map_err(failed(Operation::SetMode));
    let timed = meta::set_times_fd(fd, None, shape.mtime).map_err(failed(Operation::SetTimes));
    owned.and(moded).and(timed)
}

/// Renames a finished temporary entry to its final name, after the backup of what is there.
fn place_at(engine: &Engine<'_>, place: &Place, temp: &CStr) -> Result<Appeared, Failed> {
    let folder = place.folder.fd.as_fd();
    if engine.policy().backup && place.exists {
        let kept = appear::back_up(engine.policy(), folder, &place.name);
        kept.map_err(|failure| Failed::File(failure.operation, Side::Target, failure.error))?;
    }
    let fresh = !place.exists && never_replaces(engine);
    match appear::rename_into_place(folder, temp, folder, &place.name, fresh) {
        Ok(()) => Ok(Appeared::Yes),
        Err(error) if fresh && errno::is(&error, errno::EEXIST) => Ok(Appeared::Kept),
        Err(error) => Err(failed(Operation::Rename)(error)),
    }
}
