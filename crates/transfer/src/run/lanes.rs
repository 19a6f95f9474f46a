//! Further lanes of a run with another machine. ssh has at most 2 MiB of a channel on the way, so one channel moves 2 MiB in a
//! round trip: where that is what a run waits for, the near end opens further channels of its login, and content comes on all
//! of them. Without a login that can be shared there is one lane, which is no error.

use crate::far::{Lane, LaneEnd, LinkSample};
use crate::journal::{JobHints, Journal, Key};
use crate::plan::RemoteEnd;
use hakobu_remote::frame;
use hakobu_remote::join::{JoinedLane, LaneListener};
use hakobu_remote::link::Incoming;
use hakobu_remote::message::{LANES_MAX, Message};
use hakobu_remote::session::SshSession;
use hakobu_remote::ssh::{GREETING, RemoteAgent};
use hakobu_sys::stdio::Input;
use parking_lot::{Condvar, Mutex};
use std::collections::HashMap;
use std::io::{BufReader, Read};
use std::process::{Child, ChildStdin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Scope;
use std::time::{Duration, Instant, SystemTime};

/// Bytes that are read at once.
const READ_BYTES: usize = 256 << 10;
/// Time between two looks at the link.
const LOOK: Duration = Duration::from_millis(50);
/// Time in which ssh ends a channel of which both directions are closed.
const ENDS: Duration = Duration::from_secs(2);

/// How further lanes of an end come.
#[derive(Default)]
pub(super) enum MoreLanes<'a> {
    /// There are none.
    #[default]
    None,
    /// This end opens them.
    Opens(LaneOpener<'a>),
    /// Other agents hand them over.
    Takes(LaneTaker),
}

impl MoreLanes<'_> {
    /// Starts threads that open or take lanes for an end, until [`MoreLanes::end`].
    pub fn begin<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        end: &'scope (dyn LaneEnd + 'scope),
    ) {
        match self {
            MoreLanes::None => {}
            MoreLanes::Opens(opener) => drop(scope.spawn(move || opener.open(scope, end))),
            MoreLanes::Takes(taker) => drop(scope.spawn(move || taker.take(scope, end))),
        }
    }

    /// Stores what was learned for later runs.
    pub fn remember(&self) {
        if let MoreLanes::Opens(opener) = self {
            opener.remember();
        }
    }

    /// Ends the threads: the run is over.
    pub fn end(&self) {
        match self {
            MoreLanes::None => {}
            MoreLanes::Opens(opener) => opener.end(),
            MoreLanes::Takes(taker) => {
                taker.is_over.store(true, Ordering::Release);
                taker.listener.end();
            }
        }
    }
}

/// Takes lanes that other agents hand over.
pub(super) struct LaneTaker {
    listener: LaneListener,
    is_over: Arc<AtomicBool>,
}

impl LaneTaker {
    pub fn new(listener: LaneListener) -> LaneTaker {
        LaneTaker { listener, is_over: Arc::default() }
    }

    /// Returns where lanes are handed over.
    pub fn token(&self) -> &str {
        self.listener.token()
    }

    fn take<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        end: &'scope (dyn LaneEnd + 'scope),
    ) {
        let mut numbers = [false; LANES_MAX as usize + 1];
        while let Some(JoinedLane { number, from, mut to, agent }) = self.listener.next() {
            let is_known = numbers
                .get_mut(usize::from(number))
                .is_none_or(|known| std::mem::replace(known, true));
            if is_known {
                continue;
            }
            end.expect_lane(number);
            let answer = Message::Lane { number, token: Vec::new() }.encode();
            if frame::write(&mut to, &answer).is_err() {
                end.miss_lane(number);
                continue;
            }
            let is_over = Arc::clone(&self.is_over);
            let from = Input::new(from, move || is_over.load(Ordering::Acquire));
            let from: Box<dyn Read + Send> = Box::new(BufReader::with_capacity(READ_BYTES, from));
            let lane = Lane { number, from: Incoming::new(from), to: Box::new(to) };
            scope.spawn(move || {
                end.use_lane(lane);
                // The agent that handed it over ends.
                drop(agent);
            });
        }
    }
}

/// Opens lanes when the link asks for them.
pub(super) struct LaneOpener<'a> {
    remote: &'a RemoteEnd,
    session: &'a SshSession,
    token: &'a str,
    /// Lanes that an earlier run with this host has opened.
    hint: u8,
    state: Mutex<Opening>,
    changed: Condvar,
}

