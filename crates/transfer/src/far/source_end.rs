//! The source end: announcements and content go out, wishes come in.
//!
//! Walkers wait while the other end has enough entries to look at or enough directories to ask for; senders wait while it has
//! enough content to write. The reader never waits, so what they wait for always comes. Questions have a thread of their own:
//! they are answered while all senders wait.

use super::delta::{DeltaEnd, Deltas};
use super::{Bye, FarLink, Lane, LaneEnd, LinkSample, stopped_or};
use crate::failure::Failure;
use crate::local::target_dir::Node;
use crate::local::{
    Announced, AnnouncedChunk, AnnouncedReader, Announcer, Opening, QUESTIONS_BYTES_MAX,
    SourceRemoval, absent, ids_of_acl, question_bytes, remove_sources,
};
use crate::policy::Policy;
use hakobu_core::control::Control;
use hakobu_core::error::{Cause, ErrorClass, Operation, Problem};
use hakobu_core::event::{Event, Listener};
use hakobu_core::limit::Controls;
use hakobu_core::meter::Phase;
use hakobu_core::unit::{Kind, Meta, Totals};
use hakobu_remote::link::{Broken, Incoming, LinkError, Outgoing};
use hakobu_remote::message::{
    ASKED_BYTES_MAX, ASKED_NAMES_MAX, CONTENT_BYTES_MAX, ContentState, DirRecord, EntryRecord,
    ID_NAME_BYTES_MAX, Message, ProtocolError, WANT_DELTA,
};
use hakobu_remote::packing::Packing;
use hakobu_sys::process;
use parking_lot::{Condvar, Mutex};
use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::CString;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Entries that the other end may have without having looked at them, or without the content that it asked for: some 400 bytes
/// of memory each, and at 100 ms 160,000 in a second.
pub(crate) const ENTRIES_MAX: usize = 1 << 14;
/// Who waited because of them goes on when there are so many: not for each answer.
const ENTRIES_LOW: usize = ENTRIES_MAX / 4 * 3;
/// Bytes of content on the way that it has not asked for piece by piece.
pub(super) const UNASKED_BYTES_MAX: u64 = 16 << 20;
/// What a directory counts for among them until the other end has handled it, and a first piece besides its content: messages
/// need memory, too.
pub const MESSAGE_BYTES: u64 = 1 << 10;
/// Directories that the other end may still ask for.
const ENDED_MAX: usize = 4096;
/// Bytes that open questions may take: one more may be on the way than there is room for.
const ASKED_MAX: usize = QUESTIONS_BYTES_MAX + ASKED_BYTES_MAX + ASKED_NAMES_MAX * 64;
/// Time between two looks at a stop.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// A file: the number of its chunk, and its own within it.
pub(super) type FileNumber = (u64, u8);

/// What a sender sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// What is asked for.
    Wanted,
    /// What did not arrive as differences, as a whole.
    Again,
}

/// What is sent of a file that is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceSends {
    #[default]
    Contents,
    /// The hash of its content, in one piece: the other end compares.
    Hashes,
}

/// The source end of a run.
pub struct SourceEnd<'a> {
    sends: SourceSends,
    pub(super) out: Outgoing,
    control: &'a Control,
    listener: &'a dyn Listener,
    packing: Option<Packing>,
    pub(super) state: Mutex<State>,
    pub(super) changed: Condvar,
    /// As `changed`, for those who announce: there is room for more. They are many, and most messages are nothing to them.
    room: Condvar,
    /// What was done after it was announced, and failed.
    totals: Mutex<Totals>,
    /// Bytes of content that is asked for and not read yet.
    left: AtomicU64,
    lanes: Mutex<SentLanes>,
    link: Arc<FarLink>,
    names: OwnerNames,
}

/// Lanes for content besides the first one.
#[derive(Default)]
struct SentLanes {
    outs: Vec<Outgoing>,
    /// Passes that have ended.
    turns: usize,
    /// All content was sent.
    is_closed: bool,
}

/// Tells the names of users and groups, each once.
struct OwnerNames {
    users: bool,
    groups: bool,
    /// Those that were told: whether it is a group, and the number. Locked until the name is queued, so that no entry
    /// comes before it.
    told: Mutex<HashSet<(bool, u32)>>,
}

impl OwnerNames {
    fn new(policy: &Policy) -> OwnerNames {
        let keeps = |owner| !policy.numeric_ids && (owner || policy.preserve.acls);
        let (users, groups) = (keeps(policy.preserve.owner), keeps(policy.preserve.group));
        OwnerNames { users, groups, told: Mutex::default() }
    }

