//! The run folder: small files with names, on a file system or in S3. Its operations are those that
//! both can do atomically.

mod local;
mod store;

pub use local::Local;
pub use store::Bucket;

use hakobu_core::error::Fatal;
use hakobu_s3::Settings;
use hakobu_transfer::location::Location;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ffi::OsStr;
use std::fmt;
use std::sync::Arc;

/// Failure of an operation on the run folder, or reason why a worker ended early or a plan cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Another try may succeed later: the folder is full, or its server is away.
    pub again: bool,
    /// A sentence without a full stop.
    pub message: String,
}

impl Trouble {
    /// Trouble that stays.
    pub fn lasting(message: impl Into<String>) -> Trouble {
        Trouble { again: false, message: message.into() }
    }

    /// Trouble that may be over at the next try.
    pub fn passing(message: impl Into<String>) -> Trouble {
        Trouble { again: true, message: message.into() }
    }
}

/// The content of a file of the folder.
///
/// # Errors
/// It has no form in JSON: better no file than an empty one.
pub fn json(content: &impl Serialize) -> Result<Vec<u8>, Trouble> {
    serde_json::to_vec(content)
        .map_err(|error| Trouble::lasting(format!("cannot write a file of the run: {error}")))
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Reads a file of the folder; `None` where it is not there, or not whole.
///
/// # Errors
/// The folder's.
pub fn parsed<T: DeserializeOwned>(folder: &dyn Folder, name: &str) -> Result<Option<T>, Trouble> {
    let content = folder.read(name)?.unwrap_or_default();
    Ok(serde_json::from_slice(&content).ok())
}

/// Returns whether a name is one of the run folder's own: relative, with at most one slash, and without `..`. Files of
/// the folder hold names of others, and may be forged.
pub(crate) fn is_inside(name: &str) -> bool {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
    name.split('/').count() <= 2 && name.split('/').all(is_plain)
}

/// Returns whether a word can be a part of a file's name in the folder: of a worker, or of a verification.
pub(crate) fn is_word(word: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !word.is_empty() && word.len() <= 64 && word.bytes().all(plain)
}

/// A run folder. Names are relative, with at most one slash.
pub trait Folder: Send + Sync {
    /// Makes a file, whole or not at all; false where there is one of this name.
    ///
    /// # Errors
    /// The folder cannot be written.
    fn create(&self, name: &str, content: &[u8]) -> Result<bool, Trouble>;

    /// Makes a file or replaces it, atomically.
    ///
    /// # Errors
    /// The folder cannot be written.
    fn replace(&self, name: &str, content: &[u8]) -> Result<(), Trouble>;

    /// Reads a file; `None` where there is none.
    ///
    /// # Errors
    /// The file cannot be read.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Trouble>;

    /// Names in a folder of the run folder, in no order; none where it does not exist.
    ///
    /// # Errors
    /// The folder cannot be listed.
    fn names(&self, folder: &str) -> Result<Vec<String>, Trouble>;

    /// The next names after `after` in byte order, as many as one request returns; all names where that costs as much.
    ///
    /// # Errors
    /// The folder cannot be listed.
    fn names_after(&self, folder: &str, after: &str) -> Result<Vec<String>, Trouble>;

    /// Removes a file; one that is not there is no failure.
    ///
    /// # Errors
    /// The file cannot be removed.
    fn remove(&self, name: &str) -> Result<(), Trouble>;

    /// The folder as the user spells it.
    fn shown(&self) -> String;
}

/// Opens a run folder; with `make` one that is not there is made.
///
/// # Errors
/// It is not there, belongs to others, or others can read it.
pub fn open(typed: &OsStr, settings: &Settings, make: bool) -> Result<Arc<dyn Folder>, Trouble> {
    let location = Location::parse(typed);
    match location.map_err(|Fatal { message, .. }| Trouble::lasting(message))? {
        Location::Local(path) => Ok(Arc::new(Local::open(&path, make)?)),
        Location::S3(url) => Ok(Arc::new(Bucket::open(&url, settings)?)),
        Location::Null => Err(Trouble::lasting("null: cannot hold a run")),
    }
}
