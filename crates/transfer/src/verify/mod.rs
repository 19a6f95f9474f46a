//! Proves that two trees are the same, or says where they differ. Reads both in parallel, name by
//! name below open directories, never through a symlink, and changes nothing.
//!
//! What "the same" means is a set of [`Aspect`]s; the comparison of two entries' metadata is the
//! pure function [`differences`]. Memory grows with the depth of the trees and the number of
//! workers, not with the number of entries; hard-link groups cost an entry each while they are
//! incomplete.

mod aspects;
mod attributes;
mod content;
mod links;
mod objects;
mod pair;
mod rules;
mod walk;

pub use aspects::{Aspect, Aspects, Times, differences};
pub use objects::{ObjectSpec, verify_objects};

use crate::error::Fatal;
use crate::event::Listener;
use crate::policy::filter::Filter;
use crate::s3::Requests;
use crate::unit::Meta;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A comparison: what with what, in which respects.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The first tree, as typed.
    pub source: PathBuf,
    /// The second tree, as typed.
    pub target: PathBuf,
    /// What counts.
    pub aspects: Aspects,
    /// When times are the same, and whose.
    pub times: Times,
    /// Entries that only the target has are no difference.
    pub one_way: bool,
    /// Entries that it hides in the source or protects in the target are not compared; the paths
    /// that it sees begin below the two trees.
    pub filter: Option<Arc<Filter>>,
    /// Workers.
    pub jobs: usize,
    /// Descriptors that this process may have open.
    pub open_files_max: u64,
}

/// What is wrong with one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Only the source has it (with everything below, where it is a directory).
    Missing,
    /// Only the target has it (with everything below).
    Extra,
    /// Both have it, and it differs in these respects.
    Differs(Aspects),
}

/// One difference.
#[derive(Clone, Copy, Debug)]
pub struct Difference<'a> {
    /// Path below the two trees; empty for the trees themselves.
    pub path: &'a [u8],
    /// What is wrong.
    pub finding: Finding,
    /// The entry in the source.
    pub source: Option<&'a Meta>,
    /// The entry in the target.
    pub target: Option<&'a Meta>,
    /// Offset of the first byte that was found to differ, for contents.
    pub offset: Option<u64>,
}

/// Counts of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pairs of regular files that were compared.
    pub files: u64,
    /// Pairs of directories that were compared.
    pub dirs: u64,
    /// Pairs of anything else.
    pub others: u64,
    /// Bytes of content that are known to be the same or were read until the first difference.
    pub bytes: u64,
    /// Names with a difference.
    pub differences: u64,
    /// Names that only the source has.
    pub missing: u64,
    /// Names that only the target has.
    pub extra: u64,
    /// Names that differ in each aspect, in the order of [`Aspect::ALL`].
    pub by_aspect: [u64; Aspect::ALL.len()],
    /// Names that could not be compared.
    pub failed: u64,
}

impl Counts {
    /// Names that differ in one aspect.
    pub fn of(&self, aspect: Aspect) -> u64 {
        self.by_aspect.get(aspect as usize).copied().unwrap_or(0)
    }

    fn add(&mut self, other: &Counts) {
        let Counts { files, dirs, others, bytes, differences, missing, extra, by_aspect, failed } =
            other;
        self.files += files;
        self.dirs += dirs;
        self.others += others;
        self.bytes += bytes;
        self.differences += differences;
        self.missing += missing;
        self.extra += extra;
        self.failed += failed;
        for (sum, more) in self.by_aspect.iter_mut().zip(by_aspect) {
            *sum += more;
        }
    }
}

/// How a comparison ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// What was found.
    pub counts: Counts,
    /// Wall time.
    pub took: Duration,
    /// Workers used.
    pub jobs: usize,
    /// What the stores of both sides counted; nothing between local paths.
    pub requests: Requests,
}

/// Compares two trees, or two single entries. Differences go to `report`, from all workers at
/// once; failures and progress (`Problem`, `Unit`) to `listener`.
///
/// # Errors
/// When one of the two cannot even be looked at.
pub fn verify(
    spec: &Spec,
    report: &(dyn Fn(&Difference<'_>) + Sync),
    listener: &dyn Listener,
) -> Result<Outcome, Fatal> {
    let started = Instant::now();
    let (counts, jobs) = walk::run(spec, report, listener)?;
    let requests = Requests::default();
    Ok(Outcome { counts, took: started.elapsed(), jobs, requests })
}
