//! Reads the whole body of an object and checks it against the stored checksum.

use crate::object::Side;
use crate::object::core::Core;
use crate::object::ends::Object;
use crate::object::failed::Failed;
use crate::object::moving::Moving;
use bytes::Bytes;
use hakobu_core::error::Operation;
use hakobu_core::meter::Phase;
use hakobu_s3::ops::{GetOptions, get_object};
use hakobu_s3::{Algorithm, Checksum, Client, Download, Error, ErrorKind, Hasher};
use http::HeaderMap;
use std::cell::Cell;

/// Checksums that a server may have stored, the cheapest to compute first.
const STORED: [Algorithm; 5] =
    [Algorithm::Crc64Nvme, Algorithm::Crc32c, Algorithm::Crc32, Algorithm::Sha256, Algorithm::Sha1];

/// Headers, checked body and size of a whole object.
pub(super) type Whole = (HeaderMap, Vec<Bytes>, u64);

/// Receives an object of up to `bytes_max` whole in one request, repeated if the body broke or does not match the
/// checksum. An object that changed since it was listed (by its ETag) is taken in its current state. Returns `None` if it
/// is larger.
///
/// # Errors
/// Those of the request, after its tries.
pub(super) async fn whole(
    core: &Core<'_>,
    moving: &Moving,
    bytes_max: u64,
) -> Result<Option<Whole>, Failed> {
    let client = core.store(Side::Source)?;
    let Object { bucket, key, version, etag } = Object::source(core, moving)?;
    let size = Some(moving.entry.meta.size).filter(|_| !moving.is_unknown());
    let mut wanted = GetOptions { version, range: None, etag, size };
    let (mut tried, counted) = (1, Cell::new(0));
    loop {
        if core.engine.is_stopped() {
            return Err(Failed::Stopped);
        }
        let prepaid = client.prepay(moving.entry.meta.size).await.map_err(|_| Failed::Stopped)?;
        let broke = match get_object(client, bucket, &key, &wanted).await {
            Ok(mut download) => {
                download.prepaid(prepaid);
                match receive(core, client, download, bytes_max, &counted).await {
                    Ok(whole) => return Ok(whole),
                    Err(error) => error,
                }
            }
            Err(error) if error.kind == ErrorKind::Precondition && wanted.etag.is_some() => {
                wanted = GetOptions { version, ..GetOptions::default() };
                continue;
            }
            Err(error) => return Err(unreadable(moving, error)),
        };
        if broke.kind == ErrorKind::Stopped {
            return Err(Failed::Stopped);
        }
        if !client.may_retry(tried, &broke).await {
            return Err(unreadable(moving, broke));
        }
        tried += 1;
    }
}

/// Returns the failure of a GET: a listed object that is missing has vanished.
pub(super) fn unreadable(moving: &Moving, error: Error) -> Failed {
    match error.kind {
        ErrorKind::NotFound if !moving.is_unknown() => Failed::Vanished(Operation::Read),
        ErrorKind::Stopped => Failed::Stopped,
        _ => Failed::Request(Operation::Read, Side::Source, error),
    }
}

async fn receive(
    core: &Core<'_>,
    client: &Client,
    mut download: Download,
    bytes_max: u64,
    counted: &Cell<u64>,
) -> Result<Option<Whole>, Error> {
    if download.size() > bytes_max {
        return Ok(None);
    }
    let mut frames = Vec::new();
    let mut size = 0;
    while let Some(frame) = download.chunk().await? {
        size += frame.len() as u64;
        frames.push(frame);
        // Do not count repeated bytes twice.
        core.doing.lane().bytes(size.saturating_sub(counted.get()));
        counted.set(size.max(counted.get()));
        if core.engine.setup.control.is_stopped() {
            return Err(Error::new(ErrorKind::Stopped, "GetObject", "stopped"));
        }
    }
    if client.session().checks_downloads() {
        let _phase = core.doing.during(Phase::Compute);
        check(&download.headers, &frames)?;
    }
    Ok(Some((std::mem::take(&mut download.headers), frames, size)))
}

/// Returns the stored checksum of a whole object that is cheapest to compute.
pub(super) fn stored(headers: &HeaderMap) -> Option<Checksum> {
    STORED.iter().find_map(|algorithm| {
        let text = headers.get(algorithm.header())?.to_str().ok()?;
        // Of several parts: the boundaries are unknown.
        Checksum::decode(*algorithm, text).filter(|stored| stored.parts <= 1)
    })
}

/// Returns whether the computed hash matches the stored one; a single part may be stored as the hash of its hash.
pub(super) fn is_same(stored: &Checksum, hasher: Hasher) -> bool {
    let found = hasher.finish();
    match stored.parts {
        0 => found == *stored,
        _ => Checksum::composite(stored.algorithm, &[found]) == *stored,
    }
}

/// Compares a whole body with the stored checksum, if there is one.
///
/// # Errors
/// `Corrupt`.
pub(in crate::object) fn check(headers: &HeaderMap, frames: &[Bytes]) -> Result<(), Error> {
    let Some(stored) = stored(headers) else { return Ok(()) };
    let mut hasher = Hasher::new(stored.algorithm);
    for frame in frames {
        hasher.update(frame);
    }
    match is_same(&stored, hasher) {
        true => Ok(()),
        false => Err(mismatch(stored.algorithm)),
    }
}

/// Returns the error of a body whose checksum differs.
pub(super) fn mismatch(algorithm: Algorithm) -> Error {
    let message =
        format!("the received content has another {} than the stored object", algorithm.name());
    Error::new(ErrorKind::Corrupt, "GetObject", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(stored: &[Checksum]) -> HeaderMap {
        let pair = |sum: &Checksum| {
            (sum.algorithm.header(), sum.encode().parse().expect("a header's value"))
        };
        stored.iter().map(pair).collect()
    }

    #[test]
    fn a_body_is_compared_with_what_is_stored() {
        let frames = [Bytes::from_static(b"ab"), Bytes::new(), Bytes::from_static(b"c")];
        for algorithm in STORED {
            let good = Checksum::of(algorithm, b"abc");
            let bad = Checksum::of(algorithm, b"abd");
            assert!(check(&headers(std::slice::from_ref(&good)), &frames).is_ok());
            let error = check(&headers(std::slice::from_ref(&bad)), &frames).expect_err("bad");
            assert_eq!(error.kind, ErrorKind::Corrupt);
            // A single part is hashed twice; the boundaries of several are unknown.
            let once = Checksum::composite(algorithm, std::slice::from_ref(&good));
            assert!(check(&headers(&[once]), &frames).is_ok());
            let wrong = Checksum::composite(algorithm, std::slice::from_ref(&bad));
            assert!(check(&headers(&[wrong]), &frames).is_err());
            let twice = Checksum::composite(algorithm, &[bad.clone(), bad]);
            assert!(check(&headers(&[twice]), &frames).is_ok());
        }
        assert!(check(&HeaderMap::new(), &frames).is_ok());
    }
}
