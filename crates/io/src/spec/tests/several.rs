//! Blocks of several sizes, steps, ranges, steady states.

use super::*;
use crate::job::{Sizes, Sync};
use crate::steady::{Criterion, Measure};
use std::time::Duration;

#[test]
fn blocks_of_several_sizes() {
    let split = |shares: &[(u64, u8)]| Some(Sizes::Split(shares.to_vec()));
    let of = job("rw=randrw bssplit=4k/10:64k/50:32k/40,8k/ bs=16k");
    assert_eq!(of.sizes, [split(&[(4096, 10), (65_536, 50), (32_768, 40)]), None]);
    // The largest is what buffers are made for; one size is not a choice.
    assert_eq!(of.block_bytes, [65_536, 8192]);
    // Sizes without a percentage share the rest.
    let of = job("rw=write bssplit=4k/:8k/:16k/");
    assert_eq!(of.sizes[1], split(&[(4096, 33), (8192, 33), (16_384, 34)]));
    let range = Some(Sizes::Range { least: 1024, largest: 4096 });
    let of = job("bs=64k bsrange=1k-4k,2k-2k");
    assert_eq!((of.sizes, of.block_bytes), ([range, None], [4096, 2048]));
    // The last of both counts.
    let of = job("bsrange=1k-4k bs=64k");
    assert_eq!((of.sizes, of.block_bytes), ([None, None], [65_536; 2]));
    // Random blocks of several sizes have no map.
    assert!(!job("rw=randread bsrange=4k-8k").random_map && job("rw=randread").random_map);
}

#[test]
fn steady_states() {
    let of = job("ss=iops_slope:0.3% ss_dur=5 ss_ramp=2s").steady.unwrap();
    let criterion = Criterion { of: Measure::Blocks, slope: true, limit: 0.3, percent: true };
    assert_eq!((of.criterion, of.window_s, of.ramp_s), (criterion, 5, 2));
    let of = job("steadystate=bw:2m steadystate_duration=1m").steady.unwrap();
    assert_eq!((of.criterion.limit, of.criterion.percent, of.window_s), (2097152.0, false, 60));
    let request = line("name=x size=1m ss=iops:2%").unwrap();
    assert_eq!(request.jobs[0].steady, None);
    assert!(request.warnings[0].contains("steadystate has no effect"), "{:?}", request.warnings);
    for (options, said) in [
        ("ss=late:5%", "is none of iops"),
        ("ss=iops", "is not a criterion"),
        ("ss=iops:0%", "needs a limit above 0"),
        ("ss=clat:5%", "is none of iops"),
    ] {
        assert!(wrong(options).contains(said), "{options}");
    }
}

#[test]
fn steps_ranges_and_shares() {
    let of = job("rw=read:-8k");
    assert_eq!((of.skip_bytes, of.run_blocks, of.rw.random), (-8192, 1, false));
    let of = job("rw=randread:8");
    assert_eq!((of.skip_bytes, of.run_blocks, of.random_map), (0, 8, false));
    let of = job("rw=write number_ios=7 sync=dsync fallocate=none overwrite=1 verify=xxhash");
    assert_eq!(
        (of.blocks_max, of.sync, of.verify),
        (Some(7), Sync::Data, Some(VerifyKind::Xxhash))
    );
    assert_eq!((of.reserve, of.overwrite), (false, true));
    let of = job("startdelay=1-2500ms filesize=4k-1m offset_increment=25%");
    assert_eq!(of.start_delay, Duration::from_secs(1));
    assert_eq!(of.start_delay_max, Some(Duration::from_millis(2500)));
    assert_eq!((of.file_bytes, of.file_bytes_max), (Some(4096), Some(1 << 20)));
    assert_eq!(of.offset_increment, Amount::Percent(25));
    assert_eq!(job("startdelay=2").start_delay_max, None);
    let of = job("filesize=1m-1m");
    assert_eq!((of.file_bytes, of.file_bytes_max), (Some(1 << 20), None));
}
