//! A handle to a run from outside: the handler of signals stops it through this.

use hakobu_sys::host;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Shared between a run and those that may end it; clones are handles to the same run.
#[derive(Clone, Debug, Default)]
pub struct Control {
    stop: Arc<AtomicBool>,
    /// End of the lease, in milliseconds since the boot; 0 without a lease.
    lease_ms: Arc<AtomicU64>,
}

impl Control {
    /// Asks the run to end: no new entry is begun, the ones being copied are given up cleanly.
    /// Async-signal-safe.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The flag that [`Control::stop`] sets, for a signal handler that can only set a flag.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Allows the run to give names to what it wrote until this time, in milliseconds since the boot
    /// ([`host::boot_ms`]). For one worker of several: a process that was stopped for longer must not
    /// replace files that others have written since.
    pub fn lease(&self, until_ms: u64) {
        self.lease_ms.store(until_ms.max(1), Ordering::Relaxed);
    }

    /// Returns whether the run is one worker of several, under a lease.
    pub fn is_leased(&self) -> bool {
        self.lease_ms.load(Ordering::Relaxed) != 0
    }

    /// Returns whether the run may publish files under final names. The end of its lease stops it.
    pub fn may_publish(&self) -> bool {
        let until_ms = self.lease_ms.load(Ordering::Relaxed);
        let may = until_ms == 0 || host::boot_ms() < until_ms;
        if !may {
            self.stop();
        }
        may
    }

    /// Returns whether a stop was requested.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_lease_stops_a_run() {
        let control = Control::default();
        assert!(control.may_publish() && !control.is_leased());
        control.lease(host::boot_ms() + 60_000);
        assert!(control.may_publish() && control.is_leased() && !control.is_stopped());
        control.lease(host::boot_ms());
        assert!(!control.may_publish() && control.is_stopped());
    }
}
