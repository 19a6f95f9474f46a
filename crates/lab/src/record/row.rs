//! What happened in one interval: the rates of the sampler, with what a recording makes of them.

use hakobu_transfer::sample::{CpuRates, Rates, Sample};

/// One interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Its end, seconds since the beginning.
    pub at_s: f64,
    /// What happened in it.
    pub rates: Rates,
}

impl Row {
    /// What happened between two samples of one sampler, of which `new` was read later.
    pub fn between(old: &Sample, new: &Sample) -> Row {
        Row { at_s: new.at_ns as f64 / 1e9, rates: Rates::between(old, new) }
    }

    /// CPU time as shares of all CPUs together, 0 to 1; `None` where no time passed that the kernel
    /// had counted yet (it counts in ticks, mostly of 10 ms).
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

    /// The CPU that worked most: its number and its share, 0 to 1.
    pub fn busiest_cpu(&self) -> Option<(u32, f64)> {
        self.cpu()?;
        let used = self.rates.cpus.iter().map(|(number, cpu)| (*number, cpu.used()));
        used.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The share of the busiest watched thread, 0 to 1.
    pub fn busiest_thread(&self) -> f64 {
        self.rates.process.busiest.map_or(0.0, |(_, share)| share)
    }

    /// Bytes a second received and sent by all interfaces but the loopback.
    pub fn network_bytes_per_s(&self) -> (f64, f64) {
        let links = self.rates.links.iter().filter(|link| link.name != "lo");
        links
            .fold((0.0, 0.0), |(rx, tx), link| (rx + link.rx_bytes_per_s, tx + link.tx_bytes_per_s))
    }

    /// Bytes a second over the loopback, where what is sent is what is received.
    pub fn loopback_bytes_per_s(&self) -> f64 {
        let lo = self.rates.links.iter().find(|link| link.name == "lo");
        lo.map_or(0.0, |link| link.tx_bytes_per_s)
    }
}
