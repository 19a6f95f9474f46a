//! The rules: which signals name a resource together. A rule asks for two that come from different
//! counters: a run's own CPU time, the kernel's times of all CPUs, the counters of disks and of
//! interfaces, a ceiling that was set, and what more jobs brought.

use super::Limiting;
use crate::analysis::Lang;
use crate::analysis::say::{Join, listed, number, percent, resource};
use hakobu_transfer::verdict::{Level, Resource};

/// CPUs count as full from this share on.
const FULL: f64 = 0.9;
/// A ceiling counts as reached from this share of it on.
const REACHED: f64 = 0.95;
/// Other things may only be named while no more than this share of the CPUs is used.
const FREE: f64 = 0.85;
/// Relative gain of rate per relative gain of jobs up to which more jobs bring nothing.
const FLAT: f64 = 0.25;
/// From this one on the next step brings more. Steps of a sweep are large, and what comes next may
/// begin before the step ends: then it is less than the whole.
const RISING: f64 = 0.5;
/// From this one on the step before has brought all that it could.
const ROSE: f64 = 0.7;

/// What is known of a cell. Shares are 0 to 1.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::analysis) struct Signals {
    /// What evidence is said in.
    pub lang: Lang,
    /// CPUs that its runs may use.
    pub cpus: f64,
    /// CPUs that its runs used.
    pub used: f64,
    /// The swept number, where it counts what is done at the same time.
    pub jobs: Option<f64>,
    /// Share of the machine's CPUs that anybody used, or that a hypervisor took away; `None` also
    /// where runs may use only some of them.
    pub machine: Option<f64>,
    /// The same of the CPU that was used most.
    pub busiest: Option<f64>,
    /// Share of the CPUs' time with nothing to run but I/O under way.
    pub iowait: Option<f64>,
    /// Share of the time in which the busiest disk had something to do.
    pub disk_busy: Option<f64>,
    /// Operations a second of all disks.
    pub disk_iops: Option<f64>,
    /// Bytes a second of all disks.
    pub disk_bytes_per_s: Option<f64>,
    /// Bytes a second of all interfaces.
    pub net_bytes_per_s: Option<f64>,
    /// The ceiling of operations a second that was set.
    pub iops_limit: Option<f64>,
    /// The ceiling of bytes a second that was set.
    pub bandwidth_limit: Option<f64>,
    /// Relative gain of rate per relative gain of jobs, from the point before to this one.
    pub before: Option<f64>,
    /// The same from this one to the next.
    pub after: Option<f64>,
}

/// What limits: the one resource that the rules name, or the one at a ceiling that was reached.
/// Otherwise nothing, with what was seen.
pub(in crate::analysis) fn judge(s: &Signals) -> Limiting {
    let claims: Vec<Limiting> =
        [s.cpu(), s.thread(), s.ceiling(), s.disk(), s.latency()].into_iter().flatten().collect();
    let mut reached = claims.iter().filter(|claim| claim.level == Level::AtLimit);
    let at_limit = reached.next().filter(|_| reached.next().is_none());
    match (claims.as_slice(), at_limit) {
        ([one], _) => one.clone(),
        (_, Some(one)) => one.clone(),
        ([], _) => Limiting { evidence: s.hints(), ..Limiting::default() },
        (several, _) => {
            let names = several.iter().map(|claim| resource(claim.resource, s.lang).to_owned());
            let names = listed(&names.collect::<Vec<_>>(), Join::Or, s.lang);
            let evidence = vec![s.lang.pick("it may be {}", "{} の可能性").replace("{}", &names)];
            Limiting { evidence, ..Limiting::default() }
        }
    }
}

fn claim<const N: usize>(
    resource: Resource,
    level: Level,
    evidence: [Option<String>; N],
) -> Option<Limiting> {
    let evidence = evidence.into_iter().flatten().collect();
    Some(Limiting { resource, level, evidence, own: false })
}

impl Signals {
    fn own(&self) -> f64 {
        if self.cpus > 0.0 { self.used / self.cpus } else { 0.0 }
    }

    fn is_free(&self) -> bool {
        self.cpus > 0.0 && self.own() <= FREE && self.machine.is_none_or(|share| share <= FREE)
    }

    /// More jobs bring nothing.
    fn is_flat(&self) -> bool {
        self.after.or(self.before).is_some_and(|gain| gain <= FLAT)
    }

    /// More jobs bring more.
    fn is_rising(&self) -> bool {
        match (self.after, self.before) {
            (Some(after), _) => after >= RISING,
            (None, before) => before.is_some_and(|gain| gain >= ROSE),
        }
    }

    fn cpu(&self) -> Option<Limiting> {
        let own = self.own();
        let machine_full = self.machine.is_some_and(|share| share >= REACHED);
        if self.after.is_some_and(|gain| gain >= RISING) {
            return None;
        }
        let level = if own >= FULL && (machine_full || self.is_flat()) {
            if own >= REACHED { Level::AtLimit } else { Level::Consistent }
        } else if machine_full && (own >= 0.5 || own >= 0.1 && self.is_flat()) {
            // Others use the rest: a server on the same machine, the kernel's writeback.
            Level::Consistent
        } else {
            return None;
        };
        let evidence = [Some(self.used_words()), self.machine_words(), self.flat_words()];
        claim(Resource::Cpu, level, evidence)
    }

