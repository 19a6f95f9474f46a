//! Keys that cannot be file names, and names that cannot be keys: refused with a count, or encoded
//! reversibly; never written outside the target.

use super::stage::{Stage, Tree, everywhere, file, names, on_servers, same, stage, tree};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Keys that are paths, however odd.
const ODD: &[&str] = &[
    "a b",
    "$HOME",
    "new\nline",
    "ü/日本",
    "100%",
    "%41",
    "+",
    "a&b=c?d#e",
    "'quoted\"",
    "-rf",
    "back\\slash",
    "tab\there",
    "...",
    ".hidden",
    "~",
    "a*b",
    " lead",
    "trail ",
    "\u{1}\u{7f}",
];

/// Keys that are none, and where they would lead.
const NO_PATHS: &[&str] = &[
    "a//b",
    "/lead",
    "//",
    "./dot",
    "x/./y",
    "../up",
    "x/../../up",
    "..",
    ".",
    "x/..",
    "content/",
];

fn fill(stage: &Stage, keys: &[&str]) {
    for key in keys {
        stage.put(&format!("place/{key}"), key.as_bytes());
    }
}

fn expected(keys: &[&str]) -> Tree {
    keys.iter().map(|key| (key.as_bytes().to_vec(), key.as_bytes().to_vec())).collect()
}

#[test]
fn odd_keys_are_files() {
    let stage = stage();
    fill(&stage, ODD);
    let long = format!("{}/{}", "l".repeat(255), "m".repeat(200));
    fill(&stage, &[&long]);
    let mut all = expected(ODD);
    all.extend(expected(&[&long]));
    stage.counts("sync -r SPOT/ DST/", ODD.len() as u64 + 1, 0);
    same("down", &all, &tree(&stage.dst()));
    stage.counts("sync -r DST/ BKT/again/", ODD.len() as u64 + 1, 0);
    let again = stage.objects().into_iter();
    let again = again.filter_map(|(k, v)| Some((k.strip_prefix(b"again/")?.to_vec(), v)));
    same("up", &all, &again.collect());
    stage.counts("sync -r DST/ BKT/again/", 0, ODD.len() as u64 + 1);
    stage.ok("verify DST/ BKT/again/");
    stage.ok("rm -r BKT/again/");
    same("rm", &all, &stage.place());
}

#[test]
fn keys_that_are_no_paths_are_refused() {
    for line in ["cp -r SPOT/ DST/in/ner/", "sync -r --mkpath SPOT/ DST/in/ner/"] {
        let stage = stage();
        fill(&stage, NO_PATHS);
        fill(&stage, &["good"]);
        std::fs::create_dir_all(stage.dst().join("in/ner")).unwrap();
        let before = names(&tree(stage.area.path()));
        let run = stage.run(line);
        assert_ne!(run.code, 0, "{run}");
        let summary = stage.run(&format!("{line} --json")).summary();
        assert_eq!(summary["failed"], NO_PATHS.len(), "{line}: {summary}");
        let after = names(&tree(stage.area.path()));
        let new: Vec<_> = after.iter().filter(|name| !before.contains(name)).collect();
        let new: Vec<_> = new.iter().filter(|name| !name.starts_with("state/")).collect();
        assert!(new.len() == 1 && new[0].starts_with("dst/in/ner/") && new[0].ends_with("good"));
        // One by one they are refused as well.
        for key in NO_PATHS {
            let before = tree(stage.area.path()).len();
            let run = stage.run(&format!("cp --raw 'SPOT/{key}' DST/in/ner/"));
            let after = names(&tree(stage.area.path()));
            let outside = after.iter().filter(|name| name.contains("up") && name.len() < 12);
            assert_eq!(outside.count(), 0, "{run}");
            assert!(after.len() <= before + 1, "{run}");
        }
    }
}

#[test]
fn encoded_names_come_back() {
    let stage = stage();
    // An object cannot be a file where others make it a folder: `..` and `../up`.
    let alone: Vec<_> = NO_PATHS.iter().filter(|key| !key.ends_with('.')).copied().collect();
    fill(&stage, &alone);
    fill(&stage, &["y/..", "y/."]);
    fill(&stage, ODD);
    fill(&stage, &["%=", "%=a", "a/%=/b", "%=%=x"]);
    let all = stage.place();
    let files = all.len() as u64;
    stage.counts("sync -r --encode-names SPOT/ DST/", files, 0);
    assert_eq!(tree(&stage.dst()).len() as u64, files);
    stage.counts("sync -r --encode-names SPOT/ DST/", 0, files);
    stage.counts("sync -r --encode-names DST/ BKT/again/", files, 0);
    let again = stage.objects().into_iter();
    let again = again.filter_map(|(k, v)| Some((k.strip_prefix(b"again/")?.to_vec(), v)));
    same("up again", &all, &again.collect());
    stage.counts("sync -r --encode-names DST/ BKT/again/", 0, files);
}

