//! Lines of `--files-from` and missing sources: copied files, deleted files and exit code, for every line
//! with every option, compared with rsync.

use crate::common::area::Area;
use crate::common::case::{Case, Run};
use crate::common::have;
use crate::common::snapshot::{Snapshot, show};
use std::os::unix::fs::symlink;
use std::path::Path;

/// A tree in which each line means something else.
fn source(src: &Path) {
    for (name, content) in [
        ("d/f", "1"),
        ("d/e/g", "2"),
        ("d2/h", "3"),
        ("d2/f", "other"),
        ("x/y/z/w", "4"),
        ("top", "5"),
    ] {
        std::fs::create_dir_all(src.join(name).parent().unwrap()).unwrap();
        std::fs::write(src.join(name), content).unwrap();
    }
    symlink("d", src.join("ld")).unwrap();
    symlink("top", src.join("lt")).unwrap();
    symlink("../top", src.join("x/lk")).unwrap();
}

/// A target with something extraneous in every folder.
fn target(dst: &Path) {
    let _ = std::fs::remove_dir_all(dst);
    for name in ["k", "d/k", "d/e/k", "x/k", "x/y/k"] {
        std::fs::create_dir_all(dst.join(name).parent().unwrap()).unwrap();
        std::fs::write(dst.join(name), "k").unwrap();
    }
}

fn tree(dst: &Path) -> Vec<String> {
    let snapshot = Snapshot::of(dst);
    let content = |name: &[u8]| {
        let path = dst.join(std::str::from_utf8(name).unwrap());
        std::fs::read_to_string(path).unwrap_or_default()
    };
    snapshot.entries.keys().map(|name| format!("{} {}", show(name), content(name))).collect()
}

struct Scene(Case);

impl Scene {
    fn new() -> Option<Scene> {
        have("rsync", "lists beside rsync").then(|| {
            let mut case = Case::new("", Area::tmpfs(), Area::tmpfs());
            source(&case.src());
            case.cwd = Some(case.src());
            Scene(case)
        })
    }

    /// Runs both programs on the same target; what differs.
    fn differs(&self, line: &str) -> Result<Run, String> {
        target(&self.0.dst());
        target(&self.0.oracle_dst());
        let (ours, theirs) = (self.0.run_line(line), self.0.oracle_line(line));
        let (left, right) = (tree(&self.0.dst()), tree(&self.0.oracle_dst()));
        match ours.code == theirs.code && left == right {
            true => Ok(ours),
            false => Err(format!("{left:?}\n  rsync: {right:?}\n{ours}{theirs}")),
        }
    }

