//! Many transfers as one: they share everything except sources and targets, and so one engine, its connections and
//! its jobs (`hakobu run`).

use super::objects::{StoreSession, feed};
use super::outcome::Outcome;
use super::scope;
use super::stages::{Job, Resources, Run};
use super::steer::Terms;
use crate::engine::Pass;
use crate::journal::{Journal, Ledger};
use crate::object::Engine;
use crate::plan::objects::{self, Claims};
use crate::plan::{Lines, Spec};
use crate::policy::Delete;
use hakobu_core::control::Control;
use hakobu_core::error::Fatal;
use hakobu_core::event::Listener;
use hakobu_core::threads::for_each;
use hakobu_core::unit::Totals;
use hakobu_s3::RequestCounts;

/// Maximum number of threads that resolve sources: each sends one request at a time.
const PLANNERS_MAX: usize = 32;

/// What the transfers of a run know of each other, in one or several calls of [`transfer_each`].
#[derive(Default)]
pub struct Together {
    lines: Lines,
    claims: Claims,
}

impl Together {
    /// Compares transfers with each other, in their order.
    pub fn of<'a>(specs: impl IntoIterator<Item = &'a Spec>) -> Together {
        Together { lines: Lines::of(specs), claims: Claims::default() }
    }
}

/// Runs transfers that each have a store on a side, all the same ones; options, policy and jobs are those of the
/// first, which has this number in `together`. `refused` receives the index and error of each that could not begin, from any thread.
///
/// # Errors
/// An error for all of them.
pub fn transfer_each(
    specs: &[Spec],
    (together, number): (&Together, usize),
    control: &Control,
    listener: &dyn Listener,
    refused: &(dyn Fn(usize, &Fatal) + Sync),
) -> Result<Outcome, Fatal> {
    let Some(first) = specs.first() else { return Ok(Outcome::default()) };
    let run = Run::of(first, control, listener)?;
    if first.policy.delete != Delete::No {
        return Err(Fatal::new(1, "--delete is not supported for several transfers at once"));
    }
    let session = StoreSession::open(first, &run)?;
    run.carry_out(&Batch { specs, session, refused, together, number })
}

struct Batch<'a> {
    specs: &'a [Spec],
    session: StoreSession<'a>,
    refused: &'a (dyn Fn(usize, &Fatal) + Sync),
    together: &'a Together,
    number: usize,
}

impl Batch<'_> {
    /// Resolves a transfer and hands it to the engine.
    fn plan(&self, engine: &Engine<'_>, at: usize, spec: &Spec) {
        if engine.is_stopped() {
            return;
        }
        let StoreSession { stores, umask, control, .. } = &self.session;
        match objects::resolve_sources(spec, stores, *umask) {
            Ok((planned_sources, missing)) => {
                let Together { lines, claims } = self.together;
                let shared = Some((claims, lines, self.number + at));
                feed(engine, spec, stores, (&planned_sources, &missing), Pass::Transfer, shared);
            }
            Err(_) if control.is_stopped() => {}
            Err(fatal) => {
                (self.refused)(at, &fatal);
                engine.add(&Totals { failed: 1, ..Totals::default() });
                if spec.objects.options.exit_on_error {
                    engine.stop_for(fatal);
                }
            }
        }
    }
}

/// Its record is kept: its targets are known by their folders alone.
impl Job for Batch<'_> {
    fn terms(&self) -> Terms {
        self.session.terms()
    }

    fn ledger(&self) -> Ledger {
        Ledger::new(&Journal::of_user(), scope::of_all(self.specs))
    }

    fn passes(&self) -> &'static [Pass] {
        &[Pass::Transfer]
    }

    fn pass(&self, _: Pass, resources: &Resources) -> Result<(Totals, Option<Fatal>), Fatal> {
        let planners = resources.controls.gate.jobs_max().min(PLANNERS_MAX);
        self.session.run(resources, |engine| {
            let collides = |at: usize| self.together.lines.collides(self.number + at);
            for_each(self.specs, planners, |at, spec| {
                if !collides(at) {
                    self.plan(engine, at, spec);
                }
            });
            // In their order, which decides who gets a name.
            for (at, spec) in self.specs.iter().enumerate().filter(|(at, _)| collides(*at)) {
                self.plan(engine, at, spec);
            }
            engine.all_found();
        })
    }

    fn requests(&self) -> RequestCounts {
        self.session.requests()
    }
}
