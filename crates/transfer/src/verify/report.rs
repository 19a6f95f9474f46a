//! Types of a comparison: its parameters, findings and outcome.

use super::aspects::{Aspect, Aspects, Times};
use crate::policy::filter::Filter;
use hakobu_core::unit::Meta;
use hakobu_s3::RequestCounts;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Parameters of a comparison.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The first tree, as typed.
    pub source: PathBuf,
    /// The second tree, as typed.
    pub target: PathBuf,
    /// Aspects to compare.
    pub aspects: Aspects,
    /// Tolerance of times, and the kinds of entries whose times are compared.
    pub times: Times,
    /// Entries that only the target has are not differences.
    pub one_way: bool,
    /// Entries that it hides in the source or protects in the target are not compared; the paths that it receives are
    /// relative to the two trees.
    pub filter: Option<Arc<Filter>>,
    /// Maximum number of open directories of both trees together.
    pub open_dirs_max: usize,
}

/// The difference of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Only the source has it (with everything below, if it is a directory).
    Missing,
    /// Only the target has it (with everything below).
    Extra,
    /// Both have it, and it differs in these aspects.
    Differs(Aspects),
}

/// One difference.
#[derive(Clone, Copy, Debug)]
pub struct Difference<'a> {
    /// Path below the two trees; empty for the trees themselves.
    pub path: &'a [u8],
    /// The difference.
    pub finding: Finding,
    /// The entry in the source.
    pub source: Option<&'a Meta>,
    /// The entry in the target.
    pub target: Option<&'a Meta>,
    /// Offset of the first byte found to differ, for contents.
    pub offset: Option<u64>,
}

/// Counts of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pairs of regular files compared.
    pub files: u64,
    /// Pairs of directories compared.
    pub dirs: u64,
    /// Pairs of other entries.
    pub others: u64,
    /// Bytes of content known to be equal or read up to the first difference.
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
    /// Returns the number of names that differ in one aspect.
    pub fn of(&self, aspect: Aspect) -> u64 {
        self.by_aspect.get(aspect as usize).copied().unwrap_or(0)
    }

    /// Counts a difference.
    pub(super) fn note(&mut self, finding: Finding) {
        self.differences += 1;
        match finding {
            Finding::Missing => self.missing += 1,
            Finding::Extra => self.extra += 1,
            Finding::Differs(set) => {
                let aspects = Aspect::ALL.into_iter().zip(&mut self.by_aspect);
                aspects.for_each(|(aspect, count)| *count += u64::from(set.has(aspect)));
            }
        }
    }

    pub(super) fn add(&mut self, other: &Counts) {
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

/// Result of a comparison.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// The findings.
    pub counts: Counts,
    /// Wall time.
    pub took: Duration,
    /// Number of workers at the end.
    pub jobs: usize,
    /// Requests to the stores of both sides; none between local paths.
    pub requests: RequestCounts,
}
