//! Hints survive a round trip, and nothing in the file can do harm.

use super::*;
use std::fs;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("hakobu-seeds-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Folder(path)
    }

    fn load(&self) -> Result<JobHints, Damaged> {
        JobHints::load(&Journal::at(self.0.clone()), now())
    }

    fn write(&self, text: &str) {
        fs::create_dir_all(&self.0).unwrap();
        fs::write(self.0.join(FILE), text).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

fn key(name: &str) -> Key {
    Key::new(name, "s3 http://h", "small")
}

#[test]
fn hints_round_trip() {
    let folder = Folder::new("back");
    let mut seeds = folder.load().unwrap();
    assert_eq!(seeds.get(&key("a")), None);
    seeds.put(key("a"), 7, now());
    seeds.put(key("a"), 8, now());
    assert_eq!(seeds.get(&key("a")), Some(8));
    seeds.save(now()).unwrap();
    assert_eq!(seeds.get(&key("a")), Some(8));
    let mut seeds = folder.load().unwrap();
    assert_eq!(seeds.get(&key("a")), Some(8));
    assert_eq!(seeds.get(&Key::new("a", "s3 http://h", "large")), None);
    seeds.put(key("a"), 9, now());
    seeds.save(now()).unwrap();
    assert_eq!(folder.load().unwrap().get(&key("a")), Some(9));
}

#[test]
fn a_damaged_file_is_named_and_kept() {
    let folder = Folder::new("damaged");
    let mut before = folder.load().unwrap();
    before.put(key("a"), 7, now());
    before.save(now()).unwrap();
    let text = fs::read_to_string(folder.0.join(FILE)).unwrap();
    for cut in 0..text.len() {
        folder.write(&text[..cut]);
        let error = folder.load().unwrap_err().to_string();
        for part in [folder.0.join(FILE).to_str().unwrap(), "--no-memory", "remove it"] {
            assert!(error.contains(part), "{error}");
        }
    }
    before.put(key("b"), 7, now());
    assert_eq!(before.save(now()).unwrap_err().kind(), io::ErrorKind::InvalidData);
    assert_eq!(fs::read_to_string(folder.0.join(FILE)).unwrap(), text[..text.len() - 1]);
    let minus = text.replace("\"jobs\":7", "\"jobs\":-7");
    folder.write(&minus);
    assert!(folder.load().is_err());
    folder.write(&"x".repeat(FILE_BYTES_MAX as usize + 1));
    assert!(folder.load().unwrap_err().to_string().contains("too large"));
}

#[test]
fn values_out_of_range_are_brought_into_it() {
    let folder = Folder::new("range");
    let mut seeds = folder.load().unwrap();
    seeds.put(key("a"), 0, now());
    seeds.put(key("b"), usize::MAX, now());
    seeds.save(now()).unwrap();
    let seeds = folder.load().unwrap();
    assert_eq!(seeds.get(&key("a")), Some(1));
    let most = NUMBER_MAX;
    assert_eq!(seeds.get(&key("b")), Some(most));
}

#[test]
fn another_schema_is_left_alone() {
    let folder = Folder::new("schema");
    let text = r#"{"schema":2,"other":[]}"#;
    folder.write(text);
    let mut seeds = folder.load().unwrap();
    seeds.put(key("a"), 7, now());
    seeds.save(now()).unwrap();
    assert_eq!(fs::read_to_string(folder.0.join(FILE)).unwrap(), text);
}

#[test]
fn the_old_is_forgotten_and_the_number_is_bounded() {
    let folder = Folder::new("old");
    let day = Duration::from_secs(24 * 3600);
    let mut seeds = folder.load().unwrap();
    seeds.put(key("old"), 1, now() - 91 * day);
    seeds.put(key("young"), 2, now() - 89 * day);
    seeds.put(key("future"), 3, now() + 2 * day);
    seeds.save(now() - 89 * day).unwrap();
    let mut seeds = folder.load().unwrap();
    assert_eq!(seeds.get(&key("old")), None);
    assert_eq!(seeds.get(&key("young")), Some(2));
    assert_eq!(seeds.get(&key("future")), None);
    for index in 0..ENTRIES_MAX {
        seeds.put(key(&index.to_string()), 4, now());
    }
    seeds.save(now()).unwrap();
    let seeds = folder.load().unwrap();
    assert_eq!(seeds.entries.len(), ENTRIES_MAX);
    assert_eq!(seeds.get(&key("young")), None);
    assert_eq!(seeds.get(&key("0")), Some(4));
}

#[test]
fn no_place_is_no_memory() {
    let folder = Folder::new("file");
    fs::write(&folder.0, "").unwrap();
    let below = Journal::at(folder.0.join("below"));
    let mut seeds = JobHints::load(&below, now()).unwrap();
    seeds.put(key("a"), 7, now());
    assert!(seeds.save(now()).is_err());
    fs::remove_file(&folder.0).unwrap();
    let mut seeds = JobHints::load(&Journal { folder: None }, now()).unwrap();
    seeds.put(key("a"), 7, now());
    seeds.save(now()).unwrap();
    assert_eq!(seeds.get(&key("a")), Some(7));
}

#[test]
fn writers_at_the_same_time_lose_nothing() {
    let folder = Folder::new("writers");
    std::thread::scope(|scope| {
        for index in 0..8 {
            let folder = &folder;
            scope.spawn(move || {
                for round in 0..5 {
                    let mut seeds = folder.load().unwrap();
                    seeds.put(key(&format!("{index} {round}")), index + 1, now());
                    seeds.save(now()).unwrap();
                }
            });
        }
    });
    let seeds = folder.load().unwrap();
    for index in 0..8 {
        for round in 0..5 {
            assert_eq!(seeds.get(&key(&format!("{index} {round}"))), Some(index + 1));
        }
    }
}

#[test]
fn conditions_tell_numbers_apart_and_runs_confirm_them() {
    let folder = Folder::new("conditions");
    let mut seeds = folder.load().unwrap();
    let one = key("a").under("CPUs 1");
    seeds.put(one.clone(), 1, now());
    seeds.save(now()).unwrap();
    let mut seeds = folder.load().unwrap();
    assert_eq!((seeds.get(&one), seeds.runs(&one)), (Some(1), 1));
    assert_eq!((seeds.get(&key("a")), seeds.runs(&key("a"))), (None, 0));
    assert_eq!(seeds.get(&key("a").under("CPUs 2")), None);
    assert!(seeds.has_like(&key("a")) && !seeds.has_like(&key("b")));
    // About the same number confirms the entry, another one resets it.
    for (jobs, runs) in [(2, 2), (3, 3), (9, 1), (8, 2)] {
        seeds.put(one.clone(), jobs, now());
        seeds.save(now()).unwrap();
        seeds = folder.load().unwrap();
        assert_eq!((seeds.get(&one), seeds.runs(&one)), (Some(jobs), runs));
    }
}

/// Entries of a version without conditions are read, and count as unconditional.
#[test]
fn entries_without_conditions_are_read() {
    let folder = Folder::new("older");
    folder.write(
        "{\"schema\":1,\"seeds\":[{\"key\":{\"source\":\"a\",\"target\":\"s3 http://h\",\
         \"size_class\":\"small\"},\"jobs\":7,\"saved_s\":1800000000}]}",
    );
    let mut seeds = folder.load().unwrap();
    assert_eq!((seeds.get(&key("a")), seeds.runs(&key("a"))), (Some(7), 1));
    assert_eq!(seeds.get(&key("a").under("local; CPUs 2.00")), None);
    seeds.put(key("b").under("x"), 3, now());
    seeds.save(now()).unwrap();
    assert!(folder.load().unwrap().has_like(&key("a")));
}
