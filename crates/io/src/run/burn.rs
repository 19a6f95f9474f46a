//! The engine `cpuio`: stretches of computing with pauses between them, so that the CPU is busy for a share of the
//! time.

use super::meter::Meter;
use super::peers::Peers;
use crate::job::Cpu;
use crate::pattern::random::Random;
use std::time::Duration;

/// Numbers that are sorted at once: a fraction of a millisecond of work.
const NUMBERS: usize = 4096;

/// Computes and pauses until the job is over.
pub(super) fn burn(meter: &mut Meter<'_>, cpu: &Cpu, peers: &Peers) {
    meter.begin();
    let load = u32::from(cpu.load_percent.clamp(1, 100));
    let pause = cpu.chunk * (100 - load) / load;
    let mut numbers = vec![0u64; if cpu.sorts { NUMBERS } else { 0 }];
    let mut random = Random::new(0, 0);
    while !(meter.over || cpu.ends_with_others && peers.work_has_ended()) {
        let end = meter.after(cpu.chunk);
        while goes_on(meter, end) {
            if cpu.sorts {
                numbers.iter_mut().for_each(|number| *number = random.bits());
                numbers.sort_unstable();
                std::hint::black_box(&mut numbers);
            } else {
                std::hint::spin_loop();
            }
        }
        let end = meter.after(pause);
        while goes_on(meter, end) {
            let now = meter.clock.now();
            let left_ns = meter.clock.between_ns(now, end.min(meter.due));
            std::thread::sleep(Duration::from_nanos(left_ns));
        }
    }
}

/// Returns whether `end` is still to come and the job is not over; runs due actions meanwhile.
fn goes_on(meter: &mut Meter<'_>, end: u64) -> bool {
    let now = meter.pass();
    !meter.over && now < end
}
