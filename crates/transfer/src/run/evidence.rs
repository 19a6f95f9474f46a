//! Converts the record of a run to the facts for its verdict.

use super::lanes::WINDOW_BYTES;
use super::steer as conditions;
use super::steer::{RunEnd, RunEnds};
use crate::far::{FarLink, FarMark};
use crate::journal::{JobHints, Journal, Key};
use crate::plan::Spec;
use hakobu_core::error::Fatal;
use hakobu_core::limit::{Controls, Limiter, Limits};
use hakobu_core::meter::{ConnectionCounts, Counts, PHASES};
use hakobu_core::timetable;
use hakobu_core::unit::Jobs;
use hakobu_explain::observer::{Ceilings, ServedByDisk};
use hakobu_explain::sample::{Rates, Sample};
use hakobu_explain::tune::Medium;
use hakobu_explain::verdict::{
    DiskFacts, Experiment, Facts, FarFacts, NetworkFacts, Point, Progress, ProofTrial, Prover,
    Side, UserLimit,
};
use hakobu_sys::dir::paths_in;
use hakobu_sys::disk::{self, BlockDevice};
use hakobu_sys::proc;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The constant facts of a run.
#[derive(Clone)]
pub(super) struct Subject {
    pub ends: RunEnds,
    pub limits: Limits,
    /// The link to another machine.
    pub far: Option<Arc<FarLink>>,
}

impl Subject {
    /// Returns whether the user fixed the number of jobs.
    pub fn jobs_fixed(&self) -> bool {
        self.limits.jobs != Jobs::Auto
    }
}

/// Returns the facts of a run; empty with fewer than two samples. `curve` is goodput by number of jobs.
pub(super) fn facts(
    subject: &Subject,
    controls: &Controls,
    record: &SampleMarks,
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
        far: subject.far.as_ref().and_then(|link| far(link, from, to)),
        phases,
        jobs: to.sums.jobs.saturating_sub(from.sums.jobs) as f64 / ticks,
        jobs_fixed: subject.jobs_fixed(),
        jobs_max: controls.gate.jobs_max(),
        curve: curve.iter().map(|(jobs, rate)| Point { jobs: *jobs, rate: *rate }).collect(),
        bytes_per_s,
        operations_per_s,
        answer_min_ms: to.wire.answer_least_us.map(|us| us as f64 / 1e3),
        throttled_per_s: per_s(before.throttled, after.throttled)
            + per_s(before.timed_out, after.timed_out),
        limits: limits(controls, subject, bytes_per_s, operations_per_s),
        foreign: foreign(ends),
        stores: (ends.is_store(Side::Source), ends.is_store(Side::Target)),
        lock_waits: (looks > 0).then(|| locked as f64 / looks as f64),
        ..Facts::of_machine(&rates, allowed)
    }
}

/// Returns the limits that the user set; a timetable at its present rate.
fn limits(
    controls: &Controls,
    subject: &Subject,
    bytes_per_s: f64,
    operations_per_s: f64,
) -> Vec<UserLimit> {
    let bytes_per_s_max = match subject.limits.schedule {
        Some(_) => controls.bytes.as_deref().map(Limiter::per_s),
        None => subject.limits.bytes_per_s_max,
    };
    let bytes_per_s_max = bytes_per_s_max.filter(|per_s| *per_s != timetable::UNLIMITED);
    let operations = if subject.ends.has_store() { "--rps-limit" } else { "--iops-limit" };
    [
        ("--bwlimit", bytes_per_s_max, bytes_per_s),
        (operations, subject.limits.operations_per_s_max, operations_per_s),
    ]
    .into_iter()
    .filter_map(|(option, limit, reached)| {
        Some(UserLimit { option, limit: limit? as f64, reached })
    })
    .collect()
}

fn foreign(ends: &RunEnds) -> Vec<Side> {
    let mut sides: Vec<Side> =
        ends.0.iter().filter(|end| end.medium == Medium::Foreign).map(|end| end.side).collect();
    sides.dedup();
    sides
}

