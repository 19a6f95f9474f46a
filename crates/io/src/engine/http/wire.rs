//! HTTP/1.1 on one connection: a request, and the answer with its declared length.

use crate::engine::patience::{Patience, SILENCE};
use crate::web::Wire;
use std::io::{self, Error, ErrorKind, Read, Write};
use std::time::Instant;

/// The largest head of an answer, and the number of its headers.
const HEAD_BYTES_MAX: usize = 32 << 10;
const HEADERS_MAX: usize = 96;
/// Interim answers before the one that counts.
const INTERIM_MAX: u32 = 16;
/// Maximum bytes of an unneeded body that are read; a longer one closes the connection.
const DROP_BYTES_MAX: u64 = 64 << 10;

/// The head of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    /// Content-Length; `None` where it does not say, or says it in pieces.
    pub(super) bytes: Option<u64>,
    /// Content-Range.
    pub(super) range: Option<String>,
    /// The server closes the connection afterwards.
    closes: bool,
}

/// Reason that a request failed.
#[derive(Debug)]
pub(super) enum Broken {
    /// The connection was closed before an answer began: perhaps it had been idle for too long.
    Closed,
    /// The job's time is over, or a signal ended it.
    Over,
    /// The request is invalid (EINVAL): the block has no object, or lies outside of the buffer.
    Refused,
    /// Anything else.
    Failed(Error),
}

impl From<Error> for Broken {
    fn from(error: Error) -> Broken {
        Broken::Failed(error)
    }
}

/// A connection.
pub(super) struct Line {
    wire: Box<dyn Wire>,
    /// Bytes that were read and belong to the body.
    ahead: Vec<u8>,
    /// It has carried a request before.
    pub(super) is_used: bool,
}

impl Line {
    /// Over a connection whose calls come back after a while.
    pub(super) fn new(wire: Box<dyn Wire>) -> Line {
        Line { wire, ahead: Vec::new(), is_used: false }
    }

    /// Sends a head and a body, and reads the head of the answer.
    pub(super) fn ask(
        &mut self,
        head: &[u8],
        body: &[u8],
        patience: &Patience<'_>,
    ) -> Result<Head, Broken> {
        self.is_used = true;
        self.ahead.clear();
        for part in [head, body] {
            self.send(part, patience)?;
        }
        let mut since = Instant::now();
        while let Err(error) = self.wire.flush() {
            wait(&error, &mut since, patience)?;
        }
        let mut text = Vec::with_capacity(1024);
        let mut interim = 0;
        loop {
            let mut piece = [0; 4096];
            let came = self.receive(&mut piece, patience)?;
            text.extend_from_slice(piece.get(..came).unwrap_or_default());
            if came == 0 {
                return Err(match text.is_empty() {
                    true => Broken::Closed,
                    false => broken("the answer ends within its head"),
                });
            }
            while let Some((end, found)) = parsed(&text)? {
                self.ahead = text.split_off(end);
                // Interim answers stand before the one that counts.
                if found.status >= 200 {
                    return Ok(found);
                }
                text = std::mem::take(&mut self.ahead);
                interim += 1;
                if interim > INTERIM_MAX {
                    return Err(broken("the server sends interim answers without end"));
                }
            }
            if text.len() > HEAD_BYTES_MAX {
                return Err(broken("the head of the answer is too large"));
            }
        }
    }

    /// Reads the body into all of a buffer, which is as long as the answer says.
    pub(super) fn body(
        &mut self,
        buffer: &mut [u8],
        patience: &Patience<'_>,
    ) -> Result<(), Broken> {
        let there = self.ahead.len().min(buffer.len());
        let (first, rest) = buffer.split_at_mut(there);
        first.copy_from_slice(self.ahead.get(..there).unwrap_or_default());
        self.ahead.drain(..there);
        let mut at = 0;
        while let Some(part) = rest.get_mut(at..).filter(|part| !part.is_empty()) {
            if at > 0 && patience.is_over() {
                return Err(Broken::Over);
            }
            match self.receive(part, patience)? {
                0 => return Err(broken("the answer ends before its body does")),
                came => at += came,
            }
        }
        Ok(())
    }

    /// Drops the body of an answer. False if the connection cannot be used again.
    pub(super) fn rest(&mut self, head: &Head, patience: &Patience<'_>) -> Result<bool, Broken> {
        let empty = matches!(head.status, 204 | 304);
        let Some(bytes) = head.bytes.or(empty.then_some(0)) else { return Ok(false) };
        if bytes > DROP_BYTES_MAX {
            return Ok(false);
        }
        let mut dropped = vec![0; bytes as usize];
        self.body(&mut dropped, patience)?;
        Ok(self.may_go_on(head))
    }

