//! A streamed response body.

use super::client::Client;
use super::error::{Error, Kind};
use super::http::{Broken, Conn};
use super::pool::Target;
use super::retry::Class;
use super::throttle::Share;
use bytes::Bytes;
use hakobu_core::meter::Phase;
use http::{HeaderMap, StatusCode};
use hyper::body::Incoming;
use std::rc::Rc;
use std::time::Duration;

/// A GET in progress: headers are complete, the body arrives in pieces. Dropping it early closes its
/// connection.
pub struct Download {
    /// 200 or 206.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    pub(super) rest: Option<Rest>,
    pub(super) client: Client,
    pub(super) operation: &'static str,
    /// Size of the whole object, bytes.
    pub(super) size: u64,
}

/// Unread rest of a body, with its connection.
pub(super) struct Rest {
    pub conn: Conn,
    pub body: Incoming,
    pub target: Rc<Target>,
    pub patience: Duration,
    /// Received and announced bytes.
    pub got_bytes: u64,
    pub promised_bytes: Option<u64>,
    /// Grant of bytes that may be read, under a rate limit.
    pub share: Option<Share>,
}

impl Download {
    /// Size of the whole object in bytes, of which the body may be a range.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Sets the required length of the body, whether the server announces one or not.
    pub(super) fn expects(&mut self, bytes: u64, size: u64) {
        self.size = size;
        if let Some(rest) = &mut self.rest {
            rest.promised_bytes = Some(bytes);
        }
    }

    /// Records bytes that were already waited for: [`Client::prepay`].
    pub fn prepaid(&mut self, bytes: u64) {
        if let Some(share) = self.rest.as_mut().and_then(|rest| rest.share.as_mut()) {
            share.grant(bytes);
        }
    }

    /// Next piece; `None` at the end of the announced length.
    ///
    /// # Errors
    /// `Connection`, `TimedOut`; `Corrupt` if the body ends early, `Invalid` if it is too long.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        // Taken out, so that a cancelled call closes the connection.
        let Some(mut rest) = self.rest.take() else { return Ok(None) };
        if let Some(share) = &mut rest.share {
            let left_bytes = rest
                .promised_bytes
                .map_or(u64::MAX, |promised| promised.saturating_sub(rest.got_bytes));
            self.client.granted(share, left_bytes, self.operation).await?;
            rest.conn.watch.read_at_most(share.granted_bytes());
        }
        self.client.turn(Phase::Receive);
        match rest.piece(self.operation).await {
            Ok(Some(piece)) => {
                self.rest = Some(rest);
                Ok(Some(piece))
            }
            Ok(None) => {
                rest.target.checkin(rest.conn).await;
                self.client.count(|lane| lane.completions(1));
                Ok(None)
            }
            Err(error) => {
                if error.kind == Kind::TimedOut {
                    self.client.complained(Class::TimedOut);
                }
                Err(error)
            }
        }
    }
}

impl Rest {
    /// Next piece; `None` at the end.
    ///
    /// # Errors
    /// As [`Download::chunk`].
    pub async fn piece(&mut self, operation: &'static str) -> Result<Option<Bytes>, Error> {
        let so_far = |rest: &Rest| match rest.promised_bytes {
            Some(promised) => format!("after {} of {promised} bytes", rest.got_bytes),
            None => format!("after {} bytes", rest.got_bytes),
        };
        match self.conn.piece(&mut self.body, self.patience).await {
            Ok(Some(piece)) => {
                self.got_bytes += piece.len() as u64;
                if let Some(promised) = self.promised_bytes.filter(|most| self.got_bytes > *most) {
                    // Not retried: the content before it is complete and would be taken for a success.
                    let what = format!("the body is longer than {promised} bytes");
                    return Err(Error::new(Kind::Invalid, operation, what));
                }
                if let Some(share) = &mut self.share {
                    share.received(piece.len());
                }
                Ok(Some(piece))
            }
            Ok(None) => match self.promised_bytes {
                Some(promised) if promised != self.got_bytes => {
                    let what = format!("the body ended {}", so_far(self));
                    Err(Error::new(Kind::Corrupt, operation, what))
                }
                _ => Ok(None),
            },
            Err(broken) => {
                let so_far = so_far(self);
                let (kind, what) = match broken {
                    Broken::TimedOut => (Kind::TimedOut, format!("the body stood still {so_far}")),
                    Broken::Failed(why) => {
                        (Kind::Connection, format!("the body broke {so_far}: {why}"))
                    }
                    Broken::Unsent => (Kind::Connection, format!("the connection closed {so_far}")),
                };
                Err(Error::new(kind, operation, what))
            }
        }
    }
}
