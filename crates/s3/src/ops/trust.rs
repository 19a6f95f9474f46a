//! Checks common to pages of all listings: required fields are present once and valid, a page states whether
//! it is the last one, and a stopped run reads no further page.
//!
//! A page that fails a check is a `Corrupt` error. None of its entries is used, so that nothing is deleted
//! because of it.

use super::super::store::stopped;
use super::{query_key, send_and_read};
use crate::time::parse_iso;
use crate::{Client, Error, Kind, Reply, Request};
use hakobu_core::error::quoted;
use hakobu_core::unit::Time;
use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

/// First reason to distrust a page.
#[derive(Default)]
pub(super) struct PageCheck(Option<String>);

impl PageCheck {
    /// Records a reason, unless there is one.
    pub fn add(&mut self, why: impl FnOnce() -> String) {
        self.0.get_or_insert_with(why);
    }

    /// Records a reason if there is one.
    pub fn add_some(&mut self, why: Option<String>) {
        self.0 = self.0.take().or(why);
    }

    /// Sets a field from its text; duplicates and invalid values are reasons.
    pub fn set<T>(&mut self, field: &mut Option<T>, name: &str, text: &[u8], value: Option<T>) {
        match value {
            None => self.add(|| format!("its {name} {} cannot be read", shown(text))),
            Some(_) if field.is_some() => {
                self.add(|| format!("it gives {name} twice in one place"))
            }
            value => *field = value,
        }
    }

    /// Takes a required field; a missing one is a reason. `of` names its container.
    pub fn need<T>(&mut self, field: Option<T>, name: &str, of: &str) -> Option<T> {
        if field.is_none() {
            self.add(|| format!("{of} has no {name}"));
        }
        field
    }

    /// Position of the page that follows one after `from`, by fields of the root. It has to be there if the page is
    /// truncated, and to be beyond `from`.
    pub fn successor(
        &mut self,
        truncated: Option<bool>,
        (key, id): (Option<Vec<u8>>, Option<String>),
        from: &Marker,
    ) -> Option<Marker> {
        let truncated = self.need(truncated, "IsTruncated", "it") == Some(true);
        let key = key.filter(|_| truncated);
        let next = key.map(|key| Marker { key, id: id.unwrap_or_default() });
        match &next {
            None if truncated => self.add(|| NO_SUCCESSOR.to_owned()),
            Some(next) if next == from || next.key < from.key => {
                self.add(|| NO_PROGRESS.to_owned());
            }
            _ => {}
        }
        next
    }

    /// Ends the check of a page.
    ///
    /// # Errors
    /// `Corrupt` with the first reason.
    pub fn finish(self, operation: &'static str) -> Result<(), Error> {
        self.0.map_or(Ok(()), |why| Err(untrusted(operation, &why)))
    }
}

/// Position after which a page begins: a key, and a version or an upload of it (empty for all).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Marker {
    pub key: Vec<u8>,
    pub id: String,
}

impl Marker {
    /// Adds it to a request; `id` is the name of its second parameter.
    pub fn query(&self, request: Request, id: &'static str) -> Result<Request, Error> {
        let some = Some(&self.id).filter(|id| !id.is_empty());
        Ok(query_key(request, "key-marker", &self.key)?.query_if(id, some))
    }
}

/// Error of a response that fails a check.
pub(super) fn untrusted(operation: &'static str, why: &str) -> Error {
    let message = format!("the server's answer to {operation} cannot be trusted: {why}");
    Error::new(Kind::Corrupt, operation, message)
}

/// Reason if the next page would be the same page again.
pub(super) const NO_PROGRESS: &str = "its listing continues at a position where it was before";
/// Reason if a truncated page names no next page.
pub(super) const NO_SUCCESSOR: &str =
    "it is truncated and does not say where the listing continues";

/// A received name, truncated for messages.
pub(super) fn shown(name: &[u8]) -> String {
    const MAX: usize = 200;
    let mut text = quoted(OsStr::from_bytes(name.get(..MAX).unwrap_or(name)));
    if name.len() > MAX {
        // Writing to a string cannot fail.
        let _ = write!(text, " …");
    }
    text
}

/// Reason if a name of a listing sorts before the one that precedes it.
pub(super) fn out_of_order(name: &[u8], before: &[u8]) -> String {
    format!("it is out of order: {} after {}", shown(name), shown(before))
}

/// Parses a decimal number of up to 64 bits.
pub(super) fn number(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text.trim_ascii()).ok()?;
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

/// Parses `true` or `false`.
pub(super) fn flag(text: &[u8]) -> Option<bool> {
    match text.trim_ascii() {
        b"true" => Some(true),
        b"false" => Some(false),
        _ => None,
    }
}

/// Parses an ISO 8601 time.
pub(super) fn time(text: &[u8]) -> Option<Time> {
    parse_iso(text.trim_ascii())
}

/// Parses non-empty UTF-8 text.
pub(super) fn words(text: &[u8]) -> Option<String> {
    std::str::from_utf8(text).ok().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Requests a page, unless the run is asked to stop before or meanwhile: listings may be endless, and
/// cancelling a request is harmless.
///
/// # Errors
/// Those of the request and of `read`; `Stopped`.
pub(super) async fn ask<T>(
    client: &Client,
    request: &Request,
    read: impl Fn(&Reply) -> Result<T, Error>,
) -> Result<T, Error> {
    let store = client.store();
    if store.is_stopped() {
        return Err(stopped(request.operation));
    }
    tokio::select! {
        page = send_and_read(client, request, read) => page,
        () = store.stopping() => Err(stopped(request.operation)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_plain_numbers_and_flags_are_read() {
        for (text, expected) in [
            ("0", Some(0)),
            (" 7\n", Some(7)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("-1", None),
            ("+1", None),
            ("1.0", None),
            ("0x10", None),
            ("", None),
            ("٣", None),
        ] {
            assert_eq!(number(text.as_bytes()), expected, "{text}");
        }
        for text in ["", "True", "1", "truefalse", "yes"] {
            assert_eq!(flag(text.as_bytes()), None, "{text}");
        }
        assert_eq!((flag(b"true"), flag(b" false ")), (Some(true), Some(false)));
    }

    #[test]
    fn the_first_reason_is_told() {
        let mut check = PageCheck::default();
        let mut field = None;
        check.set(&mut field, "Size", b"1", number(b"1"));
        check.set(&mut field, "Size", b"-1", number(b"-1"));
        check.set(&mut field, "Size", b"2", number(b"2"));
        check.need(None::<u64>, "Key", "an object");
        let error = check.finish("ListObjectsV2").unwrap_err();
        assert_eq!((field, error.kind), (Some(1), Kind::Corrupt));
        let told = "the server's answer to ListObjectsV2 cannot be trusted: its Size '-1' cannot be \
                    read";
        assert_eq!(error.to_string(), told);
    }

    proptest! {
        #[test]
        fn a_number_is_read_as_it_is_written(value: u64, other in "\\PC{0,8}") {
            prop_assert_eq!(number(value.to_string().as_bytes()), Some(value));
            if let Some(found) = number(other.as_bytes()) {
                let trimmed = other.trim_ascii().trim_start_matches('0');
                prop_assert_eq!(found.to_string(), if trimmed.is_empty() { "0" } else { trimmed });
            }
        }
    }
}
