//! Records survive a round trip, and damaged ones are never accepted.

use super::*;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("hakobu-journal-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn record() -> Record {
    Record {
        source: Source::File { dev: 1, ino: 2, size: 25, mtime: (-3, 4), ctime: (5, 6) },
        place: Place::Upload("id+/=\"".into()),
        part_bytes: 10,
        algorithm: "CRC64NVME".into(),
        parts: vec![
            Part { number: 3, bytes: 5, etag: "e".into(), checksum: "AAAAAAAAAAA=".into() },
            Part { number: 1, bytes: 10, etag: "f".into(), checksum: String::new() },
        ],
    }
}

#[test]
fn a_record_comes_back_and_is_private() {
    let folder = Folder::new("round");
    let journal = Journal::at(folder.0.join("a/b"));
    let identity = Identity::new(b"/a\xff%", b"s3://b/k", "http://h");
    assert_eq!(identity.source(), "/a%FF%25");
    assert_eq!(bytes(identity.source()), b"/a\xff%");
    assert_eq!(bytes("%4%zz%\u{e9}"), "%4%zz%\u{e9}".as_bytes());
    let claim = journal.claim(&identity).unwrap().unwrap();
    assert_eq!(claim.load(), None);
    claim.save(&record()).unwrap();
    assert_eq!(claim.load(), Some(record()));
    assert_eq!(journal.list().unwrap(), [(identity.clone(), record())]);
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
    assert_eq!(mode(&folder.0.join("a/b")), 0o700);
    for name in fs::read_dir(folder.0.join("a/b")).unwrap() {
        assert_eq!(mode(&name.unwrap().path()), 0o600);
    }
    claim.remove().unwrap();
    assert_eq!(fs::read_dir(folder.0.join("a/b")).unwrap().count(), 0);
}

#[test]
fn ended_work_is_tidied_away() {
    let folder = Folder::new("tidy");
    let journal = Journal::at(folder.0.clone());
    let named = |name: &str| Identity::new(name.as_bytes(), b"s3://b/k", "");
    let put = |name: &str| {
        let claim = journal.claim(&named(name)).unwrap().unwrap();
        claim.save(&record()).unwrap();
        claim
    };
    drop((put("/over"), put("/goes-on")));
    let (held, lock) = (put("/held"), journal.claim(&named("/only-a-lock")).unwrap());
    drop(lock);
    fs::write(folder.0.join(named("/only-a-lock").file_name("new")), "{").unwrap();
    fs::write(folder.0.join("seeds.lock"), "").unwrap();
    journal.tidy(|identity, _| identity.source() != "/goes-on").unwrap();
    let mut left: Vec<_> =
        fs::read_dir(&folder.0).unwrap().map(|name| name.unwrap().file_name()).collect();
    let mut expected: Vec<std::ffi::OsString> = vec!["seeds.lock".into()];
    for name in ["/goes-on", "/held"] {
        expected.extend(["json", "lock"].map(|end| named(name).file_name(end).into()));
    }
    left.sort();
    expected.sort();
    assert_eq!(left, expected);
    drop(held);
    Journal::at(folder.0.join("missing")).tidy(|_, _| true).unwrap();
}

#[test]
fn one_object_has_one_claim() {
    let folder = Folder::new("claim");
    let journal = Journal::at(folder.0.clone());
    let one = Identity::new(b"/a", b"s3://b/k", "");
    let other = Identity::new(b"/as", b"3://b/k", "");
    let claim = journal.claim(&one).unwrap().unwrap();
    assert!(journal.claim(&one).unwrap().is_none());
    assert!(journal.claim(&other).unwrap().is_some());
    drop(claim);
    let claim = journal.claim(&one).unwrap().unwrap();
    claim.remove().unwrap();
    assert!(journal.claim(&one).unwrap().is_some());
}

#[test]
fn broken_records_are_no_records() {
    let folder = Folder::new("broken");
    let journal = Journal::at(folder.0.clone());
    let identity = Identity::new(b"/a", b"s3://b/k", "");
    let claim = journal.claim(&identity).unwrap().unwrap();
    claim.save(&record()).unwrap();
    let path = folder.0.join(identity.file_name("json"));
    let whole = fs::read(&path).unwrap();
    for cut in 0..whole.len() {
        fs::write(&path, whole.get(..cut).unwrap()).unwrap();
        assert_eq!(claim.load(), None, "cut at {cut}");
    }
    let newer = String::from_utf8(whole.clone()).unwrap().replace("\"schema\":1", "\"schema\":2");
    fs::write(&path, newer).unwrap();
    assert_eq!(claim.load(), None);
    // A record of something else under this name: a collision, or a copied file.
    let other = Identity::new(b"/b", b"s3://b/k", "");
    fs::write(&path, record::encode(&other, &record()).unwrap()).unwrap();
    assert_eq!(claim.load(), None);
    fs::write(&path, whole).unwrap();
    assert_eq!(claim.load(), Some(record()));
}

#[test]
fn a_record_is_checked_against_its_source() {
    let good = record();
    assert_eq!(good.check(&good.source), Checked::Good);
    let Source::File { dev, ino, size, mtime, ctime } = good.source else { panic!() };
    for changed in [
        Source::File { dev: dev + 1, ino, size, mtime, ctime },
        Source::File { dev, ino: ino + 1, size, mtime, ctime },
        Source::File { dev, ino, size: size + 1, mtime, ctime },
        Source::File { dev, ino, size, mtime: (mtime.0, mtime.1 + 1), ctime },
        Source::File { dev, ino, size, mtime, ctime: (ctime.0 + 1, ctime.1) },
        Source::Object { size, etag: String::new(), version: None },
    ] {
        assert_eq!(record().check(&changed), Checked::SourceChanged);
    }
    let breaks: [fn(&mut Record); 6] = [
        |record| record.part_bytes = 0,
        |record| record.parts[0].number = 0,
        |record| record.parts[0].number = 4,
        |record| record.parts[0].number = 1,
        |record| record.parts[1].bytes = 9,
        |record| record.parts[0].number = u32::MAX,
    ];
    for (number, change) in breaks.iter().enumerate() {
        let mut broken = record();
        change(&mut broken);
        let source = broken.source.clone();
        assert_eq!(broken.check(&source), Checked::Broken, "{number}");
    }
}
