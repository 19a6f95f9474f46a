//! A directory that stays reachable while its descriptor comes and goes.
//!
//! A walk over a tree needs an open descriptor of every directory that it is not done with, and a
//! tree may be deeper than the limit of open files. So a [`Handle`] knows its way (its parent and
//! its name) and its identity (device and inode); a [`Budget`] closes the descriptors that were
//! opened longest ago, and [`Handle::fd`] opens them again, without following symlinks, and only
//! if the same directory is still there.

use super::pool::lock;
use crate::unit::Meta;
use hakobu_sys::{AsFd, OwnedFd, dir, errno, meta};
use std::collections::VecDeque;
use std::ffi::{CStr, CString};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// Length of a path in one call, below PATH_MAX.
const PATH_BYTES_MAX: usize = 4000;
/// Descriptors that the program needs besides directories and workers.
const RESERVE: u64 = 32;
/// Descriptors that one worker needs at a time, beside those in the budget.
const PER_JOB: u64 = 8;

/// How many descriptors of directories are kept open at a time.
pub struct Budget {
    max: usize,
    open: AtomicUsize,
    /// Oldest first; holds handles that are closed or gone as well, until they are swept.
    queue: Mutex<VecDeque<Weak<Handle>>>,
}

impl Budget {
    /// Room for `max` open directories; units that use one keep it open beyond that.
    pub fn new(max: usize) -> Arc<Budget> {
        Arc::new(Budget { max: max.max(2), open: AtomicUsize::new(0), queue: Mutex::default() })
    }

    /// Divides the limit of open files between workers and directories: how many workers there
    /// may be, and the budget.
    pub fn for_limit(open_files_max: u64, jobs: usize) -> (usize, Arc<Budget>) {
        let spare = open_files_max.saturating_sub(RESERVE);
        let jobs = (jobs as u64).clamp(1, (spare / 2 / PER_JOB).max(1));
        let max = spare.saturating_sub(jobs * PER_JOB).min(4096);
        (jobs as usize, Budget::new(max as usize))
    }

    fn attach(&self, handle: &Arc<Handle>) {
        let mut queue = lock(&self.queue);
        queue.push_back(Arc::downgrade(handle));
        let open = self.open.fetch_add(1, Ordering::Relaxed) + 1;
        let mut over = open.saturating_sub(self.max);
        while over > 0
            && let Some(oldest) = queue.pop_front()
        {
            if let Some(oldest) = oldest.upgrade()
                && oldest.close()
            {
                over -= 1;
            }
        }
        if queue.len() > 4 * self.max {
            queue.retain(|handle| handle.upgrade().is_some_and(|handle| handle.is_open()));
        }
    }
}

/// A directory of a tree.
pub struct Handle {
    budget: Arc<Budget>,
    parent: Option<Arc<Handle>>,
    /// One component; for a top the path as typed, relative to the working directory.
    name: Box<CStr>,
    identity: (u64, u64),
    fd: Mutex<Option<Arc<OwnedFd>>>,
}

impl Handle {
    /// Opens the top of a tree by its path from the command line; a symlink in its last component
    /// is followed only where `follow` says so or a slash ends the path.
    pub fn top(budget: &Arc<Budget>, path: &CStr, follow: bool) -> io::Result<(Arc<Handle>, Meta)> {
        let fd = dir::open(dir::cwd(), path, follow)?;
        Handle::of(budget, None, path, fd)
    }

    /// Takes over an open descriptor of a top.
    pub fn adopt_top(
        budget: &Arc<Budget>,
        path: &CStr,
        fd: OwnedFd,
    ) -> io::Result<(Arc<Handle>, Meta)> {
        Handle::of(budget, None, path, fd)
    }

    /// Opens the directory `name` in this one.
    pub fn child(self: &Arc<Self>, name: &CStr) -> io::Result<(Arc<Handle>, Meta)> {
        let fd = dir::open((*self.fd()?).as_fd(), name, false)?;
        self.adopt(name, fd)
    }

    /// Takes over an open descriptor of the directory `name` in this one.
    pub fn adopt(self: &Arc<Self>, name: &CStr, fd: OwnedFd) -> io::Result<(Arc<Handle>, Meta)> {
        Handle::of(&self.budget, Some(Arc::clone(self)), name, fd)
    }

    fn of(
        budget: &Arc<Budget>,
        parent: Option<Arc<Handle>>,
        name: &CStr,
        fd: OwnedFd,
    ) -> io::Result<(Arc<Handle>, Meta)> {
        let meta = meta::of_fd(&fd)?;
        let handle = Arc::new(Handle {
            budget: Arc::clone(budget),
            parent,
            name: name.into(),
            identity: meta.identity(),
            fd: Mutex::new(Some(Arc::new(fd))),
        });
        budget.attach(&handle);
        Ok((handle, meta))
    }

    /// An open descriptor, which stays open as long as the answer lives.
    ///
    /// # Errors
    /// What opening says; ESTALE where another directory is there now.
    pub fn fd(self: &Arc<Self>) -> io::Result<Arc<OwnedFd>> {
        if let Some(fd) = lock(&self.fd).as_ref() {
            return Ok(Arc::clone(fd));
        }
        let fd = self.reopen()?;
        self.keep(fd)
    }

    /// As [`Handle::fd`], with an open descriptor of a directory directly below at hand, which
    /// makes it one step upwards.
    ///
    /// # Errors
    /// As [`Handle::fd`].
    pub fn fd_from_below(self: &Arc<Self>, below: &OwnedFd) -> io::Result<Arc<OwnedFd>> {
        if let Some(fd) = lock(&self.fd).as_ref() {
            return Ok(Arc::clone(fd));
        }
        match dir::open(below.as_fd(), c"..", false) {
            Ok(fd) if meta::of_fd(&fd)?.identity() == self.identity => self.keep(fd),
            _ => self.fd(),
        }
    }

