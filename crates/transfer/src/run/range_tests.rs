//! Ranges of names: the dry runs of adjacent ranges find together what that of the whole transfer finds, and list nothing
//! else.

use crate::location::{Location, S3Url, Sources};
use crate::object::ObjectOptions;
use crate::plan::{NameRange, Objects};
use crate::policy::filter::FilterBuilder;
use crate::policy::{Delete, Policy, Symlinks};
use crate::run::{Control, Layout, Spec, transfer};
use hakobu_core::event::{Event, Listener, Remarks};
use hakobu_core::limit::Limits;
use hakobu_core::percent;
use hakobu_s3::{Addressing, Credentials, Settings};
use hakobu_testserver::script::{Seen, Server, answer, refusal};
use parking_lot::Mutex;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Keys and sizes of a bucket.
pub(super) type Bucket = BTreeMap<Vec<u8>, u64>;

/// A server of buckets that only lists, with a number of keys in a page.
pub(super) struct Store {
    server: Server,
    buckets: Arc<Mutex<BTreeMap<String, Bucket>>>,
    pages: Arc<AtomicU64>,
}

impl Store {
    pub fn new(page: usize) -> Store {
        let buckets = Arc::new(Mutex::new(BTreeMap::<String, Bucket>::new()));
        let pages = Arc::<AtomicU64>::default();
        let (all, count) = (Arc::clone(&buckets), Arc::clone(&pages));
        let server = Server::start(move |seen| match listed(seen, &all.lock(), page) {
            Some(page) => {
                count.fetch_add(1, Ordering::Relaxed);
                answer("200 OK", "", &page)
            }
            None => refusal("404 Not Found", "", "NoSuchKey"),
        });
        Store { server, buckets, pages }
    }

    pub fn fill(&self, bucket: &str, keys: Bucket) {
        self.buckets.lock().insert(bucket.to_owned(), keys);
    }

    /// Returns the number of pages since the last call.
    pub fn pages(&self) -> u64 {
        self.pages.swap(0, Ordering::Relaxed)
    }

    pub fn settings(&self) -> Settings {
        Settings {
            endpoint_url: Some(self.server.url.clone()),
            region: Some("us-east-1".to_owned()),
            addressing: Addressing::Path,
            credentials: Some(Credentials {
                access_key: "AKID".to_owned(),
                secret_key: "secret".to_owned(),
                session_token: None,
            }),
            ..Settings::default()
        }
    }
}

/// The page that a request asks for.
fn listed(seen: &Seen, buckets: &BTreeMap<String, Bucket>, page: usize) -> Option<String> {
    let (path, query) = seen.line.split(' ').nth(1)?.split_once('?')?;
    let keys = buckets.get(path.trim_matches('/'))?;
    let value = |wanted: &str| {
        let found = query
            .split('&')
            .find_map(|pair| pair.split_once('=').filter(|(name, _)| *name == wanted));
        found.map(|(_, value)| percent::decode(value.as_bytes(), true)).unwrap_or_default()
    };
    let (prefix, token) = (value("prefix"), value("continuation-token"));
    let bytes = token.chunks(2).map(|two| percent::hex_byte(Some(two)).unwrap());
    let after = if token.is_empty() { value("start-after") } else { bytes.collect() };
    let asked = String::from_utf8(value("max-keys")).unwrap().parse().unwrap_or(page);
    let mut rest = keys.iter().filter(|(key, _)| key.starts_with(&prefix) && **key > after);
    let encoded = |bytes: &[u8]| {
        let mut text = String::new();
        percent::encode(bytes, true, &mut text);
        text
    };
    let (mut body, mut last) = (String::new(), Vec::new());
    for (key, size) in rest.by_ref().take(page.min(asked)) {
        last.clone_from(key);
        let key = encoded(key);
        body += &format!(
            "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>\
             <ETag>\"e\"</ETag><Size>{size}</Size><StorageClass>STANDARD</StorageClass></Contents>"
        );
    }
    let is_truncated = rest.next().is_some();
    if is_truncated {
        body += &format!("<NextContinuationToken>{}</NextContinuationToken>", percent::hex(&last));
    }
    Some(format!(
        "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>{is_truncated}</IsTruncated>{body}\
         </ListBucketResult>"
    ))
}

