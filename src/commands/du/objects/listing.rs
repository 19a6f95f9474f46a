//! The objects of an argument, by the listing that the options need.

use crate::commands::du::options::Plan;
use crate::commands::tool::class;
use hakobu_s3::ops::{ListQuery, ObjectPages, VersionPages, VersionQuery};
use hakobu_s3::with_session;
use hakobu_s3::{Error, S3Session};
use hakobu_transfer::object::list::{self, Scope, StoreQuery};
use std::sync::Arc;

/// An object, or a version of one.
pub struct Found<'a> {
    /// Its name below the prefix of the scope.
    pub name: &'a [u8],
    /// Bytes.
    pub bytes: u64,
    /// Storage class; `None` if it was not requested, and for delete markers.
    pub class: Option<&'a str>,
}

/// Calls `take` for every object of a scope in the order of keys; in any order if one sum is printed.
///
/// # Errors
/// Those of the listing.
pub fn each(
    plan: &Plan,
    store: &Arc<S3Session>,
    bucket: &str,
    scope: &Scope,
    mut take: impl FnMut(Found<'_>),
) -> Result<(), Error> {
    let prefix = [&*scope.prefix, &*scope.narrowed].concat();
    // All keys of a page begin with the prefix.
    let cut = scope.prefix.len();
    if plan.objects.all_versions() {
        let mut pages = VersionPages::new(VersionQuery { prefix, delimiter: None });
        return with_session(store, async |client| {
            while let Some(page) = pages.next(&client, bucket).await? {
                for version in &page.versions {
                    let class = (!version.is_delete_marker).then(|| class(&version.storage_class));
                    take(Found { name: &version.key[cut..], bytes: version.size, class });
                }
            }
            Ok(())
        });
    }
    if plan.group {
        let mut pages = ObjectPages::new(ListQuery { prefix, ..ListQuery::default() });
        return with_session(store, async |client| {
            while let Some(page) = pages.next(&client, bucket).await? {
                for object in &page.objects {
                    let class = Some(class(&object.storage_class));
                    take(Found { name: &object.key[cut..], bytes: object.size, class });
                }
            }
            Ok(())
        });
    }
    // The parallel listing, which returns no storage classes.
    let query = StoreQuery {
        prefix: scope.prefix.clone(),
        narrowed: scope.narrowed.clone(),
        recursive: true,
        unordered: plan.levels == Some(0),
        ..StoreQuery::default()
    };
    let mut listing = list::store(store, bucket, query);
    while let Some(page) = listing.page() {
        for item in page {
            let entry = item.map_err(list::Trouble::into_error)?;
            take(Found { name: &entry.name, bytes: entry.meta.size, class: None });
        }
    }
    Ok(())
}
