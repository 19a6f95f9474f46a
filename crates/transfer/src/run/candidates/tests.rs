//! Candidates for removal against embedded and scripted servers, and between trees.

use super::*;
use crate::location::{Location, Sources};
use crate::object::ObjectOptions;
use crate::plan::Objects;
use crate::policy::Policy;
use crate::policy::filter::{Filter, FilterBuilder};
use hakobu_core::event::{Event, Remarks};
use hakobu_core::limit::Limits;
use hakobu_core::unit::Jobs;
use hakobu_s3::{Credentials, Settings};
use hakobu_testserver::script::{Act, Seen, Server, answer, refusal};
use hakobu_testserver::{Conditions, Fault, ServerConfig, ServerKind, TestServer};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Records what is reported.
#[derive(Default)]
struct Heard {
    deleted: Mutex<Vec<String>>,
    problems: Mutex<Vec<(ErrorClass, String)>>,
}

impl Listener for Heard {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::Item(item) => {
                assert!(item.change.deleted);
                self.deleted.lock().push(item.path.to_string_lossy().into_owned());
            }
            Event::Problem(problem) => {
                let path = problem.source.as_ref().or(problem.target.as_ref());
                let path = path.map(|path| path.to_string_lossy().into_owned());
                let text = format!("{}: {}", path.unwrap_or_default(), problem.cause);
                self.problems.lock().push((problem.class, text));
            }
            _ => {}
        }
    }
}

impl Heard {
    fn deleted(&self) -> Vec<String> {
        let mut names = self.deleted.lock().clone();
        names.sort();
        names
    }

    fn problems(&self, class: ErrorClass) -> Vec<String> {
        let problems = self.problems.lock();
        let mut texts: Vec<String> =
            problems.iter().filter(|(of, _)| *of == class).map(|(_, text)| text.clone()).collect();
        texts.sort();
        texts
    }
}

/// A folder with a source and a target, which are buckets of a server, too.
struct Area(PathBuf);

impl Drop for Area {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Area {
    fn new(name: &str) -> Area {
        let name = format!("hakobu-candidates-{name}-{}", std::process::id());
        let area = Area(std::env::temp_dir().join(name));
        let _ = fs::remove_dir_all(&area.0);
        for end in ["src", "dst"] {
            fs::create_dir_all(area.0.join(end)).unwrap();
        }
        area
    }

    fn put(&self, name: &str, content: &str) {
        self.put_bytes(name.as_bytes(), content);
    }

