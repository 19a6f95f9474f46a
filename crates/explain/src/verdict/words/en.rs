//! Verdicts in English.

use crate::verdict::words::{
    Clause, VerdictWords, WINDOWS_TOLD, against_limit, measure, percent, short,
};
use crate::verdict::{
    About, Advice, BottleneckName, CpuChange, Evidence, Help, Level, NextCeiling, Resource,
    Statement, Useless, Verdict,
};

pub(super) struct English;

impl VerdictWords for English {
    fn resource(&self, of: Resource) -> &'static str {
        match of {
            Resource::Cpu => "CPU",
            Resource::Thread => "one thread",
            Resource::DiskIops => "disk IOPS",
            Resource::DiskBandwidth => "disk bandwidth",
            Resource::Network => "network",
            Resource::Server => "server",
            Resource::Lock => "kernel lock",
            Resource::Latency => "latency",
            Resource::Peer => "remote side",
            Resource::Source => "source",
            Resource::Target => "target",
            Resource::UserLimit => "rate limit",
            Resource::Own => "hakobu's memory budget",
            Resource::None => "unknown",
        }
    }

    fn level(&self, of: Level) -> &'static str {
        match of {
            Level::NotDetermined => "unknown",
            Level::Consistent => "likely",
            Level::AtLimit => "at its limit",
            Level::Proven => "proven by experiment",
        }
    }

    fn statement(&self, of: Statement) -> &'static str {
        match of {
            Statement::AllUsableCpusUsed => "uses all of its CPUs",
            Statement::MostUsableCpusUsed => "uses most of its CPUs",
            Statement::UsableCpusUnused => "leaves CPUs unused",
            Statement::NoCpuIdle => "no CPU idle",
            Statement::CpusHardlyIdle => "CPUs hardly idle",
            Statement::CpusIdle => "CPUs available",
            Statement::OneCpuNeverIdle => "one CPU saturated",
            Statement::OneCpuHardlyIdle => "one CPU nearly saturated",
            Statement::EachCpuIdleAtTimes => "no CPU saturated",
            Statement::ThreadsWaitForCpus => "threads wait for CPUs",
            Statement::ThreadsWaitForCpusAtTimes => "threads wait for CPUs at times",
            Statement::ThreadsGetCpus => "threads do not wait for CPUs",
            Statement::CpuPressure => "tasks wait for CPUs",
            Statement::SomeCpuPressure => "tasks wait for CPUs at times",
            Statement::LittleCpuPressure => "little CPU pressure",
            Statement::QuotaThrottles => "throttled by the CPU quota",
            Statement::QuotaThrottlesAtTimes => "throttled by the CPU quota at times",
            Statement::QuotaFree => "not throttled",
            Statement::CpusStolen => "CPU time stolen by the hypervisor",
            Statement::FewCpusStolen => "little CPU time stolen",
            Statement::ThreadFull => "one thread saturated",
            Statement::NoThreadFull => "no thread saturated",
            Statement::ThreadsBlocked => "threads blocked in the kernel",
            Statement::ThreadsBlockedAtTimes => "threads blocked at times",
            Statement::ThreadsRarelyBlocked => "threads rarely blocked",
            Statement::IoPressure => "tasks wait for I/O",
            Statement::SomeIoPressure => "tasks wait for I/O at times",
            Statement::LittleIoPressure => "little I/O pressure",
            Statement::TasksBlocked => "tasks blocked on I/O",
            Statement::FewTasksBlocked => "few tasks blocked on I/O",
            Statement::IoWait => "CPUs wait for I/O",
            Statement::LittleIoWait => "little iowait",
            Statement::MemoryPressure => "tasks wait for memory",
            Statement::SomeMemoryPressure => "tasks wait for memory at times",
            Statement::LittleMemoryPressure => "little memory pressure",
            Statement::Traffic => "network in use",
            Statement::NoTraffic => "almost no network traffic",
            Statement::WaitsForPeer => "waits for the remote side",
            Statement::WaitsForPeerAtTimes => "waits for the remote side at times",
            Statement::NeverWaitsForPeer => "does not wait for the remote side",
            Statement::JobsWait => "jobs wait",
            Statement::JobsWaitAtTimes => "jobs wait at times",
            Statement::JobsHardlyWait => "jobs hardly wait",
            Statement::LockContended => "threads wait for a lock",
            Statement::LockContendedAtTimes => "threads wait for a lock at times",
            Statement::LocksFree => "no lock contention",
            Statement::DiskNeverIdle => "disk saturated",
            Statement::DiskHardlyIdle => "disk nearly saturated",
            Statement::DiskHasPauses => "disk not saturated",
            Statement::DiskQueues => "requests queue at the disk",
            Statement::DiskQueueShort => "short disk queue",
            Statement::WritebackThrottles => "writers wait for writeback",
            Statement::WritebackFree => "writers do not wait",
            Statement::LinkFull => "link saturated",
            Statement::LinkHasRoom => "link not saturated",
            Statement::RoundTripsLong => "packets queue on the path",
            Statement::RoundTripsLonger => "round trips slightly longer than the minimum",
            Statement::RoundTripsShort => "no queueing on the path",
            Statement::SegmentsLost => "segments lost",
            Statement::FewSegmentsLost => "almost no segments lost",
            Statement::SendQueueBacklog => "send-queue backlog",
            Statement::SendQueueBacklogAtTimes => "send-queue backlog at times",
            Statement::NoSendQueueBacklog => "no send-queue backlog",
            Statement::ServerReadsNothing => "server does not read",
            Statement::ServerReadsSlowly => "server reads slowly",
            Statement::ServerReadsSlowlyAtTimes => "server reads slowly at times",
            Statement::ServerReads => "server keeps up",
            Statement::PacketsQueued => "packets queue at the interface",
            Statement::FewPacketsQueued => "few packets queue at the interface",
            Statement::NoPacketsQueued => "no packets queue",
            Statement::RequestsQueueAtServer => "requests queue at the server",
            Statement::ResponsesAwaitOwnLimit => "includes waits for the limit that was set",
            Statement::ResponsesSlower => "responses slower than the fastest",
            Statement::ResponsesFast => "latency unchanged",
            Statement::ServerThrottles => "throttling (503 or 429)",
            Statement::ServerThrottlesAtTimes => "throttling (503 or 429) at times",
            Statement::NoThrottling => "no throttling (503 or 429)",
            Statement::MoreJobsGain => "more jobs scale",
            Statement::MoreJobsGainLittle => "little gain from more jobs",
            Statement::MoreJobsNoGain => "no gain from more jobs",
            Statement::IsBottleneck => "it is the bottleneck",
            Statement::IsPartlyBottleneck => "partly the bottleneck",
            Statement::IsNoBottleneck => "not the bottleneck",
            Statement::CeilingReached => "limit reached",
            Statement::BelowCeiling => "below its limit",
            Statement::LimitReached => "set limit reached",
            Statement::BelowLimit => "below the set limit",
            Statement::MostOfTheTime => "most of the time",
            Statement::PartOfTheTime => "part of the time",
            Statement::HardlyEver => "hardly ever",
        }
    }

    fn signal(&self, of: &Evidence) -> String {
        let name = &of.of;
        match &*of.signal {
            "cpu_used_cpus" => "CPUs used".to_owned(),
            "machine_used_cpus" => "CPUs used by all processes".to_owned(),
            "cpu_busy_share" => format!("busiest CPU ({name})"),
            "stolen_cpus" => "CPUs stolen by the hypervisor".to_owned(),
            "run_delay_share" => "runnable time spent waiting for a CPU".to_owned(),
            "cpu_pressure_share" => "CPU pressure (PSI)".to_owned(),
            "quota_throttled_share" => "throttled periods of the CPU quota".to_owned(),
            "thread_used_cpus" => "busiest thread, CPUs".to_owned(),
            "blocked_share" => "time of threads blocked".to_owned(),
            "io_pressure_share" => "I/O pressure (PSI)".to_owned(),
            "memory_pressure_share" => "memory pressure (PSI)".to_owned(),
            "io_blocked_tasks" => "tasks blocked on I/O".to_owned(),
            "iowait_share" => "iowait".to_owned(),
            "lock_waits_share" => "samples with a thread waiting for a lock".to_owned(),
            "disk_read_iops" => format!("reads per second, {name}"),
            "disk_write_iops" => format!("writes per second, {name}"),
            "disk_iops" => format!("IOPS, {name}"),
            "disk_read_bytes_per_s" => format!("read throughput, {name}"),
            "disk_write_bytes_per_s" => format!("write throughput, {name}"),
            "disk_bytes_per_s" => format!("throughput, {name}"),
            "disk_busy_share" => format!("utilization, {name}"),
            "disks_busy_share" => "utilization of the busiest disk".to_owned(),
            "disk_queue" => format!("requests in flight, {name}"),
            "dirty_bytes" => "dirty pages".to_owned(),
            "link_bytes_per_s" | "far_link_bytes_per_s" => "link throughput".to_owned(),
            "link_wait_share" => "time of the sending end waiting for the link".to_owned(),
            "far_used_cpus" => format!("CPUs used on {name}"),
            "ssh_used_cpus" if name.is_empty() => "CPUs used by ssh".to_owned(),
            "ssh_used_cpus" => format!("CPUs used by ssh on {name}"),
            "peer_wait_share" => "samples asleep on a connection".to_owned(),
            "traffic_bytes_per_s" => "network traffic".to_owned(),
            "rtt_ms" => "round-trip time".to_owned(),
            "handshake_ms" => "TCP handshake time".to_owned(),
            "retransmits_share" => "segments retransmitted".to_owned(),
            "send_queue_full_share" => "time with data in the send queue".to_owned(),
            "peer_window_full_share" => "time with the server's window full".to_owned(),
            "backlog_bytes" => "backlog of the network interface".to_owned(),
            "answer_ms" => "response latency".to_owned(),
            "throttled_share" => "requests throttled (503, 429)".to_owned(),
            "user_limit_per_s" | "user_limit_bytes_per_s" => format!("rate under {name}"),
            "jobs_waiting_share" => "time of jobs spent waiting".to_owned(),
            "jobs_elasticity" => "gain from twice the jobs".to_owned(),
            "experiment_elasticity" => format!("share of a change in {} followed", changed(name)),
            "idle_units_share" => "workers idle".to_owned(),
            "told_runs" => "runs with this verdict".to_owned(),
            other => match other.strip_prefix("phase_").and_then(|it| it.strip_suffix("_share")) {
                Some(phase) => format!("busy workers {}", doing(phase)),
                // A signal of another version, from a record.
                None if name.is_empty() => other.replace('_', " "),
                None => format!("{}, {name}", other.replace('_', " ")),
            },
        }
    }

    fn evidence(&self, of: &Evidence) -> String {
        let value = measure(of, of.value);
        let (share, limit) = against_limit(of);
        let name = &of.of;
        match &*of.signal {
            "cpu_used_cpus" => format!("{share} of {limit} {} used", cpu_noun(&limit)),
            "machine_used_cpus" => {
                format!("{share} of {limit} {} used by all processes", cpu_noun(&limit))
            }
            "cpu_busy_share" => format!("{name} {value} busy"),
            "stolen_cpus" => format!("{value} CPUs stolen by the hypervisor"),
            "run_delay_share" => format!("runnable threads waited {value} of the time"),
            "cpu_pressure_share" => format!("tasks waited for a CPU {value} of the time"),
            "quota_throttled_share" => format!("CPU quota throttled {value} of its periods"),
            "thread_used_cpus" => {
                format!("busiest thread used {} of a CPU", percent(of.value))
            }
            "blocked_share" => format!("threads were blocked {value} of the time"),
            "io_pressure_share" => format!("tasks waited for I/O {value} of the time"),
            "memory_pressure_share" => format!("tasks waited for memory {value} of the time"),
            "io_blocked_tasks" => format!("{value} tasks blocked on I/O"),
            "iowait_share" => format!("iowait {value}"),
            "lock_waits_share" => format!("threads waited for a lock in {value} of samples"),
            "disk_read_iops" => format!("{share} of {limit} reads/s on {name}"),
            "disk_write_iops" => format!("{share} of {limit} writes/s on {name}"),
            "disk_iops" if name.is_empty() => format!("{share} of {limit} IOPS"),
            "disk_iops" => format!("{share} of {limit} IOPS on {name}"),
            "disk_read_bytes_per_s" => format!("{share} of {limit} read from {name}"),
            "disk_write_bytes_per_s" => format!("{share} of {limit} written to {name}"),
            "disk_bytes_per_s" if name.is_empty() => format!("{share} of {limit}"),
            "disk_bytes_per_s" => format!("{share} of {limit} on {name}"),
            "disk_busy_share" if name.is_empty() => format!("disk {value} busy"),
            "disk_busy_share" => format!("{name} {value} busy"),
            "disks_busy_share" if of.value < 0.05 => "disks idle".to_owned(),
            "disks_busy_share" => format!("busiest disk {value} busy"),
            "disk_queue" => format!("{value} requests in flight on {name}"),
            "dirty_bytes" => format!("{share} of {limit} of dirty pages"),
            "link_bytes_per_s" => format!("link at {share} of {limit}"),
            "far_link_bytes_per_s" if of.value < WINDOWS_TOLD * of.limit => {
                format!("{value} over the link")
            }
            "far_link_bytes_per_s" => {
                format!("{share} of {limit} that ssh's windows allow in the round trip")
            }
            "link_wait_share" => format!("the sending end waited for it {value} of the time"),
            "far_used_cpus" => format!("{share} of {limit} {} used on {name}", cpu_noun(&limit)),
            "ssh_used_cpus" if name.is_empty() => {
                format!("ssh used {} of a CPU", percent(of.value))
            }
            "ssh_used_cpus" => format!("ssh on {name} used {} of a CPU", percent(of.value)),
            "peer_wait_share" => format!("asleep on a connection in {value} of samples"),
            "traffic_bytes_per_s" => format!("{value} of network traffic"),
            "rtt_ms" => format!("round trips took {value}, minimum {limit}"),
            "handshake_ms" => format!("TCP handshakes took {value}, minimum {limit}"),
            "retransmits_share" => format!("{value} of segments retransmitted"),
            "send_queue_full_share" => format!("data queued for sending {value} of the time"),
            "peer_window_full_share" => format!("server's window full {value} of the time"),
            "backlog_bytes" => format!("{value} queued at the network interface"),
            "answer_ms" => format!("responses took {value}, fastest {limit}"),
            "throttled_share" => format!("{value} of requests throttled"),
            "user_limit_per_s" => format!("{share} of {limit} per second under {name}"),
            "user_limit_bytes_per_s" => format!("{share} of {limit} under {name}"),
            "jobs_waiting_share" => format!("each job waited {value} of its time"),
            "jobs_elasticity" if of.value <= 0.005 => "no gain from more jobs".to_owned(),
            "jobs_elasticity" => format!("twice the jobs were {value} faster"),
            "experiment_elasticity" => {
                format!("throughput followed {value} of a change in {}", changed(name))
            }
            "idle_units_share" => format!("workers were idle {value} of the time"),
            "told_runs" => format!("reported by {value} of {limit} runs"),
            other => match other.strip_prefix("phase_").and_then(|it| it.strip_suffix("_share")) {
                Some("limit") => format!("workers were throttled {value} of the time"),
                Some(phase) => format!("workers spent {value} of their time {}", doing(phase)),
                None => format!("{} {value}", self.signal(of)),
            },
        }
    }

    fn clause(&self, of: &Clause<'_>, about: About) -> String {
        let who = match about {
            About::Transfer => "hakobu",
            About::Cell => "the tool",
            About::Command => "the command",
        };
        match of {
            Clause::OwnCpus { used, of } => format!("{} of {} in use", short(*used), short(*of)),
            Clause::Cpus { used, of, others: None } => {
                format!("{who} used {} of {} CPUs", short(*used), short(*of))
            }
            Clause::Cpus { used, of, others: Some(others) } => {
                let (used, of, others) = (short(*used), short(*of), short(*others));
                format!("{who} used {used} of {of} CPUs, other processes {others}")
            }
            Clause::Phases { idle, phases, its } => {
                let whose = if *its { "its " } else { "" };
                let of_time = |at| if at == 0 && idle.is_none() { " of their time" } else { "" };
                let each = phases.iter().enumerate().map(|(at, (phase, part))| {
                    format!("{}{} {}", percent(*part), of_time(at), doing(phase))
                });
                let spent = list(each, "and");
                match idle.map(percent) {
                    None => format!("{whose}workers spent {spent}"),
                    Some(idle) if phases.is_empty() => {
                        format!("{whose}workers were idle {idle} of the time")
                    }
                    Some(idle) => {
                        format!("{whose}workers were idle {idle} of the time and spent {spent}")
                    }
                }
            }
            Clause::Experiment { changed, factor, effect } => {
                let what = match changed {
                    Resource::Latency => "jobs",
                    other => self::changed(other.name()).trim_start_matches("the "),
                };
                let factor = match *factor {
                    0.5 => format!("half the {what}"),
                    factor => format!("{factor:.1} times the {what}"),
                };
                format!("{factor} gave {} of the throughput", percent(*effect))
            }
            Clause::Limit(of) => {
                let (share, limit) = against_limit(of);
                match &*of.signal {
                    "user_limit_bytes_per_s" => format!("{share} of {limit}"),
                    _ if of.of == "--rps-limit" => {
                        format!("{share} of {limit} requests per second")
                    }
                    _ => format!("{share} of {limit} operations per second"),
                }
            }
            Clause::Signal(of) => self.evidence(of),
        }
    }

    fn bottleneck(&self, of: &BottleneckName) -> String {
        match of {
            BottleneckName::Resource(resource) => self.resource(*resource).to_owned(),
            BottleneckName::OneCpu => "one CPU".to_owned(),
            BottleneckName::CommandThread => "one thread of the command".to_owned(),
            BottleneckName::Option(option) => option.clone(),
            BottleneckName::Link => "network link".to_owned(),
            BottleneckName::CpuOf(host) => format!("CPU of {host}"),
            BottleneckName::Ssh(place) if place.is_empty() => "encryption by ssh".to_owned(),
            BottleneckName::Ssh(host) => format!("encryption by ssh on {host}"),
        }
    }

    fn identified(&self, verdict: &Verdict, clauses: &[String], advice: &str) -> String {
        let what = self.bottleneck(&verdict.named);
        let evidence = clauses.join("; ");
        match verdict.level {
            Level::Consistent => {
                let article = match &verdict.named {
                    BottleneckName::Resource(
                        Resource::Cpu
                        | Resource::Network
                        | Resource::Server
                        | Resource::Peer
                        | Resource::Source
                        | Resource::Target
                        | Resource::UserLimit,
                    ) => "the ",
                    BottleneckName::Link | BottleneckName::Ssh(_) => "the ",
                    BottleneckName::Resource(Resource::Lock) => "a ",
                    _ => "",
                };
                format!("Bottleneck: likely {article}{what} ({evidence}). {advice}")
            }
            Level::Proven => {
                format!("Bottleneck: {what}, proven by experiment ({evidence}). {advice}")
            }
            // That it is at its limit is what the evidence says: 1.98 of 2.
            Level::AtLimit | Level::NotDetermined => {
                format!("Bottleneck: {what} ({evidence}). {advice}")
            }
        }
    }

    fn too_little(&self, clauses: &[String], advice: &str) -> String {
        match clauses.join("; ") {
            none if none.is_empty() => format!("Bottleneck: unknown. {advice}"),
            seen => format!("Bottleneck: unknown. {advice} {}.", sentence_start(&seen)),
        }
    }

    fn unknown(&self, clauses: &[String], advice: &str) -> String {
        match clauses.join("; ") {
            none if none.is_empty() => format!("Bottleneck: unknown. {advice}"),
            evidence => format!("Bottleneck: unknown. {}. {advice}", sentence_start(&evidence)),
        }
    }

    fn advice(&self, of: &Advice, open: &[Resource]) -> String {
        let useless = list(of.useless.iter().map(|of| useless(*of)), "and");
        let help = match &of.help {
            Help::TooLittleWork => return "There was too little work to judge.".to_owned(),
            Help::CommandTooShort => {
                return "The command was too short to judge: that takes 2 seconds or more."
                    .to_owned();
            }
            Help::CommandIdle => {
                return "The command was idle: it slept nearly all of the time.".to_owned();
            }
            Help::HigherLimit(_) => return "Raise it to go faster.".to_owned(),
            Help::Unknown { experiments } => {
                let signals = match open {
                    [] if *experiments => String::new(),
                    [] => "The signals do not point to one resource. ".to_owned(),
                    _ => {
                        let open = open.iter().map(|of| self.resource(*of).to_owned());
                        format!("The signals disagree: it may be {}. ", list(open, "or"))
                    }
                };
                let useless = match useless.is_empty() {
                    true => String::new(),
                    false => format!("{} would not help. ", sentence_start(&useless)),
                };
                let experiments = if *experiments { "--prove would tell. " } else { "" };
                return format!("{signals}{useless}{experiments}").trim_end().to_owned();
            }
            Help::Cpus { change, others_cpus, until } => {
                cpus(*change, *others_cpus, until.as_ref())
            }
            Help::FasterCpuOrThreads => {
                "Only a faster CPU would help, or a command with more threads".to_owned()
            }
            Help::FasterCpus => "Only faster CPUs would help".to_owned(),
            Help::MoreJobs => "More jobs (-j) would help".to_owned(),
            Help::MoreJobsOrLessLatency => "More jobs (-j) or lower latency would help".to_owned(),
            Help::MoreJobsThanPossible => {
                "More jobs than descriptors and memory allow would help".to_owned()
            }
            Help::MoreIops(None) => "More IOPS would help".to_owned(),
            Help::MoreIops(Some(from)) => {
                format!("More IOPS would help (limit set in {from})")
            }
            Help::MoreDiskBandwidth(None) => "More disk bandwidth would help".to_owned(),
            Help::MoreDiskBandwidth(Some(from)) => {
                format!("More disk bandwidth would help (limit set in {from})")
            }
            Help::FasterPath => "A faster path to the server would help".to_owned(),
            Help::FasterLink => "A faster link would help".to_owned(),
            Help::MoreChannels => {
                "A shorter round trip would help, or a server that allows more channels (MaxSessions)".to_owned()
            }
            Help::CpusOf(host) => format!("More CPUs on {host} would help"),
            Help::QuickerCipher => {
                "A cipher that takes less CPU time would help (-e 'ssh -c CIPHER')".to_owned()
            }
            Help::ServerAllowingMore => {
                "A server that allows more requests per second would help".to_owned()
            }
            Help::ServerHandlingMore => {
                "A server that handles more requests at once would help".to_owned()
            }
            Help::MoreDirectories => {
                "Spreading the files over more directories would help".to_owned()
            }
            Help::FasterPeer => "A faster server or a faster path to it would help".to_owned(),
            Help::FasterSource => "A faster source would help".to_owned(),
            Help::FasterTarget => "A faster target would help".to_owned(),
            Help::MoreMemory => "More memory (--memory) would help".to_owned(),
        };
        match useless.is_empty() {
            true => format!("{help}."),
            false => format!("{help}; {useless} would not."),
        }
    }
}

