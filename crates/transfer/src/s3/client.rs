//! One core's client of a store: signs, sends, reads, tries again.

use super::attempt::{Answer, Failure, Sent};
use super::download::Download;
use super::error::{Error, Kind};
use super::flow::Flow;
use super::outgoing::{Paced, Tally};
use super::pool::Pool;
use super::request::{Reply, Request};
use super::retry::{self, Class};
use super::store::{Store, stopped};
use crate::meter::{Doing, Lane, Phase};
use crossbeam_utils::CachePadded;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Tries to connect to a host that never answered so far and lets every try run out of time.
const SILENT_ATTEMPTS_MAX: u32 = 2;
/// How often one request may be redone because it was signed for another region, clock or token.
const REPAIRS_MAX: u32 = 3;
/// Operations whose bodies are content of objects.
const CONTENT: &[&str] = &["PutObject", "UploadPart"];

/// One core's client. Cheap to clone, never leaves its core (inside a current-thread runtime of
/// tokio with a `LocalSet`).
#[derive(Clone)]
pub struct Client {
    pool: Rc<Pool>,
    /// Who hears what it does.
    doing: Option<Rc<Doing>>,
    /// The rate of content.
    flow: Option<Rc<Flow>>,
}

impl Client {
    /// A client without connections yet.
    pub fn new(store: &Arc<Store>) -> Client {
        Client { pool: Pool::new(store), doing: None, flow: None }
    }

    /// The same connections for one unit of work, which is told what happens to its requests, and
    /// in whose lane they are counted.
    pub fn telling(&self, doing: &Rc<Doing>) -> Client {
        Client { doing: Some(Rc::clone(doing)), ..self.clone() }
    }

    /// The same connections, where bodies with content keep a rate.
    pub fn keeping(&self, flow: &Rc<Flow>) -> Client {
        Client { flow: Some(Rc::clone(flow)), ..self.clone() }
    }

    /// New connections receive no more than a little ahead of this rate: for clients that fetch.
    pub fn receiving_ahead(&self, flow: &Rc<Flow>) {
        self.pool.receive_ahead(flow);
    }

    /// The rate of content, for requests of this kind.
    fn flow(&self, operation: &str) -> Option<&Rc<Flow>> {
        self.flow.as_ref().filter(|_| CONTENT.contains(&operation) || operation == "GetObject")
    }

    /// Waits until so many bytes of content may be moved; `Stopped` where the run is.
    pub(super) async fn take(&self, bytes: u64, operation: &'static str) -> Result<(), Error> {
        let Some(flow) = &self.flow else { return Ok(()) };
        if flow.try_take(bytes) {
            return Ok(());
        }
        let _phase = self.doing.as_ref().map(|doing| doing.during(Phase::Limit));
        tokio::select! {
            () = flow.take(bytes) => Ok(()),
            () = self.store().stopping() => Err(stopped(operation)),
        }
    }

    /// Waits, under the rate of content, for all bytes of a body that is about to be asked for,
    /// where they are few: much of it comes with its head, before anybody can hold it back.
    /// Returns how many bytes that were, for [`Download::prepaid`].
    ///
    /// # Errors
    /// `Stopped`.
    pub async fn prepay(&self, bytes: u64) -> Result<u64, Error> {
        // As a whole: many that took a little each would all ask at the same time.
        match self.flow.as_ref().is_some_and(|flow| bytes > 0 && flow.prepays(bytes)) {
            true => self.take(bytes, "GetObject").await.map(|()| bytes),
            false => Ok(0),
        }
    }

