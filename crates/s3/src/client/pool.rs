//! Connections of a core, and caches: addresses of hosts, routes of buckets, Host headers, signing keys.

use crate::client::connection::{self, Conn, Watchdog};
use crate::endpoint::Route;
use crate::sign::Signer;
use crate::{Credentials, Error, ErrorKind, S3Session, Throttle};
use hakobu_core::meter::{Lane, SharedLane};
use http::HeaderValue;
use parking_lot::Mutex;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time limit for a stalled connection after a stop.
const STOPPED_TIMEOUT: Duration = Duration::from_secs(2);
/// Busy connections sampled at a time.
const LOOKS_MAX: usize = 4;
/// Most cached buckets; a run uses few.
const DESTINATIONS_MAX: usize = 64;

/// Idle connections to a host, most recently used last.
pub(crate) struct HostPool {
    authority: String,
    tls: bool,
    idle: RefCell<Vec<Conn>>,
}

/// Common data of requests for one bucket.
pub(crate) struct BucketRoute {
    bucket: Option<String>,
    /// Target.
    pub route: Route,
    pub host: HeaderValue,
    /// Connections to it.
    pub host_pool: Rc<HostPool>,
}

/// Keys of one version, and the signing key derived from them for a region and day.
struct Identity {
    version: u64,
    credentials: Option<Arc<Credentials>>,
    signers: Vec<Signer>,
}

/// Connections and caches of a core.
pub(crate) struct Pool {
    pub session: Arc<S3Session>,
    /// Rate limit of content.
    pub throttle: Option<Arc<Throttle>>,
    destinations: RefCell<Vec<Rc<BucketRoute>>>,
    regions_version: Cell<u64>,
    host_pools: RefCell<Vec<Rc<HostPool>>>,
    identity: RefCell<Option<Identity>>,
    watches: RefCell<Vec<Weak<Watchdog>>>,
    ticking: Cell<bool>,
    /// Connections being sampled, and the next one.
    asked: RefCell<Vec<Weak<Watchdog>>>,
    next: Cell<usize>,
}

impl Pool {
    /// Creates an empty pool.
    pub fn new(session: &Arc<S3Session>, throttle: Option<Arc<Throttle>>) -> Rc<Pool> {
        Rc::new(Pool {
            session: Arc::clone(session),
            throttle,
            destinations: RefCell::default(),
            regions_version: Cell::new(session.regions_version()),
            host_pools: RefCell::default(),
            identity: RefCell::new(None),
            watches: RefCell::default(),
            ticking: Cell::new(false),
            asked: RefCell::default(),
            next: Cell::new(0),
        })
    }

    /// Target of requests for a bucket.
    ///
    /// # Errors
    /// `Invalid`: the bucket's name cannot be part of a host name.
    pub fn destination(
        &self,
        bucket: Option<&str>,
        operation: &'static str,
    ) -> Result<Rc<BucketRoute>, Error> {
        let version = self.session.regions_version();
        let mut destinations = self.destinations.borrow_mut();
        if self.regions_version.replace(version) != version || destinations.len() > DESTINATIONS_MAX
        {
            destinations.clear();
        }
        if let Some(destination) =
            destinations.iter().find(|destination| destination.bucket.as_deref() == bucket)
        {
            return Ok(Rc::clone(destination));
        }
        let route = self.session.route(bucket);
        let host = HeaderValue::from_str(&route.authority).map_err(|_| {
            let why = format!("'{}' cannot be the name of a host", route.authority);
            Error::new(ErrorKind::Invalid, operation, why)
        })?;
        let host_pool = self.host_pool(&route);
        let destination =
            Rc::new(BucketRoute { bucket: bucket.map(str::to_owned), route, host, host_pool });
        destinations.push(Rc::clone(&destination));
        Ok(destination)
    }

    fn host_pool(&self, route: &Route) -> Rc<HostPool> {
        let mut host_pools = self.host_pools.borrow_mut();
        let same = |host_pool: &&Rc<HostPool>| {
            host_pool.tls == route.tls && host_pool.authority == route.authority
        };
        if let Some(host_pool) = host_pools.iter().find(same) {
            return Rc::clone(host_pool);
        }
        let idle = RefCell::default();
        let host_pool =
            Rc::new(HostPool { authority: route.authority.clone(), tls: route.tls, idle });
        host_pools.push(Rc::clone(&host_pool));
        host_pool
    }

