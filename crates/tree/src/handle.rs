//! A directory that stays reachable while its descriptor is closed and reopened.
//!
//! A walk over a tree needs an open descriptor for every unfinished directory, and a tree may be deeper than the
//! limit of open files. So a [`DirectoryHandle`] keeps its parent, its name and its identity (device and inode). A [`HandleBudget`]
//! closes the least recently opened descriptors; [`DirectoryHandle::fd`] reopens them without following symlinks, and fails if
//! another directory is there now.

use hakobu_core::unit::Meta;
use hakobu_sys::{AsFd, OwnedFd, dir, errno, meta};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::ffi::{CStr, CString};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// Maximum length of a path in one call, below PATH_MAX.
const PATH_BYTES_MAX: usize = 4000;

/// Limit on the number of directory descriptors that are kept open.
pub struct HandleBudget {
    max: usize,
    open: AtomicUsize,
    /// Oldest first; also holds closed and dropped handles until they are swept.
    queue: Mutex<VecDeque<Weak<DirectoryHandle>>>,
}

impl HandleBudget {
    /// Allows `max` open directories; units in progress may keep more of them open.
    pub fn new(max: usize) -> Arc<HandleBudget> {
        Arc::new(HandleBudget {
            max: max.max(2),
            open: AtomicUsize::new(0),
            queue: Mutex::default(),
        })
    }

