//! The target end: announcements and content come in, wishes go out.

use super::source_end::{ENTRIES_MAX, MESSAGE_BYTES, UNASKED_BYTES_MAX};
use super::{Bye, FarLink, Lane, LaneEnd, LinkSample, stopped_or};
use crate::local::source::Answers;
use crate::local::{Arrival, Arrivals, Coming};
use hakobu_core::control::Control;
use hakobu_core::event::Listener;
use hakobu_remote::delta::weight;
use hakobu_remote::link::{Incoming, LinkError, Outgoing};
use hakobu_remote::message::{
    CHUNK_ENTRIES_MAX, ContentState, Message, Patch, ProtocolError, Signs,
};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Time that a worker waits for the next message before it looks at other work.
const LOOK: Duration = Duration::from_millis(20);
/// Bytes after which the other end is told that there is room again.
pub(super) const TOLD_BYTES: u64 = 1 << 20;

/// Messages that wait to be handled: more than credits and directories that are open at a time make.
const ARRIVALS_MAX: usize = 1 << 18;
const TOO_MUCH: ProtocolError = ProtocolError("more is announced or sent than there is room for");

/// Blocks whose hashes the other end may have without having begun to use them.
const SIGNS_MAX: u64 = 1 << 19;

/// The target end of a run.
pub struct TargetEnd<'a> {
    out: Outgoing,
    control: &'a Control,
    listener: &'a dyn Listener,
    inbox: Mutex<Inbox>,
    arrived: Condvar,
    answers: Arc<Answering>,
    link: Arc<FarLink>,
}

#[derive(Default)]
struct Inbox {
    arrivals: VecDeque<Arrival>,
    lost: Option<LinkError>,
    is_lost: bool,
    bye: Option<Bye>,
    /// The other end has said its last message on the first lane.
    is_ended: bool,
    lanes: ReceivedLanes,
    /// Ends of passes that have come on a lane; the first one is 0.
    turns: BTreeMap<u8, u64>,
    /// Passes that have ended on all lanes.
    passes: u64,
    /// What has come of later passes, with their numbers.
    early: Vec<(u64, Arrival)>,
    /// The other end was done before its part was.
    is_left_open: bool,
    /// Files that the other end cannot read, as it said instead of their content.
    unread: u64,
}

/// Numbers of lanes besides the first one.
#[derive(Default)]
struct ReceivedLanes {
    /// That may come.
    expected: BTreeSet<u8>,
    /// On which content comes, as the other end said.
    used: BTreeSet<u8>,
    /// That were ended, or broke before they were used.
    ended: BTreeSet<u8>,
    broken: BTreeSet<u8>,
}

impl Inbox {
    /// Adds what has come, behind the end of the pass before.
    fn add(&mut self, lane: u8, arrival: Arrival) {
        let pass = self.turns.get(&lane).copied().unwrap_or(0);
        match pass == self.passes {
            true => self.arrivals.push_back(arrival),
            false => self.early.push((pass, arrival)),
        }
    }

    /// Records the end of a pass on a lane.
    fn turn(&mut self, lane: u8) {
        *self.turns.entry(lane).or_default() += 1;
        self.turn_if_due();
    }

    fn is_turn_due(&self) -> bool {
        let has_turned = |lane: &u8| self.turns.get(lane).is_some_and(|of| *of > self.passes);
        let mut others = self.lanes.used.difference(&self.lanes.ended);
        has_turned(&0) && others.all(has_turned)
    }

    /// Ends passes that have ended on all lanes.
    fn turn_if_due(&mut self) {
        while self.is_turn_due() {
            self.passes += 1;
            self.arrivals.push_back(Arrival::Turn);
            let early = std::mem::take(&mut self.early);
            for (pass, arrival) in early {
                match pass == self.passes {
                    true => self.arrivals.push_back(arrival),
                    false => self.early.push((pass, arrival)),
                }
            }
        }
    }

    /// Returns whether nothing more comes on any lane.
    fn is_over(&self) -> bool {
        self.is_lost || self.is_ended && self.lanes.used.is_subset(&self.lanes.ended)
    }
}

const UNREPORTED: ProtocolError = ProtocolError("it counts fewer failures than it has told");

struct Answering {
    out: Outgoing,
    coming: Coming,
    /// Bytes that were written and not told of.
    untold: AtomicU64,
    /// Entries that were not answered, and bytes of content that were not written.
    entries: AtomicU64,
    bytes: AtomicU64,
    /// Blocks whose hashes were sent ahead.
    signs: AtomicU64,
}

