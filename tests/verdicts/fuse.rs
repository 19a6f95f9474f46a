//! A slow source without a disk: a read-only FUSE file system with a fixed rate.

use crate::common::fuse::{Answers, ENOENT, ENOSYS, Mount, ROOT, Request, init, number, op, words};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Seconds for which the kernel may cache attributes.
const VALID_S: u64 = 3600;
/// 2020-09-13: older than any run.
const TIME_S: u64 = 1_600_000_000;

/// Content of the file system.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub files: u64,
    pub size_bytes: u64,
    /// Rate of all reads together.
    pub bytes_per_s: u64,
}

/// Mounts one.
pub fn mount(root: PathBuf, shape: Shape) -> Result<Mount, String> {
    Mount::new(root, "ro", Slow { shape, free_at: Instant::now() })
}

struct Slow {
    shape: Shape,
    free_at: Instant,
}

impl Answers for Slow {
    fn answer(&mut self, request: &Request<'_>) -> Option<Result<Vec<u8>, i32>> {
        let Slow { shape, .. } = *self;
        let Request { node, body, .. } = *request;
        Some(match request.op {
            op::INIT => Ok(init(0)),
            op::LOOKUP => {
                let name = request.names(0).next().and_then(|name| String::from_utf8(name).ok());
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
            op::GETATTR => Ok([words(&[(VALID_S, 8), (0, 8)]), attributes(shape, node)].concat()),
            op::OPEN | op::OPENDIR => Ok(vec![0; 16]),
            op::READ => {
                let (offset, size) = (number(body, 8, 8), number(body, 16, 4));
                let left = shape.size_bytes.saturating_sub(offset);
                Ok(vec![0x5a; size.min(left) as usize])
            }
            op::READDIR => {
                let (offset, size) = (number(body, 8, 8), number(body, 16, 4) as usize);
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
            op::STATFS => Ok(words(&[(0, 8 * 5), (4096, 4), (255, 4), (4096, 4), (0, 4 + 24)])),
            op::RELEASE | op::RELEASEDIR => Ok(Vec::new()),
            op::FORGET | op::BATCH_FORGET | op::INTERRUPT => return None,
            _ => Err(ENOSYS),
        })
    }

    fn pace(&mut self, request: &Request<'_>, answer: &[u8]) {
        if request.op != op::READ {
            return;
        }
        let takes = answer.len() as f64 / self.shape.bytes_per_s as f64;
        // A pause between two requests is caught up, else the rate would be slightly too low.
        let earliest = Instant::now() - Duration::from_millis(20);
        self.free_at = self.free_at.max(earliest) + Duration::from_secs_f64(takes);
        std::thread::sleep(self.free_at.saturating_duration_since(Instant::now()));
    }
}

/// `struct fuse_attr` of a node.
fn attributes(shape: Shape, node: u64) -> Vec<u8> {
    let (mode, size) = if node == ROOT { (0o40_755, 0) } else { (0o100_644, shape.size_bytes) };
    let times = [(TIME_S, 8), (TIME_S, 8), (TIME_S, 8), (0, 4), (0, 4), (0, 4)];
    let rest = [(mode, 4), (1, 4), (0, 4), (0, 4), (0, 4), (4096, 4), (0, 4)];
    [words(&[(node, 8), (size, 8), (size.div_ceil(512), 8)]), words(&times), words(&rest)].concat()
}