/// A directory of a test, removed at its end.
pub(super) struct Dir(pub PathBuf);

impl Dir {
    pub fn new(name: &str) -> Dir {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("hakobu-range-{}-{number}-{name}/", std::process::id());
        let top = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&top);
        std::fs::create_dir(&top).unwrap();
        Dir(top)
    }

    /// Makes what fits of these names: directories by a slash at their ends, files otherwise.
    pub fn fill(&self, names: &Bucket) {
        fill(&self.0, names);
    }
}

/// See [`Dir::fill`].
fn fill(top: &Path, names: &Bucket) {
    for (name, size) in names {
        let parts = name.strip_suffix(b"/").unwrap_or(name).split(|byte| *byte == b'/');
        if parts.clone().any(|part| matches!(part, b"" | b"." | b"..") || part.contains(&0)) {
            continue;
        }
        let path = top.join(OsStr::from_bytes(name));
        if name.ends_with(b"/") {
            let _ = std::fs::create_dir_all(path);
        } else if std::fs::create_dir_all(path.parent().unwrap()).is_ok() && !path.exists() {
            let _ = std::fs::write(path, vec![0; *size as usize]);
        }
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) fn bucket(name: &str, prefix: &str) -> Location {
    Location::S3(S3Url { bucket: name.to_owned(), key: prefix.into(), slash: true })
}

/// A dry run of `sync -r --delete`, as far as it does not say otherwise.
pub(super) fn spec(store: &Store, source: Location, target: Location) -> Spec {
    let policy =
        Policy { recurse: true, dry_run: true, delete: Delete::During, ..Policy::default() };
    let settings = store.settings();
    Spec {
        sources: Sources::of(vec![source]).unwrap(),
        target,
        layout: Layout::Rsync { relative: false },
        files_from: None,
        chosen: None,
        range: None,
        policy,
        limits: Limits::default(),
        remember: false,
        jobs_before: None,
        prove: false,
        items: true,
        items_unchanged: true,
        plans: false,
        ordered: false,
        remarks: Remarks::default(),
        digest: None,
        mkpath: false,
        check_space: false,
        carried: None,
        log_file: None,
        objects: Objects { source: settings.clone(), target: settings, ..Objects::default() },
        remote: None,
        packing: None,
    }
}

/// What a dry run found, sorted: path, whether it is to be deleted, whether it is new, size; and its problems.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    items: Vec<(Vec<u8>, bool, bool, u64)>,
    problems: BTreeSet<String>,
}

#[derive(Default)]
struct Listens(Mutex<Found>);

impl Listener for Listens {
    fn event(&self, event: Event<'_>) {
        let mut found = self.0.lock();
        match event {
            Event::Item(item) => {
                let path = item.path.as_os_str().as_bytes().to_vec();
                found.items.push((path, item.change.deleted, item.change.created, item.bytes));
            }
            Event::Problem(problem) => drop(found.problems.insert(format!("{problem:?}"))),
            Event::Warning(text) => drop(found.problems.insert(text)),
            _ => {}
        }
    }
}

fn run_all(spec: &Spec, ranges: &[Option<NameRange>]) -> Found {
    let listens = Listens::default();
    for range in ranges {
        let spec = Spec { range: range.clone(), ..spec.clone() };
        let outcome = transfer(&spec, &Control::default(), &listens).unwrap();
        assert!(outcome.fatal.is_none(), "{:?}", outcome.fatal);
    }
    let mut found = listens.0.into_inner();
    found.items.sort();
    found
}

