//! Paths through symlinks of several owners, with each option.

use super::*;
use crate::meta;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::{lchown, symlink};
use std::path::PathBuf;

/// A temporary folder, removed when dropped.
struct Area(PathBuf);

impl Area {
    fn new(name: &str) -> Area {
        let path = std::env::temp_dir().join(format!("hakobu-links-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("real/sub")).unwrap();
        std::fs::write(path.join("real/f"), "content").unwrap();
        Area(path)
    }

    /// Creates a symlink, with an owner if permitted.
    fn link(&self, to: &str, name: &str, uid: Option<u32>) {
        symlink(to, self.0.join(name)).unwrap();
        if let Some(uid) = uid {
            lchown(self.0.join(name), Some(uid), None).unwrap();
        }
    }

    fn c(&self, name: &str) -> CString {
        c_path(&self.0.join(name)).unwrap()
    }

    fn read(&self, links: &Links, name: &str) -> Result<String> {
        let mut text = String::new();
        File::from(links.open_read(CWD, &self.c(name))?).read_to_string(&mut text)?;
        Ok(text)
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn code<T>(result: Result<T>) -> Option<i32> {
    result.err().and_then(|error| error.raw_os_error())
}

#[test]
fn own_links_are_followed_wherever_they_stand() {
    let area = Area::new("own");
    area.link("real", "dir", None);
    area.link("real/f", "file", None);
    area.link(area.0.join("real").to_str().unwrap(), "absolute", None);
    area.link("dir/../dir/f", "chain", None);
    area.link("real/new", "dangling", None);
    area.link("loop", "loop", None);
    let links = Links::Trusted;
    for name in ["real/f", "dir/f", "file", "absolute/f", "chain", "real/sub/../f", "./dir//f"] {
        assert_eq!(area.read(&links, name).unwrap(), "content", "{name}");
    }
    for name in ["dir", "absolute/", "real/sub/..", "dir/.", "dir/sub"] {
        links.open_dir(CWD, &area.c(name)).unwrap();
    }
    assert_eq!(code(links.open_dir(CWD, &area.c("file"))), Some(libc::ENOTDIR));
    assert_eq!(code(links.open_dir(CWD, &area.c("none"))), Some(libc::ENOENT));
    assert_eq!(code(links.open_dir(CWD, &area.c("none/none"))), Some(libc::ENOENT));
    assert_eq!(code(links.open_dir(CWD, c"")), Some(libc::ENOENT));
    assert_eq!(code(area.read(&links, "real/f/x")), Some(libc::ENOTDIR));
    assert_eq!(code(area.read(&links, "loop")), Some(libc::ELOOP));
    // A file created through a dangling link appears at the link's target.
    let written = |append| {
        let fd = links.open_write(&area.0.join("dangling"), append).unwrap();
        File::from(fd).write_all(b"12").unwrap();
        std::fs::read_to_string(area.0.join("real/new")).unwrap()
    };
    assert_eq!([written(false), written(true), written(false)], ["12", "1212", "12"]);
    links.make_dir(&area.0.join("dir/a/b"), 0o755, true).unwrap();
    assert!(area.0.join("real/a/b").is_dir());
    assert_eq!(code(links.make_dir(&area.0.join("x/y"), 0o755, false)), Some(libc::ENOENT));
    assert_eq!(code(links.make_dir(&area.0.join("real/f"), 0o755, false)), Some(libc::EEXIST));
}

#[test]
fn links_of_others_are_refused() {
    let area = Area::new("others");
    if !rustix::process::geteuid().is_root() {
        return;
    }
    area.link("real", "dir", Some(1234));
    area.link("dir", "chain", None);
    area.link("real/f", "file", Some(1234));
    area.link("real/new", "dangling", Some(1234));
    let refused = |result: Result<()>| {
        let error = result.expect_err("refused");
        assert!(RefusedLink::is(&error), "{error}");
        assert!(error.to_string().contains("belongs to user 1234"), "{error}");
    };
    let links = Links::Trusted;
    for name in ["dir/f", "file", "chain/f", "dir/../real/f"] {
        refused(area.read(&links, name).map(drop));
        assert_eq!(area.read(&Links::Any, name).unwrap(), "content", "{name}");
    }
    refused(links.open_dir(CWD, &area.c("dir/")).map(drop));
    refused(links.open_write(&area.0.join("dangling"), true).map(drop));
    refused(links.open_write(&area.0.join("dir/new"), false).map(drop));
    refused(links.make_dir(&area.0.join("dir/new"), 0o755, true).map(drop));
    assert!(!area.0.join("real/new").exists());
    Links::Any.make_dir(&area.0.join("dir/new"), 0o755, false).unwrap();
}

#[test]
fn a_path_may_be_confined() {
    let area = Area::new("confined");
    area.link("../f", "real/sub/up", None);
    area.link("/", "real/root", None);
    area.link("real", "dir", None);
    let links = Links::Within(area.0.join("dir"));
    for name in ["real/f", "real/sub/up", "dir/f", "real/sub/../f"] {
        assert_eq!(area.read(&links, name).unwrap(), "content", "{name}");
    }
    links.open_dir(CWD, &area.c("real")).unwrap();
    links.make_dir(&area.0.join("real/new"), 0o755, false).unwrap();
    for name in ["real/..", "real/root", "."] {
        let error = links.open_dir(CWD, &area.c(name)).expect_err("refused");
        assert!(RefusedLink::is(&error) && error.to_string().contains("leads out of"), "{error}");
    }
    assert!(
        links.open_write(&area.0.join("out"), false).is_err_and(|error| RefusedLink::is(&error))
    );
    assert!(!area.0.join("out").exists());
    links.open_dir(CWD, &area.c("none")).expect_err("outside");
    let nowhere = Links::Within(area.0.join("none"));
    nowhere.open_dir(CWD, &area.c("real")).expect_err("outside");
    Links::Within("/".into()).open_dir(CWD, &area.c(".")).unwrap();
}

#[test]
fn descriptors_have_paths() {
    use std::os::fd::AsRawFd;
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"piped").unwrap();
    drop(writer);
    let path = CString::new(format!("/dev/fd/{}", reader.as_raw_fd())).unwrap();
    let mut text = String::new();
    let fd = Links::Trusted.open_read(CWD, &path).unwrap();
    File::from(fd).read_to_string(&mut text).unwrap();
    assert_eq!(text, "piped");
    let area = Area::new("fd");
    let dir = File::open(area.0.join("real")).unwrap();
    let path = CString::new(format!("/proc/self/fd/{}/f", dir.as_raw_fd())).unwrap();
    Links::Trusted.open_read(CWD, &path).unwrap();
    Links::Within(area.0.clone()).open_read(CWD, &path).unwrap();
}

#[test]
fn paths_are_divided_before_the_last_name() {
    for (path, folder, name) in
        [("a", "", "a"), ("a/b/c", "a/b/", "c"), ("a/", "a/", ""), ("/a", "/", "a"), ("", "", "")]
    {
        assert_eq!(split(path.as_bytes()), (folder.as_bytes(), name.as_bytes()), "{path}");
    }
}

#[test]
fn names_are_found_through_no_symlink() {
    let path = std::env::temp_dir().join(format!("hakobu-below-{}", std::process::id()));
    std::fs::create_dir_all(path.join("d")).unwrap();
    std::fs::write(path.join("d/f"), "x").unwrap();
    std::os::unix::fs::symlink("d", path.join("l")).unwrap();
    let top = dir::open_root(&CString::new(path.to_str().unwrap()).unwrap()).unwrap();
    let size = |path: &[u8]| {
        let below = PathBelow::find(top.as_fd(), path).ok()?;
        Some(meta::of(below.dir(), below.name(), false).ok()?.size)
    };
    assert_eq!(size(b"d/f"), Some(1));
    assert!(size(b"d").is_some());
    for path in [&b"l/f"[..], b"../d/f", b"e/f", b"d/g", b"d\0/f"] {
        assert_eq!(size(path), None);
    }
    let typed = PathBelow::typed(&path.join("l/f")).unwrap();
    assert_eq!(meta::of(typed.dir(), typed.name(), false).unwrap().size, 1);
    std::fs::remove_dir_all(path).unwrap();
}

#[test]
fn nothing_above_is_reached() {
    let dir = std::env::temp_dir().join(format!("hakobu-beneath-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(dir.join("root/a/b")).unwrap();
    std::fs::write(dir.join("secret"), "secret").unwrap();
    std::fs::write(dir.join("root/a/b/f"), "f").unwrap();
    for (to, name) in [
        ("../secret", "root/up"),
        ("../../secret", "root/a/up"),
        ("/etc", "root/etc"),
        ("..", "root/out"),
        ("/proc/self/root", "root/magic"),
    ] {
        symlink(to, dir.join(name)).unwrap();
    }
    symlink("a/b", dir.join("root/inside")).unwrap();
    let root = std::fs::File::open(dir.join("root")).unwrap();
    let open_all = |how: &dyn Fn(&CStr, OpenPurpose) -> Result<OwnedFd>| {
        for path in [
            c"up",
            c"a/up",
            c"etc/passwd",
            c"out/secret",
            c"magic/etc/passwd",
            c"../secret",
            c"a/../../secret",
            c"/etc/passwd",
        ] {
            for purpose in [OpenPurpose::Reading, OpenPurpose::Looking, OpenPurpose::Appending] {
                assert!(how(path, purpose).is_err(), "{path:?} {purpose:?}");
            }
        }
        assert!(
            how(c"a/b/f", OpenPurpose::Reading).is_ok()
                && how(c"a", OpenPurpose::Directory).is_ok()
        );
        assert!(
            how(c"a/b/f", OpenPurpose::Looking).is_ok()
                && how(c"new", OpenPurpose::Appending).is_ok()
        );
        assert!(
            how(c"a/b/f", OpenPurpose::Directory).is_err()
                && how(c"no", OpenPurpose::Looking).is_err()
        );
    };
    open_all(&|path, purpose| open_beneath(root.as_fd(), path, purpose));
    open_all(&|path, purpose| {
        open_each(root.as_fd(), path.to_bytes(), purpose.flags(), Mode::empty())
    });
    assert!(open_beneath(root.as_fd(), c"inside/f", OpenPurpose::Reading).is_ok());
    assert!(open_beneath(root.as_fd(), c"", OpenPurpose::Directory).is_ok());
    assert_eq!(std::fs::read(dir.join("secret")).unwrap(), b"secret");
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn other_paths_through_mounts() {
    let text = b"22 1 8:1 / / rw - ext4 /dev/a rw\n\
                 30 22 8:1 /srv/a\\040b /mnt/x rw - ext4 /dev/a rw\n\
                 31 22 8:2 / /srv/a\\040b/other rw - ext4 /dev/b rw\n";
    let mounts = parsed(text);
    let paths = |path: &str| elsewhere(Path::new(path), &mounts).collect::<Vec<_>>();
    assert_eq!(paths("/mnt/x/c"), [PathBuf::from("/srv/a b/c")]);
    assert_eq!(paths("/srv/a b/c"), [PathBuf::from("/mnt/x/c")]);
    assert!(paths("/srv/a b/other/c").is_empty());
    assert!(paths("/srv/b").is_empty());
}

#[test]
fn a_directory_is_below_its_parents() -> Result<()> {
    let top = std::env::temp_dir().join(format!("hakobu-ancestors-{}", std::process::id()));
    std::fs::create_dir_all(top.join("a/b"))?;
    let name = CString::new(top.join("a/b").as_os_str().as_bytes()).unwrap();
    let fd = dir::open_root(&name)?;
    let found = ancestors(fd.as_fd())?;
    for path in [&top, &top.join("a"), &top.join("a/b"), Path::new("/")] {
        assert!(found.contains(&meta::identity(path)?), "{}", path.display());
    }
    std::fs::create_dir_all(top.join("c"))?;
    assert!(!found.contains(&meta::identity(&top.join("c"))?));
    std::fs::remove_dir_all(top)
}
