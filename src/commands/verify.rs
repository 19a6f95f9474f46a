//! `hakobu verify`: two trees, in which respects, and how the differences are told.

mod forms;

use super::sync::filters;
use super::{refuse, tool};
use crate::effort::{Effort, Priority};
use crate::objects::Asked;
use crate::options::verify::TABLE;
use crate::options::{Refused, Typed};
use crate::show::escape::Escape;
use crate::show::output;
use crate::show::{Show, Wanted};
use crate::{exit, signals};
use hakobu_transfer::control::Control;
use hakobu_transfer::error::Fatal;
use hakobu_transfer::location::Location;
use hakobu_transfer::run::Outcome;
use hakobu_transfer::unit::{Jobs, Totals};
use hakobu_transfer::verify::{self, Aspect, Aspects, Difference, ObjectSpec, Spec, Times};
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What was asked for.
#[derive(Debug)]
struct Plan {
    spec: Spec,
    /// Instead of `spec`, where a side is in S3.
    objects: Option<ObjectSpec>,
    jobs: Jobs,
    /// Differences that are told.
    told_max: u64,
    verbose: bool,
    quiet: bool,
    stats: bool,
    json: bool,
    priority: Priority,
}

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    match TABLE.parse(&arguments).and_then(|typed| plan(&typed)) {
        Ok(plan) => compare(plan).into(),
        Err(refused) => refuse(refused, exit::VERIFY_TROUBLE),
    }
}

fn plan(typed: &Typed) -> Result<Plan, Refused> {
    let [source, target] = typed.paths.as_slice() else {
        let message = format!("verify takes two paths, SRC and DST, not {}", typed.paths.len());
        return Err(Refused::Usage(message));
    };
    let sides = [place(source)?, place(target)?];
    let in_store = sides.iter().any(|side| matches!(side, Location::S3(_)));
    let local = |side: &Location| match side {
        Location::Local(path) => path.clone(),
        _ => PathBuf::new(),
    };
    let (source, target) = (local(&sides[0]), local(&sides[1]));
    let mut asked = Asked::default();
    // Of files in S3 only these travel, and only where that was asked for.
    let mut explicit = Aspects::NONE.with(Aspect::Type).with(Aspect::Size).with(Aspect::Content);
    let mut aspects = Aspects::DEFAULT;
    let mut times = Times::default();
    let mut nul = false;
    let mut plan = Plan {
        spec: Spec {
            source,
            target,
            aspects,
            times,
            one_way: false,
            filter: None,
            jobs: 1,
            open_files_max: 0,
        },
        objects: None,
        jobs: Jobs::Auto,
        told_max: u64::MAX,
        verbose: false,
        quiet: false,
        stats: false,
        json: false,
        priority: Priority::default(),
    };
    let mut effort = Effort::default();
    for given in &typed.options {
        let taken = asked.take(given).and_then(|taken| Ok(taken || effort.take(given)?));
        if taken.map_err(Refused::Usage)? {
            continue;
        }
        if in_store {
            explicit = fit(given.name, given.on, explicit)?;
        }
        let mut set = |aspect| {
            aspects = if given.on { aspects.with(aspect) } else { aspects.without(aspect) };
        };
        let number = || {
            let number = given.value.to_str().and_then(|text| text.parse::<i64>().ok());
            let value = given.value.display();
            number.ok_or_else(|| Refused::Usage(format!("--{}={value}: give a number", given.name)))
        };
        match given.name {
            "archive" => {
                let kept = Aspects::DEFAULT.without(Aspect::Content);
                kept.iter().for_each(&mut set);
            }
            "checksum" => set(Aspect::Content),
            "perms" => set(Aspect::Mode),
            "times" => set(Aspect::Time),
            "owner" => set(Aspect::Owner),
            "group" => set(Aspect::Group),
            "links" => set(Aspect::Link),
            "devices" => set(Aspect::Device),
            "hard-links" => set(Aspect::HardLinks),
            "acls" => set(Aspect::Acl),
            "xattrs" => set(Aspect::Xattrs),
            "sparse" => set(Aspect::Holes),
            "omit-dir-times" => times.omit_dirs = true,
            "omit-link-times" => times.omit_links = true,
            "modify-window" => times.window_s = u64::try_from(number()?).ok(),
            // These are rules in their order, and are read below.
            "filter" | "exclude" | "include" | "exclude-from" | "include-from" | "F"
            | "cvs-exclude" => {}
            "from0" => nul = given.on,
            "one-way" => plan.spec.one_way = true,
            "max-differences" => {
                plan.told_max = u64::try_from(number()?).map_err(|_| {
                    Refused::Usage("--max-differences takes no negative number".into())
                })?;
            }
            "verbose" => plan.verbose = true,
            "quiet" => plan.quiet = true,
            "stats" => plan.stats = true,
            "json" => plan.json = true,
            other => return Err(Refused::Usage(format!("--{other} is not known to verify"))),
        }
    }
    (plan.spec.aspects, plan.spec.times) = (aspects, times);
    (plan.jobs, plan.priority) = (effort.jobs, effort.priority);
    let context = filters::Context { nul, delete_excluded: false, protect_suffix: None };
    plan.spec.filter =
        filters::build(&typed.options, &context).map_err(|fatal| Refused::Usage(fatal.message))?;
    asked.only_with_objects(in_store).map_err(Refused::Usage)?;
    if in_store {
        let [source, target] = sides;
        let objects = asked.objects().map_err(Refused::Usage)?;
        plan.objects = Some(ObjectSpec {
            source,
            target,
            source_settings: objects.source,
            target_settings: objects.target,
            aspects: explicit,
            times,
            one_way: plan.spec.one_way,
            filter: plan.spec.filter.clone(),
            jobs: 0,
        });
    }
    Ok(plan)
}

