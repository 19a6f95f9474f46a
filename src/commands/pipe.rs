//! `hakobu pipe`: standard input into an object.

use super::{refuse, tool};
use crate::effort::Effort;
use crate::objects::{self, Asked};
use crate::options::tools::PIPE;
use crate::options::{Refused, Typed};
use crate::show::output;
use crate::{exit, signals};
use hakobu_transfer::limit::Limiter;
use hakobu_transfer::location::S3Url;
use hakobu_transfer::object::{Stream, content_type, upload_stream};
use hakobu_transfer::run::Objects;
use hakobu_transfer::s3::Store;
use http::HeaderValue;
use http::header::{CONTENT_TYPE, IF_NONE_MATCH};
use std::ffi::OsString;
use std::process::ExitCode;

/// Bytes in flight, unless told otherwise.
const MEMORY_BYTES_MAX: u64 = 256 << 20;

/// What was asked for.
struct Plan {
    objects: Objects,
    effort: Effort,
    path: OsString,
    url: S3Url,
}

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let typed = PIPE.parse(&arguments);
    match typed.and_then(|typed| plan(&typed).map_err(Refused::Usage)) {
        Ok(plan) => upload(plan).into(),
        Err(refused) => refuse(refused, exit::USAGE),
    }
}

fn plan(typed: &Typed) -> Result<Plan, String> {
    let (mut asked, mut effort) = (Asked::default(), Effort::default());
    for given in &typed.options {
        if !asked.take(given)? && !effort.take(given)? {
            return Err(format!("--{} is not known to pipe", given.name));
        }
    }
    let [path] = typed.paths.as_slice() else {
        return Err("give one object: s3://BUCKET/KEY".into());
    };
    let url = objects::object_url(path)?;
    if url.key.ends_with(b"/") {
        return Err("a key that ends with a slash stands for a prefix".into());
    }
    let objects = asked.objects()?;
    effort.check_memory(objects.options.part_bytes)?;
    Ok(Plan { objects, effort, path: path.clone(), url })
}

fn upload(Plan { objects, effort, path, url }: Plan) -> u8 {
    if let Err(message) = effort.priority.apply() {
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
    let limiter = effort.bytes_per_s_max.map(Limiter::new);
    let stream = Stream {
        store: &store,
        bucket: &url.bucket,
        key: &url.key,
        headers,
        part_bytes: options.part_bytes,
        concurrency: options.concurrency,
        memory_bytes_max: effort.memory_bytes_max.unwrap_or(MEMORY_BYTES_MAX),
        limiter: limiter.as_ref(),
        control: &control,
        progress: &|_| {},
    };
    match upload_stream(&stream, std::io::stdin()) {
        Ok(_) => exit::OK,
        Err(error) => {
            tool::fail("write", path, &error);
            exit::FAILURE
        }
    }
}
