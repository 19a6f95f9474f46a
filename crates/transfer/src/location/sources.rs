//! The sources of a transfer.

use super::argument::Location;
use super::s3url::S3Url;
use hakobu_core::error::Fatal;
use std::path::PathBuf;

/// The sources of a transfer, all of one kind, because the two kinds are listed differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sources {
    /// Local paths as typed; a trailing slash is significant.
    Paths(Vec<PathBuf>),
    /// Objects and prefixes.
    Objects(Vec<S3Url>),
}

impl Sources {
    /// Collects arguments of one kind.
    ///
    /// # Errors
    /// Code 1 for arguments of both kinds, and for `null:`.
    pub fn of(locations: Vec<Location>) -> Result<Sources, Fatal> {
        let (mut paths, mut objects) = (Vec::new(), Vec::new());
        for location in locations {
            match location {
                Location::Local(path) => paths.push(path),
                Location::S3(url) => objects.push(url),
                Location::Null => return Err(Fatal::new(1, "null: cannot be a source")),
            }
        }
        match (paths.is_empty(), objects.is_empty()) {
            (_, true) => Ok(Sources::Paths(paths)),
            (true, false) => Ok(Sources::Objects(objects)),
            (false, false) => Err(Fatal::new(1, "sources are either all local or all in s3://")),
        }
    }

    /// Returns the number of sources.
    pub fn len(&self) -> usize {
        match self {
            Sources::Paths(paths) => paths.len(),
            Sources::Objects(urls) => urls.len(),
        }
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether they are in S3.
    pub fn are_s3(&self) -> bool {
        matches!(self, Sources::Objects(_))
    }

    /// Returns the paths; empty if the sources are in S3.
    pub fn paths(&self) -> &[PathBuf] {
        match self {
            Sources::Paths(paths) => paths,
            Sources::Objects(_) => &[],
        }
    }

    /// Returns an iterator over the sources.
    pub fn locations(&self) -> impl Iterator<Item = Location> {
        let objects = match self {
            Sources::Paths(_) => &[],
            Sources::Objects(urls) => urls.as_slice(),
        };
        let paths = self.paths().iter().cloned().map(Location::Local);
        paths.chain(objects.iter().cloned().map(Location::S3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn sources_are_of_one_kind() {
        let of = |typed: &[&str]| {
            let parse = |text: &&str| Location::parse(OsStr::new(text)).unwrap();
            Sources::of(typed.iter().map(parse).collect()).map_err(|fatal| fatal.message)
        };
        assert_eq!(of(&["a", "b/"]), Ok(Sources::Paths(vec!["a".into(), "b/".into()])));
        assert!(of(&["s3://abc/x"]).is_ok_and(|sources| sources.are_s3() && sources.len() == 1));
        assert!(of(&["a", "s3://abc/x"]).is_err());
        assert!(of(&["null:"]).is_err());
    }
}
