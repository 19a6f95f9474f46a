//! What an end knows of the link and of the other end: the round trip, and what the other end last said of itself.

use super::told;
use hakobu_core::event::Listener;
use hakobu_remote::link::{Incoming, Outgoing, Traffic};
use hakobu_remote::message::{Message, ProtocolError};
use hakobu_sys::proc::ProcessStat;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Most pings that are answered. The near end sends one.
const PINGS_MAX: u32 = 16;

/// State of the link as the source end sees it, and of the machine of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkSample {
    /// Since the end began.
    pub at: Duration,
    /// Time that the writers of all lanes waited for the link.
    pub writing: Duration,
    /// Bytes written to all lanes.
    pub sent: u64,
    /// Bytes of content that is asked for and not read yet.
    pub left: u64,
    /// No more content than that can be asked for, once what was announced is looked at.
    pub is_announced: bool,
    /// Lanes that the end uses.
    pub lanes: u32,
    /// Of an agent: CPUs of its machine, how long each was idle since its start (mean), and CPU time of the ssh server.
    pub cpus: u32,
    pub idle: Duration,
    pub ssh: Duration,
}

/// The other machine, as the near end knows it.
#[derive(Clone, Debug, Default)]
pub struct FarPeer {
    pub host: String,
    pub same_machine: bool,
    /// The process of the remote shell here.
    pub shell: u32,
}

/// State of the link at one moment, for the near end's verdict.
#[derive(Clone, Copy, Debug, Default)]
pub struct FarMark {
    /// As the source end says.
    pub source: LinkSample,
    /// As the agent says.
    pub agent: LinkSample,
    /// CPU time of the remote shell here.
    pub ssh: Option<Duration>,
}

/// A further lane.
pub struct Lane {
    pub number: u8,
    pub from: Incoming<Box<dyn Read + Send>>,
    pub to: Box<dyn Write + Send>,
}

/// An end that can use further lanes.
pub trait LaneEnd: Sync {
    /// Records that a lane may come.
    fn expect_lane(&self, number: u8);
    /// Uses a lane until its end.
    fn use_lane(&self, lane: Lane);
    /// Records that a lane does not come.
    fn miss_lane(&self, number: u8);
    /// Returns the state of the link as the source end sees it; `None`: it is not known yet.
    fn sample(&self) -> Option<LinkSample>;
    /// Returns what this end tells the other one of itself.
    fn own_sample(&self) -> LinkSample;
    fn link(&self) -> &Arc<FarLink>;
}

/// See the module.
#[derive(Default)]
pub struct FarLink {
    pinged: Mutex<Option<Instant>>,
    round_trip: Mutex<Option<Duration>>,
    answered: AtomicU32,
    sample: Mutex<Option<LinkSample>>,
    peer: OnceLock<FarPeer>,
    began: Option<Instant>,
    /// Of a source end: all lanes.
    outs: Mutex<Vec<Outgoing>>,
    /// Bytes that came over further lanes.
    received: Mutex<Vec<Arc<AtomicU64>>>,
}

impl FarLink {
    /// `out`: the first lane of a source end.
    pub fn new(out: Option<Outgoing>) -> FarLink {
        let outs = Mutex::new(out.into_iter().collect());
        FarLink { outs, began: Some(Instant::now()), ..FarLink::default() }
    }

    pub fn add_lane(&self, out: Outgoing) {
        self.outs.lock().push(out);
    }

    /// Counts what comes over a further lane.
    pub fn count(&self, from: &Incoming<impl Read>) {
        self.received.lock().push(from.counter());
    }

    /// Returns what has crossed further lanes.
    pub fn traffic_of_lanes(&self) -> Traffic {
        let sent = self.outs.lock().iter().skip(1).map(Outgoing::sent).sum();
        let received = self.received.lock().iter().map(|of| of.load(Ordering::Relaxed)).sum();
        Traffic { sent, received }
    }

    /// Returns what a source end knows of its lanes.
    pub fn written(&self) -> LinkSample {
        let outs = self.outs.lock();
        LinkSample {
            at: self.began.map(|began| began.elapsed()).unwrap_or_default(),
            writing: outs.iter().map(Outgoing::writing).sum(),
            sent: outs.iter().map(Outgoing::sent).sum(),
            lanes: outs.len() as u32,
            ..LinkSample::default()
        }
    }

    /// Records what the near end knows of the other machine.
    pub fn set_peer(&self, peer: FarPeer) {
        // There is one.
        let _ = self.peer.set(peer);
    }

    pub fn peer(&self) -> Option<&FarPeer> {
        self.peer.get()
    }

    /// Returns the state of the link for the near end's verdict; `None`: the agent has said nothing yet, or this is the agent.
    pub fn mark(&self) -> Option<FarMark> {
        let (peer, agent) = (self.peer.get()?, self.told_sample()?);
        let is_source = !self.outs.lock().is_empty();
        let source = if is_source { self.written() } else { agent };
        let ssh = ProcessStat::of(peer.shell).map(|of| of.cpu);
        Some(FarMark { source, agent, ssh })
    }

    /// Asks for the time of a round trip, while nothing is on the way that delays it.
    pub fn ping(&self, out: &Outgoing) {
        *self.pinged.lock() = Some(Instant::now());
        out.send_at_once(Message::Ping { is_answer: false });
    }

    pub fn round_trip(&self) -> Option<Duration> {
        *self.round_trip.lock()
    }

    /// What the other end last said of the link.
    pub fn told_sample(&self) -> Option<LinkSample> {
        *self.sample.lock()
    }

    /// Takes a message about the link, or an event of the other end; others are returned.
    ///
    /// # Errors
    /// The other end asks too often.
    pub fn take(
        &self,
        message: Message,
        out: &Outgoing,
        listener: &dyn Listener,
    ) -> Result<Option<Message>, ProtocolError> {
        match message {
            Message::Ping { is_answer: true } => {
                if let Some(pinged) = self.pinged.lock().take() {
                    *self.round_trip.lock() = Some(pinged.elapsed());
                }
                Ok(None)
            }
            Message::Ping { is_answer: false } => {
                if self.answered.fetch_add(1, Ordering::Relaxed) >= PINGS_MAX {
                    return Err(ProtocolError("too many answers are asked for"));
                }
                out.send_at_once(Message::Ping { is_answer: true });
                Ok(None)
            }
            Message::Said(json) => {
                if let Some(sample) = told(&json, listener) {
                    *self.sample.lock() = Some(sample);
                }
                Ok(None)
            }
            other => Ok(Some(other)),
        }
    }
}
