//! Extended attributes, ACLs and capabilities as bytes, and which of them a place supports.

use rustix::fs::XattrFlags;
use std::collections::BTreeMap;
use std::path::Path;

pub const ACCESS: &str = "system.posix_acl_access";
pub const DEFAULT: &str = "system.posix_acl_default";
pub const CAPABILITY: &str = "security.capability";

/// All attributes of an entry that a copy should carry, a symlink's own included.
pub fn read_all(path: &Path) -> std::io::Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut names = vec![0_u8; 65536];
    let used = match rustix::fs::llistxattr(path, &mut names) {
        Ok(used) => used,
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => return Ok(found),
        Err(error) => return Err(error.into()),
    };
    let mut value = vec![0_u8; 65536];
    for name in names[..used].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let kept = [&b"user."[..], b"trusted.", b"security.capability", b"system.posix_acl"];
        // security.selinux and the like belong to the machine; XFS shows its ACLs twice.
        let twice = name.starts_with(b"trusted.SGI_ACL_");
        if twice || !kept.iter().any(|start| name.starts_with(start)) {
            continue;
        }
        let size = rustix::fs::lgetxattr(path, name, &mut value)?;
        found.insert(name.to_vec(), value[..size].to_vec());
    }
    Ok(found)
}

pub fn set(path: &Path, name: &str, value: &[u8]) -> std::io::Result<()> {
    Ok(rustix::fs::lsetxattr(path, name, value, XattrFlags::empty())?)
}

pub fn remove(path: &Path, name: &[u8]) -> std::io::Result<()> {
    Ok(rustix::fs::lremovexattr(path, name)?)
}

/// A POSIX ACL in the kernel's form (linux/posix_acl_xattr.h): the three classes, one named user,
/// one named group, and the mask.
pub fn acl(owner: u16, user: (u32, u16), group: (u32, u16), mask: u16, other: u16) -> Vec<u8> {
    const NOBODY: u32 = u32::MAX;
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    let entries = [
        (0x01_u16, owner, NOBODY),
        (0x02, user.1, user.0),
        (0x04, group.1, NOBODY),
        (0x08, group.1, group.0),
        (0x10, mask, NOBODY),
        (0x20, other, NOBODY),
    ];
    for (tag, perm, id) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(perm.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

/// A file capability set in the kernel's form (linux/capability.h, revision 2).
pub fn capability(permitted: u32) -> Vec<u8> {
    [0x0200_0001_u32, permitted, 0, 0, 0].iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Attributes that entries may have at a place, determined by trying.
#[derive(Clone, Copy, Debug)]
pub struct Features {
    pub user: bool,
    pub trusted: bool,
    pub capability: bool,
    pub acl: bool,
    pub nodes: bool,
    pub owners: bool,
}

impl Features {
    pub fn probe(dir: &Path) -> Features {
        use rustix::fs::{CWD, FileType, Mode};
        let (file, node) = (dir.join(".probe"), dir.join(".node"));
        std::fs::write(&file, b"x").unwrap();
        let null = rustix::fs::makedev(1, 3);
        let mode = Mode::from_raw_mode(0o600);
        let features = Features {
            user: set(&file, "user.probe", b"1").is_ok(),
            trusted: set(&file, "trusted.probe", b"1").is_ok(),
            capability: set(&file, CAPABILITY, &capability(1 << 13)).is_ok(),
            acl: set(&file, ACCESS, &acl(6, (1000, 4), (1000, 4), 6, 0)).is_ok(),
            nodes: rustix::fs::mknodat(CWD, &node, FileType::CharacterDevice, mode, null).is_ok(),
            owners: std::os::unix::fs::lchown(&file, Some(1000), Some(1000)).is_ok(),
        };
        let _ = std::fs::remove_file(&file);
        let _ = std::fs::remove_file(&node);
        features
    }
}