#[derive(Default)]
struct Opening {
    is_over: bool,
    /// A lane could not be opened: no more are.
    has_failed: bool,
    /// Lanes that were opened.
    opened: u8,
    /// ssh of lanes that are not used yet.
    pending: HashMap<u8, Child>,
}

impl<'a> LaneOpener<'a> {
    /// `token`: where the agent takes lanes; `remembers`: earlier runs count.
    pub fn new(
        remote: &'a RemoteEnd,
        session: &'a SshSession,
        token: &'a str,
        remembers: bool,
    ) -> LaneOpener<'a> {
        let (state, changed) = Default::default();
        let hints = remembers.then(|| JobHints::load(&Journal::of_user(), SystemTime::now()));
        let hint = hints.and_then(Result::ok).and_then(|hints| hints.get(&key(remote)));
        let hint = hint.map_or(0, |lanes| u8::try_from(lanes).unwrap_or(0).min(LANES_MAX));
        LaneOpener { remote, session, token, hint, state, changed }
    }

    /// Stores the number of lanes for later runs. A failure to write is ignored: the run is done.
    pub fn remember(&self) {
        let state = self.state.lock();
        if state.opened == 0 || state.has_failed {
            return;
        }
        let now = SystemTime::now();
        if let Ok(mut hints) = JobHints::load(&Journal::of_user(), now) {
            hints.put(key(self.remote), usize::from(state.opened), now);
            let _ = hints.save(now);
        }
    }

    fn open<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        end: &'scope (dyn LaneEnd + 'scope),
    ) {
        let mut need = LaneNeed { hint: self.hint, last: None };
        let mut state = self.state.lock();
        while !state.is_over && !state.has_failed && state.opened < LANES_MAX {
            self.changed.wait_for(&mut state, LOOK);
            let round_trip = end.link().round_trip();
            let Some((sample, round_trip)) = end.sample().zip(round_trip) else { continue };
            if state.pending.is_empty() {
                let opened = state.opened;
                let more = need.more(&sample, round_trip).min(LANES_MAX - opened);
                for number in opened + 1..=opened + more {
                    scope.spawn(move || self.run_lane(number, end));
                }
                state.opened += more;
            }
        }
    }

    /// Opens a lane, and uses it until its end.
    fn run_lane(&self, number: u8, end: &dyn LaneEnd) {
        end.expect_lane(number);
        let Some((lane, child)) = self.start(number) else {
            self.state.lock().has_failed = true;
            return end.miss_lane(number);
        };
        end.use_lane(lane);
        wait(child);
    }

    fn start(&self, number: u8) -> Option<(Lane, Child)> {
        let options = self.session.lane_options.as_deref()?;
        let started = {
            let mut state = self.state.lock();
            if state.is_over {
                return None;
            }
            let started = self.remote.shell.start_lane(&self.remote.host, options).ok()?;
            let RemoteAgent { child, to, from, .. } = started;
            state.pending.insert(number, child);
            (to, from)
        };
        let joined = self.join(number, started);
        let child = self.state.lock().pending.remove(&number);
        match (joined, child) {
            (Some(lane), Some(child)) => Some((lane, child)),
            (_, child) => {
                if let Some(mut child) = child {
                    // It may have ended by itself.
                    let _ = child.kill();
                    let _ = child.wait();
                }
                None
            }
        }
    }

    /// Says which lane it is, and waits until the agent that does the work has it.
    fn join(
        &self,
        number: u8,
        (mut to, mut from): (ChildStdin, std::process::ChildStdout),
    ) -> Option<Lane> {
        let hello = Message::Lane { number, token: self.token.as_bytes().to_vec() };
        frame::write(&mut to, &hello.encode()).ok()?;
        let mut greeting = [0; GREETING.len()];
        from.read_exact(&mut greeting).ok().filter(|()| greeting == *GREETING)?;
        let from: Box<dyn Read + Send> = Box::new(BufReader::with_capacity(READ_BYTES, from));
        let mut from = Incoming::new(from);
        match from.receive() {
            Ok(Message::Lane { number: of, .. }) if of == number => {
                Some(Lane { number, from, to: Box::new(to) })
            }
            _ => None,
        }
    }

    fn end(&self) {
        let mut state = self.state.lock();
        state.is_over = true;
        for child in state.pending.values_mut() {
            // Its thread waits for it.
            let _ = child.kill();
        }
        drop(state);
        self.changed.notify_all();
    }
}

