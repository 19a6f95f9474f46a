//! A file system in user space (FUSE) with one folder of files that can only be read, at a rate of
//! its own: a source that is slow by itself, and no disk. The protocol is that of the kernel's
//! `include/uapi/linux/fuse.h`, version 7.31; what is not needed is answered with ENOSYS.

use crate::common::is_root;
use crate::rig::tool;
use crate::undo::Undo;
use rustix::io::{FdFlags, fcntl_setfd};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const ENOENT: i32 = 2;
const ENOSYS: i32 = 38;
const ROOT: u64 = 1;
/// Seconds for which the kernel may believe what it was told.
const VALID_S: u64 = 3600;
/// 2020-09-13: older than any run.
const TIME_S: u64 = 1_600_000_000;

/// What is in it.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub files: u64,
    pub size_bytes: u64,
    /// All reads together.
    pub bytes_per_s: u64,
}

/// A mounted one; its server is a thread that ends when it is unmounted.
pub struct Mount {
    root: PathBuf,
    _undo: Undo,
}

impl Mount {
    pub fn new(root: PathBuf, shape: Shape) -> Result<Mount, String> {
        if !is_root() {
            return Err("needs the superuser".to_owned());
        }
        let device = File::options().read(true).write(true).open("/dev/fuse");
        let device = device.map_err(|error| format!("/dev/fuse: {error}"))?;
        std::fs::create_dir(&root).unwrap();
        let undo = Undo::new(&format!("umount -l {}", root.display()));
        // mount(8) hands the number on to the kernel, so it has to have the descriptor.
        fcntl_setfd(&device, FdFlags::empty()).unwrap();
        let options = "rootmode=40000,user_id=0,group_id=0,ro";
        let fd = device.as_raw_fd();
        let mounted =
            tool(&format!("mount -i -t fuse -o fd={fd},{options} slow {}", root.display()));
        fcntl_setfd(&device, FdFlags::CLOEXEC).unwrap();
        mounted?;
        std::thread::spawn(move || serve(device, shape));
        Ok(Mount { root, _undo: undo })
    }

    pub fn path(&self) -> &Path {
        &self.root
    }
}

/// Answers until the device is gone.
fn serve(mut device: File, shape: Shape) {
    let mut request = vec![0; 1 << 18];
    let mut free_at = Instant::now();
    loop {
        let Ok(length) = device.read(&mut request) else { return };
        let (head, rest) = request[..length].split_at(40);
        let answer = match answer(shape, number(head, 4, 4), number(head, 16, 8), rest) {
            Some(answer) => answer,
            None => continue,
        };
        if number(head, 4, 4) == READ
            && let Ok(data) = &answer
        {
            let takes = data.len() as f64 / shape.bytes_per_s as f64;
            // A pause between two requests is made up for, else the rate would be a little lower.
            let earliest = Instant::now() - Duration::from_millis(20);
            free_at = free_at.max(earliest) + Duration::from_secs_f64(takes);
            std::thread::sleep(free_at.saturating_duration_since(Instant::now()));
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

const LOOKUP: u64 = 1;
const FORGET: u64 = 2;
const GETATTR: u64 = 3;
const OPEN: u64 = 14;
const READ: u64 = 15;
const STATFS: u64 = 17;
const RELEASE: u64 = 18;
const INIT: u64 = 26;
const OPENDIR: u64 = 27;
const READDIR: u64 = 28;
const RELEASEDIR: u64 = 29;
const INTERRUPT: u64 = 36;
const BATCH_FORGET: u64 = 42;

/// The answer to a request about a node, or its error; `None` where none is expected.
fn answer(shape: Shape, code: u64, node: u64, rest: &[u8]) -> Option<Result<Vec<u8>, i32>> {
    Some(match code {
        INIT => Ok(words(&[
            (7, 4),
            (31, 4),
            (128 << 10, 4), // read ahead
            (0, 4),
            (0, 4),
            (128 << 10, 4), // largest write
            (1, 4),
            (0, 4),
            (0, 8 + 8 + 8 + 8),
        ])),
        LOOKUP => {
            let name = rest.split(|byte| *byte == 0).next().and_then(|n| str::from_utf8(n).ok());
            let file = name.and_then(|name| name.strip_prefix('f')?.parse::<u64>().ok());
            match file.filter(|file| node == ROOT && *file < shape.files) {
                None => Err(ENOENT),
                Some(file) => {
                    let node = file + 2;
                    let head = words(&[(node, 8), (0, 8), (VALID_S, 8), (VALID_S, 8), (0, 8)]);
                    Ok([head, attributes(shape, node)].concat())
                }
            }
        }
        GETATTR => Ok([words(&[(VALID_S, 8), (0, 8)]), attributes(shape, node)].concat()),
        OPEN | OPENDIR => Ok(vec![0; 16]),
        READ => {
            let (offset, size) = (number(rest, 8, 8), number(rest, 16, 4));
            let left = shape.size_bytes.saturating_sub(offset);
            Ok(vec![0x5a; size.min(left) as usize])
        }
        READDIR => {
            let (offset, size) = (number(rest, 8, 8), number(rest, 16, 4) as usize);
            let mut entries = Vec::new();
            for file in offset..shape.files {
                let name = format!("f{file:07}"); // 8 bytes: no padding
                let head = words(&[(file + 2, 8), (file + 1, 8), (8, 4), (8, 4)]);
                if entries.len() + head.len() + name.len() > size {
                    break;
                }
                entries.extend(head);
                entries.extend(name.as_bytes());
            }
            Ok(entries)
        }
        STATFS => Ok(words(&[(0, 8 * 5), (4096, 4), (255, 4), (4096, 4), (0, 4 + 24)])),
        RELEASE | RELEASEDIR => Ok(Vec::new()),
        FORGET | BATCH_FORGET | INTERRUPT => return None,
        _ => Err(ENOSYS),
    })
}

/// `struct fuse_attr` of a node.
fn attributes(shape: Shape, node: u64) -> Vec<u8> {
    let (mode, size) = if node == ROOT { (0o40_755, 0) } else { (0o100_644, shape.size_bytes) };
    let times = [(TIME_S, 8), (TIME_S, 8), (TIME_S, 8), (0, 4), (0, 4), (0, 4)];
    let rest = [(mode, 4), (1, 4), (0, 4), (0, 4), (0, 4), (4096, 4), (0, 4)];
    [words(&[(node, 8), (size, 8), (size.div_ceil(512), 8)]), words(&times), words(&rest)].concat()
}

/// Numbers with their widths in bytes, as the machine has them; wider than 8 only for zeros.
fn words(fields: &[(u64, usize)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (value, width) in fields {
        let mut field = value.to_le_bytes().to_vec();
        field.resize(*width, 0);
        bytes.extend(field);
    }
    bytes
}

/// The number at a place.
fn number(bytes: &[u8], at: usize, width: usize) -> u64 {
    bytes[at..at + width].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}
