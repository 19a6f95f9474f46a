//! A core's client of a store. `attempt` signs, sends and reads; `retrying` repeats.

use super::pool::Pool;
use super::store::Store;
use super::throttle::Throttle;
use hakobu_core::meter::{Doing, Lane, Phase, SharedLane};
use std::rc::Rc;
use std::sync::Arc;

/// A core's client. Cheap to clone; must stay on its core (inside a current-thread tokio runtime with a
/// `LocalSet`).
#[derive(Clone)]
pub struct Client {
    pool: Rc<Pool>,
    /// Receives reports of its activity.
    doing: Option<Rc<Doing>>,
}

impl Client {
    /// Creates a client without connections.
    pub fn new(store: &Arc<Store>) -> Client {
        Client { pool: Pool::new(store, None), doing: None }
    }

    /// Creates a client whose content is rate-limited.
    pub fn throttled(store: &Arc<Store>, throttle: &Arc<Throttle>) -> Client {
        Client { pool: Pool::new(store, Some(Arc::clone(throttle))), doing: None }
    }

    /// The same connections for one unit of work, to which requests are reported, and in whose lane they are
    /// counted.
    pub fn telling(&self, doing: &Rc<Doing>) -> Client {
        Client { doing: Some(Rc::clone(doing)), ..self.clone() }
    }

    /// Reports the kernel's state of a few busy connections to the lane. Call about ten times per second on
    /// the lane's thread.
    pub fn look_at_some(&self, lane: &Lane) {
        self.pool.look_at_some(lane);
    }

    /// Times a TCP handshake with the store in the background and reports it to the lane. Runs on the
    /// `LocalSet` of its core.
    pub fn shake_hands(&self, lane: &SharedLane) {
        self.pool.shake_hands(lane);
    }

    /// Receiver of reports.
    pub(super) fn doing(&self) -> Option<&Rc<Doing>> {
        self.doing.as_ref()
    }

    /// Reports the current phase.
    pub(super) fn turn(&self, phase: Phase) {
        if let Some(doing) = &self.doing {
            doing.turn(phase);
        }
    }

    /// Counts in the lane, if there is one.
    pub(super) fn count(&self, what: impl FnOnce(&Lane)) {
        if let Some(doing) = &self.doing {
            what(doing.lane());
        }
    }

    /// The store of this client.
    pub fn store(&self) -> &Arc<Store> {
        &self.pool.store
    }

    /// Connections of this core.
    pub(super) fn pool(&self) -> &Rc<Pool> {
        &self.pool
    }
}