    /// One thread does the work while other CPUs have nothing to do.
    fn thread(&self) -> Option<Limiting> {
        if self.cpus < 1.5 || !self.is_free() || !(FULL..=1.15).contains(&self.used) {
            return None;
        }
        // A thread that is moved from CPU to CPU leaves none of them full.
        let full = self.busiest.is_some_and(|share| share >= FULL);
        let quiet = self.disk_busy.is_some_and(|share| share <= 0.6);
        let stuck = (REACHED..=1.1).contains(&self.used) && self.is_flat() && quiet;
        if !full && !stuck {
            return None;
        }
        let busiest = self.busiest.filter(|_| full);
        let words = self.lang.pick("one CPU {} busy", "1 つの CPU の使用率 {}");
        let busiest = busiest.map(|share| words.replace("{}", &percent(share)));
        let evidence = [Some(self.used_words()), busiest, self.flat_words()];
        claim(Resource::Thread, Level::Consistent, evidence)
    }

    /// A ceiling that was set is reached, and something waits behind it.
    fn ceiling(&self) -> Option<Limiting> {
        let waits = self.iowait.is_some_and(|share| share >= 0.1)
            || self.disk_busy.is_some_and(|share| share >= FULL)
            || self.is_flat();
        if !self.is_free() || !waits {
            return None;
        }
        let of = |resource: Resource, reached: Option<f64>, limit: Option<f64>, unit: &str| {
            let (reached, limit) = reached.zip(limit.filter(|limit| *limit > 0.0))?;
            let words = match self.lang {
                Lang::En => format!("{} of {} {unit}", number(reached), number(limit)),
                Lang::Ja => format!("上限 {} {unit} 中 {}", number(limit), number(reached)),
            };
            (reached >= REACHED * limit).then_some((resource, words))
        };
        let bandwidth = self.bandwidth_limit;
        let (resource, words) = of(Resource::DiskIops, self.disk_iops, self.iops_limit, "IOPS")
            .or(of(Resource::DiskBandwidth, self.disk_bytes_per_s, bandwidth, "bytes/s"))
            .or(of(Resource::Network, self.net_bytes_per_s, bandwidth, "bytes/s"))?;
        let evidence = [Some(words), self.iowait_words(), self.busy_words(), self.flat_words()];
        claim(resource, Level::AtLimit, evidence)
    }

    /// A disk of unknown ceilings that always has work, with CPUs that wait for it or more jobs that
    /// bring nothing.
    fn disk(&self) -> Option<Limiting> {
        let busy = self.disk_busy.is_some_and(|share| share >= FULL);
        let waits = self.iowait.is_some_and(|share| share >= 0.15) || self.is_flat();
        if !busy || !waits || !self.is_free() || self.is_rising() || self.ceiling().is_some() {
            return None;
        }
        // Small requests run into operations, large ones into bytes; between them it may be either.
        let (bytes, operations) = self.disk_bytes_per_s.zip(self.disk_iops)?;
        let resource = match bytes / operations.max(1e-9) {
            size if size <= 32_768.0 => Resource::DiskIops,
            size if size >= 131_072.0 => Resource::DiskBandwidth,
            _ => return None,
        };
        let evidence = [self.busy_words(), self.iowait_words(), self.flat_words()];
        claim(resource, Level::Consistent, evidence)
    }

    /// Jobs wait most of their time, CPUs are idle, and more jobs bring more.
    fn latency(&self) -> Option<Limiting> {
        let share = self.used / self.jobs.filter(|jobs| *jobs >= 1.0)?;
        if !self.is_rising() || share > 0.6 || self.own() > 0.7 || !self.is_free() {
            return None;
        }
        let gain = self.after.or(self.before).unwrap_or_default().min(1.0);
        let evidence = [
            Some(self.say(
                "each job waits {} of its time",
                "各ジョブは時間の {} を待機",
                1.0 - share,
            )),
            Some(self.say(
                "{} of a change of jobs come through",
                "ジョブ数の変化の {} が速さに反映",
                gain,
            )),
            Some(self.used_words()),
        ];
        claim(Resource::Latency, Level::Consistent, evidence)
    }

    fn hints(&self) -> Vec<String> {
        let used = (self.cpus > 0.0).then(|| self.used_words());
        [used, self.busy_words(), self.flat_words()].into_iter().flatten().collect()
    }

    /// A share in words.
    fn say(&self, en: &str, ja: &str, share: f64) -> String {
        self.lang.pick(en, ja).replace("{}", &percent(share))
    }

    fn used_words(&self) -> String {
        let (used, cpus) = (number(self.used), number(self.cpus));
        match self.lang {
            Lang::En => format!("{used} of {cpus} CPUs used"),
            Lang::Ja => format!("{cpus} CPU 中 {used} を使用"),
        }
    }

    fn machine_words(&self) -> Option<String> {
        self.machine.map(|share| self.say("{} by all processes", "全プロセスで {}", share))
    }

    fn iowait_words(&self) -> Option<String> {
        let share = self.iowait.filter(|share| *share >= 0.1)?;
        Some(self.say("CPUs waiting for I/O {} of the time", "CPU の I/O 待ち {}", share))
    }

    fn busy_words(&self) -> Option<String> {
        self.disk_busy.map(|share| self.say("disk {} busy", "ディスクの使用率 {}", share))
    }

    fn flat_words(&self) -> Option<String> {
        let words = self.lang.pick("more jobs bring nothing", "ジョブを増やしても速くならない");
        self.is_flat().then(|| words.to_owned())
    }
}
