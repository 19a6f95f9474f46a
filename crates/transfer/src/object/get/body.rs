//! Reading the body of an object whole, and checking it against what is stored beside it.

use crate::error::Operation;
use crate::meter::Phase;
use crate::object::core::Core;
use crate::object::moving::{Failed, Moving};
use crate::object::{Root, Side};
use crate::s3::ops::get_object;
use crate::s3::{Algorithm, Checksum, Client, Download, Error, Hasher, Kind};
use bytes::Bytes;
use http::{HeaderMap, header};
use std::cell::Cell;

/// Checksums that a server may have stored, the cheapest to compute first.
pub(super) const STORED: [Algorithm; 5] =
    [Algorithm::Crc64Nvme, Algorithm::Crc32c, Algorithm::Crc32, Algorithm::Sha256, Algorithm::Sha1];

/// What a GET of the whole object came to.
pub(super) enum Whole {
    /// Headers and body, checked.
    Body(HeaderMap, Vec<Bytes>, u64),
    /// The object is larger than what is received whole.
    TooLarge,
}

/// An object in a store, and the client to reach it.
pub(super) struct Object<'a> {
    /// The client of the source.
    pub client: &'a Client,
    /// Its bucket.
    pub bucket: &'a str,
    /// Its key.
    pub key: Vec<u8>,
    /// Its version, where one was asked for.
    pub version: Option<&'a str>,
}

impl<'a> Object<'a> {
    /// The source of an entry.
    ///
    /// # Errors
    /// A reason where it is no object.
    pub fn of(core: &'a Core<'_>, moving: &'a Moving) -> Result<Object<'a>, Failed> {
        let (Root::Store { bucket, .. }, Some(client)) =
            (&moving.pair.source, core.client(Side::Source))
        else {
            return Err(Failed::Reason(Operation::Read, Side::Source, "the source is no store"));
        };
        let key = moving.pair.source.key(&moving.entry.name);
        let version = core.engine.setup.options.version.as_deref();
        Ok(Object { client, bucket, key, version })
    }
}

/// Whether nothing is known of an entry but its name (it was not listed).
pub(super) fn is_unknown(moving: &Moving) -> bool {
    moving.entry.etag.is_empty() && moving.entry.meta.size == 0
}

/// Receives an object of up to `bytes_max` whole: one request, asked again where the body broke or
/// was not what is stored. An object that changed since it was listed is taken as it is now.
///
/// # Errors
/// The request's, after its tries.
pub(super) async fn whole(
    core: &Core<'_>,
    moving: &Moving,
    object: &Object<'_>,
    bytes_max: u64,
) -> Result<Whole, Failed> {
    let mut if_match = Some(&*moving.entry.etag).filter(|etag| !etag.is_empty());
    let (mut tried, counted) = (1, Cell::new(0));
    loop {
        if core.engine.is_stopped() {
            return Err(Failed::Stopped);
        }
        let Object { client, bucket, key, version } = object;
        let prepaid = client.prepay(moving.entry.meta.size).await.map_err(|_| Failed::Stopped)?;
        let broke = match get_object(client, bucket, key, *version, None, if_match).await {
            Ok(mut download) => {
                download.prepaid(prepaid);
                match receive(core, client, download, bytes_max, &counted).await {
                    Ok(whole) => return Ok(whole),
                    Err(error) => error,
                }
            }
            Err(error) if error.kind == Kind::Precondition && if_match.is_some() => {
                if_match = None;
                continue;
            }
            Err(error) => return Err(unreadable(moving, error)),
        };
        if broke.kind == Kind::Stopped {
            return Err(Failed::Stopped);
        }
        if !client.may_retry(tried, &broke).await {
            return Err(unreadable(moving, broke));
        }
        tried += 1;
    }
}

/// How a failed GET is told: what was listed and is not there any more has vanished.
pub(super) fn unreadable(moving: &Moving, error: Error) -> Failed {
    match error.kind {
        Kind::NotFound if !is_unknown(moving) => Failed::Vanished(Operation::Read),
        Kind::Stopped => Failed::Stopped,
        _ => Failed::Request(Operation::Read, Side::Source, error),
    }
}

async fn receive(
    core: &Core<'_>,
    client: &Client,
    mut download: Download,
    bytes_max: u64,
    counted: &Cell<u64>,
) -> Result<Whole, Error> {
    let promised = content_length(&download.headers);
    if promised.is_some_and(|bytes| bytes > bytes_max) {
        return Ok(Whole::TooLarge);
    }
    let mut frames = Vec::new();
    let mut size = 0;
    while let Some(frame) = download.chunk().await? {
        size += frame.len() as u64;
        frames.push(frame);
        // What comes a second time was counted.
        core.doing.lane().bytes(size.saturating_sub(counted.get()));
        counted.set(size.max(counted.get()));
        if core.engine.setup.control.is_stopped() {
            return Err(Error::new(Kind::Stopped, "GetObject", "stopped"));
        }
        if size > bytes_max {
            return Ok(Whole::TooLarge);
        }
    }
    if promised.is_some_and(|bytes| bytes != size) {
        return Err(Error::new(
            Kind::Corrupt,
            "GetObject",
            "the body is not of the length promised",
        ));
    }
    if client.store().checks_downloads() {
        let _phase = core.doing.during(Phase::Compute);
        check(&download.headers, &frames)?;
    }
    Ok(Whole::Body(std::mem::take(&mut download.headers), frames, size))
}

/// `Content-Length`.
pub(super) fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The stored checksum of a whole object that is cheapest to compute.
pub(super) fn stored(headers: &HeaderMap) -> Option<Checksum> {
    STORED.iter().find_map(|algorithm| {
        let text = headers.get(algorithm.header())?.to_str().ok()?;
        // Of several parts: where they met is not known.
        Checksum::decode(*algorithm, text).filter(|stored| stored.parts <= 1)
    })
}

/// Whether what was hashed is what is stored; one part may be stored as the hash of its hash.
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
pub(super) fn check(headers: &HeaderMap, frames: &[Bytes]) -> Result<(), Error> {
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

/// What is said of a body whose checksum differs.
pub(super) fn mismatch(algorithm: Algorithm) -> Error {
    let message = format!("what arrived has another {} than what is stored", algorithm.name());
    Error::new(Kind::Corrupt, "GetObject", message)
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
            assert_eq!(error.kind, Kind::Corrupt);
            // One part is hashed twice; where several met nobody knows.
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
