//! Words of a verdict: names of resources and levels, signals, the sentence; and the advice: changes that would help, and
//! changes without effect.

use crate::verdict::facts::{CPU_FULL, View};
use crate::verdict::rules::RUN_DELAY;
use crate::verdict::{About, Evidence, Level, Resource, UserLimit, Verdict};
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

/// Advice for a named resource, one or two sentences.
pub(crate) fn advice(v: &View<'_>, resource: Resource, level: Level) -> String {
    format!("{}{}.", helps(v, resource, level), useless(v, resource))
}

/// Name of a resource in a sentence, depending on the kind of facts.
pub(crate) fn named(v: &View<'_>, resource: Resource) -> &'static str {
    match resource {
        Resource::Cpu if v.f.about == About::Command && v.is_one_cpu() => "one CPU",
        Resource::Thread if v.f.about == About::Command => "one thread of the command",
        _ => resource.words(),
    }
}

/// Advice if no resource or several could be named.
pub(crate) fn undetermined(v: &View<'_>, open: &[Resource]) -> String {
    let text = match open {
        [] => "The signals do not determine the limit".to_owned(),
        _ => {
            let words: Vec<&str> = open.iter().map(|resource| named(v, *resource)).collect();
            format!("The signals disagree: it may be {}", listed(&words, "or"))
        }
    };
    let test = match v.f.experiments.is_empty() && v.f.about == About::Transfer {
        true => " --prove would test it.",
        false => "",
    };
    format!("{text}{}.{test}", useless(v, Resource::None))
}

/// Changes without effect, as the end of a sentence.
fn useless(v: &View<'_>, resource: Resource) -> String {
    match &*idle(v, resource) {
        [] => String::new(),
        idle => format!("; {} would change nothing", listed(idle, "and")),
    }
}

fn helps(v: &View<'_>, resource: Resource, level: Level) -> String {
    let would = if level >= Level::AtLimit { "would help" } else { "should help" };
    match resource {
        Resource::Cpu => cpus(v, would),
        Resource::Thread if v.f.jobs_fixed && v.f.jobs < 1.5 && !v.jobs_bring_nothing() => {
            format!("More jobs (-j) {would}")
        }
        Resource::Thread if v.f.about == About::Command => {
            "Only a faster CPU would help, or a command that works in more threads".to_owned()
        }
        Resource::Thread => "Only faster CPUs would help, not more of them".to_owned(),
        Resource::DiskIops => format!("More IOPS {would}{}", set_in(v, true)),
        Resource::DiskBandwidth => format!("More disk bandwidth {would}{}", set_in(v, false)),
        Resource::Network => format!("A faster path to the server {would}"),
        Resource::Server if v.throttled_share() > 0.0 => {
            format!("A server that allows more requests a second {would}")
        }
        Resource::Server => format!("A server that answers more at once {would}"),
        Resource::Lock => "Spreading the entries over more directories should help".to_owned(),
        Resource::Latency if !v.f.jobs_fixed && v.f.jobs >= 0.9 * v.f.jobs_max as f64 => {
            format!("More jobs {would}, beyond what {} allow", "descriptors and memory")
        }
        Resource::Latency => format!("More jobs (-j) {would}, or less latency"),
        Resource::Peer => format!("A faster server, or a faster path to it, {would}"),
        Resource::Source => format!("A faster source {would}"),
        Resource::Target => format!("A faster target {would}"),
        Resource::UserLimit => {
            let most = |limit: &&UserLimit| limit.reached >= 0.95 * limit.limit;
            let option = v.f.limits.iter().find(most).map_or("the limit", |limit| limit.option);
            format!("A higher {option} {would}")
        }
        Resource::Own => format!("More memory (--memory) {would}"),
        Resource::None => "Nothing can be said".to_owned(),
    }
}

fn cpus(v: &View<'_>, would: &str) -> String {
    let f = v.f;
    let others = f.machine_used.map_or(0.0, |all| all - f.cpu_used);
    // A thread that never waits uses one CPU, however many there are.
    let alone = f.about == About::Command && f.thread_used.is_some_and(|used| used >= CPU_FULL);
    let more = if alone && f.run_delay.is_none_or(|delay| delay < RUN_DELAY) {
        format!("A faster CPU {would}, or more CPUs together with more processes")
    } else if f.quota_throttled.is_some_and(|share| share >= 0.1) {
        format!("A larger CPU quota {would}")
    } else if f.stolen.is_some_and(|stolen| stolen >= 0.1 * f.cpus) {
        format!("CPUs that the hypervisor does not share {would}")
    } else if f.machine_cpus.is_some_and(|all| all >= v.allowed() + 0.5) {
        let all = f.machine_cpus.unwrap_or_default();
        format!("More of the machine's {all:.0} CPUs (affinity) {would}")
    } else if f.cpus <= 1.2 && f.jobs_fixed && f.jobs < 1.5 && !v.jobs_bring_nothing() {
        format!("Twice the cores {would}, with more jobs (-j)")
    } else {
        format!("Twice the cores {would}")
    };
    let shared = if others >= 0.25 * v.allowed() {
        format!(" (other processes use {others:.1} CPUs)")
    } else {
        String::new()
    };
    format!("{more}{shared}{}", next_ceiling(v))
}

/// The next ceiling, if it is near.
fn next_ceiling(v: &View<'_>) -> String {
    let ceilings = v.f.disks.iter().flat_map(|disk| {
        let near = disk.ceilings.iter().filter(|of| of.reached >= 0.5 * of.limit);
        near.map(|of| (of.limit / of.reached, of.operations, &disk.name))
    });
    match ceilings.min_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((factor, operations, name)) if factor > 1.05 => {
            let what = if operations { "IOPS" } else { "bandwidth" };
            format!(", until the {what} of {name} limit at {factor:.1} times this rate")
        }
        _ => String::new(),
    }
}

