//! Interrupted files in a separate folder (`--partial-dir`): one in each directory, or one for all.

use super::draft::{Draft, DraftName, Publisher};
use super::names::DirName;
use crate::engine::failure::c_string;
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, errno, file};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

impl Publisher<'_> {
    /// Moves the partial file into the folder.
    pub(super) fn keep_partial(&self, draft: &Draft<'_>) -> io::Result<()> {
        let (target, name) = draft.target;
        let Some(path) = &self.context.policy.partial_dir else { return Ok(()) };
        let folder = match self.open_partial(target, path) {
            Err(error) if errno::is(&error, errno::ENOENT) => {
                if path.is_absolute() {
                    self.context.policy.links.make_dir(path, 0o700, true)?;
                } else {
                    dir::create(target, &c_string(path.as_os_str().as_bytes())?, 0o700)?;
                }
                self.open_partial(target, path)?
            }
            other => other?,
        };
        match &draft.name {
            DraftName::Temporary(temp) => dir::rename(draft.dir, temp, folder.as_fd(), name),
            _ => {
                drop(dir::unlink(folder.as_fd(), name));
                file::publish(draft.fd.as_fd(), folder.as_fd(), name)
            }
        }
    }

    fn open_partial(&self, target: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
        let name = c_string(path.as_os_str().as_bytes())?;
        match path.is_absolute() {
            true => self.context.policy.links.open_dir(dir::cwd(), &name),
            false => dir::open(target, &name, false),
        }
    }

    /// Removes the kept part of a file that is complete now. A failure is harmless.
    pub(super) fn forget_partial(&self, (target, name): DirName<'_>) {
        let Some(path) = &self.context.policy.partial_dir else { return };
        let Ok(folder) = self.open_partial(target, path) else { return };
        if dir::unlink(folder.as_fd(), name).is_ok()
            && !path.is_absolute()
            && let Ok(own) = c_string(path.as_os_str().as_bytes())
        {
            drop(dir::rmdir(target, &own));
        }
    }
}
