//! Layout on real file systems and devices: what is made, what is used, what is refused.

use super::files::{check, extent as extent_of, names as names_of};
use super::{Layout, Safety, lay_out};
use crate::job::tests::job;
use crate::job::{Amount, Job};
use crate::pattern::Extent;
use hakobu_sys::blocks::open_for_io;
use parking_lot::Mutex;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
const NOTHING: Safety = Safety { allow_overwrite: false, keep: false };
const KEEP: Safety = Safety { allow_overwrite: false, keep: true };
const OVERWRITE: Safety = Safety { allow_overwrite: true, keep: false };

/// A job with files of its own in a folder, so many bytes of them for each clone.
fn in_folder(rw: &str, folder: &Path, bytes: u64) -> Job {
    let size = Some(Amount::Bytes(bytes));
    Job { directories: vec![folder.to_owned()], size, ..job(rw) }
}

/// A job on one file or device.
fn on(rw: &str, path: &Path) -> Job {
    Job { filenames: vec![path.to_owned()], ..job(rw) }
}

/// Reason that a job is refused.
#[track_caller]
fn refused(job: &Job, safety: &Safety) -> String {
    let stop = AtomicBool::new(false);
    lay_out(std::slice::from_ref(job), safety, &stop).map(|_| ()).unwrap_err()
}

#[track_caller]
fn laid(job: &Job, safety: &Safety) -> Layout {
    lay_out(std::slice::from_ref(job), safety, &AtomicBool::new(false)).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name != "lost+found").collect();
    names.sort();
    names
}

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
    job.engine = crate::job::EngineKind::Null;
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

fn extent(job: &Job, clone: u32, files: usize, there: Option<u64>) -> Result<(u64, u64), String> {
    let part = extent_of(job, clone, (0, files), there);
    part.map(|Extent { begin_bytes, bytes }| (begin_bytes, bytes))
}

#[test]
fn files_are_named_as_by_fio() {
    let mut job = in_folder("read", Path::new("/data"), MIB);
    job.files = 2;
    let want: Vec<PathBuf> = ["/data/job.3.0", "/data/job.3.1"].map(PathBuf::from).to_vec();
    assert_eq!(names_of(&job, 3).unwrap(), want);
    job.directories = Vec::new();
    assert_eq!(names_of(&job, 0).unwrap(), ["job.0.0", "job.0.1"].map(PathBuf::from));
    // Of several folders each clone has one, in turn.
    job.directories = vec!["/a".into(), "/b".into()];
    let firsts = [0, 1, 2].map(|clone| names_of(&job, clone).unwrap().remove(0));
    assert_eq!(firsts, ["/a/job.0.0", "/b/job.1.0", "/a/job.2.0"].map(PathBuf::from));
    // Named files are shared by all clones, and nrfiles means nothing.
    job.filenames = vec!["a".into(), "/b".into()];
    job.directories = vec!["/data".into(), "/other".into()];
    assert_eq!(names_of(&job, 7).unwrap(), ["/data/a", "/b"].map(PathBuf::from));
    job.filenames.clear();
    job.name = "a/b".to_owned();
    assert!(names_of(&job, 0).unwrap_err().contains("name"));
}

#[test]
fn size_is_divided_and_filesize_is_not() {
    let mut job = job("read");
    job.size = Some(Amount::Bytes(4 * MIB));
    assert_eq!(extent(&job, 0, 1, None), Ok((0, 4 * MIB)));
    assert_eq!(extent(&job, 0, 4, None), Ok((0, MIB)));
    // It counts from the offset on, whatever is there.
    job.offset = Amount::Bytes(MIB);
    assert_eq!(extent(&job, 0, 1, Some(100 * MIB)), Ok((MIB, 4 * MIB)));
    job.offset_increment = Amount::Bytes(8 * MIB);
    assert_eq!(extent(&job, 3, 1, None), Ok((25 * MIB, 4 * MIB)));
    // Files of a size of their own: the offset takes from it.
    job.file_bytes = Some(32 * MIB);
    assert_eq!(extent(&job, 1, 4, None), Ok((9 * MIB, 23 * MIB)));
    assert!(extent(&job, 9, 4, None).unwrap_err().starts_with("offset"));
    job.size = None;
    assert_eq!(extent(&job, 0, 4, None), Ok((MIB, 31 * MIB)));
}

