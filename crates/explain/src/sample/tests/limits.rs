//! Limits of control groups simulated by plain files.

use crate::sample::{Limits, Served};
use hakobu_sys::cgroup::Hierarchy;
use std::path::{Path, PathBuf};

struct Groups(PathBuf);

impl Groups {
    fn new(name: &str, files: &[(&str, &str)]) -> Groups {
        let root = std::env::temp_dir().join(format!("hakobu-{name}-{}", std::process::id()));
        for (file, text) in files {
            let file = root.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        Groups(root)
    }

    fn hierarchy(&self, controllers: Option<&[&str]>, own: &str) -> Hierarchy {
        let controllers = controllers.map(|names| names.iter().map(|&name| name.into()).collect());
        Hierarchy { controllers, mount: self.0.clone(), own: self.0.join(Path::new(own)) }
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn version_2_counts_all_groups_above() {
    let groups = Groups::new(
        "unified",
        &[
            ("a/b/cpu.max", "max 100000\n"),
            ("a/cpu.max", "150000 100000\n"),
            ("a/cpu.stat", "usage_usec 7\nnr_periods 40\nnr_throttled 10\n"),
            ("a/b/memory.max", "2000000\n"),
            ("a/memory.max", "1000000\n"),
            ("memory.max", "max\n"),
            ("a/b/io.max", "8:0 rbps=max wbps=1000 riops=max wiops=max\n"),
            ("a/io.max", "8:0 rbps=max wbps=max riops=50 wiops=max\n8:1 wiops=1\n"),
            ("a/b/io.stat", "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n"),
            ("a/io.stat", "8:0 rbytes=10 wbytes=20 rios=30 wios=40 dbytes=0 dios=0\n"),
        ],
    );
    let limits = Limits::of(&[groups.hierarchy(None, "a/b")], vec![0, 1, 2, 3]);
    assert_eq!((limits.quota_cpus, limits.cpus()), (Some(1.5), 1.5));
    assert_eq!(limits.memory_bytes, Some(1_000_000));
    let text = limits.quota_counters().unwrap();
    let periods = crate::sample::limits::quota_periods(text.read(&mut Vec::new()).unwrap());
    assert_eq!(periods, Some((40, 10)));
    let ceilings = limits.io_ceilings((8, 0));
    let short: Vec<_> = ceilings.iter().map(|c| (c.operations, c.writes, c.per_s)).collect();
    assert_eq!(short, [(false, true, 1000), (true, false, 50)]);
    // Each ceiling is compared with the usage of its own group.
    let ops = |at: usize| limits.io_served_below((8, 0), &ceilings[at]).unwrap().write_ops;
    assert_eq!((ops(0), ops(1)), (4, 40));
    let own = Served { read_ops: 3, write_ops: 4, read_bytes: 1, write_bytes: 2 };
    assert_eq!(limits.io_served_below((8, 0), &ceilings[0]), Some(own));
    assert_eq!(limits.io_served_below((8, 2), &ceilings[0]), None);
}

#[test]
fn version_1_charges_the_own_group_and_the_root() {
    let served = |read, write| format!("8:0 Read {read}\n8:0 Write {write}\nTotal 9\n");
    let files = [
        ("cpu.cfs_quota_us", "-1\n".to_owned()),
        ("a/cpu.cfs_quota_us", "300000\n".into()),
        ("a/cpu.cfs_period_us", "100000\n".into()),
        ("a/b/memory.limit_in_bytes", "9223372036854771712\n".into()),
        ("blkio.throttle.write_iops_device", "8:0 3000\n".into()),
        ("a/blkio.throttle.write_iops_device", "8:0 7\n".into()),
        ("a/b/blkio.throttle.read_bps_device", "8:0 125000000\n".into()),
        ("blkio.throttle.io_serviced", served(10, 20)),
        ("blkio.throttle.io_service_bytes", served(100, 200)),
        ("a/blkio.throttle.io_serviced", served(5000, 5000)),
        ("a/b/blkio.throttle.io_serviced", served(1, 2)),
    ];
    let files: Vec<_> = files.iter().map(|(file, text)| (*file, text.as_str())).collect();
    let groups = Groups::new("single", &files);
    let hierarchy = groups.hierarchy(Some(&["cpu", "memory", "blkio"]), "a/b");
    let limits = Limits::of(&[hierarchy], vec![0, 1]);
    // A quota above the affinity has no effect.
    assert_eq!((limits.quota_cpus, limits.cpus()), (Some(3.0), 2.0));
    assert_eq!(limits.memory_bytes, None);
    let ceilings = limits.io_ceilings((8, 0));
    let short: Vec<_> = ceilings.iter().map(|c| (c.from, c.per_s)).collect();
    assert_eq!(
        short,
        [
            ("blkio.throttle.read_bps_device", 125_000_000),
            ("blkio.throttle.write_iops_device", 3000),
        ]
    );
    let own = Served { read_ops: 1, write_ops: 2, ..Served::default() };
    assert_eq!(limits.io_served_below((8, 0), &ceilings[0]), Some(own));
    let root = Served { read_ops: 10, write_ops: 20, read_bytes: 100, write_bytes: 200 };
    assert_eq!(limits.io_served_below((8, 0), &ceilings[1]), Some(root));
}

#[test]
fn nothing_set_is_no_limit() {
    let groups = Groups::new("bare", &[("cgroup.procs", "")]);
    let limits = Limits::of(&[groups.hierarchy(None, "")], vec![5]);
    assert_eq!((limits.quota_cpus, limits.memory_bytes, limits.cpus()), (None, None, 1.0));
    assert_eq!(limits.io_ceilings((8, 0)), []);
    let none = Limits::of(&[], Vec::new());
    assert!(none.cpus() >= 1.0 && none.quota_counters().is_none());
    assert!(Limits::read().cpus() > 0.0);
}
