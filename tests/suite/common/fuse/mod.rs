//! FUSE file systems for tests: mounting, and answering the kernel's requests on a thread. Protocol of the
//! kernel's `include/uapi/linux/fuse.h`, version 7.31. Unknown requests are answered with ENOSYS.

pub mod memory;
pub mod slow;

use super::is_root;
use super::machine::Undo;
use rustix::io::{FdFlags, fcntl_setfd};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;

pub const ENOENT: i32 = 2;
pub const ENOSYS: i32 = 38;
pub const ROOT: u64 = 1;

/// Numbers of operations.
pub mod op {
    pub const LOOKUP: u64 = 1;
    pub const FORGET: u64 = 2;
    pub const GETATTR: u64 = 3;
    pub const SETATTR: u64 = 4;
    pub const READLINK: u64 = 5;
    pub const SYMLINK: u64 = 6;
    pub const MKNOD: u64 = 8;
    pub const MKDIR: u64 = 9;
    pub const UNLINK: u64 = 10;
    pub const RMDIR: u64 = 11;
    pub const RENAME: u64 = 12;
    pub const LINK: u64 = 13;
    pub const OPEN: u64 = 14;
    pub const READ: u64 = 15;
    pub const WRITE: u64 = 16;
    pub const STATFS: u64 = 17;
    pub const RELEASE: u64 = 18;
    pub const FSYNC: u64 = 20;
    pub const FLUSH: u64 = 25;
    pub const INIT: u64 = 26;
    pub const OPENDIR: u64 = 27;
    pub const READDIR: u64 = 28;
    pub const RELEASEDIR: u64 = 29;
    pub const FSYNCDIR: u64 = 30;
    pub const CREATE: u64 = 35;
    pub const INTERRUPT: u64 = 36;
    pub const BATCH_FORGET: u64 = 42;
    pub const RENAME2: u64 = 45;
    pub const TMPFILE: u64 = 51;
}

/// A request of the kernel.
pub struct Request<'a> {
    pub op: u64,
    pub node: u64,
    pub uid: u64,
    pub gid: u64,
    /// The thread that waits for the answer.
    pub pid: u64,
    /// Payload after the header.
    pub body: &'a [u8],
}

impl Request<'_> {
    /// The NUL-terminated names from a place of the body on.
    pub fn names(&self, at: usize) -> impl Iterator<Item = Vec<u8>> {
        self.body[at..].split(|byte| *byte == 0).map(<[u8]>::to_vec)
    }
}

/// A file system.
pub trait Answers: Send + 'static {
    /// The answer to a request, or its errno; `None` where none is expected.
    fn answer(&mut self, request: &Request<'_>) -> Option<Result<Vec<u8>, i32>>;

    /// Called before an answer is sent: a slow file system waits here.
    fn pace(&mut self, _request: &Request<'_>, _answer: &[u8]) {}
}

/// A mounted one; its server's threads end when it is unmounted.
pub struct Mount {
    root: PathBuf,
    _undo: Undo,
}

impl Mount {
    /// Mounts one with these options (`ro`, `rw`). An error says why that is not possible here.
    pub fn new(root: PathBuf, options: &str, answers: impl Answers) -> Result<Mount, String> {
        Mount::with(root, options, vec![answers])
    }

    /// The same with a thread for each of these, which answer side by side.
    pub fn with(root: PathBuf, options: &str, answers: Vec<impl Answers>) -> Result<Mount, String> {
        if !is_root() {
            return Err("needs the superuser".to_owned());
        }
        let device = File::options().read(true).write(true).open("/dev/fuse");
        let device = device.map_err(|error| format!("/dev/fuse: {error}"))?;
        std::fs::create_dir(&root).unwrap();
        let undo = Undo::new(&format!("umount -l '{}'", root.display()));
        // mount(8) hands the number on to the kernel, so it has to have the descriptor.
        fcntl_setfd(&device, FdFlags::empty()).unwrap();
        let fd = device.as_raw_fd();
        let options =
            format!("fd={fd},rootmode=40000,user_id=0,group_id=0,default_permissions,{options}");
        let mut mount = Command::new("mount");
        mount.args(["-i", "-t", "fuse", "-o", &options, "test"]).arg(&root);
        let mounted = mount.output();
        fcntl_setfd(&device, FdFlags::CLOEXEC).unwrap();
        let mounted = mounted.map_err(|error| format!("mount: {error}"))?;
        if !mounted.status.success() {
            return Err(String::from_utf8_lossy(&mounted.stderr).trim().to_owned());
        }
        for answers in answers {
            let device = device.try_clone().unwrap();
            std::thread::spawn(move || serve(device, answers));
        }
        Ok(Mount { root, _undo: undo })
    }

    pub fn path(&self) -> &Path {
        &self.root
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }
}

/// Answers until the device is gone.
fn serve(mut device: File, mut answers: impl Answers) {
    let mut buffer = vec![0; (1 << 20) + 4096];
    loop {
        let length = match device.read(&mut buffer) {
            Ok(length) => length,
            // The request was given up before it was read.
            Err(error) if error.raw_os_error() == Some(ENOENT) => continue,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let (head, body) = buffer[..length].split_at(40);
        let request = Request {
            op: number(head, 4, 4),
            node: number(head, 16, 8),
            uid: number(head, 24, 4),
            gid: number(head, 28, 4),
            pid: number(head, 32, 4),
            body,
        };
        let Some(answer) = answers.answer(&request) else { continue };
        if let Ok(data) = &answer {
            answers.pace(&request, data);
        }
        let (error, data) = match answer {
            Ok(data) => (0, data),
            Err(error) => (-error, Vec::new()),
        };
        let mut reply = Vec::with_capacity(16 + data.len());
        reply.extend((16 + data.len() as u32).to_ne_bytes());
        reply.extend(error.to_ne_bytes());
        reply.extend(&head[8..16]);
        reply.extend(data);
        // A request that was given up has no one to hear the answer.
        let _ = device.write(&reply);
    }
}

/// The answer to INIT, with flags of `linux/fuse.h`.
pub fn init(flags: u64) -> Vec<u8> {
    words(&[
        (7, 4),
        (31, 4),
        (128 << 10, 4), // read ahead
        (flags, 4),
        (0, 4),
        (128 << 10, 4), // largest write
        (1, 4),         // granularity of times, ns
        (0, 4),
        (0, 8 + 8 + 8 + 8),
    ])
}

/// The answer to STATFS: room that is not known.
pub fn room() -> Vec<u8> {
    words(&[(1 << 20, 8), (1 << 19, 8), (1 << 19, 8), (0, 8), (0, 8), (4096, 4), (255, 4)])
        .into_iter()
        .chain(words(&[(4096, 4), (0, 4 + 24)]))
        .collect()
}

/// Numbers with their widths in bytes, as the machine has them; wider than 8 only for zeros.
pub fn words(fields: &[(u64, usize)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (value, width) in fields {
        let mut field = value.to_le_bytes().to_vec();
        field.resize(*width, 0);
        bytes.extend(field);
    }
    bytes
}

/// The number at a place.
pub fn number(bytes: &[u8], at: usize, width: usize) -> u64 {
    bytes[at..at + width].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}
