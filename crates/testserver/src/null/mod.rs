//! The null server: discards uploads, serves objects from memory, lists generated keys. It is a measuring
//! instrument with minimal cost per request, so that a client on the same machine is the bottleneck; hence it
//! implements HTTP itself instead of using hyper, and is tested with other clients. It checks no signatures
//! and stores nothing.
//!
//! A key that ends in `.size-N` is an object of N bytes; others have the default size.

mod answer;
mod body;
mod chunked;
mod head;
pub mod layered;
mod list;
mod payload;
mod range;
mod space;

use super::counts::Counts;
use super::log::{Entry, Log};
use super::operation::Operation;
pub use answer::{Answer, Content, Request, Store};
use head::Head;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longest request head, bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Read buffer of a connection, bytes: fits a small upload with its head.
const BUFFER_BYTES: usize = 16 << 10;

/// State shared by all connections.
pub struct Null {
    /// Content of the server.
    pub store: Store,
    /// Delay of each answer.
    pub latency: Duration,
    /// Request log.
    pub log: Option<Log>,
    /// Counters of requests.
    pub counts: Arc<Counts>,
}

/// One connection.
struct Connection {
    stream: TcpStream,
    shared: Arc<Null>,
    buffer: Vec<u8>,
    /// Filled part of the buffer, bytes.
    filled: usize,
    answer: Answer,
    /// Head of the response, with its text if short.
    out: Vec<u8>,
    date: Date,
}

/// Serves a connection to its end.
///
/// # Errors
/// The connection fails, or the input is not HTTP.
pub async fn serve(stream: TcpStream, shared: Arc<Null>) -> io::Result<()> {
    let mut connection = Connection {
        stream,
        shared,
        buffer: vec![0; BUFFER_BYTES],
        filled: 0,
        answer: Answer::default(),
        out: Vec::with_capacity(1024),
        date: Date::default(),
    };
    while let Some(head) = connection.head().await? {
        connection.request(&head).await?;
        if head.closes {
            break;
        }
    }
    Ok(())
}

impl Connection {
    /// Reads the next head; `None` at the end of the connection.
    async fn head(&mut self) -> io::Result<Option<Head>> {
        loop {
            if self.filled > 0 {
                match Head::parse(&self.buffer[..self.filled]) {
                    Ok(Some(head)) => return Ok(Some(head)),
                    Ok(None) if self.filled >= HEAD_BYTES_MAX => {
                        return self.refuse("the head is too long").await;
                    }
                    Ok(None) => {}
                    Err(wrong) => return self.refuse(wrong).await,
                }
            }
            if self.filled == self.buffer.len() {
                self.buffer.resize(self.filled * 2, 0);
            }
            match self.stream.read(&mut self.buffer[self.filled..]).await? {
                0 => return Ok(None),
                count => self.filled += count,
            }
        }
    }

    /// Answers an invalid request, and closes the connection.
    async fn refuse(&mut self, wrong: &str) -> io::Result<Option<Head>> {
        self.answer.error(400, "BadRequest", wrong, "");
        self.send(true).await?;
        Ok(None)
    }

