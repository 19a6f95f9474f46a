//! Verdicts on transfers with a store.

use crate::verdict::tests::*;

/// A server with a latency of 50 ms; few jobs.
pub(crate) fn far(jobs: f64) -> Facts {
    let mut facts = upload(&[(Phase::Answer, 0.95 * jobs), (Phase::Send, 0.03 * jobs)]);
    facts.jobs = jobs;
    facts.operations_per_s = 0.95 * jobs / 0.0505;
    facts.cpu_used = 0.05;
    facts.machine_used = Some(0.1);
    facts
}

#[test]
fn latency() {
    let mut facts = far(8.0);
    facts.curve = points(&[(2.0, 40.0), (4.0, 79.0), (8.0, 157.0)]);
    assert_eq!(named(&facts), (Resource::Latency, Level::Consistent));
    assert_eq!(
        advice(&facts),
        "More jobs (-j) or lower latency would help; more CPUs and more bandwidth would not."
    );
    // With fixed jobs the second signal is that no answer was ever faster.
    let mut fixed = far(4.0);
    fixed.jobs_fixed = true;
    assert_eq!(named(&fixed), UNKNOWN);
    fixed.answer_min_ms = Some(50.1);
    assert_eq!(named(&fixed), (Resource::Latency, Level::Consistent));
    // Delayed ACKs look like a queue, but are none.
    fixed.network.as_mut().unwrap().rtt_ms = Some(38.0);
    assert_eq!(named(&fixed), (Resource::Latency, Level::Consistent));
    facts.experiments = vec![made(Resource::Latency, 1.5, (0.97, 0.85, 1.1))];
    assert_eq!(named(&facts), (Resource::Latency, Level::Proven));
}

/// A server that handles 16 of 64 requests at a time, 50 ms each.
pub(crate) fn capped() -> Facts {
    let mut facts = far(64.0);
    facts.operations_per_s = 320.0;
    facts.phases[Phase::Answer as usize] = 63.0;
    facts
}

#[test]
fn a_server_with_a_cap() {
    let mut facts = capped();
    facts.curve = points(&[(8.0, 160.0), (16.0, 318.0), (32.0, 320.0), (64.0, 319.0)]);
    assert_eq!(named(&facts), (Resource::Server, Level::Consistent));
    assert!(advice(&facts).starts_with("A server that handles more requests at once would help"));
    assert!(advice(&facts).contains("more jobs"));
    // With fixed jobs: answers four times slower than the fastest may have many reasons; an experiment
    // decides.
    let mut fixed = capped();
    fixed.jobs_fixed = true;
    assert_eq!(named(&fixed), UNKNOWN);
    fixed.answer_min_ms = Some(51.0);
    assert_eq!(named(&fixed), UNKNOWN);
    fixed.experiments = vec![made(Resource::Latency, 1.5, (0.02, -0.1, 0.14))];
    assert_eq!(named(&fixed), (Resource::Server, Level::Consistent));
    // Long round trips may mean a slow path; handshakes decide.
    facts.network.as_mut().unwrap().rtt_ms = Some(20.0);
    assert_eq!(named(&facts), UNKNOWN);
    facts.network.as_mut().unwrap().handshake_ms = Some(0.06);
    assert_eq!(named(&facts), (Resource::Server, Level::Consistent));
    facts.network.as_mut().unwrap().handshake_ms = Some(18.0);
    assert_eq!(named(&facts), (Resource::Network, Level::Consistent));
    // No CPU is free on the machine shared with the server, so the server may need CPU or be slow.
    facts.network.as_mut().unwrap().handshake_ms = Some(0.06);
    facts.machine_used = Some(1.99);
    facts.run_delay = Some(0.15);
    facts.pressure.cpu = Some(0.7);
    assert_eq!(named(&facts), UNKNOWN);
    (facts.cpu_used, facts.run_delay) = (0.05, Some(0.98));
    assert_eq!(named(&facts), UNKNOWN);
    // Both use CPUs fully.
    (facts.cpu_used, facts.run_delay) = (0.9, Some(0.3));
    assert_eq!(named(&facts), (Resource::Cpu, Level::AtLimit));
    assert!(advice(&facts).contains("other processes use 1.1 CPUs"));
}

#[test]
fn a_server_that_asks_to_slow_down() {
    let mut facts = upload(&[(Phase::Answer, 2.0), (Phase::Pause, 6.0)]);
    facts.throttled_per_s = 30.0;
    assert_eq!(named(&facts), (Resource::Server, Level::AtLimit));
    // Rare refusals have no effect.
    facts.throttled_per_s = 0.5;
    assert_eq!(named(&facts), UNKNOWN);
}

/// Large objects over a path of 25 MB/s with a queue of 50 ms.
pub(crate) fn narrow() -> Facts {
    let mut facts = upload(&[(Phase::Send, 26.0), (Phase::Answer, 5.0), (Phase::Read, 0.3)]);
    facts.operations_per_s = 3.0;
    facts.network.as_mut().unwrap().rtt_ms = Some(45.0);
    facts.network.as_mut().unwrap().send_queue_full = Some(0.8);
    facts
}

