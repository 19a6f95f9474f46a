//! `hakobu du`: coreutils' command line on the parallel meter.

mod objects;
mod options;
mod plan;

use super::line::carry_out;
use super::tool;
use crate::exit;
use crate::number::ceiled;
use crate::objects::are_s3;
use crate::options::Typed;
use crate::show::escape::Escape;
use crate::show::json::{Paths, push_line};
use crate::show::output::{self, Output};
use crate::show::progress::{Form, Progress};
use crate::show::screen;
use hakobu_core::error::{Cause, quoted};
use hakobu_transfer::run::steered;
use hakobu_tree::usage::{Measured, Meter};
pub(super) use options::TABLE;
use plan::{Plan, Unit};
use serde::Serialize;
use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    carry_out(TABLE.parse(&arguments), what, |what| match what {
        What::Local(plan) => measure(&plan),
        What::Objects(plan) => objects::measure(&plan),
    })
}

/// Kind of locations.
enum What {
    Local(Box<Plan>),
    Objects(Box<objects::Plan>),
}

fn what(typed: Typed) -> Result<What, String> {
    if !are_s3(&typed.paths)? {
        return plan(typed).map(|plan| What::Local(Box::new(plan)));
    }
    let planned = objects::plan(&typed)?;
    Ok(What::Objects(Box::new(planned)))
}

fn plan(typed: Typed) -> Result<Plan, String> {
    let mut plan = TABLE.read(&typed, Plan::default())?;
    TABLE.check_places(&typed, false, false)?;
    plan.rates = plan.limits.rates()?;
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
    if plan.paths.is_empty() {
        plan.paths.push(".".into());
    }
    Ok(plan)
}

/// Counts the arguments of a plan; returns the exit code.
fn measure(plan: &Plan) -> u8 {
    if let Err(message) = plan.limits.priority.apply() {
        output::message(&message);
        return exit::FAILURE;
    }
    let escape = Escape::of_locale();
    let out = Arc::new(Output::stdout());
    let failed = |path: &[u8], operation: hakobu_core::error::Operation, cause: &Cause| {
        let json = plan.json.then_some(&*out);
        tool::fail_at(json, escape, operation, path, cause);
    };
    let mut tops = Vec::with_capacity(plan.paths.len());
    for path in &plan.paths {
        match CString::new(path.as_bytes()) {
            Ok(top) => tops.push(top),
            Err(_) => {
                output::message(&format!("{} cannot be a path", quoted(path)));
                return exit::FAILURE;
            }
        }
    }
    let paths: Vec<&Path> = plan.paths.iter().map(Path::new).collect();
    let lines = Arc::clone(&out);
    let progress = Progress::start(Form::of(None, plan.json, false), move |line| lines.write(line));
    let ((sum, failures), _) = steered(&paths, plan.limits.jobs, plan.rates, |controls, limits| {
        progress.begins(&controls.meter);
        let meter = Meter::new(plan.options, &tops, controls, limits.open_dirs_max, &failed);
        let mut sum = 0;
        for top in &tops {
            let measured = meter.measure(top, &mut |path, bytes| {
                let escaped = out.is_terminal() && plan.end == b'\n';
                let text = line(plan, path, bytes, escaped.then_some(escape));
                screen::beside(|| out.write(&text));
            });
            if let Measured::Bytes(bytes) = measured {
                sum += bytes;
            }
        }
        (sum, meter.failures())
    });
    progress.finish();
    if plan.total {
        out.write(&match plan.json {
            true => json("total", None, sum),
            false => line(plan, b"total", sum, None),
        });
    }
    if let Some(error) = out.finish() {
        output::message(&format!("cannot write standard output: {}", Cause::System(error)));
        return exit::FAILURE;
    }
    if failures > 0 { exit::FAILURE } else { exit::OK }
}

#[derive(Serialize)]
struct Json<'a> {
    event: &'static str,
    #[serde(flatten)]
    paths: Paths<'a>,
    bytes: u64,
}

fn json(event: &'static str, path: Option<&Path>, bytes: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    push_line(&Json { event, paths: Paths(&[("path", path)]), bytes }, &mut out);
    out
}

fn line(plan: &Plan, path: &[u8], bytes: u64, escape: Option<Escape>) -> Vec<u8> {
    if plan.json {
        return json("usage", Some(tool::path(path)), bytes);
    }
    let size = match plan.unit {
        Unit::Human => ceiled(bytes),
        Unit::Bytes(unit) => bytes.div_ceil(unit).to_string(),
    };
    let mut out = Vec::with_capacity(size.len() + path.len() + 2);
    out.extend_from_slice(size.as_bytes());
    out.push(b'\t');
    match escape {
        Some(escape) => escape.push(path, &mut out),
        None => out.extend_from_slice(path),
    }
    out.push(plan.end);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Refused;

    fn planned(line: &str) -> Result<Plan, String> {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        TABLE.parse(&arguments).and_then(|typed| plan(typed).map_err(Refused::Usage)).map_err(
            |stop| match stop {
                Refused::Help(_) => "help".into(),
                Refused::Usage(message) | Refused::Failed { message, .. } => message,
            },
        )
    }

    #[test]
    fn lines_look_like_those_of_coreutils() {
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
            let found = line(&plan, b"name", 1500, None);
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
            ("-S", "-S is not supported"),
        ] {
            assert!(planned(options).unwrap_err().starts_with(start), "{options}");
        }
        assert_eq!(planned("-s -d 0").unwrap().options.depth_max, Some(0));
        assert_eq!(planned("").unwrap().paths, ["."]);
    }
}
