//! Local listings of real trees.

use super::super::{Item, Trouble};
use super::*;
use crate::error::Class;
use crate::object::Entry;
use crate::policy::filter::{FilterBuilder, Origin};
use crate::unit::Kind;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// A folder of a test, removed at its end.
struct Top(PathBuf);

impl Top {
    fn new(name: &str) -> Top {
        let top = std::env::temp_dir().join(format!("hakobu-list-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&top);
        std::fs::create_dir(&top).unwrap();
        Top(top)
    }

    fn file(&self, name: &[u8]) {
        let path = self.0.join(std::ffi::OsStr::from_bytes(name));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, name).unwrap();
    }

    fn fd(&self) -> Arc<OwnedFd> {
        let path = CString::new(self.0.as_os_str().as_bytes()).unwrap();
        Arc::new(dir::open_root(&path).unwrap())
    }

    fn list(&self, query: LocalQuery) -> Vec<Item> {
        let mut listing = local(self.fd(), &self.0, query);
        std::iter::from_fn(|| listing.next()).collect()
    }

    /// Names in the order in which they come; problems as `!name`.
    fn names(&self, query: LocalQuery) -> Vec<String> {
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        let shown = |item: Item| match item {
            Ok(Entry { name, .. }) => text(&name),
            Err(Trouble::Problem { name, .. }) => format!("!{}", text(&name)),
            Err(Trouble::Failed(error)) => panic!("{error}"),
        };
        self.list(query).into_iter().map(shown).collect()
    }
}

impl Drop for Top {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn names_come_in_the_order_of_keys(
        names in prop::collection::btree_set("[ab.0-]{1,3}(/[ab.0-]{1,3}){0,2}", 0..30),
        long in 0..20_usize,
    ) {
        let top = Top::new("order");
        let mut made = BTreeSet::new();
        let lead = "x".repeat(long);
        for name in names.iter().map(|name| format!("{lead}{name}")) {
            let dots = name.split('/').any(|part| matches!(part, "." | ".."));
            let clash = made.iter().any(|other: &String| {
                other.starts_with(&format!("{name}/")) || name.starts_with(&format!("{other}/"))
            });
            if !dots && !clash {
                top.file(name.as_bytes());
                made.insert(name);
            }
        }
        prop_assert_eq!(top.names(LocalQuery::default()), Vec::from_iter(made));
    }
}

#[test]
fn a_folder_sorts_with_its_slash() {
    let top = Top::new("slash");
    for name in ["a-b", "a.txt", "a/x", "a0", "a/.hakobu-1-2-3-4-5", "e/f/g"] {
        top.file(name.as_bytes());
    }
    std::fs::create_dir(top.0.join("d")).unwrap();
    let list = |dirs| top.names(LocalQuery { dirs, ..LocalQuery::default() });
    assert_eq!(list(Dirs::No), ["a-b", "a.txt", "a/x", "a0", "e/f/g"]);
    assert_eq!(list(Dirs::Empty), ["a-b", "a.txt", "a/x", "a0", "d/", "e/f/g"]);
    assert_eq!(list(Dirs::All), ["a-b", "a.txt", "a/", "a/x", "a0", "d/", "e/", "e/f/", "e/f/g"]);
    let flat = LocalQuery { flat: true, ..LocalQuery::default() };
    assert_eq!(top.names(flat), ["a-b", "a.txt", "a/", "a0", "d/", "e/"]);
}

#[test]
fn symlinks_are_left_kept_or_followed() {
    let top = Top::new("links");
    top.file(b"d/f");
    for (to, name) in [("d", "l"), ("nowhere", "broken"), ("d/f", "one"), ("..", "d/up")] {
        std::os::unix::fs::symlink(to, top.0.join(name)).unwrap();
    }
    let query = |symlinks| LocalQuery { symlinks, ..LocalQuery::default() };
    assert_eq!(top.names(query(Symlinks::Skip)), ["!broken", "d/f", "!d/up", "!l", "!one"]);
    let kept = top.list(query(Symlinks::Keep));
    let links =
        kept.iter().filter(|item| matches!(item, Ok(entry) if entry.meta.kind == Kind::Symlink));
    assert_eq!((kept.len(), links.count()), (5, 4));
    let followed = top.names(query(Symlinks::Follow));
    assert_eq!(followed, ["!broken", "d/f", "!d/up/", "l/f", "!l/up/", "one"]);
}

#[test]
fn what_is_no_file_is_a_notice_or_an_entry() {
    let top = Top::new("socket");
    let _socket = std::os::unix::net::UnixListener::bind(top.0.join("s")).unwrap();
    let left = top.list(LocalQuery::default());
    assert!(matches!(
        &*left,
        [Err(Trouble::Problem { problem, .. })] if problem.class == Class::Notice
    ));
    let query = LocalQuery { specials: true, ..LocalQuery::default() };
    assert_eq!(top.names(query), ["s"]);
}

#[test]
fn hidden_folders_are_not_entered_and_merge_files_count() {
    let top = Top::new("sieve");
    for name in ["a/x.o", "a/x.c", "b/y.o", "b/z/y.tmp", "b/z/y.c", "hide/below"] {
        top.file(name.as_bytes());
    }
    std::fs::write(top.0.join("b/.rules"), "- *.tmp\n").unwrap();
    let mut builder = FilterBuilder::default();
    builder.rule(b"dir-merge .rules").unwrap();
    builder.exclude(b"*.o").unwrap();
    builder.exclude(b"/hide/").unwrap();
    let filter = Arc::new(builder.build(&mut |_| panic!("no file")).unwrap());
    let origin = Origin { source: b"/", target: b"/", first: b"" };
    let sieve = || Sieve::new(Arc::clone(&filter), &origin, Some(merge_files(top.fd()))).unwrap();
    let query = LocalQuery { sieve: Some(sieve()), ..LocalQuery::default() };
    assert_eq!(top.names(query), ["a/x.c", "b/.rules", "b/z/y.c"]);
    let mut sieve = sieve();
    for (name, hide) in [
        (&b"b/z/new.tmp"[..], true),
        (b"a/new.tmp", false),
        (b"hide/deep/er", true),
        (b"hide/", true),
        (b"hide", false),
        (b"b/new", false),
    ] {
        let decision = sieve.decide(name).unwrap();
        assert_eq!((decision.hide, decision.protect), (hide, hide), "{}", name.escape_ascii());
    }
}

#[test]
fn names_that_are_not_utf8_sort_as_their_keys_on_request() {
    let top = Top::new("bytes");
    for name in [&b"a\xff"[..], b"ab", b"\xe9/x", b"b"] {
        top.file(name);
    }
    let raw = |encode| {
        let query = LocalQuery { encode, ..LocalQuery::default() };
        let names = top.list(query).into_iter().map(|item| item.ok().unwrap().name);
        names.map(Vec::from).collect::<Vec<_>>()
    };
    assert_eq!(raw(false), [&b"ab"[..], b"a\xff", b"b", b"\xe9/x"]);
    assert_eq!(raw(true), [&b"\xe9/x"[..], b"a\xff", b"ab", b"b"]);
}

#[test]
fn a_huge_folder_is_listed_and_a_dropped_listing_ends() {
    let top = Top::new("huge");
    for i in 0..5000 {
        std::fs::write(top.0.join(format!("{}", i * 7919 % 5000)), b"").unwrap();
    }
    let names = top.names(LocalQuery::default());
    assert!(names.len() == 5000 && names.is_sorted());
    let fd = top.fd();
    let mut listing = local(Arc::clone(&fd), &top.0, LocalQuery::default());
    assert!(listing.next().is_some());
    drop(listing);
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while Arc::strong_count(&fd) > 1 {
        assert!(std::time::Instant::now() < until, "the thread goes on");
        std::thread::yield_now();
    }
}
