//! The journal's record of one transfer that a later run may continue (`--resume`), for uploads and downloads.

use super::core::Core;
use super::failed::Failed;
use super::moving::Moving;
use super::{Root, Side};
use crate::journal::{Claim, Identity, Part, Record};
use hakobu_core::error::Operation;
use hakobu_s3::{Client, ErrorKind};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

/// Writing records takes at most this fraction (1/n) of the time.
const SAVING_SHARE: u32 = 50;

/// A record that is updated during its transfer.
pub(super) struct Checkpoint {
    claim: Claim,
    record: Record,
    /// Time of the last write, and its duration.
    saved: (Instant, Duration),
}

impl Checkpoint {
    /// Continues a record that was just read or written.
    pub fn new(claim: Claim, record: Record) -> Checkpoint {
        Checkpoint { claim, record, saved: (Instant::now(), Duration::ZERO) }
    }

    /// Updates the finished parts and writes the record, unless that was done just now.
    pub fn progress(&mut self, parts: impl FnOnce() -> Vec<Part>) {
        let (at, took) = self.saved;
        if at.elapsed() >= took * SAVING_SHARE {
            self.save(parts());
        }
    }

    /// Writes the record. A failure only means that parts are moved again.
    pub fn save(&mut self, parts: Vec<Part>) {
        let begun = Instant::now();
        self.record.parts = parts;
        drop(self.claim.save(&self.record));
        self.saved = (Instant::now(), begun.elapsed());
    }

    /// Removes the record of a transfer that is complete or given up. A record that stays is recognised as obsolete
    /// later.
    pub fn forget(self) {
        drop(self.claim.remove());
    }
}

/// Claims the record of a transfer. `busy` is the reason if another run holds it.
///
/// # Errors
/// Those of the journal; `busy`.
pub(super) fn claim(
    core: &Core<'_>,
    client: &Client,
    moving: &Moving,
    busy: &'static str,
) -> Result<(Identity, Claim), Failed> {
    let whole = |root: &Root, path| match root {
        Root::Local { .. } => std::path::absolute(path).map_err(unusable),
        Root::Store { .. } | Root::Null => Ok(path),
    };
    let source = whole(&moving.pair.source, moving.source_path())?;
    let target = whole(&moving.pair.target, moving.target_path())?;
    let (source, target) = (source.as_os_str().as_bytes(), target.as_os_str().as_bytes());
    let identity = Identity::new(source, target, &client.session().endpoint());
    match core.engine.setup.journal.claim(&identity).map_err(unusable)? {
        Some(claim) => Ok((identity, claim)),
        None => Err(Failed::Reason(Operation::Write, Side::Target, busy)),
    }
}

/// The failure for an error of the journal.
pub(super) fn unusable(error: io::Error) -> Failed {
    let said = io::Error::new(error.kind(), format!("the journal for --resume: {error}"));
    Failed::File(Operation::Write, Side::Target, said)
}

/// Returns whether a later run can continue the transfer after this failure.
pub(super) fn is_worth_keeping(failed: &Failed) -> bool {
    match failed {
        Failed::Request(_, _, error) => !matches!(
            error.kind,
            ErrorKind::NotFound | ErrorKind::Precondition | ErrorKind::Invalid | ErrorKind::Corrupt
        ),
        Failed::File(..) | Failed::Stopped => true,
        Failed::Reason(..) | Failed::Vanished(_) => false,
    }
}
