//! Transfers with S3 on one side or both.

use super::steer::Terms;
use crate::journal::{Journal, Ledger};
use crate::local::Pass;
use crate::manifest::Manifests;
use crate::object::{self, Folded, ObjectEngine, ObjectSetup, Root};
use crate::plan::objects::{
    self, BaseNames, Claims, KnownNames, PlannedSource, SourceKind, Stores,
};
use crate::plan::{self, Cuts, Lines, Spec};
use crate::policy::{Delete, Policy, Symlinks};
use crate::run as scope;
use crate::run::{Job, Resources, Run, passes};
use hakobu_core::control::Control;
use hakobu_core::error::{Fatal, Problem};
use hakobu_core::event::Listener;
use hakobu_core::threads::for_each;
use hakobu_core::unit::Totals;
use hakobu_s3::{RequestCounts, S3Session, Settings};
use hakobu_sys::process;
use std::ops::Add;
use std::sync::Arc;

/// Default limit of bytes in flight.
const MEMORY_BYTES_MAX: u64 = 256 << 20;

/// The open stores of a transfer, and the parameters of its engine.
pub(super) struct StoreSession<'a> {
    pub spec: &'a Spec,
    pub control: &'a Control,
    listener: &'a dyn Listener,
    pub stores: Stores,
    /// The policy, adapted to objects.
    policy: Policy,
    pub umask: u32,
    /// Shared by all passes.
    folded: Arc<Folded>,
    manifests: Arc<Manifests>,
}

impl<'a> StoreSession<'a> {
    /// Opens the stores that the arguments name; one for both sides if their settings are equal.
    ///
    /// # Errors
    /// A store that cannot be opened.
    pub fn open(spec: &'a Spec, run: &Run<'a>) -> Result<StoreSession<'a>, Fatal> {
        let open = |settings: &Settings| {
            let store =
                S3Session::open(settings).map_err(|error| Fatal::new(1, error.to_string()))?;
            store.set_control(run.control.flag());
            Ok::<_, Fatal>(store)
        };
        let source = spec.sources.are_s3().then(|| open(&spec.objects.source)).transpose()?;
        let target = match (&source, spec.target.is_s3()) {
            (_, false) => None,
            (Some(source), true) if spec.objects.source == spec.objects.target => {
                Some(Arc::clone(source))
            }
            (_, true) => Some(open(&spec.objects.target)?),
        };
        let umask = process::set_umask(0);
        process::set_umask(umask);
        // By default the target's time is the time of the upload.
        let newer_only = spec.policy.newer_only || spec.target.is_s3();
        let policy = Policy { newer_only, ..spec.policy.clone() };
        let stores = Stores { source, target };
        Ok(StoreSession {
            spec,
            control: run.control,
            listener: run.listener,
            stores,
            policy,
            umask,
            folded: Arc::default(),
            manifests: Arc::new(manifests(spec)),
        })
    }

    /// Runs an engine that `plan` fills.
    pub fn run(
        &self,
        resources: &Resources,
        plan: impl FnOnce(&ObjectEngine<'_>),
    ) -> Result<(Totals, Option<Fatal>), Fatal> {
        let spec = self.spec;
        let setup = ObjectSetup {
            policy: &self.policy,
            options: &spec.objects.options,
            source: self.stores.source.clone(),
            target: self.stores.target.clone(),
            listener: self.listener,
            control: self.control,
            items: (spec.items || spec.plans, spec.items_unchanged),
            controls: &resources.controls,
            cores: process::cpus(),
            memory_bytes_max: spec.limits.memory_bytes_max.unwrap_or(MEMORY_BYTES_MAX),
            journal: Journal::of_user(),
            ledger: Arc::clone(&resources.ledger),
            folded: Arc::clone(&self.folded),
            manifests: Arc::clone(&self.manifests),
            umask: self.umask,
        };
        object::run(setup, plan)
    }

    pub fn terms(&self) -> Terms {
        Terms::of(self.spec, &self.stores)
    }

    /// Keeps what the run learnt about objects.
    pub fn keep(&self) {
        self.manifests.save(|| self.control.is_stopped());
    }

    pub fn requests(&self) -> RequestCounts {
        let requests = self.stores.all().map(|store| RequestCounts::of(store));
        requests.fold(RequestCounts::default(), Add::add)
    }
}

/// Returns the manifests of a transfer: none unless it compares metadata of objects. A dry run keeps nothing, and a part
/// of a larger run would write them once for each part.
fn manifests(spec: &Spec) -> Manifests {
    let compares = spec.objects.options.keep_times || spec.policy.symlinks == Symlinks::Keep;
    let folder = Journal::of_user().folder().map(|folder| folder.join("known"));
    if let Some(files) = &spec.objects.manifests {
        let folder = folder.unwrap_or_else(std::env::temp_dir);
        return match compares {
            true => Manifests::elsewhere(Arc::clone(files), folder),
            false => Manifests::default(),
        };
    }
    let is_used = spec.remember && compares && spec.objects.expected.is_none();
    Manifests::new(folder.filter(|_| is_used), !spec.policy.dry_run)
}

/// Maximum number of sources that are listed side by side.
const LISTINGS_MAX: usize = 4;

