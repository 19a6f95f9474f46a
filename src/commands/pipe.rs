//! `hakobu pipe`: standard input into an object.

use super::line::carry_out;
use super::tool;
use crate::limits::{self, Limits};
use crate::objects::{self, ObjectArgs};
use crate::options::{Opt, Refused, Table, Typed, flag, parts};
use crate::show::output;
use crate::show::progress::{Form, Progress};
use crate::{exit, signals};
use hakobu_core::limit::Limiter;
use hakobu_core::meter::Meter;
use hakobu_s3::Store;
use hakobu_transfer::location::S3Url;
use hakobu_transfer::object::{Stream, content_type, upload_stream};
use hakobu_transfer::run::Objects;
use http::HeaderValue;
use http::header::{CONTENT_TYPE, IF_NONE_MATCH};
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

/// Default limit on bytes in flight.
const MEMORY_BYTES_MAX: u64 = 256 << 20;

/// The command line of `pipe`.
pub const TABLE: Table<Reading> = Table {
    command: "pipe",
    about: "Upload standard input to an object, in parts if it is large",
    usage: "hakobu pipe [OPTIONS] s3://BUCKET/KEY",
    after: tool::EXIT,
    options: &[
        &OPTIONS,
        &objects::COMMON,
        &objects::RAW,
        &objects::WRITE,
        &objects::SSE_C,
        &limits::BWLIMIT,
        &limits::MEMORY,
        &limits::PRIORITY,
    ],
    unbuilt: &[objects::UNBUILT],
    abbreviates: false,
};

/// The options read so far.
#[derive(Default)]
pub struct Reading {
    objects: ObjectArgs,
    limits: Limits,
    keeps: bool,
}

parts!(Reading { objects: ObjectArgs, limits: Limits });

const OPTIONS: &[Opt<Reading>] =
    &[flag("no-clobber", Some('n'), "never replace an object").sets(|it, on| it.keeps = on)];

/// The parsed command line.
struct Plan {
    objects: Objects,
    limits: Limits,
    path: OsString,
    url: S3Url,
}

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    begin(TABLE.parse(&arguments))
}

/// Runs a parsed command line.
pub fn begin(typed: Result<Typed, Refused>) -> ExitCode {
    carry_out(typed, |typed| plan(&typed), upload)
}

fn plan(typed: &Typed) -> Result<Plan, String> {
    let Reading { objects: args, limits, keeps } = TABLE.read(typed, Reading::default())?;
    let [path] = typed.paths.as_slice() else {
        return Err("give one object: s3://BUCKET/KEY".into());
    };
    let url = objects::object_url(path)?;
    if url.key.ends_with(b"/") {
        return Err("a key that ends with a slash stands for a prefix".into());
    }
    let mut objects = args.objects()?;
    objects.options.if_none_match |= keeps;
    limits.check_memory(objects.options.part_bytes)?;
    Ok(Plan { objects, limits, path: path.clone(), url })
}

fn upload(Plan { objects, limits, path, url }: Plan) -> u8 {
    if let Err(message) = limits.priority.apply() {
        output::message(&message);
        return exit::FAILURE;
    }
    let store = match Store::open(&objects.target) {
        Ok(store) => store,
        Err(error) => {
            output::message(&error.to_string());
            return exit::FAILURE;
        }
    };
    let control = hakobu_transfer::run::Control::default();
    if let Err(error) = signals::stop(&control, exit::FAILURE) {
        output::message(&format!("signals will end this run at once: {error}"));
    }
    let options = objects.options;
    let mut headers = options.headers;
    if options.if_none_match {
        headers.push((IF_NONE_MATCH, HeaderValue::from_static("*")));
    }
    let typed_content = headers.iter().any(|(name, _)| *name == CONTENT_TYPE);
    if options.guess_content_type && !typed_content {
        headers.extend(content_type(&url.key).map(|value| (CONTENT_TYPE, value)));
    }
    let meter = Arc::new(Meter::new(1));
    let progress = Progress::start(Form::of(None, false, false), |_| {});
    progress.begins(&meter);
    let limiter = limits.bytes_per_s_max.map(Limiter::new);
    let stream = Stream {
        store: &store,
        bucket: &url.bucket,
        key: &url.key,
        headers,
        part_bytes: options.part_bytes,
        concurrency: options.concurrency,
        memory_bytes_max: limits.memory_bytes_max.unwrap_or(MEMORY_BYTES_MAX),
        limiter: limiter.as_ref(),
        control: &control,
        progress: &|bytes| meter.lane(0).bytes(bytes),
    };
    match upload_stream(&stream, std::io::stdin()) {
        Ok(_) => exit::OK,
        Err(error) => {
            tool::fail("write", path, &error);
            exit::FAILURE
        }
    }
}
