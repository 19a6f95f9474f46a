//! A second run asks for no headers of objects that the manifest of an earlier one knows, and for those of all others:
//! objects that were replaced, copied onto themselves, or whose manifest is damaged.

use crate::objects::stage::{Stage, age, file, stage};
use std::path::PathBuf;
use std::time::Duration;

/// More than the number whose facts no run waits for.
const FILES: usize = 30;
const HEAD: &str = "HeadObject";
const UP: &str = "sync -a SRC/ SPOT/";

fn fill(stage: &Stage) {
    for number in 0..FILES {
        let name = format!("{}/f{number:02}", number % 3);
        file(&stage.src(), &name, name.as_bytes(), 100 + number as i64);
    }
}

/// An upload that takes three seconds, and writes a third of the objects in each.
fn fill_for_long(stage: &Stage) -> &'static str {
    for number in 0..FILES {
        let name = format!("{}/f{number:02}", number % 3);
        file(&stage.src(), &name, name.repeat(30).as_bytes(), 100 + number as i64);
    }
    "sync -a --bwlimit=1500B SRC/ SPOT/"
}

/// Runs a line that must transfer so many files, and returns the number of HEADs.
#[track_caller]
fn heads(stage: &Stage, line: &str, files: usize, skipped: usize) -> usize {
    let asked = stage.asked(|| drop(stage.counts(line, files as u64, skipped as u64)));
    asked.unwrap().get(HEAD).copied().unwrap_or_default()
}

/// Copies an object onto itself with another mtime: same content, ETag and size.
fn touch(stage: &Stage, key: &str, mtime: &str) {
    stage.ok(&format!(
        "cp --metadata-directive REPLACE --metadata mtime={mtime},mode=33188 BKT/{key} BKT/{key}"
    ));
}

fn mtime(stage: &Stage, key: &str) -> String {
    let said = stage.ok(&format!("head BKT/{key}")).out();
    let line = said.lines().find(|line| line.contains("mtime:"));
    line.unwrap_or_else(|| panic!("{said}")).rsplit(' ').next().unwrap().to_owned()
}

fn state(stage: &Stage) -> PathBuf {
    stage.area.join("state/hakobu/known")
}

fn manifests(stage: &Stage) -> Vec<PathBuf> {
    let Ok(read) = std::fs::read_dir(state(stage)) else { return Vec::new() };
    let mut paths: Vec<_> = read.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Uploads everything; a second run asks for what the first one, a short one, did not wait for.
#[track_caller]
fn upload(stage: &Stage) {
    stage.counts(UP, FILES as u64, 0);
    std::thread::sleep(Duration::from_millis(1100));
    stage.counts(UP, 0, FILES as u64);
}

#[test]
fn what_a_long_run_wrote_is_known() {
    let stage = stage();
    let line = fill_for_long(&stage);
    assert_eq!(heads(&stage, line, FILES, 0), 0);
    // It waits for the end of a second in which it wrote more than a few.
    assert!(heads(&stage, UP, 0, FILES) <= 8);
}

#[test]
fn a_short_run_does_not_wait() {
    let stage = stage();
    fill(&stage);
    let mut took = Vec::new();
    for number in 0..5 {
        let begun = std::time::Instant::now();
        stage.counts(&format!("sync -a SRC/ BKT/place{number}/"), FILES as u64, 0);
        took.push(begun.elapsed());
    }
    assert!(took.iter().any(|took| *took < Duration::from_millis(700)), "{took:?}");
}

#[test]
fn what_a_run_learnt_is_known() {
    let stage = stage();
    fill(&stage);
    upload(&stage);
    let asked = stage.asked(|| drop(stage.counts(UP, 0, FILES as u64))).unwrap();
    assert_eq!(asked.get(HEAD), None, "{asked:?}");
    assert!(asked.values().sum::<usize>() <= 4, "{asked:?}");
    // Nothing was learnt, so nothing was written.
    let [path] = &manifests(&stage)[..] else { panic!("one manifest") };
    let before = std::fs::metadata(path).unwrap().modified().unwrap();
    assert_eq!(heads(&stage, UP, 0, FILES), 0);
    assert_eq!(std::fs::metadata(path).unwrap().modified().unwrap(), before);
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(path), mode(&state(&stage))), (0o600, 0o700));
}

