//! One transfer from its description to its outcome: the only module that uses all others.

mod batch;
mod objects;
mod outcome;
mod paths;
mod remove;
mod scope;
mod stages;
mod steer;

pub use crate::plan::{Layout, Objects, Spec};
pub use batch::{Together, transfer_each};
pub use hakobu_core::control::Control;
pub use hakobu_s3::RequestCounts;
pub use outcome::{Findings, Outcome};
pub use remove::{Keys, Removal, RemovalTarget, remove_objects};
pub use steer::{Rates, steered};

use hakobu_core::error::Fatal;
use hakobu_core::event::Listener;
use objects::Stored;
use paths::Paths;
use stages::Run;

/// Runs a transfer to its end.
///
/// # Errors
/// An error for the whole run before anything moved: incompatible options, an unusable target. A missing source
/// argument is not among these: it is a `Problem` and the others continue.
pub fn transfer(spec: &Spec, control: &Control, listener: &dyn Listener) -> Result<Outcome, Fatal> {
    let run = Run::of(spec, control, listener)?;
    if !spec.has_store() {
        let job = Paths::open(spec, &run)?;
        return run.carry_out(&job);
    }
    match Stored::open(spec, &run) {
        Err(_) if control.is_stopped() => Ok(run.stopped()),
        opened => run.carry_out(&opened?),
    }
}
