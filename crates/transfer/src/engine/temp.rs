//! Temporary names: `.hakobu-HOST-BOOT-PID-START-SEQUENCE`, all in hexadecimal.
//!
//! The name tells who made it, so that a later run can remove what a killed one left behind and
//! leaves alone what a living one is still writing. HOST covers the pid namespace; a name from
//! another host is never judged.
//!
//! `.hakobu-kept-ID` is an unfinished download that a later run may go on with (`--resume`): as
//! temporary as the others, but it is abandoned only when the journal says so.

use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicU64, Ordering};

const PREFIX: &[u8] = b".hakobu-";

/// What begins the name of an unfinished download that a later run may go on with.
const KEPT: &[u8] = b".hakobu-kept-";

/// Makes names for this process and judges those of others.
pub struct TempNames {
    host: u32,
    boot: u32,
    pid: u32,
    start: u64,
    next: AtomicU64,
}

impl TempNames {
    /// Names of this process.
    pub fn new() -> TempNames {
        let pid = std::process::id();
        TempNames {
            host: hakobu_sys::host::host_id(),
            boot: hakobu_sys::host::boot_id(),
            pid,
            start: hakobu_sys::process::start_ticks(pid).unwrap_or(0),
            next: AtomicU64::new(0),
        }
    }

    /// A name that no other process and no earlier call uses.
    pub fn make(&self) -> CString {
        let sequence = self.next.fetch_add(1, Ordering::Relaxed);
        let TempNames { host, boot, pid, start, .. } = self;
        let name = format!(".hakobu-{host:x}-{boot:x}-{pid:x}-{start:x}-{sequence:x}");
        CString::new(name).unwrap_or_default()
    }

    /// Whether the name has our form at all, whoever made it: such an entry is never copied and
    /// never counted as extraneous.
    pub fn is_temp(name: &CStr) -> bool {
        parse(name.to_bytes()).is_some() || is_kept(name.to_bytes())
    }

    /// The name of an unfinished download that is kept, by a number that stands for source and
    /// target.
    pub fn kept(id: u64) -> CString {
        CString::new(format!(".hakobu-kept-{id:016x}")).unwrap_or_default()
    }

    /// Whether the name was left by a process of this host that is no more.
    pub fn is_abandoned(&self, name: &CStr) -> bool {
        let Some([host, boot, pid, start, _]) = parse(name.to_bytes()) else { return false };
        if host != u64::from(self.host) {
            return false;
        }
        if boot != u64::from(self.boot) {
            return true;
        }
        let Ok(pid) = u32::try_from(pid) else { return false };
        if pid == self.pid && start == self.start {
            return false;
        }
        if !hakobu_sys::process::is_alive(pid) {
            return true;
        }
        hakobu_sys::process::start_ticks(pid).is_some_and(|now| now != start)
    }
}

fn is_kept(name: &[u8]) -> bool {
    let digits = name.strip_prefix(KEPT);
    digits.is_some_and(|id| id.len() == 16 && id.iter().all(u8::is_ascii_hexdigit))
}

fn parse(name: &[u8]) -> Option<[u64; 5]> {
    let rest = std::str::from_utf8(name.strip_prefix(PREFIX)?).ok()?;
    let mut fields = rest.split('-').map(|field| u64::from_str_radix(field, 16).ok());
    let parsed = [(); 5].map(|()| fields.next().flatten());
    if fields.next().is_some() {
        return None;
    }
    let [Some(host), Some(boot), Some(pid), Some(start), Some(sequence)] = parsed else {
        return None;
    };
    Some([host, boot, pid, start, sequence])
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
        assert!(!names.is_abandoned(&a));
        assert!(a.to_bytes().len() < 100);
    }

    #[test]
    fn names_of_the_dead_are_abandoned_and_those_of_other_hosts_are_not() {
        let names = TempNames::new();
        let TempNames { host, boot, pid, start, .. } = &names;
        let name = |text: String| CString::new(text).expect("no NUL");
        assert!(names.is_abandoned(&name(format!(".hakobu-{host:x}-{:x}-1-1-0", boot ^ 1))));
        assert!(names.is_abandoned(&name(format!(".hakobu-{host:x}-{boot:x}-ffffff0-1-0"))));
        assert!(
            names.is_abandoned(&name(format!(
                ".hakobu-{host:x}-{boot:x}-{pid:x}-{:x}-0",
                start + 1
            )))
        );
        assert!(!names.is_abandoned(&name(format!(".hakobu-{:x}-{boot:x}-1-1-0", host ^ 1))));
    }

    #[test]
    fn what_is_kept_is_temporary_and_never_abandoned() {
        let name = TempNames::kept(0x1f);
        assert_eq!(&*name, c".hakobu-kept-000000000000001f");
        assert!(TempNames::is_temp(&name) && !TempNames::new().is_abandoned(&name));
        for other in [c".hakobu-kept-", c".hakobu-kept-1f", c".hakobu-kept-00000000000000zz"] {
            assert!(!TempNames::is_temp(other), "{other:?}");
        }
    }

    #[test]
    fn other_names_are_not_ours() {
        for name in [c".hakobu-", c".hakobu-1-2-3-4", c".hakobu-1-2-3-4-5-6", c".hakobu-x-2-3-4-5"]
        {
            assert!(!TempNames::is_temp(name), "{name:?}");
        }
    }
}
