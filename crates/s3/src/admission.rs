//! Rate limiting of object content.

use super::client::Client;
use super::error::Error;
use super::request::Request;
use super::store::stopped;
use super::throttle::{Share, Throttle};
use hakobu_core::meter::Phase;
use std::sync::Arc;

/// Operations that transfer object content.
const CONTENT: &[&str] = &["PutObject", "UploadPart", "GetObject"];

impl Client {
    /// Throttle for requests of this kind.
    fn throttle(&self, operation: &str) -> Option<&Arc<Throttle>> {
        self.pool().throttle.as_ref().filter(|_| CONTENT.contains(&operation))
    }

    /// Waits for a limiter; fails with `Stopped` if the run stops.
    async fn limited<T>(
        &self,
        wait: impl Future<Output = T>,
        operation: &'static str,
    ) -> Result<T, Error> {
        let _phase = self.doing().map(|doing| doing.during(Phase::Limit));
        tokio::select! {
            done = wait => Ok(done),
            () = self.store().stopping() => Err(stopped(operation)),
        }
    }

    /// Waits until this number of content bytes may be transferred; fails with `Stopped` if the run stops.
    pub(super) async fn take(&self, bytes: u64, operation: &'static str) -> Result<(), Error> {
        match &self.pool().throttle {
            Some(throttle) if !throttle.try_take(bytes) => {
                self.limited(throttle.take(bytes), operation).await
            }
            _ => Ok(()),
        }
    }

    /// Waits for all bytes of a body that is about to be requested, if it is small: much of it arrives with
    /// its head and cannot be held back. Returns the number of bytes, for [`Download::prepaid`].
    ///
    /// # Errors
    /// `Stopped`.
    pub async fn prepay(&self, bytes: u64) -> Result<u64, Error> {
        // In one piece: if many requests waited for small grants, they would all be sent at the same time.
        let throttle = self.pool().throttle.as_ref();
        match throttle.is_some_and(|throttle| bytes > 0 && throttle.prepays(bytes)) {
            true => self.take(bytes, "GetObject").await.map(|()| bytes),
            false => Ok(0),
        }
    }

    /// Waits until another body with content may start, and for its first bytes.
    pub(super) async fn admit_body(&self, request: &Request) -> Result<Option<Share>, Error> {
        let operation = request.operation;
        let Some(throttle) = self.throttle(operation) else { return Ok(None) };
        let permit = match Arc::clone(throttle.bodies()).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                let permit = Arc::clone(throttle.bodies()).acquire_owned();
                // The semaphore is never closed.
                self.limited(permit, operation).await?.map_err(|_| stopped(operation))?
            }
        };
        let bytes = match request.body.is_empty() {
            true => 0,
            false => throttle.grant_bytes(request.body.len() as u64),
        };
        if bytes > 0 {
            self.take(bytes, operation).await?;
        }
        Ok(Some(Share::new(throttle, bytes, permit)))
    }
}
