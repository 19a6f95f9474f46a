//! CPU use by other processes.

/// CPU time so far, in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// All CPUs, used or idle.
    all: u64,
    /// Used, by any process.
    used: u64,
    /// Used by this program and its ended children.
    own: u64,
}

impl Load {
    pub fn now() -> Load {
        let read = |path| std::fs::read_to_string(path).unwrap();
        parse(&read("/proc/stat"), &read("/proc/self/stat")).unwrap()
    }

    /// Share of all CPUs used by others, 0 to 1; kernel threads count as others.
    pub fn others_since(&self, before: &Load) -> f64 {
        let used = (self.used - before.used).saturating_sub(self.own - before.own);
        used as f64 / (self.all - before.all).max(1) as f64
    }
}

/// From /proc/stat and /proc/self/stat, see proc(5).
fn parse(machine: &str, own: &str) -> Option<Load> {
    let number = |word: &str| word.parse::<u64>().ok();
    // user, nice, system, idle, iowait, irq, softirq, steal; guest time is part of user time.
    let cpu = machine.lines().next()?.strip_prefix("cpu ")?;
    let cpu: Vec<u64> = cpu.split_whitespace().take(8).map_while(number).collect();
    let all: u64 = cpu.iter().sum();
    // The name may contain spaces; it is followed by field 3 and on, times are 14 to 17.
    let fields: Vec<&str> = own.rsplit_once(") ")?.1.split_whitespace().collect();
    let own = fields.get(11..15)?.iter().map(|word| number(word)).sum::<Option<u64>>()?;
    Some(Load { all, used: all - cpu.get(3)? - cpu.get(4)?, own })
}

#[test]
fn what_others_used() {
    let stat = "7 (a) b) S 1 7 7 0 -1 4194304 5 6 0 0 10 20 30 40 20 0 1 0";
    let before = parse("cpu  10 0 10 900 80 0 0 0 0 0\ncpu0 1", stat).unwrap();
    assert_eq!(before, Load { all: 1000, used: 20, own: 100 });
    let after = Load { all: 1200, used: 120, own: 150 };
    assert!((after.others_since(&before) - 0.25).abs() < 1e-9);
}
