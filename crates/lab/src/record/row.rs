//! Rates of one interval, with quantities derived from them.

use hakobu_explain::sample::{CpuRates, Rates, Sample};

/// One interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordRow {
    /// End of the interval, seconds since the start.
    pub at_s: f64,
    /// Rates of the sampler.
    pub rates: Rates,
}

impl RecordRow {
    /// Rates between two samples of one sampler; `new` is the later one.
    pub fn between(old: &Sample, new: &Sample) -> RecordRow {
        RecordRow { at_s: new.at_ns as f64 / 1e9, rates: Rates::between(old, new) }
    }

    /// CPU time as shares of all CPUs together, 0 to 1; `None` if the kernel has counted no time yet (it
    /// counts in ticks, usually of 10 ms).
    pub fn cpu(&self) -> Option<CpuRates> {
        let sum = &self.rates.cpu;
        let all = sum.used() + sum.iowait + sum.steal + sum.idle;
        (all > 0.0).then(|| CpuRates {
            user: sum.user / all,
            system: sum.system / all,
            iowait: sum.iowait / all,
            idle: sum.idle / all,
            steal: sum.steal / all,
        })
    }

    /// Busiest CPU: number and share, 0 to 1.
    pub fn busiest_cpu(&self) -> Option<(u32, f64)> {
        self.cpu()?;
        let used = self.rates.cpus.iter().map(|(number, cpu)| (*number, cpu.used()));
        used.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Share of the busiest watched thread, 0 to 1.
    pub fn busiest_thread(&self) -> f64 {
        self.rates.process.busiest.map_or(0.0, |(_, share)| share)
    }

    /// Bytes per second received and sent by all interfaces except loopback.
    pub fn network_bytes_per_s(&self) -> (f64, f64) {
        let links = self.rates.links.iter().filter(|link| link.name != "lo");
        links
            .fold((0.0, 0.0), |(rx, tx), link| (rx + link.rx_bytes_per_s, tx + link.tx_bytes_per_s))
    }

    /// Bytes per second over loopback, counted once.
    pub fn loopback_bytes_per_s(&self) -> f64 {
        let lo = self.rates.links.iter().find(|link| link.name == "lo");
        lo.map_or(0.0, |link| link.tx_bytes_per_s)
    }
}
