//! Files that are laid out, used again, and removed.

use super::rig::{Mount, tool};
use super::*;
use std::os::unix::fs::MetadataExt;

const MIB: u64 = 1 << 20;

#[test]
fn all_clones_get_their_files_and_they_go_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = in_folder("randread", folder.path(), 3 * MIB + 4096);
    (job.clones, job.files) = (3, 2);
    let layout = laid(&job, &NOTHING);
    let want = ["job.0.0", "job.0.1", "job.1.0", "job.1.1", "job.2.0", "job.2.1"];
    assert_eq!(names(folder.path()), want);
    assert_eq!(layout.clones.len(), 3);
    let mut contents = std::collections::HashSet::new();
    for (number, clone) in layout.clones.iter().enumerate() {
        assert_eq!((clone.job, clone.clone), (0, number as u32));
        assert_eq!(clone.files, [2 * number, 2 * number + 1]);
        for (file, extent) in clone.files.iter().zip(&clone.extents) {
            let file = &layout.files[*file];
            assert_eq!((extent.begin_bytes, extent.bytes), (0, file.bytes));
            assert_eq!((file.bytes, file.laid_out, file.device), (3 * MIB / 2 + 2048, true, false));
            let content = std::fs::read(&file.path).unwrap();
            assert_eq!(content.len() as u64, file.bytes);
            let zeros = content.iter().filter(|byte| **byte == 0).count() as u64;
            assert!(zeros < file.bytes / 100, "{zeros} zeros");
            contents.insert(content);
        }
    }
    assert_eq!(contents.len(), 6, "no two files are alike");
    assert!(layout.remove().is_empty());
    assert!(names(folder.path()).is_empty());
    assert!(layout.remove().is_empty(), "what is gone is not a problem");
}

/// Blocks that are on the device: what is read past the page cache is what was written; and what is
/// only written has its blocks reserved.
#[test]
fn laid_out_files_have_their_blocks() {
    let Some(mount) = Mount::ext4(64, "", "blocks of files that are laid out") else { return };
    let mut read = in_folder("read", mount.path(), 4 * MIB);
    read.direct = true;
    let layout = laid(&read, &NOTHING);
    let path = &layout.files[0].path;
    let cached = std::fs::read(path).unwrap();
    let copy = mount.path().join("copy");
    tool(&format!("dd if={} of={} iflag=direct bs=1M", path.display(), copy.display())).unwrap();
    assert_eq!(std::fs::read(copy).unwrap(), cached);
    assert!(cached.iter().filter(|byte| **byte == 0).count() < 100_000);
    let mut write = in_folder("randwrite", mount.path(), 4 * MIB);
    write.name = "writes".to_owned();
    let layout = laid(&write, &NOTHING);
    let entry = std::fs::metadata(&layout.files[0].path).unwrap();
    assert_eq!(entry.len(), 4 * MIB);
    assert!(entry.blocks() * 512 >= 4 * MIB, "{} blocks", entry.blocks());
    // With both, there is something to read.
    let mixed = Job { name: "mixed".to_owned(), ..in_folder("randrw", mount.path(), MIB) };
    let layout = laid(&mixed, &NOTHING);
    let content = std::fs::read(&layout.files[0].path).unwrap();
    assert!(content.iter().filter(|byte| **byte == 0).count() < 20_000);
}

