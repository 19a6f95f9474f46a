//! Encoding of mtime, mode and owner in an object's metadata, compatible with rclone and s3fs; pure.
//!
//! | name | written as | read as |
//! |---|---|---|
//! | `mtime` | seconds, with a fraction if there is one (rclone's S3 docs; s3fs) | that, or RFC 3339 |
//! | `mode` | decimal `st_mode` with the type (s3fs) | that, or octal (rclone's `--metadata`) |
//! | `uid`, `gid` | decimal (s3fs, rclone) | that |

use super::ObjectOptions;
use crate::manifest::FileMetadata;
use crate::policy::Policy;
use hakobu_core::unit::{Kind, Meta, Time};
use hakobu_s3::ops::{Headers, ObjectHead};
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

impl FileMetadata {
    /// Returns the metadata of a local file.
    pub fn of(meta: &Meta) -> FileMetadata {
        let (mtime, mode, kind) = (Some(meta.mtime), Some(meta.mode), Some(meta.kind));
        FileMetadata { mtime, mode, kind, uid: Some(meta.uid), gid: Some(meta.gid) }
    }

    /// Returns the part that is stored with an object.
    pub fn in_store(&self, policy: &Policy, options: &ObjectOptions) -> FileMetadata {
        let owner = |uid| policy.chown_uid.or(uid);
        let group = |gid| policy.chown_gid.or(gid);
        FileMetadata {
            mtime: self.mtime.filter(|_| options.keep_times),
            mode: self.mode.filter(|_| options.keep_modes),
            kind: self.kind,
            uid: owner(self.uid).filter(|id| options.keep_owner && is_id(*id)),
            gid: group(self.gid).filter(|id| options.keep_group && is_id(*id)),
        }
    }

    /// Returns the part that a local file gets if user `euid` writes it. Only the superuser sets owners. Without its
    /// owner a file does not get the setuid bit, without its owner and group not the setgid bit: they would grant
    /// another user's privileges.
    pub fn on_file(&self, policy: &Policy, options: &ObjectOptions, euid: u32) -> FileMetadata {
        let root = euid == 0;
        let uid = policy.chown_uid.or(self.uid.filter(|_| options.keep_owner && root));
        let gid = policy.chown_gid.or(self.gid.filter(|_| options.keep_group && root));
        let [uid, gid] = [uid, gid].map(|id| id.filter(|id| is_id(*id)));
        let owner = if root { uid } else { uid.or(Some(euid)) };
        let lost = match (owner.is_some() && owner == self.uid, gid.is_some() && gid == self.gid) {
            (true, true) => 0,
            (true, false) => 0o2000,
            (false, _) => 0o6000,
        };
        FileMetadata {
            mtime: self.mtime.filter(|_| options.keep_times),
            mode: self.mode.filter(|_| options.keep_modes).map(|mode| mode & !lost),
            kind: self.kind,
            uid,
            gid,
        }
    }
}

/// Adds the headers that store the parts of `meta` that `options` request. A symlink is always marked: without its
/// mode it would come back as a file.
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
    if options.keep_owner {
        headers.push((UID, HeaderValue::from(policy.chown_uid.unwrap_or(meta.uid))));
    }
    if options.keep_group {
        headers.push((GID, HeaderValue::from(policy.chown_gid.unwrap_or(meta.gid))));
    }
}

/// Reads user metadata: names in lower case without `x-amz-meta-`. Invalid values are ignored.
pub(super) fn read(metadata: &[(String, String)]) -> FileMetadata {
    let mut kept = FileMetadata::default();
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
            "uid" => kept.uid = parse_id(text),
            "gid" => kept.gid = parse_id(text),
            _ => {}
        }
    }
    kept
}

/// Returns whether a number can be a user or group. The highest one means "unchanged" to chown(2): no file ever has it.
fn is_id(id: u32) -> bool {
    id != u32::MAX
}

