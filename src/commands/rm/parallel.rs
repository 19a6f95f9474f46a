//! `rm` on many workers: at most what is write-protected is asked about.

use super::tops::Top;
use super::{Ask, Plan, fail, tell};
use crate::show::{Show, confirmed};
use hakobu_sys::dir;
use hakobu_transfer::engine::remove::parallel::{Place, Watch, remove_all};
use hakobu_transfer::error::{Cause, Operation};
use hakobu_transfer::unit::{Kind, Totals};
use std::ffi::CString;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};

struct Watcher<'a> {
    plan: &'a Plan,
    show: &'a Show,
    /// Held during a question; `None` where nothing is asked.
    question: Option<Mutex<()>>,
}

/// Removes the tops.
pub fn remove(
    plan: &Plan,
    tops: &[Top],
    show: &Show,
    (jobs, open_files_max): (usize, u64),
    totals: &mut Totals,
) {
    let asks = plan.ask == Ask::Protected && std::io::stdin().is_terminal();
    let watcher = Watcher { plan, show, question: asks.then(Mutex::default) };
    let paths: Vec<CString> = tops
        .iter()
        .filter(|top| plan.recursive || top.kind != Kind::Dir)
        .map(|top| top.path.clone())
        .collect();
    for top in tops.iter().filter(|top| !plan.recursive && top.kind == Kind::Dir) {
        match dir::rmdir(dir::cwd(), &top.path) {
            Ok(()) => {
                totals.deleted += 1;
                tell(plan, show, top.path.to_bytes(), Kind::Dir);
            }
            Err(error) => {
                totals.failed += 1;
                fail(show, top.path.to_bytes(), Operation::Remove, Cause::System(error));
            }
        }
    }
    let removed = remove_all(&paths, plan.one_file_system, jobs, open_files_max, &watcher);
    totals.deleted += removed.files + removed.dirs;
    totals.failed += removed.failed;
}

impl Watch for Watcher<'_> {
    fn keep(&self, place: &Place<'_>) -> bool {
        let Some(question) = &self.question else { return false };
        // The mode of a symlink protects nothing.
        if place.kind == Kind::Symlink || dir::may_write(place.dir, place.name) {
            return false;
        }
        let _one = question.lock().unwrap_or_else(PoisonError::into_inner);
        let what = super::asking::kind_words(place.kind, false);
        let shown = super::asking::shown(&place.path());
        let rest = if place.kind == Kind::Dir { " and what is in it" } else { "" };
        !confirmed(&format!("hakobu rm: remove write-protected {what} {shown}{rest}? "))
    }

    fn removed(&self, place: &Place<'_>) {
        if self.plan.verbose {
            tell(self.plan, self.show, &place.path(), place.kind);
        }
    }

    fn failed(&self, place: &Place<'_>, operation: Operation, cause: Cause) {
        fail(self.show, &place.path(), operation, cause);
    }
}
