//! Rate limits. [`Throttle`]: the user's limit of content (`--bwlimit`), applied to request bodies: each takes small grants
//! repeatedly, so that the rate holds in every second. `RequestRate`: the request rate of a server that throttles, derived from its
//! responses and raised slowly again.

use futures_util::future::LocalBoxFuture;
use hakobu_core::limit::Limiter;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

/// Interval at which a waiting body checks for a changed rate.
const WAIT_MAX: Duration = Duration::from_millis(100);
/// Smallest grant, bytes: less is not worth a packet.
const GRANT_BYTES_MIN: u64 = 1 << 10;
/// Minimum rate per active body: others wait until it has ended, so that no connection stalls longer than its
/// server tolerates.
const BODY_BYTES_PER_S_MIN: u64 = 512;
/// Bodies that share one grant of the limiter: with more bodies grants are smaller, so that none waits
/// longer.
const BODIES_A_GRANT: u64 = 4;
/// Content of up to this number of grants is waited for as a whole before it is requested.
const PREPAID_GRANTS: u64 = 2;
/// Additional time of data that the kernel may receive ahead, over all connections, besides one and a half
/// round trips.
const AHEAD_TIME: Duration = Duration::from_millis(10);
/// Assumed round-trip time before the first measurement.
const RTT_UNKNOWN: Duration = Duration::from_millis(50);
/// Smallest and largest receive-ahead of a connection, bytes.
const AHEAD_BYTES: (u64, u64) = (8 << 10, 4 << 20);

/// Rate of one side of a run, shared by the clients of all cores.
#[derive(Debug)]
pub struct Throttle {
    limiter: Arc<Limiter>,
    /// The limiter whose rate is copied, if it is another one.
    follows: Option<Arc<Limiter>>,
    /// Bodies that may be in flight, over both sides.
    pub(crate) bodies: Arc<Semaphore>,
    /// Queue for grants: the holder is next, others wait in order.
    line: Arc<Mutex<()>>,
    /// Active units over all cores.
    jobs: AtomicUsize,
    /// True if its connections receive content.
    receives: bool,
}

/// Number of bodies that may be in flight under a rate.
fn bodies_max(limiter: &Limiter) -> usize {
    let count = (limiter.per_s() / BODY_BYTES_PER_S_MIN).clamp(1, Semaphore::MAX_PERMITS as u64);
    usize::try_from(count).unwrap_or(Semaphore::MAX_PERMITS)
}

impl Throttle {
    /// Rate limits for the source and target stores. With `both`, every byte passes both: each side gets the
    /// whole rate, following changes.
    pub fn sides(limiter: &Arc<Limiter>, both: bool) -> [Arc<Throttle>; 2] {
        let bodies = Arc::new(Semaphore::new(bodies_max(limiter)));
        let line: Arc<Mutex<()>> = Arc::default();
        let side = |limiter: &Arc<Limiter>, follows, line: &Arc<Mutex<()>>, receives| Throttle {
            limiter: Arc::clone(limiter),
            follows,
            bodies: Arc::clone(&bodies),
            line: Arc::clone(line),
            jobs: AtomicUsize::new(1),
            receives,
        };
        let source = side(limiter, None, &line, true);
        let target = match both {
            true => {
                let own = Arc::new(Limiter::new(limiter.per_s()));
                side(&own, Some(Arc::clone(limiter)), &Arc::default(), false)
            }
            false => side(limiter, None, &line, false),
        };
        [Arc::new(source), Arc::new(target)]
    }

    /// Sets the number of active units over all cores.
    pub fn set_jobs(&self, jobs: usize) {
        self.jobs.store(jobs.max(1), Ordering::Relaxed);
    }

    /// Size of a grant for a body with `left_bytes` left.
    fn grant_bytes(&self, left_bytes: u64) -> u64 {
        if let Some(other) = &self.follows
            && other.per_s() != self.limiter.per_s()
        {
            self.limiter.set_per_s(other.per_s());
        }
        let share = (self.jobs.load(Ordering::Relaxed) as u64 / BODIES_A_GRANT).max(1);
        (self.limiter.grant_max() / share).max(GRANT_BYTES_MIN).min(left_bytes)
    }