    /// Calls `sign` with the signer for a region at `now_s`, unless requests are anonymous. Returns the
    /// version of the credentials.
    pub fn with_signer(&self, region: &str, now_s: i64, sign: impl FnOnce(&Signer)) -> u64 {
        let version = self.session.credential_cache.version();
        let mut identity = self.identity.borrow_mut();
        if identity.as_ref().is_none_or(|identity| identity.version != version) {
            let credentials = self.session.credential_cache.credentials();
            *identity = Some(Identity { version, credentials, signers: Vec::new() });
        }
        let Some(Identity { credentials: Some(credentials), signers, .. }) = &mut *identity else {
            return version;
        };
        let known = signers.iter().position(|signer| signer.is_for(region, now_s));
        let at = known.unwrap_or_else(|| {
            // That of another day is not needed again.
            signers.retain(|signer| signer.region != region);
            signers.push(Signer::new(credentials, region, now_s));
            signers.len() - 1
        });
        sign(&signers[at]);
        version
    }

    /// Returns the most recently used idle connection, else a new one; always a new one if `fresh`.
    ///
    /// # Errors
    /// `Connection`, or `Settings` for an untrusted certificate.
    pub async fn checkout(
        self: &Rc<Self>,
        destination: &BucketRoute,
        fresh: bool,
        operation: &'static str,
    ) -> Result<Conn, Error> {
        if !fresh && let Some(conn) = destination.host_pool.idle.borrow_mut().pop() {
            return Ok(conn);
        }
        let session = &self.session;
        let tls = destination.route.tls.then(|| session.connector.tls()).transpose();
        let tls = tls.map_err(|what| Error::new(ErrorKind::Settings, operation, what))?;
        let timeout = session.resolved.connect_timeout;
        let throttle = self.throttle.as_ref();
        let ahead_bytes = throttle.and_then(|throttle| throttle.ahead(session.dns.rtt()));
        let dialled =
            connection::dial(&session.dns, &destination.route, tls, timeout, ahead_bytes).await;
        let stream = dialled.map_err(|(kind, what)| Error::new(kind, operation, what))?;
        session.counts.connections.fetch_add(1, Ordering::Relaxed);
        let conn = Conn::new(stream).await;
        let conn = conn.map_err(|what| Error::new(ErrorKind::Connection, operation, what))?;
        self.watches.borrow_mut().push(Rc::downgrade(&conn.watch));
        if !self.ticking.replace(true) {
            tokio::task::spawn_local(tick(Rc::downgrade(self), session.resolved.read_timeout));
        }
        Ok(conn)
    }

    /// Reports the state of a few busy connections, requested the last time, to the lane, and requests that
    /// of the next few.
    pub fn sample_connections(&self, lane: &Lane) {
        let mut asked = self.asked.borrow_mut();
        let seen = asked.drain(..).filter_map(|watch| watch.upgrade()?.take_sample());
        seen.for_each(|look| lane.wire().sampled(&look));
        let watches = self.watches.borrow();
        let start = self.next.get() % watches.len().max(1);
        for (step, watch) in watches.iter().cycle().skip(start).take(watches.len()).enumerate() {
            if asked.len() >= LOOKS_MAX {
                self.next.set(start + step);
                return;
            }
            if watch.upgrade().is_some_and(|watch| watch.request_sample()) {
                asked.push(Weak::clone(watch));
            }
        }
    }

    /// Times a TCP handshake with the last target in the background, and reports it to the lane; failures are
    /// ignored. No request is sent.
    pub fn handshake(self: &Rc<Self>, lane: &SharedLane) {
        let Some(destination) = self.destinations.borrow().last().cloned() else { return };
        if !self.watches.borrow().iter().any(|watch| watch.strong_count() > 0) {
            return;
        }
        let (session, lane) = (Arc::clone(&self.session), lane.clone());
        tokio::task::spawn_local(async move {
            if let Some(rtt_us) = connection::handshake_us(&session.dns, &destination.route).await {
                lane.wire().handshake(rtt_us);
            }
        });
    }

    /// Checks all connections, and does periodic work of the session.
    fn look(&self) {
        let now = Instant::now();
        let timeout_max = if self.session.is_stopped() { STOPPED_TIMEOUT } else { Duration::MAX };
        self.watches.borrow_mut().retain(|watch| {
            let watch = watch.upgrade();
            if let Some(watch) = &watch {
                watch.look(now, timeout_max);
            }
            watch.is_some()
        });
        self.session.tick();
        let now_s = crate::time::now_s();
        if self.session.credential_cache.claims_refresh(now_s) {
            let session = Arc::clone(&self.session);
            tokio::task::spawn_local(
                async move { session.credential_cache.refresh_ahead(now_s).await },
            );
        }
    }
}

impl HostPool {
    /// Returns a connection after the end of its response.
    pub async fn checkin(&self, mut conn: Conn) {
        if conn.rest().await {
            self.idle.borrow_mut().push(conn);
        }
    }
}

