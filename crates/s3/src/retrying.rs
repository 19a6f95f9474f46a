//! Sends requests until they succeed or their attempts are used up.

use super::attempt::{Answer, Failure, Sent};
use super::client::Client;
use super::download::Download;
use super::error::{Error, Kind};
use super::outgoing::Tally;
use super::request::{Reply, Request};
use super::retry::{self, Class};
use super::store::stopped;
use hakobu_core::meter::{Lane, Phase};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Connection attempts to a host that has never responded and only times out.
const SILENT_ATTEMPTS_MAX: u32 = 2;
/// Most repetitions of a request because of its region, clock or token.
const REPAIRS_MAX: u32 = 3;
/// Operations whose bodies are object content.
const UPLOADS: &[&str] = &["PutObject", "UploadPart"];

impl Client {
    /// Sends a request until it succeeds, its attempts are used up, or the failure is final; reads the whole
    /// body, of at most 64 MiB. A response that violates its operation's rule is not a success.
    ///
    /// # Errors
    /// The last failure.
    pub async fn send(&self, request: &Request) -> Result<Reply, Error> {
        Ok(self.insist(request, true).await?.0)
    }

    /// As [`Client::send`], but returns the body as a stream. Retries cover everything up to the headers; the
    /// caller handles a broken body.
    ///
    /// # Errors
    /// The last failure.
    pub async fn download(&self, request: &Request) -> Result<Download, Error> {
        let (Reply { status, headers, .. }, rest) = self.insist(request, false).await?;
        let (client, operation) = (self.clone(), request.operation);
        Ok(Download { status, headers, rest, client, operation, size: 0 })
    }

    /// Decides whether a broken body may be requested again: takes from the retry budget and waits; returns
    /// false if the attempts are used up. `tried` counts from 1.
    pub async fn may_retry(&self, tried: u32, after: &Error) -> bool {
        let class = retry::class(after.kind, after.status, &after.code);
        self.back_off(class, tried, None).await.is_some()
    }

    /// Waits before another attempt and returns its cost; `None` to give up.
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

    /// Records a throttling response or a stall.
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
        let mut unsure = false;
        let tally = match UPLOADS.contains(&request.operation) {
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
            (error.tries, error.unsure) = (tries, unsure);
            unsure |= match sent {
                Sent::Nothing => false,
                Sent::Perhaps | Sent::Stale => true,
                Sent::Answered => error.status >= 500 && error.kind != Kind::Throttled,
            };
            if sent == Sent::Stale && request.repeatable && !fresh {
                // The server had closed an idle connection, which is not a failure.
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
            let lost = matches!(sent, Sent::Perhaps | Sent::Stale) && !request.repeatable;
            if lost || silent && tries >= SILENT_ATTEMPTS_MAX {
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
