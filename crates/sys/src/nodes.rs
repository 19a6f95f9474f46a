//! Nodes of memory and CPUs (NUMA): sysfs, set_mempolicy(2).

use crate::errno;
use std::io::{ErrorKind, Result};

/// Memory policy of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// MPOL_DEFAULT.
    #[default]
    Default,
    /// MPOL_PREFERRED: this node first.
    Prefer,
    /// MPOL_BIND: these nodes only.
    Bind,
    /// MPOL_INTERLEAVE: these nodes in turn.
    Interleave,
    /// MPOL_LOCAL: the node of the CPU.
    Local,
}

/// Numbers of nodes and CPUs, at most.
const NUMBERS_MAX: u32 = 4096;

/// CPUs of a node, in order.
///
/// # Errors
/// NotFound where the machine has no such node.
pub fn cpus(node: u32) -> Result<Vec<u32>> {
    let path = format!("/sys/devices/system/node/node{node}/cpulist");
    let text = std::fs::read_to_string(path)?;
    list(text.trim()).ok_or_else(|| ErrorKind::InvalidData.into())
}

/// `0-3,5`.
fn list(text: &str) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last >= NUMBERS_MAX {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all)
}

/// Sets the policy of this thread's memory.
///
/// # Errors
/// EINVAL where a node is not there; ENOSYS where the kernel knows no nodes.
pub fn set_policy(policy: Policy, nodes: &[u32]) -> Result<()> {
    let mode: libc::c_int = match policy {
        Policy::Default => 0,
        Policy::Prefer => 1,
        Policy::Bind => 2,
        Policy::Interleave => 3,
        Policy::Local => 4,
    };
    const BITS: usize = libc::c_ulong::BITS as usize;
    let mut mask: [libc::c_ulong; NUMBERS_MAX as usize / BITS] = [0; NUMBERS_MAX as usize / BITS];
    for node in nodes {
        let word = mask.get_mut(*node as usize / BITS).ok_or(ErrorKind::InvalidInput)?;
        *word |= 1 << (*node as usize % BITS);
    }
    // One more than there are: the kernel takes one off.
    let bits = if nodes.is_empty() { 0 } else { NUMBERS_MAX as usize + 1 };
    let start = if nodes.is_empty() { std::ptr::null() } else { mask.as_ptr() };
    // SAFETY: the call reads `bits` bits from `start`, which outlives it; with none it reads nothing. The last bit
    // is not read.
    errno::check(unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, start, bits) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        assert_eq!(list("0-3,5"), Some(vec![0, 1, 2, 3, 5]));
        assert_eq!((list(""), list("x"), list("0-9999999")), (Some(vec![]), None, None));
    }

    #[test]
    fn a_policy_is_this_threads() {
        // Kernels without nodes have no node 0, and the call is often forbidden in containers.
        if cpus(0).is_ok() && set_policy(Policy::Bind, &[0]).is_ok() {
            assert!(set_policy(Policy::Bind, &[4095]).is_err());
            set_policy(Policy::Default, &[]).unwrap();
        }
        assert!(cpus(4095).is_err());
        assert!(set_policy(Policy::Bind, &[1 << 20]).is_err());
    }
}