#[test]
fn without_a_size_it_is_all_there_is_and_percents_are_of_that() {
    let mut job = job("randrw");
    assert_eq!(extent(&job, 0, 1, Some(MIB + 1)), Ok((0, MIB + 1)));
    assert!(extent(&job, 0, 1, None).unwrap_err().contains("size="));
    job.size = Some(Amount::Percent(20));
    assert_eq!(extent(&job, 0, 2, Some(10 * MIB + 5)), Ok((0, 2 * MIB)));
    assert!(extent(&job, 0, 1, None).unwrap_err().contains("share"));
    // A share of the offset is put up to the next block, a share of the size down to one.
    job.offset = Amount::Percent(50);
    job.block_bytes = [4096, 65536];
    assert_eq!(extent(&job, 0, 1, Some(1_000_000)), Ok((503_808, 196_608)));
    job.size = Some(Amount::Percent(100));
    assert_eq!(extent(&job, 0, 1, Some(1_000_000)), Ok((503_808, 495_616)));
    job.size = None;
    job.offset = Amount::Bytes(MIB);
    assert!(extent(&job, 0, 1, Some(MIB)).unwrap_err().starts_with("offset"));
}

#[test]
fn what_cannot_be_is_said() {
    let mut job = job("write");
    job.size = Some(Amount::Bytes(4095));
    assert!(extent(&job, 0, 1, None).unwrap_err().contains("no block of 4096 bytes"));
    job.offset = Amount::Bytes(u64::MAX - 5);
    job.size = Some(Amount::Bytes(MIB));
    assert!(extent(&job, 0, 1, None).unwrap_err().contains("64 bits"));
    job.offset_increment = Amount::Bytes(u64::MAX / 2);
    assert!(extent(&job, 9, 1, None).unwrap_err().contains("64 bits"));
    job.block_bytes = [4096, 0];
    assert!(check(&job).unwrap_err().starts_with("bs"));
    job.block_bytes = [4096, 1 << 32];
    assert!(check(&job).unwrap_err().starts_with("bs"));
    job.block_bytes = [16, 512];
    job.verify = Some(crate::job::VerifyKind::Crc32c);
    assert_eq!(check(&job), Ok(()), "only writes, of 512 bytes");
    job.block_bytes = [16, 72];
    assert!(check(&job).unwrap_err().starts_with("verify"));
}

#[test]
fn files_of_others_are_read_but_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("thesis");
    let content = vec![b'x'; 2 * MIB as usize];
    std::fs::write(&path, &content).unwrap();
    let layout = laid(&on("read", &path), &NOTHING);
    assert_eq!((layout.files[0].bytes, layout.files[0].laid_out), (2 * MIB, false));
    assert!(layout.remove().is_empty());
    for rw in ["write", "randwrite", "rw"] {
        let why = refused(&on(rw, &path), &NOTHING);
        assert!(why.contains("thesis") && why.contains("--allow-overwrite"), "{why}");
    }
    // By a link, too.
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(refused(&on("write", &link), &NOTHING).contains("--allow-overwrite"));
    let unlink = Job { unlink: true, ..on("read", &path) };
    assert!(refused(&unlink, &NOTHING).contains("unlink"));
    // Also under the name that would have been laid out.
    std::fs::write(folder.path().join("job.0.0"), &content).unwrap();
    assert!(refused(&in_folder("write", folder.path(), MIB), &NOTHING).contains("job.0.0"));
    assert!(laid(&in_folder("read", folder.path(), MIB), &NOTHING).remove().is_empty());
    // Too small to be read: never made larger without a word.
    let mut larger = on("read", &path);
    larger.size = Some(Amount::Bytes(3 * MIB));
    let why = refused(&larger, &NOTHING);
    assert!(why.contains("too small") && why.contains("3145728"), "{why}");
    assert_eq!(std::fs::read(&path).unwrap(), content);
    // Permitted, it is used as it is, prolonged, and it stays.
    let layout = laid(&on("write", &path), &OVERWRITE);
    assert!(layout.remove().is_empty());
    assert_eq!(std::fs::read(&path).unwrap(), content);
    let layout = laid(&larger, &OVERWRITE);
    assert!(layout.remove().is_empty());
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 3 * MIB);
    assert_eq!(std::fs::read(&path).unwrap()[..content.len()], content);
}

