//! Words of a verdict: names of resources and levels, signals, the sentence.

use super::{Evidence, Level, Resource, Verdict};
use hakobu_core::number::{bytes, grouped};

/// Most signals in the sentence.
const NAMED_MAX: usize = 3;

impl Resource {
    /// All resources.
    pub const ALL: [Resource; 14] = [
        Resource::Cpu,
        Resource::Thread,
        Resource::DiskIops,
        Resource::DiskBandwidth,
        Resource::Network,
        Resource::Server,
        Resource::Lock,
        Resource::Latency,
        Resource::Peer,
        Resource::Source,
        Resource::Target,
        Resource::UserLimit,
        Resource::Own,
        Resource::None,
    ];

    /// Name in JSON: `disk-iops`.
    pub fn name(self) -> &'static str {
        self.both().0
    }

    /// Name in a sentence: `the CPU`.
    pub fn words(self) -> &'static str {
        self.both().1
    }

    fn both(self) -> (&'static str, &'static str) {
        match self {
            Resource::Cpu => ("cpu", "the CPU"),
            Resource::Thread => ("thread", "one thread"),
            Resource::DiskIops => ("disk-iops", "the disk's operations"),
            Resource::DiskBandwidth => ("disk-bandwidth", "the disk's bandwidth"),
            Resource::Network => ("network", "the network"),
            Resource::Server => ("server", "the server"),
            Resource::Lock => ("lock", "a lock in the kernel"),
            Resource::Latency => ("latency", "latency"),
            Resource::Peer => ("peer", "waiting for the other side"),
            Resource::Source => ("source", "the source"),
            Resource::Target => ("target", "the target"),
            Resource::UserLimit => ("user-limit", "a limit that was set"),
            Resource::Own => ("self", "hakobu itself"),
            Resource::None => ("none", "nothing that can be named"),
        }
    }
}

impl Level {
    /// All levels, least certain first.
    pub const ALL: [Level; 4] =
        [Level::NotDetermined, Level::Consistent, Level::AtLimit, Level::Proven];

    /// Name in JSON: `at-limit`.
    pub fn name(self) -> &'static str {
        match self {
            Level::NotDetermined => "not-determined",
            Level::Consistent => "consistent",
            Level::AtLimit => "at-limit",
            Level::Proven => "proven",
        }
    }
}

/// Words for a level before its evidence: `at the limit of`.
pub fn level_words(level: Level) -> &'static str {
    match level {
        Level::NotDetermined => "not determined",
        Level::Consistent => "consistent with",
        Level::AtLimit => "at the limit of",
        Level::Proven => "proven",
    }
}

/// The verdict with its evidence in one sentence, and one or two sentences of advice.
pub fn sentence(verdict: &Verdict) -> String {
    let named: Vec<String> = verdict.evidence.iter().take(NAMED_MAX).map(words).collect();
    let evidence = named.join(", ");
    let what = match (verdict.resource, evidence.is_empty()) {
        (Resource::None, true) => "The limit is not determined.".to_owned(),
        (Resource::None, false) => format!("The limit is not determined ({evidence})."),
        _ => format!("Limited by {} ({}: {evidence}).", verdict.named, level_words(verdict.level)),
    };
    format!("{what} {}", verdict.advice)
}