    fn attach(&self, handle: &Arc<DirectoryHandle>) {
        let mut queue = self.queue.lock();
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
pub struct DirectoryHandle {
    budget: Arc<HandleBudget>,
    parent: Option<Arc<DirectoryHandle>>,
    /// One path component; for a top the path as typed, relative to the working directory.
    name: Box<CStr>,
    /// The name may be a symlink to the directory.
    follow: bool,
    /// There is no path to reopen it by, so it stays open.
    is_pinned: bool,
    identity: (u64, u64),
    fd: Mutex<Option<Arc<OwnedFd>>>,
}

impl DirectoryHandle {
    /// Opens the top of a tree by its path from the command line; a symlink in its last component is followed only if
    /// `follow` is set or the path ends with a slash.
    pub fn top(
        budget: &Arc<HandleBudget>,
        path: &CStr,
        follow: bool,
    ) -> io::Result<(Arc<DirectoryHandle>, Meta)> {
        let fd = dir::open(dir::cwd(), path, follow)?;
        DirectoryHandle::adopt_top(budget, path, fd)
    }

    /// Takes over an open descriptor of a top.
    pub fn adopt_top(
        budget: &Arc<HandleBudget>,
        path: &CStr,
        fd: OwnedFd,
    ) -> io::Result<(Arc<DirectoryHandle>, Meta)> {
        let meta = meta::of_fd(&fd)?;
        // The name may be a symlink: the identity is checked on reopening.
        let handle = DirectoryHandle::new(budget, None, path, fd, meta.identity(), true);
        budget.attach(&handle);
        Ok((handle, meta))
    }

    /// Takes over an open descriptor of a top that has no path; it stays open as long as the handle lives.
    pub fn pin(
        budget: &Arc<HandleBudget>,
        fd: OwnedFd,
        identity: (u64, u64),
    ) -> Arc<DirectoryHandle> {
        let mut handle = DirectoryHandle::new(budget, None, c"", fd, identity, false);
        if let Some(handle) = Arc::get_mut(&mut handle) {
            handle.is_pinned = true;
        }
        budget.open.fetch_add(1, Ordering::Relaxed);
        handle
    }

    /// Opens the directory `name` in this one.
    pub fn child(self: &Arc<Self>, name: &CStr) -> io::Result<(Arc<DirectoryHandle>, Meta)> {
        let fd = dir::open((*self.fd()?).as_fd(), name, false)?;
        self.adopt(name, fd)
    }

    /// Takes over an open descriptor of the directory `name` in this one.
    pub fn adopt(
        self: &Arc<Self>,
        name: &CStr,
        fd: OwnedFd,
    ) -> io::Result<(Arc<DirectoryHandle>, Meta)> {
        let meta = meta::of_fd(&fd)?;
        Ok((self.join(name, fd, meta.identity(), false), meta))
    }

    /// Takes over an open descriptor of the directory `name` in this one, whose identity is known; with `follow` the
    /// name may be a symlink to it.
    pub fn join(
        self: &Arc<Self>,
        name: &CStr,
        fd: OwnedFd,
        identity: (u64, u64),
        follow: bool,
    ) -> Arc<DirectoryHandle> {
        let handle =
            DirectoryHandle::new(&self.budget, Some(Arc::clone(self)), name, fd, identity, follow);
        self.budget.attach(&handle);
        handle
    }

    fn new(
        budget: &Arc<HandleBudget>,
        parent: Option<Arc<DirectoryHandle>>,
        name: &CStr,
        fd: OwnedFd,
        identity: (u64, u64),
        follow: bool,
    ) -> Arc<DirectoryHandle> {
        Arc::new(DirectoryHandle {
            budget: Arc::clone(budget),
            parent,
            name: name.into(),
            follow,
            is_pinned: false,
            identity,
            fd: Mutex::new(Some(Arc::new(fd))),
        })
    }

    /// Returns an open descriptor, which stays open as long as the returned value lives.
    ///
    /// # Errors
    /// Those of opening; ESTALE if another directory is there now.
    pub fn fd(self: &Arc<Self>) -> io::Result<Arc<OwnedFd>> {
        match self.opened() {
            Some(fd) => Ok(fd),
            None => self.keep(self.reopen()?),
        }
    }

    /// Like [`DirectoryHandle::fd`], but reopens by one `..` step from the open descriptor of a direct subdirectory.
    pub fn fd_from_below(self: &Arc<Self>, below: &OwnedFd) -> io::Result<Arc<OwnedFd>> {
        if let Some(fd) = self.opened() {
            return Ok(fd);
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
        let first = self.fd.lock().replace(Arc::clone(&fd)).is_none();
        if first {
            self.budget.attach(self);
        }
        Ok(fd)
    }

    /// Reopens from the nearest ancestor that is open.
    fn reopen(&self) -> io::Result<OwnedFd> {
        let mut closed = vec![self];
        let mut parent = self.parent.as_deref();
        let mut fd = loop {
            let Some(above) = parent else { break None };
            if let Some(fd) = above.opened() {
                break Some(fd);
            }
            closed.push(above);
            parent = above.parent.as_deref();
        };
        let mut path = Vec::new();
        while let Some(here) = closed.pop() {
            // A symlink is only followed as a path of its own.
            let alone = fd.is_none() || here.follow;
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(here.name.to_bytes());
            let goes_on = closed.last().is_some_and(|next| {
                !next.follow && path.len() + next.name.count_bytes() < PATH_BYTES_MAX
            });
            if goes_on && !alone {
                continue;
            }
            let step = CString::new(std::mem::take(&mut path))?;
            let opened = match &fd {
                Some(base) if !alone => dir::open_below((**base).as_fd(), &step)?,
                Some(base) => dir::open((**base).as_fd(), &step, here.follow)?,
                None => dir::open(dir::cwd(), &step, here.follow)?,
            };
            if closed.is_empty() {
                return Ok(opened);
            }
            fd = Some(Arc::new(opened));
        }
        Err(io::Error::from_raw_os_error(errno::EBADF))
    }

    /// Closes the descriptor of a finished directory. `above`: its parent, which is needed next.
    pub fn close_below(&self, above: Option<&Arc<DirectoryHandle>>) {
        if let (Some(above), Some(own)) = (above, self.opened())
            && !above.is_open()
        {
            // On failure, `above` is reopened from the top later.
            drop(above.fd_from_below(&own));
        }
        if !self.is_pinned {
            self.close();
        }
    }

    /// Closes the descriptor and returns whether there was one.
    fn close(&self) -> bool {
        let closed = self.fd.lock().take();
        if closed.is_some() {
            self.budget.open.fetch_sub(1, Ordering::Relaxed);
        }
        closed.is_some()
    }

    fn is_open(&self) -> bool {
        self.fd.lock().is_some()
    }

    fn opened(&self) -> Option<Arc<OwnedFd>> {
        self.fd.lock().clone()
    }

    pub fn budget(&self) -> &Arc<HandleBudget> {
        &self.budget
    }

    /// Returns device and inode.
    pub fn identity(&self) -> (u64, u64) {
        self.identity
    }
}

impl Drop for DirectoryHandle {
    fn drop(&mut self) {
        self.close();
        // Iterative: recursion over a chain of 100,000 parents would overflow the stack.
        let mut parent = self.parent.take();
        while let Some(mut last) = parent.and_then(Arc::into_inner) {
            parent = last.parent.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(budget: &Arc<HandleBudget>, base: &CStr, depth: usize) -> Vec<Arc<DirectoryHandle>> {
        let (top, _) = DirectoryHandle::top(budget, base, false).unwrap();
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
        let budget = HandleBudget::new(5);
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
        // Put another directory under the name of a closed one.
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
    fn directories_behind_symlinks_come_back_through_them_and_pinned_ones_stay() {
        let base = std::env::temp_dir().join(format!("hakobu-links-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&base);
        std::fs::create_dir_all(base.join("real/below/deep")).unwrap();
        std::fs::create_dir(base.join("top")).unwrap();
        std::os::unix::fs::symlink("../real", base.join("top/link")).unwrap();
        let budget = HandleBudget::new(8);
        let path = CString::new(base.join("top").to_str().unwrap()).unwrap();
        let fd = dir::open(dir::cwd(), &path, false).unwrap();
        let identity = meta::of_fd(&fd).unwrap().identity();
        let top = DirectoryHandle::pin(&budget, fd, identity);
        let fd = dir::open((*top.fd().unwrap()).as_fd(), c"link", true).unwrap();
        let link = top.join(c"link", fd, identity_of(&base.join("real")), true);
        let (below, _) = link.child(c"below").unwrap();
        let (deep, _) = below.child(c"deep").unwrap();
        for _ in 0..3 {
            for handle in [&link, &below, &deep, &top] {
                handle.close_below(None);
            }
            assert!(top.is_open() && !link.is_open() && !below.is_open());
            assert_eq!(meta::of_fd(&*deep.fd().unwrap()).unwrap().identity(), deep.identity());
        }
        // The parent of a closed directory is one step up, unless a symlink led down.
        below.close();
        deep.close_below(Some(&below));
        assert!(below.is_open() && !deep.is_open());
        below.close_below(Some(&link));
        assert!(link.is_open());
        link.close_below(None);
        // Let the link point elsewhere.
        std::fs::remove_file(base.join("top/link")).unwrap();
        std::os::unix::fs::symlink("../real/below", base.join("top/link")).unwrap();
        assert_eq!(link.fd().unwrap_err().raw_os_error(), Some(errno::ESTALE));
        drop((deep, below, link, top));
        assert_eq!(budget.open.load(Ordering::Relaxed), 0);
        std::fs::remove_dir_all(&base).unwrap();
    }

    fn identity_of(path: &std::path::Path) -> (u64, u64) {
        let path = CString::new(path.to_str().unwrap()).unwrap();
        meta::of(dir::cwd(), &path, true).unwrap().identity()
    }
}