    #[track_caller]
    fn all(&self, lines: &[&str], options: &[&str]) {
        let mut wrong = Vec::new();
        for line in lines {
            std::fs::write(self.0.list(), line).unwrap();
            for options in options {
                let command = format!("sync {options} --files-from=LIST SRC/ DST/");
                if let Err(how) = self.differs(&command) {
                    wrong.push(format!("{line:?} {options}: {how}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    }
}

const OPTIONS: &[&str] = &[
    "-a",
    "-a --no-R",
    "-ar",
    "-ar --no-R",
    "-t",
    "-t --no-dirs",
    "-t --no-dirs --no-R",
    "-a --delete",
    "-ar --delete",
    "-a --exclude=nope",
];

#[test]
fn a_directory_with_a_slash_is_copied_one_level_deep() {
    let Some(scene) = Scene::new() else { return };
    let lines = [
        "d/\n",
        "d/.\n",
        "d//\n",
        "./d/\n",
        "d\n",
        ".\n",
        "./\n",
        "/\n",
        "./.\n",
        "ld/\n",
        "ld/.\n",
        "ld\n",
        "lt/\n",
        "d/f/\n",
        "d/f/.\n",
        "d\nd/\n",
        "d/\nd\n",
        "ld\nld/\n",
        "d/\nd/f\n",
        "d/\nd2/\n",
        "x/\nx/y/z\n",
        "x/y/\nx/y/z/w\n",
    ];
    scene.all(&lines, OPTIONS);
}

#[test]
fn a_marker_in_a_line_cuts_the_path() {
    let Some(scene) = Scene::new() else { return };
    let lines = [
        "d/./\n",
        "d/./.\n",
        "d/././f\n",
        "d/./e\n",
        "d/./e/\n",
        "x/./y/z/w\n",
        "x/./y/z/\n",
        "./x/./y/z\n",
        "/./d/f\n",
        "x/y/./z/./w\n",
        "ld/./f\n",
        "d/./f\nd/f\n",
        "d/./e\nd2/./h\n",
        "d/./f\nd2/./f\n",
        "d2/./f\nd/./f\n",
        "d/./\nd2/./\n",
        "d/./nope\n",
        "d/./../top\n",
        "x/./../x/y\n",
    ];
    scene.all(&lines, OPTIONS);
}

#[test]
fn other_spellings_of_a_line() {
    let Some(scene) = Scene::new() else { return };
    let lines = [
        "/d/\n",
        "../d/f\n",
        "d/../top\n",
        "x//y//z/w\n",
        "d/..\n",
        "d/e/..\n",
        "d/e/../f\n",
        "..\n",
        "../..\n",
        "d/f\nd/f\n",
        "x/lk\n",
        "\n#c\n;d\ntop\n",
        "top\r\nd/f",
    ];
    scene.all(&lines, OPTIONS);
    scene.all(&["d/\0x/./y/z/w\0#c\0", "d/f\0nope"], &["-a -0", "-ar --from0"]);
}

#[test]
fn what_a_list_names_and_is_not_there() {
    let Some(scene) = Scene::new() else { return };
    let lines = [
        "nope\n",
        "nope/\n",
        "nope/.\n",
        "nope/./x\n",
        "d/nope\ntop\n",
        "d/\nnope\n",
        "d/\nx/nope\n",
        "d/..bad\n",
    ];
    scene.all(&lines, OPTIONS);
}

#[test]
fn a_missing_source_is_told_of() {
    let Some(scene) = Scene::new() else { return };
    for options in [
        "nope/",
        "-a nope/",
        "-d nope/",
        "nope",
        "-a --exclude=nope nope",
        "-a --exclude=nope nope/",
        "-a --exclude=nope d nope",
        "-a --exclude=nope x/y nope d/e",
        "-a --exclude=* nope",
        "-aR --exclude=nope d/nope",
        "-aR --exclude=d d/nope",
        "-R x/nope",
        "-aR ./x/nope ./x/y",
        "top nope/",
        "top/",
        "-a top/",
        "lt/",
        "-a --delete nope/ d/",
        "-a --delete nope d/",
    ] {
        match scene.differs(&format!("sync {options} DST/")) {
            Ok(run) => drop(run.expect(23).says(&["hakobu: cannot read '", "o"])),
            Err(how) => panic!("{options}: {how}"),
        }
    }
    // A list of what there is.
    for options in ["nope", "nope/", "-a --exclude=nope nope"] {
        let run = scene.0.run_line(&format!("sync {options}"));
        run.expect(23).says(&["cannot read 'nope"]);
    }
}

#[test]
fn slashes_of_relative_arguments() {
    let Some(scene) = Scene::new() else { return };
    for options in [
        "-aR ./d/f/",
        "-aR ./lt/",
        "-aR ./ld/",
        "-dR ./d/",
        "-dR x/y/",
        "-dR x/y",
        "-dR d/.",
        "-dR ./ld/",
        "-R x/y",
        "-tR d/",
        "-R x/lk",
        "-t d2/f d/f",
        "-t d/f d2/f",
    ] {
        if let Err(how) = scene.differs(&format!("sync {options} DST/")) {
            panic!("{options}: {how}");
        }
    }
}

#[test]
fn cp_and_mv_tell_of_a_missing_source() {
    let Some(scene) = Scene::new() else { return };
    for line in [
        "cp nope DST",
        "cp -r --exclude=nope nope DST",
        "cp -r nope/ DST",
        "cp -r --exclude=x d nope DST",
        "cp --parents -r --exclude=nope nope DST",
        "cp --exclude=x d DST",
        "mv nope DST",
        "mv nope/ DST",
        "mv -n nope DST/",
    ] {
        target(&scene.0.dst());
        scene.0.run_line(line).expect(1).says(&["hakobu: cannot "]);
    }
}
