//! The engine `http`: each block is an object of a server, which writes put, reads get and trims delete (WebDAV, S3,
//! Swift). Nothing is tried twice, but for a connection that the server closed before it answered: what a server does
//! is measured as it is.

mod target;
mod wire;

use super::patience::{Failure, Patience, SLICE};
use super::{Engine, Queued, REFUSED, Transfer, part};
use crate::Job;
use crate::job::{Http as Options, HttpMode, Https};
use crate::web::{Web, Wire};
use hakobu_sys::errno;
use hakobu_sys::memory::Aligned;
use std::io::{Error, ErrorKind};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};
use target::Method;
use wire::{Broken, Line};

/// Time to connect to a server, in slices.
const CONNECT: Duration = Duration::from_secs(10);

/// A client with one connection.
pub(crate) struct Http<'a> {
    options: &'a Options,
    web: Option<&'a dyn Web>,
    trims: bool,
    verifies: bool,
    names: Vec<Vec<u8>>,
    /// Value of the header Host, and where that is.
    host: (String, String, u16),
    buffer: Aligned,
    line: Option<Line>,
    patience: Patience<'a>,
    /// Description of the last failure.
    why: String,
}

impl<'a> Http<'a> {
    /// Creates a client for objects of these names, with blocks of this many bytes.
    ///
    /// # Errors
    /// The options do not make a request.
    pub(crate) fn new(
        job: &'a Job,
        names: &[&Path],
        bytes: usize,
        web: Option<&'a dyn Web>,
        is_over: &'a dyn Fn() -> bool,
    ) -> Result<Http<'a>, Failure> {
        let fail = |why: String| Failure {
            errno: errno::EINVAL,
            sentence: format!("ioengine=http: {why}"),
        };
        let options = &job.http;
        let needs_web = options.mode == HttpMode::S3 || options.https != Https::Off;
        if needs_web && web.is_none() {
            return Err(fail("TLS and signatures are not available here".to_owned()));
        }
        let host = target::host(options).map_err(fail)?;
        let buffer = Aligned::new(bytes.max(1)).map_err(|error| fail(error.to_string()))?;
        Ok(Http {
            options,
            web,
            trims: job.trims,
            verifies: job.verify.is_some() && job.rw.writes,
            names: names.iter().map(|name| name.as_os_str().as_bytes().to_vec()).collect(),
            host,
            buffer,
            line: None,
            patience: Patience::new(is_over),
            why: String::new(),
        })
    }

    /// Connects; an address after the other.
    fn connect(&self) -> Result<Line, Broken> {
        let (_, name, port) = &self.host;
        let mut last = Error::other("this host has no address");
        for address in (name.as_str(), *port).to_socket_addrs()? {
            let began = Instant::now();
            loop {
                if self.patience.is_over() {
                    return Err(Broken::Over);
                }
                match TcpStream::connect_timeout(&address, SLICE * 10) {
                    Ok(socket) => return self.secured(socket).map_err(Broken::Failed),
                    Err(error) => last = error,
                }
                if last.kind() != ErrorKind::TimedOut || began.elapsed() >= CONNECT {
                    break;
                }
            }
        }
        Err(Broken::Failed(Error::new(last.kind(), format!("cannot connect: {last}"))))
    }

    fn secured(&self, socket: TcpStream) -> std::io::Result<Line> {
        socket.set_nodelay(true)?;
        // The handshake may take longer.
        socket.set_read_timeout(Some(CONNECT))?;
        socket.set_write_timeout(Some(CONNECT))?;
        let timed = socket.try_clone()?;
        let wire: Box<dyn Wire> = match (self.options.https, self.web) {
            (Https::Off, _) => Box::new(socket),
            (https, Some(web)) => web.secure(socket, &self.host.1, https == Https::On)?,
            (_, None) => return Err(Error::other("there is no TLS here")),
        };
        // The same socket: its calls come back after a slice from now on.
        timed.set_read_timeout(Some(SLICE))?;
        timed.set_write_timeout(Some(SLICE))?;
        Ok(Line::new(wire))
    }

    /// Sends a request and takes its answer, on the connection that is there or on a new one.
    fn request(&mut self, block: &Transfer) -> Result<(), Broken> {
        let method = match (block.write, self.trims) {
            (true, true) => Method::Delete,
            (true, false) => Method::Put,
            (false, _) => Method::Get,
        };
        let bytes = u64::from(block.bytes);
        let range = (self.options.ranges && method == Method::Get).then_some((block.offset, bytes));
        let Some(name) = self.names.get(block.file as usize) else { return Err(Broken::Refused) };
        let path = target::path(name, self.options, (block.offset, bytes));
        loop {
            let mut line = match self.line.take() {
                Some(line) => line,
                None => self.connect()?,
            };
            let was_used = line.is_used;
            let Some(content) = part(&mut self.buffer, block) else { return Err(Broken::Refused) };
            let body: &[u8] = if method == Method::Put { content } else { &[] };
            let (to, web) = ((self.host.0.as_str(), path.as_str()), self.web);
            let head = target::head(method, to, self.options, body, range, web);
            let answer = match line.ask(&head, body, &self.patience) {
                // Idle connections are closed by servers: all of these requests may be sent again.
                Err(Broken::Closed) if was_used => continue,
                answer => answer?,
            };
            let right = target::check(method, &answer, bytes, range);
            if right.is_ok() && method == Method::Get {
                line.body(content, &self.patience)?;
                self.line = line.may_go_on(&answer).then_some(line);
                return Ok(());
            }
            let goes_on = line.rest(&answer, &self.patience)?;
            self.line = goes_on.then_some(line);
            return right.map_err(|why| Broken::Failed(Error::other(why)));
        }
    }
}

impl Engine for Http<'_> {
    const WAITS: bool = true;

    fn buffer(&mut self, _: usize) -> &mut [u8] {
        &mut self.buffer
    }

    fn transfer(&mut self, _: usize, block: Transfer) -> Queued {
        Queued::Done(match self.request(&block) {
            Ok(()) => i64::from(block.bytes),
            Err(Broken::Refused) => return REFUSED,
            Err(Broken::Over) => -i64::from(errno::ECANCELED),
            Err(Broken::Closed) => {
                self.why = "the server closed the connection without an answer".to_owned();
                -i64::from(errno::ECONNRESET)
            }
            Err(Broken::Failed(error)) => {
                self.why = error.to_string();
                -i64::from(errno::of(&error))
            }
        })
    }

    fn ready(&mut self, span: Option<Duration>) -> Result<bool, Failure> {
        // Blocks are read again when the time is over.
        self.patience.begin(span.filter(|_| !self.verifies));
        Ok(true)
    }

    fn why(&self) -> Option<&str> {
        (!self.why.is_empty()).then_some(self.why.as_str())
    }
}
