//! Obsolete records: a run was killed after its last request and before it removed the record, and the next run finds
//! the object up to date and never uses it.

use crate::journal::{Identity, Journal, Place, bytes};
use crate::location::{Location, S3Url};
use hakobu_s3::ops::list_parts;
use hakobu_s3::with_session;
use hakobu_s3::{ErrorKind, S3Session};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Removes the records of uploads that their store (one of `stores`) no longer has, and of downloads whose unfinished
/// file is gone.
///
/// # Errors
/// Those of the journal. A record that stays is recognised as obsolete by the run that needs it.
pub fn tidy<'a>(
    journal: &Journal,
    stores: impl Iterator<Item = &'a Arc<S3Session>> + Clone,
) -> io::Result<()> {
    journal.tidy(|identity, record| match &record.place {
        Place::Upload(upload) => {
            let mut stores = stores.clone();
            let store = stores.find(|store| store.endpoint() == identity.endpoint());
            store.is_some_and(|store| is_unknown(store, identity, upload))
        }
        Place::File { name, .. } => {
            let target = bytes(identity.target());
            let folder = Path::new(OsStr::from_bytes(&target)).parent().unwrap_or(Path::new("/"));
            let file = folder.join(OsStr::from_bytes(&bytes(name)));
            let there = std::fs::symlink_metadata(file);
            there.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        }
        Place::Asked => false,
    })
}

/// Returns whether a store reports that the upload does not exist.
fn is_unknown(store: &Arc<S3Session>, identity: &Identity, upload: &str) -> bool {
    let target = bytes(identity.target());
    let Ok(Location::S3(S3Url { bucket, key, .. })) = Location::parse(OsStr::from_bytes(&target))
    else {
        return false;
    };
    let parts =
        with_session(store, async |client| list_parts(&client, &bucket, &key, upload).await);
    parts.is_err_and(|error| error.kind == ErrorKind::NotFound)
}