    fn keep(self: &Arc<Self>, fd: OwnedFd) -> io::Result<Arc<OwnedFd>> {
        if meta::of_fd(&fd)?.identity() != self.identity {
            return Err(io::Error::from_raw_os_error(errno::ESTALE));
        }
        let fd = Arc::new(fd);
        let first = lock(&self.fd).replace(Arc::clone(&fd)).is_none();
        if first {
            self.budget.attach(self);
        }
        Ok(fd)
    }

    /// Goes down again from the nearest directory that is open.
    fn reopen(&self) -> io::Result<OwnedFd> {
        let mut names = vec![&*self.name];
        let mut parent = self.parent.as_deref();
        let mut fd = loop {
            let Some(above) = parent else { break None };
            if let Some(fd) = lock(&above.fd).as_ref() {
                break Some(Arc::clone(fd));
            }
            names.push(&above.name);
            parent = above.parent.as_deref();
        };
        if fd.is_none() {
            let top = names.pop().unwrap_or_default();
            // Whether it was reached through a symlink does not matter: its identity is checked
            // at the end of the way, and nothing was changed on the way.
            let opened = dir::open(dir::cwd(), top, true)?;
            if names.is_empty() {
                return Ok(opened);
            }
            fd = Some(Arc::new(opened));
        }
        let mut path = Vec::new();
        while let Some(name) = names.pop() {
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(name.to_bytes());
            let next_len = names.last().map_or(0, |name| name.count_bytes());
            if !names.is_empty() && path.len() + next_len < PATH_BYTES_MAX {
                continue;
            }
            let step = CString::new(std::mem::take(&mut path))?;
            let base = fd.as_ref().ok_or_else(|| io::Error::from_raw_os_error(errno::EBADF))?;
            let opened = dir::open_below((**base).as_fd(), &step)?;
            if names.is_empty() {
                return Ok(opened);
            }
            fd = Some(Arc::new(opened));
        }
        Err(io::Error::from_raw_os_error(errno::EBADF))
    }

    /// Closes the descriptor; whether there was one.
    fn close(&self) -> bool {
        let closed = lock(&self.fd).take();
        if closed.is_some() {
            self.budget.open.fetch_sub(1, Ordering::Relaxed);
        }
        closed.is_some()
    }

    fn is_open(&self) -> bool {
        lock(&self.fd).is_some()
    }

    /// What it is opened within.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Device and inode.
    pub fn identity(&self) -> (u64, u64) {
        self.identity
    }

    /// Appends the path below the top, without the top's own name; nothing for the top itself.
    pub fn push_path(&self, path: &mut Vec<u8>) {
        let mut names = Vec::new();
        let mut here = self;
        while let Some(parent) = here.parent.as_deref() {
            names.push(&*here.name);
            here = parent;
        }
        for name in names.iter().rev() {
            if !path.is_empty() && path.last() != Some(&b'/') {
                path.push(b'/');
            }
            path.extend_from_slice(name.to_bytes());
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.close();
        // One after the other: a chain of a hundred thousand parents is more than a stack holds.
        let mut parent = self.parent.take();
        while let Some(mut last) = parent.and_then(Arc::into_inner) {
            parent = last.parent.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(budget: &Arc<Budget>, base: &CStr, depth: usize) -> Vec<Arc<Handle>> {
        let (top, _) = Handle::top(budget, base, false).unwrap();
        let mut all = vec![top];
        for _ in 1..depth {
            let last = all.last().unwrap();
            dir::create((*last.fd().unwrap()).as_fd(), c"directory", 0o700).unwrap();
            let (next, _) = last.child(c"directory").unwrap();
            all.push(next);
        }
        all
    }

    #[test]
    fn closed_directories_come_back_and_swapped_ones_do_not() {
        let base = std::env::temp_dir().join(format!("hakobu-handle-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&base);
        std::fs::create_dir(&base).unwrap();
        let budget = Budget::new(5);
        let path = CString::new(base.to_str().unwrap()).unwrap();
        let all = chain(&budget, &path, 1000);
        assert_eq!(all.iter().filter(|handle| handle.is_open()).count(), 5);
        for step in [1, 7, 333] {
            for handle in all.iter().step_by(step).chain(all.iter().rev().step_by(step)) {
                let fd = handle.fd().unwrap();
                assert_eq!(meta::of_fd(&*fd).unwrap().identity(), handle.identity());
            }
        }
        for pair in all.windows(2).rev() {
            let below = pair[1].fd().unwrap();
            pair[0].fd_from_below(&below).unwrap();
        }
        assert!(budget.open.load(Ordering::Relaxed) <= 5);
        // Another directory under the name of one that is closed.
        let victim = all[500].fd().unwrap();
        dir::rename(victim.as_fd(), c"directory", victim.as_fd(), c"moved").unwrap();
        dir::create(victim.as_fd(), c"directory", 0o700).unwrap();
        all[501].close();
        assert_eq!(all[501].fd().unwrap_err().raw_os_error(), Some(errno::ESTALE));
        drop(all);
        assert_eq!(budget.open.load(Ordering::Relaxed), 0);
        std::fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn few_descriptors_are_divided_between_workers_and_directories() {
        let (jobs, budget) = Budget::for_limit(256, 64);
        assert_eq!((jobs, budget.max), (14, 112));
        let (jobs, budget) = Budget::for_limit(20_000, 8);
        assert_eq!((jobs, budget.max), (8, 4096));
        let (jobs, budget) = Budget::for_limit(10, 8);
        assert_eq!((jobs, budget.max), (1, 2));
    }
}
