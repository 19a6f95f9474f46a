//! Names and parts of files, as fio(1) has them.

use super::*;
use crate::layout::plan;
use crate::pattern::Extent;
use std::path::PathBuf;

const MIB: u64 = 1 << 20;

fn extent(job: &Job, clone: u32, files: usize, there: Option<u64>) -> Result<(u64, u64), String> {
    let part = plan::extent(job, clone, (0, files), there);
    part.map(|Extent { begin_bytes, bytes }| (begin_bytes, bytes))
}

#[test]
fn files_are_named_as_by_fio() {
    let mut job = in_folder("read", Path::new("/data"), MIB);
    job.files = 2;
    let want: Vec<PathBuf> = ["/data/job.3.0", "/data/job.3.1"].map(PathBuf::from).to_vec();
    assert_eq!(plan::names(&job, 3).unwrap(), want);
    job.directories = Vec::new();
    assert_eq!(plan::names(&job, 0).unwrap(), ["job.0.0", "job.0.1"].map(PathBuf::from));
    // Of several folders each clone has one, in turn.
    job.directories = vec!["/a".into(), "/b".into()];
    let firsts = [0, 1, 2].map(|clone| plan::names(&job, clone).unwrap().remove(0));
    assert_eq!(firsts, ["/a/job.0.0", "/b/job.1.0", "/a/job.2.0"].map(PathBuf::from));
    // Named files are shared by all clones, and nrfiles means nothing.
    job.filenames = vec!["a".into(), "/b".into()];
    job.directories = vec!["/data".into(), "/other".into()];
    assert_eq!(plan::names(&job, 7).unwrap(), ["/data/a", "/b"].map(PathBuf::from));
    job.filenames.clear();
    job.name = "a/b".to_owned();
    assert!(plan::names(&job, 0).unwrap_err().contains("name"));
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
    assert!(plan::check(&job).unwrap_err().starts_with("bs"));
    job.block_bytes = [4096, 1 << 32];
    assert!(plan::check(&job).unwrap_err().starts_with("bs"));
    job.block_bytes = [16, 512];
    job.verify = Some(crate::VerifyKind::Crc32c);
    assert_eq!(plan::check(&job), Ok(()), "only writes, of 512 bytes");
    job.block_bytes = [16, 72];
    assert!(plan::check(&job).unwrap_err().starts_with("verify"));
}
