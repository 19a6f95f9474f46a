//! Questions to a store before anything moves: is there such an object, is there such a folder.

use crate::error::{Fatal, quoted};
use crate::s3::blocking::with_store;
use crate::s3::ops::{Head, ListQuery, head_object, list_objects};
use crate::s3::{Error, Kind, Store};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Asks one store, one question at a time.
pub(super) struct Asker(Arc<Store>);

impl Asker {
    pub(super) fn new(store: &Arc<Store>) -> Asker {
        Asker(Arc::clone(store))
    }

    /// What is known of an object; `None` where there is none.
    ///
    /// # Errors
    /// Code 1 where the store cannot be asked.
    pub(super) fn object(
        &self,
        bucket: &str,
        key: &[u8],
        version: Option<&str>,
    ) -> Result<Option<Head>, Fatal> {
        let answer =
            with_store(&self.0, async |client| head_object(&client, bucket, key, version).await);
        match answer {
            Ok(head) => Ok(Some(head)),
            Err(error) if error.kind == Kind::NotFound => Ok(None),
            Err(error) => Err(fatal("look at", bucket, key, &error)),
        }
    }

    /// Whether there is any key that begins with `prefix`.
    ///
    /// # Errors
    /// As [`Asker::object`].
    pub(super) fn any_below(&self, bucket: &str, prefix: &[u8]) -> Result<bool, Fatal> {
        let query =
            ListQuery { prefix: prefix.to_vec(), max_keys: Some(1), ..ListQuery::default() };
        let answer =
            with_store(&self.0, async |client| list_objects(&client, bucket, &query).await);
        match answer {
            Ok(page) => Ok(!page.objects.is_empty() || !page.prefixes.is_empty()),
            Err(error) => Err(fatal("list", bucket, prefix, &error)),
        }
    }
}

/// The sentence of a question that failed, as a stop of the run.
fn fatal(verb: &str, bucket: &str, key: &[u8], error: &Error) -> Fatal {
    let url = [b"s3://", bucket.as_bytes(), b"/", key].concat();
    Fatal::new(1, format!("cannot {verb} {}: {error}", quoted(OsStr::from_bytes(&url))))
}
