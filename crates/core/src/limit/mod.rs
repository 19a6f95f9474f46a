//! Limits: rates shared by all workers, the number of active workers, and the maximum numbers.

mod gate;
mod limits;
mod rate;

pub use gate::Gate;
pub use limits::{Limits, Work, check_memory};
pub use rate::Limiter;

use crate::meter::Meter;
use std::sync::Arc;

/// Controls of a run: the number of jobs, the rates, and the counters that show their effect. An engine obeys and
/// counts; the controller reads and sets.
#[derive(Debug)]
pub struct Controls {
    /// Units under way.
    pub gate: Gate,
    /// Work done and under way.
    pub meter: Arc<Meter>,
    /// Bytes of content a second, all workers together.
    pub bytes: Option<Arc<Limiter>>,
    /// Operations (local) or requests (stores) a second, all workers together.
    pub operations: Option<Arc<Limiter>>,
}

impl Controls {
    /// Always `jobs` units, without limits of rates.
    pub fn fixed(jobs: usize) -> Controls {
        let meter = Arc::new(Meter::new(jobs));
        Controls { gate: Gate::fixed(jobs), meter, bytes: None, operations: None }
    }
}
