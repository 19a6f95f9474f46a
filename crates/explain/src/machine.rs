//! Facts about the machine, common to transfers and commands.

use crate::sample::{DiskRates, Rates};
use crate::verdict::{BusiestCpu, DiskFacts, Facts, Pressure};

impl Facts {
    /// Facts about the machine from rates, with the numbers of the usable CPUs.
    pub fn of_machine(rates: &Rates, allowed: &[u32]) -> Facts {
        let cpus: Vec<_> = rates.cpus.iter().filter(|(cpu, _)| allowed.contains(cpu)).collect();
        let known = !cpus.is_empty();
        let busiest =
            cpus.iter().map(|(number, cpu)| BusiestCpu { number: Some(*number), used: cpu.used() });
        Facts {
            cpus_allowed: (!allowed.is_empty()).then_some(allowed.len() as f64),
            machine_used: known.then(|| cpus.iter().map(|(_, cpu)| cpu.used()).sum()),
            machine_cpus: (!rates.cpus.is_empty()).then_some(rates.cpus.len() as f64),
            busiest_cpu: busiest.max_by(|a, b| a.used.total_cmp(&b.used)),
            iowait: known.then_some(rates.cpu.iowait),
            stolen: known.then(|| cpus.iter().map(|(_, cpu)| cpu.steal).sum()),
            pressure: Pressure {
                cpu: rates.pressure.cpu_some,
                io: rates.pressure.io_some,
                memory: rates.pressure.memory_some,
            },
            ..Facts::default()
        }
    }
}

impl DiskFacts {
    /// Facts about a disk from rates.
    pub fn of(rates: &DiskRates) -> DiskFacts {
        DiskFacts {
            name: rates.name.clone(),
            read_iops: rates.read_iops,
            read_bytes_per_s: rates.read_bytes_per_s,
            write_iops: rates.write_iops,
            write_bytes_per_s: rates.write_bytes_per_s,
            queue: Some(rates.queue),
            busy: rates.busy,
            latency_ms: rates.latency_ms.unwrap_or(0.0),
            ..DiskFacts::default()
        }
    }
}
