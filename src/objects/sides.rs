//! Sides of a transfer that are in S3.

use hakobu_transfer::location::{Location, Sources};

/// Sides of a transfer that are in S3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Concerned {
    /// The source is in S3.
    pub source: bool,
    /// The target is in S3.
    pub target: bool,
}

impl Concerned {
    /// Returns the sides of a transfer that are in S3.
    pub fn of(sources: &Sources, target: &Location) -> Concerned {
        Concerned { source: sources.are_s3(), target: target.is_s3() }
    }

    /// Returns whether any side is in S3.
    pub fn any(self) -> bool {
        self.source || self.target
    }
}
