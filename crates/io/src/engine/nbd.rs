//! The engine `nbd`: blocks of an export of an NBD server. Requests of all blocks in flight go over one connection, and
//! their replies come in any order.

use super::buffers::Buffers;
use super::patience::{Failure, SILENCE, SLICE};
use super::{Engine, Landed, Queued, REFUSED, Transfer};
use crate::job::NbdExport;
use crate::nbd::{self, Command, REPLY_BYTES, REQUEST_BYTES, Size};
use hakobu_sys::{AsFd, errno, socket};
use socket2::Socket;
use std::collections::VecDeque;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::time::{Duration, Instant};

/// Wait for replies that do not come, once the job was ended from outside.
const GRACE: Duration = Duration::from_secs(1);

/// A request; its slot is its handle.
#[derive(Clone, Copy, Debug)]
struct Request {
    slot: usize,
    command: Command,
    /// Its place in the buffer of the slot.
    begin: usize,
    bytes: u32,
    offset: u64,
}

/// A client with one connection.
pub(crate) struct Nbd<'a> {
    socket: Socket,
    size: Size,
    trims: bool,
    buffers: Buffers,
    /// Requests to be sent, and the bytes of the first that went already, its head included.
    unsent: VecDeque<Request>,
    sent_bytes: usize,
    /// Requests that wait for a reply, by slot, and their number.
    flying: Vec<Option<Request>>,
    many: usize,
    /// The reply that comes in, its bytes so far, and how much came of the data behind it.
    head: [u8; REPLY_BYTES],
    head_bytes: usize,
    data: Option<(Request, usize)>,
    done: VecDeque<Landed>,
    is_over: &'a dyn Fn() -> bool,
}

