//! The process that made something which outlives it: a temporary name, or the record of a run.

use hakobu_sys::{host, process};
use std::sync::OnceLock;

/// See [`Owner::give_up`].
static GIVEN_UP: OnceLock<Vec<Owner>> = OnceLock::new();

/// Identity of a process for other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Hash of host and pid namespace.
    pub host: u32,
    /// Hash of the boot ID of the kernel.
    pub boot: u32,
    /// Process ID.
    pub pid: u32,
    /// Start of the process, in clock ticks since the boot.
    pub start: u64,
}

/// State of the process of an [`Owner`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It runs; includes this process.
    Alive,
    /// It ended during the current boot.
    Dead,
    /// The machine was rebooted since.
    Rebooted,
    /// It belongs to another host or pid namespace, so its state is unknown.
    Elsewhere,
}

impl Owner {
    /// Returns this process; computed once.
    pub fn me() -> Owner {
        static ME: OnceLock<Owner> = OnceLock::new();
        *ME.get_or_init(|| {
            let (host, boot, pid) = (host::host_id(), host::boot_id(), std::process::id());
            Owner { host, boot, pid, start: process::start_ticks(pid).unwrap_or(0) }
        })
    }

    /// Parses a text made by [`Owner::text`].
    pub fn parse(text: &str) -> Option<Owner> {
        let mut fields = text.split('-').map(|field| u64::from_str_radix(field, 16).ok());
        let mut next = || fields.next().flatten();
        let (host, boot, pid, start) = (next()?, next()?, next()?, next()?);
        let small = |value: u64| u32::try_from(value).ok();
        Some(Owner { host: small(host)?, boot: small(boot)?, pid: small(pid)?, start })
    }

    /// Parses the end of a file name: the four numbers and another one of `width` digits, all in lower-case hexadecimal
    /// digits of fixed widths.
    pub fn of_name(text: &[u8], width: usize) -> Option<Owner> {
        let mut fields = text.split(|byte| *byte == b'-');
        let mut values = [0; 5];
        for (value, width) in values.iter_mut().zip([8, 8, 8, 12, width]) {
            *value = digits(fields.next().filter(|field| field.len() == width)?)?;
        }
        let [host, boot, pid, start, _] = values;
        // Eight digits each: the widths were checked.
        let owner = Owner { host: host as u32, boot: boot as u32, pid: pid as u32, start };
        fields.next().is_none().then_some(owner)
    }

    /// Returns the process as text, for records that other machines read.
    pub fn text(&self) -> String {
        let Owner { host, boot, pid, start } = self;
        format!("{host:08x}-{boot:08x}-{pid:x}-{start:x}")
    }

    /// Registers processes that have abandoned their writes, on any machine: for the rest of this process they count
    /// as dead. Only the first call has an effect.
    pub fn give_up(owners: Vec<Owner>) {
        drop(GIVEN_UP.set(owners));
    }

    /// Determines whether another process runs.
    pub fn judge(&self, other: &Owner) -> Life {
        if GIVEN_UP.get().is_some_and(|owners| owners.contains(other)) {
            return Life::Dead;
        }
        if other.host != self.host {
            return Life::Elsewhere;
        }
        if other.boot != self.boot {
            return Life::Rebooted;
        }
        if other == self {
            return Life::Alive;
        }
        let runs = process::is_alive(other.pid)
            && process::start_ticks(other.pid).is_none_or(|start| start == other.start);
        if runs { Life::Alive } else { Life::Dead }
    }
}

/// Parses a fixed number of lower-case hexadecimal digits.
pub fn digits(text: &[u8]) -> Option<u64> {
    let lower = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let text = std::str::from_utf8(text).ok().filter(|_| text.iter().all(lower))?;
    u64::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_others() {
        let me = Owner::me();
        assert_eq!(me.judge(&me), Life::Alive);
        for (other, life) in [
            (Owner { host: me.host ^ 1, ..me }, Life::Elsewhere),
            (Owner { boot: me.boot ^ 1, ..me }, Life::Rebooted),
            (Owner { start: me.start + 1, ..me }, Life::Dead),
            (Owner { pid: 0x0fff_fff0, ..me }, Life::Dead),
        ] {
            assert_eq!(me.judge(&other), life, "{other:?}");
        }
        let parent = std::os::unix::process::parent_id();
        let start = process::start_ticks(parent).expect("the parent runs");
        assert_eq!(me.judge(&Owner { pid: parent, start, ..me }), Life::Alive);
    }

    #[test]
    fn a_process_has_a_text() {
        let me = Owner::me();
        assert_eq!(Owner::parse(&me.text()), Some(me));
        for other in ["", "1-2-3", "100000000-2-3-4", "x-2-3-4"] {
            assert_eq!(Owner::parse(other), None, "{other}");
        }
    }

    #[test]
    fn digits_are_of_one_form() {
        assert_eq!(digits(b"00ff"), Some(255));
        for other in [&b"00FF"[..], b"+0ff", b"0x1f", b"", b"00f ", b"\xff\xff"] {
            assert_eq!(digits(other), None, "{other:?}");
        }
    }
}
