//! Results folders: create, interrupt, resume, refuse, remove.

use super::*;
use crate::results::{Cell, ToolFingerprint};

fn header() -> ResultsHeader {
    let cell = |id, command: &str| Cell { id, command: command.into(), ..Cell::default() };
    ResultsHeader {
        schema: SCHEMA,
        name: "n".into(),
        start: "2026-01-01T00:00:00Z".into(),
        seed: 3,
        cells: vec![cell(0, "a http://127.0.0.1:4001/b"), cell(1, "b")],
        tools: vec![ToolFingerprint {
            name: "a".into(),
            sha256: "00".into(),
            ..ToolFingerprint::default()
        }],
        ..ResultsHeader::default()
    }
}

fn run(cell: u32, block: u32) -> Run {
    Run { cell, block, at_s: f64::from(block), wall_s: 0.5, ok: true, ..Run::default() }
}

/// A temporary folder, removed when dropped.
struct StoreFolder(PathBuf);

impl StoreFolder {
    fn new(name: &str) -> StoreFolder {
        let dir = std::env::temp_dir().join(format!("hakobu-store-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        StoreFolder(dir)
    }
}

impl Drop for StoreFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn goes_on_where_it_stopped() {
    let dir = StoreFolder::new("on");
    let mut store = ResultsStore::open(&dir.0, &header(), "t0").unwrap();
    let curves = LoadCurves { cell: 0, block: 0, t_s: vec![0.1], ..LoadCurves::default() };
    store.run(&run(0, 0), Some(&curves)).unwrap();
    store.run(&run(1, 4), None).unwrap();
    assert!(ResultsStore::open(&dir.0, &header(), "t1").unwrap_err().contains("another hakobu"));
    drop(store);
    // After a kill: an incomplete line in both files.
    for file in [RUNS_FILE, CURVES_FILE] {
        let mut file = std::fs::OpenOptions::new().append(true).open(dir.0.join(file)).unwrap();
        file.write_all(b"{\"line\":\"run\",\"cell\":1,\"blo").unwrap();
    }
    // Servers get other ports each time.
    let mut again = header();
    again.cells[0].command = "a http://127.0.0.1:50123/b".into();
    let mut store = ResultsStore::open(&dir.0, &again, "t1").unwrap();
    assert_eq!((store.runs.len(), store.elapsed_s), (2, 4.5));
    assert_eq!(store.runs[1], run(1, 4));
    store.run(&run(0, 5), Some(&LoadCurves { block: 5, ..curves.clone() })).unwrap();
    let end = CampaignEnd { reason: "done".into(), took_s: 9.0, overhead: 0.0 };
    store.end(&end).unwrap();
    drop(store);
    let results = read(&dir.0).unwrap();
    assert_eq!(results.runs, [run(0, 0), run(1, 4), run(0, 5)]);
    assert_eq!(results.curves.iter().map(|curves| curves.block).collect::<Vec<_>>(), [0, 5]);
    assert_eq!(results.header, header());
    let store = ResultsStore::open(&dir.0, &header(), "t2").unwrap();
    assert_eq!((store.elapsed_s, store.ended), (9.0, Some(end)));
    let text = std::fs::read_to_string(dir.0.join(RUNS_FILE)).unwrap();
    assert_eq!(text.matches("{\"line\":\"resumed\",\"at\":\"t").count(), 2, "{text}");
}

#[test]
fn other_campaigns_are_refused() {
    let dir = StoreFolder::new("other");
    drop(ResultsStore::open(&dir.0, &header(), "t").unwrap());
    type Change = fn(&mut ResultsHeader);
    let changes: [(Change, &str); 7] = [
        (|header| header.name = "m".into(), "their name is 'n', not 'm'"),
        (|header| header.seed = 4, "their seed is '3', not '4'"),
        (|header| header.cells.truncate(1), "their number of cells is '2', not '1'"),
        (|header| header.cells[1].command = "c".into(), "their command of cell 1 is 'b', not 'c'"),
        (|header| header.cells[1].x = Some(4.0), "their cell 1 has other parameters"),
        (|header| header.machine.cpus = 8.0, "their machine is"),
        (|header| header.tools[0].sha256 = "01".into(), "a has changed since"),
    ];
    for (change, said) in changes {
        let mut other = header();
        change(&mut other);
        let why = ResultsStore::open(&dir.0, &other, "t").unwrap_err();
        assert!(why.contains("holds other results") && why.contains(said), "{why}");
    }
    assert!(ResultsStore::open(&dir.0, &header(), "t").is_ok());
    let full = StoreFolder::new("full");
    std::fs::create_dir_all(&full.0).unwrap();
    std::fs::write(full.0.join("thesis.txt"), "").unwrap();
    let why = ResultsStore::open(&full.0, &header(), "t").unwrap_err();
    assert!(why.contains("is not empty (thesis.txt)"), "{why}");
}

#[test]
fn a_header_that_was_cut_is_begun_again() {
    let dir = StoreFolder::new("cut");
    std::fs::create_dir_all(&dir.0).unwrap();
    std::fs::write(dir.0.join(RUNS_FILE), "{\"line\":\"head").unwrap();
    let store = ResultsStore::open(&dir.0, &header(), "t").unwrap();
    assert_eq!(store.runs.len(), 0);
    assert_eq!(read(&dir.0).unwrap().header, header());
}

#[test]
fn listed_and_removed() {
    let top = StoreFolder::new("list");
    for (name, start) in [("b", "2026-01-01T00:00:00Z"), ("a", "2026-01-02T00:00:00Z")] {
        let header = ResultsHeader { name: name.into(), start: start.into(), ..header() };
        let mut store = ResultsStore::open(&top.0.join(name), &header, "t").unwrap();
        store.run(&run(0, 0), None).unwrap();
        store.run(&Run { ok: false, ..run(1, 0) }, None).unwrap();
        store.run(&Run { warmup: true, ..run(1, 1) }, None).unwrap();
        store.keep(&run(0, 0), false, "{}").unwrap();
        store.keep(&run(1, 0), true, "{}").unwrap();
        assert!(store.folder.join("outputs/0/0.json").is_file());
        assert!(store.folder.join("outputs/0-control/1.json").is_file());
    }
    std::fs::create_dir(top.0.join("no-results")).unwrap();
    std::fs::create_dir(top.0.join("broken")).unwrap();
    std::fs::write(top.0.join("broken").join(RUNS_FILE), "x\n").unwrap();
    let (listed, wrong) = list(&top.0);
    let said = listed.iter().map(|one| (one.name.as_str(), one.cells, one.runs, one.failed));
    assert_eq!(said.collect::<Vec<_>>(), [("b", 2, 1, 1), ("a", 2, 1, 1)]);
    assert!(wrong.len() == 1 && wrong[0].contains("broken"), "{wrong:?}");
    assert_eq!(list(Path::new("/no/such")), (Vec::new(), Vec::new()));
    for (name, said) in
        [("no-results", "holds no results"), ("broken", "line 1"), ("c", "is not a folder")]
    {
        let why = remove(&top.0.join(name)).unwrap_err();
        assert!(why.contains(said), "{why}");
    }
    let a = top.0.join("a");
    std::fs::write(a.join("thesis.txt"), "").unwrap();
    assert!(remove(&a).unwrap_err().contains("more than results (thesis.txt)"));
    std::fs::remove_file(a.join("thesis.txt")).unwrap();
    std::fs::write(a.join("report.html"), "").unwrap();
    for other in ["notes", "0/1.txt", "0/x.json"] {
        let path = a.join("outputs").join(other);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "").unwrap();
        assert!(remove(&a).unwrap_err().contains("more than results"), "{other}");
        std::fs::remove_file(&path).unwrap();
    }
    remove(&a).unwrap();
    assert!(!a.exists() && top.0.join("b").exists());
}

#[test]
fn ports_are_left_out() {
    for (command, without) in [
        ("a http://127.0.0.1:80/x localhost:90 [::1]:7", "a http://127.0.0.1:/x localhost: [::1]:"),
        ("a 10.0.0.1:80", "a 10.0.0.1:80"),
        ("127.0.0.1:", "127.0.0.1:"),
    ] {
        assert_eq!(without_ports(command), without);
    }
}

/// A foreign file with our name is neither truncated nor appended to.
#[test]
fn other_files_stay_as_they_are() {
    let dir = StoreFolder::new("others");
    std::fs::create_dir_all(&dir.0).unwrap();
    for text in ["{\"mine\":1}\n{\"mine\":2}", "no JSON", "{\"line\":\"run\"}\nhalf"] {
        for name in ["results.jsonl", "samples.jsonl"] {
            std::fs::write(dir.0.join(name), text).unwrap();
        }
        assert!(ResultsStore::open(&dir.0, &header(), "now").is_err(), "{text}");
        for name in ["results.jsonl", "samples.jsonl"] {
            assert_eq!(std::fs::read_to_string(dir.0.join(name)).unwrap(), text);
        }
    }
}

/// Links in a results folder are not followed.
#[test]
fn nothing_behind_links_is_removed() {
    let dir = StoreFolder::new("links");
    let outside = StoreFolder::new("outside");
    std::fs::create_dir_all(outside.0.join("0")).unwrap();
    std::fs::write(outside.0.join("0/1.json"), "mine").unwrap();
    drop(ResultsStore::open(&dir.0, &header(), "now").unwrap());
    let outputs = dir.0.join("outputs");
    std::os::unix::fs::symlink(&outside.0, &outputs).unwrap();
    assert!(remove(&dir.0).is_err());
    std::fs::remove_file(&outputs).unwrap();
    std::fs::create_dir(&outputs).unwrap();
    std::os::unix::fs::symlink(outside.0.join("0"), outputs.join("0")).unwrap();
    assert!(remove(&dir.0).is_err());
    assert_eq!(std::fs::read(outside.0.join("0/1.json")).unwrap(), b"mine");
}
