//! Many transfers as one: they share everything but their sources and targets, and so one engine,
//! its connections, and its jobs (`hakobu run`).

use super::objects::{open, policy, setup};
use super::steer::{self, Course, Ends, Notes};
use super::{Control, Outcome, Spec};
use crate::error::{Class, Fatal, Operation, Problem};
use crate::event::{Event, Listener};
use crate::object::{self, Engine};
use crate::plan::objects::{self, Pass, Stores};
use crate::policy::Delete;
use crate::s3::Requests;
use crate::unit::Totals;
use hakobu_sys::process;
use std::ops::Add;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Threads that find out what sources are: each asks for one at a time.
const PLANNERS_MAX: usize = 32;

/// Runs transfers of which each has a store on a side, all on the same ones; options, policy and
/// jobs are those of the first. `refused` hears which of them could not begin, by its index, from
/// any thread.
///
/// # Errors
/// What makes all of them impossible.
pub fn transfer_each(
    specs: &[Spec],
    control: &Control,
    listener: &dyn Listener,
    refused: &(dyn Fn(usize, &Fatal) + Sync),
) -> Result<Outcome, Fatal> {
    let started = Instant::now();
    let Some(first) = specs.first() else { return Ok(Outcome::default()) };
    first.policy.check()?;
    objects::refuse_unfit(first)?;
    if first.policy.delete != Delete::No {
        return Err(Fatal::new(1, "--delete is not built for several transfers at once"));
    }
    let notes = Notes::read(first)?;
    steer::check_memory(first, true)?;
    let stores = open(first, control)?;
    let umask = process::set_umask(0);
    process::set_umask(umask);
    let policy = policy(first);
    let course = Course::new(first, Ends::of(first, &stores), notes, Some(process::cpus()));
    let helm = Arc::clone(&course.helm);
    let setup = setup(first, &policy, &stores, (control, listener), &helm, umask);
    let next = AtomicUsize::new(0);
    let flight = course.begin();
    let (totals, fatal) = object::run(setup, |engine| {
        let planner = || {
            while let Some((at, spec)) = take(&next, specs).filter(|_| !engine.is_stopped()) {
                if let Err(fatal) = plan(engine, spec, &stores, umask) {
                    refused(at, &fatal);
                    engine.add(&Totals { failed: 1, ..Totals::default() });
                    if spec.objects.options.exit_on_error {
                        engine.stop_for(fatal);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..helm.gate.jobs_max().min(PLANNERS_MAX).min(specs.len()) {
                // Where no more threads can be had, those that are there do all of it.
                if std::thread::Builder::new().spawn_scoped(scope, planner).is_err() {
                    break;
                }
            }
            planner();
        });
        listener.event(Event::WalkDone);
    })?;
    let findings = flight.end(!control.is_stopped() && fatal.is_none());
    let stopped = control.is_stopped() && fatal.is_none();
    let requests = stores.all().map(|store| Requests::of(store));
    let requests = requests.fold(Requests::default(), Add::add);
    let (took, jobs) = (started.elapsed(), findings.jobs);
    Ok(Outcome { totals, took, jobs, stopped, fatal, requests, findings })
}

fn take<'a>(next: &AtomicUsize, specs: &'a [Spec]) -> Option<(usize, &'a Spec)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    Some((at, specs.get(at)?))
}

/// Finds out what one transfer is about and hands it to the engine.
fn plan(engine: &Engine<'_>, spec: &Spec, stores: &Stores, umask: u32) -> Result<(), Fatal> {
    let (stretches, missing) = objects::stretches(spec, stores, umask)?;
    for gone in missing {
        engine.problem(&Problem {
            operation: Operation::Read,
            source: Some(gone.typed),
            target: None,
            cause: gone.cause,
            class: Class::Partial,
        });
        engine.add(&Totals { failed: 1, ..Totals::default() });
    }
    for stretch in &stretches {
        objects::feed(engine, spec, stores, stretch, Pass::Transfer);
    }
    Ok(())
}
