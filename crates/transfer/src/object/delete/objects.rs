//! Removal of objects, and of single versions of them.

use super::report::{removed, stays};
use crate::object::core::Core;
use crate::object::failed::Failed;
use crate::object::{Entry, Pair, Side};
use futures_util::stream::{self, StreamExt};
use hakobu_core::error::Operation;
use hakobu_core::unit::Totals;
use hakobu_s3::ops::{Deleted, ObjectId, delete_object, delete_objects};
use hakobu_s3::{Client, Kind};

/// Maximum number of keys in one DeleteObjects (API reference, DeleteObjects).
pub(super) const KEYS_MAX: usize = 1000;
/// Concurrent single deletions if the server does not support DeleteObjects.
const SINGLE_MAX: usize = 8;

/// Removes up to [`KEYS_MAX`] objects in one request: the current version of each, or the one of an ID. Counts and
/// reports each.
pub(super) async fn remove(
    core: &Core<'_>,
    pair: &Pair,
    bucket: &str,
    batch: &[(&Entry, Option<&str>)],
    totals: &mut Totals,
) {
    let failed = |error| Failed::Request(Operation::Remove, Side::Target, error);
    let results = match core.store(Side::Target) {
        Ok(client) => {
            let id = |(entry, version): &(&Entry, Option<&str>)| ObjectId {
                key: pair.target.key(&entry.name),
                version: version.map(str::to_owned),
            };
            let ids: Vec<ObjectId> = batch.iter().map(id).collect();
            match delete_objects(client, bucket, &ids).await {
                Err(error) if error.kind == Kind::NotImplemented => {
                    one_by_one(client, bucket, &ids).await
                }
                Err(error) => batch.iter().map(|_| Err(error.clone())).collect(),
                Ok(results) => results,
            }
        }
        Err(_) => {
            for (entry, _) in batch {
                let why = "the target is not a store";
                let none = Failed::Reason(Operation::Remove, Side::Target, why);
                stays(core.engine, pair, entry, none, totals);
            }
            return;
        }
    };
    assert_eq!(results.len(), batch.len(), "each key has its answer");
    for ((entry, version), result) in batch.iter().zip(results) {
        match result {
            Ok(()) => removed(core.engine, pair, entry, *version, totals),
            // Another program removed it.
            Err(error) if error.kind == Kind::NotFound => {
                removed(core.engine, pair, entry, *version, totals);
            }
            Err(mut error) => {
                if let Some(version) = version {
                    error.message = format!("version {version}: {}", error.message);
                }
                stays(core.engine, pair, entry, failed(error), totals);
            }
        }
    }
}

async fn one_by_one(client: &Client, bucket: &str, ids: &[ObjectId]) -> Vec<Deleted> {
    let requests =
        ids.iter().map(|id| delete_object(client, bucket, &id.key, id.version.as_deref()));
    stream::iter(requests).buffered(SINGLE_MAX).collect().await
}