    /// Tells those of entries that are about to be announced.
    fn tell<'e>(&self, entries: impl Iterator<Item = &'e EntryRecord>, out: &Outgoing) {
        if !self.users && !self.groups {
            return;
        }
        let mut last = None;
        for entry in entries {
            let owner = (entry.meta.uid, entry.meta.gid);
            let is_new = last.replace(owner) != Some(owner);
            let own = [(false, owner.0), (true, owner.1)].into_iter().filter(|_| is_new);
            for (is_group, id) in own.chain(entry.xattrs.iter().flat_map(ids_of_acl)) {
                let mut told = self.told.lock();
                if (if is_group { self.groups } else { self.users }) && told.insert((is_group, id))
                {
                    let name =
                        if is_group { process::group_name(id) } else { process::user_name(id) };
                    let name = name.unwrap_or_default().into_bytes();
                    let name = if name.len() > ID_NAME_BYTES_MAX { Vec::new() } else { name };
                    let _ = out.send(Message::Names { is_group, id, name });
                }
            }
        }
    }
}

/// A directory whose names the other end may ask for.
struct Ended {
    node: Arc<Node>,
    /// A question is open, after which none follows (`true`) or others may.
    asked: Option<bool>,
}

/// A directory and the names that are asked for.
type Question = (u64, Vec<Vec<u8>>);

/// What is to be done for the other end besides sending content.
enum Errand {
    Question(Question),
    Remove(Vec<SourceRemoval>),
}

#[derive(Default)]
pub(super) struct State {
    last_chunk: u64,
    chunks: HashMap<u64, SentChunk>,
    wanted: VecDeque<FileNumber>,
    /// Files that are sent as a whole after their differences.
    again: VecDeque<FileNumber>,
    pub(super) deltas: Deltas,
    /// Directories that were announced and not ended; those of them that are new.
    open: HashSet<u64>,
    fresh: HashSet<u64>,
    /// Entries that were not looked at, or whose content was not sent.
    entries: usize,
    pub(super) unasked: u64,
    /// Bytes that may be sent of files whose content is on the way.
    pub(super) windows: HashMap<FileNumber, u64>,
    /// Chunks that were not answered, or whose content was not sent.
    unsent: usize,
    ended: HashMap<u64, Ended>,
    questions: VecDeque<Question>,
    /// Room that the open questions take.
    asked_bytes: usize,
    /// Entries that the other end has, to be removed.
    arrived: Vec<SourceRemoval>,
    /// Those that have further names, which may not have been looked at: they are removed at the end.
    linked: Vec<SourceRemoval>,
    /// Everything was announced.
    is_announced: bool,
    lost: Option<LinkError>,
    bye: Option<Bye>,
    /// Device and inode of the target directory, where both ends are on one machine.
    place: Option<(u64, u64)>,
}

struct SentChunk {
    files: Arc<SentFiles>,
    /// Entries that are wanted from an offset on.
    rests: HashMap<u8, Rest>,
    /// Entries whose content is still to be sent, once the chunk is answered.
    left: Option<usize>,
    /// A bit for each entry of which nothing is to be heard any more.
    settled: u64,
    /// A bit for each file of which nothing more is wanted.
    cancelled: u64,
}

impl SentChunk {
    fn is_settled(&self) -> bool {
        self.settled.count_ones() as usize >= self.files.entries.len()
    }
}

/// The part of a file that is wanted.
#[derive(Clone, Copy)]
struct Rest {
    offset: u64,
    /// Hash that the content before it has to have.
    prefix: Option<u128>,
}

/// A file that is wanted: the numbers of its chunk and its own, and the part.
type WantedFile = ((u64, u8), Arc<SentFiles>, Option<Rest>);

/// What is needed to send the content of announced entries.
pub(super) struct SentFiles {
    pub(super) node: Arc<Node>,
    pub(super) side: usize,
    entries: Vec<SentEntry>,
}

pub(super) struct SentEntry {
    pub(super) name: CString,
    pub(super) opening: Opening,
    pub(super) size: u64,
    /// It has content that was not announced with it.
    may_be_asked: bool,
    /// What it was when it was announced, if it is removed when the other end has it.
    source: Option<Box<Meta>>,
}

