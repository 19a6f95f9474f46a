//! `hakobu verify`: compares two trees in selected aspects and reports the differences.

mod forms;
mod options;

use super::tool::{end_with, refuse};
use crate::commands::session::stop_on_signals;
use crate::exit;
use crate::filters::Context;
use crate::options::{Refused, Typed};
use crate::show::escape::Escape;
use crate::show::output;
use crate::show::{Show, Wanted};
use hakobu_core::control::Control;
use hakobu_core::error::Fatal;
use hakobu_core::limit::Limits;
use hakobu_core::unit::Totals;
use hakobu_sys::paths::Links;
use hakobu_transfer::location::Location;
use hakobu_transfer::run::{Outcome, steered};
use hakobu_transfer::verify::{self, Difference, ObjectSpec, Spec};
use options::Reading;
pub(super) use options::TABLE;
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The parsed command line.
#[derive(Debug)]
struct Plan {
    sides: Sides,
    read: Reading,
}

#[derive(Debug)]
enum Sides {
    Paths(Spec, Limits),
    /// At least one is in S3.
    Objects(Box<ObjectSpec>),
}

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let plan = TABLE.parse(&arguments).and_then(|typed| plan(&typed).map_err(Refused::Usage));
    let refused = |refused| refuse(refused, exit::VERIFY_TROUBLE);
    let failed = |message: String| end_with(exit::VERIFY_TROUBLE, &message);
    let code = plan.map_err(refused).and_then(|plan| compare(plan).map_err(failed));
    code.unwrap_or_else(|code| code).into()
}

fn plan(typed: &Typed) -> Result<Plan, String> {
    let [source, target] = typed.paths.as_slice() else {
        return Err(format!("verify takes two paths, SRC and DST, not {}", typed.paths.len()));
    };
    let (source, target) = (place(source)?, place(target)?);
    let in_store = source.is_s3() || target.is_s3();
    let read = TABLE.read(typed, Reading::new(in_store))?;
    let context = Context { links: Links::Trusted, ..Context::default() };
    read.filters.note(in_store)?;
    let filter = read.filters.build(&context).map_err(|fatal| fatal.message)?;
    TABLE.check_places(typed, in_store, false)?;
    // Requests have no limit here.
    let limits = read.limits.of_run(in_store)?;
    let (times, one_way) = (read.times, read.one_way);
    let sides = match (source, target) {
        (Location::Local(source), Location::Local(target)) => {
            let (aspects, open_dirs_max) = (read.aspects, 0);
            let spec = Spec { source, target, aspects, times, one_way, filter, open_dirs_max };
            Sides::Paths(spec, limits)
        }
        (source, target) => {
            let objects = read.objects.clone().objects()?;
            Sides::Objects(Box::new(ObjectSpec {
                source,
                target,
                source_settings: objects.source,
                target_settings: objects.target,
                aspects: read.explicit,
                times,
                follow: read.follow,
                encode_names: objects.options.encode_names,
                one_way,
                filter,
                limits,
            }))
        }
    };
    Ok(Plan { sides, read })
}

fn place(typed: &OsStr) -> Result<Location, String> {
    let refused = |fatal: Fatal| fatal.message;
    match Location::parse(typed).map_err(refused)? {
        url @ Location::S3(_) => Ok(url),
        _ => Location::parse_local(typed).map(Location::Local).map_err(refused),
    }
}

/// Compares; returns the exit code.
fn compare(mut plan: Plan) -> Result<u8, String> {
    plan.read.limits.priority.apply()?;
    let wanted = Wanted {
        command: "verify",
        json: plan.read.json,
        problems: plan.read.verbose,
        quiet: true,
        progress: plan.read.quiet.then_some(false),
        own_end: true,
        ..Wanted::default()
    };
    let show = Show::new(wanted, Arc::default())?;
    // Between files the signal itself ends the process: there is nothing to clean up.
    let control = Control::default();
    if matches!(plan.sides, Sides::Objects(_)) {
        stop_on_signals(&control, exit::VERIFY_TROUBLE, "this run");
    }
    let (escape, printed) = (Escape::of_locale(), AtomicU64::new(0));
    let report = |difference: &Difference<'_>| {
        if (plan.read.quiet && !plan.read.json)
            || printed.fetch_add(1, Ordering::Relaxed) >= plan.read.differences_max
        {
            return;
        }
        show.print(&match plan.read.json {
            true => forms::json(difference),
            false => forms::text(difference, escape),
        });
    };
    let compared = match &mut plan.sides {
        Sides::Objects(objects) => verify::verify_objects(objects, &report, &control, &show),
        Sides::Paths(spec, limits) => verify_trees(spec, *limits, &report, &show),
    };
    let (outcome, fatal) = match compared {
        Ok(outcome) => (outcome, None),
        Err(fatal) => (verify::Outcome::default(), Some(fatal)),
    };
    let code = match (&fatal, outcome.counts.failed, outcome.counts.differences) {
        (Some(_), _, _) | (None, 1.., _) => exit::VERIFY_TROUBLE,
        (None, 0, 1..) => exit::VERIFY_DIFFERENT,
        (None, 0, 0) => exit::VERIFY_SAME,
    };
    Ok(end(&plan, &show, &outcome, fatal, code))
}

/// Compares two trees with a tuned or fixed number of workers.
pub fn verify_trees(
    spec: &mut Spec,
    limits: Limits,
    report: &(dyn Fn(&Difference<'_>) + Sync),
    show: &Show,
) -> Result<verify::Outcome, Fatal> {
    let (source, target) = (spec.source.clone(), spec.target.clone());
    let (compared, jobs) = steered(&[&source, &target], limits, |controls, capacity| {
        spec.open_dirs_max = capacity.open_dirs_max;
        verify::verify(spec, controls, report, show)
    });
    compared.map(|outcome| verify::Outcome { jobs, ..outcome })
}

fn end(plan: &Plan, show: &Show, outcome: &verify::Outcome, fatal: Option<Fatal>, code: u8) -> u8 {
    show.end_progress();
    let counts = &outcome.counts;
    let used = hakobu_sys::proc::ResourceUsage::of_program();
    if plan.read.json {
        show.print(&forms::summary(outcome, &used, code));
    } else if plan.read.stats {
        show.print(forms::stats(counts).as_bytes());
    }
    let totals = Totals { failed: counts.failed, ..Totals::default() };
    let began = fatal.is_none();
    let complete = show.finish(
        &Outcome { totals, took: outcome.took, jobs: outcome.jobs, fatal, ..Outcome::default() },
        code,
    );
    let omitted = counts.differences.saturating_sub(plan.read.differences_max);
    if omitted > 0 && !plan.read.quiet {
        output::message(&format!(
            "{} more differences are not shown",
            crate::number::grouped(omitted)
        ));
    }
    let watched = plan.read.verbose || std::io::stderr().is_terminal();
    if began && watched && !plan.read.quiet {
        output::message(&forms::sentence(outcome, &used));
    }
    if complete { code } else { exit::VERIFY_TROUBLE }
}