/// Asserts that the ranges between cuts find what the whole transfer finds.
fn same(spec: &Spec, cuts: &[Vec<u8>]) -> Result<(), TestCaseError> {
    let whole = run_all(spec, &[None]);
    let ranges: Vec<_> = NameRange::between(cuts).into_iter().map(Some).collect();
    let parts = run_all(spec, &ranges);
    prop_assert_eq!(&whole.problems, &parts.problems, "cut at {:?}", cuts);
    prop_assert_eq!(&whole.items, &parts.items, "cut at {:?}", cuts);
    Ok(())
}

/// Names whose neighbours are close: around the slash, around the highest and the lowest bytes.
fn name() -> impl Strategy<Value = Vec<u8>> {
    let part = prop::sample::select(vec![
        "a",
        "a.txt",
        "a0",
        "a!",
        "b",
        "aa",
        "\u{1}",
        "~",
        "é",
        "\u{10ffff}",
        "%=b",
    ]);
    let end = prop::sample::select(vec!["", "", "", "/"]);
    (prop::collection::vec(part, 1..4), end)
        .prop_map(|(parts, end)| [parts.join("/"), end.to_owned()].concat().into_bytes())
}

fn names() -> impl Strategy<Value = Bucket> {
    let size = |name: &Vec<u8>, size: u64| if name.ends_with(b"/") { 0 } else { size };
    prop::collection::btree_map(name(), 1..3_u64, 0..40).prop_map(move |names| {
        names.into_iter().map(|(name, bytes)| (name.clone(), size(&name, bytes))).collect()
    })
}

/// Cut points: names, what is just before and after one, and any bytes.
fn cuts() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let after = (name(), prop::sample::select(&b"\0\x01./0\xff"[..]))
        .prop_map(|(name, byte)| [&*name, &[byte]].concat());
    let bytes = prop::collection::vec(any::<u8>(), 0..3);
    let one = prop_oneof![3 => name(), 2 => after, 1 => bytes];
    prop::collection::vec(one, 0..6).prop_map(|mut cuts| {
        cuts.sort();
        cuts
    })
}

