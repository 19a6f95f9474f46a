//! `rm` on many workers: asks at most about write-protected entries.

use super::super::tool;
use super::asking::{is_empty_dir, kind_words, shown};
use super::options::{Ask, Plan};
use super::report::{fail, report_removed};
use super::tops::Top;
use crate::show::{Show, confirmed};
use hakobu_core::error::{Cause, Operation};
use hakobu_core::event::{Event, Listener};
use hakobu_core::unit::{Kind, Totals};
use hakobu_sys::{dir, errno};
use hakobu_transfer::run::steered;
use hakobu_tree::remove::{ParallelRemoval, RemovalPath, remove_all};
use parking_lot::Mutex;
use std::ffi::{CStr, CString};
use std::io::{self, IsTerminal};
use std::path::Path;

struct Watcher<'a> {
    plan: &'a Plan,
    show: &'a Show,
    /// Locked during a question; `None` if nothing is asked.
    question: Option<Mutex<()>>,
}

/// Removes the tops; returns the number of workers.
pub fn remove(plan: &Plan, tops: &[Top], show: &Show, totals: &mut Totals) -> usize {
    let asks = plan.ask == Ask::Protected && std::io::stdin().is_terminal();
    let paths: Vec<CString> = tops
        .iter()
        .filter(|top| plan.recursive || top.kind != Kind::Dir)
        .map(|top| top.path.clone())
        .collect();
    for top in tops.iter().filter(|top| !plan.recursive && top.kind == Kind::Dir) {
        match remove_empty(plan, &top.path) {
            Ok(()) => {
                totals.deleted += 1;
                report_removed(plan, show, top.path.to_bytes(), Kind::Dir);
            }
            Err(error) => {
                totals.failed += 1;
                fail(show, top.path.to_bytes(), Operation::Remove, Cause::System(error));
            }
        }
    }
    let roots: Vec<&Path> = paths.iter().map(|path| tool::path(path.to_bytes())).collect();
    let (removed, jobs) = steered(&roots, plan.within, |controls, capacity| {
        show.event(Event::Begins(&controls.meter));
        let watcher = Watcher { plan, show, question: asks.then(Mutex::default) };
        remove_all(&paths, plan.removal(), controls, capacity.open_dirs_max, &watcher)
    });
    totals.deleted += removed.files + removed.dirs;
    totals.failed += removed.failed;
    jobs
}

/// Removes an empty directory; in a dry run only finds out whether it is one.
fn remove_empty(plan: &Plan, path: &CStr) -> io::Result<()> {
    if !plan.dry_run {
        return dir::rmdir(dir::cwd(), path);
    }
    match is_empty_dir(dir::cwd(), path)? {
        true => Ok(()),
        false => Err(io::Error::from_raw_os_error(errno::ENOTEMPTY)),
    }
}

impl ParallelRemoval for Watcher<'_> {
    fn keep(&self, place: &RemovalPath<'_>) -> bool {
        if !self.plan.kept.is_empty() {
            let (top, below) = place.below_top();
            if self.plan.kept.excludes(top.to_bytes(), &below, place.kind) {
                return true;
            }
        }
        let Some(question) = &self.question else { return false };
        // The mode of a symlink has no effect.
        if place.kind == Kind::Symlink || dir::may_write(place.dir, place.name) {
            return false;
        }
        let _one = question.lock();
        let what = kind_words(place.kind, false);
        let shown = shown(&place.path());
        let rest = if place.kind == Kind::Dir { " and its contents" } else { "" };
        !confirmed(&format!("hakobu rm: remove write-protected {what} {shown}{rest}? "))
    }

    fn removed(&self, place: &RemovalPath<'_>) {
        if self.plan.tells() {
            report_removed(self.plan, self.show, &place.path(), place.kind);
        }
    }

    fn failed(&self, place: &RemovalPath<'_>, operation: Operation, cause: Cause) {
        fail(self.show, &place.path(), operation, cause);
    }
}
