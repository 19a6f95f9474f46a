//! The client of one core. `request` makes one attempt, `retry` repeats it, `pool` keeps connections (`connection`,
//! `tls`), `throttle` limits rates; `session` is what all cores share.

pub(crate) mod connection;
pub(crate) mod pool;
pub(crate) mod request;
pub(crate) mod retry;
pub(crate) mod session;
pub(crate) mod throttle;
pub(crate) mod tls;

use crate::client::pool::Pool;
use crate::client::session::stopped;
use crate::client::throttle::BodyShare;
use crate::{Error, ErrorKind, Request, S3Session, Settings, Throttle};
use hakobu_core::meter::{Activity, Lane, Phase, SharedLane};
use std::future::poll_fn;
use std::ops::Add;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Operations that transfer object content.
const CONTENT: &[&str] = &["PutObject", "UploadPart", "GetObject"];

/// A core's client. Cheap to clone; must stay on its core (inside a current-thread tokio runtime with a
/// `LocalSet`).
#[derive(Clone)]
pub struct Client {
    /// Connections of this core.
    pub(crate) pool: Rc<Pool>,
    /// Receives reports of its activity.
    pub(crate) doing: Option<Rc<Activity>>,
}

impl Client {
    /// Creates a client without connections.
    pub fn new(session: &Arc<S3Session>) -> Client {
        Client { pool: Pool::new(session, None), doing: None }
    }

    /// Creates a client whose content is rate-limited.
    pub fn throttled(session: &Arc<S3Session>, throttle: &Arc<Throttle>) -> Client {
        Client { pool: Pool::new(session, Some(Arc::clone(throttle))), doing: None }
    }

    /// The same connections for one unit of work, to which requests are reported, and in whose lane they are
    /// counted.
    pub fn reporting_to(&self, doing: &Rc<Activity>) -> Client {
        Client { doing: Some(Rc::clone(doing)), ..self.clone() }
    }

    /// Reports the kernel's state of a few busy connections to the lane. Call about ten times per second on
    /// the lane's thread.
    pub fn sample_connections(&self, lane: &Lane) {
        self.pool.sample_connections(lane);
    }

    /// Times a TCP handshake with the endpoint in the background and reports it to the lane. Runs on the
    /// `LocalSet` of its core.
    pub fn handshake(&self, lane: &SharedLane) {
        self.pool.handshake(lane);
    }

    /// Reports the current phase.
    pub(crate) fn turn(&self, phase: Phase) {
        if let Some(doing) = &self.doing {
            doing.turn(phase);
        }
    }

    pub(crate) fn count(&self, what: impl FnOnce(&Lane)) {
        if let Some(doing) = &self.doing {
            what(doing.lane());
        }
    }

    pub fn session(&self) -> &Arc<S3Session> {
        &self.pool.session
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
            () = self.session().stopping() => Err(stopped(operation)),
        }
    }

    /// Waits for all bytes of a body that is about to be requested, if it is small: much of it arrives with
    /// its head and cannot be held back. Returns the number of bytes, for
    /// [`Download::prepaid`](crate::Download::prepaid).
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
    pub(crate) async fn admit_body(&self, request: &Request) -> Result<Option<BodyShare>, Error> {
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
        let mut share = BodyShare::new(throttle, permit);
        self.granted(&mut share, request.body.len() as u64, operation).await?;
        Ok(Some(share))
    }

    /// Waits until some of the `left_bytes` of a body may be moved; fails with `Stopped` if the run stops.
    pub(crate) async fn granted(
        &self,
        share: &mut BodyShare,
        left_bytes: u64,
        operation: &'static str,
    ) -> Result<(), Error> {
        if !share.try_grant(left_bytes) {
            self.limited(poll_fn(|cx| share.poll_grant(left_bytes, cx)), operation).await?;
        }
        Ok(())
    }
}

/// Counters of a session at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Successful requests.
    pub succeeded: u64,
    pub retries: u64,
    /// Throttling responses and time-outs.
    pub throttled: u64,
    /// ServerSession connections.
    pub connections: u64,
}

impl RequestCounts {
    /// Reads the counters of a session.
    pub fn of(session: &S3Session) -> RequestCounts {
        let now = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counts = &session.counts;
        RequestCounts {
            succeeded: now(&counts.requests),
            retries: now(&counts.retries),
            throttled: now(&counts.throttled),
            connections: now(&counts.connections),
        }
    }

    /// Difference to an earlier reading.
    pub fn since(self, before: RequestCounts) -> RequestCounts {
        RequestCounts {
            succeeded: self.succeeded.saturating_sub(before.succeeded),
            retries: self.retries.saturating_sub(before.retries),
            throttled: self.throttled.saturating_sub(before.throttled),
            connections: self.connections.saturating_sub(before.connections),
        }
    }
}

impl Add for RequestCounts {
    type Output = RequestCounts;

    fn add(self, other: RequestCounts) -> RequestCounts {
        RequestCounts {
            succeeded: self.succeeded + other.succeeded,
            retries: self.retries + other.retries,
            throttled: self.throttled + other.throttled,
            connections: self.connections + other.connections,
        }
    }
}

/// Opens a session and runs `work` with a client of it on this thread.
///
/// # Errors
/// Invalid settings or credentials; those of `work`.
pub fn with_client<T>(
    settings: &Settings,
    work: impl AsyncFnOnce(Client) -> Result<T, Error>,
) -> Result<T, Error> {
    let session = S3Session::open(settings)?;
    with_session(&session, work)
}

/// Runs `work` with a client of an open session on this thread. Must not be called inside a runtime.
///
/// # Errors
/// `Settings` if no runtime can be created; those of `work`.
pub fn with_session<T>(
    session: &Arc<S3Session>,
    work: impl AsyncFnOnce(Client) -> Result<T, Error>,
) -> Result<T, Error> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
            Error::new(ErrorKind::Settings, "", format!("cannot start a runtime: {error}"))
        })?;
    let client = Client::new(session);
    tokio::task::LocalSet::new().block_on(&runtime, work(client))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_added_field_by_field() {
        let one = RequestCounts { succeeded: 1, retries: 2, throttled: 3, connections: 4 };
        assert_eq!(
            one + one,
            RequestCounts { succeeded: 2, retries: 4, throttled: 6, connections: 8 }
        );
    }
}
