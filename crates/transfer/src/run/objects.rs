//! Transfers with S3 on one side or both: opens the stores, sizes the engine, runs its passes.

use super::steer::{self, Course, Ends, Notes};
use super::{Control, Outcome, Spec};
use crate::error::{Class, Fatal, Operation, Problem};
use crate::event::{Event, Listener};
use crate::journal::Journal;
use crate::limit::Helm;
use crate::object::{self, Root, Setup};
use crate::plan::objects::{self, Pass, Stores, Stretch, What};
use crate::policy::{Delete, Policy};
use crate::s3::{Requests, Settings, Store};
use crate::unit::Totals;
use hakobu_sys::process;
use std::ops::Add;
use std::sync::Arc;
use std::time::Instant;

/// Most bytes in flight where nobody says how many.
const MEMORY_BYTES_MAX: u64 = 256 << 20;

/// Whether any end of a transfer is in S3.
pub(super) fn concerns(spec: &Spec) -> bool {
    objects::is_s3(&spec.target) || spec.sources.iter().any(|source| objects::is_s3(source))
}

/// As [`super::transfer`].
pub(super) fn transfer(
    spec: &Spec,
    control: &Control,
    listener: &dyn Listener,
) -> Result<Outcome, Fatal> {
    let started = Instant::now();
    objects::refuse_unfit(spec)?;
    let notes = Notes::read(spec)?;
    steer::check_memory(spec, true)?;
    let stores = open(spec, control)?;
    let umask = process::set_umask(0);
    process::set_umask(umask);
    let (stretches, missing) = objects::stretches(spec, &stores, umask)?;
    let mut totals = Totals::default();
    // What a source that cannot be found would have brought is not known, so nothing at the target
    // is extraneous for sure.
    let all_found = missing.is_empty();
    for gone in missing {
        totals.failed += 1;
        listener.event(Event::Problem(&Problem {
            operation: Operation::Read,
            source: Some(gone.typed),
            target: None,
            cause: gone.cause,
            class: Class::Partial,
        }));
    }
    let policy = policy(spec);
    let course = Course::new(spec, Ends::of(spec, &stores), notes, Some(process::cpus()));
    let helm = Arc::clone(&course.helm);
    let mut fatal = None;
    let run = |pass: Pass, stretches: &[Stretch]| {
        let setup = setup(spec, &policy, &stores, (control, listener), &helm, umask);
        object::run(setup, |engine| {
            for stretch in stretches {
                objects::feed(engine, spec, &stores, stretch, pass);
            }
            listener.event(Event::WalkDone);
        })
    };
    let deletes = all_found && stretches.iter().any(|stretch| stretch.may_delete());
    let passes = match policy.delete {
        Delete::Before if deletes => &[Pass::Delete, Pass::Transfer][..],
        Delete::During if deletes => &[Pass::Both][..],
        Delete::After if deletes => &[Pass::Transfer, Pass::Delete][..],
        _ => &[Pass::Transfer][..],
    };
    let flight = course.begin();
    for pass in passes {
        let (more, stopped_by) = run(*pass, &stretches)?;
        totals += more;
        fatal = fatal.take().or(stopped_by);
        // What did not arrive must not cost what was there.
        if fatal.is_some() || control.is_stopped() {
            break;
        }
    }
    let findings = flight.end(!control.is_stopped() && fatal.is_none());
    let stopped = control.is_stopped() && fatal.is_none();
    if policy.remove_source_dirs && !policy.dry_run && !stopped && fatal.is_none() {
        stretches.iter().for_each(remove_emptied);
    }
    let requests =
        stores.all().map(|store| Requests::of(store)).fold(Requests::default(), Add::add);
    let (took, jobs) = (started.elapsed(), findings.jobs);
    Ok(Outcome { totals, took, jobs, stopped, fatal, requests, findings })
}

/// What the engine is given for a transfer.
pub(super) fn setup<'a>(
    spec: &'a Spec,
    policy: &'a Policy,
    stores: &Stores,
    (control, listener): (&'a Control, &'a dyn Listener),
    helm: &'a Helm,
    umask: u32,
) -> Setup<'a> {
    Setup {
        policy,
        options: &spec.objects.options,
        source: stores.source.clone(),
        target: stores.target.clone(),
        listener,
        control,
        items: (spec.items, spec.items_unchanged),
        helm,
        cores: process::cpus(),
        memory_bytes_max: spec.memory_bytes_max.unwrap_or(MEMORY_BYTES_MAX),
        journal: Journal::of_user(),
        umask,
    }
}

/// Removes the folder that a stretch moved (`mv`), where nothing is left in it.
fn remove_emptied(stretch: &Stretch) {
    if let (What::Tree { .. }, Root::Local { shown, .. }) = (&stretch.what, &stretch.pair.source) {
        // Where something is left in it, that was told of, or is an empty folder, which has no
        // place in a bucket and so was not moved.
        let _ = std::fs::remove_dir(shown);
    }
}

/// The policy in the terms of objects: what makes two entries the same where times are not kept.
pub(super) fn policy(spec: &Spec) -> Policy {
    let mut policy = spec.policy.clone();
    // Where nothing says otherwise the target's time is the time of the upload.
    policy.newer_only = objects::is_s3(&spec.target);
    policy
}

/// Opens the stores that the arguments name; one for both sides where their settings are equal.
pub(super) fn open(spec: &Spec, control: &Control) -> Result<Stores, Fatal> {
    let of = |settings: &Settings| {
        let store = Store::open(settings).map_err(|error| Fatal::new(1, error.to_string()))?;
        store.set_control(control.flag());
        Ok::<_, Fatal>(store)
    };
    let from_store = spec.sources.iter().any(|source| objects::is_s3(source));
    let to_store = objects::is_s3(&spec.target);
    let source = from_store.then(|| of(&spec.objects.source)).transpose()?;
    let target = match (&source, to_store) {
        (_, false) => None,
        (Some(source), true) if spec.objects.source == spec.objects.target => {
            Some(Arc::clone(source))
        }
        (_, true) => Some(of(&spec.objects.target)?),
    };
    Ok(Stores { source, target })
}