#[test]
fn what_an_earlier_run_kept_is_known_and_used() {
    let Some(mount) = Mount::ext4(64, "", "files of an earlier run") else { return };
    let job = in_folder("read", mount.path(), 2 * MIB);
    let layout = laid(&job, &KEEP);
    assert!(layout.remove().is_empty());
    let path = layout.files[0].path.clone();
    let before = std::fs::read(&path).unwrap();
    let inode = std::fs::metadata(&path).unwrap().ino();
    // Read again, then written: it is ours.
    for rw in ["read", "randwrite", "rw"] {
        let again = laid(&in_folder(rw, mount.path(), 2 * MIB), &NOTHING);
        assert!(!again.files[0].laid_out);
        assert!(again.remove().is_empty());
        assert_eq!(std::fs::metadata(&path).unwrap().ino(), inode, "it stays, as it was kept");
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
    // Larger: prolonged, with content.
    let larger = laid(&in_folder("read", mount.path(), 3 * MIB), &NOTHING);
    assert_eq!(larger.files[0].bytes, 3 * MIB);
    let after = std::fs::read(&path).unwrap();
    assert_eq!((after.len() as u64, &after[..before.len()]), (3 * MIB, &before[..]));
    assert!(after[before.len()..].iter().filter(|byte| **byte == 0).count() < 20_000);
    // A smaller part of a larger file.
    let part = laid(&in_folder("read", mount.path(), MIB), &NOTHING);
    assert_eq!((part.files[0].bytes, part.clones[0].extents[0].bytes), (3 * MIB, MIB));
    // unlink=1 removes what is ours.
    let unlink = Job { unlink: true, ..in_folder("read", mount.path(), MIB) };
    assert!(laid(&unlink, &KEEP).remove().is_empty());
    assert!(!path.exists());
}

#[test]
fn jobs_share_files_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shared");
    let mut first = on("write", &file);
    (first.size, first.clones) = (Some(Amount::Bytes(MIB)), 2);
    first.offset_increment = Amount::Bytes(MIB);
    let mut second = on("read", &file);
    second.size = Some(Amount::Percent(50));
    let stop = AtomicBool::new(false);
    let layout = lay_out(&[first, second], &NOTHING, &stop).unwrap();
    assert_eq!((layout.files.len(), layout.files[0].bytes), (1, 2 * MIB));
    let parts: Vec<_> = layout.clones.iter().map(|clone| clone.extents[0]).collect();
    let parts: Vec<_> = parts.iter().map(|part| (part.begin_bytes, part.bytes)).collect();
    assert_eq!(parts, [(0, MIB), (MIB, MIB), (0, MIB)]);
    assert!(layout.remove().is_empty() && !file.exists());
}

#[test]
fn files_that_were_replaced_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let layout = laid(&in_folder("read", folder.path(), MIB), &NOTHING);
    let path = &layout.files[0].path;
    std::fs::rename(path, folder.path().join("elsewhere")).unwrap();
    std::fs::write(path, "somebody's").unwrap();
    let problems = layout.remove();
    assert!(problems.len() == 1 && problems[0].contains("job.0.0"), "{problems:?}");
    assert_eq!(std::fs::read(path).unwrap(), b"somebody's");
}

#[test]
fn stopping_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = in_folder("read", folder.path(), MIB);
    job.clones = 4;
    let stop = AtomicBool::new(true);
    let why = lay_out(&[job], &KEEP, &stop).unwrap_err();
    assert!(why.contains("stopped"), "{why}");
    assert!(names(folder.path()).is_empty());
}

#[test]
fn nothing_is_made_for_the_null_engine() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = in_folder("randrw", folder.path(), 1 << 50);
    job.engine = crate::Engine::Null;
    let layout = laid(&job, &NOTHING);
    let file = &layout.files[0];
    assert_eq!((file.bytes, file.laid_out, file.device), (1 << 50, false, false));
    assert!(names(folder.path()).is_empty() && layout.remove().is_empty());
    job.size = None;
    assert!(refused(&job, &NOTHING).contains("size="));
}

#[test]
fn content_is_what_the_job_would_write() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = in_folder("read", folder.path(), MIB);
    job.zero = true;
    let layout = laid(&job, &NOTHING);
    assert!(std::fs::read(&layout.files[0].path).unwrap().iter().all(|byte| *byte == 0));
    layout.remove();
    (job.zero, job.compress_percent, job.create_only) = (false, Some(75), true);
    let layout = laid(&job, &NOTHING);
    let content = std::fs::read(&layout.files[0].path).unwrap();
    let zeros = content.iter().filter(|byte| **byte == 0).count() as f64 / MIB as f64;
    assert!((zeros - 0.75).abs() < 0.01, "{zeros}");
    // Files that were only created are not removed.
    assert!(layout.remove().is_empty() && layout.files[0].path.exists());
}
