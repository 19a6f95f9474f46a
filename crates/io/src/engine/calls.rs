//! Engines that wait in a system call: `psync`, `pvsync2`, `sync`, those of ranges (`falloc`, `ftruncate`), trims, and those
//! of names, which create, look at or remove a file or a folder at a time (`filecreate`, `filestat`, `filedelete`,
//! `dircreate`, `dirstat`, `dirdelete`).

use super::{Engine, REFUSED, Submission, Transfer, part, sync_file};
use crate::job::{NameUse, StatCall};
use hakobu_sys::blocks::{self, Take};
use hakobu_sys::memory::Aligned;
use hakobu_sys::{OwnedFd, dir, errno, file, meta};
use std::ffi::{CStr, CString};
use std::io::{Error, Result};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A pair of calls. `position` is where the file's position is, for those that use it.
pub(crate) trait BlockCall {
    fn read(file: &OwnedFd, buffer: &mut [u8], offset: u64, position: &mut u64) -> i64;
    fn write(file: &OwnedFd, buffer: &[u8], offset: u64, position: &mut u64) -> i64;
}

/// Declares a pair of calls that take file, buffer and offset, and use no position.
macro_rules! call {
    ($(#[$doc:meta])* $name:ident, $read:expr, $write:expr $(,)?) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name;

        impl BlockCall for $name {
            #[inline(always)]
            fn read(file: &OwnedFd, buffer: &mut [u8], offset: u64, _: &mut u64) -> i64 {
                $read(file, buffer, offset)
            }

            #[inline(always)]
            fn write(file: &OwnedFd, buffer: &[u8], offset: u64, _: &mut u64) -> i64 {
                $write(file, buffer, offset)
            }
        }
    };
}

call!(
    /// pread(2) and pwrite(2): `psync`.
    Positioned,
    blocks::read_at,
    blocks::write_at,
);
call!(
    /// preadv2(2) and pwritev2(2): `pvsync2`.
    Vectored,
    blocks::readv2_at,
    blocks::writev2_at,
);
call!(
    /// preadv2(2), and pwritev2(2) that writes all of a block or nothing: `pvsync2` with `atomic=1`.
    Atomic,
    blocks::readv2_at,
    blocks::writev2_atomic_at,
);
call!(
    /// fallocate(2): `falloc`. Reads take blocks and leave the file as long as it is, writes make it longer.
    Taking,
    |file, buffer: &[u8], offset| take(file, Take::Keep, buffer, offset),
    |file, buffer, offset| take(file, Take::Grow, buffer, offset),
);
call!(
    /// ftruncate(2) to where a block begins: `ftruncate`.
    Cutting,
    no_read,
    |file, buffer: &[u8], offset| whole(blocks::cut(file, offset), buffer),
);
call!(
    /// Trims: the blocks of a range are given back, of a file (fallocate(2)) or of a device (BLKDISCARD).
    Trimming,
    no_read,
    trim,
);

/// All of the bytes of a block, where a call on its range succeeded.
fn whole(said: i64, buffer: &[u8]) -> i64 {
    if said == 0 { buffer.len() as i64 } else { said }
}

fn take(file: &OwnedFd, take: Take, buffer: &[u8], offset: u64) -> i64 {
    whole(blocks::take(file, take, offset, buffer.len() as u64), buffer)
}

fn trim(file: &OwnedFd, buffer: &[u8], offset: u64) -> i64 {
    match blocks::is_device(file) {
        true => whole(blocks::discard(file, offset, buffer.len() as u64), buffer),
        false => take(file, Take::Punch, buffer, offset),
    }
}

fn no_read(_: &OwnedFd, _: &mut [u8], _: u64) -> i64 {
    -i64::from(errno::EINVAL)
}

/// lseek(2), where the file's position is another, and read(2) and write(2): `sync`.
#[derive(Debug)]
pub(crate) struct Seeking;

impl Seeking {
    #[inline(always)]
    fn at(file: &OwnedFd, offset: u64, position: &mut u64, call: impl FnOnce() -> i64) -> i64 {
        if *position != offset {
            let sought = blocks::seek(file, offset);
            if sought < 0 {
                return sought;
            }
        }
        let moved = call();
        // After an error its position is unknown.
        *position = u64::try_from(moved).map_or(u64::MAX, |moved| offset + moved);
        moved
    }
}

impl BlockCall for Seeking {
    #[inline(always)]
    fn read(file: &OwnedFd, buffer: &mut [u8], offset: u64, position: &mut u64) -> i64 {
        Seeking::at(file, offset, position, || blocks::read(file, buffer))
    }

    #[inline(always)]
    fn write(file: &OwnedFd, buffer: &[u8], offset: u64, position: &mut u64) -> i64 {
        Seeking::at(file, offset, position, || blocks::write(file, buffer))
    }
}

/// One block at a time, by a pair of calls.
#[derive(Debug)]
pub(crate) struct CallEngine<'f, C> {
    files: &'f [OwnedFd],
    positions: Vec<u64>,
    buffer: Aligned,
    call: PhantomData<C>,
}

