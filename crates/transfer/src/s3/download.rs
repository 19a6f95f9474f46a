//! A body that comes in pieces.

use super::client::Client;
use super::error::{Error, Kind};
use super::http::{Broken, Conn};
use super::outgoing::Paced;
use super::pool::Target;
use super::retry::Class;
use crate::meter::Phase;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use hyper::body::Incoming;
use std::rc::Rc;
use std::time::Duration;

/// A GET under way: headers are here, the body comes in pieces as the connection delivers them.
/// Dropping it early closes its connection.
pub struct Download {
    /// 200 or 206.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    pub(super) rest: Option<Rest>,
    pub(super) client: Client,
    pub(super) operation: &'static str,
}

/// What has not been read yet, and on which connection.
pub(super) struct Rest {
    pub conn: Conn,
    pub body: Incoming,
    pub target: Rc<Target>,
    pub patience: Duration,
    /// Bytes that came so far, and that were promised.
    pub got_bytes: u64,
    pub promised_bytes: Option<u64>,
    /// Where a rate is kept: what may be read.
    pub paced: Option<Paced>,
}

impl Download {
    /// So many bytes of it were waited for already: [`Client::prepay`].
    pub fn prepaid(&mut self, bytes: u64) {
        if let Some(paced) = self.rest.as_mut().and_then(|rest| rest.paced.as_mut()) {
            paced.grant(bytes);
        }
    }

    /// The next piece; `None` at the end of the promised length.
    ///
    /// # Errors
    /// `Connection`, `TimedOut`, or `Corrupt` where the body ends early.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        // Taken, so that a call that is dropped in the middle closes the connection.
        let Some(mut rest) = self.rest.take() else { return Ok(None) };
        if let Some(paced) = &mut rest.paced {
            let left = rest
                .promised_bytes
                .map_or(u64::MAX, |promised| promised.saturating_sub(rest.got_bytes));
            let bytes = paced.wants(left);
            if bytes > 0 {
                self.client.take(bytes, self.operation).await?;
                paced.grant(bytes);
            }
            rest.conn.watch().read_at_most(paced.granted_bytes());
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
    /// The next piece; `None` at the end.
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
                if let Some(paced) = &mut self.paced {
                    paced.received(piece.len());
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
            Err(Broken::TimedOut) => {
                let what = format!("the body stood still {}", so_far(self));
                Err(Error::new(Kind::TimedOut, operation, what))
            }
            Err(Broken::Failed(why)) => {
                let what = format!("the body broke {}: {why}", so_far(self));
                Err(Error::new(Kind::Connection, operation, what))
            }
            Err(Broken::Unsent) => {
                let what = format!("the connection closed {}", so_far(self));
                Err(Error::new(Kind::Connection, operation, what))
            }
        }
    }
}