#[test]
fn what_a_run_read_is_known_on_both_sides() {
    let stage = stage();
    fill(&stage);
    stage.counts(UP, FILES as u64, 0);
    // Facts of the last second are not settled.
    std::thread::sleep(Duration::from_millis(1100));
    stage.counts("sync -a SPOT/ DST/", FILES as u64, 0);
    assert_eq!(heads(&stage, "sync -a SPOT/ DST/", 0, FILES), 0);
    stage.counts("sync -a SPOT/ BKT/copy/", FILES as u64, 0);
    // The server copied metadata that this machine did not see.
    std::thread::sleep(Duration::from_millis(1100));
    assert!(heads(&stage, "sync -a SPOT/ BKT/copy/", 0, FILES) <= FILES);
    assert_eq!(heads(&stage, "sync -a SPOT/ BKT/copy/", 0, FILES), 0);
}

#[test]
fn an_object_of_others_is_noticed() {
    let stage = stage();
    fill(&stage);
    upload(&stage);
    // Other content of the same size, with a time.
    file(stage.area.path(), "other", b"other", 50);
    stage.ok("cp --metadata mtime=5,mode=33188 AREA/other BKT/place/0/f00");
    assert_eq!(heads(&stage, UP, 1, FILES - 1), 1);
    assert_eq!(stage.place()[&b"0/f00"[..]], b"0/f00");
    // The same content, deleted and made again, without an mtime.
    stage.ok("rm BKT/place/0/f03");
    stage.put("place/0/f03", b"0/f03");
    let asked = stage.asked(|| drop(stage.ok(UP))).unwrap();
    assert!((1..=2).contains(&asked[HEAD]), "{asked:?}");
}

/// ETag and size stay; LastModified tells. At once after the run, in the same second.
#[test]
fn an_object_copied_onto_itself_is_noticed() {
    let stage = stage();
    let long = fill_for_long(&stage);
    for round in 0..3 {
        stage.ok(if round == 0 { long } else { UP });
        touch(&stage, "place/1/f01", "5");
        assert_eq!(mtime(&stage, "place/1/f01"), "5");
        stage.ok(UP);
        assert_ne!(mtime(&stage, "place/1/f01"), "5", "round {round}");
        if round == 0 {
            // What was written in the last second of the first one is asked for once.
            std::thread::sleep(Duration::from_millis(1100));
            stage.ok(UP);
        }
        // Facts of few objects of the last second are not waited for.
        assert!(heads(&stage, UP, 0, FILES) <= 1, "round {round}");
    }
}

#[test]
fn a_changed_file_is_noticed() {
    let stage = stage();
    fill(&stage);
    upload(&stage);
    // Of the same size, with another time; and the time alone.
    file(&stage.src(), "0/f00", b"0/FOO", 50);
    age(&stage.src().join("1/f01"), 40);
    stage.counts(UP, 2, FILES as u64 - 2);
    assert_eq!(stage.place()[&b"0/f00"[..]], b"0/FOO");
    assert!(heads(&stage, UP, 0, FILES) <= 2);
}

#[test]
fn a_damaged_manifest_is_none_and_is_replaced() {
    let stage = stage();
    fill(&stage);
    upload(&stage);
    let [path] = &manifests(&stage)[..] else { panic!("one manifest") };
    let good = std::fs::read(path).unwrap();
    for at in (0..good.len()).step_by(good.len() / 7) {
        let mut bad = good.clone();
        bad[at] ^= 0x40;
        std::fs::write(path, bad).unwrap();
        assert_eq!(heads(&stage, UP, 0, FILES), FILES, "byte {at}");
        assert_eq!(heads(&stage, UP, 0, FILES), 0, "byte {at}");
    }
    for len in [0, 7, 100, good.len() - 1] {
        std::fs::write(path, &good[..len]).unwrap();
        assert_eq!(heads(&stage, UP, 0, FILES), FILES, "{len} bytes");
        assert_eq!(heads(&stage, UP, 0, FILES), 0, "{len} bytes");
    }
    // That of another place, under this name.
    stage.ok("sync -a SRC/ BKT/other/");
    std::thread::sleep(Duration::from_millis(1100));
    stage.ok("sync -a SRC/ BKT/other/");
    let other = manifests(&stage).into_iter().find(|other| other != path).unwrap();
    std::fs::copy(other, path).unwrap();
    assert_eq!(heads(&stage, UP, 0, FILES), FILES);
}