    /// Takes a grant immediately, if it is due and no other body waits.
    pub(crate) fn try_take(&self, bytes: u64) -> bool {
        let first = self.line.try_lock();
        first.is_ok() && self.limiter.try_take(bytes, self.limiter.elapsed()).is_ok()
    }

    /// Waits for a grant. Nothing is taken in advance: a late wake-up on a busy machine allows no more than
    /// the limiter's usual catch-up.
    pub(crate) fn take(&self, bytes: u64) -> impl Future<Output = ()> + 'static {
        let (line, limiter) = (Arc::clone(&self.line), Arc::clone(&self.limiter));
        async move {
            let _first = line.lock().await;
            while let Err(wait) = limiter.try_take(bytes, limiter.elapsed()) {
                tokio::time::sleep(wait.min(WAIT_MAX)).await;
            }
        }
    }

    /// Charges bytes received without a grant to the next waiter.
    fn pay(&self, bytes: u64) {
        self.limiter.take(bytes, self.limiter.elapsed());
    }

    /// True if content of that size is waited for before it is requested.
    pub(crate) fn prepays(&self, bytes: u64) -> bool {
        bytes <= self.limiter.grant_max().saturating_mul(PREPAID_GRANTS)
    }

    /// Receive buffer limit for a new connection with this round-trip time; `None` for no limit, if nothing
    /// is received. These bytes are charged in advance, so that the first second is no faster than others.
    pub(crate) fn ahead(&self, rtt: Option<Duration>) -> Option<u32> {
        if !self.receives {
            return None;
        }
        let time_s = (rtt.unwrap_or(RTT_UNKNOWN).mul_f64(1.5) + AHEAD_TIME).as_secs_f64();
        let share = self.limiter.per_s() as f64 * time_s / self.jobs.load(Ordering::Relaxed) as f64;
        let bytes = (share as u64).clamp(AHEAD_BYTES.0, AHEAD_BYTES.1);
        self.pay(bytes);
        Some(u32::try_from(bytes).unwrap_or(u32::MAX))
    }
}

/// Share of a body in a rate.
pub(crate) struct BodyShare {
    throttle: Arc<Throttle>,
    /// Bytes that may be sent now.
    granted_bytes: usize,
    /// Pending grant.
    wait: Option<(usize, LocalBoxFuture<'static, ()>)>,
    /// Dropped at the end of the body.
    permit: Option<OwnedSemaphorePermit>,
}

impl BodyShare {
    /// A body that may begin; none of its bytes has been granted.
    pub fn new(throttle: &Arc<Throttle>, permit: OwnedSemaphorePermit) -> BodyShare {
        let throttle = Arc::clone(throttle);
        BodyShare { throttle, granted_bytes: 0, wait: None, permit: Some(permit) }
    }

    /// Bytes that may be moved now.
    pub fn granted_bytes(&self) -> usize {
        self.granted_bytes
    }

    /// Adds bytes granted elsewhere.
    pub fn grant(&mut self, bytes: u64) {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.granted_bytes = self.granted_bytes.saturating_add(bytes);
    }

    /// Records received bytes. Those beyond the grant, received with the head, are charged later.
    pub fn received(&mut self, bytes: usize) {
        let beyond = bytes.saturating_sub(self.granted_bytes);
        self.granted_bytes = self.granted_bytes.saturating_sub(bytes);
        if beyond > 0 {
            self.throttle.pay(beyond as u64);
        }
    }

    /// Records sent bytes; `over` if they were the last ones.
    pub fn sent(&mut self, bytes: usize, over: bool) {
        self.granted_bytes -= bytes;
        if over {
            self.permit = None;
        }
    }

    /// Takes a grant for a body with `left_bytes` left, unless some are granted; false if it has to be waited for.
    pub fn try_grant(&mut self, left_bytes: u64) -> bool {
        if self.granted_bytes == 0 && self.wait.is_none() && left_bytes > 0 {
            let bytes = self.throttle.grant_bytes(left_bytes);
            let len = usize::try_from(bytes).unwrap_or(usize::MAX);
            match self.throttle.try_take(bytes) {
                true => self.granted_bytes = len,
                false => self.wait = Some((len, Box::pin(self.throttle.take(bytes)))),
            }
        }
        self.wait.is_none()
    }