/// One coarse timer for all connections of a core instead of one per request.
async fn tick(pool: Weak<Pool>, read_timeout: Duration) {
    let step = (read_timeout / 8).clamp(Duration::from_millis(10), Duration::from_secs(1));
    loop {
        tokio::time::sleep(step).await;
        match pool.upgrade() {
            Some(pool) => pool.look(),
            None => return,
        }
    }
}

/// Lifetime of a DNS answer. S3's own is five seconds with different addresses each time, so that long runs
/// use more of them.
const TTL: Duration = Duration::from_secs(30);

/// The addresses of all hosts of a session.
#[derive(Debug, Default)]
pub(crate) struct DnsCache {
    hosts: Mutex<HashMap<(String, u16), HostAddresses>>,
    /// Shortest connection time so far, nanoseconds; 0 before the first connection.
    rtt_ns: AtomicU64,
}

#[derive(Debug)]
struct HostAddresses {
    list: Vec<SocketAddr>,
    resolved: Instant,
    turn: usize,
}

impl DnsCache {
    /// Records the time that a connection took to open.
    pub fn record_connect_time(&self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1);
        let shorter = |least: u64| (least == 0 || ns < least).then_some(ns);
        // An error means that it is not shorter.
        let _ = self.rtt_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, shorter);
    }

    /// Round-trip time to the nearest address; `None` before the first connection.
    pub fn rtt(&self) -> Option<Duration> {
        let ns = self.rtt_ns.load(Ordering::Relaxed);
        (ns > 0).then(|| Duration::from_nanos(ns))
    }

    /// Address for a new connection to `host`.
    ///
    /// # Errors
    /// A message: the name cannot be resolved.
    pub async fn next(&self, host: &str, port: u16) -> Result<SocketAddr, String> {
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Ok(SocketAddr::new(ip, port));
        }
        if let Some(address) = self.known(host, port, Instant::now()) {
            return Ok(address);
        }
        let name = host.to_owned();
        let found = tokio::task::spawn_blocking(move || {
            (name.as_str(), port).to_socket_addrs().map(Vec::from_iter)
        });
        let list = match found.await {
            Ok(Ok(list)) if !list.is_empty() => list,
            Ok(Ok(_)) => return Err(format!("the name {host} has no address")),
            Ok(Err(e)) => return Err(format!("the name {host} cannot be resolved: {e}")),
            Err(_) => return Err(format!("the name {host} cannot be resolved: interrupted")),
        };
        let first = list[0];
        let known = HostAddresses { list, resolved: Instant::now(), turn: 1 };
        self.hosts.lock().insert((host.to_owned(), port), known);
        Ok(first)
    }

    fn known(&self, host: &str, port: u16, now: Instant) -> Option<SocketAddr> {
        let mut hosts = self.hosts.lock();
        let known = hosts.get_mut(&(host.to_owned(), port))?;
        if known.list.is_empty() || now.duration_since(known.resolved) > TTL {
            return None;
        }
        let address = known.list[known.turn % known.list.len()];
        known.turn = known.turn.wrapping_add(1);
        Some(address)
    }

    /// Drops an address that did not respond until the name is resolved again; returns the number of
    /// remaining ones.
    pub fn drop_unreachable(&self, host: &str, port: u16, bad: SocketAddr) -> usize {
        let mut hosts = self.hosts.lock();
        let Some(known) = hosts.get_mut(&(host.to_owned(), port)) else { return 0 };
        known.list.retain(|address| *address != bad);
        known.list.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(count: u8) -> (DnsCache, Vec<SocketAddr>) {
        let list: Vec<SocketAddr> =
            (1..=count).map(|n| SocketAddr::from(([127, 0, 0, n], 80))).collect();
        let known = HostAddresses { list: list.clone(), resolved: Instant::now(), turn: 0 };
        let addresses = DnsCache::default();
        addresses.hosts.lock().insert(("h".into(), 80), known);
        (addresses, list)
    }

    #[test]
    fn all_addresses_are_used_in_turn() {
        let (addresses, list) = addresses(3);
        let now = Instant::now();
        let got: Vec<_> = (0..6).filter_map(|_| addresses.known("h", 80, now)).collect();
        assert_eq!(got, [&list[..], &list[..]].concat());
    }

    #[test]
    fn a_bad_address_is_left_out_and_an_old_answer_not_used() {
        let (addresses, list) = addresses(2);
        let now = Instant::now();
        assert_eq!(addresses.drop_unreachable("h", 80, list[0]), 1);
        assert_eq!(addresses.known("h", 80, now), Some(list[1]));
        assert_eq!(addresses.known("h", 80, now + TTL + Duration::from_secs(1)), None);
        assert_eq!(addresses.drop_unreachable("h", 80, list[1]), 0);
        assert_eq!(addresses.known("h", 80, now), None);
    }
}
