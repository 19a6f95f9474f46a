//! Totals of a running server: a line per second while requests come, if requested, and one for each SIGUSR1.

use crate::number::{bytes, grouped, things};
use crate::show::output;
use hakobu_testserver::{ServerTotals, TestServer};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval of lines.
const LINE: Duration = Duration::from_secs(1);

/// The display of a server's totals.
pub struct Live {
    server: Arc<TestServer>,
    over: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Live {
    /// Starts the display; with `lines` a line per second while requests come. If no thread can be started there are
    /// no lines.
    pub fn start(server: &Arc<TestServer>, lines: bool) -> Live {
        let over = Arc::new((Mutex::new(false), Condvar::new()));
        let thread = lines.then(|| {
            let (server, over) = (Arc::clone(server), Arc::clone(&over));
            let thread = std::thread::Builder::new().name("progress".into());
            thread.spawn(move || watch(&server, &over)).ok()
        });
        Live { server: Arc::clone(server), over, thread: thread.flatten() }
    }

    /// Prints the totals so far.
    pub fn print(&self) {
        output::message(&line(&self.server.totals(), None));
    }

    /// Ends the display, with a last line if there were lines.
    pub fn end(self) {
        *self.over.0.lock() = true;
        self.over.1.notify_all();
        if let Some(thread) = self.thread {
            // A thread that panicked prints nothing more.
            let _ = thread.join();
            output::message(&line(&self.server.totals(), None));
        }
    }
}

fn watch(server: &TestServer, over: &(Mutex<bool>, Condvar)) {
    let (mut last, mut since) = (ServerTotals::default(), Instant::now());
    let mut ended = over.0.lock();
    while !*ended {
        over.1.wait_for(&mut ended, LINE);
        let now = server.totals();
        let elapsed = since.elapsed();
        if *ended || elapsed < LINE {
            continue;
        }
        if now != last {
            output::message(&line(&now, Some((&last, elapsed))));
        }
        (last, since) = (now, Instant::now());
    }
}

/// Returns the totals as text, with rates since an earlier sample.
fn line(now: &ServerTotals, since: Option<(&ServerTotals, Duration)>) -> String {
    let rate = |of: fn(&ServerTotals) -> u64| {
        let (before, elapsed) = since?;
        Some((of(now).saturating_sub(of(before)) as f64 / elapsed.as_secs_f64()) as u64)
    };
    let with_rate = |text: String, rate: Option<String>| match rate {
        Some(rate) => format!("{text} ({rate}/s)"),
        None => text,
    };
    let of_bytes = |what: &str, of: fn(&ServerTotals) -> u64| {
        with_rate(format!("{} {what}", bytes(of(now))), rate(of).map(bytes))
    };
    let mut parts =
        vec![with_rate(things(now.requests, "request"), rate(|of| of.requests).map(grouped))];
    if now.failed > 0 {
        parts.push(format!("{} failed", grouped(now.failed)));
    }
    parts.push(of_bytes("received", |of| of.received_bytes));
    parts.push(of_bytes("sent", |of| of.sent_bytes));
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_and_rates() {
        let before = ServerTotals { requests: 1000, ..ServerTotals::default() };
        let now =
            ServerTotals { requests: 3000, failed: 2, received_bytes: 4_000_000, sent_bytes: 0 };
        assert_eq!(line(&now, None), "3,000 requests, 2 failed, 4.00 MB received, 0 bytes sent");
        let text = line(&now, Some((&before, Duration::from_secs(2))));
        assert!(
            text.starts_with("3,000 requests (1,000/s), 2 failed, 4.00 MB received (2.00"),
            "{text}"
        );
    }
}
