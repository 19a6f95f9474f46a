//! `hakobu head` (and `stat`): the headers of an object, and whether a bucket exists.

use super::tool;
use super::tool::carry_out;
use crate::cli::{JSON, Opt, Table, Typed, parts};
use crate::objects::{self, ObjectArgs};
use crate::show::json::push_line;
use hakobu_s3::ops::{ObjectHead, head_bucket, head_object};
use hakobu_s3::{Client, Error};
use hakobu_transfer::location::S3Url;
use serde::Serialize;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

/// The command line of `head`.
pub static TABLE: Table<HeadOptions> = Table {
    command: "head",
    about: "Show the headers of objects, or whether buckets exist",
    description: "Prints the size, time, checksum and metadata of each object without reading it.",
    usage: "hakobu head [OPTIONS] s3://BUCKET[/KEY]...",
    examples: &[
        ("hakobu head s3://data/notes.txt", "Show the headers of an object."),
        ("hakobu head --json s3://data/notes.txt", "Show the metadata of an object as JSON."),
    ],
    common: &[],
    after: tool::EXIT,
    options: &[&OPTIONS, &objects::ONE, &objects::SSE_C],
    unbuilt: &[objects::UNBUILT],
    abbreviates: false,
};

#[derive(Default)]
pub struct HeadOptions {
    objects: ObjectArgs,
    json: bool,
    places: Vec<(OsString, S3Url)>,
}

parts!(HeadOptions { objects: ObjectArgs });

const OPTIONS: &[Opt<HeadOptions>] = &[JSON.sets(|plan, on| plan.json = on)];

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    carry_out(TABLE.parse(&arguments), |typed| plan(&typed), |plan| show(&plan))
}

fn plan(typed: &Typed) -> Result<HeadOptions, String> {
    let mut plan = TABLE.read(typed, HeadOptions::default())?;
    plan.objects.check_key()?;
    let with_bucket = |typed: &OsStr| {
        let url = objects::url(typed)?;
        match url.bucket.is_empty() {
            true => Err("s3:// names no bucket: give s3://BUCKET or s3://BUCKET/KEY".to_owned()),
            false => Ok(url),
        }
    };
    let lacking = "missing object or bucket: s3://BUCKET[/KEY]";
    plan.places = objects::all(&typed.paths, with_bucket, lacking)?;
    Ok(plan)
}

fn show(plan: &HeadOptions) -> Result<u8, String> {
    let store = tool::open(&plan.objects)?;
    let is_first = Cell::new(true);
    Ok(tool::each(&store, plan.json, "look at", &plan.places, async |client, typed, url| {
        let mut text = Vec::new();
        if !is_first.replace(false) && !plan.json {
            text.push(b'\n');
        }
        look(plan, client, url, &typed.to_string_lossy(), &mut text).await?;
        Ok(text)
    }))
}

async fn look(
    plan: &HeadOptions,
    client: &Client,
    url: &S3Url,
    name: &str,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    if url.key.is_empty() {
        head_bucket(client, &url.bucket).await?;
        match plan.json {
            true => push_line(&Bucket { event: "bucket", bucket: &url.bucket }, out),
            false => out.extend_from_slice(format!("Bucket: {}\n", url.bucket).as_bytes()),
        }
        return Ok(());
    }
    let head = head_object(client, &url.bucket, &url.key, plan.objects.version()).await?;
    match plan.json {
        true => push_line(&Object::of(name, &head), out),
        false => lines(name, &head, out),
    }
    Ok(())
}

#[derive(Serialize)]
struct Bucket<'a> {
    event: &'static str,
    bucket: &'a str,
}

#[derive(Serialize)]
struct Object<'a> {
    event: &'static str,
    object: &'a str,
    bytes: u64,
    mtime_s: i64,
    etag: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<&'a str>,
    storage_class: &'a str,
    checksums: BTreeMap<&'static str, String>,
    metadata: BTreeMap<&'a str, &'a str>,
    headers: BTreeMap<&'a str, String>,
}

impl<'a> Object<'a> {
    fn of(name: &'a str, head: &'a ObjectHead) -> Object<'a> {
        let checksums = head.checksums.iter().map(|sum| (sum.algorithm.name(), sum.encode()));
        let metadata = head.metadata.iter().map(|(name, value)| (&**name, &**value));
        let headers = head.headers.iter().map(|(name, value)| {
            (name.as_str(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        });
        Object {
            event: "object",
            object: name,
            bytes: head.size,
            mtime_s: head.mtime.s,
            etag: &head.etag,
            version: head.version.as_deref(),
            content_type: head.content_type.as_deref(),
            storage_class: tool::class(&head.storage_class),
            checksums: checksums.collect(),
            metadata: metadata.collect(),
            headers: headers.collect(),
        }
    }
}

/// Appends the most important values, and the other headers below.
fn lines(name: &str, head: &ObjectHead, out: &mut Vec<u8>) {
    let object = Object::of(name, head);
    let mut line = |label: &str, value: &str| {
        // Values come from the server: they must not contain control characters.
        let value: String = value.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        out.extend_from_slice(format!("{label}: {value}\n").as_bytes());
    };
    line("Object", name);
    line("Size", &object.bytes.to_string());
    let time = jiff::Timestamp::from_second(object.mtime_s).map(|time| time.to_string());
    line("Last modified", &time.unwrap_or_default());
    line("ETag", object.etag);
    line("Storage class", object.storage_class);
    for (label, value) in [("Version", object.version), ("Content type", object.content_type)] {
        if let Some(value) = value {
            line(label, value);
        }
    }
    for (algorithm, value) in &object.checksums {
        line(&format!("Checksum {algorithm}"), value);
    }
    for (name, value) in &object.metadata {
        line(&format!("Metadata {name}"), value);
    }
    const MAIN: &[&str] = &["content-length", "last-modified", "etag", "content-type"];
    for (name, value) in &object.headers {
        let is_main = MAIN.contains(name)
            || ["x-amz-meta-", "x-amz-checksum-"].iter().any(|start| name.starts_with(start));
        if !is_main {
            line(&format!("Header {name}"), value);
        }
    }
}
