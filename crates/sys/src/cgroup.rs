//! Control groups of this process, versions 1 and 2 (cgroups(7)): folders of its own groups and their
//! ancestors.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A mounted hierarchy with the position of this process in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// Controllers of version 1 (`cpu`, `blkio`; `name=systemd`); `None` for version 2, in which groups list
    /// their controllers.
    pub controllers: Option<Vec<String>>,
    /// Mount point of its root, or of the visible part.
    pub mount: PathBuf,
    /// Folder of this process's group; `mount` if the group is not visible.
    pub own: PathBuf,
}

impl Hierarchy {
    /// True for version 1 with this controller.
    pub fn controls(&self, controller: &str) -> bool {
        let named = |list: &Vec<String>| list.iter().any(|name| name == controller);
        self.controllers.as_ref().is_some_and(named)
    }

    /// Folders of the own group and its ancestors, up to the mount point.
    pub fn upwards(&self) -> impl Iterator<Item = &Path> {
        self.own.ancestors().take_while(|folder| folder.starts_with(&self.mount))
    }
}

/// Hierarchies of this process, version 1 first. Empty without cgroups.
pub fn hierarchies() -> Vec<Hierarchy> {
    hierarchies_of(&std::fs::read("/proc/self/cgroup").unwrap_or_default())
}

/// Groups of a process or thread as listed by the kernel; the text changes when it is moved.
pub fn groups_of(tid: u32) -> Option<Vec<u8>> {
    std::fs::read(format!("/proc/{tid}/cgroup")).ok()
}

/// Hierarchies, as visible to this process, with the position of a process that has these groups.
pub fn hierarchies_of(groups: &[u8]) -> Vec<Hierarchy> {
    let mounts = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let mut found = parse(groups, &mounts);
    for hierarchy in &mut found {
        // Bind-mounted from outside the namespace, or stale after a move: use the visible part.
        if !hierarchy.own.is_dir() {
            hierarchy.own = hierarchy.mount.clone();
        }
    }
    found
}

/// Parses /proc/self/cgroup (cgroups(7)) and /proc/self/mountinfo (proc_pid_mountinfo(5)).
pub fn parse(groups: &[u8], mounts: &[u8]) -> Vec<Hierarchy> {
    let mut found: Vec<Hierarchy> = Vec::new();
    for line in mounts.split(|byte| *byte == b'\n') {
        let Some(mount) = CgroupMount::parse(line) else { continue };
        let Some(path) = groups.split(|byte| *byte == b'\n').find_map(|line| mount.group(line))
        else {
            continue;
        };
        let own = mount.folder(path);
        let hierarchy = Hierarchy { controllers: mount.controllers, mount: mount.point, own };
        // If mounted twice, the first mount shows at least as much.
        let twin = found.iter().position(|other| other.controllers == hierarchy.controllers);
        match twin {
            Some(at) if found[at].own == found[at].mount => found[at] = hierarchy,
            Some(_) => {}
            None => found.push(hierarchy),
        }
    }
    found.sort_by_key(|hierarchy| hierarchy.controllers.is_none());
    found
}

/// A mount of a hierarchy.
struct CgroupMount {
    controllers: Option<Vec<String>>,
    /// The mounted group.
    root: PathBuf,
    point: PathBuf,
}

impl CgroupMount {
    fn parse(line: &[u8]) -> Option<CgroupMount> {
        let mut fields = line.split(|byte| *byte == b' ');
        let (root, point) = (fields.nth(3)?, fields.next()?);
        // Optional fields, a dash, the type, the source, the options of the file system.
        let mut after = fields.skip_while(|field| *field != b"-");
        let (kind, options) = (after.nth(1)?, after.nth(1)?);
        let controllers = match kind {
            b"cgroup2" => None,
            b"cgroup" => Some(names(options).filter(|name| name != "rw" && name != "ro").collect()),
            _ => return None,
        };
        Some(CgroupMount { controllers, root: unescaped(root), point: unescaped(point) })
    }

