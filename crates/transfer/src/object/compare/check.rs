//! Comparison of two entries for `verify`: nothing is moved, the finding is sent to the caller.

use super::contents;
use super::pieces::{Compared, Contents};
use super::{Heads, heads, touch};
use crate::object::core::Core;
use crate::object::failed::Failed;
use crate::object::metadata;
use crate::object::moving::Moving;
use crate::object::{Entry, Root, Side};
use hakobu_core::error::Operation;
use hakobu_core::unit::{Kind, Meta, Totals};
use hakobu_s3::ops::ObjectHead;
use hakobu_sys::{AsFd, meta};
use std::ffi::CString;
use std::sync::mpsc::Sender;

/// A request for a comparison: the aspects to compare, and the receiver.
#[derive(Clone, Debug)]
pub struct Checking {
    /// Contents.
    pub contents: bool,
    /// Times and modes, if both sides have them: those of files are stored in metadata.
    pub attributes: bool,
    /// Types: metadata can mark an object as a symlink.
    pub types: bool,
    /// Texts of symlinks.
    pub links: bool,
    /// Receives the findings.
    pub results: Sender<Checked>,
}

/// Result of comparing two entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Contents are the same, or were not compared.
    Same,
    /// Contents, or the texts of symlinks, differ; from this byte on if that is known.
    Differ(Option<u64>),
    /// The comparison failed; the problem was reported.
    Failed,
}

/// A pair that was compared.
#[derive(Debug)]
pub struct Checked {
    /// Name relative to the roots.
    pub name: Box<[u8]>,
    /// The source; for an object with the time and mode in its metadata.
    pub source: Meta,
    /// The target, in the same form.
    pub target: Meta,
    /// Whether both sides have a time that can be compared.
    pub times: bool,
    /// Whether both sides have a mode.
    pub modes: bool,
    /// Result for the contents.
    pub finding: Finding,
}

/// Compares two entries and sends the result.
pub(in crate::object) async fn check(core: &Core<'_>, mut moving: Moving, asked: &Checking) {
    let target = match &moving.existing {
        Some(existing) => existing.meta,
        None => moving.entry.meta,
    };
    let size = moving.entry.meta.size;
    let mut checked = Checked {
        name: moving.entry.name.clone(),
        source: moving.entry.meta,
        target,
        times: false,
        modes: false,
        finding: Finding::Same,
    };
    if let Err(failed) = look(core, &mut moving, asked, &mut checked).await {
        checked.finding = Finding::Failed;
        let mut totals = Totals::default();
        core.failed(&moving, failed, &mut totals);
        core.add(totals);
    }
    let lane = core.doing.lane();
    lane.done(1);
    match checked.finding {
        Finding::Same if asked.contents => lane.bytes(size),
        _ if asked.contents => lane.settle(size, 0),
        _ => {}
    }
    if checked.finding != Finding::Failed {
        core.doing.lane().items(1);
    }
    // The receiver is gone if the comparison was cancelled.
    let _ = asked.results.send(checked);
}

/// Replaces the metadata of a local symlink by those of its referent, if it exists.
fn follow(root: &Root, entry: &mut Entry) {
    if let Root::Local { dir, .. } = root
        && let Ok(name) = CString::new(&*entry.name)
        && let Ok(there) = meta::of(dir.as_fd(), &name, true)
    {
        entry.meta = there;
    }
}

async fn look(
    core: &Core<'_>,
    moving: &mut Moving,
    asked: &Checking,
    checked: &mut Checked,
) -> Result<(), Failed> {
    let Heads { source, target } = heads(core, moving).await?;
    if asked.attributes {
        let has = |head: &Option<ObjectHead>| match head {
            None => (true, true),
            Some(head) => {
                let kept = metadata::read(&head.metadata);
                (kept.mtime.is_some(), kept.mode.is_some())
            }
        };
        let (a, b) = (has(&source), has(&target));
        checked.times = a.0 && b.0;
        checked.modes = a.1 && b.1;
    }
    checked.source = touch::as_file(&checked.source, source.as_ref());
    checked.target = touch::as_file(&checked.target, target.as_ref());
    if asked.types {
        let is_link = |head: &Option<_>| head.as_ref().is_some_and(metadata::says_symlink);
        for (meta, head) in [(&mut checked.source, &source), (&mut checked.target, &target)] {
            meta.kind = if is_link(head) { Kind::Symlink } else { meta.kind };
        }
        // Next to an object that is not a symlink, a local symlink stands for its referent.
        if checked.source.kind != checked.target.kind {
            if target.is_some() && checked.source.kind == Kind::Symlink {
                follow(&moving.pair.source, &mut moving.entry);
                checked.source = moving.entry.meta;
            } else if let (Some(_), Some(existing)) = (&source, &mut moving.existing)
                && checked.target.kind == Kind::Symlink
            {
                follow(&moving.pair.target, existing);
                checked.target = existing.meta;
            }
        }
        if checked.source.kind != checked.target.kind {
            return Ok(());
        }
    }
    let is_link = checked.source.kind == Kind::Symlink;
    if is_link && !asked.links {
        return Ok(());
    }
    if is_link && checked.source.size != checked.target.size {
        checked.finding = Finding::Differ(None);
        return Ok(());
    }
    // It changed since it was listed: the current state is compared.
    if checked.source.size != checked.target.size || !(asked.contents || is_link) {
        return Ok(());
    }
    if let Some(size) = source.as_ref().map(|head| head.size)
        && size != moving.entry.meta.size
    {
        let reason = "it changed while it was being compared";
        return Err(Failed::Reason(Operation::Compare, Side::Source, reason));
    }
    let what = Compared { moving, source: source.as_ref(), target: target.as_ref(), strict: true };
    checked.finding = match contents::compare(core, &what).await? {
        Contents::Same => Finding::Same,
        Contents::Differ(offset) => Finding::Differ(offset),
    };
    Ok(())
}
