//! `hakobu du`: coreutils' command line on the parallel meter.

mod line;
mod objects;
mod options;

use super::tool;
use super::tool::carry_out;
use crate::exit;
use crate::filters::ArgumentFilters;
use crate::names;
use crate::objects::are_s3;
use crate::options::Typed;
use crate::show::escape::Escape;
use crate::show::output::Output;
use crate::show::progress::{Progress, ProgressForm};
use hakobu_core::error::{Cause, Operation, quoted};
use hakobu_core::unit::Kind;
use hakobu_sys::paths::Links;
use hakobu_transfer::run::steered;
use hakobu_tree::usage::{Excludes, UsageMeter, UsageResult};
use line::{Lines, Sum};
use options::Plan;
pub(super) use options::TABLE;
use std::ffi::{CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    carry_out(TABLE.parse(&arguments), plan, |plan| match plan.places.is_empty() {
        true => measure(&plan),
        false => objects::measure(&plan),
    })
}

fn plan(typed: Typed) -> Result<Plan, String> {
    if are_s3(&typed.paths)? {
        return objects::plan(&typed);
    }
    let mut plan = TABLE.read(&typed, Plan::default())?;
    TABLE.check_places(&typed, false, false)?;
    plan.within = plan.limits.of_run(false)?;
    let options = &mut plan.options;
    if plan.summarize && options.files {
        let message = "-s and -a contradict each other: one line in all, or one for each file";
        return Err(message.into());
    }
    if plan.summarize {
        if let Some(depth) = options.depth_max.filter(|depth| *depth > 0) {
            return Err(format!("-s and --max-depth={depth} contradict each other"));
        }
        options.depth_max = Some(0);
    }
    plan.paths = typed.paths;
    if let Some(list) = &plan.list {
        if !plan.paths.is_empty() {
            return Err("--files0-from and arguments cannot be used together".into());
        }
        let names = names::read_list(list, &Links::Trusted, true, names::split_plain)?;
        plan.paths = names.into_iter().map(OsString::from_vec).collect();
    } else if plan.paths.is_empty() {
        plan.paths.push(".".into());
    }
    if let Some(note) = plan.filters.note(true)? {
        return Err(note.trim_start_matches("note: ").to_owned());
    }
    if let Some(filter) = plan.filters.of_names()? {
        plan.left_out = ArgumentFilters::new(&filter, &plan.paths)?;
    }
    Ok(plan)
}

/// Counts the arguments of a plan; returns the exit code.
fn measure(plan: &Plan) -> Result<u8, String> {
    plan.limits.priority.apply()?;
    let escape = Escape::of_locale();
    let out = Arc::new(Output::stdout());
    let failed = |path: &[u8], operation: Operation, cause: &Cause| {
        let json = plan.json.then_some(&*out);
        tool::fail_at(json, escape, operation, path, cause);
    };
    let mut tops = Vec::with_capacity(plan.paths.len());
    for path in &plan.paths {
        let top = CString::new(path.as_bytes());
        tops.push(top.map_err(|_| format!("{} cannot be a path", quoted(path)))?);
    }
    let paths: Vec<&Path> = plan.paths.iter().map(Path::new).collect();
    let rows = Arc::clone(&out);
    let progress =
        Progress::start(ProgressForm::of(None, plan.json, false), move |row| rows.write(row));
    let lines = Lines::new(plan, &out);
    let excludes = |top: &[u8], below: &[u8], kind: Kind| plan.left_out.excludes(top, below, kind);
    let excludes = (!plan.left_out.is_empty()).then_some(&excludes as Excludes<'_>);
    let shows = |size| plan.threshold.is_none_or(|threshold| threshold.shows(size));
    let ((sum, failures), _) = steered(&paths, plan.within, |controls, capacity| {
        progress.begins(&controls.meter);
        let meter = UsageMeter::new(
            plan.options,
            &tops,
            controls,
            capacity.open_dirs_max,
            excludes,
            &failed,
        );
        let mut sum = Sum::default();
        for top in &tops {
            let measured = meter.measure(top, &mut |path, bytes| {
                if shows(bytes) {
                    lines.write(Some(path), None, Sum { bytes, objects: 0 });
                }
            });
            if let UsageResult::Bytes(bytes) = measured {
                sum.bytes += bytes;
            }
        }
        (sum, meter.failures())
    });
    progress.finish();
    if plan.total {
        lines.write(None, None, sum);
    }
    Ok(tool::close(&out, if failures > 0 { exit::FAILURE } else { exit::OK }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(line: &str) -> Result<Plan, String> {
        plan(TABLE.parse_line(line)?)
    }

    #[test]
    fn lines_look_like_those_of_coreutils() {
        let (out, sum) = (Output::stdout(), Sum { bytes: 1500, objects: 0 });
        for (options, text) in [
            ("", "2\tname\n"),
            ("-b", "1500\tname\n"),
            ("-h", "1.5K\tname\n"),
            ("-hk", "2\tname\n"),
            ("-bm", "1\tname\n"),
            ("-b0", "1500\tname\0"),
            ("--json", "{\"event\":\"usage\",\"path\":\"name\",\"bytes\":1500}\n"),
        ] {
            let plan = planned(options).unwrap();
            let found = Lines::new(&plan, &out).line(Some(b"name"), None, sum);
            assert_eq!(String::from_utf8_lossy(&found), text, "{options}");
        }
    }

    #[test]
    fn contradictions_are_named() {
        for (options, start) in [
            ("-sa", "-s and -a"),
            ("-s -d 1", "-s and --max-depth=1"),
            ("-d x", "--max-depth=x"),
            ("-j x", "-j 'x'"),
            ("--time", "--time is not supported"),
            ("-B 0", "--block-size=0"),
            ("-t -0", "--threshold=-0"),
            ("--files0-from=/dev/null t", "--files0-from and arguments"),
            ("--include=*.o t", "--include '*.o' changes nothing"),
        ] {
            assert!(planned(options).unwrap_err().starts_with(start), "{options}");
        }
        assert_eq!(planned("-s -d 0").unwrap().options.depth_max, Some(0));
        assert_eq!(planned("").unwrap().paths, ["."]);
    }
}
