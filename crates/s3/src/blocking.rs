//! One-off requests for callers without a runtime: creates what a client needs, runs one task, closes it.

use super::{Client, Error, Kind, Settings, Store};
use std::ops::Add;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a store at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Successful requests.
    pub answered: u64,
    /// Retried requests.
    pub retries: u64,
    /// Throttling responses and time-outs.
    pub throttled: u64,
    /// Opened connections.
    pub connections: u64,
}

impl Requests {
    /// Reads the counters of a store.
    pub fn of(store: &Store) -> Requests {
        let now = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counts = &store.counts;
        Requests {
            answered: now(&counts.requests),
            retries: now(&counts.retries),
            throttled: now(&counts.throttled),
            connections: now(&counts.connections),
        }
    }

    /// Difference to an earlier reading.
    pub fn since(self, before: Requests) -> Requests {
        Requests {
            answered: self.answered.saturating_sub(before.answered),
            retries: self.retries.saturating_sub(before.retries),
            throttled: self.throttled.saturating_sub(before.throttled),
            connections: self.connections.saturating_sub(before.connections),
        }
    }
}

impl Add for Requests {
    type Output = Requests;

    fn add(self, other: Requests) -> Requests {
        Requests {
            answered: self.answered + other.answered,
            retries: self.retries + other.retries,
            throttled: self.throttled + other.throttled,
            connections: self.connections + other.connections,
        }
    }
}

/// Opens a store and runs `work` with a client of it on this thread.
///
/// # Errors
/// Invalid settings or credentials; those of `work`.
pub fn with_client<T>(
    settings: &Settings,
    work: impl AsyncFnOnce(Client) -> Result<T, Error>,
) -> Result<T, Error> {
    let store = Store::open(settings)?;
    with_store(&store, work)
}

/// Runs `work` with a client of an open store on this thread. Must not be called inside a runtime.
///
/// # Errors
/// `Settings` if no runtime can be created; those of `work`.
pub fn with_store<T>(
    store: &Arc<Store>,
    work: impl AsyncFnOnce(Client) -> Result<T, Error>,
) -> Result<T, Error> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
            Error::new(Kind::Settings, "", format!("cannot start a runtime: {error}"))
        })?;
    let client = Client::new(store);
    tokio::task::LocalSet::new().block_on(&runtime, work(client))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_added_field_by_field() {
        let one = Requests { answered: 1, retries: 2, throttled: 3, connections: 4 };
        assert_eq!(one + one, Requests { answered: 2, retries: 4, throttled: 6, connections: 8 });
    }
}
