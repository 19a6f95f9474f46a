//! Parsers on texts of real kernels and on malformed texts.

use crate::sample::limits::{cpu_max, keyed, quota_periods, served, throttle};
use crate::sample::parse::*;
use crate::sample::*;

#[test]
fn stat_of_a_machine() {
    let text = b"cpu  300 30 60 1000 40 5 5 7 0 0\n\
        cpu0 100 10 20 500 10 1 2 3 0 0\n\
        cpu12 200 20 40 500 30 4 3 4 0 0 99\n\
        intr 846540 0 0 1 2 3\nctxt 1000466\nbtime 1795293601\nprocesses 26050\n\
        procs_running 3\nprocs_blocked 2\nsoftirq 389510 0 55123\n";
    let mut sample = Sample::default();
    stat(text, 100, &mut sample);
    let ms = 1_000_000;
    let first = CpuTimes {
        user_ns: 1100 * ms,
        system_ns: 230 * ms,
        iowait_ns: 100 * ms,
        idle_ns: 5000 * ms,
        steal_ns: 30 * ms,
    };
    assert_eq!(sample.cpus[0], (0, first));
    assert_eq!((sample.cpus.len(), sample.cpus[1].0), (2, 12));
    assert_eq!((sample.running, sample.blocked), (3, 2));
    assert_eq!((sample.switches, sample.interrupts), (1_000_466, 846_540));
    // A kernel without steal time, and a truncated line.
    let mut sample = Sample::default();
    stat(b"cpu0 1 1 1 1\ncpu1 7", 0, &mut sample);
    assert_eq!(sample.cpus.len(), 2);
    assert_eq!(sample.cpus[0].1.steal_ns, 0);
}

#[test]
fn memory_of_a_machine() {
    let text = b"MemTotal:       24684096 kB\nMemFree:         6263128 kB\n\
        MemAvailable:   23869680 kB\nBuffers:           72504 kB\nCached:         1000 kB\n\
        SwapCached:            5 kB\nSwapTotal:           100 kB\nSwapFree:             40 kB\n\
        Dirty:            226072 kB\nWriteback:            36 kB\nWritebackTmp:          9 kB\n\
        SReclaimable:     24 kB\nHugePages_Total:       0\n";
    let found = memory(text);
    assert_eq!(found.total_bytes, 24_684_096 * 1024);
    assert_eq!(found.available_bytes, 23_869_680 * 1024);
    assert_eq!((found.cached_bytes, found.swap_used_bytes), (1024 * 1024, 60 * 1024));
    assert_eq!((found.dirty_bytes, found.writeback_bytes), (226_072 * 1024, 36 * 1024));
    let old = memory(b"MemFree: 10 kB\nCached: 5 kB\nDirty");
    assert_eq!(old.available_bytes, 15 * 1024);
    assert_eq!(memory(b""), Memory::default());
}

#[test]
fn paging_of_a_machine() {
    let text = b"nr_free_pages 1\nnr_dirty 18007\nnr_dirty_threshold 1071432\n\
        nr_dirty_background_threshold 535062\npgpgin 5\npswpin 3\npswpout 4\n";
    let mut sample = Sample::default();
    paging(text, 4096, &mut sample);
    assert_eq!(sample.memory.dirty_threshold_bytes, Some(1_071_432 * 4096));
    assert_eq!(sample.swapped_bytes, (3 * 4096, 4 * 4096));
    assert_eq!(sample.paged_bytes, (5 * 1024, 0));
    let mut sample = Sample::default();
    paging(b"nr_dirty_threshold \npswpin x", 4096, &mut sample);
    assert_eq!(sample, Sample::default());
}

#[test]
fn diskstats_of_many_kernels() {
    let text = b"   7       1 loop1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
        254       0 vda 148460 11018 10698314 209982 36948 166154 73149856 286203 3 31964 499361 8711 64 1295504 3092 1686 84 77\n\
        8       0 sda 1 2 8 4 5 6 16 8 0 10 11\n\
        8       1 sda1 1 2 3 4\n\
        9       9 md9 18446744073709551615 0 99999999999999999999999 0 0 0 0 0 0 0 0\n\
        8       2 sdb 1 2 3";
    let found = disks(text);
    let names: Vec<_> = found.iter().map(|disk| disk.name.as_str()).collect();
    // Idle disks and partitions of very old kernels are left out.
    assert_eq!(names, ["vda", "sda", "md9"]);
    let vda = &found[0];
    assert_eq!((vda.dev, vda.reads, vda.read_bytes), ((254, 0), 148_460, 10_698_314 * 512));
    assert_eq!((vda.read_ms, vda.writes, vda.write_bytes), (209_982, 36_948, 73_149_856 * 512));
    assert_eq!((vda.write_ms, vda.in_flight), (286_203, 3));
    assert_eq!((vda.busy_ms, vda.queue_ms), (31_964, 499_361));
    assert_eq!((found[2].reads, found[2].read_bytes), (u64::MAX, u64::MAX));
}