#[test]
fn inside_s3_keys_stay_as_they_are() {
    let (from, to) = (stage(), stage());
    fill(&from, NO_PATHS);
    fill(&from, ODD);
    let all = from.place();
    from.counts("sync -r SPOT/ BKT/copy/", all.len() as u64, 0);
    from.counts("sync -r SPOT/ BKT/copy/", 0, all.len() as u64);
    let copy = from.objects().into_iter();
    let copy = copy.filter_map(|(k, v)| Some((k.strip_prefix(b"copy/")?.to_vec(), v)));
    same("copied", &all, &copy.collect());
    let url = from.server.unwrap().url();
    let line = format!(
        "sync -r SPOT/ s3://{}/place/ --source-endpoint-url {url} --destination-endpoint-url {}",
        to.bucket,
        url.replace("127.0.0.1", "localhost")
    );
    from.counts(&line, all.len() as u64, 0);
    same("relayed", &all, &to.place());
    from.ok("rm -r SPOT/");
    assert!(from.place().is_empty());
    from.ok("rb --force BKT");
}

#[test]
fn an_object_beside_its_folder() {
    let stage = stage();
    fill(&stage, &["a", "a/b", "c"]);
    let run = stage.run("cp -r SPOT/ DST/");
    run.expect(1);
    let found = tree(&stage.dst());
    assert_eq!(found.len(), 2, "{run}{:?}", names(&found));
    assert!(found.keys().any(|name| name.ends_with(b"c")));
    stage.ok("sync -r SPOT/ BKT/copy/");
    assert_eq!(stage.objects().len(), 6);
    stage.ok("rm -r BKT/copy/a");
    assert_eq!(names(&stage.objects()), ["copy/c", "place/a", "place/a/b", "place/c"]);
}

#[test]
fn the_longest_keys() {
    let stage = stage();
    let part = "k".repeat(200);
    // place/ and four parts with slashes, and the rest: 1,024 bytes in all.
    let longest = format!("{part}/{part}/{part}/{part}/{}", "e".repeat(1024 - 6 - 804));
    fill(&stage, &[&longest]);
    stage.counts("sync -r SPOT/ DST/", 1, 0);
    same("down", &expected(&[&longest]), &tree(&stage.dst()));
    stage.ok("rm -r SPOT/");
    stage.counts("sync -r DST/ SPOT/", 1, 0);
    same("up", &expected(&[&longest]), &stage.place());
    // One byte more than a key can have.
    let run = stage.run("sync -r --json DST/ BKT/longer/");
    run.expect(23);
    assert_eq!(run.summary()["failed"], 1, "{run}");
    // A component that no file can have.
    fill(&stage, &[&"n".repeat(256)]);
    stage.run("sync -r SPOT/ DST/").expect(23).says(&["255"]);
}

#[test]
fn names_that_are_not_utf_8() {
    let stage = stage();
    for name in [&b"caf\xe9"[..], b"d\xff/f", b"good"] {
        let path = stage.src().join(OsStr::from_bytes(name));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, name).unwrap();
    }
    let run = stage.run("sync -r --json SRC/ SPOT/");
    run.expect(23);
    assert_eq!(run.summary()["failed"], 2, "{run}");
    assert_eq!(names(&stage.place()), ["good"]);
    stage.counts("sync -r --encode-names SRC/ SPOT/", 2, 1);
    assert_eq!(names(&stage.place()), ["%=caf%E9", "%=d%FF/f", "good"]);
    stage.counts("sync -r --encode-names SPOT/ DST/", 3, 0);
    same("back", &tree(&stage.src()), &tree(&stage.dst()));
}

// Temporary names of the program, as keys and in uploaded folders.

/// A name of another machine, with its checksum (FNV-1a of 64 bits, folded).
fn ours() -> String {
    let text = ".hakobu-0000000a-0000000b-0000000c-00000000000d-00000000000e";
    let sum = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{text}-{:08x}", (sum >> 32) as u32 ^ sum as u32)
}

const USERS: &str = ".hakobu-1-2-3-4-5";
const SAYS: &str = "unfinished file of a hakobu run";

#[test]
fn files_of_users_go_up_and_down() {
    everywhere(|stage| {
        for name in [USERS, "d/.hakobu-kept-0123456789abcdef", "a"] {
            file(&stage.src(), name, b"content", 100);
        }
        let all = [USERS, "a", "d/.hakobu-kept-0123456789abcdef"];
        stage.ok("sync -r SRC/ SPOT/");
        stage.ok(&format!("cp SRC/{USERS} SPOT/"));
        assert_eq!(names(&stage.place()), all);
        stage.ok("sync -r SPOT/ DST/");
        assert_eq!(names(&tree(&stage.dst())), all);
        stage.ok("mv SPOT DST/");
        assert_eq!(names(&tree(&stage.dst().join("place"))), all);
    });
}

#[test]
fn ours_are_left_out_and_told() {
    on_servers(|stage| {
        file(&stage.src(), &ours(), b"half", 100);
        file(&stage.src(), "a", b"whole", 100);
        stage.ok("sync -r SRC/ SPOT/").says(&[SAYS, &ours()]);
        assert_eq!(names(&stage.place()), ["a"]);
        // Some other program put it there.
        stage.put(&format!("place/d/{}", ours()), b"half");
        stage.ok("sync -r SPOT/ DST/").says(&[SAYS, &ours()]);
        assert_eq!(names(&tree(&stage.dst())), ["a"]);
        stage.run("mv SPOT DST/").expect(1).says(&[SAYS]);
        assert_eq!(names(&stage.place()), [format!("d/{}", ours())]);
        // Between stores it is an object like any other.
        stage.ok("sync -r SPOT/ BKT/copy/");
        assert!(names(&stage.objects()).iter().any(|name| name.starts_with("copy/")));
    });
}
