//! Options and job files of `hakobu io` against fio's own reader: who takes what, what the options
//! are in the end, and what values mean.

mod cases;
mod examples;
mod meaning;

use cases::{APART, Case, FILES, LATE, LENIENT, NEWER, OURS, SAME, UNSUPPORTED};
use hakobu_io::spec::{self, Request, System};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Number of job files given to one process of fio.
const TOGETHER: usize = 16;

/// fio, where files are that job files of these tests name.
fn fio(dir: &Path, arguments: &[&str]) -> Output {
    Command::new("fio").args(arguments).current_dir(dir).output().unwrap()
}

/// A folder with the files that are included.
fn place() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("x.inc"), "bs=8k\niodepth=1\n").unwrap();
    std::fs::write(dir.path().join("sections.inc"), "[more]\nbs=8k\n").unwrap();
    dir
}

/// Reads a job file as `--parse-only` does.
fn ours(dir: &Path, name: &str) -> Result<Request, String> {
    let path = dir.join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    let arguments = [("parse-only".to_owned(), None)];
    spec::read(&arguments, &[(path.to_str().unwrap().to_owned(), text)], &System)
}

/// Whether fio takes a job file; on a wrong guess its words are shown.
fn fio_takes(dir: &Path, name: &str) -> (bool, String) {
    let output = fio(dir, &["--parse-only", name]);
    let words = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&words).into_owned())
}

/// Does `work` for all numbers below `count`, on a few threads: fio takes its time to begin.
fn each(count: usize, work: impl Fn(usize) -> Option<String> + Sync) {
    let next = AtomicUsize::new(0);
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let worker = || {
            let mut wrong = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= count {
                    return wrong;
                }
                wrong.extend(work(at));
            }
        };
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Compares one job file with what is expected of both.
fn compare(dir: &Path, name: &str, text: &str, fio: bool, ours_too: bool) -> Option<String> {
    std::fs::write(dir.join(name), text).unwrap();
    let (fio_does, words) = fio_takes(dir, name);
    let found = ours(dir, name);
    if (fio_does, found.is_ok()) == (fio, ours_too) {
        return None;
    }
    let found = found.err().unwrap_or_else(|| "taken".to_owned());
    Some(format!(
        "--- {text}expected fio {fio}, hakobu {ours_too}\nfio {fio_does}: {words}hakobu: {found}"
    ))
}

#[test]
fn each_option_is_taken_or_refused_as_by_fio() {
    if !crate::common::have("fio", "options against fio's reader") {
        return;
    }
    let dir = place();
    let mut cases: Vec<Case> = [SAME, UNSUPPORTED, LENIENT, LATE, OURS, APART, NEWER].concat();
    cases.sort_by_key(|case| !case.fio);
    let text = |case: &Case| format!("[job]\nsize=1m\n{}\n", case.text);
    let names: Vec<String> = (0..cases.len()).map(|at| format!("{at}.fio")).collect();
    for (name, case) in names.iter().zip(&cases) {
        std::fs::write(dir.path().join(name), text(case)).unwrap();
    }
    // Those that fio should take are given to it together, as it takes its time to begin; each alone only if it
    // refuses one of them.
    let taken = cases.iter().filter(|case| case.fio).count();
    let together: Vec<&[String]> = names[..taken].chunks(TOGETHER).collect();
    let are_taken: Vec<AtomicBool> = together.iter().map(|_| AtomicBool::new(false)).collect();
    each(together.len(), |at| {
        let arguments = ["--parse-only"].into_iter().chain(together[at].iter().map(String::as_str));
        let output = fio(dir.path(), &arguments.collect::<Vec<_>>());
        are_taken[at].store(output.status.success(), Ordering::Relaxed);
        None
    });
    each(cases.len(), |at| {
        let (case, name) = (&cases[at], &names[at]);
        let is_taken = at < taken && are_taken[at / TOGETHER].load(Ordering::Relaxed);
        match is_taken && ours(dir.path(), name).is_ok() == case.ours {
            true => None,
            false => compare(dir.path(), name, &text(case), case.fio, case.ours),
        }
    });
}

#[test]
fn what_fio_refuses_when_it_is_to_run_is_refused() {
    if !crate::common::have("fio", "options that fio refuses late") {
        return;
    }
    let dir = place();
    for case in LATE {
        let text = format!("[job]\nioengine=null\nsize=4k\n{}\n", case.text);
        std::fs::write(dir.path().join("a.fio"), text).unwrap();
        let output = fio(dir.path(), &["a.fio"]);
        assert!(!output.status.success(), "{case:?}");
    }
}

#[test]
fn what_is_fios_alone_is_refused_by_name() {
    let dir = place();
    for case in UNSUPPORTED {
        std::fs::write(dir.path().join("a.fio"), format!("[job]\n{}\n", case.text)).unwrap();
        let message = ours(dir.path(), "a.fio").unwrap_err();
        let line = case.text.lines().count() + 1;
        let last = case.text.lines().last().unwrap();
        let named = message.contains(&format!("a.fio:{line}: {last}: "));
        let refused = message.contains("supported by fio, not by hakobu");
        assert!(named && refused, "{message}");
    }
}