    /// Waits until some of `left_bytes` may be moved; returns their number.
    pub fn poll_grant(&mut self, left_bytes: u64, cx: &mut Context<'_>) -> Poll<usize> {
        if !self.try_grant(left_bytes)
            && let Some((len, wait)) = &mut self.wait
        {
            ready!(wait.as_mut().poll(cx));
            self.granted_bytes = *len;
            self.wait = None;
        }
        Poll::Ready(self.granted_bytes)
    }
}

/// Share of throttling responses that is tolerated.
const BEARABLE: f64 = 0.1;
/// Number of throttling responses, or time, after which their share is known.
const SAMPLE: u64 = 10;
const SAMPLE_TIME: Duration = Duration::from_millis(100);
/// Shortest time between two cuts: responses to earlier requests do not cause another one.
const EPISODE: Duration = Duration::from_millis(500);
/// Time without throttling after which the limit is removed.
const QUIET: Duration = Duration::from_secs(30);
/// Growth per second.
const GROWTH: f64 = 0.1;
/// Lowest rate, requests per second.
const FLOOR_PER_S: f64 = 2.0;

/// State of the rate, at first without a limit. All times are relative to the same start.
#[derive(Debug, Default)]
pub(crate) struct RequestRate {
    /// Requests per second, if limited.
    limit_per_s: Option<f64>,
    /// Time until which requests have been granted.
    paid: Duration,
    /// Time of the last growth of the limit.
    grown: Duration,
    /// Time of the last throttling response.
    complained: Duration,
    /// Start of the current window, successes until then, and throttling responses since.
    window: (Duration, u64, u64),
}

impl RequestRate {
    /// Records the number of successful requests; call about once per second.
    pub fn tick(&mut self, now: Duration, succeeded: u64) {
        if now.saturating_sub(self.window.0) >= Duration::from_secs(1) {
            self.window = (now, succeeded, 0);
        }
    }

    /// Records a throttling response or a stall. Returns true if the rate was cut for the first time, or by
    /// half.
    ///
    /// A caller that also controls the number of requests in flight should react only to that. Both control
    /// the same quantity: once the rate follows the server, repeated throttling responses are how the limit
    /// is found, and halving the number in flight each time would end at one request, below the server's
    /// limit.
    pub fn throttled(&mut self, now: Duration, succeeded: u64) -> bool {
        self.window.2 += 1;
        let (since, before, complaints) = self.window;
        let window = now.saturating_sub(since);
        let early = match self.limit_per_s {
            Some(_) => window < EPISODE,
            None => window < SAMPLE_TIME && complaints < SAMPLE,
        };
        if early {
            return false;
        }
        let window_s = window.max(SAMPLE_TIME / 2).as_secs_f64();
        let good_per_s = succeeded.saturating_sub(before) as f64 / window_s;
        let bad_per_s = complaints as f64 / window_s;
        let asked_per_s = good_per_s + bad_per_s;
        if bad_per_s < BEARABLE * asked_per_s {
            return false;
        }
        let slowed = self.limit_per_s.is_none_or(|limit| good_per_s <= limit / 2.0);
        let old = self.limit_per_s.unwrap_or(asked_per_s);
        self.limit_per_s = Some(good_per_s.clamp(old / 2.0, old).max(FLOOR_PER_S));
        (self.complained, self.grown) = (now, now);
        self.paid = self.paid.max(now);
        self.window = (now, succeeded, 0);
        slowed
    }

    /// True if the rate is limited.
    pub fn is_limited(&self) -> bool {
        self.limit_per_s.is_some()
    }

