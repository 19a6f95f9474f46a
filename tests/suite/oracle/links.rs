//! Symlinks of other users in paths of the command line are never followed unless requested. The cases are
//! those of rsync 3.5.

use crate::common::area::Area;
use crate::common::case::{Run, run_fed, split};
use crate::common::{have_root, program};
use std::os::unix::fs::{MetadataExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Some user who is neither root nor us.
const OTHER: u32 = 54_321;

struct Scene(Area);

impl Scene {
    /// A source, an empty target, and a folder `real` that links lead to.
    fn new() -> Scene {
        let area = Area::tmpfs();
        for folder in ["src/d", "dst", "real"] {
            std::fs::create_dir_all(area.join(folder)).unwrap();
        }
        std::fs::write(area.join("src/f"), "content").unwrap();
        std::fs::write(area.join("src/d/g"), "content").unwrap();
        Scene(area)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A symlink of that owner.
    fn link(&self, to: &str, name: &str, uid: u32) {
        let _ = std::fs::remove_file(self.path(name));
        symlink(to, self.path(name)).unwrap();
        lchown(self.path(name), Some(uid), None).unwrap();
    }

    fn run(&self, line: &str) -> Run {
        self.fed(line, b"")
    }

    fn fed(&self, line: &str, input: &[u8]) -> Run {
        let mut command = Command::new("timeout");
        let here = self.0.path().to_str().unwrap();
        let line = line.replace("HERE", here);
        command.args(["--kill-after=5", "60"]).arg(program()).args(split(&line));
        command.env("LC_ALL", "C.UTF-8").env("XDG_STATE_HOME", "/dev/null");
        command.current_dir(self.0.path());
        run_fed(&mut command, input)
    }

    /// Whether anything is in a folder.
    fn has(&self, folder: &str) -> bool {
        std::fs::read_dir(self.path(folder)).unwrap().next().is_some()
    }

    /// A link of another user is refused with this code and nothing moves; root's is followed, and
    /// with `--insecure-links` both are. `clean` puts things back.
    fn matrix(&self, links: &[(&str, &str)], line: &str, code: i32, clean: &dyn Fn()) {
        let (command, rest) = line.split_once(' ').unwrap();
        for (to, name) in links {
            self.link(to, name, OTHER);
            let run = self.run(line);
            run.expect(code).says(&["belongs to user 54321", "hint: "]);
            assert!(!self.has("real") && !self.has("dst"), "something moved: {run}");
            let run = self.run(&format!("{command} --insecure-links {rest}"));
            run.ok();
            assert!(self.has("real") || self.has("dst"), "nothing moved: {run}");
            clean();
            self.link(to, name, 0);
            let run = self.run(line);
            run.ok();
            assert!(self.has("real") || self.has("dst"), "nothing moved: {run}");
            clean();
            let _ = std::fs::remove_file(self.path(name));
        }
    }

    /// Empties both folders.
    fn clean(&self) {
        for folder in ["real", "dst"] {
            std::fs::remove_dir_all(self.path(folder)).unwrap();
            std::fs::create_dir(self.path(folder)).unwrap();
        }
    }
}

fn scene() -> Option<Scene> {
    have_root("symlinks of other users").then(Scene::new)
}

#[test]
fn the_target() {
    let Some(scene) = scene() else { return };
    let clean = || scene.clean();
    for line in [
        "sync -a src/ lk",
        "sync -a src/ lk/",
        "sync -a src/ lk/new/",
        "sync -a src/ HERE/lk/",
        "sync -a --mkpath src/ lk/new/one/",
        "sync -a src/f lk/f2",
        "sync -a --mkpath src/f lk/new/f2",
        "sync -a src/f lk",
        "sync -aR src/./d lk/",
        "sync -a src/ lk/../real/",
    ] {
        scene.matrix(&[("real", "lk")], line, 3, &clean);
    }
    // Through one of our own.
    scene.link("lk", "chain", 0);
    scene.matrix(&[("real", "lk")], "sync -a src/ chain/", 3, &clean);
    // A source is followed, as in rsync.
    scene.link("src", "from", OTHER);
    scene.run("sync -a from/ dst/").ok();
    assert!(scene.has("dst"));
}

#[test]
fn cp_and_mv_follow_as_coreutils_do() {
    let Some(scene) = scene() else { return };
    scene.link("real", "lk", OTHER);
    scene.run("cp -r src/. lk/").ok();
    assert!(scene.path("real/d/g").exists());
    scene.run("mv src/f lk/moved").ok();
    assert!(scene.path("real/moved").exists());
}

#[test]
fn the_folder_of_temporary_files() {
    let Some(scene) = scene() else { return };
    let clean = || scene.clean();
    for line in ["sync -a -T HERE/lk src/ dst/", "sync -a --temp-dir=../lk src/ dst/"] {
        scene.matrix(&[("real", "lk")], line, 11, &clean);
    }
}

#[test]
fn the_trees_of_link_dest() {
    let Some(scene) = scene() else { return };
    scene.run("sync -a src/ old/").ok();
    let linked = || {
        let file = |name: &str| std::fs::metadata(scene.path(name)).unwrap().ino();
        file("dst/f") == file("old/f")
    };
    for path in ["HERE/lk", "../lk"] {
        let line = format!("sync -a --link-dest={path} src/ dst/");
        scene.link("old", "lk", OTHER);
        // As in rsync it is not used; here that is a failure.
        scene.run(&line).expect(23).says(&["--link-dest", "is not used", "belongs to user 54321"]);
        assert!(scene.has("dst") && !linked());
        scene.clean();
        scene.run(&format!("{line} --insecure-links")).ok();
        assert!(linked());
        scene.clean();
        scene.link("old", "lk", 0);
        scene.run(&line).ok();
        assert!(linked());
        scene.clean();
    }
    // One that is not there is told of, as in rsync.
    scene.run("sync -a --link-dest=../none src/ dst/").ok().says(&["--link-dest 'dst/../none'"]);
}

#[test]
fn what_is_logged() {
    let Some(scene) = scene() else { return };
    for (to, name, path) in [("real", "lk", "lk/log"), ("real/log", "lk", "lk")] {
        for line in [
            "sync -a --log-file=PATH src/ dst/",
            "sync -a --joblog=PATH src/ dst/",
            "cp -r --joblog=PATH src/. dst/",
        ] {
            let line = line.replace("PATH", path);
            scene.link(to, name, OTHER);
            let run = scene.run(&line);
            assert_ne!(run.code, 0, "{run}");
            run.says(&["cannot write", "belongs to user 54321"]);
            assert!(!scene.has("real") && !scene.has("dst"), "{run}");
            let (command, rest) = line.split_once(' ').unwrap();
            scene.run(&format!("{command} --insecure-links {rest}")).ok();
            assert!(scene.path("real/log").exists());
            scene.clean();
            scene.link(to, name, 0);
            scene.run(&line).ok();
            assert!(scene.path("real/log").exists());
            scene.clean();
        }
    }
    // The outputs of other commands.
    scene.link("real/out", "lk", OTHER);
    scene.link("real", "lkdir", OTHER);
    for line in [
        "bench --runs=1 -o results --export-json=lkdir/out true",
        "watch --json=lkdir/out -- true",
        "bench --runs=1 -o results2 --export-csv=lkdir/out true",
    ] {
        let run = scene.run(line);
        assert_ne!(run.code, 0, "{run}");
        run.says(&["belongs to user 54321"]);
        assert!(!scene.has("real"), "{run}");
    }
    // A file that appears whole takes the place of a link and never follows it.
    let run = scene.run("bench --runs=1 -o results3 --export-json=lk true");
    run.ok();
    assert!(!scene.has("real") && scene.path("lk").symlink_metadata().unwrap().is_file(), "{run}");
}

#[test]
fn lists_of_names_and_of_rules() {
    let Some(scene) = scene() else { return };
    let clean = || scene.clean();
    std::fs::create_dir(scene.path("lists")).unwrap();
    std::fs::write(scene.path("lists/names"), "f\n").unwrap();
    let links = [("lists/names", "lk"), ("lists", "lkdir")];
    for (link, path) in links.iter().zip(["lk", "lkdir/names"]) {
        for (option, code) in [
            ("--files-from=PATH", 1),
            ("--exclude-from=PATH", 11),
            ("--include-from=PATH", 11),
            ("'--filter=.- PATH'", 11),
            ("'--filter=merge,- PATH'", 11),
        ] {
            let line = format!("sync -a {} src/ dst/", option.replace("PATH", path));
            scene.matrix(&[*link], &line, code, &clean);
        }
        scene.matrix(&[*link], &format!("cp -r --exclude-from={path} src/. dst/"), 2, &clean);
    }
    // Names of a list do not lead through such a link either.
    scene.link("d", "src/lk", OTHER);
    let line = "sync -a --files-from=- src/ dst/";
    for names in ["lk/g\n", "lk/\n", "lk/./g\n", "lk/./\n"] {
        scene.fed(line, names.as_bytes()).expect(23).says(&["belongs to user 54321"]);
        assert!(!scene.has("dst"));
        scene.fed(&format!("{line} --insecure-links"), names.as_bytes()).ok();
        assert!(scene.has("dst"));
        scene.clean();
    }
    scene.fed(line, b"lk\n").ok();
    assert!(scene.path("dst/lk").is_symlink());
}

#[test]
fn files_of_rules_in_directories() {
    let Some(scene) = scene() else { return };
    std::fs::write(scene.path("rules"), "P own\n- f\n").unwrap();
    std::fs::create_dir(scene.path("below")).unwrap();
    let own = |name: &str| std::fs::write(scene.path(name), "").unwrap();
    for options in ["-F", "'--filter=: .rsync-filter'"] {
        let line = format!("sync -a {options} src/ dst/");
        // A refused one is not read, as in rsync; here that is a failure, nothing is deleted and no source is removed.
        scene.link("../rules", "src/.rsync-filter", OTHER);
        own("dst/own");
        scene.run(&format!("{line} --remove-source-files")).expect(23);
        assert!(!scene.path("dst/f").exists() && scene.path("src/f").exists());
        scene.run(&format!("{line} --delete")).expect(23).says(&["belongs to user 54321"]);
        assert!(scene.path("dst/f").exists() && scene.path("dst/own").exists());
        assert!(scene.path("dst/d/g").exists());
        scene.clean();
        scene.run(&format!("{line} --insecure-links")).ok();
        scene.link("../rules", "src/.rsync-filter", 0);
        scene.run(&line).ok();
        assert!(scene.path("dst/d/g").exists() && !scene.path("dst/f").exists());
        scene.clean();
        // Nothing is deleted below the directory of a refused one.
        std::fs::remove_file(scene.path("src/.rsync-filter")).unwrap();
        scene.link("../../rules", "src/d/.rsync-filter", OTHER);
        std::fs::create_dir(scene.path("dst/d")).unwrap();
        own("dst/d/own");
        own("dst/own");
        scene.run(&format!("{line} --delete")).expect(23).says(&["belongs to user 54321"]);
        assert!(scene.path("dst/f").exists() && scene.path("dst/d/g").exists());
        assert!(scene.path("dst/d/own").exists() && !scene.path("dst/own").exists());
        std::fs::remove_file(scene.path("src/d/.rsync-filter")).unwrap();
        scene.clean();
        // In the target: what it may protect stays.
        scene.link("../rules", "dst/.rsync-filter", OTHER);
        own("dst/own");
        let line = format!("{line} --delete");
        scene.run(&line).expect(23).says(&["belongs to user 54321"]);
        assert!(scene.path("dst/own").exists());
        scene.link("../rules", "dst/.rsync-filter", 0);
        scene.run(&line).ok();
        assert!(scene.path("dst/own").exists() && scene.path("dst/d/g").exists());
        scene.clean();
    }
}

#[test]
fn confined_to_a_folder() {
    let Some(scene) = scene() else { return };
    scene.link("../real", "dst/out", 0);
    scene.link("dst", "in", 0);
    std::fs::write(scene.path("names"), "f\n").unwrap();
    let confined = |line: &str| scene.run(&line.replacen(" ", " --confine-root=HERE/dst ", 1));
    for line in [
        "sync -a src/ real/",
        "sync -a src/ dst/out/",
        "sync -a src/ dst/../real/new/",
        "sync -a --log-file=real/log src/ dst/",
        "sync -a --temp-dir=HERE/real src/ dst/",
        "sync -a --link-dest=HERE/real src/ dst/",
        "sync -a --files-from=names src/ dst/",
        "sync -a --exclude-from=names src/ dst/",
        "sync -a '--filter=. names' src/ dst/",
    ] {
        let run = confined(line);
        assert_ne!(run.code, 0, "{run}");
        run.says(&["leads out of"]);
        assert!(!scene.has("real") && !scene.path("dst/f").exists(), "{run}");
    }
    for line in
        ["sync -a src/ dst/", "sync -a src/ in/new/", "sync -a --log-file=dst/log src/ dst/"]
    {
        confined(line).ok();
    }
    assert!(scene.path("dst/new/d/g").exists() && scene.path("dst/log").exists());
    let refused = |line: &str| scene.run(line).expect(1).err();
    assert!(refused("sync --confine-root=dst -a src/ dst/").contains("absolute"));
    let both = refused("sync --confine-root=HERE/dst --insecure-links -a src/ dst/");
    assert!(both.contains("cannot be used together"));
    scene.run("sync --confine-root=/ -a src/ real/").ok();
}

#[test]
fn an_ordinary_user_follows_only_root_and_itself() {
    let Some(scene) = scene() else { return };
    if !crate::common::have("setpriv", "an ordinary user") {
        return;
    }
    let own = |name: &str| lchown(scene.path(name), Some(1_234), Some(1_234)).unwrap();
    own("real");
    let reach = |path: &Path| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    reach(scene.0.path());
    let run = |line: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=1234", "--regid=1234", "--clear-groups"]).arg(program());
        command.args(split(line)).current_dir(scene.0.path());
        run_fed(command.env("XDG_STATE_HOME", "/dev/null"), b"")
    };
    for (uid, code) in [(OTHER, 3), (1_234, 0), (0, 0)] {
        scene.link("real", "lk", uid);
        run("sync -r src/ lk/").expect(code);
    }
}

#[test]
fn descriptors_are_paths() {
    let scene = Scene::new();
    scene.fed("sync -a --files-from=/dev/stdin src/ dst/", b"f\n").ok();
    assert!(scene.path("dst/f").exists());
    scene.fed("sync -a --exclude-from=/dev/fd/0 src/ dst/", b"d\n").ok();
    assert!(!scene.path("dst/d").exists());
    let run = scene.run("sync -a --joblog=/dev/stderr src/ dst/");
    run.ok().says(&["d/g"]);
}