impl<'a> SourceEnd<'a> {
    /// `packing`: how content is compressed.
    pub fn new(
        out: Outgoing,
        control: &'a Control,
        listener: &'a dyn Listener,
        policy: &Policy,
        packing: Option<&Packing>,
    ) -> SourceEnd<'a> {
        let (sends, state, changed, room, totals, left, lanes) = Default::default();
        let link = Arc::new(FarLink::new(Some(out.clone())));
        let (names, packing) = (OwnerNames::new(policy), packing.cloned());
        SourceEnd {
            sends,
            out,
            control,
            listener,
            packing,
            state,
            changed,
            room,
            totals,
            left,
            lanes,
            link,
            names,
        }
    }

    /// Gives up the link.
    fn lose(&self, lost: LinkError) {
        self.lose_with(lost, Outgoing::break_off);
    }

    /// `end`: what becomes of the first lane.
    fn lose_with(&self, lost: LinkError, end: impl Fn(&Outgoing)) {
        self.state.lock().lost.get_or_insert(stopped_or(lost, self.control));
        self.control.stop();
        end(&self.out);
        self.lanes.lock().outs.iter().for_each(Outgoing::break_off);
        self.wake_all();
    }

    fn wake_all(&self) {
        self.changed.notify_all();
        self.room.notify_all();
    }

    /// Counts sources that were refused before, and sets what is sent of files.
    pub fn with(self, failed: u64, sends: SourceSends) -> SourceEnd<'a> {
        self.totals.lock().failed += failed;
        SourceEnd { sends, ..self }
    }

    /// Sends a message with content of a file, behind those before it.
    pub(super) fn send_of(&self, entry: &SentEntry, message: Message) -> Result<(), Broken> {
        self.send_over(&self.out, entry, message)
    }

    /// Sends content of a file over the lane on which least waits; `begins`: the first piece comes behind where it begins.
    fn send_content_of(
        &self,
        entry: &SentEntry,
        begins: bool,
        message: Message,
    ) -> Result<(), Broken> {
        if begins && matches!(message, Message::Data { .. }) {
            return self.send_of(entry, message);
        }
        let out = {
            let lanes = self.lanes.lock();
            let all = std::iter::once(&self.out).chain(&lanes.outs);
            match lanes.outs.is_empty() {
                true => None,
                false => all.min_by_key(|out| out.queued()).cloned(),
            }
        };
        self.send_over(out.as_ref().unwrap_or(&self.out), entry, message)
    }

    fn send_over(&self, out: &Outgoing, entry: &SentEntry, message: Message) -> Result<(), Broken> {
        match &self.packing {
            Some(packing) if packing.skips(entry.name.to_bytes()) => out.send_plain(message),
            _ => out.send(message),
        }
    }

    /// Returns whether most of the content that goes with entries is of files that are not compressed.
    fn is_mostly_packed(&self, entries: &[Announced], content_bytes: u64) -> bool {
        let Some(packing) = self.packing.as_ref().filter(|_| content_bytes > 0) else {
            return false;
        };
        let skipped = entries.iter().filter(|entry| packing.skips(entry.name.to_bytes()));
        let bytes = skipped.filter_map(|entry| entry.record.content.as_ref());
        2 * bytes.map(|content| content.len() as u64).sum::<u64>() > content_bytes
    }

    pub(super) fn is_over(&self, state: &State) -> bool {
        // An end that is done takes nothing more.
        self.control.is_stopped() || state.lost.is_some() || state.bye.is_some()
    }

    /// Reads what the other end says, until it has done its part or is lost. Runs in a thread of its own.
    pub fn read(&self, mut incoming: Incoming<impl Read>) {
        let lost = loop {
            match incoming.receive() {
                Ok(Message::Bye(json)) => match serde_json::from_slice::<Bye>(&json) {
                    Ok(bye) => {
                        let mut state = self.state.lock();
                        let is_done = state.is_announced && state.unsent == 0;
                        if !is_done && bye.is_clean() && !self.control.is_stopped() {
                            drop(state);
                            break LinkError::Protocol(super::LEFT_OPEN);
                        }
                        state.bye = Some(bye);
                        drop(state);
                        self.wake_all();
                        return;
                    }
                    Err(_) => {
                        break LinkError::Protocol(ProtocolError("a last message is damaged"));
                    }
                },
                Ok(message) => {
                    let other = self.link.take(message, &self.out, self.listener);
                    match other.and_then(|other| other.map_or(Ok(()), |other| self.take(other))) {
                        Ok(()) => {}
                        Err(error) => break LinkError::Protocol(error),
                    }
                }
                Err(error) => break error,
            }
        };
        self.lose(lost);
    }

    fn take(&self, message: Message) -> Result<(), ProtocolError> {
        let mut state = self.state.lock();
        let mut is_answer = false;
        match message {
            // All of it may have been announced meanwhile.
            Message::Fresh { dir } if !state.open.contains(&dir) => {}
            Message::Fresh { dir } => drop(state.fresh.insert(dir)),
            Message::Want { chunk, wanted } => {
                let sent = state.chunks.get_mut(&chunk).filter(|sent| sent.left.is_none());
                let sent = sent.ok_or(ProtocolError("an unknown chunk was answered"))?;
                let entries = &sent.files.entries;
                let number = |at: u8| at & !WANT_DELTA;
                let has = |at: &u8| {
                    entries.get(usize::from(number(*at))).is_some_and(|it| it.may_be_asked)
                };
                if !wanted.iter().all(has) {
                    return Err(ProtocolError("content that is none was asked for"));
                }
                let count = entries.len();
                let sizes = wanted.iter().filter_map(|at| entries.get(usize::from(number(*at))));
                self.left.fetch_add(sizes.map(|entry| entry.size).sum(), Ordering::Relaxed);
                sent.left = Some(wanted.len());
                if wanted.is_empty() {
                    state.chunk_sent(chunk);
                }
                state.entries = state.entries.saturating_sub(count - wanted.len());
                is_answer = wanted.is_empty() && state.unsent > 0;
                for at in wanted {
                    let of = (chunk, number(at));
                    if at & WANT_DELTA != 0 {
                        state.deltas.ask(of);
                    }
                    state.wanted.push_back(of);
                }
            }
            Message::Rest { chunk, index, offset, prefix } => {
                let sent = state.chunks.get_mut(&chunk).filter(|sent| sent.left.is_none());
                let sent = sent.ok_or(ProtocolError("an unknown chunk was answered"))?;
                let entry = sent.files.entries.get(usize::from(index));
                if !entry.is_some_and(|it| it.may_be_asked && offset < it.size) {
                    return Err(ProtocolError("content that is none was asked for"));
                }
                sent.rests.insert(index, Rest { offset, prefix });
            }
            Message::More { chunk, index, bytes: 0 } => {
                // Also before its first piece was sent.
                state.windows.remove(&(chunk, index));
                if let Some(sent) = state.chunks.get_mut(&chunk) {
                    sent.cancelled |= 1_u64.checked_shl(index.into()).unwrap_or_default();
                }
                if state.deltas.checked((chunk, index)) {
                    state.sent((chunk, index));
                }
            }
            Message::Signs(signs) => {
                let sent = state.chunks.get(&signs.chunk);
                let entry = sent.and_then(|sent| sent.files.entries.get(usize::from(signs.index)));
                let may_be_asked = entry.is_some_and(|entry| entry.may_be_asked);
                state.deltas.add(*signs, may_be_asked)?;
            }
            Message::Fine { chunk, index, hashes } => {
                state.deltas.answer((chunk, index), hashes)?;
            }
            Message::Checked { chunk, index, is_right } => {
                let of = (chunk, index);
                if state.deltas.checked(of) {
                    match is_right {
                        true => state.sent(of),
                        false => {
                            // The other end opens it.
                            state.windows.insert(of, 0);
                            state.again.push_back(of);
                        }
                    }
                }
            }
            Message::More { chunk, index, bytes } => {
                if let Some(window) = state.windows.get_mut(&(chunk, index)) {
                    *window = window.saturating_add(bytes);
                }
            }
            Message::Has { dir, names, is_last } => state.ask(dir, names, is_last)?,
            Message::Arrived { chunk, index, is_complete } => {
                state.settle((chunk, index), is_complete)?;
            }
            Message::Place { dev, ino } => state.place = Some((dev, ino)),
            Message::Room { bytes } => state.unasked = state.unasked.saturating_sub(bytes),
            Message::Stop => self.control.stop(),
            _ => return Err(ProtocolError("a message came from the wrong end")),
        }
        let has_room = state.has_room();
        drop(state);
        // Of an unchanged tree, nothing else is to be done for most answers.
        if !is_answer {
            self.changed.notify_all();
        }
        if !is_answer || has_room {
            self.room.notify_all();
        }
        Ok(())
    }

    /// Waits for the target directory; `None`: the other end is lost or done.
    pub fn wait_for_place(&self) -> Option<(u64, u64)> {
        let mut state = self.state.lock();
        while state.place.is_none() && !self.is_over(&state) {
            self.changed.wait_for(&mut state, LOOK);
        }
        state.place
    }

    /// Records that everything was announced: senders end when all that is wanted was sent.
    pub fn announced(&self) {
        self.state.lock().is_announced = true;
        self.changed.notify_all();
    }

    /// Sends content that is wanted, until there will be no more. Several threads may; `lane`: the index of this one on
    /// the meter.
    pub fn send_content(&self, controls: &Controls, lane: usize, sender: Sender) {
        let lane = controls.meter.lane(lane);
        while let Some(((chunk, index), files, rest)) = self.next_wanted(sender) {
            let Some(entry) = files.entries.get(usize::from(index)) else { continue };
            lane.enter(Phase::Send);
            let outstanding = lane.outstanding();
            lane.ahead(entry.size);
            let mut left = if sender == Sender::Wanted { entry.size } else { 0 };
            let mut sends = |bytes, all: u64| {
                if let Some(limiter) = &controls.bytes {
                    limiter.take_all(bytes, || self.control.is_stopped(), || {});
                }
                lane.bytes(all);
                self.left.fetch_sub(all.min(left), Ordering::Relaxed);
                left = left.saturating_sub(all);
            };
            let of = (chunk, index);
            let is_delta = sender == Sender::Wanted && self.state.lock().deltas.is_asked(of);
            let (state, is_checked) = match is_delta {
                true => (None, self.send_delta(of, (&files, entry), &mut sends)),
                false => {
                    let is_first = sender == Sender::Wanted;
                    let (what, sends) = ((&*files, entry, rest), |bytes| sends(bytes, bytes));
                    (self.send_file(of, what, is_first, sends), DeltaEnd::Done)
                }
            };
            self.left.fetch_sub(left, Ordering::Relaxed);
            lane.settle_to(outstanding);
            lane.leave(Phase::Send);
            if let DeltaEnd::Unchecked = is_checked {
                continue;
            }
            if let Some(message) = state {
                let _ = self.send_content_of(entry, rest.is_some(), message);
            }
            let mut state = self.state.lock();
            state.sent(of);
            let (is_last, has_room) = (state.unsent == 0, state.has_room());
            drop(state);
            if is_last {
                self.changed.notify_all();
            }
            if has_room {
                self.room.notify_all();
            }
        }
    }

    fn next_wanted(&self, sender: Sender) -> Option<WantedFile> {
        let mut state = self.state.lock();
        loop {
            if self.is_over(&state) {
                return None;
            }
            let next = match sender {
                Sender::Wanted => state.wanted.pop_front(),
                Sender::Again => state.again.pop_front(),
            };
            if let Some((chunk, index)) = next {
                match state.chunks.get(&chunk) {
                    Some(sent) => {
                        let rest = sent.rests.get(&index).copied();
                        return Some(((chunk, index), Arc::clone(&sent.files), rest));
                    }
                    None => continue,
                }
            }
            if state.is_announced && state.unsent == 0 {
                return None;
            }
            self.changed.wait_for(&mut state, LOOK);
        }
    }

    /// Sends a file but for its last piece, which is returned with its offset and what follows it; `None` if the run is over.
    fn send_file(
        &self,
        (chunk, index): (u64, u8),
        (files, entry, rest): (&SentFiles, &SentEntry, Option<Rest>),
        mut is_first: bool,
        mut sends: impl FnMut(u64),
    ) -> Option<Message> {
        let message = |is_first, offset, content, state| match is_first {
            true => Message::Data { chunk, index, content, state },
            false => Message::Piece { chunk, index, offset, content, state },
        };
        let failed = |is_first, offset, error| {
            self.fail_to_send((files, entry), Operation::Read, error);
            Some(message(is_first, offset, Vec::new(), ContentState::Failed))
        };
        if is_first && self.sends == SourceSends::Contents {
            self.take_unasked(MESSAGE_BYTES)?;
        }
        let (dir, name) = ((&*files.node, files.side), (&*entry.name, entry.opening));
        let mut reader = match AnnouncedReader::open(dir, name, entry.size) {
            Ok(reader) => reader,
            Err(error) => return failed(is_first, 0, error),
        };
        if self.sends == SourceSends::Hashes {
            let hash = reader.hash(|bytes| {
                sends(bytes);
                !self.control.is_stopped()
            });
            return match hash {
                Ok(Some(hash)) => {
                    let hash = hash.to_le_bytes().to_vec();
                    Some(message(true, 0, hash, ContentState::Complete))
                }
                Ok(None) => Some(message(true, 0, Vec::new(), ContentState::Changed)),
                Err(error) => failed(true, 0, error),
            };
        }
        let mut begins = 0;
        if let Some(Rest { offset, prefix }) = rest {
            let begun = reader.begin_at(offset, prefix, || self.control.is_stopped());
            begins = match begun {
                Ok(begun) => begun?,
                Err(error) => return failed(is_first, 0, error),
            };
            self.out.send(Message::Begins { chunk, index, offset: begins }).ok()?;
        }
        let mut offset = 0;
        loop {
            let most = match is_first {
                true => self.reserve_unasked(entry.size - begins)?,
                false => self.reserve_window((chunk, index))?,
            };
            let content = match reader.read(most) {
                Ok(content) => content,
                Err(error) => {
                    self.give_back(is_first, most);
                    return failed(is_first, offset, error);
                }
            };
            let length = content.len();
            sends(length as u64);
            if reader.is_complete() {
                return Some(message(is_first, offset, content, ContentState::Complete));
            }
            if length < most {
                self.give_back(is_first, most);
                return Some(message(is_first, offset, Vec::new(), ContentState::Changed));
            }
            if is_first {
                let mut state = self.state.lock();
                if !state.is_cancelled((chunk, index)) {
                    state.windows.entry((chunk, index)).or_insert(0);
                }
            }
            let goes = message(is_first, offset, content, ContentState::Goes);
            self.send_content_of(entry, rest.is_some(), goes).ok()?;
            (is_first, offset) = (false, offset + length as u64);
        }
    }

    /// Reports a file that cannot be read.
    pub(super) fn fail_to_send(
        &self,
        (files, entry): (&SentFiles, &SentEntry),
        operation: Operation,
        error: std::io::Error,
    ) {
        let vanished = error.kind() == std::io::ErrorKind::NotFound;
        let class = if vanished { ErrorClass::Vanished } else { ErrorClass::Partial };
        {
            let mut totals = self.totals.lock();
            totals.failed += u64::from(!vanished);
            totals.vanished += u64::from(vanished);
        }
        self.listener.event(Event::Problem(&Problem {
            operation,
            source: Some(files.node.source_path(files.side, &entry.name)),
            target: None,
            cause: Cause::System(error),
            class,
        }));
    }

    /// Waits until a first piece may be sent. Returns its size.
    fn reserve_unasked(&self, size: u64) -> Option<usize> {
        let bytes = size.min(CONTENT_BYTES_MAX as u64);
        self.take_unasked(bytes)?;
        Some(bytes as usize)
    }

    /// Gives back room for a first piece that is not sent.
    fn give_back(&self, is_first: bool, bytes: usize) {
        if is_first {
            let mut state = self.state.lock();
            state.unasked = state.unasked.saturating_sub(bytes as u64);
            drop(state);
            self.wake_all();
        }
    }

    /// Waits until a further piece may be sent. Returns its size.
    fn reserve_window(&self, of: (u64, u8)) -> Option<usize> {
        let mut state = self.state.lock();
        loop {
            if self.is_over(&state) {
                return None;
            }
            let window = state.windows.get_mut(&of)?;
            if *window > 0 {
                let bytes = (*window).min(CONTENT_BYTES_MAX as u64);
                *window -= bytes;
                return Some(bytes as usize);
            }
            self.changed.wait_for(&mut state, LOOK);
        }
    }

    /// Tells the other end that this one has done its part.
    pub fn end(&self, bye: &Bye) {
        let outs = {
            let mut lanes = self.lanes.lock();
            lanes.is_closed = true;
            lanes.outs.clone()
        };
        outs.iter().for_each(end_lane);
        if let Ok(json) = serde_json::to_vec(bye) {
            let _ = self.out.send(Message::Bye(json));
        }
    }

    /// Returns what was done for the other end, and what failed then.
    pub fn totals(&self) -> Totals {
        *self.totals.lock()
    }

    /// Ends a pass over the sources, once all that it announced was sent and the other end has no question left.
    pub fn turn(&self) {
        let mut state = self.state.lock();
        while state.unsent > 0 || !state.ended.is_empty() {
            if self.is_over(&state) {
                return;
            }
            self.changed.wait_for(&mut state, LOOK);
        }
        drop(state);
        let mut lanes = self.lanes.lock();
        lanes.turns += 1;
        lanes.outs.iter().chain([&self.out]).for_each(|out| out.send_at_once(Message::Turn));
    }

    /// Answers the questions of the other end, and removes what it has, until there will be no more of both. Runs in a
    /// thread of its own.
    pub fn run_errands(&self, policy: &Policy) {
        while let Some(errand) = self.next_errand(policy) {
            match errand {
                Errand::Question((dir, names)) => self.answer(policy, dir, &names),
                Errand::Remove(removals) => {
                    remove_sources(removals, |removal, done| match done {
                        Ok(()) => self.totals.lock().removed_sources += 1,
                        Err(failure) => self.tell(failure, removal.path()),
                    });
                }
            }
        }
    }

    fn next_errand(&self, policy: &Policy) -> Option<Errand> {
        let is_late = policy.removes_sources_late();
        let mut state = self.state.lock();
        loop {
            if self.control.is_stopped() || state.lost.is_some() {
                return None;
            }
            let is_done = state.bye.is_some();
            if let Some(question) = state.questions.pop_front() {
                return Some(Errand::Question(question));
            }
            if is_done {
                let linked = std::mem::take(&mut state.linked);
                state.arrived.extend(linked);
            }
            // What was asked for or looked up with another name is there until the end.
            if !state.arrived.is_empty() && (is_done || !is_late) {
                return Some(Errand::Remove(std::mem::take(&mut state.arrived)));
            }
            let is_silent =
                state.is_announced && state.ended.is_empty() && !policy.tells_arrivals();
            if is_done || is_silent {
                return None;
            }
            self.changed.wait_for(&mut state, LOOK);
        }
    }

    /// Looks names of a directory up, and tells which of them no source has.
    fn answer(&self, policy: &Policy, dir: u64, names: &[Vec<u8>]) {
        let node = self.state.lock().ended.get(&dir).map(|ended| Arc::clone(&ended.node));
        let Some(node) = node else { return };
        let (absent, failure) = absent(policy, &node, names);
        let is_known = failure.is_none();
        let mut state = self.state.lock();
        state.asked_bytes = state.asked_bytes.saturating_sub(question_bytes(names));
        let ended = state.ended.get_mut(&dir).filter(|ended| ended.asked == Some(false));
        let is_last = ended.map(|ended| ended.asked = None).is_none();
        drop(state);
        if let Some(failure) = failure {
            self.tell(failure, node.source_path(0, c""));
        }
        let _ = self.out.send(Message::Had { dir, absent, is_known });
        if is_last {
            // Not before: a pass ends when no answer is outstanding.
            self.state.lock().ended.remove(&dir);
            self.wake_all();
        }
    }

    fn tell(&self, failure: Failure, path: std::path::PathBuf) {
        let Failure { operation, error } = failure;
        self.totals.lock().failed += 1;
        self.listener.event(Event::Problem(&Problem {
            operation,
            source: Some(path),
            target: None,
            cause: Cause::System(error),
            class: ErrorClass::Partial,
        }));
    }

    /// Waits until the other end has done its part.
    ///
    /// # Errors
    /// It is lost.
    pub fn wait(&self) -> Result<Bye, LinkError> {
        let mut state = self.state.lock();
        loop {
            if let Some(bye) = state.bye.take() {
                return Ok(bye);
            }
            if let Some(lost) = state.lost.take() {
                return Err(lost);
            }
            self.changed.wait_for(&mut state, LOOK);
        }
    }
}