fn parse_id(text: &str) -> Option<u32> {
    text.parse().ok().filter(|id| is_id(*id))
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

/// Formats a time like rclone: seconds since 1970, a fraction without trailing zeroes.
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

/// Parses `st_mode` from decimal (with a type, at most 65,535) or octal: rclone's octal numbers with a type exceed
/// that when read as decimal, and a leading zero means octal, too.
fn parse_mode(text: &str) -> Option<u32> {
    let decimal =
        || text.parse::<u32>().ok().filter(|mode| (0o10_000..=ST_MODE_MAX).contains(mode));
    let octal = || u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= ST_MODE_MAX);
    if text.starts_with('0') || text.starts_with('+') {
        return octal();
    }
    decimal().filter(|mode| kind_of(*mode).is_some()).or_else(octal)
}

/// Returns whether an object is marked as a symlink.
pub(crate) fn says_symlink(head: &ObjectHead) -> bool {
    read(&head.metadata).kind == Some(Kind::Symlink)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn meta(kind: Kind, mode: u32, mtime: Time) -> Meta {
        let time = Time::default();
        Meta {
            mode,
            uid: 1000,
            gid: u32::MAX - 1,
            atime: time,
            ctime: time,
            ..Meta::bare(kind, 0, mtime)
        }
    }

    fn round(meta: &Meta, options: &ObjectOptions) -> FileMetadata {
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
        ObjectOptions { keep_owner: true, keep_group: true, ..keep_all }
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
        assert_eq!(round(&meta(Kind::File, 0o640, time), &nothing), FileMetadata::default());
        let link = round(&meta(Kind::Symlink, 0o777, time), &nothing);
        assert_eq!((link.kind, link.mtime), (Some(Kind::Symlink), None));
    }

    #[test]
    fn setuid_goes_with_its_owner_only() {
        let kept = FileMetadata {
            mode: Some(0o6755),
            uid: Some(1234),
            gid: Some(5),
            ..FileMetadata::default()
        };
        let own = |keep_owner, keep_group| ObjectOptions { keep_owner, keep_group, ..all() };
        let policy = Policy::default();
        let of = |kept: FileMetadata, owner, group, euid| {
            let FileMetadata { mode, uid, gid, .. } =
                kept.on_file(&policy, &own(owner, group), euid);
            (mode.unwrap(), uid, gid)
        };
        assert_eq!(of(kept, false, false, 0), (0o755, None, None));
        assert_eq!(of(kept, true, false, 0), (0o4755, Some(1234), None));
        assert_eq!(of(kept, false, true, 0), (0o755, None, Some(5)));
        assert_eq!(of(kept, true, true, 0), (0o6755, Some(1234), Some(5)));
        // Another user's file, and one's own.
        assert_eq!(of(kept, true, true, 1000), (0o755, None, None));
        assert_eq!(of(kept, true, true, 1234), (0o4755, None, None));
        // The owner is unknown.
        let unknown = FileMetadata { uid: None, gid: None, ..kept };
        assert_eq!(of(unknown, true, true, 0), (0o755, None, None));
        // Another owner was requested.
        let policy = Policy { chown_uid: Some(7), ..Policy::default() };
        let changed = kept.on_file(&policy, &own(true, true), 0);
        assert_eq!((changed.mode, changed.uid), (Some(0o755), Some(7)));
    }

    proptest! {
        #[test]
        fn written_values_are_read_back(
            s in -10_000_000_000_i64..10_000_000_000, ns in 0_u32..1_000_000_000,
            mode in 0_u32..=0o7777, kind in 0..3,
        ) {
            let kind = [Kind::File, Kind::Dir, Kind::Symlink][kind as usize];
            let mtime = Time { s, ns };
            let kept = round(&meta(kind, mode, mtime), &all());
            let (uid, gid) = (Some(1000), Some(u32::MAX - 1));
            let wanted = FileMetadata { mtime: Some(mtime), mode: Some(mode), kind: Some(kind), uid, gid };
            prop_assert_eq!(kept, wanted);
        }
    }
}
