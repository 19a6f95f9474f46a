//! A FUSE file system that keeps data in memory and fails on demand, like NFS, SMB and FUSE: a failed flush
//! is reported once, and the data are lost. Its clock and time resolution are configurable.

use super::{Answers, ENOENT, ENOSYS, ROOT, Request, init, number, op, room, words};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

const NS_A_SECOND: i128 = 1_000_000_000;
const EEXIST: i32 = 17;
const ENOTEMPTY: i32 = 39;
const BIG_WRITES: u64 = 1 << 5;
const WRITEBACK_CACHE: u64 = 1 << 16;
const KIND: u64 = 0o170_000;
const DIR: u64 = 0o040_000;
const FILE: u64 = 0o100_000;
const SYMLINK: u64 = 0o120_000;

/// Conversion of a time when it is stored, nanoseconds since 1970.
pub type Keep = fn(i128) -> i128;

/// Active faults, shared with the test. An operation fails with its errno while it is listed; FLUSH only if
/// data were written since the last one.
#[derive(Clone, Default)]
pub struct Faults(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    fails: Vec<(u64, i32)>,
    /// Number of requests for each operation.
    seen: HashMap<u64, u64>,
}

impl Faults {
    /// From now on this operation fails.
    pub fn fail(&self, op: u64, errno: i32) {
        self.0.lock().unwrap().fails.push((op, errno));
    }

    /// From now on nothing fails.
    pub fn clear(&self) {
        self.0.lock().unwrap().fails.clear();
    }

    /// Returns the number of requests for an operation.
    pub fn seen(&self, op: u64) -> u64 {
        self.0.lock().unwrap().seen.get(&op).copied().unwrap_or(0)
    }

    fn of(&self, op: u64) -> Option<i32> {
        let mut state = self.0.lock().unwrap();
        *state.seen.entry(op).or_default() += 1;
        state.fails.iter().find(|(fails, _)| *fails == op).map(|(_, errno)| *errno)
    }
}

#[derive(Default)]
struct Node {
    mode: u64,
    uid: u64,
    gid: u64,
    nlink: u64,
    rdev: u64,
    /// Seconds and nanoseconds: atime, mtime, ctime.
    times: [(u64, u64); 3],
    /// Content, or the text of a symlink.
    data: Vec<u8>,
    names: BTreeMap<Vec<u8>, u64>,
    /// Written to since the last flush.
    dirty: bool,
}

/// The file system.
pub struct Memory {
    faults: Faults,
    nodes: HashMap<u64, Node>,
    next: u64,
    /// The kernel keeps what is written until it is flushed.
    writeback: bool,
    /// It has `O_TMPFILE`.
    unnamed: bool,
    /// Seconds for which the kernel may believe what it was told.
    pub valid_s: u64,
    keep: Keep,
    /// Its clock is ahead by so many seconds.
    ahead_s: i64,
}

impl Memory {
    pub fn new(faults: &Faults, writeback: bool, unnamed: bool) -> Memory {
        let mut memory = Memory {
            faults: faults.clone(),
            nodes: HashMap::new(),
            next: ROOT + 1,
            writeback,
            unnamed,
            valid_s: 0,
            keep: |time| time,
            ahead_s: 0,
        };
        memory.make_root();
        memory
    }

    /// One without faults that keeps times in its own way, by a clock that is ahead.
    pub fn timed(keep: Keep, ahead_s: i64) -> Memory {
        let mut memory = Memory { keep, ahead_s, ..Memory::new(&Faults::default(), false, false) };
        memory.make_root();
        memory
    }

    fn make_root(&mut self) {
        let times = [self.now(); 3];
        self.nodes.insert(ROOT, Node { mode: DIR | 0o755, nlink: 2, times, ..Node::default() });
    }

    fn now(&self) -> (u64, u64) {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as i128;
        self.kept(now + i128::from(self.ahead_s) * NS_A_SECOND)
    }

    /// A time in nanoseconds as it is kept: seconds (modulo 2^64) and nanoseconds.
    fn kept(&self, time: i128) -> (u64, u64) {
        let time = (self.keep)(time);
        (time.div_euclid(NS_A_SECOND) as u64, time.rem_euclid(NS_A_SECOND) as u64)
    }

    fn node(&mut self, id: u64) -> Result<&mut Node, i32> {
        self.nodes.get_mut(&id).ok_or(ENOENT)
    }

    fn touch(&mut self, id: u64) -> Result<(), i32> {
        let now = self.now();
        let node = self.node(id)?;
        (node.times[1], node.times[2]) = (now, now);
        Ok(())
    }

    fn make(&mut self, request: &Request<'_>, name: Option<Vec<u8>>, node: Node) -> Answer {
        let id = self.next;
        if let Some(name) = name {
            if self.node(request.node)?.names.contains_key(&name) {
                return Err(EEXIST);
            }
            self.node(request.node)?.names.insert(name, id);
            self.touch(request.node)?;
        }
        self.next += 1;
        let (uid, gid) = (request.uid, request.gid);
        let times = [self.now(); 3];
        self.nodes.insert(id, Node { uid, gid, times, ..node });
        self.entry(id)
    }