    /// Receives the body of a request and answers it.
    async fn request(&mut self, head: &Head) -> io::Result<()> {
        let start = self.shared.log.as_ref().map(|_| Instant::now());
        let came = &self.buffer[head.bytes..self.filled];
        if head.expects && came.is_empty() {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let whole = head.operation == Operation::DeleteObjects;
        let taken = body::take(&mut self.stream, head, came, whole).await?;
        let text = |span: &std::ops::Range<usize>| {
            self.buffer.get(span.clone()).and_then(|bytes| std::str::from_utf8(bytes).ok())
        };
        let checksum = match &head.checksum {
            Some((name, value)) => text(name).zip(text(value)),
            None if head.has_trailer => body::trailer(&taken.kept),
            None => None,
        };
        let request = Request {
            operation: head.operation,
            path: text(&head.path).unwrap_or("/"),
            query: text(&head.query).unwrap_or(""),
            range: head.range.as_ref().and_then(text),
            wants_checksum: head.wants_checksum,
            checksum,
            body: &taken.kept,
        };
        self.shared.store.answer(&request, &mut self.answer);
        if !self.shared.latency.is_zero() {
            tokio::time::sleep(self.shared.latency).await;
        }
        self.send(head.closes).await?;
        self.shared.counts.add(self.answer.status, taken.bytes, self.answer.body_bytes());
        if let (Some(log), Some(start)) = (&self.shared.log, start) {
            let text = |span: &std::ops::Range<usize>| {
                String::from_utf8_lossy(&self.buffer[span.clone()]).into_owned()
            };
            log.add(&Entry {
                method: &text(&head.method),
                operation: head.operation.name(),
                path: &text(&head.path),
                query: &text(&head.query),
                status: self.answer.status,
                received_bytes: taken.bytes,
                sent_bytes: self.answer.body_bytes(),
                took_s: start.elapsed().as_secs_f64(),
                fault: None,
            });
        }
        // Move the data after this request to the front.
        let used = head.bytes + taken.used;
        self.buffer.copy_within(used..self.filled, 0);
        self.filled -= used;
        if !taken.beyond.is_empty() {
            self.buffer.truncate(self.filled);
            self.buffer.extend_from_slice(&taken.beyond);
            self.filled = self.buffer.len();
            self.buffer.resize(self.filled.max(BUFFER_BYTES), 0);
        }
        Ok(())
    }

    /// Sends the response.
    async fn send(&mut self, closes: bool) -> io::Result<()> {
        let Connection { stream, shared, answer, out, date, .. } = self;
        out.clear();
        push_head(answer, closes, date, out);
        match answer.content {
            Content::Withheld(_) | Content::Nothing => stream.write_all(out).await,
            Content::Text => send_both(stream, out, &answer.text).await,
            Content::Payload(from, bytes) => {
                let payload = &shared.store.payload;
                // Send the head with the first part of the payload in one call.
                let mut slices: Vec<IoSlice<'_>> = Vec::with_capacity(20);
                slices.push(IoSlice::new(out));
                slices.extend(payload.slices(from, bytes));
                let sent = stream.write_vectored(&slices).await?;
                let mut sent = match sent.checked_sub(out.len()) {
                    Some(sent) => sent as u64,
                    None => {
                        stream.write_all(&out[sent..]).await?;
                        0
                    }
                };
                while sent < bytes {
                    slices.clear();
                    slices.extend(payload.slices(from + sent, bytes - sent));
                    sent += stream.write_vectored(&slices).await? as u64;
                }
                Ok(())
            }
        }
    }
}

/// Sends two pieces in order, if possible in one call.
async fn send_both(stream: &mut TcpStream, first: &[u8], second: &[u8]) -> io::Result<()> {
    let sent = stream.write_vectored(&[IoSlice::new(first), IoSlice::new(second)]).await?;
    stream.write_all(first.get(sent..).unwrap_or_default()).await?;
    let sent = sent.saturating_sub(first.len());
    stream.write_all(second.get(sent..).unwrap_or_default()).await
}

/// Appends the head of a response.
fn push_head(answer: &Answer, closes: bool, date: &mut Date, out: &mut Vec<u8>) {
    let status: &[u8] = match answer.status {
        200 => b"HTTP/1.1 200 OK\r\n",
        204 => b"HTTP/1.1 204 No Content\r\n",
        206 => b"HTTP/1.1 206 Partial Content\r\n",
        400 => b"HTTP/1.1 400 Bad Request\r\n",
        416 => b"HTTP/1.1 416 Range Not Satisfiable\r\n",
        _ => b"HTTP/1.1 501 Not Implemented\r\n",
    };
    out.extend_from_slice(status);
    out.extend_from_slice(&answer.lines);
    if answer.content != Content::Nothing {
        out.extend_from_slice(b"Content-Length: ");
        push_decimal(answer.length(), out);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"x-amz-request-id: ");
    out.extend_from_slice(crate::xml::REQUEST_ID.as_bytes());
    out.extend_from_slice(b"\r\nDate: ");
    out.extend_from_slice(date.now());
    out.extend_from_slice(if closes { b"\r\nConnection: close\r\n\r\n" } else { b"\r\n\r\n" });
}

fn push_decimal(mut number: u64, out: &mut Vec<u8>) {
    let start = out.len();
    loop {
        out.push(b'0' + (number % 10) as u8);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out[start..].reverse();
}

/// Current time in header format, updated once per second.
#[derive(Default)]
struct Date {
    second: u64,
    text: String,
}

impl Date {
    fn now(&mut self) -> &[u8] {
        let now = SystemTime::now();
        let second = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        if self.second != second || self.text.is_empty() {
            self.second = second;
            self.text = httpdate::fmt_http_date(now);
        }
        self.text.as_bytes()
    }
}
