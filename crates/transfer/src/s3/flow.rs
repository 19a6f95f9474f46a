//! The rate of content that a user set, as the bodies of requests keep it: each takes a little, uses
//! it, and takes more, so that what goes over the wire in any second is the rate.

use crate::limit::Limiter;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Bytes of the smallest grant: fewer are not worth a packet.
const GRANT_BYTES_MIN: u64 = 1 << 10;
/// A body that moves gets at least so much a second: others wait until it has ended, so that no
/// connection stands still for longer than its server bears.
const BODY_BYTES_PER_S_MIN: u64 = 512;
/// Bodies that share one grant of the limiter: more of them get less each, so that none waits
/// longer for its next one.
const BODIES_A_GRANT: u64 = 4;
/// Content of up to so many grants is waited for as a whole before it is asked for.
const PREPAID_GRANTS: u64 = 2;
/// The kernel may receive ahead of us, all connections together, what the rate brings in the time of
/// a round trip, half of one more, and this.
const AHEAD_TIME: Duration = Duration::from_millis(10);
/// The least and most that one connection may receive ahead.
const AHEAD_BYTES: (u64, u64) = (8 << 10, 4 << 20);

/// One direction of content under a rate, for the clients of one core.
#[derive(Debug)]
pub struct Flow {
    limiter: Arc<Limiter>,
    /// The limiter whose rate this one has, where that is another one.
    follows: Option<Arc<Limiter>>,
    /// Bodies that may be on their way, all cores together.
    bodies: Arc<Semaphore>,
    /// Units at work, all cores together.
    jobs: AtomicUsize,
}

/// How many bodies may be on their way under a rate.
pub fn bodies_max(limiter: &Limiter) -> usize {
    let count = (limiter.per_s() / BODY_BYTES_PER_S_MIN).clamp(1, Semaphore::MAX_PERMITS as u64);
    usize::try_from(count).unwrap_or(Semaphore::MAX_PERMITS)
}

impl Flow {
    /// Content goes at the rate of `limiter`; with `follows`, at the rate that one has from time to
    /// time. `bodies` has [`bodies_max`] permits, and all cores the same one.
    pub fn new(
        limiter: &Arc<Limiter>,
        follows: Option<&Arc<Limiter>>,
        bodies: &Arc<Semaphore>,
    ) -> Flow {
        Flow {
            limiter: Arc::clone(limiter),
            follows: follows.cloned(),
            bodies: Arc::clone(bodies),
            jobs: AtomicUsize::new(1),
        }
    }

    /// So many units are at work by now, all cores together.
    pub fn set_jobs(&self, jobs: usize) {
        self.jobs.store(jobs.max(1), Ordering::Relaxed);
    }

    /// Bodies that may be on their way.
    pub(super) fn bodies(&self) -> &Arc<Semaphore> {
        &self.bodies
    }

    /// Takes a grant for a body that has `left_bytes` left: how many bytes, and how long to wait
    /// before they are used.
    pub(super) fn take(&self, left_bytes: u64) -> (u64, Duration) {
        if let Some(other) = &self.follows
            && other.per_s() != self.limiter.per_s()
        {
            self.limiter.set_per_s(other.per_s());
        }
        let share = (self.jobs.load(Ordering::Relaxed) as u64 / BODIES_A_GRANT).max(1);
        let grant = (self.limiter.grant_max() / share).max(GRANT_BYTES_MIN).min(left_bytes);
        (grant, self.limiter.take(grant, self.limiter.elapsed()))
    }

    /// Pays for bytes that came without a grant: who asks next waits for them, too.
    pub(super) fn pay(&self, bytes: u64) {
        self.limiter.take(bytes, self.limiter.elapsed());
    }

    /// Takes all bytes of content that is short enough to be waited for before it is asked for, and
    /// says how long. As a whole: many that took a little each would all ask at the same time.
    pub(super) fn take_whole(&self, bytes: u64) -> Option<Duration> {
        let short = bytes <= self.limiter.grant_max().saturating_mul(PREPAID_GRANTS);
        short.then(|| self.limiter.take(bytes, self.limiter.elapsed()))
    }

    /// How many bytes the kernel may receive ahead of us on a new connection with such a round-trip
    /// time. They come at once, and are paid for: the first second is no faster than the others.
    pub(super) fn ahead(&self, rtt: Duration) -> usize {
        let time_s = (rtt.mul_f64(1.5) + AHEAD_TIME).as_secs_f64();
        let share = self.limiter.per_s() as f64 * time_s / self.jobs.load(Ordering::Relaxed) as f64;
        let bytes = (share as u64).clamp(AHEAD_BYTES.0, AHEAD_BYTES.1);
        self.pay(bytes);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_bodies_share_the_rate_in_small_grants() {
        let limiter = Arc::new(Limiter::new(8 << 20));
        let bodies = Arc::new(Semaphore::new(bodies_max(&limiter)));
        let flow = Flow::new(&limiter, None, &bodies);
        assert_eq!(flow.take(u64::MAX).0, (8 << 20) / 40);
        assert_eq!(flow.take(100).0, 100);
        flow.set_jobs(64);
        assert_eq!(flow.take(u64::MAX).0, (8 << 20) / 40 / 16);
        // Whatever the number of bodies, none waits for its next grant much longer than 0.1 s.
        let wait_s = 64.0 * flow.take(u64::MAX).0 as f64 / f64::from(8 << 20);
        assert!(wait_s < 0.2, "{wait_s}");
        assert!(flow.take(1).1 > Duration::from_millis(20));
    }

    #[test]
    fn a_low_rate_moves_few_bodies_at_once() {
        assert_eq!(bodies_max(&Limiter::new(100)), 1);
        assert_eq!(bodies_max(&Limiter::new(10 << 10)), 20);
    }

    #[test]
    fn what_is_received_ahead_fits_the_way() {
        let limiter = Arc::new(Limiter::new(8 << 20));
        let flow = Flow::new(&limiter, None, &Arc::new(Semaphore::new(1)));
        assert_eq!(flow.take_whole(1 << 20), None);
        assert_eq!(flow.take_whole(400 << 10), Some(Duration::ZERO));
        let wait_s = flow.take_whole(1).unwrap().as_secs_f64();
        assert!((0.003..0.05).contains(&wait_s), "{wait_s}");
        let near = flow.ahead(Duration::from_micros(100));
        assert!((80 << 10..100 << 10).contains(&near), "{near}");
        // Far away, enough is under way for the rate.
        assert!(flow.ahead(Duration::from_millis(100)) >= (8 << 20) / 10);
        flow.set_jobs(1000);
        assert_eq!(flow.ahead(Duration::ZERO), 8 << 10);
        // It is paid for.
        assert!(flow.take(1).1 > Duration::from_millis(100));
    }

    #[test]
    fn it_follows_another_rate() {
        let limiter = Arc::new(Limiter::new(1 << 20));
        let other = Arc::new(Limiter::new(4 << 20));
        let flow = Flow::new(&limiter, Some(&other), &Arc::new(Semaphore::new(1)));
        flow.take(1);
        assert_eq!(limiter.per_s(), 4 << 20);
    }
}
