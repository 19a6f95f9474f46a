//! A clock that costs a few nanoseconds: the CPU's time stamp counter if reliable, else the kernel's
//! monotonic clock.

use std::sync::OnceLock;

/// A monotonic clock. Ticks are comparable between threads and clocks of the same process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// True if the CPU's counter is read.
    counter: bool,
    /// Nanoseconds per tick, times 2³².
    scale: u64,
}

/// Duration of the calibration against the kernel's clock: each reading is accurate to some tens of
/// nanoseconds, so the rate is accurate to a few millionths.
#[cfg(target_arch = "x86_64")]
const CALIBRATION: std::time::Duration = std::time::Duration::from_millis(10);

impl Clock {
    /// The best available clock. The first call calibrates the counter for 10 ms.
    pub fn best() -> Clock {
        static BEST: OnceLock<Clock> = OnceLock::new();
        *BEST.get_or_init(|| calibrated().unwrap_or(Clock::kernel()))
    }

    /// The kernel's monotonic clock, clock_gettime(2); its ticks are nanoseconds.
    pub fn kernel() -> Clock {
        Clock { counter: false, scale: 1 << 32 }
    }

    /// Current time, ticks.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        if self.counter { counter() } else { crate::proc::now_ns() }
    }

    /// Converts ticks to nanoseconds.
    #[inline(always)]
    pub fn ns(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.scale)) >> 32) as u64
    }

    /// Nanoseconds from one time to a later one; 0 if negative (counters of CPUs differ by some ticks).
    #[inline(always)]
    pub fn between_ns(&self, from: u64, to: u64) -> u64 {
        self.ns(to.saturating_sub(from))
    }

    /// Converts nanoseconds to ticks, rounded down.
    pub fn ticks(&self, ns: u64) -> u64 {
        let ticks = (u128::from(ns) << 32) / u128::from(self.scale.max(1));
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }
}

/// The time stamp counter, if it has a constant rate (`constant_tsc`, `nonstop_tsc`), and the kernel found
/// the counters of all CPUs synchronised, since it uses them itself.
#[cfg(target_arch = "x86_64")]
fn calibrated() -> Option<Clock> {
    let flags = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let flags = flags.lines().find(|line| line.starts_with("flags"))?;
    let has = |name: &str| flags.split_ascii_whitespace().any(|flag| flag == name);
    let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let source = std::fs::read_to_string(source).ok()?;
    if !(has("constant_tsc") && has("nonstop_tsc") && source.trim() == "tsc") {
        return None;
    }
    let (from_ticks, from_ns) = both();
    std::thread::sleep(CALIBRATION);
    let (to_ticks, to_ns) = both();
    let ticks = to_ticks.checked_sub(from_ticks).filter(|ticks| *ticks > 0)?;
    let scale = (u128::from(to_ns.checked_sub(from_ns)?) << 32) / u128::from(ticks);
    Some(Clock { counter: true, scale: u64::try_from(scale).ok().filter(|scale| *scale > 0)? })
}

#[cfg(not(target_arch = "x86_64"))]
fn calibrated() -> Option<Clock> {
    None
}

/// Both clocks at the same time: the closest of several readings, as a thread may be preempted in between.
#[cfg(target_arch = "x86_64")]
fn both() -> (u64, u64) {
    let attempts = (0..32).map(|_| {
        let before = counter();
        let ns = crate::proc::now_ns();
        let after = counter();
        (after.saturating_sub(before), (before / 2 + after / 2, ns))
    });
    attempts.min_by_key(|(width, _)| *width).map_or((0, 0), |(_, pair)| pair)
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn counter() -> u64 {
    // SAFETY: reads a register that every x86-64 CPU has.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn counter() -> u64 {
    crate::proc::now_ns()
}

/// Sets the smallest timer slack for the calling thread (PR_SET_TIMERSLACK, prctl(2)); the default is 50 µs.
pub fn sleep_precisely() {
    // SAFETY: the call takes integers only, and affects only the timers of the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn is_right(clock: Clock) {
        let (from, since) = (clock.now(), Instant::now());
        std::thread::sleep(Duration::from_millis(50));
        let least = since.elapsed();
        let to = clock.now();
        let most = since.elapsed();
        let ns = clock.between_ns(from, to) as f64;
        assert!(ns > least.as_nanos() as f64 * 0.9995 - 1000.0, "{ns} {least:?}");
        assert!(ns < most.as_nanos() as f64 * 1.0005 + 20_000.0, "{ns} {most:?}");
    }

    #[test]
    fn clocks_agree_with_the_standard_library() {
        is_right(Clock::best());
        is_right(Clock::kernel());
        assert!(!Clock::kernel().counter);
        assert_eq!(Clock::best(), Clock::best());
    }

    #[test]
    fn ticks_and_nanoseconds_are_converted_there_and_back() {
        for clock in [Clock::best(), Clock::kernel(), Clock { counter: true, scale: 1 << 30 }] {
            for ns in [0, 1, 1000, 123_456_789, 3_600_000_000_000, 86_400_000_000_000_000] {
                let back = clock.ns(clock.ticks(ns));
                assert!(back <= ns && ns - back <= 1 + clock.ns(1), "{clock:?} {ns} {back}");
            }
        }
        let clock = Clock { counter: true, scale: 1 << 30 };
        assert_eq!((clock.ns(400), clock.ticks(100)), (100, 400));
        assert_eq!((clock.between_ns(10, 50), clock.between_ns(50, 10)), (10, 0));
        // Saturates instead of overflowing.
        assert_eq!(Clock::kernel().ns(u64::MAX), u64::MAX);
    }

    #[test]
    fn time_never_goes_back() {
        let clock = Clock::best();
        let mut last = clock.now();
        for _ in 0..100_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn precise_sleeps_are_short() {
        std::thread::spawn(|| {
            sleep_precisely();
            let best = (0..50).map(|_| {
                let since = Instant::now();
                std::thread::sleep(Duration::from_micros(20));
                since.elapsed()
            });
            assert!(best.min().unwrap() < Duration::from_micros(70));
        })
        .join()
        .unwrap();
    }
}