/// Returns what a message counts for until it is handled, besides the content in it.
fn message_bytes(arrival: &Arrival) -> u64 {
    match arrival {
        Arrival::Dir(_) | Arrival::Content { .. } => MESSAGE_BYTES,
        _ => 0,
    }
}

impl Answering {
    /// Counts an entry whose content was wanted, and comes. Of differences more than one message may be the first that
    /// is handled, and a file may come again as a whole.
    fn no_longer_wanted(&self) {
        let less = |entries: u64| Some(entries.saturating_sub(1));
        let _ = self.entries.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
    }

    /// Counts what has come. Nothing may come that the other end should know to be too much.
    fn count(&self, arrival: &Arrival) -> Result<(), ProtocolError> {
        let (entries, bytes) = match arrival {
            Arrival::Entries { entries, .. } => {
                let content = entries.iter().filter_map(|entry| entry.content.as_ref());
                (entries.len(), content.map(Vec::len).sum())
            }
            Arrival::Content { content, .. } => {
                self.no_longer_wanted();
                (0, content.len())
            }
            Arrival::Patch { patch, .. } => {
                self.no_longer_wanted();
                (0, weight(&patch.ops) as usize)
            }
            _ => (0, 0),
        };
        let entries = self.entries.fetch_add(entries as u64, Ordering::AcqRel) + entries as u64;
        let bytes = bytes as u64 + message_bytes(arrival);
        let bytes = self.bytes.fetch_add(bytes, Ordering::AcqRel) + bytes;
        // The other end counts content as sent that is still on the way.
        let on_the_way = UNASKED_BYTES_MAX / MESSAGE_BYTES;
        let most = (ENTRIES_MAX + CHUNK_ENTRIES_MAX) as u64 + on_the_way;
        match entries > most || bytes > UNASKED_BYTES_MAX + TOLD_BYTES {
            true => Err(TOO_MUCH),
            false => Ok(()),
        }
    }
}

impl Answers for Answering {
    fn wanted(&self, chunk: u64, entries: usize, wanted: Vec<u8>) {
        self.entries.fetch_sub((entries - wanted.len()) as u64, Ordering::AcqRel);
        let _ = self.out.send(Message::Want { chunk, wanted });
    }

    fn consumed(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::AcqRel);
        let untold = self.untold.fetch_add(bytes, Ordering::AcqRel) + bytes;
        if untold >= TOLD_BYTES {
            let bytes = self.untold.swap(0, Ordering::AcqRel);
            if bytes > 0 {
                let _ = self.out.send(Message::Room { bytes });
            }
        }
    }

    fn more(&self, chunk: u64, index: u8, bytes: u64) {
        let _ = self.out.send(Message::More { chunk, index, bytes });
    }

    fn rest(&self, chunk: u64, index: u8, offset: u64, prefix: Option<u128>) {
        let _ = self.out.send(Message::Rest { chunk, index, offset, prefix });
    }

    fn reserve_signs(&self, blocks: u64) -> bool {
        let ahead = self.signs.fetch_add(blocks, Ordering::AcqRel) + blocks;
        let has_room = ahead <= SIGNS_MAX;
        if !has_room {
            self.signs.fetch_sub(blocks, Ordering::AcqRel);
        }
        has_room
    }

    fn release_signs(&self, blocks: u64) {
        self.signs.fetch_sub(blocks, Ordering::AcqRel);
    }

    fn signs(&self, signs: Signs) {
        let _ = self.out.send(Message::Signs(Box::new(signs)));
    }

    fn fine(&self, chunk: u64, index: u8, hashes: Vec<u64>) {
        let _ = self.out.send(Message::Fine { chunk, index, hashes });
    }

    fn checked(&self, chunk: u64, index: u8, is_right: bool) {
        if is_right {
            self.coming.end((chunk, index));
        }
        let _ = self.out.send(Message::Checked { chunk, index, is_right });
    }

    fn cancel(&self, chunk: u64, index: u8) {
        self.coming.cancel((chunk, index));
        let _ = self.out.send(Message::More { chunk, index, bytes: 0 });
    }

    fn settled(&self, chunk: u64, index: u8, is_complete: bool) {
        let _ = self.out.send(Message::Arrived { chunk, index, is_complete });
    }
}

