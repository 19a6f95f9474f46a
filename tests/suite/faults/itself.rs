//! What a run could lose to itself: two sources with one name, a source that is the target of another one, a target
//! that is a source, names that the target holds for one. Every content exists afterwards, and the exit code says what
//! was refused.

use crate::common::area::{Area, Fs};
use crate::common::case::{Run, run_fed};
use crate::common::machine::Undo;
use crate::common::{have, have_root, must, program};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes `path=content` (a file), `path/` (a directory), `path->text` (a symlink), `path==other` (a hard link).
fn make(top: &Path, what: &[&str]) {
    let place = |name: &str| {
        let path = top.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    };
    for item in what {
        if let Some((name, other)) = item.split_once("==") {
            std::fs::hard_link(top.join(other), place(name)).unwrap();
        } else if let Some((name, content)) = item.split_once('=') {
            std::fs::write(place(name), content).unwrap();
        } else if let Some((name, text)) = item.split_once("->") {
            symlink(text, place(name)).unwrap();
        } else {
            std::fs::create_dir_all(place(item)).unwrap();
        }
    }
}

fn run(top: &Path, line: &str) -> Run {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "60"]).arg(program()).args(line.split_whitespace());
    command.current_dir(top).env("LC_ALL", "C.UTF-8");
    command.env("XDG_STATE_HOME", crate::common::area::state_home());
    run_fed(&mut command, b"")
}

