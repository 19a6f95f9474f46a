//! Filter rule files in the directories of a transfer.

use crate::failure::{Failure, c_string};
use crate::policy::Policy;
use crate::policy::filter::FilterError;
use hakobu_core::error::Operation;
use hakobu_core::unit::Kind;
use hakobu_sys::links::{Links, Refused};
use hakobu_sys::{BorrowedFd, errno, file, meta};
use std::fs::File;
use std::io::Read;

/// Returns the failure of an entry whose rules cannot be read.
pub(super) fn filter_failure(error: FilterError) -> Failure {
    let error = std::io::Error::other(error.to_string());
    Failure { operation: Operation::Filter, error }
}

/// Reads the per-directory merge files of one source directory, without those that are symlinks of other users: a user
/// who can make such a link can remove the file as well.
pub(super) struct SourceFiles<'a> {
    links: &'a Links,
    /// Whether a refused file is an error, because rules that are not applied would have sources removed.
    is_strict: bool,
    /// The last refused symlink.
    pub refused: Option<std::io::Error>,
}

impl<'a> SourceFiles<'a> {
    pub(super) fn new(policy: &'a Policy) -> SourceFiles<'a> {
        let is_strict = policy.remove_source_files || policy.remove_source_dirs;
        SourceFiles { links: &policy.links, is_strict, refused: None }
    }

    /// As [`read_merge_file`].
    pub(super) fn read(
        &mut self,
        dir_fd: BorrowedFd<'_>,
        name: &[u8],
    ) -> std::io::Result<Option<Vec<u8>>> {
        match read_merge_file(self.links, dir_fd, name) {
            Err(error) if Refused::is_foreign(&error) && !self.is_strict => {
                self.refused = Some(error);
                Ok(None)
            }
            other => other,
        }
    }
}

/// Reads a per-directory merge file; returns `None` if there is none.
///
/// # Errors
/// EFBIG above 1 MiB: that is data, not rules, and rules are never truncated. A symlink that `links` does not allow.
pub(crate) fn read_merge_file(
    links: &Links,
    dir_fd: BorrowedFd<'_>,
    name: &[u8],
) -> std::io::Result<Option<Vec<u8>>> {
    const BYTES_MAX: u64 = 1 << 20;
    let plain = !name.contains(&b'/') && !matches!(links, Links::Within(_));
    let name = c_string(name)?;
    let opened = match file::open_read(dir_fd, &name, false) {
        Err(error) if plain && !errno::is(&error, errno::ELOOP) => Err(error),
        Ok(fd) if plain => Ok(fd),
        _ => links.open_read(dir_fd, &name),
    };
    let fd = match opened {
        Ok(fd) => fd,
        Err(error) if errno::is(&error, errno::ENOENT) => return Ok(None),
        Err(error) => return Err(error),
    };
    if meta::of_fd(&fd)?.kind != Kind::File {
        return Ok(None);
    }
    let mut content = Vec::new();
    File::from(fd).take(BYTES_MAX + 1).read_to_end(&mut content)?;
    if content.len() as u64 > BYTES_MAX {
        return Err(std::io::Error::from_raw_os_error(errno::EFBIG));
    }
    Ok(Some(content))
}
