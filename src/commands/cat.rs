//! `hakobu cat`: objects to standard output.

use super::{refuse, tool};
use crate::effort::Effort;
use crate::exit;
use crate::objects::{self, Asked};
use crate::options::tools::CAT;
use crate::options::{Refused, Typed};
use crate::show::output;
use hakobu_transfer::error::Cause;
use hakobu_transfer::location::S3Url;
use hakobu_transfer::object::{StreamError, download_stream};
use hakobu_transfer::s3::ops::Range;
use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

struct Plan {
    asked: Asked,
    effort: Effort,
    range: Option<Range>,
    places: Vec<(OsString, S3Url)>,
}

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let typed = CAT.parse(&arguments);
    match typed.and_then(|typed| plan(&typed).map_err(Refused::Usage)) {
        Ok(plan) => show(&plan).into(),
        Err(refused) => refuse(refused, exit::USAGE),
    }
}

fn plan(typed: &Typed) -> Result<Plan, String> {
    let (asked, effort) = (Asked::default(), Effort::default());
    let mut plan = Plan { asked, effort, range: None, places: Vec::new() };
    for given in &typed.options {
        if plan.asked.take(given)? || plan.effort.take(given)? {
            continue;
        }
        match given.name {
            "range" => {
                plan.range = Some(range(&given.value).ok_or_else(|| {
                    format!("--range={} is not FIRST-LAST", given.value.display())
                })?);
            }
            name => return Err(format!("--{name} is not known to cat")),
        }
    }
    plan.places =
        objects::all(&typed.paths, objects::object_url, "give an object: s3://BUCKET/KEY")?;
    Ok(plan)
}

/// `FIRST-LAST` or `FIRST-`, both counted from 0, the last one included.
fn range(text: &OsStr) -> Option<Range> {
    let (first, last) = text.to_str()?.split_once('-')?;
    let start = first.parse().ok()?;
    let end = if last.is_empty() { u64::MAX } else { last.parse::<u64>().ok()?.checked_add(1)? };
    (start < end).then_some(Range { start, end })
}

fn show(plan: &Plan) -> u8 {
    if let Err(message) = plan.effort.priority.apply() {
        output::message(&message);
        return exit::FAILURE;
    }
    let store = match tool::open(&plan.asked) {
        Ok(store) => store,
        Err(code) => return code,
    };
    let mut code = exit::OK;
    let mut out = std::io::stdout().lock();
    for (typed, url) in &plan.places {
        let version = plan.asked.version();
        let done = download_stream(&store, &url.bucket, &url.key, version, plan.range, &mut out);
        let done = done.and_then(|_| out.flush().map_err(StreamError::Write));
        match done {
            Ok(()) => {}
            Err(StreamError::Request(error)) => {
                tool::fail("read", typed, &error);
                code = exit::FAILURE;
                if error.stops_run() {
                    break;
                }
            }
            // Nobody reads on (`| head`).
            Err(StreamError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => break,
            Err(StreamError::Write(error)) => {
                tool::fail("write", "standard output", &Cause::System(error));
                return exit::FAILURE;
            }
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        for (text, expected) in [
            ("0-0", Some((0, 1))),
            ("5-9", Some((5, 10))),
            ("5-", Some((5, u64::MAX))),
            ("-5", None),
            ("9-5", None),
            ("x-1", None),
            ("5", None),
        ] {
            let found = range(OsStr::new(text)).map(|range| (range.start, range.end));
            assert_eq!(found, expected, "{text}");
        }
    }
}