    /// `struct fuse_entry_out`.
    fn entry(&mut self, id: u64) -> Answer {
        let valid_s = self.valid_s;
        let head = words(&[(id, 8), (0, 8), (valid_s, 8), (valid_s, 8), (0, 8)]);
        Ok([head, self.attributes(id)?].concat())
    }

    /// `struct fuse_attr`.
    fn attributes(&mut self, id: u64) -> Answer {
        let node = self.node(id)?;
        let size = node.data.len() as u64;
        let [atime, mtime, ctime] = node.times;
        Ok([
            words(&[(id, 8), (size, 8), (size.div_ceil(512), 8)]),
            words(&[(atime.0, 8), (mtime.0, 8), (ctime.0, 8)]),
            words(&[(atime.1, 4), (mtime.1, 4), (ctime.1, 4), (node.mode, 4), (node.nlink, 4)]),
            words(&[(node.uid, 4), (node.gid, 4), (node.rdev, 4), (4096, 4), (0, 4)]),
        ]
        .concat())
    }

    /// `struct fuse_attr_out`.
    fn told_attributes(&mut self, id: u64) -> Answer {
        Ok([words(&[(self.valid_s, 8), (0, 8)]), self.attributes(id)?].concat())
    }

    fn lookup(&mut self, request: &Request<'_>) -> Answer {
        let name = request.names(0).next().unwrap();
        let id = *self.node(request.node)?.names.get(&name).ok_or(ENOENT)?;
        self.entry(id)
    }

    fn set_attributes(&mut self, request: &Request<'_>) -> Answer {
        let Request { node: id, body, .. } = *request;
        let valid = number(body, 0, 4);
        let now = self.now();
        let set =
            [(0, 16, 128, 32, 56), (1, 32, 256, 40, 60)].map(|(at, bit, now_bit, second, rest)| {
                let second = number(body, second, 8) as i64;
                let told = i128::from(second) * NS_A_SECOND + i128::from(number(body, rest, 4));
                let time = if valid & now_bit != 0 { now } else { self.kept(told) };
                (at, (valid & (bit | now_bit) != 0).then_some(time))
            });
        let node = self.node(id)?;
        let field = |bit: u64, at, width| (valid & bit != 0).then(|| number(body, at, width));
        if let Some(mode) = field(1, 68, 4) {
            node.mode = node.mode & KIND | mode & !KIND;
        }
        node.uid = field(2, 76, 4).unwrap_or(node.uid);
        node.gid = field(4, 80, 4).unwrap_or(node.gid);
        if let Some(size) = field(8, 16, 8) {
            node.data.resize(size as usize, 0);
            node.times[1] = now;
        }
        for (at, time) in set {
            node.times[at] = time.unwrap_or(node.times[at]);
        }
        node.times[2] = now;
        self.told_attributes(id)
    }

    fn unlink(&mut self, request: &Request<'_>) -> Answer {
        let name = request.names(0).next().unwrap();
        let id = *self.node(request.node)?.names.get(&name).ok_or(ENOENT)?;
        let node = self.node(id)?;
        if !node.names.is_empty() {
            return Err(ENOTEMPTY);
        }
        node.nlink = node.nlink.saturating_sub(1);
        self.node(request.node)?.names.remove(&name);
        self.touch(request.node)?;
        Ok(Vec::new())
    }

    fn rename(&mut self, request: &Request<'_>) -> Answer {
        let no_replace = request.op == op::RENAME2 && number(request.body, 8, 4) & 1 != 0;
        let to = number(request.body, 0, 8);
        let mut names = request.names(if request.op == op::RENAME2 { 16 } else { 8 });
        let (old, new) = (names.next().unwrap(), names.next().unwrap());
        let id = *self.node(request.node)?.names.get(&old).ok_or(ENOENT)?;
        if no_replace && self.node(to)?.names.contains_key(&new) {
            return Err(EEXIST);
        }
        self.node(request.node)?.names.remove(&old);
        if let Some(gone) = self.node(to)?.names.insert(new, id) {
            let gone = self.node(gone)?;
            gone.nlink = gone.nlink.saturating_sub(1);
        }
        self.touch(request.node)?;
        self.touch(to)?;
        Ok(Vec::new())
    }

    fn link(&mut self, request: &Request<'_>) -> Answer {
        let (id, name) = (number(request.body, 0, 8), request.names(8).next().unwrap());
        if self.node(request.node)?.names.contains_key(&name) {
            return Err(EEXIST);
        }
        self.node(id)?.nlink += 1;
        self.node(request.node)?.names.insert(name, id);
        self.touch(request.node)?;
        self.entry(id)
    }

