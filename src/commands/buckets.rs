//! `hakobu mb` and `hakobu rb`: make and remove buckets.

use super::tool;
use super::tool::carry_out;
use crate::cli::{Opt, Table, Typed, flag, parts};
use crate::exit;
use crate::objects::{self, ObjectArgs};
use crate::show::json::line;
use crate::show::{Show, ShowOptions};
use hakobu_s3::ops::{abort_upload, create_bucket, delete_bucket, list_uploads};
use hakobu_s3::{Client, Error, S3Session};
use hakobu_transfer::run::{Control, Keys, Removal, RemovalTarget, remove_objects};
use serde::Serialize;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

/// The command line of `mb`.
pub static MB: Table<BucketOptions> = Table {
    command: "mb",
    about: "Create buckets",
    description: "A bucket is created in the region of the profile or of --region.",
    usage: "hakobu mb [OPTIONS] s3://BUCKET...",
    examples: &[
        ("hakobu mb s3://new-bucket", "Create a bucket."),
        ("hakobu mb --region eu-west-1 s3://eu-bucket", "Create one in another region."),
    ],
    common: &[],
    after: tool::EXIT,
    options: &[&ALL, &objects::COMMON, &objects::DEBUG],
    unbuilt: &[objects::UNBUILT],
    abbreviates: false,
};

/// The command line of `rb`.
pub static RB: Table<BucketOptions> = Table {
    command: "rb",
    about: "Remove empty buckets",
    description: "A bucket that has objects is kept, unless --force removes them first.",
    usage: "hakobu rb [OPTIONS] s3://BUCKET...",
    examples: &[
        ("hakobu mb s3://scratch && hakobu rb s3://scratch", "Remove a bucket that is empty."),
        ("hakobu rb --force s3://copy", "Empty a bucket and remove it."),
    ],
    common: &[],
    after: tool::EXIT,
    options: &[&OF_REMOVAL, &ALL, &objects::COMMON, &objects::DEBUG, &objects::ALL_VERSIONS],
    unbuilt: &[objects::UNBUILT],
    abbreviates: false,
};

const ALL: &[Opt<BucketOptions>] =
    &[flag("json", None, "a JSON line for each bucket on standard output")
        .sets(|plan, on| plan.json = on)];

const OF_REMOVAL: &[Opt<BucketOptions>] =
    &[flag("force", None, "remove all objects and unfinished uploads first")
        .sets(|plan, on| plan.force = on)];

/// The parsed command line.
#[derive(Default)]
pub struct BucketOptions {
    objects: ObjectArgs,
    force: bool,
    json: bool,
    /// As typed, and by name.
    buckets: Vec<(OsString, String)>,
}

parts!(BucketOptions { objects: ObjectArgs });

/// Makes buckets.
pub fn make(arguments: Vec<OsString>) -> ExitCode {
    run(&MB, &arguments, |plan, store| {
        Ok(each(plan, store, ("make bucket", "bucket_made"), async |client, bucket| {
            create_bucket(client, bucket).await
        }))
    })
}

/// Removes buckets.
pub fn remove(arguments: Vec<OsString>) -> ExitCode {
    run(&RB, &arguments, |plan, store| {
        if plan.force {
            for (_, bucket) in &plan.buckets {
                if !empty(plan, store, bucket)? {
                    return Ok(exit::FAILURE);
                }
            }
        }
        Ok(each(plan, store, ("remove bucket", "bucket_removed"), async |client, bucket| {
            if plan.force {
                for upload in list_uploads(client, bucket, b"").await? {
                    abort_upload(client, bucket, &upload.key, &upload.id).await?;
                }
            }
            delete_bucket(client, bucket).await
        }))
    })
}

fn run(
    table: &Table<BucketOptions>,
    arguments: &[OsString],
    work: impl FnOnce(&BucketOptions, &Arc<S3Session>) -> Result<u8, String>,
) -> ExitCode {
    let plan = |typed| plan(table, &typed);
    carry_out(table.parse(arguments), plan, |plan| work(&plan, &tool::open(&plan.objects)?))
}

fn plan(table: &Table<BucketOptions>, typed: &Typed) -> Result<BucketOptions, String> {
    let mut plan = table.read(typed, BucketOptions::default())?;
    for path in &typed.paths {
        plan.buckets.push((path.clone(), objects::bucket_url(path)?));
    }
    if plan.objects.all_versions() && !plan.force {
        return Err("--all-versions says what --force removes: give both".into());
    }
    if plan.buckets.is_empty() {
        return Err("missing bucket: s3://BUCKET".into());
    }
    Ok(plan)
}

#[derive(Serialize)]
struct Done<'a> {
    event: &'static str,
    bucket: &'a str,
}

fn each(
    plan: &BucketOptions,
    store: &Arc<S3Session>,
    (operation, event): (&str, &'static str),
    work: impl AsyncFn(&Client, &str) -> Result<(), Error>,
) -> u8 {
    tool::each(store, plan.json, operation, &plan.buckets, async |client, _, bucket| {
        work(client, bucket).await?;
        Ok(if plan.json { line(&Done { event, bucket }) } else { Vec::new() })
    })
}

/// Removes all objects of a bucket; returns whether that succeeded.
fn empty(plan: &BucketOptions, store: &Arc<S3Session>, bucket: &str) -> Result<bool, String> {
    let control = Arc::new(Control::default());
    let wanted = ShowOptions { command: "rb", quiet: true, ..ShowOptions::default() };
    let show = Show::new(wanted, Arc::clone(&control))?;
    let all = RemovalTarget { bucket: bucket.to_owned(), keys: Keys::Below(Vec::new()) };
    let removal = Removal {
        all_versions: plan.objects.all_versions(),
        ..Removal::new(plan.objects.settings(), vec![all])
    };
    let outcome = remove_objects(&removal, Some(store), &control, &show);
    let outcome =
        outcome.unwrap_or_else(|fatal| super::session::outcome_of_fatal(fatal, Default::default()));
    let code = exit::of_copy(&outcome);
    Ok(show.finish(&outcome, code) && code == exit::OK)
}
