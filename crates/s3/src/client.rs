//! A core's client of a store, and its waits for the rate of content. `attempt` signs, sends and reads; `retrying`
//! repeats.

use super::error::Error;
use super::pool::Pool;
use super::request::Request;
use super::store::{Store, stopped};
use super::throttle::{Share, Throttle};
use hakobu_core::meter::{Doing, Lane, Phase, SharedLane};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;

/// Operations that transfer object content.
const CONTENT: &[&str] = &["PutObject", "UploadPart", "GetObject"];

/// A core's client. Cheap to clone; must stay on its core (inside a current-thread tokio runtime with a
/// `LocalSet`).
#[derive(Clone)]
pub struct Client {
    /// Connections of this core.
    pub(super) pool: Rc<Pool>,
    /// Receives reports of its activity.
    pub(super) doing: Option<Rc<Doing>>,
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

    /// Waits for a limiter; fails with `Stopped` if the run stops.
    async fn limited<T>(
        &self,
        wait: impl Future<Output = T>,
        operation: &'static str,
    ) -> Result<T, Error> {
        let _phase = self.doing.as_ref().map(|doing| doing.during(Phase::Limit));
        tokio::select! {
            done = wait => Ok(done),
            () = self.store().stopping() => Err(stopped(operation)),
        }
    }

    /// Waits for all bytes of a body that is about to be requested, if it is small: much of it arrives with
    /// its head and cannot be held back. Returns the number of bytes, for
    /// [`Download::prepaid`](super::Download::prepaid).
    ///
    /// # Errors
    /// `Stopped`.
    pub async fn prepay(&self, bytes: u64) -> Result<u64, Error> {
        // In one piece: if many requests waited for small grants, they would all be sent at the same time.
        match &self.pool.throttle {
            Some(throttle) if bytes > 0 && throttle.prepays(bytes) => {
                if !throttle.try_take(bytes) {
                    self.limited(throttle.take(bytes), "GetObject").await?;
                }
                Ok(bytes)
            }
            _ => Ok(0),
        }
    }

    /// Waits until another body with content may start, and for its first bytes.
    pub(super) async fn admit_body(&self, request: &Request) -> Result<Option<Share>, Error> {
        let operation = request.operation;
        let throttle = self.pool.throttle.as_ref().filter(|_| CONTENT.contains(&operation));
        let Some(throttle) = throttle else { return Ok(None) };
        let permit = match Arc::clone(&throttle.bodies).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                let permit = Arc::clone(&throttle.bodies).acquire_owned();
                // The semaphore is never closed.
                self.limited(permit, operation).await?.map_err(|_| stopped(operation))?
            }
        };
        let mut share = Share::new(throttle, permit);
        self.granted(&mut share, request.body.len() as u64, operation).await?;
        Ok(Some(share))
    }

    /// Waits until some of the `left_bytes` of a body may be moved; fails with `Stopped` if the run stops.
    pub(super) async fn granted(
        &self,
        share: &mut Share,
        left_bytes: u64,
        operation: &'static str,
    ) -> Result<(), Error> {
        if !share.try_grant(left_bytes) {
            self.limited(poll_fn(|cx| share.poll_grant(left_bytes, cx)), operation).await?;
        }
        Ok(())
    }
}
