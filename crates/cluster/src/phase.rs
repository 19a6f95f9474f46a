//! Phases of a run: the transfer of its shards, then, where that is asked for, their verification.
//! Both use the same shards, claims and results, each in folders of its own.

use crate::beat;
use crate::folder::{self, Folder, Trouble};
use crate::plan::{REPORT, VERIFYING};
use serde::{Deserialize, Serialize};

/// Work on the shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// They are transferred.
    Transfer,
    /// Their entries are compared at both ends. Each verification has a random name: one that was
    /// made before the run was collected once more says nothing.
    Verify(String),
}

/// The mark of a verification.
#[derive(Serialize, Deserialize)]
struct Mark {
    id: String,
}

impl Phase {
    /// Folder of the claims.
    pub fn claims(&self) -> String {
        match self {
            Phase::Transfer => "claims".to_owned(),
            Phase::Verify(id) => format!("verify-{id}-claims"),
        }
    }

    /// Folder of the results.
    pub fn results(&self) -> String {
        match self {
            Phase::Transfer => "done".to_owned(),
            Phase::Verify(id) => format!("verify-{id}"),
        }
    }

    /// Reason why a worker of this phase must not go on; `None` while the phase lasts.
    ///
    /// # Errors
    /// The folder's.
    pub fn over(&self, folder: &dyn Folder) -> Result<Option<&'static str>, Trouble> {
        match self {
            Phase::Transfer => Ok(beat::is_collected(folder)?.then_some("the run was collected")),
            Phase::Verify(_) => {
                let lasts = current(folder)?.as_ref() == Some(self);
                Ok((!lasts).then_some("the run is collected once more"))
            }
        }
    }
}

/// The verification that was begun; `None` where there is none.
///
/// # Errors
/// The folder's; the mark names files outside of it.
pub fn current(folder: &dyn Folder) -> Result<Option<Phase>, Trouble> {
    match folder::parsed::<Mark>(folder, VERIFYING)? {
        Some(Mark { id }) if !folder::is_word(&id) => {
            let shown = folder.shown();
            Err(Trouble::lasting(format!("{VERIFYING} in {shown} is damaged: '{id:?}' is no name")))
        }
        mark => Ok(mark.map(|mark| Phase::Verify(mark.id))),
    }
}

/// Begins the verification of a run that was collected, or joins the one that was begun; `None`
/// where the run was not collected yet.
///
/// # Errors
/// The folder's.
pub fn verify(folder: &dyn Folder) -> Result<Option<Phase>, Trouble> {
    if folder.read(REPORT)?.is_none() {
        return Ok(None);
    }
    let mark = folder::json(&Mark { id: format!("{:016x}", fastrand::u64(..)) })?;
    folder.create(VERIFYING, &mark)?;
    current(folder)
}

/// Gives up a verification: the run is collected once more.
///
/// # Errors
/// The folder's.
pub fn forget(folder: &dyn Folder) -> Result<(), Trouble> {
    folder.remove(REPORT)?;
    folder.remove(VERIFYING)
}
