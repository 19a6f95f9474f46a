//! Compares two trees and reports their differences. Reads both in parallel, name by name below open directories,
//! never through a symlink, and changes nothing.
//!
//! Equality is a set of [`Aspect`]s; the comparison of two entries' metadata is the pure function [`differences`].
//! Memory grows with the depth of the trees and the number of workers, not with the number of entries; hard-link
//! groups cost an entry each while they are incomplete.

mod aspects;
mod far;
mod objects;
mod paths;

pub use crate::verify::aspects::{Difference, Finding, VerifyCounts, VerifyOutcome, VerifySpec};
pub use aspects::{Aspect, Aspects, Times, differences};
pub use far::{FarComparison, FarSide};
pub use objects::{ObjectSpec, verify_named_objects, verify_objects};

use hakobu_core::control::Control;
use hakobu_core::error::Fatal;
use hakobu_core::event::Listener;
use hakobu_core::limit::Controls;
use hakobu_s3::RequestCounts;
use std::time::Instant;

/// Compares two trees, or two single entries. Differences go to `report`, from all workers concurrently; failures and
/// progress (`Problem`, `Unit`) to `listener`. The gate sets the number of workers.
///
/// # Errors
/// One of the two cannot be examined.
pub fn verify(
    spec: &VerifySpec,
    controls: &Controls,
    report: &(dyn Fn(&Difference<'_>) + Sync),
    listener: &dyn Listener,
) -> Result<VerifyOutcome, Fatal> {
    let started = Instant::now();
    let counts = paths::run(spec, controls, report, listener)?;
    let (jobs, requests) = (controls.gate.jobs(), RequestCounts::default());
    Ok(VerifyOutcome { counts, took: started.elapsed(), jobs, requests })
}

/// Compares names below two directories, as [`verify`] does entries of trees; attributes of the
/// directories above them are not compared, and a name that the source lacks is not a difference. When
/// `control` stops it, the outcome has what was compared until then.
///
/// # Errors
/// One of the directories cannot be opened.
pub fn verify_named(
    spec: &VerifySpec,
    names: &[Vec<u8>],
    control: &Control,
    controls: &Controls,
    report: &(dyn Fn(&Difference<'_>) + Sync),
    listener: &dyn Listener,
) -> Result<VerifyOutcome, Fatal> {
    let started = Instant::now();
    let counts = paths::run_named(spec, names, control, controls, report, listener)?;
    let (jobs, requests) = (controls.gate.jobs(), RequestCounts::default());
    Ok(VerifyOutcome { counts, took: started.elapsed(), jobs, requests })
}