/// Returns the disks below the local ends, each once, with those that they consist of.
fn disks(
    ends: &RunEnds,
    limits: &Ceilings,
    rates: &Rates,
    (from, to): (&Mark, &Mark),
    samples: f64,
) -> Vec<DiskFacts> {
    let dirty = (to.sums.dirty_bytes - from.sums.dirty_bytes) / samples;
    let threshold = to.sample.memory.dirty_threshold_bytes;
    let span_s = (to.at - from.at).as_secs_f64();
    let mut found: Vec<(BlockDevice, Vec<&RunEnd>)> = Vec::new();
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
fn network(
    ends: &RunEnds,
    rates: &Rates,
    from: &ConnectionCounts,
    to: &ConnectionCounts,
) -> NetworkFacts {
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

/// Returns the link to another machine, and what is known of that; `None`: too little.
fn far(link: &FarLink, from: &Mark, to: &Mark) -> Option<FarFacts> {
    let (peer, round_trip) = (link.peer()?, link.round_trip()?);
    let (before, after) = (from.far?, to.far?);
    let seconds = |from: Duration, to: Duration| to.saturating_sub(from).as_secs_f64();
    let source_s = seconds(before.source.at, after.source.at);
    let agent_s = seconds(before.agent.at, after.agent.at);
    if source_s <= 0.0 || agent_s <= 0.0 {
        return None;
    }
    let lanes = f64::from(after.source.lanes.max(1));
    let cpus = f64::from(after.agent.cpus);
    let sent = after.source.sent.saturating_sub(before.source.sent);
    let idle = seconds(before.agent.idle, after.agent.idle) / agent_s;
    let waits = seconds(before.source.writing, after.source.writing) / (source_s * lanes);
    let ssh_s = before.ssh.zip(after.ssh).map(|(before, after)| seconds(before, after));
    let far_ssh = after.agent.ssh > Duration::ZERO;
    Some(FarFacts {
        host: peer.host.clone(),
        same_machine: peer.same_machine,
        bytes_per_s: sent as f64 / source_s,
        windows_bytes_per_s: lanes * WINDOW_BYTES / round_trip.as_secs_f64().max(1e-6),
        waits: waits.min(1.0),
        cpus,
        machine_used: cpus * (1.0 - idle).clamp(0.0, 1.0),
        ssh_used: ssh_s.map(|ssh_s| ssh_s / (to.at - from.at).as_secs_f64()),
        far_ssh_used: far_ssh.then(|| seconds(before.agent.ssh, after.agent.ssh) / agent_s),
    })
}

/// Returns whether an endpoint is on this machine: by its name, without a request.
fn is_this_machine(endpoint: &str) -> bool {
    let host = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    let host = host.split('/').next().unwrap_or_default();
    ["localhost", "127.", "[::1]"].iter().any(|own| host.starts_with(own))
}

// Use of job hints: the key of a run, when it may start with a hint, and when its result is stored.

/// Minimum duration of a run whose result is stored.
const TAUGHT_MIN: Duration = Duration::from_millis(500);
/// Number of consecutive runs that confirm a number below the rule of thumb.
const CONFIRMED_MIN: u32 = 2;
/// Number of source entries that are sampled to estimate the size of its files.
const SAMPLE: usize = 32;
/// Maximum depth of folders opened for that.
const DEPTH: usize = 4;
/// The size class of the last run: for sources whose sizes are unknown in advance.
const ANY: &str = "any";

/// The job hints for one run.
#[derive(Default)]
pub(in super::super) struct RunHints {
    /// The number of the run before this one, which counts instead of a hint.
    before: Option<usize>,
    /// `None`: hints are neither read nor written.
    job_hints: Option<JobHints>,
    /// Path whose files are sampled for their sizes.
    source: PathBuf,
    /// The user's conditions.
    asked: String,
    teaches: bool,
}

impl RunHints {
    /// Reads the hints, if they are enabled.
    ///
    /// # Errors
    /// The file is damaged: code 1, before anything was moved.
    pub fn read(spec: &Spec) -> Result<RunHints, Fatal> {
        let auto = spec.limits.jobs == Jobs::Auto;
        if auto && spec.jobs_before.is_some() {
            return Ok(RunHints { before: spec.jobs_before, ..RunHints::default() });
        }
        if !auto || !spec.remember || spec.policy.list_only {
            return Ok(RunHints::default());
        }
        let job_hints = JobHints::load(&Journal::of_user(), SystemTime::now())
            .map_err(|damaged| Fatal::new(1, damaged.to_string()))?;
        // Limits and `null:` make other numbers good.
        Ok(RunHints {
            before: None,
            job_hints: Some(job_hints),
            source: spec.sources.paths().first().cloned().unwrap_or_default(),
            asked: conditions::asked(spec),
            teaches: !spec.limits.limits_a_rate() && !spec.policy.dry_run,
        })
    }

    /// Returns the number that was good last time between these ends, under the same conditions. A number below
    /// `by_rule`, the default, needs several runs to confirm it: most runs are too short to correct the result of one
    /// disturbed run.
    pub(super) fn jobs(&self, ends: &RunEnds, by_rule: usize) -> Option<usize> {
        if self.before.is_some() {
            return self.before;
        }
        let job_hints = self.job_hints.as_ref()?;
        // Skip sampling if there is no hint for these ends.
        if !job_hints.has_like(&key(ends, ANY)) {
            return None;
        }
        let class = match ends.is_store(Side::Source) {
            true => ANY,
            false => class(mean_size(&self.source)?),
        };
        if !job_hints.has_like(&key(ends, class)) {
            return None;
        }
        let key = key(ends, class).under(&conditions::all(&self.asked, ends));
        let jobs = job_hints.get(&key)?;
        (jobs >= by_rule || job_hints.runs(&key) >= CONFIRMED_MIN).then_some(jobs)
    }

    /// Stores the result of a run with this much work in this time, if that is enough. A failure to write is ignored:
    /// the run is done.
    pub(super) fn remember(
        mut self,
        subject: &Subject,
        jobs: usize,
        counts: &Counts,
        took: Duration,
    ) {
        let Some(job_hints) = self.job_hints.as_mut().filter(|_| self.teaches) else { return };
        if took < TAUGHT_MIN || counts.items == 0 {
            return;
        }
        let now = SystemTime::now();
        let conditions = conditions::all(&self.asked, &subject.ends);
        for class in [ANY, class(counts.bytes / counts.items)] {
            job_hints.put(key(&subject.ends, class).under(&conditions), jobs, now);
        }
        let _ = job_hints.save(now);
    }
}

fn key(ends: &RunEnds, class: &str) -> Key {
    Key::new(ends.name(Side::Source), ends.name(Side::Target), class)
}

/// Returns the size class of a mean file size in bytes: within a class the same number is good.
fn class(bytes: u64) -> &'static str {
    match bytes >> 10 {
        0..64 => "below-64KiB",
        64..1024 => "below-1MiB",
        1024..16_384 => "below-16MiB",
        _ => "large",
    }
}

/// Returns the mean size of some files of a source, from the start of its first folder; `None` if it has none there.
fn mean_size(source: &Path) -> Option<u64> {
    let meta = source.metadata().ok()?;
    if !meta.is_dir() {
        return Some(meta.len());
    }
    let mut folder = source.to_owned();
    for _ in 0..DEPTH {
        let (mut bytes, mut files, mut next) = (0u64, 0, None);
        for path in paths_in(&folder, SAMPLE).ok()? {
            match path.symlink_metadata() {
                Ok(meta) if meta.is_dir() => next = Some(path),
                Ok(meta) => (bytes, files) = (bytes.saturating_add(meta.len()), files + 1),
                Err(_) => {}
            }
        }
        match (files, next) {
            (1.., _) => return Some(bytes / files),
            (0, Some(next)) => folder = next,
            (0, None) => return None,
        }
    }
    None
}

// Running sums of a run at some moments, few and evenly spread however long it takes, so that means can be computed
// over any part of it.

/// Maximum number of moments kept.
const MARKS_MAX: usize = 32;
/// Fraction of a run that counts as its start and is ignored.
const START: f64 = 0.1;
/// Minimum length of the start, in seconds, unless that would be half of the run.
const START_S_MIN: f64 = 1.0;

/// Sums over all samples so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    /// Number of samples of the workers' counters.
    pub ticks: u64,
    /// Units seen in each phase.
    pub phases: [u64; PHASES],
    /// Sum of the allowed jobs.
    pub jobs: u64,
    /// Number of samples of the machine.
    pub samples: u64,
    /// Tasks of the machine that were blocked on I/O.
    pub blocked: u64,
    /// Dirty and writeback bytes.
    pub dirty_bytes: f64,
    /// Number of samples of what threads wait for.
    pub looks: u64,
    /// Of these: a lock in the kernel.
    pub locked: u64,
}

