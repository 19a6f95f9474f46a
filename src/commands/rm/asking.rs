//! `rm -i`: one entry after the other, each after a question.

use super::options::Plan;
use super::report::{fail, report_removed};
use super::tops::Top;
use crate::show::{Show, confirmed};
use hakobu_core::error::{Cause, Operation};
use hakobu_core::limit::Limiter;
use hakobu_core::unit::{Kind, Totals};
use hakobu_sys::dir::{self, Reader};
use hakobu_sys::{AsFd, BorrowedFd, meta};
use hakobu_tree::remove::{Removal, RemovalEntry, remove_tree};
use std::ffi::CStr;
use std::io;

struct Asking<'a> {
    plan: &'a Plan,
    show: &'a Show,
    totals: &'a mut Totals,
    /// The argument that is being removed.
    top: &'a CStr,
    /// The empty directory that was confirmed before it was entered.
    asked: Vec<u8>,
    /// Removals a second.
    limiter: Option<Limiter>,
}

/// Removes the tops, with a question before each entry.
pub fn remove(plan: &Plan, tops: &[Top], show: &Show, totals: &mut Totals) {
    let limiter = plan.within.operations_per_s_max.map(Limiter::new);
    let mut asking = Asking { plan, show, totals, top: c"", asked: Vec::new(), limiter };
    let options = plan.removal();
    for top in tops {
        let path = top.path.to_bytes();
        asking.top = &top.path;
        if top.kind == Kind::Dir && !plan.recursive {
            asking.empty_dir(&top.path);
        } else {
            remove_tree(dir::cwd(), &top.path, top.kind, path, options, &mut asking);
        }
    }
}

impl Asking<'_> {
    /// Handles `-d` without `-r`.
    fn empty_dir(&mut self, path: &CStr) {
        let entry =
            RemovalEntry { dir: dir::cwd(), name: path, path: path.to_bytes(), kind: Kind::Dir };
        if !confirmed(&format!("hakobu rm: remove directory {}? ", shown(entry.path))) {
            return;
        }
        match dir::rmdir(entry.dir, path) {
            Ok(()) => self.removed(&entry),
            Err(error) => self.failed(&entry, Operation::Remove, Cause::System(error)),
        }
    }
}

impl Removal for Asking<'_> {
    fn keep(&mut self, entry: &RemovalEntry<'_>) -> bool {
        let below = entry.path.get(self.top.count_bytes() + 1..).unwrap_or_default();
        if self.plan.kept.excludes(self.top.to_bytes(), below, entry.kind) {
            return true;
        }
        if self.plan.keep_dirs && entry.kind == Kind::Dir {
            return false;
        }
        let protected = entry.kind != Kind::Symlink && !dir::may_write(entry.dir, entry.name);
        let protected = if protected { "write-protected " } else { "" };
        let is_empty = match entry.kind {
            Kind::Dir => is_empty_dir(entry.dir, entry.name).unwrap_or(false),
            _ => meta::of(entry.dir, entry.name, false).is_ok_and(|meta| meta.size == 0),
        };
        let verb = if entry.kind == Kind::Dir && !is_empty { "descend into" } else { "remove" };
        let what = kind_words(entry.kind, is_empty);
        let question = format!("hakobu rm: {verb} {protected}{what} {}? ", shown(entry.path));
        let keep = !confirmed(&question);
        if entry.kind == Kind::Dir && is_empty {
            self.asked = entry.path.to_vec();
        }
        keep
    }

    fn keep_emptied(&mut self, entry: &RemovalEntry<'_>) -> bool {
        std::mem::take(&mut self.asked) != entry.path
            && !confirmed(&format!("hakobu rm: remove directory {}? ", shown(entry.path)))
    }

    fn removed(&mut self, entry: &RemovalEntry<'_>) {
        if let Some(limiter) = &self.limiter {
            limiter.wait(1, || false);
        }
        self.totals.deleted += 1;
        report_removed(self.plan, self.show, entry.path, entry.kind);
    }

    fn failed(&mut self, entry: &RemovalEntry<'_>, operation: Operation, cause: Cause) {
        self.totals.failed += 1;
        fail(self.show, entry.path, operation, cause);
    }
}

/// Returns whether a directory has no entries.
pub fn is_empty_dir(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<bool> {
    let fd = dir::open(dir, name, false)?;
    let mut any = false;
    Reader::default().for_each(fd.as_fd(), |_, _, _| any = true)?;
    Ok(!any)
}

/// Returns the words for a type in a question.
pub fn kind_words(kind: Kind, is_empty: bool) -> &'static str {
    match kind {
        Kind::File if is_empty => "regular empty file",
        Kind::File => "regular file",
        Kind::Dir => "directory",
        Kind::Symlink => "symbolic link",
        Kind::Fifo => "fifo",
        Kind::Socket => "socket",
        Kind::CharDevice => "character special file",
        Kind::BlockDevice => "block special file",
        Kind::Unknown => "entry",
    }
}

/// Returns a path for a question.
pub fn shown(path: &[u8]) -> String {
    let mut out = Vec::new();
    crate::show::escape::push_quoted(path, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}