#[test]
fn only_the_file_of_this_user_counts() {
    let stage = stage();
    fill(&stage);
    upload(&stage);
    let [path] = &manifests(&stage)[..] else { panic!("one manifest") };
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(heads(&stage, UP, 0, FILES), FILES);
    if hakobu_sys::process::euid() == 0 {
        std::os::unix::fs::chown(path, Some(12_345), None).unwrap();
        assert_eq!(heads(&stage, UP, 0, FILES), FILES);
    }
    assert_eq!(heads(&stage, UP, 0, FILES), 0);
}

#[test]
fn a_folder_that_cannot_be_written_changes_nothing() {
    let stage = stage();
    fill(&stage);
    // Not even root writes into a file.
    std::fs::create_dir_all(stage.area.join("state/hakobu")).unwrap();
    std::fs::write(state(&stage), "x").unwrap();
    stage.counts(UP, FILES as u64, 0);
    assert_eq!(heads(&stage, UP, 0, FILES), FILES);
    assert_eq!(std::fs::read(state(&stage)).unwrap(), b"x");
}

#[test]
fn no_memory_neither_uses_nor_keeps_it() {
    let stage = stage();
    fill(&stage);
    stage.counts("sync -a --no-memory SRC/ SPOT/", FILES as u64, 0);
    assert!(manifests(&stage).is_empty());
    stage.counts(UP, 0, FILES as u64);
    assert_eq!(heads(&stage, "sync -a --no-memory SRC/ SPOT/", 0, FILES), FILES);
}

#[test]
fn a_dry_run_uses_it_and_keeps_nothing() {
    let stage = stage();
    fill(&stage);
    stage.ok("sync -an SRC/ SPOT/");
    assert!(manifests(&stage).is_empty());
    stage.counts(UP, FILES as u64, 0);
    // Of an upload that went on into another second, the last few facts are not waited for: the next run learns them.
    std::thread::sleep(Duration::from_millis(1100));
    stage.counts(UP, 0, FILES as u64);
    assert_eq!(heads(&stage, "sync -an SRC/ SPOT/", 0, FILES), 0);
}

#[test]
fn checksums_are_still_asked_for() {
    let stage = stage();
    fill(&stage);
    stage.counts(UP, FILES as u64, 0);
    assert_eq!(heads(&stage, "sync -ac SRC/ SPOT/", 0, FILES), FILES);
}

#[test]
fn deletion_and_other_rules_leave_it_true() {
    let stage = stage();
    fill(&stage);
    upload(&stage);
    std::fs::remove_file(stage.src().join("0/f00")).unwrap();
    assert_eq!(heads(&stage, "sync -a --delete SRC/ SPOT/", 0, FILES - 1), 0);
    assert!(!stage.place().contains_key(&b"0/f00"[..]));
    // Part of the tree: the rest stays known.
    assert_eq!(heads(&stage, "sync -a --exclude=/1/ SRC/ SPOT/", 0, FILES - 1 - FILES / 3), 0);
    std::fs::write(stage.area.join("list"), "2/f02\n1/f01\n").unwrap();
    stage.counts("sync -a --files-from=LIST SRC/ SPOT/", 0, 2);
    // Headers state whole seconds and this server's listing fractions: what was asked for alone is asked for once more.
    assert!(heads(&stage, UP, 0, FILES - 1) <= 2);
    assert_eq!(heads(&stage, UP, 0, FILES - 1), 0);
    // What was deleted and comes back is not what it was.
    file(&stage.src(), "0/f00", b"0/f00", 7);
    stage.put("place/0/f00", b"0/f00");
    assert_eq!(heads(&stage, UP, 0, FILES), 1);
}