impl<'a> TargetEnd<'a> {
    pub fn new(out: Outgoing, control: &'a Control, listener: &'a dyn Listener) -> TargetEnd<'a> {
        let answers = Arc::new(Answering {
            out: out.clone(),
            coming: Coming::default(),
            untold: AtomicU64::new(0),
            entries: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            signs: AtomicU64::new(0),
        });
        let (inbox, arrived) = Default::default();
        let link = Arc::new(FarLink::new(None));
        TargetEnd { out, control, listener, inbox, arrived, answers, link }
    }

    /// Reads what the other end sends, until it has done its part or is lost. Runs in a thread of its own.
    pub fn read(&self, mut incoming: Incoming<impl Read>) {
        loop {
            let message = match incoming.receive() {
                Ok(Message::Bye(json)) => match serde_json::from_slice(&json) {
                    Ok(bye) => return self.end_first(bye),
                    Err(_) => return self.refuse(ProtocolError("a last message is damaged")),
                },
                Ok(message) => message,
                Err(error) => return self.lose(error),
            };
            let other = self.link.take(message, &self.out, self.listener);
            let taken = other.and_then(|other| other.map_or(Ok(()), |other| self.take(other)));
            if let Err(error) = taken {
                return self.refuse(error);
            }
        }
    }

    fn end_first(&self, bye: Bye) {
        if bye.stopped {
            // What was not sent will not come.
            self.control.stop();
        }
        let mut inbox = self.inbox.lock();
        (inbox.bye, inbox.is_ended) = (Some(bye), true);
        drop(inbox);
        self.arrived.notify_all();
    }

    fn take(&self, message: Message) -> Result<(), ProtocolError> {
        if let Message::Patch { patch: Patch { state: ContentState::Failed, .. }, .. } = &message {
            self.inbox.lock().unread += 1;
        }
        let arrival = match message {
            Message::Dir(dir) => Arrival::Dir(dir),
            Message::Entries { dir, chunk, entries } => Arrival::Entries { dir, chunk, entries },
            Message::Patch { chunk, index, patch } => {
                match self.answers.coming.add_patch((chunk, index), patch)? {
                    // A worker waits for it.
                    None => return Ok(()),
                    Some(patch) => Arrival::Patch { chunk, index, patch },
                }
            }
            Message::End { dir, is_listed } => Arrival::End { dir, is_listed },
            Message::Names { is_group, id, name } => Arrival::Names { is_group, id, name },
            Message::Begins { chunk, index, offset } => Arrival::Begins { chunk, index, offset },
            Message::Had { dir, absent, is_known } => Arrival::Had { dir, absent, is_known },
            Message::Turn => {
                self.inbox.lock().turn(0);
                self.arrived.notify_all();
                return Ok(());
            }
            Message::Stop => {
                self.control.stop();
                return Ok(());
            }
            Message::Lane { number, .. } => {
                let mut inbox = self.inbox.lock();
                if !inbox.lanes.expected.contains(&number) || !inbox.lanes.used.insert(number) {
                    return Err(ProtocolError("a lane is not there, or was announced twice"));
                }
                self.answers.coming.add_lane();
                if inbox.lanes.broken.contains(&number) {
                    drop(inbox);
                    self.lose(LinkError::Io(std::io::ErrorKind::UnexpectedEof.into()));
                }
                return Ok(());
            }
            content => return self.take_content(0, content),
        };
        self.arrive(0, arrival)
    }

    /// Takes what may come on any lane.
    fn take_content(&self, lane: u8, message: Message) -> Result<(), ProtocolError> {
        if let Message::Data { state: ContentState::Failed, .. }
        | Message::Piece { state: ContentState::Failed, .. } = &message
        {
            self.inbox.lock().unread += 1;
        }
        match message {
            Message::Data { chunk, index, content, state } => {
                self.arrive(lane, Arrival::Content { chunk, index, content, state })
            }
            Message::Turn if lane > 0 => {
                self.inbox.lock().turn(lane);
                self.arrived.notify_all();
                Ok(())
            }
            Message::Piece { chunk, index, offset, content, state } => {
                self.answers.coming.add((chunk, index), offset, content, state)
            }
            _ => Err(ProtocolError("a message came from the wrong end")),
        }
    }

    fn arrive(&self, lane: u8, arrival: Arrival) -> Result<(), ProtocolError> {
        self.answers.count(&arrival)?;
        let mut inbox = self.inbox.lock();
        if inbox.is_lost || inbox.arrivals.len() + inbox.early.len() >= ARRIVALS_MAX {
            // Nobody takes it, or not so many.
            return Err(TOO_MUCH);
        }
        inbox.add(lane, arrival);
        drop(inbox);
        self.arrived.notify_all();
        Ok(())
    }

    /// Records that a lane is lost, which ends the run if content comes on it.
    fn break_lane(&self, number: u8, error: std::io::Error) {
        let mut inbox = self.inbox.lock();
        inbox.lanes.broken.insert(number);
        if inbox.lanes.used.contains(&number) {
            drop(inbox);
            self.lose(LinkError::Io(error));
        }
    }

    fn lose(&self, error: LinkError) {
        let mut inbox = self.inbox.lock();
        inbox.lost.get_or_insert(stopped_or(error, self.control));
        inbox.is_lost = true;
        drop(inbox);
        self.control.stop();
        self.out.break_off();
        self.arrived.notify_all();
    }

    /// Tells the other end that this one has done its part.
    pub fn end(&self, bye: &Bye) {
        if let Ok(json) = serde_json::to_vec(bye) {
            let _ = self.out.send(Message::Bye(json));
        }
    }

    /// Tells the other end which directory the target is.
    pub fn tell_place(&self, (dev, ino): (u64, u64)) {
        let _ = self.out.send(Message::Place { dev, ino });
    }

    /// Takes nothing more: the other end stops, too.
    pub fn give_up(&self) {
        let _ = self.out.send(Message::Stop);
    }

    /// Waits until the other end has done its part on all lanes, or is lost.
    pub fn wait(&self) {
        let mut inbox = self.inbox.lock();
        while !inbox.is_over() {
            self.arrived.wait_for(&mut inbox, LOOK);
        }
    }

    /// Returns what the other end said last, or why it is lost.
    pub fn ended(&self) -> Result<Option<Bye>, LinkError> {
        let mut inbox = self.inbox.lock();
        match inbox.lost.take() {
            Some(lost) => Err(lost),
            // An error of its own says why.
            None if inbox.is_left_open && inbox.bye.as_ref().is_none_or(Bye::is_clean) => {
                Err(LinkError::Protocol(super::LEFT_OPEN))
            }
            None => match inbox.bye.take() {
                Some(bye)
                    if bye.is_clean() && bye.totals.failed + bye.totals.vanished < inbox.unread =>
                {
                    Err(LinkError::Protocol(UNREPORTED))
                }
                bye => Ok(bye),
            },
        }
    }
}