#[test]
fn a_narrow_way() {
    assert_eq!(named(&narrow()), (Resource::Network, Level::Consistent));
    // Packet loss instead of a queue.
    let mut facts = narrow();
    facts.network.as_mut().unwrap().rtt_ms = Some(0.3);
    assert_ne!(named(&facts).0, Resource::Network);
    facts.network.as_mut().unwrap().retransmits = Some(0.02);
    assert_eq!(named(&facts), (Resource::Network, Level::Consistent));
    // A full link.
    let mut facts = narrow();
    facts.network.as_mut().unwrap().bytes_per_s = 1.18e8;
    facts.network.as_mut().unwrap().link_bytes_per_s = Some(1.25e8);
    assert_eq!(named(&facts), (Resource::Network, Level::AtLimit));
    // More connections bring more: each one waits, the path is not full.
    let mut facts = narrow();
    facts.curve = points(&[(8.0, 6.0), (16.0, 12.0), (32.0, 23.0)]);
    assert_eq!(named(&facts), (Resource::Latency, Level::Consistent));
    // Bodies that fit into the socket buffer wait there for the answer.
    let mut facts = narrow();
    facts.phases.swap(Phase::Send as usize, Phase::Answer as usize);
    assert_eq!(named(&facts), (Resource::Network, Level::Consistent));
}

#[test]
fn a_narrow_way_down() {
    let mut facts = narrow();
    facts.stores = (true, false);
    facts.phases.swap(Phase::Send as usize, Phase::Receive as usize);
    facts.network.as_mut().unwrap().send_queue_full = Some(0.0);
    facts.curve = points(&[(8.0, 24.8), (16.0, 25.0), (32.0, 24.9)]);
    // ACKs delayed by a slow server look the same.
    assert_eq!(named(&facts), UNKNOWN);
    facts.network.as_mut().unwrap().handshake_ms = Some(41.0);
    assert_eq!(named(&facts), (Resource::Network, Level::Consistent));
    facts.network.as_mut().unwrap().handshake_ms = None;
    facts.network.as_mut().unwrap().retransmits = Some(0.01);
    assert_eq!(named(&facts), (Resource::Network, Level::Consistent));
    // Handshakes are fast: other connections lose segments, and the server sends slowly.
    facts.network.as_mut().unwrap().handshake_ms = Some(0.05);
    assert_eq!(named(&facts), (Resource::Server, Level::Consistent));
    facts.network.as_mut().unwrap().handshake_ms = None;
    // Other traffic of the machine loses segments; the server is remote.
    facts.network.as_mut().unwrap().same_machine = false;
    assert_eq!(named(&facts), UNKNOWN);
}

#[test]
fn a_server_that_reads_or_sends_slowly() {
    let mut facts = upload(&[(Phase::Send, 28.0), (Phase::Answer, 3.0)]);
    facts.network.as_mut().unwrap().peer_window_full = Some(0.9);
    facts.network.as_mut().unwrap().send_queue_full = Some(0.9);
    assert_eq!(named(&facts), (Resource::Server, Level::Consistent));
    let mut facts = upload(&[(Phase::Receive, 28.0), (Phase::Answer, 3.0)]);
    facts.stores = (true, false);
    assert_eq!(named(&facts), (Resource::Server, Level::Consistent));
    facts.curve = points(&[(8.0, 10.0), (16.0, 20.0), (32.0, 39.0)]);
    assert_eq!(named(&facts), (Resource::Latency, Level::Consistent));
}

#[test]
fn threads_that_serve_no_request() {
    // Two threads are blocked reading from a disk at its ceiling: 30 units wait for them, not for the server.
    let mut facts = capped();
    facts.curve = points(&[(8.0, 300.0), (16.0, 318.0), (32.0, 320.0), (64.0, 319.0)]);
    facts.phases[Phase::Read as usize] = 1.8;
    assert_eq!(named(&facts), UNKNOWN);
    facts.pressure.io = Some(0.9);
    assert_eq!(named(&facts), (Resource::Source, Level::Consistent));
    facts.disks = vec![DiskFacts {
        name: "loop4".to_owned(),
        ceilings: vec![Ceiling {
            operations: false,
            direction: Direction::Reads,
            limit: 1.25e8,
            reached: 1.24e8,
            from: "io.max",
        }],
        ..DiskFacts::default()
    }];
    assert_eq!(named(&facts), (Resource::DiskBandwidth, Level::AtLimit));
    // A slow pipe.
    facts.disks.clear();
    facts.foreign = vec![Side::Source];
    assert_eq!(named(&facts), (Resource::Source, Level::Consistent));
}

#[test]
fn memory_is_short() {
    let mut facts = upload(&[(Phase::Room, 20.0), (Phase::Answer, 2.0), (Phase::Send, 1.0)]);
    assert_eq!(named(&facts), (Resource::Own, Level::Consistent));
    // The budget is exhausted because the path is full.
    facts.network = narrow().network;
    facts.phases[Phase::Send as usize] = 6.0;
    assert_eq!(named(&facts), (Resource::Network, Level::Consistent));
}
