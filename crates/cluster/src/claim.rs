//! Claims: a worker says that it works on a shard. They keep workers apart and guarantee nothing.

use crate::folder::{self, Folder, Trouble};
use crate::plan::number_text;
use serde::{Deserialize, Serialize};

/// A claim on a shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// A random text: a worker whose try was repeated on the way recognises its own claim.
    pub token: String,
    /// The worker; see [`crate::beat::Beat`].
    pub worker: String,
}

/// Number and generation of a claim, from its file's name. Generation 0 is the first claim on a
/// shard; each later one redoes what the one before seems to have left.
pub fn parse(name: &str) -> Option<(u32, u32)> {
    let (number, generation) = name.split_once('.')?;
    Some((number.parse().ok()?, generation.parse().ok()?))
}

fn name(claims: &str, number: u32, generation: u32) -> String {
    format!("{claims}/{}.{generation}", number_text(number))
}

/// Claims a shard in the folder `claims`; whether it is ours now. A claim that is there is read: it is ours if it has our
/// token, because the answer to an earlier try may have been lost.
///
/// # Errors
/// The folder's.
pub fn take(
    folder: &dyn Folder,
    claims: &str,
    number: u32,
    generation: u32,
    worker: &str,
) -> Result<bool, Trouble> {
    let claim = Claim { token: format!("{:016x}", fastrand::u64(..)), worker: worker.to_owned() };
    let content = folder::json(&claim)?;
    Ok(folder.create(&name(claims, number, generation), &content)?
        || read(folder, claims, number, generation)?.as_ref() == Some(&claim))
}

/// Reads a claim; `None` where it is not there, or not written yet.
///
/// # Errors
/// The folder's.
pub fn read(
    folder: &dyn Folder,
    claims: &str,
    number: u32,
    generation: u32,
) -> Result<Option<Claim>, Trouble> {
    let content = folder.read(&name(claims, number, generation))?.unwrap_or_default();
    Ok(serde_json::from_slice(&content).ok())
}

/// Gives a claim back: another worker can take it at once.
///
/// # Errors
/// The folder's.
pub fn give_back(
    folder: &dyn Folder,
    claims: &str,
    number: u32,
    generation: u32,
) -> Result<(), Trouble> {
    folder.remove(&name(claims, number, generation))
}