impl<'a> Nbd<'a> {
    /// Connects to an export, for `depth` blocks in flight of at most so many bytes; trims in place of writes, if `trims`.
    ///
    /// # Errors
    /// There is no such export, or it does not take these blocks.
    pub(crate) fn new(
        export: Option<&NbdExport>,
        (depth, bytes): (u32, usize),
        trims: bool,
        is_over: &'a dyn Fn() -> bool,
    ) -> std::result::Result<Nbd<'a>, Failure> {
        let fail = |errno, why: &str| Failure { errno, sentence: format!("ioengine=nbd: {why}") };
        let export = export.ok_or_else(|| fail(errno::EINVAL, "needs uri="))?;
        let failed = |error: Error| fail(errno::of(&error), &format!("{export}: {error}"));
        let (socket, size) = nbd::open(export).map_err(failed)?;
        let refuse = |why: String| Err(fail(errno::EINVAL, &format!("{export}: {why}")));
        let most = size.request_bytes_max;
        if !trims && bytes as u64 > u64::from(most) {
            return refuse(format!("takes blocks of at most {most} bytes (bs)"));
        }
        if trims && !size.has_trim() {
            return refuse("the server does not trim".to_owned());
        }
        socket.set_nonblocking(true).map_err(failed)?;
        let buffers = Buffers::new(depth, bytes).map_err(failed)?;
        let depth = depth.max(1) as usize;
        Ok(Nbd {
            socket,
            size,
            trims,
            buffers,
            unsent: VecDeque::with_capacity(depth),
            sent_bytes: 0,
            flying: vec![None; depth],
            many: 0,
            head: [0; REPLY_BYTES],
            head_bytes: 0,
            data: None,
            done: VecDeque::with_capacity(depth),
            is_over,
        })
    }

    fn queue(&mut self, request: Request) -> Queued {
        self.unsent.push_back(request);
        Queued::Later
    }

    /// Sends as much as the socket takes. Returns how many requests went, and whether any byte did.
    fn send(&mut self) -> Result<(u32, bool)> {
        let (mut went, mut moved) = (0, false);
        while let Some(request) = self.unsent.front().copied() {
            let Request { slot, command, begin, bytes, offset } = request;
            let head = nbd::request(command, slot as u64, offset, bytes);
            let data = match command {
                Command::Write => self.buffers.part(slot, begin..begin + bytes as usize),
                _ => &mut [],
            };
            let rest = match self.sent_bytes.checked_sub(REQUEST_BYTES) {
                None => head.get(self.sent_bytes..).unwrap_or_default(),
                Some(sent) => data.get(sent..).unwrap_or_default(),
            };
            if rest.is_empty() {
                self.unsent.pop_front();
                (self.sent_bytes, went) = (0, went + 1);
                if let Some(place) = self.flying.get_mut(slot) {
                    *place = Some(request);
                    self.many += 1;
                }
                continue;
            }
            match (&self.socket).write(rest) {
                Ok(0) => return Err(gone()),
                Ok(sent) => (self.sent_bytes, moved) = (self.sent_bytes + sent, true),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok((went, moved))
    }

    /// Receives what is there. Returns whether that was anything.
    fn receive(&mut self) -> Result<bool> {
        let mut moved = false;
        loop {
            let into = match &self.data {
                Some((request, came)) => {
                    let (begin, bytes) = (request.begin, request.bytes as usize);
                    self.buffers.part(request.slot, begin + came..begin + bytes)
                }
                None => self.head.get_mut(self.head_bytes..).unwrap_or_default(),
            };
            let came = match (&self.socket).read(into) {
                Ok(0) => return Err(gone()),
                Ok(came) => came,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(moved),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            moved = true;
            if let Some((request, before)) = &mut self.data {
                *before += came;
                if *before == request.bytes as usize {
                    self.done.push_back((request.slot, i64::from(request.bytes)));
                    self.data = None;
                }
                continue;
            }
            self.head_bytes += came;
            if self.head_bytes == REPLY_BYTES {
                self.head_bytes = 0;
                self.take_reply()?;
            }
        }
    }

    /// The head of a reply is there.
    fn take_reply(&mut self) -> Result<()> {
        let (errno, handle) = nbd::reply(&self.head)?;
        let place = usize::try_from(handle).ok().and_then(|slot| self.flying.get_mut(slot));
        let request = place.and_then(Option::take);
        let request =
            request.ok_or_else(|| Error::other("the server answers what it was not asked"))?;
        self.many -= 1;
        match (errno, request.command) {
            (0, Command::Read) => self.data = Some((request, 0)),
            (0, _) => self.done.push_back((request.slot, i64::from(request.bytes))),
            (errno, _) => self.done.push_back((request.slot, -i64::from(errno))),
        }
        Ok(())
    }

    /// The job was ended from outside, and the server does not answer: nothing is in flight any more.
    fn give_up(&mut self) {
        let waiting = self.flying.iter_mut().filter_map(Option::take);
        let waiting = waiting.chain(self.unsent.drain(..));
        let waiting = waiting.chain(self.data.take().map(|(request, _)| request));
        let canceled = -i64::from(errno::ECANCELED);
        self.done.extend(waiting.map(|request| (request.slot, canceled)));
        self.many = 0;
        // Whatever comes later belongs to nothing.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }
}

/// The server is gone.
fn gone() -> Error {
    Error::from_raw_os_error(errno::ECONNRESET)
}

impl Drop for Nbd<'_> {
    /// Says goodbye, which the server need not hear.
    fn drop(&mut self) {
        if self.unsent.is_empty() {
            let _ = (&self.socket).write(&nbd::request(Command::Disconnect, 0, 0, 0));
        }
    }
}

impl Engine for Nbd<'_> {
    const WAITS: bool = false;

    #[inline(always)]
    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        self.buffers.of(slot)
    }

    fn transfer(&mut self, slot: usize, block: Transfer) -> Queued {
        let begin = block.begin as usize;
        let fits = self.buffers.holds(begin.saturating_add(block.bytes as usize));
        if !fits || block.bytes == 0 || slot >= self.flying.len() {
            return REFUSED;
        }
        let command = match (block.write, self.trims) {
            (true, true) => Command::Trim,
            (true, false) => Command::Write,
            (false, _) => Command::Read,
        };
        self.queue(Request { slot, command, begin, bytes: block.bytes, offset: block.offset })
    }

    /// A flush, where the server has it.
    fn sync(&mut self, slot: usize, _: u32, _: bool) -> Queued {
        if !self.size.has_flush() {
            return Queued::Done(-i64::from(errno::EOPNOTSUPP));
        }
        self.queue(Request { slot, command: Command::Flush, begin: 0, bytes: 0, offset: 0 })
    }

    fn commit(&mut self) -> Result<u32> {
        self.send().map(|(went, _)| went)
    }

    fn wait(&mut self, least: u32, _: u32, timeout: Option<Duration>) -> Result<u32> {
        let begun = Instant::now();
        let (mut went, mut heard) = (0, begun);
        // Nothing is to be received, and after giving up nothing can be.
        if self.in_flight() == self.done.len() {
            return Ok(went);
        }
        loop {
            let (sent, moved) = self.send()?;
            went += sent;
            if self.receive()? || moved {
                heard = Instant::now();
            }
            if self.done.len() >= least as usize || self.in_flight() == self.done.len() {
                return Ok(went);
            }
            let mut slice = SLICE;
            if let Some(timeout) = timeout {
                let left = timeout.saturating_sub(begun.elapsed());
                if left.is_zero() {
                    return Ok(went);
                }
                slice = slice.min(left);
            }
            socket::wait(self.socket.as_fd(), !self.unsent.is_empty(), slice)?;
            match heard.elapsed() {
                quiet if quiet >= GRACE && (self.is_over)() => {
                    // They count as begun.
                    went += self.unsent.len() as u32;
                    self.give_up();
                    return Ok(went);
                }
                quiet if quiet >= SILENCE => return Err(ErrorKind::TimedOut.into()),
                _ => {}
            }
        }
    }

    fn take(&mut self) -> Option<Landed> {
        self.done.pop_front()
    }

    fn in_flight(&self) -> usize {
        self.unsent.len() + self.many + usize::from(self.data.is_some()) + self.done.len()
    }
}
