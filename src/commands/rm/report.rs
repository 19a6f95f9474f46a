//! Lines about entries that were removed, or could not be.

use super::options::Plan;
use crate::commands::tool;
use crate::show::Show;
use crate::show::json::{Paths, kind_word, push_line};
use crate::show::lines::push_local_removal;
use hakobu_core::error::{Cause, ErrorClass, Operation, Problem};
use hakobu_core::event::{Event, Listener};
use hakobu_core::unit::Kind;
use serde::Serialize;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Reports that an entry was removed, or would be in a dry run.
pub fn report_removed(plan: &Plan, show: &Show, path: &[u8], kind: Kind) {
    if !plan.tells() {
        return;
    }
    #[derive(Serialize)]
    struct Line<'a> {
        event: &'static str,
        kind: &'static str,
        #[serde(flatten)]
        paths: Paths<'a>,
    }
    let mut out = Vec::with_capacity(64);
    if plan.json {
        let paths = Paths(&[("path", Some(tool::path(path)))]);
        push_line(&Line { event: "removed", kind: kind_word(kind), paths }, &mut out);
    } else if plan.dry_run {
        push_local_removal(path, kind, &mut out);
    } else {
        out.extend_from_slice(match kind {
            Kind::Dir => b"removed directory ",
            _ => b"removed ",
        });
        crate::show::escape::push_quoted(path, &mut out);
        out.push(b'\n');
    }
    show.print(&out);
}

/// Reports that an entry could not be removed.
pub fn fail(show: &Show, path: &[u8], operation: Operation, cause: Cause) {
    let target = Some(PathBuf::from(OsString::from_vec(path.to_vec())));
    let problem = Problem { operation, source: None, target, cause, class: ErrorClass::Partial };
    show.event(Event::Problem(&problem));
}
