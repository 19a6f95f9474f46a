//! What the clients of all cores share: endpoint, credentials, retry budget, request rate, clock, regions, counters.

use crate::client::pool::DnsCache;
use crate::client::retry::{RetryBudget, RetryClass};
use crate::client::throttle::RequestRate;
use crate::credentials::{self, AwsHttpClient, CredentialCache};
use crate::endpoint::Route;
use crate::settings::ResolvedSettings;
use crate::time::now_s;
use crate::{Algorithm, CustomerKey, Error, ErrorKind, Lookup, Settings};
use hakobu_core::limit::Limiter;
use hakobu_core::meter::Phase;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Interval of checks for a stop during waits.
const STEP: Duration = Duration::from_millis(50);

/// Counters over all cores since the start.
#[derive(Debug, Default)]
pub struct Counters {
    /// Successful requests.
    pub requests: AtomicU64,
    /// Retried requests.
    pub retries: AtomicU64,
    /// Throttling responses (503, 429) and time-outs.
    pub throttled: AtomicU64,
    /// ServerSession connections.
    pub connections: AtomicU64,
}

/// Shared state of the clients of several cores: endpoint, addresses, TLS, credentials, signing key, retry
/// budget.
pub struct S3Session {
    pub counts: Counters,
    pub(crate) resolved: ResolvedSettings,
    pub(crate) dns: DnsCache,
    pub(crate) credential_cache: CredentialCache,
    pub(crate) budget: RetryBudget,
    pub(crate) connector: AwsHttpClient,
    /// Requests per second, if limited by the user.
    operations: OnceLock<Arc<Limiter>>,
    request_rate: Mutex<RequestRate>,
    /// True if the request rate is limited; otherwise its lock is not taken.
    paced: AtomicBool,
    started: Instant,
    skew_s: AtomicI64,
    /// Seconds by which the server's clock was ahead of ours at its first response.
    ahead_s: OnceLock<i64>,
    regions: Mutex<HashMap<String, String>>,
    regions_version: AtomicU64,
    stop: OnceLock<Arc<AtomicBool>>,
}

