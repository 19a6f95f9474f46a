//! `hakobu ls --all-versions`: versions and delete markers, page by page.

use super::rows::{Row, Rows, Version};
use hakobu_s3::blocking::with_store;
use hakobu_s3::ops::{VersionPages, VersionQuery};
use hakobu_s3::{Error, Store};
use hakobu_transfer::location::S3Url;
use hakobu_transfer::object::list::{Choice, Scope};
use std::sync::Arc;

/// Lists the versions of an argument; returns how many versions and prefixes it selects.
pub fn list(
    store: &Arc<Store>,
    url: &S3Url,
    scope: &Scope,
    choice: &mut Choice,
    recursive: bool,
    rows: &mut Rows<'_>,
) -> Result<u64, Error> {
    let mut pages = VersionPages::new(VersionQuery {
        prefix: [&*scope.prefix, &*scope.narrowed].concat(),
        delimiter: (!recursive).then_some(b'/'),
    });
    // All keys and prefixes of a page begin with the prefix.
    let cut = scope.prefix.len();
    with_store(store, async |client| {
        let mut found = 0;
        while let Some(page) = pages.next(&client, &url.bucket).await? {
            let mut prefixes = page.prefixes.iter().peekable();
            for version in &page.versions {
                while let Some(prefix) = prefixes.next_if(|prefix| **prefix < version.key) {
                    found += push_prefix(&prefix[cut..], choice, rows);
                }
                let name = &version.key[cut..];
                let matches = choice.matches(name);
                found += u64::from(matches);
                if !matches || choice.hides(name) {
                    continue;
                }
                rows.push(&Row {
                    name,
                    size: version.size,
                    mtime: version.mtime,
                    etag: &version.etag,
                    class: &version.storage_class,
                    is_prefix: false,
                    version: Some(Version {
                        id: &version.id,
                        is_latest: version.is_latest,
                        is_delete_marker: version.is_delete_marker,
                    }),
                });
            }
            for prefix in prefixes {
                found += push_prefix(&prefix[cut..], choice, rows);
            }
            rows.flush();
            if rows.is_broken() {
                break;
            }
        }
        Ok(found)
    })
}

fn push_prefix(name: &[u8], choice: &mut Choice, rows: &mut Rows<'_>) -> u64 {
    if !choice.hides(name) {
        rows.push(&Row::prefix(name));
    }
    1
}