impl State {
    /// Returns whether those who wait until entries can be announced go on.
    fn has_room(&self) -> bool {
        self.entries <= ENTRIES_LOW
    }

    /// Returns whether nothing more is wanted of a file.
    pub(super) fn is_cancelled(&self, (chunk, index): FileNumber) -> bool {
        self.chunks.get(&chunk).is_some_and(|sent| {
            sent.cancelled & 1_u64.checked_shl(index.into()).unwrap_or_default() != 0
        })
    }

    /// Records that a file is done.
    fn sent(&mut self, of: FileNumber) {
        self.windows.remove(&of);
        self.entries = self.entries.saturating_sub(1);
        if let Some(sent) = self.chunks.get_mut(&of.0) {
            let left = sent.left.unwrap_or(0).saturating_sub(1);
            sent.left = Some(left);
            if left == 0 {
                self.chunk_sent(of.0);
            }
        }
    }

    /// Records that a chunk was answered and all of its content sent.
    fn chunk_sent(&mut self, chunk: u64) {
        self.unsent = self.unsent.saturating_sub(1);
        if self.chunks.get(&chunk).is_some_and(SentChunk::is_settled) {
            self.chunks.remove(&chunk);
        }
    }

    /// Takes a question.
    fn ask(&mut self, dir: u64, names: Vec<Vec<u8>>, is_last: bool) -> Result<(), ProtocolError> {
        let ended = self.ended.get_mut(&dir).filter(|ended| ended.asked.is_none());
        let ended = ended.ok_or(ProtocolError("names of an unknown directory were asked for"))?;
        if names.is_empty() {
            if !is_last {
                return Err(ProtocolError("no name was asked for"));
            }
            self.ended.remove(&dir);
            return Ok(());
        }
        ended.asked = Some(is_last);
        self.asked_bytes += question_bytes(&names);
        if self.asked_bytes > ASKED_MAX {
            return Err(ProtocolError("more names are asked for than there is room for"));
        }
        self.questions.push_back((dir, names));
        Ok(())
    }

