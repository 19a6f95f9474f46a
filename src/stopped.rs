//! Whether a signal asks the program to end, for waits that no run controls. `signals` installs the handlers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

static STOPPED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Returns the flag that handlers set.
pub fn flag() -> Arc<AtomicBool> {
    Arc::clone(STOPPED.get_or_init(Arc::default))
}

/// Returns whether a signal came. Before the handlers are installed, a signal ends the program at once.
pub fn is_stopped() -> bool {
    STOPPED.get().is_some_and(|stopped| stopped.load(Ordering::Relaxed))
}
