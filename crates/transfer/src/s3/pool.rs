//! One core's connections and what it knows by heart for signing: places of buckets, Host headers,
//! the signing key.

use super::endpoint::Place;
use super::error::{Error, Kind};
use super::flow::Flow;
use super::http::{Conn, Watch};
use super::sign::{Keys, Signer};
use super::store::Store;
use super::stream::{self, DialError};
use crate::meter::Lane;
use crossbeam_utils::CachePadded;
use http::HeaderValue;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A connection that stands still is given this long once the run was asked to stop.
const PATIENCE_STOPPED: Duration = Duration::from_secs(2);
/// Busy connections that are asked for their state at once.
const LOOKS_MAX: usize = 4;
/// Buckets known by heart; a run touches few.
const SPOTS_MAX: usize = 64;

/// Idle connections to one host, most recently used last.
pub(super) struct Target {
    authority: String,
    tls: bool,
    idle: RefCell<Vec<Conn>>,
}

/// All that requests for one bucket have in common.
pub(super) struct Spot {
    bucket: Option<String>,
    /// Where it is.
    pub place: Place,
    /// Its Host header.
    pub host: HeaderValue,
    /// Connections to there.
    pub target: Rc<Target>,
}

/// The keys of one version, and the signing key derived from them for one region and day.
struct Identity {
    version: u64,
    keys: Option<Arc<Keys>>,
    signers: Vec<(String, Signer)>,
}

/// What one core keeps.
pub(super) struct Pool {
    /// The store that it belongs to.
    pub store: Arc<Store>,
    spots: RefCell<Vec<Rc<Spot>>>,
    regions_version: Cell<u64>,
    targets: RefCell<Vec<Rc<Target>>>,
    identity: RefCell<Option<Identity>>,
    watches: RefCell<Vec<Weak<Watch>>>,
    ticking: Cell<bool>,
    /// The rate of content: new connections receive little ahead of it.
    flow: RefCell<Option<Rc<Flow>>>,
    /// Connections that were asked for their state, and which one is next.
    asked: RefCell<Vec<Weak<Watch>>>,
    next: Cell<usize>,
}

impl Pool {
    /// Nothing kept yet.
    pub fn new(store: &Arc<Store>) -> Rc<Pool> {
        Rc::new(Pool {
            store: Arc::clone(store),
            spots: RefCell::default(),
            regions_version: Cell::new(store.regions_version()),
            targets: RefCell::default(),
            identity: RefCell::new(None),
            watches: RefCell::default(),
            ticking: Cell::new(false),
            flow: RefCell::default(),
            asked: RefCell::default(),
            next: Cell::new(0),
        })
    }

    /// New connections receive little ahead of this rate.
    pub fn receive_ahead(&self, flow: &Rc<Flow>) {
        *self.flow.borrow_mut() = Some(Rc::clone(flow));
    }

    /// Where requests for a bucket go.
    ///
    /// # Errors
    /// `Invalid`: the bucket's name cannot stand in a host name.
    pub fn spot(&self, bucket: Option<&str>, operation: &'static str) -> Result<Rc<Spot>, Error> {
        let version = self.store.regions_version();
        let mut spots = self.spots.borrow_mut();
        if self.regions_version.replace(version) != version || spots.len() > SPOTS_MAX {
            spots.clear();
        }
        if let Some(spot) = spots.iter().find(|spot| spot.bucket.as_deref() == bucket) {
            return Ok(Rc::clone(spot));
        }
        let place = self.store.place(bucket);
        let host = HeaderValue::from_str(&place.authority).map_err(|_| {
            let why = format!("`{}` cannot be the name of a host", place.authority);
            Error::new(Kind::Invalid, operation, why)
        })?;
        let target = self.target(&place);
        let spot = Rc::new(Spot { bucket: bucket.map(str::to_owned), place, host, target });
        spots.push(Rc::clone(&spot));
        Ok(spot)
    }

    fn target(&self, place: &Place) -> Rc<Target> {
        let mut targets = self.targets.borrow_mut();
        let same =
            |target: &&Rc<Target>| target.tls == place.tls && target.authority == place.authority;
        if let Some(target) = targets.iter().find(same) {
            return Rc::clone(target);
        }
        let idle = RefCell::default();
        let target = Rc::new(Target { authority: place.authority.clone(), tls: place.tls, idle });
        targets.push(Rc::clone(&target));
        target
    }