/// The state at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Mark {
    /// Time since the start of the run.
    pub at: Duration,
    pub counts: Counts,
    pub wire: ConnectionCounts,
    pub sums: Sums,
    pub sample: Sample,
    /// Work admitted by cgroups, by limit.
    pub served: ServedByDisk,
    /// The link to another machine.
    pub far: Option<FarMark>,
}

/// Marks of a run; see the module.
#[derive(Debug, Default)]
pub(super) struct SampleMarks {
    marks: Vec<Mark>,
    /// Only every n-th mark is kept.
    every: u32,
    left_out: u32,
    last: Option<Mark>,
}

impl SampleMarks {
    /// Adds the next moment.
    pub fn push(&mut self, mark: Mark) {
        if self.marks.len() >= MARKS_MAX {
            let mut index = 0;
            self.marks.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.every = (2 * self.every).max(2);
        }
        self.left_out += 1;
        if self.marks.is_empty() || self.left_out >= self.every.max(1) {
            self.left_out = 0;
            self.marks.push(mark.clone());
        }
        self.last = Some(mark);
    }

    /// Returns first and last moment of the steady part; `None` if there are no two.
    pub fn steady(&self) -> Option<(&Mark, &Mark)> {
        let last = self.last.as_ref()?;
        let all_s = last.at.as_secs_f64();
        let start_s = (START * all_s).max(START_S_MIN).min(all_s / 2.0);
        let first = self.marks.iter().find(|mark| mark.at.as_secs_f64() >= start_s);
        let first = first.filter(|first| first.at < last.at).or_else(|| self.marks.first())?;
        (first.at < last.at).then_some((first, last))
    }
}

