//! Claims: a worker says that it works on a shard. They keep workers apart and guarantee nothing.

use crate::folder::{self, Folder, Trouble};
use crate::plan::number_text;
use serde::{Deserialize, Serialize};

/// Number of a shard and generation of the claim on it. Generation 0 is the first claim on a shard; each
/// later one redoes what the one before seems to have left.
pub type Claimed = (u32, u32);

/// A claim on a shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// A random text: a worker whose try was repeated on the way recognises its own claim.
    pub token: String,
    /// The worker; see [`crate::beat::Beat`].
    pub worker: String,
}

/// Number and generation of a claim, from its file's name.
pub fn parse(name: &str) -> Option<Claimed> {
    let (number, generation) = name.split_once('.')?;
    Some((number.parse().ok()?, generation.parse().ok()?))
}

fn name(claims: &str, (number, generation): Claimed) -> String {
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
    claimed: Claimed,
    worker: &str,
) -> Result<bool, Trouble> {
    let claim = Claim { token: format!("{:016x}", fastrand::u64(..)), worker: worker.to_owned() };
    let content = folder::json(&claim)?;
    Ok(folder.create(&name(claims, claimed), &content)?
        || read(folder, claims, claimed)?.as_ref() == Some(&claim))
}

/// Reads a claim; `None` where it is not there, or not written yet.
///
/// # Errors
/// The folder's.
pub fn read(folder: &dyn Folder, claims: &str, claimed: Claimed) -> Result<Option<Claim>, Trouble> {
    folder::parsed(folder, &name(claims, claimed))
}

/// Gives a claim back: another worker can take it at once.
///
/// # Errors
/// The folder's.
pub fn give_back(folder: &dyn Folder, claims: &str, claimed: Claimed) -> Result<(), Trouble> {
    folder.remove(&name(claims, claimed))
}