/// Returns the files below a directory as `path=content`; symlinks as `path->text`. Mounts are left out.
fn found(top: &Path) -> Vec<String> {
    let (mut found, mut waiting) = (Vec::new(), vec![top.to_owned()]);
    while let Some(dir) = waiting.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let (path, kind) =
                entry.map(|entry| (entry.path(), entry.file_type().unwrap())).unwrap();
            let name = path.strip_prefix(top).unwrap().display().to_string();
            if kind.is_dir() {
                waiting.push(path);
            } else if kind.is_symlink() {
                found.push(format!("{name}->{}", std::fs::read_link(&path).unwrap().display()));
            } else {
                found.push(format!("{name}={}", std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// Runs a line in a folder with these entries and compares the exit code and all entries afterwards.
fn check(before: &[&str], line: &str, code: i32, after: &[&str]) -> Run {
    let area = Area::tmpfs();
    make(area.path(), before);
    let done = run(area.path(), line);
    done.expect(code);
    let mut expected: Vec<String> = after.iter().map(ToString::to_string).collect();
    expected.sort();
    assert_eq!(found(area.path()), expected, "entries after {done}");
    done
}

#[test]
fn arguments_of_one_name() {
    let before = ["x/f=1", "y/f=2", "dst/"];
    for line in ["mv x/f y/f dst/", "mv -t dst x/f y/f", "mv -f x/f y/f dst", "mv -b x/f y/f dst"] {
        let done = check(&before, line, 1, &["dst/f=1", "y/f=2"]);
        let message = "will not overwrite just-created 'dst/f' with 'y/f'";
        assert!(done.err().contains(message), "{done}");
    }
    for line in
        ["cp x/f y/f dst/", "cp -a x/f y/f dst", "cp -rt dst x/f y/f", "cp -j 1 x/f y/f dst"]
    {
        let done = check(&before, line, 1, &["dst/f=1", "x/f=1", "y/f=2"]);
        let message = "will not overwrite just-created 'dst/f' with 'y/f'";
        assert!(done.err().contains(message), "{done}");
    }
    // Numbered backups keep the first one.
    check(&before, "mv --backup=numbered x/f y/f dst", 0, &["dst/f=2", "dst/f.~1~=1"]);
    // The other names are moved.
    let before = ["x/f=1", "x/g=3", "y/f=2", "y/h=4", "dst/"];
    let after = ["dst/f=1", "dst/g=3", "dst/h=4", "y/f=2"];
    check(&before, "mv x/f x/g y/f y/h dst/", 1, &after);
    // A name that could not be moved is free.
    check(&["y/f=2", "dst/"], "mv x/f y/f dst/", 1, &["dst/f=2"]);
    check(&["y/f=2", "dst/"], "cp x/f y/f dst/", 1, &["dst/f=2", "y/f=2"]);
    // The same source again is no other one.
    let done = check(&["x/f=1", "dst/"], "cp x/f x/f dst/", 0, &["dst/f=1", "x/f=1"]);
    assert!(done.err().contains("specified more than once"), "{done}");
    // rsync takes the first one.
    check(&["x/f=1", "y/f=2", "dst/"], "sync -a x/f y/f dst", 0, &["dst/f=1", "x/f=1", "y/f=2"]);
    // -n and -u decide first.
    check(&["x/f=1", "y/f=2", "dst/"], "mv -n x/f y/f dst", 0, &["dst/f=1", "y/f=2"]);
}

#[test]
fn arguments_of_one_name_across_file_systems() {
    let Some(other) = Area::new(Fs::Ext4, "mv to another file system") else { return };
    let area = Area::tmpfs();
    make(area.path(), &["x/f=1", "y/f=2"]);
    run(area.path(), &format!("mv x/f y/f {}", other.path().display())).expect(1);
    assert_eq!(
        (found(area.path()), found(other.path())),
        (vec!["y/f=2".into()], vec!["f=1".into()])
    );
}

#[test]
fn merged_directories() {
    let before =
        ["base/f=1", "base/g=2", "base/d/h=3", "over/f=4", "over/d/h=5", "over/d/i=6", "dst/"];
    let sources = ["base/d/h=3", "base/f=1", "base/g=2", "over/d/h=5", "over/d/i=6", "over/f=4"];
    let with = |target: &[&'static str]| [&sources[..], target].concat();
    // In cp the later one wins, as in GNU cp; with -n the first one.
    let later = ["dst/d/h=5", "dst/d/i=6", "dst/f=4", "dst/g=2"];
    let first = ["dst/d/h=3", "dst/d/i=6", "dst/f=1", "dst/g=2"];
    check(&before, "cp -r base/. over/. dst/", 0, &with(&later));
    check(
        &before,
        "cp -rT base/. dst/ -j 1",
        0,
        &[&sources[..], &["dst/d/h=3", "dst/f=1", "dst/g=2"]].concat(),
    );
    check(&before, "cp -rn base/. over/. dst/", 0, &with(&first));
    check(&before, "sync -r base/ over/ dst/", 0, &with(&first));
    let before = ["a/d/f=1", "b/d/f=2", "b/d/g=3", "dst/"];
    let sources = ["a/d/f=1", "b/d/f=2", "b/d/g=3"];
    let after = [&sources[..], &["dst/d/f=2", "dst/d/g=3"]].concat();
    check(&before, "cp -r a/d b/d dst", 0, &after);
    // A full directory is not replaced.
    check(&before, "mv a/d b/d dst", 1, &["dst/d/f=1", "b/d/f=2", "b/d/g=3"]);
}

#[test]
fn the_first_source_wins_and_the_other_stays() {
    for _ in 0..12 {
        for (line, code) in [
            ("sync -a --remove-source-files x/ y/ dst/", 0),
            ("sync -a --remove-source-files x/ y/ dst/ -j 1", 0),
            ("sync -a --delete --remove-source-files x/ y/ dst/", 0),
        ] {
            let before = ["x/f=1", "x/d/g=2", "y/f=other", "y/d/g=another", "y/only=5", "dst/"];
            let after = ["dst/d/g=2", "dst/f=1", "dst/only=5", "y/d/g=another", "y/f=other"];
            check(&before, line, code, &after);
        }
    }
}

#[test]
fn a_link_onto_its_target() {
    let kept = ["d/f=1", "d/link->f"];
    for line in
        ["cp -a", "cp -d", "cp -P", "cp -R", "cp -af", "cp -a --remove-destination", "mv", "mv -f"]
    {
        let done = check(&["d/f=1", "d/link->f"], &format!("{line} d/link d/f"), 1, &kept);
        assert!(done.err().contains("the same file"), "{done}");
    }
    check(&["d/f=1", "d/l->m", "d/m->f"], "cp -a d/l d/f", 1, &["d/f=1", "d/l->m", "d/m->f"]);
    let farm = ["real/f=1", "farm/f->../real/f", "farm/g=2"];
    let after = ["real/f=1", "real/g=2", "farm/f->../real/f", "farm/g=2"];
    check(&farm, "cp -a farm/. real/", 1, &after);
    check(&farm, "sync -a farm/ real/", 23, &after);
    check(&farm, "sync -a --delete farm/ real/", 23, &after);
    check(
        &farm,
        "sync -a --remove-source-files farm/ real/",
        23,
        &["real/f=1", "real/g=2", "farm/f->../real/f"],
    );
    // A full directory behind the link, which --force would remove.
    let farm = ["real/d/f=1", "farm/d->../real/d"];
    check(&farm, "sync -a --force farm/ real/", 23, &["real/d/f=1", "farm/d->../real/d"]);
    // A link to something else replaces a file.
    check(
        &["d/f=1", "d/g=2", "d/link->g"],
        "cp -af d/link d/f",
        0,
        &["d/f->g", "d/g=2", "d/link->g"],
    );
}

#[test]
fn a_target_that_is_a_source() {
    for _ in 0..8 {
        let before = ["d/f=1", "d/d/f=2", "d/d/d/f=3"];
        // What lies in d/ is a source that may not be read yet.
        check(&before, "sync -a --remove-source-files d/ ./", 23, &["f=1", "d/d/f=2", "d/d/d/f=3"]);
    }
    check(&["a=1", "t/a=2"], "sync -a --remove-source-files a t t", 23, &["a=1", "t/a=2"]);
    check(&["t/F=1", "b/F=2"], "sync -a --remove-source-files t/ ./b/ b", 23, &["t/F=1", "b/F=2"]);
    // Not with mv either: the second source is the target of the first one.
    check(&["t/a=1", "a=2", "l->t"], "mv t/a a l", 1, &["t/a=1", "a=2", "l->t"]);
    check(&["f=1", "d/f=2"], "mv f d d", 1, &["f=1", "d/f=2"]);
    // A target in a source that the rules exclude is none.
    let line = "sync -a --remove-source-files --exclude=/done ./ ./done/";
    check(&["f=1", "done/f=old"], line, 0, &["done/f=1"]);
    // Without removal as rsync does.
    check(&["d/f=1"], "sync -a d/ ./", 0, &["d/f=1", "f=1"]);
}

#[test]
fn sources_inside_the_target_are_not_extraneous() {
    for when in
        ["--delete", "--delete-before", "--delete-during", "--delete-after", "--delete-delay"]
    {
        let before = ["t/d/f=1", "t/d/e/g=2", "t/old=3", "t/o/p=4"];
        let after = ["t/d/e/g=2", "t/d/f=1", "t/e/g=2", "t/f=1"];
        check(&before, &format!("sync -a {when} t/d/ t/"), 0, &after);
        // By another spelling.
        let before = ["t/d/f=1", "t/old=3", "l->t/d"];
        check(&before, &format!("sync -a {when} l/ t/"), 0, &["l->t/d", "t/d/f=1", "t/f=1"]);
        check(&before, &format!("sync -a {when} t/d/../d/ t/"), 0, &["l->t/d", "t/d/f=1", "t/f=1"]);
        // A file as a source, below an extraneous directory.
        let before = ["t/sub/f=1", "x/g=2", "t/old=3"];
        let after = ["t/f=1", "t/g=2", "t/sub/f=1", "x/g=2"];
        check(&before, &format!("sync -a {when} t/sub/f x/ t/"), 0, &after);
        // A source that is refused is one all the same.
        check(
            &["t/F=1", "b/x=2"],
            &format!("sync -a {when} t b/ t"),
            23,
            &["b/x=2", "t/F=1", "t/x=2"],
        );
    }
    let before = ["t/d/d/f=1", "t/d/g=2", "t/h=3"];
    check(&before, "sync -a --delete t/d/ t/", 0, &["t/d/d/f=1", "t/d/f=1", "t/d/g=2", "t/g=2"]);
}

#[test]
fn a_target_is_never_listed() {
    for line in ["sync -a --remove-source-files d d", "sync -a d d", "cp -a d d", "mv d d"] {
        let code = if line.starts_with("sync") { 23 } else { 1 };
        check(&["d/a=1", "d/b=2"], line, code, &["d/a=1", "d/b=2"]);
    }
    check(
        &["a=1", "archive/b=2"],
        "sync -a --remove-source-files a archive archive/",
        23,
        &["archive/a=1", "archive/b=2"],
    );
    let done =
        check(&["a/t/", "a/f=1"], "sync -a ./ a/ a/t", 23, &["a/f=1", "a/t/a/f=1", "a/t/f=1"]);
    assert!(done.err().contains("not copied into itself"), "{done}");
    check(&["a/t/f=1", "t/"], "sync -a a/t ./ t", 23, &["a/t/f=1", "t/a/t/f=1", "t/t/f=1"]);
    // A directory is no loop because it is a source twice.
    let after = ["d/a/t/F=1", "d/a/t/t/F=1", "o/t/F=1"];
    check(&["o/t/F=1", "o/t/t/", "d/a/"], "sync -aL o/t/ o/t d/a/t", 0, &after);
}

/// A bind mount of a directory on another one, until it is dropped.
fn bind(of: &Path, on: &Path) -> Undo {
    std::fs::create_dir_all(on).unwrap();
    let undo = Undo::new(&format!("umount -l '{}'", on.display()));
    must(Command::new("mount").arg("--bind").arg(of).arg(on));
    undo
}

#[test]
fn a_bind_mount_is_the_directory_itself() {
    if !have_root("bind mounts") {
        return;
    }
    let area = Area::tmpfs();
    let at = |name: &str| area.join(name);
    let all = |expected: &[&str]| assert_eq!(contents(&[&at("d")]), expected);
    make(area.path(), &["d/a=1", "d/s/b=2", "d/t/c=3"]);
    {
        let _mount = bind(&at("d"), &at("m"));
        run(area.path(), "mv d m/x").expect(1);
        all(&["1", "2", "3"]);
        for line in ["sync -a --remove-source-files d m/x", "sync -a --remove-source-files d/ m"] {
            run(area.path(), line).expect(23);
            all(&["1", "2", "3"]);
        }
        // The source is in the target by another path.
        std::fs::remove_dir_all(at("d/x")).unwrap();
        make(area.path(), &["d/a=1", "d/s/b=2", "d/t/c=3"]);
        run(area.path(), "sync -a --delete m/s/ d/").expect(0);
        all(&["2", "2"]);
    }
    make(area.path(), &["d/a=1", "d/t/c=3"]);
    // The target is in the source by another path.
    let _mount = bind(&at("d/t"), &at("n"));
    run(area.path(), "sync -a --delete d/ n/").expect(23);
    assert!(found(&at("d")).contains(&"t/c=3".to_owned()));
}

/// A file system that ignores case, until it is dropped.
struct Caseless {
    root: PathBuf,
    _undo: Undo,
    _area: Area,
}

fn caseless() -> Option<Caseless> {
    if !have_root("a file system that ignores case") || !have("lowntfs-3g", "names of one case") {
        return None;
    }
    let area = Area::tmpfs();
    let (image, root) = (area.join("image"), area.join("mount"));
    std::fs::create_dir(&root).unwrap();
    must(Command::new("truncate").args(["-s", "32M"]).arg(&image));
    must(Command::new("mkntfs").args(["-F", "-Q", "-q"]).arg(&image));
    let undo = Undo::new(&format!("umount '{0}' || umount -l '{0}'", root.display()));
    must(Command::new("lowntfs-3g").args(["-o", "ignore_case"]).arg(&image).arg(&root));
    Some(Caseless { root, _undo: undo, _area: area })
}

fn contents(of: &[&Path]) -> Vec<String> {
    let files = of.iter().flat_map(|top| found(top));
    let mut contents: Vec<String> =
        files.map(|file| file.split_once('=').unwrap().1.to_owned()).collect();
    contents.sort();
    contents
}

#[test]
fn names_that_the_target_holds_for_one() {
    let Some(ntfs) = caseless() else { return };
    let all = ["1", "2", "3", "4", "5"];
    for (number, line) in
        ["mv s DST", "mv -j 1 s DST", "sync -a --remove-source-files s/ DST"].iter().enumerate()
    {
        let area = Area::tmpfs();
        make(area.path(), &["s/A=1", "s/a=2", "s/Dir/x=3", "s/dir/x=4", "s/dir/y=5"]);
        let target = ntfs.root.join(format!("t{number}"));
        let line = line.replace("DST", target.to_str().unwrap());
        let done = run(area.path(), &line);
        done.expect(if line.starts_with("mv") { 1 } else { 23 });
        assert_eq!(contents(&[area.path(), &target]), all, "{done}");
        assert!(done.err().contains("will not overwrite just-created"), "{done}");
    }
    // Onto names that are there already, and again: the first names keep what they have.
    let area = Area::tmpfs();
    make(area.path(), &["s/A=1", "s/a=2"]);
    let target = ntfs.root.join("again");
    for _ in 0..2 {
        run(area.path(), &format!("cp -rT s {}", target.display())).expect(1);
    }
    run(area.path(), &format!("sync -r --remove-source-files s/ {}", target.display())).expect(23);
    assert!(contents(&[area.path(), &target]).iter().any(|content| content == "1"));
    assert!(contents(&[area.path(), &target]).iter().any(|content| content == "2"));
    // Arguments, renamed or copied.
    make(area.path(), &["x/B=1", "y/b=2"]);
    let target = ntfs.root.join("arguments");
    std::fs::create_dir(&target).unwrap();
    run(area.path(), &format!("mv x/B y/b {}", target.display())).expect(1);
    assert_eq!(contents(&[&area.join("x"), &area.join("y"), &target]), ["1", "2"]);
}

#[test]
fn deletion_spares_names_of_another_case() {
    let Some(ntfs) = caseless() else { return };
    for when in ["--delete", "--delete-after"] {
        let area = Area::tmpfs();
        let target = ntfs.root.join(when.trim_start_matches('-'));
        make(area.path(), &["s/README=1", "s/Sub/File=2", "s/new=3"]);
        make(&target, &["readme=1", "sub/file=2", "old=4"]);
        for _ in 0..4 {
            run(area.path(), &format!("sync -rc {when} s/ {}", target.display())).expect(0);
            assert_eq!(contents(&[&target]), ["1", "2", "3"]);
        }
    }
}

#[test]
fn a_view_of_the_target_is_not_removed() {
    if !have_root("a FUSE view") || !have("bindfs", "a view of the target as the source") {
        return;
    }
    let area = Area::tmpfs();
    make(area.path(), &["real/f=1", "real/g=2", "view/"]);
    let (real, view) = (area.join("real"), area.join("view"));
    let undo = Undo::new(&format!("umount -l '{}'", view.display()));
    must(Command::new("bindfs").arg(&real).arg(&view));
    for line in ["mv view/f real/f", "sync -a -I --remove-source-files view/g real/"] {
        run(area.path(), line).expect(if line.starts_with("mv") { 1 } else { 23 });
        assert_eq!(contents(&[&real]), ["1", "2"]);
    }
    drop(undo);
}

#[test]
fn files_that_do_not_know_their_length() {
    let area = Area::tmpfs();
    for path in
        ["/proc/version", "/sys/kernel/mm/transparent_hugepage/enabled", "/proc/self/mounts"]
    {
        if std::fs::read(path).is_err() {
            crate::common::skip(&format!("{path} cannot be read"));
            continue;
        }
        run(area.path(), &format!("cp {path} copy")).expect(0);
        let copied = std::fs::read(area.join("copy")).unwrap();
        if path != "/proc/self/mounts" {
            assert_eq!(copied, std::fs::read(path).unwrap());
        }
        assert!(!copied.is_empty());
        std::fs::remove_file(area.join("copy")).unwrap();
    }
}
