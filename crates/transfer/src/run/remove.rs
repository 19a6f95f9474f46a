//! Removal of objects, or of all their versions: single keys, everything below a prefix, matches of a wildcard. Begins
//! with the first page of a listing, a thousand keys per request.

mod objects;
mod parts;
mod versions;

use parts::Feed;
pub use parts::{Keys, Removal, RemovalTarget};

use super::outcome::Outcome;
use super::stages::{Job, Resources, Run};
use super::steer::Terms;
use crate::engine::Pass;
use crate::journal::{Journal, Ledger};
use crate::object::{self, JOBS_SEED, ObjectOptions, Setup};
use crate::policy::Policy;
use hakobu_core::control::Control;
use hakobu_core::error::Fatal;
use hakobu_core::event::Listener;
use hakobu_core::unit::{Jobs, Totals};
use hakobu_s3::{RequestCounts, S3Session};
use hakobu_sys::process;
use std::sync::Arc;

/// Limit on bytes in flight: only names are.
const MEMORY_BYTES_MAX: u64 = 16 << 20;

/// Removes objects; in `store` if one is open already.
///
/// # Errors
/// An error for all of it: a store that cannot be opened, no threads.
pub fn remove_objects(
    removal: &Removal,
    store: Option<&Arc<S3Session>>,
    control: &Control,
    listener: &dyn Listener,
) -> Result<Outcome, Fatal> {
    let run = Run::new(control, listener);
    let store = match store {
        Some(store) => Arc::clone(store),
        None => S3Session::open(&removal.settings).map_err(|e| Fatal::new(1, e.to_string()))?,
    };
    store.set_control(control.flag());
    let before = RequestCounts::of(&store);
    let policy = Policy { dry_run: removal.dry_run, ..Policy::default() };
    run.carry_out(&Removing { removal, store, before, policy, control, listener })
}

/// A removal whose store is open.
struct Removing<'a> {
    removal: &'a Removal,
    store: Arc<S3Session>,
    before: RequestCounts,
    policy: Policy,
    control: &'a Control,
    listener: &'a dyn Listener,
}

impl Job for Removing<'_> {
    fn terms(&self) -> Terms {
        let jobs = match self.removal.jobs {
            Jobs::Fixed(jobs) => jobs.max(1),
            Jobs::Auto => JOBS_SEED,
        };
        Terms::of_removal(jobs, self.removal.requests_per_s_max)
    }

    fn ledger(&self) -> Ledger {
        Ledger::default()
    }

    fn passes(&self) -> &'static [Pass] {
        &[Pass::Delete]
    }

    fn pass(&self, _: Pass, resources: &Resources) -> Result<(Totals, Option<Fatal>), Fatal> {
        let setup = Setup {
            policy: &self.policy,
            options: &ObjectOptions::default(),
            source: None,
            target: Some(Arc::clone(&self.store)),
            listener: self.listener,
            control: self.control,
            items: (self.removal.items, false),
            controls: &resources.controls,
            cores: process::cpus(),
            memory_bytes_max: MEMORY_BYTES_MAX,
            journal: Journal::of_user(),
            ledger: Arc::clone(&resources.ledger),
            folded: Arc::default(),
            umask: 0o022,
        };
        object::run(setup, |engine| {
            let feed = Feed { engine, removal: self.removal, store: &self.store };
            match self.removal.all_versions {
                true => feed.versions(),
                false => feed.objects(),
            }
            engine.all_found();
        })
    }

    fn requests(&self) -> RequestCounts {
        RequestCounts::of(&self.store).since(self.before)
    }
}
