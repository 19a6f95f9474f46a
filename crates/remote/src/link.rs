//! One lane: a stream in each direction. Messages are written by a thread behind a bounded queue, so that no reader ever waits
//! for a writer (and two ends never for each other); who reads decides where the messages go.

use crate::frame::{self, Frame};
use crate::message::{Message, ProtocolError};
use crate::packing::{pack, unpack};
use hakobu_sys::{AsFd, BorrowedFd, stdio};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufWriter, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Bytes that wait to be written before [`Outgoing::send`] waits.
const QUEUED_BYTES_MAX: usize = 2 << 20;
/// Bytes that are written at once.
const WRITE_BYTES: usize = 128 << 10;

/// Messages that follow each other closer than this are gathered ...
const STREAM_GAP: Duration = Duration::from_millis(2);
/// ... for so long, unless there are so many bytes: each write is a packet of ssh's, which costs both ends and both sshs.
const GATHER: Duration = Duration::from_micros(200);
const GATHERED_BYTES: usize = 16 << 10;

/// Why a lane can be used no longer.
#[derive(Debug)]
pub enum LinkError {
    /// The stream ended or broke.
    Io(io::Error),
    /// The other end does not keep to the protocol.
    Protocol(ProtocolError),
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::Io(error) => {
                f.write_str(&hakobu_core::error::without_number(&error.to_string()))
            }
            LinkError::Protocol(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LinkError {}

/// How long the other end may be silent. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Patience {
    /// In milliseconds; 0: for ever; [`OVER`].
    silence: Arc<AtomicU64>,
}

/// Nothing of the other end is of use any more.
const OVER: u64 = u64::MAX;

/// Time between two looks whether anything is still waited for.
const LOOK: Duration = Duration::from_millis(200);

impl Patience {
    /// Limits it; `None`: the other end may be silent for ever.
    pub fn limit(&self, silence: Option<Duration>) {
        let millis = silence.map_or(0, |most| u64::try_from(most.as_millis()).unwrap_or(OVER - 1));
        self.silence.store(millis, Ordering::Relaxed);
    }

    fn left(&self) -> Option<Duration> {
        let millis = self.silence.load(Ordering::Relaxed);
        (millis > 0).then(|| Duration::from_millis(millis))
    }
}

/// Reads what the other end writes; more silence than its patience is an error (`TimedOut`).
pub struct Patient<R> {
    from: R,
    patience: Patience,
}

impl<R> Patient<R> {
    pub fn new(from: R, patience: Patience) -> Patient<R> {
        Patient { from, patience }
    }
}

impl<R: AsFd> AsFd for Patient<R> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.from.as_fd()
    }
}

impl<R: Read + AsFd> Read for Patient<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let begun = Instant::now();
        loop {
            if self.patience.silence.load(Ordering::Relaxed) == OVER {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            let left = self.patience.left().map(|most| most.saturating_sub(begun.elapsed()));
            let look = left.map_or(LOOK, |left| left.min(LOOK));
            if stdio::is_readable(self.from.as_fd(), look)? {
                return self.from.read(buffer);
            }
            if left.is_some_and(|left| left.is_zero()) {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }
}

/// Bytes of a run that crossed the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    pub sent: u64,
    pub received: u64,
}

/// Reads the messages of the other end.
pub struct Incoming<R> {
    from: R,
    bytes: Arc<AtomicU64>,
}

impl<R: Read> Incoming<R> {
    /// `from` should be buffered.
    pub fn new(from: R) -> Incoming<R> {
        Incoming { from, bytes: Arc::default() }
    }

    /// Returns what is read.
    pub fn get_ref(&self) -> &R {
        &self.from
    }

    /// Bytes received so far.
    pub fn counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.bytes)
    }

    /// Waits for the next message that means something.
    ///
    /// # Errors
    /// The stream ended (`UnexpectedEof`: before the last message, the other end has not done its part), broke, or has
    /// something that is no message.
    pub fn receive(&mut self) -> Result<Message, LinkError> {
        loop {
            let read = frame::read(&mut self.from).map_err(LinkError::Io)?;
            let frame = read.ok_or_else(|| LinkError::Io(io::ErrorKind::UnexpectedEof.into()))?;
            let bytes = frame::HEAD_BYTES + frame.body.len();
            self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            match unpack(frame).and_then(Message::decode).map_err(LinkError::Protocol)? {
                Message::Alive => {}
                message => return Ok(message),
            }
        }
    }
}

