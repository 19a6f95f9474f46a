//! Queries to a store before anything moves: whether an object or a folder exists.

use crate::location::s3_path;
use hakobu_core::error::{Fatal, quoted};
use hakobu_s3::ops::{ListQuery, ObjectHead, ObjectPages, head_object};
use hakobu_s3::with_session;
use hakobu_s3::{Error, ErrorKind, S3Session};
use std::sync::Arc;

/// Returns the metadata of an object; `None` if it does not exist.
///
/// # Errors
/// The request failed: code 11 if another try may succeed, else 1.
pub(super) fn object(
    store: &Arc<S3Session>,
    bucket: &str,
    key: &[u8],
    version: Option<&str>,
) -> Result<Option<ObjectHead>, Fatal> {
    match with_session(store, async |client| head_object(&client, bucket, key, version).await) {
        Ok(head) => Ok(Some(head)),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(fatal("look at", bucket, key, &error)),
    }
}

/// Returns whether any key begins with `prefix`.
///
/// # Errors
/// As [`object`].
pub(super) fn any_below(
    store: &Arc<S3Session>,
    bucket: &str,
    prefix: &[u8],
) -> Result<bool, Fatal> {
    let query = ListQuery { prefix: prefix.to_vec(), max_keys: Some(1), ..ListQuery::default() };
    let any = with_session(store, async |client| {
        let mut pages = ObjectPages::new(query);
        // A page may be empty and not the last one.
        while let Some(page) = pages.next(&client, bucket).await? {
            if !page.objects.is_empty() || !page.prefixes.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    });
    any.map_err(|error| fatal("list", bucket, prefix, &error))
}

/// Makes a failed request the error that stops the run: code 11 if another try may succeed, else 1.
fn fatal(verb: &str, bucket: &str, key: &[u8], error: &Error) -> Fatal {
    let url = s3_path(bucket, &[key]);
    let code = if error.is_transient() { 11 } else { 1 };
    Fatal::new(code, format!("cannot {verb} {}: {error}", quoted(url)))
}
