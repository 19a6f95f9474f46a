//! Local listings of real trees.

use super::super::{Item, Trouble};
use super::walk::on_workers;
use super::*;
use crate::object::Entry;
use crate::object::list::{NameFilter, merge_files};
use crate::policy::Symlinks;
use crate::policy::filter::{FilterBuilder, Origin};
use crate::publish::TempNames;
use hakobu_core::error::Class;
use hakobu_core::unit::{Jobs, Kind};
use hakobu_sys::{OwnedFd, dir};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

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
        self.list_on(Jobs::Auto, query)
    }

    fn list_on(&self, jobs: Jobs, query: LocalQuery) -> Vec<Item> {
        let mut listing = on_workers(jobs, self.fd(), &self.0, query);
        std::iter::from_fn(|| listing.next()).collect()
    }

    /// Returns names in listing order; problems as `!name`.
    fn names(&self, query: LocalQuery) -> Vec<String> {
        self.names_on(Jobs::Auto, query)
    }

    fn names_on(&self, jobs: Jobs, query: LocalQuery) -> Vec<String> {
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        let shown = |item: Item| match item {
            Ok(Entry { name, .. }) => text(&name),
            Err(Trouble::Problem { name, .. }) => format!("!{}", text(&name)),
            Err(Trouble::Failed(error)) => panic!("{error}"),
        };
        self.list_on(jobs, query).into_iter().map(shown).collect()
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
        let made = Vec::from_iter(made);
        prop_assert_eq!(&top.names(LocalQuery::default()), &made);
        prop_assert_eq!(&top.names_on(Jobs::Fixed(6), LocalQuery::default()), &made);
    }
}

#[test]
fn a_folder_sorts_with_its_slash() {
    let top = Top::new("slash");
    for name in ["a-b", "a.txt", "a/x", "a0", "e/f/g"] {
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
fn non_files_are_notices_or_entries() {
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

/// A user's name is listed even if it resembles ours; our names are reported, and those of dead runs are removed if
/// requested.
#[test]
fn unfinished_files_are_left_out_by_their_exact_names() {
    let top = Top::new("unfinished");
    let ours = TempNames::new().make();
    let kept = TempNames::kept(7);
    for name in [b".hakobu-1-2-3-4-5", ours.to_bytes(), kept.to_bytes()] {
        top.file(name);
    }
    let shown = |name: &std::ffi::CStr| format!("!{}", name.to_string_lossy());
    let mut all = vec![".hakobu-1-2-3-4-5".to_owned(), shown(&ours), shown(&kept)];
    all.sort_by_key(|name| name.trim_start_matches('!').to_owned());
    assert_eq!(top.names(LocalQuery::default()), all);
    let target = LocalQuery { clear_leftovers: true, ..LocalQuery::default() };
    assert_eq!(top.names(target), [".hakobu-1-2-3-4-5"]);
    assert!(top.0.join(ours.to_str().unwrap()).exists(), "its owner is alive");
}

#[test]
fn hidden_folders_are_not_entered_and_merge_files_count() {
    let top = Top::new("name_filter");
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
    let name_filter = || {
        NameFilter::new(
            Arc::clone(&filter),
            &origin,
            Some(merge_files(top.fd(), Default::default())),
        )
        .unwrap()
    };
    let query = LocalQuery { name_filter: Some(name_filter()), ..LocalQuery::default() };
    assert_eq!(top.names(query), ["a/x.c", "b/.rules", "b/z/y.c"]);
    let mut name_filter = name_filter();
    for (name, hide) in [
        (&b"b/z/new.tmp"[..], true),
        (b"a/new.tmp", false),
        (b"hide/deep/er", true),
        (b"hide/", true),
        (b"hide", false),
        (b"b/new", false),
    ] {
        let decision = name_filter.decide(name).unwrap();
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

/// Many folders, one with too many names and one too deep to be read ahead, and problems.
#[test]
fn read_ahead_is_complete_and_in_order() {
    let top = Top::new("ahead");
    for folder in 0..150 {
        for file in 0..folder % 40 {
            top.file(format!("d{folder}/sub{}/f{file}", folder % 3).as_bytes());
        }
    }
    std::fs::create_dir(top.0.join("m")).unwrap();
    for file in 0..9000 {
        std::fs::write(top.0.join(format!("m/f{file}")), b"").unwrap();
    }
    top.file([b"n/".repeat(300), b"f".to_vec()].concat().as_slice());
    std::os::unix::fs::symlink("nowhere", top.0.join("d7/link")).unwrap();
    let filter = || {
        let mut builder = FilterBuilder::default();
        builder.rule(b"dir-merge .rules").unwrap();
        builder.exclude(b"f1?").unwrap();
        Arc::new(builder.build(&mut |_| panic!("no file")).unwrap())
    };
    std::fs::write(top.0.join("d8/.rules"), "- f2\n").unwrap();
    std::fs::write(top.0.join("d9/.rules"), "dir-merge,z nonsense\n").unwrap();
    let origin = Origin { source: b"/", target: b"/", first: b"" };
    let query = || {
        let files = Some(merge_files(top.fd(), Default::default()));
        let name_filter = Some(NameFilter::new(filter(), &origin, files).unwrap());
        LocalQuery { name_filter, dirs: Dirs::All, ..LocalQuery::default() }
    };
    let alone = top.names_on(Jobs::Fixed(1), query());
    assert!(alone.len() > 8000, "{}", alone.len());
    for marked in ["!d7/link", "!d9/", "d8/.rules", "m/f8999"] {
        assert!(alone.iter().any(|name| name == marked), "{marked}");
    }
    for jobs in [2, 5, 16] {
        let many = top.names_on(Jobs::Fixed(jobs), query());
        assert!(many == alone, "{jobs}: {} and {}", many.len(), alone.len());
    }
}

#[test]
fn a_huge_folder_is_listed_and_a_dropped_listing_ends() {
    let top = Top::new("huge");
    for i in 0..5000 {
        std::fs::write(top.0.join(format!("{}", i * 7919 % 5000)), b"").unwrap();
    }
    let names = top.names(LocalQuery::default());
    assert!(names.len() == 5000 && names.is_sorted());
    for jobs in [Jobs::Auto, Jobs::Fixed(4)] {
        let fd = top.fd();
        let mut listing = on_workers(jobs, Arc::clone(&fd), &top.0, LocalQuery::default());
        assert!(listing.next().is_some());
        drop(listing);
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while Arc::strong_count(&fd) > 1 {
            assert!(std::time::Instant::now() < until, "the thread goes on");
            std::thread::yield_now();
        }
    }
}
