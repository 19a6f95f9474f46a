//! Generates random trees from a seed: types, sizes, modes, times, attributes and names of all kinds. Equal
//! seeds and features give equal trees.

use super::snapshot::Snapshot;
use super::xattr::{self, Features};
use fastrand::Rng;
use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps};
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Kind of tree.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub entries: usize,
    /// Names with newlines, leading dashes, bytes that are not UTF-8, 255 bytes.
    pub hostile: bool,
    /// Largest file, in bytes.
    pub size_max: u64,
    /// Names of one inode.
    pub hard_links: bool,
    /// Files with holes and files full of zeroes.
    pub holes: bool,
    pub features: Features,
}

impl Plan {
    /// Everything there is, in a tree of moderate size.
    pub fn full(features: Features) -> Plan {
        let size_max = 3 << 20;
        Plan { entries: 90, hostile: true, size_max, hard_links: true, holes: true, features }
    }
}

/// Grows a tree at `root`, which is made.
pub fn grow(root: &Path, seed: u64, plan: &Plan) {
    let mut grower = Grower { rng: Rng::with_seed(seed), plan, files: Vec::new() };
    std::fs::create_dir_all(root).unwrap();
    let mut dirs = vec![root.to_owned()];
    for number in 0..plan.entries {
        let parent = dirs[grower.rng.usize(..dirs.len())].clone();
        let path = parent.join(grower.name(number));
        if grower.rng.u8(..100) < 18 {
            std::fs::create_dir(&path).unwrap();
            dirs.push(path);
        } else {
            grower.leaf(&path);
        }
    }
    // Attributes of directories last: a default ACL would change what is made below it, and
    // every entry changes its parent's time.
    for dir in dirs.iter().rev() {
        grower.attributes(dir, FileType::Directory);
    }
}

/// Sets a modification time, of a symlink itself as well.
pub fn set_mtime(path: &Path, seconds: i64, nanoseconds: u32) {
    let time = Timespec { tv_sec: seconds, tv_nsec: i64::from(nanoseconds) };
    let times = Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// Gives everything that was made in the last minutes a time long ago: a source and a target that
/// were changed within the same second are the same to a program that compares seconds, as rsync does.
pub fn age(root: &Path) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let recent = i64::try_from(now.as_secs()).unwrap() - 600;
    for (number, (name, entry)) in (0_u32..).zip(Snapshot::of(root).entries.iter().rev()) {
        if (recent..recent + 1000).contains(&entry.mtime_s) {
            let path =
                if name == b"./" { root.to_owned() } else { root.join(OsStr::from_bytes(name)) };
            set_mtime(&path, 1_500_000_000 + i64::from(number) * 7, number);
        }
    }
}

pub struct Grower<'a> {
    pub rng: Rng,
    pub plan: &'a Plan,
    /// Regular files and nodes that may get further names.
    pub files: Vec<PathBuf>,
}

