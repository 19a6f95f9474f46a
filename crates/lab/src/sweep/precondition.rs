//! Writes all files one or more times before the first run, so that a device is measured in its steady state,
//! not fresh from the factory (SNIA Solid State Storage Performance Test Specification 2.0,
//! "preconditioning").

use hakobu_core::error::cannot;
use hakobu_io::layout::LaidFile;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes per write.
const BLOCK_BYTES: usize = 1 << 20;

/// Writes all files `passes` times sequentially with incompressible content, and syncs them. `report`
/// receives the bytes written and the total. Returns false if `stop` ended it.
///
/// # Errors
/// A message.
pub fn precondition(
    files: &[LaidFile],
    passes: u32,
    stop: &AtomicBool,
    report: &mut dyn FnMut(u64, u64),
) -> Result<bool, String> {
    let total = files.iter().map(|file| file.bytes).sum::<u64>().saturating_mul(passes.into());
    let mut block = vec![0; BLOCK_BYTES];
    let mut random = fastrand::Rng::with_seed(total);
    let mut done = 0;
    // Folders and missing files have no content; names that no engine opens belong to files of others.
    let has_content = |file: &&LaidFile| file.bytes > 0 && !file.nothing;
    for laid in std::iter::repeat_n(files, passes as usize).flatten().filter(has_content) {
        let failed = |error| cannot("write", &laid.path, error);
        let mut file = OpenOptions::new().write(true).open(&laid.path).map_err(failed)?;
        let mut left = laid.bytes;
        while left > 0 {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let length = block.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            random.fill(&mut block[..length]);
            file.write_all(&block[..length]).map_err(failed)?;
            left -= length as u64;
            done += length as u64;
            report(done, total);
        }
        file.sync_data().map_err(failed)?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laid(path: &std::path::Path) -> LaidFile {
        let path = path.to_owned();
        LaidFile { path, bytes: 3_000_000, laid_out: true, device: false, nothing: false }
    }

    #[test]
    fn everything_is_written_as_often_as_asked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.0.0");
        std::fs::write(&path, vec![0; 3_000_000]).unwrap();
        let go = AtomicBool::new(false);
        let mut last = (0, 0);
        let mut report = |done, total| last = (done, total);
        assert_eq!(precondition(&[laid(&path)], 2, &go, &mut report), Ok(true));
        assert_eq!(last, (6_000_000, 6_000_000));
        let content = std::fs::read(&path).unwrap();
        assert_eq!(content.len(), 3_000_000);
        let zeros = content.iter().filter(|byte| **byte == 0).count();
        assert!(zeros < 3_000_000 / 128, "{zeros}");
    }

    #[test]
    fn a_stop_ends_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.0.0");
        std::fs::write(&path, "as it was").unwrap();
        let stop = AtomicBool::new(true);
        assert_eq!(precondition(&[laid(&path)], 1, &stop, &mut |_, _| {}), Ok(false));
        assert_eq!(std::fs::read(&path).unwrap(), b"as it was");
        let go = AtomicBool::new(false);
        let gone = laid(&folder.path().join("gone"));
        assert!(precondition(&[gone], 1, &go, &mut |_, _| {}).unwrap_err().contains("gone"));
    }
}
