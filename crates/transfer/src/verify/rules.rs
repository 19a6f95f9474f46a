//! Filter rules in a comparison: an entry that a rule hides in the source is not compared, and one that a rule
//! protects in the target is not a difference, as in `sync --delete`.

use crate::local::read_merge_file;
use crate::policy::filter::{DirRules, Filter, FilterError, Origin};
use hakobu_core::error::Fatal;
use hakobu_sys::links::Links;
use hakobu_sys::{BorrowedFd, dir};
use std::path::Path;
use std::sync::Arc;

/// Returns the rules in force in the two tops.
///
/// # Errors
/// Code 2: a rule file above the trees or in the source's top cannot be read or parsed.
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
    let mut above = |path: &[u8]| read_merge_file(&Links::Trusted, dir::cwd(), path);
    let root = filter.root(&origin, &mut above);
    root.and_then(|root| enter(filter, &root, b"", fd))
        .map_err(|error| Fatal::new(2, error.to_string()))
}

/// Returns the rules in force in the directory `path`, which is open in the source.
///
/// # Errors
/// A rule file in it cannot be read or parsed.
pub fn enter(
    filter: &Filter,
    above: &Arc<DirRules>,
    path: &[u8],
    fd: BorrowedFd<'_>,
) -> Result<Arc<DirRules>, FilterError> {
    filter.enter(above, path, &mut |name| read_merge_file(&Links::Trusted, fd, name))
}