    /// Path of this process's group in this hierarchy, if a line of /proc/self/cgroup describes it:
    /// `4:memory:/a/b`, in version 2 `0::/a/b`.
    fn group<'a>(&self, line: &'a [u8]) -> Option<&'a Path> {
        let mut fields = line.splitn(3, |byte| *byte == b':');
        let (number, listed, path) = (fields.next()?, fields.next()?, fields.next()?);
        let same = match &self.controllers {
            None => number == b"0" && listed.is_empty(),
            Some(own) => !listed.is_empty() && names(listed).all(|name| own.contains(&name)),
        };
        same.then(|| Path::new(std::ffi::OsStr::from_bytes(path)))
    }

    /// Folder of a group; the mount point for a group outside of it (`/..` if hidden by a namespace).
    fn folder(&self, group: &Path) -> PathBuf {
        let is_plain = |path: &Path| {
            path.components().all(|part| !matches!(part, std::path::Component::ParentDir))
        };
        match group.strip_prefix(&self.root) {
            Ok(below) if is_plain(below) && below.as_os_str().is_empty() => self.point.clone(),
            Ok(below) if is_plain(below) => self.point.join(below),
            _ => self.point.clone(),
        }
    }
}

fn names(list: &[u8]) -> impl Iterator<Item = String> {
    let names = list.split(|byte| *byte == b',').filter(|name| !name.is_empty());
    names.map(|name| String::from_utf8_lossy(name).into_owned())
}

/// Decodes a path of mountinfo, in which a blank is `\040`.
pub(crate) fn unescaped(text: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        if let (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..]) = (first, after) {
            path.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
            rest = &after[3..];
        } else {
            path.push(*first);
            rest = after;
        }
    }
    OsString::from_vec(path).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(groups: &str, mounts: &str) -> Hierarchy {
        let found = parse(groups.as_bytes(), mounts.as_bytes());
        assert_eq!(found.len(), 1, "{found:?}");
        found.into_iter().next().unwrap()
    }

    #[test]
    fn version_1_next_to_version_2() {
        let groups = "7:blkio:/\n4:memory:/jobs/a\n2:cpu,cpuacct:/x:y\n1:name=systemd:/\n0::/\n";
        let mounts = "22 27 0:21 / /proc rw,relatime - proc proc rw\n\
        32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
        35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
        38 31 0:35 / /sys/fs/cgroup/blkio rw,relatime - cgroup cgroup rw,blkio\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n";
        let found = parse(groups.as_bytes(), mounts.as_bytes());
        assert_eq!(found.len(), 4, "{found:?}");
        let of = |name: &str| found.iter().find(|found| found.controls(name)).unwrap();
        assert_eq!(of("memory").own, Path::new("/sys/fs/cgroup/memory/jobs/a"));
        assert_eq!(of("cpuacct").own, Path::new("/sys/fs/cgroup/cpu,cpuacct/x:y"));
        assert_eq!(of("blkio").own, of("blkio").mount);
        assert_eq!(found[3].controllers, None);
        let folders: Vec<_> = of("memory").upwards().collect();
        assert_eq!(
            folders,
            ["/sys/fs/cgroup/memory/jobs/a", "/sys/fs/cgroup/memory/jobs", "/sys/fs/cgroup/memory"]
                .map(Path::new)
        );
    }

    #[test]
    fn containers() {
        // Without a cgroup namespace the container's own group is mounted.
        let mount = "50 49 0:26 /docker/ab /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n";
        let found = one("0::/docker/ab/init\n", mount);
        assert_eq!(found.own, Path::new("/sys/fs/cgroup/init"));
        assert_eq!(one("0::/docker/ab\n", mount).own, Path::new("/sys/fs/cgroup"));
        // Moved out of the group; hidden by a namespace.
        assert_eq!(one("0::/other\n", mount).own, Path::new("/sys/fs/cgroup"));
        let hidden = "50 49 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        assert_eq!(one("0::/../../user\n", hidden).own, Path::new("/sys/fs/cgroup"));
        let blank = "50 49 0:26 / /a\\040b rw - cgroup2 cgroup rw\n";
        assert_eq!(one("0::/c\n", blank).own, Path::new("/a b/c"));
    }

    #[test]
    fn odd_texts_are_nothing() {
        for text in ["", "\n\n", "1 2 3", "0::", ":::::", "a b c d e f - cgroup", "x - cgroup2 y z"]
        {
            assert!(parse(text.as_bytes(), text.as_bytes()).is_empty(), "{text}");
        }
    }

    #[test]
    fn this_process_is_somewhere() {
        for found in hierarchies() {
            assert!(found.own.starts_with(&found.mount), "{found:?}");
            assert!(found.own.is_dir(), "{found:?}");
        }
    }
}
