//! The target argument of a transfer with a store on a side: a folder that takes everything, or
//! the name of one file or object.

use super::ask::Asker;
use crate::engine::node::c_string;
use crate::error::{Cause, Fatal, quoted};
use crate::location::Location;
use crate::object::Root;
use crate::plan::{Layout, Spec};
use hakobu_sys::{OwnedFd, dir};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where a transfer arrives, before it is known whether as a folder or under a name.
pub(super) struct Place {
    location: Location,
    /// Something there says that it is a folder: a slash at its end, a folder that exists, several
    /// sources, `-t`.
    pub(super) is_folder: bool,
    real: bool,
}

impl Place {
    /// Looks at the target of a transfer.
    ///
    /// # Errors
    /// Code 1 for a bad argument or a store that cannot be asked.
    pub(super) fn of(spec: &Spec, asker: Option<&Asker>) -> Result<Place, Fatal> {
        let location = Location::parse(spec.target.as_os_str())?;
        let told = match spec.layout {
            Layout::Cp { no_target_dir: true, .. } => Some(false),
            Layout::Cp { target_is_dir: true, .. } => Some(true),
            _ if spec.sources.len() > 1 => Some(true),
            _ => None,
        };
        let is_folder = match (&location, told) {
            (_, Some(told)) => told,
            (Location::Null, None) => true,
            (Location::Local(path), None) => {
                path.as_os_str().as_bytes().ends_with(b"/") || path.is_dir()
            }
            (Location::S3(url), None) => {
                url.key.is_empty()
                    || url.key.ends_with(b"/")
                    || match asker {
                        Some(asker) => asker.any_below(&url.bucket, &slashed(&url.key))?,
                        None => false,
                    }
            }
        };
        if let Location::S3(url) = &location
            && url.bucket.is_empty()
        {
            return Err(Fatal::new(1, "s3:// names no bucket to write to; give s3://BUCKET/KEY"));
        }
        Ok(Place { location, is_folder, real: !spec.policy.dry_run })
    }

    /// The target as a folder, or the folder `name` in it: names are appended to the root that
    /// comes back.
    ///
    /// # Errors
    /// Code 11 where a local folder cannot be made or opened.
    pub(super) fn folder(&self, name: &[u8], umask: u32) -> Result<Root, Fatal> {
        match &self.location {
            Location::Null => Ok(Root::Null),
            Location::S3(url) => {
                let slashed = |key: &[u8]| if key.is_empty() { Vec::new() } else { slashed(key) };
                let prefix = [slashed(&url.key), slashed(name)].concat();
                Ok(Root::Store { bucket: url.bucket.clone(), prefix })
            }
            Location::Local(path) => self.open(&inside(path, name), umask),
        }
    }

    /// The target as the name of one file or object: the root that it lies in, the name, and
    /// whether the root is missing (see [`Place::is_missing`]).
    ///
    /// # Errors
    /// As [`Place::folder`]; code 3 for a path that is no name.
    pub(super) fn name(&self, umask: u32) -> Result<(Root, Vec<u8>, bool), Fatal> {
        match &self.location {
            Location::Null => Ok((Root::Null, Vec::new(), true)),
            Location::S3(url) => {
                let at = url.key.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
                let (prefix, name) = url.key.split_at(at);
                let root = Root::Store { bucket: url.bucket.clone(), prefix: prefix.to_vec() };
                Ok((root, name.to_vec(), false))
            }
            Location::Local(path) => {
                let Some(name) = path.file_name() else {
                    let message = format!("{} cannot be the name of a file", quoted(path));
                    return Err(Fatal::new(3, message));
                };
                let parent = path.parent().unwrap_or(Path::new(""));
                let missing = !parent.as_os_str().is_empty() && !parent.is_dir();
                Ok((self.open(parent, umask)?, name.as_bytes().to_vec(), missing))
            }
        }
    }

    /// Opens a local target folder, made with all its parents where it is missing. A dry run that
    /// would have to make it looks at the nearest one that exists, which it only reads.
    fn open(&self, shown: &Path, umask: u32) -> Result<Root, Fatal> {
        let path = if shown.as_os_str().is_empty() { Path::new(".") } else { shown };
        let failed = |error: io::Error| {
            let cause = Cause::System(error);
            Fatal::new(11, format!("cannot use target folder {}: {cause}", quoted(path)))
        };
        if self.real {
            let mut builder = std::fs::DirBuilder::new();
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o777 & !umask);
            builder.recursive(true).create(path).map_err(failed)?;
        }
        let mut there: PathBuf = path.to_owned();
        while !self.real && !there.is_dir() {
            match there.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => there = parent.to_owned(),
                _ => there = PathBuf::from("."),
            }
        }
        let dir = open(&there).map_err(failed)?;
        Ok(Root::Local { dir: Arc::new(dir), shown: shown.to_owned() })
    }

    /// Whether the local folder `name` of the target (empty for itself) has to be made first, so
    /// that nothing can be in it.
    pub(super) fn is_missing(&self, name: &[u8]) -> bool {
        matches!(&self.location, Location::Local(path) if !inside(path, name).is_dir())
    }
}

fn inside(path: &Path, name: &[u8]) -> PathBuf {
    if name.is_empty() { path.to_owned() } else { path.join(OsStr::from_bytes(name)) }
}

/// Opens a local folder.
pub(super) fn open(path: &Path) -> io::Result<OwnedFd> {
    dir::open_root(&c_string(path.as_os_str().as_bytes())?)
}

/// A key as the prefix of what lies below it.
pub(super) fn slashed(key: &[u8]) -> Vec<u8> {
    match key.ends_with(b"/") {
        true => key.to_vec(),
        false => [key, b"/"].concat(),
    }
}
