//! Advice from the facts: changes that would help, and changes without effect.

use super::thresholds::RUN_DELAY;
use super::view::{CPU_FULL, View};
use super::{About, Level, Resource, UserLimit};

/// Advice for a named resource, one or two sentences.
pub(super) fn advice(v: &View<'_>, resource: Resource, level: Level) -> String {
    format!("{}{}.", helps(v, resource, level), useless(v, resource))
}

/// Name of a resource in a sentence, depending on the kind of facts.
pub(super) fn named(v: &View<'_>, resource: Resource) -> &'static str {
    match resource {
        Resource::Cpu if v.f.about == About::Command && v.is_one_cpu() => "one CPU",
        Resource::Thread if v.f.about == About::Command => "one thread of the command",
        _ => resource.words(),
    }
}

/// Advice if no resource or several could be named.
pub(super) fn undetermined(v: &View<'_>, open: &[Resource]) -> String {
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