impl S3Session {
    /// Resolves settings from options, environment and profile; sends no request if credentials are at hand.
    /// Blocking; call it before the cores start.
    ///
    /// # Errors
    /// Kind `Settings` or `Credentials`: invalid endpoint, certificate or profile; no credentials.
    pub fn open(settings: &Settings) -> Result<Arc<S3Session>, Error> {
        let lookup = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        // On its own thread, because blocking is not allowed inside a runtime.
        std::thread::scope(|scope| {
            let opened = scope.spawn(|| S3Session::open_with(settings, &lookup)).join();
            opened.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// As [`S3Session::open`], with another environment.
    pub fn open_with(settings: &Settings, lookup: Lookup<'_>) -> Result<Arc<S3Session>, Error> {
        let unusable = |what: String| Error::new(ErrorKind::Settings, "", what);
        let resolved = settings.resolve(lookup).map_err(unusable)?;
        let (bundle, proxies) = (resolved.ca_bundle.clone(), resolved.proxies.clone());
        let connector = AwsHttpClient::new(bundle, !settings.no_verify_ssl, proxies);
        if resolved.endpoint.tls() {
            connector.tls().map_err(unusable)?;
        }
        let wrong = |what: String| Error::new(ErrorKind::Credentials, "", what);
        let credential_cache =
            credentials::open(&resolved, lookup, connector.clone()).map_err(wrong)?;
        let session = Arc::new(S3Session {
            counts: Counters::default(),
            dns: DnsCache::default(),
            budget: RetryBudget::new(),
            connector,
            operations: OnceLock::new(),
            request_rate: Mutex::default(),
            paced: AtomicBool::default(),
            started: Instant::now(),
            skew_s: AtomicI64::default(),
            ahead_s: OnceLock::new(),
            regions: Mutex::default(),
            regions_version: AtomicU64::default(),
            stop: OnceLock::new(),
            resolved,
            credential_cache,
        });
        if session.credential_cache.is_fetched() {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|e| unusable(format!("cannot start a runtime: {e}")))?;
            runtime
                .block_on(session.credential_cache.refresh(session.credential_cache.version()))
                .map_err(wrong)?;
        }
        Ok(session)
    }

    /// Checksum for uploads: CRC64NVME, another one on request, none for `when_required`.
    pub fn upload_checksum(&self) -> Option<Algorithm> {
        self.resolved.algorithm
    }

    /// True to verify downloads.
    pub fn checks_downloads(&self) -> bool {
        self.resolved.checks_downloads
    }

    /// Endpoint URL; for AWS that of its region. Identifies a session in records.
    pub fn endpoint(&self) -> String {
        let route = self.route(None);
        route.url() + &route.prefix
    }

    /// True if two stores have the same endpoint and account, so that the server can copy between them.
    pub fn same_account(&self, other: &S3Session) -> bool {
        let access_key = |session: &S3Session| {
            session.credential_cache.credentials().map(|credentials| credentials.access_key.clone())
        };
        self.resolved.endpoint == other.resolved.endpoint && access_key(self) == access_key(other)
    }

    /// True if two stores may be one, so that a bucket of one name is one bucket: all of AWS is, and so are two URLs
    /// whose hosts have an address in common at the same port, or at the default ports of http and https. A host that
    /// cannot be resolved may be any. Blocking.
    pub fn may_be_one(&self, other: &S3Session) -> bool {
        self.resolved.endpoint.may_be(&other.resolved.endpoint)
    }

    /// Sets the flag that ends all waits: backoff, rate limits, stalled servers. Later requests are still
    /// sent, but only once, so that a run can clean up. Only the first flag counts.
    pub fn set_control(&self, stop: Arc<AtomicBool>) {
        // A second flag is ignored, as documented.
        let _ = self.stop.set(stop);
    }

    /// Sets the limiter from which every attempt takes one token. Only the first limiter counts.
    pub fn set_operations(&self, limiter: &Arc<Limiter>) {
        // A second one is ignored, as documented.
        let _ = self.operations.set(Arc::clone(limiter));
    }

    /// The key that encrypts its objects, if the caller has one.
    pub fn customer_key(&self) -> Option<&CustomerKey> {
        self.resolved.given.customer_key.as_ref()
    }

    /// True if the run was asked to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.get().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Target of requests for a bucket, in its known region.
    pub(crate) fn route(&self, bucket: Option<&str>) -> Route {
        let region = bucket.and_then(|bucket| self.regions.lock().get(bucket).cloned());
        let region = region.as_deref().unwrap_or(&self.resolved.region);
        let route = self.resolved.endpoint.route(bucket, region, self.resolved.addressing);
        route.via_proxy(&self.resolved.proxies)
    }

    /// Stores a bucket's region.
    pub(crate) fn set_region(&self, bucket: &str, region: &str) {
        self.regions.lock().insert(bucket.to_owned(), region.to_owned());
        self.regions_version.fetch_add(1, Ordering::AcqRel);
    }

    /// Changes with each [`S3Session::set_region`].
    pub(crate) fn regions_version(&self) -> u64 {
        self.regions_version.load(Ordering::Acquire)
    }

    /// Learns the server's clock from a response; only the first one counts.
    pub(crate) fn learn_clock(&self, date_s: impl FnOnce() -> Option<i64>) {
        if self.ahead_s.get().is_none()
            && let Some(date_s) = date_s()
        {
            // Another core was first with the same value.
            let _ = self.ahead_s.set(date_s.saturating_sub(now_s()));
        }
    }

    /// Seconds by which the server's clock is ahead of ours; 0 before the first response, and for differences
    /// explained by latency and whole seconds.
    pub fn clock_ahead_s(&self) -> i64 {
        const EXPLAINED_S: u64 = 2;
        let ahead_s = self.ahead_s.get().copied().unwrap_or(0);
        if ahead_s.unsigned_abs() > EXPLAINED_S { ahead_s } else { 0 }
    }

    /// Seconds since 1970 by the server's clock, if known.
    pub(crate) fn server_now_s(&self) -> i64 {
        now_s().saturating_add(self.skew_s.load(Ordering::Relaxed))
    }

    pub(crate) fn set_clock(&self, server_s: i64) {
        self.skew_s.store(server_s.saturating_sub(now_s()), Ordering::Relaxed);
    }

    /// Waits until another request may be sent; reports the phase to `turn` if it has to wait.
    ///
    /// # Errors
    /// `Stopped` if the run is asked to stop meanwhile.
    pub(crate) async fn admit(
        &self,
        operation: &'static str,
        turn: impl Fn(Phase),
    ) -> Result<(), Error> {
        let operations = self.operations.get();
        if operations.is_none() && !self.paced.load(Ordering::Relaxed) || self.is_stopped() {
            return Ok(());
        }
        let now = self.started.elapsed();
        let take = |limiter: &Arc<Limiter>| limiter.take(1, limiter.elapsed());
        let mut wait = operations.map_or(Duration::ZERO, take);
        let mut phase = Phase::Limit;
        if self.paced.load(Ordering::Relaxed) {
            let mut request_rate = self.request_rate.lock();
            let pause = request_rate.take(now);
            if pause > wait {
                (wait, phase) = (pause, Phase::Pause);
            }
            self.paced.store(request_rate.is_limited(), Ordering::Relaxed);
        }
        if !wait.is_zero() {
            turn(phase);
        }
        if self.sleep(wait).await { Ok(()) } else { Err(stopped(operation)) }
    }

    /// Records a throttling response or stall, and lowers the rate; returns whether that is more than the
    /// usual search (see [`RequestRate::throttled`]).
    pub(crate) fn throttled(&self) -> bool {
        self.counts.throttled.fetch_add(1, Ordering::Relaxed);
        let succeeded = self.counts.requests.load(Ordering::Relaxed);
        let mut request_rate = self.request_rate.lock();
        let slowed = request_rate.throttled(self.started.elapsed(), succeeded);
        self.paced.store(true, Ordering::Relaxed);
        slowed
    }

    /// Pays for a retry and returns its cost; `None` to give up.
    pub(crate) fn may_retry(&self, class: RetryClass) -> Option<i64> {
        let succeeded = self.counts.requests.load(Ordering::Relaxed);
        self.budget.take(class, self.started.elapsed(), succeeded)
    }

    /// Call about once per second while requests are in flight.
    pub(crate) fn tick(&self) {
        let succeeded = self.counts.requests.load(Ordering::Relaxed);
        self.request_rate.lock().tick(self.started.elapsed(), succeeded);
    }

    /// Resolves soon after a request to stop.
    pub(crate) async fn stopping(&self) {
        while !self.is_stopped() {
            tokio::time::sleep(STEP).await;
        }
    }

    /// Waits; returns false as soon as the run is asked to stop.
    pub(crate) async fn sleep(&self, time: Duration) -> bool {
        let end = tokio::time::Instant::now() + time;
        loop {
            if self.is_stopped() {
                return false;
            }
            let left = end.saturating_duration_since(tokio::time::Instant::now());
            if left.is_zero() {
                return true;
            }
            let step = if self.stop.get().is_some() { left.min(STEP) } else { left };
            tokio::time::sleep(step).await;
        }
    }
}

/// Error of an interrupted wait.
pub(crate) fn stopped(operation: &'static str) -> Error {
    Error::new(ErrorKind::Stopped, operation, "the run was asked to stop")
}
