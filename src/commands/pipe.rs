//! `hakobu pipe`: standard input into an object.

use super::tool;
use super::tool::carry_out;
use crate::cli::{Opt, Refused, Table, Typed, flag, parts};
use crate::commands::session::stop_on_signals;
use crate::exit;
use crate::limits::{self, LimitArgs};
use crate::objects::{self, ObjectArgs};
use crate::show::json::{Paths, line};
use crate::show::output::{self, Output};
use crate::show::progress::{Progress, ProgressForm};
use hakobu_core::error::{Cause, quoted};
use hakobu_core::language::Language;
use hakobu_core::meter::Meter;
use hakobu_s3::ops::head_object;
use hakobu_s3::{Error, ErrorKind, S3Session, with_session};
use hakobu_sys::stdio;
use hakobu_transfer::location::S3Url;
use hakobu_transfer::object::{ObjectStream, content_type, upload_stream};
use hakobu_transfer::run::Objects;
use http::HeaderValue;
use http::header::{CONTENT_TYPE, IF_NONE_MATCH};
use serde::Serialize;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// Default limit on bytes in flight.
const MEMORY_BYTES_MAX: u64 = 256 << 20;

/// The command line of `pipe`.
pub static TABLE: Table<PipeArgs> = Table {
    command: "pipe",
    about: "Upload standard input to an object",
    description: "A stream of any length is uploaded in parts; the object appears when the stream \
            has ended and everything arrived.",
    usage: "hakobu pipe [OPTIONS] s3://BUCKET/KEY",
    examples: &[
        ("tar c src | hakobu pipe s3://data/src.tar", "Store a stream as an object."),
        (
            "gzip -c src/a.txt | hakobu pipe --content-type application/gzip s3://data/a.gz",
            "Store it with a content type.",
        ),
    ],
    common: &[],
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
pub struct PipeArgs {
    objects: ObjectArgs,
    limits: LimitArgs,
    keeps: bool,
    json: bool,
}

parts!(PipeArgs { objects: ObjectArgs, limits: LimitArgs });

const OPTIONS: &[Opt<PipeArgs>] = &[
    flag("no-clobber", Some('n'), "never replace an object").sets(|it, on| it.keeps = on),
    flag("json", None, "a JSON line on standard output").sets(|it, on| it.json = on),
];

/// The parsed command line.
struct PipeOptions {
    objects: Objects,
    limits: LimitArgs,
    /// An existing object stays, which is not a failure.
    keeps: bool,
    json: bool,
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

fn plan(typed: &Typed) -> Result<PipeOptions, String> {
    let PipeArgs { objects: args, limits, keeps, json } = TABLE.read(typed, PipeArgs::default())?;
    let [path] = typed.paths.as_slice() else {
        return Err("missing object: s3://BUCKET/KEY".into());
    };
    let url = objects::object_url(path)?;
    if url.key.ends_with(b"/") {
        return Err("a key that ends with a slash means a prefix".into());
    }
    let mut objects = args.objects()?;
    objects.options.if_none_match |= keeps;
    limits.check_memory(objects.options.part_bytes)?;
    Ok(PipeOptions { objects, limits, keeps, json, path: path.clone(), url })
}

fn upload(
    PipeOptions { objects, limits, keeps, json, path, url }: PipeOptions,
) -> Result<u8, String> {
    limits.priority.apply()?;
    // A closed standard input is not an empty one: nothing is replaced.
    let input = match stdio::input() {
        Ok(input) => input,
        Err(error) => {
            let cause = Cause::System(error);
            return Ok(failed("read", &"standard input".into(), &cause, json));
        }
    };
    let store = S3Session::open(&objects.target).map_err(|error| error.to_string())?;
    // Some servers ignore `If-None-Match`, so the object is also looked at.
    match keeps.then(|| is_there(&store, &url)) {
        Some(Ok(true)) => return Ok(kept(&path, json)),
        // An account that may only write relies on the condition of the upload.
        Some(Err(error)) if error.kind == ErrorKind::AccessDenied => {}
        Some(Err(error)) => return Ok(failed("look at", &path, &error, json)),
        Some(Ok(false)) | None => {}
    }
    let control = hakobu_transfer::run::Control::default();
    stop_on_signals(&control, exit::FAILURE, "this run");
    let options = objects.options;
    let mut headers = options.headers;
    if options.if_none_match {
        headers.push((IF_NONE_MATCH, HeaderValue::from_static("*")));
    }
    let typed_content = headers.iter().any(|(name, _)| *name == CONTENT_TYPE);
    if options.guess_content_type && !typed_content {
        headers.push((CONTENT_TYPE, content_type(&url.key)));
    }
    let meter = Arc::new(Meter::new(1));
    let progress = Progress::start(ProgressForm::of(None, false, false), Language::English, |_| {});
    progress.begins(&meter);
    let limiter = limits.base.byte_limiter();
    let stream = ObjectStream {
        store: &store,
        bucket: &url.bucket,
        key: &url.key,
        headers,
        part_bytes: options.part_bytes,
        concurrency: options.concurrency,
        memory_bytes_max: limits.base.memory_bytes_max.unwrap_or(MEMORY_BYTES_MAX),
        limiter: limiter.as_ref(),
        control: &control,
        progress: &|bytes| meter.lane(0).bytes(bytes),
    };
    Ok(match upload_stream(&stream, input) {
        Ok(_) => said(&path, "uploaded", json, exit::OK),
        Err(error)
            if keeps
                && error.kind == ErrorKind::Precondition
                && is_there(&store, &url).is_ok_and(|there| there) =>
        {
            kept(&path, json)
        }
        Err(error) => failed("write", &path, &error, json),
    })
}

/// Returns whether there is an object.
fn is_there(store: &Arc<S3Session>, url: &S3Url) -> Result<bool, Error> {
    match with_session(store, async |client| {
        head_object(&client, &url.bucket, &url.key, None).await
    }) {
        Ok(_) => Ok(true),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Reports an object that stays as it was.
fn kept(path: &OsString, json: bool) -> u8 {
    if !json {
        output::message(&format!("note: {} already exists and is kept", quoted(path)));
    }
    said(path, "kept", json, exit::OK)
}

/// Reports a failure; returns the exit code.
fn failed(operation: &str, path: &OsString, error: &dyn std::fmt::Display, json: bool) -> u8 {
    let out = Output::stdout();
    tool::fail(json.then_some(&out), operation, path, error);
    tool::close(&out, exit::FAILURE)
}

/// Prints the JSON line of an object, if asked for.
fn said(path: &OsString, event: &'static str, json: bool, code: u8) -> u8 {
    #[derive(Serialize)]
    struct Line<'a> {
        event: &'static str,
        #[serde(flatten)]
        paths: Paths<'a>,
    }
    let out = Output::stdout();
    if json {
        out.write(&line(&Line { event, paths: Paths(&[("object", Some(Path::new(path)))]) }));
    }
    tool::close(&out, code)
}
