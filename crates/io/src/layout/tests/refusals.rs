//! Refusals before anything is written, and that nothing was.

use super::rig::{Loop, Mount, skip, tool};
use super::*;

const MIB: u64 = 1 << 20;

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
