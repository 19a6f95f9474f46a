//! How mtime, mode and owner travel in an object's metadata, in the spelling of rclone and s3fs;
//! pure.
//!
//! | name | written as | read as |
//! |---|---|---|
//! | `mtime` | seconds, with a fraction where there is one (rclone's S3 docs; s3fs) | that, or RFC 3339 |
//! | `mode` | decimal `st_mode` with the type (s3fs) | that, or octal (rclone's `--metadata`) |
//! | `uid`, `gid` | decimal (s3fs, rclone) | that |

use super::ObjectOptions;
use crate::policy::Policy;
use crate::s3::ops::Headers;
use crate::unit::{Kind, Meta, Time};
use http::{HeaderName, HeaderValue};

const MTIME: HeaderName = HeaderName::from_static("x-amz-meta-mtime");
const MODE: HeaderName = HeaderName::from_static("x-amz-meta-mode");
const UID: HeaderName = HeaderName::from_static("x-amz-meta-uid");
const GID: HeaderName = HeaderName::from_static("x-amz-meta-gid");

/// Type bits of `st_mode` (inode(7)).
const TYPES: u32 = 0o170_000;
const TYPE_FILE: u32 = 0o100_000;
const TYPE_DIR: u32 = 0o040_000;
const TYPE_SYMLINK: u32 = 0o120_000;
const ST_MODE_MAX: u32 = 0o177_777;

/// What an object's metadata says of the file that it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    /// Time of the last change.
    pub mtime: Option<Time>,
    /// Permission bits, 0 to 0o7777.
    pub mode: Option<u32>,
    /// The type that `mode` names.
    pub kind: Option<Kind>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
}

/// Adds the headers that keep of `meta` what `options` ask for. A symlink always says that it is
/// one: without its mode it would come back as a file.
pub(super) fn write(meta: &Meta, policy: &Policy, options: &ObjectOptions, headers: &mut Headers) {
    if options.keep_times {
        headers.extend(value(time_text(meta.mtime)).map(|value| (MTIME, value)));
    }
    if options.keep_modes || meta.kind == Kind::Symlink {
        let is_dir = meta.kind == Kind::Dir;
        let permissions = match &policy.chmod {
            Some(rules) if meta.kind != Kind::Symlink => rules.apply(meta.mode, is_dir),
            _ => meta.mode,
        };
        headers.push((MODE, HeaderValue::from(type_bits(meta.kind) | permissions)));
    }
    if options.keep_owners {
        headers.push((UID, HeaderValue::from(policy.chown_uid.unwrap_or(meta.uid))));
        headers.push((GID, HeaderValue::from(policy.chown_gid.unwrap_or(meta.gid))));
    }
}

/// Reads user metadata: names in lower case without `x-amz-meta-`. What cannot be read is left
/// out.
pub(super) fn read(metadata: &[(String, String)]) -> Kept {
    let mut kept = Kept::default();
    for (name, text) in metadata {
        let text = text.trim();
        match name.as_str() {
            "mtime" => kept.mtime = parse_time(text),
            "mode" => {
                if let Some(st_mode) = parse_mode(text) {
                    kept.mode = Some(st_mode & 0o7777);
                    kept.kind = kind_of(st_mode);
                }
            }
            "uid" => kept.uid = text.parse().ok(),
            "gid" => kept.gid = text.parse().ok(),
            _ => {}
        }
    }
    kept
}

fn value(text: String) -> Option<HeaderValue> {
    HeaderValue::from_maybe_shared(bytes::Bytes::from(text)).ok()
}

fn type_bits(kind: Kind) -> u32 {
    match kind {
        Kind::Dir => TYPE_DIR,
        Kind::Symlink => TYPE_SYMLINK,
        _ => TYPE_FILE,
    }
}

fn kind_of(st_mode: u32) -> Option<Kind> {
    match st_mode & TYPES {
        TYPE_FILE => Some(Kind::File),
        TYPE_DIR => Some(Kind::Dir),
        TYPE_SYMLINK => Some(Kind::Symlink),
        _ => None,
    }
}

/// A time as rclone writes it: seconds since 1970, a fraction without zeroes at its end.
fn time_text(time: Time) -> String {
    if time.ns == 0 {
        return time.s.to_string();
    }
    // Before 1970 the fraction of a `Time` still counts upwards: -1 s + 0.25 s is -0.75.
    let (sign, s, ns) = match time.s {
        0.. => ("", time.s.unsigned_abs(), time.ns),
        _ => ("-", (time.s + 1).unsigned_abs(), 1_000_000_000 - time.ns),
    };
    let text = format!("{sign}{s}.{ns:09}");
    text.trim_end_matches('0').to_owned()
}