/// Sends messages to the other end; any thread may.
#[derive(Clone, Default)]
pub struct Outgoing {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Of who reads what the other end says.
    patience: OnceLock<Patience>,
    queue: Mutex<OutQueue>,
    /// The queue has changed.
    changed: Condvar,
    bytes: AtomicU64,
    /// Time that the writer was inside of writes: on a pipe to ssh, that is waiting for the link or for ssh.
    writing_ns: AtomicU64,
    /// Milliseconds of silence after which the other end is told that this one is alive; 0: never.
    beat: AtomicU64,
    /// Level of compression.
    level: OnceLock<i32>,
}

#[derive(Default)]
struct OutQueue {
    frames: VecDeque<Frame>,
    bytes: usize,
    /// Nothing more will be sent.
    closed: bool,
    /// Nothing more can be written.
    broken: bool,
    /// The writer has ended.
    written: bool,
}

/// The other end takes nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

impl Outgoing {
    /// Queues a message; waits while the queue is full.
    ///
    /// # Errors
    /// The stream is broken or closed.
    pub fn send(&self, message: Message) -> Result<(), Broken> {
        let frame = message.encode();
        self.queue(match self.shared.level.get() {
            None => frame,
            Some(level) => pack(frame, *level),
        })
    }

    /// As [`Outgoing::send`], of what is not worth to be compressed.
    ///
    /// # Errors
    /// The stream is broken or closed.
    pub fn send_plain(&self, message: Message) -> Result<(), Broken> {
        self.queue(message.encode())
    }

    /// Compresses what is sent from now on; the other end needs no notice.
    pub fn pack(&self, level: i32) {
        let _ = self.shared.level.set(level);
    }

