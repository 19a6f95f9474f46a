//! Records of unfinished uploads and downloads, and the memory of numbers of jobs.

use hakobu_transfer::journal::{JobHints, Journal, Key, RecordCheck};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, UNIX_EPOCH};

/// A folder in memory, one for each process.
fn folder() -> &'static PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let memory = PathBuf::from("/dev/shm");
        let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let folder = parent.join(format!("hakobu-fuzz-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    })
}

/// A record is passed over or read; what is read is written and read back as it was.
pub fn check(data: &[u8]) {
    let folder = folder();
    let (record, memory) = (folder.join("any.json"), folder.join("seeds.json"));
    std::fs::write(&record, data).unwrap();
    let journal = Journal::at(folder.clone());
    let found = journal.list().unwrap();
    std::fs::remove_file(&record).unwrap();
    for (identity, record) in found {
        assert_ne!(record.check(&record.source), RecordCheck::SourceChanged);
        let claim = journal.claim(&identity).unwrap().expect("nobody else is here");
        claim.save(&record).unwrap();
        assert_eq!(claim.load().as_ref(), Some(&record));
        claim.remove().unwrap();
    }
    std::fs::write(&memory, data).unwrap();
    let now = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    match JobHints::load(&journal, now) {
        Ok(seeds) => {
            let jobs = seeds.get(&Key::new("a", "b", "small"));
            assert!(jobs.is_none_or(|jobs| (1..=65_536).contains(&jobs)));
        }
        Err(damaged) => assert!(damaged.to_string().contains("seeds.json")),
    }
    std::fs::remove_file(&memory).unwrap();
}

/// Leaves nothing behind. The fuzzer itself is ended where it stands: its script removes the folder.
#[allow(dead_code, reason = "for tests")]
pub fn end() {
    std::fs::remove_dir_all(folder()).unwrap();
}
