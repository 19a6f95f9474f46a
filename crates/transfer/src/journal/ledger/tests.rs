//! Records in a real folder, of this process and of others.

use super::*;
use std::ffi::CString;

/// A state folder and a target, removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let top = std::env::temp_dir().join(format!("hakobu-ledger-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&top);
        fs::create_dir_all(top.join("target/below")).unwrap();
        Place(top.canonicalize().unwrap())
    }

    fn journal(&self) -> Journal {
        Journal::at(self.0.join("state"))
    }

    fn dir(&self, path: &str) -> hakobu_sys::OwnedFd {
        dir::open_root(
            &CString::new(self.0.join(path).into_os_string().into_encoded_bytes()).unwrap(),
        )
        .unwrap()
    }

    fn scope(&self) -> Scope {
        let targets = vec![Target::of(self.dir("target").as_fd()).unwrap()];
        Scope { targets, sources: vec![b"/s".to_vec()], recurse: true, partial: false }
    }

    fn ledger(&self) -> Ledger {
        Ledger::new(&self.journal(), self.scope())
    }

    fn records(&self) -> Vec<PathBuf> {
        let names = fs::read_dir(self.0.join("state/runs")).into_iter().flatten();
        names.map(|name| name.unwrap().path()).collect()
    }

    /// Leaves the record of a killed run, and a file that it was writing.
    fn killed(&self) {
        let ledger = self.ledger();
        ledger.note(meta::of_fd(self.dir("target")).unwrap().dev, Time::now()).unwrap();
        fs::write(self.0.join("target/below/half"), "ha").unwrap();
        let dead = Owner { pid: 0x0fff_fff0, ..Owner::me() };
        let [path] = &self.records()[..] else { panic!("one record") };
        fs::rename(path, path.with_file_name(past::file_name(&dead, 1))).unwrap();
    }

    fn finds(&self, ledger: &Ledger, top: &str, name: &CStr) -> bool {
        let dir = self.dir(top);
        let target = meta::of(dir.as_fd(), name, false).unwrap();
        let source = Meta { size: 100, mtime: Time { s: 1, ns: 0 }, ..target };
        ledger.is_unfinished(&source, &target, dir.as_fd(), name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_record_lasts_as_long_as_its_run() {
    let place = Place::new("lasts");
    let ledger = place.ledger();
    assert!(place.records().is_empty(), "nothing is written before it is needed");
    ledger.note(1, Time::now()).unwrap();
    ledger.note(2, Time::now()).unwrap();
    assert_eq!(place.records().len(), 1);
    ledger.end(true);
    assert!(place.records().is_empty());
    let ledger = place.ledger();
    ledger.note(1, Time::now()).unwrap();
    ledger.keep();
    ledger.end(true);
    assert_eq!(place.records().len(), 1, "a file stayed half-written");
}

#[test]
fn a_killed_run_is_remembered_until_it_is_made_good() {
    let place = Place::new("killed");
    place.killed();
    fs::write(place.0.join("beside"), "x").unwrap();
    let later = place.ledger();
    assert!(place.finds(&later, "target/below", c"half"));
    assert!(!place.finds(&later, "", c"beside"), "it lies elsewhere");
    later.end(false);
    assert_eq!(place.records().len(), 1);
    let other = Scope { sources: vec![b"/t".to_vec()], ..place.scope() };
    for scope in
        [other, Scope { recurse: false, ..place.scope() }, Scope { partial: true, ..place.scope() }]
    {
        let ledger = Ledger::new(&place.journal(), scope);
        ledger.note(1, Time::now()).unwrap();
        ledger.end(true);
        assert_eq!(place.records().len(), 1);
    }
    let again = place.ledger();
    again.note(1, Time::now()).unwrap();
    again.end(true);
    assert!(place.records().is_empty());
}

#[test]
fn a_target_that_was_renamed_is_found_by_its_identity() {
    let place = Place::new("renamed");
    place.killed();
    fs::rename(place.0.join("target"), place.0.join("moved")).unwrap();
    let ledger = Ledger::new(&place.journal(), Scope::default());
    assert!(place.finds(&ledger, "moved/below", c"half"));
}

#[test]
fn a_record_goes_with_its_target() {
    let place = Place::new("gone");
    place.killed();
    let ledger = Ledger::new(&place.journal(), Scope::default());
    fs::remove_dir_all(place.0.join("target")).unwrap();
    ledger.note(1, Time::now()).unwrap();
    ledger.end(false);
    assert!(place.records().is_empty());
}

#[test]
fn without_a_place_nothing_is_noted() {
    let place = Place::new("nowhere");
    assert!(Ledger::default().note(1, Time::now()).is_err());
    fs::write(place.0.join("state"), "a file").unwrap();
    assert!(place.ledger().note(1, Time::now()).is_err());
    place.ledger().end(true);
}