// The experiments of `--prove`: executes the plan of `verdict`, one change at a time, and restores everything in any
// case.

/// Maximum duration of all experiments together.
const BUDGET: Duration = Duration::from_secs(12);

/// Experiments in progress. Dropping it restores what was changed.
pub(super) struct ProofExperiments {
    prover: Prover,
    controls: Arc<Controls>,
    /// Number of jobs before and after.
    jobs: usize,
    bytes_per_s: Option<u64>,
    operations_per_s: Option<u64>,
    /// CPU numbers that every thread may use.
    cpus: Vec<u32>,
    /// The current change.
    trial: ProofTrial,
}

impl ProofExperiments {
    /// Begins: the current settings are the baseline.
    pub fn begin(facts: &Facts, controls: &Arc<Controls>, cpus: &[u32]) -> ProofExperiments {
        let jobs = controls.gate.jobs();
        ProofExperiments {
            prover: Prover::new(facts, jobs, BUDGET),
            controls: Arc::clone(controls),
            jobs,
            bytes_per_s: controls.bytes.as_deref().map(Limiter::per_s),
            operations_per_s: controls.operations.as_deref().map(Limiter::per_s),
            cpus: cpus.to_vec(),
            trial: ProofTrial::Baseline,
        }
    }

    /// Continues; returns whether more experiments follow.
    pub fn tick(&mut self, now: Duration, progress: Progress) -> bool {
        if let Some(trial) = self.prover.step(now, progress) {
            self.restore();
            self.change(trial);
        }
        !self.prover.is_over()
    }

