//! Rates between synthetic samples.

use crate::sample::*;

fn sample(at_s: u64) -> Sample {
    Sample { at_ns: at_s * 1_000_000_000, ..Sample::default() }
}

fn disk() -> Disk {
    Disk { name: "vda".into(), dev: (254, 0), ..Disk::default() }
}

#[test]
fn a_disk_and_a_link() {
    let (mut from, mut to) = (sample(1), sample(3));
    from.disks = vec![disk()];
    to.disks = vec![Disk {
        reads: 100,
        read_bytes: 819_200,
        read_ms: 300,
        writes: 300,
        write_bytes: 4_000_000,
        write_ms: 900,
        busy_ms: 1000,
        queue_ms: 1200,
        ..disk()
    }];
    let link = Link { name: "eth0".into(), bits_per_s: Some(1), ..Link::default() };
    from.links = vec![Link { name: "gone".into(), ..Link::default() }, link.clone()];
    to.links = vec![Link { rx_bytes: 10, tx_bytes: 20, drops: 2, ..link }];
    let rates = Rates::between(&from, &to);
    assert_eq!(rates.span_s, 2.0);
    let disk = &rates.disks[0];
    assert_eq!((disk.read_iops, disk.write_iops), (50.0, 150.0));
    assert_eq!((disk.read_bytes_per_s, disk.write_bytes_per_s), (409_600.0, 2_000_000.0));
    assert_eq!((disk.queue, disk.busy, disk.latency_ms), (0.6, 0.5, Some(3.0)));
    let link = &rates.links[0];
    assert_eq!((link.rx_bytes_per_s, link.tx_bytes_per_s, link.drops_per_s), (5.0, 10.0, 1.0));
}

#[test]
fn counters_of_a_disk_that_begin_anew() {
    let (mut from, mut to) = (sample(0), sample(1));
    from.disks = vec![Disk { reads: 10, busy_ms: u64::from(u32::MAX) - 99, ..disk() }];
    to.disks = vec![Disk { reads: 20, busy_ms: 400, ..disk() }];
    let rates = Rates::between(&from, &to);
    assert_eq!(rates.disks[0].busy, 0.5, "around 32 bits");
    // A decrease is not a wrap.
    from.disks[0].busy_ms = 1000;
    assert_eq!(Rates::between(&from, &to).disks[0].busy, 0.0);
    // Another disk with the same number.
    from.disks[0].reads = 21;
    assert!(Rates::between(&from, &to).disks.is_empty());
}

#[test]
fn processes_and_threads() {
    let (mut from, mut to) = (sample(0), sample(2));
    let thread = |tid, ran_s: u64, waited_s: u64| Thread {
        tid,
        ran_ns: ran_s * 1_000_000_000,
        waited_ns: waited_s * 1_000_000_000,
    };
    from.process.threads = vec![thread(1, 50, 0), thread(2, 4, 1), thread(3, 9, 9)];
    to.process.threads = vec![thread(1, 50, 0), thread(3, 10, 9), thread(4, 90, 90)];
    to.process.user_ns = 1_000_000_000;
    to.process.system_ns = 2_000_000_000;
    to.process.device_read_bytes = Some(10);
    let rates = Rates::between(&from, &to).process;
    assert_eq!((rates.user, rates.system, rates.cpu()), (0.5, 1.0, 1.5));
    assert_eq!(rates.busiest, Some((3, 0.5)), "a thread that is new is not known long enough");
    assert_eq!(rates.run_delay, Some(0.0));
    assert_eq!(rates.device_read_bytes_per_s, None);
    to.process.threads[1].waited_ns += 3_000_000_000;
    assert_eq!(Rates::between(&from, &to).process.run_delay, Some(0.75));
}

#[test]
fn shares() {
    let (mut from, mut to) = (sample(0), sample(2));
    let times = |user_ns, idle_ns| CpuTimes { user_ns, idle_ns, ..CpuTimes::default() };
    from.cpus = vec![(0, times(0, 0)), (1, times(0, 900))];
    // Idle time of the second CPU decreases slightly.
    to.cpus = vec![(0, times(300, 100)), (1, times(100, 899))];
    from.pressure.io_some_us = Some(0);
    to.pressure = PressureTimes { io_some_us: Some(500_000), ..PressureTimes::default() };
    from.tcp = Some(Tcp { segments_out: 100, retransmits: 5 });
    to.tcp = Some(Tcp { segments_out: 300, retransmits: 7 });
    from.quota_periods = Some((10, 1));
    to.quota_periods = Some((30, 16));
    let rates = Rates::between(&from, &to);
    assert_eq!((rates.cpu.used(), rates.cpu.idle), (1.75, 0.25));
    assert_eq!((rates.pressure.io_some, rates.pressure.cpu_some), (Some(0.25), None));
    assert_eq!((rates.retransmits, rates.segments_per_s), (Some(0.01), Some(100.0)));
    assert_eq!(rates.quota_throttled, Some(0.75));
}

#[test]
fn no_time_and_time_backwards_are_nothing() {
    let (mut from, mut to) = (sample(5), sample(5));
    to.process.user_ns = 5;
    from.switches = 9;
    assert_eq!(Rates::between(&from, &to), Rates::default());
    to.at_ns = 1;
    assert_eq!(Rates::between(&from, &to), Rates::default());
}

proptest::proptest! {
    #[test]
    fn rates_are_never_nonsense(values in proptest::collection::vec(proptest::num::u64::ANY, 24)) {
        let make = |v: &[u64]| Sample {
            at_ns: v[0],
            cpus: vec![(0, CpuTimes { user_ns: v[1], idle_ns: v[2], ..CpuTimes::default() })],
            disks: vec![Disk { reads: v[3], read_ms: v[4], busy_ms: v[5], queue_ms: v[6], ..disk() }],
            tcp: Some(Tcp { segments_out: v[7], retransmits: v[8] }),
            process: Process {
                user_ns: v[9],
                threads: vec![Thread { tid: 1, ran_ns: v[10], waited_ns: v[11] }],
                ..Process::default()
            },
            ..Sample::default()
        };
        let rates = Rates::between(&make(&values[..12]), &make(&values[12..]));
        let share = |value: f64| (0.0..=1.0).contains(&value);
        proptest::prop_assert!(rates.cpus.iter().all(|(_, cpu)| share(cpu.user) && share(cpu.idle)));
        proptest::prop_assert!(rates.disks.iter().all(|disk| share(disk.busy) && disk.queue >= 0.0));
        proptest::prop_assert!(rates.retransmits.is_none_or(share));
        proptest::prop_assert!(rates.process.run_delay.is_none_or(share));
        proptest::prop_assert!(rates.process.busiest.is_none_or(|(_, ran)| share(ran)));
        proptest::prop_assert!(rates.process.cpu().is_finite() && rates.process.cpu() >= 0.0);
    }
}