    fn write(&mut self, request: &Request<'_>) -> Answer {
        let (offset, size) = (number(request.body, 8, 8) as usize, number(request.body, 16, 4));
        let data = &request.body[40..40 + size as usize];
        let now = self.now();
        let node = self.node(request.node)?;
        if node.data.len() < offset + data.len() {
            node.data.resize(offset + data.len(), 0);
        }
        node.data[offset..offset + data.len()].copy_from_slice(data);
        node.dirty = true;
        node.times[1] = now;
        Ok(words(&[(size, 4), (0, 4)]))
    }

    fn read(&mut self, request: &Request<'_>) -> Answer {
        let (offset, size) = (number(request.body, 8, 8) as usize, number(request.body, 16, 4));
        let data = &self.node(request.node)?.data;
        let end = data.len().min(offset + size as usize);
        Ok(data.get(offset..end).unwrap_or_default().to_vec())
    }

    fn list(&mut self, request: &Request<'_>) -> Answer {
        let (offset, size) = (number(request.body, 8, 8), number(request.body, 16, 4) as usize);
        let names: Vec<_> = self.node(request.node)?.names.clone().into_iter().collect();
        let mut entries = Vec::new();
        for (at, (name, id)) in (1..).zip(names).skip(offset as usize) {
            let kind = (self.node(id)?.mode & KIND) >> 12;
            let head = words(&[(id, 8), (at, 8), (name.len() as u64, 4), (kind, 4)]);
            let padded = name.len().next_multiple_of(8);
            if entries.len() + head.len() + padded > size {
                break;
            }
            entries.extend(head);
            entries.extend(&name);
            entries.resize(entries.len() + padded - name.len(), 0);
        }
        Ok(entries)
    }

    /// A fault of the file: after a failed flush its data is not what was written.
    fn flush(&mut self, request: &Request<'_>, fault: Option<i32>) -> Answer {
        let node = self.node(request.node)?;
        if !std::mem::take(&mut node.dirty) {
            return Ok(Vec::new());
        }
        match fault {
            Some(errno) => {
                node.data.fill(0);
                Err(errno)
            }
            None => Ok(Vec::new()),
        }
    }

    fn create(&mut self, request: &Request<'_>, named: bool) -> Answer {
        let mode = FILE | number(request.body, 4, 4) & 0o7777;
        let name = named.then(|| request.names(16).next().unwrap());
        let entry = self.make(request, name, Node { mode, nlink: named.into(), ..Node::default() });
        Ok([entry?, vec![0; 16]].concat())
    }
}

type Answer = Result<Vec<u8>, i32>;

impl Answers for Memory {
    fn answer(&mut self, request: &Request<'_>) -> Option<Answer> {
        let fault = self.faults.of(request.op);
        if let (Some(errno), false) = (fault, request.op == op::FLUSH) {
            return Some(Err(errno));
        }
        Some(match request.op {
            op::INIT => Ok(init(BIG_WRITES | if self.writeback { WRITEBACK_CACHE } else { 0 })),
            op::LOOKUP => self.lookup(request),
            op::GETATTR => self.told_attributes(request.node),
            op::SETATTR => self.set_attributes(request),
            op::READLINK => self.node(request.node).map(|node| node.data.clone()),
            op::SYMLINK => {
                let mut names = request.names(0);
                let (name, data) = (names.next(), names.next().unwrap());
                let mode = SYMLINK | 0o777;
                self.make(request, name, Node { mode, data, nlink: 1, ..Node::default() })
            }
            op::MKNOD => {
                let (mode, rdev) = (number(request.body, 0, 4), number(request.body, 4, 4));
                let name = request.names(16).next();
                self.make(request, name, Node { mode, rdev, nlink: 1, ..Node::default() })
            }
            op::MKDIR => {
                let mode = DIR | number(request.body, 0, 4) & 0o7777;
                let name = request.names(8).next();
                self.make(request, name, Node { mode, nlink: 2, ..Node::default() })
            }
            op::UNLINK | op::RMDIR => self.unlink(request),
            op::RENAME | op::RENAME2 => self.rename(request),
            op::LINK => self.link(request),
            op::OPEN | op::OPENDIR => Ok(vec![0; 16]),
            op::READ => self.read(request),
            op::WRITE => self.write(request),
            op::STATFS => Ok(room()),
            op::FLUSH => self.flush(request, fault),
            op::FSYNC => {
                self.node(request.node).map(|node| node.dirty = false).map(|()| Vec::new())
            }
            op::READDIR => self.list(request),
            op::CREATE => self.create(request, true),
            op::TMPFILE if self.unnamed => self.create(request, false),
            op::RELEASE | op::RELEASEDIR | op::FSYNCDIR => Ok(Vec::new()),
            op::FORGET | op::BATCH_FORGET | op::INTERRUPT => return None,
            _ => Err(ENOSYS),
        })
    }
}
