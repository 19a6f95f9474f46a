//! Either end says something else than it means: each kind of message that is seen between two ends, with each of its fields
//! out of range, left out, repeated and without end. Neither end panics, waits for ever, needs much memory, or touches what is
//! not in the target.

use crate::common::area::Area;
use crate::common::case::Case;
use crate::common::{first_seed, have, program, rounds};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What is done to one message; see `damage.py`.
#[derive(Clone, Copy, Debug, Default)]
struct Damage {
    edit: &'static str,
    direction: u8,
    kind: u8,
    nth: usize,
    at: usize,
}

/// Edits of a field, and of a message or the stream.
const OF_FIELDS: [&str; 9] =
    ["zero", "byte", "bit", "most", "huge", "over", "cut", "again", "flood"];
const OF_MESSAGES: [&str; 7] = ["longer", "noise", "twice", "none", "length", "end", "repeat"];
/// Bytes of a message whose fields are changed one by one.
const FIELD_BYTES: usize = 48;
/// Kinds of messages, and some that do not exist.
const KINDS: usize = 40;
/// Memory that either end may need, whatever the other one says. A debug build needs a third of it.
const MEMORY_KIB: u64 = 96 << 10;

/// The transfers: together they use all that two ends can say.
const LINES: &[&str] = &[
    "sync -aHAXi SRC/ h:DST",
    "sync -aHAXi h:SRC/ DST",
    "sync -ai --delete SRC/ h:DST",
    "sync -ai --delete --remove-source-files h:SRC/ DST",
    "verify SRC h:DST",
    "verify h:SRC DST",
];

fn grow(case: &Case) {
    for dir in 0..3 {
        let (from, to) = (case.src().join(format!("d{dir}")), case.dst().join(format!("d{dir}")));
        fs::create_dir_all(&from).unwrap();
        for at in 0..12 {
            fs::write(from.join(at.to_string()), vec![at as u8; 1000 * at]).unwrap();
        }
        fs::hard_link(from.join("3"), from.join("link")).unwrap();
        symlink("3", from.join("symlink")).unwrap();
        if dir == 0 {
            continue;
        }
        fs::create_dir_all(&to).unwrap();
        fs::write(to.join("extra"), "extra").unwrap();
        fs::write(to.join("5"), vec![9; 5000]).unwrap();
    }
    let large: Vec<u8> = (0..600_000_u32).map(|at| (at / 700) as u8).collect();
    fs::write(case.src().join("large"), &large).unwrap();
    fs::write(case.dst().join("large"), &large[300..]).unwrap();
    fs::write(case.place("beside"), "beside").unwrap();
}

/// Runs a line with a damage. Returns what the relay noted.
fn run(line: &str, damage: Damage) -> Value {
    let case = Case::new(line, Area::tmpfs(), Area::tmpfs());
    grow(&case);
    let Damage { edit, direction, kind, nth, at } = damage;
    let (script, notes) =
        (case.src().with_file_name("relay.py"), case.src().with_file_name("notes"));
    let folder = program().parent().map(Path::to_owned).unwrap_or_default();
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/remote/damage.py");
    let text = fs::read_to_string(suite).unwrap();
    let empty = "EDIT, DIRECTION, KIND, NTH, AT, NOTES, FOLDER = \"\", 0, 0, 0, 0, \"\", \"\"";
    assert!(text.contains(empty));
    let values = format!(
        "EDIT, DIRECTION, KIND, NTH, AT, NOTES, FOLDER = {edit:?}, {direction}, {kind}, {nth}, {at}, {notes:?}, {folder:?}"
    );
    fs::write(&script, text.replace(empty, &values)).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let (command, rest) = line.split_once(' ').unwrap();
    let begun = Instant::now();
    let run = case.run_line(&format!("{command} -e {} {rest}", script.display()));
    let took = begun.elapsed();
    // The relay writes them after the agent has ended, which may be later than the near end.
    let mut noted = String::new();
    while !noted.ends_with('}') && begun.elapsed() < took + Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(10));
        noted = fs::read_to_string(&notes).unwrap_or_default();
    }
    let what = || format!("{damage:?} of {line}: {noted}\n{run}");
    assert!(took < Duration::from_secs(60), "{took:?}: {}", what());
    assert!((0..126).contains(&run.code) && run.code != 101, "{}", what());
    assert!(!run.err().contains("panicked"), "{}", what());
    let noted: Value =
        serde_json::from_str(&noted).unwrap_or_else(|error| panic!("{error}: {}", what()));
    // A status of wait(2): ended by itself, and not as after a panic, or because nobody reads.
    let status = noted["agent"].as_u64().unwrap_or_else(|| panic!("it does not end: {}", what()));
    assert!(status & 0x7f == 0 && status >> 8 != 101 || status == 13, "{}", what());
    for end in ["agent_kib", "near_kib"] {
        assert!(noted[end].as_u64().is_some_and(|kib| kib < MEMORY_KIB), "{end}: {}", what());
    }
    for place in [case.src(), case.dst()] {
        let mut names: Vec<_> = fs::read_dir(place.parent().unwrap())
            .unwrap()
            .flatten()
            .map(|it| it.file_name().into_string().unwrap())
            .collect();
        names.sort();
        let known = ["beside", "dst", "notes", "relay.py", "src"];
        assert!(names.iter().all(|name| known.contains(&&**name)), "{names:?}: {}", what());
    }
    assert_eq!(fs::read(case.place("beside")).unwrap(), b"beside");
    noted
}

/// `HAKOBU_ROUNDS` multiplies the number of damages.
#[test]
fn damaged_messages() {
    if !have("python3", "damaged messages") {
        return;
    }
    let mut cases = Vec::new();
    for line in LINES {
        let noted = run(line, Damage::default());
        assert_eq!(noted["agent"], 0, "{line}: {noted}");
        for (key, lengths) in noted["seen"].as_object().unwrap() {
            let (direction, kind) = key.split_once(' ').unwrap();
            let (direction, kind) = (direction.parse().unwrap(), kind.parse().unwrap());
            let lengths = lengths.as_array().unwrap();
            for nth in [1, lengths.len().div_ceil(2), lengths.len()] {
                let length = lengths[nth - 1].as_u64().unwrap() as usize;
                let of = |edit, at| (*line, Damage { edit, direction, kind, nth, at });
                for at in 0..length.min(FIELD_BYTES) {
                    cases.extend(OF_FIELDS.map(|edit| of(edit, at)));
                }
                cases.extend(OF_MESSAGES.map(|edit| of(edit, length / 2)));
                cases.extend((0..KINDS).map(|at| of("kind", at)));
            }
        }
    }
    // Those of a run are spread over all.
    let (count, first) = (rounds(60) as usize, first_seed(1) as usize);
    assert!(cases.len() > 5000, "{} cases", cases.len());
    let step = 7919;
    let (next, total) = (AtomicUsize::new(0), cases.len());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count.min(total) {
                        break;
                    }
                    let (line, damage) = cases[(first + at) * step % total];
                    run(line, damage);
                }
            });
        }
    });
}