/// Names that are not UTF-8 as well.
fn local_names() -> impl Strategy<Value = Bucket> {
    let raw = prop::sample::select(vec![&b"a\xff"[..], b"\xe9/x", b"a/\xc3", b"\xff"]);
    (names(), prop::collection::vec(raw, 0..3)).prop_map(|(mut names, raw)| {
        names.extend(raw.into_iter().map(|name| (name.to_vec(), 1)));
        names
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn from_store_to_store(source in names(), target in names(), cuts in cuts(), page in 1..9_usize) {
        let store = Store::new(page);
        let below = |names: Bucket| -> Bucket {
            // Keys around the prefix, and its own marker.
            let around = ["p", "p.", "p0", "q/a"].map(|key| (key.into(), 1));
            let inside = names.into_iter().map(|(name, size)| ([b"p/", &*name].concat(), size));
            inside.chain(around).chain([(b"p/".to_vec(), 0)]).collect()
        };
        store.fill("from", below(source));
        store.fill("to", below(target));
        same(&spec(&store, bucket("from", "p/"), bucket("to", "p/")), &cuts)?;
    }

    #[test]
    fn from_a_tree_to_a_store(
        source in local_names(),
        target in names(),
        cuts in cuts(),
        encode_names: bool,
        dir_markers: bool,
    ) {
        let (store, dir) = (Store::new(5), Dir::new("up"));
        dir.fill(&source);
        store.fill("to", target);
        let mut spec = spec(&store, Location::Local(dir.0.clone()), bucket("to", ""));
        spec.objects.options = ObjectOptions { encode_names, dir_markers, ..ObjectOptions::default() };
        same(&spec, &cuts)?;
    }

    #[test]
    fn from_a_store_to_a_tree(
        source in names(),
        target in local_names(),
        cuts in cuts(),
        encode_names: bool,
    ) {
        let (store, dir) = (Store::new(5), Dir::new("down"));
        dir.fill(&target);
        store.fill("from", source.into_iter().chain([(b"zz".to_vec(), 1)]).collect());
        let mut spec = spec(&store, bucket("from", ""), Location::Local(dir.0.clone()));
        spec.objects.options = ObjectOptions { encode_names, ..ObjectOptions::default() };
        same(&spec, &cuts)?;
    }

    #[test]
    fn from_a_tree_to_a_tree(
        source in local_names(),
        target in local_names(),
        cuts in cuts(),
        as_content: bool,
        delete in prop::sample::select(vec![Delete::No, Delete::Before, Delete::During, Delete::After]),
        symlinks in prop::sample::select(vec![Symlinks::Skip, Symlinks::Keep, Symlinks::Follow]),
    ) {
        let store = Store::new(5);
        let (from, to) = (Dir::new("from"), Dir::new("to"));
        let inner = from.0.join("in");
        std::fs::create_dir(&inner).unwrap();
        let top = if as_content { to.0.clone() } else { to.0.join("in") };
        let _ = std::fs::create_dir(&top);
        fill(&inner, &source);
        fill(&top, &target);
        let _ = std::os::unix::fs::symlink("a", inner.join("b"));
        let _ = std::os::unix::fs::symlink("nowhere", inner.join("a0"));
        let typed = if as_content { from.0.join("in/") } else { inner };
        let mut spec = spec(&store, Location::Local(typed), Location::Local(to.0.clone()));
        (spec.policy.delete, spec.policy.symlinks) = (delete, symlinks);
        spec.policy.force = true;
        same(&spec, &cuts)?;
        // Carried out one after the other they leave what the whole leaves.
        spec.policy.dry_run = false;
        let mut cuts = cuts;
        cuts.dedup();
        for range in NameRange::between(&cuts).into_iter().rev() {
            run_all(&spec, &[Some(range)]);
        }
        let parts = tree(&top);
        let _ = std::fs::remove_dir_all(&top);
        let _ = std::fs::create_dir(&top);
        fill(&top, &target);
        run_all(&spec, &[None]);
        prop_assert_eq!(tree(&top), parts, "cut at {:?}", cuts);
    }
}

/// Paths below a directory, sorted, with sizes of files.
fn tree(top: &Path) -> BTreeMap<PathBuf, Option<u64>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            if meta.is_dir() {
                waiting.push(path.clone());
            }
            found.insert(path, meta.is_file().then_some(meta.len()));
        }
    }
    found
}

fn keys(names: &[&str]) -> Bucket {
    names.iter().map(|name| (name.as_bytes().to_vec(), u64::from(!name.ends_with('/')))).collect()
}

fn cut_at(points: &[&str]) -> Vec<Vec<u8>> {
    points.iter().map(|point| point.as_bytes().to_vec()).collect()
}

/// A marker of the target stays where the source has something below it, in whatever range that is.
#[test]
fn a_directory_goes_on_behind_its_range() {
    let (store, dir) = (Store::new(3), Dir::new("behind"));
    let target = keys(&["a/", "a/b/", "a/b/c/", "d/", "d/old"]);
    store.fill("to", target);
    let source = keys(&["a/b/z", "e"]);
    store.fill("from", source.clone());
    dir.fill(&source);
    for from in [bucket("from", ""), Location::Local(dir.0.clone())] {
        let spec = spec(&store, from, bucket("to", ""));
        let whole = run_all(&spec, &[None]);
        let gone: Vec<_> = whole.items.iter().filter(|(_, deleted, ..)| *deleted).collect();
        assert_eq!(gone.len(), 3, "{gone:?}");
        for cuts in [
            &["a/b/m"][..],
            &["a/b/"],
            &["a/b/", "a/b/c/"],
            &["a/b/c", "a/b/y", "d/"],
            &["a/b/\u{0}"],
        ] {
            same(&spec, &cut_at(cuts)).unwrap();
        }
    }
}