    /// Waits until one more body with content may be on its way, and for its first bytes.
    pub(super) async fn admit_body(&self, request: &Request) -> Result<Option<Paced>, Error> {
        let operation = request.operation;
        let Some(flow) = self.flow(operation) else { return Ok(None) };
        let permit = match Arc::clone(flow.bodies()).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                let _phase = self.doing.as_ref().map(|doing| doing.during(Phase::Limit));
                tokio::select! {
                    // It is never closed.
                    Ok(permit) = Arc::clone(flow.bodies()).acquire_owned() => permit,
                    () = self.store().stopping() => return Err(stopped(operation)),
                }
            }
        };
        if request.body.is_empty() {
            return Ok(Some(Paced::new(flow, 0, permit)));
        }
        let bytes = flow.grant_bytes(request.body.len() as u64);
        self.take(bytes, operation).await?;
        Ok(Some(Paced::new(flow, bytes, permit)))
    }

    /// Tells of a few busy connections, as the kernel sees them. To be called about ten times a
    /// second, by the thread that writes the lane.
    pub fn look_at_some(&self, lane: &Lane) {
        self.pool.look_at_some(lane);
    }

    /// Times a TCP handshake with the store in the background, and tells the lane. Runs on the
    /// `LocalSet` of its core.
    pub fn shake_hands(&self, lane: &Arc<CachePadded<Lane>>) {
        self.pool.shake_hands(lane);
    }

    /// Who hears what it does.
    pub(super) fn doing(&self) -> Option<&Rc<Doing>> {
        self.doing.as_ref()
    }

    /// Tells what it does from now on.
    pub(super) fn turn(&self, phase: Phase) {
        if let Some(doing) = &self.doing {
            doing.turn(phase);
        }
    }

    /// Counts something.
    pub(super) fn count(&self, what: impl FnOnce(&Lane)) {
        if let Some(doing) = &self.doing {
            what(doing.lane());
        }
    }

    /// The store that it belongs to.
    pub fn store(&self) -> &Arc<Store> {
        &self.pool.store
    }

    /// Its core's connections.
    pub(super) fn pool(&self) -> &Rc<Pool> {
        &self.pool
    }

    /// Sends a request until it succeeds, its tries are spent, or its failure is final; reads the
    /// whole body, of at most 64 MiB.
    ///
    /// # Errors
    /// The last failure.
    pub async fn send(&self, request: &Request) -> Result<Reply, Error> {
        let answer = self.insist(request, true).await?;
        Ok(Reply { status: answer.status, headers: answer.headers, body: answer.body })
    }

    /// The same, but hands out the body as it comes. Retries cover everything up to the headers;
    /// who reads the body decides what to do when it breaks.
    ///
    /// # Errors
    /// The last failure.
    pub async fn download(&self, request: &Request) -> Result<Download, Error> {
        let Answer { status, headers, rest, .. } = self.insist(request, false).await?;
        let (client, operation) = (self.clone(), request.operation);
        Ok(Download { status, headers, rest, client, operation })
    }

    /// How often a body that broke may be asked for again: takes from the retry budget, waits the
    /// back-off; `false` when the tries are spent. `tried` counts from 1.
    pub async fn may_retry(&self, tried: u32, after: &Error) -> bool {
        let class = retry::class(after.kind, after.status, &after.code);
        self.back_off(class, tried, None).await.is_some()
    }

    /// Waits before another try and returns what it cost; `None` where there shall be none.
    async fn back_off(
        &self,
        class: Class,
        tries: u32,
        retry_after: Option<Duration>,
    ) -> Option<i64> {
        let store = self.store();
        let attempts = store.resolved.attempts;
        let wait = retry::wait(class, tries, attempts, retry_after, fastrand::f64())?;
        let cost = store.may_retry(class)?;
        store.counts.retries.fetch_add(1, Ordering::Relaxed);
        self.turn(Phase::Pause);
        store.sleep(wait).await.then_some(cost)
    }

    /// Counts an answer that said "slow down", or none.
    pub(super) fn complained(&self, class: Class) {
        match class {
            Class::Throttled => self.count(Lane::throttled),
            Class::TimedOut => self.count(Lane::timed_out),
            Class::Final | Class::Transient => return,
        }
        if self.store().throttled() {
            self.count(Lane::slowed);
        }
    }

    async fn insist(&self, request: &Request, whole: bool) -> Result<Answer, Error> {
        let store = self.store();
        let payload = self.payload(request);
        let (mut tries, mut repairs, mut paid, mut fresh) = (1, 0, 0, false);
        let tally = match CONTENT.contains(&request.operation) {
            true => self.doing.as_ref().map(Tally::new),
            false => None,
        };
        loop {
            let tried = self.attempt(request, &payload, tally.as_ref(), whole, fresh).await;
            let failure = match tried {
                Ok(answer) => {
                    if whole {
                        self.count(|lane| lane.completions(1));
                    }
                    store.counts.requests.fetch_add(1, Ordering::Relaxed);
                    store.budget.refill(paid);
                    return Ok(answer);
                }
                Err(failure) => failure,
            };
            let Failure { mut error, sent, retry_after, .. } = failure;
            error.tries = tries;
            if sent == Sent::Stale && request.repeatable && !fresh {
                // The server had given up an idle connection: nobody's failure.
                fresh = true;
                store.counts.retries.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            if repairs < REPAIRS_MAX && self.repair(request, &failure.context, &error).await? {
                repairs += 1;
                store.counts.retries.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let class = retry::class(error.kind, error.status, &error.code);
            if sent != Sent::Nothing {
                self.complained(class);
            }
            let silent = sent == Sent::Nothing
                && class == Class::TimedOut
                && store.counts.connections.load(Ordering::Relaxed) == 0;
            if error.kind == Kind::TimedOut && sent == Sent::Nothing {
                error.kind = Kind::Connection;
            }
            let unsure = matches!(sent, Sent::Perhaps | Sent::Stale) && !request.repeatable;
            if unsure || silent && tries >= SILENT_ATTEMPTS_MAX {
                return Err(error);
            }
            match self.back_off(class, tries, retry_after).await {
                Some(cost) => paid = cost,
                None if class != Class::Final && store.is_stopped() => {
                    return Err(Error { tries, ..stopped(request.operation) });
                }
                None => return Err(error),
            }
            (tries, fresh) = (tries + 1, false);
        }
    }
}

#[cfg(test)]
mod tests;