#[test]
fn symlinks_stored_as_objects_are_known() {
    let stage = stage();
    fill(&stage);
    for number in 0..FILES {
        let link = stage.src().join(format!("link{number}"));
        std::os::unix::fs::symlink("0/f00", link).unwrap();
    }
    stage.ok(UP);
    std::thread::sleep(Duration::from_millis(1100));
    stage.ok("sync -a SPOT/ DST/");
    let link = stage.dst().join("link7");
    assert_eq!(std::fs::read_link(&link).unwrap().to_str().unwrap(), "0/f00");
    let asked = stage.asked(|| drop(stage.ok("sync -a SPOT/ DST/"))).unwrap();
    // Of symlinks the content is compared.
    assert!(asked.get(HEAD).is_none_or(|count| *count <= FILES), "{asked:?}");
    // A file in place of a link, with the link's text as its content: no link any more.
    stage.put("place/link7", b"0/f00");
    stage.ok("sync -a SPOT/ DST/");
    assert!(std::fs::symlink_metadata(&link).unwrap().is_file());
}

#[test]
fn an_interrupted_run_keeps_what_it_knows() {
    let stage = stage();
    for number in 0..200 {
        file(&stage.src(), &format!("f{number:03}"), &[b'x'; 5000], 100);
    }
    let mut run = stage.command("sync -a -j 2 --bwlimit=200K SRC/ SPOT/").spawn().unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    // timeout(1) passes it on, and sends it to its group, too.
    let pid = run.id().to_string();
    let sent = std::process::Command::new("kill").args(["-INT", &pid]).status();
    assert!(sent.unwrap().success());
    let status = run.wait().unwrap();
    let kept = manifests(&stage);
    let arrived = stage.place().len();
    assert!(arrived > 10 && arrived < 200, "{arrived}");
    let count = heads(&stage, UP, 200 - arrived, arrived);
    assert!(count < arrived, "{count} of {arrived}, {status}, {kept:?}");
}

#[test]
fn two_runs_at_once_leave_one_that_is_whole() {
    let stage = stage();
    fill(&stage);
    let mut runs: Vec<_> = (0..4).map(|_| stage.command(UP).spawn().unwrap()).collect();
    for run in &mut runs {
        assert!(run.wait().unwrap().success());
    }
    std::thread::sleep(Duration::from_millis(1100));
    stage.ok(UP);
    assert_eq!(heads(&stage, UP, 0, FILES), 0);
    assert_eq!(manifests(&stage).len(), 1);
}

#[test]
fn endpoints_and_prefixes_have_their_own() {
    let stage = stage();
    fill(&stage);
    upload(&stage);
    let deep = "sync -a SRC/ BKT/place/deep/";
    stage.counts(deep, FILES as u64, 0);
    std::thread::sleep(Duration::from_millis(1100));
    stage.counts(deep, 0, FILES as u64);
    assert_eq!(manifests(&stage).len(), 2);
    // Another name of the same server.
    let server = stage.server.unwrap().url().replace("127.0.0.1", "localhost");
    let line = format!("sync -a --endpoint-url {server} --addressing-style path SRC/ SPOT/");
    assert_eq!(heads(&stage, &line, 0, FILES), FILES);
    assert_eq!(manifests(&stage).len(), 3);
}

/// 20,000 objects at 20 ms a request: 20 pages, and little else.
#[test]
fn twenty_thousand_unchanged_files_take_sixty_requests() {
    let stage = stage();
    for number in 0..20_000 {
        let path = stage.src().join(format!("f{number:05}"));
        std::fs::write(&path, "x").unwrap();
    }
    let long = |line: &str| {
        let mut command = stage.command(line);
        let asked = stage.asked(|| assert!(command.status().unwrap().success()));
        asked.unwrap().values().sum::<usize>()
    };
    assert!(long("sync -aq SRC/ SPOT/") >= 20_000);
    let second = long("sync -aq SRC/ SPOT/");
    assert!(second <= 60, "{second} requests");
}
