//! `hakobu du`: coreutils' command line on the parallel meter.

mod objects;

use super::{refuse, tool};
use crate::number::ceiled;
use crate::objects::{Asked, is_s3};
use crate::options::du::TABLE;
use crate::options::{Refused, Typed};
use crate::show::escape::Escape;
use crate::show::json::{Paths, push_line};
use crate::show::output::{self, Output};
use crate::{exit, jobs};
use hakobu_transfer::engine::usage::{Measured, Meter, Options};
use hakobu_transfer::error::{Cause, quoted};
use hakobu_transfer::unit::Jobs;
use serde::Serialize;
use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

/// How sizes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// Multiples of so many bytes, rounded up.
    Bytes(u64),
    /// `1.5M`.
    Human,
}

/// What was asked for.
#[derive(Debug)]
struct Plan {
    options: Options,
    unit: Unit,
    total: bool,
    end: u8,
    json: bool,
    jobs: Jobs,
    paths: Vec<OsString>,
}

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    match TABLE.parse(&arguments).and_then(what) {
        Ok(What::Local(plan)) => measure(&plan).into(),
        Ok(What::Objects(plan)) => objects::measure(&plan).into(),
        Err(refused) => refuse(refused, exit::USAGE),
    }
}

/// What is counted.
enum What {
    Local(Plan),
    Objects(Box<objects::Plan>),
}

fn what(typed: Typed) -> Result<What, Refused> {
    let stored = typed.paths.iter().filter(|path| is_s3(path)).count();
    if stored == 0 {
        return plan(typed).map(What::Local);
    }
    if stored < typed.paths.len() {
        return Err(Refused::Usage("paths are either all local or all in s3://".into()));
    }
    let planned = objects::plan(&typed).map_err(Refused::Usage)?;
    Ok(What::Objects(Box::new(planned)))
}

fn plan(typed: Typed) -> Result<Plan, Refused> {
    let mut options = Options::default();
    let mut plan = Plan {
        options,
        unit: Unit::Bytes(1024),
        total: false,
        end: b'\n',
        json: false,
        jobs: Jobs::Auto,
        paths: typed.paths,
    };
    let mut summarize = false;
    let mut asked = Asked::default();
    for given in &typed.options {
        if asked.take(given).map_err(Refused::Usage)? {
            continue;
        }
        match given.name {
            "summarize" => summarize = true,
            "all" => options.files = true,
            "max-depth" => {
                let depth = given.value.to_str().and_then(|text| text.parse().ok());
                options.depth_max = Some(depth.ok_or_else(|| {
                    Refused::Usage(format!("--max-depth={}: give a number", given.value.display()))
                })?);
            }
            "total" => plan.total = true,
            "human-readable" => plan.unit = Unit::Human,
            "apparent-size" => options.apparent = true,
            "bytes" => (options.apparent, plan.unit) = (true, Unit::Bytes(1)),
            "k" => plan.unit = Unit::Bytes(1 << 10),
            "m" => plan.unit = Unit::Bytes(1 << 20),
            "count-links" => options.count_links = true,
            "one-file-system" => options.one_file_system = true,
            "null" => plan.end = 0,
            "jobs" => {
                let cpus = hakobu_sys::process::cpus();
                plan.jobs = jobs::parse(&given.value, cpus).map_err(Refused::Usage)?;
            }
            "objects" => {
                let message = "--objects is for s3:// locations, and none is given";
                return Err(Refused::Usage(message.into()));
            }
            "json" => plan.json = true,
            other => return Err(Refused::Usage(format!("--{other} is not known to du"))),
        }
    }
    asked.only_with_objects(false).map_err(Refused::Usage)?;
    if summarize && options.files {
        let message = "-s and -a contradict each other: one line in all, or one for each file";
        return Err(Refused::Usage(message.into()));
    }
    if summarize {
        if let Some(depth) = options.depth_max.filter(|depth| *depth > 0) {
            return Err(Refused::Usage(format!(
                "-s and --max-depth={depth} contradict each other"
            )));
        }
        options.depth_max = Some(0);
    }
    if plan.paths.is_empty() {
        plan.paths.push(".".into());
    }
    plan.options = options;
    Ok(plan)
}

/// Counts what the plan names; the exit code.
fn measure(plan: &Plan) -> u8 {
    let escape = Escape::of_locale();
    let out = Output::stdout();
    let failed = |path: &[u8], operation: hakobu_transfer::error::Operation, cause: &Cause| {
        let shown = escape.path(tool::path(path));
        output::message(&format!("cannot {} '{shown}': {cause}", operation.words()));
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
    let limit = tool::open_files_max();
    let meter = Meter::new(plan.options, &tops, tool::workers(plan.jobs), limit, &failed);
    let mut sum = 0;
    for top in &tops {
        let measured = meter.measure(top, &mut |path, bytes| {
            let escaped = out.is_terminal() && plan.end == b'\n';
            out.write(&line(plan, path, bytes, escaped.then_some(escape)));
        });
        if let Measured::Bytes(bytes) = measured {
            sum += bytes;
        }
    }
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
    if meter.failures() > 0 { exit::FAILURE } else { exit::OK }
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

    fn planned(line: &str) -> Result<Plan, String> {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        TABLE.parse(&arguments).and_then(plan).map_err(|stop| match stop {
            Refused::Help(_) => "help".into(),
            Refused::Usage(message) | Refused::Failed { message, .. } => message,
        })
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
            ("--time", "--time is not built"),
            ("-S", "-S is not built"),
        ] {
            assert!(planned(options).unwrap_err().starts_with(start), "{options}");
        }
        assert_eq!(planned("-s -d 0").unwrap().options.depth_max, Some(0));
        assert_eq!(planned("").unwrap().paths, ["."]);
    }
}