    fn put_bytes(&self, name: &[u8], content: &str) {
        let path = self.0.join(OsStr::from_bytes(name));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn has(&self, name: &str) -> bool {
        self.0.join(name).symlink_metadata().is_ok()
    }

    fn end(&self, name: &str) -> Location {
        Location::Local(self.0.join(name))
    }

    fn server(&self, faults: &[&str]) -> TestServer {
        let faults = faults.iter().map(|fault| Fault::parse(fault).unwrap()).collect();
        TestServer::start(ServerConfig {
            kind: ServerKind::Folder {
                dir: self.0.clone(),
                access_key: "key".into(),
                secret_key: "secret".into(),
            },
            listen: "127.0.0.1:0".into(),
            threads: 2,
            conditions: Conditions { faults, ..Conditions::default() },
            log: None,
        })
        .unwrap()
    }

    /// The candidate that a file of the target is now, by a name of the target.
    fn candidate(&self, name: &str) -> Candidate {
        let path = self.0.join("dst").join(name.trim_end_matches('/'));
        let path = c_string(path.as_os_str().as_bytes()).unwrap();
        let meta = meta::of(dir::cwd(), &path, false).unwrap();
        Candidate::of(&Entry { name: name.as_bytes().into(), meta, etag: "".into() })
    }

    fn candidates(&self, names: &[&str]) -> Vec<Candidate> {
        names.iter().map(|name| self.candidate(name)).collect()
    }
}

fn settings(url: String) -> Settings {
    Settings {
        endpoint_url: Some(url),
        region: Some("us-east-1".into()),
        credentials: Some(Credentials {
            access_key: "key".into(),
            secret_key: "secret".into(),
            session_token: None,
        }),
        attempts_max: Some(1),
        // A request that removes a thousand objects takes seconds on a busy machine.
        read_timeout: Some(Duration::from_secs(60)),
        ..Settings::default()
    }
}

fn url(text: &str) -> Location {
    Location::parse(OsStr::new(text)).unwrap()
}

/// A transfer with `--delete` of a source's content.
fn spec(source: Location, target: Location, server: Option<String>) -> Spec {
    let settings = server.map(settings).unwrap_or_default();
    let source = match source {
        Location::Local(path) => Location::Local(path.join("")),
        other => other,
    };
    Spec {
        sources: Sources::of(vec![source]).unwrap(),
        target,
        layout: Layout::Rsync { relative: false },
        files_from: None,
        chosen: None,
        range: None,
        policy: Policy { recurse: true, delete: Delete::During, ..Policy::default() },
        limits: Limits::of_jobs(Jobs::Fixed(8)),
        remember: false,
        jobs_before: None,
        prove: false,
        items: true,
        items_unchanged: false,
        plans: false,
        ordered: false,
        remarks: Remarks::default(),
        digest: None,
        mkpath: false,
        carried: None,
        check_space: false,
        log_file: None,
        remote: None,
        packing: None,
        objects: Objects {
            source: settings.clone(),
            target: settings,
            options: ObjectOptions::default(),
            ..Objects::default()
        },
    }
}

fn run(spec: &Spec, candidates: Vec<Candidate>) -> (Outcome, Heard) {
    let (heard, control) = (Heard::default(), Control::default());
    let outcome = remove_candidates(spec, candidates.into_iter(), &control, &heard).unwrap();
    (outcome, heard)
}

fn refused(spec: &Spec) -> String {
    let candidate = Candidate {
        name: b"a".to_vec(),
        kind: Kind::File,
        size: 1,
        mtime: Time::default(),
        etag: "".into(),
    };
    let control = Control::default();
    let candidates = [candidate].into_iter();
    remove_candidates(spec, candidates, &control, &Heard::default()).unwrap_err().message
}

#[test]
fn objects_go_only_if_both_ends_confirm_it() {
    let area = Area::new("objects");
    for name in ["src/back", "src/kept", "src/d/below"] {
        area.put(name, "x");
    }
    for name in ["gone", "back", "newer", "longer", "away", "other", "e/f/g", "a b&<c>"] {
        area.put(&format!("dst/{name}"), "x");
    }
    let server = area.server(&[]);
    let mut candidates = area.candidates(&[
        "a b&<c>", "away", "back", "e/f/g", "gone", "gone", "longer", "newer", "other",
    ]);
    candidates[7].mtime.s -= 7;
    candidates[8].etag = "0123".into();
    fs::remove_file(area.0.join("dst/away")).unwrap();
    area.put("dst/longer", "xyz");
    let spec = spec(url("s3://src/"), url("s3://dst/"), Some(server.url()));
    let (outcome, heard) = run(&spec, candidates);
    assert_eq!(heard.deleted(), ["a b&<c>", "e/f/g", "gone"]);
    let totals = outcome.totals;
    assert_eq!((totals.deleted, totals.failed, totals.deletes_held), (3, 0, 0));
    let notices = heard.problems(ErrorClass::Notice);
    let changed = |name: &str| format!("s3://dst/{name}: {CHANGED_SINCE}");
    assert_eq!(notices, ["longer", "newer", "other"].map(changed));
    for kept in ["back", "longer", "newer", "other"] {
        assert!(area.has(&format!("dst/{kept}")), "{kept}");
    }
    for gone in ["gone", "e/f/g", "a b&<c>"] {
        assert!(!area.has(&format!("dst/{gone}")), "{gone}");
    }
}

#[test]
fn an_end_that_does_not_answer_keeps_its_candidates() {
    let area = Area::new("unsure");
    area.put("src/other", "x");
    // The first look is at the target.
    let server = area.server(&[
        "error:op=HeadObject,key=broken,skip=1,code=InternalError",
        "error:op=HeadObject,key=denied,skip=1,code=AccessDenied",
        "silent:op=HeadObject,key=silent,skip=1",
        "error:op=HeadObject,key=unseen,code=AccessDenied",
    ]);
    let names = ["broken", "denied", "gone", "silent", "unseen"];
    names.iter().for_each(|name| area.put(&format!("dst/{name}"), "x"));
    let mut spec = spec(url("s3://src/"), url("s3://dst/"), Some(server.url()));
    for end in [&mut spec.objects.source, &mut spec.objects.target] {
        end.read_timeout = Some(Duration::from_secs(2));
    }
    let candidates = area.candidates(&names);
    let (outcome, heard) = run(&spec, candidates);
    assert_eq!(heard.deleted(), ["gone"]);
    assert_eq!((outcome.totals.deleted, outcome.totals.failed), (1, 4));
    let failed = heard.problems(ErrorClass::Partial);
    assert!(failed.len() == 4 && failed[0].starts_with("s3://dst/unseen"), "{failed:?}");
    assert!(failed[1..].iter().all(|text| text.starts_with("s3://src/")), "{failed:?}");
    assert!(names.iter().filter(|name| area.has(&format!("dst/{name}"))).count() == 4);
}

/// A server whose source answers as `source` says; the target has every key, and counts deletions.
fn scripted(source: impl Fn(&Seen) -> Act + Send + Sync + 'static) -> Server {
    Server::start(move |seen| match &*seen.line {
        line if line.contains("/src") => source(seen),
        line if line.starts_with("HEAD") => answer("200 OK", "content-length: 1\r\n", ""),
        _ => {
            let body = String::from_utf8_lossy(&seen.body).into_owned();
            let keys = body.split("<Key>").skip(1).filter_map(|key| key.split('<').next());
            let all: String =
                keys.map(|key| format!("<Deleted><Key>{key}</Key></Deleted>")).collect();
            answer("200 OK", "", &format!("<DeleteResult>{all}</DeleteResult>"))
        }
    })
}

fn listed(keys: &[&str]) -> Act {
    let one = |key: &&str| {
        format!(
            "<Contents><Key>{key}</Key><Size>1</Size>\
             <LastModified>2013-05-24T00:00:01.000Z</LastModified></Contents>"
        )
    };
    let keys: String = keys.iter().map(one).collect();
    let body =
        format!("<ListBucketResult>{keys}<IsTruncated>false</IsTruncated></ListBucketResult>");
    answer("200 OK", "", &body)
}

fn scripted_candidates(names: &[&str]) -> Vec<Candidate> {
    let one = |name: &&str| Candidate {
        name: name.as_bytes().to_vec(),
        kind: Kind::File,
        size: 1,
        mtime: Time { s: 1_369_353_601, ns: 0 },
        etag: "e".into(),
    };
    names.iter().map(one).collect()
}

fn deletions(server: &Server) -> Vec<String> {
    let seen = server.seen().into_iter();
    let seen = seen.filter(|seen| seen.line.starts_with("POST"));
    seen.map(|seen| String::from_utf8_lossy(&seen.body).into_owned()).collect()
}

#[test]
fn a_source_that_vanishes_or_is_empty_proves_nothing() {
    let nothing = || answer("404 Not Found", "", "");
    for first in ["gone", "denied", "empty", "later", "later denied"] {
        let looks = std::sync::atomic::AtomicUsize::new(0);
        let server = scripted(move |seen| match seen.line.starts_with("HEAD") {
            true => nothing(),
            false => {
                let number = looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                match (first, number) {
                    ("gone", _) => refusal("404 Not Found", "", "NoSuchBucket"),
                    ("denied", _) => refusal("403 Forbidden", "", "AccessDenied"),
                    ("empty", _) => listed(&[]),
                    (_, 0) => listed(&["p/other"]),
                    ("later", _) => listed(&[]),
                    _ => refusal("403 Forbidden", "", "AccessDenied"),
                }
            }
        });
        let spec = spec(url("s3://src/p/"), url("s3://dst/"), Some(server.url.clone()));
        let control = Control::default();
        let candidates = scripted_candidates(&["a", "b"]).into_iter();
        let outcome = remove_candidates(&spec, candidates, &control, &Heard::default());
        let failed = match &outcome {
            Err(fatal) => fatal.code != 0,
            Ok(outcome) => outcome.totals.failed == 1 && outcome.totals.deleted == 0,
        };
        assert!(failed, "{first}: {outcome:?}");
        assert_eq!(deletions(&server), [""; 0], "{first}");
    }
}

#[test]
fn an_object_that_changes_after_the_look_is_kept_by_its_etag() {
    let server = Server::start(|seen| match &*seen.line {
        line if line.contains("/src") && line.starts_with("HEAD") => {
            answer("404 Not Found", "", "")
        }
        line if line.contains("/src") => listed(&["other"]),
        line if line.starts_with("HEAD") => answer("200 OK", "content-length: 1\r\n", ""),
        _ => {
            let body = String::from_utf8_lossy(&seen.body);
            assert!(body.contains("<Key>a</Key><ETag>&quot;e&quot;</ETag>"), "{body}");
            let results = "<Deleted><Key>a</Key></Deleted><Error><Key>b</Key>\
                <Code>PreconditionFailed</Code></Error>";
            answer("200 OK", "", &format!("<DeleteResult>{results}</DeleteResult>"))
        }
    });
    let mut spec = spec(url("s3://src/"), url("s3://dst/"), Some(server.url.clone()));
    spec.policy.max_delete = Some(2);
    let (outcome, heard) = run(&spec, scripted_candidates(&["a", "b"]));
    assert_eq!((outcome.totals.deleted, outcome.totals.failed), (1, 0));
    assert_eq!(heard.problems(ErrorClass::Notice), [format!("s3://dst/b: {CHANGED_SINCE}")]);
}

#[test]
fn a_server_without_conditions_is_asked_without_them() {
    let server = scripted(|seen| match seen.line.starts_with("HEAD") {
        true => answer("404 Not Found", "", ""),
        false => listed(&["other"]),
    });
    let picky = Server::start(|seen| match &*seen.line {
        line if line.contains("/src") && line.starts_with("HEAD") => {
            answer("404 Not Found", "", "")
        }
        line if line.contains("/src") => listed(&["other"]),
        line if line.starts_with("HEAD") => answer("200 OK", "content-length: 1\r\n", ""),
        _ if String::from_utf8_lossy(&seen.body).contains("<ETag>") => {
            refusal("400 Bad Request", "", "MalformedXML")
        }
        _ => answer("200 OK", "", "<DeleteResult><Deleted><Key>a</Key></Deleted></DeleteResult>"),
    });
    for (server, requests) in [(&server, 1), (&picky, 2)] {
        let spec = spec(url("s3://src/"), url("s3://dst/"), Some(server.url.clone()));
        let (outcome, _) = run(&spec, scripted_candidates(&["a"]));
        assert_eq!((outcome.totals.deleted, outcome.totals.failed), (1, 0));
        assert_eq!(deletions(server).len(), requests);
    }
}

#[test]
fn no_more_than_max_delete_go_and_the_rest_is_counted() {
    let area = Area::new("max");
    area.put("src/other", "x");
    let names: Vec<String> = (0..9).map(|number| format!("f{number}")).collect();
    names.iter().for_each(|name| area.put(&format!("dst/{name}"), "x"));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let server = area.server(&[]);
    for (source, target, url) in [
        (area.end("src"), area.end("dst"), None),
        (url("s3://src/"), url("s3://dst/"), Some(server.url())),
    ] {
        let mut spec = spec(source, target, url);
        spec.policy.max_delete = Some(2);
        let there: Vec<&str> =
            names.iter().copied().filter(|name| area.has(&format!("dst/{name}"))).collect();
        let (outcome, heard) = run(&spec, area.candidates(&there));
        assert_eq!(outcome.totals.deleted, 2);
        assert_eq!(outcome.totals.deletes_held, there.len() as u64 - 2);
        assert_eq!(heard.deleted().len(), 2);
        let left = names.iter().filter(|name| area.has(&format!("dst/{name}"))).count();
        assert_eq!(left, there.len() - 2);
    }
}

#[test]
fn two_requests_for_each_of_20_000_and_two_for_each_thousand() {
    let area = Area::new("many");
    area.put("src/other", "x");
    let names: Vec<String> =
        (0..20_000).map(|number| format!("d{}/f{number:05}", number / 1000)).collect();
    names.iter().for_each(|name| area.put(&format!("dst/{name}"), "x"));
    let server = area.server(&[]);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut spec = spec(url("s3://src/"), url("s3://dst/"), Some(server.url()));
    spec.items = false;
    let (outcome, heard) = run(&spec, area.candidates(&names));
    let failures: Vec<_> = heard.problems.lock().iter().take(3).cloned().collect();
    assert_eq!((outcome.totals.deleted, outcome.totals.failed), (20_000, 0), "{failures:?}");
    // Resolving the source takes none here: a whole bucket.
    let most = 40_000 + 2 * 20;
    assert!(outcome.requests.succeeded <= most, "{:?}", outcome.requests);
    assert!(!area.has("dst/d0/f00000") && !area.has("dst/d19/f19999"));
}

#[test]
fn trees_lose_folders_after_their_entries_and_only_empty_ones() {
    let area = Area::new("trees");
    let outside = Area::new("trees-outside");
    outside.put("dst/f", "x");
    for name in ["src/back/f", "src/other"] {
        area.put(name, "x");
    }
    for name in ["d/e/f", "d/g", "back/f", "kept/new", "kept/old", "file"] {
        area.put(&format!("dst/{name}"), "x");
    }
    let dst = area.0.join("dst");
    std::os::unix::fs::symlink("nowhere", dst.join("link")).unwrap();
    let names =
        ["back/", "back/f", "d/", "d/e/", "d/e/f", "d/g", "file", "kept/", "kept/old", "link"];
    let mut candidates = area.candidates(&names);
    // A directory of the list that is a symlink by now leads out of the target.
    let led = Candidate { name: b"out/f".to_vec(), ..area.candidate("file") };
    std::os::unix::fs::symlink(outside.0.join("dst"), dst.join("out")).unwrap();
    candidates.push(led);
    let (outcome, heard) = run(&spec(area.end("src"), area.end("dst"), None), candidates);
    assert_eq!(heard.deleted(), ["d", "d/e", "d/e/f", "d/g", "file", "kept/old", "link"]);
    assert_eq!((outcome.totals.deleted, outcome.totals.failed), (7, 1));
    assert!(area.has("dst/back/f") && area.has("dst/kept/new") && !area.has("dst/d"));
    assert!(outside.has("dst/f"));
}

#[test]
fn a_changed_file_of_a_tree_is_kept() {
    let area = Area::new("changed");
    area.put("src/other", "x");
    for name in ["longer", "newer", "dir", "same"] {
        area.put(&format!("dst/{name}"), "x");
    }
    let mut candidates = area.candidates(&["dir", "longer", "newer", "same"]);
    candidates[2].mtime.ns ^= 1;
    area.put("dst/longer", "xyz");
    fs::remove_file(area.0.join("dst/dir")).unwrap();
    fs::create_dir(area.0.join("dst/dir")).unwrap();
    let (outcome, heard) = run(&spec(area.end("src"), area.end("dst"), None), candidates);
    assert_eq!(heard.deleted(), ["same"]);
    assert_eq!(outcome.totals.failed, 0);
    assert_eq!(heard.problems(ErrorClass::Notice).len(), 3);
}

#[test]
fn a_source_directory_that_is_gone_empty_or_another_one_removes_nothing() {
    for case in ["gone", "empty", "file"] {
        let area = Area::new(&format!("root-{case}"));
        area.put("dst/a", "x");
        let src = area.0.join("src");
        match case {
            "empty" => {}
            _ => fs::remove_dir(&src).unwrap(),
        }
        if case == "file" {
            fs::write(&src, "x").unwrap();
        }
        let control = Control::default();
        let candidates = area.candidates(&["a"]).into_iter();
        let spec = spec(area.end("src"), area.end("dst"), None);
        let outcome = remove_candidates(&spec, candidates, &control, &Heard::default());
        let failed = outcome.as_ref().map_or(1, |outcome| outcome.totals.failed);
        assert!(failed == 1 && area.has("dst/a"), "{case}: {outcome:?}");
    }
}

#[test]
fn the_root_is_looked_at_again_by_its_path() {
    let area = Area::new("moved-root");
    for name in ["src/other", "dst/a", "new/other"] {
        area.put(name, "x");
    }
    let (spec, src) = (spec(area.end("src"), area.end("dst"), None), area.0.join("src"));
    let candidate = area.candidate("a");
    // Another directory is mounted, or moved, there while candidates are read.
    let first = {
        let (from, to) = (area.0.join("new"), area.0.join("old"));
        let mut parts = vec![candidate.clone(), candidate].into_iter();
        std::iter::from_fn(move || {
            if parts.len() == 1 {
                fs::rename(&src, &to).unwrap();
                fs::rename(&from, &src).unwrap();
            }
            parts.next()
        })
    };
    let heard = Heard::default();
    let outcome = remove_candidates(&spec, first, &Control::default(), &heard).unwrap();
    assert_eq!((outcome.totals.deleted, outcome.totals.failed), (0, 1));
    assert!(area.has("dst/a"));
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let area = Area::new("hostile");
    for name in ["src/other", "dst/a/b", "secret", "dst/.hakobu"] {
        area.put(name, "x");
    }
    let like = area.candidate("a/b");
    let hostile: [&[u8]; 12] = [
        b"",
        b"/",
        b".",
        b"..",
        b"../secret",
        b"a/../../secret",
        b"a//b",
        b"/etc/hostname",
        b"a/./b",
        b"a/b\0",
        b"a/b//",
        b"\0",
    ];
    let candidates: Vec<Candidate> =
        hostile.iter().map(|name| Candidate { name: name.to_vec(), ..like.clone() }).collect();
    let (outcome, heard) = run(&spec(area.end("src"), area.end("dst"), None), candidates.clone());
    assert_eq!((outcome.totals.deleted, outcome.totals.failed), (0, 12));
    assert_eq!(heard.deleted(), [""; 0]);
    assert!(area.has("secret") && area.has("dst/a/b") && area.has("src/other"));
    // A key never leads out of its prefix, and none of these exists; the root itself is no object of it.
    let server = area.server(&[]);
    let target = url("s3://dst/a/");
    let (outcome, _) = run(&spec(url("s3://src/"), target, Some(server.url())), candidates);
    assert_eq!(outcome.totals.deleted, 0);
    assert!(area.has("secret") && area.has("dst/a/b") && area.has("src/other"));
}

#[test]
fn names_are_those_of_the_other_end() {
    let area = Area::new("encoded");
    area.put_bytes(b"src/caf\xe9", "x");
    area.put("src/d/inner", "x");
    fs::create_dir(area.0.join("src/empty")).unwrap();
    let names = ["%=caf%E9", "%=tea%E9"];
    names.iter().for_each(|name| area.put(&format!("dst/{name}"), "x"));
    let server = area.server(&[]);
    let mut spec = spec(area.end("src"), url("s3://dst/"), Some(server.url()));
    spec.objects.options.encode_names = true;
    let (outcome, heard) = run(&spec, area.candidates(&names));
    assert_eq!((heard.deleted(), outcome.totals.failed), (vec!["%=tea%E9".to_owned()], 0));

    let source = |name: &str, encode: bool| {
        let (file, store) =
            (Root::Store { bucket: "b".into(), prefix: Vec::new() }, area.0.clone());
        let fd = dir::open_root(&c_string(store.as_os_str().as_bytes()).unwrap()).unwrap();
        let local = Root::Local { dir: Arc::new(fd), shown: store };
        let up = source_name(&local, &file, name.as_bytes(), encode);
        (up, source_name(&file, &local, name.as_bytes(), encode))
    };
    let name = |text: &str| Ok(AtSource::Name(text.as_bytes().to_vec()));
    assert_eq!(source("a/b/", false), (name("a/b/"), name("a/b/")));
    assert_eq!(source("a//b", false), (Ok(AtSource::No), Err(NO_NAME)));
    assert_eq!(source("a//b", true), (name("a/%=/b"), Err(NO_NAME)));
    assert_eq!(source("%=/b", true), (name("%=%25=/b"), name("/b")));
}

#[test]
fn markers_stay_while_the_source_has_something_in_the_folder() {
    let area = Area::new("markers");
    area.put("src/full/f", "x");
    fs::create_dir(area.0.join("src/empty")).unwrap();
    let fd = dir::open_root(&c_string(area.0.join("src").as_os_str().as_bytes()).unwrap()).unwrap();
    let looked = |dir_markers| {
        let lookups = LocalLookups { follows: false, keys: true, dir_markers };
        let names: [&[u8]; 5] = [b"empty/", b"full/", b"full/f", b"full/f/", b"none/"];
        let answers = lookups.look(fd.as_fd(), &names, 2);
        answers.into_iter().map(|it| it.ok().unwrap().is_some()).collect::<Vec<_>>()
    };
    assert_eq!(looked(false), [false, true, true, false, false]);
    assert_eq!(looked(true), [true, true, true, false, false]);
}

#[test]
fn a_download_keeps_folders_that_have_keys() {
    let area = Area::new("download");
    area.put("src/d/inner", "x");
    fs::create_dir_all(area.0.join("dst/d")).unwrap();
    fs::create_dir_all(area.0.join("dst/e")).unwrap();
    area.put("dst/f", "x");
    let server = area.server(&[]);
    let spec = spec(url("s3://src/"), area.end("dst"), Some(server.url()));
    let (outcome, heard) = run(&spec, area.candidates(&["d/", "e/", "f"]));
    assert_eq!(heard.deleted(), ["e", "f"]);
    assert_eq!((outcome.totals.failed, area.has("dst/d")), (0, true));
}

fn filter(rules: &[&str], delete_excluded: bool) -> Option<Arc<Filter>> {
    let mut builder = FilterBuilder::default();
    builder.delete_excluded(delete_excluded);
    rules.iter().for_each(|rule| builder.rule(rule.as_bytes()).unwrap());
    Some(Arc::new(builder.build(&mut |_| Err(io::ErrorKind::NotFound.into())).unwrap()))
}

#[test]
fn rules_protect_and_delete_excluded_removes_what_the_source_has() {
    let area = Area::new("rules");
    for name in ["src/a.o", "src/other", "dst/a.o", "dst/b.o", "dst/c"] {
        area.put(name, "x");
    }
    let candidates = area.candidates(&["a.o", "b.o", "c"]);
    let mut spec = spec(area.end("src"), area.end("dst"), None);
    spec.policy.filter = filter(&["- *.o", "P c"], false);
    assert_eq!(run(&spec, candidates.clone()).1.deleted(), [""; 0]);
    spec.policy.filter = filter(&["- *.o", "P c"], true);
    spec.policy.dry_run = true;
    assert_eq!(run(&spec, candidates.clone()).1.deleted(), ["a.o", "b.o"]);
    assert!(area.has("dst/a.o") && area.has("dst/b.o"));
    spec.policy.dry_run = false;
    assert_eq!(run(&spec, candidates).1.deleted(), ["a.o", "b.o"]);
    assert!(!area.has("dst/a.o") && area.has("dst/c") && area.has("src/a.o"));
}

#[test]
fn transfers_whose_names_prove_nothing_are_refused() {
    let area = Area::new("unfit");
    area.put("src/other", "x");
    area.put("src/inner/a", "x");
    area.put("dst/a", "x");
    let fit = spec(area.end("src"), area.end("dst"), None);
    let with = |change: fn(&mut Spec)| {
        let mut spec = fit.clone();
        change(&mut spec);
        refused(&spec)
    };
    for (message, said) in [
        (with(|it| it.policy.delete = Delete::No), "--delete"),
        (with(|it| it.policy.remove_source_files = true), "--remove-source-files"),
        (with(|it| it.files_from = Some(Vec::new())), "--files-from"),
        (with(|it| it.objects.flatten = true), "--flatten"),
    ] {
        assert!(message.contains(said), "{message}");
    }
    for (source, target) in [("src", "src/inner"), ("src/inner", "src")] {
        let message = refused(&spec(area.end(source), area.end(target), None));
        assert!(message.contains("contain each other"), "{message}");
    }
    let file = Spec { sources: Sources::Paths(vec![area.0.join("src/other")]), ..fit.clone() };
    assert!(refused(&file).contains("one source directory"));
    assert!(area.has("dst/a") && area.has("src/inner/a"));
    assert!(Path::new(&area.0).exists());
}