#[test]
fn what_is_no_file_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let pipe = here.join("pipe");
    tool(&format!("mkfifo {}", pipe.display())).unwrap();
    for (path, want) in [
        (here.to_owned(), "a directory"),
        ("/dev/null".into(), "a character device"),
        (pipe, "a named pipe"),
        ("/dev/hakobu-no-such-disk".into(), "the device does not exist"),
    ] {
        let why = refused(&Job { size: Some(Amount::Bytes(MIB)), ..on("read", &path) }, &OVERWRITE);
        assert!(why.contains(want) && why.contains(&*path.to_string_lossy()), "{why}");
    }
    let absent = here.join("absent");
    assert!(refused(&in_folder("read", &absent, MIB), &NOTHING).contains("No such file"));
    let file = here.join("file");
    std::fs::write(&file, "").unwrap();
    assert!(refused(&in_folder("read", &file, MIB), &NOTHING).contains("irectory"));
    let why = refused(&on("read", &here.join("unsaid")), &NOTHING);
    assert!(why.contains("unsaid") && why.contains("size="), "{why}");
    assert_eq!(names(here), ["file", "pipe"]);
}

#[test]
fn a_full_disk_is_seen_before_anything_is_written() {
    let Some(mount) = Mount::ext4(32, "", "full disks") else { return };
    let mut job = in_folder("write", mount.path(), MIB);
    job.clones = 40;
    let why = refused(&job, &NOTHING);
    assert!(why.contains("41943040 bytes are to be laid out"), "{why}");
    assert!(names(mount.path()).is_empty());
    // Existing files need no additional space.
    job.clones = 16;
    let layout = laid(&job, &KEEP);
    job.clones = 20;
    assert_eq!(laid(&job, &KEEP).files.iter().filter(|file| file.laid_out).count(), 4);
    assert!(layout.remove().is_empty());
    // More files than inodes.
    let mut many = in_folder("write", mount.path(), 4096 * 12_000);
    many.files = 12_000;
    let why = refused(&many, &NOTHING);
    assert!(why.contains("12000 files") || why.contains("bytes are free"), "{why}");
}

/// Room that goes while files are laid out: what was made is removed again.
#[test]
fn a_disk_that_fills_up_meanwhile_leaves_nothing() {
    let Some(mount) = Mount::ext4(32, "", "disks that fill up") else { return };
    // All that is free, and nothing kept back for the superuser: the folder's own blocks are
    // too many.
    let device = &mount.device.as_ref().unwrap().device;
    tool(&format!("tune2fs -m 0 {}", device.display())).unwrap();
    let free = tool(&format!("stat -f -c %a {}", mount.path().display())).unwrap();
    let block = tool(&format!("stat -f -c %S {}", mount.path().display())).unwrap();
    let free = free.parse::<u64>().unwrap() * block.parse::<u64>().unwrap();
    let files = 100;
    let mut job = in_folder("write", mount.path(), free - free % (files * 4096));
    job.files = files as u32;
    job.name = "n".repeat(200);
    let stay = free % (files * 4096);
    std::fs::write(mount.path().join("rest"), vec![1; stay.saturating_sub(8192) as usize]).unwrap();
    let why = refused(&job, &NOTHING);
    assert!(why.contains("No space left"), "{why}");
    assert_eq!(names(mount.path()), ["rest"]);
}