/// What cannot be examined protects the names of the target in every range.
#[test]
fn problems_protect_in_every_range() {
    let (store, dir) = (Store::new(3), Dir::new("problems"));
    dir.fill(&keys(&["d/x", "k", "z"]));
    // Skipped with a notice, which stands for what may be below it.
    std::os::unix::fs::symlink("k", dir.0.join("a")).unwrap();
    std::os::unix::fs::symlink("nowhere", dir.0.join("d/m")).unwrap();
    store.fill("to", keys(&["a", "a.b", "a/q", "a/t/u", "d/m", "d/m/1/2", "d/m/3", "d/n", "y"]));
    let spec = spec(&store, Location::Local(dir.0.clone()), bucket("to", ""));
    let whole = run_all(&spec, &[None]);
    let gone: Vec<_> =
        whole.items.iter().filter(|(_, deleted, ..)| *deleted).map(|item| &*item.0).collect();
    assert_eq!(gone, [&b"a.b"[..], b"d/n", b"y"]);
    for cuts in [
        &["a/"][..],
        &["a/r"],
        &["a.a", "a/t/u"],
        &["d/m/2"],
        &["d/m", "d/m/", "d/m/1/2"],
        &["a0", "d/m."],
    ] {
        same(&spec, &cut_at(cuts)).unwrap();
    }
}

/// Files of rules in directories hold in ranges that begin below them.
#[test]
fn rules_of_directories_hold_below_a_cut() {
    let (store, dir, rules) = (Store::new(3), Dir::new("rules"), ".rules");
    let names = keys(&["a/b/c.o", "a/b/c.txt", "a/b/k/d.o", "a/b/k/e.txt", "f.o", "x/g.o"]);
    dir.fill(&names);
    std::fs::write(dir.0.join("a").join(rules), "- *.o\n").unwrap();
    std::fs::write(dir.0.join("a/b/k").join(rules), "+ d.o\n").unwrap();
    store.fill("to", keys(&["a/b/old.o", "a/b/old.txt", "x/old.o"]));
    let mut builder = FilterBuilder::default();
    builder.rule(format!("dir-merge {rules}").as_bytes()).unwrap();
    let mut spec = spec(&store, Location::Local(dir.0.clone()), bucket("to", ""));
    spec.policy.filter = Some(Arc::new(builder.build(&mut |_| panic!("no file")).unwrap()));
    let whole = run_all(&spec, &[None]);
    assert_eq!(whole.items.iter().filter(|(_, deleted, ..)| *deleted).count(), 2, "{whole:?}");
    for cuts in [&["a/b/c.o"][..], &["a/b/d", "a/b/k/d.o", "a/b/k/e"], &["a/b/old.o", "x/"]] {
        same(&spec, &cut_at(cuts)).unwrap();
    }
}

/// A range reads its own pages, and at most one more of a side; directories outside of it are not read.
#[test]
fn a_range_lists_little_else() {
    let store = Store::new(100);
    let all: Bucket =
        (0..5000).map(|n| (format!("d{:02}/f{n:06}", n / 100).into_bytes(), 1)).collect();
    store.fill("from", all.clone());
    store.fill("to", all.clone());
    let spec = spec(&store, bucket("from", ""), bucket("to", ""));
    let whole = run_all(&spec, &[None]);
    store.pages();
    let points: Vec<Vec<u8>> = all.keys().skip(1).step_by(500).skip(1).cloned().collect();
    let mut items = Vec::new();
    for range in NameRange::between(&points) {
        let (keys, shown) =
            (all.keys().filter(|key| range.contains(key)).count(), format!("{range:?}"));
        items.append(&mut run_all(&spec, &[Some(range)]).items);
        let pages = store.pages();
        // With several requests at once a side guesses where others begin.
        assert!(
            pages <= 2 * (keys as u64 / 100 + 3),
            "{shown}: {pages} pages of {keys} keys a side"
        );
    }
    items.sort();
    assert_eq!(items, whole.items);
    // A range within a page.
    let one = NameRange { from: b"d07/f000712".into(), until: Some(b"d07/f000713".into()) };
    assert_eq!(run_all(&spec, &[Some(one)]).items.len(), 1);
    assert_eq!(store.pages(), 2);
    let none = NameRange { from: b"x".into(), until: Some(b"x".into()) };
    assert_eq!((run_all(&spec, &[Some(none)]), store.pages()), (Found::default(), 0));
}

