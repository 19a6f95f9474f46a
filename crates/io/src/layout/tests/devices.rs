//! Block devices: read freely, written only where it is permitted and they are not in use.

use super::rig::{Loop, Mount, skip, tool};
use super::*;
use hakobu_sys::blocks::open_for_io;

const MIB: u64 = 1 << 20;

#[test]
fn devices_are_read_whole_and_written_only_if_permitted() {
    let Some(device) = Loop::new(16, b"somebody's", "", "devices") else { return };
    let path = &device.device;
    let layout = laid(&on("randread", path), &NOTHING);
    let file = &layout.files[0];
    assert_eq!((file.bytes, file.laid_out, file.device), (16 * MIB, false, true));
    assert_eq!(layout.clones[0].extents[0].bytes, 16 * MIB);
    for rw in ["write", "randrw"] {
        let why = refused(&on(rw, path), &NOTHING);
        assert!(why.contains("block device") && why.contains("--allow-overwrite"), "{why}");
    }
    let mut larger = on("read", path);
    larger.size = Some(Amount::Bytes(17 * MIB));
    assert!(refused(&larger, &OVERWRITE).contains("too small"));
    let mut quarter = on("read", path);
    (quarter.size, quarter.offset) = (Some(Amount::Percent(25)), Amount::Percent(50));
    let part = laid(&quarter, &NOTHING).clones[0].extents[0];
    assert_eq!((part.begin_bytes, part.bytes), (8 * MIB, 4 * MIB));
    // Permitted, it is claimed until the end, and neither touched nor removed.
    let unlink = Job { unlink: true, clones: 2, ..on("write", path) };
    let layout = laid(&unlink, &OVERWRITE);
    let claim = || open_for_io(path, true, false, false, true);
    assert!(claim().is_err());
    assert!(open_for_io(path, true, true, false, false).is_ok(), "jobs open it all the same");
    assert!(layout.remove().is_empty());
    drop(layout);
    let mut layout = laid(&on("write", path), &OVERWRITE);
    layout.release();
    let claimed = claim().unwrap();
    let why = refused(&on("write", path), &OVERWRITE);
    assert!(why.contains("in use"), "{why}");
    drop(claimed);
    assert!(std::fs::read(path).unwrap().starts_with(b"somebody's"));
}

#[test]
fn devices_without_a_size_are_refused() {
    let Some(device) = Loop::new(0, &[], "", "devices without a size") else { return };
    let why = refused(&on("read", &device.device), &OVERWRITE);
    assert!(why.contains("how large"), "{why}");
}

#[test]
fn mounted_devices_are_never_written() {
    let Some(mount) = Mount::ext4(16, "", "mounted devices") else { return };
    let device = &mount.device.as_ref().unwrap().device;
    let why = refused(&on("randwrite", device), &OVERWRITE);
    let root = mount.path().display().to_string();
    assert!(why.contains("in use") && why.contains(&root), "{why}");
    // Reading is always permitted.
    laid(&on("randread", device), &NOTHING);
}

#[test]
fn the_disk_of_a_mounted_partition_is_not_written_either() {
    let what = "partitions";
    let Some(disk) = Loop::new(16, &[], "", what) else { return };
    let name = disk.device.display();
    let part = format!("{name}p1");
    // 14 MiB from 1 MiB on, in sectors; a table of partitions would need a kernel that reads it.
    let mounted = tool(&format!("addpart {name} 1 2048 28672"))
        .and_then(|_| tool(&format!("mkfs.ext4 -q -F {part}")))
        .and_then(|_| Mount::of(part.as_ref()));
    let mount = match mounted {
        Ok(mount) => mount,
        Err(why) => return skip(&format!("{what}: {why}")),
    };
    for path in [&disk.device, &part.clone().into()] {
        let why = refused(&on("write", path), &OVERWRITE);
        assert!(why.contains(&mount.path().display().to_string()), "{why}");
    }
    drop(mount);
    laid(&on("write", part.as_ref()), &OVERWRITE);
    laid(&on("write", &disk.device), &OVERWRITE);
    tool(&format!("delpart {name} 1")).unwrap();
}