    /// Signs a request by `sign`, which gets the signer for a region at `now_s`; does nothing for
    /// anonymous ones. Returns the version of the keys.
    pub fn with_signer(&self, region: &str, now_s: i64, sign: impl FnOnce(&Signer)) -> u64 {
        let version = self.store.vault.version();
        let mut identity = self.identity.borrow_mut();
        if identity.as_ref().is_none_or(|identity| identity.version != version) {
            let keys = self.store.keys();
            *identity = Some(Identity { version, keys, signers: Vec::new() });
        }
        let Some(Identity { keys: Some(keys), signers, .. }) = &mut *identity else {
            return version;
        };
        let known = signers.iter().position(|(of, _)| of == region);
        let at = known.unwrap_or_else(|| {
            signers.push((region.to_owned(), Signer::new(keys, region, now_s)));
            signers.len() - 1
        });
        if !signers[at].1.is_for(region, now_s) {
            signers[at].1 = Signer::new(keys, region, now_s);
        }
        sign(&signers[at].1);
        version
    }

    /// A connection: the one used last, else a new one; always a new one where `fresh`.
    ///
    /// # Errors
    /// `Connection`, or `Settings` for a certificate that is not trusted.
    pub async fn checkout(
        self: &Rc<Self>,
        spot: &Spot,
        fresh: bool,
        operation: &'static str,
    ) -> Result<Conn, Error> {
        if !fresh && let Some(conn) = spot.target.idle.borrow_mut().pop() {
            return Ok(conn);
        }
        let store = &self.store;
        let settings = |what| Error::new(Kind::Settings, operation, what);
        let tls = if spot.place.tls { Some(store.tls().map_err(settings)?) } else { None };
        let timeout = store.resolved.connect_timeout;
        let ahead = self.flow.borrow().as_ref().map(|flow| flow.ahead_bytes());
        let dialled = stream::dial(&store.addresses, &spot.place, tls, timeout, ahead).await;
        let stream = dialled.map_err(|e| match e {
            DialError::Failed(what) => Error::new(Kind::Connection, operation, what),
            DialError::TimedOut(what) => Error::new(Kind::TimedOut, operation, what),
            DialError::Certificate(what) => settings(what),
        })?;
        store.counts.connections.fetch_add(1, Ordering::Relaxed);
        let conn = Conn::new(stream).await;
        let conn = conn.map_err(|what| Error::new(Kind::Connection, operation, what))?;
        self.watches.borrow_mut().push(Rc::downgrade(conn.watch()));
        if !self.ticking.replace(true) {
            tokio::task::spawn_local(tick(Rc::downgrade(self), store.resolved.read_timeout));
        }
        Ok(conn)
    }

    /// Tells the lane of what a few busy connections saw since they were asked the last time, and
    /// asks the next few.
    pub fn look_at_some(&self, lane: &Lane) {
        let mut asked = self.asked.borrow_mut();
        let seen = asked.drain(..).filter_map(|watch| watch.upgrade()?.seen_look());
        seen.for_each(|look| lane.wire().looked(&look));
        let watches = self.watches.borrow();
        let start = self.next.get() % watches.len().max(1);
        for (step, watch) in watches.iter().cycle().skip(start).take(watches.len()).enumerate() {
            if asked.len() >= LOOKS_MAX {
                self.next.set(start + step);
                return;
            }
            if watch.upgrade().is_some_and(|watch| watch.ask()) {
                asked.push(Weak::clone(watch));
            }
        }
    }

    /// Times a TCP handshake with the place that was asked for last, in the background, and tells
    /// the lane; nobody hears of one that fails. It is no request, and carries nothing.
    pub fn shake_hands(self: &Rc<Self>, lane: &Arc<CachePadded<Lane>>) {
        let Some(spot) = self.spots.borrow().last().cloned() else { return };
        if !self.watches.borrow().iter().any(|watch| watch.strong_count() > 0) {
            return;
        }
        let (store, lane) = (Arc::clone(&self.store), Arc::clone(lane));
        tokio::task::spawn_local(async move {
            if let Some(rtt_us) = stream::handshake_us(&store.addresses, &spot.place).await {
                lane.wire().shook_hands(rtt_us);
            }
        });
    }

    /// Looks after all connections, and after what the store wants looked after now and then.
    fn look(&self) {
        let now = Instant::now();
        let patience_max = if self.store.is_stopped() { PATIENCE_STOPPED } else { Duration::MAX };
        self.watches.borrow_mut().retain(|watch| {
            let watch = watch.upgrade();
            if let Some(watch) = &watch {
                watch.look(now, patience_max);
            }
            watch.is_some()
        });
        self.store.tick();
        let now_s = super::store::now_s();
        if self.store.vault.claims_refresh(now_s) {
            let store = Arc::clone(&self.store);
            tokio::task::spawn_local(async move { store.vault.refresh_ahead(now_s).await });
        }
    }
}

impl Target {
    /// Takes a connection back that carried its answer to the end.
    pub async fn checkin(&self, mut conn: Conn) {
        if conn.rest().await {
            self.idle.borrow_mut().push(conn);
        }
    }
}

/// One coarse clock for all connections of a core instead of a timer for each request.
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
