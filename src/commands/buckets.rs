//! `hakobu mb` and `hakobu rb`: buckets made and removed.

use super::{refuse, tool};
use crate::exit;
use crate::objects::{self, Asked};
use crate::options::tools::{MB, RB};
use crate::options::{Refused, Table, Typed};
use crate::show::{Show, Wanted, output};
use hakobu_transfer::run::{Control, Doomed, Removal, remove_objects};
use hakobu_transfer::s3::blocking::with_store;
use hakobu_transfer::s3::ops::{abort_upload, create_bucket, delete_bucket, list_uploads};
use hakobu_transfer::s3::{Client, Error, Store};
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

struct Plan {
    asked: Asked,
    force: bool,
    /// As typed, and the name.
    buckets: Vec<(OsString, String)>,
}

/// Makes buckets.
pub fn make(arguments: Vec<OsString>) -> ExitCode {
    let done = |plan: &Plan, store: &Arc<Store>| {
        each(plan, store, "make bucket", async |client, bucket| create_bucket(client, bucket).await)
    };
    run(&MB, &arguments, done)
}

/// Removes buckets.
pub fn remove(arguments: Vec<OsString>) -> ExitCode {
    let done = |plan: &Plan, store: &Arc<Store>| {
        if plan.force {
            for (_, bucket) in &plan.buckets {
                if let Err(code) = empty(plan, store, bucket) {
                    return code;
                }
            }
        }
        each(plan, store, "remove bucket", async |client, bucket| {
            if plan.force {
                for upload in list_uploads(client, bucket, b"").await? {
                    abort_upload(client, bucket, &upload.key, &upload.id).await?;
                }
            }
            delete_bucket(client, bucket).await
        })
    };
    run(&RB, &arguments, done)
}

fn run(
    table: &Table,
    arguments: &[OsString],
    done: impl FnOnce(&Plan, &Arc<Store>) -> u8,
) -> ExitCode {
    let typed = table.parse(arguments);
    match typed.and_then(|typed| plan(&typed).map_err(Refused::Usage)) {
        Ok(plan) => match tool::open(&plan.asked) {
            Ok(store) => done(&plan, &store).into(),
            Err(code) => code.into(),
        },
        Err(refused) => refuse(refused, exit::USAGE),
    }
}

fn plan(typed: &Typed) -> Result<Plan, String> {
    let mut plan = Plan { asked: Asked::default(), force: false, buckets: Vec::new() };
    for given in &typed.options {
        if plan.asked.take(given)? {
            continue;
        }
        match given.name {
            "force" => plan.force = true,
            name => return Err(format!("--{name} is not known here")),
        }
    }
    for path in &typed.paths {
        plan.buckets.push((path.clone(), objects::bucket_url(path)?));
    }
    if plan.buckets.is_empty() {
        return Err("give a bucket: s3://BUCKET".into());
    }
    Ok(plan)
}

fn each(
    plan: &Plan,
    store: &Arc<Store>,
    operation: &str,
    work: impl AsyncFn(&Client, &str) -> Result<(), Error>,
) -> u8 {
    let done = with_store(store, async |client| {
        let mut code = exit::OK;
        for (typed, bucket) in &plan.buckets {
            if let Err(error) = work(&client, bucket).await {
                tool::fail(operation, typed, &error);
                code = exit::FAILURE;
            }
        }
        Ok(code)
    });
    done.unwrap_or_else(|error| {
        tool::fail(operation, "s3://", &error);
        exit::FAILURE
    })
}

/// Removes everything in a bucket.
fn empty(plan: &Plan, store: &Arc<Store>, bucket: &str) -> Result<(), u8> {
    let control = Arc::new(Control::default());
    let wanted = Wanted { command: "rb", quiet: true, ..Wanted::default() };
    let show = Show::new(wanted, Arc::clone(&control)).map_err(|message| {
        output::message(&message);
        exit::FAILURE
    })?;
    let removal = Removal::new(
        plan.asked.settings(),
        vec![Doomed::Below { bucket: bucket.to_owned(), prefix: Vec::new() }],
    );
    let outcome = remove_objects(&removal, Some(store), &control, &show);
    let outcome = outcome.unwrap_or_else(|fatal| super::ended(fatal, Default::default()));
    let code = exit::of_copy(&outcome);
    match show.finish(&outcome, code) && code == exit::OK {
        true => Ok(()),
        false => Err(exit::FAILURE),
    }
}
