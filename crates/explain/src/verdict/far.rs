//! The other end of a transfer over a remote shell, and the link to it: facts, signals, and the rules that name them. Beside
//! the two machines and the line there are limits of ssh: windows of 2 MiB for each channel, and one thread at each end that encrypts.

use crate::verdict::facts::{CPU_FREE, CPU_FULL, REACHED, View};
use crate::verdict::rules::Claim;
use crate::verdict::{Evidence, Level, Resource};
use hakobu_core::meter::Phase;

/// The link and the other machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FarFacts {
    /// Name of the other machine.
    pub host: String,
    /// The other end is on this machine.
    pub same_machine: bool,
    /// Bytes per second that the source end writes to the link.
    pub bytes_per_s: f64,
    /// Bytes per second that the windows of all channels allow: 2 MiB of each in a round trip.
    pub windows_bytes_per_s: f64,
    /// Share of the time in which the source end waits for the link, 0 to 1.
    pub waits: f64,
    /// CPUs of the other machine.
    pub cpus: f64,
    /// CPUs used there by all processes.
    pub machine_used: f64,
    /// CPUs that ssh uses here.
    pub ssh_used: Option<f64>,
    /// CPUs that the ssh server uses there.
    pub far_ssh_used: Option<f64>,
}

/// Share of the time from which the source end waits for the link.
const WAITS: f64 = 0.6;
/// Share of what windows allow from which on they are the limit: they are never quite full.
const WINDOWS_FULL: f64 = 0.8;

impl View<'_> {
    /// Returns whether the link, or what is behind it, is waited for.
    fn waits_for_link(&self) -> Option<&FarFacts> {
        let far = self.f.far.as_ref()?;
        let limited = self.busy_share(Phase::Limit) >= 0.3;
        (far.waits >= WAITS && self.cpu_free() && !limited).then_some(far)
    }

    /// Returns whether the CPUs of the other machine are in use.
    pub(crate) fn far_cpus_full(&self) -> Option<&FarFacts> {
        let far = self.waits_for_link()?;
        let is_full = !far.same_machine && far.machine_used >= REACHED * far.cpus;
        (is_full && far.cpus > 0.0).then_some(far)
    }

    /// Returns whether ssh at one end uses a CPU, and where.
    pub(crate) fn ssh_full(&self) -> Option<(String, f64)> {
        let far = self.waits_for_link().filter(|_| self.far_cpus_full().is_none())?;
        self.ssh_ends(far).into_iter().find(|(_, used)| *used >= CPU_FULL)
    }

    fn ssh_ends(&self, far: &FarFacts) -> Vec<(String, f64)> {
        let here = far.ssh_used.map(|used| (String::new(), used));
        let there = far.far_ssh_used.map(|used| (far.host.clone(), used));
        here.into_iter().chain(there).collect()
    }

    /// Returns whether the link moves what its channels' windows allow.
    pub(crate) fn windows_are_full(&self) -> bool {
        let full = |far: &FarFacts| far.bytes_per_s >= WINDOWS_FULL * far.windows_bytes_per_s;
        self.f.far.as_ref().is_some_and(full)
    }

    /// Signals of the link and the other machine.
    pub(crate) fn far(&self) -> Vec<Evidence> {
        let Some(far) = &self.f.far else { return Vec::new() };
        let mut all = vec![link(far), waits(far)];
        all.extend(far_cpus(far));
        all.extend(self.ssh_ends(far).into_iter().map(ssh));
        all
    }
}

fn evidence(signal: &'static str, of: &str, value: f64, limit: f64) -> Evidence {
    Evidence { signal: signal.into(), of: of.to_owned(), value, limit }
}

fn link(far: &FarFacts) -> Evidence {
    evidence("far_link_bytes_per_s", "", far.bytes_per_s, far.windows_bytes_per_s)
}

fn waits(far: &FarFacts) -> Evidence {
    evidence("link_wait_share", "", far.waits, WAITS)
}

fn far_cpus(far: &FarFacts) -> Option<Evidence> {
    let of = evidence("far_used_cpus", &far.host, far.machine_used, far.cpus);
    (far.cpus > 0.0 && !far.same_machine).then_some(of)
}

fn ssh((place, used): (String, f64)) -> Evidence {
    evidence("ssh_used_cpus", &place, used, 1.0)
}

/// The CPUs of the other machine are in use, and the source end waits for what is behind the link.
pub(crate) fn cpu(v: &View<'_>) -> Option<Claim> {
    let far = v.far_cpus_full()?;
    let evidence = far_cpus(far).into_iter().chain([waits(far), v.cpu_used()]).collect();
    Some(Claim { resource: Resource::Cpu, level: Level::AtLimit, evidence })
}

/// ssh uses a CPU at one end: it encrypts in one thread.
pub(crate) fn cipher(v: &View<'_>) -> Option<Claim> {
    let (far, full) = (v.f.far.as_ref()?, v.ssh_full()?);
    let level = if full.1 >= REACHED { Level::AtLimit } else { Level::Consistent };
    let evidence = vec![ssh(full), waits(far), link(far)];
    Some(Claim { resource: Resource::Thread, level, evidence })
}

/// The source end waits for the link, and both machines have CPUs.
pub(crate) fn path(v: &View<'_>) -> Option<Claim> {
    let far = v.waits_for_link()?;
    if v.ssh_full().is_some() || far.machine_used > CPU_FREE * far.cpus {
        return None;
    }
    let level = if v.windows_are_full() { Level::AtLimit } else { Level::Consistent };
    let evidence = vec![link(far), waits(far), v.cpu_used()];
    Some(Claim { resource: Resource::Network, level, evidence })
}