#[test]
fn read_only_places_are_said() {
    let Some(mount) = Mount::ext4(32, "", "read-only file systems") else { return };
    laid(&in_folder("write", mount.path(), MIB), &KEEP);
    tool(&format!("mount -o remount,ro {}", mount.path().display())).unwrap();
    for rw in ["write", "rw"] {
        let why = refused(&in_folder(rw, mount.path(), MIB), &NOTHING);
        assert!(why.contains("job.0.0") && why.contains("read-only"), "{why}");
    }
    assert!(!laid(&in_folder("read", mount.path(), MIB), &NOTHING).files[0].laid_out);
    let other = Job { name: "other".to_owned(), ..in_folder("read", mount.path(), MIB) };
    assert!(refused(&other, &NOTHING).contains("read-only"));
}

#[test]
fn files_that_may_not_be_written_are_said() {
    let Some(mount) = Mount::ext4(32, "", "files that cannot be changed") else { return };
    let layout = laid(&in_folder("write", mount.path(), MIB), &KEEP);
    let path = layout.files[0].path.display().to_string();
    match tool(&format!("chattr +i {path}")) {
        Ok(_) => {
            let why = refused(&in_folder("write", mount.path(), MIB), &NOTHING);
            assert!(why.contains("job.0.0") && why.contains("permission denied"), "{why}");
            tool(&format!("chattr -i {path}")).unwrap();
        }
        Err(why) => skip(&format!("files that cannot be changed: {why}")),
    }
}

#[test]
fn direct_io_wants_whole_sectors() {
    let Some(mount) = Mount::ext4(32, "--sector-size 4096", "large sectors") else { return };
    let mut job = in_folder("randread", mount.path(), MIB);
    job.direct = true;
    job.block_bytes = [512; 2];
    let why = refused(&job, &NOTHING);
    assert!(why.contains("direct=1") && why.contains("4096"), "{why}");
    assert!(names(mount.path()).is_empty());
    job.block_bytes = [4096; 2];
    job.offset = Amount::Bytes(512);
    assert!(refused(&job, &NOTHING).contains("multiples of 4096"));
    job.offset = Amount::Bytes(8192);
    laid(&job, &NOTHING).remove();
    // Through the page cache anything goes.
    job.direct = false;
    job.block_bytes = [700; 2];
    laid(&job, &NOTHING).remove();
    // A device says it of itself.
    let Some(device) = Loop::new(8, &[], "--sector-size 4096", "large sectors") else { return };
    let mut job = on("read", &device.device);
    job.direct = true;
    job.block_bytes = [2048; 2];
    assert!(refused(&job, &NOTHING).contains("multiples of 4096"));
}

#[test]
fn file_systems_without_direct_io_are_said() {
    if let Some(mount) = Mount::ramfs("file systems without O_DIRECT") {
        let mut job = in_folder("read", mount.path(), MIB);
        job.direct = true;
        let why = refused(&job, &NOTHING);
        assert!(why.contains("O_DIRECT") && why.contains("job.0.0"), "{why}");
        assert!(names(mount.path()).is_empty());
        job.direct = false;
        laid(&job, &NOTHING).remove();
    }
    // On tmpfs it depends on the kernel; what is said is either.
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut job = in_folder("read", folder.path(), MIB);
    job.direct = true;
    match lay_out(&[job], &NOTHING, &AtomicBool::new(false)) {
        Ok(layout) => assert!(layout.remove().is_empty()),
        Err(why) => assert!(why.contains("O_DIRECT"), "{why}"),
    }
    assert!(names(folder.path()).is_empty());
}

