//! Converts the record of a run to the facts for its verdict.

use super::ends::{End, Ends};
use super::record::{Mark, Record};
use hakobu_core::limit::Controls;
use hakobu_core::meter::WireCounts;
use hakobu_explain::ceilings::Ceilings;
use hakobu_explain::sample::Rates;
use hakobu_explain::tune::Medium;
use hakobu_explain::verdict::{DiskFacts, Facts, NetworkFacts, Point, Side, UserLimit};
use hakobu_sys::disk::{self, BlockDevice};

/// The constant facts of a run.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub ends: Ends,
    /// Whether the user fixed the number of jobs.
    pub jobs_fixed: bool,
    /// `--bwlimit`.
    pub bytes_per_s_max: Option<u64>,
    /// `--iops-limit`, `--rps-limit`.
    pub operations_per_s_max: Option<u64>,
}

/// Returns the facts of a run; empty with fewer than two samples. `curve` is goodput by number of jobs.
pub(super) fn facts(
    subject: &Subject,
    controls: &Controls,
    record: &Record,
    ceilings: &Ceilings,
    curve: &[(f64, f64)],
) -> Facts {
    let Some((from, to)) = record.steady() else { return Facts::default() };
    let span_s = (to.at - from.at).as_secs_f64();
    let rates = Rates::between(&from.sample, &to.sample);
    let per_s = |from: u64, to: u64| to.saturating_sub(from) as f64 / span_s;
    let ends = &subject.ends;
    let ticks = to.sums.ticks.saturating_sub(from.sums.ticks).max(1) as f64;
    let samples = to.sums.samples.saturating_sub(from.sums.samples).max(1) as f64;
    let (before, after) = (&from.counts, &to.counts);
    let mut phases = [0.0; hakobu_core::meter::PHASES];
    for (mean, (from, to)) in phases.iter_mut().zip(from.sums.phases.iter().zip(to.sums.phases)) {
        *mean = to.saturating_sub(*from) as f64 / ticks;
    }
    let looks = to.sums.looks.saturating_sub(from.sums.looks);
    let locked = to.sums.locked.saturating_sub(from.sums.locked);
    let allowed = &*ceilings.limits.affinity;
    let operations_per_s = per_s(before.operations, after.operations);
    let bytes_per_s = per_s(before.bytes, after.bytes);
    Facts {
        span_s,
        cpus: ceilings.limits.cpus(),
        cpu_used: rates.process.cpu(),
        blocked: Some(to.sums.blocked.saturating_sub(from.sums.blocked) as f64 / samples),
        thread_used: rates.process.busiest.map(|(_, used)| used),
        run_delay: rates.process.run_delay,
        quota_throttled: rates.quota_throttled,
        disks: disks(ends, ceilings, &rates, (from, to), samples),
        network: ends.has_store().then(|| network(ends, &rates, &from.wire, &to.wire)),
        phases,
        jobs: to.sums.jobs.saturating_sub(from.sums.jobs) as f64 / ticks,
        jobs_fixed: subject.jobs_fixed,
        jobs_max: controls.gate.jobs_max(),
        curve: curve.iter().map(|(jobs, rate)| Point { jobs: *jobs, rate: *rate }).collect(),
        bytes_per_s,
        operations_per_s,
        answer_min_ms: to.wire.answer_least_us.map(|us| us as f64 / 1e3),
        throttled_per_s: per_s(before.throttled, after.throttled)
            + per_s(before.timed_out, after.timed_out),
        limits: limits(subject, bytes_per_s, operations_per_s),
        foreign: foreign(ends),
        stores: (ends.is_store(Side::Source), ends.is_store(Side::Target)),
        lock_waits: (looks > 0).then(|| locked as f64 / looks as f64),
        ..Facts::of_machine(&rates, allowed)
    }
}

/// Returns the limits that the user set.
fn limits(subject: &Subject, bytes_per_s: f64, operations_per_s: f64) -> Vec<UserLimit> {
    let operations = if subject.ends.has_store() { "--rps-limit" } else { "--iops-limit" };
    [
        ("--bwlimit", subject.bytes_per_s_max, bytes_per_s),
        (operations, subject.operations_per_s_max, operations_per_s),
    ]
    .into_iter()
    .filter_map(|(option, limit, reached)| {
        Some(UserLimit { option, limit: limit? as f64, reached })
    })
    .collect()
}

fn foreign(ends: &Ends) -> Vec<Side> {
    let mut sides: Vec<Side> =
        ends.0.iter().filter(|end| end.medium == Medium::Foreign).map(|end| end.side).collect();
    sides.dedup();
    sides
}

