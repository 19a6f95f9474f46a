//! Filter rules on the way down: an entry that a rule hides in the source is not compared, and one
//! that a rule protects in the target is no difference, just as `sync --delete` would leave it.

use crate::engine::read_merge_file;
use crate::error::Fatal;
use crate::policy::filter::{DirRules, Filter, FilterError, Origin};
use hakobu_sys::BorrowedFd;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// The rules in force in the two tops.
///
/// # Errors
/// Code 2: a file of rules above the trees or in the source's top cannot be read or understood.
pub fn top(
    filter: &Filter,
    source: &Path,
    target: &Path,
    fd: BorrowedFd<'_>,
) -> Result<Arc<DirRules>, Fatal> {
    let absolute = |path: &Path| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        path.into_os_string().into_encoded_bytes()
    };
    let (source, target) = (absolute(source), absolute(target));
    let origin = Origin { source: &source, target: &target, first: b"" };
    let mut above = |path: &[u8]| optional(std::fs::read(OsStr::from_bytes(path)));
    let root = filter.root(&origin, &mut above);
    root.and_then(|root| enter(filter, &root, b"", fd))
        .map_err(|error| Fatal::new(2, error.to_string()))
}

/// The rules in force in the directory `path`, which is open in the source.
///
/// # Errors
/// A file of rules in it cannot be read or understood.
pub fn enter(
    filter: &Filter,
    above: &Arc<DirRules>,
    path: &[u8],
    fd: BorrowedFd<'_>,
) -> Result<Arc<DirRules>, FilterError> {
    filter.enter(above, path, &mut |name| read_merge_file(fd, name))
}

fn optional(read: io::Result<Vec<u8>>) -> io::Result<Option<Vec<u8>>> {
    match read {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
