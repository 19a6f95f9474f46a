//! The rate of content that a user set, as the bodies of requests keep it: each takes a little, uses
//! it, and takes more, so that what goes over the wire in any second is the rate.

use crate::limit::Limiter;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, Semaphore};

/// After so long a wait somebody looks whether the rate is another by now.
const WAIT_MAX: Duration = Duration::from_millis(100);
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
/// What a round trip is taken to be before any was seen.
const RTT_UNKNOWN: Duration = Duration::from_millis(50);
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
    /// Who has it is the next to get a grant; the others wait in the order in which they came.
    line: Arc<Mutex<()>>,
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
    /// time. `bodies` has [`bodies_max`] permits; all cores have the same one, and for the same
    /// limiter the same `line`.
    pub fn new(
        limiter: &Arc<Limiter>,
        follows: Option<&Arc<Limiter>>,
        bodies: &Arc<Semaphore>,
        line: &Arc<Mutex<()>>,
    ) -> Flow {
        Flow {
            limiter: Arc::clone(limiter),
            follows: follows.cloned(),
            bodies: Arc::clone(bodies),
            line: Arc::clone(line),
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

    /// How many bytes a body is granted at once that has `left_bytes` left.
    pub(super) fn grant_bytes(&self, left_bytes: u64) -> u64 {
        if let Some(other) = &self.follows
            && other.per_s() != self.limiter.per_s()
        {
            self.limiter.set_per_s(other.per_s());
        }
        let share = (self.jobs.load(Ordering::Relaxed) as u64 / BODIES_A_GRANT).max(1);
        (self.limiter.grant_max() / share).max(GRANT_BYTES_MIN).min(left_bytes)
    }

    /// Takes a grant at once, where nobody waits for one and it is due.
    pub(super) fn try_take(&self, bytes: u64) -> bool {
        let first = self.line.try_lock();
        first.is_ok() && self.limiter.try_take(bytes, self.limiter.elapsed()).is_ok()
    }

    /// Waits for a grant. Nothing is taken ahead: who is woken late, because the machine is busy,
    /// gets no more at once than the limiter lets anybody catch up.
    pub(super) fn take(&self, bytes: u64) -> impl Future<Output = ()> + 'static {
        let (line, limiter) = (Arc::clone(&self.line), Arc::clone(&self.limiter));
        async move {
            let _first = line.lock().await;
            while let Err(wait) = limiter.try_take(bytes, limiter.elapsed()) {
                tokio::time::sleep(wait.min(WAIT_MAX)).await;
            }
        }
    }

    /// Pays for bytes that came without a grant: who asks next waits for them, too.
    pub(super) fn pay(&self, bytes: u64) {
        self.limiter.take(bytes, self.limiter.elapsed());
    }

    /// Whether content of that size is short enough to be waited for before it is asked for.
    pub(super) fn prepays(&self, bytes: u64) -> bool {
        bytes <= self.limiter.grant_max().saturating_mul(PREPAID_GRANTS)
    }

    /// How many bytes the kernel may receive ahead of us on a new connection with such a round-trip
    /// time. They come at once, and are paid for: the first second is no faster than the others.
    pub(super) fn ahead(&self, rtt: Option<Duration>) -> u32 {
        let time_s = (rtt.unwrap_or(RTT_UNKNOWN).mul_f64(1.5) + AHEAD_TIME).as_secs_f64();
        let share = self.limiter.per_s() as f64 * time_s / self.jobs.load(Ordering::Relaxed) as f64;
        let bytes = (share as u64).clamp(AHEAD_BYTES.0, AHEAD_BYTES.1);
        self.pay(bytes);
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn flow(limiter: &Arc<Limiter>, follows: Option<&Arc<Limiter>>) -> Flow {
        let bodies = Arc::new(Semaphore::new(bodies_max(limiter)));
        Flow::new(limiter, follows, &bodies, &Arc::default())
    }

    #[test]
    fn many_bodies_share_the_rate_in_small_grants() {
        let flow = flow(&Arc::new(Limiter::new(8 << 20)), None);
        assert_eq!(flow.grant_bytes(u64::MAX), (8 << 20) / 40);
        assert_eq!(flow.grant_bytes(100), 100);
        flow.set_jobs(64);
        let grant = flow.grant_bytes(u64::MAX);
        assert_eq!(grant, (8 << 20) / 40 / 16);
        // Whatever the number of bodies, none waits for its next grant much longer than 0.1 s.
        let wait_s = 64.0 * grant as f64 / f64::from(8 << 20);
        assert!(wait_s < 0.2, "{wait_s}");
    }

    #[test]
    fn the_rate_is_kept_in_the_order_of_coming() {
        let flow = flow(&Arc::new(Limiter::new(1000)), None);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let begun = Instant::now();
        let order = std::cell::RefCell::new(Vec::new());
        runtime.block_on(async {
            let body = async |number| {
                flow.take(50).await;
                order.borrow_mut().push(number);
            };
            futures_util::future::join_all((0..10).map(body)).await;
        });
        assert_eq!(order.into_inner(), (0..10).collect::<Vec<_>>());
        // Nine have to be paid for, less what may be caught up.
        assert!(begun.elapsed() >= Duration::from_millis(9 * 50 - 45), "{:?}", begun.elapsed());
        assert!(!flow.try_take(50));
    }

    #[test]
    fn a_low_rate_moves_few_bodies_at_once() {
        assert_eq!(bodies_max(&Limiter::new(100)), 1);
        assert_eq!(bodies_max(&Limiter::new(10 << 10)), 20);
    }

    #[test]
    fn what_is_received_ahead_fits_the_way() {
        let flow = flow(&Arc::new(Limiter::new(8 << 20)), None);
        assert!(flow.prepays(400 << 10) && !flow.prepays(1 << 20));
        let near = flow.ahead(Some(Duration::from_micros(100)));
        assert!((80 << 10..100 << 10).contains(&near), "{near}");
        // Far away, enough is under way for the rate.
        assert!(flow.ahead(Some(Duration::from_millis(100))) >= (8 << 20) / 10);
        flow.set_jobs(1000);
        assert_eq!(flow.ahead(Some(Duration::ZERO)), 8 << 10);
        // It is paid for.
        assert!(!flow.try_take(1));
    }

    #[test]
    fn it_follows_another_rate() {
        let (limiter, other) = (Arc::new(Limiter::new(1 << 20)), Arc::new(Limiter::new(4 << 20)));
        let flow = flow(&limiter, Some(&other));
        flow.grant_bytes(1);
        assert_eq!(limiter.per_s(), 4 << 20);
    }
}
