//! Temporary names: `.hakobu-HOST-BOOT-PID-START-SEQUENCE-CHECK`, hexadecimal digits of fixed widths.
//!
//! The name identifies its process, so that a later run removes the files of a dead one and leaves those of a running
//! one. HOST covers the pid namespace; names of another host are never judged. CHECK is a checksum of everything
//! before it: a user's file name does not have this form by accident, and is treated like any other.
//!
//! `.hakobu-kept-ID-CHECK` is an unfinished download that a later run may continue (`--resume`): also temporary, but
//! only abandoned when the journal says so.

use crate::journal::{Life, Owner, digits};
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicU64, Ordering};

/// Reason for skipping an entry with such a name.
pub const LEFT_OUT: &str = "it is an unfinished file of a hakobu run";

const PREFIX: &[u8] = b".hakobu-";

/// The prefix of an unfinished download that a later run may continue.
const KEPT: &[u8] = b".hakobu-kept-";

const SEQUENCE_MAX: u64 = (1 << 48) - 1;

/// Makes names for this process and judges those of others.
pub struct TempNames {
    owner: Owner,
    next: AtomicU64,
}

impl TempNames {
    /// Returns the names of this process.
    pub fn new() -> TempNames {
        // A random start: two engines of one process never make the same name.
        TempNames { owner: Owner::me(), next: AtomicU64::new(fastrand::u64(..SEQUENCE_MAX)) }
    }

    /// Returns a name that no other process and no earlier call uses.
    pub fn make(&self) -> CString {
        named(&self.owner, self.next.fetch_add(1, Ordering::Relaxed) & SEQUENCE_MAX)
    }

    /// Returns whether the name has our form, by any owner: such an entry is never copied and never counts as
    /// extraneous.
    pub fn is_temp(name: &CStr) -> bool {
        // The first bytes distinguish most names.
        let name = name.to_bytes();
        name.starts_with(PREFIX) && (parse(name).is_some() || is_kept(name))
    }

    /// Returns whether the name is one of this process: the file is being written, and nothing is wrong with it.
    pub fn is_own(&self, name: &CStr) -> bool {
        parse(name.to_bytes()).is_some_and(|owner| owner == self.owner)
    }

    /// As [`TempNames::is_temp`], for the last component of a path.
    pub fn ends_path(path: &[u8]) -> bool {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        CString::new(name).is_ok_and(|name| TempNames::is_temp(&name))
    }

    /// Returns the name of an unfinished download that is kept; `id` identifies source and target.
    pub fn kept(id: u64) -> CString {
        checked(format!(".hakobu-kept-{id:016x}"))
    }

    /// Returns whether the name belongs to a dead process of this host.
    pub fn is_abandoned(&self, name: &CStr) -> bool {
        let Some(owner) = parse(name.to_bytes()) else { return false };
        matches!(self.owner.judge(&owner), Life::Dead | Life::Rebooted)
    }
}

fn named(owner: &Owner, sequence: u64) -> CString {
    let Owner { host, boot, pid, start } = owner;
    let start = start & SEQUENCE_MAX;
    checked(format!(".hakobu-{host:08x}-{boot:08x}-{pid:08x}-{start:012x}-{sequence:012x}"))
}

/// Appends the checksum.
fn checked(text: String) -> CString {
    let sum = sum(text.as_bytes());
    CString::new(format!("{text}-{sum:08x}")).unwrap_or_default()
}

/// FNV-1a of 64 bits (draft-eastlake-fnv), folded to 32: the same in every version of the program.
fn sum(bytes: &[u8]) -> u32 {
    let sum = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (sum >> 32) as u32 ^ sum as u32
}

/// Returns the name without its checksum, if that is right.
fn without_check(name: &[u8]) -> Option<&[u8]> {
    let (text, check) = name.split_at_checked(name.len().checked_sub(9)?)?;
    let check = digits(check.strip_prefix(b"-")?)?;
    (check == u64::from(sum(text))).then_some(text)
}

fn is_kept(name: &[u8]) -> bool {
    let id = without_check(name).and_then(|text| text.strip_prefix(KEPT));
    id.is_some_and(|id| id.len() == 16 && digits(id).is_some())
}

fn parse(name: &[u8]) -> Option<Owner> {
    Owner::of_name(without_check(name)?.strip_prefix(PREFIX)?, 12)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_names_are_temporary_but_not_abandoned() {
        let names = TempNames::new();
        let (a, b) = (names.make(), names.make());
        assert_ne!(a, b);
        assert!(TempNames::is_temp(&a));
        assert!(!names.is_abandoned(&a) && names.is_own(&a));
        let other = named(&Owner { pid: names.owner.pid ^ 1, ..names.owner }, 0);
        assert!(!names.is_own(&other) && !names.is_own(&TempNames::kept(1)));
        assert_eq!(a.to_bytes().len(), 69);
        assert!(TempNames::ends_path(&[b"a/b/", a.to_bytes()].concat()));
        assert!(!TempNames::ends_path(&[a.to_bytes(), b"/b"].concat()));
    }

    #[test]
    fn names_of_the_dead_are_abandoned_and_those_of_other_hosts_are_not() {
        let names = TempNames::new();
        let me = names.owner;
        assert!(names.is_abandoned(&named(&Owner { boot: me.boot ^ 1, ..me }, 0)));
        assert!(names.is_abandoned(&named(&Owner { pid: 0x0fff_fff0, ..me }, 0)));
        assert!(names.is_abandoned(&named(&Owner { start: me.start + 1, ..me }, 0)));
        assert!(!names.is_abandoned(&named(&Owner { host: me.host ^ 1, ..me }, 0)));
    }

    #[test]
    fn kept_names_are_temporary_and_never_abandoned() {
        let name = TempNames::kept(0x1f);
        assert!(name.to_bytes().starts_with(b".hakobu-kept-000000000000001f-"));
        assert!(TempNames::is_temp(&name) && !TempNames::new().is_abandoned(&name));
        for other in [c".hakobu-kept-", c".hakobu-kept-1f", c".hakobu-kept-000000000000001f"] {
            assert!(!TempNames::is_temp(other), "{other:?}");
        }
    }

    #[test]
    fn other_names_are_not_ours() {
        for name in [
            c".hakobu-",
            c".hakobu-1-2-3-4-5",
            c".hakobu-1-2-3-4-5-6",
            c".hakobu-0000000a-0000000b-0000000c-00000000000d-00000000000e-00000000",
        ] {
            assert!(!TempNames::is_temp(name), "{name:?}");
        }
    }

    proptest::proptest! {
        /// A name that differs from one of ours in a single byte is not ours, nor is a longer or shorter one.
        #[test]
        fn every_byte_of_a_name_counts(at in 0..69_usize, other in 1..=255_u8) {
            let name = TempNames::new().make().into_bytes();
            let mut changed = name.clone();
            if let Some(byte) = changed.get_mut(at).filter(|byte| **byte != other) {
                *byte = other;
                proptest::prop_assert!(parse(&changed).is_none());
            }
            proptest::prop_assert!(parse(&[&name[..], &[other]].concat()).is_none());
            proptest::prop_assert!(parse(name.get(..at).unwrap_or_default()).is_none());
        }
    }
}
