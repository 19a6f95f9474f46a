//! What a run is steered by: how many may work, at which rates, and the counters that show what
//! comes of it. An engine obeys and counts; whoever steers reads and sets.

use super::{Gate, Limiter};
use crate::meter::Meter;
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub struct Helm {
    /// Units under way.
    pub gate: Gate,
    /// What was done, and what everybody does.
    pub meter: Meter,
    /// Bytes of content a second, all workers together.
    pub bytes: Option<Arc<Limiter>>,
    /// Operations (local) or requests (stores) a second, all workers together.
    pub operations: Option<Arc<Limiter>>,
}

impl Helm {
    /// Always `jobs` units, without limits of rates.
    pub fn fixed(jobs: usize) -> Helm {
        Helm { gate: Gate::fixed(jobs), meter: Meter::new(jobs), bytes: None, operations: None }
    }
}