/// Words for a signal: `1.98 of 2 CPUs used`.
pub fn words(of: &Evidence) -> String {
    let value = measure(of, of.value);
    let limit = measure(of, of.limit);
    let name = &of.of;
    match &*of.signal {
        "cpu_used_cpus" => format!("{value} of {limit} CPUs used"),
        "machine_used_cpus" => format!("{value} of {limit} used by all processes"),
        "cpu_busy_share" => format!("{name} {value} busy"),
        "stolen_cpus" => format!("{value} CPUs taken away by the hypervisor"),
        "run_delay_share" if !name.is_empty() => {
            format!("{name}'s threads waited {value} of their time for a CPU")
        }
        "run_delay_share" => format!("{value} of runnable time waiting"),
        "cpu_pressure_share" => format!("tasks waiting for CPUs {value} of the time"),
        "quota_throttled_share" => format!("{value} of the quota's periods throttled"),
        "thread_used_cpus" => format!("{value} of a CPU used by one thread"),
        "blocked_share" => format!("{value} of the threads' time blocked"),
        "io_pressure_share" => format!("tasks waiting for I/O {value} of the time"),
        "memory_pressure_share" => format!("tasks waiting for memory {value} of the time"),
        "io_blocked_tasks" => format!("{value} tasks blocked on I/O"),
        "iowait_share" => format!("CPUs waiting for I/O {value} of the time"),
        "lock_waits_share" => format!("threads waiting for locks in {value} of samples"),
        "disk_read_iops" => format!("{value} of {limit} reads a second of {name}"),
        "disk_write_iops" => format!("{value} of {limit} writes a second of {name}"),
        "disk_iops" => format!("{value} of {limit} IOPS"),
        "disk_read_bytes_per_s" => format!("{value} of {limit} read from {name}"),
        "disk_write_bytes_per_s" => format!("{value} of {limit} written to {name}"),
        "disk_bytes_per_s" => format!("{value} of {limit} read and written"),
        "disk_busy_share" if name.is_empty() => format!("disk {value} busy"),
        "disk_busy_share" => format!("{name} busy {value} of the time"),
        "disks_busy_share" if of.value < 0.05 => "disks idle".to_owned(),
        "disks_busy_share" => format!("the busiest disk {value} busy"),
        "disk_queue" => format!("{value} requests at {name}"),
        "dirty_bytes" => format!("{value} of {limit} dirty"),
        "link_bytes_per_s" => format!("{value} of the link's {limit}"),
        "peer_wait_share" => format!("asleep with a connection in {value} of samples"),
        "traffic_bytes_per_s" => format!("{value} over the network"),
        "rtt_ms" => format!("round trips {value}, at least {limit}"),
        "handshake_ms" => format!("handshakes {value}, round trips at least {limit}"),
        "retransmits_share" => format!("{value} of segments sent again"),
        "send_queue_full_share" => format!("bytes waiting to be sent {value} of the time"),
        "peer_window_full_share" => format!("the server's window full {value} of the time"),
        "backlog_bytes" => format!("{value} queued"),
        "answer_ms" => format!("answers after {value}, at best {limit}"),
        "throttled_share" => format!("{value} of answers asking to slow down"),
        "user_limit_per_s" | "user_limit_bytes_per_s" => format!("{value} of {limit} by {name}"),
        "jobs_waiting_share" => format!("each job waits {value} of its time"),
        "jobs_elasticity" if of.value < 0.0 => "no gain from more jobs".to_owned(),
        "jobs_elasticity" => format!("{value} more for 100 % more jobs"),
        "experiment_elasticity" => {
            format!("{value} of the change of {name} showed in the throughput")
        }
        "idle_units_share" => format!("{value} of the units' time in idle"),
        "told_runs" => format!("its own verdict in {value} of {limit} runs"),
        other => {
            match other.strip_prefix("phase_").and_then(|phase| phase.strip_suffix("_share")) {
                Some(phase) => format!("{value} of the units' time in {phase}"),
                // A signal of another version, from a record.
                None if name.is_empty() => format!("{} {value}", other.replace('_', " ")),
                None => format!("{} of {name} {value}", other.replace('_', " ")),
            }
        }
    }
}

/// Formats a value with the unit in the signal's name.
pub fn measure(of: &Evidence, value: f64) -> String {
    let signal = &*of.signal;
    if !value.is_finite() {
        return "?".to_owned();
    }
    if signal.ends_with("_share") || signal.ends_with("_elasticity") {
        let percent = value * 100.0;
        let digits = usize::from(percent != 0.0 && percent.abs() < 1.0);
        return format!("{percent:.digits$} %");
    }
    if signal.ends_with("_bytes_per_s") {
        return format!("{}/s", bytes(value.max(0.0) as u64));
    }
    if signal.ends_with("bytes") {
        return bytes(value.max(0.0) as u64);
    }
    if signal.ends_with("_ms") {
        return format!("{} ms", short(value));
    }
    short(value)
}

/// Formats at least three digits, without trailing zeros.
fn short(value: f64) -> String {
    if value.abs() >= 100.0 {
        let whole = grouped(value.abs().round() as u64);
        return if value < 0.0 { format!("-{whole}") } else { whole };
    }
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