/// Returns the disks below the local ends, each once, with those that they consist of.
fn disks(
    ends: &Ends,
    limits: &Ceilings,
    rates: &Rates,
    (from, to): (&Mark, &Mark),
    samples: f64,
) -> Vec<DiskFacts> {
    let dirty = (to.sums.dirty_bytes - from.sums.dirty_bytes) / samples;
    let threshold = to.sample.memory.dirty_threshold_bytes;
    let span_s = (to.at - from.at).as_secs_f64();
    let mut found: Vec<(BlockDevice, Vec<&End>)> = Vec::new();
    for end in &ends.0 {
        let Some(device) = end.dev.and_then(disk::below) else { continue };
        let parts = disk::made_of(device.dev);
        for device in std::iter::once(device).chain(parts) {
            match found.iter_mut().find(|(known, _)| *known == device) {
                Some((_, ends)) => ends.push(end),
                None => found.push((device, vec![end])),
            }
        }
    }
    let facts = found.into_iter().filter_map(|(device, ends)| {
        let rates = rates.disks.iter().find(|rates| rates.dev == device.dev)?;
        let mut sides: Vec<Side> = ends.iter().map(|end| end.side).collect();
        sides.dedup();
        Some(DiskFacts {
            sides,
            rotating: ends.iter().any(|end| end.medium == hakobu_explain::tune::Medium::Rotating),
            ceilings: limits.reached(&from.served, &to.served, span_s, rates),
            dirty_bytes: threshold.map(|threshold| (dirty, threshold as f64)),
            ..DiskFacts::of(rates)
        })
    });
    facts.collect()
}

/// Returns the path to the stores: the interface with most traffic, and the state of connections.
fn network(ends: &Ends, rates: &Rates, from: &WireCounts, to: &WireCounts) -> NetworkFacts {
    let same_machine =
        ends.0.iter().filter(|end| end.is_store).all(|end| is_this_machine(&end.name));
    let link =
        rates.links.iter().filter(|link| (link.name == "lo") == same_machine).max_by(|a, b| {
            (a.rx_bytes_per_s + a.tx_bytes_per_s).total_cmp(&(b.rx_bytes_per_s + b.tx_bytes_per_s))
        });
    let grown = |from: u64, to: u64| to.saturating_sub(from) as f64;
    let share = |part: f64, whole: f64| (whole > 0.0).then_some((part / whole).clamp(0.0, 1.0));
    let looks = grown(from.looks, to.looks);
    let busy_us = grown(from.busy_us, to.busy_us);
    let handshakes = grown(from.handshakes, to.handshakes);
    let handshake_us = grown(from.handshake_us, to.handshake_us);
    NetworkFacts {
        bytes_per_s: link.map_or(0.0, |link| link.rx_bytes_per_s.max(link.tx_bytes_per_s)),
        link_bytes_per_s: link.and_then(|link| link.bits_per_s).map(|bits| bits as f64 / 8.0),
        // The machine's fraction counts if some of it is ours. Only the machine's counter shows retransmissions of a
        // store, and only if the store is on this machine.
        retransmits: match ends.is_store(Side::Source) || to.retransmits > from.retransmits {
            true => rates.retransmits,
            false => rates.retransmits.map(|_| 0.0),
        },
        rtt_ms: (looks > 0.0).then(|| grown(from.rtt_us, to.rtt_us) / looks / 1e3),
        rtt_min_ms: to.rtt_least_us.map(|us| us as f64 / 1e3),
        handshake_ms: (handshakes > 0.0).then(|| handshake_us / handshakes / 1e3),
        same_machine,
        peer_window_full: share(grown(from.receiver_us, to.receiver_us), busy_us),
        send_queue_full: share(grown(from.unsent, to.unsent), looks),
        ..NetworkFacts::default()
    }
}

/// Returns whether an endpoint is on this machine: by its name, without a request.
fn is_this_machine(endpoint: &str) -> bool {
    let host = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    let host = host.split('/').next().unwrap_or_default();
    ["localhost", "127.", "[::1]"].iter().any(|own| host.starts_with(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_on_this_machine() {
        for (endpoint, own) in [
            ("http://127.0.0.1:9000/bucket", true),
            ("https://localhost/b", true),
            ("http://[::1]:9000/b", true),
            ("https://s3.eu-central-1.amazonaws.com/b", false),
            ("http://10.0.0.1:9000/localhost", false),
        ] {
            assert_eq!(is_this_machine(endpoint), own, "{endpoint}");
        }
    }
}
