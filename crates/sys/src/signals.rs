//! The end of a run by signals: the first one asks for a clean end, and only a person in a hurry, or patience at its
//! end, ends the process at once. Batch systems signal the process, its group and the script around it, which passes
//! the signal on: one request comes as several signals.

use crate::proc::now_ns;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Time after the first signal in which SIGTERM and SIGHUP repeat it.
pub const SAME_REQUEST: Duration = Duration::from_secs(5);

/// Time after the first SIGINT in which another one is the same request: timeout(1) sends one to the process and one to its
/// group. Nobody types that fast.
const SAME_MOMENT: Duration = Duration::from_millis(200);

/// What a signal means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SignalAnswer {
    /// End cleanly.
    Stop,
    /// End at once.
    AtOnce,
}

/// What came before a signal.
#[derive(Clone, Copy, Debug, Default)]
struct Earlier {
    /// Time since the first signal of any kind.
    first: Option<Duration>,
    /// Time since the first SIGINT.
    interrupted: Option<Duration>,
    /// The run was asked to end, by a signal or otherwise.
    is_stopped: bool,
}

/// Returns what a signal means. SIGINT is typed by a person: a second one, not of the same moment, ends the process, as does
/// one in a run that ends already for another reason than a signal.
fn answer(signal: i32, earlier: Earlier) -> SignalAnswer {
    let is_late = earlier.first.is_some_and(|first| first >= SAME_REQUEST);
    let stops_otherwise = earlier.is_stopped && earlier.first.is_none();
    let is_repeated = earlier.interrupted.is_some_and(|first| first >= SAME_MOMENT);
    let is_repeated = is_repeated || stops_otherwise;
    match signal {
        libc::SIGINT if is_repeated || is_late => SignalAnswer::AtOnce,
        _ if is_late => SignalAnswer::AtOnce,
        _ => SignalAnswer::Stop,
    }
}

/// Makes a signal set `flag`, which asks a run to end cleanly. A second SIGINT, 200 ms or more after the first
/// one, ends the process with the exit code `at_once`, and so does any signal 5 s after the first one; until then SIGTERM and SIGHUP may come as often as they
/// like. `state` is shared by the signals of one run.
///
/// # Errors
/// The system refuses the handler.
pub fn end_by(
    signal: i32,
    at_once: u8,
    state: &Arc<EndState>,
    flag: Arc<AtomicBool>,
) -> io::Result<()> {
    let state = Arc::clone(state);
    let handle = move || {
        let now = now_ns().max(1);
        // Another thread may handle a signal at the same moment: one of the two is the first.
        let since = |first_ns: &AtomicU64| {
            let first = first_ns.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
            first.err().map(|first| Duration::from_nanos(now.saturating_sub(first)))
        };
        let earlier = Earlier {
            first: since(&state.first_ns),
            interrupted: (signal == libc::SIGINT).then(|| since(&state.interrupted_ns)).flatten(),
            is_stopped: flag.load(Ordering::Relaxed),
        };
        match answer(signal, earlier) {
            SignalAnswer::Stop => flag.store(true, Ordering::Relaxed),
            // SAFETY: _exit(2) is async-signal-safe and has no preconditions.
            SignalAnswer::AtOnce => unsafe { libc::_exit(i32::from(at_once)) },
        }
    };
    // SAFETY: the handler reads a clock with clock_gettime(2), uses atomics and may call _exit(2): all of them are
    // async-signal-safe, and it neither allocates nor panics.
    unsafe { signal_hook_registry::register(signal, handle) }.map(|_| ())
}

/// The signals of a run so far.
#[derive(Debug, Default)]
pub struct EndState {
    /// Monotonic time of the first one; 0: none came.
    first_ns: AtomicU64,
    /// Of the first SIGINT.
    interrupted_ns: AtomicU64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use SignalAnswer::{AtOnce, Stop};
    use libc::{SIGHUP, SIGINT, SIGTERM};

    #[test]
    fn one_request_may_come_as_many_signals() {
        let after = |ms, is_interrupted: bool| Earlier {
            first: Some(Duration::from_millis(ms)),
            interrupted: is_interrupted.then(|| Duration::from_millis(ms)),
            is_stopped: true,
        };
        let none = Earlier::default();
        for (signal, earlier, expected) in [
            (SIGTERM, none, Stop),
            (SIGHUP, none, Stop),
            (SIGINT, none, Stop),
            (SIGTERM, after(0, false), Stop),
            (SIGTERM, after(4999, false), Stop),
            (SIGHUP, after(4999, false), Stop),
            (SIGTERM, after(5000, false), AtOnce),
            (SIGHUP, after(60_000, false), AtOnce),
            // A script's trap passes Ctrl-C on as SIGTERM, before or after the terminal's own signal.
            (SIGTERM, after(10, true), Stop),
            (SIGINT, after(10, false), Stop),
            // timeout(1) sends it to the process and to its group.
            (SIGINT, after(10, true), Stop),
            (SIGINT, after(199, true), Stop),
            (SIGINT, after(200, true), AtOnce),
            (SIGINT, after(5000, false), AtOnce),
            // The time limit was reached.
            (SIGTERM, Earlier { is_stopped: true, ..none }, Stop),
            (SIGINT, Earlier { is_stopped: true, ..none }, AtOnce),
        ] {
            assert_eq!(answer(signal, earlier), expected, "{signal} {earlier:?}");
        }
    }
}