    /// Takes what became of an entry.
    fn settle(
        &mut self,
        (chunk, index): (u64, u8),
        is_complete: bool,
    ) -> Result<(), ProtocolError> {
        let unknown = ProtocolError("an entry arrived that was not announced, or twice");
        let sent = self.chunks.get_mut(&chunk).ok_or(unknown)?;
        let files = Arc::clone(&sent.files);
        let entry = files.entries.get(usize::from(index)).ok_or(unknown)?;
        let source = entry.source.as_deref().ok_or(unknown)?;
        let bit = 1 << index;
        if sent.settled & bit != 0 {
            return Err(unknown);
        }
        sent.settled |= bit;
        let is_over = sent.left == Some(0) && sent.is_settled();
        if is_over {
            self.chunks.remove(&chunk);
        }
        if is_complete {
            let (place, name) = ((&files.node, files.side), entry.name.clone());
            let removals = if source.nlink > 1 { &mut self.linked } else { &mut self.arrived };
            removals.push(SourceRemoval::announced(place, name, *source, entry.opening.follow));
        }
        Ok(())
    }
}

/// Tells the other end that nothing more comes on a lane.
fn end_lane(out: &Outgoing) {
    out.send_at_once(Message::Bye(Vec::new()));
    out.close();
}

impl LaneEnd for SourceEnd<'_> {
    /// This end says which lanes it uses.
    fn expect_lane(&self, _: u8) {}

    fn miss_lane(&self, _: u8) {}

    fn use_lane(&self, lane: Lane) {
        let out = Outgoing::default();
        self.link.count(&lane.from);
        if let Some(packing) = &self.packing {
            out.pack(packing.level);
        }
        {
            // No pass ends meanwhile. The lane is announced before anything comes on it, so that the other end waits for
            // what does; the end of earlier passes comes on it, too.
            let mut lanes = self.lanes.lock();
            self.out.send_at_once(Message::Lane { number: lane.number, token: Vec::new() });
            (0..lanes.turns).for_each(|_| out.send_at_once(Message::Turn));
            match lanes.is_closed {
                true => end_lane(&out),
                false => {
                    lanes.outs.push(out.clone());
                    self.link.add_lane(out.clone());
                }
            }
        }
        if self.state.lock().lost.is_some() {
            out.break_off();
        }
        if let Err(error) = out.write_to(lane.to) {
            // What was queued before is sent: the other end has to learn that the lane was used.
            self.lose_with(LinkError::Io(error), Outgoing::close);
        }
    }

    fn sample(&self) -> Option<LinkSample> {
        Some(self.own_sample())
    }

    fn own_sample(&self) -> LinkSample {
        let is_announced = self.state.lock().is_announced;
        let left = self.left.load(Ordering::Relaxed);
        LinkSample { left, is_announced, ..self.link.written() }
    }

    fn link(&self) -> &Arc<FarLink> {
        &self.link
    }
}