/// Waits for the ssh of a lane, which ends when its agent has.
fn wait(mut child: Child) {
    let until = Instant::now() + ENDS;
    while child.try_wait().is_ok_and(|ended| ended.is_none()) {
        if Instant::now() >= until {
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Bytes of a channel of ssh that may be on the way (`CHAN_SES_WINDOW_DEFAULT`).
pub(super) const WINDOW_BYTES: f64 = (2 << 20) as f64;
/// Time over which the link is judged.
const JUDGED: Duration = Duration::from_millis(250);
/// Share of that time in which writers wait, if the link is the limit.
const WAITS: f64 = 0.6;
/// Share of what the windows allow from which on they are the limit, and not the line.
const FULL: f64 = 0.5;
/// Work that has to be left, in seconds: opening takes some round trips.
const LEFT_S_MIN: f64 = 1.0;
/// Time after which a source that is not announced yet is expected to last.
const GOES: Duration = Duration::from_secs(1);

/// Returns the key of the number of lanes with a host.
fn key(remote: &RemoteEnd) -> Key {
    Key::new(&remote.name(), "lanes", "any").under("ssh")
}

/// Decides how many lanes a run needs.
#[derive(Default)]
struct LaneNeed {
    /// Lanes that an earlier run has needed.
    hint: u8,
    last: Option<LinkSample>,
}

impl LaneNeed {
    /// Returns how many more lanes would help, as seen from the last look to this sample.
    fn more(&mut self, now: &LinkSample, round_trip: Duration) -> u8 {
        let window = WINDOW_BYTES / round_trip.as_secs_f64().max(1e-6);
        if self.hint > 0 && now.lanes <= 1 && now.left as f64 >= window * LEFT_S_MIN {
            return std::mem::take(&mut self.hint);
        }
        let Some(last) = self.last.filter(|last| last.lanes == now.lanes) else {
            self.last = Some(*now);
            return 0;
        };
        let span = now.at.saturating_sub(last.at);
        if span < JUDGED {
            return 0;
        }
        self.last = Some(*now);
        let (span_s, lanes) = (span.as_secs_f64(), f64::from(now.lanes.max(1)));
        let waits = now.writing.saturating_sub(last.writing).as_secs_f64() / (span_s * lanes);
        let rate = now.sent.saturating_sub(last.sent) as f64 / span_s;
        let windows = lanes * window;
        let lasts = now.left as f64 >= rate * LEFT_S_MIN || !now.is_announced && now.at >= GOES;
        match now.lanes {
            _ if waits < WAITS || rate < FULL * windows || !lasts => 0,
            0..=1 => 3,
            _ => 4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a look says after one second with one lane, in which `waits` of the time were waited and `sent` MB sent.
    fn looked(waits: f64, sent: u64, left: u64, round_trip_ms: u64) -> u8 {
        let mut need = LaneNeed::default();
        let sample = |at_ms: u64, waits: f64, sent: u64| LinkSample {
            at: Duration::from_millis(at_ms),
            writing: Duration::from_secs_f64(waits),
            sent: sent * 1_000_000,
            left: left * 1_000_000,
            is_announced: true,
            lanes: 1,
            ..LinkSample::default()
        };
        let round_trip = Duration::from_millis(round_trip_ms);
        assert_eq!(need.more(&sample(0, 0.0, 0), round_trip), 0);
        assert_eq!(need.more(&sample(100, 0.0, 0), round_trip), 0, "too early");
        need.more(&sample(1000, waits, sent), round_trip)
    }

    #[test]
    fn lanes_are_opened_where_the_window_is_the_limit() {
        assert_eq!(looked(0.95, 20, 180, 100), 3);
        assert_eq!(looked(0.95, 100, 120, 20), 3);
        // Little is left; the writer waits for the disk; the line is the limit; there is no round trip worth it.
        assert_eq!(looked(0.95, 20, 10, 100), 0);
        assert_eq!(looked(0.2, 20, 180, 100), 0);
        assert_eq!(looked(0.95, 5, 180, 100), 0);
        assert_eq!(looked(0.95, 400, 2000, 1), 0);
    }

    #[test]
    fn what_was_learned_counts_at_once_where_there_is_enough_to_do() {
        let mut need = LaneNeed { hint: 7, last: None };
        let sample = |left: u64| LinkSample { left, lanes: 1, ..LinkSample::default() };
        let round_trip = Duration::from_millis(100);
        assert_eq!(need.more(&sample(1 << 20), round_trip), 0);
        assert_eq!(need.more(&sample(64 << 20), Duration::from_millis(1)), 0);
        assert_eq!(need.more(&sample(64 << 20), round_trip), 7);
        assert_eq!(need.more(&sample(64 << 20), round_trip), 0, "once");
    }
}