    /// Returns the results so far.
    pub fn experiments(&self) -> &[Experiment] {
        self.prover.experiments()
    }

    fn change(&mut self, trial: ProofTrial) {
        self.trial = trial;
        match trial {
            ProofTrial::Baseline => {}
            ProofTrial::Jobs(jobs) => self.controls.gate.set(jobs),
            ProofTrial::Cpus(count) => bind(self.cpus.get(..count).unwrap_or_default()),
            ProofTrial::Limits(factor) => {
                let scaled = |per_s: u64| (per_s as f64 * factor).max(1.0) as u64;
                self.limit(self.bytes_per_s.map(scaled), self.operations_per_s.map(scaled));
            }
        }
    }

    fn restore(&mut self) {
        match std::mem::replace(&mut self.trial, ProofTrial::Baseline) {
            ProofTrial::Baseline => {}
            ProofTrial::Jobs(_) => self.controls.gate.set(self.jobs),
            ProofTrial::Cpus(_) => bind(&self.cpus),
            ProofTrial::Limits(_) => self.limit(self.bytes_per_s, self.operations_per_s),
        }
    }

    fn limit(&self, bytes_per_s: Option<u64>, operations_per_s: Option<u64>) {
        let pairs =
            [(&self.controls.bytes, bytes_per_s), (&self.controls.operations, operations_per_s)];
        for (limiter, per_s) in pairs {
            if let (Some(limiter), Some(per_s)) = (limiter, per_s) {
                limiter.set_per_s(per_s);
            }
        }
    }
}

impl Drop for ProofExperiments {
    fn drop(&mut self) {
        self.restore();
    }
}

/// Restricts all threads of this process to these CPUs. New threads inherit from the one that starts them, so a
/// second pass finds those, too.
fn bind(cpus: &[u32]) {
    if cpus.is_empty() {
        return;
    }
    for _ in 0..2 {
        for tid in proc::own_threads() {
            // A thread that has ended needs nothing.
            let _ = proc::set_affinity(tid, cpus);
        }
    }
}

