//! Engines of names: files and folders are created, looked at or removed, one operation each
//! (`filecreate`, `filestat`, `filedelete`, `dircreate`, `dirstat`, `dirdelete`).

use super::{Engine, Queued, REFUSED, Transfer};
use crate::job::{Named, StatCall};
use hakobu_sys::{OwnedFd, dir, errno, file, meta};
use std::ffi::{CStr, CString};
use std::io::{Error, Result};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Modes of created entries, as in fio.
const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o755;

/// Operations on names.
#[derive(Debug)]
pub(crate) struct Names {
    named: Named,
    stat: StatCall,
    names: Vec<CString>,
    /// The file that was created last, until it is closed.
    open: Option<OwnedFd>,
}

impl Names {
    /// Creates the engine for these names.
    pub(crate) fn new(named: Named, stat: StatCall, paths: &[&Path]) -> Result<Names> {
        let name = |path: &&Path| CString::new(path.as_os_str().as_bytes());
        let names = paths.iter().map(name).collect::<std::result::Result<_, _>>();
        let names = names.map_err(|_| Error::from_raw_os_error(errno::EINVAL))?;
        Ok(Names { named, stat, names, open: None })
    }
}

/// Does it to one name; the descriptor of a file that was made.
#[inline]
fn act(named: Named, stat: StatCall, name: &CStr) -> Result<Option<OwnedFd>> {
    let here = dir::cwd();
    match named {
        Named::Made { folder: false } => return file::create_new(here, name, FILE_MODE).map(Some),
        Named::Made { folder: true } => dir::create(here, name, FOLDER_MODE)?,
        Named::Removed { folder: false } => dir::unlink(here, name)?,
        Named::Removed { folder: true } => dir::rmdir(here, name)?,
        Named::Seen { .. } => match stat {
            StatCall::Stat => drop(meta::of(here, name, true)?),
            StatCall::Lstat => drop(meta::of(here, name, false)?),
            StatCall::Statx => meta::look(here, name)?,
        },
        Named::Content | Named::Nothing => return Err(Error::from_raw_os_error(errno::EINVAL)),
    }
    Ok(None)
}

impl Engine for Names {
    const WAITS: bool = true;

    /// There is no content.
    fn buffer(&mut self, _: usize) -> &mut [u8] {
        &mut []
    }

    fn transfer(&mut self, _: usize, block: Transfer) -> Queued {
        let Some(name) = self.names.get(block.file as usize) else { return REFUSED };
        match act(self.named, self.stat, name) {
            Ok(open) => {
                self.open = open;
                Queued::Done(i64::from(block.bytes))
            }
            Err(error) => Queued::Done(-i64::from(errno::of(&error))),
        }
    }

    /// Closes the file that was created.
    fn settle(&mut self) {
        self.open = None;
    }
}