    /// Grants one request at `now`; returns the time to wait before sending it.
    pub fn take(&mut self, now: Duration) -> Duration {
        let Some(limit) = self.limit_per_s else { return Duration::ZERO };
        if now.saturating_sub(self.complained) >= QUIET {
            self.limit_per_s = None;
            return Duration::ZERO;
        }
        let grown_s = now.saturating_sub(self.grown).as_secs_f64();
        let limit = limit * (1.0 + GROWTH).powf(grown_s);
        self.limit_per_s = Some(limit);
        self.grown = now;
        let start = self.paid.max(now);
        self.paid = start + Duration::from_secs_f64(1.0 / limit);
        start - now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn source(limiter: &Arc<Limiter>) -> Arc<Throttle> {
        let [source, _] = Throttle::sides(limiter, false);
        source
    }

    #[test]
    fn many_bodies_share_the_rate_in_small_grants() {
        let throttle = source(&Arc::new(Limiter::new(8 << 20)));
        assert_eq!(throttle.grant_bytes(u64::MAX), (8 << 20) / 40);
        assert_eq!(throttle.grant_bytes(100), 100);
        throttle.set_jobs(64);
        let grant = throttle.grant_bytes(u64::MAX);
        assert_eq!(grant, (8 << 20) / 40 / 16);
        // With any number of bodies none waits much longer than 0.1 s for its next grant.
        let wait_s = 64.0 * grant as f64 / f64::from(8 << 20);
        assert!(wait_s < 0.2, "{wait_s}");
    }

    #[test]
    fn the_rate_is_kept_in_the_order_of_coming() {
        let throttle = source(&Arc::new(Limiter::new(1000)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let begun = Instant::now();
        let order = std::cell::RefCell::new(Vec::new());
        runtime.block_on(async {
            let body = async |number| {
                throttle.take(50).await;
                order.borrow_mut().push(number);
            };
            futures_util::future::join_all((0..10).map(body)).await;
        });
        assert_eq!(order.into_inner(), (0..10).collect::<Vec<_>>());
        // Nine have to be waited for, minus the catch-up.
        assert!(begun.elapsed() >= Duration::from_millis(9 * 50 - 45), "{:?}", begun.elapsed());
        assert!(!throttle.try_take(50));
    }

    #[test]
    fn a_low_rate_moves_few_bodies_at_once() {
        assert_eq!(bodies_max(&Limiter::new(100)), 1);
        assert_eq!(bodies_max(&Limiter::new(10 << 10)), 20);
    }

    #[test]
    fn what_is_received_ahead_fits_the_way() {
        let throttle = source(&Arc::new(Limiter::new(8 << 20)));
        assert!(throttle.prepays(400 << 10) && !throttle.prepays(1 << 20));
        let near = throttle.ahead(Some(Duration::from_micros(100))).unwrap();
        assert!((80 << 10..100 << 10).contains(&near), "{near}");
        // With a long round-trip time enough is in flight for the rate.
        assert!(throttle.ahead(Some(Duration::from_millis(100))) >= Some((8 << 20) / 10));
        throttle.set_jobs(1000);
        assert_eq!(throttle.ahead(Some(Duration::ZERO)), Some(8 << 10));
        // It was charged.
        assert!(!throttle.try_take(1));
    }

    #[test]
    fn it_follows_another_rate() {
        let limiter = Arc::new(Limiter::new(1 << 20));
        let [_, target] = Throttle::sides(&limiter, true);
        limiter.set_per_s(4 << 20);
        target.grant_bytes(1);
        assert_eq!(target.limiter.per_s(), 4 << 20);
    }

    #[test]
    fn only_what_receives_is_bounded_and_paid_for_ahead() {
        let limiter = Arc::new(Limiter::new(8 << 20));
        let [source, target] = Throttle::sides(&limiter, false);
        assert_eq!(target.ahead(None), None);
        assert!(target.try_take(1), "nothing was paid for");
        // With one endpoint both sides share the rate.
        assert!(source.ahead(None).is_some());
        assert!(!target.try_take(1));
    }

    /// Simulates `seconds` with `jobs` requests of 10 ms in flight; the server handles at most `cap_per_s`,
    /// of which the share `error_rate` fails. Returns successes.
    fn run(seconds: u64, jobs: u32, cap_per_s: u32, error_rate: f64) -> (RequestRate, Vec<u64>) {
        let (mut request_rate, mut random) = (RequestRate::default(), fastrand::Rng::with_seed(1));
        let mut per_s = vec![0; usize::try_from(seconds).unwrap()];
        let (mut succeeded, mut served) = (0, (0, 0));
        let mut ends: std::collections::BinaryHeap<_> =
            (0..jobs).map(|n| std::cmp::Reverse(Duration::from_micros(u64::from(n)))).collect();
        while let Some(std::cmp::Reverse(now)) = ends.pop() {
            let second = now.as_secs();
            if second >= seconds {
                break;
            }
            // The server's limit applies per tenth of a second.
            let tenth = now.as_millis() / 100;
            served = if served.0 == tenth { (tenth, served.1 + 1) } else { (tenth, 1) };
            if served.1 > cap_per_s / 10 || random.f64() < error_rate {
                request_rate.throttled(now, succeeded);
            } else {
                succeeded += 1;
                per_s[usize::try_from(second).unwrap()] += 1;
            }
            request_rate.tick(now, succeeded);
            ends.push(std::cmp::Reverse(now + request_rate.take(now) + Duration::from_millis(10)));
        }
        (request_rate, per_s)
    }

    #[test]
    fn it_costs_nothing_before_the_first_complaint() {
        let mut request_rate = RequestRate::default();
        assert!((0..1000).all(|_| request_rate.take(Duration::from_secs(1)).is_zero()));
        assert!(!request_rate.is_limited());
    }

    #[test]
    fn a_server_with_a_limit_is_held_near_it() {
        let (request_rate, per_s) = run(30, 64, 1000, 0.0);
        assert!(request_rate.is_limited());
        let late: u64 = per_s[10..].iter().sum();
        assert!(late > 20 * 750, "{per_s:?}");
        let limit = request_rate.limit_per_s.unwrap();
        assert!((600.0..1500.0).contains(&limit), "{limit}");
    }

    #[test]
    fn errors_whatever_the_rate_do_not_stop_a_run() {
        let (_, per_s) = run(60, 64, 1_000_000, 0.05);
        let late: u64 = per_s[30..].iter().sum();
        assert!(late > 30 * 1000, "{per_s:?}");
    }

    #[test]
    fn a_server_that_refuses_everything_is_asked_less_and_less() {
        let mut request_rate = RequestRate::default();
        request_rate.tick(Duration::ZERO, 0);
        for second in 1..20 {
            request_rate.throttled(Duration::from_secs(second), 0);
        }
        assert_eq!(request_rate.limit_per_s, Some(FLOOR_PER_S));
        request_rate.take(Duration::from_secs(19));
        assert!(request_rate.take(Duration::from_secs(19)) >= Duration::from_millis(400));
    }

    #[test]
    fn a_quiet_time_lifts_the_limit() {
        let mut request_rate = RequestRate::default();
        for _ in 0..200 {
            request_rate.throttled(Duration::from_secs(1), 100);
        }
        assert!(request_rate.is_limited());
        assert!(request_rate.take(Duration::from_secs(32)).is_zero());
        assert!(!request_rate.is_limited());
    }

    #[test]
    fn one_episode_is_one_cut() {
        let mut request_rate = RequestRate::default();
        let slowed =
            (0..200).filter(|_| request_rate.throttled(Duration::from_secs(1), 1000)).count();
        assert_eq!(slowed, 1);
        let limit = request_rate.limit_per_s;
        assert!(limit.is_some());
        assert!(!request_rate.throttled(Duration::from_millis(1200), 1000));
        assert_eq!(request_rate.limit_per_s, limit);
        // Throttling during the search is expected; a server at half the rate is news.
        let limit = limit.unwrap();
        let complain = |request_rate: &mut RequestRate, second: u64, answered: f64| {
            request_rate.window = (Duration::from_secs(second), 0, 0);
            let now = Duration::from_secs(second + 1);
            let some = (0..200).map(|_| request_rate.throttled(now, answered as u64));
            some.filter(|slowed| *slowed).count()
        };
        request_rate.limit_per_s = Some(limit);
        assert_eq!(complain(&mut request_rate, 5, limit * 0.9), 0);
        let limit = request_rate.limit_per_s.unwrap();
        assert_eq!(complain(&mut request_rate, 7, limit * 0.1), 1);
    }
}