impl<'f, C> CallEngine<'f, C> {
    /// Creates the engine for these files, positioned at their beginnings, with a buffer of this many bytes.
    pub(crate) fn new(files: &'f [OwnedFd], bytes: usize) -> Result<CallEngine<'f, C>> {
        let buffer = Aligned::new(bytes.max(1))?;
        Ok(CallEngine { files, positions: vec![0; files.len()], buffer, call: PhantomData })
    }
}

impl<C: BlockCall> Engine for CallEngine<'_, C> {
    const WAITS: bool = true;

    #[inline(always)]
    fn buffer(&mut self, _: usize) -> &mut [u8] {
        &mut self.buffer
    }

    #[inline(always)]
    fn transfer(&mut self, _: usize, block: Transfer) -> Submission {
        let number = block.file as usize;
        let (Some(file), Some(position)) = (self.files.get(number), self.positions.get_mut(number))
        else {
            return REFUSED;
        };
        let Some(buffer) = part(&mut self.buffer, &block) else { return REFUSED };
        Submission::Done(if block.write {
            C::write(file, buffer, block.offset, position)
        } else {
            C::read(file, buffer, block.offset, position)
        })
    }

    fn sync(&mut self, _: usize, file: u32, data: bool) -> Submission {
        sync_file(self.files, file, data)
    }
}

/// Modes of created entries, as in fio.
const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o755;

/// Operations on names.
#[derive(Debug)]
pub(crate) struct NameEngine {
    named: NameUse,
    stat: StatCall,
    names: Vec<CString>,
    /// The file that was created last, until it is closed.
    open: Option<OwnedFd>,
}

impl NameEngine {
    /// Creates the engine for these names.
    pub(crate) fn new(named: NameUse, stat: StatCall, paths: &[&Path]) -> Result<NameEngine> {
        let name = |path: &&Path| CString::new(path.as_os_str().as_bytes());
        let names = paths.iter().map(name).collect::<std::result::Result<_, _>>();
        let names = names.map_err(|_| Error::from_raw_os_error(errno::EINVAL))?;
        Ok(NameEngine { named, stat, names, open: None })
    }
}

/// Does it to one name; the descriptor of a file that was made.
#[inline]
fn act(named: NameUse, stat: StatCall, name: &CStr) -> Result<Option<OwnedFd>> {
    let here = dir::cwd();
    match named {
        NameUse::Made { folder: false } => {
            return file::create_new(here, name, FILE_MODE).map(Some);
        }
        NameUse::Made { folder: true } => dir::create(here, name, FOLDER_MODE)?,
        NameUse::Removed { folder: false } => dir::unlink(here, name)?,
        NameUse::Removed { folder: true } => dir::rmdir(here, name)?,
        NameUse::Seen { .. } => match stat {
            StatCall::Stat => drop(meta::of(here, name, true)?),
            StatCall::Lstat => drop(meta::of(here, name, false)?),
            StatCall::Statx => meta::look(here, name)?,
        },
        NameUse::Content | NameUse::Nothing => return Err(Error::from_raw_os_error(errno::EINVAL)),
    }
    Ok(None)
}

impl Engine for NameEngine {
    const WAITS: bool = true;

    /// There is no content.
    fn buffer(&mut self, _: usize) -> &mut [u8] {
        &mut []
    }

    fn transfer(&mut self, _: usize, block: Transfer) -> Submission {
        let Some(name) = self.names.get(block.file as usize) else { return REFUSED };
        match act(self.named, self.stat, name) {
            Ok(open) => {
                self.open = open;
                Submission::Done(i64::from(block.bytes))
            }
            Err(error) => Submission::Done(-i64::from(errno::of(&error))),
        }
    }

    /// Closes the file that was created.
    fn settle(&mut self) {
        self.open = None;
    }
}