    /// The connection may be used again after an answer whose body was read.
    pub(super) fn may_go_on(&self, head: &Head) -> bool {
        !head.closes && self.ahead.is_empty()
    }

    fn send(&mut self, bytes: &[u8], patience: &Patience<'_>) -> Result<(), Broken> {
        let (mut rest, mut since) = (bytes, Instant::now());
        while !rest.is_empty() {
            match self.wire.write(rest) {
                Ok(0) => return Err(Broken::Closed),
                Ok(sent) => (rest, since) = (rest.get(sent..).unwrap_or_default(), Instant::now()),
                Err(error) => wait(&error, &mut since, patience)?,
            }
        }
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8], patience: &Patience<'_>) -> Result<usize, Broken> {
        let mut since = Instant::now();
        loop {
            match self.wire.read(buffer) {
                Ok(came) => return Ok(came),
                Err(error) => wait(&error, &mut since, patience)?,
            }
        }
    }
}

/// Checks whether an error of the connection is a timeout after which the wait may continue.
fn wait(error: &Error, since: &mut Instant, patience: &Patience<'_>) -> Result<(), Broken> {
    match error.kind() {
        ErrorKind::Interrupted => Ok(()),
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            if patience.is_over() {
                return Err(Broken::Over);
            }
            match since.elapsed() >= SILENCE {
                true => Err(broken("the server is silent for 60 seconds")),
                false => Ok(()),
            }
        }
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof => {
            Err(Broken::Closed)
        }
        _ => Err(Broken::Failed(copy(error))),
    }
}

/// An error as it is, for what owns it.
fn copy(error: &Error) -> Error {
    match error.raw_os_error() {
        Some(errno) => Error::from_raw_os_error(errno),
        None => Error::new(error.kind(), error.to_string()),
    }
}

fn broken(why: &str) -> Broken {
    Broken::Failed(Error::other(why))
}

/// The head of an answer and its length; `None` while it is not whole.
fn parsed(text: &[u8]) -> io::Result<Option<(usize, Head)>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut answer = httparse::Response::new(&mut headers);
    let status =
        answer.parse(text).map_err(|why| Error::other(format!("no HTTP answer: {why}")))?;
    let httparse::Status::Complete(end) = status else { return Ok(None) };
    let mut head = Head {
        status: answer.code.unwrap_or_default(),
        closes: answer.version == Some(0),
        ..Head::default()
    };
    let mut lengths: Vec<u64> = Vec::new();
    let mut in_pieces = false;
    for header in answer.headers.iter() {
        let value = std::str::from_utf8(header.value).unwrap_or_default().trim();
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        if is("content-length") {
            let wrong = || Error::other("the answer has no valid Content-Length");
            let digits = value.bytes().all(|byte| byte.is_ascii_digit());
            lengths.push(value.parse().ok().filter(|_| digits).ok_or_else(wrong)?);
        } else if is("transfer-encoding") {
            in_pieces = true;
        } else if is("connection") {
            head.closes |= value.to_ascii_lowercase().contains("close");
        } else if is("content-range") {
            head.range = Some(value.to_owned());
        }
    }
    lengths.dedup();
    if lengths.len() > 1 || in_pieces && !lengths.is_empty() {
        return Err(Error::other("the answer contradicts itself about its length"));
    }
    head.bytes = lengths.first().copied();
    Ok(Some((end, head)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_say_how_long_answers_are() {
        let head = |text: &str| parsed(text.as_bytes()).map(|found| found.map(|(_, head)| head));
        let whole = head("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").unwrap().unwrap();
        assert_eq!((whole.status, whole.bytes, whole.closes), (200, Some(5), false));
        let closes =
            head("HTTP/1.1 206 x\r\nConnection: close\r\nContent-Range: bytes 0-1/2\r\n\r\n");
        let closes = closes.unwrap().unwrap();
        assert_eq!((closes.bytes, closes.closes), (None, true));
        assert_eq!(closes.range.as_deref(), Some("bytes 0-1/2"));
        assert!(head("HTTP/1.1 200 OK\r\nContent-Le").unwrap().is_none());
        for wrong in [
            "SSH-2.0-x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        ] {
            assert!(head(wrong).is_err(), "{wrong}");
        }
    }
}