/// Says that a test did not run, past the capture of test output; with `HAKOBU_REQUIRE_ALL=1` it
/// is a failure instead.
pub fn skip(why: &str) {
    let required = std::env::var_os("HAKOBU_REQUIRE_ALL");
    let required = required.is_some_and(|value| !value.is_empty() && value != "0");
    assert!(!required, "HAKOBU_REQUIRE_ALL is set, and: {why}");
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// Runs a command, its words apart by spaces; what it printed, or why it failed.
pub fn tool(command: &str) -> Result<String, String> {
    let mut words = command.split_whitespace();
    let output = Command::new(words.next().unwrap()).args(words).output();
    let output = output.map_err(|error| format!("{command}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(format!("{command}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

fn root(folder: &Path) -> Result<(), String> {
    let uid = std::fs::metadata(folder).unwrap().uid();
    if uid == 0 { Ok(()) } else { Err("needs the superuser".to_owned()) }
}

/// A loop device over a file of its own.
pub struct Loop {
    pub device: PathBuf,
    folder: TempDir,
}

impl Loop {
    /// Makes one, filled with `head` at its beginning, or says that `what` is skipped.
    pub fn new(mib: u64, head: &[u8], options: &str, what: &str) -> Option<Loop> {
        Loop::try_new(mib, head, options).map_err(|why| skip(&format!("{what}: {why}"))).ok()
    }

    fn try_new(mib: u64, head: &[u8], options: &str) -> Result<Loop, String> {
        // Finding a free device and taking it are two steps.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _guard = ONE_AT_A_TIME.lock();
        // Prefer memory, so that the test does not wait for a disk.
        let memory = tempfile::tempdir_in("/dev/shm");
        let folder = memory.or_else(|_| tempfile::tempdir()).unwrap();
        root(folder.path())?;
        let image = folder.path().join("image");
        let mut file = std::fs::File::create(&image).unwrap();
        file.write_all(head).unwrap();
        file.set_len(mib << 20).unwrap();
        let device = tool(&format!("losetup -f --show {options} {}", image.display()))?;
        Ok(Loop { device: device.into(), folder })
    }

    /// Takes away what lies beyond so many MiB: from there on reads of the device fail with EIO.
    pub fn lose(&self, mib: u64) {
        let image = std::fs::File::options().write(true).open(self.folder.path().join("image"));
        image.unwrap().set_len(mib << 20).unwrap();
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = tool(&format!("losetup -d {}", self.device.display()));
    }
}

/// A mounted file system.
pub struct Mount {
    pub root: TempDir,
    pub device: Option<Loop>,
}

impl Mount {
    /// An ext4 of its own, or says that `what` is skipped.
    pub fn ext4(mib: u64, options: &str, what: &str) -> Option<Mount> {
        let device = Loop::new(mib, &[], options, what)?;
        let name = device.device.display().to_string();
        let made = tool(&format!("mkfs.ext4 -q -F -I 256 {name}"));
        made.and_then(|_| Mount::try_new(&format!("mount {name}"), Some(device)))
            .map_err(|why| skip(&format!("{what}: {why}")))
            .ok()
    }

    /// Files in memory that know no O_DIRECT.
    pub fn ramfs(what: &str) -> Option<Mount> {
        let made = Mount::try_new("mount -t ramfs none", None);
        made.map_err(|why| skip(&format!("{what}: {why}"))).ok()
    }

    /// Mounts what is there already.
    pub fn of(device: &Path) -> Result<Mount, String> {
        Mount::try_new(&format!("mount {}", device.display()), None)
    }

    fn try_new(command: &str, device: Option<Loop>) -> Result<Mount, String> {
        let root = tempfile::tempdir().unwrap();
        self::root(root.path())?;
        tool(&format!("{command} {}", root.path().display()))?;
        Ok(Mount { root, device })
    }

    pub fn path(&self) -> &Path {
        self.root.path()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = tool(&format!("umount -l {}", self.root.path().display()));
    }
}
