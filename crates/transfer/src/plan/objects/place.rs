//! The target argument of a transfer with a store on a side: a folder for all entries, or the name of one file or
//! object.

use super::ask;
use crate::location::Location;
use crate::object::Root;
use crate::plan::path::{c_path, or_here};
use crate::plan::target::written_through;
use crate::plan::{Layout, Spec};
use crate::policy::Policy;
use hakobu_core::error::{Cause, Fatal, quoted};
use hakobu_s3::S3Session;
use hakobu_sys::below::split;
use hakobu_sys::dir;
use hakobu_sys::links::{Links, Refused};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Target of a transfer, before it is decided whether it is a folder or a name.
pub(super) struct Place {
    location: Location,
    /// A file goes into it: a slash at its end, several sources, `-t`, or an existing local folder.
    pub(super) takes_files: bool,
    /// A folder keeps its name in it: as above, but decided by the command line alone, so that the result never
    /// depends on what exists.
    pub(super) takes_folders: bool,
    real: bool,
    links: Links,
}

impl Place {
    /// Examines the target of a transfer.
    ///
    /// # Errors
    /// Code 1 for a bad argument or a failed request.
    pub(super) fn of(spec: &Spec, store: Option<&Arc<S3Session>>) -> Result<Place, Fatal> {
        let location = spec.target.clone();
        let explicit = match spec.layout {
            Layout::Cp { no_target_dir: true, .. } => Some(false),
            Layout::Cp { target_is_dir: true, .. } => Some(true),
            _ if spec.sources.len() > 1 => Some(true),
            _ => None,
        };
        let takes_folders = explicit.unwrap_or_else(|| match &location {
            Location::Null => true,
            Location::Local(path) => is_folders_name(path.as_os_str().as_bytes()),
            Location::S3(url) => url.key.is_empty() || url.key.ends_with(b"/"),
        });
        let is_dir = || matches!(&location, Location::Local(path) if path.is_dir());
        let takes_files = explicit.unwrap_or_else(|| takes_folders || is_dir());
        if let Location::S3(url) = &location
            && url.bucket.is_empty()
        {
            return Err(Fatal::new(1, "s3:// names no bucket to write to; give s3://BUCKET/KEY"));
        }
        // Existing entries do not matter here, but an unreachable store is reported once, not for each file.
        if let (Location::S3(url), Layout::Cp { .. }, Some(store)) = (&location, spec.layout, store)
            && spec.policy.recurse
            && !takes_folders
        {
            ask::any_below(store, &url.bucket, &url.key)?;
        }
        let (real, links) = (!spec.policy.dry_run, spec.policy.links.clone());
        Ok(Place { location, takes_files, takes_folders, real, links })
    }

    /// Returns the target as a folder, or the folder `name` in it: names are appended to the returned root.
    ///
    /// # Errors
    /// Code 11 if a local folder cannot be created or opened.
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

    /// Returns the target as the name of one file or object: its root, the name, and whether the root is missing (see
    /// [`Place::is_missing`]).
    ///
    /// # Errors
    /// As [`Place::folder`]; code 3 for a path that is not a name, or that cp would have to write through and cannot.
    /// `source_is_link`: the source is a symlink.
    pub(super) fn name(
        &self,
        policy: &Policy,
        source_is_link: bool,
        umask: u32,
    ) -> Result<(Root, Vec<u8>, bool), Fatal> {
        match &self.location {
            Location::Null => Ok((Root::Null, Vec::new(), true)),
            Location::S3(url) => {
                let (prefix, name) = split(&url.key);
                let root = Root::Store { bucket: url.bucket.clone(), prefix: prefix.to_vec() };
                Ok((root, name.to_vec(), false))
            }
            Location::Local(path) => {
                let path = &written_through(path, source_is_link, policy)?;
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

    /// Opens a local target folder; creates it with all its parents if it is missing. A dry run opens the nearest
    /// existing one instead, for reading.
    fn open(&self, shown: &Path, umask: u32) -> Result<Root, Fatal> {
        let path = or_here(shown);
        let failed = |error: io::Error| {
            let code = if Refused::is(&error) { 3 } else { 11 };
            let cause = Cause::System(error);
            Fatal::new(code, format!("cannot use target folder {}: {cause}", quoted(path)))
        };
        if self.real {
            self.links.make_dir(path, 0o777 & !umask, true).map_err(failed)?;
        }
        // The working directory itself, which is the last one looked at, may have been removed.
        let above = path.ancestors().find(|above| or_here(above).is_dir());
        let there = if self.real { path } else { above.map_or(path, or_here) };
        let opened = c_path(there).and_then(|there| self.links.open_dir(dir::cwd(), &there));
        let dir = opened.map_err(failed)?;
        Ok(Root::Local { dir: Arc::new(dir), shown: shown.to_owned() })
    }

    /// Returns whether the local folder `name` of the target (empty for itself) must be created first, so that it is
    /// empty.
    pub(super) fn is_missing(&self, name: &[u8]) -> bool {
        matches!(&self.location, Location::Local(path) if !inside(path, name).is_dir())
    }
}

/// Returns whether a path can only be a folder's: it ends with a slash, `.` or `..`.
fn is_folders_name(path: &[u8]) -> bool {
    matches!(path.rsplit(|byte| *byte == b'/').next(), None | Some(b"" | b"." | b".."))
}

fn inside(path: &Path, name: &[u8]) -> PathBuf {
    if name.is_empty() { path.to_owned() } else { path.join(OsStr::from_bytes(name)) }
}

/// Returns a key as the prefix of keys below it.
pub(super) fn slashed(key: &[u8]) -> Vec<u8> {
    match key.ends_with(b"/") {
        true => key.to_vec(),
        false => [key, b"/"].concat(),
    }
}