#[test]
fn directories_outside_of_a_range_are_not_read() {
    let (store, dir) = (Store::new(100), Dir::new("unread"));
    dir.fill(&keys(&["a/b/1", "a/b/2", "a/c/3", "a.txt", "d/e/4", "f"]));
    store.fill("to", Bucket::new());
    let spec = spec(&store, Location::Local(dir.0.clone()), bucket("to", ""));
    // A loop of symlinks is a problem of the directory that has it, where that is read.
    for name in ["a/b/l", "a/c/l", "d/e/l"] {
        std::os::unix::fs::symlink("l", dir.0.join(name)).unwrap();
    }
    let found = |from: &str, until: &str| {
        let found =
            run_all(&spec, &[Some(NameRange { from: from.into(), until: Some(until.into()) })]);
        let paths: Vec<_> =
            found.items.iter().map(|item| String::from_utf8(item.0.clone()).unwrap()).collect();
        (paths, found.problems.len())
    };
    assert_eq!(found("a/b/", "a/b/1a"), (vec!["a/b/1".to_owned()], 0));
    assert_eq!(found("a/b/2", "a/c/"), (vec!["a/b/2".to_owned()], 1));
    assert_eq!(found("a/c/3", "a/c/4"), (vec!["a/c/3".to_owned()], 0));
    assert_eq!(found("e", "g"), (vec!["f".to_owned()], 0));
}

#[test]
fn transfers_without_ranges_are_refused_by_name() {
    let (store, dir) = (Store::new(100), Dir::new("refused"));
    dir.fill(&keys(&["f", "d/g"]));
    store.fill("to", keys(&["one", "d/x"]));
    let good = Spec {
        range: Some(NameRange::all()),
        ..spec(&store, Location::Local(dir.0.clone()), bucket("to", ""))
    };
    let refused = |spec: &Spec| {
        let outcome = transfer(spec, &Control::default(), &Listens::default());
        let fatal = outcome.err().unwrap();
        assert_eq!(fatal.code, 1);
        fatal.message.strip_prefix("there are no ranges of a transfer that ").unwrap().to_owned()
    };
    transfer(&good, &Control::default(), &Listens::default()).unwrap();
    let file = Sources::Paths(vec![dir.0.join("f")]);
    assert_eq!(refused(&Spec { sources: file, ..good.clone() }), "is of one file");
    let two = Sources::Paths(vec![dir.0.clone(), dir.0.join("d")]);
    assert_eq!(refused(&Spec { sources: two, ..good.clone() }), "has several sources");
    let listed = Spec { files_from: Some(vec![b"f".to_vec()]), ..good.clone() };
    assert_eq!(refused(&listed), "is of names in a list");
    let mut paths = Spec { target: Location::Local(dir.0.join("d")), ..good.clone() };
    paths.policy.hard_links = true;
    assert_eq!(refused(&paths), "keeps hard links (--hard-links)");
    let from = |key: &str| Spec {
        sources: Sources::of(vec![bucket("to", key)]).unwrap(),
        target: Location::Null,
        ..good.clone()
    };
    assert_eq!(refused(&from("d/*")), "has a source with wildcards");
    let mut flat = good.clone();
    flat.objects.flatten = true;
    assert_eq!(refused(&flat), "gives all entries their base names (--flatten)");
    let mut bounded = good;
    bounded.policy.max_delete = Some(1);
    assert_eq!(refused(&bounded), "counts its deletions (--max-delete)");
}