/// File that sets the reached ceiling.
fn set_in(v: &View<'_>, operations: bool) -> String {
    let all = v.f.disks.iter().flat_map(|disk| &disk.ceilings);
    let mut reached = all.filter(|of| of.operations == operations && of.reached >= 0.95 * of.limit);
    reached.next().map(|of| format!(" (the ceiling is set in {})", of.from)).unwrap_or_default()
}

/// Resources with known headroom, of which more would change nothing.
fn idle(v: &View<'_>, resource: Resource) -> Vec<&'static str> {
    use Resource::{Cpu, DiskBandwidth, DiskIops, Latency, Network, Source, Target, Thread};
    let f = v.f;
    let mut idle = Vec::new();
    let cpu_named = matches!(resource, Cpu | Thread);
    if resource == Thread && f.about == About::Command && v.cpu_idle() {
        idle.push("more CPUs");
    }
    if !cpu_named && (v.cpu_idle() || f.refutes(Cpu)) {
        idle.push("more CPUs");
    }
    let disk_named = matches!(resource, DiskIops | DiskBandwidth | Source | Target);
    let relaxed = f.disks.iter().all(|disk| {
        disk.ceilings.iter().all(|of| of.reached <= 0.8 * of.limit)
            && (disk.busy <= 0.6 || cpu_named)
    });
    // With more CPUs the next ceiling counts.
    let next = resource == Cpu && !next_ceiling(v).is_empty();
    let waiting = v.blocked().is_none_or(|share| share > 0.15);
    if !disk_named && !next && !f.disks.is_empty() && relaxed && !waiting {
        idle.push("faster disks");
    }
    let room = f.network.as_ref().is_some_and(|network| {
        let link = network.link_bytes_per_s;
        let slack = link.is_some_and(|link| network.bytes_per_s <= 0.5 * link);
        (slack || v.is_congested() == Some(false)) && !v.is_lossy() && !v.is_link_full()
    });
    // "Bandwidth" without a word is that of the network: not beside that of a disk.
    if !matches!(resource, Network | DiskBandwidth | Resource::None) && room {
        idle.push("more bandwidth");
    }
    if resource == Cpu && f.about == About::Command {
        idle.push("more processes alone");
    }
    if resource != Latency && v.jobs_bring_nothing() {
        idle.push("more jobs");
    }
    idle
}

fn listed(words: &[&str], last: &str) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}