fn cpus(change: CpuChange, others_cpus: Option<f64>, until: Option<&NextCeiling>) -> String {
    let help = match change {
        CpuChange::FasterOrMoreProcesses => {
            "A faster CPU would help, or more CPUs together with more processes".to_owned()
        }
        CpuChange::Quota => "A larger CPU quota would help".to_owned(),
        CpuChange::Dedicated => "CPUs not shared by the hypervisor would help".to_owned(),
        CpuChange::Affinity(all) => {
            format!("More of the machine's {all:.0} CPUs (affinity) would help")
        }
        CpuChange::MoreWithJobs => "More cores would help, with more jobs (-j)".to_owned(),
        CpuChange::FewerOthersOrMore => "Fewer other processes or more cores would help".to_owned(),
        CpuChange::More => "More cores would help".to_owned(),
    };
    let others = others_cpus.map(|cpus| format!(" (other processes use {cpus:.1} CPUs)"));
    let until = until.map(|NextCeiling { disk, operations, factor }| {
        let what = if *operations { "IOPS" } else { "bandwidth" };
        format!(", up to the {what} limit of {disk} at {factor:.1} times this rate")
    });
    format!("{help}{}{}", others.unwrap_or_default(), until.unwrap_or_default())
}

fn useless(of: Useless) -> String {
    let words = match of {
        Useless::Cpus => "more CPUs",
        Useless::Disks => "faster disks",
        Useless::Bandwidth => "more bandwidth",
        Useless::Processes => "more processes alone",
        Useless::Jobs => "more jobs",
    };
    words.to_owned()
}

