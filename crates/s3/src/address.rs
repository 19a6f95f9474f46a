//! Addresses of hosts: cached DNS answers, used round-robin by all cores, without those that do not respond.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Lifetime of a DNS answer. S3's own is five seconds with different addresses each time, so that long runs
/// use more of them.
const TTL: Duration = Duration::from_secs(30);

/// The addresses of all hosts of a store.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    hosts: Mutex<HashMap<(String, u16), Known>>,
    /// Shortest connection time so far, nanoseconds; 0 before the first connection.
    rtt_ns: AtomicU64,
}

#[derive(Debug)]
struct Known {
    list: Vec<SocketAddr>,
    resolved: Instant,
    turn: usize,
}

impl Addresses {
    /// Records the time that a connection took to open.
    pub fn took(&self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1);
        let shorter = |least: u64| (least == 0 || ns < least).then_some(ns);
        // An error means that it is not shorter.
        let _ = self.rtt_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, shorter);
    }

    /// Round-trip time to the nearest address; `None` before the first connection.
    pub fn rtt(&self) -> Option<Duration> {
        let ns = self.rtt_ns.load(Ordering::Relaxed);
        (ns > 0).then(|| Duration::from_nanos(ns))
    }

    /// Address for a new connection to `host`.
    ///
    /// # Errors
    /// A message: the name cannot be resolved.
    pub async fn next(&self, host: &str, port: u16) -> Result<SocketAddr, String> {
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Ok(SocketAddr::new(ip, port));
        }
        if let Some(address) = self.known(host, port, Instant::now()) {
            return Ok(address);
        }
        let name = host.to_owned();
        let found = tokio::task::spawn_blocking(move || {
            (name.as_str(), port).to_socket_addrs().map(Vec::from_iter)
        });
        let list = match found.await {
            Ok(Ok(list)) if !list.is_empty() => list,
            Ok(Ok(_)) => return Err(format!("the name {host} has no address")),
            Ok(Err(e)) => return Err(format!("the name {host} cannot be resolved: {e}")),
            Err(_) => return Err(format!("the name {host} cannot be resolved: interrupted")),
        };
        let first = list[0];
        let known = Known { list, resolved: Instant::now(), turn: 1 };
        self.hosts.lock().insert((host.to_owned(), port), known);
        Ok(first)
    }

    fn known(&self, host: &str, port: u16, now: Instant) -> Option<SocketAddr> {
        let mut hosts = self.hosts.lock();
        let known = hosts.get_mut(&(host.to_owned(), port))?;
        if known.list.is_empty() || now.duration_since(known.resolved) > TTL {
            return None;
        }
        let address = known.list[known.turn % known.list.len()];
        known.turn = known.turn.wrapping_add(1);
        Some(address)
    }

    /// Drops an address that did not respond until the name is resolved again; returns the number of
    /// remaining ones.
    pub fn drop_bad(&self, host: &str, port: u16, bad: SocketAddr) -> usize {
        let mut hosts = self.hosts.lock();
        let Some(known) = hosts.get_mut(&(host.to_owned(), port)) else { return 0 };
        known.list.retain(|address| *address != bad);
        known.list.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(count: u8) -> (Addresses, Vec<SocketAddr>) {
        let list: Vec<SocketAddr> =
            (1..=count).map(|n| SocketAddr::from(([127, 0, 0, n], 80))).collect();
        let known = Known { list: list.clone(), resolved: Instant::now(), turn: 0 };
        let addresses = Addresses::default();
        addresses.hosts.lock().insert(("h".into(), 80), known);
        (addresses, list)
    }

    #[test]
    fn all_addresses_are_used_in_turn() {
        let (addresses, list) = addresses(3);
        let now = Instant::now();
        let got: Vec<_> = (0..6).filter_map(|_| addresses.known("h", 80, now)).collect();
        assert_eq!(got, [&list[..], &list[..]].concat());
    }

    #[test]
    fn a_bad_address_is_left_out_and_an_old_answer_not_used() {
        let (addresses, list) = addresses(2);
        let now = Instant::now();
        assert_eq!(addresses.drop_bad("h", 80, list[0]), 1);
        assert_eq!(addresses.known("h", 80, now), Some(list[1]));
        assert_eq!(addresses.known("h", 80, now + TTL + Duration::from_secs(1)), None);
        assert_eq!(addresses.drop_bad("h", 80, list[1]), 0);
        assert_eq!(addresses.known("h", 80, now), None);
    }
}