impl Announcer for SourceEnd<'_> {
    fn dir(&self, dir: DirRecord) {
        if self.take_unasked(MESSAGE_BYTES).is_none() {
            return;
        }
        self.state.lock().open.insert(dir.number);
        self.names.tell(std::iter::once(&dir.entry), &self.out);
        let _ = self.out.send(Message::Dir(Box::new(dir)));
    }

    fn entries(&self, chunk: AnnouncedChunk) {
        self.names.tell(chunk.entries.iter().map(|entry| &entry.record), &self.out);
        let content = chunk.entries.iter().filter_map(|entry| entry.record.content.as_ref());
        let pushed: u64 = content.map(|content| content.len() as u64).sum();
        let is_plain = self.is_mostly_packed(&chunk.entries, pushed);
        let dir = chunk.node.id;
        let number = {
            let mut state = self.state.lock();
            let mut is_full = state.entries >= ENTRIES_MAX;
            while is_full || pushed > 0 && state.unasked + pushed > UNASKED_BYTES_MAX {
                if self.is_over(&state) {
                    return;
                }
                self.room.wait_for(&mut state, LOOK);
                is_full = !state.has_room();
            }
            state.entries += chunk.entries.len();
            state.unasked += pushed;
            state.last_chunk += 1;
            state.unsent += 1;
            state.last_chunk
        };
        let AnnouncedChunk { node, side, entries } = chunk;
        let (files, entries): (Vec<SentEntry>, Vec<EntryRecord>) = entries
            .into_iter()
            .map(|Announced { name, opening, record, source }| {
                let (size, is_file) = (record.meta.size, record.meta.kind == Kind::File);
                let may_be_asked = is_file && record.content.is_none();
                (SentEntry { name, opening, size, may_be_asked, source }, record)
            })
            .unzip();
        // Of an entry that is not removed nothing more is heard.
        let settled = files.iter().enumerate().filter(|(_, file)| file.source.is_none());
        let settled = settled.fold(0, |bits, (at, _)| bits | 1 << at);
        let files = Arc::new(SentFiles { node, side, entries: files });
        let sent = SentChunk { files, rests: HashMap::new(), left: None, settled, cancelled: 0 };
        self.state.lock().chunks.insert(number, sent);
        let message = Message::Entries { dir, chunk: number, entries };
        let _ = if is_plain { self.out.send_plain(message) } else { self.out.send(message) };
    }

    fn end(&self, node: &Arc<Node>, is_listed: bool, asks: bool) {
        if is_listed && asks {
            let mut state = self.state.lock();
            while state.ended.len() >= ENDED_MAX {
                if self.is_over(&state) {
                    return;
                }
                self.room.wait_for(&mut state, LOOK);
            }
            state.ended.insert(node.id, Ended { node: Arc::clone(node), asked: None });
        }
        let mut state = self.state.lock();
        state.open.remove(&node.id);
        state.fresh.remove(&node.id);
        drop(state);
        let _ = self.out.send(Message::End { dir: node.id, is_listed });
    }

    fn is_fresh(&self, node: &Node) -> bool {
        // What is asked for can come on all lanes.
        if !self.lanes.lock().outs.is_empty() {
            return false;
        }
        let state = self.state.lock();
        !state.fresh.is_empty()
            && std::iter::successors(Some(node), |node| node.parent.as_deref())
                .any(|node| state.fresh.contains(&node.id))
    }
}