/// Reports missing sources, and queues everything else: sources with targets of their own side by side, so that a slow
/// one does not hold up the others. `shared`: what it has to know of the other transfers of a run, and its number.
pub(super) fn feed(
    engine: &ObjectEngine<'_>,
    spec: &Spec,
    stores: &Stores,
    (planned_sources, missing): (&[PlannedSource], &[Problem]),
    pass: Pass,
    shared: Option<(&Claims, &Lines, usize)>,
) {
    for gone in missing {
        engine.problem(gone);
        engine.add(&Totals { failed: 1, ..Totals::default() });
    }
    let own = Claims::default();
    let claims = shared.map_or(&own, |(claims, _, _)| claims);
    let lines = shared.map(|(_, lines, number)| (lines, number));
    let known = KnownNames::of(spec, planned_sources, stores, claims, lines);
    let mut names = spec.objects.flatten.then(|| BaseNames::of(planned_sources));
    if names.is_none() && objects::are_apart(planned_sources) {
        return for_each(planned_sources, LISTINGS_MAX, |number, planned| {
            objects::feed(engine, spec, stores, (planned, number), pass, None, &known);
        });
    }
    for (number, planned) in planned_sources.iter().enumerate() {
        objects::feed(engine, spec, stores, (planned, number), pass, names.as_mut(), &known);
    }
}

/// A transfer with a store on a side whose sources were resolved.
pub(super) struct ObjectTransfer<'a> {
    session: StoreSession<'a>,
    planned_sources: Vec<PlannedSource>,
    missing: Vec<Problem>,
}

impl<'a> ObjectTransfer<'a> {
    /// Opens the stores and resolves the sources.
    ///
    /// # Errors
    /// Failed requests, an unusable target.
    pub fn open(spec: &'a Spec, run: &Run<'a>) -> Result<ObjectTransfer<'a>, Fatal> {
        let mut session = StoreSession::open(spec, run)?;
        let (planned_sources, missing) =
            objects::resolve_sources(spec, &session.stores, session.umask)?;
        let is_tree =
            |planned: &PlannedSource| matches!(planned.what, SourceKind::Tree { pattern: None });
        if spec.range.is_some() && !planned_sources.iter().all(is_tree) {
            return Err(scope::refuse_range("is of one entry"));
        }
        // The content of a missing source is unknown, so nothing at the target is certainly extraneous.
        if !missing.is_empty() {
            session.policy.delete = Delete::No;
        }
        if session.policy.remove_source_files && session.policy.delete == Delete::After {
            // A second listing would lack the removed sources, and take their targets for extraneous.
            session.policy.delete = Delete::During;
        }
        Ok(ObjectTransfer { session, planned_sources, missing })
    }
}

/// Cuts the names of a transfer into about `ranges` ranges with about equal numbers of names, by samples of its listings; see
/// [`plan::can_be_cut`].
///
/// # Errors
/// Those of a transfer before it begins, and of listings.
pub fn cut(
    spec: &Spec,
    control: &Control,
    listener: &dyn Listener,
    ranges: usize,
) -> Result<Cuts, Fatal> {
    if !spec.has_store() {
        return Ok(plan::cut_paths(spec, ranges));
    }
    let run = Run::of(spec, control, listener)?;
    let ObjectTransfer { session, planned_sources, missing } = ObjectTransfer::open(spec, &run)?;
    match (&*planned_sources, &*missing) {
        ([planned], []) => plan::cut(planned, &session.stores, ranges),
        // An ordinary run tells what is missing.
        _ => Ok(Cuts { whole: true, ..Cuts::default() }),
    }
}

impl Job for ObjectTransfer<'_> {
    fn terms(&self) -> Terms {
        self.session.terms()
    }

    fn ledger(&self) -> Ledger {
        Ledger::new(
            &Journal::of_user(),
            scope::with_session(self.session.spec, &self.planned_sources),
        )
    }

    fn passes(&self) -> &'static [Pass] {
        passes(
            self.session.policy.delete,
            self.planned_sources.iter().any(PlannedSource::may_delete),
        )
    }

    fn pass(&self, pass: Pass, resources: &Resources) -> Result<(Totals, Option<Fatal>), Fatal> {
        let StoreSession { spec, stores, .. } = &self.session;
        self.session.run(resources, |engine| {
            feed(engine, spec, stores, (&self.planned_sources, &self.missing), pass, None);
            if pass != Pass::Delete {
                engine.all_found();
            }
        })
    }

    fn forgets_record(&self) -> bool {
        !self.session.policy.dry_run
    }

    fn keep(&self) {
        self.session.keep();
    }

    fn tidy(&self) {
        let StoreSession { spec, stores, policy, .. } = &self.session;
        if policy.dry_run {
            return;
        }
        if policy.remove_source_dirs {
            self.planned_sources.iter().for_each(remove_emptied);
        }
        if spec.objects.options.resume {
            // A record that stays is harmless: everything has arrived or was reported.
            let _ = object::tidy(&Journal::of_user(), stores.all());
        }
    }

    fn requests(&self) -> RequestCounts {
        self.session.requests()
    }
}

/// Removes the folder that a source argument moved (`mv`), if it is empty.
fn remove_emptied(planned: &PlannedSource) {
    if let (SourceKind::Tree { .. }, Root::Local { shown, .. }) =
        (&planned.what, &planned.pair.source)
    {
        // Remaining entries were reported, or are empty folders, which cannot be in a bucket and so were not moved.
        let _ = std::fs::remove_dir(shown);
    }
}