    fn queue(&self, frame: Frame) -> Result<(), Broken> {
        let bytes = frame::HEAD_BYTES + frame.body.len();
        let mut queue = self.shared.queue.lock();
        while queue.bytes > QUEUED_BYTES_MAX && !queue.broken {
            self.shared.changed.wait(&mut queue);
        }
        if queue.broken || queue.closed {
            return Err(Broken);
        }
        queue.bytes += bytes;
        queue.frames.push_back(frame);
        drop(queue);
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Queues a short message, however much waits before it: for threads that must not wait.
    pub fn send_at_once(&self, message: Message) {
        let frame = message.encode();
        let mut queue = self.shared.queue.lock();
        if !queue.broken && !queue.closed {
            queue.bytes += frame::HEAD_BYTES + frame.body.len();
            queue.frames.push_back(frame);
        }
        drop(queue);
        self.shared.changed.notify_all();
    }

    /// Bytes that wait to be written.
    pub fn queued(&self) -> usize {
        self.shared.queue.lock().bytes
    }

    /// Time that the writer was inside of writes so far.
    pub fn writing(&self) -> Duration {
        Duration::from_nanos(self.shared.writing_ns.load(Ordering::Relaxed))
    }

    /// Tells the other end that this one is alive whenever it has said nothing for so long.
    pub fn beat(&self, every: Duration) {
        let millis = u64::try_from(every.as_millis()).unwrap_or(u64::MAX).max(1);
        self.shared.beat.store(millis, Ordering::Relaxed);
        let _queue = self.shared.queue.lock();
        self.shared.changed.notify_all();
    }

    /// Bytes written so far.
    pub fn sent(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// Lets the writer end when all is written.
    pub fn close(&self) {
        self.shared.queue.lock().closed = true;
        self.shared.changed.notify_all();
    }

    /// Has [`Outgoing::break_off`] end the patience of who reads.
    pub fn ends(&self, patience: &Patience) {
        let _ = self.shared.patience.set(patience.clone());
    }

    /// Gives up: nothing that is queued or comes is written, and nothing more is read.
    pub fn break_off(&self) {
        if let Some(patience) = self.shared.patience.get() {
            patience.silence.store(OVER, Ordering::Relaxed);
        }
        self.stop_writing();
    }

    fn stop_writing(&self) {
        self.shared.queue.lock().broken = true;
        self.shared.changed.notify_all();
    }

    /// Writes messages until [`Outgoing::close`] and the end of the queue. Runs in a thread of its own.
    ///
    /// # Errors
    /// Those of writing; senders get [`Broken`] then.
    pub fn write_to(&self, to: impl Write) -> io::Result<()> {
        let timed = TimedWriter { to, ns: &self.shared.writing_ns };
        let written = self.write_all(BufWriter::with_capacity(WRITE_BYTES, timed));
        if written.is_err() {
            // What the other end has said is still read.
            self.stop_writing();
        }
        self.shared.queue.lock().written = true;
        self.shared.changed.notify_all();
        written
    }

    /// Waits until the writer has ended, or its stream is given up.
    pub fn wait_written(&self) {
        let mut queue = self.shared.queue.lock();
        while !queue.written && !queue.broken {
            self.shared.changed.wait(&mut queue);
        }
    }

    fn write_all(&self, mut to: impl Write) -> io::Result<()> {
        loop {
            let frame = {
                let mut queue = self.shared.queue.lock();
                loop {
                    if queue.broken {
                        return Ok(());
                    }
                    if let Some(frame) = queue.frames.pop_front() {
                        queue.bytes -= frame::HEAD_BYTES + frame.body.len();
                        break frame;
                    }
                    let is_last = queue.closed;
                    drop(queue);
                    // What is buffered must not wait for more.
                    to.flush()?;
                    if is_last {
                        return Ok(());
                    }
                    let flushed = Instant::now();
                    queue = self.shared.queue.lock();
                    if !queue.frames.is_empty() || queue.closed || queue.broken {
                        continue;
                    }
                    match self.shared.beat.load(Ordering::Relaxed) {
                        0 => self.shared.changed.wait(&mut queue),
                        beat => {
                            let beat = Duration::from_millis(beat);
                            let waited = self.shared.changed.wait_for(&mut queue, beat);
                            if waited.timed_out() && queue.frames.is_empty() {
                                break Message::Alive.encode();
                            }
                        }
                    }
                    let is_stream = flushed.elapsed() < STREAM_GAP;
                    if is_stream && queue.bytes < GATHERED_BYTES && !queue.closed {
                        drop(queue);
                        std::thread::sleep(GATHER);
                        queue = self.shared.queue.lock();
                    }
                }
            };
            self.shared.changed.notify_all();
            frame::write(&mut to, &frame)?;
            let bytes = frame::HEAD_BYTES + frame.body.len();
            self.shared.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }
}

/// Adds up the time that writes take.
struct TimedWriter<'a, W> {
    to: W,
    ns: &'a AtomicU64,
}

impl<W: Write> Write for TimedWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let began = Instant::now();
        let written = self.to.write(bytes);
        self.ns.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn messages_arrive_in_their_order() {
        let (near, far) = UnixStream::pair().unwrap();
        let outgoing = Outgoing::default();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| outgoing.write_to(&near));
            scope.spawn(|| {
                for dir in 1..2000 {
                    outgoing.send(Message::Fresh { dir }).unwrap();
                }
                outgoing.close();
            });
            let mut incoming = Incoming::new(&far);
            for dir in 1..2000 {
                assert_eq!(incoming.receive().unwrap(), Message::Fresh { dir });
            }
            writer.join().unwrap().unwrap();
            near.shutdown(std::net::Shutdown::Both).unwrap();
            let ended = incoming.receive().unwrap_err();
            let LinkError::Io(error) = ended else { panic!("{ended}") };
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        });
        assert_eq!(outgoing.send(Message::Stop), Err(Broken));
    }

    #[test]
    fn silence_is_an_error_and_a_beat_is_none() {
        let (near, far) = UnixStream::pair().unwrap();
        let patience = Patience::default();
        let mut incoming = Incoming::new(Patient::new(&far, patience.clone()));
        let outgoing = Outgoing::default();
        std::thread::scope(|scope| {
            scope.spawn(|| outgoing.write_to(&near));
            outgoing.beat(Duration::from_millis(30));
            patience.limit(Some(Duration::from_millis(300)));
            scope.spawn(|| {
                // Far more than the patience.
                std::thread::sleep(Duration::from_millis(900));
                outgoing.send(Message::Stop).unwrap();
                outgoing.close();
            });
            assert_eq!(incoming.receive().unwrap(), Message::Stop);
            assert!(incoming.bytes.load(Ordering::Relaxed) > 10 * frame::HEAD_BYTES as u64);
            // The writer has ended, and the stream is open.
            let LinkError::Io(error) = incoming.receive().unwrap_err() else { panic!() };
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        });
    }

    #[test]
    fn a_broken_stream_ends_those_that_wait() {
        let (near, far) = UnixStream::pair().unwrap();
        let outgoing = Outgoing::default();
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(outgoing.write_to(&near).is_err()));
            let sender = scope.spawn(|| {
                let content = vec![0; 1 << 18];
                loop {
                    let state = crate::message::ContentState::Goes;
                    let content = content.clone();
                    let data = Message::Data { chunk: 1, index: 0, content, state };
                    if outgoing.send(data) == Err(Broken) {
                        break;
                    }
                }
            });
            // More than the queue and the kernel take.
            std::thread::sleep(std::time::Duration::from_millis(50));
            drop(far);
            sender.join().unwrap();
        });
    }
}