/// What counts for objects after one more option.
fn fit(name: &str, on: bool, mut aspects: Aspects) -> Result<Aspects, Refused> {
    let mut set = |aspect| {
        aspects = if on { aspects.with(aspect) } else { aspects.without(aspect) };
    };
    match name {
        "checksum" => set(Aspect::Content),
        "perms" => set(Aspect::Mode),
        "times" => set(Aspect::Time),
        "archive" => [Aspect::Mode, Aspect::Time].into_iter().for_each(set),
        "owner" | "group" | "links" | "devices" | "hard-links" | "acls" | "xattrs" | "sparse"
        | "omit-dir-times" | "omit-link-times"
            if on =>
        {
            return Err(Refused::Usage(format!("--{name}: objects have nothing of the kind")));
        }
        _ => {}
    }
    Ok(aspects)
}

fn place(typed: &OsStr) -> Result<Location, Refused> {
    let refused = |fatal: Fatal| Refused::Usage(fatal.message);
    match Location::parse(typed).map_err(refused)? {
        url @ Location::S3(_) => Ok(url),
        _ => Location::parse_local(typed).map(Location::Local).map_err(refused),
    }
}

/// Compares; the exit code.
fn compare(mut plan: Plan) -> u8 {
    if let Err(message) = plan.priority.apply() {
        output::message(&message);
        return exit::VERIFY_TROUBLE;
    }
    plan.spec.open_files_max = tool::open_files_max();
    plan.spec.jobs = tool::workers(plan.jobs);
    let wanted = Wanted {
        command: "verify",
        json: plan.json,
        problems: plan.verbose,
        quiet: true,
        own_end: true,
        ..Wanted::default()
    };
    let show = match Show::new(wanted, Arc::default()) {
        Ok(show) => show,
        Err(message) => {
            output::message(&message);
            return exit::VERIFY_TROUBLE;
        }
    };
    // Between files the signal itself ends it: there is nothing to clean up.
    let control = Control::default();
    if plan.objects.is_some()
        && let Err(error) = signals::stop(&control, exit::VERIFY_TROUBLE)
    {
        output::message(&format!("signals will end this run at once: {error}"));
    }
    let (escape, told) = (Escape::of_locale(), AtomicU64::new(0));
    let report = |difference: &Difference<'_>| {
        if (plan.quiet && !plan.json) || told.fetch_add(1, Ordering::Relaxed) >= plan.told_max {
            return;
        }
        let mut out = Vec::with_capacity(128);
        match plan.json {
            true => forms::push_json(difference, &mut out),
            false => forms::push_text(difference, escape, &mut out),
        }
        show.print(&out);
    };
    let compared = match &mut plan.objects {
        Some(objects) => {
            objects.jobs = match plan.jobs {
                Jobs::Auto => hakobu_transfer::object::JOBS_SEED,
                Jobs::Fixed(jobs) => jobs,
            };
            verify::verify_objects(objects, &report, &control, &show)
        }
        None => verify::verify(&plan.spec, &report, &show),
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
    end(&plan, &show, &outcome, fatal, code)
}

fn end(plan: &Plan, show: &Show, outcome: &verify::Outcome, fatal: Option<Fatal>, code: u8) -> u8 {
    let counts = &outcome.counts;
    let used = hakobu_sys::process::usage();
    let mut rest = Vec::new();
    if plan.json {
        forms::push_summary(outcome, &used, code, &mut rest);
    } else if plan.stats {
        rest.extend_from_slice(forms::stats(counts).as_bytes());
    }
    show.print(&rest);
    let totals = Totals { failed: counts.failed, ..Totals::default() };
    let complete = show.finish(
        &Outcome { totals, took: outcome.took, jobs: outcome.jobs, fatal, ..Outcome::default() },
        code,
    );
    let untold = counts.differences.saturating_sub(plan.told_max);
    if untold > 0 && !plan.quiet {
        output::message(&format!(
            "{} more differences are not shown",
            crate::number::grouped(untold)
        ));
    }
    if (plan.verbose || std::io::stderr().is_terminal()) && !plan.quiet {
        output::message(&forms::sentence(outcome, &used));
    }
    if complete { code } else { exit::VERIFY_TROUBLE }
}