impl LaneEnd for TargetEnd<'_> {
    fn expect_lane(&self, number: u8) {
        self.inbox.lock().lanes.expected.insert(number);
    }

    fn miss_lane(&self, number: u8) {
        self.break_lane(number, std::io::ErrorKind::UnexpectedEof.into());
    }

    fn use_lane(&self, mut lane: Lane) {
        let number = lane.number;
        self.link.count(&lane.from);
        let broken = loop {
            match lane.from.receive() {
                Ok(Message::Bye(_)) => break None,
                Ok(message) => {
                    if let Err(error) = self.take_content(number, message) {
                        return self.refuse(error);
                    }
                }
                Err(LinkError::Io(error)) => break Some(error),
                Err(error) => return self.lose(error),
            }
        };
        match broken {
            Some(error) => self.break_lane(number, error),
            None => {
                let mut inbox = self.inbox.lock();
                inbox.lanes.ended.insert(number);
                inbox.turn_if_due();
                drop(inbox);
                self.arrived.notify_all();
            }
        }
    }

    fn sample(&self) -> Option<LinkSample> {
        self.link.told_sample()
    }

    fn own_sample(&self) -> LinkSample {
        self.link.written()
    }

    fn link(&self) -> &Arc<FarLink> {
        &self.link
    }
}

impl Arrivals for TargetEnd<'_> {
    fn next(&self, waits: bool) -> Arrival {
        let mut inbox = self.inbox.lock();
        if inbox.arrivals.is_empty() && !inbox.is_over() && waits {
            self.arrived.wait_for(&mut inbox, LOOK);
        }
        let (next, is_over) = (inbox.arrivals.pop_front(), inbox.is_over());
        drop(inbox);
        match next {
            Some(arrival) => {
                self.answers.consumed(message_bytes(&arrival));
                arrival
            }
            None if is_over => Arrival::Over,
            None => Arrival::Nothing,
        }
    }

    fn answers(&self) -> Arc<dyn Answers> {
        Arc::clone(&self.answers) as Arc<dyn Answers>
    }

    fn coming(&self) -> &Coming {
        &self.answers.coming
    }

    fn fresh(&self, dir: u64) {
        let _ = self.out.send(Message::Fresh { dir });
    }

    fn ask(&self, dir: u64, names: Vec<Vec<u8>>, is_last: bool) {
        let _ = self.out.send(Message::Has { dir, names, is_last });
    }

    fn left_open(&self) {
        if self.control.is_stopped() {
            return;
        }
        let mut inbox = self.inbox.lock();
        inbox.is_left_open = true;
        let is_done = inbox.bye.is_some();
        drop(inbox);
        match is_done {
            true => self.control.stop(),
            false => self.refuse(super::LEFT_OPEN),
        }
    }

    fn refuse(&self, error: ProtocolError) {
        self.lose(LinkError::Protocol(error));
    }
}
