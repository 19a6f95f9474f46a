//! The engine with its tasks: dispatches each kind of work.

use super::core::{self, Core, Engine, Setup, Tasks};
use super::moving::Moving;
use super::{Task, Work, compare, delete};
use hakobu_core::error::Fatal;
use hakobu_core::unit::Totals;

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
            Work::Move { entry, name, existing } => {
                core.transfer(Moving::new(core.engine, pair, entry, name, existing)).await;
            }
            Work::Compare { entry, name, existing } => {
                compare::run(core, Moving::new(core.engine, pair, entry, name, Some(existing)))
                    .await;
            }
            Work::Check { entry, name, existing, asked } => {
                let moving = Moving::new(core.engine, pair, entry, name, Some(existing));
                compare::check(core, moving, &asked).await;
            }
            Work::Delete { entries } => delete::run(core, &pair, entries).await,
            Work::DeleteVersions { versions } => delete::versions::run(core, &pair, versions).await,
        }
    }
}
