//! `hakobu bucket-version`: shows and sets the versioning of buckets.

use super::tool;
use super::tool::carry_out;
use crate::cli::{JSON, Opt, Table, Typed, parts, put, value};
use crate::objects::{self, ObjectArgs};
use crate::show::json::line;
use hakobu_s3::ops::{Versioning, get_versioning, put_versioning};
use hakobu_s3::{Client, Error};
use serde::Serialize;
use std::ffi::OsString;
use std::process::ExitCode;

/// The command line of `bucket-version`.
pub static TABLE: Table<BucketVersionOptions> = Table {
    command: "bucket-version",
    about: "Show whether buckets keep versions of their objects, or set it",
    description: "Prints Enabled, Suspended or \"never enabled\" for each bucket. In a bucket with versions, \
            replaced and removed objects are kept.",
    usage: "hakobu bucket-version [OPTIONS] s3://BUCKET...",
    examples: &[
        ("hakobu bucket-version s3://data", "Show whether a bucket keeps versions."),
        ("hakobu bucket-version --json s3://data s3://copy", "The same of two, as JSON lines."),
    ],
    common: &[],
    after: tool::EXIT,
    options: &[&OPTIONS, &objects::COMMON],
    unbuilt: &[objects::UNBUILT],
    abbreviates: false,
};

const OPTIONS: &[Opt<BucketVersionOptions>] = &[
    value("set", None, "STATE", "Enabled: keep versions; Suspended: make no new ones").reads(
        |plan, arg| {
            let text = arg.text()?;
            let states = [Versioning::Enabled, Versioning::Suspended];
            let state = states.into_iter().find(|state| state.word().eq_ignore_ascii_case(text));
            let state = state.ok_or_else(|| arg.refuse("give Enabled or Suspended"))?;
            put(&mut plan.set, Some(state))
        },
    ),
    JSON.sets(|plan, on| plan.json = on),
];

/// The parsed command line.
#[derive(Default)]
pub struct BucketVersionOptions {
    objects: ObjectArgs,
    set: Option<Versioning>,
    json: bool,
    /// As typed, and by name.
    buckets: Vec<(OsString, String)>,
}

parts!(BucketVersionOptions { objects: ObjectArgs });

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    carry_out(TABLE.parse(&arguments), |typed| plan(&typed), |plan| show(&plan))
}

fn plan(typed: &Typed) -> Result<BucketVersionOptions, String> {
    let mut plan = TABLE.read(typed, BucketVersionOptions::default())?;
    plan.buckets = objects::all(&typed.paths, objects::bucket_url, "missing bucket: s3://BUCKET")?;
    Ok(plan)
}

fn show(plan: &BucketVersionOptions) -> Result<u8, String> {
    let store = tool::open(&plan.objects)?;
    let operation = match plan.set {
        None => "look at versioning of",
        Some(_) => "set versioning of",
    };
    Ok(tool::each(&store, plan.json, operation, &plan.buckets, async |client, _, bucket| {
        Ok(text(plan, bucket, state(plan, client, bucket).await?))
    }))
}

/// Sets the state if that is requested; returns it.
async fn state(
    plan: &BucketVersionOptions,
    client: &Client,
    bucket: &str,
) -> Result<Option<Versioning>, Error> {
    match plan.set {
        None => get_versioning(client, bucket).await,
        Some(state) => put_versioning(client, bucket, state).await.map(|()| Some(state)),
    }
}

fn text(plan: &BucketVersionOptions, bucket: &str, state: Option<Versioning>) -> Vec<u8> {
    #[derive(Serialize)]
    struct Line<'a> {
        event: &'static str,
        bucket: &'a str,
        status: Option<&'static str>,
    }
    let status = state.map(Versioning::word);
    match plan.json {
        true => line(&Line { event: "bucket_version", bucket, status }),
        false => format!("s3://{bucket}\t{}\n", status.unwrap_or("never enabled")).into_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(line: &str) -> Result<BucketVersionOptions, String> {
        plan(&TABLE.parse_line(line)?)
    }

    #[test]
    fn states_are_words() {
        for (text, state) in
            [("Enabled", Versioning::Enabled), ("suspended", Versioning::Suspended)]
        {
            let plan = planned(&format!("--set {text} s3://abc")).unwrap();
            assert_eq!(plan.set, Some(state), "{text}");
        }
        for wrong in ["", "s3://abc/k", "--set=on s3://abc", "--set= s3://abc", "/tmp"] {
            assert!(planned(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lines() {
        let text = |options: &str, state| {
            let plan = planned(options).unwrap();
            String::from_utf8_lossy(&super::text(&plan, "abc", state)).into_owned()
        };
        assert_eq!(text("s3://abc", None), "s3://abc\tnever enabled\n");
        assert_eq!(text("s3://abc", Some(Versioning::Suspended)), "s3://abc\tSuspended\n");
        let json = "{\"event\":\"bucket_version\",\"bucket\":\"abc\",\"status\":null}\n";
        assert_eq!(text("--json s3://abc", None), json);
    }
}
