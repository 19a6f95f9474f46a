//! The objects at both ends of a move, and the failures of reading a source.

use super::core::Core;
use super::failed::Failed;
use super::moving::Moving;
use super::{Root, Side};
use hakobu_core::error::Operation;
use hakobu_s3::ops::{ObjectHead, head_object};
use hakobu_s3::{Client, Error, ErrorKind};

/// Message for a source that changed since it was listed.
pub(super) const CHANGED: &str = "it changed since it was listed; the next run moves it";
/// Message for a source that changed during its move.
pub(super) const CHANGED_WHILE_READ: &str = "it changed while it was read";

/// An object of one of the two stores.
#[derive(Clone, Debug)]
pub(super) struct Object<'a> {
    /// Its bucket.
    pub bucket: &'a str,
    /// Its whole key.
    pub key: Vec<u8>,
    /// Its version, if one was requested.
    pub version: Option<&'a str>,
    /// Its ETag, if it is known: only that object is read.
    pub etag: Option<&'a str>,
}

impl<'a> Object<'a> {
    /// Returns the object at one end of a move; `None` if that is not in a store. An empty ETag means unknown.
    pub fn at(
        core: &Core<'a>,
        moving: &'a Moving,
        side: Side,
        etag: &'a str,
    ) -> Option<Object<'a>> {
        let (root, name) = moving.end(side);
        let Root::Store { bucket, .. } = root else { return None };
        let version = core.engine.setup.options.version.as_deref();
        let version = version.filter(|_| side == Side::Source);
        let etag = (!etag.is_empty()).then_some(etag);
        Some(Object { bucket, key: root.key(name), version, etag })
    }

    /// Returns the source of a move.
    ///
    /// # Errors
    /// The source is not in a store.
    pub fn source(core: &Core<'a>, moving: &'a Moving) -> Result<Object<'a>, Failed> {
        let object = Object::at(core, moving, Side::Source, &moving.entry.etag);
        object.ok_or(no_store(Side::Source))
    }

    /// Requests its headers.
    ///
    /// # Errors
    /// Those of the request.
    pub async fn head(&self, client: &Client) -> Result<ObjectHead, Error> {
        head_object(client, self.bucket, &self.key, self.version).await
    }
}

/// The object that a move writes, and the client for it.
pub(super) struct Target<'a> {
    /// The client of the target's store.
    pub client: &'a Client,
    /// Its bucket.
    pub bucket: &'a str,
    /// Its whole key.
    pub key: Vec<u8>,
}

impl<'a> Target<'a> {
    /// Returns the target of a move.
    ///
    /// # Errors
    /// The target is not in a store.
    pub fn of(core: &'a Core<'_>, moving: &'a Moving) -> Result<Target<'a>, Failed> {
        let Root::Store { bucket, .. } = &moving.pair.target else {
            return Err(no_store(Side::Target));
        };
        let client = core.store(Side::Target)?;
        Ok(Target { client, bucket, key: moving.pair.target.key(&moving.name) })
    }

    /// Requests the headers of the object that exists now.
    ///
    /// # Errors
    /// Those of the request.
    pub async fn head(&self) -> Result<ObjectHead, Failed> {
        let head = head_object(self.client, self.bucket, &self.key, None).await;
        head.map_err(Failed::at_target(Operation::Stat))
    }
}

impl Core<'_> {
    /// Returns the client of a side.
    ///
    /// # Errors
    /// There is none, which the planner prevents.
    pub(super) fn store(&self, side: Side) -> Result<&Client, Failed> {
        let client = match side {
            Side::Source => self.source.as_ref(),
            Side::Target => self.target.as_ref(),
        };
        client.ok_or(no_store(side))
    }
}

fn no_store(side: Side) -> Failed {
    Failed::Reason(Operation::Read, side, "there is no store on this side")
}

/// Returns the failure of reading a source: a missing object has vanished, a changed one is reported as such.
pub(super) fn read_failed(error: Error) -> Failed {
    match error.kind {
        ErrorKind::NotFound => Failed::Vanished(Operation::Read),
        ErrorKind::Precondition => Failed::Reason(Operation::Read, Side::Source, CHANGED),
        _ => Failed::Request(Operation::Read, Side::Source, error),
    }
}
