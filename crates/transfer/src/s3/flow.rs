//! The rate of content that a user set, as the bodies of requests keep it: each takes a little, uses
//! it, and takes more, so that what goes over the wire in any second is the rate.

use crate::limit::Limiter;
use std::cell::Cell;
use std::sync::Arc;
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
/// What the kernel may receive ahead of us, all connections together, in parts of a second.
const AHEAD_PER_S: u64 = 10;
/// The least and most that one connection may receive ahead.
const AHEAD_BYTES: (u64, u64) = (16 << 10, 4 << 20);

/// One direction of content under a rate, for the clients of one core.
#[derive(Debug)]
pub struct Flow {
    limiter: Arc<Limiter>,
    /// The limiter whose rate this one has, where that is another one.
    follows: Option<Arc<Limiter>>,
    /// Bodies that may be on their way, all cores together.
    bodies: Arc<Semaphore>,
    /// Units at work, all cores together.
    jobs: Cell<usize>,
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
            jobs: Cell::new(1),
        }
    }

    /// So many units are at work by now, all cores together.
    pub fn set_jobs(&self, jobs: usize) {
        self.jobs.set(jobs.max(1));
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
        let share = (self.jobs.get() as u64 / BODIES_A_GRANT).max(1);
        let grant = (self.limiter.grant_max() / share).max(GRANT_BYTES_MIN).min(left_bytes);
        (grant, self.limiter.take(grant, self.limiter.elapsed()))
    }

    /// Pays for bytes that came without a grant: who asks next waits for them, too.
    pub(super) fn pay(&self, bytes: u64) {
        self.limiter.take(bytes, self.limiter.elapsed());
    }

    /// How many bytes the kernel may receive ahead of us on one connection.
    pub(super) fn ahead_bytes(&self) -> u32 {
        let share = self.limiter.per_s() / AHEAD_PER_S / self.jobs.get() as u64;
        u32::try_from(share.clamp(AHEAD_BYTES.0, AHEAD_BYTES.1)).unwrap_or(u32::MAX)
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
    fn it_follows_another_rate() {
        let limiter = Arc::new(Limiter::new(1 << 20));
        let other = Arc::new(Limiter::new(4 << 20));
        let flow = Flow::new(&limiter, Some(&other), &Arc::new(Semaphore::new(1)));
        flow.take(1);
        assert_eq!(limiter.per_s(), 4 << 20);
    }
}