/// Held by tests that set or read the CPUs of threads: [`bind`] sets those of all.
#[cfg(test)]
pub(super) static AFFINITY: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

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

    #[test]
    fn sizes_of_a_source() {
        let dir = std::env::temp_dir().join(format!("hakobu-sizes-{}", std::process::id()));
        let deep = dir.join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        assert_eq!(mean_size(&dir), None);
        std::fs::write(deep.join("f"), [0; 300]).unwrap();
        std::fs::write(deep.join("g"), [0; 100]).unwrap();
        assert_eq!(mean_size(&dir), Some(200));
        assert_eq!(mean_size(&deep.join("f")), Some(300));
        assert_eq!(mean_size(&deep.join("none")), None);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn classes_grow() {
        let sizes = [0, 65_535, 65_536, 1 << 20, 16 << 20, u64::MAX];
        let classes: Vec<&str> = sizes.iter().map(|size| class(*size)).collect();
        assert_eq!(
            classes,
            ["below-64KiB", "below-64KiB", "below-1MiB", "below-16MiB", "large", "large"]
        );
    }

    fn of(seconds: u64) -> SampleMarks {
        let mut record = SampleMarks::default();
        for tenth in 1..=10 * seconds {
            record.push(Mark { at: Duration::from_millis(100 * tenth), ..Mark::default() });
        }
        record
    }

    #[test]
    fn the_start_is_left_out() {
        for (seconds, least_s, most_s) in [(2, 1.0, 1.2), (5, 1.0, 1.4), (60, 6.0, 9.0)] {
            let record = of(seconds);
            let (first, last) = record.steady().unwrap();
            let first_s = first.at.as_secs_f64();
            assert!((least_s..=most_s).contains(&first_s), "{seconds}: {first_s}");
            assert_eq!(last.at.as_secs(), seconds);
        }
    }

    #[test]
    fn an_hour_takes_no_more_memory_than_a_minute() {
        let record = of(3600);
        assert!(record.marks.len() <= MARKS_MAX);
        let (first, last) = record.steady().unwrap();
        assert!((360..600).contains(&first.at.as_secs()) && last.at.as_secs() == 3600);
    }

    #[test]
    fn one_moment_is_no_stretch() {
        let mut record = SampleMarks::default();
        assert!(record.steady().is_none());
        record.push(Mark { at: Duration::from_secs(1), ..Mark::default() });
        assert!(record.steady().is_none());
    }
    use hakobu_explain::verdict::UserLimit;

    fn facts() -> Facts {
        let limit = UserLimit { option: "--bwlimit", limit: 1000.0, reached: 1000.0 };
        let mut facts = Facts { span_s: 5.0, cpus: 4.0, cpu_used: 0.1, ..Facts::default() };
        (facts.jobs_max, facts.limits) = (64, vec![limit]);
        facts.phases[hakobu_core::meter::Phase::Limit as usize] = 4.0;
        facts
    }

    fn controls() -> Arc<Controls> {
        Arc::new(Controls {
            gate: hakobu_core::limit::Gate::new(4, 64),
            bytes: Some(Arc::new(Limiter::new(1000))),
            ..Controls::fixed(64)
        })
    }

    #[test]
    fn one_thing_at_a_time_and_everything_back() {
        let controls = controls();
        let mut proof = ProofExperiments::begin(&facts(), &controls, &[]);
        let (mut jobs, mut rates) = (Vec::new(), Vec::new());
        let mut goodput = 0.0;
        for tick in 0..4000u64 {
            // The limit determines the rate, whatever the jobs are.
            let per_s = controls.bytes.as_deref().map_or(0, Limiter::per_s);
            goodput += per_s as f64 / 100.0;
            let progress = Progress { goodput, completions: 20 * tick };
            if !proof.tick(Duration::from_millis(10 * tick), progress) {
                break;
            }
            if controls.gate.jobs() != 4 {
                jobs.push(controls.gate.jobs());
                assert_eq!(per_s, 1000, "only one thing is changed");
            }
            rates.push(per_s);
        }
        assert!(jobs.iter().all(|jobs| *jobs == 6) && !jobs.is_empty(), "{jobs:?}");
        assert!(rates.contains(&500) && rates.contains(&1000));
        let found = proof.experiments();
        assert!(
            found.iter().any(|made| made.resource == hakobu_explain::verdict::Resource::UserLimit
                && made.elasticity.0 > 0.9)
        );
        assert_eq!(
            (controls.gate.jobs(), controls.bytes.as_deref().map(Limiter::per_s)),
            (4, Some(1000))
        );
    }

    #[test]
    fn changes_are_restored_at_the_end() {
        let controls = controls();
        let mut proof = ProofExperiments::begin(&facts(), &controls, &[]);
        proof.change(ProofTrial::Limits(0.5));
        assert_eq!(controls.bytes.as_deref().map(Limiter::per_s), Some(500));
        drop(proof);
        assert_eq!(controls.bytes.as_deref().map(Limiter::per_s), Some(1000));
        let mut proof = ProofExperiments::begin(&facts(), &controls, &[]);
        proof.change(ProofTrial::Jobs(9));
        assert_eq!(controls.gate.jobs(), 9);
        drop(proof);
        assert_eq!(controls.gate.jobs(), 4);
    }

    #[test]
    fn threads_get_their_cpus_back() {
        let _alone = AFFINITY.lock();
        // The process runs other tests, too: check that the set is restored.
        let all = proc::affinity(0).unwrap();
        let controls = controls();
        let mut proof = ProofExperiments::begin(&facts(), &controls, &all);
        proof.change(ProofTrial::Cpus(1));
        assert_eq!(proc::affinity(0).unwrap(), all[..1]);
        drop(proof);
        assert_eq!(proc::affinity(0).unwrap(), all);
    }
}