#[test]
fn whole_job_files_are_taken_or_refused_as_by_fio() {
    if !crate::common::have("fio", "job files against fio's reader") {
        return;
    }
    let dir = place();
    each(FILES.len(), |at| {
        let case = FILES[at];
        compare(dir.path(), &format!("whole{at}.fio"), case.text, case.fio, case.ours)
    });
    let texts = job_files(160);
    each(texts.len(), |at| {
        let (text, taken) = &texts[at];
        compare(dir.path(), &format!("{at}.fio"), text, *taken, *taken)
    });
}

#[test]
fn fio_says_the_same_options() {
    if !crate::common::have("fio", "options of job files against fio --showcmd") {
        return;
    }
    let dir = place();
    // fio says options of a [global] behind a job as if they were that job's.
    let in_front = |text: &str| text.rfind("[global]") < text.find("[job");
    let texts: Vec<String> = job_files(300)
        .into_iter()
        .filter(|(text, taken)| *taken && in_front(text))
        .map(|(text, _)| text)
        .collect();
    assert!(texts.len() > 60, "{}", texts.len());
    let names: Vec<String> = (0..texts.len()).map(|at| format!("{at}.fio")).collect();
    for (name, text) in names.iter().zip(&texts) {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let shown = |names: &[String]| {
        let arguments = ["--showcmd"].into_iter().chain(names.iter().map(String::as_str));
        let output = fio(dir.path(), &arguments.collect::<Vec<_>>());
        let said = String::from_utf8(output.stdout).unwrap();
        said.lines().map(sorted).collect::<Vec<_>>()
    };
    // A line for each of them, as fio takes its time to begin; one that differs is asked for again, alone.
    let together: Vec<&[String]> = names.chunks(TOGETHER).collect();
    each(together.len(), |batch| {
        let lines = shown(together[batch]);
        let differs = |at: usize, name: &String| {
            let found = sorted(&ours(dir.path(), name).unwrap().command_line);
            if lines.get(at).filter(|_| lines.len() == together[batch].len()) == Some(&found) {
                return None;
            }
            let theirs = shown(std::slice::from_ref(name));
            let text = &texts[batch * TOGETHER + at];
            (theirs != [found.clone()])
                .then(|| format!("--- {text}fio: {theirs:?}\nhakobu: {found:?}"))
        };
        let wrong = together[batch].iter().enumerate().filter_map(|(at, name)| differs(at, name));
        Some(wrong.collect::<Vec<_>>().join("\n")).filter(|wrong| !wrong.is_empty())
    });
}

/// The options of a command line: those of all jobs, then each job's, the last of one name.
fn sorted(line: &str) -> Vec<BTreeMap<String, String>> {
    let mut jobs = vec![BTreeMap::new()];
    for word in format!(" {line}").split(" --").skip(1) {
        let word = word.replace(['\'', '"'], "");
        let (name, value) = word.trim().split_once('=').unwrap_or((word.trim(), "1"));
        if name == "name" {
            jobs.push(BTreeMap::new());
        }
        jobs.last_mut().unwrap().insert(name.to_owned(), value.to_owned());
    }
    jobs
}

/// Job files of several options and sections, and whether they are taken.
fn job_files(count: usize) -> Vec<(String, bool)> {
    let mut random = fastrand::Rng::with_seed(6);
    let (good, bad): (Vec<Case>, Vec<Case>) = SAME.iter().partition(|case| case.fio);
    // Options that exclude others, or name a job again.
    let alone = [
        "rate",
        "name",
        "include",
        "ioengine",
        "kb_base",
        "threads",
        "bsrange",
        "blocksize_range",
        "bssplit",
        "rw=randread:",
        "rw=randrw:",
    ];
    let good: Vec<Case> = good
        .into_iter()
        .filter(|case| !alone.iter().any(|name| case.text.starts_with(name)))
        .collect();
    let file = |_| {
        let mut text = String::new();
        let is_bad = random.u8(..4) == 0;
        let sections = random.usize(1..5);
        let wrong = random.usize(..sections);
        for section in 0..sections {
            let is_job = section + 1 == sections || random.u8(..3) > 0;
            text += &if is_job { format!("[job{section}]\n") } else { "[global]\n".to_owned() };
            let mut seen: Vec<&str> = Vec::new();
            for _ in 0..random.usize(..7) {
                let case = good[random.usize(..good.len())];
                let name = |line: &'static str| line.split('=').next().unwrap();
                if case.text.lines().any(|line| seen.contains(&name(line))) {
                    continue;
                }
                seen.extend(case.text.lines().map(name));
                text += ["", "  ", "\t", "; words\n", "\n# words = 3\n"][random.usize(..5)];
                text += case.text;
                text += ["\n", "\n", "  \n", "\t\n\n"][random.usize(..4)];
            }
            if is_bad && wrong == section {
                text += bad[random.usize(..bad.len())].text;
                text += "\n";
            }
        }
        (text, !is_bad)
    };
    (0..count).map(file).collect()
}