/// What a worker does in a phase.
fn doing(phase: &str) -> &str {
    match phase {
        "list" => "listing directories",
        "look" => "reading metadata",
        "read" => "reading",
        "create" => "creating files",
        "write" => "writing",
        "settle" => "setting attributes",
        "remove" => "removing files",
        "compute" => "computing checksums",
        "connect" => "connecting",
        "send" => "sending",
        "answer" => "waiting for responses",
        "receive" => "receiving",
        "limit" => "throttled by the rate limit",
        "pause" => "backing off",
        "room" => "waiting for memory",
        "other" => "in other phases",
        // A phase of another version, from a record.
        other => other,
    }
}

/// What an experiment changed.
fn changed(resource: &str) -> &str {
    match resource {
        "cpu" => "CPUs",
        "latency" => "jobs or latency",
        "user-limit" => "the rate limit",
        "disk-iops" => "IOPS",
        "disk-bandwidth" => "disk bandwidth",
        "network" => "bandwidth",
        other => other,
    }
}

/// Capitalises the first letter, except that of the program's name.
fn sentence_start(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) if !text.starts_with("hakobu") => first.to_uppercase().chain(chars).collect(),
        _ => text.to_owned(),
    }
}

/// Noun after a number of CPUs.
fn cpu_noun(count: &str) -> &'static str {
    if count == "1" { "CPU" } else { "CPUs" }
}

fn list(words: impl Iterator<Item = String>, last: &str) -> String {
    let words: Vec<String> = words.collect();
    match &*words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}