fn parse_time(text: &str) -> Option<Time> {
    if text.contains('T') {
        let stamp: jiff::Timestamp = text.parse().ok()?;
        let ns = stamp.subsec_nanosecond();
        // Before 1970 jiff counts both downwards.
        return match u32::try_from(ns) {
            Ok(ns) => Some(Time { s: stamp.as_second(), ns }),
            Err(_) => {
                Some(Time { s: stamp.as_second() - 1, ns: u32::try_from(1_000_000_000 + ns).ok()? })
            }
        };
    }
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    let s: i64 = whole.parse().ok()?;
    let fraction: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let ns: u32 = fraction.parse().ok()?;
    Some(match (negative, ns) {
        (false, _) => Time { s, ns },
        (true, 0) => Time { s: -s, ns },
        (true, _) => Time { s: -s - 1, ns: 1_000_000_000 - ns },
    })
}

/// `st_mode` from decimal (with a type, at most 65,535) or from octal: rclone's octal numbers with
/// a type are larger than that when they are read as decimal, and a leading zero means octal, too.
fn parse_mode(text: &str) -> Option<u32> {
    let decimal =
        || text.parse::<u32>().ok().filter(|mode| (0o10_000..=ST_MODE_MAX).contains(mode));
    let octal = || u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= ST_MODE_MAX);
    if text.starts_with('0') || text.starts_with('+') {
        return octal();
    }
    decimal().filter(|mode| kind_of(*mode).is_some()).or_else(octal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn meta(kind: Kind, mode: u32, mtime: Time) -> Meta {
        let time = Time::default();
        Meta {
            kind,
            mode,
            size: 0,
            blocks: 0,
            uid: 1000,
            gid: u32::MAX,
            nlink: 1,
            dev: 0,
            ino: 0,
            rdev: 0,
            mtime,
            atime: time,
            ctime: time,
        }
    }

    fn round(meta: &Meta, options: &ObjectOptions) -> Kept {
        let mut headers = Headers::new();
        write(meta, &Policy::default(), options, &mut headers);
        let plain = headers.iter().map(|(name, value)| {
            let name = name.as_str().strip_prefix("x-amz-meta-").unwrap();
            (name.to_owned(), value.to_str().unwrap().to_owned())
        });
        read(&plain.collect::<Vec<_>>())
    }

    fn all() -> ObjectOptions {
        let keep_all = ObjectOptions { keep_times: true, keep_modes: true, ..Default::default() };
        ObjectOptions { keep_owners: true, ..keep_all }
    }

    #[test]
    fn spellings_of_rclone_and_s3fs() {
        let text = |s, ns| time_text(Time { s, ns });
        assert_eq!(text(1_700_000_000, 123_456_789), "1700000000.123456789");
        assert_eq!(text(1_700_000_000, 120_000_000), "1700000000.12");
        assert_eq!(text(1_700_000_000, 0), "1700000000");
        assert_eq!(text(-1, 250_000_000), "-0.75");
        assert_eq!(text(-2, 0), "-2");
        for (text, time) in [
            ("1700000000.12", Some((1_700_000_000, 120_000_000))),
            ("1700000000.123456789123", Some((1_700_000_000, 123_456_789))),
            ("-0.75", Some((-1, 250_000_000))),
            ("2023-11-14T22:13:20.5Z", Some((1_700_000_000, 500_000_000))),
            ("1969-12-31T23:59:59.25Z", Some((-1, 250_000_000))),
            ("2023-11-15T00:13:20+02:00", Some((1_700_000_000, 0))),
            ("", None),
            (".5", None),
            ("1e9", None),
            ("--5", None),
            ("99999999999999999999", None),
        ] {
            let wanted = time.map(|(s, ns)| Time { s, ns });
            assert_eq!(parse_time(text), wanted, "{text}");
        }
        for (text, mode) in [
            ("33188", Some(0o100_644)),
            ("16877", Some(0o040_755)),
            ("41471", Some(0o120_777)),
            ("100644", Some(0o100_644)),
            ("0100644", Some(0o100_644)),
            ("040755", Some(0o040_755)),
            ("0600", Some(0o600)),
            ("600", Some(0o600)),
            ("rw", None),
            ("-1", None),
            ("999", None),
            ("7777777", None),
        ] {
            assert_eq!(parse_mode(text), mode, "{text}");
        }
    }

    #[test]
    fn only_what_is_asked_for_is_written() {
        let time = Time { s: 5, ns: 0 };
        let nothing = ObjectOptions::default();
        assert_eq!(round(&meta(Kind::File, 0o640, time), &nothing), Kept::default());
        let link = round(&meta(Kind::Symlink, 0o777, time), &nothing);
        assert_eq!((link.kind, link.mtime), (Some(Kind::Symlink), None));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            s in -10_000_000_000_i64..10_000_000_000, ns in 0_u32..1_000_000_000,
            mode in 0_u32..=0o7777, kind in 0..3,
        ) {
            let kind = [Kind::File, Kind::Dir, Kind::Symlink][kind as usize];
            let mtime = Time { s, ns };
            let kept = round(&meta(kind, mode, mtime), &all());
            let (uid, gid) = (Some(1000), Some(u32::MAX));
            let wanted = Kept { mtime: Some(mtime), mode: Some(mode), kind: Some(kind), uid, gid };
            prop_assert_eq!(kept, wanted);
        }
    }
}
