//! One account at one endpoint, shared by all cores.

use super::address::Addresses;
use super::checksum::Algorithm;
use super::connector::Connector;
use super::credentials::{self, Vault};
use super::endpoint::Place;
use super::error::{Error, Kind};
use super::pace::Pace;
use super::profile::Lookup;
use super::retry::{Budget, Class};
use super::settings::{Resolved, Settings};
use super::sign::Keys;
use crate::limit::Limiter;
use crate::meter::Phase;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio_rustls::TlsConnector;

/// In which steps a wait looks whether the run shall stop.
const STEP: Duration = Duration::from_millis(50);

/// Counts over all cores since the start.
#[derive(Debug, Default)]
pub struct Counts {
    /// Requests answered with success.
    pub requests: AtomicU64,
    /// Requests tried again.
    pub retries: AtomicU64,
    /// Answers that said "slow down" (503, 429) and time-outs.
    pub throttled: AtomicU64,
    /// Connections opened.
    pub connections: AtomicU64,
}

/// Endpoint, addresses, TLS, credentials, signing key, budgets of retries: all that the clients of
/// several cores share.
pub struct Store {
    /// What happened so far.
    pub counts: Counts,
    pub(super) resolved: Resolved,
    pub(super) addresses: Addresses,
    pub(super) vault: Vault,
    pub(super) budget: Budget,
    connector: Connector,
    /// Requests a second, where the user set a limit.
    operations: OnceLock<Arc<Limiter>>,
    pace: Mutex<Pace>,
    /// Whether the pace is limited at all: nobody takes its lock while it is not.
    paced: AtomicBool,
    started: Instant,
    skew_s: AtomicI64,
    regions: Mutex<HashMap<String, String>>,
    regions_version: AtomicU64,
    stop: OnceLock<Arc<AtomicBool>>,
}

/// Seconds since 1970 by this machine's clock.
pub(super) fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    i64::try_from(since).unwrap_or(i64::MAX)
}

