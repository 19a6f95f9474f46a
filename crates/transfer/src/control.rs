//! A handle to a run from outside: whoever handles signals stops it through this.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shared between a run and whoever may end it.
#[derive(Debug, Default)]
pub struct Control {
    stop: Arc<AtomicBool>,
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

    /// Whether somebody asked.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
