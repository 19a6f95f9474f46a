//! The engine with its tasks: dispatches each kind of work. For a move the roots of its two ends determine the method.

use super::core::{self, Core, Engine, Setup, Tasks};
use super::failed::Failed;
use super::moving::{Done, Moving};
use super::{How, Root, Side, Task, Work, compare, copy, delete, get, put, relay};
use hakobu_core::error::{Fatal, Operation};
use hakobu_core::unit::Totals;
use hakobu_s3::AccessPoint;
use std::sync::Arc;

/// Runs an engine: starts the cores, lets `plan` fill the queue from this thread, and returns when everything is
/// done, with the totals and the error that stopped it.
///
/// # Errors
/// Code 1 if the allowed memory does not hold one part; code 11 if a thread or runtime cannot be started.
pub fn run(
    setup: Setup<'_>,
    plan: impl FnOnce(&Engine<'_>),
) -> Result<(Totals, Option<Fatal>), Fatal> {
    core::run::<ObjectTasks>(setup, plan)
}

struct ObjectTasks;

impl Tasks for ObjectTasks {
    async fn run(core: &Core<'_>, task: Task) {
        let Task { pair, work } = task;
        match work {
            Work::Move { entry, name, existing, how } => {
                let moving = Moving::new(core.engine, pair, entry, name, existing);
                match how {
                    How::Transfer => core.transfer(moving).await,
                    How::Compare => compare::run(core, moving).await,
                    How::Check(asked) => compare::check(core, moving, &asked).await,
                }
            }
            Work::Delete { entries } => delete::run(core, &pair, entries).await,
        }
    }
}

impl Core<'_> {
    /// Moves an entry, or begins to.
    pub(super) async fn transfer(&self, moving: Moving) {
        if self.engine.policy().dry_run {
            let done = Done { bytes: moving.entry.meta.size, ..Done::default() };
            return self.finish(&moving, Ok(done)).await;
        }
        let moving = Arc::new(moving);
        if self.engine.policy().remove_source_files && may_be_itself(&moving) {
            // Two settings can name one endpoint: the written object would then be removed as the source.
            let why = "source and target have the same bucket and key, so they may be one object";
            return self
                .finish(&moving, Err(Failed::Reason(Operation::Move, Side::Target, why)))
                .await;
        }
        let step = match (&moving.pair.source, &moving.pair.target) {
            (Root::Local { .. }, Root::Store { .. }) => put::begin(self, &moving).await,
            (Root::Store { .. }, Root::Local { .. } | Root::Null) => {
                get::begin(self, &moving).await
            }
            (Root::Store { .. }, Root::Store { .. }) if self.same_account() => {
                copy::begin(self, &moving).await
            }
            (Root::Store { .. }, Root::Store { .. }) => relay::begin(self, &moving).await,
            _ => Err(Failed::Reason(Operation::Read, Side::Source, "neither end is a store")),
        };
        self.step(&moving, step).await;
    }

    fn same_account(&self) -> bool {
        let stores = (&self.engine.setup.source, &self.engine.setup.target);
        matches!(stores, (Some(a), Some(b)) if a.same_account(b))
    }
}

/// Returns whether both ends have the same key, and buckets that may be one.
fn may_be_itself(moving: &Moving) -> bool {
    match (&moving.pair.source, &moving.pair.target) {
        (Root::Store { bucket: a, .. }, Root::Store { bucket: b, .. }) => {
            // Access points and their aliases stand for a bucket that is not known here.
            let may_be_one = a == b || AccessPoint::may_name(a) || AccessPoint::may_name(b);
            may_be_one
                && moving.pair.source.key(&moving.entry.name)
                    == moving.pair.target.key(&moving.name)
        }
        _ => false,
    }
}