impl Store {
    /// Resolves settings from options, environment, and profile; does no request where the
    /// credentials are at hand. Blocking; call it before the cores start.
    ///
    /// # Errors
    /// Kind `Settings` or `Credentials`: a bad endpoint, certificate, profile; no credentials.
    pub fn open(settings: &Settings) -> Result<Arc<Store>, Error> {
        let lookup = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        // A thread of its own: the caller may be inside a runtime, where one must not block.
        std::thread::scope(|scope| {
            let opened = scope.spawn(|| Store::open_with(settings, &lookup)).join();
            opened.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// The same with another environment.
    pub(super) fn open_with(settings: &Settings, lookup: Lookup<'_>) -> Result<Arc<Store>, Error> {
        let unusable = |what: String| Error::new(Kind::Settings, "", what);
        let resolved = settings.resolve(lookup).map_err(unusable)?;
        let connector = Connector::new(resolved.ca_bundle.clone(), resolved.verify_tls);
        if resolved.endpoint.tls() {
            connector.tls().map_err(unusable)?;
        }
        let wrong = |what: String| Error::new(Kind::Credentials, "", what);
        let vault = credentials::open(&resolved, lookup, connector.clone()).map_err(wrong)?;
        let store = Arc::new(Store {
            counts: Counts::default(),
            addresses: Addresses::default(),
            budget: Budget::new(),
            connector,
            operations: OnceLock::new(),
            pace: Mutex::new(Pace::new()),
            paced: AtomicBool::new(false),
            started: Instant::now(),
            skew_s: AtomicI64::new(0),
            regions: Mutex::new(HashMap::new()),
            regions_version: AtomicU64::new(0),
            stop: OnceLock::new(),
            resolved,
            vault,
        });
        if store.vault.is_fetched() {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|e| unusable(format!("cannot start a runtime: {e}")))?;
            runtime.block_on(store.vault.refresh(store.vault.version())).map_err(wrong)?;
        }
        Ok(store)
    }

    /// The region that buckets are made in.
    pub fn region(&self) -> String {
        self.resolved.region.clone()
    }

    /// The checksum to compute for uploads: CRC64NVME, another on request, none where
    /// `when_required` says so.
    pub fn upload_checksum(&self) -> Option<Algorithm> {
        self.resolved.algorithm
    }

    /// Whether downloads are checked.
    pub fn checks_downloads(&self) -> bool {
        self.resolved.checks_downloads
    }

    /// The endpoint as a URL; of AWS itself that of its region. Names a store in records.
    pub fn endpoint(&self) -> String {
        let place = self.place(None);
        place.url() + &place.prefix
    }

    /// Whether two stores are one endpoint and one account, so that the server can copy by itself.
    pub fn same_account(&self, other: &Store) -> bool {
        let access_key = |store: &Store| store.keys().map(|keys| keys.access_key.clone());
        self.resolved.endpoint == other.resolved.endpoint && access_key(self) == access_key(other)
    }

    /// Names the flag that, once set, cuts all waits short: back-off, limits of the rate, a server
    /// that stands still. Requests after it are sent all the same, but once only, so that a run
    /// can clean up. The first flag counts; later ones are not taken.
    pub fn set_control(&self, stop: Arc<AtomicBool>) {
        // A second flag is ignored, as said above.
        let _ = self.stop.set(stop);
    }

    /// Every request takes one from this limiter first, whoever sends it, tries after the first
    /// included. The first limiter counts; later ones are not taken.
    pub fn set_operations(&self, limiter: &Arc<Limiter>) {
        // A second one is ignored, as said above.
        let _ = self.operations.set(Arc::clone(limiter));
    }

    /// Whether the run was asked to stop.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.get().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Where requests for a bucket go now, after what servers said of its region.
    pub(super) fn place(&self, bucket: Option<&str>) -> Place {
        let region = bucket.and_then(|bucket| self.regions().get(bucket).cloned());
        let region = region.as_deref().unwrap_or(&self.resolved.region);
        self.resolved.endpoint.place(bucket, region, self.resolved.addressing)
    }

    /// The keys to sign with now; `None` for anonymous requests.
    pub(super) fn keys(&self) -> Option<Arc<Keys>> {
        self.vault.keys()
    }

    /// The TLS configuration for a place that wants it.
    pub(super) fn tls(&self) -> Result<&TlsConnector, String> {
        self.connector.tls()
    }

    /// Remembers a bucket's region.
    pub(super) fn set_region(&self, bucket: &str, region: &str) {
        self.regions().insert(bucket.to_owned(), region.to_owned());
        self.regions_version.fetch_add(1, Ordering::AcqRel);
    }

    /// Changes with each [`Store::set_region`].
    pub(super) fn regions_version(&self) -> u64 {
        self.regions_version.load(Ordering::Acquire)
    }

    fn regions(&self) -> MutexGuard<'_, HashMap<String, String>> {
        // One insert cannot be left half done.
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Seconds since 1970 by the server's clock, as far as it is known.
    pub(super) fn server_now_s(&self) -> i64 {
        now_s().saturating_add(self.skew_s.load(Ordering::Relaxed))
    }

    /// The server's clock says `server_s`.
    pub(super) fn set_clock(&self, server_s: i64) {
        self.skew_s.store(server_s.saturating_sub(now_s()), Ordering::Relaxed);
    }

    /// Waits until one more request may be sent; says to `turn` what for, where it does.
    ///
    /// # Errors
    /// `Stopped` where the run is asked to stop meanwhile.
    pub(super) async fn admit(
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
            let mut pace = self.pace();
            let pause = pace.take(now);
            if pause > wait {
                (wait, phase) = (pause, Phase::Pause);
            }
            self.paced.store(pace.is_limited(), Ordering::Relaxed);
        }
        if !wait.is_zero() {
            turn(phase);
        }
        if self.sleep(wait).await { Ok(()) } else { Err(stopped(operation)) }
    }

    /// Counts an answer that said "slow down", or none, and lowers the rate; whether that is more
    /// than the usual search for it (see [`Pace::throttled`]).
    pub(super) fn throttled(&self) -> bool {
        self.counts.throttled.fetch_add(1, Ordering::Relaxed);
        let succeeded = self.counts.requests.load(Ordering::Relaxed);
        let mut pace = self.pace();
        let slowed = pace.throttled(self.started.elapsed(), succeeded);
        self.paced.store(true, Ordering::Relaxed);
        slowed
    }

    /// Pays for one retry and says what it cost; `None` where there shall be none.
    pub(super) fn may_retry(&self, class: Class) -> Option<i64> {
        let succeeded = self.counts.requests.load(Ordering::Relaxed);
        self.budget.take(class, self.started.elapsed(), succeeded)
    }

    /// To be called about once a second while requests are under way.
    pub(super) fn tick(&self) {
        let succeeded = self.counts.requests.load(Ordering::Relaxed);
        self.pace().tick(self.started.elapsed(), succeeded);
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        // Numbers only: none of them is unsafe to go on with.
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves soon after the run was asked to stop.
    pub(super) async fn stopping(&self) {
        while !self.is_stopped() {
            tokio::time::sleep(STEP).await;
        }
    }

    /// Waits; `false` as soon as the run is asked to stop.
    pub(super) async fn sleep(&self, time: Duration) -> bool {
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

/// The error of a wait that was cut short.
pub(super) fn stopped(operation: &'static str) -> Error {
    Error::new(Kind::Stopped, operation, "the run was asked to stop")
}