#[test]
fn network_of_a_machine() {
    let text = b"Inter-|   Receive                                                |  Transmit\n \
        face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
        lo:    3193      29    0    0    0     0          0         0     3193      29    0    0    0     0       0          0\n  \
        eth0:252765362   10945    0    2    0     0          0         0   772997    7045    0    3    0     0       0          0\n  \
        cut: 1 2 3\n";
    let found: Vec<_> = links(text).collect();
    assert_eq!(found.len(), 2);
    let (name, bits_per_s) = ("eth0".to_owned(), None);
    let eth0 = Link { name, rx_bytes: 252_765_362, tx_bytes: 772_997, drops: 5, bits_per_s };
    assert_eq!(found[1], eth0);
    let snmp = b"Ip: Forwarding DefaultTTL\nIp: 2 64\n\
        Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens InSegs OutSegs RetransSegs InErrs\n\
        Tcp: 1 200 120000 -1 28 10916 7023 12 0\nUdp: InDatagrams\nUdp: 47\n";
    assert_eq!(tcp(snmp), Some(Tcp { segments_out: 7023, retransmits: 12 }));
    assert_eq!(tcp(b"Tcp: OutSegs RetransSegs\nTcp: 5"), None);
    assert_eq!(tcp(b""), None);
}

#[test]
fn pressure_of_a_machine() {
    let text = b"some avg10=1.22 avg60=0.65 avg300=1.15 total=15874708\n\
        full avg10=1.12 avg60=0.59 avg300=0.99 total=12356177\n";
    assert_eq!(pressure(text), (Some(15_874_708), Some(12_356_177)));
    assert_eq!(pressure(b"some avg10=0.00 total=9"), (Some(9), None));
    assert_eq!(pressure(b"full total="), (None, None));
}

#[test]
fn a_process() {
    let text = b"26050 (a) R (b) S 26043 26043 21648 0 -1 4194304 101 102 3 4 50 60 70 80 20 0 6 0 129172 3133440 350 18446744073709551615 9";
    let found = process_stat(text).unwrap();
    assert_eq!((found.state, found.parent, found.threads, found.rss_pages), (b'S', 26_043, 6, 350));
    assert_eq!((found.minor_faults, found.major_faults), ((101, 102), (3, 4)));
    assert_eq!((found.user, found.system), ((50, 70), (60, 80)));
    assert_eq!(process_stat(&text[..60]), None);
    assert_eq!(process_stat(b"1 (a"), None);
    let io = b"rchar: 8688\nwchar: 1712\nsyscr: 14\nsyscw: 2\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 77\n";
    assert_eq!(process_io(io), Some((4096, 8192)));
    assert_eq!(process_io(b"read_bytes: 4096\ncancelled_write_bytes: 1"), None);
    let status = b"Name:\tcat\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
    assert_eq!(switches(status), Some((12, 3)));
    assert_eq!(schedstat(b"793787 41 1\n"), Some((793_787, 41)));
    assert_eq!(schedstat(b"793787"), None);
    assert_eq!(resident_pages(b"100 50 3 4 0 6 0\n"), Some(50));
}

#[test]
fn ceilings() {
    assert_eq!(cpu_max(b"150000 100000\n"), Some(1.5));
    assert_eq!(cpu_max(b"max 100000\n"), None);
    assert_eq!(cpu_max(b"50000\n"), Some(0.5));
    assert_eq!(cpu_max(b"50000 0"), None);
    assert_eq!(quota_periods(b"usage_usec 5\nnr_periods 20\nnr_throttled 3\n"), Some((20, 3)));
    assert_eq!(quota_periods(b"usage_usec 5\n"), None);
    let max = b"8:16 rbps=2097152 wbps=max riops=max wiops=120\n8:1 wiops=7\n";
    assert_eq!(keyed(max, (8, 16), b"wiops="), Some(120));
    assert_eq!(keyed(max, (8, 16), b"wbps="), None);
    assert_eq!(keyed(max, (8, 1), b"wiops="), Some(7));
    assert_eq!(throttle(b"8:16 500\n8:1 3000\n", (8, 1)), Some(3000));
    assert_eq!(throttle(b"8:16 500\n", (8, 1)), None);
    let text = b"7:0 Read 19539\n7:0 Write 105256\n7:0 Sync 3\n7:0 Total 124795\nTotal 124795\n";
    assert_eq!(served(text, (7, 0)), Some((19_539, 105_256)));
    assert_eq!(served(b"Total 0\n", (7, 0)), None);
}

proptest::proptest! {
    #[test]
    fn no_text_makes_a_parser_fail(
        text in proptest::collection::vec(proptest::num::u8::ANY, 0..300),
        words in "((cpu|some|full|Tcp:|7:0|Read|total=|nr_periods|eth0:|\\)|[0-9]{1,25}|-1|max)[ \n]){0,60}",
    ) {
        for text in [text.as_slice(), words.as_bytes()] {
            let mut sample = Sample::default();
            stat(text, 100, &mut sample);
            memory(text);
            paging(text, 4096, &mut sample);
            disks(text);
            proptest::prop_assert!(links(text).count() <= text.len());
            tcp(text);
            pressure(text);
            process_stat(text);
            process_io(text);
            switches(text);
            schedstat(text);
            resident_pages(text);
            cpu_max(text);
            quota_periods(text);
            keyed(text, (7, 0), b"rbps=");
            throttle(text, (7, 0));
            served(text, (7, 0));
            proptest::prop_assert!(hakobu_sys::cgroup::parse(text, text).len() <= text.len());
        }
    }
}