impl Grower<'_> {
    /// A fresh name; `number` keeps it unique.
    pub fn name(&mut self, number: usize) -> OsString {
        if !self.plan.hostile || self.rng.bool() {
            return format!("n{number}").into();
        }
        let tag = number.to_string().into_bytes();
        let odd: &[&[u8]] = &[
            b"-rf --delete ",
            b"--",
            b"-x",
            b" two  spaces ",
            b"line\nbreak\n",
            b"$HOME `id` ;",
            b"not\xff\xfeutf8\x80",
            b"back\\slash\\",
            b"[a]*?{b,c}",
            b"quote'\"",
            b"\xe9\x81\x8b\xe3\x81\xb6",
            b"tab\t\x01\x7f",
            b".hidden",
            b"~",
            b"#hash",
            b"a:b",
            b".~tmp~",
        ];
        let mut name = if self.rng.u8(..10) == 0 {
            vec![b'L'; 255 - tag.len()]
        } else {
            odd[self.rng.usize(..odd.len())].to_vec()
        };
        name.extend(tag);
        OsString::from_vec(name)
    }

    /// Anything but a directory.
    pub fn leaf(&mut self, path: &Path) {
        let kind = match self.rng.u8(..100) {
            0..=59 => FileType::RegularFile,
            60..=69 if self.plan.hard_links && self.any_file() => {
                let old = &self.files[self.rng.usize(..self.files.len())];
                std::fs::hard_link(old, path).unwrap();
                return;
            }
            60..=84 => FileType::Symlink,
            85..=89 => FileType::Fifo,
            90..=93 => FileType::Socket,
            94..=96 => FileType::CharacterDevice,
            _ => FileType::BlockDevice,
        };
        let kind = match kind {
            FileType::CharacterDevice | FileType::BlockDevice if !self.plan.features.nodes => {
                FileType::Fifo
            }
            kind => kind,
        };
        match kind {
            FileType::RegularFile => self.content(path),
            FileType::Symlink => {
                let targets: [&[u8]; 6] =
                    [b"nowhere/at all", b"/etc/passwd", b".", b"..", b"n1", b"\xff\n$x"];
                let target = OsString::from_vec(targets[self.rng.usize(..6)].to_vec());
                std::os::unix::fs::symlink(target, path).unwrap();
            }
            _ => {
                let device = rustix::fs::makedev(1, self.rng.u32(3..9));
                let mode = Mode::from_raw_mode(0o600);
                rustix::fs::mknodat(CWD, path, kind, mode, device).unwrap();
            }
        }
        if kind != FileType::Symlink {
            self.files.push(path.to_owned());
        }
        self.attributes(path, kind);
    }

    /// Whether there is a file to link to; forgets those that are gone.
    fn any_file(&mut self) -> bool {
        self.files.retain(|path| path.symlink_metadata().is_ok_and(|meta| !meta.is_dir()));
        !self.files.is_empty()
    }

    /// Fills a regular file anew.
    pub fn content(&mut self, path: &Path) {
        let max = self.plan.size_max;
        let size = match self.rng.u8(..100) {
            0..=9 => 0,
            10..=19 => 1,
            20..=69 => self.rng.u64(2..20_000),
            70..=79 => 4096 * self.rng.u64(1..65),
            80..=93 => self.rng.u64(20_000..400_000),
            _ => self.rng.u64(1..=max),
        }
        .min(max);
        let file = File::create(path).unwrap();
        if self.plan.holes && size > 100_000 && self.rng.bool() {
            file.set_len(size).unwrap();
            for _ in 0..self.rng.u8(..4) {
                let at = self.rng.u64(..size);
                let room = (size - at).min(70_000);
                file.write_all_at(&self.bytes(room), at).unwrap();
            }
            if self.rng.bool() {
                file.write_all_at(&vec![0; 50_000], size / 2).unwrap(); // zeroes, not a hole
            }
        } else {
            file.write_all_at(&self.bytes(size), 0).unwrap();
        }
    }

    fn bytes(&mut self, size: u64) -> Vec<u8> {
        let mut bytes = vec![0_u8; usize::try_from(size).unwrap()];
        self.rng.fill(&mut bytes);
        bytes
    }

    /// Owner, mode, attributes, ACLs and times, in the order in which one does not undo another.
    pub fn attributes(&mut self, path: &Path, kind: FileType) {
        let features = self.plan.features;
        if features.owners && self.rng.bool() {
            let ids = [0, 1000, 1001, 12_345, 65_534];
            let (uid, gid) = (ids[self.rng.usize(..5)], ids[self.rng.usize(..5)]);
            std::os::unix::fs::lchown(path, Some(uid), Some(gid)).unwrap();
        }
        if kind != FileType::Symlink {
            self.mode(path, kind);
        }
        self.xattrs(path, kind);
        let seconds = match self.rng.u8(..10) {
            0 => self.rng.i64(-2_000_000_000..0),            // from 1906
            1 => self.rng.i64(2_200_000_000..8_000_000_000), // beyond 2038
            _ => self.rng.i64(900_000_000..1_700_000_000),
        };
        set_mtime(path, seconds, self.rng.u32(..1_000_000_000));
    }

    fn mode(&mut self, path: &Path, kind: FileType) {
        let modes: &[u32] = match kind {
            FileType::Directory => &[0o755, 0o700, 0o750, 0o1777, 0o2775, 0o711, 0o555],
            _ => &[0o644, 0o600, 0o755, 0o444, 0o4755, 0o2755, 0o6711, 0o640, 0o000, 0o1644],
        };
        let mut mode = modes[self.rng.usize(..modes.len())];
        if !features_root(&self.plan.features) {
            mode |= 0o600 | if kind == FileType::Directory { 0o100 } else { 0 };
        }
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn xattrs(&mut self, path: &Path, kind: FileType) {
        let features = self.plan.features;
        let plain = matches!(kind, FileType::RegularFile | FileType::Directory);
        let bits = self.rng.u8(..);
        if features.user && plain && bits & 3 == 0 {
            let sizes = [0, 1, 20, 1500];
            let value = vec![b'v'; sizes[self.rng.usize(..4)]];
            xattr::set(path, "user.hakobu", &value).unwrap();
            xattr::set(path, "user.\u{e9}t\u{e9} 2", b"\0binary\xff").unwrap();
        }
        if features.trusted && plain && bits & 12 == 4 {
            xattr::set(path, "trusted.mark", &[bits]).unwrap();
        }
        if features.capability && kind == FileType::RegularFile && bits & 48 == 16 {
            xattr::set(path, xattr::CAPABILITY, &xattr::capability(1 << 10)).unwrap();
        }
        if features.acl && plain && bits & 192 == 64 {
            let acl = xattr::acl(6, (1000, 4), (12_345, 5), self.rng.u16(..8), 4);
            xattr::set(path, xattr::ACCESS, &acl).unwrap();
        }
        if features.acl && kind == FileType::Directory && bits & 192 == 128 {
            xattr::set(path, xattr::DEFAULT, &xattr::acl(7, (1001, 6), (0, 5), 7, 5)).unwrap();
        }
    }
}

fn features_root(features: &Features) -> bool {
    features.owners
}

/// Changes some bytes of a file without changing its size; false when it is empty.
pub fn scribble(path: &Path, rng: &mut Rng) -> bool {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let size = file.metadata().unwrap().len();
    if size == 0 {
        return false;
    }
    let at = rng.u64(..size);
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[!byte[0]], at).unwrap();
    true
}
